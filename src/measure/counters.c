#include "measure/counters.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/heap.h"
#include "measure/counters_set.h"

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
  void *driver, *context, *profiler;
#define DRIVER_POINTER(field, symbol, parameters) CuCall(*field) parameters;
  DRIVER_ENTRY_POINTS(DRIVER_POINTER)
#undef DRIVER_POINTER
  bool retained, running, ranges;
  int most;
  CountersSet sets[2]; // all that was asked for; those that are wanted alone as well
  CountersSet *set;    // of the two, the one that was started last
};

static void *take(size_t size) {
  void *room = sol_heap_alloc(size ? size : 1);
  if (room) memset(room, 0, size);
  return room;
}

static SolStatus no_memory(SolError *err) {
  return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
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

// Calls work on whatever context is current; ours may not be.
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
  if (!status)
    status =
        counters_open_set(&c->cupti, &c->sets[0], chip.name, availability, o->metrics, o->metric_count, err);
  CountersSet *alone = &c->sets[1];
  if (!status && o->alone_count &&
      counters_open_set(&c->cupti, alone, chip.name, availability, o->alone, o->alone_count,
                        NULL)) // a GPU without them
    counters_close_set(&c->cupti, alone);
  if (!status) status = cupti_check(u, result = enable(c), "counters of this GPU", err);
  if (status && cupti_forbidden(result)) *trouble = COUNTERS_FORBIDDEN;
  if (!status)
    status = counters_make_room(&c->cupti, &c->sets[0], c->profiler, c->most,
                                err); // what cannot be is known from the start
  sol_heap_free(availability);
  return status;
}

SolStatus counters_open(const CountersOptions *options, Counters **out, CountersTrouble *trouble,
                        SolError *err) {
  CountersTrouble none;
  if (!trouble) trouble = &none;
  *trouble = COUNTERS_FINE;
  if (options->metric_count < 1) return sol_fail(err, SOL_ERR_ARGUMENT, "no counters were asked for");
  Counters *c = take(sizeof *c);
  if (!c) return no_memory(err);
  c->most = options->most_launches > 0 ? options->most_launches : 1;
  c->ranges = options->ranges;
  c->set = &c->sets[0];
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
  for (size_t i = 0; i < SOL_COUNT(c->sets); i++) counters_close_set(&c->cupti, &c->sets[i]);
  leave(c, entered);
  if (c->retained) c->context_release(0);
  // CUPTI stays loaded: it keeps threads and handlers of its own.
  if (c->driver) dlclose(c->driver);
  sol_heap_free(c);
}

int counters_passes(const Counters *c) {
  return c->sets[0].passes;
}

bool counters_alone(const Counters *c) {
  return c->sets[1].passes == 1 && c->sets[0].passes > 1;
}

bool counters_has(const Counters *c, int metric) {
  return c->sets[0].place[metric] >= 0;
}

// ---- counting ----

// The room for results is made empty, and the profiler told of it: each session starts so.
static SolStatus configure(Counters *c, SolError *err) {
  const Cupti *u = &c->cupti;
  SolStatus status =
      c->sets[1].count ? counters_make_room(&c->cupti, c->set, c->profiler, c->most, err) : SOL_OK;
  if (status) return status;
  CuptiRangeDataInit init = {.size = CUPTI_SIZE(CuptiRangeDataInit, data),
                             .profiler = c->profiler,
                             .data_size = c->set->data_size,
                             .data = c->set->data};
  CuptiRangeConfig config = {.size = CUPTI_SIZE(CuptiRangeConfig, nesting_target),
                             .profiler = c->profiler,
                             .image_size = c->set->image_size,
                             .image = c->set->image,
                             .data_size = c->set->data_size,
                             .data = c->set->data,
                             .range = c->ranges ? CUPTI_RANGE_USER : CUPTI_RANGE_AUTO,
                             .replay = c->ranges ? CUPTI_REPLAY_USER : CUPTI_REPLAY_KERNEL,
                             .most_ranges = (size_t)c->most,
                             .nesting_levels = 1,
                             .nesting_least = 1,
                             .nesting_target = 1};
  status = cupti_check(u, u->range_data_init(&init), "room for the counters", err);
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
      .size = CUPTI_SIZE(CuptiRangeDataInfo, ranges), .data = c->set->data, .data_size = c->set->data_size};
  SolStatus status = cupti_check(&c->cupti, c->cupti.range_decode(&p), "reading the counters", err);
  if (!status) status = cupti_check(&c->cupti, c->cupti.range_data_info(&info), "reading the counters", err);
  if (ranges) *ranges = (int)info.ranges;
  return status;
}

static SolStatus start(Counters *c, CountersSet *set, SolError *err) {
  if (c->ranges) return sol_fail(err, SOL_ERR_ARGUMENT, "these counters are for ranges");
  if (c->running) return sol_fail(err, SOL_ERR_ARGUMENT, "the counters are running already");
  c->set = set;
  bool entered = enter(c);
  c->context_sync(); // what was launched before is not counted
  SolStatus status = configure(c, err);
  if (!status) status = begin(c, err);
  leave(c, entered);
  return status;
}

SolStatus counters_start(Counters *c, SolError *err) {
  return start(c, &c->sets[0], err);
}

SolStatus counters_start_alone(Counters *c, SolError *err) {
  if (!c->sets[1].count) return sol_fail(err, SOL_ERR_ARGUMENT, "there are no counters to have alone");
  return start(c, &c->sets[1], err);
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
  for (int i = 0; i < c->set->count; i++) values[i] = __builtin_nan("");
  CuptiHostEvaluate p = {.size = CUPTI_SIZE(CuptiHostEvaluate, values),
                         .host = c->set->host,
                         .data = c->set->data,
                         .data_size = c->set->data_size,
                         .range = (size_t)launch,
                         .metrics = c->set->known,
                         .count = (size_t)c->set->known_count,
                         .values = c->set->row};
  SolStatus status = cupti_check(&c->cupti, c->cupti.host_evaluate(&p), "the counters' values", err);
  for (int i = 0; i < c->set->count && !status; i++)
    if (c->set->place[i] >= 0) values[i] = c->set->row[c->set->place[i]];
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
  // CUPTI says when it has enough; that a pass repeats for ever is its fault, but must not be ours.
  for (int pass = 0; !status && !all; pass++) {
    if (pass > 4 * c->set->passes + 4)
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
  CountersSet *set = &c->sets[0];
  if (!status) status = counters_open_set(&c->cupti, set, chip, NULL, metrics, count, err);
  for (int i = 0; i < count && known && set->place; i++) known[i] = set->place[i] >= 0;
  *passes = set->passes;
  counters_close(c);
  return status;
}
