// cvt between single numbers. A conversion is one or two passes from row to row, each a loop over 32 lanes;
// where the registers are wider than the types, or a modifier asks for more, further passes come before and
// after.
#include "emu/isa/isa.h"

#include "emu/isa/num_cvt.h"

typedef struct Cvt Cvt;
typedef void CvtPass(void *to, const void *from, const Cvt *c);
struct Cvt {        // EmuInst.more
  CvtPass *pass[2]; // the second may be NULL
  CvtPass *end[4];  // on the result in place, up to the first NULL
  bool flush_in;
  uint8_t rnd;                                  // NumRound
  uint8_t in_lane, in_size, out_lane, out_size; // bytes of a lane in the register, and of the type
  bool out_signed;
};

#define PASS(name, TD, TS, expr)                                                                             \
  EMU_HOT static void name(void *to, const void *from, const Cvt *k) {                                       \
    TD *d = (TD *)__builtin_assume_aligned(to, 64);                                                          \
    const TS *a = (const TS *)__builtin_assume_aligned(from, 64);                                            \
    (void)k;                                                                                                 \
    EMU_EACH(l) d[l] = (TD)(expr);                                                                           \
  }
// One loop for the rounding that is usual, one for the rest.
#define PASS_ROUNDED(name, TD, TS, usual, fn)                                                                \
  EMU_HOT static void name(void *to, const void *from, const Cvt *k) {                                       \
    TD *d = (TD *)__builtin_assume_aligned(to, 64);                                                          \
    const TS *a = (const TS *)__builtin_assume_aligned(from, 64);                                            \
    if (k->rnd == (usual)) {                                                                                 \
      EMU_EACH(l) d[l] = fn(a[l], usual);                                                                    \
      return;                                                                                                \
    }                                                                                                        \
    NumRound rnd = (NumRound)k->rnd;                                                                         \
    for (int l = 0; l < EMU_LANES; l++) d[l] = fn(a[l], rnd);                                                \
  }

// ---- integers ----

