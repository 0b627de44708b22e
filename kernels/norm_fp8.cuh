// Row normalisations to fp8, by tensor, by row or by block of 128 columns.
#ifndef SOL_KERNELS_NORM_FP8_CUH
#define SOL_KERNELS_NORM_FP8_CUH

#include "fp8.cuh"
#include "norm_row.cuh"

// The largest over a row, beside its sum: what warps have before the barrier of block_sum, and what all have after it.
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

INLINE void fp8_put(NormKernel c, char *y, int at, float *f) {
  uint32_t low = fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
  if (c.kind == KIND_FP32) *(uint32_t *)(y + (int64_t)at * 4) = low;
  else *(uint2 *)(y + (int64_t)at * 8) = make_uint2(low, fp8_pair(f[4], f[5]) | fp8_pair(f[6], f[7]) << 16);
}

// The rest of a row that is held, its weights too. By row and by block all but the scales themselves is known before
// the row's sum is.
INLINE void fp8_held(NormKernel c, const NormParams *p, uint64_t row, char *y, int t, int all, const bool *there,
                     const Vec *v, const Vec *w, float (*part)[40]) {
  const int lanes = 8 * norm_bytes(c), per = 16 / norm_bytes(c);
  float f[4][8], tops[4], top = 0;
  float2 s = make_float2(0, 0);
  Fp8Scale q = {1, 1};
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    s = norm_sum(c, v[k], s);
    tops[k] = fp8_product(c, p, v[k], w[k], f[k]);
    top = higher(top, tops[k]);
    if (p->scaling == NORM_SCALE_BLOCK) tops[k] = lanes_highest(tops[k], lanes);
  }
  if (p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  if (p->scaling == NORM_SCALE_ROW) highest_give(c, top, part[1]);
  float scale = rsqrtf(fmaf(group_sum(c, s.x + s.y, part[0]), p->over_n, p->eps));
  if (p->scaling == NORM_SCALE_ROW)
    q = fp8_choose(highest_take(c, top, part[1]), scale, p->scales + row, t == 0 && there[0]);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (p->scaling == NORM_SCALE_BLOCK) q = fp8_block(c, p, row, t + k * all, there[k], tops[k], scale);
    if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
      for (int j = 0; j < per; j++) f[k][j] *= scale;
    fp8_divide(q, per, f[k]);
    if (there[k]) fp8_put(c, y, t + k * all, f[k]);
  }
}

#endif
