// Executable graphs: instantiating, updating and launching them; and user objects that graphs retain.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/graph_work.h"

typedef struct Exec {
  ShimGraph *graph;
  const ShimGraph *source; // what it was made of; may be gone
  unsigned long long flags;
} Exec;

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long flags) {
  ShimGraph *g = shim_find(handle, SHIM_GRAPH);
  if (!out || !g) return cudaErrorInvalidValue;
  ShimNode **order;
  cudaError_t error = shim_graph_order(g, &order);
  if (error) return error;
  free(order);
  Exec *x = calloc(1, sizeof *x);
  if (x) *x = (Exec){shim_graph_clone(g), g, flags};
  if (!x || !x->graph || !shim_put(x, SHIM_EXEC, x)) return free(x), cudaErrorMemoryAllocation;
  x->graph->owned = true;
  g->instantiated = true;
  *out = (cudaGraphExec_t)(void *)x;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  SHIM_CALL(instantiate(out, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  SHIM_CALL(instantiate(out, graph, flags));
}

static cudaError_t instantiate_with(cudaGraphExec_t *out, cudaGraph_t graph, cudaGraphInstantiateParams *p) {
  if (!p) return cudaErrorInvalidValue;
  cudaError_t error = instantiate(out, graph, p->flags);
  p->errNode_out = NULL;
  p->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
  return error;
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params) {
  SHIM_CALL(instantiate_with(out, graph, params));
}
SHIM_ALIAS(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz);

static cudaError_t destroy(cudaGraphExec_t handle) {
  Exec *x = shim_find(handle, SHIM_EXEC);
  if (!x) return cudaErrorInvalidValue;
  shim_remove(x, SHIM_EXEC);
  if (!shim_find(x->source, SHIM_GRAPH)) shim_graph_free_memory(x->graph);
  shim_graph_free(x->graph);
  free(x);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  SHIM_CALL(destroy(exec));
}

static cudaError_t flags_of(cudaGraphExec_t handle, unsigned long long *out) {
  Exec *x = shim_find(handle, SHIM_EXEC);
  if (!x || !out) return cudaErrorInvalidValue;
  *out = x->flags;
  return cudaSuccess;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *out) {
  SHIM_CALL(flags_of(exec, out));
}

static cudaError_t launch(cudaGraphExec_t handle, cudaStream_t stream) {
  Exec *x = shim_find(handle, SHIM_EXEC);
  if (!x) return cudaErrorInvalidValue;
  ShimWork work = {.type = cudaGraphNodeTypeGraph, .child = x->graph};
  return shim_submit(stream, &work);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  SHIM_CALL(launch(exec, stream));
}
SHIM_ALIAS(cudaGraphLaunch, cudaGraphLaunch_ptsz);

static cudaError_t upload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!shim_find(exec, SHIM_EXEC)) return cudaErrorInvalidValue;
  return shim_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  SHIM_CALL(upload(exec, stream));
}
SHIM_ALIAS(cudaGraphUpload, cudaGraphUpload_ptsz);

// ---- changes ----

// The instance's node for one of the graph it was made of.
static ShimNode *clone_of(cudaGraphExec_t handle, cudaGraphNode_t node) {
  Exec *x = shim_find(handle, SHIM_EXEC);
  for (size_t i = 0; x && i < x->graph->count; i++)
    if ((void *)x->graph->nodes[i]->original == (void *)node) return x->graph->nodes[i];
  return NULL;
}

