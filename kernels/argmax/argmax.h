#ifndef SOL_KERNELS_ARGMAX_H
#define SOL_KERNELS_ARGMAX_H
#include <stdint.h>

typedef struct ArgmaxParams {
  void *y;
  const void *x;
  uint64_t m;
  int64_t n, x_stride;   // stride in bytes
  int32_t x_kind, wide;  // wide: y is int64, otherwise int32
} ArgmaxParams;

#endif
