// Tensor maps: the 128 bytes that describe a tensor in global memory to tensor copies (cp.async.bulk.tensor). CUDA's
// are opaque; the layout in memory here is our own. A kernel can write any bytes there: whoever takes one from memory
// asks sol_tensor_map_problem before using it.
//
//   SolTensorMap m = {.type = SOL_TENSOR_F16, .rank = 2, .base = address, .dims = {cols, rows}, .strides = {2, pitch},
//                     .box = {64, 128}, .steps = {1, 1}, .swizzle = SOL_TENSOR_SWIZZLE_128B};
//   const char *why = sol_tensor_map_problem(&m);        NULL: it may be used
//   sol_tensor_map_pack(&m, bytes);
#ifndef SOL_EMU_TENSOR_MAP_H
#define SOL_EMU_TENSOR_MAP_H

#include "base/port.h"

enum { SOL_TENSOR_MAP_BYTES = 128, SOL_TENSOR_DIMS = 5, SOL_TENSOR_BOX = 256, SOL_TENSOR_PIXELS = 1024 };

typedef enum SolTensorType { // numbered as CUtensorMapDataType
  SOL_TENSOR_U8,
  SOL_TENSOR_U16,
  SOL_TENSOR_U32,
  SOL_TENSOR_S32,
  SOL_TENSOR_U64,
  SOL_TENSOR_S64,
  SOL_TENSOR_F16,
  SOL_TENSOR_F32,
  SOL_TENSOR_F64,
  SOL_TENSOR_BF16,
  SOL_TENSOR_F32_FTZ,
  SOL_TENSOR_TF32,
  SOL_TENSOR_TF32_FTZ,
  SOL_TENSOR_U4,        // without gaps, on both sides
  SOL_TENSOR_U4_SPREAD, // in shared memory 16 of them at the start of 16 bytes
  SOL_TENSOR_U6_SPREAD, // likewise
  SOL_TENSOR_TYPES
} SolTensorType;

typedef enum SolTensorSwizzle { // as CUtensorMapSwizzle
  SOL_TENSOR_SWIZZLE_NONE,
  SOL_TENSOR_SWIZZLE_32B,
  SOL_TENSOR_SWIZZLE_64B,
  SOL_TENSOR_SWIZZLE_128B,
  SOL_TENSOR_SWIZZLE_128B_ATOM_32B,
  SOL_TENSOR_SWIZZLE_128B_ATOM_32B_FLIP_8B, // not supported
  SOL_TENSOR_SWIZZLE_128B_ATOM_64B,
  SOL_TENSOR_SWIZZLES
} SolTensorSwizzle;

typedef struct SolTensorMap {
  uint64_t base;                     // address in global memory
  uint64_t dims[SOL_TENSOR_DIMS];    // elements, the innermost first
  uint64_t strides[SOL_TENSOR_DIMS]; // bytes from one to the next; the innermost is the element's size
  uint32_t box[SOL_TENSOR_DIMS];     // elements that a copy spans
  uint32_t steps[SOL_TENSOR_DIMS];   // of which every so many is copied; of the innermost dimension all are
  uint32_t rank;
  uint8_t type, swizzle; // SolTensorType, SolTensorSwizzle
  uint8_t interleave;    // as CUtensorMapInterleave; only none, 0, is supported
  bool nan_fill;         // floats outside of the tensor are NaN, not zero
  bool unpromoted;       // cuda: L2 is not to fetch all of the 256 bytes around what is copied; not packed
  // im2col: the dimensions are channels, then one to three of space, then the image. A copy takes box[0] channels of box[1]
  // pixels that follow each other, every steps[k] along dimension k, from lower[k - 1] to before dims[k] + upper[k - 1], then on in
  // the next dimension; a copy's offsets are added to where it then reads. The rest of `box` is 1.
  bool im2col;
  int16_t lower[SOL_TENSOR_DIMS - 2], upper[SOL_TENSOR_DIMS - 2];
} SolTensorMap;

uint32_t sol_tensor_type_bytes(unsigned type); // 0: no such type; 1: less than a byte, too
uint32_t sol_tensor_type_bits(unsigned type);
// Whether 16 elements have 16 bytes in shared memory, whatever they have in the tensor.
bool sol_tensor_is_spread(const SolTensorMap *map);
// Why copies cannot use it; NULL: they can.
const char *sol_tensor_map_problem(const SolTensorMap *map);
void sol_tensor_map_pack(const SolTensorMap *map, uint8_t out[SOL_TENSOR_MAP_BYTES]);
// False: the bytes are not a tensor map. What they say is not checked.
bool sol_tensor_map_unpack(const uint8_t bytes[SOL_TENSOR_MAP_BYTES], SolTensorMap *out);

// Elements along a dimension that a copy moves; bytes of a row of the box in shared memory; bytes of the box that an mbarrier
// counts, which are those without gaps.
uint32_t sol_tensor_count(const SolTensorMap *map, uint32_t dim);
uint32_t sol_tensor_row_bytes(const SolTensorMap *map);
uint64_t sol_tensor_box_bytes(const SolTensorMap *map);
// Where swizzling puts the 16 bytes of this address of shared memory.
uint32_t sol_tensor_swizzled(const SolTensorMap *map, uint32_t address);

#endif
