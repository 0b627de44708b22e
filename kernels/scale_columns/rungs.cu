// The rungs of the column_scale ladder: src/ladder/ladder_column_scale.c describes them. A thread has one element,
// or one vector, throughout.
#include "scale_columns/rungs.h"

#include "common.cuh"

// Threads go down a column: neighbouring lanes are a whole row apart.
KERNEL column_scale_strided(const __grid_constant__ ColumnScaleRung p) {
  int64_t row = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x, column = blockIdx.y;
  if (row < p.m) p.y[row * p.n + column] = p.x[row * p.n + column] * p.scale[column];
}

// Threads go along memory; each finds its column by a division.
KERNEL column_scale_contiguous(const __grid_constant__ ColumnScaleRung p) {
  uint64_t i = (uint64_t)blockIdx.x * SCALE_THREADS + threadIdx.x, row, column;
  if (i >= (uint64_t)(p.m * p.n)) return;
  split(i, (uint64_t)p.n, &row, &column);
  p.y[i] = p.x[i] * p.scale[column];
}

// 16 bytes an access, and one division for four elements.
KERNEL column_scale_vectors(const __grid_constant__ ColumnScaleRung p) {
  uint64_t i = (uint64_t)blockIdx.x * SCALE_THREADS + threadIdx.x, row, column;
  if (i >= (uint64_t)(p.m * p.n / 4)) return;
  split(i, (uint64_t)p.n / 4, &row, &column);
  float4 v = ((const float4 *)p.x)[i], s = ((const float4 *)p.scale)[column];
  ((float4 *)p.y)[i] = make_float4(v.x * s.x, v.y * s.y, v.z * s.z, v.w * s.w);
}

// Row and column are the block's two indices: no division. Rows beyond what a grid holds are taken in a loop.
KERNEL column_scale_direct(const __grid_constant__ ColumnScaleRung p) {
  int64_t column = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x, n4 = p.n / 4;
  if (column >= n4) return;
  for (int64_t row = blockIdx.y; row < p.m; row += gridDim.y) {
    float4 v = ((const float4 *)p.x)[row * n4 + column], s = ((const float4 *)p.scale)[column];
    ((float4 *)p.y)[row * n4 + column] = make_float4(v.x * s.x, v.y * s.y, v.z * s.z, v.w * s.w);
  }
}
