//! alloc errors 32 zero
//! launch nan_inf grid=1 block=64 args=errors
//! checks 1008
// NaN and infinity through arithmetic, min and max, all ordered and unordered comparisons, testp, set, slct
// and saturation; a NaN made by f32 arithmetic is 0x7fffffff.
#include "check.cuh"

__device__ float pick(unsigned i) {
  const unsigned values[8] = {0x7fc01234u, 0xff812345u, 0x7f800000u, 0xff800000u,
                              0,           0x80000000u, 0x3fc00000u, 0xc0200000u};
  return __uint_as_float(values[i & 7]); // NaN, signalling NaN, infinities, zeros, 1.5, -2.5
}

#define TEST(name, a, b)                                                                                     \
  ({                                                                                                         \
    int r_;                                                                                                  \
    asm("{ .reg .pred p; setp." name ".f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(r_) : "f"(a), "f"(b)); \
    r_;                                                                                                      \
  })
#define IS(name, a)                                                                                          \
  ({                                                                                                         \
    int r_;                                                                                                  \
    asm("{ .reg .pred p; testp." name ".f32 p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(r_) : "f"(a));            \
    r_;                                                                                                      \
  })

// -1, 0, 1, or 2 where either is a NaN; by integers alone.
__device__ int order(float a, float b) {
  unsigned x = __float_as_uint(a), y = __float_as_uint(b);
  if ((x << 1) > 0xff000000u || (y << 1) > 0xff000000u) return 2;
  long long p = x >> 31 ? -(long long)(x << 1) : (long long)(x << 1),
            q = y >> 31 ? -(long long)(y << 1) : (long long)(y << 1);
  return p < q ? -1 : p > q;
}

extern "C" __global__ void nan_inf(unsigned *errors) {
  unsigned i = threadIdx.x;
  float a = pick(i), b = pick(i / 8), r;
  int o = order(a, b);
  bool nan_a = order(a, a) == 2, nan_b = order(b, b) == 2, inf_a = !nan_a && isinf(a),
       inf_b = !nan_b && isinf(b);
  EXPECT_EQ(i, TEST("lt", a, b) | TEST("le", a, b) << 1 | TEST("gt", a, b) << 2 | TEST("ge", a, b) << 3,
            (o == -1) | (o < 1) << 1 | (o == 1) << 2 | (o == 0 || o == 1) << 3);
  EXPECT_EQ(i, TEST("eq", a, b) | TEST("ne", a, b) << 1 | TEST("num", a, b) << 2 | TEST("nan", a, b) << 3,
            (o == 0) | (o == -1 || o == 1) << 1 | (o != 2) << 2 | (o == 2) << 3);
  EXPECT_EQ(i, TEST("ltu", a, b) | TEST("leu", a, b) << 1 | TEST("gtu", a, b) << 2 | TEST("geu", a, b) << 3,
            (o == -1 || o == 2) | (o != 1) << 1 | (o >= 1) << 2 | (o >= 0) << 3);
  EXPECT_EQ(i, TEST("equ", a, b) | TEST("neu", a, b) << 1, (o == 0 || o == 2) | (o != 0) << 1);
  EXPECT_EQ(i, IS("finite", a) | IS("infinite", a) << 1 | IS("number", a) << 2 | IS("notanumber", a) << 3,
            (!nan_a && !inf_a) | inf_a << 1 | !nan_a << 2 | nan_a << 3);
  float sum = a + b, product = a * b;
  bool sum_nan = nan_a || nan_b || (inf_a && inf_b && a != b);
  bool product_nan = nan_a || nan_b || (inf_a && b == 0) || (inf_b && a == 0);
  EXPECT_EQ(i, __float_as_uint(sum) == 0x7fffffffu, sum_nan);
  EXPECT_EQ(i, __float_as_uint(product) == 0x7fffffffu, product_nan);
  EXPECT_EQ(i, isnan(sum), sum_nan);
  EXPECT_EQ(i, isnan((double)a + (double)b), sum_nan);
  // The other one wins over a NaN; of two NaNs comes a NaN.
  asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  if (nan_a && nan_b)
    EXPECT_EQ(i, __float_as_uint(r), 0x7fffffffu);
  else if (o == 2)
    EXPECT_EQ(i, r, nan_a ? b : a);
  else if (o)
    EXPECT_EQ(i, r, o < 0 ? a : b);
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  if (o == 2 && !(nan_a && nan_b))
    EXPECT_EQ(i, r, nan_a ? b : a);
  else if (o == 1 || o == -1)
    EXPECT_EQ(i, r, o > 0 ? a : b);
  if (o == 0 && a == 0)
    EXPECT_EQ(i, __float_as_uint(fmaxf(a, b)), __float_as_uint(a) & __float_as_uint(b)); // -0 < +0
#if __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  EXPECT_EQ(i, __float_as_uint(r) == 0x7fffffffu, o == 2);
#endif
  EXPECT_EQ(i, __saturatef(a), nan_a || a <= 0 ? 0.0f : a >= 1 ? 1.0f : a);
  asm("slct.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(1.0f), "f"(2.0f), "f"(a));
  EXPECT_EQ(i, r, a >= 0 ? 1.0f : 2.0f);
  unsigned word;
  asm("set.le.u32.f32 %0, %1, %2;" : "=r"(word) : "f"(a), "f"(b));
  EXPECT_EQ(i, word, o < 1 ? 0xffffffffu : 0u);
  asm("set.gtu.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  EXPECT_EQ(i, r, o >= 1 ? 1.0f : 0.0f);
  asm("copysign.f32 %0, %1, %2;" : "=f"(r) : "f"(b), "f"(7.0f));
  EXPECT_EQ(i, __float_as_uint(r), 0x40e00000u | (__float_as_uint(b) & 0x80000000u));
}
