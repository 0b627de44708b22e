// Counters: a callback intercepts each launch, and CUPTI runs it as often as the counters need. While
// one launch is counted, others wait.
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <unistd.h>

#include "driver/cuda.h"
#include "inject/inject.h"

#define STREAM_PER_THREAD ((void *)2)
enum { FUNC_SHARED = 1, FUNC_LOCAL = 3, FUNC_REGISTERS = 4, FUNC_CLUSTER = 11 };

// The arguments of the driver's functions, as CUPTI hands them over.
typedef struct LaunchArgs { // cuLaunchKernel, cuLaunchCooperativeKernel
  void *function;
  unsigned grid[3], block[3], shared;
  void *stream;
} LaunchArgs;
typedef struct LaunchExArgs {
  const CuLaunchConfig *config;
  void *function;
} LaunchExArgs;
typedef struct GraphArgs {
  void *graph, *stream;
} GraphArgs;

// ---- contexts ----

static struct InjectContext *find_context(Inject *in, void *context) {
  for (int i = 0; i < in->context_count; i++)
    if (in->contexts[i].context == context) return &in->contexts[i];
  return NULL;
}

// Where counters are not available, times still are.
static void fall_back(Inject *in, CountersTrouble trouble, const SolError *err) {
  static const ProfileTrouble as[] = {
      [COUNTERS_NO_DRIVER] = PROFILE_REFUSED, [COUNTERS_NO_CUPTI] = PROFILE_NO_CUPTI,
      [COUNTERS_OLD] = PROFILE_OLD,           [COUNTERS_FORBIDDEN] = PROFILE_FORBIDDEN,
      [COUNTERS_REFUSED] = PROFILE_REFUSED,   [COUNTERS_FINE] = PROFILE_REFUSED};
  inject_trouble(in, as[trouble], err);
  SolError again = {0};
  if (!in->timing && inject_start_times(in, &again)) inject_trouble(in, PROFILE_REFUSED, &again);
}

static void open_context(Inject *in, void *context) {
  if (in->context_count == MAX_CONTEXTS || find_context(in, context)) return;
  struct InjectContext *c = &in->contexts[in->context_count];
  uint32_t device = 0;
  in->cupti.device_of(context, &device);
  *c = (struct InjectContext){.context = context, .device = (int)device};
  CountersOptions options = {
      .metrics = in->metric_names, .metric_count = in->metric_count, .context = context};
  CountersTrouble trouble;
  SolError err = {0};
  inject_gpu(in, c->device);
  if (counters_open(&options, &c->counters, &trouble, &err))
    fall_back(in, trouble, &err);
  else
    in->context_count++, in->counts = true;
  inject_flush(in);
}

static void close_context(Inject *in, void *context) {
  struct InjectContext *c = find_context(in, context);
  if (!c) return;
  counters_close(c->counters);
  *c = in->contexts[--in->context_count];
}

// ---- launches ----

static void read_launch(const CuptiCall *call, uint32_t id, ProfileLaunch *l, void **function,
                        void **stream) {
  profile_launch_clear(l);
  if (id == CUPTI_CALL_GRAPH || id == CUPTI_CALL_GRAPH_PTSZ) {
    const GraphArgs *a = call->params;
    *function = NULL, *stream = a->stream;
    l->name = "(graph)";
    l->graph = true;
    return;
  }
  const unsigned *grid, *block;
  if (id == CUPTI_CALL_LAUNCH_EX || id == CUPTI_CALL_LAUNCH_EX_PTSZ) {
    const LaunchExArgs *a = call->params;
    const CuLaunchConfig *config = a->config;
    *function = a->function, *stream = config->stream;
    grid = config->grid, block = config->block;
    l->dynamic_shared = config->shared;
    for (unsigned i = 0; i < config->attribute_count; i++)
      if (config->attributes[i].id == ATTRIBUTE_CLUSTER)
        memcpy(l->cluster, &config->attributes[i].value.cluster, sizeof l->cluster);
  } else {
    const LaunchArgs *a = call->params;
    *function = a->function, *stream = a->stream;
    grid = a->grid, block = a->block;
    l->dynamic_shared = a->shared;
  }
  memcpy(l->grid, grid, sizeof l->grid);
  memcpy(l->block, block, sizeof l->block);
  l->name = call->symbol ? call->symbol : "(unknown)";
}

