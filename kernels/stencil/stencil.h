#ifndef SOL_KERNELS_STENCIL_H
#define SOL_KERNELS_STENCIL_H
#include <stdint.h>

enum {
  STENCIL_THREADS = 256, // eight warps, below each other where there are rows for all of them
  STENCIL_COLUMNS = 4,   // of a thread where rows are not whole vectors
  STENCIL_SHORT = 64     // the longest row that STENCIL_NARROW takes
};

typedef enum StencilLayout { // of a thread's columns
  STENCIL_WIDE,              // one vector of 16 bytes: rows are whole vectors
  STENCIL_ANY,               // a warp's width apart
  STENCIL_NARROW,            // one, and the next thread has the next one, of the rows below at the end of a row
  STENCIL_DENSE,             // one vector of x as one long row: rows are short and follow each other without a gap
  STENCIL_FLAT               // one vector of the only row
} StencilLayout;

typedef struct StencilParams {
  void *y;
  const void *x;
  int64_t m, n, y_stride, x_stride; // elements
  uint64_t strips, tiles; // blocks along a row, and in all; STENCIL_NARROW: threads in all
  uint32_t warps_down;    // of a block's warps; the others are next to them
  int32_t x_kind, y_kind;
  int32_t head, y_wide; // 1-D, STENCIL_DENSE: elements of x's first 16 bytes that are not x's; y can be stored as x is read
  int32_t radius;
  uint32_t ahead; // a block prefetches into L2 the part of x of the block that many further on; 0: none
  float centre, side[8];
} StencilParams;

#endif