static cudaError_t change(cudaError_t made, cudaGraphExec_t exec, cudaGraphNode_t node, ShimWork *work) {
  ShimNode *n = clone_of(exec, node);
  if (!made && (!n || n->work.type != work->type)) made = cudaErrorInvalidValue;
  if (work->type == cudaGraphNodeTypeMemAlloc) shim_free(work->alloc.dptr), made = cudaErrorNotSupported;
  if (made) return shim_drop_work(work), made;
  shim_drop_work(&n->work);
  n->work = *work;
  if (work->type == cudaGraphNodeTypeGraph) work->child->owned = true;
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_kernel_node(params, &w), exec, node, &w));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_copy_node(params, &w), exec, node, &w));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_flat_node(to, from, bytes, kind, &w), exec, node, &w));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void *symbol, const void *from, size_t bytes,
                                                     size_t offset, enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_to_symbol_node(symbol, from, bytes, offset, kind, &w), exec, node, &w));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t bytes, size_t offset,
                                                       enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_from_symbol_node(to, symbol, bytes, offset, kind, &w), exec, node, &w));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_set_node(params, &w), exec, node, &w));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_host_node(params, &w), exec, node, &w));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_child_node(child, &w), exec, node, &w));
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_event_node(cudaGraphNodeTypeEventRecord, event, &w), exec, node, &w));
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_event_node(cudaGraphNodeTypeWaitEvent, event, &w), exec, node, &w));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_any_node(params, &w), exec, node, &w));
}

static cudaError_t enable(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *get, const unsigned *set) {
  ShimNode *n = clone_of(exec, node);
  if (!n || (!get && !set)) return cudaErrorInvalidValue;
  enum cudaGraphNodeType t = n->work.type;
  if (t != cudaGraphNodeTypeKernel && t != cudaGraphNodeTypeMemset && t != cudaGraphNodeTypeMemcpy)
    return cudaErrorInvalidValue;
  if (get) *get = !n->disabled;
  if (set) n->disabled = !*set;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  SHIM_CALL(enable(exec, node, NULL, &enabled));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
  SHIM_CALL(enable(exec, node, enabled, NULL));
}

// Updates an instance from a graph of the same topology: as many nodes, of the same kinds, in the same order,
// with the same dependencies.
static enum cudaGraphExecUpdateResult compare(const ShimGraph *now, const ShimGraph *then, ShimNode **bad) {
  if (now->count != then->count) return cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < now->count; i++) now->nodes[i]->order = then->nodes[i]->order = i;
  for (size_t i = 0; i < now->count; i++) {
    const ShimNode *a = now->nodes[i], *b = *bad = then->nodes[i];
    if (a->work.type != b->work.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (a->needs.count != b->needs.count) return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t k = 0; k < a->needs.count; k++)
      if (a->needs.nodes[k]->order != b->needs.nodes[k]->order)
        return cudaGraphExecUpdateErrorTopologyChanged;
  }
  *bad = NULL;
  return cudaGraphExecUpdateSuccess;
}

static cudaError_t update(cudaGraphExec_t handle, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *out) {
  Exec *x = shim_find(handle, SHIM_EXEC);
  ShimGraph *g = shim_find(graph, SHIM_GRAPH);
  if (!x || !g || !out) return cudaErrorInvalidValue;
  ShimNode *bad = NULL;
  *out = (cudaGraphExecUpdateResultInfo){.result = compare(x->graph, g, &bad)};
  out->errorNode = (cudaGraphNode_t)(void *)bad;
  if (out->result) return cudaErrorGraphExecUpdateFailure;
  ShimGraph *fresh = shim_graph_clone(g);
  if (!fresh) return cudaErrorMemoryAllocation;
  for (size_t i = 0; i < fresh->count; i++) // node handles of the first graph stay those of the instance
    fresh->nodes[i]->original = x->graph->nodes[i]->original;
  fresh->owned = true;
  shim_graph_free(x->graph);
  x->graph = fresh;
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *out) {
  SHIM_CALL(update(exec, graph, out));
}

// ---- user objects ----

typedef struct UserObject {
  void *object;
  cudaHostFn_t destroy;
  unsigned count, in_graphs; // references; those of them that graphs hold
} UserObject;
typedef struct ShimUserRef {
  struct ShimUserRef *next;
  UserObject *object;
  unsigned count;
} ShimUserRef;

// The program's own references, which those that graphs hold are not.
static bool has(const UserObject *o, unsigned count) {
  return o && count && count <= o->count - o->in_graphs;
}

static cudaError_t release(UserObject *o, unsigned count) {
  if (!has(o, count)) return cudaErrorInvalidValue;
  o->count -= count;
  if (o->count) return cudaSuccess;
  shim_remove(o, SHIM_USER_OBJECT);
  shim_call_out(o->destroy, o->object);
  free(o);
  return cudaSuccess;
}

