// src/emu/isa/num_float.h, num_order.h and num_soft.c against the host's own arithmetic in each rounding mode.
#include "check.h"
#include "emu/isa/num_order.h"
#include "num_ref.h"

enum { ROUNDS = 150000 };

// The oracles. Volatile, so that nothing is computed before the mode is set or after it is reset.
#define ORACLE(name, type, count, expression)                                                                \
  static type name(type a_, type b_, type c_, NumRound rnd) {                                                \
    volatile type a = a_, b = b_, c = c_, r;                                                                 \
    ref_rounding(rnd);                                                                                       \
    r = expression;                                                                                          \
    ref_rounding(NUM_RN);                                                                                    \
    (void)a, (void)b, (void)c;                                                                               \
    return r;                                                                                                \
  }
ORACLE(host_add_f32, float, 2, a + b)
ORACLE(host_sub_f32, float, 2, a - b)
ORACLE(host_mul_f32, float, 2, a *b)
ORACLE(host_div_f32, float, 2, a / b)
ORACLE(host_fma_f32, float, 3, fmaf(a, b, c))
ORACLE(host_sqrt_f32, float, 1, sqrtf(a))
ORACLE(host_rint_f32, float, 1, nearbyintf(a))
ORACLE(host_add_f64, double, 2, a + b)
ORACLE(host_sub_f64, double, 2, a - b)
ORACLE(host_mul_f64, double, 2, a *b)
ORACLE(host_div_f64, double, 2, a / b)
ORACLE(host_fma_f64, double, 3, fma(a, b, c))
ORACLE(host_sqrt_f64, double, 1, sqrt(a))
ORACLE(host_rint_f64, double, 1, nearbyint(a))

static float host_cvt_f32_f64(double x, NumRound rnd) {
  volatile double a = x;
  volatile float r;
  ref_rounding(rnd);
  r = (float)a;
  ref_rounding(NUM_RN);
  return r;
}

#define SAME(T, got, want, what)                                                                             \
  CHECK_MSG(same_##T(got, want), "%s mode %d of %a, %a, %a: %a, expected %a", what, (int)rnd, (double)a,     \
            (double)b, (double)c, (double)(got), (double)(want))

TEST(f32_in_every_mode) {
  for (int i = 0; i < ROUNDS; i++) {
    float a = ref_f32(), b = i % 5 ? ref_f32() : -a * (1 + (float)(i % 3) * 0x1p-23f);
    float c = i % 3 ? ref_f32() : -(a * b) * (1 + (float)(i % 7 - 3) * 0x1p-23f);
    NumRound rnd = (NumRound)(i & 3);
    SAME(f32, num_add_f32(a, b, rnd), host_add_f32(a, b, c, rnd), "add");
    SAME(f32, num_sub_f32(a, b, rnd), host_sub_f32(a, b, c, rnd), "sub");
    SAME(f32, num_mul_f32(a, b, rnd), host_mul_f32(a, b, c, rnd), "mul");
    SAME(f32, num_div_f32(a, b, rnd), host_div_f32(a, b, c, rnd), "div");
    SAME(f32, num_rcp_f32(a, rnd), host_div_f32(1, a, c, rnd), "rcp");
    SAME(f32, num_sqrt_f32(a, rnd), host_sqrt_f32(a, b, c, rnd), "sqrt");
    SAME(f32, num_fma_f32(a, b, c, rnd), host_fma_f32(a, b, c, rnd), "fma");
    SAME(f32, num_rint_f32(a, rnd), host_rint_f32(a, b, c, rnd), "rint");
  }
}

TEST(f64_in_every_mode) {
  for (int i = 0; i < ROUNDS; i++) {
    double a = ref_f64(), b = i % 5 ? ref_f64() : -a * (1 + (i % 3) * 0x1p-52);
    double c = i % 3 ? ref_f64() : -(a * b) * (1 + (i % 7 - 3) * 0x1p-52);
    NumRound rnd = (NumRound)(i & 3);
    SAME(f64, num_add_f64(a, b, rnd), host_add_f64(a, b, c, rnd), "add");
    SAME(f64, num_sub_f64(a, b, rnd), host_sub_f64(a, b, c, rnd), "sub");
    SAME(f64, num_mul_f64(a, b, rnd), host_mul_f64(a, b, c, rnd), "mul");
    SAME(f64, num_div_f64(a, b, rnd), host_div_f64(a, b, c, rnd), "div");
    SAME(f64, num_rcp_f64(a, rnd), host_div_f64(1, a, c, rnd), "rcp");
    SAME(f64, num_sqrt_f64(a, rnd), host_sqrt_f64(a, b, c, rnd), "sqrt");
    SAME(f64, num_fma_f64(a, b, c, rnd), host_fma_f64(a, b, c, rnd), "fma");
    SAME(f64, num_rint_f64(a, rnd), host_rint_f64(a, b, c, rnd), "rint");
  }
}

