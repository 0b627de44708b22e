//! alloc x 1999*4 random-u32
//! alloc y 1999*4 poison
//! alloc errors 32 zero
//! launch scan_hillis grid=4 block=512 smem=2*512*4 args=x,y,i32:1999
//! launch scan_hillis_check grid=1 block=4 args=x,y,i32:1999,errors
//! checks 1999
// Inclusive scan of each block's part by doubling steps, between two halves of dynamic shared memory.
#include "check.cuh"

extern "C" __global__ void scan_hillis(const unsigned *x, unsigned *y, int n) {
  extern __shared__ unsigned halves[];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, in = 0;
  halves[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int out = 1 - in;
    unsigned v = halves[in * blockDim.x + t];
    if (t >= step) v += halves[in * blockDim.x + t - step];
    halves[out * blockDim.x + t] = v;
    in = out;
    __syncthreads();
  }
  if (i < n) y[i] = halves[in * blockDim.x + t];
}

extern "C" __global__ void scan_hillis_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  unsigned sum = 0;
  for (int i = threadIdx.x * 512; i < n && i < threadIdx.x * 512 + 512; i++) EXPECT_EQ(i, y[i], sum += x[i]);
}
