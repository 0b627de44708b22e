// What integer, bit and shift instructions result in: written from the PTX manual, in 128-bit arithmetic and
// by single bits, with nothing of the emulator's.
#ifndef OPCODE_INT_H
#define OPCODE_INT_H

#include "opcode_case.h"

typedef __int128 i128;
typedef unsigned __int128 u128;

typedef struct OpcodeIn {
  uint64_t s[6]; // a b c e and two more of a vector, as bits of their own widths
  bool g;        // the predicate source
  bool carry;
} OpcodeIn;
typedef struct OpcodeOut {
  uint64_t d, other; // other: a value that is right as well
  bool has_other;
  bool p, q, carry;
  bool any_nan; // d is a float of the result's type; any NaN will do
  bool near;    // d is a float: within relative or absolute of `value`
  double value, relative, absolute;
} OpcodeOut;

static inline uint64_t cut(uint64_t v, int bits) {
  return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}
static inline i128 value_of(uint64_t v, const char *type) { // as a number, by the type's sign
  int bits = opcode_bits(type);
  v = cut(v, bits);
  if (opcode_signed(type) && v >> (bits - 1) & 1) return (i128)v - ((i128)1 << bits);
  return (i128)v;
}
static inline i128 clamp_to(i128 v, int bits, bool is_signed) {
  i128 high = ((i128)1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
  return v < low ? low : v > high ? high : v;
}

static inline i128 ref_arith(const OpcodeCase *c, const char *type, const uint64_t s[3]) {
  i128 a = value_of(s[0], type), b = value_of(s[1], type), z = value_of(s[2], type);
  int bits = opcode_bits(type);
  bool relu = opcode_has(c, "relu"), sat = opcode_has(c, "sat");
  i128 r = 0;
  if (opcode_is(c, "ADD")) r = a + b;
  if (opcode_is(c, "SUB")) r = a - b;
  if (opcode_is(c, "SAD")) r = z + (a > b ? a - b : b - a);
  if (opcode_is(c, "DIV")) r = b ? a / b : -1;
  if (opcode_is(c, "REM")) r = b ? a % b : -1;
  if (opcode_is(c, "ABS")) r = a < 0 ? -a : a;
  if (opcode_is(c, "NEG")) r = -a;
  if (opcode_is(c, "MIN")) r = a < b ? a : b;
  if (opcode_is(c, "MAX")) r = a > b ? a : b;
  if (relu && r < 0) r = 0;
  return sat ? clamp_to(r, bits, true) : r;
}

static inline i128 ref_product(const OpcodeCase *c, const uint64_t s[3], bool with_c) {
  const char *type = c->type[0];
  int bits = opcode_bits(type);
  bool is_signed = opcode_signed(type), wide = !strcmp(c->fn, "wide"), hi = !strcmp(c->fn, "hi");
  u128 a = (u128)value_of(s[0], type), b = (u128)value_of(s[1], type);
  i128 r;
  if (!strncmp(c->id, "MUL24", 5) || !strncmp(c->id, "MAD24", 5)) {
    i128 x = (i128)(s[0] & 0xffffff), y = (i128)(s[1] & 0xffffff);
    if (is_signed && x >> 23) x -= 1 << 24;
    if (is_signed && y >> 23) y -= 1 << 24;
    r = hi ? (i128)(x * y) >> 16 : (i128)(int32_t)(uint64_t)(x * y);
    if (hi) r = is_signed ? (i128)(int32_t)(uint64_t)r : (i128)(uint32_t)(uint64_t)r;
  } else if (wide) {
    r = (i128)(a * b);
  } else { // a product of 64-bit numbers has 128 bits: the upper half by its sign
    u128 p = a * b;
    if (!hi)
      r = (i128)cut((uint64_t)p, bits);
    else if (is_signed)
      r = (i128)p >> bits;
    else
      r = (i128)(p >> bits);
  }
  if (!with_c) return r;
  i128 z = wide ? (i128)s[2] : value_of(s[2], type);
  return opcode_has(c, "sat") ? clamp_to(r + z, 32, true) : r + z;
}

static inline void ref_carry(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  int bits = opcode_bits(c->type[0]);
  bool mad = !strncmp(c->id, "MAD", 3), sub = !strncmp(c->id, "SUB", 3);
  bool takes = !strcmp(c->id, "ADDC") || !strcmp(c->id, "SUBC") || !strcmp(c->id, "MADC");
  u128 a = cut(in->s[0], bits), b = cut(in->s[1], bits);
  if (mad) a = cut((uint64_t)ref_product(c, in->s, false), bits), b = cut(in->s[2], bits);
  u128 r = sub ? a - b - (takes && !in->carry) : a + b + (takes && in->carry);
  out->d = cut((uint64_t)r, bits);
  bool over = r >> bits & 1; // a carry, or a borrow
  out->carry = opcode_has(c, "cc") ? (sub ? !over : over) : in->carry;
}

static inline int byte_of(uint64_t v, int n, bool is_signed) {
  return is_signed ? (int8_t)(v >> 8 * n) : (uint8_t)(v >> 8 * n);
}
static inline uint64_t ref_dot(const OpcodeCase *c, const uint64_t s[3]) {
  bool two = opcode_is(c, "DP2A"), as = opcode_signed(c->type[0]), bs = opcode_signed(c->type[1]);
  long long r = (long long)(uint32_t)s[2];
  for (int n = 0; n < (two ? 2 : 4); n++) {
    if (two) {
      int half = as ? (int16_t)(s[0] >> 16 * n) : (uint16_t)(s[0] >> 16 * n);
      r += (long long)half * byte_of(s[1], n + (!strcmp(c->fn, "hi") ? 2 : 0), bs);
      continue;
    }
    r += (long long)byte_of(s[0], n, as) * byte_of(s[1], n, bs);
  }
  return (uint32_t)r;
}

static inline uint64_t ref_prmt(const OpcodeCase *c, const uint64_t s[3]) {
  static const struct {
    const char *mode;
    uint16_t select[4];
  } modes[] = {{"f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
               {"rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
               {"ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {"rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
  uint64_t select = s[2], from = (s[1] << 32) | (uint32_t)s[0], r = 0;
  for (int m = 0; m < 6; m++)
    if (!strcmp(c->fn, modes[m].mode)) select = modes[m].select[s[2] & 3];
  for (int n = 0; n < 4; n++) {
    uint64_t pick = select >> 4 * n & 15, byte = from >> 8 * (pick & 7) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << 8 * n;
  }
  return r;
}

static inline uint64_t ref_bfe(const OpcodeCase *c,
                               const uint64_t s[3]) { // the manual's own words, bit by bit
  int bits = opcode_bits(c->type[0]), pos = (int)(s[1] & 255), len = (int)(s[2] & 255), msb = bits - 1;
  uint64_t a = cut(s[0], bits), r = 0;
  int top = pos + len - 1 < msb ? pos + len - 1 : msb;
  bool sign = opcode_signed(c->type[0]) && len ? a >> top & 1 : 0;
  for (int i = 0; i <= msb; i++) {
    bool bit = i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign;
    r |= (uint64_t)bit << i;
  }
  return r;
}
static inline uint64_t ref_bfi(const OpcodeCase *c, const uint64_t s[4]) {
  int bits = opcode_bits(c->type[0]), pos = (int)(s[2] & 255), len = (int)(s[3] & 255);
  uint64_t r = cut(s[1], bits);
  for (int i = 0; i < len && pos + i < bits; i++) {
    r &= ~(UINT64_C(1) << (pos + i));
    r |= (s[0] >> (i & 63) & (i < 64)) << (pos + i);
  }
  return r;
}
static inline uint64_t ref_bfind(const OpcodeCase *c, uint64_t a) {
  int bits = opcode_bits(c->type[0]);
  if (opcode_signed(c->type[0]) && a >> (bits - 1) & 1) a = ~a;
  for (int i = bits - 1; i >= 0; i--)
    if (a >> i & 1) return opcode_has(c, "shiftamt") ? (uint64_t)(bits - 1 - i) : (uint64_t)i;
  return 0xffffffff;
}
static inline uint64_t ref_fns(const uint64_t s[3]) {
  int32_t n = (int32_t)s[2];
  long count = n < 0 ? -(long)n - 1 : n > 0 ? (long)n - 1 : 0;
  uint32_t mask = (uint32_t)s[0], base = (uint32_t)s[1];
  if (base > 31) return 0xffffffff;
  if (n == 0) return mask >> base & 1 ? base : 0xffffffff;
  for (int pos = (int)base; pos >= 0 && pos<32; pos += n> 0 ? 1 : -1)
    if (mask >> pos & 1 && count-- == 0) return (uint64_t)pos;
  return 0xffffffff;
}

static inline uint64_t ref_extend(const OpcodeCase *c, const uint64_t s[2]) { // szext, bmsk
  bool wrap = !strcmp(c->edge, "wrap");
  uint64_t first = (uint32_t)s[0], n = (uint32_t)s[1], r = 0;
  if (wrap) n &= 31;
  if (opcode_is(c, "SZEXT")) {
    for (uint64_t i = 0; i < 32; i++) {
      bool sign = opcode_signed(c->type[0]) && n > 0 && n < 32 && first >> (n - 1) & 1;
      r |= (i < n ? first >> i & 1 : sign) << i;
    }
    return r;
  }
  if (wrap) first &= 31;
  for (uint64_t i = 0; i < 32; i++) r |= (uint64_t)(i >= first && i < first + n) << i;
  return r;
}

static inline void ref_bits(const OpcodeCase *c, const OpcodeIn *in, uint32_t table, OpcodeOut *out) {
  const uint64_t *s = in->s;
  int bits = opcode_bits(c->type[0]);
  uint64_t a = cut(s[0], bits), r = 0;
  if (opcode_is(c, "AND")) r = s[0] & s[1];
  if (opcode_is(c, "OR")) r = s[0] | s[1];
  if (opcode_is(c, "XOR")) r = s[0] ^ s[1];
  if (opcode_is(c, "NOT")) r = ~s[0];
  if (opcode_is(c, "CNOT")) r = a == 0;
  if (opcode_is(c, "LOP3")) {
    for (int i = 0; i < 32; i++) {
      uint64_t at = (s[0] >> i & 1) << 2 | (s[1] >> i & 1) << 1 | (s[2] >> i & 1);
      r |= (uint64_t)(table >> at & 1) << i;
    }
    out->p = !strcmp(c->bool_op, "and") ? r && in->g : r || in->g;
  }
  if (opcode_is(c, "BFE")) r = ref_bfe(c, s);
  if (opcode_is(c, "BFI")) r = ref_bfi(c, s);
  if (opcode_is(c, "BFIND")) r = ref_bfind(c, a);
  if (opcode_is(c, "BREV"))
    for (int i = 0; i < bits; i++) r |= (a >> i & 1) << (bits - 1 - i);
  if (opcode_is(c, "CLZ"))
    while ((int)r < bits && !(a >> (bits - 1 - (int)r) & 1)) r++;
  if (opcode_is(c, "POPC"))
    for (int i = 0; i < bits; i++) r += a >> i & 1;
  if (opcode_is(c, "FNS")) r = ref_fns(s);
  if (opcode_is(c, "PRMT")) r = ref_prmt(c, s);
  if (opcode_is(c, "SZEXT") || opcode_is(c, "BMSK")) r = ref_extend(c, s);
  out->d = r;
}

static inline uint64_t ref_shift(const OpcodeCase *c, const uint64_t s[3]) {
  int bits = opcode_bits(c->type[0]);
  if (opcode_is(c, "SHF")) {
    uint32_t n = (uint32_t)s[2];
    n = !strcmp(c->edge, "wrap") ? n & 31 : n > 32 ? 32 : n;
    u128 both = (u128)(uint32_t)s[1] << 32 | (uint32_t)s[0];
    return c->fn[0] == 'l' ? (uint32_t)(both << n >> 32) : (uint32_t)(both >> n);
  }
  uint32_t n = (uint32_t)s[1] > (uint32_t)bits ? (uint32_t)bits : (uint32_t)s[1];
  if (opcode_is(c, "SHL")) return (uint64_t)((u128)cut(s[0], bits) << n);
  return (uint64_t)(value_of(s[0], c->type[0]) >> n);
}

// The whole of the families int_arith, int_carry, int_mul, int_dot, bits, shift.
static inline bool opcode_ref_int(const OpcodeCase *c, const char *handler, const OpcodeIn *in,
                                  uint32_t table, OpcodeOut *out) {
  if (!strcmp(handler, "int_arith")) {
    if (!opcode_pair(c->type[0])) return out->d = (uint64_t)ref_arith(c, c->type[0], in->s), true;
    const char *half = opcode_signed(c->type[0]) ? "s16" : "u16";
    uint64_t high[3] = {in->s[0] >> 16, in->s[1] >> 16, in->s[2] >> 16};
    out->d = cut((uint64_t)ref_arith(c, half, in->s), 16) | cut((uint64_t)ref_arith(c, half, high), 16) << 16;
    return true;
  }
  if (!strcmp(handler, "int_mul"))
    return out->d = (uint64_t)ref_product(c, in->s, !strncmp(c->id, "MAD", 3)), true;
  if (!strcmp(handler, "int_carry")) return ref_carry(c, in, out), true;
  if (!strcmp(handler, "int_dot")) return out->d = ref_dot(c, in->s), true;
  if (!strcmp(handler, "bits")) return ref_bits(c, in, table, out), true;
  if (!strcmp(handler, "shift")) return out->d = ref_shift(c, in->s), true;
  return false;
}

#endif
