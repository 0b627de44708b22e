// The rungs of the cumulative ladder, a filter along the rows of a matrix: src/ladder/ladder_cumulative.c describes
// them.
#include "cumulative/rungs.h"

#include "common.cuh"

// An element straight from memory, tap by tap.
INLINE float filtered(const float *row, int column, int n) {
  const float weight[FILTER_TAPS] = FILTER_WEIGHTS;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < FILTER_TAPS; k++) {
    int c = column + k - FILTER_RADIUS;
    if (c >= 0 && c < n) sum += weight[k] * row[c];
  }
  return sum;
}

// Threads go down a column: neighbouring lanes are a whole row apart.
KERNEL filter_naive(const __grid_constant__ FilterRung p) {
  int row = blockIdx.x * FILTER_THREADS + threadIdx.x, column = blockIdx.y;
  if (row < p.m) p.y[(int64_t)row * p.n + column] = filtered(p.x + (int64_t)row * p.n, column, p.n);
}

// Threads go along a row.
KERNEL filter_coalesced(const __grid_constant__ FilterRung p) {
  int row = blockIdx.y, column = blockIdx.x * FILTER_THREADS + threadIdx.x;
  if (column < p.n) p.y[(int64_t)row * p.n + column] = filtered(p.x + (int64_t)row * p.n, column, p.n);
}

// What the block needs of its row is loaded once, into shared memory.
KERNEL filter_tiled(const __grid_constant__ FilterRung p) {
  const float weight[FILTER_TAPS] = FILTER_WEIGHTS;
  __shared__ float tile[FILTER_THREADS + 2 * FILTER_RADIUS];
  int me = threadIdx.x, column = blockIdx.x * FILTER_THREADS + me, left = column - FILTER_RADIUS;
  const float *x = p.x + (int64_t)blockIdx.y * p.n;
  tile[me] = left >= 0 && left < p.n ? x[left] : 0;
  if (me < 2 * FILTER_RADIUS) tile[me + FILTER_THREADS] = left + FILTER_THREADS < p.n ? x[left + FILTER_THREADS] : 0;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < FILTER_TAPS; k++) sum += weight[k] * tile[me + k];
  if (column < p.n) p.y[(int64_t)blockIdx.y * p.n + column] = sum;
}

// The index of element i of the tile: one word is left out after every 32 where it is padded.
INLINE int place(int i, bool padded) {
  return padded ? i + i / 32 : i;
}

// A row and the radius are whole vectors: a vector is inside the row or outside.
INLINE float4 load_inside(const float *row, int c, int n) {
  return c >= 0 && c < n ? *(const float4 *)(row + c) : make_float4(0, 0, 0, 0);
}

INLINE void park(float *tile, int i, bool padded, float4 v) {
  float *at = tile + place(i, padded); // four words from a multiple of four on: no gap between them
  at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w;
}

// Four neighbouring results, of elements `at` and on of the tile; each of those is read once.
INLINE float4 filtered4(const float *tile, int at, bool padded) {
  const float weight[FILTER_TAPS] = FILTER_WEIGHTS;
  float f[FILTER_TAPS + 3];
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int k = 0; k < FILTER_TAPS + 3; k++) f[k] = tile[place(at + k / 4 * 4, padded) + k % 4];
#pragma unroll
  for (int k = 0; k < FILTER_TAPS; k++) {
    sum.x += weight[k] * f[k];
    sum.y += weight[k] * f[k + 1];
    sum.z += weight[k] * f[k + 2];
    sum.w += weight[k] * f[k + 3];
  }
  return sum;
}

// 16 bytes a load and store of global memory, `each` of them a thread, all loads before the first store to shared memory.
INLINE void by_vectors(const FilterRung *p, float *tile, int each, bool padded) {
  const int step = 4 * FILTER_THREADS, all = each * step;
  int me = 4 * threadIdx.x, column = blockIdx.x * all + me, left = column - FILTER_RADIUS;
  const float *x = p->x + (int64_t)blockIdx.y * p->n;
  float *y = p->y + (int64_t)blockIdx.y * p->n;
  float4 v[2], edge;
#pragma unroll
  for (int e = 0; e < each; e++) v[e] = load_inside(x, left + e * step, p->n);
  if (me < 2 * FILTER_RADIUS) edge = load_inside(x, left + all, p->n);
#pragma unroll
  for (int e = 0; e < each; e++) park(tile, me + e * step, padded, v[e]);
  if (me < 2 * FILTER_RADIUS) park(tile, me + all, padded, edge);
  __syncthreads();
#pragma unroll
  for (int e = 0; e < each; e++) {
    v[e] = filtered4(tile, me + e * step, padded);
    if (column + e * step < p->n) *(float4 *)(y + column + e * step) = v[e];
  }
}

#define TILE_OF(each) (each * 4 * FILTER_THREADS + 2 * FILTER_RADIUS)

// Four neighbouring elements a thread, 16 bytes a load and store of global memory. Lanes read every fourth word of the
// tile, so that only eight banks serve them.
KERNEL filter_vectors(const __grid_constant__ FilterRung p) {
  __shared__ float tile[TILE_OF(1)];
  by_vectors(&p, tile, 1, false);
}

// The tile is padded by a word in 33: its every fourth words are spread over all 32 banks.
KERNEL filter_padded(const __grid_constant__ FilterRung p) {
  __shared__ float tile[TILE_OF(1) + TILE_OF(1) / 32];
  by_vectors(&p, tile, 1, true);
}

// Two vectors in flight in every thread, with few enough registers for full occupancy.
KERNEL __launch_bounds__(FILTER_THREADS, 8) filter_registers(const __grid_constant__ FilterRung p) {
  __shared__ float tile[TILE_OF(2) + TILE_OF(2) / 32];
  by_vectors(&p, tile, 2, true);
}
