//! alloc x 4099*4 random-u32
//! alloc y 6*4099*4 poison
//! alloc errors 32 zero
//! launch odd_sum grid=67 block=1 args=x,y,i32:4099
//! launch odd_sum grid=125 block=33 args=x,y+16396,i32:4099
//! launch odd_sum grid=43 block=97 args=x,y+32792,i32:4099
//! launch odd_sum grid=5 block=1024 args=x,y+49188,i32:4099
//! launch odd_sum grid=30 block=7,5,4 args=x,y+65584,i32:4099
//! launch odd_sum grid=133 block=31 args=x,y+81980,i32:4099
//! launch odd_check grid=6 block=128 args=x,y,i32:4099,errors
//! checks 24594
// Block sizes that are no multiple of a warp: each block writes sums
// over the last 17 elements, from its start on, through shared memory.
#include "check.cuh"

extern "C" __global__ void odd_sum(const unsigned *x, unsigned *y, int n) {
  __shared__ unsigned part[1024];
  int threads = blockDim.x * blockDim.y * blockDim.z;
  int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, i = blockIdx.x * threads + t;
  part[t] = i < n ? x[i] : 0;
  __syncthreads();
  unsigned sum = 0;
  for (int k = max(0, t - 16); k <= t; k++) sum += part[k];
  if (i < n) y[i] = sum;
}

extern "C" __global__ void odd_check(const unsigned *x, const unsigned *all, int n, unsigned *errors) {
  const int sizes[6] = {1, 33, 97, 1024, 140, 31};
  int size = sizes[blockIdx.x], done = blockIdx.x == 0 ? 67 : n; // the first launch covers 67 elements
  const unsigned *y = all + blockIdx.x * n;
  for (int start = threadIdx.x * size; start < n; start += blockDim.x * size) {
    unsigned sum = 0;
    for (int i = start; i < n && i < start + size; i++) {
      sum += x[i] - (i >= start + 17 ? x[i - 17] : 0);
      EXPECT_EQ(i, y[i], i < done ? sum : 0xa5a5a5a5u);
    }
  }
}
