// Blocks that all do the same work, one to an SM: what a launch takes goes up in steps.
#include "rungs.h"

// A block of 1024 threads reads 256 KiB, four loads of 16 bytes in flight a thread.
extern "C" __global__ void __launch_bounds__(SWEEP_MOST) tail_read(const __grid_constant__ SweepTail p) {
  const float4 *x = (const float4 *)p.x + (uint64_t)blockIdx.x * (SWEEP_MOST * SWEEP_CHUNK) + threadIdx.x;
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < SWEEP_CHUNK; k++) {
    float4 v = x[k * SWEEP_MOST];
    sum += v.x + v.y + (v.z + v.w);
  }
  p.y[(uint64_t)blockIdx.x * SWEEP_MOST + threadIdx.x] = sum;
}
