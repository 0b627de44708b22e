// Converts the CUDA parameters of graph nodes to ShimWork. Each function fills *out, which owns its contents;
// release it with shim_drop_work, also after an error.
#ifndef SOL_SHIM_GRAPH_WORK_H
#define SOL_SHIM_GRAPH_WORK_H

#include "shim/shim.h"
#include "shim/shim_graph.h"

cudaError_t shim_kernel_node(const struct cudaKernelNodeParams *params, ShimWork *out);
cudaError_t shim_copy_node(const struct cudaMemcpy3DParms *params, ShimWork *out);
cudaError_t shim_flat_node(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, ShimWork *out);
cudaError_t shim_to_symbol_node(const void *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, ShimWork *out);
cudaError_t shim_from_symbol_node(void *to, const void *symbol, size_t bytes, size_t offset,
                                  enum cudaMemcpyKind kind, ShimWork *out);
cudaError_t shim_set_node(const struct cudaMemsetParams *params, ShimWork *out);
cudaError_t shim_host_node(const struct cudaHostNodeParams *params, ShimWork *out);
cudaError_t shim_child_node(cudaGraph_t child, ShimWork *out);
cudaError_t shim_event_node(enum cudaGraphNodeType type, cudaEvent_t event, ShimWork *out);
cudaError_t shim_alloc_node(struct cudaMemAllocNodeParams *params, ShimWork *out);
cudaError_t shim_free_node(void *memory, ShimWork *out);
cudaError_t shim_conditional_node(const struct cudaConditionalNodeParams *params, ShimWork *out);
cudaError_t shim_any_node(struct cudaGraphNodeParams *params, ShimWork *out);

#endif
