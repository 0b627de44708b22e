//! alloc a 128*40*4 random-f32
//! alloc b 40*64*4 random-f32
//! alloc c 128*64*4 poison
//! alloc errors 32 zero
//! launch matmul_registers grid=1,2 block=128 args=a,b,c,i32:64,i32:40
//! launch matmul_registers_check grid=32 block=256 args=a,b,c,i32:64,i32:40,errors
//! checks 8192
// A matrix product with 8x4 results a thread in registers, tiles of 64x64x8, float4 loads from global memory.
#include "check.cuh"

// a is (M, K), b is (K, N), c is (M, N); M, N multiples of 64, K of 8
extern "C" __global__ void __launch_bounds__(128)
    matmul_registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int N,
                     int K) {
  __shared__ float as[8][68];
  __shared__ __align__(16) float bs[8][64];
  int t = threadIdx.x, top = blockIdx.y * 64, left = blockIdx.x * 64, ty = t / 16 * 8, tx = t % 16 * 4;
  float sums[8][4] = {};
  for (int k = 0; k < K; k += 8) {
    float4 av = *(const float4 *)&a[(top + t / 2) * K + k + t % 2 * 4];
    float4 bv = *(const float4 *)&b[(k + t / 16) * N + left + t % 16 * 4];
    __syncthreads();
    as[t % 2 * 4 + 0][t / 2] = av.x, as[t % 2 * 4 + 1][t / 2] = av.y;
    as[t % 2 * 4 + 2][t / 2] = av.z, as[t % 2 * 4 + 3][t / 2] = av.w;
    *(float4 *)&bs[t / 16][t % 16 * 4] = bv;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float4 right = *(const float4 *)&bs[i][tx];
#pragma unroll
      for (int r = 0; r < 8; r++) {
        float v = as[i][ty + r];
        sums[r][0] += v * right.x, sums[r][1] += v * right.y;
        sums[r][2] += v * right.z, sums[r][3] += v * right.w;
      }
    }
  }
  for (int r = 0; r < 8; r++)
    *(float4 *)&c[(top + ty + r) * N + left + tx] =
        make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
}

extern "C" __global__ void matmul_registers_check(const float *a, const float *b, const float *c, int N,
                                                  int K, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0; // the same order and the same roundings: exact
  for (int k = 0; k < K; k++) sum = fmaf(a[i / N * K + k], b[k * N + i % N], sum);
  EXPECT_EQ(i, c[i], sum);
}
