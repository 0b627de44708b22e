// clang-format off
// cvt of PTX, one lane at a time. I is u8 s8 u16 s16 u32 s32 u64 s64, F is f16 bf16 f32 f64.
//   num_cvt_I_F (a, rnd)                      saturates; .rni .rzi .rmi .rpi are NUM_RN NUM_RZ NUM_RM NUM_RP
//   num_cvt_F_I (a, rnd)                      rounded once
//   num_cvt_sat_I_s64 num_cvt_sat_I_u64 (a)   .sat between integers, from a source widened with its sign
//   between integers without .sat: C's conversions. Between floats: num_cvt_F_F of num_float.h and num_half.h,
//   num_rint_F for .rni and so on. bf16 to f16 and back goes through num_cvt_f32_bf16, num_cvt_f32_f16.
//   num_cvt_tf32_f32 (a, rnd, away)           away: .rna. num_satfinite_tf32, num_relu_tf32 (a)
//   num_cvt_small_f32 (a, NumSmall, relu)     e4m3 e5m2 e3m2 e2m3 e2m1, to nearest, .satfinite
//   num_cvt_f32_small num_cvt_f16_small (code, NumSmall)      exact
//   num_cvt_ue8m0_f32 (a, rnd, satfinite)     num_cvt_bf16_ue8m0 (code)
//   num_cvt_pack (a, b, c, bits, is_signed)   cvt.pack.sat; c is not looked at where bits is 16
// A packed conversion puts operand a, or the upper source element, into the upper half of the result.
// .ftz: num_ftz_f32 on an f32 operand and an f32 result. On an H200 it also makes the NaN operand of a float-to-float
// cvt.ftz from f32 or bf16 canonical: num_canon_f32. .sat to a float: num_sat_F last.
// NaN to integer: 0, but for an f64 source or a 64-bit destination the highest bit alone.
// clang-format on
#ifndef SOL_EMU_NUM_CVT_H
#define SOL_EMU_NUM_CVT_H

#include "emu/isa/num_half.h"

// a is whole, infinite or NaN. Values out of range never reach C's own conversion, which leaves them
// undefined; the conversion of unsigned values is spelt so that it vectorises without AVX-512.
static inline int32_t num_clamp_s32(double a, int32_t nan) {
  bool inside = a >= -0x1p31 && a < 0x1p31;
  int32_t r = (int32_t)(inside ? a : 0);
  return inside ? r : a > 0 ? INT32_MAX : a < 0 ? INT32_MIN : nan;
}
static inline uint32_t num_clamp_u32(double a, uint32_t nan) {
  bool inside = a > -1 && a < 0x1p32, upper = a >= 0x1p31;
  uint32_t r = (uint32_t)(int32_t)(inside ? a - (upper ? 0x1p31 : 0) : 0) + (upper ? 1u << 31 : 0);
  return inside ? r : a > 0 ? UINT32_MAX : a < 0 ? 0 : nan;
}
static inline int32_t num_clamp_s32_f32(float a) {
  bool inside = a >= -0x1p31f && a < 0x1p31f;
  int32_t r = (int32_t)(inside ? a : 0);
  return inside ? r : a > 0 ? INT32_MAX : a < 0 ? INT32_MIN : 0;
}
static inline uint32_t num_clamp_u32_f32(float a) {
  bool inside = a > -1 && a < 0x1p32f, upper = a >= 0x1p31f;
  uint32_t r = (uint32_t)(int32_t)(inside ? a - (upper ? 0x1p31f : 0) : 0) + (upper ? 1u << 31 : 0);
  return inside ? r : a > 0 ? UINT32_MAX : 0;
}
static inline int64_t num_clamp_s64(double a) {
  bool inside = a >= -0x1p63 && a < 0x1p63;
  return inside ? (int64_t)a : a > 0 ? INT64_MAX : INT64_MIN;
}
static inline uint64_t num_clamp_u64(double a) {
  bool inside = a > -1 && a < 0x1p64;
  return inside ? (uint64_t)a : a > 0 ? UINT64_MAX : a < 0 ? 0 : 1ull << 63;
}

