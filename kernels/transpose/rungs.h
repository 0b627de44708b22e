// What the rungs of the transpose ladder and their launcher share.
#ifndef SOL_KERNELS_TRANSPOSE_RUNGS_H
#define SOL_KERNELS_TRANSPOSE_RUNGS_H

#include <stdint.h>

enum { RUNG_TILE = 32, RUNG_ROWS = 8, RUNG_WIDE = 64 };

// y[j][i] = x[i][j]; x has m rows of n.
typedef struct TransposeRung {
  float *y;
  const float *x;
  int64_t m, n;
} TransposeRung;

#endif
