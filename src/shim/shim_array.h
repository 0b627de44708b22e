// CUDA arrays and mipmapped arrays.
#ifndef SOL_SHIM_ARRAY_H
#define SOL_SHIM_ARRAY_H

#include "base/port.h"
#include "emu/texture.h"

#pragma GCC visibility push(default) // what the toolkit's headers declare is what this library exports
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

typedef struct ShimArray {
  struct cudaChannelFormatDesc format;
  struct cudaExtent extent; // as requested
  unsigned flags;
  uint64_t address, pitch, slice; // dense
  bool level;                     // of a mipmap, which owns it
} ShimArray;
typedef struct ShimMipmap {
  unsigned count;
  ShimArray *levels[SOL_EMU_MOST_LEVELS];
} ShimMipmap;
bool shim_good_format(const struct cudaChannelFormatDesc *format);
size_t shim_texel_bytes(const struct cudaChannelFormatDesc *format); // of a good one
size_t shim_array_rows(const ShimArray *array);
size_t shim_array_slices(const ShimArray *array);

#endif
