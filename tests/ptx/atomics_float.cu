//! alloc a 16*4 zero
//! alloc b 4*8 zero
//! alloc errors 32 zero
//! launch atomics_float grid=6 block=50 args=a,b
//! launch atomics_float_check grid=1 block=1 args=a,b,errors
//! checks 13
// Atomic addition of f32, f64, f16, f16x2, bf16 and bf16x2, and float minimum and maximum by integer atomics.
// Small whole numbers, so that no order loses a bit; vectors of floats from sm_90 on.
#include "check.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void atomics_float(float *a, double *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&a[0], (float)(i % 7));
  atomicAdd(&b[0], (double)i * 0.5);
  atomicAdd((half *)&a[1], __float2half((float)(i % 3)));
  atomicAdd((half2 *)&a[2], __floats2half2_rn((float)(i % 2), (float)(i % 5) - 2));
  if (i < 100) atomicAdd((__nv_bfloat16 *)&a[3], __float2bfloat16(1.0f));
  if (i < 100) atomicAdd((__nv_bfloat162 *)&a[4], __floats2bfloat162_rn(-1.0f, 2.0f));
  float v = (float)((i * 37) % 300) - 150;
  if (v >= 0)
    atomicMax((int *)&a[5], __float_as_int(v));
  else
    atomicMax((unsigned *)&a[6], __float_as_uint(v)); // the most negative
  double old = atomicAdd(&b[1], 1.0);
  if (old >= 0 && old < 300) atomicAdd(&a[7], (float)old);
#if __CUDA_ARCH__ >= 900
  atomicAdd((float2 *)&a[8], make_float2(1.0f, (float)(i % 4)));
  atomicAdd((float4 *)&a[12], make_float4(1.0f, 2.0f, (float)(i % 3), -1.0f));
#endif
}

extern "C" __global__ void atomics_float_check(const float *a, const double *b, unsigned *errors) {
  int sums[8] = {};
  for (int i = 0; i < 300; i++) {
    sums[0] += i % 7, sums[1] += i, sums[2] += i % 3, sums[3] += i % 2, sums[4] += i % 5 - 2,
        sums[5] += i % 4;
  }
  EXPECT_EQ(0, a[0], (float)sums[0]);
  EXPECT_EQ(1, b[0], sums[1] * 0.5);
  EXPECT_EQ(2, __half2float(*(const half *)&a[1]), (float)sums[2]);
  EXPECT_EQ(3, __low2float(*(const half2 *)&a[2]), (float)sums[3]);
  EXPECT_EQ(4, __high2float(*(const half2 *)&a[2]), (float)sums[4]);
  EXPECT_EQ(5, __bfloat162float(*(const __nv_bfloat16 *)&a[3]), 100.0f);
  EXPECT_EQ(6, __low2float(*(const __nv_bfloat162 *)&a[4]), -100.0f);
  EXPECT_EQ(7, __high2float(*(const __nv_bfloat162 *)&a[4]), 200.0f);
  EXPECT_EQ(8, a[5], 149.0f);
  EXPECT_EQ(9, a[6], -150.0f);
  EXPECT_EQ(10, b[1], 300.0);
  EXPECT_EQ(11, a[7], (float)sums[1]);
  EXPECT_EQ(12, ((const unsigned *)a)[1] >> 16, 0u); // the half beside the one added to
#if __CUDA_ARCH__ >= 900
  const float want[8] = {300, (float)sums[5], 0, 0, 300, 600, (float)sums[2], -300};
  for (int k = 0; k < 8; k++) EXPECT_EQ(20 + k, a[8 + k], want[k]);
#endif
}
