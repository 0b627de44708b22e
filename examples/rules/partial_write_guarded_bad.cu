// Every fourth thread writes, 128 bytes from the last one that does: a sector for each value.
#include "check.h"

enum { N = 1 << 21 };

__global__ void keep_fourth(float *y, const float *x) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  if (i % 4 == 0) y[i * 8] = v * v;
}

int main(void) {
  size_t room = (size_t)N * 8, wrong = 0;
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x),
        *y = (float *)device_room(room * sizeof *y);
  keep_fourth<<<N / 256, 256>>>(y, x);
  float *r = (float *)to_host(y, room * sizeof *r);
  for (size_t i = 0; i < N; i += 4) wrong += r[i * 8] != h[i] * h[i];
  return verdict(wrong, N / 4);
}
