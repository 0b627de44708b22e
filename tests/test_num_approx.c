// src/emu/isa/num_approx.h: errors against libm in double, all over the range, within what the PTX manual allows
// and what the header claims; special operands as in the manual's tables.
#include "check.h"
#include "emu/isa/num_approx.h"
#include "num_ref.h"

enum { STRIDE = 2039, DENSE = 13 };

static double ulp(double exact) { // of the float nearby
  int e;
  frexp(exact, &e);
  return ldexp(1, (e - 1 < -126 ? -126 : e - 1) - 23);
}
static double in_ulps(float got, double exact) {
  if (fabs(exact) >= 0x1.ffffffp127) return isinf(got) && (got > 0) == (exact > 0) ? 0 : (double)INFINITY;
  return fabs((double)got - exact) / ulp(exact);
}

static double exact_rcp(double x) {
  return 1 / x;
}
static double exact_rsqrt(double x) {
  return 1 / sqrt(x);
}

typedef struct Worst {
  double ulps, relative, absolute;
} Worst;

// The worst errors over floats from `low` to `high` (as bits), every `stride`-th, with either sign where
// `both`.
static Worst worst(float (*f)(float), double (*exact)(double), float low, float high, uint32_t stride,
                   bool both) {
  Worst w = {0, 0, 0};
  for (uint64_t u = num_bits_f32(low); u <= num_bits_f32(high); u += stride) {
    for (int sign = 0; sign < (both ? 2 : 1); sign++) {
      float x = num_f32((uint32_t)u | (uint32_t)sign << 31), got = f(x);
      double want = exact((double)x), off = fabs((double)got - want), ulps = in_ulps(got, want);
      if (!(ulps <= w.ulps)) w.ulps = ulps;
      if (fabs(want) < 0x1.ffffffp127 && want != 0 && !(off / fabs(want) <= w.relative))
        w.relative = off / fabs(want);
      if (fabs(want) < 0x1.ffffffp127 && !(off <= w.absolute)) w.absolute = off;
    }
  }
  return w;
}
#define WITHIN(value, bound)                                                                                 \
  CHECK_MSG((value) <= (bound), #value " is %g (2^%.2f), allowed %g", (value), log2(value), (bound))

TEST(rcp_sqrt_rsqrt) {
  Worst w = worst(num_rcp_approx_f32, exact_rcp, 0x1p-149f, FLT_MAX, STRIDE, true);
  WITHIN(w.ulps, 0.5001); // allowed 1
  w = worst(num_sqrt_approx_f32, sqrt, FLT_MIN, FLT_MAX, STRIDE, false);
  WITHIN(w.relative, exp2(-23));
  WITHIN(w.ulps, 0.5001);
  w = worst(num_sqrt_approx_f32, sqrt, 0x1p-149f, FLT_MIN, STRIDE, false);
  WITHIN(w.relative, exp2(-23));
  w = worst(num_rsqrt_approx_f32, exact_rsqrt, 0x1p-149f, FLT_MAX, STRIDE, false);
  WITHIN(w.relative, exp2(-22.9));
  w = worst(num_rsqrt_approx_f32, exact_rsqrt, 1, 4, DENSE, false);
  WITHIN(w.relative, exp2(-22.9));
}

TEST(ex2) {
  Worst w = worst(num_ex2_approx_f32, exp2, 0x1p-149f, FLT_MAX, STRIDE, true);
  WITHIN(w.ulps, 1.2); // allowed 2
  w = worst(num_ex2_approx_f32, exp2, 0.25f, 150, 101, true);
  WITHIN(w.ulps, 1.2);
}

TEST(lg2) {
  Worst w = worst(num_lg2_approx_f32, log2, 0.5f, 2, DENSE, false);
  WITHIN(w.absolute, exp2(-22));
  WITHIN(w.ulps, 3.2); // no promise of the manual's: relative error stays small even about 1
  w = worst(num_lg2_approx_f32, log2, 0x1p-149f, 0.5f, STRIDE, false);
  WITHIN(w.relative, exp2(-22));
  w = worst(num_lg2_approx_f32, log2, 2, FLT_MAX, STRIDE, false);
  WITHIN(w.relative, exp2(-22));
  w = worst(num_lg2_approx_f32, log2, 2, 4, DENSE, false);
  WITHIN(w.relative, exp2(-22));
}

TEST(sin_cos) {
  float turn = 6.2831855f, many = 314.15927f;
  Worst s = worst(num_sin_approx_f32, sin, 0x1p-149f, turn, 509, true),
        c = worst(num_cos_approx_f32, cos, 0x1p-149f, turn, 509, true);
  WITHIN(s.absolute, exp2(-20.5));
  WITHIN(c.absolute, exp2(-20.5));
  s = worst(num_sin_approx_f32, sin, 0.5f, many, 101, true),
  c = worst(num_cos_approx_f32, cos, 0.5f, many, 101, true);
  WITHIN(s.absolute, exp2(-14.7));
  WITHIN(c.absolute, exp2(-14.7));
  for (uint32_t u = num_bits_f32(many); u < 0x7f800000; u += STRIDE) { // best effort: still a sine
    float x = num_f32(u), sine = num_sin_approx_f32(x), cosine = num_cos_approx_f32(x);
    CHECK_MSG(fabsf(sine * sine + cosine * cosine - 1) < 1e-5f, "sin and cos of %a: %a %a", (double)x,
              (double)sine, (double)cosine);
  }
}

TEST(tanh_f32) {
  Worst w = worst(num_tanh_approx_f32, tanh, 0x1p-149f, FLT_MAX, STRIDE, true);
  WITHIN(w.relative, exp2(-11));
  w = worst(num_tanh_approx_f32, tanh, 0x1p-10f, 20, 101, true);
  WITHIN(w.relative, exp2(-20)); // far better than asked
}

TEST(divisions) {
  for (int i = 0; i < 400000; i++) {
    float a = ref_f32(), b = ref_f32();
    if (!isfinite(a) || !isfinite(b) || b == 0 || a == 0) continue;
    double exact = (double)a / (double)b;
    CHECK_MSG(in_ulps(num_div_full_f32(a, b), exact) <= 0.5001, "%a / %a", (double)a, (double)b);
    float got = num_div_approx_f32(a, b);
    if (fabsf(b) > 0x1p126f)
      CHECK(got == 0 && !signbit(got) == (!signbit(a) == !signbit(b)));
    else if (fabsf(b) >= 0x1p-126f)
      CHECK_MSG(in_ulps(got, exact) <= 2, "%a / %a", (double)a, (double)b);
  }
  CHECK(num_bits_f32(num_div_approx_f32(INFINITY, 0x1p127f)) == NUM_NAN_F32 &&
        num_div_approx_f32(1, INFINITY) == 0);
  CHECK(num_div_approx_f32(1, 0) == INFINITY && num_bits_f32(num_div_approx_f32(0, 0)) == NUM_NAN_F32);
  CHECK(num_div_approx_f32(3, 0x1p126f) == 3 * 0x1p-126f);
}

// Operand, result; as bits. The .ftz forms flush before and after.
static const struct Special {
  const char *name;
  float (*f)(float);
  uint32_t operand, result;
} specials[] = {
    {"rcp", num_rcp_approx_f32, 0xff800000, 0x80000000},
    {"rcp", num_rcp_approx_f32, 0x80000000, 0xff800000},
    {"rcp", num_rcp_approx_f32, 0, 0x7f800000},
    {"rcp", num_rcp_approx_f32, 0x7f800000, 0},
    {"rcp", num_rcp_approx_f32, 0x7fc00001, NUM_NAN_F32},
    {"rcp", num_rcp_approx_f32, 0x7f000000, 0x00400000},
    {"sqrt", num_sqrt_approx_f32, 0xff800000, NUM_NAN_F32},
    {"sqrt", num_sqrt_approx_f32, 0xbf800000, NUM_NAN_F32},
    {"sqrt", num_sqrt_approx_f32, 0x80000000, 0x80000000},
    {"sqrt", num_sqrt_approx_f32, 0, 0},
    {"sqrt", num_sqrt_approx_f32, 0x7f800000, 0x7f800000},
    {"sqrt", num_sqrt_approx_f32, 0x80000001, NUM_NAN_F32},
    {"rsqrt", num_rsqrt_approx_f32, 0xff800000, NUM_NAN_F32},
    {"rsqrt", num_rsqrt_approx_f32, 0xbf800000, NUM_NAN_F32},
    {"rsqrt", num_rsqrt_approx_f32, 0x80000000, 0xff800000},
    {"rsqrt", num_rsqrt_approx_f32, 0, 0x7f800000},
    {"rsqrt", num_rsqrt_approx_f32, 0x7f800000, 0},
    {"rsqrt", num_rsqrt_approx_f32, 0xffc00000, NUM_NAN_F32},
    {"ex2", num_ex2_approx_f32, 0xff800000, 0},
    {"ex2", num_ex2_approx_f32, 0x80000000, 0x3f800000},
    {"ex2", num_ex2_approx_f32, 0, 0x3f800000},
    {"ex2", num_ex2_approx_f32, 0x7f800000, 0x7f800000},
    {"ex2", num_ex2_approx_f32, 0xffc00000, NUM_NAN_F32},
    {"ex2", num_ex2_approx_f32, 0x80000001, 0x3f800000},
    {"ex2", num_ex2_approx_f32, 0xc3150000, 0x00000001},
    {"ex2", num_ex2_approx_f32, 0xff7fffff, 0},
    {"ex2", num_ex2_approx_f32, 0x43000000, 0x7f800000},
    {"ex2", num_ex2_approx_f32, 0xc2fe0000, 0x00400000},
    {"lg2", num_lg2_approx_f32, 0xff800000, NUM_NAN_F32},
    {"lg2", num_lg2_approx_f32, 0xbf800000, NUM_NAN_F32},
    {"lg2", num_lg2_approx_f32, 0x80000000, 0xff800000},
    {"lg2", num_lg2_approx_f32, 0, 0xff800000},
    {"lg2", num_lg2_approx_f32, 0x7f800000, 0x7f800000},
    {"lg2", num_lg2_approx_f32, 0x7fc00000, NUM_NAN_F32},
    {"lg2", num_lg2_approx_f32, 0x3f800000, 0},
    {"lg2", num_lg2_approx_f32, 0x00000001, 0xc3150000},
    {"lg2", num_lg2_approx_f32, 0x80000001, NUM_NAN_F32},
    {"lg2", num_lg2_approx_f32, 0x41000000, 0x40400000},
    {"sin", num_sin_approx_f32, 0xff800000, NUM_NAN_F32},
    {"sin", num_sin_approx_f32, 0x80000000, 0x80000000},
    {"sin", num_sin_approx_f32, 0, 0},
    {"sin", num_sin_approx_f32, 0x7f800000, NUM_NAN_F32},
    {"sin", num_sin_approx_f32, 0x7fc00000, NUM_NAN_F32},
    {"sin", num_sin_approx_f32, 0xff7fffff, 0x80000000},
    {"cos", num_cos_approx_f32, 0xff800000, NUM_NAN_F32},
    {"cos", num_cos_approx_f32, 0x80000000, 0x3f800000},
    {"cos", num_cos_approx_f32, 0, 0x3f800000},
    {"cos", num_cos_approx_f32, 0x7f800000, NUM_NAN_F32},
    {"cos", num_cos_approx_f32, 0xffc00001, NUM_NAN_F32},
    {"cos", num_cos_approx_f32, 0x7f7fffff, 0x3f800000},
    {"tanh", num_tanh_approx_f32, 0xff800000, 0xbf800000},
    {"tanh", num_tanh_approx_f32, 0x80000000, 0x80000000},
    {"tanh", num_tanh_approx_f32, 0, 0},
    {"tanh", num_tanh_approx_f32, 0x7f800000, 0x3f800000},
    {"tanh", num_tanh_approx_f32, 0xffc00001, NUM_NAN_F32},
    {"tanh", num_tanh_approx_f32, 0x80000123, 0x80000123},
};

TEST(special_operands) {
  for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
    uint32_t got = num_bits_f32(specials[i].f(num_f32(specials[i].operand)));
    CHECK_MSG(got == specials[i].result, "%s of %08x is %08x, expected %08x", specials[i].name,
              specials[i].operand, got, specials[i].result);
  }
  // ftz: a negative subnormal is a zero
  CHECK(num_lg2_approx_f32(num_ftz_f32(-0x1p-140f)) == -INFINITY &&
        num_rcp_approx_f32(num_ftz_f32(0x1p-140f)) == INFINITY);
  CHECK(num_ftz_f32(num_ex2_approx_f32(-127)) == 0);
}

