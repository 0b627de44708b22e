//! alloc x 128*4 random-u32
//! alloc errors 32 zero
//! launch denormals grid=1 block=128 args=x,errors
//! checks 2944
// Subnormal floats with and without .ftz: inputs and results are flushed to zero of the same sign, or kept;
// f64 and f16 always keep them.
#include "check.cuh"
#include <cuda_fp16.h>

#define OP2(name, a, b)                                                                                      \
  ({                                                                                                         \
    float r_;                                                                                                \
    asm(name " %0, %1, %2;" : "=f"(r_) : "f"(a), "f"(b));                                                    \
    __float_as_uint(r_);                                                                                     \
  })
#define OP1(name, a)                                                                                         \
  ({                                                                                                         \
    float r_;                                                                                                \
    asm(name " %0, %1;" : "=f"(r_) : "f"(a));                                                                \
    __float_as_uint(r_);                                                                                     \
  })

extern "C" __global__ void denormals(const unsigned *x, unsigned *errors) {
  unsigned i = threadIdx.x, sign = x[i] & 0x80000000u, m = x[i] % 0x3fffff + 1; // a subnormal of 22 bits
  float tiny = __uint_as_float(sign | m), one = 1.0f, zero = __uint_as_float(sign);
  EXPECT_EQ(i, OP2("add.f32", tiny, tiny), sign | 2 * m);
  EXPECT_EQ(i, OP2("add.ftz.f32", tiny, tiny), sign);
  EXPECT_EQ(i, OP2("add.ftz.f32", tiny, one), 0x3f800000u);
  EXPECT_EQ(i, OP2("mul.f32", tiny, 4.0f), __float_as_uint(ldexpf((float)m, -147)) | sign);
  EXPECT_EQ(i, OP2("mul.ftz.f32", tiny, 1e30f), sign);
  EXPECT_EQ(i, OP2("mul.ftz.f32", __uint_as_float(0x00800000u | sign), 0.5f), sign); // result flushed
  EXPECT_EQ(i, OP2("mul.f32", __uint_as_float(0x00800000u | sign), 0.5f), sign | 0x00400000u);
  EXPECT_EQ(i, OP2("min.f32", tiny, one), sign | m);
  EXPECT_EQ(i, OP2("min.ftz.f32", tiny, one), sign);
  EXPECT_EQ(i, OP1("abs.f32", tiny), m);
  EXPECT_EQ(i, OP1("abs.ftz.f32", tiny), 0u);
  EXPECT_EQ(i, OP1("neg.ftz.f32", tiny), sign ^ 0x80000000u);
  EXPECT_EQ(i, OP1("rcp.approx.ftz.f32", tiny), sign | 0x7f800000u);
  EXPECT_EQ(i, OP1("sqrt.rn.ftz.f32", fabsf(tiny)), 0u);
  EXPECT_EQ(i, OP1("cvt.ftz.f32.f32", tiny), sign);
  EXPECT_EQ(i, OP1("cvt.f32.f32", tiny), sign | m);
  EXPECT_EQ(i, OP1("ex2.approx.ftz.f32", -140.0f), 0u);
  float fused;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(fused) : "f"(tiny), "f"(1e20f), "f"(zero));
  EXPECT_EQ(i, __float_as_uint(fused), sign);
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(fused) : "f"(tiny), "f"(2.0f), "f"(tiny));
  EXPECT_EQ(i, __float_as_uint(fused),
            sign | (m * 3 < 0x800000u ? m * 3 : __float_as_uint(ldexpf((float)(m * 3), -149))));
  int less, equal, kept;
  asm("{ .reg .pred p; setp.lt.ftz.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }"
      : "=r"(less)
      : "f"(-fabsf(tiny)), "f"(0.0f));
  asm("{ .reg .pred p; setp.eq.ftz.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }"
      : "=r"(equal)
      : "f"(tiny), "f"(0.0f));
  asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }"
      : "=r"(kept)
      : "f"(-fabsf(tiny)), "f"(0.0f));
  EXPECT_EQ(i, less | equal << 1 | kept << 2, 6);
  double d = __longlong_as_double((long long)(1ull + m)), e = d * 3;
  EXPECT_EQ(i, __double_as_longlong(e), 3 * (1ll + m));
  half h = __ushort_as_half((unsigned short)(m % 300 + 1));
  EXPECT_EQ(i, __half_as_ushort(__hadd(h, h)), (unsigned short)(2 * (m % 300 + 1)));
  EXPECT_EQ(i, __float2int_ru(fabsf(tiny)), 1);
}
