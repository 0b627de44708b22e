//! alloc x 384*4 random-u32
//! alloc y 384*4 random-u32
//! alloc z 384*4 random-u32
//! alloc errors 32 zero
//! launch bf16_arith grid=3 block=128 args=x,y,z,errors
//! checks 3456
// bf16 arithmetic, scalar and packed, bit by bit: add, sub, mul, comparisons, min, max; fma from sm_80 on.
#include "check.cuh"
#include "soft.cuh"
#include <cuda_bf16.h>

typedef unsigned long long u64;
#define BRAIN(v) (u64) __bfloat16_as_ushort(v)

// Exponents near 1, so that exact sums fit in the integers.
__device__ __nv_bfloat16 make(unsigned bits) {
  return __ushort_as_bfloat16((unsigned short)((bits & 0x807f) | (120 + (bits >> 7 & 15)) << 7));
}
__device__ Soft soft_brain(__nv_bfloat16 h) {
  return soft_decode(__bfloat16_as_ushort(h), 8, 8);
}
__device__ u64 round_brain(Soft v) {
  return soft_round(v, false, ROUND_NEAREST, 8, 8);
}

extern "C" __global__ void bf16_arith(const unsigned *x, const unsigned *y, const unsigned *z,
                                      unsigned *errors) {
  unsigned i = global_thread();
  __nv_bfloat16 u = make(x[i]), v = make(y[i]);
  Soft su = soft_brain(u), sv = soft_brain(v), sum = soft_add(su, sv);
  Soft difference = soft_add(su, soft_brain(__hneg(v)));
  float fu = __bfloat162float(u), fv = __bfloat162float(v);
  if (sum.m) EXPECT_EQ(i, BRAIN(__hadd(u, v)), round_brain(sum));
  if (difference.m) EXPECT_EQ(i, BRAIN(__hsub(u, v)), round_brain(difference));
  EXPECT_EQ(i, BRAIN(__hmul(u, v)), round_brain(soft_mul(su, sv)));
  __nv_bfloat162 products = __hmul2(__halves2bfloat162(u, v), __halves2bfloat162(v, v));
  EXPECT_EQ(i, BRAIN(__low2bfloat16(products)), round_brain(soft_mul(su, sv)));
  EXPECT_EQ(i, BRAIN(__high2bfloat16(products)), round_brain(soft_mul(sv, sv)));
  EXPECT_EQ(i, __hgt(u, v) | __hle(u, v) << 1 | __hne(u, v) << 2,
            (fu > fv) | (fu <= fv) << 1 | (fu != fv) << 2);
  EXPECT_EQ(i, BRAIN(__hmax(u, v)), BRAIN(fu > fv ? u : v));
  EXPECT_EQ(i, BRAIN(__hmin(u, v)), BRAIN(fu < fv ? u : v));
  EXPECT_EQ(i, BRAIN(__habs(u)), BRAIN(u) & 0x7fff);
#if __CUDA_ARCH__ >= 800
  __nv_bfloat16 w = make(z[i]);
  Soft fused = soft_add(soft_mul(su, sv), soft_brain(w));
  if (fused.m) EXPECT_EQ(i, BRAIN(__hfma(u, v, w)), round_brain(fused));
  __nv_bfloat162 t = __hfma2(__halves2bfloat162(u, v), __halves2bfloat162(v, u), __halves2bfloat162(w, w));
  if (fused.m) EXPECT_EQ(i, BRAIN(__low2bfloat16(t)), round_brain(fused));
  if (fused.m) EXPECT_EQ(i, BRAIN(__high2bfloat16(t)), round_brain(fused));
#endif
}
