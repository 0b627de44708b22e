// Entry points that add, query and change graph nodes.
#include <stdlib.h>
#include <string.h>

#include "shim/graph_work.h"

// Adds what was made, if it was; what the work owns is given up either way.
static cudaError_t add(cudaError_t made, cudaGraphNode_t *out, cudaGraph_t graph,
                       const cudaGraphNode_t *needs, size_t count, ShimWork *work) {
  ShimGraph *g = shim_find(graph, SHIM_GRAPH);
  if (!made && (!g || !out || (count && !needs))) made = cudaErrorInvalidValue;
  for (size_t i = 0; i < count && !made; i++) {
    ShimNode *need = shim_find(needs[i], SHIM_NODE);
    if (!need || need->graph != g) made = cudaErrorInvalidValue;
  }
  ShimNode *node = NULL;
  if (!made) made = shim_graph_add(g, (ShimNode *const *)(const void *)needs, count, work, &node);
  if (!made) *out = (cudaGraphNode_t)(void *)node;
  if (made && work->type == cudaGraphNodeTypeMemAlloc) shim_free(work->alloc.dptr);
  shim_drop_work(work);
  return made;
}

static cudaError_t change(cudaError_t made, cudaGraphNode_t handle, ShimWork *work) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  if (!made && (!n || n->work.type != work->type)) made = cudaErrorInvalidValue;
  if (work->type == cudaGraphNodeTypeMemAlloc) shim_free(work->alloc.dptr), made = cudaErrorNotSupported;
  if (made) return shim_drop_work(work), made;
  shim_drop_work(&n->work);
  n->work = *work;
  if (work->type == cudaGraphNodeTypeGraph) work->child->owned = true;
  return cudaSuccess;
}

static ShimNode *node_of(cudaGraphNode_t handle, enum cudaGraphNodeType type) {
  ShimNode *n = shim_find(handle, SHIM_NODE);
  return n && n->work.type == type ? n : NULL;
}

// ---- kernels ----

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                   size_t count, const struct cudaKernelNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_kernel_node(params, &w), out, graph, needs, count, &w));
}

static cudaError_t kernel_params(cudaGraphNode_t node, struct cudaKernelNodeParams *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeKernel);
  if (!n || !out) return cudaErrorInvalidValue;
  const ShimKernelWork *k = &n->work.kernel;
  void *function = k->kernel->stub ? (void *)(uintptr_t)k->kernel->stub : k->kernel;
  *out = (struct cudaKernelNodeParams){function, k->grid, k->block, (unsigned)k->shared, k->args, NULL};
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *out) {
  SHIM_CALL(kernel_params(node, out));
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_kernel_node(params, &w), node, &w));
}

static cudaError_t kernel_attribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                    cudaLaunchAttributeValue *get, const cudaLaunchAttributeValue *set) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeKernel);
  if (!n || (!get && !set)) return cudaErrorInvalidValue;
  ShimKernelWork k = n->work.kernel;
  if (get) memset(get, 0, sizeof *get);
  if (get && id == cudaLaunchAttributeCooperative) get->cooperative = k.cooperative;
  if (set && id == cudaLaunchAttributeCooperative) k.cooperative = set->cooperative != 0;
  if (get && id == cudaLaunchAttributeClusterDimension)
    get->clusterDim.x = k.cluster.x, get->clusterDim.y = k.cluster.y, get->clusterDim.z = k.cluster.z;
  if (set && id == cudaLaunchAttributeClusterDimension)
    k.cluster = (dim3){set->clusterDim.x, set->clusterDim.y, set->clusterDim.z};
  cudaError_t error = set ? shim_check_launch(&k) : cudaSuccess;
  if (!error) n->work.kernel = k;
  return error;
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            cudaLaunchAttributeValue *out) {
  SHIM_CALL(kernel_attribute(node, id, out, NULL));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue *value) {
  SHIM_CALL(kernel_attribute(node, id, NULL, value));
}

static cudaError_t copy_attributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  ShimNode *t = node_of(to, cudaGraphNodeTypeKernel), *f = node_of(from, cudaGraphNodeTypeKernel);
  if (!t || !f) return cudaErrorInvalidValue;
  ShimKernelWork k = t->work.kernel;
  k.cooperative = f->work.kernel.cooperative;
  k.cluster = f->work.kernel.cluster;
  cudaError_t error = shim_check_launch(&k);
  if (!error) t->work.kernel = k;
  return error;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  SHIM_CALL(copy_attributes(to, from));
}

// ---- copies ----

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                   size_t count, const struct cudaMemcpy3DParms *params) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_copy_node(params, &w), out, graph, needs, count, &w));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                     size_t count, void *to, const void *from, size_t bytes,
                                     enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_flat_node(to, from, bytes, kind, &w), out, graph, needs, count, &w));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *out, cudaGraph_t graph,
                                           const cudaGraphNode_t *needs, size_t count, const void *symbol,
                                           const void *from, size_t bytes, size_t offset,
                                           enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_to_symbol_node(symbol, from, bytes, offset, kind, &w), out, graph, needs, count, &w));
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *out, cudaGraph_t graph,
                                             const cudaGraphNode_t *needs, size_t count, void *to,
                                             const void *symbol, size_t bytes, size_t offset,
                                             enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_from_symbol_node(to, symbol, bytes, offset, kind, &w), out, graph, needs, count, &w));
}

