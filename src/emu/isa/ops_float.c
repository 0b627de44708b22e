// add, sub, mul, fma, div of f32, f64, f32x2, and of f32 with a 16-bit operand.
#include "emu/isa/isa.h"

#include "emu/isa/num_approx.h"
#include "emu/isa/num_half.h"

// ---- f32 ----

// Each operation in each rounding as a function of three operands, and the same with .ftz.
#define ROUNDED(rnd, RND, ftz, z)                                                                            \
  static inline float add_##rnd##z(float a, float b, float c) {                                              \
    return (void)c, num_add##ftz##_f32(a, b, RND);                                                           \
  }                                                                                                          \
  static inline float sub_##rnd##z(float a, float b, float c) {                                              \
    return (void)c, num_sub##ftz##_f32(a, b, RND);                                                           \
  }                                                                                                          \
  static inline float mul_##rnd##z(float a, float b, float c) {                                              \
    return (void)c, num_mul##ftz##_f32(a, b, RND);                                                           \
  }                                                                                                          \
  static inline float fma_##rnd##z(float a, float b, float c) {                                              \
    return num_fma##ftz##_f32(a, b, c, RND);                                                                 \
  }                                                                                                          \
  static inline float div_##rnd##z(float a, float b, float c) {                                              \
    return (void)c, num_div##ftz##_f32(a, b, RND);                                                           \
  }
#define ROUNDED_BOTH(rnd, RND) ROUNDED(rnd, RND, , ) ROUNDED(rnd, RND, _ftz, _z)
OPS_EACH_ROUND(ROUNDED_BOTH)
#define FTZ(v) num_ftz_f32(v)
static inline float div_approx(float a, float b, float c) {
  return (void)c, num_div_approx_f32(a, b);
}
static inline float div_approx_z(float a, float b, float c) {
  return FTZ(div_approx(FTZ(a), FTZ(b), c));
}
static inline float div_full(float a, float b, float c) {
  return (void)c, num_div_full_f32(a, b);
}
static inline float div_full_z(float a, float b, float c) {
  return FTZ(div_full(FTZ(a), FTZ(b), c));
}

