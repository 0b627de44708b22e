// Textures, samplers and surfaces over the emulator's memory.
//
//   SolEmuTexture t = {.image = {.address = a, .width = 64, .height = 32, .kind = SOL_EMU_FLOAT,
//                                .bits = 32, .channels = 1},
//                      .sampler = {.linear = true, .normalized = true}};
//   sol_emu_texture_create(emu, &t, &handle, &err);     handle: the kernel's cudaTextureObject_t
//   sol_emu_object_destroy(emu, handle);
//
// An image is stored row by row in device memory, and so is a CUDA array, whose layout on a GPU is not
// documented. To bind an image to a `.global .texref` (.surfref, .samplerref) variable, write the handle to it
// with sol_emu_write.
//
// Filtering follows the formulas of the CUDA programming guide: the two nearest texel centres of each
// dimension, with weights of 8 fractional bits. See ops_texture.c for what is exact.
#ifndef SOL_EMU_TEXTURE_H
#define SOL_EMU_TEXTURE_H

#include "emu/emu.h"

typedef enum SolEmuChannelKind { SOL_EMU_UNSIGNED, SOL_EMU_SIGNED, SOL_EMU_FLOAT } SolEmuChannelKind;

typedef struct SolEmuImage {
  uint64_t address;              // of the first texel; a multiple of a texel's bytes
  uint32_t width, height, depth; // in texels; height 0: one-dimensional, depth 0: two-dimensional
  uint32_t layers;               // 0: no array
  bool cube;        // each six layers are the faces of a cube, in the order +x, -x, +y, -y, +z, -z
  uint64_t pitch;   // bytes from row to row; 0: dense
  uint64_t slice;   // bytes from slice to slice, and layer to layer; 0: dense
  uint8_t kind;     // SolEmuChannelKind
  uint8_t bits;     // of a channel: 8, 16, 32; floats 16, 32
  uint8_t channels; // 1, 2, 4
} SolEmuImage;

// Address modes for coordinates out of range. Wrap and mirror need normalised coordinates; without, coordinates
// are clamped.
typedef enum SolEmuEdge { SOL_EMU_CLAMP, SOL_EMU_WRAP, SOL_EMU_MIRROR, SOL_EMU_BORDER } SolEmuEdge;

typedef struct SolEmuSampler {
  bool linear;     // else the nearest texel
  bool normalized; // coordinates from 0 to 1
  uint8_t edge[3]; // SolEmuEdge, by dimension
  float border[4];
  bool seamless;     // a linear filter takes texels of the next face of a cube; else it stays on one
  bool level_linear; // between levels of a mipmap; else the nearest
  float level_bias, least_level, most_level;
} SolEmuSampler;

enum { SOL_EMU_MOST_LEVELS = 18 };

typedef struct SolEmuTexture {
  SolEmuImage image;
  SolEmuImage smaller[SOL_EMU_MOST_LEVELS - 1]; // levels of a mipmap after the first, which is `image`
  uint32_t levels;                              // of a mipmap; 0: it is none
  SolEmuSampler sampler;
  bool read_normalized; // 8- and 16-bit integers are read as fractions of their range
  bool buffer;          // linear memory, read by index (tex1Dfetch): out of range it reads 0
} SolEmuTexture;

SolStatus sol_emu_texture_create(SolEmu *emu, const SolEmuTexture *texture, uint64_t *handle, SolError *err);
SolStatus sol_emu_surface_create(SolEmu *emu, const SolEmuImage *image, uint64_t *handle, SolError *err);
// For PTX instructions that take a sampler and a texture.
SolStatus sol_emu_sampler_create(SolEmu *emu, const SolEmuSampler *sampler, uint64_t *handle, SolError *err);
SolStatus sol_emu_object_destroy(SolEmu *emu, uint64_t handle, SolError *err);

// Internal, for sol_emu_destroy.
struct EmuTextures;
void emu_textures_free(struct EmuTextures *textures); // NULL is allowed

#endif
