#ifndef SOL_KERNELS_REDUCE_H
#define SOL_KERNELS_REDUCE_H
#include <stdint.h>

enum { REDUCE_THREADS = 416 }; // of a block on a row, at most: three of them leave 48 registers a thread
enum { HOW_SUM, HOW_MAX, HOW_SQUARES };

typedef struct ReduceParams {
  void *y;
  const void *x;
  uint64_t m;
  int64_t n, x_stride; // stride in bytes
  int64_t x_batch;     // columns: bytes from a matrix of the batch to the next
  int64_t rows;        // of a block. Columns: of a batch's matrix, block row b writes y + b * n
  uint64_t units;      // all: pieces of work, `per_row` for each row
  uint64_t per_row;
  int32_t x_kind, y_kind, how;
  uint32_t strips; // columns: of blocks side by side, for each matrix of the batch
  int32_t lanes;   // a power of two. Columns: threads side by side; rows: threads of a row, where a block has several
  int32_t cluster; // blocks of a cluster, which have all of a strip's rows, or of a row; up to 1: none
  float divisor;   // of the result: the mean's count, or 1
} ReduceParams;

#endif
