//! alloc x 37*211*4 random-u32
//! alloc sums 37*4 poison
//! alloc least 37*4 poison
//! alloc most 37*8 poison
//! alloc errors 32 zero
//! launch reduce_rows grid=10 block=128 args=x,sums,least,most,i32:37,i32:211
//! launch reduce_rows_check grid=1 block=64 args=x,sums,least,most,i32:37,i32:211,errors
//! checks 111
// One warp per row: sum by shfl_down, minimum by shfl_xor, 64-bit maximum with its place by shfl_xor.
#include "check.cuh"

extern "C" __global__ void reduce_rows(const unsigned *x, unsigned *sums, int *least,
                                       unsigned long long *most, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  unsigned sum = 0;
  int low = 0x7fffffff;
  unsigned long long high = 0;
  for (int c = lane; c < columns; c += 32) {
    unsigned v = x[row * columns + c];
    sum += v;
    low = min(low, (int)v);
    high = max(high, (unsigned long long)v << 32 | (unsigned)c);
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, step);
    low = min(low, __shfl_xor_sync(0xffffffffu, low, step));
    high = max(high, __shfl_xor_sync(0xffffffffu, high, step));
  }
  if (lane == 0) sums[row] = sum;
  if (lane == 7) least[row] = low;
  if (lane == 31) most[row] = high;
}

extern "C" __global__ void reduce_rows_check(const unsigned *x, const unsigned *sums, const int *least,
                                             const unsigned long long *most, int rows, int columns,
                                             unsigned *errors) {
  int row = threadIdx.x, low = 0x7fffffff, place = 0;
  if (row >= rows) return;
  unsigned sum = 0;
  for (int c = 0; c < columns; c++) {
    unsigned v = x[row * columns + c];
    sum += v;
    if ((int)v < low) low = (int)v;
    if (v >= x[row * columns + place]) place = c;
  }
  EXPECT_EQ(row, sums[row], sum);
  EXPECT_EQ(row, least[row], low);
  EXPECT_EQ(row, most[row], (unsigned long long)x[row * columns + place] << 32 | (unsigned)place);
}