static inline int32_t num_cvt_s32_f32(float a, NumRound rnd) {
  return num_clamp_s32_f32(num_rint_f32(a, rnd));
}
static inline uint32_t num_cvt_u32_f32(float a, NumRound rnd) {
  return num_clamp_u32_f32(num_rint_f32(a, rnd));
}
static inline int64_t num_cvt_s64_f32(float a, NumRound rnd) {
  return num_clamp_s64((double)num_rint_f32(a, rnd));
}
static inline uint64_t num_cvt_u64_f32(float a, NumRound rnd) {
  return num_clamp_u64((double)num_rint_f32(a, rnd));
}
static inline int32_t num_cvt_s32_f64(double a, NumRound rnd) {
  return num_clamp_s32(num_rint_f64(a, rnd), INT32_MIN);
}
static inline uint32_t num_cvt_u32_f64(double a, NumRound rnd) {
  return num_clamp_u32(num_rint_f64(a, rnd), 1u << 31);
}
static inline int64_t num_cvt_s64_f64(double a, NumRound rnd) {
  return num_clamp_s64(num_rint_f64(a, rnd));
}
static inline uint64_t num_cvt_u64_f64(double a, NumRound rnd) {
  return num_clamp_u64(num_rint_f64(a, rnd));
}

// Narrower integers are clamped a second time.
#define NUM_CVT_NARROW(I, type, low, high)                                                                   \
  static inline type num_narrow_##I(int32_t a) {                                                             \
    return (type)(a < (low) ? (low) : a > (high) ? (high) : a);                                              \
  }                                                                                                          \
  static inline type num_cvt_##I##_f32(float a, NumRound rnd) {                                              \
    return num_narrow_##I(num_cvt_s32_f32(a, rnd));                                                          \
  }                                                                                                          \
  static inline type num_cvt_##I##_f64(double a, NumRound rnd) {                                             \
    type nan = (type)(1u << (8 * sizeof(type) - 1));                                                         \
    return a == a ? num_narrow_##I(num_cvt_s32_f64(a, rnd)) : nan;                                           \
  }
NUM_CVT_NARROW(s8, int8_t, INT8_MIN, INT8_MAX)
NUM_CVT_NARROW(u8, uint8_t, 0, 255)
NUM_CVT_NARROW(s16, int16_t, INT16_MIN, INT16_MAX)
NUM_CVT_NARROW(u16, uint16_t, 0, 65535)
#undef NUM_CVT_NARROW

// A 64-bit integer to double, rounded to odd: 53 bits of it and one more that says whether the rest was zero.
static inline double num_odd_f64_u64(uint64_t a) {
  uint64_t upper = a >> 11 | ((a & 2047) != 0);
  return a >> 53 ? (double)(int64_t)upper * 2048 : (double)(int64_t)a;
}
static inline double num_odd_f64_s64(int64_t a) {
  double mag = num_odd_f64_u64(a < 0 ? 0 - (uint64_t)a : (uint64_t)a);
  return a < 0 ? -mag : mag;
}
static inline double num_round_u64(uint64_t a, bool up) { // to a multiple of what double holds at this size
  uint32_t zeros = num_clz_u64(a | 1), drop = zeros < 11 ? 11 - zeros : 0;
  uint64_t rest = a & ((1ull << drop) - 1), kept = a - rest;
  return (double)kept + (up && rest ? (double)(1u << drop) : 0); // both exact, and their sum
}
static inline double num_cvt_f64_u64(uint64_t a, NumRound rnd) {
  return rnd == NUM_RN ? (double)a : num_round_u64(a, rnd == NUM_RP);
}
static inline double num_cvt_f64_s64(int64_t a, NumRound rnd) {
  if (rnd == NUM_RN) return (double)a;
  double mag = num_round_u64(a < 0 ? 0 - (uint64_t)a : (uint64_t)a, rnd == (a < 0 ? NUM_RM : NUM_RP));
  return a < 0 ? -mag : mag;
}
static inline float num_cvt_f32_u64(uint64_t a, NumRound rnd) {
  return num_round_f32(num_odd_f64_u64(a), rnd);
}
static inline float num_cvt_f32_s64(int64_t a, NumRound rnd) {
  return num_round_f32(num_odd_f64_s64(a), rnd);
}
static inline uint16_t num_cvt_f16_u64(uint64_t a, NumRound rnd) {
  return num_cvt_f16_f64(num_odd_f64_u64(a), rnd);
}
static inline uint16_t num_cvt_f16_s64(int64_t a, NumRound rnd) {
  return num_cvt_f16_f64(num_odd_f64_s64(a), rnd);
}
static inline uint16_t num_cvt_bf16_u64(uint64_t a, NumRound rnd) {
  return num_cvt_bf16_f64(num_odd_f64_u64(a), rnd);
}
static inline uint16_t num_cvt_bf16_s64(int64_t a, NumRound rnd) {
  return num_cvt_bf16_f64(num_odd_f64_s64(a), rnd);
}

