// counts[bin of x] += 1
//
// Every block counts a range of x in shared memory and adds its counts to the result. Where the bins do not fit,
// `parts` blocks read the same range, each counts its own range of bins: x comes from the L2 cache for all but one
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
INLINE void count_one(const HistogramParams *p, int32_t bin, uint32_t first, uint32_t *mine, int copies) {
  if ((uint32_t)bin >= (uint32_t)p->bins) bin = -1;
  if (copies) {
    uint32_t at = (uint32_t)bin - first;
    if (bin >= 0 && at < p->range) atomicAdd(&mine[at * copies], 1);
    return;
  }
  uint32_t same = __match_any_sync(~0u, bin), before = (1u << threadIdx.x % 32) - 1;
  if (bin >= 0 && !(same & before)) atomicAdd(&p->counts[bin], __popc(same));
}

// The same in shared memory, without a branch, or elements would wait for each other: what is in no bin of this block is
// counted after them. Adding 2^23 and dropping what is below 1 leaves the whole number in the lowest bits. What rounds up
// to `bins` belongs to the last bin and has a separate counter after it. `parts`: some bins may be another block's.
// `copies`: counters of a bin, adjacent in memory, of which this thread uses one.
INLINE void count_real(const HistogramParams *p, float x, uint32_t first, uint32_t *mine, int parts, int copies) {
  const float magic = 8388608.0f;
  float t = __fmul_rn(__fsub_rn(x, p->low), p->scale);
  if (parts) t = fminf(t, p->last);
  t = x >= p->low && x <= p->high ? t : p->none; // NaN too
  uint32_t bin = __float_as_uint(__fadd_rz(t, magic)) - __float_as_uint(magic);
  if (parts) bin = bin - first < p->range ? bin - first : p->range + 1;
  atomicAdd(&mine[bin * copies], 1);
}

INLINE void count_whole(const HistogramParams *p, uint32_t x, uint32_t first, uint32_t *mine, int copies) {
  uint32_t bin = x - first;
  bool in = x < (uint32_t)p->bins && bin < p->range;
  atomicAdd(&mine[(in ? bin : p->range + 1) * copies], 1);
}

INLINE void count_vector(const HistogramParams *p, const Vec *v, int kind, uint32_t first, uint32_t *mine, int parts,
                         int copies) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (kind == HISTOGRAM_INT32) count_whole(p, v->u[i], first, mine, copies);
    else if (kind == HISTOGRAM_FP32) count_real(p, v->f[i], first, mine, parts, copies);
    else {
      float2 two = widen2(v->u[i], kind == HISTOGRAM_FP16 ? KIND_FP16 : KIND_BF16);
      count_real(p, two.x, first, mine, parts, copies);
      count_real(p, two.y, first, mine, parts, copies);
    }
  }
}

INLINE void take_vectors(const uint4 *x, int threads, Vec *v) {
#pragma unroll
  for (int k = 0; k < HISTOGRAM_VECTORS; k++) v[k].v = x[k * threads];
}

// A block's range of x: `count` vectors. ahead: a thread loads its next vectors before it counts these. Where one block has an SM, its
// warps would otherwise all load at the same time, and then all count.
INLINE void count_stretch(const HistogramParams *p, const uint4 *x, int64_t count, int kind, int threads, uint32_t first,
                          uint32_t *mine, int parts, int copies, int ahead) {
  int64_t left = count - threadIdx.x;
  const int64_t step = HISTOGRAM_VECTORS * threads;
  Vec v[HISTOGRAM_VECTORS], next[HISTOGRAM_VECTORS];
  x += threadIdx.x;
  if (ahead && left > step - threads) take_vectors(x, threads, next);
  for (; left > step - threads; left -= step) {
    if (ahead) {
#pragma unroll
      for (int k = 0; k < HISTOGRAM_VECTORS; k++) v[k] = next[k];
    } else {
      take_vectors(x, threads, v);
    }
    x += step;
    if (ahead && left - step > step - threads) take_vectors(x, threads, next);
#pragma unroll
    for (int k = 0; k < HISTOGRAM_VECTORS; k++) count_vector(p, &v[k], kind, first, mine, parts, copies);
  }
  for (; left > 0; left -= threads, x += threads) {
    v[0].v = *x;
    count_vector(p, &v[0], kind, first, mine, parts, copies);
  }
}

INLINE void count_kind(const HistogramParams *p, const uint4 *x, int64_t count, int size, int threads, uint32_t first, uint32_t *mine,
                       int parts, int copies, int ahead) {
  if (size == 4) {
    if (p->kind == HISTOGRAM_INT32) count_stretch(p, x, count, HISTOGRAM_INT32, threads, first, mine, parts, copies, ahead);
    else count_stretch(p, x, count, HISTOGRAM_FP32, threads, first, mine, parts, copies, ahead);
  } else {
    if (p->kind == HISTOGRAM_FP16) count_stretch(p, x, count, HISTOGRAM_FP16, threads, first, mine, parts, copies, ahead);
    else count_stretch(p, x, count, HISTOGRAM_BF16, threads, first, mine, parts, copies, ahead);
  }
}

INLINE void count_word(const HistogramParams *p, uint32_t word, int here, int size) {
  if (size == 4) {
    int32_t bin = p->kind == HISTOGRAM_INT32 ? (int32_t)word : bin_of_real(p, __uint_as_float(word));
    count_one(p, here ? bin : -1, 0, NULL, 0);
  } else {
    float2 two = widen2(word, p->kind == HISTOGRAM_FP16 ? KIND_FP16 : KIND_BF16);
    count_one(p, here ? bin_of_real(p, two.x) : -1, 0, NULL, 0);
    count_one(p, here ? bin_of_real(p, two.y) : -1, 0, NULL, 0);
  }
}