static double attribute(const Inject *in, int which, void *function) {
  int value = 0;
  void *plain = NULL;
  if (!in->function_attribute || !function) return PROFILE_UNKNOWN;
  if (!in->function_attribute(&value, which, function)) return value;
  // A kernel of a library is launched by another kind of handle.
  if (!in->kernel_function || in->kernel_function(&plain, function)) return PROFILE_UNKNOWN;
  return in->function_attribute(&value, which, plain) ? PROFILE_UNKNOWN : value;
}

// What is captured into a graph does not run now.
static bool captured(const Inject *in, void *stream) {
  int state = 0;
  return in->stream_capturing && (in->stream_capturing(stream, &state) || state);
}

// ---- counting ----

static void complain(Inject *in, const SolError *err) {
  if (!in->bad_launches++) inject_trouble(in, PROFILE_REFUSED, err);
}

static bool start_counting(Inject *in, const struct InjectContext *c) {
  SolError err = {0};
  bool started = !counters_start(c->counters, &err);
  if (!started) complain(in, &err);
  return started;
}

static void end_counting(Inject *in, const struct InjectContext *c, ProfileLaunch *l, void *function) {
  double values[PROFILE_METRICS];
  int launches = 0;
  SolError err = {0};
  SolStatus status = counters_stop(c->counters, &launches, &err);
  if (!status && launches) status = counters_values(c->counters, 0, values, &err);
  if (status) complain(in, &err);
  if (status || !launches) return; // the launch failed, or the GPU faulted
  l->registers = attribute(in, FUNC_REGISTERS, function);
  l->static_shared = attribute(in, FUNC_SHARED, function);
  l->local_bytes = attribute(in, FUNC_LOCAL, function);
  bool chosen = l->cluster[0]; // by the launch; otherwise it may have been when the kernel was compiled
  for (int i = 0; i < 3 && !chosen; i++) {
    double size = attribute(in, FUNC_CLUSTER + i, function);
    if (size > 0) l->cluster[i] = (uint32_t)size;
  }
  for (int m = 0; m < in->metric_count; m++) l->values[in->metrics[m]] = values[m];
  l->seconds = l->values[PROFILE_time] / 1e9;
  inject_tell(in, c->device, l, true);
  inject_flush(in);
}

// ---- graphs ----

static GraphArgs *graph_args(const CuptiCall *call) {
  return (GraphArgs *)(uintptr_t)call->params;
}

// What a kernel node will launch; false: the driver does not return it.
static bool read_node(Inject *in, const GraphStep *step, GraphKernel *k, ProfileLaunch *l) {
  const char *name = NULL;
  profile_launch_clear(l);
  if (in->node_kernel(step->node, k)) return false;
  if (k->function && in->function_name && in->function_name(&name, k->function)) name = NULL;
  if (!k->function && in->kernel_name && in->kernel_name(&name, k->kernel)) name = NULL;
  l->name = name ? name : "(unknown)";
  l->graph = true;
  l->dynamic_shared = k->shared;
  memcpy(l->grid, k->grid, sizeof l->grid);
  memcpy(l->block, k->block, sizeof l->block);
  return true;
}

static int count_node(Inject *in, const struct InjectContext *c, const GraphStep *step, void *stream) {
  GraphKernel k;
  ProfileLaunch l;
  if (!read_node(in, step, &k, &l)) return inject_graph_step(in, step, stream);
  // All that is launched in a callback has the correlation id of the callback's call: records of what is
  // counted could not be distinguished from those of what is not.
  if (in->timing) in->cupti.activity_disable(CUPTI_KIND_CONCURRENT_KERNEL);
  bool started = start_counting(in, c);
  int result = inject_graph_kernel(in, step, &k, stream);
  if (started) end_counting(in, c, &l, k.function ? k.function : k.kernel);
  if (in->timing) in->cupti.activity_enable(CUPTI_KIND_CONCURRENT_KERNEL);
  return result;
}

