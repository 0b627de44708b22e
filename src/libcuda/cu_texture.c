// Textures and surfaces: the runtime's, described in the driver's words.
#include <string.h>

#include "libcuda/cu.h"

static cudaError_t resource_in(const CUDA_RESOURCE_DESC *r, struct cudaResourceDesc *out) {
  *out = (struct cudaResourceDesc){.resType = (enum cudaResourceType)r->resType};
  if (r->flags) return cudaErrorInvalidValue;
  switch (r->resType) {
  case CU_RESOURCE_TYPE_ARRAY: out->res.array.array = (cudaArray_t)(void *)r->res.array.hArray; break;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    out->res.mipmap.mipmap = (cudaMipmappedArray_t)(void *)r->res.mipmap.hMipmappedArray;
    break;
  case CU_RESOURCE_TYPE_LINEAR:
    out->res.linear.devPtr = cu_memory(r->res.linear.devPtr);
    out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
    return cu_channels(r->res.linear.format, r->res.linear.numChannels, &out->res.linear.desc);
  case CU_RESOURCE_TYPE_PITCH2D:
    out->res.pitch2D.devPtr = cu_memory(r->res.pitch2D.devPtr);
    out->res.pitch2D.width = r->res.pitch2D.width;
    out->res.pitch2D.height = r->res.pitch2D.height;
    out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
    return cu_channels(r->res.pitch2D.format, r->res.pitch2D.numChannels, &out->res.pitch2D.desc);
  default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

static void resource_out(const struct cudaResourceDesc *r, CUDA_RESOURCE_DESC *out) {
  memset(out, 0, sizeof *out);
  out->resType = (CUresourcetype)r->resType;
  switch (r->resType) {
  case cudaResourceTypeArray: out->res.array.hArray = (CUarray)(void *)r->res.array.array; break;
  case cudaResourceTypeMipmappedArray:
    out->res.mipmap.hMipmappedArray = (CUmipmappedArray)(void *)r->res.mipmap.mipmap;
    break;
  case cudaResourceTypeLinear:
    out->res.linear.devPtr = shim_address(r->res.linear.devPtr);
    out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
    cu_format(&r->res.linear.desc, &out->res.linear.format, &out->res.linear.numChannels);
    break;
  default:
    out->res.pitch2D.devPtr = shim_address(r->res.pitch2D.devPtr);
    out->res.pitch2D.width = r->res.pitch2D.width;
    out->res.pitch2D.height = r->res.pitch2D.height;
    out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
    cu_format(&r->res.pitch2D.desc, &out->res.pitch2D.format, &out->res.pitch2D.numChannels);
  }
}

// The modes of addresses and filters have the same numbers in both interfaces.
static cudaError_t sampling_in(const CUDA_TEXTURE_DESC *t, struct cudaTextureDesc *out) {
  enum {
    KNOWN = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
            CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP
  };
  if (t->flags & ~(unsigned)KNOWN || t->filterMode > CU_TR_FILTER_MODE_LINEAR) return cudaErrorInvalidValue;
  *out = (struct cudaTextureDesc){
      .filterMode = (enum cudaTextureFilterMode)t->filterMode,
      .readMode = t->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat,
      .sRGB = (t->flags & CU_TRSF_SRGB) != 0,
      .normalizedCoords = (t->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
      .maxAnisotropy = t->maxAnisotropy,
      .mipmapFilterMode = (enum cudaTextureFilterMode)t->mipmapFilterMode,
      .mipmapLevelBias = t->mipmapLevelBias,
      .minMipmapLevelClamp = t->minMipmapLevelClamp,
      .maxMipmapLevelClamp = t->maxMipmapLevelClamp,
      .disableTrilinearOptimization = (t->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
      .seamlessCubemap = (t->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0};
  for (int i = 0; i < 3; i++) {
    if (t->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER) return cudaErrorInvalidValue;
    out->addressMode[i] = (enum cudaTextureAddressMode)t->addressMode[i];
  }
  memcpy(out->borderColor, t->borderColor, sizeof out->borderColor);
  return cudaSuccess;
}

static void sampling_out(const struct cudaTextureDesc *t, CUDA_TEXTURE_DESC *out) {
  *out = (CUDA_TEXTURE_DESC){.filterMode = (CUfilter_mode)t->filterMode,
                             .maxAnisotropy = t->maxAnisotropy,
                             .mipmapFilterMode = (CUfilter_mode)t->mipmapFilterMode,
                             .mipmapLevelBias = t->mipmapLevelBias,
                             .minMipmapLevelClamp = t->minMipmapLevelClamp,
                             .maxMipmapLevelClamp = t->maxMipmapLevelClamp};
  if (t->readMode == cudaReadModeElementType) out->flags |= CU_TRSF_READ_AS_INTEGER;
  if (t->normalizedCoords) out->flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (t->sRGB) out->flags |= CU_TRSF_SRGB;
  if (t->disableTrilinearOptimization) out->flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (t->seamlessCubemap) out->flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  for (int i = 0; i < 3; i++) out->addressMode[i] = (CUaddress_mode)t->addressMode[i];
  memcpy(out->borderColor, t->borderColor, sizeof out->borderColor);
}

static struct cudaResourceViewDesc view_in(const CUDA_RESOURCE_VIEW_DESC *v) {
  return (struct cudaResourceViewDesc){.format = (enum cudaResourceViewFormat)v->format,
                                       .width = v->width,
                                       .height = v->height,
                                       .depth = v->depth,
                                       .firstMipmapLevel = v->firstMipmapLevel,
                                       .lastMipmapLevel = v->lastMipmapLevel,
                                       .firstLayer = v->firstLayer,
                                       .lastLayer = v->lastLayer};
}

// ---- objects ----

static cudaError_t create_texture(CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
                                  const CUDA_RESOURCE_VIEW_DESC *v) {
  struct cudaResourceDesc resource;
  struct cudaTextureDesc sampling;
  struct cudaResourceViewDesc view;
  if (!out || !r || !t || (v && v->format == CU_RES_VIEW_FORMAT_NONE)) return cudaErrorInvalidValue;
  cudaError_t error = resource_in(r, &resource);
  if (!error) error = sampling_in(t, &sampling);
  if (error) return error;
  if (v) view = view_in(v);
  return cudaCreateTextureObject((cudaTextureObject_t *)out, &resource, &sampling, v ? &view : NULL);
}
CU_PASS(cuTexObjectCreate,
        (CUtexObject * out, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampling,
         const CUDA_RESOURCE_VIEW_DESC *view),
        create_texture(out, resource, sampling, view))
CU_PASS(cuTexObjectDestroy, (CUtexObject texture), cudaDestroyTextureObject(texture))

static cudaError_t texture_resource(CUDA_RESOURCE_DESC *out, CUtexObject texture) {
  struct cudaResourceDesc r;
  cudaError_t error = out ? cudaGetTextureObjectResourceDesc(&r, texture) : cudaErrorInvalidValue;
  if (!error) resource_out(&r, out);
  return error;
}
CU_PASS(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUtexObject texture),
        texture_resource(out, texture))

static cudaError_t texture_sampling(CUDA_TEXTURE_DESC *out, CUtexObject texture) {
  struct cudaTextureDesc t;
  cudaError_t error = out ? cudaGetTextureObjectTextureDesc(&t, texture) : cudaErrorInvalidValue;
  if (!error) sampling_out(&t, out);
  return error;
}
CU_PASS(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC * out, CUtexObject texture),
        texture_sampling(out, texture))

static cudaError_t texture_view(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject texture) {
  struct cudaResourceViewDesc v = {0};
  struct cudaResourceDesc resource;
  cudaError_t error = out ? cudaGetTextureObjectResourceDesc(&resource, texture) : cudaErrorInvalidValue;
  if (!error) (void)cudaGetTextureObjectResourceViewDesc(&v, texture); // zero where it has none
  if (!error)
    *out = (CUDA_RESOURCE_VIEW_DESC){.format = (CUresourceViewFormat)v.format,
                                     .width = v.width,
                                     .height = v.height,
                                     .depth = v.depth,
                                     .firstMipmapLevel = v.firstMipmapLevel,
                                     .lastMipmapLevel = v.lastMipmapLevel,
                                     .firstLayer = v.firstLayer,
                                     .lastLayer = v.lastLayer};
  return error;
}
CU_PASS(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject texture),
        texture_view(out, texture))

static cudaError_t create_surface(CUsurfObject *out, const CUDA_RESOURCE_DESC *r) {
  struct cudaResourceDesc resource;
  cudaError_t error = out && r ? resource_in(r, &resource) : cudaErrorInvalidValue;
  return error ? error : cudaCreateSurfaceObject((cudaSurfaceObject_t *)out, &resource);
}
CU_PASS(cuSurfObjectCreate, (CUsurfObject * out, const CUDA_RESOURCE_DESC *resource),
        create_surface(out, resource))
CU_PASS(cuSurfObjectDestroy, (CUsurfObject surface), cudaDestroySurfaceObject(surface))

static cudaError_t surface_resource(CUDA_RESOURCE_DESC *out, CUsurfObject surface) {
  struct cudaResourceDesc r;
  cudaError_t error = out ? cudaGetSurfaceObjectResourceDesc(&r, surface) : cudaErrorInvalidValue;
  if (!error) resource_out(&r, out);
  return error;
}
CU_PASS(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUsurfObject surface),
        surface_resource(out, surface))
