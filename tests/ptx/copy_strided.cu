//! alloc x 8192*4 random-u32
//! alloc a 4096*4 poison
//! alloc b 4096*4 poison
//! alloc c 4096*4 poison
//! alloc d 4100*4 poison
//! alloc errors 32 zero
//! launch copy_stride grid=16 block=128 args=x,a,i32:2048,i32:2
//! launch copy_stride grid=8 block=32 args=x,b,i32:256,i32:32
//! launch copy_reverse grid=9 block=128 args=x,c,i32:1031
//! launch copy_stride grid=9 block=128 args=x+4,d+12,i32:1031,i32:1
//! launch copy_check grid=16 block=128 args=x,a,b,c,d,errors
//! checks 8192
// Copies with a stride, backwards, and coalesced but off by one and by three words.
#include "check.cuh"

extern "C" __global__ void copy_stride(const unsigned *x, unsigned *y, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[(size_t)i * stride];
}

extern "C" __global__ void copy_reverse(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[n - 1 - i] = x[i];
}

extern "C" __global__ void copy_check(const unsigned *x, const unsigned *a, const unsigned *b,
                                      const unsigned *c, const unsigned *d, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  EXPECT_EQ(i, a[i], x[2 * i]);
  if (i < 256) EXPECT_EQ(i, b[i], x[32 * i]);
  if (i < 1031) EXPECT_EQ(i, c[i], x[1030 - i]);
  if (i < 1031) EXPECT_EQ(i, d[i + 3], x[i + 1]);
  // What lies around the copies is as it was.
  if (i >= 256) EXPECT_EQ(i, b[i], 0xa5a5a5a5u);
  if (i >= 1031) EXPECT_EQ(i, c[i], 0xa5a5a5a5u);
  if (i < 3 || i >= 1034) EXPECT_EQ(i, d[i], 0xa5a5a5a5u);
}
