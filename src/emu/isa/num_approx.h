// clang-format off
// The approximate f32 instructions of PTX (and the f64, f16, bf16 ones), one lane at a time, straight-line.
//                                        allowed by the PTX manual               worst here
//   num_rcp_approx_f32 (a)               1 ulp                                   0.5 ulp
//   num_sqrt_approx_f32 (a)              2^-23 relative                          2^-24
//   num_rsqrt_approx_f32 (a)             2^-22.9 relative                        2^-23.4
//   num_div_approx_f32 (a, b)            2 ulp for |b| in [2^-126, 2^126]        0.5 ulp
//   num_div_full_f32 (a, b)              2 ulp                                   0.5 ulp
//   num_ex2_approx_f32 (a)               2 ulp                                   1.15 ulp
//   num_lg2_approx_f32 (a)               2^-22 absolute in (0.5, 2)              2^-23.0
//                                        2^-22 relative elsewhere                2^-23.2
//   num_sin_approx_f32 (a)               2^-20.5 absolute in [-2pi, 2pi]         2^-20.59
//                                        2^-14.7 in [-100pi, 100pi]              2^-14.73
//   num_cos_approx_f32 (a)               the same                                2^-20.73, 2^-14.74
//   num_tanh_approx_f32 (a)              2^-11 relative                          2^-21.3
//   num_ex2_approx_f16 (h)               2^-9.9 relative                         2^-11
//   num_tanh_approx_f16 (h)              2^-10.987 absolute                      2^-12
//   num_ex2_approx_ftz_bf16 (h)          2^-7 relative                           2^-8
//   num_tanh_approx_bf16 (h)             2^-8 absolute                           2^-9
//   num_rcp_approx_ftz_f64 (a)           none: "gross"                           2^-20; only upper words take part
//   num_rsqrt_approx_ftz_f64 (a)         none                                    2^-20; only upper words take part
//   num_rsqrt_approx_f64 (a)             none                                    2^-51
// .ftz is num_ftz_f32 around operand and result. Bits differ from a GPU's within these bounds; infinities, zeros, NaN
// and subnormals are as in the manual's tables. tests/test_num_approx.c holds them
// to it.
// clang-format on
#ifndef SOL_EMU_NUM_APPROX_H
#define SOL_EMU_NUM_APPROX_H

#include "emu/isa/num_half.h"

static inline float num_rcp_approx_f32(float a) {
  return num_rcp_f32_rn(a);
}
static inline float num_sqrt_approx_f32(float a) {
  return num_sqrt_f32_rn(a);
}
static inline float num_rsqrt_approx_f32(float a) {
  return num_canon_f32(1 / __builtin_sqrtf(a));
}
static inline float num_div_full_f32(float a, float b) {
  return num_div_f32_rn(a, b);
}

// The instruction is a * (1/b), and 1/b is flushed to zero for the largest b.
static inline float num_div_approx_f32(float a, float b) {
  uint32_t u = num_bits_f32(b);
  bool lost = (u & 0x7fffffff) > 0x7e800000 && (u & 0x7fffffff) < 0x7f800000;
  return num_canon_f32(lost ? a * num_f32(u & 0x80000000) : a / b);
}

// 2^a = 2^n * 2^f, n whole and |f| <= 1/2. 2^n is applied in two steps, for it may be no float by itself;
// only the second can round, where the result is subnormal.
static inline float num_ex2_approx_f32(float a) {
  float x = a > -160 ? a : -160;
  x = x < 130 ? x : 130;
  float shifted = x + 0x1.8p23f, f = x - (shifted - 0x1.8p23f);
  int32_t n = (int32_t)(num_bits_f32(shifted) - 0x4b400000), low = n >> 1;
  float p = 0.000154531629f;
  p = p * f + 0.00133908634f;
  p = p * f + 0.00961808256f;
  p = p * f + 0.0555035711f;
  p = p * f + 0.240226508f;
  p = p * f + 0.693147188f;
  p = p * f + 1;
  p = p * num_f32((uint32_t)(low + 127) << 23) * num_f32((uint32_t)(n - low + 127) << 23);
  return a == a ? p : num_f32(NUM_NAN_F32);
}

// a = 2^n * m, m about 1; log m by s = (m-1)/(m+1), which makes an odd series that converges quickly.
static inline float num_lg2_approx_f32(float a) {
  bool tiny = a < 0x1p-126f;
  uint32_t u = num_bits_f32(tiny ? a * 0x1p24f : a), above = u - 0x3f3504f3; // of sqrt(1/2)
  int32_t n = (int32_t)above >> 23;
  float f = num_f32(u - ((uint32_t)n << 23)) - 1, s = f / (f + 2), z = s * s;
  float p = 0.320598899f;
  p = p * z + 0.412198583f;
  p = p * z + 0.577078016f;
  p = p * z + 0.961796694f;
  p = p * z + 2.88539008f;
  float r = p * s + (float)(n - (tiny ? 24 : 0));
  r = a <= FLT_MAX ? r : a; // infinity, NaN
  r = a == 0 ? num_f32(0xff800000) : r;
  return num_canon_f32(a < 0 ? num_f32(NUM_NAN_F32) : r);
}

