// What the tests of src/emu/num_*.h share: operands worth trying, and exact references.
#ifndef NUM_REF_H
#define NUM_REF_H

#include <fenv.h>

#include "check.h"
#include "emu/isa/num_float.h"

static uint64_t ref_state = 0x853c49e6748fea9b;
static inline uint64_t ref_random(void) {
  ref_state += 0x9e3779b97f4a7c15u;
  uint64_t x = (ref_state ^ ref_state >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Small, large, one bit, all but one bit, anything.
static inline uint64_t ref_integer(void) {
  uint64_t r = ref_random(), x = ref_random();
  switch (r & 7) {
  case 0: return x & 15;
  case 1: return 0 - (x & 15);
  case 2: return 1ull << (x & 63);
  case 3: return ~(1ull << (x & 63));
  case 4: return 0x8000800080008000u >> (x & 48) ^ (x >> 8 & 1);
  default: return x >> (r >> 8 & 63);
  }
}

// A float's bits with e bits of exponent and m of mantissa: special ones, ones about the ends of the range of
// this and narrower formats, few or many mantissa bits, anything.
static inline uint64_t ref_float(int e, int m) {
  uint64_t r = ref_random(), mantissa = ref_random() & ((1ull << m) - 1), sign = (r >> 63) << (e + m);
  uint64_t top = (1ull << e) - 1, bias = top / 2, field;
  if ((r >> 8 & 3) == 0) mantissa &= ~0ull << (m - 3);
  if ((r >> 8 & 3) == 1) mantissa |= (1ull << (m - 3)) - 1;
  mantissa &= (1ull << m) - 1;
  static const int ends[] = {-1074, -1022, -149, -133, -126, -24, -14, -1,  0,   8,
                             15,    16,    31,   32,   63,   64,  127, 128, 1023};
  switch (r & 7) {
  case 0: field = 0, mantissa = r >> 20 & 1 ? mantissa : r >> 21 & 1; break;
  case 1: field = top, mantissa = r >> 20 & 1 ? mantissa : 0; break;
  case 2: field = top - 1 - (r >> 20 & 1); break;
  case 3:
  case 4: {
    int64_t at =
        (int64_t)bias + ends[(r >> 20) % (sizeof ends / sizeof ends[0])] + (int64_t)(r >> 32 & 3) - 2;
    field = at < 0 ? 0 : at > (int64_t)top ? top : (uint64_t)at;
    break;
  }
  case 5: field = bias + (r >> 20) % 16 - 8; break;
  default: field = (r >> 20) % (top + 1);
  }
  return sign | field << m | mantissa;
}
static inline float ref_f32(void) {
  return num_f32((uint32_t)ref_float(8, 23));
}
static inline double ref_f64(void) {
  return num_f64(ref_float(11, 52));
}

// Sets the host's rounding mode, for an oracle; volatile operands keep the compiler from knowing better.
static inline void ref_rounding(NumRound rnd) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  fesetround(modes[rnd]);
}

// The exact value x * 2^scale, x a whole number, rounded to m+1 bits no finer than 2^lowest; returned as a
// double, which holds any such result of up to 24 bits.
static inline double ref_round_exact(__int128 x, int scale, int m, int lowest, NumRound rnd) {
  bool negative = x < 0;
  unsigned __int128 mag = negative ? -(unsigned __int128)x : (unsigned __int128)x;
  int bits = 0;
  while (bits < 128 && mag >> bits) bits++;
  int drop = bits - (m + 1);
  if (drop < lowest - scale) drop = lowest - scale;
  if (drop <= 0) return (negative ? -1 : 1) * ldexp((double)mag, scale);
  if (drop > 127) { // less than half of the smallest
    bool up = mag && (rnd == (negative ? NUM_RM : NUM_RP));
    return (negative ? -1 : 1) * (up ? ldexp(1, lowest) : 0);
  }
  unsigned __int128 kept = mag >> drop, rest = mag - (kept << drop),
                    half = (unsigned __int128)1 << (drop - 1);
  bool up = false;
  if (rnd == NUM_RN) up = rest > half || (rest == half && (kept & 1));
  if (rnd == NUM_RM) up = rest && negative;
  if (rnd == NUM_RP) up = rest && !negative;
  return (negative ? -1 : 1) * ldexp((double)(kept + up), scale + drop);
}

static inline bool same_f32(float a, float b) {
  return num_bits_f32(a) == num_bits_f32(b) || (a != a && b != b);
}
static inline bool same_f64(double a, double b) {
  return num_bits_f64(a) == num_bits_f64(b) || (a != a && b != b);
}

#endif
