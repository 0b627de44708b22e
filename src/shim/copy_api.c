// Entry points of copies and fills between pointers and symbols.
#include <string.h>

#include "shim/shim.h"

// A copy that the host waits for: it shows what kernels printed before.
static cudaError_t copy_now(const struct cudaMemcpy3DParms *c) {
  ShimWork work = {.type = cudaGraphNodeTypeMemcpy, .copy = *c};
  cudaError_t error = shim_check_copy(c);
  if (!error) error = shim_submit(cudaStreamLegacy, &work);
  if (!error) shim_wait_stream(&shim.streams.legacy);
  return error;
}

static cudaError_t copy_later(const struct cudaMemcpy3DParms *c, cudaStream_t stream) {
  ShimWork work = {.type = cudaGraphNodeTypeMemcpy, .copy = *c};
  cudaError_t error = shim_check_copy(c);
  return error ? error : shim_submit(stream, &work);
}

static cudaError_t copy_flat(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, bool now,
                             cudaStream_t stream) {
  struct cudaMemcpy3DParms c = shim_flat_copy(to, from, bytes, kind);
  return now ? copy_now(&c) : copy_later(&c, stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  SHIM_CALL(copy_flat(to, from, bytes, kind, true, NULL));
}
SHIM_ALIAS(cudaMemcpy, cudaMemcpy_ptds);

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  SHIM_CALL(copy_flat(to, from, bytes, kind, false, stream));
}
SHIM_ALIAS(cudaMemcpyAsync, cudaMemcpyAsync_ptsz);

static cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t height, enum cudaMemcpyKind kind, bool now, cudaStream_t stream) {
  if (!width || !height) return cudaSuccess;
  if (to_pitch < width || from_pitch < width) return cudaErrorInvalidPitchValue;
  struct cudaMemcpy3DParms c = {.srcPtr = {(void *)(uintptr_t)from, from_pitch, width, height},
                                .dstPtr = {to, to_pitch, width, height},
                                .extent = {width, height, 1},
                                .kind = kind};
  return now ? copy_now(&c) : copy_later(&c, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind) {
  SHIM_CALL(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, true, NULL));
}
SHIM_ALIAS(cudaMemcpy2D, cudaMemcpy2D_ptds);

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  SHIM_CALL(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, false, stream));
}
SHIM_ALIAS(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz);

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *copy) {
  SHIM_CALL(copy ? copy_now(copy) : cudaErrorInvalidValue);
}
SHIM_ALIAS(cudaMemcpy3D, cudaMemcpy3D_ptds);

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream) {
  SHIM_CALL(copy ? copy_later(copy, stream) : cudaErrorInvalidValue);
}
SHIM_ALIAS(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz);

// ---- between devices, of which there is one ----

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  SHIM_CALL(to_device || from_device ? cudaErrorInvalidDevice
                                     : copy_flat(to, from, bytes, cudaMemcpyDefault, true, NULL));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  SHIM_CALL(to_device || from_device ? cudaErrorInvalidDevice
                                     : copy_flat(to, from, bytes, cudaMemcpyDefault, false, stream));
}

static cudaError_t copy_peer(const struct cudaMemcpy3DPeerParms *p, bool now, cudaStream_t stream) {
  if (!p) return cudaErrorInvalidValue;
  if (p->srcDevice || p->dstDevice) return cudaErrorInvalidDevice;
  struct cudaMemcpy3DParms c = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDefault};
  return now ? copy_now(&c) : copy_later(&c, stream);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *copy) {
  SHIM_CALL(copy_peer(copy, true, NULL));
}
SHIM_ALIAS(cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds);

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *copy, cudaStream_t stream) {
  SHIM_CALL(copy_peer(copy, false, stream));
}
SHIM_ALIAS(cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz);

