// clang-format off
// f16 and bf16 instructions of PTX, one lane at a time; T is f16 or bf16, its values stand in uint16_t. The packed
// x2 forms are the same on halves: a register's 32 words are as well 64 halves in memory.
//   num_cvt_f32_T num_cvt_f64_T (h)           exact
//   num_cvt_T_f32_rn (f)                      branch-free, vectorises; num_cvt_T_f32 (f, rnd) in any mode
//   num_cvt_T_f64 (d, rnd)                    rounded once
//   num_add_T num_sub_T num_mul_T (a, b)      num_fma_T (a, b, c)      to nearest, rounded once
//   num_add_ftz_f16 num_sub_ftz_f16 num_mul_ftz_f16 num_fma_ftz_f16    .ftz
//   num_min_T num_max_T num_min_nan_T num_max_nan_T (a, b)   num_xorsign_T (result, a, b)   num_abs_T num_neg_T (a)
//   num_cmp_T (a, b, NumCmp)                  num_rint_T (a, rnd): to a whole number
//   num_sat_f16 num_relu_T (a)                .sat, .relu; last of all
//   num_satfinite_T (a)                       .satfinite of cvt, before .relu
//   num_ftz_f16 (a)                           .ftz of what is not arithmetic: on operands and result
// NaN results are 0x7fff, as on an H200, with two exceptions taken from it too: bf16 to f32 keeps all bits, and
// conversions from and to f64 keep sign and the upper payload.
// clang-format on
#ifndef SOL_EMU_NUM_HALF_H
#define SOL_EMU_NUM_HALF_H

#include "emu/isa/num_order.h"

#define NUM_NAN_F16 0x7fffu

static inline bool num_isnan_f16(uint16_t h) {
  return (h & 0x7fff) > 0x7c00;
}
static inline bool num_isnan_bf16(uint16_t h) {
  return (h & 0x7fff) > 0x7f80;
}

// Moving exponent and mantissa into place makes a float 2^-112 of the value; adding to the exponent undoes
// that. A subnormal gets one exponent step more and loses the leading one it never had by subtraction.
static inline float num_cvt_f32_f16(uint16_t h) {
  uint32_t em = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t normal = em + (112u << 23);
  uint32_t subnormal = num_bits_f32(num_f32(em + (113u << 23)) - 0x1p-14f);
  uint32_t u = (h & 0x7c00) == 0 ? subnormal : (h & 0x7c00) == 0x7c00 ? em | 0x7f800000 : normal;
  return num_f32(num_isnan_f16(h) ? NUM_NAN_F32 : u | sign);
}
static inline float num_cvt_f32_bf16(uint16_t h) {
  return num_f32((uint32_t)h << 16);
}

