// Graphs: nodes of work and their dependencies. An instance is a clone, whose nodes run in an order that
// respects the dependencies; independent nodes run in the order they were created.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"
#include "shim/shim_graph.h"

ShimGraph *shim_graph_new(void) {
  ShimGraph *g = calloc(1, sizeof *g);
  if (!g || !shim_put(g, SHIM_GRAPH, g)) return free(g), NULL;
  return g;
}

static void free_node(ShimNode *n) {
  shim_remove(n, SHIM_NODE);
  shim_drop_work(&n->work);
  shim_list_free(&n->needs);
  free(n);
}

// What the nodes allocated: reserved as long as graph or instance exist, even if it is freed in between.
void shim_graph_free_memory(const ShimGraph *g) {
  for (size_t i = 0; i < g->count; i++) {
    if (g->nodes[i]->work.type != cudaGraphNodeTypeMemAlloc) continue;
    void *memory = g->nodes[i]->work.alloc.dptr;
    shim_remove(memory, SHIM_GRAPH_MEMORY);
    shim_free(memory);
  }
}

void shim_graph_free(ShimGraph *g) {
  if (!g) return;
  shim_remove(g, SHIM_GRAPH); // so that a host function that runs meanwhile does not find it
  g->destroyed = true;
  if (g->running) return;
  shim_capture_lost(g);
  if (!g->instance && !g->instantiated) shim_graph_free_memory(g); // else an instance may still use it
  for (size_t i = 0; i < g->count; i++) free_node(g->nodes[i]);
  shim_user_objects_release(g);
  free(g->nodes);
  free(g);
}

cudaError_t shim_graph_add(ShimGraph *g, ShimNode *const *needs, size_t count, const ShimWork *work,
                           ShimNode **out) {
  if (g->count == g->cap) {
    size_t cap = g->cap ? g->cap * 2 : 8;
    ShimNode **grown = realloc(g->nodes, sizeof *grown * cap);
    if (!grown) return cudaErrorMemoryAllocation;
    g->nodes = grown;
    g->cap = cap;
  }
  ShimNode *n = calloc(1, sizeof *n);
  if (!n) return cudaErrorMemoryAllocation;
  n->graph = g;
  bool ok = shim_copy_work(&n->work, work);
  if (!ok) n->work.type = cudaGraphNodeTypeEmpty; // it owns nothing
  for (size_t i = 0; i < count && ok; i++) ok = shim_list_add(&n->needs, needs[i]);
  if (!ok || !shim_put(n, SHIM_NODE, n)) return free_node(n), cudaErrorMemoryAllocation;
  if (n->work.type == cudaGraphNodeTypeGraph) n->work.child->owned = true;
  if (n->work.type == cudaGraphNodeTypeMemAlloc && !g->instance)
    shim_put(n->work.alloc.dptr, SHIM_GRAPH_MEMORY,
             g); // if this fails, cudaFree frees it, which is harmless
  g->nodes[g->count++] = n;
  *out = n;
  return cudaSuccess;
}

ShimGraph *shim_graph_clone(const ShimGraph *from) {
  ShimGraph *g = shim_graph_new();
  if (!g) return NULL;
  g->instance = true; // memory stays the original's
  for (size_t i = 0; i < from->count; i++) {
    ShimNode *n;
    from->nodes[i]->order = i;
    if (shim_graph_add(g, NULL, 0, &from->nodes[i]->work, &n)) return shim_graph_free(g), NULL;
    n->original = from->nodes[i];
  }
  for (size_t i = 0; i < from->count; i++)
    for (size_t k = 0; k < from->nodes[i]->needs.count; k++)
      if (!shim_list_add(&g->nodes[i]->needs, g->nodes[from->nodes[i]->needs.nodes[k]->order]))
        return shim_graph_free(g), NULL;
  return g;
}

