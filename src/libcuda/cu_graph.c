// Graphs that are built node by node: the runtime's, with the driver's descriptions of kernels and copies. Those of
// fills, host functions and allocations have the same layout in both interfaces.
#include <stdlib.h>

#include "libcuda/cu.h"

_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == sizeof(struct cudaMemsetParams), "");
_Static_assert(sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(struct cudaHostNodeParams), "");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(struct cudaMemAllocNodeParams), "");
_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cudaGraphInstantiateParams), "");
_Static_assert(sizeof(CUgraphExecUpdateResultInfo) == sizeof(cudaGraphExecUpdateResultInfo), "");
_Static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData), "");
#define SAME(type, pointer) ((type *)(uintptr_t)(const void *)(pointer))

#define NEW_NODE CUgraphNode *out, CUgraph graph, const CUgraphNode *needs, size_t count
#define NEW      out, graph, needs, count

// ---- kernels ----

// The caller frees *args, which hold parameters that came in one buffer.
static cudaError_t kernel_in(const CUDA_KERNEL_NODE_PARAMS *p, struct cudaKernelNodeParams *out,
                             void ***args) {
  *args = NULL;
  if (!p) return cudaErrorInvalidValue;
  *out = (struct cudaKernelNodeParams){.func = p->func ? (void *)p->func : (void *)p->kern,
                                       .gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ},
                                       .blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ},
                                       .sharedMemBytes = p->sharedMemBytes,
                                       .kernelParams = p->kernelParams};
  if (!p->extra) return cudaSuccess;
  cudaError_t error = p->kernelParams ? cudaErrorInvalidValue : cu_unpack(out->func, p->extra, args);
  out->kernelParams = *args;
  return error;
}

static cudaError_t add_kernel(NEW_NODE, const CUDA_KERNEL_NODE_PARAMS *p) {
  struct cudaKernelNodeParams k;
  void **args;
  cudaError_t error = kernel_in(p, &k, &args);
  if (!error) error = cudaGraphAddKernelNode(NEW, &k);
  free(args);
  return error;
}
CU_PASS(cuGraphAddKernelNode, (NEW_NODE, const CUDA_KERNEL_NODE_PARAMS *params), add_kernel(NEW, params))

static cudaError_t set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
  struct cudaKernelNodeParams k;
  void **args;
  cudaError_t error = kernel_in(p, &k, &args);
  if (!error)
    error = exec ? cudaGraphExecKernelNodeSetParams(exec, node, &k) : cudaGraphKernelNodeSetParams(node, &k);
  free(args);
  return error;
}
CU_PASS(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
        set_kernel(NULL, node, params))
CU_PASS(cuGraphExecKernelNodeSetParams,
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
        exec ? set_kernel(exec, node, params) : cudaErrorInvalidValue)

static cudaError_t get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
  struct cudaKernelNodeParams k;
  cudaError_t error = out ? cudaGraphKernelNodeGetParams(node, &k) : cudaErrorInvalidValue;
  if (!error)
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)k.func,
                                     .gridDimX = k.gridDim.x,
                                     .gridDimY = k.gridDim.y,
                                     .gridDimZ = k.gridDim.z,
                                     .blockDimX = k.blockDim.x,
                                     .blockDimY = k.blockDim.y,
                                     .blockDimZ = k.blockDim.z,
                                     .sharedMemBytes = k.sharedMemBytes,
                                     .kernelParams = k.kernelParams};
  return error;
}
CU_PASS(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out), get_kernel(node, out))

// ---- copies and fills ----

static cudaError_t add_copy(NEW_NODE, const CUDA_MEMCPY3D *p) {
  struct cudaMemcpy3DParms copy;
  cudaError_t error = cu_box(p, &copy);
  return error ? error : cudaGraphAddMemcpyNode(NEW, &copy);
}
CU_PASS(cuGraphAddMemcpyNode, (NEW_NODE, const CUDA_MEMCPY3D *params, CUcontext context),
        ((void)context, add_copy(NEW, params)))

static cudaError_t set_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p) {
  struct cudaMemcpy3DParms copy;
  cudaError_t error = cu_box(p, &copy);
  if (error) return error;
  return exec ? cudaGraphExecMemcpyNodeSetParams(exec, node, &copy)
              : cudaGraphMemcpyNodeSetParams(node, &copy);
}
CU_PASS(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *params),
        set_copy(NULL, node, params))
CU_PASS(cuGraphExecMemcpyNodeSetParams,
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context),
        ((void)context, exec ? set_copy(exec, node, params) : cudaErrorInvalidValue))

#define MEMSET(p) SAME(struct cudaMemsetParams, p)
CU_PASS(cuGraphAddMemsetNode, (NEW_NODE, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context),
        ((void)context, cudaGraphAddMemsetNode(NEW, MEMSET(params))))
CU_PASS(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out),
        cudaGraphMemsetNodeGetParams(node, MEMSET(out)))
CU_PASS(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params),
        cudaGraphMemsetNodeSetParams(node, MEMSET(params)))
