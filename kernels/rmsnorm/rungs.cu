// The rungs of the rmsnorm ladder: src/ladder/ladder_rmsnorm.c describes them. Sums are kept in fp32 throughout.
#include "rmsnorm/rungs.h"

#include <cooperative_groups.h>

#include "common.cuh"

INLINE float factor(const RmsnormRung *p, float squares) {
  return rsqrtf(squares / (float)p->n + p->eps);
}

// Over the threads of a block along x. Once a kernel.
INLINE float block_sum(float s) {
  __shared__ float part[32];
  int warps = (int)blockDim.x / 32, lane = threadIdx.x % 32;
  s = warp_sum(s);
  if (lane == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  return warp_sum(lane < warps ? part[lane] : 0);
}

// A thread normalises a row: it reads it twice, a whole row from its neighbours.
KERNEL rmsnorm_thread(const __grid_constant__ RmsnormRung p) {
  int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= p.m) return;
  const __half *x = (const __half *)p.x + row * p.n, *w = (const __half *)p.weight;
  __half *y = (__half *)p.y + row * p.n;
  float squares = 0;
  for (int c = 0; c < p.n; c++) {
    float f = __half2float(x[c]);
    squares += f * f;
  }
  float scale = factor(&p, squares);
  for (int c = 0; c < p.n; c++) y[c] = __float2half_rn(__half2float(x[c]) * scale * __half2float(w[c]));
}

// A block has a row: neighbouring lanes read neighbouring elements, shuffles and shared memory add up.
KERNEL rmsnorm_block(const __grid_constant__ RmsnormRung p) {
  const __half *x = (const __half *)p.x + (int64_t)blockIdx.x * p.n, *w = (const __half *)p.weight;
  __half *y = (__half *)p.y + (int64_t)blockIdx.x * p.n;
  float squares = 0;
  for (int c = threadIdx.x; c < p.n; c += blockDim.x) {
    float f = __half2float(x[c]);
    squares += f * f;
  }
  float scale = factor(&p, block_sum(squares));
  for (int c = threadIdx.x; c < p.n; c += blockDim.x)
    y[c] = __float2half_rn(__half2float(x[c]) * scale * __half2float(w[c]));
}

// Two elements an access; the row is kept in shared memory until its sum is known and is read from DRAM once.
KERNEL rmsnorm_half2(const __grid_constant__ RmsnormRung p) {
  extern __shared__ __half2 pairs[];
  int n2 = p.n / 2;
  const __half2 *x = (const __half2 *)p.x + (int64_t)blockIdx.x * n2, *w = (const __half2 *)p.weight;
  __half2 *y = (__half2 *)p.y + (int64_t)blockIdx.x * n2;
  float squares = 0;
  for (int c = threadIdx.x; c < n2; c += blockDim.x) {
    __half2 h = x[c];
    float2 f = __half22float2(h);
    pairs[c] = h;
    squares += f.x * f.x + f.y * f.y;
  }
  float scale = factor(&p, block_sum(squares));
  for (int c = threadIdx.x; c < n2; c += blockDim.x) {
    float2 f = __half22float2(pairs[c]), g = __half22float2(w[c]);
    y[c] = __floats2half2_rn(f.x * scale * g.x, f.y * scale * g.y);
  }
}

INLINE float squares_of(uint4 v) {
  Vec vec;
  float f[8], squares = 0;
  vec.v = v;
  widen(&vec, KIND_FP16, 2, f);
#pragma unroll
  for (int i = 0; i < 8; i++) squares += f[i] * f[i];
  return squares;
}

INLINE uint4 normalised(uint4 x, uint4 weight, float scale) {
  Vec v, w;
  float f[8], g[8];
  v.v = x;
  w.v = weight;
  widen(&v, KIND_FP16, 2, f);
  widen(&w, KIND_FP16, 2, g);
#pragma unroll
  for (int i = 0; i < 8; i++) f[i] = f[i] * scale * g[i];
  narrow(&v, KIND_FP16, 2, f);
  return v.v;
}

