#ifndef SOL_KERNELS_ARGMAX_H
#define SOL_KERNELS_ARGMAX_H
#include <stdint.h>

#include "../narrow.h"

// The most chunks of a lane in the kernels of short rows.
enum { ARGMAX_ROUNDS = 12 };

typedef struct ArgmaxParams {
  void *y, *values; // values: the elements themselves, for topk; NULL: not wanted
  const void *x;
  uint64_t m;
  int64_t n, x_stride;   // stride in bytes
  int64_t y_stride, values_stride; // elements
  int32_t x_kind, wide;  // wide: y is int64, otherwise int32
  int32_t skip_nan;      // NaN does not count, and a row of nothing else has column -1
  int32_t lane_bits, rounds; // of the kernels for short rows: 2^lane_bits lanes share a row, with so many chunks each
  NarrowShape narrow;        // of the kernels for dense rows of a few elements
} ArgmaxParams;

#endif
