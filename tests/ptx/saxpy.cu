//! alloc x 5003*4 random-f32
//! alloc y 5003*4 random-f32 seed=11
//! alloc before 5003*4 random-f32 seed=11
//! alloc errors 32 zero
//! launch saxpy grid=3 block=160 args=i32:5003,f32:1.5,x,y
//! launch saxpy_check grid=20 block=256 args=i32:5003,f32:1.5,x,before,y,errors
//! checks 5003
// y = a x + y in place with a grid-stride loop; one rounding, as fma has.
#include "check.cuh"

extern "C" __global__ void saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void saxpy_check(int n, float a, const float *x, const float *before, const float *y,
                                       unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // Both the product and the sum are exact in double.
  if (i < n) EXPECT_EQ(i, y[i], (float)(__dmul_rn(a, x[i]) + (double)before[i]));
}
