// The rungs of the transpose ladder: src/ladder/ladder_transpose.c describes them. Blocks of 32 x 8 threads move a
// tile of 32 x 32 elements, four a thread; the last kernel's 256 threads move 64 x 64.
#include "transpose/rungs.h"

#include "common.cuh"

// A row of x is read, a column of y is written: the lanes' stores are a whole row of y apart.
KERNEL transpose_naive(const __grid_constant__ TransposeRung p) {
  int64_t j = (int64_t)blockIdx.x * RUNG_TILE + threadIdx.x;
  for (int k = 0; k < RUNG_TILE; k += RUNG_ROWS) {
    int64_t i = (int64_t)blockIdx.y * RUNG_TILE + k + threadIdx.y;
    if (i < p.m && j < p.n) p.y[j * p.m + i] = p.x[i * p.n + j];
  }
}

// Through a tile in shared memory: rows of x are written to it, rows of y read from it. Each of its columns is in one bank.
KERNEL transpose_tile(const __grid_constant__ TransposeRung p) {
  __shared__ float tile[RUNG_TILE][RUNG_TILE];
  int64_t i0 = (int64_t)blockIdx.y * RUNG_TILE, j0 = (int64_t)blockIdx.x * RUNG_TILE;
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (i0 + k < p.m && j0 + threadIdx.x < p.n) tile[k][threadIdx.x] = p.x[(i0 + k) * p.n + j0 + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (j0 + k < p.n && i0 + threadIdx.x < p.m) p.y[(j0 + k) * p.m + i0 + threadIdx.x] = tile[threadIdx.x][k];
  }
}

// Rows of the tile are 33 elements apart: a column of it is spread over 32 banks.
KERNEL transpose_padded(const __grid_constant__ TransposeRung p) {
  __shared__ float tile[RUNG_TILE][RUNG_TILE + 1];
  int64_t i0 = (int64_t)blockIdx.y * RUNG_TILE, j0 = (int64_t)blockIdx.x * RUNG_TILE;
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (i0 + k < p.m && j0 + threadIdx.x < p.n) tile[k][threadIdx.x] = p.x[(i0 + k) * p.n + j0 + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (j0 + k < p.n && i0 + threadIdx.x < p.m) p.y[(j0 + k) * p.m + i0 + threadIdx.x] = tile[threadIdx.x][k];
  }
}

// No padding: element (r, c) is stored at column c ^ r. A column of the tile is spread over 32 banks, too.
KERNEL transpose_swizzled(const __grid_constant__ TransposeRung p) {
  __shared__ float tile[RUNG_TILE][RUNG_TILE];
  int64_t i0 = (int64_t)blockIdx.y * RUNG_TILE, j0 = (int64_t)blockIdx.x * RUNG_TILE;
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (i0 + k < p.m && j0 + threadIdx.x < p.n) tile[k][threadIdx.x ^ k] = p.x[(i0 + k) * p.n + j0 + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < RUNG_TILE; s += RUNG_ROWS) {
    int k = s + threadIdx.y;
    if (j0 + k < p.n && i0 + threadIdx.x < p.m) p.y[(j0 + k) * p.m + i0 + threadIdx.x] = tile[threadIdx.x][k ^ threadIdx.x];
  }
}

// Four elements of a row of `length`, from `at` on, where rows do not start at 16-byte boundaries.
INLINE float4 load_ragged(const float *row, int64_t at, int64_t length) {
  float4 v = make_float4(0, 0, 0, 0);
  if (at < length) v.x = row[at];
  if (at + 1 < length) v.y = row[at + 1];
  if (at + 2 < length) v.z = row[at + 2];
  if (at + 3 < length) v.w = row[at + 3];
  return v;
}

INLINE void store_ragged(float *row, int64_t at, int64_t length, float4 v) {
  if (at < length) row[at] = v.x;
  if (at + 1 < length) row[at + 1] = v.y;
  if (at + 2 < length) row[at + 2] = v.z;
  if (at + 3 < length) row[at + 3] = v.w;
}

// 16 bytes an access: a thread turns a 4 x 4 patch in registers, the tile holds rows of y as vectors, swizzled.
KERNEL transpose_vectorised(const __grid_constant__ TransposeRung p) {
  enum { VECTORS = RUNG_WIDE / 4 };
  __shared__ float4 tile[RUNG_WIDE][VECTORS];
  int64_t i0 = (int64_t)blockIdx.y * RUNG_WIDE, j0 = (int64_t)blockIdx.x * RUNG_WIDE;
  int across = threadIdx.x % VECTORS, down = threadIdx.x / VECTORS;
  int64_t i4 = i0 + 4 * down, j4 = j0 + 4 * across;
  float4 v[4] = {};
  if (p.n % 4 == 0) {
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i4 + k < p.m && j4 < p.n) v[k] = *(const float4 *)(p.x + (i4 + k) * p.n + j4);
  } else {
    for (int k = 0; k < 4; k++)
      if (i4 + k < p.m) v[k] = load_ragged(p.x + (i4 + k) * p.n, j4, p.n);
  }
  float4 *column = &tile[4 * across][down ^ across];
  column[0 * VECTORS] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  column[1 * VECTORS] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  column[2 * VECTORS] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  column[3 * VECTORS] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  __syncthreads();
  i4 = i0 + 4 * across;
  if (p.m % 4 == 0) {
#pragma unroll
    for (int r = down; r < RUNG_WIDE; r += VECTORS)
      if (j0 + r < p.n && i4 < p.m) *(float4 *)(p.y + (j0 + r) * p.m + i4) = tile[r][across ^ (r / 4)];
  } else {
    for (int r = down; r < RUNG_WIDE; r += VECTORS)
      if (j0 + r < p.n) store_ragged(p.y + (j0 + r) * p.m, i4, p.m, tile[r][across ^ (r / 4)]);
  }
}
