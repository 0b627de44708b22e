// Shared memory read at a stride.
#include "rungs.h"

// Lane l reads word l * stride, and so on from there; sums of the same words whatever the stride's conflicts.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) shared_stride(const __grid_constant__ SweepShared p) {
  __shared__ float tile[SWEEP_TILE + SWEEP_RUN]; // the first words once more at its end
  const float *x = p.x + (uint64_t)blockIdx.x * SWEEP_TILE;
  for (uint32_t i = threadIdx.x; i < SWEEP_TILE + SWEEP_RUN; i += SWEEP_BLOCK) tile[i] = x[i % SWEEP_TILE];
  __syncthreads();
  uint32_t at = threadIdx.x % 32 * p.stride;
  float sum = 0;
#pragma unroll 1
  for (uint32_t r = 0; r < p.rounds; r++, at += SWEEP_RUN) {
    const float *run = tile + at % SWEEP_TILE;
#pragma unroll
    for (int j = 0; j < SWEEP_RUN; j++) sum += run[j];
  }
  p.y[(uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x] = sum;
}
