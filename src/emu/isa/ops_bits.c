// Logic, bit fields, counting, permutation, shifts.
#include "emu/isa/isa.h"

#include "emu/isa/num_int.h"

// ---- bits ----

#define LOGIC(bits)                                                                                          \
  EMU_OP2(and_u##bits, uint##bits##_t, uint##bits##_t, a[l] & b[l])                                          \
  EMU_OP2(or_u##bits, uint##bits##_t, uint##bits##_t, a[l] | b[l])                                           \
  EMU_OP2(xor_u##bits, uint##bits##_t, uint##bits##_t, a[l] ^ b[l])                                          \
  EMU_OP1(not_u##bits, uint##bits##_t, uint##bits##_t, ~a[l])                                                \
  EMU_OP1(cnot_u##bits, uint##bits##_t, uint##bits##_t, a[l] == 0)
LOGIC(16)
LOGIC(32)
LOGIC(64)

#define LOGIC_PRED(name, expr)                                                                               \
  static void name##_pred(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                      \
    uint32_t a = emu_pred(x, i->a), b = emu_pred(x, i->b);                                                   \
    (void)b;                                                                                                 \
    emu_set_pred(x, i->d, mask, expr);                                                                       \
  }
LOGIC_PRED(and, a &b)
LOGIC_PRED(or, a | b)
LOGIC_PRED(xor, a ^ b)
LOGIC_PRED(not, ~a)

// The table is in i->offset. The tables that compilers emit most have their own handlers.
EMU_OP3(lop3, uint32_t, uint32_t, num_lop3(a[l], b[l], c[l], (uint32_t)i->offset))
EMU_OP3(lop3_xor3, uint32_t, uint32_t, a[l] ^ b[l] ^ c[l])
EMU_OP3(lop3_and_xor, uint32_t, uint32_t, (a[l] & b[l]) ^ c[l])
EMU_OP3(lop3_and_or, uint32_t, uint32_t, (a[l] & b[l]) | c[l])
static EmuHandler *lop3_handler(uint32_t table) {
  switch (table) {
  case 0x96: return lop3_xor3;
  case 0x6a: return lop3_and_xor;
  case 0xea: return lop3_and_or;
  default: return lop3;
  }
}

static void lop3_pred(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  lop3(x, i, mask);
  const uint32_t *d = EMU_IN(uint32_t, i->d);
  uint8_t bytes[EMU_LANES];
  EMU_EACH(l) bytes[l] = d[l] != 0;
  uint32_t bits = emu_pack(bytes), g = emu_pred(x, i->e);
  emu_set_pred(x, i->f, mask, i->fn == PTX_BOOL_AND ? bits & g : bits | g);
}

#define FIELD(T, type)                                                                                       \
  EMU_OPX(bfe_##T, type, type, uint32_t, uint32_t, num_bfe_##T(a[l], b[l], c[l]))                            \
  EMU_OP1(bfind_##T, uint32_t, type, num_bfind_##T(a[l], false))                                             \
  EMU_OP1(bfind_shift_##T, uint32_t, type, num_bfind_##T(a[l], true))
FIELD(u32, uint32_t)
FIELD(s32, int32_t)
FIELD(u64, uint64_t)
FIELD(s64, int64_t)
#define COUNT(T, type)                                                                                       \
  EMU_OP1(brev_##T, type, type, num_brev_##T(a[l]))                                                          \
  EMU_OP1(clz_##T, uint32_t, type, num_clz_##T(a[l]))                                                        \
  EMU_OP1(popc_##T, uint32_t, type, num_popc_##T(a[l]))                                                      \
  EMU_OPX(bfi_##T, type, type, type, uint32_t, num_bfi_##T(a[l], b[l], c[l], EMU_IN(uint32_t, i->e)[l]))
COUNT(u32, uint32_t)
COUNT(u64, uint64_t)

EMU_OPS(fns, uint32_t, uint32_t, uint32_t, int32_t, num_fns(a[l], b[l], c[l]))
EMU_OP3(prmt, uint32_t, uint32_t, num_prmt(a[l], b[l], c[l], NUM_PRMT))
EMU_OPS(prmt_mode, uint32_t, uint32_t, uint32_t, uint32_t, num_prmt(a[l], b[l], c[l], (NumPrmt)i->fn))
EMU_OP2(szext_u32, uint32_t, uint32_t, num_szext_u32(a[l], b[l], i->fn == PTX_EDGE_WRAP))
EMU_OPX(szext_s32, int32_t, int32_t, uint32_t, uint32_t, num_szext_s32(a[l], b[l], i->fn == PTX_EDGE_WRAP))
EMU_OP2(bmsk, uint32_t, uint32_t, num_bmsk(a[l], b[l], i->fn == PTX_EDGE_WRAP))

// prmt with constant selectors none of which replicates a sign: a shift, a mask and an or for each byte.
static inline uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t select) {
  uint32_t d = 0;
  for (uint32_t n = 0; n < 4; n++) {
    uint32_t s = select >> n * 4 & 7, from = s & 4 ? b : a;
    d |= (from >> (s & 3) * 8 & 255) << n * 8;
  }
  return d;
}
EMU_OP2(prmt_const, uint32_t, uint32_t, pick_bytes(a[l], b[l], (uint32_t)i->offset))

static EmuHandler *logic_handler(const PtxCode *code) {
  static EmuHandler *const table[][4] = {{and_pred, and_u16, and_u32, and_u64},
                                         {or_pred, or_u16, or_u32, or_u64},
                                         {xor_pred, xor_u16, xor_u32, xor_u64},
                                         {not_pred, not_u16, not_u32, not_u64},
                                         {NULL, cnot_u16, cnot_u32, cnot_u64}};
  int op = code->op == PTX_OP_AND   ? 0
           : code->op == PTX_OP_OR  ? 1
           : code->op == PTX_OP_XOR ? 2
           : code->op == PTX_OP_NOT ? 3
                                    : 4;
  return table[op][code->type[0] == PTX_PRED ? 0 : ops_int(code->type[0]) + 1];
}

static bool lower_lop3(Lower *l, const PtxInst *in, EmuInst *out) { // d p a b c e g
  const PtxOperand *o = in->operands;
  out->d = lower_write(l, &o[0]);
  out->a = lower_read(l, &o[2]), out->b = lower_read(l, &o[3]), out->c = lower_read(l, &o[4]);
  out->offset = (int64_t)(o[5].value & 255);
  out->run = lop3_handler((uint32_t)out->offset);
  if (!in->code->bool_op) return true;
  out->f = lower_write(l, &o[1]), out->e = lower_read(l, &o[6]);
  out->fn = in->code->bool_op;
  out->run = lop3_pred;
  return true;
}

static bool lower_prmt(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *select = &in->operands[3];
  lower_dabc(l, in, out);
  out->run = prmt;
  switch (in->code->fn) {
  case 0:
    if (select->kind == PTX_ARG_IMM && !(select->value & 0x8888))
      out->run = prmt_const, out->offset = (int64_t)(select->value & 0x7777);
    return true;
  case PTX_FN_F4E: out->fn = NUM_PRMT_F4E; break;
  case PTX_FN_B4E: out->fn = NUM_PRMT_B4E; break;
  case PTX_FN_RC8: out->fn = NUM_PRMT_RC8; break;
  case PTX_FN_ECL: out->fn = NUM_PRMT_ECL; break;
  case PTX_FN_ECR: out->fn = NUM_PRMT_ECR; break;
  case PTX_FN_RC16: out->fn = NUM_PRMT_RC16; break;
  default: return false;
  }
  out->run = prmt_mode;
  return true;
}

OPS_LOWER(bits) {
  static EmuHandler *const bfe[] = {NULL, bfe_u32, bfe_u64, NULL, bfe_s32, bfe_s64};
  static EmuHandler *const bfind[] = {NULL, bfind_u32, bfind_u64, NULL, bfind_s32, bfind_s64};
  static EmuHandler *const bfind_shift[] = {NULL, bfind_shift_u32, bfind_shift_u64,
                                            NULL, bfind_shift_s32, bfind_shift_s64};
  const PtxCode *code = in->code;
  int t = ops_int(code->type[0]);
  bool wide = t == OPS_U64;
  if (code->op == PTX_OP_LOP3) return lower_lop3(l, in, out);
  if (code->op == PTX_OP_PRMT) return lower_prmt(l, in, out);
  lower_dabc(l, in, out);
  out->fn = code->edge;
  switch (code->op) {
  case PTX_OP_AND:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_NOT:
  case PTX_OP_CNOT: out->run = logic_handler(code); break;
  case PTX_OP_BFE: out->run = bfe[t]; break;
  case PTX_OP_BFI:
    out->e = lower_read(l, &in->operands[4]);
    out->run = wide ? bfi_u64 : bfi_u32;
    break;
  case PTX_OP_BFIND: out->run = PTX_HAS(code, SHIFTAMT) ? bfind_shift[t] : bfind[t]; break;
  case PTX_OP_BREV: out->run = wide ? brev_u64 : brev_u32; break;
  case PTX_OP_CLZ: out->run = wide ? clz_u64 : clz_u32; break;
  case PTX_OP_POPC: out->run = wide ? popc_u64 : popc_u32; break;
  case PTX_OP_FNS: out->run = fns; break;
  case PTX_OP_SZEXT: out->run = t == OPS_S32 ? szext_s32 : szext_u32; break;
  case PTX_OP_BMSK: out->run = bmsk; break;
  default: break;
  }
  return out->run != NULL;
}

// ---- shift ----

#define SHIFT_LEFT(T, type)                                                                                  \
  EMU_OPX(shl_##T, type, type, uint32_t, uint32_t, num_shl_##T(a[l], b[l]))                                  \
  EMU_OP1(shl_by_##T, type, type, a[l] << i->fn)
SHIFT_LEFT(u16, uint16_t)
SHIFT_LEFT(u32, uint32_t)
SHIFT_LEFT(u64, uint64_t)
#define SHIFT_RIGHT(T, type)                                                                                 \
  EMU_OPX(shr_##T, type, type, uint32_t, uint32_t, num_shr_##T(a[l], b[l]))                                  \
  EMU_OP1(shr_by_##T, type, type, a[l] >> i->fn)
OPS_EACH_INT(SHIFT_RIGHT)

#define FUNNEL(name, shf, wrap) EMU_OP3(name, uint32_t, uint32_t, shf(a[l], b[l], c[l], wrap))
FUNNEL(shf_l_clamp, num_shf_l, false)
FUNNEL(shf_l_wrap, num_shf_l, true)
FUNNEL(shf_r_clamp, num_shf_r, false)
FUNNEL(shf_r_wrap, num_shf_r, true)
// By a constant from 1 to 31, to the left: what rotations are.
EMU_OP2(shf_by, uint32_t, uint32_t, b[l] << i->fn | a[l] >> (32 - i->fn))

static bool lower_shf(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *amount = &in->operands[3];
  bool left = in->code->fn == PTX_FN_LEFT, wrap = in->code->edge == PTX_EDGE_WRAP;
  lower_dabc(l, in, out);
  uint32_t n = (uint32_t)amount->value;
  if (wrap) n &= 31;
  if (!left) n = 32 - n; // b:a right by n is left by 32 - n
  if (amount->kind == PTX_ARG_IMM && n >= 1 && n <= 31)
    out->run = shf_by, out->fn = (uint8_t)n;
  else if (left)
    out->run = wrap ? shf_l_wrap : shf_l_clamp;
  else
    out->run = wrap ? shf_r_wrap : shf_r_clamp;
  return true;
}

// Shifts by a constant within the width need no comparison and vectorise everywhere.
OPS_LOWER(shift) {
  static EmuHandler *const shl[] = OPS_WORD_TABLE(shl), *const shl_by[] = OPS_WORD_TABLE(shl_by);
  static EmuHandler *const shr[] = OPS_INT_TABLE(shr), *const shr_by[] = OPS_INT_TABLE(shr_by);
  const PtxCode *code = in->code;
  if (code->op == PTX_OP_SHF) return lower_shf(l, in, out);
  int t = ops_int(code->type[0]);
  if (t < 0) return false;
  bool left = code->op == PTX_OP_SHL;
  lower_dabc(l, in, out);
  const PtxOperand *amount = &in->operands[2];
  bool by = amount->kind == PTX_ARG_IMM && amount->value < (uint64_t)sol_ptx_type_bits(code->type[0]);
  if (by) out->fn = (uint8_t)amount->value;
  out->run = by ? (left ? shl_by : shr_by)[t] : (left ? shl : shr)[t];
  return true;
}

OPS_CHOOSE(bits);
OPS_CHOOSE(shift);