// The software paths, whichever the compiler's target: to nearest, too.
TEST(software_to_nearest) {
  for (int i = 0; i < ROUNDS; i++) {
    double a = ref_f64(), b = ref_f64(), c = i % 3 ? ref_f64() : -(a * b) * (1 + (i % 7 - 3) * 0x1p-52);
    NumRound rnd = NUM_RN;
    SAME(f64, sol_num_fma_f64(a, b, c, NUM_RN), host_fma_f64(a, b, c, NUM_RN), "fma");
    SAME(f64, sol_num_mul_f64(a, b, NUM_RN), host_mul_f64(a, b, c, NUM_RN), "mul");
    SAME(f64, sol_num_div_f64(a, b, NUM_RN), host_div_f64(a, b, c, NUM_RN), "div");
    SAME(f64, sol_num_sqrt_f64(a, NUM_RN), host_sqrt_f64(a, b, c, NUM_RN), "sqrt");
    float x = ref_f32(), y = ref_f32(),
          z = i % 3 ? ref_f32() : -(x * y) * (1 + (float)(i % 7 - 3) * 0x1p-23f);
    float soft = (float)num_odd_sum((double)x * y, z), want = host_fma_f32(x, y, z, NUM_RN);
    CHECK_MSG(same_f32(soft, want), "fma of %a, %a, %a: %a, expected %a", (double)x, (double)y, (double)z,
              (double)soft, (double)want);
  }
}

// Signs of zeros, overflow and underflow, spelt out.
TEST(f32_edges) {
  float tiny = 0x1p-149f, large = FLT_MAX;
  CHECK(num_bits_f32(num_add_f32(1, -1, NUM_RM)) == 0x80000000 &&
        num_bits_f32(num_add_f32(1, -1, NUM_RP)) == 0);
  CHECK(num_bits_f32(num_add_f32(0.0f, -0.0f, NUM_RM)) == 0x80000000 &&
        num_bits_f32(num_add_f32(0, 0, NUM_RM)) == 0);
  CHECK(num_bits_f32(num_fma_f32(-0.0f, 1, 0, NUM_RN)) == 0 &&
        num_bits_f32(num_fma_f32(-0.0f, 1, -0.0f, NUM_RP)) == 0x80000000);
  CHECK(num_mul_f32(tiny, tiny, NUM_RP) == tiny && num_mul_f32(tiny, tiny, NUM_RN) == 0);
  CHECK(num_mul_f32(tiny, -tiny, NUM_RM) == -tiny &&
        num_bits_f32(num_mul_f32(tiny, -tiny, NUM_RP)) == 0x80000000);
  CHECK(num_mul_f32(large, 2, NUM_RZ) == large && num_mul_f32(large, 2, NUM_RP) == INFINITY);
  CHECK(num_mul_f32(large, -2, NUM_RM) == -INFINITY && num_mul_f32(large, -2, NUM_RP) == -large);
  CHECK(num_div_f32(1, 0, NUM_RZ) == INFINITY && num_div_f32(-1, 0, NUM_RP) == -INFINITY);
  CHECK(num_bits_f32(num_div_f32(0, 0, NUM_RN)) == NUM_NAN_F32 &&
        num_bits_f32(num_sqrt_f32(-1, NUM_RZ)) == NUM_NAN_F32);
  CHECK(num_bits_f32(num_sqrt_f32(-0.0f, NUM_RP)) == 0x80000000);
  CHECK(num_bits_f32(num_fma_f32(INFINITY, 0, 1, NUM_RM)) == NUM_NAN_F32);
}

