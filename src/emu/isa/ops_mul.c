// Products of integers: mul, mad, mul24, mad24, dp4a, dp2a, vabsdiff4.
#include "emu/isa/isa.h"

#include "emu/isa/num_int.h"

// ---- int_mul ----

#define MUL_WORD(T, type)                                                                                    \
  EMU_OP2(mul_lo_##T, type, type, num_mul_lo_##T(a[l], b[l]))                                                \
  EMU_OP3(mad_lo_##T, type, type, num_mad_lo_##T(a[l], b[l], c[l]))
MUL_WORD(u16, uint16_t)
MUL_WORD(u32, uint32_t)
MUL_WORD(u64, uint64_t)
#define MUL(T, type)                                                                                         \
  EMU_OP2(mul_hi_##T, type, type, num_mul_hi_##T(a[l], b[l]))                                                \
  EMU_OP3(mad_hi_##T, type, type, num_mad_hi_##T(a[l], b[l], c[l]))
OPS_EACH_INT(MUL)
#define MUL_WIDE(T, type, twice)                                                                             \
  EMU_OP2(mul_wide_##T, twice, type, num_mul_wide_##T(a[l], b[l]))                                           \
  EMU_OPX(mad_wide_##T, twice, type, type, twice, num_mad_wide_##T(a[l], b[l], c[l]))
MUL_WIDE(u16, uint16_t, uint32_t)
MUL_WIDE(s16, int16_t, int32_t)
MUL_WIDE(u32, uint32_t, uint64_t)
MUL_WIDE(s32, int32_t, int64_t)
EMU_OP3(mad_hi_sat_s32, int32_t, int32_t, num_mad_hi_sat_s32(a[l], b[l], c[l]))
#define MUL24(part, T, type)                                                                                 \
  EMU_OP2(mul24_##part##_##T, type, type, num_mul24_##part##_##T(a[l], b[l]))                                \
  EMU_OP3(mad24_##part##_##T, type, type, num_mad24_##part##_##T(a[l], b[l], c[l]))
MUL24(lo, u32, uint32_t)
MUL24(hi, u32, uint32_t)
MUL24(lo, s32, int32_t)
MUL24(hi, s32, int32_t)
EMU_OP3(mad24_hi_sat_s32, int32_t, int32_t, num_mad24_hi_sat_s32(a[l], b[l], c[l]))

static EmuHandler *mul_handler(const PtxCode *code) {
  static EmuHandler *const mul_lo[] = OPS_WORD_TABLE(mul_lo), *const mad_lo[] = OPS_WORD_TABLE(mad_lo);
  static EmuHandler *const mul_hi[] = OPS_INT_TABLE(mul_hi), *const mad_hi[] = OPS_INT_TABLE(mad_hi);
  static EmuHandler *const mul_wide[] = {mul_wide_u16, mul_wide_u32, NULL, mul_wide_s16, mul_wide_s32, NULL};
  static EmuHandler *const mad_wide[] = {mad_wide_u16, mad_wide_u32, NULL, mad_wide_s16, mad_wide_s32, NULL};
  int t = ops_int(code->type[0]);
  bool hi = code->fn == PTX_FN_HI, wide = code->fn == PTX_FN_WIDE, is_signed = t == OPS_S32;
  if (t < 0) return NULL;
  switch (code->op) {
  case PTX_OP_MUL: return wide ? mul_wide[t] : hi ? mul_hi[t] : mul_lo[t];
  case PTX_OP_MAD:
    if (PTX_HAS(code, SAT)) return mad_hi_sat_s32;
    return wide ? mad_wide[t] : hi ? mad_hi[t] : mad_lo[t];
  case PTX_OP_MUL24:
    if (hi) return is_signed ? mul24_hi_s32 : mul24_hi_u32;
    return is_signed ? mul24_lo_s32 : mul24_lo_u32;
  case PTX_OP_MAD24:
    if (PTX_HAS(code, SAT)) return mad24_hi_sat_s32;
    if (hi) return is_signed ? mad24_hi_s32 : mad24_hi_u32;
    return is_signed ? mad24_lo_s32 : mad24_lo_u32;
  default: return NULL;
  }
}

OPS_LOWER(int_mul) {
  lower_dabc(l, in, out);
  return (out->run = mul_handler(in->code)) != NULL;
}

// ---- int_dot ----

#define DOT(sa, sb)                                                                                          \
  EMU_OP3(dp4a_##sa##sb, uint32_t, uint32_t, num_dp4a(a[l], b[l], c[l], sa, sb))                             \
  EMU_OP3(dp2a_lo_##sa##sb, uint32_t, uint32_t, num_dp2a(a[l], b[l], c[l], sa, sb, false))                   \
  EMU_OP3(dp2a_hi_##sa##sb, uint32_t, uint32_t, num_dp2a(a[l], b[l], c[l], sa, sb, true))
DOT(0, 0)
DOT(0, 1)
DOT(1, 0)
DOT(1, 1)

// The magnitudes of the four differences of bytes: packed, or their sum.
static inline uint32_t absdiff4(uint32_t a, uint32_t b, bool a_signed, bool b_signed, bool sum) {
  uint32_t r = 0;
  for (uint32_t bit = 0; bit < 32; bit += 8) {
    int32_t diff = (int32_t)num_part(a, bit, 8, a_signed) - (int32_t)num_part(b, bit, 8, b_signed);
    uint32_t mag = (uint32_t)(diff < 0 ? -diff : diff);
    r = sum ? r + mag : r | (mag & 255) << bit;
  }
  return r;
}
#define ABSDIFF(sa, sb)                                                                                      \
  EMU_OP3(absdiff4_##sa##sb, uint32_t, uint32_t, absdiff4(a[l], b[l], sa, sb, false))                        \
  EMU_OP3(absdiff4_add_##sa##sb, uint32_t, uint32_t, c[l] + absdiff4(a[l], b[l], sa, sb, true))
ABSDIFF(0, 0)
ABSDIFF(0, 1)
ABSDIFF(1, 0)
ABSDIFF(1, 1)

OPS_LOWER(int_dot) {
  static EmuHandler *const dp4a[] = {dp4a_00, dp4a_01, dp4a_10, dp4a_11};
  static EmuHandler *const dp2a[][4] = {{dp2a_lo_00, dp2a_lo_01, dp2a_lo_10, dp2a_lo_11},
                                        {dp2a_hi_00, dp2a_hi_01, dp2a_hi_10, dp2a_hi_11}};
  static EmuHandler *const absdiff[][4] = {
      {absdiff4_00, absdiff4_01, absdiff4_10, absdiff4_11},
      {absdiff4_add_00, absdiff4_add_01, absdiff4_add_10, absdiff4_add_11}};
  const PtxCode *code = in->code;
  lower_dabc(l, in, out);
  bool video = code->op == PTX_OP_VABSDIFF4;
  int at = video ? 1 : 0; // a's type, then b's
  int s = (code->type[at] == PTX_S32) * 2 + (code->type[at + 1] == PTX_S32);
  if (video)
    out->run = absdiff[code->fn == PTX_FN_ADD][s];
  else
    out->run = code->op == PTX_OP_DP4A ? dp4a[s] : dp2a[code->fn == PTX_FN_HI][s];
  return true;
}

OPS_CHOOSE(int_mul);
OPS_CHOOSE(int_dot);
