// Shared by the files of the texture and surface families.
#ifndef SOL_EMU_IMAGE_H
#define SOL_EMU_IMAGE_H

#include "emu/core/exec.h"
#include "emu/texture.h"

typedef enum EmuObjectKind { EMU_NO_OBJECT, EMU_TEXTURE, EMU_SAMPLER, EMU_SURFACE } EmuObjectKind;
typedef struct EmuObject {
  EmuObjectKind kind;
  SolEmuTexture texture; // of a sampler: texture.sampler; of a surface: texture.image
} EmuObject;

// The object of a handle, or of the address of a variable that holds a handle; NULL: none.
const EmuObject *emu_object(SolEmu *emu, uint64_t value);
// The same for a handle used in an instruction; reports a finding and returns NULL where it is not of that kind.
const EmuObject *emu_named_object(EmuCtx *x, const EmuInst *i, uint32_t lanes, uint64_t value,
                                  EmuObjectKind kind);
// The attribute as txq and suq return it; fn: PTX_FN_WIDTH ...
uint32_t emu_image_attribute(const EmuObject *object, uint8_t fn);
// txq, suq
bool lower_image_query(Lower *l, const PtxInst *in, EmuInst *out, EmuObjectKind kind);

static inline uint32_t emu_texel_bytes(const SolEmuImage *image) {
  return image->bits / 8u * image->channels;
}
static inline bool emu_geom_layered(uint8_t geom) {
  return geom == PTX_GEOM_A1D || geom == PTX_GEOM_A2D || geom == PTX_GEOM_ACUBE;
}
static inline bool emu_geom_cube(uint8_t geom) {
  return geom == PTX_GEOM_CUBE || geom == PTX_GEOM_ACUBE;
}
static inline uint8_t emu_geom_dims(uint8_t geom) { // that a filter runs over
  bool two = geom == PTX_GEOM_2D || geom == PTX_GEOM_A2D || emu_geom_cube(geom);
  return geom == PTX_GEOM_3D ? 3 : two ? 2 : 1;
}

#endif
