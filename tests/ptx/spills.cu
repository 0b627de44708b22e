//! alloc x 64*4 random-u32
//! alloc y 2*64*4 poison
//! alloc errors 32 zero
//! launch many_registers grid=2 block=32 args=x,y
//! launch few_registers grid=2 block=32 args=x,y+256
//! launch registers_check grid=2 block=32 args=x,y,errors
//! checks 128
// A kernel that keeps 96 values alive at once: with all registers it needs, and held to 32 so that some are
// spilled.
#include "check.cuh"

__device__ __forceinline__ unsigned churn(unsigned v) {
  unsigned r[96];
#pragma unroll
  for (int k = 0; k < 96; k++) r[k] = v = v * 1664525u + 1013904223u + k;
#pragma unroll
  for (int round = 0; round < 3; round++)
#pragma unroll
    for (int k = 0; k < 96; k++) r[k] += r[(k * 37 + 11) % 96] ^ (r[(k + 48) % 96] >> (round + 1));
  unsigned sum = 0;
#pragma unroll
  for (int k = 0; k < 96; k++) sum = sum * 31 + r[k];
  return sum;
}

extern "C" __global__ void many_registers(const unsigned *x, unsigned *y) {
  y[global_thread()] = churn(x[global_thread()]);
}

extern "C" __global__ void __maxnreg__(32) few_registers(const unsigned *x, unsigned *y) {
  y[global_thread()] = churn(x[global_thread()]);
}

extern "C" __global__ void registers_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  __shared__ unsigned r[96][32];
  unsigned t = threadIdx.x, i = global_thread(), v = x[i], sum = 0;
  for (int k = 0; k < 96; k++) r[k][t] = v = v * 1664525u + 1013904223u + k;
  for (int round = 0; round < 3; round++)
    for (int k = 0; k < 96; k++) r[k][t] += r[(k * 37 + 11) % 96][t] ^ (r[(k + 48) % 96][t] >> (round + 1));
  for (int k = 0; k < 96; k++) sum = sum * 31 + r[k][t];
  EXPECT_EQ(i, y[i], sum);
  EXPECT_EQ(i, y[64 + i], sum);
}
