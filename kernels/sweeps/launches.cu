// A step so small that its launch is what it costs.
#include "common.cuh"
#include "rungs.h"

// y = x + 1. Where it may start early it waits for its predecessor before it touches memory.
KERNEL __launch_bounds__(SWEEP_BLOCK) launches_step(const __grid_constant__ SweepCopy p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  let_successor_start();
  wait_for_predecessor();
  if (i < p.n) p.y[i] = p.x[i] + 1;
}
