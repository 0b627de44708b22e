// setp, set, selp, slct.
#include "emu/isa/isa.h"

#include "emu/isa/num_half.h"

// ---- what becomes of a comparison's bits ----

// EmuInst of the family: d (or p), f = q, a, b, c = the predicate to combine with, fn = CompareEnd, flags =
// bool word, bytes = of a result, offset = set's value for true, by lane; pairs: in both halves.
enum CompareEnd { END_P, END_PQ, END_SET, END_PAIR_PQ, END_PAIR_SET };

static inline uint32_t combine(uint32_t bits, uint32_t c, int how) {
  switch (how) {
  case PTX_BOOL_AND: return bits & c;
  case PTX_BOOL_OR: return bits | c;
  case PTX_BOOL_XOR: return bits ^ c;
  default: return bits;
  }
}

#define SET_ROW(bits_)                                                                                       \
  static void set_row_u##bits_(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bits) {                  \
    uint##bits_##_t *d = EMU_OUT(uint##bits_##_t, i->d), yes = (uint##bits_##_t)i->offset;                   \
    for (; mask; mask &= mask - 1) {                                                                         \
      int l = emu_first(mask);                                                                               \
      d[l] = bits >> l & 1 ? yes : 0;                                                                        \
    }                                                                                                        \
  }
SET_ROW(16)
SET_ROW(32)

static void compare_end(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bits) {
  uint32_t c = emu_pred(x, i->c), p = combine(bits, c, i->flags);
  if (i->fn == END_SET) {
    if (i->bytes == 2)
      set_row_u16(x, i, mask, p);
    else
      set_row_u32(x, i, mask, p);
    return;
  }
  emu_set_pred(x, i->d, mask, p);
  if (i->fn == END_PQ) emu_set_pred(x, i->f, mask, combine(~bits, c, i->flags));
}

#define SETP(name, TS, expr)                                                                                 \
  EMU_CMP(compare_##name, TS, expr)                                                                          \
  static void setp_##name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                      \
    uint32_t bits = compare_##name(x, i);                                                                    \
    if (i->fn == END_P && !i->flags)                                                                         \
      emu_set_pred(x, i->d, mask, bits);                                                                     \
    else                                                                                                     \
      compare_end(x, i, mask, bits);                                                                         \
  }

// ---- the comparisons ----

