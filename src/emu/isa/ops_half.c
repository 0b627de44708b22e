// Arithmetic of f16 and bf16, alone and in pairs.
#include "emu/isa/isa.h"

#include "emu/isa/num_half.h"

// Each expression makes two handlers: name_one for a 16-bit register, name_two for a word of two.
#define HALF(name, expr)                                                                                     \
  EMU_OP3(name##_one, uint16_t, uint16_t, expr)                                                              \
  OPS_PAIR(name##_two, uint16_t, uint32_t, expr)

// .oob: where a or b is this NaN, of either sign, the result is 0. The same bits in both formats, and c does
// not count: so measured on an H200.
static inline uint16_t oob(uint16_t r, uint16_t a, uint16_t b) {
  return (a & 0x7fff) == 0x7ff7 || (b & 0x7fff) == 0x7ff7 ? 0 : r;
}

#define FTZ(v) num_ftz_f16(v)
#define SAT(v) num_sat_f16(v)

#define SIMPLE(op)                                                                                           \
  HALF(op##_f16, num_##op##_f16(a[l], b[l]))                                                                 \
  HALF(op##_ftz_f16, num_##op##_ftz_f16(a[l], b[l]))                                                         \
  HALF(op##_sat_f16, SAT(num_##op##_f16(a[l], b[l])))                                                        \
  HALF(op##_ftz_sat_f16, SAT(num_##op##_ftz_f16(a[l], b[l])))                                                \
  HALF(op##_bf16, num_##op##_bf16(a[l], b[l]))
SIMPLE(add)
SIMPLE(sub)
SIMPLE(mul)

#define FMA_FTZ num_fma_ftz_f16(a[l], b[l], c[l])
HALF(fma_ftz_f16, FMA_FTZ)
HALF(fma_sat_f16, SAT(num_fma_f16(a[l], b[l], c[l])))
HALF(fma_ftz_sat_f16, SAT(FMA_FTZ))
HALF(fma_ftz_relu_f16, num_relu_f16(FMA_FTZ))
#define FMA(T)                                                                                               \
  HALF(fma_##T, num_fma_##T(a[l], b[l], c[l]))                                                               \
  HALF(fma_relu_##T, num_relu_##T(num_fma_##T(a[l], b[l], c[l])))                                            \
  HALF(fma_oob_##T, oob(num_fma_##T(a[l], b[l], c[l]), a[l], b[l]))                                          \
  HALF(fma_oob_relu_##T, oob(num_relu_##T(num_fma_##T(a[l], b[l], c[l])), a[l], b[l]))
FMA(f16)
FMA(bf16)

#define XOR(T, op) num_xorsign_##T(num_##op##_##T(num_abs_##T(a[l]), num_abs_##T(b[l])), a[l], b[l])
#define XOR_FTZ(op)                                                                                          \
  num_xorsign_f16(num_##op##_f16(num_abs_f16(FTZ(a[l])), num_abs_f16(FTZ(b[l]))), a[l], b[l])
#define MINMAX(op)                                                                                           \
  HALF(op##_f16, num_##op##_f16(a[l], b[l]))                                                                 \
  HALF(op##_ftz_f16, num_##op##_f16(FTZ(a[l]), FTZ(b[l])))                                                   \
  HALF(op##_bf16, num_##op##_bf16(a[l], b[l]))                                                               \
  HALF(op##_xor_f16, XOR(f16, op))                                                                           \
  HALF(op##_xor_ftz_f16, XOR_FTZ(op))                                                                        \
  HALF(op##_xor_bf16, XOR(bf16, op))
MINMAX(min)
MINMAX(max)
MINMAX(min_nan)
MINMAX(max_nan)

#define SIGN(op)                                                                                             \
  HALF(op##_f16, num_##op##_f16(a[l]))                                                                       \
  HALF(op##_ftz_f16, num_##op##_f16(FTZ(a[l])))                                                              \
  HALF(op##_bf16, num_##op##_bf16(a[l]))
SIGN(abs)
SIGN(neg)

// ---- choosing ----

enum {
  HALF_PLAIN,
  HALF_FTZ,
  HALF_SAT,
  HALF_FTZ_SAT,
  HALF_RELU,
  HALF_FTZ_RELU,
  HALF_OOB,
  HALF_OOB_RELU,
  HALF_MODES
};
typedef EmuHandler *const HalfRow[2]; // one, two
#define BOTH(name)                                                                                           \
  { name##_one, name##_two }

static const HalfRow *half_simple(int op, bool brain, int mode) {
#define SIMPLE_ROW(op)                                                                                       \
  { BOTH(op##_f16), BOTH(op##_ftz_f16), BOTH(op##_sat_f16), BOTH(op##_ftz_sat_f16), BOTH(op##_bf16) }
  static const HalfRow add[] = SIMPLE_ROW(add), sub[] = SIMPLE_ROW(sub), mul[] = SIMPLE_ROW(mul);
  int at = brain ? 4 : mode;
  if (mode > HALF_FTZ_SAT) return NULL;
  return op == PTX_OP_FADD ? &add[at] : op == PTX_OP_FSUB ? &sub[at] : &mul[at];
}

static const HalfRow *half_fma(bool brain, int mode) {
  static const HalfRow f16[HALF_MODES] = {
      BOTH(fma_f16),      BOTH(fma_ftz_f16),      BOTH(fma_sat_f16), BOTH(fma_ftz_sat_f16),
      BOTH(fma_relu_f16), BOTH(fma_ftz_relu_f16), BOTH(fma_oob_f16), BOTH(fma_oob_relu_f16)};
  static const HalfRow bf16[HALF_MODES] = {
      [HALF_PLAIN] = BOTH(fma_bf16),
      [HALF_RELU] = BOTH(fma_relu_bf16),
      [HALF_OOB] = BOTH(fma_oob_bf16),
      [HALF_OOB_RELU] = BOTH(fma_oob_relu_bf16),
  };
  return brain ? &bf16[mode] : &f16[mode];
}

static const HalfRow *half_minmax(const PtxCode *code, bool brain) {
#define MINMAX_ROW(op)                                                                                       \
  {                                                                                                          \
    BOTH(op##_f16), BOTH(op##_ftz_f16), BOTH(op##_bf16), BOTH(op##_xor_f16), BOTH(op##_xor_ftz_f16),         \
        BOTH(op##_xor_bf16)                                                                                  \
  }
  static const HalfRow table[][6] = {MINMAX_ROW(min), MINMAX_ROW(max), MINMAX_ROW(min_nan),
                                     MINMAX_ROW(max_nan)};
  int which = (code->op == PTX_OP_FMAX) + 2 * PTX_HAS(code, NAN);
  return &table[which][(brain ? 2 : PTX_HAS(code, FTZ)) + 3 * PTX_HAS(code, XORSIGN)];
}

static const HalfRow *half_row(const PtxCode *code, bool brain) {
  static const HalfRow abs[] = {BOTH(abs_f16), BOTH(abs_ftz_f16), BOTH(abs_bf16)};
  static const HalfRow neg[] = {BOTH(neg_f16), BOTH(neg_ftz_f16), BOTH(neg_bf16)};
  bool ftz = PTX_HAS(code, FTZ), relu = PTX_HAS(code, RELU);
  int mode = ftz + 2 * PTX_HAS(code, SAT);
  if (relu) mode = ftz ? HALF_FTZ_RELU : HALF_RELU;
  if (PTX_HAS(code, OOB)) mode = relu ? HALF_OOB_RELU : HALF_OOB;
  switch (code->op) {
  case PTX_OP_FADD:
  case PTX_OP_FSUB:
  case PTX_OP_FMUL: return half_simple(code->op, brain, mode);
  case PTX_OP_FMA: return half_fma(brain, mode);
  case PTX_OP_FMIN:
  case PTX_OP_FMAX: return half_minmax(code, brain);
  case PTX_OP_FABS: return &abs[brain ? 2 : ftz];
  case PTX_OP_FNEG: return &neg[brain ? 2 : ftz];
  default: return NULL;
  }
}

bool OPS(ops_half)(Lower *l, const PtxInst *in, EmuInst *out) {
  (void)l;
  int type = in->code->type[0];
  const HalfRow *row = half_row(in->code, type == PTX_BF16 || type == PTX_BF16X2);
  out->run = row ? (*row)[type == PTX_F16X2 || type == PTX_BF16X2] : NULL;
  return out->run != NULL;
}
