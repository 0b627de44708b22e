//! alloc x 384*4 random-u32
//! alloc y 384*4 random-u32
//! alloc z 384*4 random-u32
//! alloc errors 32 zero
//! launch half_arith grid=3 block=128 args=x,y,z,errors
//! checks 7259
// fp16 arithmetic, scalar and packed, bit by bit: add, sub, mul, fma, saturation, comparisons, min and max,
// negation, absolute value, rounding to whole numbers; division, roots and powers of two to a few ulp.
#include "check.cuh"
#include "soft.cuh"
#include <cuda_fp16.h>

typedef unsigned long long u64;
#define HALF(v) (u64) __half_as_ushort(v)

// Any finite half.
__device__ half make(unsigned bits) {
  return __ushort_as_half((unsigned short)((bits & 0x7c00) == 0x7c00 ? bits ^ 0x4000 : bits));
}
__device__ Soft soft_half(half h) {
  return soft_decode(__half_as_ushort(h), 11, 5);
}
__device__ u64 round16(Soft v) {
  return soft_round(v, false, ROUND_NEAREST, 11, 5);
}

extern "C" __global__ void half_arith(const unsigned *x, const unsigned *y, const unsigned *z,
                                      unsigned *errors) {
  unsigned i = global_thread();
  half a = make(x[i]), b = make(y[i]), c = make(z[i]), d = make(x[i] >> 16), e = make(y[i] >> 16);
  Soft sa = soft_half(a), sb = soft_half(b), sc = soft_half(c), minus = soft_half(__hneg(b));
  Soft sum = soft_add(sa, sb), difference = soft_add(sa, minus), fused = soft_add(soft_mul(sa, sb), sc);
  if (sum.m) EXPECT_EQ(i, HALF(__hadd(a, b)), round16(sum));
  if (difference.m) EXPECT_EQ(i, HALF(__hsub(a, b)), round16(difference));
  EXPECT_EQ(i, HALF(__hmul(a, b)), round16(soft_mul(sa, sb)));
  if (fused.m) EXPECT_EQ(i, HALF(__hfma(a, b, c)), round16(fused));
  half2 p = __halves2half2(a, d), q = __halves2half2(b, e), r = __hmul2(p, q), s = __hadd2(p, q);
  EXPECT_EQ(i, HALF(__low2half(r)), round16(soft_mul(sa, sb)));
  EXPECT_EQ(i, HALF(__high2half(r)), round16(soft_mul(soft_half(d), soft_half(e))));
  if (sum.m) EXPECT_EQ(i, HALF(__low2half(s)), round16(sum));
  float fa = __half2float(a), fb = __half2float(b);
  EXPECT_EQ(i, __half2float(__hadd_sat(a, b)), fminf(fmaxf(__half2float(__hadd(a, b)), 0.0f), 1.0f));
  EXPECT_EQ(i, __hlt(a, b) | __hle(a, b) << 1 | __heq(a, b) << 2 | __hgt(a, b) << 3,
            (fa < fb) | (fa <= fb) << 1 | (fa == fb) << 2 | (fa > fb) << 3);
  unsigned mask = __hgt2_mask(p, q);
  EXPECT_EQ(i, mask, (fa > fb ? 0xffffu : 0u) | (__half2float(d) > __half2float(e) ? 0xffff0000u : 0u));
  if (fa != fb) EXPECT_EQ(i, HALF(__hmax(a, b)), HALF(fa > fb ? a : b));
  if (fa != fb) EXPECT_EQ(i, HALF(__hmin(a, b)), HALF(fa < fb ? a : b));
  EXPECT_EQ(i, HALF(__hneg(a)), HALF(a) ^ 0x8000);
  EXPECT_EQ(i, HALF(__habs(a)), HALF(a) & 0x7fff);
  if (fb != 0 && fabsf(fa / fb) < 60000) EXPECT_NEAR(i, __half2float(__hdiv(a, b)), fa / fb, 1e-3, 1e-7);
  EXPECT_NEAR(i, __half2float(hsqrt(__habs(a))), sqrtf(fabsf(fa)), 1e-3, 0);
  EXPECT_NEAR(i, __half2float(hexp2(__float2half(fb / 70000 * 10))),
              exp2f(__half2float(__float2half(fb / 70000 * 10))), 2e-3, 0);
  EXPECT_EQ(i, __half2float(hfloor(a)), floorf(fa));
  EXPECT_EQ(i, __half2float(hrint(a)), rintf(fa));
}
