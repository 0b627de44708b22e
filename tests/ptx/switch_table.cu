//! alloc x 2000*4 random-u32
//! alloc dense 2000*4 poison
//! alloc sparse 2000*4 poison
//! alloc fall 2000*4 poison
//! alloc table 2000*4 poison
//! alloc errors 32 zero
//! launch switches grid=8 block=250 args=x,dense,sparse,fall
//! launch branch_table grid=8 block=250 args=x,table
//! launch switches_check grid=8 block=250 args=x,dense,sparse,fall,table,errors
//! checks 8000
// A dense switch, a sparse one, one that falls through and leaves a loop by goto, and a table of branches
// (brx.idx).
#include "check.cuh"

extern "C" __global__ void switches(const unsigned *x, unsigned *dense, unsigned *sparse, unsigned *fall) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], a = v;
  switch (v % 13) { // too unlike each other to become arithmetic
  case 0: a = __brev(v); break;
  case 1: a = __popc(v) * 7u; break;
  case 2: a = v / 3; break;
  case 3: a = v * v; break;
  case 4:
    dense[i] = 4;
    a = __clz((int)v) + 100u;
    break;
  case 5: a = v ^ v >> 3; break;
  case 6: a = (v << 7) - 1; break;
  case 7: a = __byte_perm(v, v, 0x0123); break;
  case 8: a = ~v; break;
  case 9: a = v % 1000; break;
  case 10: a = __umulhi(v, v); break;
  case 11: a = v > 0x80000000u ? 1 : 2; break;
  default: a = 0xdefau; break;
  }
  dense[i] = a;
  switch (v & 0xffff) {
  case 7: a = 1; break;
  case 1000: a = 2; break;
  case 40000: a = 3; break;
  default: a = v & 1 ? 5 : 6;
  }
  sparse[i] = a;
  unsigned b = 0, rest = v;
  for (int trip = 0; trip < 8; trip++, rest >>= 4) {
    switch (rest & 7) {
    case 0: b += 1;
    case 1: b += 10;
    case 2: b += 100; break;
    case 3: continue;
    case 4: b += 1000;
    case 5: b ^= 3;
    case 6: b *= 2; break;
    case 7:
      if (trip > 4) goto done;
    }
    b += 1000000;
  }
done:
  fall[i] = b;
}

// Two entries of the table lead to the same place.
extern "C" __global__ void branch_table(const unsigned *x, unsigned *table) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned result;
  asm volatile("{ .reg .u32 which;\n"
               "bfe.u32 which, %1, 5, 2;\n"
               "targets: .branchtargets ten, more, square, five, five;\n"
               "brx.idx which, targets;\n"
               "ten: mov.u32 %0, 10; bra end;\n"
               "more: add.u32 %0, %1, 20; bra end;\n"
               "five: mov.u32 %0, 5; bra end;\n"
               "square: mul.lo.u32 %0, %1, %1; add.u32 %0, %0, 1;\n"
               "end: }"
               : "=r"(result)
               : "r"(x[i]));
  table[i] = result;
}

extern "C" __global__ void switches_check(const unsigned *x, const unsigned *dense, const unsigned *sparse,
                                          const unsigned *fall, const unsigned *table, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], m = v % 13, want = 0xdefau, reversed = 0;
  for (int k = 0; k < 32; k++) reversed |= (v >> k & 1) << (31 - k);
  if (m == 0) want = reversed;
  if (m == 1) want = __popc(v) * 7u;
  if (m == 2) want = v / 3;
  if (m == 3) want = v * v;
  if (m == 4) want = __clz((int)v) + 100u;
  if (m == 5) want = v ^ v >> 3;
  if (m == 6) want = (v << 7) - 1;
  if (m == 7) want = v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24;
  if (m == 8) want = ~v;
  if (m == 9) want = v % 1000;
  if (m == 10) want = (unsigned)((unsigned long long)v * v >> 32);
  if (m == 11) want = v > 0x80000000u ? 1 : 2;
  EXPECT_EQ(i, dense[i], want);
  unsigned low = v & 0xffff;
  EXPECT_EQ(i, sparse[i], low == 7 ? 1u : low == 1000 ? 2u : low == 40000 ? 3u : v & 1 ? 5u : 6u);
  unsigned b = 0;
  for (int trip = 0; trip < 8; trip++) {
    unsigned d = v >> 4 * trip & 7;
    if (d == 3) continue;
    if (d == 7 && trip > 4) break;
    b += d == 0 ? 111 : d == 1 ? 110 : d == 2 ? 100 : d == 4 ? 1000 : 0;
    if (d == 4 || d == 5) b ^= 3;
    if (d >= 4 && d <= 6) b *= 2;
    b += 1000000;
  }
  EXPECT_EQ(i, fall[i], b);
  const unsigned targets[4] = {10, v + 20, v * v + 1, 5};
  EXPECT_EQ(i, table[i], targets[v >> 5 & 3]);
}
