// Texture and surface objects.
#include <stdlib.h>
#include <string.h>

#include "emu/texture.h"
#include "shim/shim.h"
#include "shim/shim_array.h"

typedef struct Object {
  struct cudaResourceDesc resource;
  struct cudaTextureDesc texture;
  struct cudaResourceViewDesc view;
  bool has_view;
} Object;

static bool set_format(const struct cudaChannelFormatDesc *f, SolEmuImage *image) {
  if (!shim_good_format(f)) return false;
  image->bits = (uint8_t)f->x;
  image->channels = (uint8_t)(1 + (f->y != 0) + (f->z != 0) + (f->w != 0));
  image->kind = f->f == cudaChannelFormatKindFloat    ? SOL_EMU_FLOAT
                : f->f == cudaChannelFormatKindSigned ? SOL_EMU_SIGNED
                                                      : SOL_EMU_UNSIGNED;
  return true;
}

static bool array_image(const ShimArray *a, SolEmuImage *image) {
  if (!a) return false;
  *image = (SolEmuImage){.address = a->address, .width = (uint32_t)a->extent.width};
  image->height = (uint32_t)a->extent.height;
  image->pitch = a->pitch;
  image->slice = a->slice;
  if (a->flags & cudaArrayLayered)
    image->layers = (uint32_t)shim_array_slices(a);
  else
    image->depth = (uint32_t)a->extent.depth;
  return set_format(&a->format, image);
}

static cudaError_t image_of(const struct cudaResourceDesc *r, SolEmuImage *image) {
  bool ok = false;
  switch (r->resType) {
  case cudaResourceTypeArray: ok = array_image(shim_find(r->res.array.array, SHIM_ARRAY), image); break;
  case cudaResourceTypeMipmappedArray:
    ok = array_image(shim_only_level(r->res.mipmap.mipmap), image);
    if (!ok)
      return shim_note("textures of several mipmap levels are not in the emulator yet"),
             cudaErrorNotSupported;
    break;
  case cudaResourceTypeLinear: {
    const struct cudaChannelFormatDesc *format = &r->res.linear.desc;
    size_t texel = shim_good_format(format) ? shim_texel_bytes(format) : 0;
    size_t count = texel ? r->res.linear.sizeInBytes / texel : 0;
    *image = (SolEmuImage){.address = shim_address(r->res.linear.devPtr), .width = (uint32_t)count};
    ok = count && count <= UINT32_MAX && set_format(format, image);
    break;
  }
  case cudaResourceTypePitch2D:
    *image = (SolEmuImage){.address = shim_address(r->res.pitch2D.devPtr),
                           .width = (uint32_t)r->res.pitch2D.width,
                           .height = (uint32_t)r->res.pitch2D.height,
                           .pitch = r->res.pitch2D.pitchInBytes};
    ok = set_format(&r->res.pitch2D.desc, image);
    break;
  default: break;
  }
  return ok ? cudaSuccess : cudaErrorInvalidValue;
}

static uint8_t edge_of(enum cudaTextureAddressMode mode) {
  switch (mode) {
  case cudaAddressModeWrap: return SOL_EMU_WRAP;
  case cudaAddressModeMirror: return SOL_EMU_MIRROR;
  case cudaAddressModeBorder: return SOL_EMU_BORDER;
  default: return SOL_EMU_CLAMP;
  }
}

static cudaError_t keep(const void *key, ShimKind kind, const Object *object) {
  Object *o = malloc(sizeof *o);
  if (!o || !shim_put(key, kind, o)) return free(o), cudaErrorMemoryAllocation;
  *o = *object;
  return cudaSuccess;
}

