// counts[x] += 1, from one atomic in global memory for each element to counts in shared memory.
#include "histogram/rungs.h"
#include "common.cuh"

enum { THREADS = HISTOGRAM_RUNG_THREADS };

// Counts start at 0: part of every rung.
KERNEL histogram_rung_zero(const __grid_constant__ HistogramRung p) {
  uint64_t b = thread_index();
  if (b < p.bins) p.counts[b] = 0;
}

// Every element is an atomic on the result, in L2: equal bins take turns, over the whole GPU.
KERNEL __launch_bounds__(THREADS) histogram_rung_global(const __grid_constant__ HistogramRung p) {
  uint64_t i = thread_index();
  if (i >= p.n) return;
  uint32_t bin = (uint32_t)p.x[i];
  if (bin < p.bins) atomicAdd(&p.counts[bin], 1);
}

INLINE void clear(uint32_t *mine, uint32_t bins) {
  for (uint32_t b = threadIdx.x; b < bins; b += THREADS) mine[b] = 0;
  __syncthreads();
}

// What a block has counted goes to the result: one atomic a bin, not one an element.
INLINE void hand_over(const HistogramRung *p, const uint32_t *mine) {
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < p->bins; b += THREADS)
    if (mine[b]) atomicAdd(&p->counts[b], mine[b]);
}

// Every block counts its share in shared memory, where only its own threads take turns.
KERNEL __launch_bounds__(THREADS) histogram_rung_shared(const __grid_constant__ HistogramRung p) {
  extern __shared__ uint32_t mine[];
  clear(mine, p.bins);
  for (uint64_t i = thread_index(); i < p.n; i += (uint64_t)gridDim.x * THREADS) {
    uint32_t bin = (uint32_t)p.x[i];
    if (bin < p.bins) atomicAdd(&mine[bin], 1);
  }
  hand_over(&p, mine);
}

// The lanes of a warp with the same bin find each other first; one of them adds for all.
KERNEL __launch_bounds__(THREADS) histogram_rung_aggregated(const __grid_constant__ HistogramRung p) {
  extern __shared__ uint32_t mine[];
  clear(mine, p.bins);
  uint32_t before = (1u << threadIdx.x % 32) - 1;
  // All lanes of a warp loop together, as __match_any_sync needs them all: `at` is the element of the warp's first lane.
  for (uint64_t at = thread_index() - threadIdx.x % 32; at < p.n; at += (uint64_t)gridDim.x * THREADS) {
    uint64_t i = at + threadIdx.x % 32;
    uint32_t bin = i < p.n ? (uint32_t)p.x[i] : ~0u;
    uint32_t same = __match_any_sync(~0u, bin);
    if (bin < p.bins && !(same & before)) atomicAdd(&mine[bin], __popc(same));
  }
  hand_over(&p, mine);
}