// Integers of up to 32 bits are exact in double, and those of up to 16 in float.
#define NUM_CVT_FROM(I, type)                                                                                \
  static inline float num_cvt_f32_##I(type a, NumRound rnd) {                                                \
    return rnd == NUM_RN || sizeof(type) < 4 ? (float)a : num_round_f32((double)a, rnd);                     \
  }                                                                                                          \
  static inline double num_cvt_f64_##I(type a, NumRound rnd) {                                               \
    return (void)rnd, (double)a;                                                                             \
  }                                                                                                          \
  static inline uint16_t num_cvt_f16_##I(type a, NumRound rnd) {                                             \
    return num_cvt_f16_f64((double)a, rnd);                                                                  \
  }                                                                                                          \
  static inline uint16_t num_cvt_bf16_##I(type a, NumRound rnd) {                                            \
    return num_cvt_bf16_f64((double)a, rnd);                                                                 \
  }
NUM_CVT_FROM(u8, uint8_t)
NUM_CVT_FROM(s8, int8_t)
NUM_CVT_FROM(u16, uint16_t)
NUM_CVT_FROM(s16, int16_t)
NUM_CVT_FROM(u32, uint32_t)
NUM_CVT_FROM(s32, int32_t)
#undef NUM_CVT_FROM

#define NUM_CVT_INT(I, type, low, high)                                                                      \
  static inline type num_cvt_##I##_f16(uint16_t a, NumRound rnd) {                                           \
    return num_cvt_##I##_f32(num_cvt_f32_f16(a), rnd);                                                       \
  }                                                                                                          \
  static inline type num_cvt_##I##_bf16(uint16_t a, NumRound rnd) {                                          \
    return num_cvt_##I##_f32(num_cvt_f32_bf16(a), rnd);                                                      \
  }                                                                                                          \
  static inline type num_cvt_sat_##I##_u64(uint64_t a) {                                                     \
    return a > (high) ? (high) : (type)a;                                                                    \
  }                                                                                                          \
  static inline type num_cvt_sat_##I##_s64(int64_t a) {                                                      \
    return a < (low) ? (low) : a > 0 ? num_cvt_sat_##I##_u64((uint64_t)a) : (type)a;                         \
  }
NUM_CVT_INT(u8, uint8_t, 0, UINT8_MAX)
NUM_CVT_INT(s8, int8_t, INT8_MIN, INT8_MAX)
NUM_CVT_INT(u16, uint16_t, 0, UINT16_MAX)
NUM_CVT_INT(s16, int16_t, INT16_MIN, INT16_MAX)
NUM_CVT_INT(u32, uint32_t, 0, UINT32_MAX)
NUM_CVT_INT(s32, int32_t, INT32_MIN, INT32_MAX)
NUM_CVT_INT(u64, uint64_t, 0, UINT64_MAX)
NUM_CVT_INT(s64, int64_t, INT64_MIN, INT64_MAX)
#undef NUM_CVT_INT

// tf32 is f32 with the lower 13 bits zero. (An H200 lets .rna turn a signalling NaN into infinity; not so
// here.)
static inline uint32_t num_cvt_tf32_f32(float a, NumRound rnd, bool away) {
  uint32_t u = num_bits_f32(a), r = num_narrow(u, 10, -126, rnd, away) << 13;
  uint32_t mag = (u & 0x7fffffff) >= 0x7f800000 ? 0x7f800000 : r;
  return a == a ? mag | (u & 0x80000000) : 0x7fffe000;
}
static inline uint32_t num_satfinite_tf32(uint32_t a) {
  return (a & 0x7fffffff) == 0x7f800000 ? a - 0x2000 : a;
}
static inline uint32_t num_relu_tf32(uint32_t a) {
  return a >> 31 ? 0 : a;
} // its NaN has no sign

