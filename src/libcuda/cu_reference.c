// Texture and surface references: variables of a module (.texref, .surfref) that hold what a kernel reads through them. Each has an
// object behind it, made anew whenever the reference changes, whose handle is written to the variable.
#include <stdlib.h>
#include <string.h>

#include "libcuda/cu.h"

struct CUtexref_st {
  CUdeviceptr variable; // 0: of no module
  CUDA_RESOURCE_DESC resource;
  bool bound;
  CUDA_TEXTURE_DESC sampling;
  CUarray_format format;
  unsigned channels;
  CUtexObject object; // 0: none
};

struct CUsurfref_st {
  CUdeviceptr variable;
  CUarray array;
  CUsurfObject object;
};

static void *find(const void *handle, ShimKind kind) {
  shim_lock();
  void *found = shim_find(handle, kind);
  shim_leave(cudaSuccess);
  return found;
}

static bool put(void *handle, ShimKind kind) {
  shim_lock();
  bool fine = handle && shim_put(handle, kind, handle);
  shim_leave(cudaSuccess);
  return fine;
}

static cudaError_t write_handle(CUdeviceptr variable, unsigned long long handle) {
  return variable ? cudaMemcpy(cu_memory(variable), &handle, sizeof handle, cudaMemcpyHostToDevice)
                  : cudaSuccess;
}

// ---- textures ----

static cudaError_t bind(CUtexref t) {
  if (!t->bound) return cudaSuccess;
  if (t->object) cuTexObjectDestroy(t->object);
  t->object = 0;
  CUresult result = cuTexObjectCreate(&t->object, &t->resource, &t->sampling, NULL);
  return result ? (cudaError_t)result : write_handle(t->variable, t->object);
}

// The reference of this variable, made where there is none.
static cudaError_t texture_of(CUtexref *out, CUdeviceptr variable) {
  size_t at = 0;
  CUtexref t = NULL;
  shim_lock();
  while (variable && (t = shim_next(SHIM_TEXTURE_REFERENCE, &at)))
    if (t->variable == variable) break;
  shim_leave(cudaSuccess);
  if (!t) {
    t = calloc(1, sizeof *t);
    if (!put(t, SHIM_TEXTURE_REFERENCE)) return free(t), cudaErrorMemoryAllocation;
    t->variable = variable;
    t->format = CU_AD_FORMAT_FLOAT;
    t->channels = 1;
  }
  *out = t;
  return cudaSuccess;
}

static cudaError_t module_texture(CUtexref *out, CUmodule module, const char *name) {
  CUdeviceptr variable;
  size_t bytes;
  if (!out) return cudaErrorInvalidValue;
  CUresult result = cuModuleGetGlobal(&variable, &bytes, module, name);
  return result ? (cudaError_t)result : texture_of(out, variable);
}
CU_PASS(cuModuleGetTexRef, (CUtexref * out, CUmodule module, const char *name),
        module_texture(out, module, name))
CU_PASS(cuTexRefCreate, (CUtexref * out), out ? texture_of(out, 0) : cudaErrorInvalidValue)

// Those of modules live as long as their variables do.
static cudaError_t destroy(CUtexref t) {
  if (!find(t, SHIM_TEXTURE_REFERENCE) || t->variable) return cudaErrorInvalidValue;
  if (t->object) cuTexObjectDestroy(t->object);
  shim_lock();
  shim_remove(t, SHIM_TEXTURE_REFERENCE);
  shim_leave(cudaSuccess);
  free(t);
  return cudaSuccess;
}
CU_PASS(cuTexRefDestroy, (CUtexref reference), destroy(reference))

// An entry point that changes the reference t.
#define CHANGE(name, parameters, holds, change)                                                              \
  static cudaError_t do_##name parameters {                                                                  \
    if (!find(t, SHIM_TEXTURE_REFERENCE) || !(holds)) return cudaErrorInvalidValue;                          \
    change;                                                                                                  \
    return bind(t);                                                                                          \
  }
#define READ(name, parameters, holds, read)                                                                  \
  static cudaError_t do_##name parameters {                                                                  \
    if (!find(t, SHIM_TEXTURE_REFERENCE) || !(holds)) return cudaErrorInvalidValue;                          \
    read;                                                                                                    \
    return cudaSuccess;                                                                                      \
  }

CHANGE(array, (CUtexref t, CUarray array, unsigned flags), array &&flags == CU_TRSA_OVERRIDE_FORMAT,
       (t->resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array},
        t->bound = true))
CU_PASS(cuTexRefSetArray, (CUtexref t, CUarray array, unsigned flags), do_array(t, array, flags))

CHANGE(mipmap, (CUtexref t, CUmipmappedArray array, unsigned flags), array &&flags == CU_TRSA_OVERRIDE_FORMAT,
       (t->resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                           .res.mipmap.hMipmappedArray = array},
        t->bound = true))
