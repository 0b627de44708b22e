// A table that is read again and again, while other data stream through the same L2.
#include "rungs.h"

static __device__ __forceinline__ float sum_of(float4 v) { return v.x + v.y + (v.z + v.w); }

// A thread sums 8 vectors of the stream, which has whole blocks of them, and one of the table, anywhere in it.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) persistence(const __grid_constant__ SweepPersist p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  uint64_t first = (uint64_t)blockIdx.x * (SWEEP_BLOCK * SWEEP_STREAM) + threadIdx.x;
  const float4 *stream = (const float4 *)p.stream, *table = (const float4 *)p.table;
  float sum = sum_of(__ldcg(table + ((uint64_t)sweep_scatter((uint32_t)i) * p.vectors >> 32)));
#pragma unroll
  for (int j = 0; j < SWEEP_STREAM; j++) sum += sum_of(__ldcg(stream + first + j * SWEEP_BLOCK));
  p.y[i] = sum;
}
