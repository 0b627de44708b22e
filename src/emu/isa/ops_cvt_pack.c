// cvt to and from packed types, and cvt.pack.
#include "emu/isa/isa.h"

#include "emu/isa/num_cvt.h"

// ---- two of 16 bits from two f32, to nearest: what kernels in half precision do most ----

#define PACK_TWO(T)                                                                                          \
  EMU_OP2(pack_##T##_two, uint32_t, float,                                                                   \
          (uint32_t)num_cvt_##T##_f32_rn(a[l]) << 16 | num_cvt_##T##_f32_rn(b[l]))
PACK_TWO(f16)
PACK_TWO(bf16)

// ---- the rest, a lane at a time ----

typedef struct Pack { // EmuInst.more
  uint8_t to, from;   // PtxType
  uint8_t small;      // NumSmall of the side that has it
  uint8_t rnd;        // NumRound
  bool stochastic, relu, satfinite;
  uint8_t in_lane, out_lane;
  const EmuLoc *four; // x4: where the operands are
} Pack;

// Stochastic rounding: up where what is dropped plus the random number, both as fractions of the last place
// kept, reaches one. A magnitude, for a format of mbits bits of mantissa and smallest normal number 2^emin.
static uint32_t narrow_random(uint32_t u, int mbits, int emin, uint32_t random, int random_bits) {
  uint32_t mag = u & 0x7fffffff, field = mag >> 23, mantissa = field ? (mag & 0x7fffff) | 0x800000 : mag;
  int exponent = field ? (int)field : 1, lowest = 127 + emin;
  int missing = exponent < lowest ? lowest - exponent : 0, shift = 23 - mbits + missing;
  shift = shift < 40 ? shift : 40;
  uint64_t kept = (uint64_t)mantissa >> shift, rest = mantissa & ((UINT64_C(1) << shift) - 1);
  uint64_t sum = (rest << random_bits) + ((uint64_t)random << shift);
  return (uint32_t)(kept + (sum >> (shift + random_bits))) +
         ((uint32_t)(exponent + missing - lowest) << mbits);
}

static uint32_t random_half(float v, bool brain, uint32_t random) {
  uint32_t u = num_bits_f32(v), infinity = brain ? 0x7f80 : 0x7c00;
  uint32_t mag =
      brain ? narrow_random(u, 7, -126, random & 0xffff, 16) : narrow_random(u, 10, -14, random & 0x1fff, 13);
  if ((u & 0x7fffffff) >= 0x7f800000 || mag > infinity) mag = infinity;
  return v == v ? mag | (u >> 16 & 0x8000) : NUM_NAN_F16;
}

static uint32_t random_small(float v, NumSmall format, bool relu, uint32_t random, int random_bits) {
  NumSmallInfo f = num_small_info(format);
  uint32_t u = num_bits_f32(v), mag = narrow_random(u, f.mbits, 1 - f.bias, random, random_bits);
  mag = mag < f.largest && (u & 0x7fffffff) < 0x7f800000 ? mag : f.largest;
  return v != v ? f.nan : u >> 31 ? (relu ? 0 : mag | f.sign) : mag;
}

// One f16 or bf16 of a pair.
static uint32_t pack_half(const Pack *p, float v, uint32_t random) {
  bool brain = p->to == PTX_BF16X2;
  uint16_t r;
  if (p->stochastic)
    r = (uint16_t)random_half(v, brain, random);
  else
    r = brain ? num_cvt_bf16_f32(v, (NumRound)p->rnd) : num_cvt_f16_f32(v, (NumRound)p->rnd);
  if (p->satfinite) r = brain ? num_satfinite_bf16(r) : num_satfinite_f16(r);
  if (p->relu) r = brain ? num_relu_bf16(r) : num_relu_f16(r);
  return r;
}

static uint64_t pack_load(const uint8_t *row, int l, int lane) {
  uint64_t v = 0;
  memcpy(&v, row + l * lane, (size_t)lane);
  return v;
}
static void pack_store(uint8_t *row, int l, int lane, uint64_t v) {
  memcpy(row + l * lane, &v, (size_t)lane);
}

#define PACK_EACH(name, value)                                                                               \
  static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                             \
    const Pack *p = i->more;                                                                                 \
    const float *a = EMU_IN(float, i->a), *b = EMU_IN(float, i->b);                                          \
    const uint32_t *c = EMU_IN(uint32_t, i->c);                                                              \
    const uint8_t *words = emu_at(x, i->a);                                                                  \
    uint8_t *d = emu_at(x, i->d);                                                                            \
    (void)a, (void)b, (void)c, (void)words;                                                                  \
    for (; mask; mask &= mask - 1) {                                                                         \
      int l = emu_first(mask);                                                                               \
      pack_store(d, l, p->out_lane, value);                                                                  \
    }                                                                                                        \
  }

