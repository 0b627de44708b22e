// Sixteen blocks on 132 SMs: most of the GPU looks on.
#include "check.h"

enum { N = 1 << 21, BLOCKS = 16, BLOCK = 1024 };

__global__ void scale(float4 *y, const float4 *x, float a) {
#pragma unroll 4
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < N / 4; i += gridDim.x * BLOCK) {
    float4 v = x[i];
    y[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
  }
}

int main(void) {
  float *h = random_floats(N);
  float4 *x = (float4 *)to_device(h, N * sizeof *h), *y = (float4 *)device_room(N * sizeof *h);
  scale<<<BLOCKS, BLOCK>>>(y, x, 3.0f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != 3.0f * h[i];
  return verdict(wrong, N);
}