// Every f16 and bf16.
TEST(halves) {
  double ex2_f16 = 0, tanh_f16 = 0, ex2_bf16 = 0, tanh_bf16 = 0;
  for (uint32_t h = 0; h < 65536; h++) {
    uint16_t x = (uint16_t)h;
    double f = (double)num_cvt_f32_f16(x), b = (double)num_ftz_f32(num_cvt_f32_bf16(x)), want;
    if (!num_isnan_f16(x)) {
      want = exp2(f);
      double got = (double)num_cvt_f32_f16(num_ex2_approx_f16(x));
      if (want >= 65520)
        CHECK(isinf(got));
      else if (want < 0x1p-14)
        CHECK(fabs(got - want) <= 0x1p-25 * 1.001); // a subnormal has fewer bits
      else if (fabs(got / want - 1) > ex2_f16)
        ex2_f16 = fabs(got / want - 1);
      tanh_f16 = fmax(tanh_f16, fabs((double)num_cvt_f32_f16(num_tanh_approx_f16(x)) - tanh(f)));
    } else {
      CHECK(num_ex2_approx_f16(x) == 0x7fff && num_tanh_approx_f16(x) == 0x7fff);
    }
    if (num_isnan_bf16(x)) {
      CHECK(num_ex2_approx_ftz_bf16(x) == 0x7fff && num_tanh_approx_bf16(x) == 0x7fff);
      continue;
    }
    want = exp2(b);
    double got = (double)num_cvt_f32_bf16(num_ex2_approx_ftz_bf16(x));
    if (want < 0x1p-126)
      CHECK(got == 0);
    else if (want < 0x1.ffp127)
      ex2_bf16 = fmax(ex2_bf16, fabs(got / want - 1));
    tanh_bf16 = fmax(tanh_bf16, fabs((double)num_cvt_f32_bf16(num_tanh_approx_bf16(x)) -
                                     tanh((double)num_cvt_f32_bf16(x))));
  }
  WITHIN(ex2_f16, exp2(-9.9));
  WITHIN(tanh_f16, exp2(-10.987));
  WITHIN(ex2_bf16, exp2(-7));
  WITHIN(tanh_bf16, exp2(-8));
}

