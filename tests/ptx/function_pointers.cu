//! alloc x 900*4 random-u32
//! alloc y 3*900*4 poison
//! alloc errors 32 zero
//! launch pointers grid=9 block=100 args=x,y,i32:900
//! launch pointers_check grid=9 block=100 args=x,y,i32:900,errors
//! checks 2700
// Function pointers: a table in constant memory indexed per lane, pointers passed to a function, and pointers
// to functions that take and return structures.
#include "check.cuh"

struct Pair {
  unsigned a;
  unsigned long long b;
  unsigned char c;
};
typedef unsigned (*Unary)(unsigned);
typedef Pair (*Change)(Pair, int);

__device__ unsigned twice(unsigned v) {
  return 2 * v;
}
__device__ unsigned square(unsigned v) {
  return v * v;
}
__device__ unsigned flip(unsigned v) {
  return ~v;
}
__device__ unsigned swap_halves(unsigned v) {
  return v << 16 | v >> 16;
}
__device__ unsigned nothing(unsigned v) {
  return v;
}
__constant__ Unary unary[5] = {twice, square, flip, swap_halves, nothing};

__device__ Pair add(Pair p, int k) {
  return {p.a + k, p.b + k, (unsigned char)(p.c + k)};
}
__device__ Pair turn(Pair p, int k) {
  return {(unsigned)p.b, p.b << 32 | p.a, (unsigned char)(p.c ^ k)};
}
__device__ Change changes[2] = {add, turn};

__device__ __noinline__ unsigned twofold(Unary f, Unary g, unsigned v) {
  return f(g(v)) + g(f(v));
}

extern "C" __global__ void pointers(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  y[i] = unary[v % 5](v);
  y[n + i] = twofold(unary[i % 5], i & 1 ? flip : square, v);
  Pair p = {v, (unsigned long long)v << 20, (unsigned char)i};
  for (int k = 0; k < 4; k++) p = changes[v >> k & 1](p, k + 1);
  y[2 * n + i] = p.a ^ (unsigned)p.b ^ (unsigned)(p.b >> 32) ^ (unsigned)p.c << 8;
}

__device__ unsigned apply(int which, unsigned v) {
  return which == 0   ? v + v
         : which == 1 ? v * v
         : which == 2 ? 0xffffffffu - v
         : which == 3 ? v << 16 | v >> 16
                      : v;
}

extern "C" __global__ void pointers_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, f = i % 5, g = i & 1 ? 2 : 1;
  unsigned v = x[i], a = v, c = i & 255;
  unsigned long long b = (unsigned long long)v << 20;
  EXPECT_EQ(i, y[i], apply(v % 5, v));
  EXPECT_EQ(i, y[n + i], apply(f, apply(g, v)) + apply(g, apply(f, v)));
  for (int k = 1; k <= 4; k++) {
    unsigned old = a;
    if (v >> (k - 1) & 1)
      a = (unsigned)b, b = b << 32 | old, c ^= k;
    else
      a += k, b += k, c = (c + k) & 255;
  }
  EXPECT_EQ(i, y[2 * n + i], a ^ (unsigned)b ^ (unsigned)(b >> 32) ^ c << 8);
}
