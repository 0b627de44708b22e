#ifndef SOL_KERNELS_SILU_MUL_H
#define SOL_KERNELS_SILU_MUL_H

#include "../elementwise.h"
#include "../narrow.h"

// Any types, rows and alignment; fp8 with row and block scales, too.
typedef struct SiluParams {
  void *y;
  const void *gate, *up;
  float *scales;
  Spread spread; // block scales: chunks are blocks of 128 columns
  int64_t y_stride, gate_stride, up_stride; // elements
  uint64_t rows;                            // row scales alone
  int32_t x_kind, y_kind, flat;
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
} SiluLean;

#endif
