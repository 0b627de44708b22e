// Copies, and arrays.
#include "libcuda/cu.h"

#define FLAT(to, from, bytes, kind, stream)                                                                  \
  cudaMemcpyAsync((void *)(uintptr_t)(to), (const void *)(uintptr_t)(from), bytes, kind, stream)
#define FLAT_NOW(to, from, bytes, kind)                                                                      \
  cudaMemcpy((void *)(uintptr_t)(to), (const void *)(uintptr_t)(from), bytes, kind)

CU_PASS(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
        FLAT_NOW(to, from, bytes, cudaMemcpyDefault))
CU_PASS(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
        FLAT(to, from, bytes, cudaMemcpyDefault, stream))
CU_PASS(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes),
        FLAT_NOW(to, from, bytes, cudaMemcpyHostToDevice))
CU_PASS(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes),
        FLAT_NOW(to, from, bytes, cudaMemcpyDeviceToHost))
CU_PASS(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
        FLAT_NOW(to, from, bytes, cudaMemcpyDeviceToDevice))
CU_PASS(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
        FLAT(to, from, bytes, cudaMemcpyHostToDevice, stream))
CU_PASS(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
        FLAT(to, from, bytes, cudaMemcpyDeviceToHost, stream))
CU_PASS(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
        FLAT(to, from, bytes, cudaMemcpyDeviceToDevice, stream))
CU_PASS(cuMemcpyPeer, (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes),
        there &&here ? FLAT_NOW(to, from, bytes, cudaMemcpyDeviceToDevice) : cudaErrorDeviceUninitialized)
CU_PASS(cuMemcpyPeerAsync,
        (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream stream),
        there &&here ? FLAT(to, from, bytes, cudaMemcpyDeviceToDevice, stream) : cudaErrorDeviceUninitialized)

// ---- arrays ----

typedef struct Format {
  CUarray_format format;
  int bits;
  enum cudaChannelFormatKind kind;
} Format;
static const Format formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
    {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
};

cudaError_t cu_channels(CUarray_format format, unsigned count, struct cudaChannelFormatDesc *out) {
  for (size_t i = 0; i < SOL_COUNT(formats); i++) {
    if (formats[i].format != format || (count != 1 && count != 2 && count != 4)) continue;
    int bits = formats[i].bits;
    *out = (struct cudaChannelFormatDesc){bits, count > 1 ? bits : 0, count > 2 ? bits : 0,
                                          count > 2 ? bits : 0, formats[i].kind};
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

bool cu_format(const struct cudaChannelFormatDesc *c, CUarray_format *format, unsigned *count) {
  *count = c->z ? 4 : c->y ? 2 : 1;
  for (size_t i = 0; i < SOL_COUNT(formats); i++)
    if (formats[i].bits == c->x && formats[i].kind == c->f) return *format = formats[i].format, true;
  return false;
}

static cudaError_t make_array(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d) {
  struct cudaChannelFormatDesc format;
  cudaError_t error = out && d ? cu_channels(d->Format, d->NumChannels, &format) : cudaErrorInvalidValue;
  struct cudaExtent extent = {d ? d->Width : 0, d ? d->Height : 0, d ? d->Depth : 0};
  return error ? error : cudaMalloc3DArray((cudaArray_t *)(void *)out, &format, extent, d->Flags);
}
CU_PASS(cuArray3DCreate, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *d), make_array(out, d))

static cudaError_t make_mipmap(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels) {
  struct cudaChannelFormatDesc format;
  cudaError_t error = out && d ? cu_channels(d->Format, d->NumChannels, &format) : cudaErrorInvalidValue;
  struct cudaExtent extent = {d ? d->Width : 0, d ? d->Height : 0, d ? d->Depth : 0};
  if (error) return error;
  if (!levels) levels = 1;
  return cudaMallocMipmappedArray((cudaMipmappedArray_t *)(void *)out, &format, extent, levels, d->Flags);
}
CU_PASS(cuMipmappedArrayCreate, (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels),
        make_mipmap(out, d, levels))
CU_PASS(cuMipmappedArrayGetLevel, (CUarray * out, CUmipmappedArray mipmap, unsigned level),
        mipmap ? cudaGetMipmappedArrayLevel((cudaArray_t *)(void *)out, (cudaMipmappedArray_t)(void *)mipmap,
                                            level)
               : cudaErrorInvalidResourceHandle)
CU_PASS(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap),
        mipmap ? cudaFreeMipmappedArray((cudaMipmappedArray_t)(void *)mipmap)
               : cudaErrorInvalidResourceHandle)

