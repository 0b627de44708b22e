// What floating-point instructions result in: the host's own arithmetic under fesetround, libm for the
// approximate ones, and a slow rounding by scaling for the narrow formats. Nothing of the emulator's.
#ifndef OPCODE_FLOAT_H
#define OPCODE_FLOAT_H

#include <fenv.h>

#include "opcode_int.h"

// ---- formats ----

typedef struct RefFormat {
  const char *name;
  int mbits, emin, emax; // bits of mantissa, exponents of the smallest and largest normal number
  int bits;
} RefFormat;
static const RefFormat ref_formats[] = {
    {"f16", 10, -14, 15, 16},     {"bf16", 7, -126, 127, 16},  {"f32", 23, -126, 127, 32},
    {"f64", 52, -1022, 1023, 64}, {"tf32", 10, -126, 127, 32},
};
static inline const RefFormat *ref_format(const char *type) { // also of a packed type's elements
  for (size_t i = 0; i < sizeof ref_formats / sizeof ref_formats[0]; i++)
    if (!strncmp(type, ref_formats[i].name, strlen(ref_formats[i].name))) return &ref_formats[i];
  return NULL;
}

static inline float as_f32(uint64_t v) {
  uint32_t u = (uint32_t)v;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline double as_f64(uint64_t v) {
  double f;
  memcpy(&f, &v, 8);
  return f;
}
static inline uint64_t bits_f32(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
static inline uint64_t bits_f64(double f) {
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}
static inline double ref_decode(uint64_t v, const RefFormat *f) {
  uint64_t mantissa = v & ((UINT64_C(1) << f->mbits) - 1);
  int ebits = f->bits - 1 - f->mbits, field = (int)(v >> f->mbits & ((UINT64_C(1) << ebits) - 1));
  double sign = v >> (f->bits - 1) & 1 ? -1 : 1;
  if (f->bits == 64) return as_f64(v);
  if (f->emax == (1 << (ebits - 1)) - 1 && field == (1 << ebits) - 1)
    return mantissa ? copysign(NAN, sign) : sign * INFINITY;
  if (!field) return sign * ldexp((double)mantissa, f->emin - f->mbits);
  return sign * ldexp((double)(mantissa | UINT64_C(1) << f->mbits), f->emin - f->mbits + field - 1);
}

// How a magnitude is rounded, `rest` of a unit in the last place being left over. random: what cvt.rs adds.
static inline bool ref_up(long double rest, bool odd, bool negative, const char *rnd, double random) {
  if (!strcmp(rnd, "rz")) return false;
  if (!strcmp(rnd, "rm")) return rest > 0 && negative;
  if (!strcmp(rnd, "rp")) return rest > 0 && !negative;
  if (!strcmp(rnd, "rs")) return rest + random >= 1;
  if (!strcmp(rnd, "rna")) return rest >= 0.5L;
  return rest > 0.5L || (rest == 0.5L && odd);
}
// The code of |v|'s rounding, as if exponents had no upper end.
static inline uint64_t ref_magnitude(long double v, const RefFormat *f, const char *rnd, double random) {
  long double mag = fabsl(v);
  if (mag == 0) return 0;
  int e = ilogbl(mag) > f->emin ? ilogbl(mag) : f->emin;
  long double units = ldexpl(mag, f->mbits - e), whole = floorl(units); // both exact
  uint64_t n = (uint64_t)whole;
  n += ref_up(units - whole, n & 1, signbit(v), rnd, random);
  return n + ((uint64_t)(e - f->emin) << f->mbits); // a carry moves to the exponent by itself
}
static inline uint64_t ref_encode(long double v, const RefFormat *f, const char *rnd,
                                  double random) { // no NaN
  uint64_t sign = signbit(v) ? UINT64_C(1) << (f->bits - 1) : 0;
  uint64_t infinity = (uint64_t)(f->emax - f->emin + 2) << f->mbits;
  if (isinf(v)) return sign | infinity;
  uint64_t mag = ref_magnitude(v, f, rnd, random);
  bool toward_zero = !strcmp(rnd, "rz") || !strcmp(rnd, sign ? "rp" : "rm");
  if (mag >= infinity) mag = infinity - (toward_zero ? 1 : 0);
  return sign | mag;
}

// ---- f32, f64: the host ----

static inline int ref_mode(const char *rnd) {
  if (!strcmp(rnd, "rz") || !strcmp(rnd, "rzi")) return FE_TOWARDZERO;
  if (!strcmp(rnd, "rm") || !strcmp(rnd, "rmi")) return FE_DOWNWARD;
  if (!strcmp(rnd, "rp") || !strcmp(rnd, "rpi")) return FE_UPWARD;
  return FE_TONEAREST;
}
#define REF_HOST(T, fma_fn, sqrt_fn)                                                                         \
  __attribute__((noinline)) static T ref_host_##T(const char *id, T x, T y, T z, int mode) {                 \
    volatile T a = x, b = y, c = z, r = 0;                                                                   \
    fesetround(mode);                                                                                        \
    if (!strcmp(id, "FADD")) r = a + b;                                                                      \
    if (!strcmp(id, "FSUB")) r = a - b;                                                                      \
    if (!strcmp(id, "FMUL")) r = a * b;                                                                      \
    if (!strcmp(id, "FDIV")) r = a / b;                                                                      \
    if (!strcmp(id, "FMA")) r = fma_fn(a, b, c);                                                             \
    if (!strcmp(id, "RCP")) r = 1 / a;                                                                       \
    if (!strcmp(id, "SQRT")) r = sqrt_fn(a);                                                                 \
    fesetround(FE_TONEAREST);                                                                                \
    return r;                                                                                                \
  }
REF_HOST(float, fmaf, sqrtf)
REF_HOST(double, fma, sqrt)

static inline uint64_t ref_flush(uint64_t v, const RefFormat *f) { // subnormals to zero
  uint64_t sign = UINT64_C(1) << (f->bits - 1);
  return (v & (sign - 1)) < UINT64_C(1) << f->mbits ? v & sign : v;
}
static inline bool ref_nan(uint64_t v, const RefFormat *f) {
  return isnan(ref_decode(v, f));
}
static inline uint64_t ref_saturate(uint64_t v, const RefFormat *f) {
  double x = ref_decode(v, f);
  return !(x > 0) ? 0 : x > 1 ? ref_encode(1, f, "rn", 0) : v;
}
static inline uint64_t nan_code(const RefFormat *f) { // all ones but the sign; of f64 any will do
  return (UINT64_C(1) << (f->bits - 1)) - 1;
}

// ---- f16, bf16: exactly in double but for the last bit, which says whether anything was lost ----

__attribute__((noinline)) static double ref_odd(const char *id, double x, double y, double z) {
  volatile double a = x, b = y, c = z, r = 0;
  fesetround(FE_TOWARDZERO);
  feclearexcept(FE_ALL_EXCEPT);
  if (!strcmp(id, "FADD")) r = a + b;
  if (!strcmp(id, "FSUB")) r = a - b;
  if (!strcmp(id, "FMUL")) r = a * b;
  if (!strcmp(id, "FMA")) r = fma(a, b, c);
  if (!strcmp(id, "FDIV")) r = a / b;
  if (!strcmp(id, "RCP")) r = 1 / a;
  if (!strcmp(id, "SQRT")) r = sqrt(a);
  bool inexact = fetestexcept(FE_INEXACT) != 0;
  fesetround(FE_TONEAREST);
  return inexact ? as_f64(bits_f64(r) | 1) : r;
}

// Whether .ftz takes v for zero: where rounding it to mbits bits, with no end to the exponents, leaves it
// below the smallest normal number. That is when an H200 flushes; it shows one step below that number alone.
static inline bool ref_tiny(double v, const RefFormat *f, const char *rnd) {
  if (v == 0 || !isfinite(v)) return v == 0;
  int e = ilogb(v);
  double units = ldexp(fabs(v), f->mbits - e), whole = floor(units);
  whole += ref_up(units - whole, fmod(whole, 2) != 0, signbit(v), rnd, 0);
  return ldexp(whole, e - f->mbits) < ldexp(1, f->emin);
}

// ---- one element ----

static inline uint64_t ref_extreme(uint64_t a, uint64_t b, bool max, bool with_nan, const RefFormat *f) {
  double x = ref_decode(a, f), y = ref_decode(b, f);
  if (isnan(x) && isnan(y)) return nan_code(f);
  if (isnan(x) || isnan(y)) return with_nan ? nan_code(f) : isnan(x) ? b : a;
  bool below = x < y || (x == y && signbit(x) && !signbit(y));
  return below != max ? a : b;
}

static inline uint64_t ref_minmax(const OpcodeCase *c, const uint64_t s[3], int operands,
                                  const RefFormat *f) {
  uint64_t sign = UINT64_C(1) << (f->bits - 1), v[3] = {s[0], s[1], s[2]};
  for (int i = 0; i < 3; i++) {
    if (opcode_has(c, "ftz")) v[i] = ref_flush(v[i], f);
    if (opcode_has(c, "abs")) v[i] &= sign - 1;
  }
  bool max = opcode_is(c, "FMAX"), with_nan = opcode_has(c, "NaN");
  uint64_t r = ref_extreme(v[0], v[1], max, with_nan, f);
  if (operands == 3) r = ref_extreme(r, v[2], max, with_nan, f);
  if (opcode_has(c, "xorsign") && !ref_nan(r, f)) r = (r & (sign - 1)) | ((s[0] ^ s[1]) & sign);
  return r;
}

static inline bool is_oob(uint64_t v) {
  return (v & 0x7fff) == 0x7ff7;
}

static inline uint64_t ref_element(const OpcodeCase *c, const uint64_t s[3], int operands,
                                   const RefFormat *f) {
  uint64_t sign = UINT64_C(1) << (f->bits - 1), v[3] = {s[0], s[1], s[2]}, r;
  bool ftz = opcode_has(c, "ftz");
  if (opcode_is(c, "FMIN") || opcode_is(c, "FMAX")) return ref_minmax(c, s, operands, f);
  for (int i = 0; i < 3 && ftz; i++) v[i] = ref_flush(v[i], f);
  if (opcode_is(c, "FABS") || opcode_is(c, "FNEG")) {
    r = opcode_is(c, "FABS") ? v[0] & (sign - 1) : v[0] ^ sign;
    return f->bits < 64 && ref_nan(r, f) ? nan_code(f) : r;
  }
  if (f->bits == 64)
    return bits_f64(ref_host_double(c->id, as_f64(v[0]), as_f64(v[1]), as_f64(v[2]), ref_mode(c->rnd)));
  if (f->bits == 32) {
    float x = ref_host_float(c->id, as_f32(v[0]), as_f32(v[1]), as_f32(v[2]), ref_mode(c->rnd));
    r = isnan(x) ? nan_code(f) : bits_f32(x);
  } else {
    double x = ref_odd(c->id, ref_decode(v[0], f), ref_decode(v[1], f), ref_decode(v[2], f));
    r = isnan(x) ? nan_code(f) : ref_encode(x, f, "rn", 0);
  }
  if (ftz) {
    double exact = ref_odd(c->id, ref_decode(v[0], f), ref_decode(v[1], f), ref_decode(v[2], f));
    if (ref_tiny(exact, f, c->rnd)) r &= sign;
  }
  if (opcode_has(c, "sat")) r = ref_saturate(r, f);
  if (opcode_has(c, "relu") && r & sign) r = 0;
  if (opcode_has(c, "oob") && (is_oob(s[0]) || is_oob(s[1]))) r = 0;
  return r;
}

// float_arith, with operands in pairs and of mixed types.
static inline void ref_float(const OpcodeCase *c, const OpcodeIn *in, int operands, OpcodeOut *out) {
  const RefFormat *f = ref_format(c->type[0]);
  uint64_t s[3] = {in->s[0], in->s[1], in->s[2]};
  if (c->type[1][0]) { // f32 with 16-bit operands: a, and b of fma
    const RefFormat *from = ref_format(c->type[1]);
    for (int i = 0; i < (opcode_is(c, "FMA") ? 2 : 1); i++)
      s[i] = bits_f32((float)ref_decode(cut(s[i], 16), from));
  }
  if (opcode_has(c, "approx") || opcode_has(c, "full")) { // div
    double x = as_f32(s[0]), y = as_f32(s[1]);
    if (opcode_has(c, "ftz")) x = as_f32(ref_flush(s[0], f)), y = as_f32(ref_flush(s[1], f));
    *out = (OpcodeOut){.near = true, .value = x / y, .relative = 0x1p-22, .absolute = 0x1p-148};
    if (opcode_has(c, "ftz")) out->absolute = 0x1p-126;
    if (opcode_has(c, "approx") && !isnan(x) && isfinite(y) &&
        fabs(y) > 0x1p126) // 1/b is lost: 0, or NaN for infinity by 0
      out->value = isinf(x) ? NAN : copysign(0, x / y);
    return;
  }
  if (!opcode_pair(c->type[0])) {
    for (int i = 0; i < 3; i++) s[i] = cut(s[i], f->bits);
    out->d = ref_element(c, s, operands, f);
    out->any_nan = f->bits == 64;
    return;
  }
  for (int half = 0; half < 2; half++) {
    uint64_t part[3];
    for (int i = 0; i < 3; i++) part[i] = cut(s[i] >> half * f->bits, f->bits);
    out->d |= ref_element(c, part, operands, f) << half * f->bits;
  }
}

// ---- float_unary ----

static inline double ref_function(const char *id, double x) {
  if (!strcmp(id, "RCP")) return 1 / x;
  if (!strcmp(id, "SQRT")) return sqrt(x);
  if (!strcmp(id, "RSQRT")) return 1 / sqrt(x);
  if (!strcmp(id, "SIN")) return sin(x);
  if (!strcmp(id, "COS")) return cos(x);
  if (!strcmp(id, "LG2")) return log2(x);
  if (!strcmp(id, "EX2")) return exp2(x);
  return tanh(x);
}
// The bounds that the PTX manual states.
static inline void ref_bounds(const OpcodeCase *c, double x, const RefFormat *f, OpcodeOut *out) {
  bool wave = opcode_is(c, "SIN") || opcode_is(c, "COS");
  out->relative = 0x1p-22, out->absolute = opcode_has(c, "ftz") ? 0x1p-126 : 0x1p-148;
  if (wave)
    out->relative = 0, out->absolute = fabs(x) <= 6.2831854 ? 0x1p-20 : fabs(x) <= 314.16 ? 0x1p-14 : 4;
  if (opcode_is(c, "LG2") && x > 0.5 && x < 2) out->relative = 0, out->absolute = 0x1p-22;
  if (opcode_is(c, "TANH")) out->relative = 0x1p-11;
  if (f->mbits == 10) out->relative = 0x1p-9, out->absolute = opcode_is(c, "TANH") ? 0x1p-10 : 0x1p-24;
  if (f->mbits == 7) out->relative = 0x1p-7, out->absolute = opcode_is(c, "TANH") ? 0x1p-8 : 0x1p-126;
  if (f->bits == 64) out->relative = opcode_has(c, "ftz") ? 0x1p-19 : 0x1p-40, out->absolute = 0x1p-1022;
}

static inline bool ref_testp(const char *fn, double x, int class) {
  if (!strcmp(fn, "finite")) return isfinite(x);
  if (!strcmp(fn, "infinite")) return isinf(x);
  if (!strcmp(fn, "number")) return !isnan(x);
  if (!strcmp(fn, "notanumber")) return isnan(x);
  if (!strcmp(fn, "normal")) return class == FP_NORMAL || class == FP_ZERO;
  return class == FP_SUBNORMAL;
}

// One element; pairs are checked half by half by the caller.
static inline void ref_unary(const OpcodeCase *c, const OpcodeIn *in, OpcodeOut *out) {
  const RefFormat *f = ref_format(c->type[0]);
  uint64_t s[3] = {cut(in->s[0], f->bits), cut(in->s[1], f->bits), 0}, sign = UINT64_C(1) << (f->bits - 1);
  if (opcode_is(c, "COPYSIGN")) {
    out->d = (s[0] & sign) | (s[1] & (sign - 1));
    return;
  }
  double x = ref_decode(s[0], f);
  if (opcode_is(c, "TESTP")) {
    out->p = ref_testp(c->fn, x, f->bits == 64 ? fpclassify(x) : fpclassify((float)x));
    return;
  }
  if (!opcode_has(c, "approx")) {
    out->d = ref_element(c, s, 1, f);
    out->any_nan = f->bits == 64;
    return;
  }
  if (opcode_has(c, "ftz")) x = ref_decode(ref_flush(s[0], f), f);
  if (f->bits == 64 && opcode_has(c, "ftz")) x = as_f64(bits_f64(x) & UINT64_C(0xffffffff00000000));
  out->near = true;
  out->value = ref_function(c->id, x);
  ref_bounds(c, x, f, out);
  bool wave = opcode_is(c, "SIN") || opcode_is(c, "COS");
  if (wave && fabs(x) > 314.16 && isfinite(x)) out->value = 0; // no bound: any value of a sine
}

// Whether `got`, a code of format f, is what the reference asks for.
static inline bool ref_near(uint64_t got, const RefFormat *f, const OpcodeOut *want) {
  double x = ref_decode(got, f), largest = ref_decode(((uint64_t)(f->emax - f->emin + 2) << f->mbits) - 1, f);
  if (isnan(want->value)) return isnan(x);
  if (isnan(x)) return false;
  if (want->value == 0 && want->absolute < 1 && x == 0)
    return want->relative == 0 || signbit(x) == signbit(want->value);
  if (isinf(x)) return fabs(want->value) >= largest && signbit(x) == signbit(want->value);
  if (isinf(want->value)) return false;
  return fabs(x - want->value) <= fmax(want->relative * fabs(want->value), want->absolute) ||
         (fabs(want->value) > largest && fabs(x) == largest);
}

#endif