#define SETP_INT(T, type)                                                                                    \
  SETP(eq_##T, type, a[l] == b[l])                                                                           \
  SETP(ne_##T, type, a[l] != b[l])                                                                           \
  SETP(lt_##T, type, a[l] < b[l])                                                                            \
  SETP(le_##T, type, a[l] <= b[l])                                                                           \
  SETP(gt_##T, type, a[l] > b[l])                                                                            \
  SETP(ge_##T, type, a[l] >= b[l])
SETP_INT(u16, uint16_t)
SETP_INT(u32, uint32_t)
SETP_INT(u64, uint64_t)
#define SETP_SIGNED(T, type)                                                                                 \
  SETP(lt_##T, type, a[l] < b[l])                                                                            \
  SETP(le_##T, type, a[l] <= b[l])                                                                           \
  SETP(gt_##T, type, a[l] > b[l])                                                                            \
  SETP(ge_##T, type, a[l] >= b[l])
SETP_SIGNED(s16, int16_t)
SETP_SIGNED(s32, int32_t)
SETP_SIGNED(s64, int64_t)

#define EACH_CMP(X, T)                                                                                       \
  X(eq, EQ, T)                                                                                               \
  X(ne, NE, T)                                                                                               \
  X(lt, LT, T)                                                                                               \
  X(le, LE, T)                                                                                               \
  X(gt, GT, T)                                                                                               \
  X(ge, GE, T)                                                                                               \
  X(equ, EQU, T)                                                                                             \
  X(neu, NEU, T) X(ltu, LTU, T) X(leu, LEU, T) X(gtu, GTU, T) X(geu, GEU, T) X(num, NUM, T) X(nan, NAN, T)
#define SETP_F32(name, CMP, T) SETP(name##_f32, float, num_cmp_f32(a[l], b[l], NUM_##CMP))
#define SETP_F64(name, CMP, T) SETP(name##_f64, double, num_cmp_f64(a[l], b[l], NUM_##CMP))
#define SETP_FTZ(name, CMP, T)                                                                               \
  SETP(name##_ftz_f32, float, num_cmp_f32(num_ftz_f32(a[l]), num_ftz_f32(b[l]), NUM_##CMP))
EACH_CMP(SETP_F32, f32)
EACH_CMP(SETP_F64, f64)
EACH_CMP(SETP_FTZ, f32)

// Halves go through float, which keeps their order.
static uint32_t compare_floats(const float *a, const float *b, int count, int cmp) {
  uint8_t bytes[EMU_LANES];
  switch (cmp) {
#define CASE(name, CMP, T)                                                                                   \
  case NUM_##CMP: OPS_EACH(l, count) bytes[l] = num_cmp_f32(a[l], b[l], NUM_##CMP); break;
    EACH_CMP(CASE, f32)
#undef CASE
  default: memset(bytes, 0, sizeof bytes);
  }
  return emu_pack(bytes);
}
typedef struct HalfCompare { // EmuInst.more
  uint8_t cmp;               // NumCmp
  bool brain, ftz, pair;
} HalfCompare;

static void halves_to_floats(const uint16_t *from, int step, const HalfCompare *how, float *to) {
  if (how->brain)
    for (int l = 0; l < EMU_LANES; l++) to[l] = num_cvt_f32_bf16(from[l * step]);
  else if (how->ftz)
    for (int l = 0; l < EMU_LANES; l++) to[l] = num_cvt_f32_f16(num_ftz_f16(from[l * step]));
  else
    for (int l = 0; l < EMU_LANES; l++) to[l] = num_cvt_f32_f16(from[l * step]);
}
static uint32_t compare_halves(EmuCtx *x, const EmuInst *i, const HalfCompare *how, int half) {
  const uint16_t *a = EMU_IN(uint16_t, i->a), *b = EMU_IN(uint16_t, i->b);
  float fa[EMU_LANES], fb[EMU_LANES];
  int step = how->pair ? 2 : 1;
  halves_to_floats(a + half, step, how, fa);
  halves_to_floats(b + half, step, how, fb);
  return compare_floats(fa, fb, EMU_LANES, how->cmp);
}
static void halves(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  compare_end(x, i, mask, compare_halves(x, i, i->more, 0));
}
static void pairs(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t low = compare_halves(x, i, i->more, 0), high = compare_halves(x, i, i->more, 1);
  uint32_t c = emu_pred(x, i->c);
  low = combine(low, c, i->flags), high = combine(high, c, i->flags);
  if (i->fn == END_PAIR_PQ) {
    emu_set_pred(x, i->d, mask, low);
    emu_set_pred(x, i->f, mask, high);
    return;
  }
  uint32_t *d = EMU_OUT(uint32_t, i->d), yes = (uint32_t)i->offset;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    d[l] = (low >> l & 1 ? yes & 0xffff : 0) | (high >> l & 1 ? yes & 0xffff0000 : 0);
  }
}

// ---- choosing ----

static int num_cmp(int cmp) {
  switch (cmp) {
  case PTX_CMP_EQ: return NUM_EQ;
  case PTX_CMP_NE: return NUM_NE;
  case PTX_CMP_LO:
  case PTX_CMP_LT: return NUM_LT;
  case PTX_CMP_LS:
  case PTX_CMP_LE: return NUM_LE;
  case PTX_CMP_HI:
  case PTX_CMP_GT: return NUM_GT;
  case PTX_CMP_HS:
  case PTX_CMP_GE: return NUM_GE;
  case PTX_CMP_EQU: return NUM_EQU;
  case PTX_CMP_NEU: return NUM_NEU;
  case PTX_CMP_LTU: return NUM_LTU;
  case PTX_CMP_LEU: return NUM_LEU;
  case PTX_CMP_GTU: return NUM_GTU;
  case PTX_CMP_GEU: return NUM_GEU;
  case PTX_CMP_NUM: return NUM_NUM;
  case PTX_CMP_NAN: return NUM_NAN;
  default: return -1;
  }
}

static EmuHandler *compare_handler(const PtxCode *code, int type) {
#define UNSIGNED_ROW(T) SIGNED_ROW(T, T)
#define SIGNED_ROW(T, U)                                                                                     \
  { setp_eq_##U, setp_ne_##U, setp_lt_##T, setp_le_##T, setp_gt_##T, setp_ge_##T }
#define FLOAT_ITEM(name, CMP, T) setp_##name##_##T,
  static EmuHandler *const ints[][6] = {UNSIGNED_ROW(u16),    UNSIGNED_ROW(u32),    UNSIGNED_ROW(u64),
                                        SIGNED_ROW(s16, u16), SIGNED_ROW(s32, u32), SIGNED_ROW(s64, u64)};
  static EmuHandler *const f32[] = {EACH_CMP(FLOAT_ITEM, f32)}, *const f64[] = {EACH_CMP(FLOAT_ITEM, f64)};
  static EmuHandler *const ftz[] = {EACH_CMP(FLOAT_ITEM, ftz_f32)};
  int cmp = num_cmp(code->cmp);
  bool as_unsigned = code->cmp >= PTX_CMP_LO && code->cmp <= PTX_CMP_HS;
  if (cmp < 0 || (as_unsigned && (type == PTX_F32 || type == PTX_F64))) return NULL;
  if (type == PTX_F32) return PTX_HAS(code, FTZ) ? ftz[cmp] : f32[cmp];
  if (type == PTX_F64) return f64[cmp];
  int t = ops_int(type);
  if (t < 0 || cmp > NUM_GE) return NULL;
  return ints[as_unsigned ? t % 3 : t][cmp];
}

// What set writes for true: 1.0, or all ones; in both halves for pairs.
static uint32_t set_value(int type) {
  switch (type) {
  case PTX_F32: return 0x3f800000;
  case PTX_F16: return 0x3c00;
  case PTX_BF16: return 0x3f80;
  case PTX_F16X2: return 0x3c003c00;
  case PTX_BF16X2: return 0x3f803f80;
  default: return UINT32_MAX;
  }
}

OPS_LOWER(compare) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  bool set = code->op == PTX_OP_SET;
  int type = set ? code->type[1] : code->type[0], first = set ? 1 : 2; // setp: p q a b c; set: d a b c
  bool pair = type == PTX_F16X2 || type == PTX_BF16X2, half = pair || type == PTX_F16 || type == PTX_BF16;
  bool has_q = !set && o[1].kind != PTX_ARG_NONE;
  out->d = lower_write(l, &o[0]);
  if (!set) out->f = lower_write(l, &o[1]);
  out->a = lower_read(l, &o[first]), out->b = lower_read(l, &o[first + 1]);
  out->c = code->bool_op ? lower_read(l, &o[first + 2]) : EMU_TRUE;
  out->flags = code->bool_op;
  out->fn = set ? END_SET : has_q ? END_PQ : END_P;
  if (set) {
    out->offset = set_value(code->type[0]);
    out->bytes = (uint8_t)(sol_ptx_type_bits(code->type[0]) / 8);
  }
  if (!half) return (out->run = compare_handler(code, type)) != NULL;
  HalfCompare *how = lower_alloc(l, sizeof *how);
  if (!how) return false;
  int cmp = num_cmp(code->cmp);
  *how = (HalfCompare){.cmp = (uint8_t)cmp, .brain = type == PTX_BF16 || type == PTX_BF16X2};
  how->ftz = PTX_HAS(code, FTZ), how->pair = pair;
  out->more = how;
  if (pair) out->fn = set ? END_PAIR_SET : END_PAIR_PQ;
  out->run = pair ? pairs : halves;
  return cmp >= 0;
}

// ---- select ----

static const uint32_t lane_bit[EMU_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

#define SELECT(bits)                                                                                         \
  EMU_HOT static void selp_u##bits(EmuCtx *x, const EmuInst *i, uint32_t mask) {                             \
    uint##bits##_t *d = EMU_OUT(uint##bits##_t, i->d);                                                       \
    const uint##bits##_t *a = EMU_IN(uint##bits##_t, i->a), *b = EMU_IN(uint##bits##_t, i->b);               \
    uint32_t c = emu_pred(x, i->c);                                                                          \
    if (mask == EMU_ALL) {                                                                                   \
      EMU_EACH(l) d[l] = c & lane_bit[l] ? a[l] : b[l];                                                      \
      return;                                                                                                \
    }                                                                                                        \
    EMU_EACH(l) {                                                                                            \
      uint##bits##_t v = c & lane_bit[l] ? a[l] : b[l];                                                      \
      d[l] = mask & lane_bit[l] ? v : d[l];                                                                  \
    }                                                                                                        \
  }                                                                                                          \
  EMU_OPX(slct_s_u##bits, uint##bits##_t, uint##bits##_t, uint##bits##_t, int32_t, c[l] >= 0 ? a[l] : b[l])  \
  EMU_OPX(slct_f_u##bits, uint##bits##_t, uint##bits##_t, uint##bits##_t, float,                             \
          num_slct_f32(c[l]) ? a[l] : b[l])                                                                  \
  EMU_OPX(slct_z_u##bits, uint##bits##_t, uint##bits##_t, uint##bits##_t, float,                             \
          num_slct_f32(num_ftz_f32(c[l])) ? a[l] : b[l])
SELECT(16)
SELECT(32)
SELECT(64)

OPS_LOWER(select) {
  static EmuHandler *const selp[] = {selp_u16, selp_u32, selp_u64};
  static EmuHandler *const slct[][3] = {{slct_s_u16, slct_s_u32, slct_s_u64},
                                        {slct_f_u16, slct_f_u32, slct_f_u64},
                                        {slct_z_u16, slct_z_u32, slct_z_u64}};
  const PtxCode *code = in->code;
  int bits = sol_ptx_type_bits(code->type[0]), width = bits == 16 ? 0 : bits == 32 ? 1 : 2;
  lower_dabc(l, in, out);
  int by = code->type[1] == PTX_S32 ? 0 : PTX_HAS(code, FTZ) ? 2 : 1;
  out->run = code->op == PTX_OP_SELP ? selp[width] : slct[by][width];
  return true;
}

OPS_CHOOSE(compare);
OPS_CHOOSE(select);
