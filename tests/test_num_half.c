// src/emu/isa/num_half.h: every f16 and bf16 value, and arithmetic against exact sums of whole numbers.
#include "check.h"
#include "emu/isa/num_half.h"
#include "num_ref.h"

enum { ROUNDS = 300000 };

// The value of a code, by definition.
static double value(uint32_t h, int m, int bias) {
  int field = (int)(h >> m & (uint32_t)(2 * bias + 1));
  double mantissa = (double)(h & ((1u << m) - 1)) / (1 << m), sign = h & 0x8000 ? -1 : 1;
  if (field == 2 * bias + 1) return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (field ? ldexp(1 + mantissa, field - bias) : ldexp(mantissa, 1 - bias));
}
static double value_f16(uint32_t h) {
  return value(h, 10, 15);
}
static double value_bf16(uint32_t h) {
  return value(h, 7, 127);
}

// A double that is a rounded result, or infinite or NaN, or beyond the largest number, to its code.
static uint16_t code(double v, int m, int bias, NumRound rnd) {
  uint32_t sign = signbit(v) ? 0x8000 : 0, infinity = (uint32_t)(2 * bias + 1) << m;
  double mag = fabs(v);
  if (v != v) return 0x7fff;
  if (mag >= ldexp(2, bias)) {
    bool inf = isinf(v) || rnd == NUM_RN || rnd == (sign ? NUM_RM : NUM_RP);
    return (uint16_t)(sign | (infinity - !inf));
  }
  int e;
  if (mag < ldexp(1, 1 - bias)) return (uint16_t)(sign | (uint32_t)ldexp(mag, m + bias - 1));
  frexp(mag, &e);
  return (uint16_t)(sign | ((uint32_t)(e - 1 + bias) << m) |
                    ((uint32_t)ldexp(mag, m + 1 - e) & ((1u << m) - 1)));
}

// Rounds a double exactly, by the host's rounding to whole numbers.
static uint16_t rounded(double x, int m, int bias, NumRound rnd) {
  if (x == 0 || x != x || isinf(x)) return code(x, m, bias, rnd);
  int e;
  frexp(x, &e);
  int unit = e - (m + 1) > 1 - bias - m ? e - (m + 1) : 1 - bias - m;
  volatile double scaled = ldexp(x, -unit); // exact: far from double's ends
  if (fabs(x) < 0x1p-900) scaled = copysign(0.25, x);
  ref_rounding(rnd);
  volatile double whole = nearbyint(scaled);
  ref_rounding(NUM_RN);
  return code(ldexp(whole, unit), m, bias, rnd);
}

TEST(every_value) {
  for (uint32_t h = 0; h < 65536; h++) {
    uint16_t x = (uint16_t)h;
    CHECK_MSG(same_f32(num_cvt_f32_f16(x), (float)value_f16(h)), "f16 %04x is %a", h,
              (double)num_cvt_f32_f16(x));
    CHECK_MSG(same_f32(num_cvt_f32_bf16(x), (float)value_bf16(h)), "bf16 %04x", h);
    CHECK(same_f64(num_cvt_f64_f16(x), value_f16(h)) && same_f64(num_cvt_f64_bf16(x), value_bf16(h)));
    for (int r = 0; r < 4; r++) { // and back
      NumRound rnd = (NumRound)r;
      if (!num_isnan_f16(x))
        CHECK(num_cvt_f16_f32(num_cvt_f32_f16(x), rnd) == x && num_cvt_f16_f64(value_f16(h), rnd) == x);
      if (!num_isnan_bf16(x))
        CHECK(num_cvt_bf16_f32(num_cvt_f32_bf16(x), rnd) == x && num_cvt_bf16_f64(value_bf16(h), rnd) == x);
      CHECK(num_rint_f16(x, rnd) == rounded((double)num_rint_f32((float)value_f16(h), rnd), 10, 15, NUM_RN));
    }
  }
}

// Halfway between neighbours, and a little to either side, in every mode.
TEST(rounding_about_every_value) {
  for (uint32_t h = 0; h < 0x7c00; h++) {
    float low = num_cvt_f32_f16((uint16_t)h),
          high = h == 0x7bff ? 65536.0f : num_cvt_f32_f16((uint16_t)(h + 1)), middle = (low + high) / 2;
    for (int i = -1; i <= 1; i++) {
      float x = num_f32(num_bits_f32(middle) + (uint32_t)i);
      for (int r = 0; r < 4; r++) {
        NumRound rnd = (NumRound)r;
        CHECK_INT(num_cvt_f16_f32(x, rnd), rounded((double)x, 10, 15, rnd));
        CHECK_INT(num_cvt_f16_f32(-x, rnd), rounded(-(double)x, 10, 15, rnd));
      }
    }
  }
}