// Counts in the result itself. All lanes of a warp loop together: `at` is the vector of the warp's first lane.
INLINE void count_few(const HistogramParams *p, const uint4 *x, int size, int threads) {
  int lane = threadIdx.x % 32;
  for (int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x - lane; at < p->vectors;
       at += (int64_t)gridDim.x * threads) {
    int here = at + lane < p->vectors;
    Vec v;
    v.v = make_uint4(0, 0, 0, 0);
    if (here) v.v = x[at + lane];
#pragma unroll
    for (int i = 0; i < 4; i++) count_word(p, v.u[i], here, size);
  }
}

// The elements around the vectors: before the first and after the last.
INLINE void count_ends(const HistogramParams *p, int size, uint32_t first, uint32_t *mine, int copies) {
  int64_t tail = p->head + p->vectors * (16 / size), ends = p->head + p->n - tail; // less than two vectors
  int64_t i = threadIdx.x < p->head ? threadIdx.x : tail + threadIdx.x - p->head;
  int32_t bin = -1;
  if (threadIdx.x < ends) {
    if (size == 2) bin = bin_of_real(p, load_one(p->x, i, p->kind == HISTOGRAM_FP16 ? KIND_FP16 : KIND_BF16));
    else if (p->kind == HISTOGRAM_FP32) bin = bin_of_real(p, ((const float *)p->x)[i]);
    else bin = ((const int32_t *)p->x)[i];
  }
  count_one(p, bin, first, mine, copies);
}

INLINE void fence_bulk(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Adds a block's counts, one a bin, to the result by asynchronous copies, in pieces. Each block begins elsewhere, or all would add to the same
// sectors at once. counters: of these bins, without those after them.
INLINE void add_bulk(uint32_t *bins, uint32_t counters, uint32_t *counts, uint32_t turn) {
#if __CUDA_ARCH__ >= 900
  const uint32_t piece = HISTOGRAM_PIECE, whole = counters & ~3u, pieces = (whole + piece - 1) / piece;
  if (threadIdx.x < counters - whole) atomicAdd(&counts[whole + threadIdx.x], bins[whole + threadIdx.x]);
  if (threadIdx.x >= 32) return;
  for (uint32_t i = threadIdx.x; i < pieces; i += 32) {
    uint32_t at = (i + turn) % pieces * piece;
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(counts + at)),
                 "r"((uint32_t)__cvta_generic_to_shared(bins + at)), "r"(min(whole - at, piece) * 4)
                 : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

// No copies: counted in the result itself.
INLINE void histogram(const HistogramParams *p, int size, int threads, int alone, int most_copies) {
  extern __shared__ __align__(16) uint32_t bins[];
  const int copies = most_copies > 1 ? p->copies : most_copies; // a power of two
  uint32_t *mine = bins + (copies ? threadIdx.x & (copies - 1) : 0);
  uint32_t first = blockIdx.x % p->parts * p->range, group = blockIdx.x / p->parts;
  const uint4 *x = (const uint4 *)((const char *)p->x + p->head * size);
  let_successor_start();
  if (!most_copies) {
    wait_for_predecessor();
    count_few(p, x, size, threads);
    if (group == 0) count_ends(p, size, first, mine, 0);
    return;
  }
  for (uint32_t b = threadIdx.x; b < ((p->range + 2) * copies + 3) / 4; b += threads) ((uint4 *)bins)[b] = make_uint4(0, 0, 0, 0);
  wait_for_predecessor(); // which is still at work while counters are cleared
  __syncthreads();
  int64_t from = group * p->share, count = p->vectors - from < p->share ? p->vectors - from : p->share;
  x += from;
  if (p->parts > 1) count_kind(p, x, count, size, threads, first, mine, 1, copies, alone);
  else count_kind(p, x, count, size, threads, first, mine, 0, copies, alone);
  if (group == 0) count_ends(p, size, first, mine, copies);
  __syncthreads();
  if (alone && p->bulk) {
    uint32_t counters = min(p->range, (uint32_t)p->bins - first);
    if (threadIdx.x == 0 && first + counters == p->bins) bins[counters - 1] += bins[counters]; // what rounds up to `bins`
    fence_bulk();
    __syncthreads();
    add_bulk(bins, counters, p->counts + first, group);
    return;
  }
  // Blocks end together: with bins of several parts each begins elsewhere, or all would add to the same few sectors at once.
  uint32_t counters = min(p->range, (uint32_t)p->bins - first) + 1, turn = p->parts > 1 ? group * 32 % counters & ~31u : 0;
  for (uint32_t i = threadIdx.x; i < counters; i += threads) {
    uint32_t b = i + turn < counters ? i + turn : i + turn - counters;
    uint32_t bin = first + b < p->bins ? first + b : (uint32_t)p->bins - 1, sum = 0;
    for (int c = 0; c < copies; c++) sum += bins[b * copies + ((c + threadIdx.x) & (copies - 1))]; // from other banks
    if (sum) atomicAdd(&p->counts[bin], sum);
  }
}

#define HISTOGRAM(name, size, threads, most, alone, copies)                                                  \
  KERNEL __launch_bounds__(threads, (alone) ? 1 : 2048 / (threads)) name(const __grid_constant__ HistogramParams p) { \
    histogram(&p, size, threads, alone, copies);                                                             \
  }
#include "histogram.def"
