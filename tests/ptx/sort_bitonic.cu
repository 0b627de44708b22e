//! alloc x 5*1024*4 random-u32:5000
//! alloc y 5*1024*8 poison
//! alloc errors 32 zero
//! launch sort_bitonic grid=5 block=512 args=x,y
//! launch sort_check grid=5 block=128 args=x,y,errors
//! checks 15355
// Bitonic sort of 1024 keys with their places in shared memory, one block each; equal keys keep their order.
#include "check.cuh"

extern "C" __global__ void sort_bitonic(const unsigned *x, unsigned long long *y) {
  __shared__ unsigned long long s[1024];
  for (int i = threadIdx.x; i < 1024; i += 512)
    s[i] = (unsigned long long)x[blockIdx.x * 1024 + i] << 32 | (unsigned)i;
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      int low = 2 * threadIdx.x - (threadIdx.x & (step - 1)), high = low + step;
      bool up = (low & size) == 0;
      unsigned long long a = s[low], b = s[high];
      if ((a > b) == up) s[low] = b, s[high] = a;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += 512) y[blockIdx.x * 1024 + i] = s[i];
}

// In order, and each place once: sorted pairs are distinct, so 1024 of them that all occur are a permutation.
extern "C" __global__ void sort_check(const unsigned *x, const unsigned long long *y, unsigned *errors) {
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    unsigned long long pair = y[blockIdx.x * 1024 + i];
    unsigned place = (unsigned)pair;
    EXPECT(i, place < 1024);
    EXPECT_EQ(i, (unsigned)(pair >> 32), x[blockIdx.x * 1024 + place % 1024]);
    if (i > 0) EXPECT(i, y[blockIdx.x * 1024 + i - 1] < pair);
  }
}
