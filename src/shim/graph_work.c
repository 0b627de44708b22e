// Converts graph nodes from and to the CUDA structures. Each kind has one function that makes the ShimWork, for
// adding a node, changing it and changing it in an executable graph.
#include <stdlib.h>
#include <string.h>

#include "shim/graph_work.h"

cudaError_t shim_kernel_node(const struct cudaKernelNodeParams *p, ShimWork *out) {
  if (!p || (p->kernelParams && p->extra)) return cudaErrorInvalidValue;
  if (p->extra) {
    shim_note("a kernel node with its arguments in one buffer is not in the emulator yet");
    return cudaErrorNotSupported;
  }
  cudaError_t error =
      shim_make_launch(p->func, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, out);
  if (error) return error;
  error = shim_check_launch(&out->kernel);
  if (error) shim_drop_work(out);
  return error;
}

cudaError_t shim_copy_node(const struct cudaMemcpy3DParms *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeMemcpy};
  if (!p) return cudaErrorInvalidValue;
  out->copy = *p;
  return shim_check_copy(p);
}

cudaError_t shim_flat_node(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                           ShimWork *out) {
  struct cudaMemcpy3DParms p = shim_flat_copy(to, from, bytes, kind);
  return shim_copy_node(&p, out);
}

static cudaError_t symbol_place(const void *symbol, size_t bytes, size_t offset, void **out) {
  uint64_t address, size;
  cudaError_t error = shim_symbol(symbol, &address, &size);
  if (error) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *out = shim_pointer(address + offset);
  return cudaSuccess;
}

cudaError_t shim_to_symbol_node(const void *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, ShimWork *out) {
  void *to;
  cudaError_t error = symbol_place(symbol, bytes, offset, &to);
  return error ? error : shim_flat_node(to, from, bytes, kind, out);
}

cudaError_t shim_from_symbol_node(void *to, const void *symbol, size_t bytes, size_t offset,
                                  enum cudaMemcpyKind kind, ShimWork *out) {
  void *from;
  cudaError_t error = symbol_place(symbol, bytes, offset, &from);
  return error ? error : shim_flat_node(to, from, bytes, kind, out);
}

cudaError_t shim_set_node(const struct cudaMemsetParams *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeMemset};
  if (!p || !p->dst) return cudaErrorInvalidValue;
  if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) return cudaErrorInvalidValue;
  out->set = (ShimSet){.to = p->dst, .value = p->value, .element = p->elementSize, .width = p->width};
  out->set.height = p->height;
  out->set.depth = 1;
  out->set.pitch = p->pitch;
  return cudaSuccess;
}

cudaError_t shim_host_node(const struct cudaHostNodeParams *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeHost};
  if (!p || !p->fn) return cudaErrorInvalidValue;
  out->host = *p;
  return cudaSuccess;
}

cudaError_t shim_child_node(cudaGraph_t child, ShimWork *out) {
  ShimGraph *g = shim_find(child, SHIM_GRAPH);
  *out = (ShimWork){.type = cudaGraphNodeTypeGraph};
  if (!g) return cudaErrorInvalidValue;
  out->child = shim_graph_clone(g);
  return out->child ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t shim_event_node(enum cudaGraphNodeType type, cudaEvent_t event, ShimWork *out) {
  *out = (ShimWork){.type = type, .event = shim_find(event, SHIM_EVENT)};
  if (!out->event) return cudaErrorInvalidResourceHandle;
  shim_event_keep(out->event);
  return cudaSuccess;
}

cudaError_t shim_alloc_node(struct cudaMemAllocNodeParams *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeMemAlloc};
  if (!p || !p->bytesize) return cudaErrorInvalidValue;
  p->dptr = NULL;
  cudaError_t error = shim_alloc(p->bytesize, &p->dptr);
  out->alloc = *p;
  return error;
}

cudaError_t shim_free_node(void *memory, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeMemFree, .freed = memory};
  return memory ? cudaSuccess : cudaErrorInvalidValue;
}

// The tagged union of the newer interface.
cudaError_t shim_any_node(struct cudaGraphNodeParams *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeEmpty};
  if (!p) return cudaErrorInvalidValue;
  switch (p->type) {
  case cudaGraphNodeTypeKernel: {
    struct cudaKernelNodeParams k = {p->kernel.func,           p->kernel.gridDim,      p->kernel.blockDim,
                                     p->kernel.sharedMemBytes, p->kernel.kernelParams, p->kernel.extra};
    return shim_kernel_node(&k, out);
  }
  case cudaGraphNodeTypeMemcpy: return shim_copy_node(&p->memcpy.copyParams, out);
  case cudaGraphNodeTypeMemset: {
    struct cudaMemsetParams m = {p->memset.dst,         p->memset.pitch, p->memset.value,
                                 p->memset.elementSize, p->memset.width, p->memset.height};
    return shim_set_node(&m, out);
  }
  case cudaGraphNodeTypeHost: {
    struct cudaHostNodeParams h = {p->host.fn, p->host.userData};
    return shim_host_node(&h, out);
  }
  case cudaGraphNodeTypeGraph: return shim_child_node(p->graph.graph, out);
  case cudaGraphNodeTypeEmpty: return cudaSuccess;
  case cudaGraphNodeTypeWaitEvent: return shim_event_node(p->type, p->eventWait.event, out);
  case cudaGraphNodeTypeEventRecord: return shim_event_node(p->type, p->eventRecord.event, out);
  case cudaGraphNodeTypeMemFree: return shim_free_node(p->free.dptr, out);
  case cudaGraphNodeTypeMemAlloc: {
    struct cudaMemAllocNodeParams a = {.bytesize = p->alloc.bytesize};
    cudaError_t error = shim_alloc_node(&a, out);
    p->alloc.dptr = a.dptr;
    return error;
  }
  case cudaGraphNodeTypeConditional: return shim_conditional_node(&p->conditional, out);
  default:
    shim_note("graph nodes of kind %d are not in the emulator yet", (int)p->type);
    return cudaErrorNotSupported;
  }
}
