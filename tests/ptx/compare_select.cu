//! alloc x 256*8 random-u32
//! alloc errors 32 zero
//! launch compare_select grid=2 block=128 args=x,errors
//! checks 3328
// Predicates: setp of every integer type with two results, combined with and, or, xor; selp, slct, set;
// predicated execution by hand, with and without negation; 64-bit and 16-bit comparisons.
#include "check.cuh"

typedef unsigned long long u64;

extern "C" __global__ void compare_select(const u64 *x, unsigned *errors) {
  unsigned i = global_thread();
  u64 a = x[i], b = i % 5 ? x[i ^ 1] : a;
  unsigned p, q, word;
#define TWO(text, type, va, vb)                                                                              \
  asm("{ .reg .pred p, q; setp." text " p|q, %2, %3; selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"          \
      : "=r"(p), "=r"(q)                                                                                     \
      : type(va), type(vb))
  TWO("lt.s32", "r", (int)a, (int)b);
  EXPECT_EQ(i, p | q << 1, (int)a < (int)b ? 1u : 2u);
  TWO("hi.u32", "r", (unsigned)a, (unsigned)b);
  EXPECT_EQ(i, p | q << 1, (unsigned)a > (unsigned)b ? 1u : 2u);
  TWO("ge.s64", "l", a, b);
  EXPECT_EQ(i, p | q << 1, (long long)a >= (long long)b ? 1u : 2u);
  TWO("ls.u64", "l", a, b);
  EXPECT_EQ(i, p | q << 1, a <= b ? 1u : 2u);
  TWO("ne.b16", "h", (unsigned short)a, (unsigned short)b);
  EXPECT_EQ(i, p | q << 1, (a & 0xffff) != (b & 0xffff) ? 1u : 2u);
  TWO("gt.s16", "h", (unsigned short)a, (unsigned short)b);
  EXPECT_EQ(i, p | q << 1, (short)a > (short)b ? 1u : 2u);
#define JOIN(op)                                                                                             \
  asm("{ .reg .pred c, p, q; setp.ne.u32 c, %4, 0; setp.lo." op ".u32 p|q, %2, %3, c;\n"                     \
      "selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"                                                        \
      : "=r"(p), "=r"(q)                                                                                     \
      : "r"((unsigned)a), "r"((unsigned)b), "r"(odd))
  unsigned odd = (unsigned)a & 1, low = (unsigned)a < (unsigned)b;
  JOIN("and");
  EXPECT_EQ(i, p | q << 1, (low & odd) | (!low & odd) << 1);
  JOIN("or");
  EXPECT_EQ(i, p | q << 1, (low | odd) | ((!low) | odd) << 1);
  JOIN("xor");
  EXPECT_EQ(i, p | q << 1, (low ^ odd) | ((!low) ^ odd) << 1);
  asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(word) : "r"(11), "r"(22), "r"((int)a));
  EXPECT_EQ(i, word, (int)a >= 0 ? 11u : 22u);
  asm("set.gt.u32.s32 %0, %1, %2;" : "=r"(word) : "r"((int)a), "r"((int)b));
  EXPECT_EQ(i, word, (int)a > (int)b ? 0xffffffffu : 0u);
  // Logic on predicates, guards, and moves between them.
  asm("{ .reg .pred a, b, c, d; setp.ne.u32 a, %1, 0; setp.ne.u32 b, %2, 0;\n"
      "and.pred c, a, b; xor.pred d, a, b; not.pred a, a; or.pred b, c, a;\n"
      "mov.u32 %0, 100;\n"
      "@c add.u32 %0, %0, 1;\n"
      "@!d add.u32 %0, %0, 10;\n"
      "@b mul.lo.u32 %0, %0, 3; }"
      : "=&r"(word)
      : "r"(odd), "r"(low));
  unsigned want = 100 + (odd & low) + (odd == low ? 10 : 0);
  EXPECT_EQ(i, word, (odd & low) || !odd ? want * 3 : want);
  double d;
  asm("{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.f64 %0, 0d3FF8000000000000, 0dC004000000000000, p; }"
      : "=d"(d)
      : "r"((unsigned)a), "r"((unsigned)b));
  EXPECT_EQ(i, d, low ? 1.5 : -2.5);
}
