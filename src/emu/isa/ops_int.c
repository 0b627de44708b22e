// Integer arithmetic: add, sub, sad, div, rem, abs, neg, min, max, with carries, products, dot products.
#include "emu/isa/isa.h"

#include "emu/isa/num_int.h"

// ---- int_arith ----

#define ARITH_WORD(T, type)                                                                                  \
  EMU_OP2(add_##T, type, type, num_add_##T(a[l], b[l]))                                                      \
  EMU_OP2(sub_##T, type, type, num_sub_##T(a[l], b[l]))
ARITH_WORD(u16, uint16_t)
ARITH_WORD(u32, uint32_t)
ARITH_WORD(u64, uint64_t)

#define ARITH(T, type)                                                                                       \
  EMU_OP2(min_##T, type, type, num_min_##T(a[l], b[l]))                                                      \
  EMU_OP2(max_##T, type, type, num_max_##T(a[l], b[l]))                                                      \
  EMU_OP3(sad_##T, type, type, num_sad_##T(a[l], b[l], c[l]))
OPS_EACH_INT(ARITH)

#define ARITH_SIGNED(T, type)                                                                                \
  EMU_OP1(abs_##T, type, type, num_abs_##T(a[l]))                                                            \
  EMU_OP1(neg_##T, type, type, num_neg_##T(a[l]))
ARITH_SIGNED(s16, int16_t)
ARITH_SIGNED(s32, int32_t)
ARITH_SIGNED(s64, int64_t)

EMU_OP2(add_sat_s32, int32_t, int32_t, num_add_sat_s32(a[l], b[l]))
EMU_OP2(sub_sat_s32, int32_t, int32_t, num_sub_sat_s32(a[l], b[l]))
EMU_OP2(min_relu_s32, int32_t, int32_t, num_relu_s32(num_min_s32(a[l], b[l])))
EMU_OP2(max_relu_s32, int32_t, int32_t, num_relu_s32(num_max_s32(a[l], b[l])))
OPS_PAIR(add_x2, uint16_t, uint32_t, num_add_u16(a[l], b[l]))
OPS_PAIR(sub_x2, uint16_t, uint32_t, num_sub_u16(a[l], b[l]))
OPS_PAIR(min_u16x2, uint16_t, uint32_t, num_min_u16(a[l], b[l]))
OPS_PAIR(max_u16x2, uint16_t, uint32_t, num_max_u16(a[l], b[l]))
OPS_PAIR(min_s16x2, int16_t, uint32_t, num_min_s16(a[l], b[l]))
OPS_PAIR(max_s16x2, int16_t, uint32_t, num_max_s16(a[l], b[l]))
OPS_PAIR(min_relu_s16x2, int16_t, uint32_t, num_max_s16(num_min_s16(a[l], b[l]), 0))
OPS_PAIR(max_relu_s16x2, int16_t, uint32_t, num_max_s16(num_max_s16(a[l], b[l]), 0))

// Quotients of 32 bits by way of double, which vectorises and is exact: one that is no whole number is
// further from the next than double's 53 bits can fail to tell. u32 to double and back are spelt by way of
// int32_t, the one conversion that every vector unit has.
static inline double whole_u32(uint32_t v) {
  return (double)(int32_t)(v ^ 0x80000000u) + 0x1p31;
}
static inline uint32_t quick_div_u32(uint32_t a, uint32_t b) {
  double q = whole_u32(a) / whole_u32(b ? b : 1), high = q >= 0x1p31 ? 0x1p31 : 0;
  uint32_t r = (uint32_t)(int32_t)(q - high) ^ (q >= 0x1p31 ? 0x80000000u : 0);
  return b ? r : num_div_u32(a, 0);
}
static inline int32_t quick_div_s32(int32_t a, int32_t b) {
  bool plain = b != 0 && b != -1;
  int32_t q = (int32_t)((double)a / (double)(plain ? b : 1));
  return plain ? q : b ? num_neg_s32(a) : num_div_s32(a, 0);
}
EMU_OP2(div_u32, uint32_t, uint32_t, quick_div_u32(a[l], b[l]))
EMU_OP2(div_s32, int32_t, int32_t, quick_div_s32(a[l], b[l]))
EMU_OP2(rem_u32, uint32_t, uint32_t, b[l] ? a[l] - quick_div_u32(a[l], b[l]) * b[l] : num_rem_u32(a[l], 0))
EMU_OP2(rem_s32, int32_t, int32_t,
        b[l] ? num_sub_s32(a[l], num_mul_lo_s32(quick_div_s32(a[l], b[l]), b[l])) : num_rem_s32(a[l], 0))
EMU_OP2(div_u16, uint16_t, uint16_t, b[l] ? quick_div_u32(a[l], b[l]) : num_div_u16(a[l], 0))
EMU_OP2(rem_u16, uint16_t, uint16_t, b[l] ? a[l] - quick_div_u32(a[l], b[l]) * b[l] : num_rem_u16(a[l], 0))
EMU_OP2(div_s16, int16_t, int16_t, b[l] ? quick_div_s32(a[l], b[l]) : num_div_s16(a[l], 0))
EMU_OP2(rem_s16, int16_t, int16_t, b[l] ? a[l] - quick_div_s32(a[l], b[l]) * b[l] : num_rem_s16(a[l], 0))
#define ARITH_DIV(T, type)                                                                                   \
  EMU_OPS(div_##T, type, type, type, type, num_div_##T(a[l], b[l]))                                          \
  EMU_OPS(rem_##T, type, type, type, type, num_rem_##T(a[l], b[l]))
ARITH_DIV(u64, uint64_t)
ARITH_DIV(s64, int64_t)

static EmuHandler *arith_pair(const PtxCode *code) {
  bool is_signed = code->type[0] == PTX_S16X2, relu = PTX_HAS(code, RELU);
  switch (code->op) {
  case PTX_OP_ADD: return add_x2;
  case PTX_OP_SUB: return sub_x2;
  case PTX_OP_MIN: return relu ? min_relu_s16x2 : is_signed ? min_s16x2 : min_u16x2;
  case PTX_OP_MAX: return relu ? max_relu_s16x2 : is_signed ? max_s16x2 : max_u16x2;
  default: return NULL;
  }
}

static EmuHandler *arith_handler(const PtxCode *code) {
  static EmuHandler *const add[] = OPS_WORD_TABLE(add), *const sub[] = OPS_WORD_TABLE(sub);
  static EmuHandler *const min[] = OPS_INT_TABLE(min), *const max[] = OPS_INT_TABLE(max);
  static EmuHandler *const sad[] = OPS_INT_TABLE(sad), *const rem[] = OPS_INT_TABLE(rem);
  static EmuHandler *const div[] = OPS_INT_TABLE(div);
  static EmuHandler *const abs[] = {NULL, NULL, NULL, abs_s16, abs_s32, abs_s64};
  static EmuHandler *const neg[] = {NULL, NULL, NULL, neg_s16, neg_s32, neg_s64};
  if (code->type[0] == PTX_U16X2 || code->type[0] == PTX_S16X2) return arith_pair(code);
  int t = ops_int(code->type[0]);
  if (t < 0) return NULL;
  bool sat = PTX_HAS(code, SAT), relu = PTX_HAS(code, RELU);
  switch (code->op) {
  case PTX_OP_ADD: return sat ? add_sat_s32 : add[t];
  case PTX_OP_SUB: return sat ? sub_sat_s32 : sub[t];
  case PTX_OP_SAD: return sad[t];
  case PTX_OP_DIV: return div[t];
  case PTX_OP_REM: return rem[t];
  case PTX_OP_ABS: return abs[t];
  case PTX_OP_NEG: return neg[t];
  case PTX_OP_MIN: return relu ? min_relu_s32 : min[t];
  case PTX_OP_MAX: return relu ? max_relu_s32 : max[t];
  default: return NULL;
  }
}

OPS_LOWER(int_arith) {
  lower_dabc(l, in, out);
  return (out->run = arith_handler(in->code)) != NULL;
}

// ---- int_carry ----

// d = p + q + carry in. Each form of the family is a choice of p and q; i->fn has what to do with the flag.
enum { CARRY_IN = 1, CARRY_ONE = 2, CARRY_OUT = 4 };
#define CARRY(name, type, T, p, q)                                                                           \
  static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                             \
    type *d = EMU_OUT(type, i->d);                                                                           \
    const type *a = EMU_IN(type, i->a), *b = EMU_IN(type, i->b), *c = EMU_IN(type, i->c);                    \
    (void)c;                                                                                                 \
    uint32_t in = i->fn & CARRY_IN ? x->warp->carry : i->fn & CARRY_ONE ? EMU_ALL : 0, out = 0;              \
    for (uint32_t left = mask; left; left &= left - 1) {                                                     \
      int l = emu_first(left);                                                                               \
      uint32_t carry;                                                                                        \
      d[l] = num_addc_##T(p, q, in >> l & 1, &carry);                                                        \
      out |= carry << l;                                                                                     \
    }                                                                                                        \
    if (i->fn & CARRY_OUT) x->warp->carry = (x->warp->carry & ~mask) | out;                                  \
  }
CARRY(carry_add_u32, uint32_t, u32, a[l], b[l])
CARRY(carry_add_u64, uint64_t, u64, a[l], b[l])
CARRY(carry_sub_u32, uint32_t, u32, a[l], ~b[l])
CARRY(carry_sub_u64, uint64_t, u64, a[l], ~b[l])
CARRY(carry_mad_lo_u32, uint32_t, u32, num_mul_lo_u32(a[l], b[l]), c[l])
CARRY(carry_mad_lo_u64, uint64_t, u64, num_mul_lo_u64(a[l], b[l]), c[l])
CARRY(carry_mad_hi_u32, uint32_t, u32, num_mul_hi_u32(a[l], b[l]), c[l])
CARRY(carry_mad_hi_u64, uint64_t, u64, num_mul_hi_u64(a[l], b[l]), c[l])
CARRY(carry_mad_hi_s32, uint32_t, u32, (uint32_t)num_mul_hi_s32((int32_t)a[l], (int32_t)b[l]), c[l])
CARRY(carry_mad_hi_s64, uint64_t, u64, (uint64_t)num_mul_hi_s64((int64_t)a[l], (int64_t)b[l]), c[l])

OPS_LOWER(int_carry) {
  const PtxCode *code = in->code;
  int t = ops_int(code->type[0]);
  bool wide = t == OPS_U64 || t == OPS_S64, is_signed = t == OPS_S32 || t == OPS_S64,
       hi = code->fn == PTX_FN_HI;
  lower_dabc(l, in, out);
  bool takes = code->op == PTX_OP_ADDC || code->op == PTX_OP_SUBC || code->op == PTX_OP_MADC;
  out->fn = (uint8_t)((takes ? CARRY_IN : 0) | (code->op == PTX_OP_SUB_CC ? CARRY_ONE : 0) |
                      (PTX_HAS(code, CC) ? CARRY_OUT : 0));
  switch (code->op) {
  case PTX_OP_ADD_CC:
  case PTX_OP_ADDC: out->run = wide ? carry_add_u64 : carry_add_u32; return true;
  case PTX_OP_SUB_CC:
  case PTX_OP_SUBC: out->run = wide ? carry_sub_u64 : carry_sub_u32; return true;
  case PTX_OP_MAD_CC:
  case PTX_OP_MADC:
    if (!hi) out->run = wide ? carry_mad_lo_u64 : carry_mad_lo_u32;
    if (hi && is_signed) out->run = wide ? carry_mad_hi_s64 : carry_mad_hi_s32;
    if (hi && !is_signed) out->run = wide ? carry_mad_hi_u64 : carry_mad_hi_u32;
    return true;
  default: return false;
  }
}

OPS_CHOOSE(int_arith);
OPS_CHOOSE(int_carry);
