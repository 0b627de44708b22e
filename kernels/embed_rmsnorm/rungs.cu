// The rungs of the embed_rmsnorm ladder: src/ladder/ladder_embed_rmsnorm.c describes them. A block has a row.
#include "embed_rmsnorm/rungs.h"

#include "common.cuh"

INLINE float block_sum(float s) {
  __shared__ float part[EMBED_NORM_THREADS / 32];
  int lane = threadIdx.x % 32;
  s = warp_sum(s);
  if (lane == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  return warp_sum(lane < EMBED_NORM_THREADS / 32 ? part[lane] : 0);
}

INLINE void norm_row(const EmbedRmsnormRung *p, const float *x, float *y) {
  float squares = 0;
  for (int c = threadIdx.x; c < p->n; c += EMBED_NORM_THREADS) squares += x[c] * x[c];
  float scale = rsqrtf(block_sum(squares) / (float)p->n + p->eps);
  for (int c = threadIdx.x; c < p->n; c += EMBED_NORM_THREADS) y[c] = x[c] * scale * p->weight[c];
}

// The first of two kernels: rows by id.
KERNEL embed_rmsnorm_gather(const __grid_constant__ EmbedRmsnormRung p) {
  const float *from = p.table + (int64_t)p.ids[blockIdx.x] * p.n;
  float *to = p.embedded + (int64_t)blockIdx.x * p.n;
  for (int c = threadIdx.x; c < p.n; c += EMBED_NORM_THREADS) to[c] = from[c];
}

// The second: it reads what the first has written.
KERNEL embed_rmsnorm_norm(const __grid_constant__ EmbedRmsnormRung p) {
  norm_row(&p, p.embedded + (int64_t)blockIdx.x * p.n, p.y + (int64_t)blockIdx.x * p.n);
}

// Both in one: the row is loaded from the table itself.
KERNEL embed_rmsnorm_fused(const __grid_constant__ EmbedRmsnormRung p) {
  norm_row(&p, p.table + (int64_t)p.ids[blockIdx.x] * p.n, p.y + (int64_t)blockIdx.x * p.n);
}

// 16 bytes an access.
KERNEL embed_rmsnorm_vectors(const __grid_constant__ EmbedRmsnormRung p) {
  int n4 = p.n / 4;
  const float4 *x = (const float4 *)p.table + (int64_t)p.ids[blockIdx.x] * n4, *weight = (const float4 *)p.weight;
  float4 *y = (float4 *)p.y + (int64_t)blockIdx.x * n4;
  float squares = 0;
  for (int c = threadIdx.x; c < n4; c += EMBED_NORM_THREADS) {
    float4 v = x[c];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  float scale = rsqrtf(block_sum(squares) / (float)p.n + p.eps);
  for (int c = threadIdx.x; c < n4; c += EMBED_NORM_THREADS) {
    float4 v = x[c], w = weight[c];
    y[c] = make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
  }
}