// Which of its kernels are to be counted, by step; how many.
static size_t choose(Inject *in, const InjectGraph *g, bool *chosen) {
  size_t count = 0;
  GraphKernel k;
  ProfileLaunch l;
  for (size_t i = 0; i < g->count; i++) {
    const GraphStep *step = &g->steps[i];
    chosen[i] = step->kind == GRAPH_KERNEL && read_node(in, step, &k, &l) && inject_wants(in, l.name) &&
                inject_counts(in, &l);
    count += chosen[i];
  }
  return count;
}

// Node by node, where some of its kernels are to be counted; the program's launch then gets an empty graph.
static void take_graph(Inject *in, struct InjectContext *c, const CuptiCall *call, void *stream) {
  InjectGraph *g = inject_graph_find(in, graph_args(call)->graph, c->context);
  const char *why = g ? g->why : "an instantiation that was not observed";
  if (in->device_graphs) why = "others that are launched from the device";
  void *nothing = why ? NULL : inject_graph_nothing(in, &c->nothing);
  if (!why && !nothing) why = "a driver whose graph launches cannot be intercepted";
  if (why) {
    in->graphs_whole++;
    if (!in->graph_why) in->graph_why = why;
    return;
  }
  bool *chosen = g->done ? NULL : calloc(g->count + 1, sizeof *chosen);
  if (!chosen) return;
  if (choose(in, g, chosen)) {
    in->graph_result = 0;
    inject_keep(in->replayed, &in->replayed_next, call->correlation);
    for (size_t i = 0; i < g->count && !in->graph_result; i++)
      in->graph_result =
          chosen[i] ? count_node(in, c, &g->steps[i], stream) : inject_graph_step(in, &g->steps[i], stream);
    if (in->graph_result) {
      SolError err = {0};
      sol_fail(&err, SOL_ERR_UNSUPPORTED,
               "a node of a CUDA graph failed when it was launched by itself: CUDA error %d",
               in->graph_result);
      sol_hint(&err, "the program received the error; --times launches graphs whole");
      complain(in, &err);
    }
    in->graph_swapped = g->exec;
    graph_args(call)->graph = nothing;
  } else {
    g->done = !inject_limited(in) && in->each && in->timing;
  }
  free(chosen);
}

static void enter(Inject *in, const CuptiCall *call, uint32_t id) {
  ProfileLaunch l;
  void *function, *stream;
  struct InjectContext *c = find_context(in, call->context);
  in->counting = false;
  in->graph_swapped = NULL;
  read_launch(call, id, &l, &function, &stream);
  if (!c || captured(in, stream)) return;
  if (l.graph) {
    if (!stream && id == CUPTI_CALL_GRAPH_PTSZ) stream = STREAM_PER_THREAD;
    take_graph(in, c, call, stream);
    return;
  }
  if (!inject_wants(in, l.name) || !inject_counts(in, &l)) return;
  inject_keep(in->counted, &in->counted_next, call->correlation);
  in->counting = start_counting(in, c);
}

static void leave(Inject *in, const CuptiCall *call, uint32_t id) {
  struct InjectContext *c = find_context(in, call->context);
  ProfileLaunch l;
  void *function, *stream;
  if (in->graph_swapped) {
    graph_args(call)->graph = in->graph_swapped;
    if (in->graph_result && call->result) *(int *)call->result = in->graph_result;
  }
  in->graph_swapped = NULL;
  if (!in->counting || !c) return;
  in->counting = false;
  read_launch(call, id, &l, &function, &stream);
  end_counting(in, c, &l, function);
}

static const uint32_t launches[] = {
    CUPTI_CALL_LAUNCH, CUPTI_CALL_LAUNCH_PTSZ, CUPTI_CALL_COOPERATIVE, CUPTI_CALL_COOPERATIVE_PTSZ,
    CUPTI_CALL_GRAPH,  CUPTI_CALL_GRAPH_PTSZ,  CUPTI_CALL_LAUNCH_EX,   CUPTI_CALL_LAUNCH_EX_PTSZ};
