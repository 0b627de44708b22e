//! stack 8192
//! alloc x 200*4 random-u32
//! alloc y 200*4 poison
//! alloc errors 32 zero
//! launch use_alloca grid=4 block=50 args=x,y
//! launch alloca_check grid=4 block=50 args=x,y,errors
//! checks 200
// Stack memory of a size known only at run time: alloca, twice in one function, different per lane.
#include "check.cuh"
#include <alloca.h>

extern "C" __global__ void use_alloca(const unsigned *x, unsigned *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int count = 1 + x[i] % 30, other = 1 + x[i] / 30 % 20;
  unsigned *a = (unsigned *)alloca(count * sizeof(unsigned));
  unsigned char *b = (unsigned char *)alloca(other);
  for (int k = 0; k < count; k++) a[k] = x[i] * k;
  for (int k = 0; k < other; k++) b[k] = (unsigned char)(x[i] >> k);
  unsigned sum = 0;
  for (int k = 0; k < count; k++) sum += a[(k * 7) % count] + b[k % other];
  y[i] = sum;
}

extern "C" __global__ void alloca_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count = 1 + x[i] % 30, other = 1 + x[i] / 30 % 20, sum = 0;
  for (unsigned k = 0; k < count; k++) sum += x[i] * (k * 7 % count) + (x[i] >> k % other & 255);
  EXPECT_EQ(i, y[i], sum);
}