// Two floats to halves, to small formats, to exponents.
PACK_EACH(to_halves, pack_half(p, a[l], c[l] >> 16) << 16 | pack_half(p, b[l], c[l]))
static uint32_t pack_small(const Pack *p, float high, float low) {
  uint32_t bits = p->small == NUM_E2M1 ? 4 : 8;
  return num_cvt_small_f32(high, (NumSmall)p->small, p->relu) << bits |
         num_cvt_small_f32(low, (NumSmall)p->small, p->relu);
}
PACK_EACH(to_small, pack_small(p, a[l], b[l]))
static float pack_f16(uint64_t word, int half) {
  return num_cvt_f32_f16((uint16_t)(word >> 16 * half));
}
PACK_EACH(to_small_of_halves, pack_small(p, pack_f16(pack_load(words, l, p->in_lane), 1),
                                         pack_f16(pack_load(words, l, p->in_lane), 0)))
static uint32_t pack_exponents(const Pack *p, float high, float low) {
  return num_cvt_ue8m0_f32(high, (NumRound)p->rnd, p->satfinite) << 8 |
         num_cvt_ue8m0_f32(low, (NumRound)p->rnd, p->satfinite);
}
PACK_EACH(to_exponents, pack_exponents(p, a[l], b[l]))
static float pack_bf16(uint64_t word, int half) {
  return num_cvt_f32_bf16((uint16_t)(word >> 16 * half));
}
PACK_EACH(to_exponents_of_halves, pack_exponents(p, pack_bf16(pack_load(words, l, p->in_lane), 1),
                                                 pack_bf16(pack_load(words, l, p->in_lane), 0)))

// And back.
static uint32_t unpack_small(const Pack *p, uint64_t word) {
  int bits = p->small == NUM_E2M1 ? 4 : 8;
  uint32_t one = (1u << bits) - 1, r = 0;
  for (int half = 0; half < 2; half++) {
    uint16_t h = num_cvt_f16_small((uint32_t)(word >> bits * half) & one, (NumSmall)p->small);
    r |= (uint32_t)(p->relu ? num_relu_f16(h) : h) << 16 * half;
  }
  return r;
}
PACK_EACH(from_small, unpack_small(p, pack_load(words, l, p->in_lane)))
static uint32_t unpack_exponents(uint64_t word) {
  return (uint32_t)num_cvt_bf16_ue8m0((uint32_t)word >> 8) << 16 | num_cvt_bf16_ue8m0((uint32_t)word);
}
PACK_EACH(from_exponents, unpack_exponents(pack_load(words, l, p->in_lane)))

