// f64 arithmetic in any rounding mode, by whole numbers: operands are taken apart, combined exactly (what
// falls off the end of 128 bits is kept as one sticky bit) and rounded once.
#include "emu/isa/num_float.h"

typedef struct Wide { // 128 bits
  uint64_t hi, lo;
} Wide;

typedef struct Parts { // mantissa * 2^exponent; a number that is not zero has bit 52 of its mantissa set
  uint64_t mantissa;
  int exponent;
  bool negative;
} Parts;

enum { HIGHEST_EXPONENT = 2046 }; // biased, of a finite double
static const uint64_t INFINITE = 0x7ff0000000000000u;

static Parts take_apart(double x) {
  uint64_t u = num_bits_f64(x), mantissa = u & 0x000fffffffffffffu;
  int exponent = (int)(u >> 52 & 2047);
  Parts p = {mantissa | 1ull << 52, exponent - 1075, u >> 63};
  if (!exponent) {
    uint32_t shift = mantissa ? num_clz_u64(mantissa) - 11 : 0;
    p.mantissa = mantissa << shift;
    p.exponent = -1074 - (int)shift;
  }
  return p;
}

static Wide shift_left(Wide w, uint32_t n) {
  if (n >= 64) return (Wide){num_shl_u64(w.lo, n - 64), 0};
  return (Wide){w.hi << n | num_shr_u64(w.lo, 64 - n), w.lo << n};
}

// What is shifted out leaves its trace in the lowest bit.
static Wide shift_right_sticky(Wide w, uint32_t n) {
  if (n == 0) return w;
  if (n >= 128) return (Wide){0, (w.hi | w.lo) != 0};
  if (n >= 64) {
    uint64_t lost = w.lo | num_shl_u64(w.hi, 128 - n);
    return (Wide){0, num_shr_u64(w.hi, n - 64) | (lost != 0)};
  }
  uint64_t lost = w.lo << (64 - n);
  return (Wide){w.hi >> n, (w.lo >> n | w.hi << (64 - n)) | (lost != 0)};
}

static bool rounds_up(bool odd, bool half, bool below, bool negative, NumRound rnd) {
  switch (rnd) {
  case NUM_RN: return half && (below || odd);
  case NUM_RZ: return false;
  case NUM_RM: return negative && (half || below);
  case NUM_RP: return !negative && (half || below);
  }
  return false;
}

// w * 2^exponent to a double. w is not zero.
static double put_together(bool negative, Wide w, int exponent, NumRound rnd) {
  uint32_t zeros = w.hi ? num_clz_u64(w.hi) : 64 + num_clz_u64(w.lo);
  w = shift_left(w, zeros);
  int biased = exponent - (int)zeros + 127 + 1023; // of the leading one, now bit 127
  uint32_t subnormal = biased < 1 ? (uint32_t)(1 - biased) : 0;
  w = shift_right_sticky(w, subnormal);
  uint64_t mantissa = w.hi >> 11, sign = (uint64_t)negative << 63;
  bool half = w.hi >> 10 & 1, below = (w.hi & 1023) || w.lo;
  mantissa += rounds_up(mantissa & 1, half, below, negative, rnd);
  // The leading one, or a carry into it, adds itself to the exponent field.
  uint64_t field = subnormal ? 0 : (uint64_t)(biased - 1);
  if (biased > HIGHEST_EXPONENT || (field << 52) + mantissa >= INFINITE) {
    bool infinite = rnd == NUM_RN || (rnd == NUM_RM && negative) || (rnd == NUM_RP && !negative);
    return num_f64(sign | (INFINITE - !infinite));
  }
  return num_f64(sign | ((field << 52) + mantissa));
}

static bool is_finite(double x) {
  return (num_bits_f64(x) & INFINITE) != INFINITE;
}

