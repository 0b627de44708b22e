//! alloc x 192*4 random-u32
//! alloc y 192*4 random-u32
//! alloc z 192*4 random-u32
//! alloc errors 32 zero
//! launch float_add_mul grid=3 block=64 args=x,y,z,errors
//! launch float_div_sqrt grid=3 block=64 args=x,y,errors
//! checks 9792
// Single-precision arithmetic in all four rounding directions, bit by bit against integer arithmetic: add,
// sub, mul, fma, div, rcp, sqrt, and rsqrt to nearest.
#include "check.cuh"
#include "soft.cuh"

// Any mantissa and sign, exponents within 2^-spread .. 2^spread.
__device__ float make(unsigned bits, int spread) {
  int exponent = (int)(bits >> 23 & 255) % (2 * spread + 1) - spread;
  return __uint_as_float((bits & 0x807fffffu) | (unsigned)(127 + exponent) << 23);
}

#define ROUND(v, sticky, mode) (unsigned)soft_round(v, sticky, mode, 24, 8)
// For each direction, an intrinsic and the exact value to round.
#define FOUR(i, name, exact, sticky, ...)                                                                    \
  do {                                                                                                       \
    Soft exact_ = (exact);                                                                                   \
    EXPECT_EQ(i, __float_as_uint(name##_rn(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_NEAREST));             \
    EXPECT_EQ(i, __float_as_uint(name##_rz(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_ZERO));                \
    EXPECT_EQ(i, __float_as_uint(name##_rd(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_DOWN));                \
    EXPECT_EQ(i, __float_as_uint(name##_ru(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_UP));                  \
  } while (0)

extern "C" __global__ void float_add_mul(const unsigned *x, const unsigned *y, const unsigned *z,
                                         unsigned *errors) {
  unsigned i = global_thread();
  float a = make(x[i], 20), b = make(y[i], 20), c = make(z[i], 20);
  FOUR(i, __fadd, soft_add(soft_float(a), soft_float(b)), false, a, b);
  FOUR(i, __fsub, soft_add(soft_float(a), soft_float(-b)), false, a, b);
  FOUR(i, __fmul, soft_mul(soft_float(a), soft_float(b)), false, a, b);
  FOUR(i, __fmaf, soft_add(soft_mul(soft_float(a), soft_float(b)), soft_float(c)), false, a, b, c);
  float tie = __uint_as_float(0x3f800000u | (x[i] & 0xff)), half = ldexpf(1.0f, -24); // exactly in the middle
  FOUR(i, __fadd, soft_add(soft_float(tie), soft_float(half)), false, tie, half);
  float cancelled = -__fmul_rn(a, b); // what fma alone keeps
  Soft rest = soft_add(soft_mul(soft_float(a), soft_float(b)), soft_float(cancelled));
  if (rest.m != 0) FOUR(i, __fmaf, rest, false, a, b, cancelled);
  float big = make(x[i], 0) * 1e38f, tiny = make(y[i], 3) * 1e-38f; // overflow and gradual underflow
  FOUR(i, __fmul, soft_mul(soft_float(big), soft_float(c)), false, big, c);
  FOUR(i, __fmul, soft_mul(soft_float(tiny), soft_float(c)), false, tiny, c);
}

extern "C" __global__ void float_div_sqrt(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread();
  float a = make(x[i], 60), b = make(y[i], 60);
  bool sticky;
  Soft q = soft_div(soft_float(a), soft_float(b), &sticky);
  FOUR(i, __fdiv, q, sticky, a, b);
  float deep = make(y[i] * 7, 20) * 1e-30f; // results that may be subnormal or overflow
  q = soft_div(soft_float(a), soft_float(1.0f / deep), &sticky);
  FOUR(i, __fdiv, q, sticky, a, 1.0f / deep);
  q = soft_div(soft_float(1.0f), soft_float(b), &sticky);
  FOUR(i, __frcp, q, sticky, b);
  q = soft_sqrt(soft_float(fabsf(a)), &sticky);
  FOUR(i, __fsqrt, q, sticky, fabsf(a));
  float square = (float)((x[i] & 4095) * (x[i] & 4095)); // exact roots
  EXPECT_EQ(i, __fsqrt_ru(square), (float)(x[i] & 4095));
  EXPECT_EQ(i, __fsqrt_rd(square), (float)(x[i] & 4095));
  // 1/sqrt rounded to nearest, from a root with 62 bits.
  Soft root = soft_sqrt(soft_float(fabsf(b)), &sticky);
  bool more;
  q = soft_div(soft_float(1.0f), root, &more);
  EXPECT_EQ(i, __float_as_uint(__frsqrt_rn(fabsf(b))), ROUND(q, more || sticky, ROUND_NEAREST));
}