// Four floats, stochastically. The manual gives the upper 16 bits of c to the first two operands and the
// lower 16 to the others; for e2m1 the upper 8 bits of each half of c to the first two, the lower 8 to the
// others.
static uint32_t four_random(int n, uint32_t c, bool tiny) {
  if (!tiny) return n < 2 ? c >> 16 : c & 0xffff;
  uint32_t half = n & 1 ? c & 0xffff : c >> 16;
  return n < 2 ? half >> 8 : half & 255;
}
static uint32_t pack_four(const EmuCtx *x, const Pack *p, int l, uint32_t c) {
  bool tiny = p->small == NUM_E2M1;
  uint32_t r = 0;
  for (int n = 0; n < 4; n++) { // the first is uppermost
    float v = EMU_IN(float, p->four[n])[l];
    uint32_t code = random_small(v, (NumSmall)p->small, p->relu, four_random(n, c, tiny), tiny ? 8 : 16);
    r = r << (tiny ? 4 : 8) | code;
  }
  return r;
}
PACK_EACH(to_four, pack_four(x, p, l, c[l]))

// ---- cvt.pack ----

// fn: bits, and 64 for signed.
EMU_OPS(pack_ints, uint32_t, int32_t, int32_t, uint32_t,
        num_cvt_pack(a[l], b[l], c[l], i->fn & 63, i->fn >> 6))

static bool lower_pack(Lower *l, const PtxInst *in, EmuInst *out) {
  PtxType type = (PtxType)in->code->type[0];
  bool is_signed = type == PTX_S16 || type == PTX_S8 || type == PTX_S4 || type == PTX_S2;
  lower_dabc(l, in, out);
  out->fn = (uint8_t)(sol_ptx_type_bits(type) | (is_signed ? 64 : 0));
  out->run = pack_ints;
  return true;
}

// ---- choosing ----

static int small_format(int type) {
  switch (type) {
  case PTX_E4M3X2:
  case PTX_E4M3X4: return NUM_E4M3;
  case PTX_E5M2X2:
  case PTX_E5M2X4: return NUM_E5M2;
  case PTX_E3M2X2:
  case PTX_E3M2X4: return NUM_E3M2;
  case PTX_E2M3X2:
  case PTX_E2M3X4: return NUM_E2M3;
  case PTX_E2M1X2:
  case PTX_E2M1X4: return NUM_E2M1;
  default: return -1;
  }
}

static EmuHandler *packed_handler(const Pack *p) {
  bool pair_to = p->to == PTX_F16X2 || p->to == PTX_BF16X2;
  if (pair_to && p->from == PTX_F32) {
    if (p->rnd == NUM_RN && !p->stochastic && !p->relu && !p->satfinite)
      return p->to == PTX_F16X2 ? pack_f16_two : pack_bf16_two;
    return to_halves;
  }
  if (p->to == PTX_UE8M0X2) return p->from == PTX_F32 ? to_exponents : to_exponents_of_halves;
  if (p->from == PTX_UE8M0X2) return from_exponents;
  if (pair_to) return from_small;
  if (p->four) return to_four;
  return p->from == PTX_F32 ? to_small : to_small_of_halves;
}

bool ops_cvt_packed(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  if (code->op == PTX_OP_CVT_PACK) return lower_pack(l, in, out);
  Pack *p = lower_alloc(l, sizeof *p);
  if (!p) return false;
  p->to = code->type[0], p->from = code->type[1];
  int to = small_format(p->to), from = small_format(p->from);
  p->small = (uint8_t)(to >= 0 ? to : from >= 0 ? from : 0);
  p->rnd = (uint8_t)ops_round(code->rnd);
  p->stochastic = code->rnd == PTX_RND_RS;
  p->relu = PTX_HAS(code, RELU), p->satfinite = PTX_HAS(code, SATFINITE);
  out->d = lower_write(l, &o[0]);
  p->out_lane = (uint8_t)lower_lane_bytes(l, &o[0]);
  if (o[1].kind == PTX_ARG_VEC) {
    if (o[1].count != 4 || !(p->four = lower_list(l, &o[1]))) return false;
  } else {
    out->a = lower_read(l, &o[1]), out->b = lower_read(l, &o[2]);
    p->in_lane = (uint8_t)lower_lane_bytes(l, &o[1]);
  }
  out->c = lower_read(l, &o[3]);
  out->more = p;
  out->run = packed_handler(p);
  return true;
}
