#include "measure/counters.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "measure/cupti.h"

typedef int CuCall;
// X(field, symbol, parameters) of the driver.
#define DRIVER_ENTRY_POINTS(X)                                                                               \
  X(init, "cuInit", (unsigned))                                                                              \
  X(context_current, "cuCtxGetCurrent", (void **))                                                           \
  X(context_retain, "cuDevicePrimaryCtxRetain", (void **, int))                                              \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int))                                                  \
  X(context_push, "cuCtxPushCurrent_v2", (void *))                                                           \
  X(context_pop, "cuCtxPopCurrent_v2", (void **))                                                            \
  X(context_sync, "cuCtxSynchronize", (void))

struct Counters {
  Cupti cupti;
  void *driver, *context, *host, *profiler;
#define DRIVER_POINTER(field, symbol, parameters) CuCall(*field) parameters;
  DRIVER_ENTRY_POINTS(DRIVER_POINTER)
#undef DRIVER_POINTER
  bool retained, running, ranges;
  int passes, count, known_count, most;
  int *place;         // of each metric among the known; -1: it is not
  const char **known; // names
  double *row;        // their values
  uint8_t *image, *data;
  size_t image_size, data_size;
};

static void *take(size_t size) {
  void *room = sol_heap_alloc(size ? size : 1);
  if (room) memset(room, 0, size);
  return room;
}

static SolStatus no_memory(SolError *err) {
  return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

// ---- metrics ----

static SolStatus open_host(Counters *c, const char *chip, const uint8_t *availability, SolError *err) {
  CuptiHostInitialize p = {.size = CUPTI_SIZE(CuptiHostInitialize, host),
                           .type = CUPTI_PROFILER_TYPE_RANGE,
                           .chip = chip,
                           .availability = availability};
  SolStatus status = cupti_check(&c->cupti, c->cupti.host_initialize(&p), "the list of counters", err);
  c->host = p.host;
  return status;
}

// CUPTI deals a metric's raw counters out to passes in the order of the metrics. What is made of two (a
// ratio; sectors, which are hits and misses) is wrong where each comes of another run of the kernel: those
// are first. Throughputs, which are the highest of dozens, fill what is left.
static int turn(const char *metric) {
  if (strstr(metric, "throughput")) return 2;
  return !strstr(metric, "_sectors_pipe_") && !strstr(metric, ".ratio") && !strstr(metric, "pct");
}

// A metric that cannot be scheduled spoils the whole configuration: those are found out first.
static SolStatus sort_out(Counters *c, const char *const *metrics, int count, SolError *err) {
  c->count = count;
  c->place = take(sizeof *c->place * (size_t)count);
  c->known = take(sizeof *c->known * (size_t)count);
  c->row = take(sizeof *c->row * (size_t)count);
  if (!c->place || !c->known || !c->row) return no_memory(err);
  for (int i = 0; i < 3 * count; i++) {
    const char *metric = metrics[i % count];
    CuptiHostProperties p = {
        .size = CUPTI_SIZE(CuptiHostProperties, type), .host = c->host, .metric = metric};
    if (turn(metric) != i / count) continue;
    c->place[i % count] = -1;
    if (c->cupti.host_properties(&p)) continue;
    c->place[i % count] = c->known_count;
    c->known[c->known_count++] = metric;
  }
  if (c->known_count) return SOL_OK;
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "this GPU has none of the %d counters that were requested",
                  count);
}

static SolStatus schedule(Counters *c, SolError *err) {
  const Cupti *u = &c->cupti;
  CuptiHostAdd add = {.size = CUPTI_SIZE(CuptiHostAdd, count),
                      .host = c->host,
                      .metrics = c->known,
                      .count = (size_t)c->known_count};
  CuptiHostImageSize size = {.size = CUPTI_SIZE(CuptiHostImageSize, image_size), .host = c->host};
  SolStatus status = cupti_check(u, u->host_add(&add), "scheduling the counters", err);
  if (!status) status = cupti_check(u, u->host_image_size(&size), "scheduling the counters", err);
  if (status) return status;
  c->image_size = size.image_size;
  c->image = take(c->image_size);
  if (!c->image) return no_memory(err);
  CuptiHostImage image = {.size = CUPTI_SIZE(CuptiHostImage, image),
                          .host = c->host,
                          .image_size = c->image_size,
                          .image = c->image};
  CuptiHostPasses passes = {
      .size = CUPTI_SIZE(CuptiHostPasses, passes), .image_size = c->image_size, .image = c->image};
  status = cupti_check(u, u->host_image(&image), "scheduling the counters", err);
  if (!status) status = cupti_check(u, u->host_passes(&passes), "scheduling the counters", err);
  c->passes = (int)passes.passes;
  return status;
}

