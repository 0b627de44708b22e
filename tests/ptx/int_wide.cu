//! alloc x 256*16 random-u32
//! alloc y 256*16 random-u32
//! alloc errors 32 zero
//! launch int_wide grid=2 block=128 args=x,y,errors
//! checks 4608
// 64-bit division, remainder, products and shifts, and 128-bit integers, against bit-by-bit arithmetic.
#include "check.cuh"

typedef unsigned long long u64;
typedef unsigned __int128 u128;

__device__ u64 divide(u64 a, u64 b, u64 *rest) { // restoring division
  u64 q = 0, r = 0;
  for (int k = 63; k >= 0; k--) {
    u64 top = r >> 63;
    r = r << 1 | (a >> k & 1);
    if (top || r >= b) r -= b, q |= 1ull << k;
  }
  *rest = r;
  return q;
}

__device__ u64 multiply(u64 a, u64 b, u64 *high) { // by shifts and additions
  u64 low = 0, h = 0;
  for (int k = 63; k >= 0; k--) {
    h = h << 1 | low >> 63;
    low <<= 1;
    if (b >> k & 1) {
      low += a;
      h += low < a;
    }
  }
  *high = h;
  return low;
}

extern "C" __global__ void int_wide(const u64 *x, const u64 *y, unsigned *errors) {
  unsigned i = global_thread();
  u64 a = x[2 * i], b = y[2 * i] >> i % 61, r, high;
  if (b == 0) b = 3;
  u64 q = divide(a, b, &r);
  EXPECT_EQ(i, a / b, q);
  EXPECT_EQ(i, a % b, r);
  long long sa = (long long)a, sb = i & 1 ? -(long long)(b >> 1 | 1) : (long long)(b >> 1 | 1);
  q = divide(sa < 0 ? 0 - a : a, (u64)(sb < 0 ? -sb : sb), &r);
  EXPECT_EQ(i, sa / sb, (long long)((sa < 0) != (sb < 0) ? 0 - q : q));
  EXPECT_EQ(i, sa % sb, (long long)(sa < 0 ? 0 - r : r));
  u64 low = multiply(a, y[2 * i + 1], &high);
  EXPECT_EQ(i, a * y[2 * i + 1], low);
  EXPECT_EQ(i, __umul64hi(a, y[2 * i + 1]), high);
  u64 shigh = high - (sa < 0 ? y[2 * i + 1] : 0) - (y[2 * i + 1] >> 63 ? a : 0);
  EXPECT_EQ(i, (u64)__mul64hi(sa, (long long)y[2 * i + 1]), shigh);
  unsigned s = i % 64;
  u64 left = a, right = a;
  long long arithmetic = sa;
  for (unsigned k = 0; k < s; k++) left += left, right /= 2, arithmetic = (arithmetic - (arithmetic & 1)) / 2;
  EXPECT_EQ(i, a << s, left);
  EXPECT_EQ(i, a >> s, right);
  EXPECT_EQ(i, sa >> s, arithmetic);
  EXPECT_EQ(i, (unsigned)a / ((unsigned)b | 1), (unsigned)divide((unsigned)a, (unsigned)b | 1, &r));
  // 128 bits
  u128 p = (u128)x[2 * i + 1] << 64 | a, d = ((u128)y[2 * i + 1] << 64 | y[2 * i]) >> i % 120;
  if (d == 0) d = 7;
  u128 quotient = 0, rest = 0;
  for (int k = 127; k >= 0; k--) {
    u64 top = (u64)(rest >> 127);
    rest = rest << 1 | (p >> k & 1);
    if (top || rest >= d) rest -= d, quotient |= (u128)1 << k;
  }
  EXPECT_EQ(i, (u64)(p / d), (u64)quotient);
  EXPECT_EQ(i, (u64)((p / d) >> 64), (u64)(quotient >> 64));
  EXPECT_EQ(i, (u64)(p % d), (u64)rest);
  low = multiply(a, y[2 * i], &high);
  u128 product = (u128)a * y[2 * i];
  EXPECT_EQ(i, (u64)product, low);
  EXPECT_EQ(i, (u64)(product >> 64), high);
  EXPECT_EQ(i, (u64)((p + d) >> 64), (u64)(p >> 64) + (u64)(d >> 64) + ((u64)p + (u64)d < (u64)p));
  EXPECT_EQ(i, (u64)((p - d) >> 64), (u64)(p >> 64) - (u64)(d >> 64) - ((u64)p < (u64)d));
}
