// Odd warps do one thing, even warps the other: no warp does both.
#include "check.h"

enum { N = 1 << 19, STEPS = 256 };

#define PART_OF(i) ((i) >> 5 & 1)

__global__ void step(unsigned *y, const unsigned *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  if (PART_OF(i)) {
#pragma unroll 8
    for (int k = 0; k < STEPS; k++) v = v * 1664525u + 1013904223u;
  } else {
#pragma unroll 8
    for (int k = 0; k < STEPS; k++) v = (v ^ v >> 5) * 2654435769u;
  }
  y[i] = v;
}

int main(void) {
  unsigned *h = (unsigned *)random_floats(N);
  unsigned *x = (unsigned *)to_device(h, N * sizeof *x), *y = (unsigned *)device_room(N * sizeof *y);
  step<<<N / 256, 256>>>(y, x);
  unsigned *r = (unsigned *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (int i = 0; i < N; i++) {
    unsigned v = h[i];
    for (int k = 0; k < STEPS; k++) v = PART_OF(i) ? v * 1664525u + 1013904223u : (v ^ v >> 5) * 2654435769u;
    wrong += r[i] != v;
  }
  return verdict(wrong, N);
}
