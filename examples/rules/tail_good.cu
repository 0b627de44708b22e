// As many blocks as the H200 holds at once, each with a little more to do: all end together.
#include "check.h"

enum { BLOCKS = 132, BLOCK = 1024, N = 132 * 133 * BLOCK / 4 };

__global__ void scale(float4 *y, const float4 *x, float a) {
  extern __shared__ float4 room[]; // more than half of an SM's, as a kernel with a large tile would take
  room[threadIdx.x] = make_float4(a, a, a, a);
  __syncthreads();
  float by = room[threadIdx.x ^ 1].x;
  int n = N / BLOCKS;
#pragma unroll 4
  for (int k = threadIdx.x; k < n; k += BLOCK) {
    float4 v = x[(size_t)blockIdx.x * n + k];
    y[(size_t)blockIdx.x * n + k] = make_float4(by * v.x, by * v.y, by * v.z, by * v.w);
  }
}

int main(void) {
  size_t n = (size_t)N * 4;
  int shared = 120 * 1024;
  float *h = random_floats(n);
  float4 *x = (float4 *)to_device(h, n * sizeof *h), *y = (float4 *)device_room(n * sizeof *h);
  CUDA(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  scale<<<BLOCKS, BLOCK, shared>>>(y, x, 3.0f);
  float *r = (float *)to_host(y, n * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += r[i] != 3.0f * h[i];
  return verdict(wrong, n);
}
