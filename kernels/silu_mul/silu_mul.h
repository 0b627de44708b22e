#ifndef SOL_KERNELS_SILU_MUL_H
#define SOL_KERNELS_SILU_MUL_H

#include "../elementwise.h"
#include "../narrow.h"
#include "../parts.h"

enum { SILU_CHUNKS_THREADS = 512 }; // the most of a row in registers, whatever its alignment

// Any types, rows and alignment; fp8 with row and block scales, too.
typedef struct SiluParams {
  void *y;
  const void *gate, *up;
  float *scales;
  Spread spread; // block scales: chunks are blocks of 128 columns
  int64_t y_stride, gate_stride, up_stride; // elements
  uint64_t rows;                            // row scales alone
  int32_t x_kind, y_kind, flat;
  int32_t lane_bits;  // row scales, chunks: 2^lane_bits lanes share a row; below 0: a block does
  PartShape parts;    // row scales of rows that no registers hold
  NarrowShape narrow; // row scales of rows of a few columns
} SiluParams;

// Rows of whole chunks on 16-byte boundaries.
typedef struct SiluLean {
  void *y;
  const void *gate, *up;
  const float *scales;
  int64_t y_stride, gate_stride, up_stride; // bytes
  uint32_t chunks;
  Divider32 divider; // by the chunks of a row; by 0: dense
  int32_t x_kind, y_kind;
  int32_t ends; // as Spread's
} SiluLean;

#endif