CU_PASS(cuTexRefSetMipmappedArray, (CUtexref t, CUmipmappedArray array, unsigned flags),
        do_mipmap(t, array, flags))

// Any address is aligned as a texture wants it, or refused: the offset is always 0.
CHANGE(address, (CUtexref t, size_t *offset, CUdeviceptr at, size_t bytes), true,
       (offset ? *offset = 0 : 0,
        t->resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR,
                                           .res.linear = {.devPtr = at,
                                                          .format = t->format,
                                                          .numChannels = t->channels,
                                                          .sizeInBytes = bytes}},
        t->bound = at != 0))
CU_PASS(cuTexRefSetAddress, (size_t * offset, CUtexref t, CUdeviceptr at, size_t bytes),
        do_address(t, offset, at, bytes))

CHANGE(plane, (CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr at, size_t pitch), d,
       (t->resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D,
                                           .res.pitch2D = {.devPtr = at,
                                                           .format = d->Format,
                                                           .numChannels = d->NumChannels,
                                                           .width = d->Width,
                                                           .height = d->Height,
                                                           .pitchInBytes = pitch}},
        t->bound = at != 0))
CU_PASS(cuTexRefSetAddress2D, (CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr at, size_t pitch),
        do_plane(t, d, at, pitch))

// Of linear memory that is bound already as well.
static void set_format(CUtexref t, CUarray_format format, int channels) {
  t->format = format;
  t->channels = (unsigned)channels;
  if (t->resource.resType != CU_RESOURCE_TYPE_LINEAR) return;
  t->resource.res.linear.format = format;
  t->resource.res.linear.numChannels = (unsigned)channels;
}
static bool good_format(CUarray_format format, int channels) {
  struct cudaChannelFormatDesc d;
  return channels > 0 && !cu_channels(format, (unsigned)channels, &d);
}
CHANGE(format, (CUtexref t, CUarray_format format, int channels), good_format(format, channels),
       set_format(t, format, channels))
CU_PASS(cuTexRefSetFormat, (CUtexref t, CUarray_format format, int channels), do_format(t, format, channels))

CHANGE(edge, (CUtexref t, int dim, CUaddress_mode mode),
       dim >= 0 && dim < 3 && mode <= CU_TR_ADDRESS_MODE_BORDER, t->sampling.addressMode[dim] = mode)
CU_PASS(cuTexRefSetAddressMode, (CUtexref t, int dim, CUaddress_mode mode), do_edge(t, dim, mode))
CHANGE(filter, (CUtexref t, CUfilter_mode mode), mode <= CU_TR_FILTER_MODE_LINEAR,
       t->sampling.filterMode = mode)
CU_PASS(cuTexRefSetFilterMode, (CUtexref t, CUfilter_mode mode), do_filter(t, mode))
CHANGE(levels, (CUtexref t, CUfilter_mode mode), mode <= CU_TR_FILTER_MODE_LINEAR,
       t->sampling.mipmapFilterMode = mode)
CU_PASS(cuTexRefSetMipmapFilterMode, (CUtexref t, CUfilter_mode mode), do_levels(t, mode))
CHANGE(bias, (CUtexref t, float bias), true, t->sampling.mipmapLevelBias = bias)
CU_PASS(cuTexRefSetMipmapLevelBias, (CUtexref t, float bias), do_bias(t, bias))
CHANGE(clamp, (CUtexref t, float least, float most), true,
       (t->sampling.minMipmapLevelClamp = least, t->sampling.maxMipmapLevelClamp = most))
CU_PASS(cuTexRefSetMipmapLevelClamp, (CUtexref t, float least, float most), do_clamp(t, least, most))
CHANGE(anisotropy, (CUtexref t, unsigned most), true, t->sampling.maxAnisotropy = most)
CU_PASS(cuTexRefSetMaxAnisotropy, (CUtexref t, unsigned most), do_anisotropy(t, most))
CHANGE(border, (CUtexref t, const float *color), color, memcpy(t->sampling.borderColor, color, 16))
CU_PASS(cuTexRefSetBorderColor, (CUtexref t, float *color), do_border(t, color))
CHANGE(flags, (CUtexref t, unsigned flags),
       !(flags & ~(unsigned)(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                             CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)),
       t->sampling.flags = flags)
CU_PASS(cuTexRefSetFlags, (CUtexref t, unsigned flags), do_flags(t, flags))

static bool is_bound(CUtexref t, CUresourcetype type) {
  return t->bound && t->resource.resType == type;
}
READ(get_address, (CUdeviceptr * out, CUtexref t),
     out && (is_bound(t, CU_RESOURCE_TYPE_LINEAR) || is_bound(t, CU_RESOURCE_TYPE_PITCH2D)),
     *out = is_bound(t, CU_RESOURCE_TYPE_LINEAR) ? t->resource.res.linear.devPtr
                                                 : t->resource.res.pitch2D.devPtr)
