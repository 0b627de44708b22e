// CUDA arrays, laid out row by row in the emulator's memory, and their copies.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"
#include "shim/shim_array.h"

bool shim_good_format(const struct cudaChannelFormatDesc *f) {
  if (f->f < cudaChannelFormatKindSigned || f->f > cudaChannelFormatKindFloat) return false;
  if (f->x != 8 && f->x != 16 && f->x != 32) return false;
  int channels = 1 + (f->y != 0) + (f->z != 0) + (f->w != 0);
  if (channels == 3 || (f->y && f->y != f->x) || (f->z && (f->z != f->x || !f->y))) return false;
  return !f->w || (f->w == f->x && f->z);
}

size_t shim_texel_bytes(const struct cudaChannelFormatDesc *f) {
  return (size_t)(f->x + f->y + f->z + f->w) / 8;
}

size_t shim_array_rows(const ShimArray *a) {
  return a->extent.height ? a->extent.height : 1;
}

size_t shim_array_slices(const ShimArray *a) {
  return a->extent.depth ? a->extent.depth : 1;
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
  return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

static cudaError_t make_array(const struct cudaChannelFormatDesc *f, struct cudaExtent e, unsigned flags,
                              ShimArray **out) {
  if (!shim_good_format(f) || !e.width || e.width > 131072 || e.height > 131072 || e.depth > 32768)
    return cudaErrorInvalidValue;
  enum { KNOWN_FLAGS = 0x1ff }; // those of cuda.h
  if (flags & ~(unsigned)KNOWN_FLAGS) return cudaErrorInvalidValue;
  if (flags & (cudaArraySparse | cudaArrayDeferredMapping)) {
    shim_note("sparse arrays are not in the emulator yet");
    return cudaErrorNotSupported;
  }
  bool faces = flags & cudaArrayLayered ? e.depth && e.depth % 6 == 0 : e.depth == 6;
  if (flags & cudaArrayCubemap && (!faces || e.width != e.height)) return cudaErrorInvalidValue;
  ShimArray *a = calloc(1, sizeof *a);
  if (!a || !shim_put(a, SHIM_ARRAY, a)) return free(a), cudaErrorMemoryAllocation;
  *a = (ShimArray){.format = *f, .extent = e, .flags = flags};
  a->pitch = e.width * shim_texel_bytes(f);
  a->slice = a->pitch * shim_array_rows(a);
  void *memory;
  cudaError_t error = shim_alloc((size_t)a->slice * shim_array_slices(a), &memory);
  if (error) {
    shim_remove(a, SHIM_ARRAY);
    free(a);
    return error;
  }
  a->address = shim_address(memory);
  *out = a;
  return cudaSuccess;
}

static cudaError_t alloc_array(cudaArray_t *out, const struct cudaChannelFormatDesc *f, struct cudaExtent e,
                               unsigned flags) {
  if (!out || !f) return cudaErrorInvalidValue;
  ShimArray *a = NULL;
  cudaError_t error = make_array(f, e, flags, &a);
  *out = (cudaArray_t)(void *)a;
  return error;
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format, size_t width,
                            size_t height, unsigned flags) {
  SHIM_CALL(alloc_array(out, format, (struct cudaExtent){width, height, 0}, flags));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format,
                              struct cudaExtent extent, unsigned flags) {
  SHIM_CALL(alloc_array(out, format, extent, flags));
}

static void drop_array(ShimArray *a) {
  shim_free(shim_pointer(a->address));
  shim_remove(a, SHIM_ARRAY);
  free(a);
}

static cudaError_t free_array(cudaArray_t handle) {
  if (!handle) return cudaSuccess;
  ShimArray *a = shim_find(handle, SHIM_ARRAY);
  if (!a || a->level) return cudaErrorContextIsDestroyed;
  drop_array(a);
  return cudaSuccess;
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  SHIM_CALL(free_array(array));
}

static cudaError_t array_info(struct cudaChannelFormatDesc *f, struct cudaExtent *e, unsigned *flags,
                              cudaArray_const_t handle) {
  ShimArray *a = shim_find(handle, SHIM_ARRAY);
  if (!a) return cudaErrorInvalidResourceHandle;
  if (f) *f = a->format;
  if (e) *e = a->extent;
  if (flags) *flags = a->flags;
  return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned *flags,
                             cudaArray_t array) {
  SHIM_CALL(array_info(format, extent, flags, array));
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array) {
  SHIM_CALL(format ? array_info(format, NULL, NULL, array) : cudaErrorInvalidValue);
}

// ---- mipmaps ----

static cudaError_t free_mipmap(cudaMipmappedArray_t handle) {
  if (!handle) return cudaSuccess;
  ShimMipmap *m = shim_find(handle, SHIM_MIPMAP);
  if (!m) return cudaErrorInvalidResourceHandle;
  for (unsigned i = 0; i < m->count; i++) drop_array(m->levels[i]);
  shim_remove(m, SHIM_MIPMAP);
  free(m);
  return cudaSuccess;
}

static cudaError_t alloc_mipmap(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *f,
                                struct cudaExtent e, unsigned levels, unsigned flags) {
  if (!out || !f || !levels) return cudaErrorInvalidValue;
  unsigned most = 1;
  bool layered = flags & (cudaArrayLayered | cudaArrayCubemap);
  while (most < SOL_EMU_MOST_LEVELS && (e.width >> most || e.height >> most || (!layered && e.depth >> most)))
    most++;
  if (levels > most) levels = most;
  ShimMipmap *m = calloc(1, sizeof *m);
  if (!m || !shim_put(m, SHIM_MIPMAP, m)) return free(m), cudaErrorMemoryAllocation;
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; i < levels && !error; i++) {
    struct cudaExtent part = {e.width >> i ? e.width >> i : 1, e.height >> i, e.depth >> i};
    if (e.height && !part.height) part.height = 1;
    if (e.depth && (layered || !part.depth)) part.depth = layered ? e.depth : 1;
    error = make_array(f, part, flags, &m->levels[i]);
    if (!error) m->levels[m->count++]->level = true;
  }
  *out = (cudaMipmappedArray_t)(void *)m;
  if (error) free_mipmap(*out), *out = NULL;
  return error;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *format,
                                     struct cudaExtent extent, unsigned levels, unsigned flags) {
  SHIM_CALL(alloc_mipmap(out, format, extent, levels, flags));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap) {
  SHIM_CALL(free_mipmap(mipmap));
}

static cudaError_t mipmap_level(cudaArray_t *out, cudaMipmappedArray_const_t handle, unsigned level) {
  ShimMipmap *m = shim_find(handle, SHIM_MIPMAP);
  if (!out || !m || level >= m->count) return cudaErrorInvalidValue;
  *out = (cudaArray_t)(void *)m->levels[level];
  return cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t mipmap, unsigned level) {
  SHIM_CALL(mipmap_level(out, mipmap, level));
}
