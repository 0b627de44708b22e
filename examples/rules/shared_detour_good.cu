// The state between the steps is kept in a register.
#include "check.h"

enum { N = 1 << 20, STEPS = 32, BLOCK = 256 };

__global__ void relax(float *y, const float *x, float a) {
  size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  float state = x[i];
  for (int k = 0; k < STEPS; k++) {
    state = fmaf(a, state, 1.0f);
  }
  y[i] = state;
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x),
        *y = (float *)device_room(N * sizeof *y);
  relax<<<N / BLOCK, BLOCK>>>(y, x, 0.5f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) {
    float v = h[i];
    for (int k = 0; k < STEPS; k++) v = 0.5f * v + 1.0f; // halving is exact: one rounding, as in fmaf
    wrong += r[i] != v;
  }
  return verdict(wrong, N);
}
