// The sum of an array, from an atomic for every element to one pass over memory.
#include "reduce/rungs.h"
#include "common.cuh"

enum { THREADS = REDUCE_RUNG_THREADS, WARPS = THREADS / 32 };

INLINE uint64_t index_of_thread(void) { return (uint64_t)blockIdx.x * THREADS + threadIdx.x; }

// Atomics add to what is there: it has to be 0.
KERNEL reduce_rung_zero(const __grid_constant__ ReduceRung p) {
  if (threadIdx.x == 0) *p.y = 0;
}

// Every element by itself into the one result.
KERNEL reduce_rung_atomics(const __grid_constant__ ReduceRung p) {
  uint64_t i = index_of_thread();
  if (i < p.n) atomicAdd(p.y, p.x[i]);
}

// A tree in shared memory, neighbours first: active threads are `2 * step` words apart, so their banks conflict.
KERNEL __launch_bounds__(THREADS) reduce_rung_interleaved(const __grid_constant__ ReduceRung p) {
  __shared__ float sum[THREADS];
  uint64_t i = index_of_thread();
  int t = threadIdx.x;
  sum[t] = i < p.n ? p.x[i] : 0;
  for (int step = 1; step < THREADS; step *= 2) {
    __syncthreads();
    int at = 2 * step * t;
    if (at < THREADS) sum[at] += sum[at + step];
  }
  if (t == 0) p.y[blockIdx.x] = sum[0];
}

// The tree from the largest step down: active threads are contiguous, and so are the words they access.
KERNEL __launch_bounds__(THREADS) reduce_rung_sequential(const __grid_constant__ ReduceRung p) {
  __shared__ float sum[THREADS];
  uint64_t i = index_of_thread();
  int t = threadIdx.x;
  sum[t] = i < p.n ? p.x[i] : 0;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) p.y[blockIdx.x] = sum[0];
}

// A block's sum, in its first warp: shuffles within the warps, and one word of shared memory for each of them.
INLINE float block_sum(float f, float *of_warp) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  f = warp_sum(f);
  if (lane == 0) of_warp[warp] = f;
  __syncthreads();
  return warp == 0 ? warp_sum(lane < WARPS ? of_warp[lane] : 0) : 0;
}

// Registers to registers: one barrier instead of eight.
KERNEL __launch_bounds__(THREADS) reduce_rung_shuffles(const __grid_constant__ ReduceRung p) {
  __shared__ float of_warp[WARPS];
  uint64_t i = index_of_thread();
  float sum = block_sum(i < p.n ? p.x[i] : 0, of_warp);
  if (threadIdx.x == 0) p.y[blockIdx.x] = sum;
}

// Sixteen elements a thread, in four loads of 16 bytes that are all in flight at once.
INLINE float wide_sum(const ReduceRung *p) {
  uint64_t vectors = p->n / 4, first = (uint64_t)blockIdx.x * (REDUCE_RUNG_WIDE / 4) + threadIdx.x;
  float4 v[REDUCE_RUNG_VECTORS];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < REDUCE_RUNG_VECTORS; k++) {
    uint64_t i = first + k * THREADS;
    v[k] = i < vectors ? ((const float4 *)p->x)[i] : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < REDUCE_RUNG_VECTORS; k++) sum += v[k].x + v[k].y + v[k].z + v[k].w;
  if (blockIdx.x == 0 && threadIdx.x < p->n % 4) sum += p->x[vectors * 4 + threadIdx.x]; // what is left
  return sum;
}

// The same fold after fewer, wider loads: there is less to fold.
KERNEL __launch_bounds__(THREADS) reduce_rung_vectorised(const __grid_constant__ ReduceRung p) {
  __shared__ float of_warp[WARPS];
  float sum = block_sum(wide_sum(&p), of_warp);
  if (threadIdx.x == 0) p.y[blockIdx.x] = sum;
}

// No second launch: the block that comes last adds up what the others have left.
KERNEL __launch_bounds__(THREADS) reduce_rung_one_pass(const __grid_constant__ ReduceRung p) {
  __shared__ float of_warp[WARPS];
  __shared__ bool last;
  float sum = block_sum(wide_sum(&p), of_warp);
  if (threadIdx.x == 0) {
    p.part[blockIdx.x] = sum;
    __threadfence(); // the sum is visible before the count
    last = atomicInc(p.arrived, gridDim.x - 1) == gridDim.x - 1; // and back to 0 for the next call
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;
  for (uint32_t i = threadIdx.x; i < gridDim.x; i += THREADS) sum += __ldcg(p.part + i); // from L2, where they are
  sum = block_sum(sum, of_warp);
  if (threadIdx.x == 0) *p.y = sum;
}
