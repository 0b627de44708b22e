// The same loads, with more and more of them in flight before the first result is used.
#include "rungs.h"

// A thread sums 64 elements in rounds of `loads`; a round's loads are all in flight before one is used.
static __device__ __forceinline__ void sum_in_rounds(const SweepCopy &p, const int loads) {
  uint64_t first = (uint64_t)blockIdx.x * (SWEEP_WIDE * SWEEP_LOADS), at = first + threadIdx.x;
  float sum = 0;
  if (first + SWEEP_WIDE * SWEEP_LOADS <= p.n) {
#pragma unroll 1
    for (int round = 0; round < SWEEP_LOADS / loads; round++, at += loads * SWEEP_WIDE) {
      float v[SWEEP_LOADS];
#pragma unroll
      for (int k = 0; k < loads; k++) v[k] = p.x[at + k * SWEEP_WIDE];
#pragma unroll
      for (int k = 0; k < loads; k++) sum += v[k];
    }
  } else { // the last block, where x ends inside it
#pragma unroll 1
    for (; at < p.n; at += SWEEP_WIDE) sum += p.x[at];
  }
  p.y[(uint64_t)blockIdx.x * SWEEP_WIDE + threadIdx.x] = sum;
}

#define ROUNDS(loads)                                                                                        \
  extern "C" __global__ void __launch_bounds__(SWEEP_WIDE)                                                   \
      in_flight_##loads(const __grid_constant__ SweepCopy p) {                                               \
    sum_in_rounds(p, loads);                                                                                 \
  }
ROUNDS(1)
ROUNDS(2)
ROUNDS(4)
ROUNDS(8)
ROUNDS(16)
