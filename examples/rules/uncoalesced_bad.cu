// Each thread takes 8 neighbouring elements: at every step adjacent lanes are 32 bytes apart.
#include "check.h"

enum { N = 1 << 22, EACH = 8 };

__global__ void scale(float *y, const float *x, float a) {
  size_t first = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * EACH;
#pragma unroll 1
  for (int k = 0; k < EACH; k++) y[first + k] = a * x[first + k];
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x),
        *y = (float *)device_room(N * sizeof *y);
  scale<<<N / EACH / 256, 256>>>(y, x, 3.0f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != 3.0f * h[i];
  return verdict(wrong, N);
}
