// clang-format off
// f32 and f64 arithmetic of PTX, one lane at a time, exact to the last bit in every rounding mode.
// T is f32 or f64, rnd a NumRound; constant arguments fold away. (Minima, signs, comparisons: num_order.h.)
//   num_add_T num_sub_T num_mul_T num_div_T (a, b, rnd)   num_fma_T (a, b, c, rnd)   num_rcp_T num_sqrt_T (a, rnd)
//   num_add_T_rn ...                    the same to nearest: straight-line, for loops that should vectorise
//   num_add_ftz_f32 ... (a, b, rnd)     the .ftz forms of all seven, also with _rn
//   num_rint_T (a, rnd)                 to a whole number
//   num_cvt_f32_f64 num_cvt_ftz_f32_f64 (a, rnd)   num_cvt_f64_f32 (a)
//   num_sat_T (a)                       .sat, last of all
//   num_ftz_f32 (a)                     .ftz of what is not arithmetic: around each operand and the result
//
// NaN as on an H200: an f32 operation gives 0x7fffffff. An f64 operation gives its first NaN operand, made quiet
// (fma: a, then c, then b), and 0xfff8000000000000 where it makes a NaN itself.
//
// fma to nearest is one instruction where this translation unit is compiled for a machine that has it, else exact
// software. Compile users with -fno-math-errno (or a square root is a call) and, with gcc, -fno-trapping-math (or it
// will not vectorise what it could skip); neither changes a result. The host must round to nearest and keep
// subnormals, the default. A compiler that contracts a*b+c breaks the arithmetic: gcc does not under -std=c17,
// clang is told below.
// clang-format on
#ifndef SOL_EMU_NUM_FLOAT_H
#define SOL_EMU_NUM_FLOAT_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/isa/num_int.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16, "float must be computed as float");

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
#define NUM_HAS_FMA 1
#else
#define NUM_HAS_FMA 0
#endif

typedef enum NumRound { NUM_RN, NUM_RZ, NUM_RM, NUM_RP } NumRound; // to nearest even, to zero, down, up

static inline uint32_t num_bits_f32(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, sizeof u);
  return u;
}
static inline float num_f32(uint32_t u) {
  float f;
  __builtin_memcpy(&f, &u, sizeof f);
  return f;
}
static inline uint64_t num_bits_f64(double f) {
  uint64_t u;
  __builtin_memcpy(&u, &f, sizeof u);
  return u;
}
static inline double num_f64(uint64_t u) {
  double f;
  __builtin_memcpy(&f, &u, sizeof f);
  return f;
}

#define NUM_NAN_F32   0x7fffffffu
#define NUM_NAN_F64   0xfff8000000000000u
#define NUM_QUIET_F64 0x0008000000000000u

static inline float num_canon_f32(float r) {
  return r == r ? r : num_f32(NUM_NAN_F32);
}
// The NaN that an operation on a and b results in.
static inline double num_nan_f64(double a, double b) {
  uint64_t nan = a != a ? num_bits_f64(a) : b != b ? num_bits_f64(b) : NUM_NAN_F64;
  return num_f64(nan | NUM_QUIET_F64);
}

// Subnormals become zeros of the same sign.
static inline float num_ftz_f32(float a) {
  uint32_t u = num_bits_f32(a);
  return num_f32(u & 0x7f800000 ? u : u & 0x80000000);
}
// Into [+0, 1]; NaN to +0.
static inline float num_sat_f32(float a) {
  return a > 0 ? a < 1 ? a : 1 : 0;
}
static inline double num_sat_f64(double a) {
  return a > 0 ? a < 1 ? a : 1 : 0;
}

// Rounding to odd: `sum` is a result rounded to nearest, `error` the exact result less `sum`. Where that is
// not zero, the neighbour with an odd last bit is taken; rounding it again, to 2 bits fewer or less still, in
// any mode, then gives what rounding the exact result at once would.
static inline double num_odd_f64(double sum, double error) {
  uint64_t u = num_bits_f64(sum), even = (u & 1) - 1;
  uint64_t inexact =
      (error > 0 ? UINT64_MAX : 0) | (error < 0 ? UINT64_MAX : 0); // none where an infinity leaves NaN
  uint64_t step = (0 - ((u ^ num_bits_f64(error)) >> 63)) | 1;     // away from zero where the signs agree
  return num_f64(u + (even & inexact & step));
}
// a + b, rounded to odd. The sum must not overflow.
static inline double num_odd_sum(double a, double b) {
  double sum = a + b, from_b = sum - a;
  return num_odd_f64(sum, (a - (sum - from_b)) + (b - from_b));
}

