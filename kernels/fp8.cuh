// Conversion to fp8 (e4m3) and its scales: one for a tensor, a row or a block of columns.
#ifndef SOL_KERNELS_FP8_CUH
#define SOL_KERNELS_FP8_CUH

#include "row.cuh"

#if __CUDA_ARCH__ >= 890
INLINE
#else
static __device__ __noinline__ // many instructions
#endif
uint32_t fp8_pair(float a, float b) {
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
}

// The largest over groups of `lanes` (a power of two) neighbouring lanes, of magnitudes' bits: a NaN is above all.
INLINE uint32_t lanes_top(uint32_t v, int lanes) {
#if __CUDA_ARCH__ >= 800
  if (lanes == 32) return __reduce_max_sync(~0u, v);
#endif
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) v = max(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

INLINE float lanes_highest(float v, int lanes) {
  return __uint_as_float(lanes_top(__float_as_uint(v), lanes));
}

// What divides by a scale: f / scale is f * up * over. The reciprocal alone could overflow.
typedef struct Fp8Scale {
  float up, over;
} Fp8Scale;

INLINE Fp8Scale fp8_scale(float scale) {
  Fp8Scale s;
  s.up = fabsf(scale) < 0x1p-60f ? 0x1p80f : 1;
  s.over = 1 / (scale * s.up);
  return s;
}

// A scale that is chosen here, for values of magnitudes up to top. All of them, and so the scale, are to be multiplied
// by `times`, which does not matter to what they are once divided. Nothing but zeros stay zeros.
INLINE Fp8Scale fp8_choose(float top, float times, float *at, bool write) {
  float scale = top * times * (1 / 448.f);
  Fp8Scale s;
  if (write) *at = scale;
  s.up = top < 0x1p-60f ? 0x1p80f : 1;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s.over) : "f"(top * s.up * (1 / 448.f)));
  if (!(scale > 0)) s.over = scale * 0; // 0, or NaN; of an infinite one it is 0 already
  return s;
}

INLINE void fp8_divide(Fp8Scale s, int count, float *f) {
  if (s.up != 1)
#pragma unroll
    for (int j = 0; j < count; j++) f[j] *= s.up;
#pragma unroll
  for (int j = 0; j < count; j++) f[j] *= s.over;
}

#endif
