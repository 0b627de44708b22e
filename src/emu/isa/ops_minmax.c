// min, max, abs, neg of f32 and f64.
#include "emu/isa/isa.h"

#include "emu/isa/num_order.h"

#define FTZ(v) num_ftz_f32(v)
#define MINMAX(op)                                                                                           \
  EMU_OP2(op##_f32, float, float, num_##op##_f32(a[l], b[l]))                                                \
  EMU_OP2(op##_ftz_f32, float, float, num_##op##_f32(FTZ(a[l]), FTZ(b[l])))                                  \
  EMU_OP2(op##_nan_f32, float, float, num_##op##_nan_f32(a[l], b[l]))                                        \
  EMU_OP2(op##_nan_ftz_f32, float, float, num_##op##_nan_f32(FTZ(a[l]), FTZ(b[l])))                          \
  EMU_OP2(op##_f64, double, double, num_##op##_f64(a[l], b[l]))
MINMAX(min)
MINMAX(max)
EMU_OP1(abs_f32, float, float, num_abs_f32(a[l]))
EMU_OP1(abs_ftz_f32, float, float, num_abs_f32(FTZ(a[l])))
EMU_OP1(abs_f64, double, double, num_abs_f64(a[l]))
EMU_OP1(neg_f32, float, float, num_neg_f32(a[l]))
EMU_OP1(neg_ftz_f32, float, float, num_neg_f32(FTZ(a[l])))
EMU_OP1(neg_f64, double, double, num_neg_f64(a[l]))

// The rarer forms: of magnitudes, with the product of the signs, of three operands.
enum { REST_MAX = 1, REST_NAN = 2, REST_FTZ = 4, REST_ABS = 8, REST_XORSIGN = 16, REST_THREE = 32 };
static inline float rest_two(float a, float b, int how) {
  if (how & REST_MAX) return how & REST_NAN ? num_max_nan_f32(a, b) : num_max_f32(a, b);
  return how & REST_NAN ? num_min_nan_f32(a, b) : num_min_f32(a, b);
}
static inline float rest_operand(float v, int how) {
  if (how & REST_FTZ) v = num_ftz_f32(v);
  return how & REST_ABS ? num_abs_f32(v) : v;
}
static float rest_all(float a, float b, float c, int how) {
  float r = rest_two(rest_operand(a, how), rest_operand(b, how), how);
  if (how & REST_THREE) r = rest_two(r, rest_operand(c, how), how);
  return how & REST_XORSIGN ? num_xorsign_f32(r, a, b) : r;
}
EMU_OPS(rest_f32, float, float, float, float, rest_all(a[l], b[l], c[l], i->fn))

static EmuHandler *minmax_handler(const PtxCode *code) {
  static EmuHandler *const min[] = {min_f32, min_ftz_f32, min_nan_f32, min_nan_ftz_f32};
  static EmuHandler *const max[] = {max_f32, max_ftz_f32, max_nan_f32, max_nan_ftz_f32};
  bool wide = code->type[0] == PTX_F64, ftz = PTX_HAS(code, FTZ);
  switch (code->op) {
  case PTX_OP_FMIN: return wide ? min_f64 : min[ftz + 2 * PTX_HAS(code, NAN)];
  case PTX_OP_FMAX: return wide ? max_f64 : max[ftz + 2 * PTX_HAS(code, NAN)];
  case PTX_OP_FABS: return wide ? abs_f64 : ftz ? abs_ftz_f32 : abs_f32;
  case PTX_OP_FNEG: return wide ? neg_f64 : ftz ? neg_ftz_f32 : neg_f32;
  default: return NULL;
  }
}

bool OPS(ops_minmax)(Lower *l, const PtxInst *in, EmuInst *out) {
  (void)l;
  const PtxCode *code = in->code;
  bool minmax = code->op == PTX_OP_FMIN || code->op == PTX_OP_FMAX;
  bool three = minmax && in->operands[3].kind != PTX_ARG_NONE;
  out->run = minmax_handler(code);
  if (minmax && (three || PTX_HAS(code, ABS))) {
    out->fn = (uint8_t)((code->op == PTX_OP_FMAX ? REST_MAX : 0) | (PTX_HAS(code, NAN) ? REST_NAN : 0) |
                        (PTX_HAS(code, FTZ) ? REST_FTZ : 0) | (PTX_HAS(code, ABS) ? REST_ABS : 0) |
                        (PTX_HAS(code, XORSIGN) ? REST_XORSIGN : 0) | (three ? REST_THREE : 0));
    out->run = rest_f32;
  }
  return out->run != NULL;
}