// A double to f32, NaN left to the caller. Rounds to nearest, then steps back where that went the wrong way.
static inline float num_round_f32(double x, NumRound rnd) {
  float r = (float)x;
  uint32_t u = num_bits_f32(r);
  uint32_t out = u >> 31 ? UINT32_MAX : 1; // added, it moves up
  switch (rnd) {
  case NUM_RN: break;
  case NUM_RZ: u -= (x < 0 ? -x : x) < (r < 0 ? -(double)r : (double)r); break;
  case NUM_RM: u -= (double)r > x ? out : 0; break;
  case NUM_RP: u += (double)r < x ? out : 0; break;
  }
  return num_f32(u);
}

static inline float num_add_f32_rn(float a, float b) {
  return num_canon_f32(a + b);
}
static inline float num_sub_f32_rn(float a, float b) {
  return num_canon_f32(a - b);
}
static inline float num_mul_f32_rn(float a, float b) {
  return num_canon_f32(a * b);
}
static inline float num_div_f32_rn(float a, float b) {
  return num_canon_f32(a / b);
}
static inline float num_rcp_f32_rn(float a) {
  return num_canon_f32(1 / a);
}
static inline float num_sqrt_f32_rn(float a) {
  return num_canon_f32(__builtin_sqrtf(a));
}
static inline float num_fma_f32_rn(float a, float b, float c) {
#if NUM_HAS_FMA
  return num_canon_f32(__builtin_fmaf(a, b, c));
#else
  return num_canon_f32((float)num_odd_sum((double)a * b, c)); // the product of two floats is exact
#endif
}

// p + c, where p is exact. Rounding down makes -0 of a sum that cancels.
static inline float num_sum_f32(double p, double c, NumRound rnd) {
  double sum = num_odd_sum(p, c);
  if (rnd == NUM_RM && sum == 0 && (num_bits_f64(p) | num_bits_f64(c)) >> 63) sum = -0.0;
  return num_canon_f32(num_round_f32(sum, rnd));
}
static inline float num_add_f32(float a, float b, NumRound rnd) {
  return rnd == NUM_RN ? num_add_f32_rn(a, b) : num_sum_f32(a, b, rnd);
}
static inline float num_sub_f32(float a, float b, NumRound rnd) {
  return num_add_f32(a, -b, rnd);
}
static inline float num_mul_f32(float a, float b, NumRound rnd) {
  return rnd == NUM_RN ? num_mul_f32_rn(a, b) : num_canon_f32(num_round_f32((double)a * b, rnd));
}
static inline float num_fma_f32(float a, float b, float c, NumRound rnd) {
  return rnd == NUM_RN ? num_fma_f32_rn(a, b, c) : num_sum_f32((double)a * b, c, rnd);
}
// A quotient or root of floats that is not itself a float of 24 bits lies further from every such float than
// rounding to double moves it: no need to round to odd.
static inline float num_div_f32(float a, float b, NumRound rnd) {
  return rnd == NUM_RN ? num_div_f32_rn(a, b) : num_canon_f32(num_round_f32((double)a / b, rnd));
}
static inline float num_rcp_f32(float a, NumRound rnd) {
  return num_div_f32(1, a, rnd);
}
static inline float num_sqrt_f32(float a, NumRound rnd) {
  return rnd == NUM_RN ? num_sqrt_f32_rn(a) : num_canon_f32(num_round_f32(__builtin_sqrt(a), rnd));
}

