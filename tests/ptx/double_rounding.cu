//! alloc x 96*8 random-u32
//! alloc y 96*8 random-u32
//! alloc z 96*8 random-u32
//! alloc errors 32 zero
//! launch double_rounding grid=3 block=32 args=x,y,z,errors
//! checks 3072
// Double-precision arithmetic in all four rounding directions against 128-bit integers: add, mul, fma, div,
// rcp, sqrt.
#include "check.cuh"
#include "soft.cuh"

typedef unsigned long long u64;

__device__ double make(u64 bits, int spread) {
  int exponent = (int)((unsigned)(bits >> 52) & 2047u) % (2 * spread + 1) - spread;
  return __longlong_as_double((long long)((bits & 0x800fffffffffffffull) | (u64)(1023 + exponent) << 52));
}

#define ROUND(v, sticky, mode) soft_round(v, sticky, mode, 53, 11)
#define BITS(v)                (u64) __double_as_longlong(v)
#define FOUR(i, name, exact, sticky, ...)                                                                    \
  do {                                                                                                       \
    Soft exact_ = (exact);                                                                                   \
    EXPECT_EQ(i, BITS(name##_rn(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_NEAREST));                        \
    EXPECT_EQ(i, BITS(name##_rz(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_ZERO));                           \
    EXPECT_EQ(i, BITS(name##_rd(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_DOWN));                           \
    EXPECT_EQ(i, BITS(name##_ru(__VA_ARGS__)), ROUND(exact_, sticky, ROUND_UP));                             \
  } while (0)

extern "C" __global__ void double_rounding(const u64 *x, const u64 *y, const u64 *z, unsigned *errors) {
  unsigned i = global_thread();
  double a = make(x[i], 20), b = make(y[i], 20), c = make(z[i], 3), d = make(x[i] * 3, 3),
         e = make(y[i] * 5, 3);
  bool sticky;
  FOUR(i, __dadd, soft_add(soft_double(a), soft_double(b)), false, a, b);
  FOUR(i, __dmul, soft_mul(soft_double(a), soft_double(b)), false, a, b);
  FOUR(i, __fma, soft_add(soft_mul(soft_double(d), soft_double(e)), soft_double(c)), false, d, e, c);
  Soft q = soft_div(soft_double(a), soft_double(b), &sticky);
  FOUR(i, __ddiv, q, sticky, a, b);
  q = soft_div(soft_double(1.0), soft_double(b), &sticky);
  FOUR(i, __drcp, q, sticky, b);
  q = soft_sqrt(soft_double(fabs(a)), &sticky);
  FOUR(i, __dsqrt, q, sticky, fabs(a));
  // Gradual underflow and overflow of products.
  double tiny = make(x[i], 3) * 1e-300, small = make(y[i], 30) * 1e-15, huge = make(z[i], 3) * 1e300;
  FOUR(i, __dmul, soft_mul(soft_double(tiny), soft_double(small)), false, tiny, small);
  FOUR(i, __dmul, soft_mul(soft_double(huge), soft_double(a * 4096)), false, huge, a * 4096);
}
