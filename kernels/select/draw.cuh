// A random one of the k largest elements of a row: their list, sorted where there is a top_p, is weighed, cut where the weights
// reach it, and drawn from in order of the columns.
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

// How many of `count` weights, in order, it takes to reach `target`; their sum. One warp.
INLINE int reach(const uint32_t *weight, int count, uint64_t target, uint64_t *sum) {
  uint64_t before = 0;
#pragma unroll 1
  for (int i = 0;; i += 32) {
    int at = i + threadIdx.x % 32;
    uint64_t upto = before + lanes_upto(at < count ? weight[at] : 0);
    uint32_t found = __ballot_sync(~0u, upto >= target);
    int lane = found ? __ffs(found) - 1 : 31;
    before = __shfl_sync(~0u, upto, lane);
    if (!found && i + 32 < count) continue;
    *sum = before;
    return min(count, i + lane + 1);
  }
}

// The column at which the weights of the first `count` entries, in order of the columns, exceed `wanted`: the last before
// which they do not, found bit by bit. One warp.
template <class L> INLINE uint32_t draw_column(const L *list, int count, uint64_t wanted, uint32_t n) {
  uint32_t column = 0;
#pragma unroll 1
  for (uint32_t bit = 0x80000000u >> __clz(n); bit; bit >>= 1) {
    uint64_t before = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32)
      before += entry_column(list->entry[i]) < (column | bit) ? list->weight[i] : 0;
    if (lanes_total(before) <= wanted) column |= bit;
  }
  return column;
}

// A random one of a row's elements that have the bits `equal`, which all weigh the same: of a row whose largest element is infinite.
// -1: there are none. Such rows are not worth a fast way. One warp.
template <int kind>
static __device__ __noinline__ int64_t draw_equal(const SampleParams &p, const char *at, uint32_t equal, uint64_t random) {
  auto is_equal = [&](int64_t c) {
    return c < p.n && equal == (kind == KIND_FP32 ? ((const uint32_t *)at)[c] : ((const uint16_t *)at)[c]);
  };
  uint64_t count = 0, each = select_power(0);
  for (int64_t i = 0; i < p.n; i += 32) count += __popc(__ballot_sync(~0u, is_equal(i + threadIdx.x % 32)));
  if (!count) return -1;
  if (p.k) count = min(count, (uint64_t)p.k);
  if (p.share) {
    uint64_t target = __umul64hi(count * each, p.share << 32);
    count = ((target ? target : 1) + each - 1) / each;
  }
  uint32_t wanted = (uint32_t)(__umul64hi(random, count * each) / each);
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

// By one warp.
template <int kind, class L>
INLINE int64_t draw_listed(const SampleParams &p, const Part &part, L *list, int count) {
  uint64_t random = select_random((uint64_t)p.seeds[part.row], p.step), whole = 0;
  if (!count) return draw_equal<kind>(p, part.x.at, lowest_bits<kind>(), random);
  uint32_t key = 0;
  for (int i = part.thread; i < count; i += 32) key = max(key, entry_key(list->entry[i]));
  float top = value_of_bits<kind>(bits_of_key<kind>(lanes_most(key)));
  for (int i = part.thread; i < count; i += 32) {
    uint32_t weight =
        select_weight(value_of_bits<kind>(bits_of_key<kind>(entry_key(list->entry[i]))), top, p.per);
    list->weight[i] = weight;
    whole += weight;
  }
  whole = lanes_total(whole);
  __syncwarp();
  if (p.share) {
    uint64_t target = __umul64hi(whole, p.share << 32);
    count = reach(list->weight, count, target ? target : 1, &whole);
  }
  return draw_column(list, count, __umul64hi(random, whole), (uint32_t)p.n);
}

template <int kind, int threads, class L> INLINE void draw_row(const SampleParams &p, L *list) {
  Part part = part_of<threads>(p.x, p.x_stride, p.n, kind == KIND_FP32 ? 4 : 2, p.m);
  if (part.row >= p.m) return;
  uint32_t count = list_largest<kind, 0, threads>(part, list, (uint32_t)p.k, p.share != 0);
  if (part.blocks > 1) cluster_arrive();
  if (part.rank == 0 && part.thread < 32) {
    int64_t id = draw_listed<kind>(p, part, list, (int)count);
    if (part.thread == 0) put_id(p, part.row, id);
  }
  if (part.blocks > 1) cluster_wait();
}

LIST_KERNELS(draw, SampleParams, DrawList, draw_row)

#endif