cudaError_t shim_graph_order(ShimGraph *g, ShimNode ***out) {
  ShimNode **order = calloc(g->count + 1, sizeof *order);
  if (!order) return cudaErrorMemoryAllocation;
  for (size_t i = 0; i < g->count; i++) g->nodes[i]->mark = 0;
  size_t done = 0;
  for (size_t before = SIZE_MAX; done < g->count && before != done;) {
    before = done;
    for (size_t i = 0; i < g->count; i++) {
      ShimNode *n = g->nodes[i];
      bool ready = !n->mark;
      for (size_t k = 0; k < n->needs.count && ready; k++) ready = n->needs.nodes[k]->mark;
      if (ready) n->mark = 1, order[done++] = n;
    }
  }
  if (done < g->count) return free(order), cudaErrorInvalidValue; // a cycle
  *out = order;
  return cudaSuccess;
}

cudaError_t shim_graph_run(ShimStream *stream, ShimGraph *g) {
  ShimNode **order;
  cudaError_t error = shim_graph_order(g, &order);
  if (error) return error;
  size_t count = g->count;
  bool outer = shim.streams.in_graph;
  if (!outer) shim_conditionals_start(g);
  g->running++;
  for (size_t i = 0; i < count && !error; i++) {
    shim.streams.in_graph = true; // a host callback may have launched other graphs
    if (!order[i]->disabled) error = shim_run(stream, &order[i]->work);
    while (error == cudaErrorNotReady && !shim.watch.interrupt) { // a value that nobody has written yet
      shim_pause();
      error = shim_run(stream, &order[i]->work);
    }
  }
  shim.streams.in_graph = outer;
  free(order);
  if (!--g->running && g->destroyed) shim_graph_free(g);
  return error;
}

// ---- entry points ----

static ShimGraph *graph_of(cudaGraph_t handle) {
  return shim_find(handle, SHIM_GRAPH);
}

static cudaError_t create(cudaGraph_t *out, unsigned flags) {
  if (!out || flags) return cudaErrorInvalidValue;
  *out = (cudaGraph_t)(void *)shim_graph_new();
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags) {
  SHIM_CALL(create(out, flags));
}

static cudaError_t destroy(cudaGraph_t handle) {
  ShimGraph *g = graph_of(handle);
  if (!g || g->owned) return cudaErrorInvalidValue;
  shim_graph_free(g);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  SHIM_CALL(destroy(graph));
}

static cudaError_t clone_graph(cudaGraph_t *out, cudaGraph_t original) {
  ShimGraph *g = graph_of(original);
  if (!out || !g) return cudaErrorInvalidValue;
  *out = (cudaGraph_t)(void *)shim_graph_clone(g);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t original) {
  SHIM_CALL(clone_graph(out, original));
}

static cudaError_t find_in_clone(cudaGraphNode_t *out, cudaGraphNode_t original, cudaGraph_t handle) {
  ShimGraph *g = graph_of(handle);
  if (!out || !g) return cudaErrorInvalidValue;
  for (size_t i = 0; i < g->count; i++)
    if ((void *)g->nodes[i]->original == (void *)original)
      return *out = (cudaGraphNode_t)(void *)g->nodes[i], cudaSuccess;
  return cudaErrorInvalidValue;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t original, cudaGraph_t graph) {
  SHIM_CALL(find_in_clone(out, original, graph));
}

// Lists are given in two calls: how many, then so many; what does not fit is left out, what is left is NULL.
static cudaError_t give_nodes(ShimNode *const *nodes, size_t count, cudaGraphNode_t *out, size_t *room) {
  if (!room) return cudaErrorInvalidValue;
  for (size_t i = 0; out && i < *room; i++) out[i] = i < count ? (cudaGraphNode_t)(void *)nodes[i] : NULL;
  *room = out && *room < count ? *room : count;
  return cudaSuccess;
}

static cudaError_t select_nodes(cudaGraph_t handle, bool roots, cudaGraphNode_t *out, size_t *room) {
  ShimGraph *g = graph_of(handle);
  ShimNodeList list = {0};
  if (!g) return cudaErrorInvalidValue;
  for (size_t i = 0; i < g->count; i++)
    if ((!roots || !g->nodes[i]->needs.count) && !shim_list_add(&list, g->nodes[i]))
      return shim_list_free(&list), cudaErrorMemoryAllocation;
  cudaError_t error = give_nodes(list.nodes, list.count, out, room);
  shim_list_free(&list);
  return error;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count) {
  SHIM_CALL(select_nodes(graph, false, out, count));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count) {
  SHIM_CALL(select_nodes(graph, true, out, count));
}

