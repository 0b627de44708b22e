//! alloc x 13*301*4 random-f32
//! alloc y 13*301*4 poison
//! alloc online 13*301*4 poison
//! alloc errors 32 zero
//! launch softmax_three grid=13 block=128 args=x,y,i32:301
//! launch softmax_online grid=13 block=96 args=x,online,i32:301
//! launch softmax_check grid=1 block=13 args=x,y,online,i32:301,errors
//! checks 7826
// Softmax of rows: in three passes over shared memory, and online with a running maximum per warp.
#include "check.cuh"

__device__ float block_reduce(float v, bool most, float *s) {
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, v, step);
    v = most ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = s[0];
  for (int w = 1; w < blockDim.x / 32; w++) v = most ? fmaxf(v, s[w]) : v + s[w];
  __syncthreads();
  return v;
}

extern "C" __global__ void softmax_three(const float *x, float *y, int n) {
  __shared__ float row[301], s[4];
  x += blockIdx.x * n, y += blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i] = 8.0f * x[i]);
  most = block_reduce(most, true, s);
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] = expf(row[i] - most);
  sum = block_reduce(sum, false, s);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = row[i] / sum;
}

extern "C" __global__ void softmax_online(const float *x, float *y, int n) {
  __shared__ float s[4];
  x += blockIdx.x * n, y += blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float v = 8.0f * x[i], higher = fmaxf(most, v);
    sum = sum * __expf(most - higher) + __expf(v - higher);
    most = higher;
  }
  float all = block_reduce(most, true, s);
  sum = block_reduce(sum * __expf(most - all), false, s);
  float scale = __frcp_rn(sum);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __expf(8.0f * x[i] - all) * scale;
}

extern "C" __global__ void softmax_check(const float *x, const float *y, const float *online, int n,
                                         unsigned *errors) {
  x += threadIdx.x * n, y += threadIdx.x * n, online += threadIdx.x * n;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += exp(8.0 * x[i]);
  for (int i = 0; i < n; i++) {
    EXPECT_NEAR(threadIdx.x * n + i, y[i], exp(8.0 * x[i]) / sum, 1e-5, 0);
    EXPECT_NEAR(threadIdx.x * n + i, online[i], exp(8.0 * x[i]) / sum, 4e-5, 0);
  }
}