// ---- the GPU ----

static SolStatus load_driver(Counters *c, SolError *err) {
  c->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!c->driver) return sol_fail(err, SOL_ERR_UNSUPPORTED, "no CUDA driver on this machine (libcuda.so.1)");
#define ENTRY_LOAD(field, symbol, parameters)                                                                \
  {                                                                                                          \
    void *address = dlsym(c->driver, symbol);                                                                \
    if (!address)                                                                                            \
      return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old: it lacks %s", symbol);          \
    memcpy(&c->field, &address, sizeof address);                                                             \
  }
  DRIVER_ENTRY_POINTS(ENTRY_LOAD)
#undef ENTRY_LOAD
  return SOL_OK;
}

static SolStatus find_context(Counters *c, void *given, SolError *err) {
  c->context = given;
  if (c->context) return SOL_OK;
  CuCall result = c->init(0);
  if (!result) result = c->context_current(&c->context);
  if (!result && !c->context) {
    result = c->context_retain(&c->context, 0);
    c->retained = !result;
  }
  if (result) return sol_fail(err, SOL_ERR_UNSUPPORTED, "no usable GPU (CUDA driver error %d)", result);
  return SOL_OK;
}

// Calls use the current context, which may not be this one.
static bool enter(const Counters *c) {
  void *current = NULL;
  c->context_current(&current);
  return current != c->context && !c->context_push(c->context);
}

static void leave(const Counters *c, bool entered) {
  void *popped;
  if (entered) c->context_pop(&popped);
}

static CuptiResult read_availability(const Counters *c, uint8_t **out) {
  CuptiAvailability p = {.size = CUPTI_SIZE(CuptiAvailability, image), .context = c->context};
  CuptiResult result = c->cupti.availability(&p);
  if (result || !p.image_size) return result;
  *out = p.image = take(p.image_size);
  return *out ? c->cupti.availability(&p) : 0;
}

static void disable(Counters *c) {
  CuptiRange range = {.size = CUPTI_SIZE(CuptiRange, profiler), .profiler = c->profiler};
  if (c->profiler) c->cupti.range_disable(&range);
  c->profiler = NULL;
}

static CuptiResult enable(Counters *c) {
  CuptiRangeEnable p = {.size = CUPTI_SIZE(CuptiRangeEnable, profiler), .context = c->context};
  CuptiResult result = c->cupti.range_enable(&p);
  c->profiler = result ? NULL : p.profiler;
  return result;
}

static CuptiResult open_profiler(Counters *c, SolError *err, SolStatus *status) {
  const Cupti *u = &c->cupti;
  CuptiResult result = enable(c);
  *status = cupti_check(u, result, "counters of this GPU", err);
  if (result) return result;
  CuptiRangeDataSize size = {.size = CUPTI_SIZE(CuptiRangeDataSize, data_size),
                             .profiler = c->profiler,
                             .metrics = c->known,
                             .count = (size_t)c->known_count,
                             .most_ranges = (size_t)c->most,
                             .most_nodes = (uint32_t)c->most};
  result = u->range_data_size(&size);
  *status = cupti_check(u, result, "room for the counters", err);
  if (result) return result;
  c->data_size = size.data_size;
  c->data = take(c->data_size);
  if (!c->data) *status = no_memory(err);
  return 0;
}

static SolStatus open_gpu(Counters *c, const CountersOptions *o, CountersTrouble *trouble, SolError *err) {
  const Cupti *u = &c->cupti;
  uint8_t *availability = NULL;
  uint32_t device = 0;
  CuptiInitialize init = {.size = CUPTI_SIZE(CuptiInitialize, priv)};
  *trouble = COUNTERS_REFUSED;
  CuptiResult result = u->profiler_initialize(&init);
  if (!result) result = u->device_of(c->context, &device);
  CuptiChipName chip = {.size = CUPTI_SIZE(CuptiChipName, name), .device = device};
  if (!result) result = u->chip_name(&chip);
  if (!result) result = read_availability(c, &availability);
  SolStatus status = cupti_check(u, result, "counters of this GPU", err);
  if (!status) status = open_host(c, chip.name, availability, err);
  if (!status) status = sort_out(c, o->metrics, o->metric_count, err);
  if (!status) status = schedule(c, err);
  if (!status) result = open_profiler(c, err, &status);
  if (status && cupti_forbidden(result)) *trouble = COUNTERS_FORBIDDEN;
  sol_heap_free(availability);
  return status;
}

