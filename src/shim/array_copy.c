// Entry points of copies to and from CUDA arrays. Widths and x offsets are in bytes here.
#include "shim/shim.h"
#include "shim/shim_array.h"

typedef struct ArrayCopy {
  cudaArray_t to, from; // NULL: the pointer
  size_t to_x, to_y, from_x, from_y, width, height;
  struct cudaPitchedPtr to_memory, from_memory;
  enum cudaMemcpyKind kind;
} ArrayCopy;

// Bytes to elements of the arrays that take part; they must divide.
static cudaError_t elements(const ArrayCopy *a, struct cudaMemcpy3DParms *c) {
  const ShimArray *from = a->from ? shim_find(a->from, SHIM_ARRAY) : NULL;
  const ShimArray *to = a->to ? shim_find(a->to, SHIM_ARRAY) : NULL;
  if ((a->from && !from) || (a->to && !to) || (!from && !to)) return cudaErrorInvalidResourceHandle;
  size_t texel = shim_texel_bytes(from ? &from->format : &to->format);
  if (from && to && shim_texel_bytes(&to->format) != texel) return cudaErrorInvalidValue;
  if (a->width % texel || a->to_x % texel || a->from_x % texel) return cudaErrorInvalidValue;
  *c = (struct cudaMemcpy3DParms){.srcArray = a->from,
                                  .dstArray = a->to,
                                  .srcPtr = a->from_memory,
                                  .dstPtr = a->to_memory,
                                  .srcPos = {a->from_x / texel, a->from_y, 0},
                                  .dstPos = {a->to_x / texel, a->to_y, 0},
                                  .extent = {a->width / texel, a->height, 1},
                                  .kind = a->kind};
  return cudaSuccess;
}

static cudaError_t copy(const ArrayCopy *a, cudaStream_t stream, bool now) {
  if (!a->width || !a->height) return cudaSuccess;
  if (a->to_memory.ptr && a->to_memory.pitch < a->width) return cudaErrorInvalidPitchValue;
  if (a->from_memory.ptr && a->from_memory.pitch < a->width) return cudaErrorInvalidPitchValue;
  ShimWork work = {.type = cudaGraphNodeTypeMemcpy};
  cudaError_t error = elements(a, &work.copy);
  if (!error) error = shim_check_copy(&work.copy);
  if (!error) error = shim_submit(now ? cudaStreamLegacy : stream, &work);
  if (!error && now) shim_wait_stream(&shim.streams.legacy);
  return error;
}

// The old one-dimensional forms fill rows one after the other.
static cudaError_t copy_run(cudaArray_t array, bool to_array, size_t x, size_t y, void *memory, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream, bool now) {
  const ShimArray *a = shim_find(array, SHIM_ARRAY);
  if (!a) return cudaErrorInvalidResourceHandle;
  size_t row = (size_t)a->pitch;
  cudaError_t error = x < row || !bytes ? cudaSuccess : cudaErrorInvalidValue;
  for (char *at = memory; bytes && !error; y++, x = 0) {
    size_t n = bytes < row - x ? bytes : row - x;
    struct cudaPitchedPtr part = {at, n, n, 1};
    ArrayCopy c = {.width = n, .height = 1, .kind = kind};
    if (to_array)
      c.to = array, c.to_x = x, c.to_y = y, c.from_memory = part;
    else
      c.from = array, c.from_x = x, c.from_y = y, c.to_memory = part;
    error = copy(&c, stream, now);
    at += n;
    bytes -= n;
  }
  return error;
}

static ArrayCopy rows_in(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind) {
  return (ArrayCopy){.to = to,
                     .to_x = x,
                     .to_y = y,
                     .from_memory = {(void *)(uintptr_t)from, pitch, width, height},
                     .width = width,
                     .height = height,
                     .kind = kind};
}

static ArrayCopy rows_out(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                          size_t height, enum cudaMemcpyKind kind) {
  return (ArrayCopy){.from = (cudaArray_t)(uintptr_t)from,
                     .from_x = x,
                     .from_y = y,
                     .to_memory = {to, pitch, width, height},
                     .width = width,
                     .height = height,
                     .kind = kind};
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  ArrayCopy c = rows_in(to, x, y, from, pitch, width, height, kind);
  SHIM_CALL(copy(&c, NULL, true));
}
SHIM_ALIAS(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds);

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                     size_t width, size_t height, enum cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  ArrayCopy c = rows_in(to, x, y, from, pitch, width, height, kind);
  SHIM_CALL(copy(&c, stream, false));
}
SHIM_ALIAS(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz);

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                  size_t width, size_t height, enum cudaMemcpyKind kind) {
  ArrayCopy c = rows_out(to, pitch, from, x, y, width, height, kind);
  SHIM_CALL(copy(&c, NULL, true));
}
SHIM_ALIAS(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds);

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                       size_t width, size_t height, enum cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  ArrayCopy c = rows_out(to, pitch, from, x, y, width, height, kind);
  SHIM_CALL(copy(&c, stream, false));
}
SHIM_ALIAS(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz);

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width, size_t height,
                                     enum cudaMemcpyKind kind) {
  ArrayCopy c = {.to = to, .from = (cudaArray_t)(uintptr_t)from, .to_x = to_x, .to_y = to_y, .kind = kind};
  c.from_x = from_x;
  c.from_y = from_y;
  c.width = width;
  c.height = height;
  SHIM_CALL(copy(&c, NULL, true));
}
SHIM_ALIAS(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds);

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind) {
  SHIM_CALL(copy_run(to, true, x, y, (void *)(uintptr_t)from, bytes, kind, NULL, true));
}
SHIM_ALIAS(cudaMemcpyToArray, cudaMemcpyToArray_ptds);

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
  SHIM_CALL(copy_run(to, true, x, y, (void *)(uintptr_t)from, bytes, kind, stream, false));
}
SHIM_ALIAS(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz);

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                enum cudaMemcpyKind kind) {
  SHIM_CALL(copy_run((cudaArray_t)(uintptr_t)from, false, x, y, to, bytes, kind, NULL, true));
}
SHIM_ALIAS(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds);

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
  SHIM_CALL(copy_run((cudaArray_t)(uintptr_t)from, false, x, y, to, bytes, kind, stream, false));
}
SHIM_ALIAS(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz);
