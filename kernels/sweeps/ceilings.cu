// Reads, writes and mixtures of both: the rates that the other figures are compared with.
#include "rungs.h"

static __device__ __forceinline__ float sum_of(float4 v) { return v.x + v.y + (v.z + v.w); }
static __device__ __forceinline__ uint64_t index_of(void) {
  return (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
}

// Reads a and b and writes next to nothing: a sum a warp.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) ceilings_read(const __grid_constant__ SweepCeiling p) {
  uint64_t at = (uint64_t)blockIdx.x * (SWEEP_BLOCK * SWEEP_READS / 2) + threadIdx.x, whole = p.n / 4;
  const float4 *a = (const float4 *)p.a, *b = (const float4 *)p.b;
  float sum = 0;
  if (at + SWEEP_BLOCK < whole) // four loads in flight
    sum = sum_of(a[at]) + sum_of(b[at]) + (sum_of(a[at + SWEEP_BLOCK]) + sum_of(b[at + SWEEP_BLOCK]));
  else if (at < whole)
    sum = sum_of(a[at]) + sum_of(b[at]);
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) p.s[index_of() / 32] = sum;
}

// y = a + b: two reads, one write.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) ceilings_add(const __grid_constant__ SweepCeiling p) {
  uint64_t i = index_of();
  if (i >= p.n / 4) return;
  float4 a = ((const float4 *)p.a)[i], b = ((const float4 *)p.b)[i];
  ((float4 *)p.y)[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// y = a: as much written as read.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) ceilings_copy(const __grid_constant__ SweepCeiling p) {
  uint64_t i = index_of();
  if (i < p.n / 4) ((float4 *)p.y)[i] = ((const float4 *)p.a)[i];
}

// y = z = a: one read, two writes.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) ceilings_twice(const __grid_constant__ SweepCeiling p) {
  uint64_t i = index_of();
  if (i >= p.n / 4) return;
  float4 a = ((const float4 *)p.a)[i];
  ((float4 *)p.y)[i] = a;
  ((float4 *)p.z)[i] = a;
}

// y and z count threads: nothing is read.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) ceilings_write(const __grid_constant__ SweepCeiling p) {
  uint64_t i = index_of();
  if (i >= p.n / 4) return;
  float4 v = make_float4((float)(i & 1023), 1, 2, 3);
  ((float4 *)p.y)[i] = v;
  ((float4 *)p.z)[i] = v;
}
