// What the rungs of the cumulative ladder and their launcher share.
#ifndef SOL_KERNELS_CUMULATIVE_RUNGS_H
#define SOL_KERNELS_CUMULATIVE_RUNGS_H

#include <stdint.h>

enum { FILTER_RADIUS = 4, FILTER_TAPS = 2 * FILTER_RADIUS + 1, FILTER_THREADS = 256 };
#define FILTER_WEIGHTS                                                                                       \
  { 0.0625f, -0.125f, 0.25f, 0.5f, 1.0f, 0.75f, -0.375f, 0.1875f, 0.03125f }

// y[i][j] = sum over k of weight[k] * x[i][j + k - FILTER_RADIUS], zero outside; m rows of n floats.
typedef struct FilterRung {
  float *y;
  const float *x;
  int32_t m, n;
} FilterRung;

#endif
