#include "inject/graphs.h"

#include <stdlib.h>

#include "driver/cuda.h"

#include "inject/inject.h"

// ---- instantiated graphs ----

static bool has_all(const Inject *in) {
  bool all = true;
#define GRAPH_HAS(field, symbol, parameters) all = all && in->field;
  GRAPH_DRIVER(GRAPH_HAS)
#undef GRAPH_HAS
  return all && (in->graph_edges || in->graph_edges_old);
}

static InjectGraph *find(Inject *in, const void *exec) {
  for (size_t i = 0; i < in->graph_count; i++)
    if (in->graphs[i].exec == exec) return &in->graphs[i];
  return NULL;
}

InjectGraph *inject_graph_find(Inject *in, void *exec, void *context) {
  InjectGraph *g = find(in, exec);
  if (!g) return NULL;
  if (g->context != context) g->planned = false;
  g->context = context;
  if (!g->planned && has_all(in)) inject_graph_plan(in, g);
  if (!g->planned) g->why = "a driver that is too old to describe them";
  return g;
}

// What was changed in ways that cannot be followed stays so.
static void forget_copy(const Inject *in, InjectGraph *g) {
  if (g->copy) in->graph_destroy(g->copy);
  free(g->steps);
  *g = (InjectGraph){.exec = g->exec, .changed = g->changed};
}

static void drop(Inject *in, const void *exec) {
  InjectGraph *g = find(in, exec);
  if (!g) return;
  forget_copy(in, g);
  *g = in->graphs[--in->graph_count];
}

static void copy(const Inject *in, InjectGraph *g, void *graph) {
  if (!in->graph_clone || in->graph_clone(&g->copy, graph)) g->copy = NULL;
}

static void add(Inject *in, void *exec, void *graph, bool device) {
  drop(in, exec); // the handle of one that went unseen
  if (in->graph_count == in->graph_cap) {
    size_t cap = in->graph_cap ? in->graph_cap * 2 : 16;
    InjectGraph *graphs = realloc(in->graphs, cap * sizeof *graphs);
    if (!graphs) return;
    in->graphs = graphs;
    in->graph_cap = cap;
  }
  InjectGraph *g = &in->graphs[in->graph_count++];
  *g = (InjectGraph){.exec = exec};
  if (device) in->device_graphs = true;
  copy(in, g, graph);
}

// A node of the instantiated graph was updated: update the copy, too.
static void change(const Inject *in, InjectGraph *g, void *node, int (*set)(void *, const void *),
                   const void *parameters) {
  void *ours = NULL;
  g->planned = g->done = false;
  if (!g->copy) return;
  if (!set || in->node_in_clone(&ours, node, g->copy) || set(ours, parameters)) g->changed = true;
}

typedef struct MakeArgs { // all of cuGraphInstantiate*: their first two are the same
  void **exec, *graph;
  const uint64_t *parameters; // CUDA_GRAPH_INSTANTIATE_PARAMS; of the one with flags: the flags themselves
} MakeArgs;
typedef struct ChangeArgs { // cuGraphExec*NodeSetParams
  void *exec, *node;
  const void *parameters;
} ChangeArgs;

void inject_graph_call(Inject *in, uint32_t id, const CuptiCall *call) {
  const MakeArgs *made = call->params;
  const ChangeArgs *changed = call->params;
  InjectGraph *g = find(in, changed->exec);
  uint64_t flags = 0;
  if (call->site == CUPTI_SITE_ENTER) { // afterwards its handle may be another's already
    if (id == CUPTI_CALL_GRAPH_DROP) drop(in, changed->exec);
    return;
  }
  if (id == CUPTI_CALL_GRAPH_DROP || *(const int *)call->result) return;
  switch (id) {
  case CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS: flags = (uint64_t)(uintptr_t)made->parameters; break;
  case CUPTI_CALL_GRAPH_MAKE_WITH:
  case CUPTI_CALL_GRAPH_MAKE_WITH_PTSZ: flags = made->parameters[0]; break;
  default: break;
  }
  switch (id) {
  case CUPTI_CALL_GRAPH_MAKE:
  case CUPTI_CALL_GRAPH_MAKE_2:
  case CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS:
  case CUPTI_CALL_GRAPH_MAKE_WITH:
  case CUPTI_CALL_GRAPH_MAKE_WITH_PTSZ:
    add(in, *made->exec, made->graph, (flags & GRAPH_DEVICE_LAUNCH) != 0);
    return;
  default: break;
  }
  if (!g) return;
  switch (id) {
  case CUPTI_CALL_GRAPH_UPDATE:
  case CUPTI_CALL_GRAPH_UPDATE_2:
    forget_copy(in, g);
    copy(in, g, made->graph);
    break;
  case CUPTI_CALL_GRAPH_SET_KERNEL:
    change(in, g, changed->node, in->change_kernel_old, changed->parameters);
    break;
  case CUPTI_CALL_GRAPH_SET_KERNEL_2:
    change(in, g, changed->node, in->change_kernel, changed->parameters);
    break;
  case CUPTI_CALL_GRAPH_SET_COPY: change(in, g, changed->node, in->change_copy, changed->parameters); break;
  case CUPTI_CALL_GRAPH_SET_SET: change(in, g, changed->node, in->change_memset, changed->parameters); break;
  case CUPTI_CALL_GRAPH_SET_HOST: change(in, g, changed->node, in->change_host, changed->parameters); break;
  case CUPTI_CALL_GRAPH_SET_ANY: change(in, g, changed->node, in->change_any, changed->parameters); break;
  default: change(in, g, changed->node, NULL, NULL); break; // switched on or off, another child graph, ...
  }
}