#define TO_WIDTHS(S, type)                                                                                   \
  PASS(to8_##S, uint8_t, type, a[l])                                                                         \
  PASS(to16_##S, uint16_t, type, a[l])                                                                       \
  PASS(to32_##S, uint32_t, type, a[l])                                                                       \
  PASS(to64_##S, uint64_t, type, a[l])
TO_WIDTHS(u8, uint8_t)
TO_WIDTHS(s8, int8_t)
TO_WIDTHS(u16, uint16_t)
TO_WIDTHS(s16, int16_t)
TO_WIDTHS(u32, uint32_t)
TO_WIDTHS(s32, int32_t)
TO_WIDTHS(u64, uint64_t)
TO_WIDTHS(s64, int64_t)
#define SATURATE(D, type)                                                                                    \
  PASS(sat_##D##_u64, type, uint64_t, num_cvt_sat_##D##_u64(a[l]))                                           \
  PASS(sat_##D##_s64, type, int64_t, num_cvt_sat_##D##_s64(a[l]))                                            \
  PASS_ROUNDED(D##_f32, type, float, NUM_RZ, num_cvt_##D##_f32)                                              \
  PASS_ROUNDED(D##_f64, type, double, NUM_RZ, num_cvt_##D##_f64)
SATURATE(u8, uint8_t)
SATURATE(s8, int8_t)
SATURATE(u16, uint16_t)
SATURATE(s16, int16_t)
SATURATE(u32, uint32_t)
SATURATE(s32, int32_t)
SATURATE(u64, uint64_t)
SATURATE(s64, int64_t)

// ---- floats ----

#define FROM_INT(S, type)                                                                                    \
  PASS_ROUNDED(f32_##S, float, type, NUM_RN, num_cvt_f32_##S)                                                \
  PASS_ROUNDED(f64_##S, double, type, NUM_RN, num_cvt_f64_##S)                                               \
  PASS_ROUNDED(f16_##S, uint16_t, type, NUM_RN, num_cvt_f16_##S)                                             \
  PASS_ROUNDED(bf16_##S, uint16_t, type, NUM_RN, num_cvt_bf16_##S)
FROM_INT(u32, uint32_t)
FROM_INT(s32, int32_t)
FROM_INT(u64, uint64_t)
FROM_INT(s64, int64_t)

PASS(f32_f16, float, uint16_t, num_cvt_f32_f16(a[l]))
PASS(f32_bf16, float, uint16_t, num_cvt_f32_bf16(a[l]))
PASS(f64_f16, double, uint16_t, num_cvt_f64_f16(a[l]))
PASS(f64_bf16, double, uint16_t, num_cvt_f64_bf16(a[l]))
PASS(f64_f32, double, float, num_cvt_f64_f32(a[l]))
PASS_ROUNDED(f32_f64, float, double, NUM_RN, num_cvt_f32_f64)
PASS_ROUNDED(f32_ftz_f64, float, double, NUM_RN, num_cvt_ftz_f32_f64)
PASS_ROUNDED(f16_f32, uint16_t, float, NUM_RN, num_cvt_f16_f32)
PASS_ROUNDED(f16_f64, uint16_t, double, NUM_RN, num_cvt_f16_f64)
PASS_ROUNDED(bf16_f32, uint16_t, float, NUM_RN, num_cvt_bf16_f32)
PASS_ROUNDED(bf16_f64, uint16_t, double, NUM_RN, num_cvt_bf16_f64)
PASS_ROUNDED(rint_f32, float, float, NUM_RN, num_rint_f32)
PASS_ROUNDED(rint_f64, double, double, NUM_RN, num_rint_f64)
PASS_ROUNDED(rint_f16, uint16_t, uint16_t, NUM_RN, num_rint_f16)
PASS_ROUNDED(rint_bf16, uint16_t, uint16_t, NUM_RN, num_rint_bf16)
PASS(tf32_rna, uint32_t, float, num_cvt_tf32_f32(a[l], NUM_RN, true))
PASS(tf32_f32, uint32_t, float, num_cvt_tf32_f32(a[l], (NumRound)k->rnd, false))
PASS(same_u16, uint16_t, uint16_t, a[l])
PASS(same_u32, uint32_t, uint32_t, a[l])
PASS(same_u64, uint64_t, uint64_t, a[l])

// Before and after. Flushing also makes a NaN canonical, as the instruction does.
PASS(flush_f32, float, float, num_ftz_f32(num_canon_f32(a[l])))
PASS(end_sat_f32, float, float, num_sat_f32(a[l]))
PASS(end_sat_f64, double, double, num_sat_f64(a[l]))
PASS(end_sat_f16, uint16_t, uint16_t, num_sat_f16(a[l]))
PASS(end_sat_bf16, uint16_t, uint16_t, a[l] > 0x7f80 ? 0 : a[l] < 0x3f80 ? a[l] : 0x3f80)
PASS(end_relu_f16, uint16_t, uint16_t, num_relu_f16(a[l]))
PASS(end_relu_bf16, uint16_t, uint16_t, num_relu_bf16(a[l]))
PASS(end_relu_tf32, uint32_t, uint32_t, num_relu_tf32(a[l]))
PASS(end_finite_f16, uint16_t, uint16_t, num_satfinite_f16(a[l]))
PASS(end_finite_bf16, uint16_t, uint16_t, num_satfinite_bf16(a[l]))
PASS(end_finite_tf32, uint32_t, uint32_t, num_satfinite_tf32(a[l]))

// ---- running ----

typedef struct CvtRow {
  _Alignas(64) uint64_t lane[EMU_LANES];
} CvtRow;

static void cvt_direct(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Cvt *c = i->more;
  if (mask == EMU_ALL) {
    c->pass[0](emu_at(x, i->d), emu_at(x, i->a), c);
    return;
  }
  CvtRow row;
  c->pass[0](&row, emu_at(x, i->a), c);
  switch (c->out_size) {
  case 2: ops_blend_uint16_t(x, i->d, mask, &row); break;
  case 4: ops_blend_uint32_t(x, i->d, mask, &row); break;
  default: ops_blend_uint64_t(x, i->d, mask, &row);
  }
}

static void cvt_narrow(void *to, const void *from, int size, int lane) {
  for (int l = 0; l < EMU_LANES; l++)
    memcpy((uint8_t *)to + l * size, (const uint8_t *)from + l * lane, (size_t)size);
}

static void cvt_general(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Cvt *c = i->more;
  CvtRow row[2];
  int at = 0;
  const void *from = emu_at(x, i->a);
  if (c->in_lane != c->in_size) cvt_narrow(&row[at], from, c->in_size, c->in_lane), from = &row[at], at ^= 1;
  if (c->flush_in) flush_f32(&row[at], from, c), from = &row[at], at ^= 1;
  for (int n = 0; n < 2 && c->pass[n]; n++) c->pass[n](&row[at], from, c), from = &row[at], at ^= 1;
  CvtRow *result = &row[at ^ 1];
  for (int n = 0; n < 4 && c->end[n]; n++) c->end[n](result, result, c);
  uint8_t *d = emu_at(x, i->d);
  for (; mask; mask &= mask - 1) { // little-endian; a wider register takes the value extended
    int l = emu_first(mask);
    uint64_t v = 0;
    memcpy(&v, (const uint8_t *)result + l * c->out_size, c->out_size);
    int unused = 64 - 8 * c->out_size;
    if (c->out_signed) v = (uint64_t)((int64_t)(v << unused) >> unused);
    memcpy(d + l * c->out_lane, &v, c->out_lane);
  }
}

// ---- choosing ----

enum { T_U8, T_S8, T_U16, T_S16, T_U32, T_S32, T_U64, T_S64, T_F16, T_BF16, T_F32, T_F64 };
static int cvt_type(int type) {
  static const uint8_t types[] = {PTX_U8,  PTX_S8,  PTX_U16, PTX_S16,  PTX_U32, PTX_S32,
                                  PTX_U64, PTX_S64, PTX_F16, PTX_BF16, PTX_F32, PTX_F64};
  for (int i = 0; i < (int)SOL_COUNT(types); i++)
    if (types[i] == type) return i;
  return -1;
}

static CvtPass *int_to_width(int from, int log_bytes) {
#define WIDTHS(S)                                                                                            \
  { to8_##S, to16_##S, to32_##S, to64_##S }
  static CvtPass *const table[][4] = {WIDTHS(u8),  WIDTHS(s8),  WIDTHS(u16), WIDTHS(s16),
                                      WIDTHS(u32), WIDTHS(s32), WIDTHS(u64), WIDTHS(s64)};
  return table[from][log_bytes];
}

static void int_from_int(Cvt *c, int to, int from, bool sat) {
  static CvtPass *const clamp[][2] = {{sat_u8_u64, sat_u8_s64},   {sat_s8_u64, sat_s8_s64},
                                      {sat_u16_u64, sat_u16_s64}, {sat_s16_u64, sat_s16_s64},
                                      {sat_u32_u64, sat_u32_s64}, {sat_s32_u64, sat_s32_s64},
                                      {sat_u64_u64, sat_u64_s64}, {sat_s64_u64, sat_s64_s64}};
  c->pass[0] = int_to_width(from, sat ? 3 : to / 2);
  if (sat) c->pass[1] = clamp[to][from & 1];
}

static void int_from_float(Cvt *c, int to, int from) {
  static CvtPass *const table[][2] = {{u8_f32, u8_f64},   {s8_f32, s8_f64},   {u16_f32, u16_f64},
                                      {s16_f32, s16_f64}, {u32_f32, u32_f64}, {s32_f32, s32_f64},
                                      {u64_f32, u64_f64}, {s64_f32, s64_f64}};
  if (from == T_F16) c->pass[0] = f32_f16;
  if (from == T_BF16) c->pass[0] = f32_bf16;
  c->pass[c->pass[0] ? 1 : 0] = table[to][from == T_F64];
}

static void float_from_int(Cvt *c, int to, int from) {
  static CvtPass *const table[][4] = {{f16_u32, f16_s32, f16_u64, f16_s64},
                                      {bf16_u32, bf16_s32, bf16_u64, bf16_s64},
                                      {f32_u32, f32_s32, f32_u64, f32_s64},
                                      {f64_u32, f64_s32, f64_u64, f64_s64}};
  if (from < T_U32) c->pass[0] = int_to_width(from, 2), from = T_S32;
  c->pass[c->pass[0] ? 1 : 0] = table[to - T_F16][from - T_U32];
}

static void float_from_float(Cvt *c, int to, int from, bool whole, bool ftz) {
  static CvtPass *const rint[] = {rint_f16, rint_bf16, rint_f32, rint_f64};
  static CvtPass *const same[] = {same_u16, same_u16, same_u32, same_u64};
  static CvtPass *const table[4][4] = {{NULL, NULL, f16_f32, f16_f64},
                                       {NULL, NULL, bf16_f32, bf16_f64},
                                       {f32_f16, f32_bf16, NULL, f32_f64},
                                       {f64_f16, f64_bf16, f64_f32, NULL}};
  to -= T_F16, from -= T_F16;
  int n = 0;
  if (whole) c->pass[n++] = rint[from];
  if (to == from && !whole) c->pass[n++] = same[to];
  if (to == from) return;
  if (table[to][from])
    c->pass[n] = ftz && table[to][from] == f32_f64 ? f32_ftz_f64 : table[to][from];
  else // from one 16-bit format to the other; f16 is the first
    c->pass[0] = from == 0 ? f32_f16 : f32_bf16, c->pass[1] = to == 0 ? f16_f32 : bf16_f32;
}

static void choose_ends(Cvt *c, const PtxCode *code, int to) {
  static CvtPass *const sat[] = {end_sat_f16, end_sat_bf16, end_sat_f32, end_sat_f64};
  int n = 0;
  bool tf32 = code->type[0] == PTX_TF32;
  if (PTX_HAS(code, FTZ) && to == T_F32 && code->type[1] != PTX_F64) c->end[n++] = flush_f32;
  if (PTX_HAS(code, SAT) && to >= T_F16) c->end[n++] = sat[to - T_F16];
  if (PTX_HAS(code, SATFINITE))
    c->end[n++] = tf32 ? end_finite_tf32 : to == T_F16 ? end_finite_f16 : end_finite_bf16;
  if (PTX_HAS(code, RELU)) c->end[n++] = tf32 ? end_relu_tf32 : to == T_F16 ? end_relu_f16 : end_relu_bf16;
}

static bool choose_passes(Cvt *c, const PtxCode *code) {
  int to = cvt_type(code->type[0]), from = cvt_type(code->type[1]);
  bool whole = code->rnd >= PTX_RND_RNI && code->rnd <= PTX_RND_RPI;
  c->rnd = (uint8_t)ops_round(code->rnd);
  choose_ends(c, code, to);
  if (code->type[0] == PTX_TF32) {
    c->pass[0] = code->rnd == PTX_RND_RNA ? tf32_rna : tf32_f32;
    return true;
  }
  if (to < 0 || from < 0) return false;
  c->out_signed = to < T_F16 && (to & 1);
  c->flush_in = from == T_F32 && to != T_F16 && PTX_HAS(code, FTZ); // to f16 an H200 does not flush
  if (to < T_F16 && from < T_F16)
    int_from_int(c, to, from, PTX_HAS(code, SAT));
  else if (to < T_F16)
    int_from_float(c, to, from);
  else if (from < T_F16)
    float_from_int(c, to, from);
  else
    float_from_float(c, to, from, whole, PTX_HAS(code, FTZ));
  if (to < T_F16 && from >= T_F16 && !code->rnd) c->rnd = NUM_RZ; // PTX wants it written
  return true;
}

OPS_LOWER(convert) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  if (code->op == PTX_OP_CVT_PACK || sol_ptx_type_class(code->type[0]) == PTX_CLASS_PACKED)
    return ops_cvt_packed(l, in, out);
  Cvt *c = lower_alloc(l, sizeof *c);
  if (!c || !choose_passes(c, code)) return false;
  out->d = lower_write(l, &o[0]), out->a = lower_read(l, &o[1]);
  c->in_lane = (uint8_t)lower_lane_bytes(l, &o[1]), c->out_lane = (uint8_t)lower_lane_bytes(l, &o[0]);
  c->in_size = (uint8_t)(sol_ptx_type_bits(code->type[1]) / 8),
  c->out_size = (uint8_t)(sol_ptx_type_bits(code->type[0]) / 8);
  bool direct =
      !c->pass[1] && !c->end[0] && !c->flush_in && c->in_lane == c->in_size && c->out_lane == c->out_size;
  out->more = c;
  out->run = direct ? cvt_direct : cvt_general;
  return true;
}

OPS_CHOOSE(convert);
