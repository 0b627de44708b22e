//! alloc seen 3*5*7*9*2*3*4 zero
//! alloc sums 8*4 zero
//! alloc errors 32 zero
//! launch mark grid=3,5,7 block=9,2,3 args=seen,sums
//! launch mark grid=7,3,5 block=3,9,2 args=seen,sums
//! launch mark_check grid=23 block=256 args=seen,sums,i32:5670,errors
//! checks 5676
// Grids and blocks of three dimensions: every thread marks its own place, by its coordinates.
#include "check.cuh"

extern "C" __global__ void mark(unsigned *seen, unsigned *sums) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  atomicAdd(&seen[block * (blockDim.x * blockDim.y * blockDim.z) + thread], 1u + threadIdx.x % 2u * 0x10000u);
  atomicAdd(&sums[0], blockIdx.x), atomicAdd(&sums[1], blockIdx.y), atomicAdd(&sums[2], blockIdx.z);
  atomicAdd(&sums[3], threadIdx.x), atomicAdd(&sums[4], threadIdx.y), atomicAdd(&sums[5], threadIdx.z);
}

extern "C" __global__ void mark_check(const unsigned *seen, const unsigned *sums, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned odd = i % 54 % 9 % 2 + i % 54 % 3 % 2; // threadIdx.x in the first launch and in the second
  EXPECT_EQ(i, seen[i], 2u + odd * 0x10000u);
  if (i) return;
  // Averages of 0 .. m-1 are (m-1)/2, over 5670 threads and both launches.
  EXPECT_EQ(0, sums[0], 2835u * (2 + 6));
  EXPECT_EQ(1, sums[1], 2835u * (4 + 2));
  EXPECT_EQ(2, sums[2], 2835u * (6 + 4));
  EXPECT_EQ(3, sums[3], 2835u * (8 + 2));
  EXPECT_EQ(4, sums[4], 2835u * (1 + 8));
  EXPECT_EQ(5, sums[5], 2835u * (2 + 1));
}