static cudaError_t make_plane(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d) {
  if (!d) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR whole = {.Width = d->Width, .Height = d->Height, .Format = d->Format};
  whole.NumChannels = d->NumChannels;
  return make_array(out, &whole);
}
CU_PASS(cuArrayCreate, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *d), make_plane(out, d))
CU_PASS(cuArrayDestroy, (CUarray array),
        array ? cudaFreeArray((cudaArray_t)(void *)array) : cudaErrorInvalidResourceHandle)

static cudaError_t describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array) {
  struct cudaChannelFormatDesc c;
  struct cudaExtent e;
  unsigned flags;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = cudaArrayGetInfo(&c, &e, &flags, (cudaArray_t)(void *)array);
  if (error) return error;
  *out = (CUDA_ARRAY3D_DESCRIPTOR){.Width = e.width, .Height = e.height, .Depth = e.depth, .Flags = flags};
  cu_format(&c, &out->Format, &out->NumChannels);
  return cudaSuccess;
}
CU_PASS(cuArray3DGetDescriptor, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray array), describe(out, array))

static cudaError_t describe_plane(CUDA_ARRAY_DESCRIPTOR *out, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR d = {0};
  cudaError_t error = out ? describe(&d, array) : cudaErrorInvalidValue;
  if (!error) *out = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
  return error;
}
CU_PASS(cuArrayGetDescriptor, (CUDA_ARRAY_DESCRIPTOR * out, CUarray array), describe_plane(out, array))

// ---- rows and boxes ----

typedef struct Side { // of a copy
  CUmemorytype type;
  void *at;
  CUarray array;
  size_t x, y, z, pitch, height; // x in bytes
} Side;

static cudaError_t texel_of(CUarray array, size_t *bytes) {
  struct cudaChannelFormatDesc c;
  cudaError_t error = cudaGetChannelDesc(&c, (cudaArray_t)(void *)array);
  if (!error) *bytes = (size_t)(c.x + c.y + c.z + c.w) / 8;
  return error;
}

static cudaError_t put_side(const Side *s, size_t texel, struct cudaPitchedPtr *memory, cudaArray_t *array,
                            struct cudaPos *at) {
  *at = (struct cudaPos){s->x, s->y, s->z};
  if (s->type == CU_MEMORYTYPE_ARRAY) {
    if (!texel || s->x % texel) return cudaErrorInvalidValue;
    *array = (cudaArray_t)(void *)s->array;
    at->x = s->x / texel;
  } else {
    *memory = (struct cudaPitchedPtr){s->at, s->pitch, s->pitch, s->height};
  }
  return s->type >= CU_MEMORYTYPE_HOST && s->type <= CU_MEMORYTYPE_UNIFIED ? cudaSuccess
                                                                           : cudaErrorInvalidValue;
}

static enum cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (from == CU_MEMORYTYPE_HOST)
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

static cudaError_t box_of(const Side *from, const Side *to, struct cudaExtent e,
                          struct cudaMemcpy3DParms *out) {
  struct cudaMemcpy3DParms p = {.extent = e, .kind = kind_of(from->type, to->type)};
  size_t texel = 0;
  cudaError_t error = cudaSuccess;
  if (from->type == CU_MEMORYTYPE_ARRAY) error = texel_of(from->array, &texel);
  if (!error && to->type == CU_MEMORYTYPE_ARRAY) error = texel_of(to->array, &texel);
  if (!error) error = put_side(from, texel, &p.srcPtr, &p.srcArray, &p.srcPos);
  if (!error) error = put_side(to, texel, &p.dstPtr, &p.dstArray, &p.dstPos);
  if (error) return error;
  if (texel && e.width % texel) return cudaErrorInvalidValue;
  if (texel) p.extent.width = e.width / texel; // in elements where an array takes part
  *out = p;
  return cudaSuccess;
}

