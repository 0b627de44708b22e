// Both parts are written at once: whole sectors, and nothing has to be read.
#include "check.h"

enum { N = 1 << 22 };

__global__ void set_real(float2 *y, const float *x) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = make_float2(x[i], 0.0f);
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x);
  float2 *y = (float2 *)device_room(N * sizeof *y);
  CUDA(cudaMemset(y, 0, N * sizeof *y));
  set_real<<<N / 256, 256>>>(y, x);
  float2 *r = (float2 *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i].x != h[i] || r[i].y != 0.0f;
  return verdict(wrong, N);
}
