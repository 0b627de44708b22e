//! alloc x 5003*4 integers-f32:20
//! alloc y 5003*4 poison
//! alloc errors 32 zero
//! launch stencil_1d grid=40 block=128 args=x,y,i32:5003
//! launch stencil_1d_check grid=20 block=256 args=x,y,i32:5003,errors
//! checks 5003
// A one-dimensional stencil of radius 5 through shared memory with halo; beyond the ends stand zeros.
#include "check.cuh"

#define RADIUS 5

extern "C" __global__ void stencil_1d(const float *x, float *y, int n) {
  __shared__ float s[128 + 2 * RADIUS];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t + RADIUS] = i < n ? x[i] : 0;
  if (t < RADIUS) {
    s[t] = i >= RADIUS ? x[i - RADIUS] : 0;
    s[t + 128 + RADIUS] = i + 128 < n ? x[i + 128] : 0;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = -RADIUS; k <= RADIUS; k++) sum += (float)(k * k - 3) * s[t + RADIUS + k];
  if (i < n) y[i] = sum;
}

extern "C" __global__ void stencil_1d_check(const float *x, const float *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (i >= n) return;
  for (int k = -RADIUS; k <= RADIUS; k++)
    if (i + k >= 0 && i + k < n) sum += (k * k - 3) * (int)x[i + k];
  EXPECT_EQ(i, y[i], (float)sum);
}