static cudaError_t copy_batch(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                              cudaStream_t stream) {
  if (!to || !from || !sizes || !count || !stream) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count && !error; i++)
    error = copy_flat(to[i], from[i], sizes[i], cudaMemcpyDefault, false, stream);
  return error;
}

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *indices,
                                 size_t attribute_count, cudaStream_t stream) {
  (void)attributes, (void)indices, (void)attribute_count; // when a source may be read
  SHIM_CALL(copy_batch(to, from, sizes, count, stream));
}
SHIM_ALIAS(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz);

// ---- symbols ----

static cudaError_t symbol_part(const void *symbol, size_t bytes, size_t offset, void **out) {
  uint64_t address, size;
  cudaError_t error = shim_symbol(symbol, &address, &size);
  if (error) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *out = shim_pointer(address + offset);
  return cudaSuccess;
}

static cudaError_t to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                             enum cudaMemcpyKind kind, bool now, cudaStream_t stream) {
  void *to;
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = symbol_part(symbol, bytes, offset, &to);
  return error ? error : copy_flat(to, from, bytes, kind, now, stream);
}

static cudaError_t from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind, bool now, cudaStream_t stream) {
  void *from;
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) return cudaErrorInvalidMemcpyDirection;
  cudaError_t error = symbol_part(symbol, bytes, offset, &from);
  return error ? error : copy_flat(to, from, bytes, kind, now, stream);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind) {
  SHIM_CALL(to_symbol(symbol, from, bytes, offset, kind, true, NULL));
}
SHIM_ALIAS(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds);

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  SHIM_CALL(to_symbol(symbol, from, bytes, offset, kind, false, stream));
}
SHIM_ALIAS(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz);

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind) {
  SHIM_CALL(from_symbol(to, symbol, bytes, offset, kind, true, NULL));
}
SHIM_ALIAS(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds);

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  SHIM_CALL(from_symbol(to, symbol, bytes, offset, kind, false, stream));
}
SHIM_ALIAS(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz);

// ---- fills ----

static cudaError_t fill(struct cudaPitchedPtr to, int value, struct cudaExtent e, bool now,
                        cudaStream_t stream) {
  if (!e.width || !e.height || !e.depth) return cudaSuccess;
  if (e.height > 1 && to.pitch < e.width) return cudaErrorInvalidValue;
  ShimSet set = {.to = to.ptr, .value = (uint32_t)value & 255, .element = 1, .width = e.width};
  set.height = e.height;
  set.depth = e.depth;
  set.pitch = to.pitch;
  set.slice = to.pitch * to.ysize;
  ShimWork work = {.type = cudaGraphNodeTypeMemset, .set = set};
  cudaError_t error = to.ptr ? shim_submit(now ? cudaStreamLegacy : stream, &work) : cudaErrorInvalidValue;
  return error;
}

static struct cudaPitchedPtr rows(void *to, size_t pitch, size_t height) {
  return (struct cudaPitchedPtr){to, pitch, pitch, height};
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  SHIM_CALL(fill(rows(to, bytes, 1), value, (struct cudaExtent){bytes, 1, 1}, true, NULL));
}
SHIM_ALIAS(cudaMemset, cudaMemset_ptds);

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  SHIM_CALL(fill(rows(to, bytes, 1), value, (struct cudaExtent){bytes, 1, 1}, false, stream));
}
SHIM_ALIAS(cudaMemsetAsync, cudaMemsetAsync_ptsz);

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  SHIM_CALL(fill(rows(to, pitch, height), value, (struct cudaExtent){width, height, 1}, true, NULL));
}
SHIM_ALIAS(cudaMemset2D, cudaMemset2D_ptds);

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  SHIM_CALL(fill(rows(to, pitch, height), value, (struct cudaExtent){width, height, 1}, false, stream));
}
SHIM_ALIAS(cudaMemset2DAsync, cudaMemset2DAsync_ptsz);

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  SHIM_CALL(fill(to, value, extent, true, NULL));
}
SHIM_ALIAS(cudaMemset3D, cudaMemset3D_ptds);

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  SHIM_CALL(fill(to, value, extent, false, stream));
}
SHIM_ALIAS(cudaMemset3DAsync, cudaMemset3DAsync_ptsz);
