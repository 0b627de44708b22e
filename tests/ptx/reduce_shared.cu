//! alloc x 5987*4 integers-f32:100
//! alloc part 24*4 poison
//! alloc errors 32 zero
//! launch reduce_shared grid=24 block=256 args=x,part,i32:5987
//! launch reduce_shared_check grid=1 block=32 args=x,part,i32:5987,errors
//! checks 24
// Sums by a tree in shared memory, one block per 256 elements. Whole numbers: the order does not matter.
#include "check.cuh"

extern "C" __global__ void reduce_shared(const float *x, float *part, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half >>= 1) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) part[blockIdx.x] = s[0];
}

extern "C" __global__ void reduce_shared_check(const float *x, const float *part, int n, unsigned *errors) {
  int b = threadIdx.x;
  if (b >= 24) return;
  int sum = 0;
  for (int i = b * 256; i < n && i < b * 256 + 256; i++) sum += (int)x[i];
  EXPECT_EQ(b, part[b], (float)sum);
}
