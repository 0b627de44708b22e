// counts[bin of x] += 1
//
// Every block counts a stretch of x in shared memory and adds what it found to the result. Where the bins do not fit,
// `parts` blocks read the same stretch, each counts its own range of bins: x comes from the L2 cache for all but one
// of them. An addition of one to shared memory takes one pass for all the threads of a warp that hit the same bin, so
// a skewed x costs no more than an even one. Few elements for many bins are counted in the result itself; there the
// threads of a warp that hit the same bin send one addition.
#include "common.cuh"
#include "histogram.h"

// -1: in none.
INLINE int32_t bin_of_real(const HistogramParams *p, float x) {
  if (!(x >= p->low && x <= p->high)) return -1; // NaN too
  int32_t bin = (int32_t)__fmul_rn(__fsub_rn(x, p->low), p->scale);
  return bin < (int32_t)p->bins ? bin : (int32_t)p->bins - 1;
}

// Whole warps call this; -1 where a thread has nothing.
INLINE void count_one(const HistogramParams *p, int32_t bin, uint32_t first, uint32_t *mine, int shared) {
  if ((uint32_t)bin >= (uint32_t)p->bins) bin = -1;
  if (shared) {
    uint32_t at = (uint32_t)bin - first;
    if (bin >= 0 && at < p->range) atomicAdd(&mine[at], 1);
    return;
  }
  uint32_t same = __match_any_sync(~0u, bin), before = (1u << threadIdx.x % 32) - 1;
  if (bin >= 0 && !(same & before)) atomicAdd(&p->counts[bin], __popc(same));
}

INLINE void count_word(const HistogramParams *p, uint32_t word, int here, int size, uint32_t first, uint32_t *mine,
                       int shared) {
  if (size == 4) {
    int32_t bin = p->kind == HISTOGRAM_INT32 ? (int32_t)word : bin_of_real(p, __uint_as_float(word));
    count_one(p, here ? bin : -1, first, mine, shared);
  } else {
    float2 two = widen2(word, p->kind == HISTOGRAM_FP16 ? KIND_FP16 : KIND_BF16);
    count_one(p, here ? bin_of_real(p, two.x) : -1, first, mine, shared);
    count_one(p, here ? bin_of_real(p, two.y) : -1, first, mine, shared);
  }
}

// The elements around the vectors: before the first and after the last.
INLINE void count_ends(const HistogramParams *p, int size, uint32_t first, uint32_t *mine, int shared) {
  int64_t tail = p->head + p->vectors * (16 / size), ends = p->head + p->n - tail; // less than two vectors
  int64_t i = threadIdx.x < p->head ? threadIdx.x : tail + threadIdx.x - p->head;
  int32_t bin = -1;
  if (threadIdx.x < ends) {
    if (size == 2) bin = bin_of_real(p, load_one(p->x, i, p->kind == HISTOGRAM_FP16 ? KIND_FP16 : KIND_BF16));
    else if (p->kind == HISTOGRAM_FP32) bin = bin_of_real(p, ((const float *)p->x)[i]);
    else bin = ((const int32_t *)p->x)[i];
  }
  count_one(p, bin, first, mine, shared);
}

INLINE void histogram(const HistogramParams *p, int size, int threads, int shared) {
  extern __shared__ uint32_t mine[];
  uint32_t part = blockIdx.x % p->parts, first = part * p->range;
  int64_t group = blockIdx.x / p->parts, step = (int64_t)(gridDim.x / p->parts) * threads;
  if (shared) {
    for (uint32_t b = threadIdx.x; b < p->range; b += threads) mine[b] = 0;
    __syncthreads();
  }
  const char *x = (const char *)p->x + p->head * size;
  int lane = threadIdx.x % 32;
  // Warps walk whole: `at` is the vector of a warp's first thread.
  for (int64_t at = group * threads + threadIdx.x - lane; at < p->vectors; at += step * HISTOGRAM_VECTORS) {
    Vec v[HISTOGRAM_VECTORS];
#pragma unroll
    for (int k = 0; k < HISTOGRAM_VECTORS; k++) {
      int64_t i = at + k * step + lane;
      v[k].v = make_uint4(0, 0, 0, 0);
      if (i < p->vectors) v[k].v = *(const uint4 *)(x + i * 16);
    }
#pragma unroll
    for (int k = 0; k < HISTOGRAM_VECTORS; k++) {
      if (at + k * step >= p->vectors) break;
      int here = at + k * step + lane < p->vectors;
#pragma unroll
      for (int i = 0; i < 4; i++) count_word(p, v[k].u[i], here, size, first, mine, shared);
    }
  }
  if (group == 0) count_ends(p, size, first, mine, shared);
  if (!shared) return;
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < p->range && first + b < p->bins; b += threads)
    if (mine[b]) atomicAdd(&p->counts[first + b], mine[b]);
}

#define HISTOGRAM(name, size, threads, most)                                                                 \
  KERNEL __launch_bounds__(threads, (threads) > 512 ? 1 : 3) name(const __grid_constant__ HistogramParams p) {                        \
    histogram(&p, size, threads, (most) > 0);                                                                \
  }
#include "histogram.def"
