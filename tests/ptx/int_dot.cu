//! alloc x 300*4 random-u32
//! alloc y 300*4 random-u32
//! alloc errors 32 zero
//! launch int_dot grid=3 block=100 args=x,y,errors
//! checks 5400
// Dot products of packed bytes and shorts (dp4a, dp2a of every signedness), mad.wide, mad.hi, 16-bit
// arithmetic.
#include "check.cuh"

__device__ int byte_of(unsigned v, int k, bool is_signed) {
  return is_signed ? (signed char)(v >> 8 * k) : (int)(v >> 8 * k & 255);
}
__device__ int short_of(unsigned v, int k, bool is_signed) {
  return is_signed ? (short)(v >> 16 * k) : (int)(v >> 16 * k & 0xffff);
}
__device__ unsigned dot4(unsigned a, unsigned b, unsigned c, bool sa, bool sb) {
  for (int k = 0; k < 4; k++) c += (unsigned)(byte_of(a, k, sa) * byte_of(b, k, sb));
  return c;
}
__device__ unsigned dot2(unsigned a, unsigned b, unsigned c, bool s, int high) {
  for (int k = 0; k < 2; k++) c += (unsigned)(short_of(a, k, s) * byte_of(b, k + 2 * high, s));
  return c;
}

extern "C" __global__ void int_dot(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread(), a = x[i], b = y[i], c = a * 3 + b, r;
  EXPECT_EQ(i, (unsigned)__dp4a((int)a, (int)b, (int)c), dot4(a, b, c, true, true));
  EXPECT_EQ(i, __dp4a(a, b, c), dot4(a, b, c, false, false));
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  EXPECT_EQ(i, r, dot4(a, b, c, false, true));
  EXPECT_EQ(i, (unsigned)__dp2a_lo((int)a, (int)b, (int)c), dot2(a, b, c, true, 0));
  EXPECT_EQ(i, (unsigned)__dp2a_hi((int)a, (int)b, (int)c), dot2(a, b, c, true, 1));
  EXPECT_EQ(i, __dp2a_lo(a, b, c), dot2(a, b, c, false, 0));
  EXPECT_EQ(i, __dp2a_hi(a, b, c), dot2(a, b, c, false, 1));
  unsigned long long w = (unsigned long long)a << 32 | b, r64;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r64) : "r"(a), "r"(b), "l"(w));
  EXPECT_EQ(i, r64, (unsigned long long)a * b + w);
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(r64) : "r"(a), "r"(b), "l"(w));
  EXPECT_EQ(i, (long long)r64, (long long)((unsigned long long)((long long)(int)a * (int)b) + w));
  asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  EXPECT_EQ(i, r, (unsigned)((long long)(int)a * (int)b >> 32) + c);
  asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  long long sum = ((long long)(int)a * (int)b >> 32) + (int)c;
  EXPECT_EQ(i, (int)r, (int)max(-2147483648ll, min(2147483647ll, sum)));
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  sum = (long long)(int)a + (int)b;
  EXPECT_EQ(i, (int)r, (int)max(-2147483648ll, min(2147483647ll, sum)));
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  sum = (long long)(int)a - (int)b;
  EXPECT_EQ(i, (int)r, (int)max(-2147483648ll, min(2147483647ll, sum)));
  unsigned short h, p = (unsigned short)a, q = (unsigned short)b;
  asm("mul.hi.s16 %0, %1, %2;" : "=h"(h) : "h"(p), "h"(q));
  EXPECT_EQ(i, (short)h, (short)((short)p * (short)q >> 16));
  asm("mad.lo.u16 %0, %1, %2, %3;" : "=h"(h) : "h"(p), "h"(q), "h"((unsigned short)c));
  EXPECT_EQ(i, h, (unsigned short)((unsigned)p * q + c));
  asm("mul.wide.s16 %0, %1, %2;" : "=r"(r) : "h"(p), "h"(q));
  EXPECT_EQ(i, (int)r, (short)p * (short)q);
  asm("shr.s16 %0, %1, %2;" : "=h"(h) : "h"(p), "r"(b % 20));
  EXPECT_EQ(i, (short)h, (short)((short)p >> (b % 20 > 15 ? 15 : b % 20)));
  asm("rem.s16 %0, %1, %2;" : "=h"(h) : "h"(p), "h"((unsigned short)(q | 1)));
  EXPECT_EQ(i, (short)h, (short)((short)p % (short)(q | 1)));
}
