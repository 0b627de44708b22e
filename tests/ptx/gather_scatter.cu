//! alloc order 3001*4 permutation-u32
//! alloc x 3001*4 random-u32
//! alloc gathered 3001*4 poison
//! alloc scattered 3001*4 poison
//! alloc inverse 3001*4 poison
//! alloc errors 32 zero
//! launch gather grid=12 block=256 args=x,order,gathered,i32:3001
//! launch scatter grid=12 block=256 args=gathered,order,scattered,inverse,i32:3001
//! launch gather_check grid=12 block=256 args=x,order,gathered,scattered,inverse,i32:3001,errors
//! checks 12004
// Gather and scatter through a random permutation.
#include "check.cuh"

extern "C" __global__ void gather(const unsigned *x, const unsigned *order, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __ldg(&x[order[i]]);
}

extern "C" __global__ void scatter(const unsigned *x, const unsigned *order, unsigned *y, unsigned *inverse,
                                   int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[order[i]] = x[i];
  inverse[order[i]] = (unsigned)i;
}

extern "C" __global__ void gather_check(const unsigned *x, const unsigned *order, const unsigned *gathered,
                                        const unsigned *scattered, const unsigned *inverse, int n,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  EXPECT(i, order[i] < (unsigned)n);
  EXPECT_EQ(i, gathered[i], x[order[i]]);
  EXPECT_EQ(i, scattered[i], x[i]);
  EXPECT_EQ(i, order[inverse[i]], (unsigned)i);
}
