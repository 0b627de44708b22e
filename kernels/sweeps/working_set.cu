// A set of bytes read again and again within one launch.
#include "rungs.h"

static __device__ __forceinline__ float sum_of(float4 v) { return v.x + v.y + (v.z + v.w); }

// A block reads a piece of 32 KiB; when blocks have gone through the set the next ones start over. Past L1 (__ldcg), 16
// bytes a load and eight loads in flight: what is measured is L2, or DRAM behind it.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) working_set(const __grid_constant__ SweepSet p) {
  const float4 *x = (const float4 *)p.x + (uint64_t)(blockIdx.x % p.pieces) * (SWEEP_BLOCK * SWEEP_PIECE) + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < SWEEP_PIECE; k++) sum += sum_of(__ldcg(x + k * SWEEP_BLOCK));
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) p.y[blockIdx.x * (SWEEP_BLOCK / 32) + threadIdx.x / 32] = sum;
}
