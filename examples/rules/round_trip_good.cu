// Both steps in one kernel: the product never leaves the registers.
#include "check.h"

enum { N = 1 << 22 };

__global__ void multiply_clamp(float4 *y, const float4 *x, float a) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];
  y[i] = make_float4(fminf(a * v.x, 1.0f), fminf(a * v.y, 1.0f), fminf(a * v.z, 1.0f), fminf(a * v.w, 1.0f));
}

int main(void) {
  float *h = random_floats(N);
  float4 *x = (float4 *)to_device(h, N * sizeof *h), *y = (float4 *)device_room(N * sizeof *h);
  multiply_clamp<<<N / 4 / 256, 256>>>(y, x, 3.0f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != (3.0f * h[i] < 1.0f ? 3.0f * h[i] : 1.0f);
  return verdict(wrong, N);
}
