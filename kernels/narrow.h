// What kernels of short rows (narrow.cuh) share with their launchers.
#ifndef SOL_KERNELS_NARROW_H
#define SOL_KERNELS_NARROW_H

#include <stdint.h>

// The most columns of a thread; threads of a block; the most lanes that share a row, as powers of two: of
// norms, and of softmax, whose kernels for longer rows are faster.
enum { NARROW_EACH = 8, NARROW_THREADS = 128, NARROW_NORM = 5, NARROW_SOFTMAX = 3 };

// Tensors of a kernel, and where in shared memory the rows that a block has of them are.
enum { NARROW_X, NARROW_RESIDUAL, NARROW_Y, NARROW_SECOND, NARROW_TENSORS };
enum { NARROW_IDS = NARROW_TENSORS, NARROW_PLACES }; // addresses of rows that are looked up
typedef struct NarrowShape {
  int32_t n, rows;               // columns of a row; rows of a block
  int32_t lane_bits;             // 2^lane_bits lanes share a row,
  int32_t each;                  // with so many columns each at most: 6 or NARROW_EACH
  int32_t place[NARROW_PLACES];  // multiples of 16
  int32_t pitch[NARROW_TENSORS]; // bytes from row to row there; 0: as in global memory, where rows are dense
} NarrowShape;

#endif
