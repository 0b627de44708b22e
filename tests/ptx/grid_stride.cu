//! alloc x 7919*4 random-u32
//! alloc y 7919*4 poison
//! alloc visits 7919*4 zero
//! alloc errors 32 zero
//! launch stride_loop grid=5 block=128 args=x,y,visits,i64:7919
//! launch stride_check grid=31 block=256 args=x,y,visits,i32:7919,errors
//! checks 15838
// Grid-stride loops with 64-bit indices; lanes leave the loop at different trips.
#include "check.cuh"

extern "C" __global__ void stride_loop(const unsigned *x, unsigned *y, unsigned *visits, long long n) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    y[i] = x[i] * 3u + (unsigned)i;
    atomicAdd(&visits[i], 1u);
  }
}

extern "C" __global__ void stride_check(const unsigned *x, const unsigned *y, const unsigned *visits, int n,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  EXPECT_EQ(i, y[i], x[i] + x[i] + x[i] + (unsigned)i);
  EXPECT_EQ(i, visits[i], 1u);
}