static cudaError_t give_edges(cudaGraph_t handle, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
  ShimGraph *g = graph_of(handle);
  if (!g || !count || !from != !to) return cudaErrorInvalidValue;
  size_t at = 0;
  for (size_t i = 0; i < g->count; i++)
    for (size_t k = 0; k < g->nodes[i]->needs.count; k++, at++) {
      if (!from || at >= *count) continue;
      from[at] = (cudaGraphNode_t)(void *)g->nodes[i]->needs.nodes[k];
      to[at] = (cudaGraphNode_t)(void *)g->nodes[i];
    }
  *count = from && *count < at ? *count : at;
  return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *data, size_t *count) {
  if (data && count) memset(data, 0, sizeof *data * *count);
  SHIM_CALL(give_edges(graph, from, to, count));
}

static cudaError_t needs_of(cudaGraphNode_t handle, cudaGraphNode_t *out, size_t *count) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  return n ? give_nodes(n->needs.nodes, n->needs.count, out, count) : cudaErrorInvalidValue;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *data,
                                         size_t *count) {
  if (data && count) memset(data, 0, sizeof *data * *count);
  SHIM_CALL(needs_of(node, out, count));
}

static cudaError_t needed_by(cudaGraphNode_t handle, cudaGraphNode_t *out, size_t *count) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  ShimNodeList list = {0};
  if (!n) return cudaErrorInvalidValue;
  for (size_t i = 0; i < n->graph->count; i++)
    for (size_t k = 0; k < n->graph->nodes[i]->needs.count; k++)
      if (n->graph->nodes[i]->needs.nodes[k] == n && !shim_list_add(&list, n->graph->nodes[i]))
        return shim_list_free(&list), cudaErrorMemoryAllocation;
  cudaError_t error = give_nodes(list.nodes, list.count, out, count);
  shim_list_free(&list);
  return error;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *out,
                                           cudaGraphEdgeData *data, size_t *count) {
  if (data && count) memset(data, 0, sizeof *data * *count);
  SHIM_CALL(needed_by(node, out, count));
}

static void remove_need(ShimNode *n, const ShimNode *need) {
  size_t kept = 0;
  for (size_t k = 0; k < n->needs.count; k++)
    if (n->needs.nodes[k] != need) n->needs.nodes[kept++] = n->needs.nodes[k];
  n->needs.count = kept;
}

static cudaError_t change_needs(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                size_t count, bool add) {
  ShimGraph *g = graph_of(graph);
  if (!g || (count && (!from || !to))) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++) {
    ShimNode *f = shim_find(from[i], SHIM_NODE), *t = shim_find(to[i], SHIM_NODE);
    if (!f || !t || f == t || f->graph != g || t->graph != g) return cudaErrorInvalidValue;
    if (!add)
      remove_need(t, f);
    else if (!shim_list_add(&t->needs, f))
      return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *data, size_t count) {
  (void)data;
  SHIM_CALL(change_needs(graph, from, to, count, true));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
                                        size_t count) {
  (void)data;
  SHIM_CALL(change_needs(graph, from, to, count, false));
}

static cudaError_t destroy_node(cudaGraphNode_t handle) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  if (!n) return cudaErrorInvalidValue;
  ShimGraph *g = n->graph;
  if (g->running || n->work.type == cudaGraphNodeTypeMemAlloc) return cudaErrorNotSupported;
  shim_capture_forget(n);
  size_t kept = 0;
  for (size_t i = 0; i < g->count; i++) {
    remove_need(g->nodes[i], n);
    if (g->nodes[i] != n) g->nodes[kept++] = g->nodes[i];
  }
  g->count = kept;
  free_node(n);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  SHIM_CALL(destroy_node(node));
}

static cudaError_t node_type(cudaGraphNode_t handle, enum cudaGraphNodeType *out) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = n->work.type;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *out) {
  SHIM_CALL(node_type(node, out));
}