// As the instruction does: a in turns, a multiplication by 1/(2 pi) rounded towards zero, so that the error
// grows with a and beyond 2^23 turns nothing is left. Then a quarter q of the turn and the sine or cosine of
// the rest, |r| <= 1/8 turn.
typedef struct NumTurn {
  float sine, cosine; // of the rest
  int32_t quarter;    // -2 to 2
} NumTurn;
static inline NumTurn num_turn(float a) {
  float turns = num_round_f32((double)a * 0x1.45f306p-3, NUM_RZ), f = turns - num_rint_f32(turns, NUM_RN);
  float shifted = f * 4 + 0x1.8p23f, r = f - (shifted - 0x1.8p23f) * 0.25f, z = r * r;
  float sine = 42.0586939f, cosine = 60.2446414f;
  sine = sine * z - 76.7058598f, cosine = cosine * z - 85.4568172f;
  sine = sine * z + 81.6052493f, cosine = cosine * z + 64.9393940f;
  sine = sine * z - 41.3417022f, cosine = cosine * z - 19.7392088f;
  sine = sine * z + 6.28318531f, cosine = cosine * z + 1;
  return (NumTurn){sine * r, cosine, (int32_t)(num_bits_f32(shifted) - 0x4b400000)};
}
static inline float num_turn_value(float a, NumTurn t, int32_t quarter) {
  float r = quarter & 1 ? t.cosine : t.sine;
  r = quarter & 2 ? -r : r;
  r = r == 0 ? num_copysign_f32(a, 0) : r; // only a sine of whole turns: of zero, or of too many to count
  return num_canon_f32(r);
}
static inline float num_sin_approx_f32(float a) {
  NumTurn t = num_turn(a);
  return num_turn_value(a, t, t.quarter);
}
static inline float num_cos_approx_f32(float a) {
  NumTurn t = num_turn(a);
  return num_turn_value(a, t, t.quarter + 1);
}

// Near zero, where the quotient would cancel, by series.
static inline float num_tanh_approx_f32(float a) {
  float mag = num_f32(num_bits_f32(a) & 0x7fffffff), z = a * a;
  float e = num_ex2_approx_f32(mag < 20 ? mag * 2.88539008f : 57), far = (e - 1) / (e + 1);
  float series = ((-0.0539682540f * z + 0.133333333f) * z - 0.333333333f) * z;
  float r = mag < 0.25f ? mag + mag * series : far;
  return num_canon_f32(a == a ? num_copysign_f32(a, r) : a);
}

static inline uint16_t num_ex2_approx_f16(uint16_t h) {
  return num_cvt_f16_f32_rn(num_ex2_approx_f32(num_cvt_f32_f16(h)));
}
static inline uint16_t num_tanh_approx_f16(uint16_t h) {
  return num_cvt_f16_f32_rn(num_tanh_approx_f32(num_cvt_f32_f16(h)));
}
static inline uint16_t num_ex2_approx_ftz_bf16(uint16_t h) {
  float r = num_ftz_f32(num_ex2_approx_f32(num_ftz_f32(num_cvt_f32_bf16(h))));
  return num_cvt_bf16_f32_rn(r);
}
static inline uint16_t num_tanh_approx_bf16(uint16_t h) {
  return num_cvt_bf16_f32_rn(num_tanh_approx_f32(num_cvt_f32_bf16(h)));
}

// f64: the lower word of the operand does not matter and that of the result is zero; so is a subnormal.
static inline double num_upper_f64(double r) {
  uint64_t u = (num_bits_f64(r) + 0x80000000u) & 0xffffffff00000000u;
  u = u & 0x7ff0000000000000u ? u : u & 0x8000000000000000u;
  return r == r ? num_f64(u) : num_f64(0x7fffffff00000000u);
}
static inline double num_upper_operand_f64(double a) {
  uint64_t u = num_bits_f64(a) & 0xffffffff00000000u;
  return num_f64(u & 0x7ff0000000000000u ? u : u & 0x8000000000000000u);
}
static inline double num_rcp_approx_ftz_f64(double a) {
  return num_upper_f64(1 / num_upper_operand_f64(a));
}
static inline double num_rsqrt_approx_ftz_f64(double a) {
  return num_upper_f64(1 / __builtin_sqrt(num_upper_operand_f64(a)));
}
static inline double num_rsqrt_approx_f64(double a) {
  double r = 1 / __builtin_sqrt(a);
  return r == r ? r : num_nan_f64(a, a);
}

#endif
