// Memory: allocating, querying, filling.
#include <string.h>

#include "libcuda/cu.h"

static cudaError_t alloc(CUdeviceptr *out, size_t bytes) {
  void *memory = NULL;
  if (!out || !bytes) return cudaErrorInvalidValue;
  cudaError_t error = cudaMalloc(&memory, bytes);
  if (error) return error;
  *out = shim_address(memory);
  cu_own(memory);
  return cudaSuccess;
}
CU_PASS(cuMemAlloc, (CUdeviceptr * out, size_t bytes), alloc(out, bytes))

static cudaError_t alloc_rows(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                              unsigned element) {
  void *memory = NULL;
  if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
    return cudaErrorInvalidValue;
  cudaError_t error = cudaMallocPitch(&memory, pitch, width, height);
  if (error) return error;
  *out = shim_address(memory);
  cu_own(memory);
  return cudaSuccess;
}
CU_PASS(cuMemAllocPitch, (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
        alloc_rows(out, pitch, width, height, element))

CU_PASS(cuMemFree, (CUdeviceptr address), cudaFree(cu_memory(address)))

static cudaError_t managed(CUdeviceptr *out, size_t bytes, unsigned flags) {
  void *memory = NULL;
  if (!out || !bytes) return cudaErrorInvalidValue;
  cudaError_t error = cudaMallocManaged(&memory, bytes, flags);
  if (error) return error;
  *out = shim_address(memory);
  cu_own(memory);
  return cudaSuccess;
}
CU_PASS(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags), managed(out, bytes, flags))

CU_PASS(cuMemAllocHost, (void **out, size_t bytes), cudaMallocHost(out, bytes))
static cudaError_t host_alloc(void **out, size_t bytes, unsigned flags) {
  if (out) *out = NULL; // also where it fails
  return cudaHostAlloc(out, bytes, flags);
}
CU_PASS(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), host_alloc(out, bytes, flags))
CU_PASS(cuMemFreeHost, (void *memory), cudaFreeHost(memory))
CU_PASS(cuMemHostRegister, (void *memory, size_t bytes, unsigned flags),
        cudaHostRegister(memory, bytes, flags))
CU_PASS(cuMemHostUnregister, (void *memory), cudaHostUnregister(memory))
CU_PASS(cuMemHostGetFlags, (unsigned *out, void *memory), cudaHostGetFlags(out, memory))
CU_PASS(cuMemHostGetDevicePointer, (CUdeviceptr * out, void *memory, unsigned flags),
        cudaHostGetDevicePointer((void **)out, memory, flags))
CU_PASS(cuMemGetInfo, (size_t * left, size_t *total), cudaMemGetInfo(left, total))

// ---- in stream order ----

CU_PASS(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream),
        cudaMallocAsync((void **)out, bytes, stream))
CU_PASS(cuMemAllocFromPoolAsync, (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
        bytes ? cudaMallocFromPoolAsync((void **)out, bytes, pool, stream) : cudaErrorInvalidValue)
CU_PASS(cuMemFreeAsync, (CUdeviceptr memory, CUstream stream), cudaFreeAsync(cu_memory(memory), stream))
CU_PASS(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *properties),
        cudaMemPoolCreate(out, (const struct cudaMemPoolProps *)properties))
CU_PASS(cuMemPoolDestroy, (CUmemoryPool pool), cudaMemPoolDestroy(pool))
CU_PASS(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes), cudaMemPoolTrimTo(pool, bytes))
CU_PASS(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute what, void *value),
        cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)what, value))
CU_PASS(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute what, void *value),
        cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)what, value))

// ---- hints ----

static struct cudaMemLocation place_of(CUmemLocation at) {
  return (struct cudaMemLocation){.type = (enum cudaMemLocationType)at.type, .id = at.id};
}
CU_PASS(cuMemAdvise, (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation place),
        cudaMemAdvise(cu_memory(at), bytes, (enum cudaMemoryAdvise)advice, place_of(place)))
CU_PASS(cuMemPrefetchAsync,
        (CUdeviceptr at, size_t bytes, CUmemLocation place, unsigned flags, CUstream stream),
        cudaMemPrefetchAsync(cu_memory(at), bytes, place_of(place), flags, stream))
CU_PASS(cuMemRangeGetAttribute,
        (void *out, size_t size, CUmem_range_attribute what, CUdeviceptr at, size_t bytes),
        cudaMemRangeGetAttribute(out, size, (enum cudaMemRangeAttribute)what, cu_memory(at), bytes))

// ---- queries ----

static cudaError_t find_range(uint64_t address, SolEmuRange *out) {
  SHIM_CALL(sol_emu_range(shim.emu, address, out) ? cudaSuccess : cudaErrorInvalidValue);
}

