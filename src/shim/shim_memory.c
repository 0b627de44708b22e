// Device memory: allocating, freeing and querying it.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"

size_t shim_memory_left(void) {
  size_t all = (size_t)sol_emu_machine(shim.emu)->mem_bytes;
  size_t used = (size_t)sol_emu_bytes_used(shim.emu) + shim.physical_bytes;
  return used < all ? all - used : 0;
}

cudaError_t shim_alloc(size_t bytes, void **out) {
  uint64_t address;
  SolError err = {0};
  if (bytes > shim_memory_left() || !shim_fits_here(bytes)) return cudaErrorMemoryAllocation;
  if (sol_emu_alloc(shim.emu, bytes, NULL, &address, &err)) return cudaErrorMemoryAllocation;
  *out = shim_pointer(address);
  return cudaSuccess;
}

cudaError_t shim_free(void *memory) {
  if (!memory) return cudaSuccess;
  shim_remove(memory, SHIM_OWNED);
  ShimHost *h = shim_find(memory, SHIM_HOST);
  if (h) return h->kind == SHIM_MANAGED ? shim_free_host(memory) : cudaErrorInvalidValue;
  if (shim_find(memory, SHIM_GRAPH_MEMORY)) return cudaSuccess; // the next launch allocates it again, there
  SolEmuRange range;
  if (!sol_emu_range(shim.emu, shim_address(memory), &range) || range.variable) return cudaErrorInvalidValue;
  if (sol_emu_free(shim.emu, shim_address(memory), NULL)) return cudaErrorInvalidValue;
  shim_shared_forget(memory);
  shim_pool_forget(memory, range.bytes);
  shim_observe_memory(true, memory, range.bytes); // the next owner's
  shim_use_l2(SOL_L2_FREES, memory, (size_t)range.bytes);
  return cudaSuccess;
}

static cudaError_t alloc_linear(void **out, size_t bytes) {
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? shim_alloc(bytes, out) : cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
  SHIM_CALL(alloc_linear(out, bytes));
}

static cudaError_t free_linear(void *memory) {
  shim_wait_all(); // giving memory back waits for the device
  return shim_free(memory);
}

cudaError_t cudaFree(void *memory) {
  SHIM_CALL(free_linear(memory));
}

enum { PITCH = 512 };
static cudaError_t alloc_rows(void **out, size_t *pitch, size_t width, size_t rows) {
  if (!out || !pitch) return cudaErrorInvalidValue;
  *out = NULL;
  if (width > SIZE_MAX - PITCH) return cudaErrorMemoryAllocation;
  *pitch = (width + PITCH - 1) / PITCH * PITCH;
  if (!width || !rows) return cudaSuccess;
  return rows > SIZE_MAX / *pitch ? cudaErrorMemoryAllocation : shim_alloc(*pitch * rows, out);
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  SHIM_CALL(alloc_rows(out, pitch, width, height));
}

static cudaError_t alloc_box(struct cudaPitchedPtr *out, struct cudaExtent e) {
  if (!out) return cudaErrorInvalidValue;
  if (e.depth && e.height > SIZE_MAX / e.depth) return cudaErrorMemoryAllocation;
  *out = (struct cudaPitchedPtr){.xsize = e.width, .ysize = e.height};
  return alloc_rows(&out->ptr, &out->pitch, e.width, e.height * e.depth);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent) {
  SHIM_CALL(alloc_box(out, extent));
}

// ---- queries ----

// Free is what both the emulated GPU and this machine have left.
static cudaError_t info(size_t *left, size_t *total) {
  size_t all = (size_t)sol_emu_machine(shim.emu)->mem_bytes, here = shim_host_available();
  size_t rest = shim_memory_left();
  if (left) *left = rest < here ? rest : here;
  if (total) *total = all;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  SHIM_CALL(info(left, total));
}

