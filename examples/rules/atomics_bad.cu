// Every thread adds to the same counter in memory: the additions queue up one behind the other.
#include "check.h"

enum { N = 1 << 20, BLOCK = 256 };

__global__ void count_below(int *count, const float *x, float limit) {
  size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (x[i] < limit) atomicAdd(&count[i % 2], 1);
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x);
  int *count = (int *)device_room(2 * sizeof *count), expected = 0;
  CUDA(cudaMemset(count, 0, 2 * sizeof *count));
  count_below<<<N / BLOCK, BLOCK>>>(count, x, 0.75f);
  int *r = (int *)to_host(count, 2 * sizeof *r);
  for (size_t i = 0; i < N; i++) expected += h[i] < 0.75f;
  return verdict(r[0] + r[1] != expected, 1);
}
