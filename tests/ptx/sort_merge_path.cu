//! alloc x 1009*4 random-u32:100000
//! alloc a 1009*4 poison
//! alloc b 1009*4 poison
//! alloc errors 32 zero
//! launch merge_start grid=4 block=256 args=x,a,i32:1009
//! launch merge_runs grid=2 block=32 args=a,b,i32:1009,i32:8
//! launch merge_runs grid=2 block=32 args=b,a,i32:1009,i32:16
//! launch merge_runs grid=2 block=32 args=a,b,i32:1009,i32:32
//! launch merge_runs grid=2 block=32 args=b,a,i32:1009,i32:64
//! launch merge_runs grid=2 block=32 args=a,b,i32:1009,i32:128
//! launch merge_runs grid=2 block=32 args=b,a,i32:1009,i32:256
//! launch merge_runs grid=2 block=32 args=a,b,i32:1009,i32:512
//! launch merge_check grid=4 block=256 args=x,b,i32:1009,errors
//! checks 1009
// Merge sort: runs of 8 by insertion, then merges in which every thread finds its own stretch by merge path.
#include "check.cuh"

extern "C" __global__ void merge_start(const unsigned *x, unsigned *a, int n) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  for (int i = start; i < n && i < start + 8; i++) {
    unsigned v = x[i];
    int k = i;
    for (; k > start && a[k - 1] > v; k--) a[k] = a[k - 1];
    a[k] = v;
  }
}

// How many of the first `diagonal` merged elements come from `a`.
__device__ int merge_path(const unsigned *a, int a_count, const unsigned *b, int b_count, int diagonal) {
  int low = max(0, diagonal - b_count), high = min(diagonal, a_count);
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] <= b[diagonal - 1 - middle])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

extern "C" __global__ void merge_runs(const unsigned *in, unsigned *out, int n, int width) {
  const int each = 11; // elements a thread
  for (int at = (blockIdx.x * blockDim.x + threadIdx.x) * each; at < n; at += gridDim.x * blockDim.x * each)
    for (int i = at; i < n && i < at + each;) {
      int pair = i / (2 * width) * 2 * width, end = min(n, pair + 2 * width);
      const unsigned *a = in + pair, *b = a + width;
      int a_count = min(width, end - pair), b_count = end - pair - a_count;
      int x = merge_path(a, a_count, b, b_count, i - pair), y = i - pair - x;
      for (; i < end && i < at + each; i++) {
        bool left = y >= b_count || (x < a_count && a[x] <= b[y]);
        out[i] = left ? a[x++] : b[y++];
      }
    }
}

extern "C" __global__ void merge_check(const unsigned *x, const unsigned *b, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, less = 0, same = 0;
  if (i >= n) return;
  for (int k = 0; k < n; k++) less += x[k] < b[i], same += x[k] == b[i];
  EXPECT(i, less <= i && i < less + same);
}
