// Binary floating point by integer arithmetic: the reference for rounding and conversion. A format is its
// precision p (implicit bit included) and the bits of its exponent: f64 53,11; f32 24,8; f16 11,5; bf16 8,8.
#pragma once

enum { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP };

struct Soft { // (negative ? -1 : 1) * m * 2^e
  bool negative;
  unsigned __int128 m;
  int e;
};

__device__ inline Soft soft_decode(unsigned long long bits, int p, int exponent_bits) {
  unsigned long long fraction = bits & ((1ull << (p - 1)) - 1);
  int exponent = (int)(bits >> (p - 1)) & ((1 << exponent_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  Soft v = {(bits >> (p - 1 + exponent_bits) & 1) != 0, fraction, (exponent ? exponent : 1) - bias - (p - 1)};
  if (exponent) v.m |= 1ull << (p - 1);
  return v;
}

__device__ inline Soft soft_float(float v) {
  return soft_decode(__float_as_uint(v), 24, 8);
}
__device__ inline Soft soft_double(double v) {
  return soft_decode((unsigned long long)__double_as_longlong(v), 53, 11);
}

__device__ inline int soft_top(unsigned __int128 m) { // the place of the highest bit; -1 of zero
  unsigned long long high = (unsigned long long)(m >> 64), low = (unsigned long long)m;
  return high ? 127 - __clzll((long long)high) : 63 - __clzll((long long)low);
}

// The encoding nearest to v in the given direction. `sticky`: the exact value is a little beyond v.m.
__device__ inline unsigned long long soft_round(Soft v, bool sticky, int mode, int p, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, least = 1 - bias - (p - 1);
  unsigned long long sign = (unsigned long long)v.negative << (p - 1 + exponent_bits);
  unsigned long long infinity = ((1ull << exponent_bits) - 1) << (p - 1);
  if (v.m == 0) return sign;
  int unit = soft_top(v.m) + v.e - (p - 1); // weight of the last bit that is kept
  if (unit < least) unit = least;
  int drop = unit - v.e;
  unsigned long long kept;
  bool half = false, low = sticky;
  if (drop <= 0) {
    kept = (unsigned long long)(v.m << -drop);
  } else if (drop > 127) {
    kept = 0, low = true;
  } else {
    kept = (unsigned long long)(v.m >> drop);
    half = (v.m >> (drop - 1) & 1) != 0;
    low = low || (v.m & (((unsigned __int128)1 << (drop - 1)) - 1)) != 0;
  }
  bool up = mode == ROUND_NEAREST ? half && (low || (kept & 1)) : false;
  if (mode == ROUND_UP) up = (half || low) && !v.negative;
  if (mode == ROUND_DOWN) up = (half || low) && v.negative;
  kept += up;
  unsigned long long bits = ((unsigned long long)(unit - least) << (p - 1)) + kept;
  bool stay = mode == ROUND_ZERO || (mode == ROUND_UP && v.negative) || (mode == ROUND_DOWN && !v.negative);
  if (bits >= infinity) bits = stay ? infinity - 1 : infinity;
  return sign | bits;
}

// Exact as long as both fit in 127 bits once they are aligned.
__device__ inline Soft soft_add(Soft a, Soft b) {
  int e = a.e < b.e ? a.e : b.e;
  __int128 x = (__int128)(a.m << (a.e - e)), y = (__int128)(b.m << (b.e - e));
  __int128 sum = (a.negative ? -x : x) + (b.negative ? -y : y);
  Soft v = {sum < 0, (unsigned __int128)(sum < 0 ? -sum : sum), e};
  return v;
}

__device__ inline Soft soft_mul(Soft a, Soft b) {
  Soft v = {a.negative != b.negative, a.m * b.m, a.e + b.e};
  return v;
}

// To `bits` bits or more; what is left over is in *sticky.
__device__ inline Soft soft_div(Soft a, Soft b, bool *sticky) {
  int shift = 126 - soft_top(a.m);
  unsigned __int128 n = a.m << shift;
  Soft v = {a.negative != b.negative, n / b.m, a.e - shift - b.e};
  *sticky = v.m * b.m != n;
  return v;
}

__device__ inline Soft soft_sqrt(Soft a, bool *sticky) {
  int shift = 124 - soft_top(a.m);
  if ((a.e - shift) & 1) shift++;
  unsigned __int128 n = a.m << shift, root = 0;
  for (int bit = 63; bit >= 0; bit--) {
    unsigned __int128 next = root | (unsigned __int128)1 << bit;
    if (next * next <= n) root = next;
  }
  Soft v = {false, root, (a.e - shift) / 2};
  *sticky = root * root != n;
  return v;
}

// The whole number in the given direction, held within [low, high].
__device__ inline __int128 soft_integer(Soft v, int mode, __int128 low, __int128 high) {
  unsigned __int128 whole = 0;
  bool half = false, rest = v.m != 0;
  int top = soft_top(v.m);
  if (v.m == 0) return 0;
  if (top + v.e > 100) return v.negative ? low : high;
  if (v.e >= 0) {
    whole = v.m << v.e, rest = false;
  } else if (-v.e <= 127) {
    whole = v.m >> -v.e;
    half = (v.m >> (-v.e - 1) & 1) != 0;
    rest = (v.m & (((unsigned __int128)1 << (-v.e - 1)) - 1)) != 0;
  }
  bool up = mode == ROUND_NEAREST ? half && (rest || (whole & 1)) : false;
  if (mode == ROUND_UP) up = (half || rest) && !v.negative;
  if (mode == ROUND_DOWN) up = (half || rest) && v.negative;
  __int128 value = (__int128)(whole + up);
  if (v.negative) value = -value;
  return value < low ? low : value > high ? high : value;
}
