#ifndef SOL_KERNELS_STENCIL_H
#define SOL_KERNELS_STENCIL_H
#include <stdint.h>

enum {
  STENCIL_THREADS = 256, // eight warps, below each other where there are rows for all of them
  STENCIL_COLUMNS = 4    // of a thread where rows are not whole vectors
};

typedef struct StencilParams {
  void *y;
  const void *x;
  int64_t m, n, y_stride, x_stride; // elements
  uint64_t strips, tiles; // blocks along a row, and in all
  uint32_t warps_down;    // of a block's warps; the others are next to them
  int32_t x_kind, y_kind;
  int32_t head, y_wide; // 1-D: elements of x's first 16 bytes that are not x's; y can be stored as x is read
  int32_t radius;
  uint32_t ahead; // a block prefetches into L2 the part of x of the block that many further on; 0: none
  float centre, side[8];
} StencilParams;

#endif
