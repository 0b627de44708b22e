// The table of textures, samplers and surfaces.
#include "base/error.h"
#include "base/heap.h"
#include "emu/core/state.h"
#include "emu/core/texture_table.h"

// A handle: a tag no address has, then the place in the table, counted from 1. Places are not used again, so
// that a handle of something destroyed is known as such.
#define HANDLE_TAG UINT64_C(0x5e70000000000000)

struct EmuTextures {
  EmuObject **objects;
  uint32_t count, cap;
};

static SolStatus add_object(SolEmu *emu, const EmuObject *object, uint64_t *handle, SolError *err) {
  struct EmuTextures *t = emu->textures;
  if (!t) {
    t = emu->textures = (struct EmuTextures *)sol_heap_alloc(sizeof *t);
    if (!t) return sol_fail(err, SOL_ERR_NO_SPACE, "no memory for a texture");
    *t = (struct EmuTextures){0};
  }
  if (t->count == t->cap) {
    uint32_t cap = t->cap ? t->cap * 2 : 16;
    EmuObject **grown = (EmuObject **)sol_heap_realloc(t->objects, sizeof(EmuObject *) * cap);
    if (!grown) return sol_fail(err, SOL_ERR_NO_SPACE, "no memory for a texture");
    t->objects = grown;
    t->cap = cap;
  }
  EmuObject *copy = (EmuObject *)sol_heap_alloc(sizeof *copy);
  if (!copy) return sol_fail(err, SOL_ERR_NO_SPACE, "no memory for a texture");
  *copy = *object;
  t->objects[t->count++] = copy;
  *handle = HANDLE_TAG | t->count;
  return SOL_OK;
}

static EmuObject **slot_of(SolEmu *emu, uint64_t handle) {
  struct EmuTextures *t = emu->textures;
  uint64_t at = handle - HANDLE_TAG;
  return t && handle > HANDLE_TAG && at <= t->count ? &t->objects[at - 1] : NULL;
}

const EmuObject *emu_object(SolEmu *emu, uint64_t value) {
  // Else the address of a variable that holds a handle.
  if ((value & HANDLE_TAG) != HANDLE_TAG && sol_emu_read(emu, &value, value, sizeof value, NULL)) return NULL;
  EmuObject **slot = slot_of(emu, value);
  return slot ? *slot : NULL;
}

void emu_textures_free(struct EmuTextures *t) {
  if (!t) return;
  for (uint32_t i = 0; i < t->count; i++) sol_heap_free(t->objects[i]);
  sol_heap_free(t->objects);
  sol_heap_free(t);
}

static SolStatus check_image(SolEmu *emu, SolEmuImage *m, SolError *err) {
  bool bits = m->bits == 32 || m->bits == 16 || (m->bits == 8 && m->kind != SOL_EMU_FLOAT);
  if (m->kind > SOL_EMU_FLOAT || !bits)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no channel has %d bits of this kind", m->bits);
  if (m->channels != 1 && m->channels != 2 && m->channels != 4)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a texel has 1, 2 or 4 channels, not %d", m->channels);
  if (!m->width) return sol_fail(err, SOL_ERR_ARGUMENT, "an image without width");
  if (m->depth && m->layers) return sol_fail(err, SOL_ERR_ARGUMENT, "an array of three-dimensional images");
  if (m->cube && (m->width != m->height || !m->layers || m->layers % 6))
    return sol_fail(err, SOL_ERR_ARGUMENT, "a cube has six faces, as wide as they are high");
  if (m->depth && !m->height) return sol_fail(err, SOL_ERR_ARGUMENT, "an image with depth and no height");
  uint64_t texel = emu_texel_bytes(m), row = texel * m->width, rows = m->height ? m->height : 1;
  uint64_t slices = m->depth ? m->depth : m->layers ? m->layers : 1;
  if (!m->pitch) m->pitch = row;
  if (slices > 1u << 15 || m->pitch > (UINT64_C(1) << 62) / rows / slices || m->slice > UINT64_C(1) << 47)
    return sol_fail(err, SOL_ERR_ARGUMENT, "an image too large for any allocation");
  if (!m->slice) m->slice = m->pitch * rows;
  if (m->pitch < row || m->pitch % texel || m->slice < m->pitch * rows || m->slice % texel ||
      m->address % texel)
    return sol_fail(err, SOL_ERR_ARGUMENT, "rows of %llu bytes, %llu apart: texels of %llu bytes do not fit",
                    (unsigned long long)row, (unsigned long long)m->pitch, (unsigned long long)texel);
  uint64_t bytes = m->slice * (slices - 1) + m->pitch * (rows - 1) + row;
  if (!sol_emu_host(emu, m->address, bytes))
    return sol_fail(err, SOL_ERR_ARGUMENT, "the image's %llu bytes at 0x%llx are not all in one allocation",
                    (unsigned long long)bytes, (unsigned long long)m->address);
  return SOL_OK;
}

static SolStatus check_levels(SolEmu *emu, SolEmuTexture *t, SolError *err) {
  if (t->levels > SOL_EMU_MOST_LEVELS)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a mipmap of %u levels", t->levels);
  for (uint32_t i = 1; i < t->levels; i++) {
    SolStatus status = check_image(emu, &t->smaller[i - 1], err);
    if (status) return status;
  }
  return SOL_OK;
}

