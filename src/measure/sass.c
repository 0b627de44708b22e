#include "measure/sass.h"

#include <dlfcn.h>

#include "base/heap.h"
#include "measure/cupti.h"

struct Sass {
  Cupti cupti;
  uint32_t device;
  int count;
  void *driver, *context;
  CuptiSassConfig *config; // of the known ones
  int known_count;
  int *place; // of a metric among the known
  bool entered, configured;
};

// The GPU's primary context, current until sass_close.
static SolStatus enter(Sass *s, SolError *err) {
  int (*retain)(void **, int) = NULL, (*push)(void *) = NULL;
  s->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *address = s->driver ? dlsym(s->driver, "cuDevicePrimaryCtxRetain") : NULL;
  memcpy(&retain, &address, sizeof address);
  address = s->driver ? dlsym(s->driver, "cuCtxPushCurrent_v2") : NULL;
  memcpy(&push, &address, sizeof address);
  if (!retain || !push) return sol_fail(err, SOL_ERR_UNSUPPORTED, "no CUDA driver has been loaded");
  if (retain(&s->context, (int)s->device)) s->context = NULL;
  s->entered = s->context && !push(s->context);
  return s->entered ? SOL_OK
                    : sol_fail(err, SOL_ERR_UNSUPPORTED, "the GPU's primary context is not available");
}

static void leave(Sass *s) {
  int (*release)(int) = NULL, (*pop)(void **) = NULL;
  void *address = s->driver ? dlsym(s->driver, "cuDevicePrimaryCtxRelease_v2") : NULL, *context;
  memcpy(&release, &address, sizeof address);
  address = s->driver ? dlsym(s->driver, "cuCtxPopCurrent_v2") : NULL;
  memcpy(&pop, &address, sizeof address);
  if (s->entered && pop) pop(&context);
  if (s->context && release) release((int)s->device);
  if (s->driver) dlclose(s->driver);
}

static SolStatus find_metrics(Sass *s, const char *const *metrics, SolError *err) {
  CuptiChipName chip = {.size = CUPTI_SIZE(CuptiChipName, name), .device = s->device};
  SolStatus status = cupti_check(&s->cupti, s->cupti.chip_name(&chip), "the GPU's name", err);
  for (int i = 0; i < s->count && !status; i++) {
    CuptiSassProperties p = {
        .size = CUPTI_SIZE(CuptiSassProperties, metric), .chip = chip.name, .name = metrics[i]};
    s->place[i] = -1;
    if (s->cupti.sass_properties(&p)) continue;
    s->place[i] = s->known_count;
    s->config[s->known_count++] = (CuptiSassConfig){p.metric.id, CUPTI_SASS_WHOLE_GPU};
  }
  if (!status && !s->known_count)
    status =
        sol_fail(err, SOL_ERR_UNSUPPORTED, "this GPU has none of the %d counters by instruction", s->count);
  return status;
}

SolStatus sass_open(int device, const char *const *metrics, int count, Sass **out, SolError *err) {
  Sass *s = sol_heap_alloc(sizeof *s);
  *out = NULL;
  if (!s) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *s = (Sass){.device = (uint32_t)device, .count = count};
  s->place = sol_heap_alloc(sizeof *s->place * (size_t)count);
  s->config = sol_heap_alloc(sizeof *s->config * (size_t)count);
  SolStatus status =
      s->place && s->config ? cupti_load(&s->cupti, err) : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!status && !s->cupti.patches)
    status = sol_fail(err, SOL_ERR_UNSUPPORTED, "this CUPTI does not count by instruction");
  CuptiInitialize init = {.size = CUPTI_SIZE(CuptiInitialize, priv)};
  if (!status) status = cupti_check(&s->cupti, s->cupti.profiler_initialize(&init), "the profiler", err);
  if (!status) status = enter(s, err);
  if (!status) status = find_metrics(s, metrics, err);
  CuptiSassSetConfig set = {.size = CUPTI_SIZE(CuptiSassSetConfig, device),
                            .count = (size_t)s->known_count,
                            .config = s->config,
                            .device = s->device};
  if (!status) status = cupti_check(&s->cupti, s->cupti.sass_set(&set), "counting by instruction", err);
  s->configured = !status;
  if (status)
    sass_close(s);
  else
    *out = s;
  return status;
}

void sass_close(Sass *s) {
  if (!s) return;
  CuptiSassUnsetConfig unset = {.size = CUPTI_SIZE(CuptiSassUnsetConfig, device), .device = s->device};
  if (s->configured) s->cupti.sass_unset(&unset);
  cupti_unload(&s->cupti);
  leave(s);
  sol_heap_free(s->place);
  sol_heap_free(s->config);
  sol_heap_free(s);
}

static void add_up(const Sass *s, const CuptiSassData *data, size_t records, size_t each, double *values) {
  for (size_t r = 0; r < records; r++)
    for (size_t k = 0; k < each; k++)
      for (int i = 0; i < s->count; i++)
        if (s->place[i] >= 0 && s->config[s->place[i]].id == data[r].values[k].id)
          values[i] += (double)data[r].values[k].value;
}

// What CUPTI has gathered since it was enabled.
static SolStatus flush(const Sass *s, double *values, SolError *err) {
  CuptiSassDataSize size = {.size = CUPTI_SIZE(CuptiSassDataSize, instances), .context = s->context};
  SolStatus status = cupti_check(&s->cupti, s->cupti.sass_data_size(&size), "counts by instruction", err);
  size_t records = size.records, each = size.instances * (size_t)s->known_count;
  if (status || !records) return status; // nothing of the kind was executed
  CuptiSassData *data = sol_heap_alloc(records * sizeof *data);
  CuptiSassValue *room = sol_heap_alloc(records * each * sizeof *room);
  if (data && room) {
    memset(room, 0, records * each * sizeof *room);
    for (size_t r = 0; r < records; r++)
      data[r] = (CuptiSassData){.size = CUPTI_SIZE(CuptiSassData, values), .values = room + r * each};
    CuptiSassFlush all = {.size = CUPTI_SIZE(CuptiSassFlush, instances),
                          .context = s->context,
                          .records = records,
                          .instances = size.instances,
                          .data = data};
    status = cupti_check(&s->cupti, s->cupti.sass_flush(&all), "counts by instruction", err);
    if (!status) add_up(s, data, records, each, values);
    // The caller should free the names in the records, but CUPTI has its own malloc: they are leaked.
  } else {
    status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  sol_heap_free(data);
  sol_heap_free(room);
  return status;
}

SolStatus sass_range(Sass *s, CountersWork *work, void *ctx, double *values, SolError *err) {
  CuptiSassEnable on = {.size = CUPTI_SIZE(CuptiSassEnable, lazily), .context = s->context, .lazily = 1};
  CuptiSassDisable off = {.size = CUPTI_SIZE(CuptiSassDisable, dropped), .context = s->context};
  for (int i = 0; i < s->count; i++) values[i] = s->place[i] >= 0 ? 0 : __builtin_nan("");
  SolStatus status = cupti_check(&s->cupti, s->cupti.sass_enable(&on), "counting by instruction", err);
  if (status) return status;
  status = work(ctx, err);
  if (!status) status = flush(s, values, err);
  SolStatus disabled =
      cupti_check(&s->cupti, s->cupti.sass_disable(&off), "counting by instruction", status ? NULL : err);
  if (!status) status = disabled;
  if (!status && off.dropped)
    status = sol_fail(err, SOL_ERR_UNSUPPORTED, "counts by instruction were lost (%zu)", off.dropped);
  return status;
}
