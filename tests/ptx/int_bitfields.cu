//! alloc x 400*4 random-u32
//! alloc y 400*4 random-u32
//! alloc errors 32 zero
//! launch int_bitfields grid=4 block=100 args=x,y,errors
//! checks 8400
// Bit fields and logic by inline assembly: bfe, bfi (32 and 64 bits, positions beyond the word), bfind, lop3
// with all 256 tables, shf, prmt in its special modes, szext, bmsk, shifts by 32 and more, cnot, sad of
// shorts.
#include "check.cuh"

#define ASM2(out, type, text, a, b) asm(text " %0, %1, %2;" : "=" type(out) : type(a), type(b))
#define ASM3(out, t, text, a, b, c) asm(text " %0, %1, %2, %3;" : "=" t(out) : t(a), "r"(b), "r"(c))

__device__ unsigned table(unsigned a, unsigned b, unsigned c, unsigned lut) {
  unsigned r = 0;
  for (int k = 0; k < 32; k++) r |= (lut >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k;
  return r;
}

// Field of `size` bits from `start`, by the manual: bits beyond the top are zero or copies of the sign.
__device__ unsigned long long field(unsigned long long a, unsigned start, unsigned size, int width,
                                    bool is_signed) {
  unsigned long long r = 0;
  if (size == 0) return 0;
  unsigned last = start + size - 1 < (unsigned)width ? start + size - 1 : width - 1;
  unsigned sign = is_signed ? (unsigned)(a >> last & 1) : 0;
  for (unsigned k = 0; k < (unsigned)width; k++) {
    unsigned from = start + k;
    unsigned long long bit = k < size && from < (unsigned)width ? a >> from & 1 : sign;
    r |= bit << k;
  }
  return r;
}

extern "C" __global__ void int_bitfields(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread(), a = x[i], b = y[i], start = check_hash(i) % 40, size = check_hash(~i) % 40, r;
  unsigned long long w = (unsigned long long)a << 32 | b, r64;
  ASM3(r, "r", "bfe.u32", a, start, size);
  EXPECT_EQ(i, r, (unsigned)field(a, start, size, 32, false));
  ASM3(r, "r", "bfe.s32", a, start, size);
  EXPECT_EQ(i, r, (unsigned)field(a, start, size, 32, true));
  ASM3(r64, "l", "bfe.u64", w, 2 * start, size);
  EXPECT_EQ(i, r64, field(w, 2 * start, size, 64, false));
  ASM3(r64, "l", "bfe.s64", w, 2 * start, size);
  EXPECT_EQ(i, r64, field(w, 2 * start, size, 64, true));
  unsigned want = b;
  for (unsigned k = 0; k < size && start + k < 32; k++)
    want = (want & ~(1u << (start + k))) | (a >> k & 1) << (start + k);
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(start), "r"(size));
  EXPECT_EQ(i, r, want);
  unsigned long long want64 = w;
  for (unsigned k = 0; k < size && 2 * start + k < 64; k++)
    want64 = (want64 & ~(1ull << (2 * start + k))) | (~w >> k & 1) << (2 * start + k);
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r64) : "l"(~w), "l"(w), "r"(2 * start), "r"(size));
  EXPECT_EQ(i, r64, want64);
  unsigned thin = i < 40 ? a >> (i < 32 ? i : 31) : a;
  asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(thin));
  EXPECT_EQ(i, r, (unsigned)(31 - __clz((int)thin)));
  asm("bfind.shiftamt.s32 %0, %1;" : "=r"(r) : "r"((int)a >> start % 32));
  int s = (int)a >> start % 32, magnitude = s < 0 ? ~s : s;
  EXPECT_EQ(i, r, magnitude ? (unsigned)__clz(magnitude) : 0xffffffffu);
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(a * b));
  EXPECT_EQ(i, r, a ^ b ^ a * b);
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(a * b));
  EXPECT_EQ(i, r, table(a, b, a * b, 0xe8));
  asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(r) : "r"(a), "r"(b), "r"(a * b));
  EXPECT_EQ(i, r, table(a, b, a * b, 0x1b));
  asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(start));
  EXPECT_EQ(i, r, start > 31 ? 0u : a << start);
  asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(start));
  EXPECT_EQ(i, r, (unsigned)((int)a >> (start > 31 ? 31 : start)));
  asm("shr.u64 %0, %1, %2;" : "=l"(r64) : "l"(w), "r"(2 * start));
  EXPECT_EQ(i, r64, start > 31 ? 0ull : w >> 2 * start);
  asm("cnot.b32 %0, %1;" : "=r"(r) : "r"(i % 3 ? a : 0));
  EXPECT_EQ(i, r, i % 3 ? 0u : 1u);
  // Special modes of prmt: forward, rotation, replication of a byte.
  unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned n = i & 3, byte = a >> 8 * n & 255;
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(n));
  EXPECT_EQ(i, r, (unsigned)(both >> 8 * n));
  asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(n));
  EXPECT_EQ(i, r, byte * 0x01010101u);
  asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(n));
  EXPECT_EQ(i, r, (n & 1 ? a >> 16 : a & 0xffff) * 0x10001u);
  asm("prmt.b32 %0, %1, %2, 0xb9ae;" : "=r"(r) : "r"(a), "r"(b)); // sign of bytes 3, 1, 2, 6
  EXPECT_EQ(i, r,
            (a >> 31 ? 0xff000000u : 0) | (a >> 15 & 1 ? 0xff0000u : 0) | (a >> 23 & 1 ? 0xff00u : 0) |
                (b >> 23 & 1 ? 0xffu : 0));
  asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(size));
  EXPECT_EQ(i, r, size == 0 ? 0u : size >= 32 ? a : (unsigned)((int)(a << (32 - size)) >> (32 - size)));
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(start), "r"(size));
  want = 0;
  for (unsigned k = start; k < 32 && k < start + size; k++) want |= 1u << k;
  EXPECT_EQ(i, r, want);
}
