// The same tiles, one a block.
#include "check.h"

enum { TILES = 132, BLOCKS = 132, EACH = TILES / BLOCKS, BLOCK = 1024, PER_THREAD = 8 };

__global__ void sum_tiles(float *y, const float *x) {
  __shared__ float part[BLOCK];
#pragma unroll
  for (int t = 0; t < EACH; t++) {
    size_t tile = (size_t)blockIdx.x * EACH + t;
    float s = 0;
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) s += x[(tile * PER_THREAD + k) * BLOCK + threadIdx.x];
    part[threadIdx.x] = s;
    __syncthreads();
    y[tile * BLOCK + threadIdx.x] = part[BLOCK - 1 - threadIdx.x];
    __syncthreads();
  }
}

int main(void) {
  size_t n = (size_t)TILES * PER_THREAD * BLOCK, wrong = 0;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room((size_t)TILES * BLOCK * sizeof *y);
  sum_tiles<<<BLOCKS, BLOCK>>>(y, x);
  float *r = (float *)to_host(y, (size_t)TILES * BLOCK * sizeof *r);
  for (size_t tile = 0; tile < TILES; tile++)
    for (size_t i = 0; i < BLOCK; i++) {
      float s = 0;
      for (size_t k = 0; k < PER_THREAD; k++) s += h[(tile * PER_THREAD + k) * BLOCK + BLOCK - 1 - i];
      wrong += r[tile * BLOCK + i] != s;
    }
  return verdict(wrong, (size_t)TILES * BLOCK);
}
