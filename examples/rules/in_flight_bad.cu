// Each thread waits for one load before it issues the next: 16 warps an SM have 8 KiB in flight.
#include "check.h"

enum { N = 1 << 22, BLOCKS = 264, BLOCK = 256, AT_ONCE = 1 };

__global__ void total(unsigned long long *sum, const uint4 *x) {
  unsigned mine = 0;
#pragma unroll AT_ONCE
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < N; i += BLOCKS * BLOCK) {
    uint4 v = x[i];
    mine += v.x + v.y + v.z + v.w;
  }
  unsigned warp = __reduce_add_sync(~0u, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)warp);
}

int main(void) {
  size_t n = (size_t)N * 4;
  unsigned *h = (unsigned *)host_room(n * sizeof *h), state = 1;
  for (size_t i = 0; i < n; i++) h[i] = random_below_2_24(&state) % 1000;
  uint4 *x = (uint4 *)to_device(h, n * sizeof *h);
  unsigned long long *sum = (unsigned long long *)device_room(sizeof *sum), expected = 0;
  CUDA(cudaMemset(sum, 0, sizeof *sum));
  total<<<BLOCKS, BLOCK>>>(sum, x);
  for (size_t i = 0; i < n; i++) expected += h[i];
  return verdict(*(unsigned long long *)to_host(sum, sizeof *sum) != expected, 1);
}
