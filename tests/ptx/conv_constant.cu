//! alloc x 41*59*4 integers-f32:9
//! alloc y 41*59*4 poison
//! alloc z 41*59*4 poison
//! alloc errors 32 zero
//! launch conv_rows grid=1,41 block=64 args=x,y,i32:41,i32:59
//! launch conv_columns grid=1,41 block=64 args=y,z,i32:41,i32:59
//! launch conv_check grid=10 block=256 args=x,z,i32:41,i32:59,errors
//! checks 2419
// A separable convolution whose weights stand in constant memory; coordinates are clamped at the edges.
#include "check.cuh"

__constant__ float weights[7] = {1, -2, 3, 5, 3, -2, 1};

extern "C" __global__ void conv_rows(const float *x, float *y, int rows, int columns) {
  int c = threadIdx.x, r = blockIdx.y;
  if (c >= columns) return;
  float sum = 0;
  for (int k = -3; k <= 3; k++) sum += weights[k + 3] * x[r * columns + min(max(c + k, 0), columns - 1)];
  y[r * columns + c] = sum;
}

extern "C" __global__ void conv_columns(const float *x, float *y, int rows, int columns) {
  int c = threadIdx.x, r = blockIdx.y;
  if (c >= columns) return;
  float sum = 0;
  for (int k = -3; k <= 3; k++) sum += weights[k + 3] * x[min(max(r + k, 0), rows - 1) * columns + c];
  y[r * columns + c] = sum;
}

extern "C" __global__ void conv_check(const float *x, const float *z, int rows, int columns,
                                      unsigned *errors) {
  const int w[7] = {1, -2, 3, 5, 3, -2, 1};
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / columns, c = i % columns, sum = 0;
  if (i >= rows * columns) return;
  for (int dr = -3; dr <= 3; dr++)
    for (int dc = -3; dc <= 3; dc++) {
      int rr = min(max(r + dr, 0), rows - 1), cc = min(max(c + dc, 0), columns - 1);
      sum += w[dr + 3] * w[dc + 3] * (int)x[rr * columns + cc];
    }
  EXPECT_EQ(i, z[i], (float)sum);
}
