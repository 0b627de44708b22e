//! stack 16384
//! alloc out 6*64*4 poison
//! alloc errors 32 zero
//! launch recursion grid=2 block=32 args=out
//! launch recursion_check grid=2 block=32 args=out,errors
//! checks 384
// Recursive functions whose depth differs from lane to lane: Fibonacci, Ackermann, mutual recursion, and one
// that keeps an array on every level of its stack.
#include "check.cuh"

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool is_odd(unsigned n);
__device__ __noinline__ bool is_even(unsigned n) {
  return n == 0 || is_odd(n - 1);
}
__device__ __noinline__ bool is_odd(unsigned n) {
  return n != 0 && is_even(n - 1);
}

// The number of ways to put n queens on an n by n board.
__device__ __noinline__ int queens(int n, int row, signed char *columns) {
  if (row == n) return 1;
  int ways = 0;
  for (int c = 0; c < n; c++) {
    bool free = true;
    for (int r = 0; r < row && free; r++) free = columns[r] != c && abs(columns[r] - c) != row - r;
    if (!free) continue;
    columns[row] = (signed char)c;
    ways += queens(n, row + 1, columns);
  }
  return ways;
}

__device__ __noinline__ unsigned digits(unsigned v, int depth) {
  unsigned mine[4];
  for (int k = 0; k < 4; k++) mine[k] = v * (k + depth);
  unsigned below = depth == 0 ? 0 : digits(v >> 1, depth - 1);
  return below * 3 + mine[(v + depth) & 3];
}

extern "C" __global__ void recursion(int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  signed char columns[8];
  out[i] = fibonacci(i % 12);
  out[64 + i] = ackermann(i % 3, i % 7);
  out[128 + i] = is_even(i % 40);
  out[192 + i] = is_odd(i % 40);
  out[256 + i] = i % 16 == 0 ? queens(3 + i / 16, 0, columns) : 0;
  out[320 + i] = (int)digits(check_hash(i), i % 20);
}

extern "C" __global__ void recursion_check(const int *out, unsigned *errors) {
  int i = blockIdx.x * 32 + threadIdx.x, a = 0, b = 1;
  for (int k = 0; k < i % 12; k++) {
    int sum = a + b;
    a = b, b = sum;
  }
  EXPECT_EQ(i, out[i], a);
  const int n = i % 7, ack[3] = {n + 1, n + 2, 2 * n + 3};
  EXPECT_EQ(i, out[64 + i], ack[i % 3]);
  EXPECT_EQ(i, out[128 + i], i % 40 % 2 == 0);
  EXPECT_EQ(i, out[192 + i], i % 40 % 2);
  const int ways[4] = {0, 2, 10, 4}; // on boards of 3 to 6
  EXPECT_EQ(i, out[256 + i], i % 16 == 0 ? ways[i / 16] : 0);
  unsigned sum = 0;
  for (int depth = 0; depth <= i % 20; depth++) {
    unsigned v = check_hash(i) >> (i % 20 - depth);
    sum = sum * 3 + v * (((v + depth) & 3) + depth);
  }
  EXPECT_EQ(i, (unsigned)out[320 + i], sum);
}
