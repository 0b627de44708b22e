#ifndef SOL_KERNELS_CROSS_ENTROPY_H
#define SOL_KERNELS_CROSS_ENTROPY_H
#include <stdint.h>

typedef struct CrossEntropyParams {
  float *loss;
  const void *x;
  void *gradient; // NULL: not wanted
  const void *targets;
  int64_t n, x_stride, gradient_stride; // strides in bytes
  int32_t x_kind, wide_ids;
  int32_t shared; // bytes
  int32_t alike;  // rows of x and the gradient are aligned alike
  float scale;
} CrossEntropyParams;

#endif
