// Each block allocates only the shared memory that it uses: an SM holds 8 blocks, 64 warps.
#include "check.h"

enum { N = 1 << 22, BLOCK = 256, SHARED = BLOCK * 4 };

__global__ void from_first(float *y, const float *x) {
  extern __shared__ float row[];
  size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  float v = x[i];
  row[threadIdx.x] = v;
  __syncthreads();
  y[i] = v - row[0];
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x),
        *y = (float *)device_room(N * sizeof *y);
  CUDA(cudaFuncSetAttribute(from_first, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  from_first<<<N / BLOCK, BLOCK, SHARED>>>(y, x);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != h[i] - h[i / BLOCK * BLOCK];
  return verdict(wrong, N);
}
