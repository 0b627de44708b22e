// A copy whose warps start `shift` elements after a line of memory.
#include "rungs.h"

// y[shift + i] = x[shift + i]; the first warp clears what is left free at both ends of y.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) misaligned_copy(const __grid_constant__ SweepCopy p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  if (i < SWEEP_SHIFT) p.y[i < p.shift ? i : p.n + i] = 0;
  if (i < p.n) p.y[i + p.shift] = p.x[i + p.shift];
}