SolStatus counters_open(const CountersOptions *options, Counters **out, CountersTrouble *trouble,
                        SolError *err) {
  CountersTrouble none;
  if (!trouble) trouble = &none;
  *trouble = COUNTERS_FINE;
  if (options->metric_count < 1) return sol_fail(err, SOL_ERR_ARGUMENT, "no counters were requested");
  Counters *c = take(sizeof *c);
  if (!c) return no_memory(err);
  c->most = options->most_launches > 0 ? options->most_launches : 1;
  c->ranges = options->ranges;
  *trouble = COUNTERS_NO_DRIVER;
  SolStatus status = load_driver(c, err);
  if (!status) status = find_context(c, options->context, err);
  if (!status) {
    *trouble = COUNTERS_NO_CUPTI;
    status = cupti_load(&c->cupti, err);
  }
  if (!status && !c->cupti.counts) {
    *trouble = COUNTERS_OLD;
    status = sol_fail(err, SOL_ERR_UNSUPPORTED,
                      "this CUPTI (%u) is too old for counters: 12.6 or later is needed", c->cupti.version);
  }
  if (!status) {
    bool entered = enter(c);
    status = open_gpu(c, options, trouble, err);
    leave(c, entered);
  }
  if (status)
    counters_close(c);
  else
    *trouble = COUNTERS_FINE, *out = c;
  return status;
}

void counters_close(Counters *c) {
  if (!c) return;
  bool entered = c->profiler && enter(c);
  if (c->running) counters_stop(c, NULL, NULL);
  disable(c);
  CuptiHostDeinitialize host = {.size = CUPTI_SIZE(CuptiHostDeinitialize, host), .host = c->host};
  if (c->host) c->cupti.host_deinitialize(&host);
  leave(c, entered);
  if (c->retained) c->context_release(0);
  // CUPTI stays loaded: it has started threads and installed handlers.
  if (c->driver) dlclose(c->driver);
  sol_heap_free(c->place);
  sol_heap_free((void *)(uintptr_t)c->known);
  sol_heap_free(c->row);
  sol_heap_free(c->image);
  sol_heap_free(c->data);
  sol_heap_free(c);
}

int counters_passes(const Counters *c) {
  return c->passes;
}

bool counters_has(const Counters *c, int metric) {
  return c->place[metric] >= 0;
}

// ---- counting ----

// The result buffer is cleared and passed to the profiler: each session starts so.
static SolStatus configure(Counters *c, SolError *err) {
  const Cupti *u = &c->cupti;
  CuptiRangeDataInit init = {.size = CUPTI_SIZE(CuptiRangeDataInit, data),
                             .profiler = c->profiler,
                             .data_size = c->data_size,
                             .data = c->data};
  CuptiRangeConfig config = {.size = CUPTI_SIZE(CuptiRangeConfig, nesting_target),
                             .profiler = c->profiler,
                             .image_size = c->image_size,
                             .image = c->image,
                             .data_size = c->data_size,
                             .data = c->data,
                             .range = c->ranges ? CUPTI_RANGE_USER : CUPTI_RANGE_AUTO,
                             .replay = c->ranges ? CUPTI_REPLAY_USER : CUPTI_REPLAY_KERNEL,
                             .most_ranges = (size_t)c->most,
                             .nesting_levels = 1,
                             .nesting_least = 1,
                             .nesting_target = 1};
  SolStatus status = cupti_check(u, u->range_data_init(&init), "room for the counters", err);
  return status ? status : cupti_check(u, u->range_config(&config), "setting up the counters", err);
}

static SolStatus begin(Counters *c, SolError *err) {
  CuptiRange p = {.size = CUPTI_SIZE(CuptiRange, profiler), .profiler = c->profiler};
  SolStatus status = cupti_check(&c->cupti, c->cupti.range_start(&p), "starting the counters", err);
  c->running = !status;
  return status;
}

static SolStatus end(Counters *c, bool *all, SolError *err) {
  CuptiRangeStop p = {.size = CUPTI_SIZE(CuptiRangeStop, all_passes), .profiler = c->profiler};
  c->running = false;
  SolStatus status = cupti_check(&c->cupti, c->cupti.range_stop(&p), "stopping the counters", err);
  if (all) *all = p.all_passes;
  return status;
}

static SolStatus decode(Counters *c, int *ranges, SolError *err) {
  CuptiRangeDecode p = {.size = CUPTI_SIZE(CuptiRangeDecode, dropped), .profiler = c->profiler};
  CuptiRangeDataInfo info = {
      .size = CUPTI_SIZE(CuptiRangeDataInfo, ranges), .data = c->data, .data_size = c->data_size};
  SolStatus status = cupti_check(&c->cupti, c->cupti.range_decode(&p), "reading the counters", err);
  if (!status) status = cupti_check(&c->cupti, c->cupti.range_data_info(&info), "reading the counters", err);
  if (ranges) *ranges = (int)info.ranges;
  return status;
}

