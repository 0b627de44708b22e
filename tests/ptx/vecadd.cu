//! alloc x 10007*4 random-f32
//! alloc y 10007*4 random-f32
//! alloc z 10007*4 poison
//! alloc errors 32 zero
//! launch vecadd grid=40 block=256 args=x,y,z,i32:10007
//! launch vecadd_check grid=40 block=256 args=x,y,z,i32:10007,errors
//! checks 10007
// The sum of two vectors whose length is prime.
#include "check.cuh"

extern "C" __global__ void vecadd(const float *x, const float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

extern "C" __global__ void vecadd_check(const float *x, const float *y, const float *z, int n,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) EXPECT_EQ(i, z[i], (float)((double)x[i] + (double)y[i]));
}