CU_PASS(cuGraphExecMemsetNodeSetParams,
        (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context),
        ((void)context, cudaGraphExecMemsetNodeSetParams(exec, node, MEMSET(params))))

// ---- other nodes ----

#define HOST(p) SAME(struct cudaHostNodeParams, p)
CU_PASS(cuGraphAddHostNode, (NEW_NODE, const CUDA_HOST_NODE_PARAMS *params),
        cudaGraphAddHostNode(NEW, HOST(params)))
CU_PASS(cuGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *out),
        cudaGraphHostNodeGetParams(node, HOST(out)))
CU_PASS(cuGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params),
        cudaGraphHostNodeSetParams(node, HOST(params)))
CU_PASS(cuGraphExecHostNodeSetParams,
        (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params),
        cudaGraphExecHostNodeSetParams(exec, node, HOST(params)))
CU_PASS(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *out),
        cudaGraphChildGraphNodeGetGraph(node, out))
CU_PASS(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
        cudaGraphExecChildGraphNodeSetParams(exec, node, child))
CU_PASS(cuGraphAddEventRecordNode, (NEW_NODE, CUevent event),
        event ? cudaGraphAddEventRecordNode(NEW, event) : cudaErrorInvalidValue)
CU_PASS(cuGraphAddEventWaitNode, (NEW_NODE, CUevent event),
        event ? cudaGraphAddEventWaitNode(NEW, event) : cudaErrorInvalidValue)
CU_PASS(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *out),
        cudaGraphEventRecordNodeGetEvent(node, out))
CU_PASS(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *out),
        cudaGraphEventWaitNodeGetEvent(node, out))
CU_PASS(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event),
        cudaGraphEventRecordNodeSetEvent(node, event))
CU_PASS(cuGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event),
        cudaGraphEventWaitNodeSetEvent(node, event))
CU_PASS(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event),
        cudaGraphExecEventRecordNodeSetEvent(exec, node, event))
CU_PASS(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event),
        cudaGraphExecEventWaitNodeSetEvent(exec, node, event))
CU_PASS(cuGraphAddMemAllocNode, (NEW_NODE, CUDA_MEM_ALLOC_NODE_PARAMS *params),
        cudaGraphAddMemAllocNode(NEW, SAME(struct cudaMemAllocNodeParams, params)))
CU_PASS(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out),
        cudaGraphMemAllocNodeGetParams(node, SAME(struct cudaMemAllocNodeParams, out)))
CU_PASS(cuGraphAddMemFreeNode, (NEW_NODE, CUdeviceptr memory),
        cudaGraphAddMemFreeNode(NEW, cu_memory(memory)))
CU_PASS(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *out),
        cudaGraphMemFreeNodeGetParams(node, out))

// ---- edges ----

CU_PASS(cuGraphGetEdges,
        (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count),
        cudaGraphGetEdges(graph, from, to, SAME(cudaGraphEdgeData, edges), count))
CU_PASS(cuGraphNodeGetDependencies,
        (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *count),
        cudaGraphNodeGetDependencies(node, out, SAME(cudaGraphEdgeData, edges), count))
CU_PASS(cuGraphNodeGetDependentNodes,
        (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *count),
        cudaGraphNodeGetDependentNodes(node, out, SAME(cudaGraphEdgeData, edges), count))
CU_PASS(cuGraphRemoveDependencies,
        (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
         size_t count),
        cudaGraphRemoveDependencies(graph, from, to, SAME(cudaGraphEdgeData, edges), count))
CU_PASS(cuGraphNodeFindInClone, (CUgraphNode * out, CUgraphNode node, CUgraph clone),
        cudaGraphNodeFindInClone(out, node, clone))

// ---- instances ----

CU_PASS(cuGraphInstantiateWithParams,
        (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
        cudaGraphInstantiateWithParams(out, graph, SAME(cudaGraphInstantiateParams, params)))
CU_PASS(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *out),
        cudaGraphExecGetFlags(exec, SAME(unsigned long long, out)))
CU_PASS(cuGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *out),
        cudaGraphExecUpdate(exec, graph, SAME(cudaGraphExecUpdateResultInfo, out)))
CU_PASS(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled),
        cudaGraphNodeSetEnabled(exec, node, enabled))
CU_PASS(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned *out),
        cudaGraphNodeGetEnabled(exec, node, out))
CU_PASS(cuGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned flags),
        cudaGraphDebugDotPrint(graph, path, flags))
CU_PASS(cuUserObjectCreate,
        (CUuserObject * out, void *object, CUhostFn destroy, unsigned count, unsigned flags),
        cudaUserObjectCreate(out, object, destroy, count, flags))
CU_PASS(cuUserObjectRetain, (CUuserObject object, unsigned count), cudaUserObjectRetain(object, count))
CU_PASS(cuUserObjectRelease, (CUuserObject object, unsigned count), cudaUserObjectRelease(object, count))
CU_PASS(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags),
        cudaGraphRetainUserObject(graph, object, count, flags))
CU_PASS(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned count),
        cudaGraphReleaseUserObject(graph, object, count))
