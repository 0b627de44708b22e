#ifndef SOL_KERNELS_REDUCE_H
#define SOL_KERNELS_REDUCE_H
#include <stdint.h>

#include "../narrow.h"

enum { HOW_SUM, HOW_MAX, HOW_SQUARES };

typedef struct ReduceParams {
  void *y;
  const void *x;
  uint64_t m;
  int64_t n, x_stride; // stride in bytes
  int64_t x_batch;     // columns: bytes from a matrix of the batch to the next
  int64_t rows;        // columns: of a block. Of a batch's matrix, block row b writes y + b * n
  uint64_t per_row;    // all: chunks of the buffer that a row may have parts of
  int32_t x_kind, y_kind, how;
  uint32_t strips; // columns: of blocks side by side, for each matrix of the batch
  int32_t lanes;   // columns: threads side by side, a power of two; 0: a thread has 16 bytes of columns, of a few rows
  int32_t cluster; // columns: blocks of a cluster, which have all of a strip's rows; up to 1: none
  float divisor;   // of the result: the mean's count, or 1
  NarrowShape narrow; // short rows
} ReduceParams;

#endif
