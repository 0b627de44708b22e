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
  image->cube = a->flags & cudaArrayCubemap;
  if (a->flags & (cudaArrayLayered | cudaArrayCubemap))
    image->layers = (uint32_t)shim_array_slices(a);
  else
    image->depth = (uint32_t)a->extent.depth;
  return set_format(&a->format, image);
}

enum { PITCH_ALIGNMENT = 32 }; // cudaDevAttrTexturePitchAlignment

// Of a mipmap the first level.
static cudaError_t image_of(const struct cudaResourceDesc *r, SolEmuImage *image) {
  bool ok = false;
  switch (r->resType) {
  case cudaResourceTypeArray: ok = array_image(shim_find(r->res.array.array, SHIM_ARRAY), image); break;
  case cudaResourceTypeMipmappedArray: {
    const ShimMipmap *m = shim_find(r->res.mipmap.mipmap, SHIM_MIPMAP);
    ok = m && array_image(m->levels[0], image);
    break;
  }
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
    ok = image->pitch % PITCH_ALIGNMENT == 0 && set_format(&r->res.pitch2D.desc, image);
    break;
  default: break;
  }
  return ok ? cudaSuccess : cudaErrorInvalidValue;
}

static void set_levels(const struct cudaResourceDesc *r, SolEmuTexture *texture) {
  const ShimMipmap *m =
      r->resType == cudaResourceTypeMipmappedArray ? shim_find(r->res.mipmap.mipmap, SHIM_MIPMAP) : NULL;
  texture->levels = m ? m->count : 0;
  for (unsigned i = 1; i < texture->levels; i++) array_image(m->levels[i], &texture->smaller[i - 1]);
}

// ---- views ----

// The channels of a view's format, whose numbers go by kind and then by 1, 2 or 4 channels; false: a compressed one.
static bool view_format(enum cudaResourceViewFormat format, struct cudaChannelFormatDesc *out) {
  static const struct {
    int bits;
    enum cudaChannelFormatKind kind;
  } kinds[] = {{8, cudaChannelFormatKindUnsigned},  {8, cudaChannelFormatKindSigned},
               {16, cudaChannelFormatKindUnsigned}, {16, cudaChannelFormatKindSigned},
               {32, cudaChannelFormatKindUnsigned}, {32, cudaChannelFormatKindSigned},
               {16, cudaChannelFormatKindFloat},    {32, cudaChannelFormatKindFloat}};
  unsigned at = (unsigned)format - cudaResViewFormatUnsignedChar1, bits;
  if (at >= 3 * SOL_COUNT(kinds)) return false;
  bits = (unsigned)kinds[at / 3].bits;
  int channel = (int)bits, second = at % 3 ? channel : 0, rest = at % 3 == 2 ? channel : 0;
  *out = (struct cudaChannelFormatDesc){channel, second, rest, rest, kinds[at / 3].kind};
  return true;
}

// What a view shows of an image: other channels of the same size, some of the layers.
static bool view_image(const struct cudaResourceViewDesc *v, SolEmuImage *image) {
  struct cudaChannelFormatDesc format;
  uint32_t before = image->bits * (uint32_t)image->channels;
  if (v->format != cudaResViewFormatNone && (!view_format(v->format, &format) || !set_format(&format, image)))
    return false;
  if (image->bits * (uint32_t)image->channels != before) return false;
  if (!image->layers || v->lastLayer < v->firstLayer || v->lastLayer >= image->layers) return !v->firstLayer;
  image->address += v->firstLayer * image->slice;
  image->layers = v->lastLayer - v->firstLayer + 1;
  return true;
}

// The levels from first to last become the texture's own.
static bool view_levels(const struct cudaResourceViewDesc *v, SolEmuTexture *t) {
  unsigned first = v->firstMipmapLevel, last = v->lastMipmapLevel;
  if (t->levels < 2 || (!first && !last)) return !first;
  if (first > last || last >= t->levels) return false;
  SolEmuImage all[SOL_EMU_MOST_LEVELS];
  all[0] = t->image;
  memcpy(all + 1, t->smaller, sizeof t->smaller);
  t->image = all[first];
  t->levels = last - first + 1;
  memcpy(t->smaller, all + first + 1, (t->levels - 1) * sizeof *all);
  return true;
}

static bool apply_view(const struct cudaResourceViewDesc *v, SolEmuTexture *t) {
  bool ok = view_levels(v, t) && view_image(v, &t->image);
  for (unsigned i = 1; ok && i < t->levels; i++) ok = view_image(v, &t->smaller[i - 1]);
  return ok;
}

// ---- objects ----

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

// What anisotropic filters read is not modelled: only tex.grad of a mipmap has them.
static void tell_anisotropy(const struct cudaTextureDesc *t, const SolEmuTexture *texture) {
  static char warned;
  if (t->maxAnisotropy > 1 && texture->levels > 1 && texture->sampler.linear && !warned) {
    shim_note(
        "a texture has a maxAnisotropy of %u: what anisotropic filters read is not modelled, tex.grad reads as with 1",
        t->maxAnisotropy);
    shim_observe_missing("anisotropic texture filters");
    warned = 1;
  }
}

static cudaError_t create_texture(cudaTextureObject_t *out, const struct cudaResourceDesc *r,
                                  const struct cudaTextureDesc *t, const struct cudaResourceViewDesc *view) {
  if (!out || !r || !t) return cudaErrorInvalidValue;
  SolEmuTexture texture = {.read_normalized = t->readMode == cudaReadModeNormalizedFloat};
  cudaError_t error = image_of(r, &texture.image);
  if (error) return error;
  set_levels(r, &texture);
  if (view && !apply_view(view, &texture)) return cudaErrorInvalidValue;
  texture.buffer = r->resType == cudaResourceTypeLinear;
  if (!texture.buffer) {
    texture.sampler.linear = t->filterMode == cudaFilterModeLinear;
    texture.sampler.normalized = t->normalizedCoords != 0;
  }
  if (texture.image.kind == SOL_EMU_FLOAT || texture.image.bits == 32) texture.read_normalized = false;
  for (int i = 0; i < 3; i++) texture.sampler.edge[i] = edge_of(t->addressMode[i]);
  memcpy(texture.sampler.border, t->borderColor, sizeof texture.sampler.border);
  texture.sampler.level_linear = t->mipmapFilterMode == cudaFilterModeLinear;
  texture.sampler.level_bias = t->mipmapLevelBias;
  texture.sampler.least_level = t->minMipmapLevelClamp;
  texture.sampler.most_level = t->maxMipmapLevelClamp;
  texture.sampler.seamless = t->seamlessCubemap && texture.image.cube;
  tell_anisotropy(t, &texture);
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