// The product, its leading one at bit 125 or 124, and c likewise at bit 125, are lined up at the larger
// exponent. Bits fall off the smaller only where the two are far apart, so that the difference keeps over 100
// bits.
static double fma_finite(Parts a, Parts b, Parts c, NumRound rnd) {
  uint64_t x = a.mantissa << 10, y = b.mantissa << 10;
  Wide p = {num_mul_hi_u64(x, y), x * y}, q = {c.mantissa << 9, 0};
  int pe = a.exponent + b.exponent - 20, qe = c.exponent - 73;
  bool pn = a.negative != b.negative, qn = c.negative;
  if (!(p.hi | p.lo) || !q.hi) { // one is zero: nothing to line up
    if (!(p.hi | p.lo) && !q.hi) return pn == qn ? (pn ? -0.0 : 0.0) : rnd == NUM_RM ? -0.0 : 0.0;
    return q.hi ? put_together(qn, q, qe, rnd) : put_together(pn, p, pe, rnd);
  }
  if (pe < qe) {
    p = shift_right_sticky(p, (uint32_t)(qe - pe));
    pe = qe;
  } else {
    q = shift_right_sticky(q, (uint32_t)(pe - qe));
  }
  if (pn == qn) {
    uint32_t carry;
    p.lo = num_addc_u64(p.lo, q.lo, 0, &carry);
    p.hi += q.hi + carry; // below bit 127: no overflow
    return put_together(pn, p, pe, rnd);
  }
  if (p.hi < q.hi || (p.hi == q.hi && p.lo < q.lo)) {
    Wide t = p;
    p = q, q = t, pn = qn;
  }
  p.hi -= q.hi + (p.lo < q.lo);
  p.lo -= q.lo;
  if (!(p.hi | p.lo)) return rnd == NUM_RM ? -0.0 : 0.0;
  return put_together(pn, p, pe, rnd);
}

double sol_num_fma_f64(double a, double b, double c, NumRound rnd) {
  if (is_finite(a) && is_finite(b) && is_finite(c))
    return fma_finite(take_apart(a), take_apart(b), take_apart(c), rnd);
  // Something is infinite or NaN: no rounding takes place. A finite product must not overflow, though.
  double p = is_finite(a) && is_finite(b) ? 0 : a * b, r = p + c;
  return r == r ? r : num_nan_f64(a, c != c ? c : b);
}

double sol_num_mul_f64(double a, double b, NumRound rnd) {
  bool negative = (num_bits_f64(a) ^ num_bits_f64(b)) >> 63;
  return sol_num_fma_f64(a, b, negative ? -0.0 : 0.0, rnd);
}

double sol_num_div_f64(double a, double b, NumRound rnd) {
  double r = a / b;
  if (!is_finite(a) || !is_finite(b) || a == 0 || b == 0) return r == r ? r : num_nan_f64(a, b);
  Parts x = take_apart(a), y = take_apart(b);
  // 11 bits of quotient at a time: a remainder below 2^53 has that much room.
  uint64_t quotient = x.mantissa / y.mantissa, rest = x.mantissa % y.mantissa;
  for (int i = 0; i < 5; i++) {
    rest <<= 11;
    quotient = quotient << 11 | rest / y.mantissa;
    rest %= y.mantissa;
  }
  Wide w = {quotient, rest != 0};
  return put_together(x.negative != y.negative, w, x.exponent - y.exponent - 55 - 64, rnd);
}

// With the exponent out of the way, the remainder a - r*r is exact and its sign says which way r was rounded.
double sol_num_sqrt_f64(double a, NumRound rnd) {
  if (!(a > 0) || !is_finite(a)) return num_sqrt_f64_rn(a);
  Parts p = take_apart(a);
  int half = (p.exponent + 52) / 2 - ((p.exponent + 52) % 2 < 0); // floor
  double x =
      num_f64((uint64_t)(p.exponent + 52 - 2 * half + 1023) << 52 | (p.mantissa & 0x000fffffffffffffu));
  double r = __builtin_sqrt(x), rest = num_fma_f64_rn(-r, r, x);
  uint64_t u = num_bits_f64(r);
  if (rnd == NUM_RP) u += rest > 0;
  if (rnd == NUM_RZ || rnd == NUM_RM) u -= rest < 0;
  return num_f64(u + ((uint64_t)half << 52));
}
