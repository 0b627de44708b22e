//! alloc x 11*523*4 random-f32
//! alloc weight 523*4 random-f32
//! alloc bias 523*4 random-f32
//! alloc y 11*523*4 poison
//! alloc errors 32 zero
//! launch layernorm grid=11 block=160 args=x,weight,bias,y,i32:523,f32:1e-5
//! launch layernorm_check grid=1 block=11 args=x,weight,bias,y,i32:523,f64:1e-5,errors
//! checks 5753
// Layer normalisation of rows with Welford's running mean and variance, merged between lanes and warps.
#include "check.cuh"

struct Welford {
  float mean, m2, count;
};

__device__ Welford merge(Welford a, Welford b) {
  float count = a.count + b.count;
  if (count == 0) return a;
  float delta = b.mean - a.mean, share = b.count / count;
  return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share, count};
}

extern "C" __global__ void layernorm(const float *x, const float *weight, const float *bias, float *y, int n,
                                     float epsilon) {
  __shared__ Welford warps[5];
  x += blockIdx.x * n, y += blockIdx.x * n;
  Welford w = {0, 0, 0};
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float delta = x[i] - w.mean;
    w.count += 1;
    w.mean += delta / w.count;
    w.m2 += delta * (x[i] - w.mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    Welford other = {__shfl_xor_sync(0xffffffffu, w.mean, step), __shfl_xor_sync(0xffffffffu, w.m2, step),
                     __shfl_xor_sync(0xffffffffu, w.count, step)};
    w = merge(w, other);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = w;
  __syncthreads();
  w = warps[0];
  for (int i = 1; i < 5; i++) w = merge(w, warps[i]);
  float scale = rsqrtf(w.m2 / w.count + epsilon);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[i] - w.mean) * scale * weight[i] + bias[i];
}

extern "C" __global__ void layernorm_check(const float *x, const float *weight, const float *bias,
                                           const float *y, int n, double epsilon, unsigned *errors) {
  x += threadIdx.x * n, y += threadIdx.x * n;
  double mean = 0, variance = 0;
  for (int i = 0; i < n; i++) mean += x[i] / (double)n;
  for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / n;
  for (int i = 0; i < n; i++)
    EXPECT_NEAR(i, y[i], (x[i] - mean) / sqrt(variance + epsilon) * weight[i] + bias[i], 0, 1e-5);
}
