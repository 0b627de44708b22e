// The same sums by shuffles: each warp adds up its lanes, then one warp adds up the warps.
#include "check.h"

enum { BLOCKS = 16384, BLOCK = 256 };

static __device__ unsigned sum_of_warp(unsigned v) {
  for (int apart = 16; apart; apart /= 2) v += __shfl_xor_sync(0xffffffff, v, apart);
  return v;
}

__global__ void sums(unsigned *y, const unsigned *x) {
  __shared__ unsigned of_warp[BLOCK / 32];
  unsigned v = sum_of_warp(x[(size_t)blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  v = sum_of_warp(threadIdx.x < BLOCK / 32 ? of_warp[threadIdx.x] : 0);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

int main(void) {
  size_t n = (size_t)BLOCKS * BLOCK, wrong = 0;
  unsigned *h = (unsigned *)host_room(n * sizeof *h);
  for (size_t i = 0; i < n; i++) h[i] = (unsigned)(i * 2654435761u);
  unsigned *x = (unsigned *)to_device(h, n * sizeof *x), *y = (unsigned *)device_room(BLOCKS * sizeof *y);
  sums<<<BLOCKS, BLOCK>>>(y, x);
  unsigned *r = (unsigned *)to_host(y, BLOCKS * sizeof *r);
  for (size_t b = 0; b < BLOCKS; b++) {
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) sum += h[b * BLOCK + i];
    wrong += r[b] != sum;
  }
  return verdict(wrong, BLOCKS);
}