#define PLAIN_AND_FTZ(fn)                                                                                    \
  EMU_OP3(fn##_f32, float, float, fn(a[l], b[l], c[l]))                                                      \
  EMU_OP3(fn##_ftz_f32, float, float, fn##_z(a[l], b[l], c[l]))
#define ALL_MODES(fn)                                                                                        \
  PLAIN_AND_FTZ(fn)                                                                                          \
  EMU_OP3(fn##_sat_f32, float, float, num_sat_f32(fn(a[l], b[l], c[l])))                                     \
  EMU_OP3(fn##_ftz_sat_f32, float, float, num_sat_f32(fn##_z(a[l], b[l], c[l])))                             \
  OPS_PAIR(fn##_x2, float, uint64_t, fn(a[l], b[l], c[l]))                                                   \
  OPS_PAIR(fn##_ftz_x2, float, uint64_t, fn##_z(a[l], b[l], c[l]))
ALL_MODES(add_rn)
ALL_MODES(sub_rn)
ALL_MODES(mul_rn)
ALL_MODES(fma_rn)
PLAIN_AND_FTZ(div_rn)
// By the bits: exponents of a, of b and of the quotient at which the remainder may not be exact. Zero is such a dividend.
// bench/probe_div.cu shows them.
static inline int exponent_f32(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (int)(bits >> 23 & 255);
}
static inline bool rare_div_f32(float a, float b) {
  int ea = exponent_f32(a), eb = exponent_f32(b), quotient = ea - eb;
  return ea < 25 || ea == 255 || eb < 1 || eb > 252 || quotient < -125 || quotient > 126;
}
EMU_RARE(div_rn_f32, float, rare_div_f32(a[l], b[l]))
EMU_RARE(div_rn_ftz_f32, float, rare_div_f32(a[l], b[l]))
PLAIN_AND_FTZ(div_approx)
PLAIN_AND_FTZ(div_full)

// The other roundings are rare: a lane at a time, i->fn saying what else to do.
enum { MODE_FTZ = 1, MODE_SAT = 2 };
static inline float after(float v, int mode) {
  return mode & MODE_SAT ? num_sat_f32(v) : v;
}
#define DIRECTED_VALUE(op) (i->fn & MODE_FTZ ? op##_z(a[l], b[l], c[l]) : op(a[l], b[l], c[l]))
#define DIRECTED(op)       EMU_OPS(op##_f32, float, float, float, float, after(DIRECTED_VALUE(op), i->fn))
#define DIRECTED_PAIR(op)  DIRECTED(op) OPS_PAIR(op##_x2, float, uint64_t, DIRECTED_VALUE(op))
#define STAMP_DIRECTED(rnd)                                                                                  \
  DIRECTED_PAIR(add_##rnd)                                                                                   \
  DIRECTED_PAIR(sub_##rnd) DIRECTED_PAIR(mul_##rnd) DIRECTED_PAIR(fma_##rnd) DIRECTED(div_##rnd)
STAMP_DIRECTED(rz)
STAMP_DIRECTED(rm)
STAMP_DIRECTED(rp)

// ---- f64 ----

EMU_OP2(add_rn_f64, double, double, num_add_f64_rn(a[l], b[l]))
EMU_OP2(sub_rn_f64, double, double, num_sub_f64_rn(a[l], b[l]))
EMU_OP2(mul_rn_f64, double, double, num_mul_f64_rn(a[l], b[l]))
EMU_OP2(div_rn_f64, double, double, num_div_f64_rn(a[l], b[l]))
static inline int exponent_f64(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (int)(bits >> 52 & 2047);
}
static inline bool rare_div_f64(double a, double b) {
  int ea = exponent_f64(a), eb = exponent_f64(b), quotient = ea - eb;
  return ea < 54 || ea == 2047 || eb < 1 || eb == 2047 || quotient < -1021 || quotient > 1022;
}
EMU_RARE(div_rn_f64, double, rare_div_f64(a[l], b[l]))
#if NUM_HAS_FMA
EMU_OP3(fma_rn_f64, double, double, num_fma_f64_rn(a[l], b[l], c[l]))
#else
EMU_OPS(fma_rn_f64, double, double, double, double, num_fma_f64_rn(a[l], b[l], c[l]))
#endif
#define STAMP_F64(rnd, RND)                                                                                  \
  EMU_OPS(add_##rnd##_f64, double, double, double, double, num_add_f64(a[l], b[l], RND))                     \
  EMU_OPS(sub_##rnd##_f64, double, double, double, double, num_sub_f64(a[l], b[l], RND))                     \
  EMU_OPS(mul_##rnd##_f64, double, double, double, double, num_mul_f64(a[l], b[l], RND))                     \
  EMU_OPS(div_##rnd##_f64, double, double, double, double, num_div_f64(a[l], b[l], RND))                     \
  EMU_OPS(fma_##rnd##_f64, double, double, double, double, num_fma_f64(a[l], b[l], c[l], RND))
STAMP_F64(rz, NUM_RZ)
STAMP_F64(rm, NUM_RM)
STAMP_F64(rp, NUM_RP)

// ---- f32 with 16-bit operands ----

#define MIXED(OP, T, rnd)                                                                                    \
  OP(add_##T##_##rnd, float, uint16_t, float, float,                                                         \
     after(add_##rnd(num_cvt_f32_##T(a[l]), b[l], 0), i->fn))                                                \
  OP(sub_##T##_##rnd, float, uint16_t, float, float,                                                         \
     after(sub_##rnd(num_cvt_f32_##T(a[l]), b[l], 0), i->fn))                                                \
  OP(fma_##T##_##rnd, float, uint16_t, uint16_t, float,                                                      \
     after(fma_##rnd(num_cvt_f32_##T(a[l]), num_cvt_f32_##T(b[l]), c[l]), i->fn))
#define STAMP_MIXED(rnd, RND) MIXED(EMU_OPS, f16, rnd) MIXED(EMU_OPS, bf16, rnd)
OPS_EACH_ROUND(STAMP_MIXED)

// ---- choosing ----

enum { FLOAT_ADD, FLOAT_SUB, FLOAT_MUL, FLOAT_FMA, FLOAT_DIV };
static int float_op(int op) {
  switch (op) {
  case PTX_OP_FADD: return FLOAT_ADD;
  case PTX_OP_FSUB: return FLOAT_SUB;
  case PTX_OP_FMUL: return FLOAT_MUL;
  case PTX_OP_FMA: return FLOAT_FMA;
  case PTX_OP_FDIV: return FLOAT_DIV;
  default: return -1;
  }
}

#define BY_ROUND(op, suffix)                                                                                 \
  { op##_rn##suffix, op##_rz##suffix, op##_rm##suffix, op##_rp##suffix }
#define MODES(fn)                                                                                            \
  { fn##_f32, fn##_ftz_f32, fn##_sat_f32, fn##_ftz_sat_f32 }

static EmuHandler *f32_handler(const PtxCode *code, int op, int rnd) {
  static EmuHandler *const nearest[][4] = {MODES(add_rn), MODES(sub_rn), MODES(mul_rn), MODES(fma_rn)};
  static EmuHandler *const directed[][4] = {BY_ROUND(add, _f32), BY_ROUND(sub, _f32), BY_ROUND(mul, _f32),
                                            BY_ROUND(fma, _f32), BY_ROUND(div, _f32)};
  bool ftz = PTX_HAS(code, FTZ);
  if (PTX_HAS(code, APPROX)) return ftz ? div_approx_ftz_f32 : div_approx_f32;
  if (PTX_HAS(code, FULL)) return ftz ? div_full_ftz_f32 : div_full_f32;
  if (rnd != NUM_RN) return directed[op][rnd];
  if (op == FLOAT_DIV) return ftz ? div_rn_ftz_f32_rare : div_rn_f32_rare;
  return nearest[op][ftz + 2 * PTX_HAS(code, SAT)];
}

static EmuHandler *pair_handler(const PtxCode *code, int op, int rnd) {
  static EmuHandler *const table[][4] = {BY_ROUND(add, _x2), BY_ROUND(sub, _x2), BY_ROUND(mul, _x2),
                                         BY_ROUND(fma, _x2)};
  static EmuHandler *const flushed[] = {add_rn_ftz_x2, sub_rn_ftz_x2, mul_rn_ftz_x2, fma_rn_ftz_x2};
  if (op == FLOAT_DIV) return NULL;
  return rnd == NUM_RN && PTX_HAS(code, FTZ) ? flushed[op] : table[op][rnd];
}

static EmuHandler *mixed_handler(const PtxCode *code, int op, int rnd) {
  static EmuHandler *const add[][4] = {BY_ROUND(add_f16, ), BY_ROUND(add_bf16, )};
  static EmuHandler *const sub[][4] = {BY_ROUND(sub_f16, ), BY_ROUND(sub_bf16, )};
  static EmuHandler *const fma[][4] = {BY_ROUND(fma_f16, ), BY_ROUND(fma_bf16, )};
  bool brain = code->type[1] == PTX_BF16;
  switch (op) {
  case FLOAT_ADD: return add[brain][rnd];
  case FLOAT_SUB: return sub[brain][rnd];
  case FLOAT_FMA: return fma[brain][rnd];
  default: return NULL;
  }
}

static EmuHandler *float_handler(const PtxCode *code) {
  static EmuHandler *const f64[][4] = {BY_ROUND(add, _f64),
                                       BY_ROUND(sub, _f64),
                                       BY_ROUND(mul, _f64),
                                       BY_ROUND(fma, _f64),
                                       {div_rn_f64_rare, div_rz_f64, div_rm_f64, div_rp_f64}};
  int op = float_op(code->op), rnd = ops_round(code->rnd);
  switch (code->type[0]) {
  case PTX_F32: return code->type[1] ? mixed_handler(code, op, rnd) : f32_handler(code, op, rnd);
  case PTX_F64: return f64[op][rnd];
  case PTX_F32X2: return pair_handler(code, op, rnd);
  default: return NULL;
  }
}

OPS_LOWER(float_arith) {
  const PtxCode *code = in->code;
  lower_dabc(l, in, out);
  int type = code->type[0];
  if (type == PTX_F16 || type == PTX_BF16 || type == PTX_F16X2 || type == PTX_BF16X2)
    return OPS(ops_half)(l, in, out);
  if (float_op(code->op) < 0) return OPS(ops_minmax)(l, in, out);
  out->fn = (uint8_t)((PTX_HAS(code, FTZ) ? MODE_FTZ : 0) | (PTX_HAS(code, SAT) ? MODE_SAT : 0));
  return (out->run = float_handler(code)) != NULL;
}

OPS_CHOOSE(float_arith);
