// Sums of 256 elements each: a block adds up in shared memory, half as many threads in each step.
#include "check.h"

enum { BLOCKS = 16384, BLOCK = 256 };

__global__ void sums(unsigned *y, const unsigned *x) {
  __shared__ unsigned part[BLOCK];
  part[threadIdx.x] = x[(size_t)blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    if (threadIdx.x % (2 * step) == 0) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
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
