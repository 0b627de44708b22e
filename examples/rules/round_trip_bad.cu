// The product is written to memory, only to be read back by the next kernel.
#include "check.h"

enum { N = 1 << 22 };

__global__ void multiply(float4 *t, const float4 *x, float a) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];
  t[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
}

__global__ void clamp(float4 *y, const float4 *t) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = t[i];
  y[i] = make_float4(fminf(v.x, 1.0f), fminf(v.y, 1.0f), fminf(v.z, 1.0f), fminf(v.w, 1.0f));
}

int main(void) {
  float *h = random_floats(N);
  float4 *x = (float4 *)to_device(h, N * sizeof *h), *y = (float4 *)device_room(N * sizeof *h);
  float4 *t = (float4 *)device_room(N * sizeof *h);
  multiply<<<N / 4 / 256, 256>>>(t, x, 3.0f);
  clamp<<<N / 4 / 256, 256>>>(y, t);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != (3.0f * h[i] < 1.0f ? 3.0f * h[i] : 1.0f);
  return verdict(wrong, N);
}