// ---- launching ----

// Those that a launch takes as well as a node does. Zero is what it is without them.
static unsigned read_attributes(const Inject *in, void *node, CuLaunchAttribute *out) {
  static const int ids[] = {ATTRIBUTE_WINDOW,           ATTRIBUTE_COOPERATIVE,     ATTRIBUTE_CLUSTER,
                            ATTRIBUTE_CLUSTER_POLICY,   ATTRIBUTE_SYNC_DOMAIN_MAP, ATTRIBUTE_SYNC_DOMAIN,
                            ATTRIBUTE_PREFERRED_CLUSTER};
  static const char zero[sizeof out->value.room];
  unsigned count = 0;
  for (size_t i = 0; i < SOL_COUNT(ids) && in->node_attribute; i++) {
    CuLaunchAttribute *a = &out[count];
    *a = (CuLaunchAttribute){.id = ids[i]};
    if (in->node_attribute(node, ids[i], &a->value)) continue;
    bool set = ids[i] == ATTRIBUTE_WINDOW ? a->value.window.bytes > 0
                                          : memcmp(a->value.room, zero, sizeof zero) != 0;
    if (set) count++;
  }
  return count;
}

int inject_graph_kernel(Inject *in, const GraphStep *step, const GraphKernel *k, void *stream) {
  CuLaunchAttribute attributes[8];
  CuLaunchConfig config = {.shared = k->shared, .stream = stream, .attributes = attributes};
  memcpy(config.grid, k->grid, sizeof config.grid);
  memcpy(config.block, k->block, sizeof config.block);
  config.attribute_count = read_attributes(in, step->node, attributes);
  return in->launch(&config, k->function ? k->function : k->kernel, k->parameters, k->extra);
}

static int set_memory(const Inject *in, const GraphSet *s, void *stream) {
  size_t pitch = s->height > 1 ? s->pitch : s->width * s->element;
  if (s->element == 1) return in->memset8(s->to, pitch, (unsigned char)s->value, s->width, s->height, stream);
  if (s->element == 2)
    return in->memset16(s->to, pitch, (unsigned short)s->value, s->width, s->height, stream);
  return in->memset32(s->to, pitch, s->value, s->width, s->height, stream);
}

int inject_graph_step(Inject *in, const GraphStep *step, void *stream) {
  GraphKernel kernel;
  GraphCopy bytes;
  GraphSet set;
  GraphHost host;
  void *event;
  int result;
  switch (step->kind) {
  case GRAPH_KERNEL:
    result = in->node_kernel(step->node, &kernel);
    return result ? result : inject_graph_kernel(in, step, &kernel, stream);
  case GRAPH_COPY:
    result = in->node_copy(step->node, &bytes);
    return result ? result : in->copy(&bytes, stream);
  case GRAPH_SET:
    result = in->node_memset(step->node, &set);
    return result ? result : set_memory(in, &set, stream);
  case GRAPH_HOST:
    result = in->node_host(step->node, &host);
    return result ? result : in->host_function(stream, host.function, host.user);
  case GRAPH_RECORD:
    result = in->node_record(step->node, &event);
    return result ? result : in->event_record(event, stream);
  case GRAPH_WAIT:
    result = in->node_wait(step->node, &event);
    return result ? result : in->stream_wait(stream, event, 0);
  default: return 0;
  }
}

// ---- an empty graph in a graph's place ----

static _Thread_local void *checking; // the empty graph, while it is tried

bool inject_graph_checking(uint32_t id, const CuptiCall *call) {
  if (!checking) return false;
  if (call->site == CUPTI_SITE_ENTER && (id == CUPTI_CALL_GRAPH || id == CUPTI_CALL_GRAPH_PTSZ))
    *(void **)(uintptr_t)call->params = checking;
  return true;
}

static void has_run(void *user) {
  *(bool *)user = true;
}

// That a callback may change the arguments of a call is not documented: a graph is launched that
// would leave a trace if it ran.
static bool may_swap(const Inject *in, void *nothing) {
  void *graph = NULL, *node, *exec = NULL, *stream = NULL;
  bool ran = false;
  const GraphHost host = {has_run, &ran};
  checking = nothing;
  int result = in->stream_create(&stream, STREAM_NON_BLOCKING);
  if (!result) result = in->graph_create(&graph, 0);
  if (!result) result = in->node_add_host(&node, graph, NULL, 0, &host);
  if (!result) result = in->graph_instantiate(&exec, graph, 0);
  if (!result) result = in->graph_launch(exec, stream);
  if (!result) result = in->stream_sync(stream);
  if (exec) in->graph_exec_destroy(exec);
  if (graph) in->graph_destroy(graph);
  if (stream) in->stream_destroy(stream);
  checking = NULL;
  return !result && !ran;
}

void *inject_graph_nothing(Inject *in, void **nothing) {
  void *graph = NULL;
  if (*nothing || in->swap == INJECT_SWAP_NEVER) return *nothing;
  if (in->graph_create(&graph, 0) || in->graph_instantiate(nothing, graph, 0)) *nothing = NULL;
  if (graph) in->graph_destroy(graph);
  if (*nothing && in->swap == INJECT_SWAP_UNTRIED)
    in->swap = may_swap(in, *nothing) ? INJECT_SWAP_WORKS : INJECT_SWAP_NEVER;
  if (in->swap != INJECT_SWAP_WORKS) *nothing = NULL;
  return *nothing;
}