void shim_user_objects_release(ShimGraph *g) {
  while (g->user_objects) {
    ShimUserRef *r = g->user_objects;
    g->user_objects = r->next;
    r->object->in_graphs -= r->count;
    release(r->object, r->count);
    free(r);
  }
}

static cudaError_t create_object(cudaUserObject_t *out, void *object, cudaHostFn_t destructor,
                                 unsigned count) {
  if (!out || !destructor || !count) return cudaErrorInvalidValue;
  UserObject *o = malloc(sizeof *o);
  if (!o || !shim_put(o, SHIM_USER_OBJECT, o)) return free(o), cudaErrorMemoryAllocation;
  *o = (UserObject){object, destructor, count, 0};
  *out = (cudaUserObject_t)(void *)o;
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *object, cudaHostFn_t destructor, unsigned count,
                                 unsigned flags) {
  SHIM_CALL(flags != cudaUserObjectNoDestructorSync ? cudaErrorInvalidValue
                                                    : create_object(out, object, destructor, count));
}

static cudaError_t retain(UserObject *o, unsigned count) {
  if (!o || !count || count > UINT_MAX - o->count) return cudaErrorInvalidValue;
  o->count += count;
  return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  SHIM_CALL(retain(shim_find(object, SHIM_USER_OBJECT), count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  SHIM_CALL(release(shim_find(object, SHIM_USER_OBJECT), count));
}

static cudaError_t graph_retain(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  ShimGraph *g = shim_find(graph, SHIM_GRAPH);
  UserObject *o = shim_find(object, SHIM_USER_OBJECT);
  if (!g || !o || !count || flags & ~(unsigned)cudaGraphUserObjectMove) return cudaErrorInvalidValue;
  if (flags & cudaGraphUserObjectMove ? !has(o, count) : retain(o, count) != cudaSuccess)
    return cudaErrorInvalidValue;
  ShimUserRef *r = malloc(sizeof *r);
  if (!r) return cudaErrorMemoryAllocation;
  *r = (ShimUserRef){g->user_objects, o, count};
  g->user_objects = r;
  o->in_graphs += count;
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  SHIM_CALL(graph_retain(graph, object, count, flags));
}

static cudaError_t graph_release(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  ShimGraph *g = shim_find(graph, SHIM_GRAPH);
  for (ShimUserRef **at = g ? &g->user_objects : NULL; at && *at; at = &(*at)->next) {
    ShimUserRef *r = *at;
    if ((void *)r->object != (void *)object || r->count < count) continue;
    r->count -= count;
    UserObject *o = r->object;
    o->in_graphs -= count;
    if (!r->count) *at = r->next, free(r);
    return release(o, count);
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  SHIM_CALL(graph_release(graph, object, count));
}

// ---- cudaGraphDebugDotPrint ----

static cudaError_t print_dot(cudaGraph_t graph, const char *path) {
  static const char *const names[] = {"kernel", "memcpy", "memset", "host",  "graph", "empty",
                                      "wait",   "record", "signal", "await", "alloc", "free"};
  ShimGraph *g = shim_find(graph, SHIM_GRAPH);
  FILE *file = g && path ? fopen(path, "w") : NULL;
  if (!file) return cudaErrorInvalidValue;
  fprintf(file, "digraph graph_0 {\n");
  for (size_t i = 0; i < g->count; i++) {
    const ShimWork *w = &g->nodes[i]->work;
    g->nodes[i]->order = i;
    const char *label = w->type == cudaGraphNodeTypeKernel   ? w->kernel.kernel->name
                        : (size_t)w->type < SOL_COUNT(names) ? names[w->type]
                                                             : "node";
    fprintf(file, "  node_%zu [label=\"%s\"];\n", i, label);
  }
  for (size_t i = 0; i < g->count; i++)
    for (size_t k = 0; k < g->nodes[i]->needs.count; k++)
      fprintf(file, "  node_%zu -> node_%zu;\n", g->nodes[i]->needs.nodes[k]->order, i);
  fprintf(file, "}\n");
  return fclose(file) ? cudaErrorOperatingSystem : cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  (void)flags;
  SHIM_CALL(print_dot(graph, path));
}
