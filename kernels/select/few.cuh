// A random one of the k largest elements of a short row, which is in registers (short.cuh).
//
// They are listed in shared memory, in order of the columns (cut.cuh), and only they are weighed and drawn from.
#ifndef SOL_KERNELS_SELECT_FEW_CUH
#define SOL_KERNELS_SELECT_FEW_CUH

#include "short.cuh"

template <int kind> struct Few {
  typedef uint32_t Entry; // key.cuh
};
template <> struct Few<KIND_FP32> {
  typedef uint64_t Entry;
};

template <int kind, int rounds, class Entry> INLINE uint32_t few_weight(const Short<kind, rounds> &s, Entry e) {
  return select_weight(short_place(s, value_of_key<kind>(entry_key(e))));
}

// What this lane's entries above `limit` weigh.
template <int kind, int rounds, class Entry>
INLINE uint64_t few_above(const Short<kind, rounds> &s, const CutList<Entry> &list, Entry limit) {
  uint64_t sum = 0;
#pragma unroll 2
  for (int i = list.begin; i < list.end; i++) {
    Entry e = list.at[i];
    uint32_t weight = few_weight(s, e);
    if (e > limit) sum += weight;
  }
  return sum;
}

template <class S> INLINE uint64_t row_sum(const S &s, uint64_t v) {
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

template <int kind, int rounds, class Entry>
INLINE void draw_few(const SampleParams &p, const Short<kind, rounds> &s, const CutList<Entry> &list, uint64_t row, uint64_t stream) {
  Entry limit = 0;
  uint64_t mine = few_above(s, list, limit), whole = row_sum(s, mine), target = target_of(p, whole);
  bool done = !whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = 0; __any_sync(~0u, !done); trial++) {
    uint64_t rest = __umul64hi(select_random(stream, trial), whole) - row_before(s.lanes, s.lane, mine);
    Entry found = 0;
    if (rest < mine) // less than 0, too, is not
      for (int i = list.begin; !found; i++) {
        Entry e = list.at[i];
        uint32_t weight = few_weight(s, e);
        if (e <= limit) continue;
        if (rest < weight) found = e;
        rest -= weight;
      }
    uint32_t owner = __ballot_sync(~0u, found != 0) & row_mask(s.lanes);
    limit = __shfl_sync(~0u, found, owner ? __ffs(owner) - 1 : 0);
    if (p.share) mine = few_above(s, list, limit), whole = row_sum(s, mine);
    if (!done && (!p.share || whole < target)) {
      done = true;
      if (s.lane == 0) put_id(p, row, entry_column(limit));
    }
  }
}

template <int kind, int rounds> INLINE void sample_few(const SampleParams &p) {
  typedef typename Few<kind>::Entry Entry;
  Short<kind, rounds> s;
  uint64_t row, stream;
  float top = short_row<true>(p, s, &row, &stream);
  uint32_t low = key_below<kind>(s, (uint32_t)p.k, top == top ? key_of_value<kind>(top) : lowest_key<kind>(), 0);
  Entry *at = (Entry *)held + (threadIdx.x >> p.lane_bits) * (p.n | 1);
  int count = list_above<kind>(s, low, at);
  CutList<Entry> list = part_of_list(s, at, count);
  if (__any_sync(~0u, count > p.k)) drop_equals(s, list, low + 1, count - (int)p.k);
  draw_few(p, s, list, row, stream);
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
