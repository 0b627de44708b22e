//! alloc x 256*8 random-u32
//! alloc errors 32 zero
//! launch narrow grid=2 block=128 args=x,errors
//! launch special grid=1 block=32 args=errors
//! checks 5533
// Conversions between f64, f32, f16 and bf16 in all directions of rounding, into the subnormals and beyond
// the largest; saturation; packed conversions; ftz.
#include "check.cuh"
#include "soft.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

#define NARROW(i, call, exact, mode, p, e) EXPECT_EQ(i, call, soft_round(exact, false, mode, p, e))
#define HALF(v)                            (u64) __half_as_ushort(v)
#define BRAIN(v)                           (u64) __bfloat16_as_ushort(v)
#define SINGLE(v)                          (u64) __float_as_uint(v)

extern "C" __global__ void narrow(const u64 *x, unsigned *errors) {
  unsigned i = global_thread(), bits = (unsigned)x[i];
  // f32 between 2^-30 and 2^20: through all of f16's range and out of it on both sides.
  float f = __uint_as_float((bits & 0x807fffffu) | (97u + (bits >> 23 & 255) % 51) << 23);
  if (i % 8 == 0) f = __uint_as_float(__float_as_uint(f) & 0xfffff000u); // ties and exact values
  Soft sf = soft_float(f);
  NARROW(i, HALF(__float2half_rn(f)), sf, ROUND_NEAREST, 11, 5);
  NARROW(i, HALF(__float2half_rz(f)), sf, ROUND_ZERO, 11, 5);
  NARROW(i, HALF(__float2half_rd(f)), sf, ROUND_DOWN, 11, 5);
  NARROW(i, HALF(__float2half_ru(f)), sf, ROUND_UP, 11, 5);
  float any = __uint_as_float(bits); // every exponent
  if (isfinite(any)) {
    NARROW(i, BRAIN(__float2bfloat16_rn(any)), soft_float(any), ROUND_NEAREST, 8, 8);
    NARROW(i, BRAIN(__float2bfloat16_rz(any)), soft_float(any), ROUND_ZERO, 8, 8);
    NARROW(i, BRAIN(__float2bfloat16_rd(any)), soft_float(any), ROUND_DOWN, 8, 8);
    NARROW(i, BRAIN(__float2bfloat16_ru(any)), soft_float(any), ROUND_UP, 8, 8);
    EXPECT_EQ(i, (u64)__double_as_longlong((double)any),
              soft_round(soft_float(any), false, ROUND_ZERO, 53, 11));
  }
  // f64 between 2^-160 and 2^140.
  double d =
      __longlong_as_double((long long)((x[i] & 0x800fffffffffffffull) | (863ull + (x[i] >> 52) % 301) << 52));
  Soft sd = soft_double(d);
  NARROW(i, SINGLE(__double2float_rn(d)), sd, ROUND_NEAREST, 24, 8);
  NARROW(i, SINGLE(__double2float_rz(d)), sd, ROUND_ZERO, 24, 8);
  NARROW(i, SINGLE(__double2float_rd(d)), sd, ROUND_DOWN, 24, 8);
  NARROW(i, SINGLE(__double2float_ru(d)), sd, ROUND_UP, 24, 8);
  double e =
      __longlong_as_double((long long)((x[i] & 0x800fffffffffffffull) | (993ull + (x[i] >> 52) % 51) << 52));
  NARROW(i, HALF(__double2half(e)), soft_double(e), ROUND_NEAREST, 11, 5);
  // Back: every half and every bf16 is a float.
  unsigned short h = (unsigned short)bits;
  if ((h & 0x7c00) != 0x7c00)
    EXPECT_EQ(i, SINGLE(__half2float(__ushort_as_half(h))),
              soft_round(soft_decode(h, 11, 5), false, ROUND_ZERO, 24, 8));
  EXPECT_EQ(i, __float_as_uint(__bfloat162float(__ushort_as_bfloat16(h))), (unsigned)h << 16);
  // Integers and halves.
  int v = (int)bits >> i % 32;
  Soft whole = {v < 0, (unsigned __int128)(v < 0 ? 0u - (unsigned)v : (unsigned)v), 0};
  NARROW(i, HALF(__int2half_rn(v)), whole, ROUND_NEAREST, 11, 5);
  NARROW(i, HALF(__int2half_ru(v)), whole, ROUND_UP, 11, 5);
  half within = __float2half_rn(f);
  if (!__hisinf(within)) {
    Soft sh = soft_decode(__half_as_ushort(within), 11, 5);
    EXPECT_EQ(i, __half2int_rd(within), (int)soft_integer(sh, ROUND_DOWN, -100000, 100000));
    EXPECT_EQ(i, __half2uint_rn(within), (unsigned)soft_integer(sh, ROUND_NEAREST, 0, 100000));
    EXPECT_EQ(i, __half2short_rz(within), (short)soft_integer(sh, ROUND_ZERO, -32768, 32767));
  }
#if __CUDA_ARCH__ >= 800
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(f), "f"(-f));
  EXPECT_EQ(i, packed, (unsigned)(HALF(__float2half_rn(f)) << 16 | HALF(__float2half_rn(-f))));
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(f), "f"(-f));
  unsigned brain = (unsigned)BRAIN(__float2bfloat16_rn(fabsf(f)));
  EXPECT_EQ(i, packed, f > 0 ? brain << 16 : brain);
  unsigned tf32;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf32) : "f"(f)); // to nearest, ties away: adds half and cuts
  EXPECT_EQ(i, tf32 & 0xffffe000u, (__float_as_uint(f) + 0x1000u) & 0xffffe000u);
#endif
}

extern "C" __global__ void special(unsigned *errors) {
  unsigned i = threadIdx.x;
  float inf = __uint_as_float(0x7f800000u | i << 31), nan = __uint_as_float(0x7fc12345u), r;
  volatile float tiny = __uint_as_float(0x00000123u + i);
  EXPECT_EQ(i, HALF(__float2half_rn(inf)), 0x7c00u | (i & 1) << 15);
  EXPECT_EQ(i, HALF(__float2half_rz(i & 1 ? -1e6f : 1e6f)), 0x7bffu | (i & 1) << 15);
  EXPECT_EQ(i, BRAIN(__float2bfloat16_rn(inf)), 0x7f80u | (i & 1) << 15);
  EXPECT(i, __hisnan(__float2half(nan)) && __hisnan(__float2bfloat16(nan)) && isnan((float)(double)nan));
  asm("cvt.sat.f32.f32 %0, %1;" : "=f"(r) : "f"((float)i / 16 - 0.5f));
  EXPECT_EQ(i, r, i < 8 ? 0.0f : i > 24 ? 1.0f : (float)i / 16 - 0.5f);
  asm("cvt.rn.sat.f32.f64 %0, %1;" : "=f"(r) : "d"((double)nan));
  EXPECT_EQ(i, r, 0.0f);
  double kept, flushed;
  asm("cvt.f64.f32 %0, %1;" : "=d"(kept) : "f"(tiny));
  asm("cvt.ftz.f64.f32 %0, %1;" : "=d"(flushed) : "f"(tiny));
  EXPECT_EQ(i, kept, ldexp((double)(0x123 + i), -149));
  EXPECT_EQ(i, flushed, 0.0);
}
