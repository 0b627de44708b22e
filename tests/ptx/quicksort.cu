//! stack 16384
//! alloc y 60*37*4 random-u32:500 seed=9
//! alloc before 60*37*4 random-u32:500 seed=9
//! alloc errors 32 zero
//! launch quicksort grid=2 block=32 args=y,i32:60,i32:37
//! launch quicksort_check grid=18 block=128 args=before,y,i32:60,i32:37,errors
//! checks 2220
// Every thread sorts a row of its own by recursive quicksort: calls diverge in depth and in time.
#include "check.cuh"

__device__ __noinline__ void sort(int *low, int *high) {
  if (low >= high) return;
  int pivot = *(low + (high - low) / 2), *left = low, *right = high;
  while (left <= right) {
    while (*left < pivot) left++;
    while (*right > pivot) right--;
    if (left > right) break;
    int v = *left;
    *left++ = *right;
    *right-- = v;
  }
  sort(low, right);
  sort(left, high);
}

extern "C" __global__ void quicksort(int *y, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) sort(y + r * n, y + r * n + n - 1);
}

extern "C" __global__ void quicksort_check(const int *before, const int *y, int rows, int n,
                                           unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, less = 0, same = 0;
  if (i >= rows * n) return;
  const int *row = before + i / n * n;
  for (int k = 0; k < n; k++) less += row[k] < y[i], same += row[k] == y[i];
  EXPECT(i, less <= i % n && i % n < less + same);
}
