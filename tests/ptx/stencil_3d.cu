//! alloc x 19*23*29*4 integers-f32:30
//! alloc y 19*23*29*4 poison
//! alloc errors 32 zero
//! launch stencil_3d grid=4,3 block=8,8 args=x,y,i32:19,i32:23,i32:29
//! launch stencil_3d_check grid=50 block=256 args=x,y,i32:19,i32:23,i32:29,errors
//! checks 12673
// A seven-point stencil in three dimensions: planes march through registers, the middle one through shared
// memory.
#include "check.cuh"

// x and y are (depth, rows, columns); outside stand zeros
extern "C" __global__ void stencil_3d(const float *x, float *y, int depth, int rows, int columns) {
  __shared__ float s[10][10];
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1, c = blockIdx.x * 8 + threadIdx.x,
      r = blockIdx.y * 8 + threadIdx.y;
  bool inside = c < columns && r < rows;
  int plane = rows * columns, at = r * columns + c;
  float below = 0, here = inside ? x[at] : 0;
  for (int z = 0; z < depth; z++) {
    float above = inside && z + 1 < depth ? x[(z + 1) * plane + at] : 0;
    s[ty][tx] = here;
    if (tx == 1) s[ty][0] = r < rows && c > 0 ? x[z * plane + at - 1] : 0;
    if (tx == 8) s[ty][9] = r < rows && c + 1 < columns ? x[z * plane + at + 1] : 0;
    if (ty == 1) s[0][tx] = c < columns && r > 0 && r - 1 < rows ? x[z * plane + at - columns] : 0;
    if (ty == 8) s[9][tx] = c < columns && r + 1 < rows ? x[z * plane + at + columns] : 0;
    __syncthreads();
    if (inside)
      y[z * plane + at] =
          6.0f * here - below - above - s[ty][tx - 1] - s[ty][tx + 1] - s[ty - 1][tx] - s[ty + 1][tx];
    __syncthreads();
    below = here, here = above;
  }
}

__device__ int value(const float *x, int z, int r, int c, int depth, int rows, int columns) {
  bool in = z >= 0 && r >= 0 && c >= 0 && z < depth && r < rows && c < columns;
  return in ? (int)x[(z * rows + r) * columns + c] : 0;
}

extern "C" __global__ void stencil_3d_check(const float *x, const float *y, int depth, int rows, int columns,
                                            unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= depth * rows * columns) return;
  int z = i / (rows * columns), r = i / columns % rows, c = i % columns, sum = 6 * (int)x[i];
  for (int k = -1; k <= 1; k += 2)
    sum -= value(x, z + k, r, c, depth, rows, columns) + value(x, z, r + k, c, depth, rows, columns) +
           value(x, z, r, c + k, depth, rows, columns);
  EXPECT_EQ(i, y[i], (float)sum);
}
