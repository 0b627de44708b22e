//! alloc x 1000*4 integers-f32:50
//! alloc y 1000*4 poison
//! alloc total 4*4 poison
//! alloc errors 32 zero
//! launch scan_blelloch grid=4 block=128 args=x,y,total,i32:1000
//! launch scan_blelloch_check grid=1 block=4 args=x,y,total,i32:1000,errors
//! checks 1004
// Exclusive scan by up-sweep and down-sweep over 256 elements a block, with padding against bank conflicts.
#include "check.cuh"

#define AT(i) ((i) + ((i) >> 5))

extern "C" __global__ void scan_blelloch(const float *x, float *y, float *total, int n) {
  __shared__ float s[256 + 8];
  int t = threadIdx.x, base = blockIdx.x * 256;
  s[AT(t)] = base + t < n ? x[base + t] : 0;
  s[AT(t + 128)] = base + t + 128 < n ? x[base + t + 128] : 0;
  int step = 1;
  for (int active = 128; active > 0; active /= 2, step *= 2) {
    __syncthreads();
    if (t < active) s[AT(step * (2 * t + 2) - 1)] += s[AT(step * (2 * t + 1) - 1)];
  }
  __syncthreads();
  if (t == 0) total[blockIdx.x] = s[AT(255)], s[AT(255)] = 0;
  for (int active = 1; active <= 128; active *= 2) {
    step /= 2;
    __syncthreads();
    if (t < active) {
      int left = AT(step * (2 * t + 1) - 1), right = AT(step * (2 * t + 2) - 1);
      float v = s[left];
      s[left] = s[right];
      s[right] += v;
    }
  }
  __syncthreads();
  if (base + t < n) y[base + t] = s[AT(t)];
  if (base + t + 128 < n) y[base + t + 128] = s[AT(t + 128)];
}

extern "C" __global__ void scan_blelloch_check(const float *x, const float *y, const float *total, int n,
                                               unsigned *errors) {
  int sum = 0;
  for (int i = threadIdx.x * 256; i < n && i < threadIdx.x * 256 + 256; i++) {
    EXPECT_EQ(i, y[i], (float)sum);
    sum += (int)x[i];
  }
  EXPECT_EQ(threadIdx.x, total[threadIdx.x], (float)sum);
}
