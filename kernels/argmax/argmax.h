#ifndef SOL_KERNELS_ARGMAX_H
#define SOL_KERNELS_ARGMAX_H
#include <stdint.h>

#include "../narrow.h"

typedef struct ArgmaxParams {
  void *y, *values; // values: the elements themselves, for topk; NULL: not wanted
  const void *x;
  uint64_t m;
  int64_t n, x_stride;   // stride in bytes
  int64_t y_stride, values_stride; // elements
  int32_t x_kind, wide;  // wide: y is int64, otherwise int32
  NarrowShape narrow;    // of the kernels for short rows
} ArgmaxParams;

#endif
