//! alloc x 1777*4 random-u32:100
//! alloc y 1777*4 poison
//! alloc sums 14*4 zero
//! alloc errors 32 zero
//! launch early grid=14 block=128 args=x,y,sums,i32:1777
//! launch early_check grid=14 block=128 args=x,y,sums,i32:1777,errors
//! checks 1791
// Threads that return at several places, from inside loops and from a called function's verdict; the others
// go on, and barriers do not wait for threads that have ended.
#include "check.cuh"

__device__ __noinline__ bool unwanted(unsigned v) {
  if (v < 5) return true;
  for (unsigned k = 2; k < 8; k++)
    if (v % k == 1) return v % 11 == 0;
  return v > 90;
}

extern "C" __global__ void early(const unsigned *x, unsigned *y, unsigned *sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  if (v == 99) return;
  y[i] = v;
  if (unwanted(v)) return;
  for (unsigned k = 0; k < v; k++) {
    if (k * k > v) break;
    if (k == 7) {
      y[i] = 7000 + v;
      return;
    }
  }
  y[i] = v + 1;
  __syncthreads();
  atomicAdd(&sums[blockIdx.x], v);
}

__device__ int kind(unsigned v) { // 0: untouched, 1: unwanted, 2: returned from the loop, 3: went through
  if (v == 99) return 0;
  bool bad = v < 5 || v > 90;
  if (v >= 5)
    for (unsigned k = 7; k >= 2; k--)
      if (v % k == 1) bad = v % 11 == 0;
  return bad ? 1 : v >= 49 ? 2 : 3;
}

extern "C" __global__ void early_check(const unsigned *x, const unsigned *y, const unsigned *sums, int n,
                                       unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned v = x[i], wants[4] = {0xa5a5a5a5u, v, 7000 + v, v + 1};
    EXPECT_EQ(i, y[i], wants[kind(v)]);
  }
  if (threadIdx.x) return;
  unsigned sum = 0;
  for (int k = 0; k < 128 && i + k < n; k++)
    if (kind(x[i + k]) == 3) sum += x[i + k];
  EXPECT_EQ(i, sums[blockIdx.x], sum);
}
