#ifndef SOL_KERNELS_STENCIL_H
#define SOL_KERNELS_STENCIL_H
#include <stdint.h>

enum {
  STENCIL_THREADS = 256,
  STENCIL_FLAT = 2048 // columns of a block on a single row
};

typedef struct StencilParams {
  void *y;
  const void *x;
  int64_t m, n, y_stride, x_stride; // elements
  uint64_t tiles_n, tiles;
  int32_t x_kind, y_kind;
  int32_t x_wide, y_wide; // all rows of x start on 16 bytes; four elements of y can be stored at once
  int32_t radius;
  float centre, side[8];
} StencilParams;

#endif
