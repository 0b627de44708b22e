// src/emu/isa/num_cvt.h against long double and 128-bit whole numbers, and small formats against their
// definitions.
#include "check.h"
#include "emu/isa/num_cvt.h"
#include "num_ref.h"

enum { ROUNDS = 100000 };

static long double to_whole(double x, NumRound rnd) {
  volatile double a = x, r;
  ref_rounding(rnd);
  r = nearbyint(a);
  ref_rounding(NUM_RN);
  return r;
}
// The manual's rules: round, clamp; NaN is 0, or the top bit where 64 bits or f64 take part.
static uint64_t to_integer(double x, NumRound rnd, int bits, bool is_signed, bool f64) {
  uint64_t mask = UINT64_MAX >> (64 - bits);
  if (x != x) return f64 || bits == 64 ? 1ull << (bits - 1) : 0;
  long double w = to_whole(x, rnd), low = is_signed ? -ldexpl(1, bits - 1) : 0,
              high = ldexpl(1, bits - is_signed) - 1;
  w = w < low ? low : w > high ? high : w;
  return (w < 0 ? (uint64_t)(int64_t)w : (uint64_t)w) & mask;
}

#define TO_INTEGER(I, bits, is_signed)                                                                       \
  do {                                                                                                       \
    CHECK_MSG(((uint64_t)num_cvt_##I##_f32(f, rnd) & (UINT64_MAX >> (64 - bits))) ==                         \
                  to_integer((double)f, rnd, bits, is_signed, false),                                        \
              #I " of %a, mode %d", (double)f, (int)rnd);                                                    \
    CHECK_MSG(((uint64_t)num_cvt_##I##_f64(d, rnd) & (UINT64_MAX >> (64 - bits))) ==                         \
                  to_integer(d, rnd, bits, is_signed, true),                                                 \
              #I " of %a, mode %d", d, (int)rnd);                                                            \
    CHECK(num_cvt_##I##_f16(h, rnd) == num_cvt_##I##_f32(num_cvt_f32_f16(h), rnd));                          \
    CHECK(num_cvt_##I##_bf16(h, rnd) == num_cvt_##I##_f32(num_cvt_f32_bf16(h), rnd));                        \
  } while (0)

TEST(float_to_integer) {
  for (int i = 0; i < ROUNDS; i++) {
    NumRound rnd = (NumRound)(i & 3);
    float f = ref_f32();
    double d = i % 3 ? ref_f64() : (double)(int64_t)(ref_integer() >> 1) + (i % 5 - 2) * 0.5;
    uint16_t h = (uint16_t)ref_random();
    TO_INTEGER(u8, 8, false);
    TO_INTEGER(s8, 8, true);
    TO_INTEGER(u16, 16, false);
    TO_INTEGER(s16, 16, true);
    TO_INTEGER(u32, 32, false);
    TO_INTEGER(s32, 32, true);
    TO_INTEGER(u64, 64, false);
    TO_INTEGER(s64, 64, true);
  }
  CHECK(num_cvt_s32_f32(2.5f, NUM_RN) == 2 && num_cvt_s32_f32(-2.5f, NUM_RM) == -3 &&
        num_cvt_u8_f32(-0.5f, NUM_RP) == 0);
  CHECK(num_cvt_u32_f32(4294967296.0f, NUM_RZ) == UINT32_MAX && num_cvt_s64_f32(-1e30f, NUM_RN) == INT64_MIN);
}

// m+1 bits, no finer than 2^lowest, as a double; infinities where the format ends at 2^end.
static double from_integer(__int128 x, int m, int end, NumRound rnd) {
  double r = ref_round_exact(x, 0, m, -1000, rnd);
  if (fabs(r) < ldexp(1, end)) return r;
  bool inf = rnd == NUM_RN || rnd == (x < 0 ? NUM_RM : NUM_RP);
  return copysign(inf ? (double)INFINITY : ldexp(2 - ldexp(1, -m), end - 1), (double)(x < 0 ? -1 : 1));
}
#define FROM_INTEGER(I, type)                                                                                \
  do {                                                                                                       \
    type v = (type)a;                                                                                        \
    __int128 x = v;                                                                                          \
    CHECK_MSG(num_cvt_f64_##I(v, rnd) == from_integer(x, 52, 1024, rnd), "f64 of " #I " %llx, mode %d",      \
              (unsigned long long)v, (int)rnd);                                                              \
    CHECK_MSG((double)num_cvt_f32_##I(v, rnd) == from_integer(x, 23, 128, rnd),                              \
              "f32 of " #I " %llx, mode %d", (unsigned long long)v, (int)rnd);                               \
    CHECK_MSG(num_cvt_f64_f16(num_cvt_f16_##I(v, rnd)) == from_integer(x, 10, 16, rnd),                      \
              "f16 of " #I " %llx, mode %d", (unsigned long long)v, (int)rnd);                               \
    CHECK_MSG(num_cvt_f64_bf16(num_cvt_bf16_##I(v, rnd)) == from_integer(x, 7, 128, rnd),                    \
              "bf16 of " #I " %llx, mode %d", (unsigned long long)v, (int)rnd);                              \
  } while (0)

TEST(integer_to_float) {
  for (int i = 0; i < ROUNDS; i++) {
    NumRound rnd = (NumRound)(i & 3);
    uint64_t a = ref_integer();
    FROM_INTEGER(u8, uint8_t);
    FROM_INTEGER(s8, int8_t);
    FROM_INTEGER(u16, uint16_t);
    FROM_INTEGER(s16, int16_t);
    FROM_INTEGER(u32, uint32_t);
    FROM_INTEGER(s32, int32_t);
    FROM_INTEGER(u64, uint64_t);
    FROM_INTEGER(s64, int64_t);
  }
  CHECK(num_cvt_f64_u64(UINT64_MAX, NUM_RZ) < 0x1p64 && num_cvt_f64_u64(UINT64_MAX, NUM_RP) == 0x1p64);
  CHECK(num_cvt_f16_u32(65520, NUM_RN) == 0x7c00 && num_cvt_f16_u32(65519, NUM_RN) == 0x7bff);
  CHECK(num_cvt_f32_u64((1ull << 40) + (1ull << 16) + 1, NUM_RN) == 0x1p40f + 0x1p17f); // just above a tie
}

#define SATURATES(I, low, high)                                                                              \
  do {                                                                                                       \
    __int128 u = a, s = (int64_t)a;                                                                          \
    CHECK(num_cvt_sat_##I##_u64(a) == (u > (high) ? (high) : u));                                            \
    CHECK(num_cvt_sat_##I##_s64((int64_t)a) == (s > (high) ? (high) : s < (low) ? (low) : s));               \
  } while (0)

TEST(integer_to_integer) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer();
    SATURATES(u8, 0, UINT8_MAX);
    SATURATES(s8, INT8_MIN, INT8_MAX);
    SATURATES(u16, 0, UINT16_MAX);
    SATURATES(s16, INT16_MIN, INT16_MAX);
    SATURATES(u32, 0, UINT32_MAX);
    SATURATES(s32, INT32_MIN, INT32_MAX);
    SATURATES(u64, 0, UINT64_MAX);
    SATURATES(s64, INT64_MIN, INT64_MAX);
  }
}

TEST(tf32) {
  for (int i = 0; i < ROUNDS; i++) {
    float f = ref_f32();
    if (f != f) {
      CHECK(num_cvt_tf32_f32(f, NUM_RN, false) == 0x7fffe000 &&
            num_cvt_tf32_f32(f, NUM_RN, true) == 0x7fffe000);
      continue;
    }
    // A tf32 keeps the upper 19 bits; as whole numbers, magnitudes are in order.
    uint32_t u = num_bits_f32(f), mag = u & 0x7fffffff, sign = u & 0x80000000, kept = mag >> 13,
             rest = mag & 0x1fff;
    uint32_t even = kept + (rest > 0x1000 || (rest == 0x1000 && (kept & 1))), away = kept + (rest >= 0x1000);
    CHECK_INT(num_cvt_tf32_f32(f, NUM_RN, false), even << 13 | sign);
    CHECK_INT(num_cvt_tf32_f32(f, NUM_RN, true), away << 13 | sign);
    CHECK_INT(num_cvt_tf32_f32(f, NUM_RZ, false), kept << 13 | sign);
  }
  CHECK_INT(num_satfinite_tf32(0xff800000), 0xff7fe000);
  CHECK_INT(num_satfinite_tf32(num_cvt_tf32_f32(FLT_MAX, NUM_RN, true)), 0x7f7fe000);
  CHECK_INT(num_relu_tf32(0x80000000), 0);
}

typedef struct Small {
  NumSmall format;
  int bits, m, bias;
  double largest;
} Small;
static const Small smalls[] = {{NUM_E4M3, 8, 3, 7, 448},
                               {NUM_E5M2, 8, 2, 15, 57344},
                               {NUM_E3M2, 6, 2, 3, 28},
                               {NUM_E2M3, 6, 3, 1, 7.5},
                               {NUM_E2M1, 4, 1, 1, 6}};
enum { SMALLS = sizeof smalls / sizeof smalls[0] };

static double small_value(const Small *s, uint32_t code) {
  uint32_t mag = code & ((1u << (s->bits - 1)) - 1), mantissa = mag & ((1u << s->m) - 1);
  int field = (int)(mag >> s->m);
  double v = field ? ldexp(1 + ldexp(mantissa, -s->m), field - s->bias) : ldexp(mantissa, 1 - s->bias - s->m);
  if (s->format == NUM_E4M3 && mag == 0x7f) v = (double)NAN;
  if (s->format == NUM_E5M2 && field == 31) v = mantissa ? (double)NAN : (double)INFINITY;
  return code >> (s->bits - 1) ? -v : v;
}

TEST(small_formats_decoded) {
  for (int f = 0; f < SMALLS; f++) {
    for (uint32_t code = 0; code < 1u << smalls[f].bits; code++) {
      double v = small_value(&smalls[f], code);
      CHECK_MSG(same_f64((double)num_cvt_f32_small(code, smalls[f].format), v), "format %d code %x", f, code);
      CHECK(same_f64(num_cvt_f64_f16(num_cvt_f16_small(code, smalls[f].format)), v));
    }
  }
}

// To nearest: no other code is nearer, and of two equally near the even one is taken.
TEST(small_formats_encoded) {
  for (int f = 0; f < SMALLS; f++) {
    const Small *s = &smalls[f];
    uint32_t sign = 1u << (s->bits - 1);
    for (int i = 0; i < ROUNDS / 8; i++) {
      double x = i & 1 ? ldexp((double)(ref_random() >> 40), (int)(ref_random() % 60) - 50)
                       : fabs((double)ref_f32());
      if (i % 4 == 0) { // about halfway between two codes
        uint32_t code = (uint32_t)ref_random() & (sign - 1);
        x = (small_value(s, code) + small_value(s, code + 1)) / 2 *
            (1 + (double)((int)(ref_random() % 3) - 1) * 0x1p-20);
      }
      float v = (float)(x == x ? x : 1);
      uint32_t got = num_cvt_small_f32(v, s->format, false), best = 0;
      for (uint32_t code = 1; code < sign && small_value(s, code) <= s->largest; code++) {
        double old = fabs((double)v - small_value(s, best)), now = fabs((double)v - small_value(s, code));
        if (now < old || (now == old && !(code & 1))) best = code;
        if (now > old) break;
      }
      if ((double)v > s->largest)
        while (best + 1 < sign && small_value(s, best + 1) <= s->largest) best++;
      CHECK_MSG(got == best, "format %d of %a: %x, expected %x", f, (double)v, got, best);
      CHECK_INT(num_cvt_small_f32(-v, s->format, false), best | sign);
      CHECK_INT(num_cvt_small_f32(-v, s->format, true), 0);
    }
    CHECK((double)num_cvt_f32_small(num_cvt_small_f32(INFINITY, s->format, false), s->format) == s->largest);
    CHECK((double)num_cvt_f32_small(num_cvt_small_f32(-FLT_MAX, s->format, false), s->format) == -s->largest);
  }
  CHECK_INT(num_cvt_small_f32(-NAN, NUM_E4M3, true), 0x7f);
  CHECK_INT(num_cvt_small_f32(NAN, NUM_E5M2, false), 0x7f);
  CHECK_INT(num_cvt_small_f32(-NAN, NUM_E2M1, false), 0x07); // the largest number stands in
  CHECK_INT(num_cvt_small_f32(NAN, NUM_E3M2, true), 0x1f);
}

TEST(powers_of_two) {
  CHECK_INT(num_cvt_ue8m0_f32(1, NUM_RZ, true), 127);
  CHECK_INT(num_cvt_ue8m0_f32(-1.5f, NUM_RZ, true), 127); // of the magnitude
  CHECK_INT(num_cvt_ue8m0_f32(1.5f, NUM_RP, true), 128);
  CHECK_INT(num_cvt_ue8m0_f32(0x1p-127f, NUM_RP, false), 0);
  CHECK_INT(num_cvt_ue8m0_f32(0x1.8p-127f, NUM_RP, false), 1);
  CHECK_INT(num_cvt_ue8m0_f32(0, NUM_RP, false), 0);
  CHECK_INT(num_cvt_ue8m0_f32(FLT_MAX, NUM_RP, false), 255);
  CHECK_INT(num_cvt_ue8m0_f32(FLT_MAX, NUM_RP, true), 254);
  CHECK_INT(num_cvt_ue8m0_f32(INFINITY, NUM_RZ, true), 254);
  CHECK_INT(num_cvt_ue8m0_f32(NAN, NUM_RZ, true), 255);
  for (uint32_t code = 0; code < 255; code++)
    CHECK(num_cvt_f64_bf16(num_cvt_bf16_ue8m0(code)) == ldexp(1, (int)code - 127));
  CHECK_INT(num_cvt_bf16_ue8m0(255), 0x7fff);
}

TEST(pack) {
  CHECK_INT(num_cvt_pack(-5, 70000, 0, 16, false), 0x0000ffff);
  CHECK_INT(num_cvt_pack(-70000, 5, 0, 16, true), 0x80000005);
  CHECK_INT(num_cvt_pack(300, -1, 0x12345678, 8, false), 0x5678ff00);
  CHECK_INT(num_cvt_pack(300, -200, 0xabcd, 8, true), 0xabcd7f80);
  CHECK_INT(num_cvt_pack(9, -9, 0xabcdef, 4, true), 0xabcdef78);
  CHECK_INT(num_cvt_pack(2, 9, 0x1, 2, false), 0x1b);
}

CHECK_MAIN
