//! alloc x 512*4 random-u32
//! alloc y 512*4 random-u32
//! alloc errors 32 zero
//! launch int_intrinsics grid=4 block=128 args=x,y,errors
//! checks 12800
// Integer intrinsics against loops over bits: clz, ffs, popc, brev, byte_perm, funnel shifts, mulhi, mul24,
// sad, averages, find-nth-set-bit; also of 0, 1 and all ones.
#include "check.cuh"

extern "C" __global__ void int_intrinsics(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread(), a = x[i], b = y[i];
  if (i == 0) a = 0, b = 0xffffffffu;
  if (i == 1) a = 1, b = 0x80000000u;
  if (i >= 32 && i < 64) a >>= i - 32; // leading zeros
  if (i >= 64 && i < 96) a <<= i - 64; // trailing zeros
  unsigned long long w = (unsigned long long)a << 32 | b, reversed64 = 0;
  int leading = 32, first = 0, ones = 0, leading64 = 64, first64 = 0, ones64 = 0;
  unsigned reversed = 0;
  for (int k = 0; k < 32; k++)
    if (a >> k & 1) leading = 31 - k, ones++, reversed |= 1u << (31 - k), first = first ? first : k + 1;
  for (int k = 0; k < 64; k++)
    if (w >> k & 1)
      leading64 = 63 - k, ones64++, reversed64 |= 1ull << (63 - k), first64 = first64 ? first64 : k + 1;
  EXPECT_EQ(i, __clz((int)a), leading);
  EXPECT_EQ(i, __ffs((int)a), first);
  EXPECT_EQ(i, __popc(a), ones);
  EXPECT_EQ(i, __brev(a), reversed);
  EXPECT_EQ(i, __clzll((long long)w), leading64);
  EXPECT_EQ(i, __ffsll((long long)w), first64);
  EXPECT_EQ(i, __popcll(w), ones64);
  EXPECT_EQ(i, __brevll(w), reversed64);
  unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned chosen = 0, selector = check_hash(i);
  for (int k = 0; k < 4; k++) chosen |= (unsigned)(both >> 8 * (selector >> 4 * k & 7) & 255) << 8 * k;
  EXPECT_EQ(i, __byte_perm(a, b, selector & 0x7777), chosen);
  unsigned shift = i % 64;
  EXPECT_EQ(i, __funnelshift_l(a, b, shift), (unsigned)(both << (shift & 31) >> 32));
  EXPECT_EQ(i, __funnelshift_r(a, b, shift), (unsigned)(both >> (shift & 31)));
  EXPECT_EQ(i, __funnelshift_lc(a, b, shift), shift >= 32 ? a : (unsigned)(both << shift >> 32));
  EXPECT_EQ(i, __funnelshift_rc(a, b, shift), shift >= 32 ? b : (unsigned)(both >> shift));
  EXPECT_EQ(i, __umulhi(a, b), (unsigned)((unsigned long long)a * b >> 32));
  EXPECT_EQ(i, __mulhi((int)a, (int)b), (int)((long long)(int)a * (int)b >> 32));
  EXPECT_EQ(i, __umul24(a, b), (a & 0xffffff) * (b & 0xffffff));
  EXPECT_EQ(i, __mul24((int)a, (int)b),
            (int)((unsigned)((int)(a << 8) >> 8) * (unsigned)((int)(b << 8) >> 8)));
  EXPECT_EQ(i, __usad(a, b, 77u), (a > b ? a - b : b - a) + 77);
  EXPECT_EQ(i, __sad((int)a, (int)b, 5u), ((int)a > (int)b ? a - b : b - a) + 5);
  EXPECT_EQ(i, __uhadd(a, b), (unsigned)(((unsigned long long)a + b) / 2));
  EXPECT_EQ(i, __rhadd((int)a, (int)b), (int)(((long long)(int)a + (int)b + 1) >> 1));
  EXPECT_EQ(i, min((int)a, (int)b) ^ max((int)a, (int)b), (int)(a ^ b));
  EXPECT_EQ(i, max(a, b), a > b ? a : b);
  EXPECT_EQ(i, abs((int)a), (int)a < 0 ? (int)(0u - a) : (int)a);
  int nth = -1;
  for (int k = 0, seen = 0; k < 32 && nth < 0; k++)
    if (a >> k & 1 && ++seen == 3) nth = k;
  EXPECT_EQ(i, (int)__fns(a, 0, 3), nth);
}