TEST(f64_edges) {
  double tiny = 0x1p-1074, large = DBL_MAX;
  CHECK(num_bits_f64(num_add_f64(1, -1, NUM_RM)) == 1ull << 63 &&
        num_bits_f64(num_add_f64(1, -1, NUM_RZ)) == 0);
  CHECK(num_mul_f64(tiny, tiny, NUM_RP) == tiny && num_mul_f64(-tiny, tiny, NUM_RM) == -tiny);
  CHECK(num_mul_f64(large, large, NUM_RZ) == large && num_mul_f64(large, large, NUM_RP) == INFINITY);
  CHECK(num_fma_f64(large, 2, -large, NUM_RN) == large &&
        num_fma_f64(large, large, -INFINITY, NUM_RZ) == -INFINITY);
  CHECK(num_fma_f64(tiny, 0.5, tiny, NUM_RN) == 2 * tiny && num_fma_f64(tiny, 0.5, tiny, NUM_RZ) == tiny);
  CHECK(num_sqrt_f64(tiny, NUM_RZ) == 0x1p-537 && num_sqrt_f64(2, NUM_RZ) < num_sqrt_f64(2, NUM_RP));
}

// NaN: f32 has one, f64 hands on its first operand's.
TEST(nan_results) {
  float quiet = num_f32(0x7fc12345);
  double p = num_f64(0x7ff0000000000123), q = num_f64(0xfff8000000000456);
  CHECK(num_bits_f32(num_add_f32_rn(quiet, 1)) == NUM_NAN_F32 &&
        num_bits_f32(num_neg_f32(quiet)) == NUM_NAN_F32);
  CHECK(num_bits_f32(num_fma_f32(1, quiet, 1, NUM_RP)) == NUM_NAN_F32);
  CHECK(num_bits_f64(num_add_f64_rn(p, q)) == 0x7ff8000000000123 &&
        num_bits_f64(num_mul_f64_rn(q, p)) == 0xfff8000000000456);
  CHECK(num_bits_f64(num_add_f64_rn(INFINITY, -INFINITY)) == NUM_NAN_F64);
  CHECK(num_bits_f64(num_fma_f64_rn(1, q, p)) == 0x7ff8000000000123);
  CHECK(num_bits_f64(num_fma_f64(1, q, p, NUM_RZ)) == 0x7ff8000000000123);
  CHECK(num_bits_f64(num_sub_f64(1, q, NUM_RM)) == 0xfff8000000000456);
  CHECK(num_bits_f32(num_cvt_f32_f64(q, NUM_RN)) == 0xffc00000 &&
        num_bits_f64(num_cvt_f64_f32(num_f32(0xff800001))) == 0xfff8000020000000);
}

// .ftz: exact result rounded to 24 bits as if there were smaller exponents; below 2^-126, zero. By long
// double, whose 64 bits hold every product, and quotients closely enough.
static float flushed(long double exact, NumRound rnd) {
  int e;
  if (exact == 0 || exact != exact || isinf(exact)) return (float)exact;
  long double m = frexpl(exact, &e); // [0.5, 1)
  ref_rounding(rnd);
  volatile long double scaled = m * 0x1p24L, rounded = rintl(scaled);
  ref_rounding(NUM_RN);
  long double unbounded = ldexpl(rounded, e - 24);
  if (fabsl(unbounded) < 0x1p-126L) return copysignf(0, (float)m);
  volatile long double x = exact;
  volatile float r;
  ref_rounding(rnd);
  r = (float)x;
  ref_rounding(NUM_RN);
  return r;
}
static float flush(float a) {
  return fabsf(a) < FLT_MIN ? copysignf(0, a) : a;
}

