// What the rungs of bias_relu_scale are launched with.
#ifndef SOL_KERNELS_BIAS_RELU_SCALE_RUNGS_H
#define SOL_KERNELS_BIAS_RELU_SCALE_RUNGS_H
#include <stdint.h>

typedef struct BiasRung {
  float *y;
  const float *x;    // y itself where a step works in place
  const float *bias; // (columns)
  uint64_t count, columns;
  float scale;
} BiasRung;

#endif
