//! alloc a 6*90 random-u32
//! alloc b 6*75 random-u32
//! alloc distance 6*4 poison
//! alloc errors 32 zero
//! launch edit_distance grid=6 block=96 args=a,b,distance,i32:90,i32:75
//! launch edit_check grid=1 block=6 args=a,b,distance,i32:90,i32:75,errors
//! checks 6
// The edit distance of two strings by diagonals: three of them rotate through shared memory.
#include "check.cuh"

__device__ int letter(unsigned char v) {
  return v & 3;
}

extern "C" __global__ void edit_distance(const unsigned char *a, const unsigned char *b, int *distance, int n,
                                         int m) {
  __shared__ int diagonals[3][96];
  int i = threadIdx.x; // the row: 0 .. n
  a += blockIdx.x * n, b += blockIdx.x * m;
  for (int d = 0; d <= n + m; d++) {
    int j = d - i, *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3], *before = diagonals[(d + 1) % 3];
    if (i <= n && j >= 0 && j <= m) {
      int v;
      if (i == 0 || j == 0)
        v = i + j;
      else {
        v = before[i - 1] + (letter(a[i - 1]) != letter(b[j - 1]));
        v = min(v, min(last[i - 1], last[i]) + 1);
      }
      now[i] = v;
      if (i == n && j == m) distance[blockIdx.x] = v;
    }
    __syncthreads();
  }
}

extern "C" __global__ void edit_check(const unsigned char *a, const unsigned char *b, const int *distance,
                                      int n, int m, unsigned *errors) {
  int row[76];
  a += threadIdx.x * n, b += threadIdx.x * m;
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int above = row[j], v = corner + (letter(a[i - 1]) != letter(b[j - 1]));
      v = above + 1 < v ? above + 1 : v;
      v = row[j - 1] + 1 < v ? row[j - 1] + 1 : v;
      corner = above, row[j] = v;
    }
  }
  EXPECT_EQ(threadIdx.x, distance[threadIdx.x], row[m]);
}
