// What the rungs of the column_scale ladder and their launcher share.
#ifndef SOL_KERNELS_SCALE_COLUMNS_RUNGS_H
#define SOL_KERNELS_SCALE_COLUMNS_RUNGS_H

#include <stdint.h>

enum { SCALE_THREADS = 256 };

// y[i][j] = x[i][j] * scale[j]; m rows of n floats.
typedef struct ColumnScaleRung {
  float *y;
  const float *x, *scale;
  int64_t m, n;
} ColumnScaleRung;

#endif
