//! alloc x 12*150*4 random-u32:64
//! alloc out 12*3*4 poison
//! alloc errors 32 zero
//! launch barrier_votes grid=12 block=150 args=x,out
//! launch barrier_votes_check grid=1 block=12 args=x,out,errors
//! checks 36
// Barriers that count and combine predicates: __syncthreads_count, _and, _or; a block of 150 threads.
#include "check.cuh"

extern "C" __global__ void barrier_votes(const unsigned *x, int *out) {
  unsigned v = x[blockIdx.x * blockDim.x + threadIdx.x];
  int count = __syncthreads_count(v < 32);
  int all = __syncthreads_and(v != blockIdx.x);
  int any = __syncthreads_or(v == 63 - blockIdx.x);
  if (threadIdx.x == 149) out[3 * blockIdx.x] = count;
  if (threadIdx.x == 0) out[3 * blockIdx.x + 1] = all != 0;
  if (threadIdx.x == 64) out[3 * blockIdx.x + 2] = any != 0;
}

extern "C" __global__ void barrier_votes_check(const unsigned *x, const int *out, unsigned *errors) {
  unsigned b = threadIdx.x;
  int count = 0, all = 1, any = 0;
  for (int i = 0; i < 150; i++) {
    unsigned v = x[b * 150 + i];
    count += v < 32;
    if (v == b) all = 0;
    if (v == 63 - b) any = 1;
  }
  EXPECT_EQ(b, out[3 * b], count);
  EXPECT_EQ(b, out[3 * b + 1], all);
  EXPECT_EQ(b, out[3 * b + 2], any);
}
