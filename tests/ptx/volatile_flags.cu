//! alloc out 4*96*4 poison
//! alloc errors 32 zero
//! launch relay grid=4 block=96 args=out
//! launch relay_check grid=4 block=96 args=out,errors
//! checks 384
// Volatile shared memory: warps of a block wait for each other by flags instead of barriers, round after
// round.
#include "check.cuh"

extern "C" __global__ void relay(unsigned *out) {
  __shared__ volatile unsigned turn, value[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) turn = 0;
  if (warp == 0) value[lane] = lane;
  __syncthreads();
  for (unsigned round = 0; round < 5; round++) {
    while (turn != round * 3 + warp) {
    }
    __syncwarp();
    value[lane] = value[lane] * 3 + warp + blockIdx.x;
    __threadfence_block();
    __syncwarp();
    if (lane == 0) turn = turn + 1;
  }
  __syncthreads();
  out[blockIdx.x * 96 + threadIdx.x] = value[lane] + warp;
}

extern "C" __global__ void relay_check(const unsigned *out, unsigned *errors) {
  unsigned v = threadIdx.x % 32;
  for (int round = 0; round < 5; round++)
    for (int warp = 0; warp < 3; warp++) v = v * 3 + warp + blockIdx.x;
  EXPECT_EQ(threadIdx.x, out[blockIdx.x * 96 + threadIdx.x], v + threadIdx.x / 32);
}
