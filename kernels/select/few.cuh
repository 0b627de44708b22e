// A random one of the k largest elements of a short row, which is in registers (short.cuh).
//
// They are listed in shared memory, in order of the columns (cut.cuh), and weighed once. Lanes of the row have as many entries each, two at a time.
#ifndef SOL_KERNELS_SELECT_FEW_CUH
#define SOL_KERNELS_SELECT_FEW_CUH

#include "short.cuh"

template <int kind> struct Few {
  typedef uint32_t Entry;
  typedef uint2 Two; // entries
};
template <> struct Few<KIND_FP32> {
  typedef uint64_t Entry;
  typedef ulonglong2 Two;
};

// A lane's part of the list: `each` entries, an even number, of which the row's last ones may be 0.
template <int kind> struct FewPart {
  typename Few<kind>::Two *entry;
  uint2 *weight;
  int each;
};

INLINE uint32_t order_of_entry(uint32_t e) { return e; } // and what of a float of 16 bits is not there
INLINE uint32_t order_of_entry(uint64_t e) { return (uint32_t)(e >> 32); }
INLINE int column_of_entry(uint32_t e) { return (int)(~e & 0xffff); }
INLINE int column_of_entry(uint64_t e) { return (int)~(uint32_t)e; }

template <int kind, int rounds> INLINE uint32_t few_weight(const Short<kind, rounds> &s, typename Few<kind>::Entry e) {
  uint32_t bits = bits_of_order(order_of_entry(e));
  return select_weight(short_place(s, value_of_bits<kind>(kind == KIND_FP32 ? bits : bits >> 16)));
}

template <class S, class T> INLINE T row_sum(const S &s, T v) {
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// The least entry of the row that is one.
template <int kind, class S> INLINE typename Few<kind>::Entry few_least(const S &s, const FewPart<kind> &list) {
  typedef typename Few<kind>::Entry Entry;
  Entry least = 0;
  least--; // of entries less 1, so that 0 is above all
#pragma unroll 2
  for (int i = 0; i < list.each; i += 2) {
    auto e = list.entry[i / 2];
    least = min(least, min((Entry)(e.x - 1), (Entry)(e.y - 1)));
  }
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) least = min(least, __shfl_xor_sync(~0u, least, o));
  return least + 1;
}

// Weighs the entries that are not below `first`; the sum of this lane's. An entry of 0 is that of NaN, which weighs nothing.
template <int kind, class S> INLINE uint64_t few_weigh(const S &s, const FewPart<kind> &list, typename Few<kind>::Entry first) {
  uint64_t sum = 0;
#pragma unroll 2
  for (int i = 0; i < list.each; i += 2) {
    auto e = list.entry[i / 2];
    uint2 weight = make_uint2(few_weight(s, e.x), few_weight(s, e.y));
    if (e.x < first) weight.x = 0;
    if (e.y < first) weight.y = 0;
    list.weight[i / 2] = weight;
    sum += weight.x + weight.y;
  }
  return sum;
}

// The entry of this lane on which `rest` falls, which is less than their sum.
template <int kind> INLINE typename Few<kind>::Entry few_find(const FewPart<kind> &list, uint64_t rest) {
  uint64_t upto = 0, before = 0;
  int at = 0;
#pragma unroll 4
  for (int i = 0; i < list.each; i += 2) {
    uint2 weight = list.weight[i / 2];
    upto += weight.x + weight.y;
    if (upto <= rest) at = i + 2, before = upto;
  }
  at = min(at, list.each - 2);
  auto e = list.entry[at / 2];
  return rest - before < list.weight[at / 2].x ? e.x : e.y;
}

// Only entries above `limit` keep their weights; the sum of this lane's.
template <int kind> INLINE uint64_t few_above(const FewPart<kind> &list, typename Few<kind>::Entry limit) {
  uint64_t sum = 0;
#pragma unroll 4
  for (int i = 0; i < list.each; i += 2) {
    auto e = list.entry[i / 2];
    uint2 weight = list.weight[i / 2];
    if (e.x <= limit) weight.x = 0;
    if (e.y <= limit) weight.y = 0;
    list.weight[i / 2] = weight;
    sum += weight.x + weight.y;
  }
  return sum;
}

template <int kind, class S>
INLINE void draw_few(const SampleParams &p, const S &s, const FewPart<kind> &list, uint64_t mine, uint64_t row, uint64_t stream) {
  uint64_t whole = row_sum(s, mine), target = target_of(p, whole), random = select_random(stream, 0);
  bool done = !whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = 1; __any_sync(~0u, !done); random = select_random(stream, trial++)) {
    uint64_t rest = __umul64hi(random, whole) - row_before(s.lanes, s.lane, mine);
    auto found = few_find(list, rest);
    uint32_t owner = __ballot_sync(~0u, rest < mine) & row_mask(s.lanes); // less than 0, too, is not
    found = __shfl_sync(~0u, found, owner ? __ffs(owner) - 1 : 0);
    if (p.share) mine = few_above(list, found), whole = row_sum(s, mine);
    if (!done && (!p.share || whole < target)) {
      done = true;
      if (s.lane == 0) put_id(p, row, column_of_entry(found));
    }
  }
}

template <int kind, int rounds> INLINE void sample_few(const SampleParams &p) {
  typedef typename Few<kind>::Entry Entry;
  Short<kind, rounds> s;
  uint64_t row, stream;
  float top = short_row<true, false>(p, s, &row, &stream);
  CutKey cut = key_below<kind>(p, s, top, top == top ? key_of_value<kind>(top) : lowest_key<kind>());
  int surplus = max((int)cut.count - (int)p.k, 0);
  if (__any_sync(~0u, surplus > 1)) drop_equals<kind>(s, cut.low + 1, surplus > 1 ? surplus : 0), surplus = surplus == 1;
  const int rows = SHORT_THREADS >> p.lane_bits, of_row = p.list, own = (threadIdx.x >> p.lane_bits) * of_row;
  Entry *entries = (Entry *)held + own, first = 0;
  uint32_t *weights = (uint32_t *)((Entry *)held + rows * of_row) + own;
  for (int i = list_above<kind>(s, cut.low, entries) + s.lane; i < p.each << p.lane_bits; i += s.lanes) entries[i] = 0;
  __syncwarp();
  const int begin = s.lane * p.each;
  FewPart<kind> list = {(typename Few<kind>::Two *)(entries + begin), (uint2 *)(weights + begin), p.each};
  if (__any_sync(~0u, surplus)) first = few_least<kind>(s, list), first = surplus ? first + 1 : 0;
  uint64_t mine = few_weigh(s, list, first);
  draw_few(p, s, list, mine, row, stream);
}

#define FEW_KERNEL(kind, blocks)                                                                             \
  KERNEL __launch_bounds__(SHORT_THREADS, blocks) sol_few_##kind(const __grid_constant__ SampleParams p) {   \
    begin_kernel();                                                                                          \
    sample_few<KIND_##kind, SHORT_ROUNDS>(p);                                                                \
  }
FEW_KERNEL(FP32, 5)
FEW_KERNEL(FP16, 5)
FEW_KERNEL(BF16, 5)

#endif
