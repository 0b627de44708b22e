// Tiles of a table that stays in L2 are copied into shared memory by cp.async, 16 bytes a lane, after a header of 16
// bytes: each of the four parts of 128 bytes that a warp copies lies on two lines.
#include <cuda_pipeline.h>

#include "check.h"

enum { HEADER = 4, TILE = 4096, TILES = 256, VISITS = 4, BLOCKS = 528, BLOCK = 256, EACH = TILE / 4 / BLOCK };

__global__ void sum_tiles(float *y, const float *table) {
  __shared__ __align__(128) float tile[TILE];
  float sum = 0;
  for (int v = 0; v < VISITS; v++) {
    const float *from = table + HEADER + (size_t)((blockIdx.x * 37 + v * 101) % TILES) * TILE;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      int at = (k * BLOCK + threadIdx.x) * 4;
      __pipeline_memcpy_async(tile + at, from + at, 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += tile[threadIdx.x] + tile[TILE - 1 - threadIdx.x];
    __syncthreads();
  }
  y[(size_t)blockIdx.x * BLOCK + threadIdx.x] = sum;
}

int main(void) {
  size_t n = (size_t)TILES * TILE + HEADER, m = (size_t)BLOCKS * BLOCK, wrong = 0;
  float *h = random_floats(n), *table = (float *)to_device(h, n * sizeof *h);
  float *y = (float *)device_room(m * sizeof *y);
  sum_tiles<<<BLOCKS, BLOCK>>>(y, table);
  float *r = (float *)to_host(y, m * sizeof *r);
  for (size_t i = 0; i < m; i++) {
    float sum = 0;
    for (size_t v = 0; v < VISITS; v++) {
      const float *from = h + HEADER + (i / BLOCK * 37 + v * 101) % TILES * TILE;
      sum += from[i % BLOCK] + from[TILE - 1 - i % BLOCK];
    }
    wrong += r[i] != sum;
  }
  return verdict(wrong, m);
}
