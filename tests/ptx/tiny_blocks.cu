//! alloc y 20011*4 poison
//! alloc total 4 zero
//! alloc errors 32 zero
//! launch tiny grid=20011 block=1 args=y,total
//! launch tiny grid=1,211,3 block=1 args=y,total
//! launch tiny_check grid=79 block=256 args=y,total,i32:20011,errors
//! checks 20012
// Very many blocks of one thread; also a grid that is one block wide.
#include "check.cuh"

extern "C" __global__ void tiny(unsigned *y, unsigned *total) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  y[block] = check_hash(block);
  atomicAdd(total, 1u);
}

extern "C" __global__ void tiny_check(const unsigned *y, const unsigned *total, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) EXPECT_EQ(i, y[i], check_hash(i));
  if (i == 0) EXPECT_EQ(0, *total, 20011u + 633u);
}