static cudaError_t address_range(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  SolEmuRange range = {0};
  cudaError_t error = cu_mapping_at(address, &range) ? cudaSuccess : find_range(address, &range);
  if (error) return error == cudaErrorInvalidValue ? cudaErrorSymbolNotFound : error; // "not found"
  if (base) *base = range.address;
  if (size) *size = (size_t)range.bytes;
  return cudaSuccess;
}
CU_PASS(cuMemGetAddressRange, (CUdeviceptr * base, size_t *size, CUdeviceptr address),
        address_range(base, size, address))

// Writes one attribute of a pointer into *out, of the type that the manual gives it. False: there is no such.
static bool put_attribute(void *out, CUpointer_attribute what, const struct cudaPointerAttributes *a,
                          const SolEmuRange *range) {
  CUmemorytype type = a->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  CUcontext context = cu_current();
  unsigned is_managed = a->type == cudaMemoryTypeManaged, yes = 1;
  size_t bytes = (size_t)range->bytes;
  unsigned long long id = range->address; // no two that live at the same time share it
  switch (what) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: memcpy(out, &context, sizeof context); return true;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: memcpy(out, &type, sizeof type); return true;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: memcpy(out, &a->devicePointer, sizeof(void *)); return true;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER: memcpy(out, &a->hostPointer, sizeof(void *)); return a->hostPointer;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: memcpy(out, &id, sizeof id); return true;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: memcpy(out, &is_managed, 1); return true;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: memcpy(out, &a->device, sizeof(int)); return true;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: memcpy(out, &range->address, sizeof(void *)); return true;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: memcpy(out, &bytes, sizeof bytes); return true;
  case CU_POINTER_ATTRIBUTE_MAPPED: memcpy(out, &yes, 1); return true;
  default: return false;
  }
}

static cudaError_t pointer_attribute(void *out, CUpointer_attribute what, CUdeviceptr address) {
  struct cudaPointerAttributes a;
  SolEmuRange range = {0};
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = find_range(address, &range);
  if (!error) error = cudaPointerGetAttributes(&a, cu_memory(address));
  if (error) return error;
  return put_attribute(out, what, &a, &range) ? cudaSuccess : cudaErrorInvalidValue;
}
CU_PASS(cuPointerGetAttribute, (void *out, CUpointer_attribute what, CUdeviceptr address),
        pointer_attribute(out, what, address))

// Of an address that CUDA does not know every attribute is zero, and that is no error.
static cudaError_t pointer_attributes(unsigned count, CUpointer_attribute *what, void **out,
                                      CUdeviceptr address) {
  if (!count || !what || !out) return cudaErrorInvalidValue;
  for (unsigned i = 0; i < count; i++) {
    bool byte = what[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED || what[i] == CU_POINTER_ATTRIBUTE_MAPPED;
    bool word = what[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || what[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    if (!out[i]) return cudaErrorInvalidValue;
    if (pointer_attribute(out[i], what[i], address))
      memset(out[i], 0, byte ? 1 : word ? sizeof(int) : sizeof(void *));
  }
  return cudaSuccess;
}
CU_PASS(cuPointerGetAttributes, (unsigned count, CUpointer_attribute *what, void **out, CUdeviceptr address),
        pointer_attributes(count, what, out, address))
CU_PASS(cuPointerSetAttribute, (const void *value, CUpointer_attribute what, CUdeviceptr address),
        value &&address &&what == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? cudaSuccess : cudaErrorInvalidValue)

// ---- fills ----

static cudaError_t fill_now(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                            size_t height, CUstream stream) {
  if (!width || !height) return cudaSuccess;
  if (!to || to % element || (height > 1 && pitch % element)) return cudaErrorInvalidValue;
  ShimSet set = {.to = cu_memory(to), .value = value, .element = element, .width = width};
  set.height = height;
  set.depth = 1;
  set.pitch = pitch;
  set.slice = pitch * height;
  ShimWork work = {.type = cudaGraphNodeTypeMemset, .set = set};
  return shim_submit(stream, &work);
}

static cudaError_t fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                        size_t height, CUstream stream) {
  SHIM_CALL(fill_now(to, pitch, value, element, width, height, stream));
}

#define FILLS(bits, type)                                                                                    \
  CU_PASS(cuMemsetD##bits, (CUdeviceptr to, type value, size_t count),                                       \
          fill(to, 0, value, bits / 8, count, 1, CU_STREAM_LEGACY))                                          \
  CU_PASS(cuMemsetD##bits##Async, (CUdeviceptr to, type value, size_t count, CUstream stream),               \
          fill(to, 0, value, bits / 8, count, 1, stream))                                                    \
  CU_PASS(cuMemsetD2D##bits, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),        \
          fill(to, pitch, value, bits / 8, width, height, CU_STREAM_LEGACY))                                 \
  CU_PASS(cuMemsetD2D##bits##Async,                                                                          \
          (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),          \
          fill(to, pitch, value, bits / 8, width, height, stream))
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
