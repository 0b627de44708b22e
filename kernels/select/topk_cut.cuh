// topk of few elements of short rows of 16 bits: the k largest are found by counting and listed (cut.cuh), and only they are sorted, in
// the registers of a few lanes (sorted.cuh).
#ifndef SOL_KERNELS_SELECT_TOPK_CUT_CUH
#define SOL_KERNELS_SELECT_TOPK_CUT_CUH

#include "cut.cuh"
#include "sorted.cuh"

// The key of the row's largest element but NaN, and how many NaN it has.
template <int kind, class S> INLINE uint32_t key_of_top(const S &s, uint32_t *above) {
  uint32_t word = span_lowest(kind), plain = span_lowest(kind);
#pragma unroll
  for (int r = 0; r < S::rounds; r++)
    if (r < s.used) word = larger_word<kind, 1>(word, chunk_word<kind, 1>(s.v[r]));
  *above = 0;
  float2 two = widen2(word, kind);
  bool odd = __any_sync(~0u, two.x != two.x || two.y != two.y);
  if (odd) {
#pragma unroll
    for (int r = 0; r < S::rounds; r++)
      if (r < s.used) plain = larger_word<kind, 0>(plain, chunk_word<kind, 0>(s.v[r]));
    word = plain;
  }
  float top = word_top<kind>(word);
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  uint32_t key = key_of_bits<kind>(narrow_one(top, kind));
  if (odd) *above = count_above_key<kind, 1>(s, mask_shares(s.lanes), key);
  return key;
}

// What is left of a list after drop_equals, without the gaps.
template <class S> INLINE void close_gaps(const S &s, uint32_t *list, int count) {
  int left = 0;
#pragma unroll 1
  for (int i = s.lane; __any_sync(~0u, i - s.lane < count); i += s.lanes) {
    uint32_t e = i < count ? list[i] : 0, kept = __ballot_sync(~0u, e != 0) & row_mask(s.lanes);
    __syncwarp(); // what is written has been read
    if (e) list[left + __popc(kept & ((1u << threadIdx.x % 32) - 1))] = e;
    left += __popc(kept);
    __syncwarp();
  }
}

// The list of this thread's row: its k largest in order of the columns, zeros behind them.
template <int kind, class S> INLINE void list_row(const S &s, int k, uint32_t *list) {
  const uint32_t infinite = key_of_bits<kind>(lowest_bits<kind>() & 0x7fff);
  uint32_t above, high = key_of_top<kind>(s, &above), low = infinite; // low: nothing but NaN is above that
  bool plain = s.n && above < (uint32_t)k;
  low = key_below<kind, 1>(s, (uint32_t)k, plain ? high : lowest_key<kind>(), above);
  if (!plain) low = infinite;
  int count = list_above<kind, 1>(s, low, list);
  if (__any_sync(~0u, count > k)) {
    drop_equals(s, part_of_list(s, list, count), low == infinite ? 0xffffu : low + 1, count - k);
    close_gaps(s, list, count);
  }
  for (int i = (s.n ? k : 0) + s.lane; i < CUT_MOST; i += s.lanes) list[i] = 0; // a row that is not there has none
  __syncwarp();
}

// Sorts the lists of a warp's rows, `room` words apart, in turns of as many rows as it has lanes for.
INLINE void sort_lists(uint32_t *list, int room, int rows) {
  const int lane = threadIdx.x % CUT_LANES;
#pragma unroll 1
  for (int row = threadIdx.x % 32 / CUT_LANES; row - (int)(threadIdx.x % 32) / CUT_LANES < rows; row += 32 / CUT_LANES) {
    uint32_t v[SORTED_EACH], *at = list + row * room + lane * SORTED_EACH;
#pragma unroll
    for (int i = 0; i < SORTED_EACH; i++) v[i] = row < rows ? at[i] : 0;
    sort_step<1, 1>(v);
#pragma unroll 1
    for (int half = 1; half < CUT_LANES; half *= 2) merge_lanes(v, half);
    if (row < rows)
#pragma unroll
      for (int i = 0; i < SORTED_EACH; i++) at[i] = v[i];
  }
  __syncwarp();
}

template <int kind, int rounds> INLINE void topk_cut(const TopkParams &p, uint32_t *lists) {
  Rounds<2, rounds> s;
  s.lanes = 1 << p.lane_bits, s.lane = threadIdx.x & (s.lanes - 1), s.used = p.rounds;
  const int of_warp = 32 >> p.lane_bits, room = max((int)p.n | 1, CUT_MOST + 1);
  const uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, first = (block * (SHORT_THREADS / 32) + threadIdx.x / 32) * of_warp;
  const int rows = first < p.m ? (int)min((uint64_t)of_warp, p.m - first) : 0;
  uint32_t *list = lists + threadIdx.x / 32 * of_warp * room;
  load_rounds(s, p.x, p.x_stride, p.m, (int)p.n, first + (threadIdx.x % 32 >> p.lane_bits), span_lowest(kind));
  list_row<kind>(s, (int)p.k, list + (threadIdx.x % 32 >> p.lane_bits) * room);
  sort_lists(list, room, of_warp);
  const uint32_t k = (uint32_t)p.k;
#pragma unroll 2
  for (uint32_t i = threadIdx.x % 32; i < rows * k; i += 32) {
    uint32_t j = i * p.of_k >> SORTED_SHIFT, at = i - j * k, e = list[j * room + at], column = entry_column(e), bits = bits_of_key<kind>(entry_key(e));
    uint64_t row = first + j;
    // The sign of a zero and the bits of a NaN are not in the key.
    if (!key_is_plain<kind>(entry_key(e))) bits = *(const uint16_t *)((const char *)p.x + (int64_t)row * p.x_stride + 2 * column);
    ((uint16_t *)p.values)[(int64_t)row * p.values_stride + at] = (uint16_t)bits;
    if (p.wide_ids) ((int64_t *)p.ids)[(int64_t)row * p.ids_stride + at] = column;
    else ((int32_t *)p.ids)[(int64_t)row * p.ids_stride + at] = (int32_t)column;
  }
}

#define TOPK_CUT(kind)                                                                                       \
  KERNEL __launch_bounds__(SHORT_THREADS, 6) sol_topk_cut_##kind(const __grid_constant__ TopkParams p) {     \
    begin_kernel();                                                                                          \
    topk_cut<KIND_##kind, SHORT_ROUNDS>(p, (uint32_t *)held);                                                \
  }
TOPK_CUT(FP16)
TOPK_CUT(BF16)

#endif