static cudaError_t copy_box(const Side *from, const Side *to, struct cudaExtent e, bool now,
                            CUstream stream) {
  struct cudaMemcpy3DParms p;
  cudaError_t error = box_of(from, to, e, &p);
  if (error) return error;
  return now ? cudaMemcpy3D(&p) : cudaMemcpy3DAsync(&p, stream);
}

#define SIDE(c, what, z_, height_)                                                                           \
  (Side) {                                                                                                   \
    (c)->what##MemoryType,                                                                                   \
        (c)->what##MemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)(c)->what##Host                     \
                                                    : cu_memory((c)->what##Device),                          \
        (c)->what##Array, (c)->what##XInBytes, (c)->what##Y, z_, (c)->what##Pitch, height_                   \
  }

static cudaError_t copy_rows(const CUDA_MEMCPY2D *c, bool now, CUstream stream) {
  if (!c) return cudaErrorInvalidValue;
  Side from = SIDE(c, src, 0, 0), to = SIDE(c, dst, 0, 0);
  return copy_box(&from, &to, (struct cudaExtent){c->WidthInBytes, c->Height, 1}, now, stream);
}
CU_PASS(cuMemcpy2D, (const CUDA_MEMCPY2D *copy), copy_rows(copy, true, NULL))
CU_PASS(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D *copy), copy_rows(copy, true, NULL))
CU_PASS(cuMemcpy2DAsync, (const CUDA_MEMCPY2D *copy, CUstream stream), copy_rows(copy, false, stream))

cudaError_t cu_box(const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *out) {
  if (!c || c->srcLOD || c->dstLOD) return cudaErrorInvalidValue;
  Side from = SIDE(c, src, c->srcZ, c->srcHeight), to = SIDE(c, dst, c->dstZ, c->dstHeight);
  return box_of(&from, &to, (struct cudaExtent){c->WidthInBytes, c->Height, c->Depth}, out);
}

static cudaError_t copy_boxes(const CUDA_MEMCPY3D *c, bool now, CUstream stream) {
  struct cudaMemcpy3DParms p;
  cudaError_t error = cu_box(c, &p);
  if (error) return error;
  return now ? cudaMemcpy3D(&p) : cudaMemcpy3DAsync(&p, stream);
}
CU_PASS(cuMemcpy3D, (const CUDA_MEMCPY3D *copy), copy_boxes(copy, true, NULL))
CU_PASS(cuMemcpy3DAsync, (const CUDA_MEMCPY3D *copy, CUstream stream), copy_boxes(copy, false, stream))

static Side line(CUmemorytype type, const void *at, CUarray array, size_t offset) {
  return (Side){.type = type, .at = (void *)(uintptr_t)at, .array = array, .x = offset};
}
static cudaError_t copy_line(Side from, Side to, size_t bytes, bool now, CUstream stream) {
  return copy_box(&from, &to, (struct cudaExtent){bytes, 1, 1}, now, stream);
}
#define HOST(at)             line(CU_MEMORYTYPE_HOST, at, NULL, 0)
#define DEVICE(at)           line(CU_MEMORYTYPE_DEVICE, cu_memory(at), NULL, 0)
#define ARRAY(array, offset) line(CU_MEMORYTYPE_ARRAY, NULL, array, offset)
CU_PASS(cuMemcpyHtoA, (CUarray to, size_t offset, const void *from, size_t bytes),
        copy_line(HOST(from), ARRAY(to, offset), bytes, true, NULL))
CU_PASS(cuMemcpyAtoH, (void *to, CUarray from, size_t offset, size_t bytes),
        copy_line(ARRAY(from, offset), HOST(to), bytes, true, NULL))
CU_PASS(cuMemcpyDtoA, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
        copy_line(DEVICE(from), ARRAY(to, offset), bytes, true, NULL))
CU_PASS(cuMemcpyAtoD, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
        copy_line(ARRAY(from, offset), DEVICE(to), bytes, true, NULL))
CU_PASS(cuMemcpyAtoA, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
        copy_line(ARRAY(from, from_offset), ARRAY(to, to_offset), bytes, true, NULL))
CU_PASS(cuMemcpyHtoAAsync, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
        copy_line(HOST(from), ARRAY(to, offset), bytes, false, stream))
CU_PASS(cuMemcpyAtoHAsync, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
        copy_line(ARRAY(from, offset), HOST(to), bytes, false, stream))
