// Row normalisations to fp8, by tensor, by row or by block of 128 columns.
#ifndef SOL_KERNELS_NORM_FP8_CUH
#define SOL_KERNELS_NORM_FP8_CUH

#include "fp8.cuh"
#include "norm_row.cuh"

// The largest over a row, reduced together with its sum: each warp's is stored before the barrier of block_sum, and all
// of them are read after it.
INLINE void highest_give(NormKernel c, float v, float *part) {
  if (c.lanes) return;
  v = lanes_highest(v, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
}

INLINE float highest_take(NormKernel c, float v, const float *part) {
  return lanes_highest(c.lanes ? v : part[min(threadIdx.x % 32, blockDim.x / 32 - 1)], c.lanes ? c.lanes : 32);
}

// A chunk's x * (weight + offset), and the largest of their magnitudes.
INLINE float fp8_product(NormKernel c, const NormParams *p, Vec v, Vec weight, float *f) {
  float w[8], top = 0;
  widen(&v, c.kind, norm_bytes(c), f);
  widen(&weight, c.kind, norm_bytes(c), w);
  if (p->offset != 0)
#pragma unroll
    for (int j = 0; j < 16 / norm_bytes(c); j++) w[j] += p->offset;
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) {
    f[j] *= w[j];
    top = higher(top, fabsf(f[j]));
  }
  return top;
}

// The scale of a whole row, by tensor or by row.
INLINE Fp8Scale fp8_row(const NormParams *p, uint64_t row, float top, bool first) {
  Fp8Scale none = {1, 1};
  if (p->scaling == NORM_SCALE_TENSOR) return fp8_scale(*p->scales);
  return p->scaling == NORM_SCALE_ROW ? fp8_choose(top, 1, p->scales + row, first) : none;
}

// A block of 128 columns, neighbouring lanes' chunks. at: the number of this lane's; top: the block's.
INLINE Fp8Scale fp8_block(NormKernel c, const NormParams *p, uint64_t row, int at, bool there, float top, float times) {
  const int lanes = 8 * norm_bytes(c);
  float *scales = p->scales + (int64_t)row * ((p->chunks + lanes - 1) / lanes) + at / lanes;
  return fp8_choose(top, times, scales, there && at % lanes == 0);
}

// What a chunk is in fp8: one word or two.
INLINE uint2 fp8_words(NormKernel c, const float *f) {
  uint32_t low = fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
  return make_uint2(low, c.kind == KIND_FP32 ? 0 : fp8_pair(f[4], f[5]) | fp8_pair(f[6], f[7]) << 16);
}

INLINE void fp8_put(NormKernel c, char *y, int at, uint2 u) {
  if (c.kind == KIND_FP32) *(uint32_t *)(y + (int64_t)at * 4) = u.x;
  else *(uint2 *)(y + (int64_t)at * 8) = u;
}

// A row held in registers with its weights: chunks, and single elements ("edges") of some threads. With a scale per row
// or per block, everything but the scales is computed before the row's sum is known.
typedef struct Fp8Held {
  float f[4][8], edge[4], tops[4];
  int lap[4];   // edge: of which chunk's block
  float2 total; // sum and, by row, largest value
  Fp8Scale q;
} Fp8Held;

// edges: how many each thread has; edge_weights: theirs.
INLINE void fp8_sums(NormKernel c, const NormParams *p, int scaling, const Vec *v, const Vec *w, int edges,
                     const float *edge_weights, float (*part)[40], Fp8Held *h) {
  float2 s = make_float2(0, 0);
  float top = 0;
  h->q.up = h->q.over = 1;
#pragma unroll
  for (int i = 0; i < edges; i++) {
    s.x = fmaf(h->edge[i], h->edge[i], s.x);
    h->edge[i] *= edge_weights[i] + p->offset;
  }
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    s = norm_sum(c, v[k], s);
    h->tops[k] = fp8_product(c, p, v[k], w[k], h->f[k]);
#pragma unroll
    for (int i = 0; i < edges; i++) h->tops[k] = higher(h->tops[k], h->lap[i] == k ? fabsf(h->edge[i]) : 0);
    top = higher(top, h->tops[k]);
    if (scaling == NORM_SCALE_BLOCK) h->tops[k] = lanes_highest(h->tops[k], 8 * norm_bytes(c));
  }
  if (scaling == NORM_SCALE_TENSOR) h->q = fp8_scale(*p->scales);
  if (scaling == NORM_SCALE_ROW) highest_give(c, top, part[1]);
  h->total = make_float2(group_sum(c, s.x + s.y, part[0]), 0);
  if (scaling == NORM_SCALE_ROW) h->total.y = highest_take(c, top, part[1]);
}

// Chunks are t, t + all, ...; `inside`: those whose blocks begin within the row. Edges are divided in place.
INLINE void fp8_values(NormKernel c, const NormParams *p, int scaling, uint64_t row, int t, int all, const bool *inside,
                       int edges, Fp8Held *h, uint2 *u) {
  const int per = 16 / norm_bytes(c);
  float scale = rsqrtf(fmaf(h->total.x, p->over_n, p->eps));
  Fp8Scale q[4];
  if (scaling == NORM_SCALE_ROW) h->q = fp8_choose(h->total.y, scale, p->scales + row, t == 0 && inside[0]);
#pragma unroll
  for (int i = 0; i < edges; i++) q[i] = h->q;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (scaling == NORM_SCALE_BLOCK) {
      h->q = fp8_block(c, p, row, t + k * all, inside[k], h->tops[k], scale);
#pragma unroll
      for (int i = 0; i < edges; i++)
        if (h->lap[i] == k) q[i] = h->q;
    }
    if (scaling == NORM_SCALE_TENSOR)
#pragma unroll
      for (int j = 0; j < per; j++) h->f[k][j] *= scale;
    fp8_divide(h->q, per, h->f[k]);
    u[k] = fp8_words(c, h->f[k]);
  }
#pragma unroll
  for (int i = 0; i < edges; i++) {
    if (scaling == NORM_SCALE_TENSOR) h->edge[i] *= scale;
    fp8_divide(q[i], 1, &h->edge[i]);
  }
}

#endif
