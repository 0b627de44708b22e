#include "measure/counters_set.h"

#include "base/heap.h"

static void *take(size_t size) {
  void *room = sol_heap_alloc(size ? size : 1);
  if (room) memset(room, 0, size);
  return room;
}

static SolStatus no_memory(SolError *err) {
  return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

static SolStatus open_host(const Cupti *u, CountersSet *set, const char *chip, const uint8_t *availability,
                           SolError *err) {
  CuptiHostInitialize p = {.size = CUPTI_SIZE(CuptiHostInitialize, host),
                           .type = CUPTI_PROFILER_TYPE_RANGE,
                           .chip = chip,
                           .availability = availability};
  SolStatus status = cupti_check(u, u->host_initialize(&p), "the list of counters", err);
  set->host = p.host;
  return status;
}

// A metric that cannot be scheduled spoils the whole configuration: those are found out first.
static SolStatus sort_out(const Cupti *u, CountersSet *set, const char *const *metrics, int count,
                          SolError *err) {
  set->count = count;
  set->place = take(sizeof *set->place * (size_t)count);
  set->known = take(sizeof *set->known * (size_t)count);
  set->row = take(sizeof *set->row * (size_t)count);
  if (!set->place || !set->known || !set->row) return no_memory(err);
  for (int i = 0; i < count; i++) {
    CuptiHostProperties p = {
        .size = CUPTI_SIZE(CuptiHostProperties, type), .host = set->host, .metric = metrics[i]};
    set->place[i] = -1;
    if (u->host_properties(&p)) continue;
    set->place[i] = set->known_count;
    set->known[set->known_count++] = metrics[i];
  }
  if (set->known_count) return SOL_OK;
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "this GPU has none of the %d counters that were asked for",
                  count);
}

static SolStatus schedule(const Cupti *u, CountersSet *set, SolError *err) {
  CuptiHostAdd add = {.size = CUPTI_SIZE(CuptiHostAdd, count),
                      .host = set->host,
                      .metrics = set->known,
                      .count = (size_t)set->known_count};
  CuptiHostImageSize size = {.size = CUPTI_SIZE(CuptiHostImageSize, image_size), .host = set->host};
  SolStatus status = cupti_check(u, u->host_add(&add), "scheduling the counters", err);
  if (!status) status = cupti_check(u, u->host_image_size(&size), "scheduling the counters", err);
  if (status) return status;
  set->image_size = size.image_size;
  set->image = take(set->image_size);
  if (!set->image) return no_memory(err);
  CuptiHostImage image = {.size = CUPTI_SIZE(CuptiHostImage, image),
                          .host = set->host,
                          .image_size = set->image_size,
                          .image = set->image};
  CuptiHostPasses passes = {
      .size = CUPTI_SIZE(CuptiHostPasses, passes), .image_size = set->image_size, .image = set->image};
  status = cupti_check(u, u->host_image(&image), "scheduling the counters", err);
  if (!status) status = cupti_check(u, u->host_passes(&passes), "scheduling the counters", err);
  set->passes = (int)passes.passes;
  return status;
}

void counters_close_set(const Cupti *u, CountersSet *set) {
  CuptiHostDeinitialize host = {.size = CUPTI_SIZE(CuptiHostDeinitialize, host), .host = set->host};
  if (set->host) u->host_deinitialize(&host);
  sol_heap_free(set->place);
  sol_heap_free((void *)(uintptr_t)set->known);
  sol_heap_free(set->row);
  sol_heap_free(set->image);
  sol_heap_free(set->data);
  *set = (CountersSet){0};
}

SolStatus counters_open_set(const Cupti *u, CountersSet *set, const char *chip, const uint8_t *availability,
                            const char *const *metrics, int count, SolError *err) {
  SolStatus status = open_host(u, set, chip, availability, err);
  if (!status) status = sort_out(u, set, metrics, count, err);
  return status ? status : schedule(u, set, err);
}

SolStatus counters_make_room(const Cupti *u, CountersSet *set, void *profiler, int most, SolError *err) {
  CuptiRangeDataSize size = {.size = CUPTI_SIZE(CuptiRangeDataSize, data_size),
                             .profiler = profiler,
                             .metrics = set->known,
                             .count = (size_t)set->known_count,
                             .most_ranges = (size_t)most,
                             .most_nodes = (uint32_t)most};
  SolStatus status = cupti_check(u, u->range_data_size(&size), "room for the counters", err);
  if (status) return status;
  if (set->data && set->data_size >= size.data_size) return SOL_OK;
  sol_heap_free(set->data);
  set->data_size = size.data_size;
  set->data = take(set->data_size);
  return set->data ? SOL_OK : no_memory(err);
}
