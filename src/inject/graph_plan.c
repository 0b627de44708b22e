// The nodes of a graph, in an order that its edges allow.
#include <stdlib.h>

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
  size_t *after, *heads; // heads: index into `after` of the first node that depends on a node
  size_t *waits;         // number of nodes that each one still depends on
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
// newer one does not return those edges without it.
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

// The dependents of each node: counted, added up, filled in from the back.
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
  if (in->node_type(node, &kind)) return "nodes that the driver cannot describe";
  switch (kind) {
  case GRAPH_KERNEL:
    if (in->node_kernel(node, &kernel)) return "nodes that the driver cannot describe";
    if (kernel.context ? kernel.context != g->context : in->context_count > 1)
      return "kernels on several GPUs";
    if (in->node_attribute && !in->node_attribute(node, UPDATABLE, value) && value[0])
      return "kernels that are updated from the device";
    break;
  case GRAPH_CHILD:
    return in->node_child(node, &child) ? "nodes that the driver cannot describe"
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
  default: return "nodes for memory operations, or for external semaphores";
  }
  return add_step(g, cap, node, kind) ? NULL : "too many nodes";
}

static const char *add_graph(const Inject *in, InjectGraph *g, void *graph, size_t *cap, int nesting) {
  Order o = {0};
  const char *why = nesting > MAX_NESTING ? "child graphs nested too deep" : NULL;
  if (!why && (!read_order(in, graph, &o) || !link_order(&o))) why = "nodes that the driver cannot describe";
  size_t done = 0, end = 0;
  for (size_t i = 0; i < o.count && !why; i++)
    if (!o.waits[i]) o.ready[end++] = i;
  for (; done < end && !why; done++) {
    size_t at = o.ready[done];
    why = add_node(in, g, o.nodes[at], cap, nesting);
    for (size_t e = o.heads[at]; e < o.heads[at + 1]; e++)
      if (--o.waits[o.after[e]] == 0) o.ready[end++] = o.after[e];
  }
  if (!why && done != o.count) why = "nodes that depend on each other in a cycle";
  free_order(&o);
  return why;
}

void inject_graph_plan(const Inject *in, InjectGraph *g) {
  size_t cap = 0;
  g->planned = true;
  g->count = 0;
  free(g->steps);
  g->steps = NULL;
  g->why = g->changed ? "nodes that were changed later on" : NULL;
  if (!g->why && !g->copy) g->why = "nodes that cannot be copied"; // those that allocate memory among them
  if (!g->why) g->why = add_graph(in, g, g->copy, &cap, 0);
}