static const uint32_t graph_calls[] = {
    CUPTI_CALL_GRAPH_MAKE,          CUPTI_CALL_GRAPH_MAKE_2,         CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS,
    CUPTI_CALL_GRAPH_MAKE_WITH,     CUPTI_CALL_GRAPH_MAKE_WITH_PTSZ, CUPTI_CALL_GRAPH_DROP,
    CUPTI_CALL_GRAPH_UPDATE,        CUPTI_CALL_GRAPH_UPDATE_2,       CUPTI_CALL_GRAPH_SET_KERNEL,
    CUPTI_CALL_GRAPH_SET_KERNEL_2,  CUPTI_CALL_GRAPH_SET_COPY,       CUPTI_CALL_GRAPH_SET_SET,
    CUPTI_CALL_GRAPH_SET_HOST,      CUPTI_CALL_GRAPH_SET_ANY,        CUPTI_CALL_GRAPH_SET_CHILD,
    CUPTI_CALL_GRAPH_SET_RECORD,    CUPTI_CALL_GRAPH_SET_WAIT,       CUPTI_CALL_GRAPH_SET_SIGNAL,
    CUPTI_CALL_GRAPH_SET_SEMAPHORE, CUPTI_CALL_GRAPH_SET_BATCH,      CUPTI_CALL_GRAPH_SET_ENABLED};

static bool is_launch(uint32_t id) {
  for (size_t i = 0; i < SOL_COUNT(launches); i++)
    if (launches[i] == id) return true;
  return false;
}

static void on_call(void *user, int domain, uint32_t id, const void *data) {
  static _Thread_local int depth; // what CUPTI and we call in here is not the program's
  Inject *in = user;
  if ((long)getpid() != in->pid) return;
  if (domain == CUPTI_DOMAIN_DRIVER && inject_graph_checking(id, data)) return;
  if (domain == CUPTI_DOMAIN_RESOURCE) {
    void *context = *(void *const *)data;
    if (depth) return;
    depth++;
    sol_lock_acquire(in->serial);
    if (id == CUPTI_RESOURCE_CONTEXT_CREATED) open_context(in, context);
    if (id == CUPTI_RESOURCE_CONTEXT_DESTROY) close_context(in, context);
    sol_lock_release(in->serial);
    depth--;
    return;
  }
  const CuptiCall *call = data;
  if (!is_launch(id)) {
    if (depth) return;
    depth++;
    sol_lock_acquire(in->serial);
    inject_graph_call(in, id, call);
    sol_lock_release(in->serial);
    depth--;
    return;
  }
  if (call->site == CUPTI_SITE_ENTER) {
    if (depth++) return;
    sol_lock_acquire(in->serial);
    enter(in, call, id);
  } else {
    if (--depth) return;
    depth = 1;
    leave(in, call, id);
    depth = 0;
    sol_lock_release(in->serial);
  }
}

SolStatus inject_start_counts(Inject *in, SolError *err) {
  const Cupti *u = &in->cupti;
  SolStatus status = cupti_check(u, u->subscribe(&in->subscriber, on_call, in), "callbacks", err);
  static const uint32_t resources[] = {CUPTI_RESOURCE_CONTEXT_CREATED, CUPTI_RESOURCE_CONTEXT_DESTROY};
  for (size_t i = 0; i < SOL_COUNT(resources) && !status; i++)
    status = cupti_check(u, u->enable_callback(1, in->subscriber, CUPTI_DOMAIN_RESOURCE, resources[i]),
                         "callbacks", err);
  for (size_t i = 0; i < SOL_COUNT(launches) && !status; i++) // an older CUPTI lacks the newest
    u->enable_callback(1, in->subscriber, CUPTI_DOMAIN_DRIVER, launches[i]);
  for (size_t i = 0; i < SOL_COUNT(graph_calls) && !status; i++)
    u->enable_callback(1, in->subscriber, CUPTI_DOMAIN_DRIVER, graph_calls[i]);
  // What is not counted is timed. That fails without harm.
  if (!status) inject_start_times(in, NULL);
  return status;
}
