//! alloc a 67*53*4 integers-f32:8
//! alloc b 67*53*4 poison
//! alloc c 67*53*4 poison
//! alloc errors 32 zero
//! launch stencil_2d grid=4,9 block=16,8 args=a,b,i32:67,i32:53
//! launch stencil_2d grid=4,9 block=16,8 args=b,c,i32:67,i32:53
//! launch stencil_2d_check grid=14 block=256 args=a,c,i32:67,i32:53,errors
//! checks 3551
// Two steps of a five-point stencil on a ragged grid with shared tile and halo; the border keeps its values.
#include "check.cuh"

extern "C" __global__ void stencil_2d(const float *x, float *y, int rows, int columns) {
  __shared__ float s[10][18];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  int thread = threadIdx.y * 16 + threadIdx.x;
  for (int i = thread; i < 180; i += 128) {
    int rr = (int)(blockIdx.y * 8) + i / 18 - 1, cc = (int)(blockIdx.x * 16) + i % 18 - 1;
    s[i / 18][i % 18] = rr >= 0 && rr < rows && cc >= 0 && cc < columns ? x[rr * columns + cc] : 0;
  }
  __syncthreads();
  if (r >= rows || c >= columns) return;
  bool border = r == 0 || c == 0 || r == rows - 1 || c == columns - 1;
  float(*at)[18] = &s[threadIdx.y + 1];
  int x1 = threadIdx.x + 1;
  y[r * columns + c] =
      border ? at[0][x1] : at[-1][x1] + at[1][x1] + at[0][x1 - 1] + at[0][x1 + 1] - 4.0f * at[0][x1];
}

__device__ int step(const float *x, int r, int c, int rows, int columns) {
  const float *at = x + r * columns + c;
  if (r == 0 || c == 0 || r == rows - 1 || c == columns - 1) return (int)at[0];
  return (int)at[-columns] + (int)at[columns] + (int)at[-1] + (int)at[1] - 4 * (int)at[0];
}

extern "C" __global__ void stencil_2d_check(const float *a, const float *result, int rows, int columns,
                                            unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / columns, c = i % columns;
  if (i >= rows * columns) return;
  int want = step(a, r, c, rows, columns);
  if (r > 0 && c > 0 && r < rows - 1 && c < columns - 1)
    want = step(a, r - 1, c, rows, columns) + step(a, r + 1, c, rows, columns) +
           step(a, r, c - 1, rows, columns) + step(a, r, c + 1, rows, columns) - 4 * want;
  EXPECT_EQ(i, result[i], (float)want);
}
