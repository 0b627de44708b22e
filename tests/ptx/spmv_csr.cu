//! alloc lengths 501*4 random-u32:40
//! alloc x 701*4 integers-f32:9
//! alloc start 502*4 poison
//! alloc columns 20040*4 poison
//! alloc values 20040*4 poison
//! alloc scalar 501*4 poison
//! alloc vector 501*4 poison
//! alloc errors 32 zero
//! launch csr_build grid=1 block=1 args=lengths,start,i32:501
//! launch csr_fill grid=4 block=128 args=start,columns,values,i32:501,i32:701
//! launch spmv_scalar grid=4 block=128 args=start,columns,values,x,scalar,i32:501
//! launch spmv_vector grid=32 block=128 args=start,columns,values,x,vector,i32:501
//! launch spmv_check grid=4 block=128 args=start,columns,values,x,scalar,vector,i32:501,errors
//! checks 1002
// Sparse matrix times vector, rows of 0 to 39 entries: a thread a row, and eight lanes a row.
#include "check.cuh"

extern "C" __global__ void csr_build(const unsigned *lengths, int *start, int rows) {
  int sum = 0;
  for (int r = 0; r < rows; r++) start[r] = sum, sum += (int)lengths[r];
  start[rows] = sum;
}

extern "C" __global__ void csr_fill(const int *start, int *columns, float *values, int rows, int width) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  for (int k = start[r]; k < start[r + 1]; k++) {
    columns[k] = (int)(check_hash(k) % width);
    values[k] = (float)(int)(check_hash(~k) % 19) - 9;
  }
}

extern "C" __global__ void spmv_scalar(const int *start, const int *columns, const float *values,
                                       const float *x, float *y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = start[r]; k < start[r + 1]; k++) sum += values[k] * x[columns[k]];
  y[r] = sum;
}

extern "C" __global__ void spmv_vector(const int *start, const int *columns, const float *values,
                                       const float *x, float *y, int rows) {
  int r = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  float sum = 0;
  if (r < rows)
    for (int k = start[r] + lane; k < start[r + 1]; k += 8) sum += values[k] * x[columns[k]];
  for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step, 8);
  if (r < rows && lane == 0) y[r] = sum;
}

extern "C" __global__ void spmv_check(const int *start, const int *columns, const float *values,
                                      const float *x, const float *scalar, const float *vector, int rows,
                                      unsigned *errors) {
  int r = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (r >= rows) return;
  for (int k = start[r]; k < start[r + 1]; k++) sum += (int)values[k] * (int)x[columns[k]];
  EXPECT_EQ(r, scalar[r], (float)sum);
  EXPECT_EQ(r, vector[r], (float)sum);
}
