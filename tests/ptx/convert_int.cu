//! alloc x 256*8 random-u32
//! alloc errors 32 zero
//! launch float_to_int grid=2 block=128 args=x,errors
//! launch int_to_float grid=2 block=128 args=x,errors
//! launch int_to_int grid=2 block=128 args=x,errors
//! checks 19740
// Conversions between integers and floats of both sizes in all directions of rounding; beyond the range they
// stick at its end; NaN. Integers to narrower ones with and without saturation. Against integer arithmetic.
#include "check.cuh"
#include "soft.cuh"

typedef unsigned long long u64;
#define S32 -((__int128)1 << 31), ((__int128)1 << 31) - 1
#define U32 0, ((__int128)1 << 32) - 1
#define S64 -((__int128)1 << 63), ((__int128)1 << 63) - 1
#define U64 0, ((__int128)1 << 64) - 1
#define FOUR(i, name, type, exact, range, v)                                                                 \
  EXPECT_EQ(i, name##_rn(v), (type)soft_integer(exact, ROUND_NEAREST, range));                               \
  EXPECT_EQ(i, name##_rz(v), (type)soft_integer(exact, ROUND_ZERO, range));                                  \
  EXPECT_EQ(i, name##_rd(v), (type)soft_integer(exact, ROUND_DOWN, range));                                  \
  EXPECT_EQ(i, name##_ru(v), (type)soft_integer(exact, ROUND_UP, range))

extern "C" __global__ void float_to_int(const u64 *x, unsigned *errors) {
  unsigned i = global_thread(), bits = (unsigned)x[i];
  // Exponents from 2^-3 to 2^67: below, inside and beyond every range.
  float f = __uint_as_float((bits & 0x807fffffu) | (124u + (bits >> 23 & 255) % 71) << 23);
  double d =
      __longlong_as_double((long long)((x[i] & 0x800fffffffffffffull) | (1020ull + (x[i] >> 52) % 71) << 52));
  if (i < 16) f = (float)i - 7.5f, d = f; // ties
  Soft sf = soft_float(f), sd = soft_double(d);
  FOUR(i, __float2int, int, sf, S32, f);
  FOUR(i, __float2uint, unsigned, sf, U32, f);
  FOUR(i, __float2ll, long long, sf, S64, f);
  FOUR(i, __float2ull, u64, sf, U64, f);
  FOUR(i, __double2int, int, sd, S32, d);
  FOUR(i, __double2uint, unsigned, sd, U32, d);
  FOUR(i, __double2ll, long long, sd, S64, d);
  FOUR(i, __double2ull, u64, sd, U64, d);
  EXPECT_EQ(i, (int)f, (int)soft_integer(sf, ROUND_ZERO, S32));
  if (fabsf(f) < 1e9f) {
    EXPECT_EQ(i, (int)rintf(f), (int)soft_integer(sf, ROUND_NEAREST, S32));
    EXPECT_EQ(i, (int)floorf(f), (int)soft_integer(sf, ROUND_DOWN, S32));
    EXPECT_EQ(i, (int)ceil(d), (int)soft_integer(soft_double(d), ROUND_UP, S32));
    EXPECT_EQ(i, (int)truncf(f), (int)soft_integer(sf, ROUND_ZERO, S32));
  }
  float nan = __uint_as_float(0x7fc00000u | i);
  EXPECT_EQ(i, __float2int_rn(nan), 0);
  EXPECT_EQ(i, __float2uint_rz(nan), 0u);
  short s;
  unsigned char b;
  asm("{ .reg .s8 t; cvt.rni.sat.s8.f32 t, %1; cvt.s16.s8 %0, t; }" : "=h"(s) : "f"(f));
  EXPECT_EQ(i, s, (short)soft_integer(sf, ROUND_NEAREST, -128, 127));
  asm("cvt.rzi.sat.s16.f64 %0, %1;" : "=h"(s) : "d"(d));
  EXPECT_EQ(i, s, (short)soft_integer(sd, ROUND_ZERO, -32768, 32767));
  b = (unsigned char)(f < 0 ? 0 : f > 255 ? 255 : f);
  EXPECT_EQ(i, b, (unsigned char)soft_integer(sf, ROUND_ZERO, 0, 255));
}

#define FROM(i, name, bits, p, e, ...)                                                                       \
  EXPECT_EQ(i, bits(name##_rn(__VA_ARGS__)), soft_round(exact, false, ROUND_NEAREST, p, e));                 \
  EXPECT_EQ(i, bits(name##_rz(__VA_ARGS__)), soft_round(exact, false, ROUND_ZERO, p, e));                    \
  EXPECT_EQ(i, bits(name##_rd(__VA_ARGS__)), soft_round(exact, false, ROUND_DOWN, p, e));                    \
  EXPECT_EQ(i, bits(name##_ru(__VA_ARGS__)), soft_round(exact, false, ROUND_UP, p, e))
#define BITS(v) (u64) __double_as_longlong(v)

__device__ Soft soft_whole(__int128 v) {
  Soft s = {v < 0, (unsigned __int128)(v < 0 ? -v : v), 0};
  return s;
}

extern "C" __global__ void int_to_float(const u64 *x, unsigned *errors) {
  unsigned i = global_thread();
  u64 w = x[i] >> i % 64;
  long long s = (long long)x[i] >> i % 64;
  Soft exact = soft_whole((int)s);
  FROM(i, __int2float, __float_as_uint, 24, 8, (int)s);
  EXPECT_EQ(i, BITS(__int2double_rn((int)s)), soft_round(exact, false, ROUND_NEAREST, 53, 11));
  exact = soft_whole((unsigned)w);
  FROM(i, __uint2float, __float_as_uint, 24, 8, (unsigned)w);
  exact = soft_whole(s);
  FROM(i, __ll2float, __float_as_uint, 24, 8, s);
  FROM(i, __ll2double, BITS, 53, 11, s);
  exact = soft_whole((__int128)w);
  FROM(i, __ull2float, __float_as_uint, 24, 8, w);
  FROM(i, __ull2double, BITS, 53, 11, w);
  EXPECT_EQ(i, (float)(short)s, (float)((int)(s << 48 >> 48)));
  EXPECT_EQ(i, (float)(unsigned char)w, (float)(unsigned)(w & 255));
}

extern "C" __global__ void int_to_int(const u64 *x, unsigned *errors) {
  unsigned i = global_thread(), r, a = (unsigned)x[i] >> i % 32;
  long long s = (long long)x[i] >> i % 56, r64;
  int v = (int)x[i] >> i % 32;
  EXPECT_EQ(i, (signed char)v, (v & 255) > 127 ? (v & 255) - 256 : v & 255);
  EXPECT_EQ(i, (long long)v, v < 0 ? -1ll - (long long)(unsigned)~v : (long long)(unsigned)v);
  asm("{ .reg .s8 t; cvt.sat.s8.s32 t, %1; cvt.s32.s8 %0, t; }" : "=r"(r) : "r"(v));
  EXPECT_EQ(i, (int)r, v < -128 ? -128 : v > 127 ? 127 : v);
  asm("{ .reg .u16 t; cvt.sat.u16.s32 t, %1; cvt.u32.u16 %0, t; }" : "=r"(r) : "r"(v));
  EXPECT_EQ(i, r, v < 0 ? 0u : v > 65535 ? 65535u : (unsigned)v);
  asm("cvt.sat.s32.s64 %0, %1;" : "=r"(r) : "l"(s));
  EXPECT_EQ(i, (int)r, s < -2147483648ll ? (int)0x80000000 : s > 2147483647ll ? 0x7fffffff : (int)s);
  asm("cvt.sat.u32.s64 %0, %1;" : "=r"(r) : "l"(s));
  EXPECT_EQ(i, r, s < 0 ? 0u : s > 4294967295ll ? 0xffffffffu : (unsigned)s);
  asm("cvt.sat.s64.u64 %0, %1;" : "=l"(r64) : "l"(x[i]));
  EXPECT_EQ(i, r64, x[i] >> 63 ? 0x7fffffffffffffffll : (long long)x[i]);
  asm("cvt.sat.u32.s32 %0, %1;" : "=r"(r) : "r"(v));
  EXPECT_EQ(i, r, v < 0 ? 0u : (unsigned)v);
  asm("cvt.sat.s32.u32 %0, %1;" : "=r"(r) : "r"(a));
  EXPECT_EQ(i, r, a > 0x7fffffffu ? 0x7fffffffu : a);
  asm("cvt.s64.s32 %0, %1;" : "=l"(r64) : "r"(v));
  EXPECT_EQ(i, r64, (long long)v);
}