TEST(f64_by_upper_words) {
  for (int i = 0; i < 200000; i++) {
    double x = ref_f64(), r = num_rcp_approx_ftz_f64(x), s = num_rsqrt_approx_ftz_f64(x);
    double upper = num_f64(num_bits_f64(x) & 0xffffffff00000000u);
    CHECK(!(num_bits_f64(r) & 0xffffffff) && !(num_bits_f64(s) & 0xffffffff));
    if (!isnormal(upper)) continue;
    double want = 1 / upper;
    if (fabs(want) < DBL_MIN)
      CHECK(r == 0 && !signbit(r) == !signbit(x));
    else
      CHECK(fabs(r / want - 1) <= 0x1p-20);
    if (upper > 0)
      CHECK(fabs(s * sqrt(upper) - 1) <= 0x1p-20);
    else
      CHECK(num_bits_f64(s) == 0x7fffffff00000000u);
    if (x > 0) CHECK(fabs(num_rsqrt_approx_f64(x) * sqrt(x) - 1) <= 0x1p-51);
  }
  CHECK(num_rcp_approx_ftz_f64(-0x1p-1050) == -INFINITY && num_rcp_approx_ftz_f64(INFINITY) == 0);
  CHECK(num_bits_f64(num_rcp_approx_ftz_f64((double)NAN)) == 0x7fffffff00000000u);
  CHECK(num_rsqrt_approx_ftz_f64(-0x1p-1050) == -INFINITY && num_rsqrt_approx_ftz_f64(0x1p-1050) == INFINITY);
  CHECK(num_rsqrt_approx_f64(-0.0) == -INFINITY && num_rsqrt_approx_f64(INFINITY) == 0);
}

CHECK_MAIN
