// Global memory read at a stride: the lanes of a warp further and further apart, and anywhere.
#include "rungs.h"

// Every stride-th element of x. Whole sectors are moved, so the bytes between those elements are moved too.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) stride_read(const __grid_constant__ SweepStride p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  if (i < p.n) p.y[i] = 2 * p.x[i * p.stride];
}

// No stride at all: every lane anywhere in x.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) stride_random(const __grid_constant__ SweepStride p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  if (i < p.n) p.y[i] = 2 * p.x[(uint64_t)sweep_scatter((uint32_t)i) * p.count >> 32];
}