TEST(narrowing) {
  for (int i = 0; i < ROUNDS; i++) {
    float f = ref_f32();
    double d = ref_f64();
    NumRound rnd = (NumRound)(i & 3);
    CHECK_MSG(num_cvt_f16_f32(f, rnd) == rounded((double)f, 10, 15, rnd), "f16 of %a, mode %d", (double)f,
              i & 3);
    CHECK_MSG(num_cvt_bf16_f32(f, rnd) == rounded((double)f, 7, 127, rnd), "bf16 of %a, mode %d", (double)f,
              i & 3);
    if (d == d) CHECK_MSG(num_cvt_f16_f64(d, rnd) == rounded(d, 10, 15, rnd), "f16 of %a, mode %d", d, i & 3);
    if (d == d)
      CHECK_MSG(num_cvt_bf16_f64(d, rnd) == rounded(d, 7, 127, rnd), "bf16 of %a, mode %d", d, i & 3);
  }
  // A double just above a tie: by way of float it would be lost.
  CHECK_INT(num_cvt_f16_f64(1 + 0x1p-11 + 0x1p-40, NUM_RN), 0x3c01);
  CHECK_INT(num_cvt_bf16_f64(1 + 0x1p-8 + 0x1p-40, NUM_RN), 0x3f81);
}

// An f16 as a whole number of 2^-24, its product of 2^-48: everything is exact in 128 bits.
static __int128 fixed_f16(uint16_t h) {
  return (__int128)ldexp(value_f16(h), 24);
}
static uint16_t exact_f16(__int128 x, int scale) {
  return code(ref_round_exact(x, scale, 10, -24, NUM_RN), 10, 15, NUM_RN);
}
static bool finite_f16(uint16_t h) {
  return (h & 0x7c00) != 0x7c00;
}

TEST(f16_arithmetic) {
  for (int i = 0; i < ROUNDS; i++) {
    uint16_t a = (uint16_t)ref_float(5, 10),
             b = (uint16_t)(i % 7 ? ref_float(5, 10) : (uint64_t)(a ^ 0x8000) + (uint64_t)(i % 3));
    uint16_t c = i % 3 ? (uint16_t)ref_float(5, 10) : (uint16_t)(num_mul_f16(a, b) ^ 0x8000);
    if (!finite_f16(a) || !finite_f16(b) || !finite_f16(c)) { // nothing to round
      double want = value_f16(a) * value_f16(b) + value_f16(c);
      if (want != want || isinf(value_f16(a)) || isinf(value_f16(b)) || isinf(value_f16(c)))
        CHECK_INT(num_fma_f16(a, b, c), code(want, 10, 15, NUM_RN));
      continue;
    }
    __int128 x = fixed_f16(a), y = fixed_f16(b), z = fixed_f16(c);
    if (x + y) CHECK_INT(num_add_f16(a, b), exact_f16(x + y, -24));
    if (x - y) CHECK_INT(num_sub_f16(a, b), exact_f16(x - y, -24));
    if (x * y != 0) CHECK_INT(num_mul_f16(a, b), exact_f16(x * y, -48));
    __int128 sum = x * y + z * (1 << 24);
    if (sum)
      CHECK_MSG(num_fma_f16(a, b, c) == exact_f16(sum, -48), "fma %04x %04x %04x: %04x", a, b, c,
                num_fma_f16(a, b, c));
    // .ftz: rounded to 11 bits as if exponents went on below 2^-14
    uint16_t fa = num_ftz_f16(a), fb = num_ftz_f16(b), fc = num_ftz_f16(c);
    __int128 flushed = fixed_f16(fa) * fixed_f16(fb) + fixed_f16(fc) * (1 << 24);
    double unbounded = ref_round_exact(flushed, -48, 10, -1000, NUM_RN);
    if (flushed)
      CHECK_INT(num_fma_ftz_f16(a, b, c),
                fabs(unbounded) < 0x1p-14 ? (signbit(unbounded) ? 0x8000 : 0) : exact_f16(flushed, -48));
    flushed = fixed_f16(fa) * fixed_f16(fb), unbounded = ref_round_exact(flushed, -48, 10, -1000, NUM_RN);
    if (flushed)
      CHECK_INT(num_mul_ftz_f16(a, b),
                fabs(unbounded) < 0x1p-14 ? (signbit(unbounded) ? 0x8000 : 0) : exact_f16(flushed, -48));
  }
  CHECK_INT(num_add_f16(0x0001, 0x8001), 0); // zeros
  CHECK_INT(num_add_f16(0x8000, 0x8000), 0x8000);
  CHECK_INT(num_sub_f16(0x8000, 0x0000), 0x8000);
  CHECK_INT(num_fma_f16(0x8000, 0x3c00, 0x0000), 0);
  CHECK_INT(num_add_ftz_f16(0x03ff, 0x0400), 0x0400);
  CHECK_INT(num_sub_ftz_f16(0x0401, 0x0400), 0); // the exact difference is subnormal
}