// Formats of up to 8 bits: sign, exponent, mantissa; only e5m2 has infinities, and .satfinite never makes
// one.
typedef enum NumSmall { NUM_E4M3, NUM_E5M2, NUM_E3M2, NUM_E2M3, NUM_E2M1 } NumSmall;
typedef struct NumSmallInfo {
  int mbits, bias;
  uint32_t largest, nan, sign; // codes; where there is no NaN, the number that stands in for it
} NumSmallInfo;
static inline NumSmallInfo num_small_info(NumSmall format) {
  switch (format) {
  case NUM_E4M3: return (NumSmallInfo){3, 7, 0x7e, 0x7f, 0x80};
  case NUM_E5M2: return (NumSmallInfo){2, 15, 0x7b, 0x7f, 0x80};
  case NUM_E3M2: return (NumSmallInfo){2, 3, 0x1f, 0x1f, 0x20};
  case NUM_E2M3: return (NumSmallInfo){3, 1, 0x1f, 0x1f, 0x20};
  case NUM_E2M1: break;
  }
  return (NumSmallInfo){1, 1, 0x07, 0x07, 0x08};
}
static inline uint32_t num_cvt_small_f32(float a, NumSmall format, bool relu) {
  NumSmallInfo f = num_small_info(format);
  uint32_t u = num_bits_f32(a), mag = num_narrow(u, f.mbits, 1 - f.bias, NUM_RN, false);
  mag = mag < f.largest && (u & 0x7fffffff) < 0x7f800000 ? mag : f.largest;
  return a != a ? f.nan : u >> 31 ? (relu ? 0 : mag | f.sign) : mag;
}
static inline float num_cvt_f32_small(uint32_t code, NumSmall format) {
  NumSmallInfo f = num_small_info(format);
  uint32_t mag = code & (f.sign - 1), sign = code & f.sign ? 1u << 31 : 0;
  float scale = num_f32((uint32_t)(254 - f.bias) << 23); // undoes the difference in bias, and normalises
  float r = num_f32(num_bits_f32(num_f32(mag << (23 - f.mbits)) * scale) | sign);
  bool nan = format == NUM_E4M3 ? mag == f.nan : format == NUM_E5M2 && mag > 0x7c;
  float special = nan ? num_f32(NUM_NAN_F32) : num_f32(0x7f800000 | sign);
  return nan || (format == NUM_E5M2 && mag == 0x7c) ? special : r;
}
static inline uint16_t num_cvt_f16_small(uint32_t code, NumSmall format) {
  return num_cvt_f16_f32_rn(num_cvt_f32_small(code, format)); // f16 holds all of them
}

// Powers of two from 2^-127 to 2^127, of the magnitude; 0xff is NaN and, without satfinite, overflow. rnd: RZ
// or RP.
static inline uint32_t num_cvt_ue8m0_f32(float a, NumRound rnd, bool satfinite) {
  uint32_t mag = num_bits_f32(a) & 0x7fffffff, r = mag >> 23;
  if (rnd == NUM_RP && mag > 0x400000 && mag < 0x7f800000 && mag & 0x7fffff) r++;
  return satfinite && r == 255 && mag <= 0x7f800000 ? 254 : r;
}
static inline uint16_t num_cvt_bf16_ue8m0(uint32_t code) {
  code &= 255;
  return (uint16_t)(code == 255 ? NUM_NAN_F16 : code ? code << 7 : 0x40);
}

// cvt.pack.sat: a above b in the low bits, each clamped to `bits` bits, and c shifted up above them.
static inline uint32_t num_pack_part(int32_t a, uint32_t bits, bool is_signed) {
  int32_t high = (int32_t)((1u << (bits - is_signed)) - 1), low = is_signed ? -high - 1 : 0;
  return (uint32_t)(a < low ? low : a > high ? high : a) & ((1u << bits) - 1);
}
static inline uint32_t num_cvt_pack(int32_t a, int32_t b, uint32_t c, uint32_t bits, bool is_signed) {
  uint32_t low = num_pack_part(b, bits, is_signed) | num_pack_part(a, bits, is_signed) << bits;
  return low | num_shl_u32(c, 2 * bits);
}

#endif
