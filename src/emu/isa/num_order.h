// clang-format off
// Minima, signs and comparisons of f32 and f64, one lane at a time. T is f32 or f64.
//   num_min_T num_max_T (a, b)   num_min_nan_f32 num_max_nan_f32 (a, b): .NaN   num_xorsign_f32 (result, a, b)
//   num_abs_T num_neg_T (a)      num_testp_T (a, NumTestp)   num_cmp_T (a, b, NumCmp)   num_slct_f32 (c): c >= 0
// (num_copysign_T is in num_float.h.) min with .xorsign.abs is
// num_xorsign_f32(num_min_f32(num_abs_f32(a), num_abs_f32(b)), a, b); .ftz is num_ftz_f32 around operands and result.
// clang-format on
#ifndef SOL_EMU_NUM_ORDER_H
#define SOL_EMU_NUM_ORDER_H

#include "emu/isa/num_float.h"

// NaN gives way to a number, and -0 is below +0: of two equal operands, or and and of the bits pick the zero.
static inline float num_min_f32(float a, float b) {
  float equal = num_f32(num_bits_f32(a) | num_bits_f32(b));
  float r = a < b ? a : a == b ? equal : b;
  return b != b ? num_canon_f32(a) : r;
}
static inline float num_max_f32(float a, float b) {
  float equal = num_f32(num_bits_f32(a) & num_bits_f32(b));
  float r = a > b ? a : a == b ? equal : b;
  return b != b ? num_canon_f32(a) : r;
}
static inline float num_min_nan_f32(float a, float b) {
  return a == a && b == b ? num_min_f32(a, b) : num_f32(NUM_NAN_F32);
}
static inline float num_max_nan_f32(float a, float b) {
  return a == a && b == b ? num_max_f32(a, b) : num_f32(NUM_NAN_F32);
}
// .xorsign: a result that is no NaN takes the product of the operands' signs.
static inline float num_xorsign_f32(float r, float a, float b) {
  uint32_t sign = (num_bits_f32(a) ^ num_bits_f32(b)) & 0x80000000;
  return r == r ? num_f32((num_bits_f32(r) & 0x7fffffff) | sign) : r;
}
static inline double num_min_f64(double a, double b) {
  double equal = num_f64(num_bits_f64(a) | num_bits_f64(b));
  double r = a < b ? a : a == b ? equal : b;
  return b != b ? (a != a ? num_nan_f64(a, b) : a) : r;
}
static inline double num_max_f64(double a, double b) {
  double equal = num_f64(num_bits_f64(a) & num_bits_f64(b));
  double r = a > b ? a : a == b ? equal : b;
  return b != b ? (a != a ? num_nan_f64(a, b) : a) : r;
}

static inline float num_abs_f32(float a) {
  return num_canon_f32(num_f32(num_bits_f32(a) & 0x7fffffff));
}
static inline float num_neg_f32(float a) {
  return num_canon_f32(num_f32(num_bits_f32(a) ^ 0x80000000));
}
static inline double num_abs_f64(double a) {
  return a == a ? num_f64(num_bits_f64(a) & INT64_MAX) : num_nan_f64(a, a);
}
static inline double num_neg_f64(double a) {
  return a == a ? -a : num_nan_f64(a, a);
}
static inline bool num_slct_f32(float c) {
  return c >= 0;
}

typedef enum NumTestp {
  NUM_FINITE,
  NUM_INFINITE,
  NUM_NUMBER,
  NUM_NOTANUMBER,
  NUM_NORMAL, // zeros too
  NUM_SUBNORMAL
} NumTestp;

static inline bool num_testp(double a, NumTestp test, double smallest, double largest) {
  double mag = a < 0 ? -a : a;
  switch (test) {
  case NUM_FINITE: return mag <= largest;
  case NUM_INFINITE: return mag > largest;
  case NUM_NUMBER: return a == a;
  case NUM_NOTANUMBER: return a != a;
  case NUM_NORMAL: return (mag >= smallest && mag <= largest) || a == 0;
  case NUM_SUBNORMAL: return mag < smallest && a != 0;
  }
  return false;
}
static inline bool num_testp_f32(float a, NumTestp test) {
  return num_testp(a, test, FLT_MIN, FLT_MAX);
}
static inline bool num_testp_f64(double a, NumTestp test) {
  return num_testp(a, test, DBL_MIN, DBL_MAX);
}

#define NUM_CMP_FLOAT(T, type)                                                                               \
  static inline bool num_cmp_##T(type a, type b, NumCmp cmp) {                                               \
    switch (cmp) {                                                                                           \
    case NUM_EQ: return a == b;                                                                              \
    case NUM_NE: return a < b || a > b;                                                                      \
    case NUM_LT: return a < b;                                                                               \
    case NUM_LE: return a <= b;                                                                              \
    case NUM_GT: return a > b;                                                                               \
    case NUM_GE: return a >= b;                                                                              \
    case NUM_EQU: return !(a < b || a > b);                                                                  \
    case NUM_NEU: return a != b;                                                                             \
    case NUM_LTU: return !(a >= b);                                                                          \
    case NUM_LEU: return !(a > b);                                                                           \
    case NUM_GTU: return !(a <= b);                                                                          \
    case NUM_GEU: return !(a < b);                                                                           \
    case NUM_NUM: return a == a && b == b;                                                                   \
    case NUM_NAN: return a != a || b != b;                                                                   \
    }                                                                                                        \
    return false;                                                                                            \
  }
NUM_CMP_FLOAT(f32, float)
NUM_CMP_FLOAT(f64, double)
#undef NUM_CMP_FLOAT

#endif
