#include "inject/graphs.h"

#include <stdlib.h>

#include "driver/cuda.h"

#include "inject/inject.h"

// ---- the order of nodes ----

typedef struct Place { // of a node among the graph's
  void *node;
  size_t at;
} Place;

typedef struct Order {
  size_t count, edge_count;
  void **nodes, **from, **to;
  Place *places;         // by address
  size_t *after, *heads; // heads: of the edges that leave a node, into `after`: who waits for it
  size_t *waits;         // for how many nodes each one waits
  size_t *ready;         // a queue
} Order;

static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const Place *)a)->node, y = (uintptr_t)((const Place *)b)->node;
  return (x > y) - (x < y);
}

static size_t place_of(const Order *o, void *node) {
  const Place key = {node, 0}, *found = bsearch(&key, o->places, o->count, sizeof key, by_address);
  return found ? found->at : o->count;
}

static void *room(size_t count, size_t size) {
  return calloc(count ? count : 1, size);
}

// Edges may carry data (a kernel that starts before another has ended): an older driver has no such thing, a
// newer one does not tell of those edges without it.
static int read_edges(const Inject *in, void *graph, Order *o) {
  if (!in->graph_edges) {
    int result = in->graph_edges_old(graph, NULL, NULL, &o->edge_count);
    o->from = room(o->edge_count, sizeof *o->from);
    o->to = room(o->edge_count, sizeof *o->to);
    if (result || !o->from || !o->to || !o->edge_count) return result;
    return in->graph_edges_old(graph, o->from, o->to, &o->edge_count);
  }
  int result = in->graph_edges(graph, NULL, NULL, NULL, &o->edge_count);
  o->from = room(o->edge_count, sizeof *o->from);
  o->to = room(o->edge_count, sizeof *o->to);
  GraphEdge *data = room(o->edge_count, sizeof *data);
  if (!result && o->from && o->to && data && o->edge_count)
    result = in->graph_edges(graph, o->from, o->to, data, &o->edge_count);
  free(data);
  return result;
}

static bool read_order(const Inject *in, void *graph, Order *o) {
  if (in->graph_nodes(graph, NULL, &o->count)) return false;
  o->nodes = room(o->count, sizeof *o->nodes);
  if (!o->nodes || (o->count && in->graph_nodes(graph, o->nodes, &o->count))) return false;
  if (read_edges(in, graph, o) || !o->from || !o->to) return false;
  o->places = room(o->count, sizeof *o->places);
  o->heads = room(o->count + 1, sizeof *o->heads);
  o->waits = room(o->count, sizeof *o->waits);
  o->ready = room(o->count, sizeof *o->ready);
  o->after = room(o->edge_count, sizeof *o->after);
  if (!o->places || !o->heads || !o->waits || !o->ready || !o->after) return false;
  for (size_t i = 0; i < o->count; i++) o->places[i] = (Place){o->nodes[i], i};
  qsort(o->places, o->count, sizeof *o->places, by_address);
  return true;
}

// Who waits for whom: counted, added up, filled in from the back.
static bool link_order(Order *o) {
  for (size_t e = 0; e < o->edge_count; e++) {
    size_t from = place_of(o, o->from[e]), to = place_of(o, o->to[e]);
    if (from == o->count || to == o->count) return false;
    o->heads[from]++;
    o->waits[to]++;
  }
  for (size_t i = 1; i <= o->count; i++) o->heads[i] += o->heads[i - 1];
  for (size_t e = o->edge_count; e-- > 0;)
    o->after[--o->heads[place_of(o, o->from[e])]] = place_of(o, o->to[e]);
  return true;
}

static void free_order(Order *o) {
  free(o->nodes);
  free(o->from);
  free(o->to);
  free(o->places);
  free(o->after);
  free(o->heads);
  free(o->waits);
  free(o->ready);
}

// ---- the plan ----

enum { MAX_NESTING = 16 };

static bool add_step(InjectGraph *g, size_t *cap, void *node, int kind) {
  if (g->count == *cap) {
    size_t more = *cap ? *cap * 2 : 64;
    GraphStep *steps = realloc(g->steps, more * sizeof *steps);
    if (!steps) return false;
    g->steps = steps;
    *cap = more;
  }
  g->steps[g->count++] = (GraphStep){node, kind};
  return true;
}

static const char *add_graph(const Inject *in, InjectGraph *g, void *graph, size_t *cap, int nesting);

// NULL, or why the graph has to be launched whole.
static const char *add_node(const Inject *in, InjectGraph *g, void *node, size_t *cap, int nesting) {
  enum { UPDATABLE = 13 }; // CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
  int kind = -1;
  GraphKernel kernel = {0};
  int value[16] = {0};
  void *child;
  if (in->node_type(node, &kind)) return "nodes that the driver does not tell of";
  switch (kind) {
  case GRAPH_KERNEL:
    if (in->node_kernel(node, &kernel)) return "nodes that the driver does not tell of";
    if (kernel.context ? kernel.context != g->context : in->context_count > 1)
      return "kernels on several GPUs";
    if (in->node_attribute && !in->node_attribute(node, UPDATABLE, value) && value[0])
      return "kernels that the GPU itself changes";
    break;
  case GRAPH_CHILD:
    return in->node_child(node, &child) ? "nodes that the driver does not tell of"
                                        : add_graph(in, g, child, cap, nesting + 1);
  case GRAPH_COPY:
  case GRAPH_SET:
  case GRAPH_HOST:
  case GRAPH_WAIT:
  case GRAPH_RECORD: break;
  case GRAPH_EMPTY: return NULL;
  case GRAPH_ALLOCATE:
  case GRAPH_FREE: return "nodes that allocate memory";
  case GRAPH_CONDITIONAL: return "conditional nodes";
  default: return "nodes for memory operations, or for others' semaphores";
  }
  return add_step(g, cap, node, kind) ? NULL : "too many nodes";
}

static const char *add_graph(const Inject *in, InjectGraph *g, void *graph, size_t *cap, int nesting) {
  Order o = {0};
  const char *why = nesting > MAX_NESTING ? "too many graphs in each other" : NULL;
  if (!why && (!read_order(in, graph, &o) || !link_order(&o))) why = "nodes that the driver does not tell of";
  size_t done = 0, end = 0;
  for (size_t i = 0; i < o.count && !why; i++)
    if (!o.waits[i]) o.ready[end++] = i;
  for (; done < end && !why; done++) {
    size_t at = o.ready[done];
    why = add_node(in, g, o.nodes[at], cap, nesting);
    for (size_t e = o.heads[at]; e < o.heads[at + 1]; e++)
      if (--o.waits[o.after[e]] == 0) o.ready[end++] = o.after[e];
  }
  if (!why && done != o.count) why = "nodes that wait for each other";
  free_order(&o);
  return why;
}

static void plan(const Inject *in, InjectGraph *g) {
  size_t cap = 0;
  g->planned = true;
  g->count = 0;
  free(g->steps);
  g->steps = NULL;
  g->why = g->changed ? "nodes that were changed later on" : NULL;
  if (!g->why && !g->copy) g->why = "nodes that cannot be copied"; // those that allocate memory among them
  if (!g->why) g->why = add_graph(in, g, g->copy, &cap, 0);
}

// ---- all that are ready to launch ----

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
  if (!g->planned && has_all(in)) plan(in, g);
  if (!g->planned) g->why = "a driver that is too old to tell of them";
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

// A node of the graph that it was made of now does something else in the executable one: so it does in ours.
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

// That a callback may change what it is shown of a call is so, but nowhere said: a graph is launched that
// would tell of it if it ran.
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
