// A random one of the k largest elements of a row: their list, sorted where there is a top_p, is weighed and drawn from in order of
// the columns (weight.h).
#ifndef SOL_KERNELS_SELECT_DRAW_CUH
#define SOL_KERNELS_SELECT_DRAW_CUH

#include "list.cuh"
#include "select.h"
#include "weight.h"

template <class Entry, int room> struct DrawList : List<Entry, room> {
  uint32_t weight[room < TOPK_MOST ? room : TOPK_MOST];
};

template <int kind> INLINE float value_of_bits(uint32_t bits) {
  if (kind == KIND_FP32) return __uint_as_float(bits);
  return kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)bits)) : __uint_as_float(bits << 16);
}

// The sum of the lanes' numbers, each below 2^51.
INLINE uint64_t lanes_total(uint64_t v) {
  return lanes_sum((uint32_t)v & 0xffffffu) + ((uint64_t)lanes_sum((uint32_t)(v >> 24)) << 24);
}
INLINE uint64_t lanes_upto(uint64_t v) { // the sum of this lane's and of those before it
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint64_t other = __shfl_up_sync(~0u, v, o);
    if (threadIdx.x % 32 >= o) v += other;
  }
  return v;
}

INLINE uint64_t target_of(const SampleParams &p, uint64_t whole) { // the weight that top_p needs
  return max((uint64_t)__umul64hi(whole, p.share << 32), (uint64_t)1);
}

// The column at which the weights of the first `count` entries, in order of the columns, exceed `wanted`: the last before
// which they do not, found bit by bit; `wanted` is reduced by those before it. One warp; two entries of a lane are in registers.
template <class L> INLINE uint32_t draw_column(const L *list, int count, uint64_t *wanted, uint32_t n) {
  int lane = threadIdx.x % 32;
  uint32_t first = lane < count ? entry_column(list->entry[lane]) : ~0u, second = lane + 32 < count ? entry_column(list->entry[lane + 32]) : ~0u;
  uint32_t of_first = lane < count ? list->weight[lane] : 0, of_second = lane + 32 < count ? list->weight[lane + 32] : 0;
  uint32_t column = 0;
  uint64_t passed = 0;
#pragma unroll 1
  for (uint32_t bit = 0x80000000u >> __clz(n); bit; bit >>= 1) {
    uint64_t before = (first < (column | bit) ? of_first : 0) + (second < (column | bit) ? of_second : 0);
#pragma unroll 1
    for (int i = lane + 64; i < count; i += 32) before += entry_column(list->entry[i]) < (column | bit) ? list->weight[i] : 0;
    before = lanes_total(before);
    if (before <= *wanted) column |= bit, passed = before;
  }
  *wanted -= passed;
  return column;
}

// A random one of a row's elements that have the bits `equal`, which all weigh the same and alone weigh anything: of a row whose
// largest element is infinite, or very large. -1: there are none. Such rows are not worth a fast way. One warp.
template <int kind>
static __device__ __noinline__ int64_t draw_equal(const SampleParams &p, const char *at, uint32_t equal, uint64_t stream) {
  auto is_equal = [&](int64_t c) {
    return c < p.n && equal == (kind == KIND_FP32 ? ((const uint32_t *)at)[c] : ((const uint16_t *)at)[c]);
  };
  uint64_t count = 0, each = select_weight(SELECT_TOP);
  for (int64_t i = 0; i < p.n; i += 32) count += __popc(__ballot_sync(~0u, is_equal(i + threadIdx.x % 32)));
  if (!count) return -1;
  if (p.k) count = min(count, (uint64_t)p.k);
  uint64_t target = p.share ? target_of(p, count * each) : ~0ull;
  uint32_t wanted = ~0u;
  for (uint32_t trial = 0; wanted * each >= target || !trial; trial++) {
    if (trial) count = wanted;
    wanted = (uint32_t)(__umul64hi(select_random(stream, trial), count * each) / each);
  }
  for (int64_t i = 0;; i += 32) {
    uint32_t here = __ballot_sync(~0u, is_equal(i + threadIdx.x % 32));
    if (wanted < __popc(here)) {
      for (; wanted; wanted--) here &= here - 1;
      return i + __ffs(here) - 1;
    }
    wanted -= __popc(here);
  }
}

INLINE void put_id(const SampleParams &p, uint64_t row, int64_t id) {
  if (p.wide_ids) ((int64_t *)p.ids)[row] = id;
  else ((int32_t *)p.ids)[row] = (int32_t)id;
}

template <int kind> INLINE float listed_value(uint32_t key) {
  return value_of_bits<kind>(bits_of_key<kind>(key));
}

// By one warp.
template <int kind, class L>
INLINE int64_t draw_listed(const SampleParams &p, const Part &part, L *list, int count) {
  uint64_t stream = select_stream((uint64_t)p.seeds[part.row], p.step), whole = 0;
  if (!count) return draw_equal<kind>(p, part.x.at, lowest_bits<kind>(), stream);
  uint32_t key = 0;
  for (int i = part.thread; i < count; i += 32) key = max(key, entry_key(list->entry[i]));
  float top = listed_value<kind>(lanes_most(key));
  for (int i = part.thread; i < count; i += 32) {
    float place = select_place_of(listed_value<kind>(entry_key(list->entry[i])), top, p.per);
    uint32_t weight = p.share ? select_weight(place) : select_hull(place);
    list->weight[i] = weight;
    whole += weight;
  }
  whole = lanes_total(whole);
  __syncwarp();
  uint64_t target = target_of(p, whole);
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    uint64_t rest = __umul64hi(select_random(stream, trial), whole), before = 0;
    uint32_t column = draw_column(list, count, &rest, (uint32_t)p.n), taken = 0;
    int found = count;
    for (int i = part.thread; i < count; i += 32)
      if (entry_column(list->entry[i]) == column) found = i;
    int at = (int)lanes_least((uint32_t)found);
    if (p.share) {
      for (int i = part.thread; i < at; i += 32) before += list->weight[i];
      before = lanes_total(before);
      if (before < target) return column;
      count = at, whole = before;
    } else {
      if (found < count) taken = rest < select_weight(select_place_of(listed_value<kind>(entry_key(list->entry[found])), top, p.per));
      if (__any_sync(~0u, taken)) return column;
    }
  }
}

template <int kind, int threads, class L> INLINE void draw_row(const SampleParams &p, L *list, int stage) {
  Part part = part_of<threads>(p.x, p.x_stride, p.n, kind == KIND_FP32 ? 4 : 2, p.m);
  if (part.row >= p.m) return;
  uint32_t count = list_largest<kind, 0, threads>(part, list, stage, (uint32_t)p.k, p.share != 0);
  if (part.blocks > 1) cluster_arrive();
  if (part.rank == 0 && part.thread < 32) {
    int64_t id = draw_listed<kind>(p, part, list, (int)count);
    if (part.thread == 0) put_id(p, part.row, id);
  }
  if (part.blocks > 1) cluster_wait();
}

LIST_KERNELS(draw, SampleParams, DrawList, draw_row)

#endif