CU_PASS(cuTexRefGetAddress, (CUdeviceptr * out, CUtexref t), do_get_address(out, t))
READ(get_array, (CUarray * out, CUtexref t), out &&is_bound(t, CU_RESOURCE_TYPE_ARRAY),
     *out = t->resource.res.array.hArray)
CU_PASS(cuTexRefGetArray, (CUarray * out, CUtexref t), do_get_array(out, t))
READ(get_mipmap, (CUmipmappedArray * out, CUtexref t), out &&is_bound(t, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
     *out = t->resource.res.mipmap.hMipmappedArray)
CU_PASS(cuTexRefGetMipmappedArray, (CUmipmappedArray * out, CUtexref t), do_get_mipmap(out, t))
READ(get_edge, (CUaddress_mode * out, CUtexref t, int dim), out &&dim >= 0 && dim < 3,
     *out = t->sampling.addressMode[dim])
CU_PASS(cuTexRefGetAddressMode, (CUaddress_mode * out, CUtexref t, int dim), do_get_edge(out, t, dim))
READ(get_filter, (CUfilter_mode * out, CUtexref t), out, *out = t->sampling.filterMode)
CU_PASS(cuTexRefGetFilterMode, (CUfilter_mode * out, CUtexref t), do_get_filter(out, t))
READ(get_format, (CUarray_format * format, int *channels, CUtexref t), format &&channels,
     (*format = t->format, *channels = (int)t->channels))
CU_PASS(cuTexRefGetFormat, (CUarray_format * format, int *channels, CUtexref t),
        do_get_format(format, channels, t))
READ(get_levels, (CUfilter_mode * out, CUtexref t), out, *out = t->sampling.mipmapFilterMode)
CU_PASS(cuTexRefGetMipmapFilterMode, (CUfilter_mode * out, CUtexref t), do_get_levels(out, t))
READ(get_bias, (float *out, CUtexref t), out, *out = t->sampling.mipmapLevelBias)
CU_PASS(cuTexRefGetMipmapLevelBias, (float *out, CUtexref t), do_get_bias(out, t))
READ(get_clamp, (float *least, float *most, CUtexref t), least &&most,
     (*least = t->sampling.minMipmapLevelClamp, *most = t->sampling.maxMipmapLevelClamp))
CU_PASS(cuTexRefGetMipmapLevelClamp, (float *least, float *most, CUtexref t), do_get_clamp(least, most, t))
READ(get_anisotropy, (int *out, CUtexref t), out, *out = (int)t->sampling.maxAnisotropy)
CU_PASS(cuTexRefGetMaxAnisotropy, (int *out, CUtexref t), do_get_anisotropy(out, t))
READ(get_border, (float *out, CUtexref t), out, memcpy(out, t->sampling.borderColor, 16))
CU_PASS(cuTexRefGetBorderColor, (float *out, CUtexref t), do_get_border(out, t))
READ(get_flags, (unsigned *out, CUtexref t), out, *out = t->sampling.flags)
CU_PASS(cuTexRefGetFlags, (unsigned *out, CUtexref t), do_get_flags(out, t))

// ---- surfaces ----

static cudaError_t module_surface(CUsurfref *out, CUmodule module, const char *name) {
  CUdeviceptr variable;
  size_t bytes, at = 0;
  if (!out) return cudaErrorInvalidValue;
  CUresult result = cuModuleGetGlobal(&variable, &bytes, module, name);
  if (result) return (cudaError_t)result;
  CUsurfref s;
  shim_lock();
  while ((s = shim_next(SHIM_SURFACE_REFERENCE, &at)))
    if (s->variable == variable) break;
  shim_leave(cudaSuccess);
  if (!s) {
    s = calloc(1, sizeof *s);
    if (!put(s, SHIM_SURFACE_REFERENCE)) return free(s), cudaErrorMemoryAllocation;
    s->variable = variable;
  }
  *out = s;
  return cudaSuccess;
}
CU_PASS(cuModuleGetSurfRef, (CUsurfref * out, CUmodule module, const char *name),
        module_surface(out, module, name))

static cudaError_t set_surface(CUsurfref s, CUarray array, unsigned flags) {
  if (!find(s, SHIM_SURFACE_REFERENCE) || !array || flags) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
  if (s->object) cuSurfObjectDestroy(s->object);
  s->object = 0;
  CUresult result = cuSurfObjectCreate(&s->object, &resource);
  s->array = result ? NULL : array;
  return result ? (cudaError_t)result : write_handle(s->variable, s->object);
}
CU_PASS(cuSurfRefSetArray, (CUsurfref s, CUarray array, unsigned flags), set_surface(s, array, flags))

static cudaError_t get_surface(CUarray *out, CUsurfref s) {
  if (!out || !find(s, SHIM_SURFACE_REFERENCE) || !s->array) return cudaErrorInvalidValue;
  *out = s->array;
  return cudaSuccess;
}
CU_PASS(cuSurfRefGetArray, (CUarray * out, CUsurfref s), get_surface(out, s))
