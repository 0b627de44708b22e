// A random one of the k largest elements of a row: their sorted list is weighed and drawn from (weight.h).
#ifndef SOL_KERNELS_SELECT_DRAW_CUH
#define SOL_KERNELS_SELECT_DRAW_CUH

#include "list.cuh"
#include "select.h"
#include "weight.h"

template <class Entry, int room> struct DrawList : List<Entry, room> {
  uint32_t weight[room < TOPK_MOST ? room : TOPK_MOST];
};

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

// A random one of a row's elements that have the bits `equal`, which all weigh the same and alone weigh anything: of a row whose
// largest element is infinite, or very large. -1: there are none. Such rows are not worth a fast way. One warp.
template <int kind>
static __device__ __noinline__ int64_t draw_equal(const SampleParams &p, const char *at, uint32_t equal, uint64_t stream, uint64_t each) {
  auto is_equal = [&](int64_t c) {
    return c < p.n && equal == (kind == KIND_FP32 ? ((const uint32_t *)at)[c] : ((const uint16_t *)at)[c]);
  };
  uint64_t count = 0;
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
// The sum of this lane's number and of those before it; of all less than 2^32.
INLINE uint32_t few_upto(uint32_t v) {
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, v, o);
    if (threadIdx.x % 32 >= o) v += other;
  }
  return v;
}

// The entry of the list on which `wanted` falls; wanted becomes how far it is beyond the entries before it. One warp.
template <class L> INLINE int draw_entry(const L *list, int count, uint64_t *wanted) {
  int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int from = 0;; from += 32) {
    uint32_t weight = from + lane < count ? list->weight[from + lane] : 0, upto = few_upto(weight);
    uint32_t beyond = __ballot_sync(~0u, upto > *wanted);
    int at = beyond ? __ffs(beyond) - 1 : 31;
    *wanted -= __shfl_sync(~0u, beyond ? upto - weight : upto, at);
    if (beyond) return from + at;
  }
}

// By one warp.
template <int kind, class L>
INLINE int64_t draw_listed(const SampleParams &p, const Part &part, L *list, int count) {
  uint64_t stream = select_stream((uint64_t)p.seeds[part.row], p.step), whole = 0;
  if (!count) return draw_equal<kind>(p, part.x.at, lowest_bits<kind>(), stream, select_hull(SELECT_TOP));
  float top = listed_value<kind>(entry_key(list->entry[0]));
  auto place_of_entry = [&](int i) { return select_place_of(listed_value<kind>(entry_key(list->entry[i])), top, p.per); };
  for (int i = part.thread; i < count; i += 32) {
    float place = place_of_entry(i);
    uint32_t weight = p.share ? select_few(place) : select_hull(place);
    list->weight[i] = weight;
    whole += weight;
  }
  whole = lanes_total(whole);
  __syncwarp();
  uint64_t target = target_of(p, whole);
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    uint64_t wanted = __umul64hi(select_random(stream, trial), whole), rest = wanted;
    int at = draw_entry(list, count, &rest);
    if (p.share ? wanted - rest < target : rest < select_hulled(place_of_entry(at))) return entry_column(list->entry[at]);
    if (p.share) count = at, whole = wanted - rest;
  }
}

template <int kind, int threads, class L> INLINE void draw_row(const SampleParams &p, L *list, int stage) {
  Part part = part_of<threads>(p.x, p.x_stride, p.n, kind == KIND_FP32 ? 4 : 2, p.m);
  if (part.row >= p.m) return;
  uint32_t count = list_largest<kind, 0, threads>(part, list, stage, (uint32_t)p.k);
  if (part.blocks > 1) cluster_arrive();
  if (part.rank == 0 && part.thread < 32) {
    int64_t id = draw_listed<kind>(p, part, list, (int)count);
    if (part.thread == 0) put_id(p, part.row, id);
  }
  if (part.blocks > 1) cluster_wait();
}

LIST_KERNELS(draw, SampleParams, DrawList, draw_row)

#endif