static cudaError_t copy_params(cudaGraphNode_t node, struct cudaMemcpy3DParms *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeMemcpy);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = n->work.copy;
  return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *out) {
  SHIM_CALL(copy_params(node, out));
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_copy_node(params, &w), node, &w));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_flat_node(to, from, bytes, kind, &w), node, &w));
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_to_symbol_node(symbol, from, bytes, offset, kind, &w), node, &w));
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol,
                                                   size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_from_symbol_node(to, symbol, bytes, offset, kind, &w), node, &w));
}

// ---- fills, host functions ----

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                   size_t count, const struct cudaMemsetParams *params) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_set_node(params, &w), out, graph, needs, count, &w));
}

static cudaError_t set_params(cudaGraphNode_t node, struct cudaMemsetParams *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeMemset);
  if (!n || !out) return cudaErrorInvalidValue;
  const ShimSet *s = &n->work.set;
  *out = (struct cudaMemsetParams){s->to, s->pitch, s->value, s->element, s->width, s->height};
  return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *out) {
  SHIM_CALL(set_params(node, out));
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_set_node(params, &w), node, &w));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                 size_t count, const struct cudaHostNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_host_node(params, &w), out, graph, needs, count, &w));
}

static cudaError_t host_params(cudaGraphNode_t node, struct cudaHostNodeParams *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeHost);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = n->work.host;
  return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *out) {
  SHIM_CALL(host_params(node, out));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_host_node(params, &w), node, &w));
}

// ---- the rest ----

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                       size_t count, cudaGraph_t child) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_child_node(child, &w), out, graph, needs, count, &w));
}

static cudaError_t child_of(cudaGraphNode_t node, cudaGraph_t *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeGraph);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = (cudaGraph_t)(void *)n->work.child;
  return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *out) {
  SHIM_CALL(child_of(node, out));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                  size_t count) {
  ShimWork w = {.type = cudaGraphNodeTypeEmpty};
  SHIM_CALL(add(cudaSuccess, out, graph, needs, count, &w));
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                        size_t count, cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_event_node(cudaGraphNodeTypeEventRecord, event, &w), out, graph, needs, count, &w));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                      size_t count, cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_event_node(cudaGraphNodeTypeWaitEvent, event, &w), out, graph, needs, count, &w));
}

static cudaError_t event_of(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *out) {
  ShimNode *n = node_of(node, type);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = (cudaEvent_t)(void *)n->work.event;
  return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *out) {
  SHIM_CALL(event_of(node, cudaGraphNodeTypeEventRecord, out));
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *out) {
  SHIM_CALL(event_of(node, cudaGraphNodeTypeWaitEvent, out));
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_event_node(cudaGraphNodeTypeEventRecord, event, &w), node, &w));
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_event_node(cudaGraphNodeTypeWaitEvent, event, &w), node, &w));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                     size_t count, struct cudaMemAllocNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_alloc_node(params, &w), out, graph, needs, count, &w));
}

static cudaError_t alloc_params(cudaGraphNode_t node, struct cudaMemAllocNodeParams *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeMemAlloc);
  if (!n || !out) return cudaErrorInvalidValue;
  *out = n->work.alloc;
  return cudaSuccess;
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *out) {
  SHIM_CALL(alloc_params(node, out));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                    size_t count, void *memory) {
  ShimWork w = {0};
  SHIM_CALL(add(shim_free_node(memory, &w), out, graph, needs, count, &w));
}

static cudaError_t free_params(cudaGraphNode_t node, void *out) {
  ShimNode *n = node_of(node, cudaGraphNodeTypeMemFree);
  if (!n || !out) return cudaErrorInvalidValue;
  memcpy(out, &n->work.freed, sizeof n->work.freed);
  return cudaSuccess;
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out) {
  SHIM_CALL(free_params(node, out));
}

// The bodies of a conditional node are the node's, for the program to fill.
static cudaError_t add_any(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                           size_t count, struct cudaGraphNodeParams *params) {
  ShimWork w = {0};
  cudaError_t error = add(shim_any_node(params, &w), out, graph, needs, count, &w);
  if (!error && params->type == cudaGraphNodeTypeConditional)
    params->conditional.phGraph_out =
        (cudaGraph_t *)(void *)((ShimNode *)(void *)*out)->work.branches->bodies;
  return error;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
                             const cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *params) {
  (void)edges;
  SHIM_CALL(add_any(out, graph, needs, count, params));
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params) {
  ShimWork w = {0};
  SHIM_CALL(change(shim_any_node(params, &w), node, &w));
}
