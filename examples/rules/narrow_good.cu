// Sixteen bytes a thread: a warp loads 512 bytes at a time.
#include "check.h"

enum { N = 1 << 23 };

__global__ void invert(uint4 *y, const uint4 *x) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint4 v = x[i];
  y[i] = make_uint4(~v.x, ~v.y, ~v.z, ~v.w);
}

int main(void) {
  unsigned char *h = (unsigned char *)random_floats(N / 4);
  uint4 *x = (uint4 *)to_device(h, N), *y = (uint4 *)device_room(N);
  invert<<<N / 16 / 256, 256>>>(y, x);
  unsigned char *r = (unsigned char *)to_host(y, N);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != (unsigned char)~h[i];
  return verdict(wrong, N);
}
