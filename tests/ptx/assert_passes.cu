//! alloc x 500*4 random-u32:1000
//! alloc y 500*4 poison
//! alloc errors 32 zero
//! launch asserted grid=4 block=125 args=x,y
//! launch asserted_check grid=4 block=125 args=x,y,errors
//! checks 500
// Assertions that hold, in loops and in divergent code: the call that reports a failure must not be made.
#undef NDEBUG
#include "check.cuh"
#include <assert.h>

__device__ __noinline__ unsigned root(unsigned v) {
  unsigned r = 0;
  while ((r + 1) * (r + 1) <= v) {
    r++;
    assert(r * r <= v && "never beyond");
  }
  return r;
}

extern "C" __global__ void asserted(const unsigned *x, unsigned *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(x != nullptr && x[i] < 1000);
  if (x[i] & 1) {
    assert(x[i] % 2 == 1);
    y[i] = root(x[i]);
  } else {
    y[i] = x[i] / 2;
    assert(2 * y[i] == x[i]);
  }
}

extern "C" __global__ void asserted_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], r = 0;
  for (unsigned k = 0; k < 32; k++)
    if (k * k <= v) r = k;
  EXPECT_EQ(i, y[i], v & 1 ? r : v >> 1);
}
