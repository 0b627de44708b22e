//! alloc x 300*4 random-u32
//! alloc y 300*4 random-u32
//! alloc errors 32 zero
//! launch int_simd grid=3 block=100 args=x,y,errors
//! checks 7200
// Packed arithmetic on bytes and halves in a word: the __v...2 and __v...4 intrinsics against loops.
#include "check.cuh"

enum { ADD, SUB, ADDS, MAXS, MINU, ABSD, AVG, EQ, GTU, SETLT };

__device__ int lane_of(unsigned v, int k, int bits, bool is_signed) {
  unsigned m = (1u << bits) - 1, f = v >> bits * k & m;
  return is_signed && f >> (bits - 1) ? (int)f - (int)(m + 1) : (int)f;
}

__device__ unsigned each(int op, unsigned a, unsigned b, int bits) {
  unsigned r = 0, m = (1u << bits) - 1;
  for (int k = 0; k < 32 / bits; k++) {
    int s = lane_of(a, k, bits, true), t = lane_of(b, k, bits, true), high = (int)(m >> 1), v = 0;
    int u = lane_of(a, k, bits, false), w = lane_of(b, k, bits, false);
    if (op == ADD) v = s + t;
    if (op == SUB) v = s - t;
    if (op == ADDS) v = min(max(s + t, -high - 1), high);
    if (op == MAXS) v = max(s, t);
    if (op == MINU) v = min(u, w);
    if (op == ABSD) v = abs(u - w);
    if (op == AVG) v = (u + w + 1) / 2;
    if (op == EQ) v = u == w ? -1 : 0;
    if (op == GTU) v = u > w ? -1 : 0;
    if (op == SETLT) v = s < t;
    r |= ((unsigned)v & m) << bits * k;
  }
  return r;
}

extern "C" __global__ void int_simd(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread(), a = x[i], b = y[i];
  if (i % 4 == 0) b = (b & 0xff00ff00u) | (a & 0x00ff00ffu); // some parts are equal
  EXPECT_EQ(i, __vadd4(a, b), each(ADD, a, b, 8));
  EXPECT_EQ(i, __vsub4(a, b), each(SUB, a, b, 8));
  EXPECT_EQ(i, __vaddss4(a, b), each(ADDS, a, b, 8));
  EXPECT_EQ(i, __vmaxs4(a, b), each(MAXS, a, b, 8));
  EXPECT_EQ(i, __vminu4(a, b), each(MINU, a, b, 8));
  EXPECT_EQ(i, __vabsdiffu4(a, b), each(ABSD, a, b, 8));
  EXPECT_EQ(i, __vavgu4(a, b), each(AVG, a, b, 8));
  EXPECT_EQ(i, __vcmpeq4(a, b), each(EQ, a, b, 8));
  EXPECT_EQ(i, __vcmpgtu4(a, b), each(GTU, a, b, 8));
  EXPECT_EQ(i, __vsetlts4(a, b), each(SETLT, a, b, 8));
  EXPECT_EQ(i, __vadd2(a, b), each(ADD, a, b, 16));
  EXPECT_EQ(i, __vsub2(a, b), each(SUB, a, b, 16));
  EXPECT_EQ(i, __vaddss2(a, b), each(ADDS, a, b, 16));
  EXPECT_EQ(i, __vmaxs2(a, b), each(MAXS, a, b, 16));
  EXPECT_EQ(i, __vminu2(a, b), each(MINU, a, b, 16));
  EXPECT_EQ(i, __vabsdiffu2(a, b), each(ABSD, a, b, 16));
  EXPECT_EQ(i, __vcmpeq2(a, b), each(EQ, a, b, 16));
  EXPECT_EQ(i, __vsetlts2(a, b), each(SETLT, a, b, 16));
  int sum = 0;
  for (int k = 0; k < 4; k++) sum += abs(lane_of(a, k, 8, false) - lane_of(b, k, 8, false));
  EXPECT_EQ(i, (int)__vsadu4(a, b), sum);
  int halves = 0;
  for (int k = 0; k < 2; k++) halves += abs(lane_of(a, k, 16, false) - lane_of(b, k, 16, false));
  EXPECT_EQ(i, (int)__vsadu2(a, b), halves);
  halves = 0;
  for (int k = 0; k < 2; k++) halves += abs(lane_of(a, k, 16, true) - lane_of(b, k, 16, true));
  EXPECT_EQ(i, (int)__vsads2(a, b), halves);
  EXPECT_EQ(i, __vimax3_s32((int)a, (int)b, 5), max(max((int)a, (int)b), 5));
  EXPECT_EQ(i, __vimin_s32_relu((int)a, (int)b), max(min((int)a, (int)b), 0));
  EXPECT_EQ(i, __viaddmax_u32(a, b, 1000u), max(a + b, 1000u));
}