SolStatus counters_start(Counters *c, SolError *err) {
  if (c->ranges) return sol_fail(err, SOL_ERR_ARGUMENT, "these counters are for ranges");
  if (c->running) return sol_fail(err, SOL_ERR_ARGUMENT, "the counters are running already");
  bool entered = enter(c);
  c->context_sync(); // what was launched before is not counted
  SolStatus status = configure(c, err);
  if (!status) status = begin(c, err);
  leave(c, entered);
  return status;
}

SolStatus counters_stop(Counters *c, int *launches, SolError *err) {
  if (launches) *launches = 0;
  if (!c->running) return sol_fail(err, SOL_ERR_ARGUMENT, "the counters are not running");
  bool entered = enter(c);
  c->context_sync();
  SolStatus status = end(c, NULL, err);
  if (!status) status = decode(c, launches, err);
  leave(c, entered);
  return status;
}

SolStatus counters_values(const Counters *c, int launch, double *values, SolError *err) {
  for (int i = 0; i < c->count; i++) values[i] = __builtin_nan("");
  CuptiHostEvaluate p = {.size = CUPTI_SIZE(CuptiHostEvaluate, values),
                         .host = c->host,
                         .data = c->data,
                         .data_size = c->data_size,
                         .range = (size_t)launch,
                         .metrics = c->known,
                         .count = (size_t)c->known_count,
                         .values = c->row};
  SolStatus status = cupti_check(&c->cupti, c->cupti.host_evaluate(&p), "the counters' values", err);
  for (int i = 0; i < c->count && !status; i++)
    if (c->place[i] >= 0) values[i] = c->row[c->place[i]];
  return status;
}

static SolStatus push(Counters *c, SolError *err) {
  CuptiRangePush p = {.size = CUPTI_SIZE(CuptiRangePush, name), .profiler = c->profiler, .name = "work"};
  return cupti_check(&c->cupti, c->cupti.range_push(&p), "a range", err);
}

static SolStatus pop(Counters *c, SolError *err) {
  CuptiRange p = {.size = CUPTI_SIZE(CuptiRange, profiler), .profiler = c->profiler};
  return cupti_check(&c->cupti, c->cupti.range_pop(&p), "a range", err);
}

static SolStatus run_pass(Counters *c, CountersWork *work, void *ctx, bool *all, SolError *err) {
  SolStatus status = begin(c, err);
  if (status) return status;
  status = push(c, err);
  if (!status) {
    status = work(ctx, err);
    c->context_sync();
    SolStatus popped = pop(c, status ? NULL : err);
    if (!status) status = popped;
  }
  SolStatus ended = end(c, all, status ? NULL : err);
  return status ? status : ended;
}

SolStatus counters_range(Counters *c, CountersWork *work, void *ctx, double *values, SolError *err) {
  if (!c->ranges) return sol_fail(err, SOL_ERR_ARGUMENT, "these counters are for launches");
  if (c->running) return sol_fail(err, SOL_ERR_ARGUMENT, "the counters are running already");
  bool entered = enter(c), all = false;
  int ranges = 0;
  c->context_sync();
  SolStatus status = configure(c, err);
  // CUPTI reports when it has all passes; the loop is bounded in case it never does.
  for (int pass = 0; !status && !all; pass++) {
    if (pass > 4 * c->passes + 4)
      status = sol_fail(err, SOL_ERR_UNSUPPORTED, "the counters were not done after %d passes", pass);
    else
      status = run_pass(c, work, ctx, &all, err);
  }
  if (!status) status = decode(c, &ranges, err);
  leave(c, entered);
  if (!status && ranges < 1) status = sol_fail(err, SOL_ERR_UNSUPPORTED, "nothing was counted");
  return status ? status : counters_values(c, 0, values, err);
}

SolStatus counters_plan(const char *chip, const char *const *metrics, int count, int *passes, bool *known,
                        SolError *err) {
  Counters *c = take(sizeof *c);
  if (!c) return no_memory(err);
  SolStatus status = cupti_load(&c->cupti, err);
  if (!status && !c->cupti.counts)
    status = sol_fail(err, SOL_ERR_UNSUPPORTED, "this CUPTI (%u) is too old for counters", c->cupti.version);
  if (!status) status = open_host(c, chip, NULL, err);
  if (!status) status = sort_out(c, metrics, count, err);
  for (int i = 0; i < count && known && c->place; i++) known[i] = c->place[i] >= 0;
  if (!status) status = schedule(c, err);
  *passes = c->passes;
  counters_close(c);
  return status;
}