static cudaError_t attributes(struct cudaPointerAttributes *out, const void *pointer) {
  if (!out) return cudaErrorInvalidValue;
  *out = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = -2};
  SolEmuRange range;
  if (!sol_emu_range(shim.emu, shim_address(pointer), &range)) {
    out->hostPointer = (void *)(uintptr_t)pointer;
    return cudaSuccess;
  }
  ShimHost *h = range.mapped ? shim_find(shim_pointer(range.address), SHIM_HOST) : NULL;
  out->device = 0;
  out->devicePointer = (void *)(uintptr_t)pointer;
  out->type = !h                        ? cudaMemoryTypeDevice
              : h->kind == SHIM_MANAGED ? cudaMemoryTypeManaged
                                        : cudaMemoryTypeHost;
  if (h) out->hostPointer = (void *)(uintptr_t)pointer;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer) {
  SHIM_CALL(attributes(out, pointer));
}

// ---- hints for managed memory: checked; without effect but for where its pages are ----

static cudaError_t check_managed(const void *memory, size_t bytes, int device, bool host) {
  SolEmuRange range;
  if (!bytes || (!host && device != 0)) return bytes ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
  if (!sol_emu_range(shim.emu, shim_address(memory), &range) || !range.mapped) return cudaErrorInvalidValue;
  return bytes <= range.bytes - (shim_address(memory) - range.address) ? cudaSuccess : cudaErrorInvalidValue;
}

static bool is_host(struct cudaMemLocation at) {
  return at.type != cudaMemLocationTypeDevice;
}

static cudaError_t prefetch(const void *memory, size_t bytes, struct cudaMemLocation to,
                            cudaStream_t stream) {
  if (!shim_stream(stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = check_managed(memory, bytes, to.id, is_host(to));
  if (error) return error;
  shim_managed_before();
  shim_managed_move(memory, bytes, !is_host(to));
  shim_managed_after();
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *memory, size_t bytes, struct cudaMemLocation to, unsigned flags,
                                 cudaStream_t stream) {
  SHIM_CALL(flags ? cudaErrorInvalidValue : prefetch(memory, bytes, to, stream));
}
SHIM_ALIAS(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz);

static cudaError_t advise(const void *memory, size_t bytes, int advice, struct cudaMemLocation at) {
  if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
    return cudaErrorInvalidValue;
  bool placed = advice >= cudaMemAdviseSetPreferredLocation;
  return check_managed(memory, bytes, at.id, !placed || is_host(at));
}

cudaError_t cudaMemAdvise(const void *memory, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation at) {
  SHIM_CALL(advise(memory, bytes, (int)advice, at));
}

static cudaError_t range_attribute(void *data, size_t size, enum cudaMemRangeAttribute what,
                                   const void *memory, size_t bytes) {
  cudaError_t error = check_managed(memory, bytes, 0, true);
  if (error) return error;
  if (!data || size < sizeof(int) || size % sizeof(int)) return cudaErrorInvalidValue;
  int value = what == cudaMemRangeAttributeReadMostly ? 0 : cudaInvalidDeviceId;
  if (what == cudaMemRangeAttributePreferredLocationType ||
      what == cudaMemRangeAttributeLastPrefetchLocationType)
    value = cudaMemLocationTypeInvalid;
  for (size_t i = 0; i < size / sizeof value; i++) memcpy((int *)data + i, &value, sizeof value);
  return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute what,
                                     const void *memory, size_t bytes) {
  SHIM_CALL(range_attribute(data, size, what, memory, bytes));
}

static cudaError_t range_attributes(void **data, size_t *sizes, enum cudaMemRangeAttribute *what,
                                    size_t count, const void *memory, size_t bytes) {
  if (!data || !sizes || !what || !count) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count && !error; i++)
    error = range_attribute(data[i], sizes[i], what[i], memory, bytes);
  return error;
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes, enum cudaMemRangeAttribute *what,
                                      size_t count, const void *memory, size_t bytes) {
  SHIM_CALL(range_attributes(data, sizes, what, count, memory, bytes));
}
