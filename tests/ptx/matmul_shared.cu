//! alloc a 53*71*4 integers-f32:9
//! alloc b 71*45*4 integers-f32:9
//! alloc c 53*45*4 poison
//! alloc errors 32 zero
//! launch matmul_shared grid=3,4 block=16,16 args=a,b,c,i32:53,i32:45,i32:71
//! launch matmul_check grid=10 block=256 args=a,b,c,i32:53,i32:45,i32:71,errors
//! checks 2385
// A matrix product through 16x16 tiles in shared memory, all edges ragged.
#include "check.cuh"

// a is (M, K), b is (K, N), c is (M, N)
extern "C" __global__ void matmul_shared(const float *a, const float *b, float *c, int M, int N, int K) {
  __shared__ float as[16][16], bs[16][17];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    as[y][x] = row < M && k + x < K ? a[row * K + k + x] : 0;
    bs[y][x] = k + y < K && column < N ? b[(k + y) * N + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  if (row < M && column < N) c[row * N + column] = sum;
}

extern "C" __global__ void matmul_check(const float *a, const float *b, const float *c, int M, int N, int K,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (i >= M * N) return;
  for (int k = 0; k < K; k++) sum += (int)a[i / N * K + k] * (int)b[k * N + i % N];
  EXPECT_EQ(i, c[i], (float)sum);
}
