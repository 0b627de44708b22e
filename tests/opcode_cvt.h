// What comparisons, selections and conversions result in.
#ifndef OPCODE_CVT_H
#define OPCODE_CVT_H

#include "opcode_float.h"

// ---- setp, set, selp, slct ----

static inline bool ref_compare(const char *cmp, bool less, bool equal, bool unordered) {
  bool or_nan = strlen(cmp) == 3 && cmp[2] == 'u';
  if (!strcmp(cmp, "num")) return !unordered;
  if (!strcmp(cmp, "nan")) return unordered;
  if (unordered) return or_nan;
  if (!strncmp(cmp, "eq", 2)) return equal;
  if (!strncmp(cmp, "ne", 2)) return !equal;
  if (!strncmp(cmp, "lt", 2) || !strcmp(cmp, "lo")) return less;
  if (!strncmp(cmp, "le", 2) || !strcmp(cmp, "ls")) return less || equal;
  if (!strncmp(cmp, "gt", 2) || !strcmp(cmp, "hi")) return !less && !equal;
  return !less; // ge, hs
}
static inline bool ref_combine(const OpcodeCase *c, bool v, bool g) {
  if (!c->bool_op[0]) return v;
  return c->bool_op[0] == 'a' ? v && g : c->bool_op[0] == 'o' ? v || g : v != g;
}
static inline bool ref_compare_typed(const OpcodeCase *c, const char *type, uint64_t a, uint64_t b) {
  if (!opcode_float(type)) {
    char plain[8];
    snprintf(plain, sizeof plain, "%s", type);
    static const char *const as_unsigned[] = {"lo", "ls", "hi", "hs"};
    for (int i = 0; i < 4; i++)
      if (!strcmp(c->cmp, as_unsigned[i])) plain[0] = 'u';
    i128 x = value_of(a, plain), y = value_of(b, plain);
    return ref_compare(c->cmp, x < y, x == y, false);
  }
  const RefFormat *f = ref_format(type);
  a = cut(a, f->bits), b = cut(b, f->bits);
  if (opcode_has(c, "ftz") && f->mbits != 7 && f->bits != 64) a = ref_flush(a, f), b = ref_flush(b, f);
  double x = ref_decode(a, f), y = ref_decode(b, f);
  return ref_compare(c->cmp, x < y, x == y, isnan(x) || isnan(y));
}
// PTX's own restrictions, which ops.def does not spell out.
static inline bool compare_legal(const OpcodeCase *c, const char *type) {
  static const char *const float_only[] = {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  static const char *const int_only[] = {"lo", "ls", "hi", "hs"};
  bool only_equal = type[0] == 'b' && type[1] != 'f';
  for (int i = 0; i < 8; i++)
    if (!strcmp(c->cmp, float_only[i])) return opcode_float(type);
  for (int i = 0; i < 4; i++)
    if (!strcmp(c->cmp, int_only[i])) return !opcode_float(type) && type[0] == 'u';
  return !only_equal || !strcmp(c->cmp, "eq") || !strcmp(c->cmp, "ne");
}

static inline uint64_t ref_true(const char *type) {
  if (!strncmp(type, "f32", 3)) return 0x3f800000;
  if (!strncmp(type, "f16", 3)) return 0x3c00;
  if (!strncmp(type, "bf16", 4)) return 0x3f80;
  return cut(UINT64_MAX, opcode_bits(type));
}
static inline void ref_compares(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  bool set = opcode_is(c, "SET");
  const char *type = c->type[set];
  if (!opcode_pair(type)) {
    bool v = ref_compare_typed(c, type, in->s[0], in->s[1]);
    out->p = ref_combine(c, v, in->g), out->q = ref_combine(c, !v, in->g);
    out->d = out->p ? ref_true(c->type[0]) : 0;
    return;
  }
  out->p = ref_combine(c, ref_compare_typed(c, type, in->s[0], in->s[1]), in->g);
  out->q = ref_combine(c, ref_compare_typed(c, type, in->s[0] >> 16, in->s[1] >> 16), in->g);
  uint64_t yes = opcode_float(c->type[0]) ? ref_true(c->type[0]) : 0xffff;
  out->d = (out->p ? yes : 0) | (out->q ? yes << 16 : 0);
}
static inline void ref_select(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  bool first = in->g;
  if (opcode_is(c, "SLCT")) {
    float z = as_f32(opcode_has(c, "ftz") ? ref_flush(cut(in->s[2], 32), &ref_formats[2]) : in->s[2]);
    first = !strcmp(c->type[1], "s32") ? (int32_t)in->s[2] >= 0 : z >= 0;
  }
  out->d = in->s[first ? 0 : 1];
}

// ---- cvt between single numbers ----

static inline bool cvt_legal(const OpcodeCase *c) {
  const char *to = c->type[0], *from = c->type[1];
  bool tf = opcode_float(to), ff = opcode_float(from), whole = c->rnd[0] && strlen(c->rnd) == 3;
  bool has_f32 = !strcmp(to, "f32") || !strcmp(from, "f32");
  if (opcode_has(c, "ftz") && !has_f32) return false;
  if (!tf && !ff) return !c->rnd[0];
  if (!tf) return whole;
  if (!ff) return c->rnd[0] && !whole;
  if (!strcmp(to, from)) return whole || !c->rnd[0];
  if (opcode_bits(to) > opcode_bits(from)) return !c->rnd[0];
  return c->rnd[0] && !whole;
}

static inline i128 ref_to_int(const OpcodeCase *c, long double v, const char *from) {
  int bits = opcode_bits(c->type[0]);
  bool wide_nan = !strcmp(from, "f64") || bits == 64;
  if (isnan(v)) return wide_nan ? (i128)1 << (bits - 1) : 0;
  char rnd[4];
  snprintf(rnd, sizeof rnd, "%.2s", c->rnd);
  long double mag = fabsl(v), whole = floorl(mag);
  if (isinf(v) || mag > 1e30L)
    return clamp_to(v < 0 ? -((i128)1 << 100) : (i128)1 << 100, bits, opcode_signed(c->type[0]));
  i128 n = (i128)whole;
  n += ref_up(mag - whole, n & 1, signbit(v), rnd, 0);
  return clamp_to(v < 0 ? -n : n, bits, opcode_signed(c->type[0]));
}

// The NaN a conversion gives: sign and upper payload survive from and to f64, and bf16 to f32 is a shift;
// else one code.
static inline uint64_t ref_nan_cvt(const OpcodeCase *c, uint64_t v, const RefFormat *f, const RefFormat *to) {
  if (f->mbits == 7 && to->mbits == 23 && !opcode_has(c, "sat")) return v << 16;
  return nan_code(to);
}

static inline void ref_cvt(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  const char *to = c->type[0], *from = c->type[1];
  const RefFormat *tf = ref_format(to), *ff = ref_format(from);
  bool ftz = opcode_has(c, "ftz"), sat = opcode_has(c, "sat");
  i128 n = opcode_float(from) ? 0 : value_of(in->s[0], from);
  long double v = (long double)n;
  uint64_t code = in->s[0];
  if (ff) {
    code = cut(code, ff->bits);
    if (ftz && ff->mbits == 23 && strcmp(to, "f16") != 0)
      code = ref_flush(code, ff); // to f16 an H200 does not flush
    v = ref_decode(code, ff);
  }
  if (!opcode_float(to)) {
    i128 r = ff ? ref_to_int(c, v, from) : sat ? clamp_to(n, opcode_bits(to), opcode_signed(to)) : n;
    out->d = (uint64_t)r;
    return;
  }
  bool whole = strlen(c->rnd) == 3 && c->rnd[2] == 'i';
  if (isnan(v)) {
    out->any_nan = tf->bits == 64 || (ff && ff->bits == 64);
    out->d = sat ? 0 : ref_nan_cvt(c, code, ff, tf);
    if (!c->rnd[0] && !strcmp(to, from)) out->any_nan = !sat; // a copy
    if (ftz && ff->mbits == 7) out->any_nan = !sat;
    return;
  }
  if (whole && isfinite(v)) {
    char rnd[4];
    snprintf(rnd, sizeof rnd, "%.2s", c->rnd);
    long double mag = fabsl(v), low = floorl(mag);
    v = copysignl(low + ref_up(mag - low, fmodl(low, 2) != 0, signbit(v), rnd, 0), v);
  }
  uint64_t r = ref_encode(v, tf, whole || !c->rnd[0] ? "rn" : c->rnd, 0);
  if (ftz && tf->mbits == 23) r = ref_flush(r, tf);
  if (sat) r = ref_saturate(r, tf);
  uint64_t sign = UINT64_C(1) << (tf->bits - 1), infinity = ref_encode(INFINITY, tf, "rn", 0);
  if (opcode_has(c, "satfinite") && (r & (sign - 1)) == infinity) r--;
  if (opcode_has(c, "relu") && r & sign) r = 0;
  out->d = r;
}

// tf32 is a format of 19 bits in the upper ones of 32.
static inline void ref_tf32(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  float v = as_f32(in->s[0]);
  RefFormat f = {"tf32", 10, -126, 127, 19};
  uint64_t r = isnan(v) ? 0x3ffff : ref_encode(v, &f, c->rnd, 0);
  if (isnan(v)) r = 0x7fffe000 >> 13;
  if (isnan(v) && !strcmp(c->rnd, "rna")) { // an H200 just cuts it, even to infinity
    out->other = ((uint64_t)(uint32_t)in->s[0] >> 13) - opcode_has(c, "satfinite");
    out->other <<= 13, out->has_other = true;
  }
  if (opcode_has(c, "satfinite") && (r & 0x3ffff) == 0x3fc00) r--;
  if (opcode_has(c, "relu") && r >> 18) r = 0;
  out->d = r << 13;
}

// ---- packed ----

typedef struct RefSmall {
  const char *name;
  RefFormat f;
  uint64_t largest, nan;
} RefSmall;
static const RefSmall ref_smalls[] = {{"e4m3", {"", 3, -6, 8, 8}, 0x7e, 0x7f},
                                      {"e5m2", {"", 2, -14, 15, 8}, 0x7b, 0x7f},
                                      {"e3m2", {"", 2, -2, 4, 6}, 0x1f, 0x1f},
                                      {"e2m3", {"", 3, 0, 2, 6}, 0x1f, 0x1f},
                                      {"e2m1", {"", 1, 0, 2, 4}, 7, 7}};
static inline const RefSmall *ref_small(const char *type) {
  for (int i = 0; i < 5; i++)
    if (!strncmp(type, ref_smalls[i].name, 4)) return &ref_smalls[i];
  return NULL;
}
static inline uint64_t ref_to_small(const OpcodeCase *c, double v, const RefSmall *s, double random) {
  if (isnan(v)) return s->nan;
  uint64_t mag = isinf(v) ? s->largest : ref_magnitude(v, &s->f, c->rnd, random);
  if (mag > s->largest) mag = s->largest;
  if (!signbit(v)) return mag;
  return opcode_has(c, "relu") ? 0 : mag | UINT64_C(1) << (s->f.bits - 1);
}
static inline uint64_t ref_to_half(const OpcodeCase *c, float v, const RefFormat *f, double random) {
  if (isnan(v)) return 0x7fff;
  uint64_t r = ref_encode(v, f, c->rnd, random), infinity = ref_encode(INFINITY, f, "rn", 0);
  if (opcode_has(c, "satfinite") && (r & 0x7fff) == infinity) r--;
  return opcode_has(c, "relu") && r >> 15 ? 0 : r;
}
static inline uint64_t ref_to_exponent(const OpcodeCase *c, float v) { // ue8m0: a power of two
  if (isnan(v)) return 255;
  double mag = fabs((double)v), limit = 0x1p127;
  int e = mag == 0 ? -127 : ilogb(mag);
  if (!strcmp(c->rnd, "rp") && mag > ldexp(1, e)) e++;
  if (e < -127) e = -127;
  return mag > limit && (isinf(v) || e > 127) ? (opcode_has(c, "satfinite") ? 254 : 255)
                                              : (uint64_t)(e + 127);
}

static inline void ref_packed(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  const char *to = c->type[0], *from = c->type[1];
  const RefSmall *ts = ref_small(to), *fs = ref_small(from);
  const uint64_t *s = in->s;
  if (strstr(to, "x4")) { // a b e f, the first uppermost; in->s: a, c, then the rest
    for (int n = 0; n < 4; n++) {
      uint64_t c32 = s[4], half = n & 1 ? c32 & 0xffff : c32 >> 16;
      double random = n < 2 ? (double)(c32 >> 16 & 0xffff) / 65536 : (double)(c32 & 0xffff) / 65536;
      if (ts->f.bits == 4) random = (double)(n < 2 ? half >> 8 & 255 : half & 255) / 256;
      out->d = out->d << (ts->f.bits == 4 ? 4 : 8) | ref_to_small(c, as_f32(s[n]), ts, random);
    }
    return;
  }
  for (int half = 0; half < 2; half++) { // the low one is b, or the low half of a
    uint64_t low16 = s[0] >> 16 * half & 0xffff;
    float f = as_f32(half ? s[0] : s[1]), of_f16 = (float)ref_decode(low16, &ref_formats[0]);
    uint64_t r, shift = 16;
    if (fs) {
      int bits = fs->f.bits == 4 ? 4 : 8;
      uint64_t code = s[0] >> bits * half & ((1u << fs->f.bits) - 1),
               mag = code & ((1u << (fs->f.bits - 1)) - 1);
      bool nan = (fs == &ref_smalls[0] && mag == 0x7f) || (fs == &ref_smalls[1] && mag > 0x7c);
      double v = ref_decode(code, &fs->f);
      r = nan ? 0x7fff : ref_encode(v, &ref_formats[0], "rn", 0);
      if (opcode_has(c, "relu") && r >> 15) r = 0;
    } else if (ts) {
      shift = ts->f.bits == 4 ? 4 : 8;
      r = ref_to_small(c, opcode_pair(from) ? of_f16 : f, ts, 0);
    } else if (!strcmp(to, "ue8m0x2")) {
      shift = 8;
      r = ref_to_exponent(c, opcode_pair(from) ? as_f32(low16 << 16) : f);
    } else if (!strcmp(from, "ue8m0x2")) {
      uint64_t e = s[0] >> 8 * half & 255;
      r = e == 255 ? 0x7fff : ref_encode(ldexp(1, (int)e - 127), &ref_formats[1], "rn", 0);
    } else {
      bool brain = to[0] == 'b';
      uint64_t bits = s[2] >> 16 * half;
      double random = brain ? (double)(bits & 0xffff) / 65536 : (double)(bits & 0x1fff) / 8192;
      r = ref_to_half(c, f, ref_format(to), random);
    }
    out->d |= r << shift * (uint64_t)half;
  }
}

static inline void ref_pack_ints(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  int bits = opcode_bits(c->type[0]);
  bool is_signed = opcode_signed(c->type[0]);
  uint64_t low = cut((uint64_t)clamp_to((int32_t)in->s[1], bits, is_signed), bits);
  uint64_t high = cut((uint64_t)clamp_to((int32_t)in->s[0], bits, is_signed), bits);
  out->d = (uint32_t)(low | high << bits | (bits < 16 ? in->s[2] << 2 * bits : 0));
}

static inline void ref_convert(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  if (opcode_is(c, "CVT_PACK"))
    ref_pack_ints(c, in, out);
  else if (!strcmp(c->type[0], "tf32"))
    ref_tf32(c, in, out);
  else if (strstr(c->type[0], "x2") || strstr(c->type[0], "x4"))
    ref_packed(c, in, out);
  else
    ref_cvt(c, in, out);
}

#endif
