// One byte a thread: a warp loads 32 bytes at a time, and it takes 2048 threads to have 2 KiB in flight.
#include "check.h"

enum { N = 1 << 23 };

__global__ void invert(unsigned char *y, const unsigned char *x) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = (unsigned char)~x[i];
}

int main(void) {
  unsigned char *h = (unsigned char *)random_floats(N / 4);
  unsigned char *x = (unsigned char *)to_device(h, N), *y = (unsigned char *)device_room(N);
  invert<<<N / 256, 256>>>(y, x);
  unsigned char *r = (unsigned char *)to_host(y, N);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != (unsigned char)~h[i];
  return verdict(wrong, N);
}