// bf16 operands as mantissa and exponent. A term far below the others matters by its sign alone and is
// brought near.
static uint16_t exact_bf16(double p, double c) {
  int ep, ec;
  double mp = frexp(p, &ep), mc = frexp(c, &ec);
  if (p == 0) return rounded(c, 7, 127, NUM_RN);
  if (c == 0) mc = 0, ec = ep;
  if (ep - ec > 40) mc = copysign(0.5, mc), ec = ep - 40;
  if (ec - ep > 40) mp = copysign(0.5, mp), ep = ec - 40;
  int low = ep < ec ? ep : ec;
  __int128 sum = (__int128)ldexp(mp, 53) * ((__int128)1 << (ep - low)) +
                 (__int128)ldexp(mc, 53) * ((__int128)1 << (ec - low));
  return code(ref_round_exact(sum, low - 53, 7, -133, NUM_RN), 7, 127, NUM_RN);
}

TEST(bf16_arithmetic) {
  for (int i = 0; i < ROUNDS; i++) {
    uint16_t a = (uint16_t)ref_float(8, 7),
             b = (uint16_t)(i % 7 ? ref_float(8, 7) : (uint64_t)(a ^ 0x8000) + (uint64_t)(i % 3));
    if (i % 11 == 0)
      b = (uint16_t)((b & 0x807f) | ((unsigned)(128 - 7 * 19 + i % 13 - (a >> 7 & 255) + 128) & 255)
                                        << 7); // product about the smallest
    uint16_t c = i % 3 ? (uint16_t)ref_float(8, 7) : (uint16_t)(num_mul_bf16(a, b) ^ 0x8000);
    double x = value_bf16(a), y = value_bf16(b), z = value_bf16(c);
    if (!isfinite(x) || !isfinite(y) || !isfinite(z)) {
      double want = x * y + z;
      if (want != want || isinf(want)) CHECK_INT(num_fma_bf16(a, b, c), code(want, 7, 127, NUM_RN));
      continue;
    }
    if (x + y != 0) CHECK_INT(num_add_bf16(a, b), exact_bf16(x, y));
    if (x - y != 0) CHECK_INT(num_sub_bf16(a, b), exact_bf16(x, -y));
    if (x * y != 0)
      CHECK_MSG(num_mul_bf16(a, b) == exact_bf16(x * y, 0), "mul %04x %04x: %04x", a, b, num_mul_bf16(a, b));
    if (x * y != -z)
      CHECK_MSG(num_fma_bf16(a, b, c) == exact_bf16(x * y, z), "fma %04x %04x %04x: %04x", a, b, c,
                num_fma_bf16(a, b, c));
  }
  // 2^-133 * (1 + 2^-7) / 2 is a little over half of the smallest number; float alone would round it to the
  // half.
  CHECK_INT(num_mul_bf16(0x0081, 0x3b80), 0x0001);
}

TEST(order_and_signs) {
  CHECK_INT(num_min_f16(0x0000, 0x8000), 0x8000);
  CHECK_INT(num_max_bf16(0x8000, 0x0000), 0);
  CHECK_INT(num_min_f16(0x7e00, 0x3c00), 0x3c00);
  CHECK_INT(num_max_f16(0x3c00, 0xfe00), 0x3c00);
  CHECK_INT(num_min_bf16(0x7fc0, 0xffc1), 0x7fff);
  CHECK_INT(num_max_nan_bf16(0x3f80, 0x7fc1), 0x7fff);
  CHECK_INT(num_xorsign_f16(num_min_f16(num_abs_f16(0xc200), num_abs_f16(0x4000)), 0xc200, 0x4000), 0xc000);
  CHECK_INT(num_neg_f16(0x7e01), 0x7fff);
  CHECK_INT(num_abs_bf16(0xbf80), 0x3f80);
  for (int i = 0; i < ROUNDS; i++) {
    uint16_t a = (uint16_t)ref_random(), b = (uint16_t)ref_random();
    double x = value_f16(a), y = value_f16(b), u = value_bf16(a), v = value_bf16(b);
    if (x == x && y == y && x != y)
      CHECK(num_min_f16(a, b) == (x < y ? a : b) && num_max_f16(a, b) == (x > y ? a : b));
    if (u == u && v == v && u != v)
      CHECK(num_min_bf16(a, b) == (u < v ? a : b) && num_max_bf16(a, b) == (u > v ? a : b));
    CHECK(num_cmp_f16(a, b, NUM_LT) == (x < y) && num_cmp_bf16(a, b, NUM_GEU) == !(u < v));
  }
}

TEST(clamps) {
  for (uint32_t h = 0; h < 65536; h++) {
    double v = value_f16(h);
    CHECK_INT(num_sat_f16((uint16_t)h), v > 0 ? (v < 1 ? h : 0x3c00) : 0);
    CHECK_INT(num_relu_f16((uint16_t)h), v != v ? 0x7fff : signbit(v) ? 0 : h);
    CHECK_INT(num_ftz_f16((uint16_t)h), fabs(v) < 0x1p-14 ? h & 0x8000 : h);
  }
  CHECK_INT(num_satfinite_f16(0xfc00), 0xfbff);
  CHECK_INT(num_satfinite_bf16(0x7f80), 0x7f7f);
  CHECK_INT(num_satfinite_f16(0x7fff), 0x7fff);
}

CHECK_MAIN