static cudaError_t create_texture(cudaTextureObject_t *out, const struct cudaResourceDesc *r,
                                  const struct cudaTextureDesc *t, const struct cudaResourceViewDesc *view) {
  if (!out || !r || !t) return cudaErrorInvalidValue;
  if (view && view->format != cudaResViewFormatNone) {
    shim_note("a texture whose view changes its format is not in the emulator yet");
    return cudaErrorNotSupported;
  }
  SolEmuTexture texture = {.read_normalized = t->readMode == cudaReadModeNormalizedFloat};
  cudaError_t error = image_of(r, &texture.image);
  if (error) return error;
  texture.buffer = r->resType == cudaResourceTypeLinear;
  if (!texture.buffer) {
    texture.sampler.linear = t->filterMode == cudaFilterModeLinear;
    texture.sampler.normalized = t->normalizedCoords != 0;
  }
  if (texture.image.kind == SOL_EMU_FLOAT || texture.image.bits == 32) texture.read_normalized = false;
  for (int i = 0; i < 3; i++) texture.sampler.edge[i] = edge_of(t->addressMode[i]);
  memcpy(texture.sampler.border, t->borderColor, sizeof texture.sampler.border);
  SolError err = {0};
  uint64_t handle;
  if (sol_emu_texture_create(shim.emu, &texture, &handle, &err))
    return shim_refuse(cudaErrorInvalidValue, "texture", &err);
  Object o = {.resource = *r, .texture = *t, .has_view = view != NULL};
  if (view) o.view = *view;
  *out = handle;
  return keep(shim_pointer(handle), SHIM_TEXTURE, &o);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texture,
                                    const struct cudaResourceViewDesc *view) {
  SHIM_CALL(create_texture(out, resource, texture, view));
}

static cudaError_t destroy(unsigned long long handle, ShimKind kind) {
  if (!handle) return cudaSuccess;
  Object *o = shim_find(shim_pointer(handle), kind);
  if (!o) return cudaSuccess; // as a GPU's driver answers
  sol_emu_object_destroy(shim.emu, handle, NULL);
  shim_remove(shim_pointer(handle), kind);
  free(o);
  return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  SHIM_CALL(destroy(texture, SHIM_TEXTURE));
}

static cudaError_t create_surface(cudaSurfaceObject_t *out, const struct cudaResourceDesc *r) {
  if (!out || !r || r->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
  const ShimArray *a = shim_find(r->res.array.array, SHIM_ARRAY);
  SolEmuImage image;
  if (!a || !(a->flags & cudaArraySurfaceLoadStore)) return cudaErrorInvalidValue;
  cudaError_t error = image_of(r, &image);
  SolError err = {0};
  uint64_t handle = 0;
  if (!error && sol_emu_surface_create(shim.emu, &image, &handle, &err))
    return shim_refuse(cudaErrorInvalidValue, "surface", &err);
  if (error) return error;
  Object o = {.resource = *r};
  *out = handle;
  return keep(shim_pointer(handle), SHIM_SURFACE, &o);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const struct cudaResourceDesc *resource) {
  SHIM_CALL(create_surface(out, resource));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  SHIM_CALL(destroy(surface, SHIM_SURFACE));
}

// ---- descriptors of objects ----

static cudaError_t describe(unsigned long long handle, ShimKind kind, struct cudaResourceDesc *resource,
                            struct cudaTextureDesc *texture, struct cudaResourceViewDesc *view) {
  Object *o = shim_find(shim_pointer(handle), kind);
  if (!o || (!resource && !texture && !view) || (view && !o->has_view)) return cudaErrorInvalidValue;
  if (resource) *resource = o->resource;
  if (texture) *texture = o->texture;
  if (view) *view = o->view;
  return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *out, cudaTextureObject_t texture) {
  SHIM_CALL(describe(texture, SHIM_TEXTURE, out, NULL, NULL));
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *out, cudaTextureObject_t texture) {
  SHIM_CALL(describe(texture, SHIM_TEXTURE, NULL, out, NULL));
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *out,
                                                 cudaTextureObject_t texture) {
  SHIM_CALL(describe(texture, SHIM_TEXTURE, NULL, NULL, out));
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *out, cudaSurfaceObject_t surface) {
  SHIM_CALL(describe(surface, SHIM_SURFACE, out, NULL, NULL));
}