// .ftz flushes operands, and a result that would be below the smallest normal number if it were rounded to 24
// bits with no end to the exponents: not quite the same as flushing a subnormal result, since one step below
// 2^-126 would be a float then. The scaled result, where exponents are in no danger, tells. (Sums need no
// such care: one of normal numbers that is below 2^-126 is exact.)
static inline float num_flush_f32(float r, float scaled) { // scaled: the result times 2^100
  bool tiny = scaled > -0x1p-26f && scaled < 0x1p-26f;
  return tiny ? num_f32(num_bits_f32(r) & 0x80000000) : r;
}
static inline float num_round_ftz_f32(double x, NumRound rnd) {
  return num_canon_f32(num_flush_f32(num_round_f32(x, rnd), num_round_f32(x * 0x1p100, rnd)));
}
static inline float num_add_ftz_f32_rn(float a, float b) {
  return num_ftz_f32(num_add_f32_rn(num_ftz_f32(a), num_ftz_f32(b)));
}
static inline float num_sub_ftz_f32_rn(float a, float b) {
  return num_ftz_f32(num_sub_f32_rn(num_ftz_f32(a), num_ftz_f32(b)));
}
static inline float num_mul_ftz_f32_rn(float a, float b) {
  a = num_ftz_f32(a), b = num_ftz_f32(b);
  return num_canon_f32(num_flush_f32(a * b, (a * 0x1p50f) * (b * 0x1p50f)));
}
static inline float num_fma_ftz_f32_rn(float a, float b, float c) {
  a = num_ftz_f32(a), b = num_ftz_f32(b), c = num_ftz_f32(c);
#if NUM_HAS_FMA
  float scaled = __builtin_fmaf(a * 0x1p50f, b * 0x1p50f, c * 0x1p100f); // no use but where it is small
  return num_canon_f32(num_flush_f32(__builtin_fmaf(a, b, c), scaled));
#else
  return num_round_ftz_f32(num_odd_sum((double)a * b, c), NUM_RN);
#endif
}
static inline float num_div_ftz_f32_rn(float a, float b) {
  return num_round_ftz_f32((double)num_ftz_f32(a) / num_ftz_f32(b), NUM_RN);
}
static inline float num_rcp_ftz_f32_rn(float a) {
  return num_ftz_f32(num_rcp_f32_rn(num_ftz_f32(a)));
}
static inline float num_sqrt_ftz_f32_rn(float a) {
  return num_sqrt_f32_rn(num_ftz_f32(a));
}

static inline float num_add_ftz_f32(float a, float b, NumRound rnd) {
  return num_ftz_f32(num_add_f32(num_ftz_f32(a), num_ftz_f32(b), rnd));
}
static inline float num_sub_ftz_f32(float a, float b, NumRound rnd) {
  return num_ftz_f32(num_sub_f32(num_ftz_f32(a), num_ftz_f32(b), rnd));
}
static inline float num_mul_ftz_f32(float a, float b, NumRound rnd) {
  return rnd == NUM_RN ? num_mul_ftz_f32_rn(a, b)
                       : num_round_ftz_f32((double)num_ftz_f32(a) * num_ftz_f32(b), rnd);
}
static inline float num_fma_ftz_f32(float a, float b, float c, NumRound rnd) {
  if (rnd == NUM_RN) return num_fma_ftz_f32_rn(a, b, c);
  a = num_ftz_f32(a), b = num_ftz_f32(b), c = num_ftz_f32(c);
  float r = num_sum_f32((double)a * b, c, rnd); // for the sign of a zero
  return num_flush_f32(r, num_round_f32(num_odd_sum((double)a * b, c) * 0x1p100, rnd));
}
static inline float num_div_ftz_f32(float a, float b, NumRound rnd) {
  return num_round_ftz_f32((double)num_ftz_f32(a) / num_ftz_f32(b), rnd);
}
static inline float num_rcp_ftz_f32(float a, NumRound rnd) {
  return num_ftz_f32(num_rcp_f32(num_ftz_f32(a), rnd));
}
static inline float num_sqrt_ftz_f32(float a, NumRound rnd) {
  return num_sqrt_f32(num_ftz_f32(a), rnd);
}

// f64 in any mode, in whole-number arithmetic (num_soft.c). Slow, and seldom wanted.
double sol_num_fma_f64(double a, double b, double c, NumRound rnd);
double sol_num_mul_f64(double a, double b, NumRound rnd);
double sol_num_div_f64(double a, double b, NumRound rnd);
double sol_num_sqrt_f64(double a, NumRound rnd);

static inline double num_add_f64_rn(double a, double b) {
  double r = a + b;
  return r == r ? r : num_nan_f64(a, b);
}
static inline double num_sub_f64_rn(double a, double b) {
  double r = a - b;
  return r == r ? r : num_nan_f64(a, b);
}
static inline double num_mul_f64_rn(double a, double b) {
  double r = a * b;
  return r == r ? r : num_nan_f64(a, b);
}
static inline double num_div_f64_rn(double a, double b) {
  double r = a / b;
  return r == r ? r : num_nan_f64(a, b);
}
static inline double num_rcp_f64_rn(double a) {
  return num_div_f64_rn(1, a);
}
static inline double num_sqrt_f64_rn(double a) {
  double r = __builtin_sqrt(a);
  return r == r ? r : num_nan_f64(a, a);
}
static inline double num_fma_f64_rn(double a, double b, double c) {
#if NUM_HAS_FMA
  double r = __builtin_fma(a, b, c);
  return r == r ? r : num_nan_f64(a, c != c ? c : b);
#else
  return sol_num_fma_f64(a, b, c, NUM_RN);
#endif
}

