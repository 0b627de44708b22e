// A thread that holds 64 values at once, compiled for more and more blocks on an SM: fewer registers each.
#include "rungs.h"

// The variance of 64 samples in two passes: the second needs them all again, so they stay in registers.
static __device__ __forceinline__ void variance(const SweepCopy &p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  if (i >= p.n) return;
  float v[SWEEP_SAMPLES], sum = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < SWEEP_SAMPLES; k++) v[k] = p.x[k * p.n + i];
#pragma unroll
  for (int k = 0; k < SWEEP_SAMPLES; k++) sum += v[k];
  float mean = sum * (1.0f / SWEEP_SAMPLES);
#pragma unroll
  for (int k = 0; k < SWEEP_SAMPLES; k++) squares += (v[k] - mean) * (v[k] - mean);
  p.y[i] = squares * (1.0f / SWEEP_SAMPLES);
}

// At least so many blocks an SM: the compiler may use 65536 / (256 * blocks) registers, and spills the rest.
#define BOUND(blocks)                                                                                        \
  extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK, blocks)                                          \
      registers_##blocks(const __grid_constant__ SweepCopy p) {                                              \
    variance(p);                                                                                             \
  }
BOUND(1)
BOUND(2)
BOUND(3)
BOUND(4)
BOUND(5)
BOUND(6)
BOUND(8)
