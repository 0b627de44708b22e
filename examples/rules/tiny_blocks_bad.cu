// Blocks of 8 threads: three quarters of each warp's lanes never exist, and an SM holds 32 of its 64 warps.
#include "check.h"

enum { N = 1 << 21, BLOCK = 8 };

__global__ void scale(float *y, const float *x, float a) {
  size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  y[i] = a * x[i];
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x),
        *y = (float *)device_room(N * sizeof *y);
  scale<<<N / BLOCK, BLOCK>>>(y, x, 3.0f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != 3.0f * h[i];
  return verdict(wrong, N);
}