static inline double num_add_f64(double a, double b, NumRound rnd) {
  return rnd == NUM_RN ? num_add_f64_rn(a, b) : sol_num_fma_f64(a, 1, b, rnd);
}
static inline double num_sub_f64(double a, double b, NumRound rnd) {
  return rnd == NUM_RN ? num_sub_f64_rn(a, b) : sol_num_fma_f64(a, 1, b == b ? -b : b, rnd);
}
static inline double num_mul_f64(double a, double b, NumRound rnd) {
  return rnd == NUM_RN ? num_mul_f64_rn(a, b) : sol_num_mul_f64(a, b, rnd);
}
static inline double num_fma_f64(double a, double b, double c, NumRound rnd) {
  return rnd == NUM_RN ? num_fma_f64_rn(a, b, c) : sol_num_fma_f64(a, b, c, rnd);
}
static inline double num_div_f64(double a, double b, NumRound rnd) {
  return rnd == NUM_RN ? num_div_f64_rn(a, b) : sol_num_div_f64(a, b, rnd);
}
static inline double num_rcp_f64(double a, NumRound rnd) {
  return num_div_f64(1, a, rnd);
}
static inline double num_sqrt_f64(double a, NumRound rnd) {
  return rnd == NUM_RN ? num_sqrt_f64_rn(a) : sol_num_sqrt_f64(a, rnd);
}

// b with the sign of a; that is PTX's order.
static inline float num_copysign_f32(float a, float b) {
  return num_f32((num_bits_f32(a) & 0x80000000) | (num_bits_f32(b) & 0x7fffffff));
}
static inline double num_copysign_f64(double a, double b) {
  return num_f64((num_bits_f64(a) & ~(uint64_t)INT64_MAX) | (num_bits_f64(b) & INT64_MAX));
}

// To a whole number. Adding and taking away 2^23 rounds a smaller magnitude to nearest; larger ones are
// whole.
static inline float num_rint_f32(float a, NumRound rnd) {
  float mag = num_f32(num_bits_f32(a) & 0x7fffffff), whole = 0x1p23f, r = (mag + whole) - whole;
  bool up =
      rnd != NUM_RZ && (rnd == NUM_RP) == !(num_bits_f32(a) >> 31); // of the magnitude, in a directed mode
  if (rnd != NUM_RN) r += up ? (r < mag ? 1.0f : 0.0f) : (r > mag ? -1.0f : 0.0f);
  return mag < whole ? num_copysign_f32(a, r) : num_canon_f32(a);
}
static inline double num_rint_f64(double a, NumRound rnd) {
  double mag = num_f64(num_bits_f64(a) & INT64_MAX), whole = 0x1p52, r = (mag + whole) - whole;
  bool up = rnd != NUM_RZ && (rnd == NUM_RP) == !(num_bits_f64(a) >> 63);
  if (rnd != NUM_RN) r += up ? (r < mag ? 1.0 : 0.0) : (r > mag ? -1.0 : 0.0);
  return mag < whole ? num_copysign_f64(a, r) : a == a ? a : num_nan_f64(a, a);
}

// Sign and the upper part of a NaN's payload survive a conversion.
static inline float num_cvt_f32_f64(double a, NumRound rnd) {
  uint64_t u = num_bits_f64(a);
  uint32_t nan = (uint32_t)(u >> 32 & 0x80000000) | 0x7fc00000 | (uint32_t)(u >> 29 & 0x3fffff);
  return a == a ? num_round_f32(a, rnd) : num_f32(nan);
}
static inline float num_cvt_ftz_f32_f64(double a, NumRound rnd) {
  return num_flush_f32(num_cvt_f32_f64(a, rnd), num_round_f32(a * 0x1p100, rnd));
}
static inline double num_cvt_f64_f32(float a) {
  uint64_t u = num_bits_f32(a);
  uint64_t nan = (u & 0x80000000) << 32 | 0x7ff8000000000000u | (u & 0x3fffff) << 29;
  return a == a ? (double)a : num_f64(nan);
}

#endif
