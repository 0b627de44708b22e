// Nodes of any kind, conditional ones among them, their attributes, and captures into graphs that exist: the runtime's,
// with the driver's descriptions of kernels and copies.
#include <stdlib.h>
#include <string.h>

#include "libcuda/cu.h"

_Static_assert(sizeof(CUgraphNodeParams) == sizeof(struct cudaGraphNodeParams), "");
_Static_assert(sizeof(CUDA_CONDITIONAL_NODE_PARAMS) ==
                   sizeof(struct cudaConditionalNodeParams) + sizeof(CUcontext),
               "");
_Static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaLaunchAttributeValue), "");
_Static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData), "");
_Static_assert(sizeof(CUmemAccessDesc) == sizeof(struct cudaMemAccessDesc), "");
#define SAME(type, pointer) ((type *)(uintptr_t)(const void *)(pointer))

// All kinds but kernels and copies have one layout in both interfaces, but for a context at the end. The caller frees
// *args, which hold parameters that came in one buffer.
static cudaError_t node_in(const CUgraphNodeParams *p, struct cudaGraphNodeParams *out, void ***args) {
  *args = NULL;
  if (!p) return cudaErrorInvalidValue;
  memcpy(out, p, sizeof *out);
  if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY) return cu_box(&p->memcpy.copyParams, &out->memcpy.copyParams);
  if (p->type != CU_GRAPH_NODE_TYPE_KERNEL) return cudaSuccess;
  if (!p->kernel.func) out->kernel.func = (void *)p->kernel.kern;
  if (!p->kernel.extra) return cudaSuccess;
  if (p->kernel.kernelParams) return cudaErrorInvalidValue;
  cudaError_t error = cu_unpack(out->kernel.func, p->kernel.extra, args);
  out->kernel.kernelParams = *args;
  out->kernel.extra = NULL;
  return error;
}

static cudaError_t add(CUgraphNode *out, CUgraph graph, const CUgraphNode *needs, size_t count,
                       CUgraphNodeParams *p) {
  struct cudaGraphNodeParams node;
  void **args;
  cudaError_t error = node_in(p, &node, &args);
  if (!error) error = cudaGraphAddNode(out, graph, needs, NULL, count, &node);
  free(args);
  if (error) return error;
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) p->alloc.dptr = shim_address(node.alloc.dptr);
  if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) p->conditional.phGraph_out = node.conditional.phGraph_out;
  return cudaSuccess;
}
CU_PASS(cuGraphAddNode,
        (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, const CUgraphEdgeData *edges,
         size_t count, CUgraphNodeParams *params),
        ((void)edges, add(out, graph, needs, count, params)))
CU_OLDER(cuGraphAddNode,
         (CUgraphNode * out, CUgraph graph, const CUgraphNode *needs, size_t count,
          CUgraphNodeParams *params),
         add(out, graph, needs, count, params))

static cudaError_t set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *p) {
  struct cudaGraphNodeParams changed;
  void **args;
  cudaError_t error = node_in(p, &changed, &args);
  if (!error)
    error = exec ? cudaGraphExecNodeSetParams(exec, node, &changed) : cudaGraphNodeSetParams(node, &changed);
  free(args);
  return error;
}
CU_PASS(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *params), set(NULL, node, params))
CU_PASS(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params),
        exec ? set(exec, node, params) : cudaErrorInvalidValue)

CU_PASS(cuGraphConditionalHandleCreate,
        (CUgraphConditionalHandle * out, CUgraph graph, CUcontext context, unsigned first, unsigned flags),
        ((void)context,
         cudaGraphConditionalHandleCreate(SAME(cudaGraphConditionalHandle, out), graph, first, flags)))

// ---- attributes ----

#define VALUE(p) SAME(cudaLaunchAttributeValue, p)
CU_PASS(cuGraphKernelNodeGetAttribute,
        (CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *out),
        cudaGraphKernelNodeGetAttribute(node, (cudaLaunchAttributeID)id, VALUE(out)))
CU_PASS(cuGraphKernelNodeSetAttribute,
        (CUgraphNode node, CUlaunchAttributeID id, const CUlaunchAttributeValue *value),
        cudaGraphKernelNodeSetAttribute(node, (cudaLaunchAttributeID)id, VALUE(value)))
CU_PASS(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from),
        cudaGraphKernelNodeCopyAttributes(to, from))
CU_PASS(cuStreamGetAttribute, (CUstream stream, CUlaunchAttributeID id, CUlaunchAttributeValue *out),
        cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)id, VALUE(out)))
CU_PASS(cuStreamSetAttribute, (CUstream stream, CUlaunchAttributeID id, const CUlaunchAttributeValue *value),
        cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)id, VALUE(value)))
CU_PASS(cuStreamCopyAttributes, (CUstream to, CUstream from), cudaStreamCopyAttributes(to, from))
CU_PASS(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute what, void *out),
        cudaDeviceGetGraphMemAttribute(device, (enum cudaGraphMemAttributeType)what, out))
CU_PASS(cuDeviceSetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute what, void *value),
        cudaDeviceSetGraphMemAttribute(device, (enum cudaGraphMemAttributeType)what, value))
CU_PASS(cuDeviceGraphMemTrim, (CUdevice device), cudaDeviceGraphMemTrim(device))
CU_PASS(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *list, size_t count),
        cudaMemPoolSetAccess(pool, SAME(struct cudaMemAccessDesc, list), count))
CU_PASS(cuMemPoolGetAccess, (CUmemAccess_flags * out, CUmemoryPool pool, CUmemLocation *location),
        cudaMemPoolGetAccess(SAME(enum cudaMemAccessFlags, out), pool,
                             SAME(struct cudaMemLocation, location)))

// ---- captures ----

#define EDGES(p) SAME(cudaGraphEdgeData, p)
CU_PASS(cuStreamBeginCaptureToGraph,
        (CUstream stream, CUgraph graph, const CUgraphNode *needs, const CUgraphEdgeData *edges, size_t count,
         CUstreamCaptureMode mode),
        cudaStreamBeginCaptureToGraph(stream, graph, needs, EDGES(edges), count,
                                      (enum cudaStreamCaptureMode)mode))
CU_PASS(cuStreamUpdateCaptureDependencies,
        (CUstream stream, CUgraphNode *needs, const CUgraphEdgeData *edges, size_t count, unsigned flags),
        cudaStreamUpdateCaptureDependencies(stream, needs, EDGES(edges), count, flags))
CU_OLDER(cuStreamUpdateCaptureDependencies,
         (CUstream stream, CUgraphNode *needs, size_t count, unsigned flags),
         cudaStreamUpdateCaptureDependencies(stream, needs, NULL, count, flags))

// ---- edges without data ----

CU_OLDER(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
         cudaGraphGetEdges(graph, from, to, NULL, count))
CU_OLDER(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *out, size_t *count),
         cudaGraphNodeGetDependencies(node, out, NULL, count))
CU_OLDER(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *out, size_t *count),
         cudaGraphNodeGetDependentNodes(node, out, NULL, count))
CU_OLDER(cuGraphRemoveDependencies,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         cudaGraphRemoveDependencies(graph, from, to, NULL, count))