// To nearest. In range, half an ulp less one is added, and one more where the last bit kept is odd. Below the
// normal range, adding 0.5 lines the bits up and the addition rounds them.
static inline uint16_t num_cvt_f16_f32_rn(float f) {
  uint32_t u = num_bits_f32(f), mag = u & 0x7fffffff, sign = u >> 16 & 0x8000;
  uint32_t normal = (mag - (112u << 23) + 0xfff + (mag >> 13 & 1)) >> 13;
  uint32_t subnormal = num_bits_f32(num_f32(mag < 0x38800000 ? mag : 0) + 0.5f) - 0x3f000000;
  uint32_t h = mag < 0x38800000 ? subnormal : mag < 0x47800000 ? normal : 0x7c00;
  return (uint16_t)(mag > 0x7f800000 ? NUM_NAN_F16 : h | sign);
}
static inline uint16_t num_cvt_bf16_f32_rn(float f) {
  uint32_t u = num_bits_f32(f);
  return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? NUM_NAN_F16 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// A finite float's magnitude to a narrower format with `mbits` bits of mantissa whose smallest normal number
// is 2^emin, as if its exponents had no upper end. ties_away rounds halves away from zero, in NUM_RN.
static inline uint32_t num_narrow(uint32_t u, int mbits, int emin, NumRound rnd, bool ties_away) {
  uint32_t mag = u & 0x7fffffff, field = mag >> 23, mantissa = field ? (mag & 0x7fffff) | 0x800000 : mag;
  int exponent = field ? (int)field : 1, lowest = 127 + emin;
  int missing = exponent < lowest ? lowest - exponent : 0, shift = 23 - mbits + missing;
  shift = shift < 25 ? shift : 25; // all of it is less than half
  uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  bool up = false;
  switch (rnd) {
  case NUM_RN: up = rest > half || (rest == half && (ties_away || (kept & 1))); break;
  case NUM_RZ: break;
  case NUM_RM: up = rest && u >> 31; break;
  case NUM_RP: up = rest && !(u >> 31); break;
  }
  return kept + up + ((uint32_t)(exponent + missing - lowest) << mbits);
}
// ... and cut off at `infinity`, with what the mode makes of an overflow.
static inline uint32_t num_narrow_ieee(uint32_t u, int mbits, int emin, uint32_t infinity, NumRound rnd) {
  uint32_t r = num_narrow(u, mbits, emin, rnd, false);
  bool to_infinity = rnd == NUM_RN || (rnd == NUM_RM && u >> 31) || (rnd == NUM_RP && !(u >> 31));
  bool is_infinite = (u & 0x7fffffff) == 0x7f800000;
  return is_infinite ? infinity : r >= infinity ? infinity - !to_infinity : r;
}
static inline uint16_t num_cvt_f16_f32(float f, NumRound rnd) {
  if (rnd == NUM_RN) return num_cvt_f16_f32_rn(f);
  uint32_t u = num_bits_f32(f), r = num_narrow_ieee(u, 10, -14, 0x7c00, rnd) | (u >> 16 & 0x8000);
  return (uint16_t)(f == f ? r : NUM_NAN_F16);
}
static inline uint16_t num_cvt_bf16_f32(float f, NumRound rnd) {
  if (rnd == NUM_RN) return num_cvt_bf16_f32_rn(f);
  uint32_t u = num_bits_f32(f), r = num_narrow_ieee(u, 7, -126, 0x7f80, rnd) | (u >> 16 & 0x8000);
  return (uint16_t)(f == f ? r : NUM_NAN_F16);
}

// A double to float, rounded to odd: rounding that once more to 16 bits is as good as rounding the double.
static inline float num_odd_f32_f64(double x) {
  float r = num_round_f32(x, NUM_RZ);
  return num_f32(num_bits_f32(r) | ((double)r < x || (double)r > x));
}
static inline uint16_t num_cvt_f16_f64(double x, NumRound rnd) {
  uint64_t u = num_bits_f64(x);
  uint16_t nan = (uint16_t)((u >> 48 & 0x8000) | 0x7e00 | (u >> 42 & 0x1ff));
  return x == x ? num_cvt_f16_f32(num_odd_f32_f64(x), rnd) : nan;
}
static inline uint16_t num_cvt_bf16_f64(double x, NumRound rnd) {
  uint64_t u = num_bits_f64(x);
  uint16_t nan = (uint16_t)((u >> 48 & 0x8000) | 0x7fc0 | (u >> 45 & 0x3f));
  return x == x ? num_cvt_bf16_f32(num_odd_f32_f64(x), rnd) : nan;
}
static inline double num_cvt_f64_f16(uint16_t h) {
  uint64_t nan = (uint64_t)(h & 0x8000) << 48 | 0x7ff8000000000000u | (uint64_t)(h & 0x1ff) << 42;
  return num_isnan_f16(h) ? num_f64(nan) : (double)num_cvt_f32_f16(h);
}
static inline double num_cvt_f64_bf16(uint16_t h) {
  return num_cvt_f64_f32(num_cvt_f32_bf16(h));
}

// Float's 24 bits are over twice f16's 11 and bf16's 8: sums come out as if rounded once, and so do f16
// products, all of which float holds exactly. A bf16 product can fall below float's normal range, hence the
// way through double.
static inline uint16_t num_add_f16(uint16_t a, uint16_t b) {
  return num_cvt_f16_f32_rn(num_cvt_f32_f16(a) + num_cvt_f32_f16(b));
}
static inline uint16_t num_sub_f16(uint16_t a, uint16_t b) {
  return num_cvt_f16_f32_rn(num_cvt_f32_f16(a) - num_cvt_f32_f16(b));
}
static inline uint16_t num_mul_f16(uint16_t a, uint16_t b) {
  return num_cvt_f16_f32_rn(num_cvt_f32_f16(a) * num_cvt_f32_f16(b));
}
static inline uint16_t num_add_bf16(uint16_t a, uint16_t b) {
  return num_cvt_bf16_f32_rn(num_cvt_f32_bf16(a) + num_cvt_f32_bf16(b));
}
static inline uint16_t num_sub_bf16(uint16_t a, uint16_t b) {
  return num_cvt_bf16_f32_rn(num_cvt_f32_bf16(a) - num_cvt_f32_bf16(b));
}
static inline uint16_t num_mul_bf16(uint16_t a, uint16_t b) {
  return num_cvt_bf16_f32_rn(num_odd_f32_f64((double)num_cvt_f32_bf16(a) * num_cvt_f32_bf16(b)));
}

// num_odd_sum in float, which holds a product of f16 exactly.
static inline float num_odd_sum_f32(float a, float b) {
  float sum = a + b, from_b = sum - a, error = (a - (sum - from_b)) + (b - from_b);
  uint32_t u = num_bits_f32(sum), even = (u & 1) - 1, inexact = 0 - (uint32_t)((error > 0) | (error < 0));
  uint32_t step = (0 - ((u ^ num_bits_f32(error)) >> 31)) | 1;
  return num_f32(u + (even & inexact & step));
}
static inline uint16_t num_fma_f16(uint16_t a, uint16_t b, uint16_t c) {
  return num_cvt_f16_f32_rn(num_odd_sum_f32(num_cvt_f32_f16(a) * num_cvt_f32_f16(b), num_cvt_f32_f16(c)));
}
static inline uint16_t num_fma_bf16(uint16_t a, uint16_t b, uint16_t c) {
  double product = (double)num_cvt_f32_bf16(a) * num_cvt_f32_bf16(b);
  return num_cvt_bf16_f32_rn(num_odd_f32_f64(num_odd_sum(product, num_cvt_f32_bf16(c))));
}

// .ftz, as with f32 (num_flush_f32): x is the result before rounding, exact or rounded to odd.
static inline uint16_t num_round_ftz_f16(float x) {
  uint16_t r = num_cvt_f16_f32_rn(x), scaled = num_cvt_f16_f32_rn(x * 0x1p10f) & 0x7fff;
  return scaled < 0x2c00 ? r & 0x8000 : r; // 2^-4
}
static inline uint16_t num_ftz_f16(uint16_t a) {
  return a & 0x7c00 ? a : a & 0x8000;
}
static inline uint16_t num_add_ftz_f16(uint16_t a, uint16_t b) {
  return num_ftz_f16(num_add_f16(num_ftz_f16(a), num_ftz_f16(b)));
}
static inline uint16_t num_sub_ftz_f16(uint16_t a, uint16_t b) {
  return num_ftz_f16(num_sub_f16(num_ftz_f16(a), num_ftz_f16(b)));
}
static inline uint16_t num_mul_ftz_f16(uint16_t a, uint16_t b) {
  return num_round_ftz_f16(num_cvt_f32_f16(num_ftz_f16(a)) * num_cvt_f32_f16(num_ftz_f16(b)));
}
static inline uint16_t num_fma_ftz_f16(uint16_t a, uint16_t b, uint16_t c) {
  float product = num_cvt_f32_f16(num_ftz_f16(a)) * num_cvt_f32_f16(num_ftz_f16(b));
  return num_round_ftz_f16(num_odd_sum_f32(product, num_cvt_f32_f16(num_ftz_f16(c))));
}
static inline uint16_t num_sat_f16(uint16_t a) { // as whole numbers, positive values are in order
  return a & 0x8000 || num_isnan_f16(a) ? 0 : a < 0x3c00 ? a : 0x3c00;
}

// Negative values in reverse, then in front of the positive ones: the order of values, -0 below +0.
static inline uint16_t num_key_f16(uint16_t a) {
  return (uint16_t)(a & 0x8000 ? ~a : a | 0x8000);
}

#define NUM_HALF(T, infinity)                                                                                \
  static inline uint16_t num_canon_##T(uint16_t a) {                                                         \
    return num_isnan_##T(a) ? NUM_NAN_F16 : a;                                                               \
  }                                                                                                          \
  static inline uint16_t num_min_##T(uint16_t a, uint16_t b) {                                               \
    uint16_t r = num_key_f16(a) < num_key_f16(b) ? a : b;                                                    \
    return num_isnan_##T(a) ? num_canon_##T(b) : num_isnan_##T(b) ? a : r;                                   \
  }                                                                                                          \
  static inline uint16_t num_max_##T(uint16_t a, uint16_t b) {                                               \
    uint16_t r = num_key_f16(a) > num_key_f16(b) ? a : b;                                                    \
    return num_isnan_##T(a) ? num_canon_##T(b) : num_isnan_##T(b) ? a : r;                                   \
  }                                                                                                          \
  static inline uint16_t num_min_nan_##T(uint16_t a, uint16_t b) {                                           \
    return num_isnan_##T(a) || num_isnan_##T(b) ? NUM_NAN_F16 : num_min_##T(a, b);                           \
  }                                                                                                          \
  static inline uint16_t num_max_nan_##T(uint16_t a, uint16_t b) {                                           \
    return num_isnan_##T(a) || num_isnan_##T(b) ? NUM_NAN_F16 : num_max_##T(a, b);                           \
  }                                                                                                          \
  static inline uint16_t num_xorsign_##T(uint16_t r, uint16_t a, uint16_t b) {                               \
    return num_isnan_##T(r) ? r : (uint16_t)((r & 0x7fff) | ((a ^ b) & 0x8000));                             \
  }                                                                                                          \
  static inline uint16_t num_abs_##T(uint16_t a) {                                                           \
    return num_canon_##T((uint16_t)(a & 0x7fff));                                                            \
  }                                                                                                          \
  static inline uint16_t num_neg_##T(uint16_t a) {                                                           \
    return num_canon_##T((uint16_t)(a ^ 0x8000));                                                            \
  }                                                                                                          \
  static inline uint16_t num_relu_##T(uint16_t a) {                                                          \
    return num_isnan_##T(a) ? NUM_NAN_F16 : a & 0x8000 ? 0 : a;                                              \
  }                                                                                                          \
  /* Infinity becomes the largest number. */                                                                 \
  static inline uint16_t num_satfinite_##T(uint16_t a) {                                                     \
    return (uint16_t)((a & 0x7fff) == infinity ? a - 1 : a);                                                 \
  }                                                                                                          \
  static inline bool num_cmp_##T(uint16_t a, uint16_t b, NumCmp cmp) {                                       \
    return num_cmp_f32(num_cvt_f32_##T(a), num_cvt_f32_##T(b), cmp);                                         \
  }                                                                                                          \
  static inline uint16_t num_rint_##T(uint16_t a, NumRound rnd) {                                            \
    return num_cvt_##T##_f32_rn(num_rint_f32(num_cvt_f32_##T(a), rnd));                                      \
  }
NUM_HALF(f16, 0x7c00)
NUM_HALF(bf16, 0x7f80)
#undef NUM_HALF

#endif