TEST(ftz) {
  for (int i = 0; i < ROUNDS; i++) {
    NumRound rnd = (NumRound)(i & 3);
    float a = ref_f32(), b = i & 4 ? ref_f32() : 0x1p-126f / a * (1 + (float)(i % 9 - 4) * 0x1p-24f), c = 0;
    if (i & 8)
      a = num_f32((num_bits_f32(a) & 0x807fffff) | 0x20000000),
      b = num_f32((num_bits_f32(b) & 0x807fffff) | (0x1f800000 + (i & 0x800000)));
    float x = flush(a), y = flush(b);
    SAME(f32, num_mul_ftz_f32(a, b, rnd), flushed((long double)x * y, rnd), "mul.ftz");
    SAME(f32, num_div_ftz_f32(a, b, rnd),
         x == 0 || y == 0 || isinf(x) || isinf(y) || x != x || y != y ? x / y
                                                                      : flushed((long double)x / y, rnd),
         "div.ftz");
    SAME(f32, num_add_ftz_f32(a, b, rnd), flush(host_add_f32(x, y, c, rnd)), "add.ftz");
    SAME(f32, num_rcp_ftz_f32(a, rnd), flush(host_div_f32(1, x, c, rnd)), "rcp.ftz");
    SAME(f32, num_sqrt_ftz_f32(a, rnd), host_sqrt_f32(x, y, c, rnd), "sqrt.ftz");
    double wide =
        num_f64(((uint64_t)num_bits_f32(a) & 0x80000000) << 32 | ((896 + (uint64_t)(i >> 2) % 3) << 52) |
                (ref_random() >> 12 & ~(0xffffull >> (i & 15))));
    SAME(f32, num_cvt_ftz_f32_f64(wide, rnd), flushed(wide, rnd), "cvt.ftz");
  }
  // One step below 2^-126 is not rounded up to it, half a step is.
  CHECK(num_mul_ftz_f32_rn(1 - 0x1p-24f, 0x1p-126f) == 0 &&
        num_mul_f32_rn(1 - 0x1p-24f, 0x1p-126f) == 0x1p-126f);
  float near_one = 1 - 0x1p-13f, above_one = 1 + 0x1p-13f;
  CHECK(num_mul_ftz_f32_rn(near_one * 0x1p-63f, above_one * 0x1p-63f) == 0x1p-126f);
  CHECK(num_mul_ftz_f32(near_one * 0x1p-63f, above_one * 0x1p-63f, NUM_RZ) == 0);
  CHECK(num_fma_ftz_f32_rn(near_one * 0x1p-60f, above_one * 0x1p-65f, -0x1p-126f) == 0x1p-126f);
  CHECK(num_fma_ftz_f32(near_one * 0x1p-60f, above_one * 0x1p-65f, -0x1p-126f, NUM_RM) == 0);
  CHECK(num_fma_ftz_f32_rn(0x1p127f, 0x1p-126f, -2) == 0 && num_fma_ftz_f32_rn(0x1p100f, 0, 0x1p-127f) == 0);
  CHECK(num_fma_ftz_f32_rn(0x1p100f, 0x1p-20f, 1) == 0x1p80f &&
        num_fma_ftz_f32_rn(INFINITY, 1, 1) == INFINITY);
}

// fma.ftz where c nearly cancels the product: an exact double tells, when the exponents are close.
TEST(fma_ftz) {
  for (int i = 0; i < ROUNDS; i++) {
    NumRound rnd = (NumRound)(i & 3);
    uint64_t r = ref_random();
    float a = num_f32((uint32_t)(r & 0x803fffff) | 0x22000000),
          b = num_f32((uint32_t)(r >> 32 & 0x803fffff) | 0x1e800000);
    float c = -(a * b) * (1 + (float)(i % 7 - 3) * 0x1p-23f);
    long double exact = (long double)a * b + c; // 48 bits and 24, at most 2 apart
    SAME(f32, num_fma_ftz_f32(a, b, c, rnd), exact == 0 ? num_fma_f32(a, b, c, rnd) : flushed(exact, rnd),
         "fma.ftz");
  }
}

TEST(conversions) {
  for (int i = 0; i < ROUNDS; i++) {
    double a = i & 1 ? ref_f64() : (double)ref_f32() * (1 + (i % 5 - 2) * 0x1p-52), b = 0, c = 0;
    NumRound rnd = (NumRound)(i >> 1 & 3);
    SAME(f32, num_cvt_f32_f64(a, rnd), host_cvt_f32_f64(a, rnd), "cvt");
  }
  CHECK(num_cvt_f64_f32(0x1p-149f) == 0x1p-149);
}

TEST(saturation_and_flushing) {
  CHECK(num_sat_f32(2) == 1 && num_sat_f32(0.25f) == 0.25f && num_bits_f32(num_sat_f32(-0.0f)) == 0);
  CHECK(num_bits_f32(num_sat_f32(NAN)) == 0 && num_sat_f32(-INFINITY) == 0 && num_sat_f64(INFINITY) == 1);
  CHECK(num_bits_f32(num_ftz_f32(-0x1p-127f)) == 0x80000000 && num_ftz_f32(0x1p-126f) == 0x1p-126f);
  CHECK(num_ftz_f32(INFINITY) == INFINITY);
}

