// What the rungs of the softmax ladder and their launcher share.
#ifndef SOL_KERNELS_SOFTMAX_RUNGS_H
#define SOL_KERNELS_SOFTMAX_RUNGS_H

#include <stdint.h>

enum { SOFTMAX_THREADS = 256 };

// y = exp(x - max) / sum(exp(x - max)); rows of n floats, one a block.
typedef struct SoftmaxRung {
  float *y;
  const float *x;
  int64_t n;
} SoftmaxRung;

#endif
