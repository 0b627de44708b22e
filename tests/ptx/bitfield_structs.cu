//! alloc x 777*12 random-u32
//! alloc y 777*12 random-u32
//! alloc out 777*4 poison
//! alloc errors 32 zero
//! launch fields grid=7 block=111 args=x,y,out
//! launch fields_check grid=7 block=111 args=x,y,out,errors
//! checks 3108
// Structures of bit fields, signed and unsigned, across bytes; packed structures with members at odd
// addresses.
#include "check.cuh"

struct Bits {
  unsigned a : 3, b : 13;
  int c : 7;
  unsigned d : 9;
  unsigned long long e : 40;
  signed char f : 5;
};
struct __attribute__((packed)) Packed {
  unsigned char tag;
  unsigned short pair;
  unsigned word;
  unsigned short tail;
  unsigned char rest[3];
};

extern "C" __global__ void fields(const Packed *x, unsigned char *y, unsigned *out) {
  unsigned i = global_thread();
  Packed p = x[i];
  Bits bits;
  bits.a = p.tag, bits.b = p.pair, bits.c = (int)p.word, bits.d = p.tail;
  bits.e = (unsigned long long)p.word << 8 | p.rest[1], bits.f = (signed char)p.rest[2];
  bits.a += 5, bits.b ^= 0x555, bits.c -= 3, bits.d *= 3, bits.e += 0xffffffffu,
      bits.f = (signed char)-bits.f;
  out[i] = bits.a ^ bits.b << 3 ^ (unsigned)bits.c << 9 ^ bits.d << 18 ^ (unsigned)(bits.e >> 8) ^
           (unsigned)bits.f;
  Packed *q = (Packed *)y + i;
  q->word = p.word + 1, q->pair = (unsigned short)(p.tail + p.tag), q->rest[0] = p.rest[2];
}

extern "C" __global__ void fields_check(const unsigned char *x, const unsigned char *y, const unsigned *out,
                                        unsigned *errors) {
  unsigned i = global_thread();
  const unsigned char *p = x + 12 * i, *q = y + 12 * i; // 12 bytes, all members
  unsigned tag = p[0], pair = p[1] | p[2] << 8, word = p[3] | p[4] << 8 | p[5] << 16 | (unsigned)p[6] << 24;
  unsigned tail = p[7] | p[8] << 8, a = (tag + 5) & 7, b = (pair ^ 0x555) & 0x1fff, d = tail * 3 & 0x1ff;
  int c = (int)((word - 3) << 25) >> 25;
  unsigned long long e = (((unsigned long long)word << 8 | p[10]) + 0xffffffffu) & 0xffffffffffull;
  int f = (int)((0u - p[11]) << 27) >> 27;
  EXPECT_EQ(i, out[i], a ^ b << 3 ^ (unsigned)c << 9 ^ d << 18 ^ (unsigned)(e >> 8) ^ (unsigned)f);
  EXPECT_EQ(i, (unsigned)(q[3] | q[4] << 8 | q[5] << 16 | (unsigned)q[6] << 24), word + 1);
  EXPECT_EQ(i, q[1] | q[2] << 8, (int)((tail + tag) & 0xffff));
  EXPECT_EQ(i, q[9], p[11]);
}
