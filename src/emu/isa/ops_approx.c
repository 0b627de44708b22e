// Unary functions: reciprocal, roots, the approximate ones, copysign, testp.
#include "emu/isa/isa.h"

#include "emu/isa/num_approx.h"

#define UNARY(name, fn)                                                                                      \
  EMU_OP1(name##_f32, float, float, fn(a[l]))                                                                \
  EMU_OP1(name##_ftz_f32, float, float, num_ftz_f32(fn(num_ftz_f32(a[l]))))
UNARY(rcp_approx, num_rcp_approx_f32)
UNARY(sqrt_approx, num_sqrt_approx_f32)
UNARY(rsqrt_approx, num_rsqrt_approx_f32)
UNARY(sin_approx, num_sin_approx_f32)
UNARY(cos_approx, num_cos_approx_f32)
UNARY(lg2_approx, num_lg2_approx_f32)
UNARY(ex2_approx, num_ex2_approx_f32)
EMU_OP1(rcp_rn_f32, float, float, num_rcp_f32_rn(a[l]))
EMU_OP1(rcp_rn_ftz_f32, float, float, num_rcp_ftz_f32_rn(a[l]))
EMU_OP1(sqrt_rn_f32, float, float, num_sqrt_f32_rn(a[l]))
EMU_OP1(sqrt_rn_ftz_f32, float, float, num_sqrt_ftz_f32_rn(a[l]))
EMU_OP1(tanh_f32, float, float, num_tanh_approx_f32(a[l]))

// The other roundings, a lane at a time; i->fn: ftz.
#define DIRECTED(rnd, RND)                                                                                   \
  EMU_OPS(rcp_##rnd##_f32, float, float, float, float,                                                       \
          i->fn ? num_rcp_ftz_f32(a[l], RND) : num_rcp_f32(a[l], RND))                                       \
  EMU_OPS(sqrt_##rnd##_f32, float, float, float, float,                                                      \
          i->fn ? num_sqrt_ftz_f32(a[l], RND) : num_sqrt_f32(a[l], RND))                                     \
  EMU_OPS(rcp_##rnd##_f64, double, double, double, double, num_rcp_f64(a[l], RND))                           \
  EMU_OPS(sqrt_##rnd##_f64, double, double, double, double, num_sqrt_f64(a[l], RND))
DIRECTED(rz, NUM_RZ)
DIRECTED(rm, NUM_RM)
DIRECTED(rp, NUM_RP)

EMU_OP1(rcp_rn_f64, double, double, num_rcp_f64_rn(a[l]))
EMU_OP1(sqrt_rn_f64, double, double, num_sqrt_f64_rn(a[l]))
// Exponents by the bits, as in ops_float.c: those of a square root from the high half of its operand.
static inline uint32_t high_half(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (uint32_t)(bits >> 32);
}
static inline uint32_t bits_of(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
EMU_RARE(rcp_rn_f32, float, ((bits_of(a[l]) + 0x1800000) & 0x7f800000) <= 0x1ffffff)
EMU_RARE(rcp_rn_ftz_f32, float, ((bits_of(a[l]) + 0x1800000) & 0x7f800000) <= 0x1ffffff)
EMU_RARE(sqrt_rn_f32, float, bits_of(a[l]) - 0xd000000 > 0x727fffff)
EMU_RARE(sqrt_rn_ftz_f32, float, bits_of(a[l]) - 0xd000000 > 0x727fffff)
EMU_RARE(rcp_rn_f64, double, ((high_half(a[l]) + 0x300000) & 0x7fffffff) < 0x400000)
EMU_RARE(sqrt_rn_f64, double, high_half(a[l]) - 0x3500000 >= 0x7ca00000)
EMU_OP1(rcp_approx_ftz_f64, double, double, num_rcp_approx_ftz_f64(a[l]))
EMU_OP1(rsqrt_approx_f64, double, double, num_rsqrt_approx_f64(a[l]))
EMU_OP1(rsqrt_approx_ftz_f64, double, double, num_rsqrt_approx_ftz_f64(a[l]))

#define HALF(name, fn)                                                                                       \
  EMU_OP1(name##_one, uint16_t, uint16_t, fn(a[l]))                                                          \
  OPS_PAIR(name##_two, uint16_t, uint32_t, fn(a[l]))
HALF(ex2_f16, num_ex2_approx_f16)
HALF(ex2_bf16, num_ex2_approx_ftz_bf16)
HALF(tanh_f16, num_tanh_approx_f16)
HALF(tanh_bf16, num_tanh_approx_bf16)

EMU_OP2(copysign_f32, float, float, num_copysign_f32(a[l], b[l]))
EMU_OP2(copysign_f64, double, double, num_copysign_f64(a[l], b[l]))

// i->fn: NumTestp.
#define TESTP(T, type)                                                                                       \
  static void testp_##T(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                        \
    const type *a = EMU_IN(type, i->a);                                                                      \
    uint32_t bits = 0;                                                                                       \
    for (int l = 0; l < EMU_LANES; l++) bits |= (uint32_t)num_testp_##T(a[l], (NumTestp)i->fn) << l;         \
    emu_set_pred(x, i->d, mask, bits);                                                                       \
  }
TESTP(f32, float)
TESTP(f64, double)

static int testp_kind(int fn) {
  switch (fn) {
  case PTX_FN_FINITE: return NUM_FINITE;
  case PTX_FN_INFINITE: return NUM_INFINITE;
  case PTX_FN_NUMBER: return NUM_NUMBER;
  case PTX_FN_NOTANUMBER: return NUM_NOTANUMBER;
  case PTX_FN_NORMAL: return NUM_NORMAL;
  default: return NUM_SUBNORMAL;
  }
}

// ---- choosing ----

static EmuHandler *unary_rounded(const PtxCode *code) { // rcp, sqrt
  static EmuHandler *const rcp[] = {NULL, rcp_rz_f32, rcp_rm_f32, rcp_rp_f32};
  static EmuHandler *const sqrt[] = {NULL, sqrt_rz_f32, sqrt_rm_f32, sqrt_rp_f32};
  static EmuHandler *const rcp64[] = {rcp_rn_f64_rare, rcp_rz_f64, rcp_rm_f64, rcp_rp_f64};
  static EmuHandler *const sqrt64[] = {sqrt_rn_f64_rare, sqrt_rz_f64, sqrt_rm_f64, sqrt_rp_f64};
  bool is_rcp = code->op == PTX_OP_RCP, ftz = PTX_HAS(code, FTZ);
  int rnd = ops_round(code->rnd);
  if (code->type[0] == PTX_F64) return (is_rcp ? rcp64 : sqrt64)[rnd];
  if (rnd != NUM_RN) return (is_rcp ? rcp : sqrt)[rnd];
  if (is_rcp) return ftz ? rcp_rn_ftz_f32_rare : rcp_rn_f32_rare;
  return ftz ? sqrt_rn_ftz_f32_rare : sqrt_rn_f32_rare;
}

static EmuHandler *unary_f32(const PtxCode *code) {
  bool ftz = PTX_HAS(code, FTZ);
  switch (code->op) {
  case PTX_OP_RCP: return ftz ? rcp_approx_ftz_f32 : rcp_approx_f32;
  case PTX_OP_SQRT: return ftz ? sqrt_approx_ftz_f32 : sqrt_approx_f32;
  case PTX_OP_RSQRT: return ftz ? rsqrt_approx_ftz_f32 : rsqrt_approx_f32;
  case PTX_OP_SIN: return ftz ? sin_approx_ftz_f32 : sin_approx_f32;
  case PTX_OP_COS: return ftz ? cos_approx_ftz_f32 : cos_approx_f32;
  case PTX_OP_LG2: return ftz ? lg2_approx_ftz_f32 : lg2_approx_f32;
  case PTX_OP_EX2: return ftz ? ex2_approx_ftz_f32 : ex2_approx_f32;
  case PTX_OP_TANH: return tanh_f32;
  default: return NULL;
  }
}

static EmuHandler *unary_handler(const PtxCode *code) {
  bool ex2 = code->op == PTX_OP_EX2;
  switch (code->type[0]) {
  case PTX_F32: return unary_f32(code);
  case PTX_F64:
    if (code->op == PTX_OP_RCP) return rcp_approx_ftz_f64;
    return PTX_HAS(code, FTZ) ? rsqrt_approx_ftz_f64 : rsqrt_approx_f64;
  case PTX_F16: return ex2 ? ex2_f16_one : tanh_f16_one;
  case PTX_F16X2: return ex2 ? ex2_f16_two : tanh_f16_two;
  case PTX_BF16: return ex2 ? ex2_bf16_one : tanh_bf16_one;
  case PTX_BF16X2: return ex2 ? ex2_bf16_two : tanh_bf16_two;
  default: return NULL;
  }
}

OPS_LOWER(float_unary) {
  const PtxCode *code = in->code;
  lower_dabc(l, in, out);
  bool wide = code->type[0] == PTX_F64;
  switch (code->op) {
  case PTX_OP_TESTP:
    out->fn = (uint8_t)testp_kind(code->fn);
    out->run = wide ? testp_f64 : testp_f32;
    break;
  case PTX_OP_COPYSIGN: out->run = wide ? copysign_f64 : copysign_f32; break;
  default:
    out->fn = PTX_HAS(code, FTZ);
    out->run = PTX_HAS(code, APPROX) ? unary_handler(code) : unary_rounded(code);
  }
  return out->run != NULL;
}

OPS_CHOOSE(float_unary);
