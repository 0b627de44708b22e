//! alloc x 200*32 random-u32
//! alloc y 200*32 random-u32
//! alloc errors 32 zero
//! launch carry_chain grid=2 block=100 args=x,y,errors
//! checks 5200
// 256-bit addition and subtraction and a 128 x 128 bit product by carry chains (add.cc, addc, sub.cc, subc,
// mad.cc, madc), 64-bit chains too, against arithmetic on 16-bit digits.
#include "check.cuh"

// r (n digits of 16 bits) = a + b or a - b; returns the last carry or borrow.
__device__ unsigned digits(const unsigned *a, const unsigned *b, unsigned *r, int words, bool minus) {
  unsigned carry = minus;
  for (int k = 0; k < 2 * words; k++) {
    unsigned p = a[k / 2] >> 16 * (k % 2) & 0xffff, q = b[k / 2] >> 16 * (k % 2) & 0xffff;
    unsigned sum = p + (minus ? q ^ 0xffff : q) + carry;
    if (k % 2 == 0)
      r[k / 2] = sum & 0xffff;
    else
      r[k / 2] |= sum << 16;
    carry = sum >> 16;
  }
  return minus ? 1 - carry : carry;
}

extern "C" __global__ void carry_chain(const unsigned *x, const unsigned *y, unsigned *errors) {
  __align__(8) unsigned a[8], b[8];
  unsigned i = global_thread(), r[8], want[8], out;
  for (int k = 0; k < 8; k++) a[k] = x[i * 8 + k], b[k] = y[i * 8 + k];
  if (i % 3 == 0)
    for (int k = 0; k < 7; k++) b[k] = ~a[k]; // long runs of carries
  if (i % 6 == 0) b[0]++;
  unsigned last = digits(a, b, want, 8, false);
  asm("add.cc.u32 %0, %9, %17;\n addc.cc.u32 %1, %10, %18;\n addc.cc.u32 %2, %11, %19;\n"
      "addc.cc.u32 %3, %12, %20;\n addc.cc.u32 %4, %13, %21;\n addc.cc.u32 %5, %14, %22;\n"
      "addc.cc.u32 %6, %15, %23;\n addc.cc.u32 %7, %16, %24;\n addc.u32 %8, 0, 0;"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]),
        "=&r"(r[7]), "=&r"(out)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]),
        "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
  for (int k = 0; k < 8; k++) EXPECT_EQ(i * 8 + k, r[k], want[k]);
  EXPECT_EQ(i, out, last);
  last = digits(a, b, want, 8, true);
  unsigned long long w[4];
  const unsigned long long *a64 = (const unsigned long long *)a, *b64 = (const unsigned long long *)b;
  asm("sub.cc.u64 %0, %5, %9;\n subc.cc.u64 %1, %6, %10;\n subc.cc.u64 %2, %7, %11;\n"
      "subc.cc.u64 %3, %8, %12;\n subc.u32 %4, 0, 0;"
      : "=&l"(w[0]), "=&l"(w[1]), "=&l"(w[2]), "=&l"(w[3]), "=&r"(out)
      : "l"(a64[0]), "l"(a64[1]), "l"(a64[2]), "l"(a64[3]), "l"(b64[0]), "l"(b64[1]), "l"(b64[2]),
        "l"(b64[3]));
  for (int k = 0; k < 8; k++) EXPECT_EQ(i * 8 + k, (unsigned)(w[k / 2] >> 32 * (k % 2)), want[k]);
  EXPECT_EQ(i, out, 0u - last);
  // Schoolbook rows: r += a[0..3] * b[j] << 32 j, low halves, then high halves one place up.
  for (int k = 0; k < 8; k++) r[k] = 0;
#define ROW(j)                                                                                               \
  asm("mad.lo.cc.u32 %0, %5, %9, %0;\n madc.lo.cc.u32 %1, %6, %9, %1;\n madc.lo.cc.u32 %2, %7, %9, %2;\n"    \
      "madc.lo.cc.u32 %3, %8, %9, %3;\n addc.u32 %4, %4, 0;\n"                                               \
      "mad.hi.cc.u32 %1, %5, %9, %1;\n madc.hi.cc.u32 %2, %6, %9, %2;\n madc.hi.cc.u32 %3, %7, %9, %3;\n"    \
      "madc.hi.u32 %4, %8, %9, %4;"                                                                          \
      : "+r"(r[j]), "+r"(r[j + 1]), "+r"(r[j + 2]), "+r"(r[j + 3]), "+r"(r[j + 4])                           \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[j]))
  ROW(0);
  ROW(1);
  ROW(2);
  ROW(3);
  unsigned long long columns[17] = {}; // of 16-bit digits
  for (int p = 0; p < 8; p++)
    for (int q = 0; q < 8; q++)
      columns[p + q] +=
          (unsigned long long)(a[p / 2] >> 16 * (p % 2) & 0xffff) * (b[q / 2] >> 16 * (q % 2) & 0xffff);
  for (int k = 0; k < 16; k++) columns[k + 1] += columns[k] >> 16;
  for (int k = 0; k < 8; k++)
    EXPECT_EQ(i * 8 + k, r[k],
              (unsigned)(columns[2 * k] & 0xffff) | (unsigned)(columns[2 * k + 1] & 0xffff) << 16);
}