// The same with 16 bytes an access: eight elements.
KERNEL rmsnorm_vectors(const __grid_constant__ RmsnormRung p) {
  extern __shared__ uint4 held[];
  int n8 = p.n / 8;
  const uint4 *x = (const uint4 *)p.x + (int64_t)blockIdx.x * n8, *w = (const uint4 *)p.weight;
  uint4 *y = (uint4 *)p.y + (int64_t)blockIdx.x * n8;
  float squares = 0;
  for (int c = threadIdx.x; c < n8; c += blockDim.x) {
    held[c] = x[c];
    squares += squares_of(held[c]);
  }
  float scale = factor(&p, block_sum(squares));
  for (int c = threadIdx.x; c < n8; c += blockDim.x) y[c] = normalised(held[c], w[c], scale);
}

// A warp has a row, and its part of shared memory: no barrier. Block: 32 x rows.
KERNEL rmsnorm_warp(const __grid_constant__ RmsnormRung p) {
  extern __shared__ uint4 held[];
  int n8 = p.n / 8;
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= p.m) return;
  const uint4 *x = (const uint4 *)p.x + row * n8, *w = (const uint4 *)p.weight;
  uint4 *y = (uint4 *)p.y + row * n8, *mine = held + (int)threadIdx.y * n8;
  float squares = 0;
  for (int c = threadIdx.x; c < n8; c += 32) { // each lane reads only what it wrote itself
    mine[c] = x[c];
    squares += squares_of(mine[c]);
  }
  float scale = factor(&p, warp_sum(squares));
  for (int c = threadIdx.x; c < n8; c += 32) y[c] = normalised(mine[c], w[c], scale);
}

// What a thread holds of a row: `held` vectors, first, first + step, ...
INLINE float hold(const uint4 *x, int first, int step, int n8, int held, uint4 *v) {
  float squares = 0;
#pragma unroll
  for (int k = 0; k < held; k++) v[k] = first + k * step < n8 ? x[first + k * step] : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int k = 0; k < held; k++) squares += squares_of(v[k]);
  return squares;
}

INLINE void release(uint4 *y, const uint4 *w, int first, int step, int n8, int held, const uint4 *v, float scale) {
#pragma unroll
  for (int k = 0; k < held; k++)
    if (first + k * step < n8) y[first + k * step] = normalised(v[k], w[first + k * step], scale);
}

INLINE void in_registers(const RmsnormRung *p, int held) {
  int n8 = p->n / 8;
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= p->m) return;
  uint4 v[NORM_HELD_WIDE];
  float squares = hold((const uint4 *)p->x + row * n8, threadIdx.x, blockDim.x, n8, held, v);
  squares = blockDim.x > 32 ? block_sum(squares) : warp_sum(squares);
  float scale = factor(p, squares);
  release((uint4 *)p->y + row * n8, (const uint4 *)p->weight, threadIdx.x, blockDim.x, n8, held, v, scale);
}

// The row is kept in registers: all loads are in flight at once, and shared memory is not needed. Rows too long for a
// warp's registers have the lanes of several. Block: lanes x rows; one row where there are more than 32 lanes.
KERNEL __launch_bounds__(1024, 2) rmsnorm_registers(const __grid_constant__ RmsnormRung p) {
  in_registers(&p, NORM_HELD);
}

// The same for rows that are too long for that.
KERNEL __launch_bounds__(1024) rmsnorm_registers_wide(const __grid_constant__ RmsnormRung p) {
  in_registers(&p, NORM_HELD_WIDE);
}

#if __CUDA_ARCH__ >= 900
// The blocks of a cluster share a row; each reads the others' sums from their shared memory.
KERNEL __launch_bounds__(NORM_CLUSTER_THREADS) rmsnorm_cluster(const __grid_constant__ RmsnormRung p) {
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  __shared__ float sum;
  int n8 = p.n / 8, blocks = (int)cluster.num_blocks();
  int64_t row = blockIdx.x / blocks;
  int first = (int)cluster.block_rank() * (int)blockDim.x + (int)threadIdx.x, step = blocks * (int)blockDim.x;
  uint4 v[NORM_HELD_WIDE];
  float squares = block_sum(hold((const uint4 *)p.x + row * n8, first, step, n8, NORM_HELD_WIDE, v));
  if (threadIdx.x == 0) sum = squares;
  cluster.sync();
  squares = 0;
  for (int b = 0; b < blocks; b++) squares += *cluster.map_shared_rank(&sum, b);
  float scale = factor(&p, squares);
  release((uint4 *)p.y + row * n8, (const uint4 *)p.weight, first, step, n8, NORM_HELD_WIDE, v, scale);
  cluster.sync(); // no block exits while another may still read its sum
}
#endif
