// A matrix in shared memory as a 64-bit descriptor of wgmma says: core matrices of eight rows of 16 bytes.
//
//   bits 0-13 start address, 16-29 leading byte offset, 32-45 stride byte offset (each divided by 16),
//   49-51 base offset, 62-63 swizzle: 0 none, 1 of 128, 2 of 64, 3 of 32 bytes
//
// K-major: row r is at (r % 8) * width + (r / 8) * stride, `width` being 16 bytes without and the swizzle's with
// swizzling; each further 16 bytes along k follow after the leading offset, or with swizzling at once, as far as the width
// goes, and then after the leading offset.
// MN-major (transposed, 16-bit elements): 16 bytes hold eight rows at one k, which is at (k % 8) * width. Further
// rows follow within the width, then after the leading offset (without swizzling: the stride offset); the next
// eight k after the stride offset (without swizzling: the leading offset).
// Swizzling exchanges the 16-byte pieces of each 128 bytes: bits 4-6 of the address (4-5, 4) are xored with bits
// 7-9 (7-8, 7), less the base offset.
#ifndef SOL_EMU_SMEM_MATRIX_H
#define SOL_EMU_SMEM_MATRIX_H

#include "base/port.h"

typedef struct SmemMatrix {
  uint32_t start, leading, stride, width; // bytes
  uint32_t base;                          // offset
  uint32_t block;                         // added to addresses: 0, or another block's shared memory
  uint32_t pattern;                       // of the address bits that swizzling xors: 0, 1, 3 or 7
  bool mn_major;
} SmemMatrix;

static inline SmemMatrix smem_matrix(uint64_t descriptor, bool mn_major) {
  static const uint8_t patterns[] = {0, 7, 3, 1};
  uint32_t pattern = patterns[descriptor >> 62];
  return (SmemMatrix){.start = (uint32_t)(descriptor & 0x3fff) * 16,
                      .leading = (uint32_t)(descriptor >> 16 & 0x3fff) * 16,
                      .stride = (uint32_t)(descriptor >> 32 & 0x3fff) * 16,
                      .width = (pattern + 1) * 16,
                      .base = (uint32_t)(descriptor >> 49 & 7),
                      .pattern = pattern,
                      .mn_major = mn_major};
}

static inline uint32_t smem_swizzled(uint32_t address, uint32_t base, uint32_t pattern) {
  return address ^ (((address >> 7) - base) & pattern) << 4;
}

// The address of the 16 bytes at piece `along` of eight rows from row (a multiple of 8) on: K-major of row
// row + along % 8, along / 8 * 16 bytes along k; MN-major of all eight rows at k = along.
static inline uint32_t smem_piece(const SmemMatrix *m, uint32_t row, uint32_t along) {
  uint32_t in_core = along % 8 * m->width, second = along / 8, at;
  if (!m->mn_major) {
    uint32_t pieces = m->width / 16;
    at = in_core + row / 8 * m->stride + second % pieces * 16 + second / pieces * m->leading;
  } else if (!m->pattern) {
    at = in_core + row / 8 * m->stride + second * m->leading;
  } else {
    uint32_t pieces = m->width / 16;
    at = in_core + row / 8 % pieces * 16 + row / 8 / pieces * m->leading + second * m->stride;
  }
  return smem_swizzled(m->start + at, m->base, m->pattern);
}

#endif
