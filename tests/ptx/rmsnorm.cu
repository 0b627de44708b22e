//! alloc x 9*1000*2 random-f16
//! alloc weight 1000*2 random-bf16
//! alloc y 9*1000*2 poison
//! alloc errors 32 zero
//! launch rmsnorm grid=9 block=128 args=x,weight,y,i32:1000
//! launch rmsnorm_check grid=1 block=9 args=x,weight,y,i32:1000,errors
//! checks 9000
// RMS normalisation of fp16 rows with bf16 weights: 16-byte loads of eight halves, half2 to float2 and back.
#include "check.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void rmsnorm(const half *x, const __nv_bfloat16 *weight, half *y, int n) {
  __shared__ float warps[4];
  const uint4 *in = (const uint4 *)(x + blockIdx.x * n), *w = (const uint4 *)weight;
  uint4 *out = (uint4 *)(y + blockIdx.x * n), v = make_uint4(0, 0, 0, 0);
  float sum = 0;
  bool active = threadIdx.x < n / 8; // one vector a thread
  if (active) v = in[threadIdx.x];
  half2 *h = (half2 *)&v;
  for (int k = 0; k < 4; k++) {
    float2 f = __half22float2(h[k]);
    sum += f.x * f.x + f.y * f.y;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  float scale = rsqrtf((warps[0] + warps[1] + warps[2] + warps[3]) / (float)n + 1e-6f);
  if (!active) return;
  uint4 weights = w[threadIdx.x];
  const __nv_bfloat162 *b = (const __nv_bfloat162 *)&weights;
  for (int k = 0; k < 4; k++) {
    float2 f = __half22float2(h[k]), g = __bfloat1622float2(b[k]);
    h[k] = __floats2half2_rn(f.x * scale * g.x, f.y * scale * g.y);
  }
  out[threadIdx.x] = v;
}

extern "C" __global__ void rmsnorm_check(const half *x, const __nv_bfloat16 *weight, const half *y, int n,
                                         unsigned *errors) {
  x += threadIdx.x * n, y += threadIdx.x * n;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (double)__half2float(x[i]) * __half2float(x[i]);
  for (int i = 0; i < n; i++) { // half an ulp of f16, and a little
    double want = __half2float(x[i]) / sqrt(sum / n + 1e-6) * __bfloat162float(weight[i]);
    EXPECT_NEAR(i, __half2float(y[i]), want, 5e-4, 6e-8);
  }
}
