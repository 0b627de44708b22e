//! alloc y 7*181*4 random-u32:300 seed=5
//! alloc before 7*181*4 random-u32:300 seed=5
//! alloc errors 32 zero
//! launch sort_odd_even grid=7 block=96 args=y,i32:181
//! launch sort_odd_even_check grid=7 block=181 args=before,y,i32:181,errors
//! checks 1267
// Odd-even transposition sort in place in global memory, 181 keys a block; stops when a round changes
// nothing.
#include "check.cuh"

extern "C" __global__ void sort_odd_even(int *y, int n) {
  y += blockIdx.x * n;
  int quiet = 0;
  for (int round = 0; quiet < 2; round++) {
    int i = 2 * threadIdx.x + round % 2;
    bool swap = i + 1 < n && y[i] > y[i + 1];
    if (swap) {
      int v = y[i];
      y[i] = y[i + 1];
      y[i + 1] = v;
    }
    quiet = __syncthreads_or(swap) ? 0 : quiet + 1;
  }
}

// The key at place i: as many are less as stand before the first of its like.
extern "C" __global__ void sort_odd_even_check(const int *before, const int *y, int n, unsigned *errors) {
  before += blockIdx.x * n, y += blockIdx.x * n;
  int i = threadIdx.x, less = 0, same = 0;
  for (int k = 0; k < n; k++) less += before[k] < y[i], same += before[k] == y[i];
  EXPECT(i, less <= i && i < less + same);
}