static SolStatus check_sampler(const SolEmuSampler *s, SolError *err) {
  for (int i = 0; i < 3; i++)
    if (s->edge[i] > SOL_EMU_BORDER)
      return sol_fail(err, SOL_ERR_ARGUMENT, "no such edge mode: %d", s->edge[i]);
  return SOL_OK;
}

SolStatus sol_emu_texture_create(SolEmu *emu, const SolEmuTexture *texture, uint64_t *handle, SolError *err) {
  EmuObject o = {EMU_TEXTURE, *texture};
  SolStatus status = check_image(emu, &o.texture.image, err);
  if (!status) status = check_levels(emu, &o.texture, err);
  if (!status) status = check_sampler(&o.texture.sampler, err);
  if (status) return status;
  const SolEmuImage *m = &o.texture.image;
  bool fractions = m->kind != SOL_EMU_FLOAT && texture->read_normalized;
  if (fractions && m->bits == 32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "32-bit integers are not read as fractions");
  bool blends = texture->sampler.linear || (texture->levels > 1 && texture->sampler.level_linear);
  if (blends && m->kind != SOL_EMU_FLOAT && !fractions)
    return sol_fail(err, SOL_ERR_ARGUMENT, "only what is read as a float can be filtered");
  if (texture->buffer && (m->height || m->layers || texture->sampler.linear || texture->sampler.normalized))
    return sol_fail(err, SOL_ERR_ARGUMENT, "plain memory has one dimension and is read by index");
  return add_object(emu, &o, handle, err);
}

SolStatus sol_emu_surface_create(SolEmu *emu, const SolEmuImage *image, uint64_t *handle, SolError *err) {
  EmuObject o = {EMU_SURFACE, {.image = *image}};
  SolStatus status = check_image(emu, &o.texture.image, err);
  return status ? status : add_object(emu, &o, handle, err);
}

SolStatus sol_emu_sampler_create(SolEmu *emu, const SolEmuSampler *sampler, uint64_t *handle, SolError *err) {
  EmuObject o = {EMU_SAMPLER, {.sampler = *sampler}};
  SolStatus status = check_sampler(sampler, err);
  return status ? status : add_object(emu, &o, handle, err);
}

SolStatus sol_emu_object_destroy(SolEmu *emu, uint64_t handle, SolError *err) {
  EmuObject **slot = slot_of(emu, handle);
  if (!slot || !*slot)
    return sol_fail(err, SOL_ERR_NOT_FOUND, "0x%llx is no texture, sampler or surface",
                    (unsigned long long)handle);
  sol_heap_free(*slot);
  *slot = NULL;
  return SOL_OK;
}

// ---- attributes ----

// The numbers of OpenCL, which the PTX manual refers to.
static uint32_t channel_type(const SolEmuTexture *t) {
  const SolEmuImage *m = &t->image;
  uint32_t step = m->bits == 8 ? 0 : m->bits == 16 ? 1 : 2;
  if (m->kind == SOL_EMU_FLOAT) return m->bits == 16 ? 0x10dd : 0x10de;
  if (t->read_normalized) return (m->kind == SOL_EMU_SIGNED ? 0x10d0 : 0x10d2) + step;
  return (m->kind == SOL_EMU_SIGNED ? 0x10d7 : 0x10da) + step;
}

static uint32_t edge_mode(uint8_t edge) { // wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border
  switch (edge) {
  case SOL_EMU_WRAP: return 0;
  case SOL_EMU_MIRROR: return 1;
  case SOL_EMU_BORDER: return 4;
  default: return 3;
  }
}

uint32_t emu_image_attribute(const EmuObject *object, uint8_t fn) {
  const SolEmuTexture *t = &object->texture;
  switch (fn) {
  case PTX_FN_WIDTH: return t->image.width;
  case PTX_FN_HEIGHT: return t->image.height;
  case PTX_FN_DEPTH: return t->image.depth;
  case PTX_FN_ARRAY_SIZE: return t->image.cube ? t->image.layers / 6 : t->image.layers;
  case PTX_FN_CHANNEL_DATA_TYPE: return channel_type(t);
  case PTX_FN_CHANNEL_ORDER:
    return t->image.channels == 1 ? 0x10b0 : t->image.channels == 2 ? 0x10b2 : 0x10b5;
  case PTX_FN_NORMALIZED_COORDS: return t->sampler.normalized;
  case PTX_FN_NUM_MIPMAP_LEVELS: return t->levels ? t->levels : 1;
  case PTX_FN_NUM_SAMPLES: return 1;
  case PTX_FN_FILTER_MODE: return t->sampler.linear;
  case PTX_FN_ADDR_MODE_0: return edge_mode(t->sampler.edge[0]);
  case PTX_FN_ADDR_MODE_1: return edge_mode(t->sampler.edge[1]);
  case PTX_FN_ADDR_MODE_2: return edge_mode(t->sampler.edge[2]);
  default: return 0;
  }
}