TEST(minima_and_maxima) {
  uint32_t minus_zero = 0x80000000;
  CHECK(num_bits_f32(num_min_f32(0, -0.0f)) == minus_zero &&
        num_bits_f32(num_min_f32(-0.0f, 0)) == minus_zero);
  CHECK(num_bits_f32(num_max_f32(0, -0.0f)) == 0 && num_bits_f32(num_max_f32(-0.0f, 0)) == 0);
  CHECK(num_bits_f64(num_min_f64(0, -0.0)) == 1ull << 63 && num_bits_f64(num_max_f64(-0.0, 0)) == 0);
  CHECK(num_min_f32(NAN, 1) == 1 && num_max_f32(1, NAN) == 1 &&
        num_bits_f32(num_min_f32(NAN, NAN)) == NUM_NAN_F32);
  CHECK(num_bits_f32(num_min_nan_f32(NAN, 1)) == NUM_NAN_F32 &&
        num_bits_f32(num_max_nan_f32(1, NAN)) == NUM_NAN_F32);
  CHECK(num_min_f32(-INFINITY, 3) == -INFINITY && num_max_nan_f32(2, 3) == 3);
  CHECK(num_xorsign_f32(num_min_f32(num_abs_f32(-3), num_abs_f32(2)), -3, 2) == -2);
  CHECK(num_xorsign_f32(num_max_f32(num_abs_f32(-3), num_abs_f32(-2)), -3, -2) == 3);
  CHECK(num_bits_f32(num_xorsign_f32(num_f32(NUM_NAN_F32), -1, 1)) == NUM_NAN_F32);
  for (int i = 0; i < ROUNDS; i++) {
    float a = ref_f32(), b = i & 1 ? ref_f32() : -a;
    if (a == a && b == b && a != b)
      CHECK(num_min_f32(a, b) == fminf(a, b) && num_max_f32(a, b) == fmaxf(a, b));
    double x = ref_f64(), y = ref_f64();
    if (x == x && y == y && x != y)
      CHECK(same_f64(num_min_f64(x, y), fmin(x, y)) && same_f64(num_max_f64(x, y), fmax(x, y)));
  }
}

TEST(comparisons) {
  static const float values[] = {-INFINITY, -1, -0.0f, 0.0f, 1, INFINITY, NAN};
  for (int i = 0; i < 7; i++) {
    for (int j = 0; j < 7; j++) {
      float a = values[i], b = values[j];
      bool unordered = isunordered(a, b),
           holds[] = {a == b,          !(a == b) && !unordered, isless(a, b), islessequal(a, b),
                      isgreater(a, b), isgreaterequal(a, b)};
      for (int c = 0; c < 6; c++) {
        CHECK(num_cmp_f32(a, b, (NumCmp)(NUM_EQ + c)) == holds[c]);
        CHECK(num_cmp_f32(a, b, (NumCmp)(NUM_EQU + c)) == (holds[c] || unordered));
        CHECK(num_cmp_f64((double)a, (double)b, (NumCmp)(NUM_EQ + c)) == holds[c]);
        CHECK(num_cmp_f64((double)a, (double)b, (NumCmp)(NUM_EQU + c)) == (holds[c] || unordered));
      }
      CHECK(num_cmp_f32(a, b, NUM_NUM) == !unordered && num_cmp_f32(a, b, NUM_NAN) == unordered);
    }
  }
}

TEST(properties) {
  static const struct {
    float value;
    const char *holds; // of finite, infinite, number, notanumber, normal, subnormal
  } cases[] = {{0, "101010"},         {-0.0f, "101010"},     {1, "101010"},          {FLT_MAX, "101010"},
               {FLT_MIN, "101010"},   {0x1p-127f, "101001"}, {-0x1p-149f, "101001"}, {INFINITY, "011000"},
               {-INFINITY, "011000"}, {NAN, "000100"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int t = 0; t < 6; t++)
      CHECK_MSG(num_testp_f32(cases[i].value, (NumTestp)t) == (cases[i].holds[t] == '1'), "testp %d of %a", t,
                (double)cases[i].value);
  CHECK(num_testp_f64(0x1p-1030, NUM_SUBNORMAL) && !num_testp_f64(0x1p-127, NUM_SUBNORMAL) &&
        num_testp_f64(DBL_MAX, NUM_FINITE));
  CHECK(num_copysign_f32(-1, 2) == -2 && num_copysign_f64(1, -2) == 2); // PTX: the sign of the first
  CHECK(num_abs_f32(-2) == 2 && num_abs_f64(-2) == 2 && num_neg_f64(2) == -2);
  CHECK(num_slct_f32(-0.0f) && num_slct_f32(1) && !num_slct_f32(-1) && !num_slct_f32(NAN));
}

CHECK_MAIN
