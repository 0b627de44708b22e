// A random one of the k largest elements of a short row, which is in registers (short.cuh).
//
// The k-th largest is searched by halving: each turn counts the elements above a value, two at a time, and the search is over as soon as these are k.
// They are then listed in shared memory, in order of the columns, and only they are weighed and drawn from.
#ifndef SOL_KERNELS_SELECT_FEW_CUH
#define SOL_KERNELS_SELECT_FEW_CUH

#include "short.cuh"

template <int kind> struct Few {
  typedef uint32_t Entry; // key.cuh
};
template <> struct Few<KIND_FP32> {
  typedef uint64_t Entry;
};

template <int kind> INLINE uint32_t word_of_key(uint32_t key) {
  uint32_t bits = bits_of_key<kind>(key);
  return kind == KIND_FP32 ? bits : twice(bits);
}
template <int kind> INLINE uint32_t key_of_value(float value) {
  if (kind == KIND_FP16) value = fminf(fmaxf(value, -65504.0f), 65504.0f);
  return key_of_bits<kind>(kind == KIND_FP32 ? __float_as_uint(value) : narrow_one(value, kind));
}

// How many elements of the row are above that of a key.
template <int kind, int rounds> INLINE uint32_t count_above_key(const Short<kind, rounds> &s, uint32_t key) {
  const uint32_t word = word_of_key<kind>(key);
  uint32_t all = 0;
#pragma unroll
  for (int r = 0; r < rounds; r++)
    if (r < s.used)
#pragma unroll
      for (int j = 0; j < 4; j++) all += mask_above<kind, 0>(s.v[r].u[j], word);
  uint32_t count = count_masks<kind>(all);
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) count += __shfl_xor_sync(~0u, count, o);
  return count;
}

// A key that k elements or more are above, more only where the k-th is equal to others; fewer where there are no more. First the search halves distances; where that leaves values between two that differ in much less than these it
// halves keys, in turn with a guess by how many elements are above both ends.
template <int kind, int rounds> INLINE uint32_t key_below(const Short<kind, rounds> &s, uint32_t k, float top) {
  enum { HALVINGS = 4 };
  float depth = 8; // below the largest
  uint32_t low = lowest_key<kind>(), high = top == top ? key_of_value<kind>(top) : low, at_high = 0, at_low = 0; // elements above them; at_low 0: not known
#pragma unroll 1
  for (int turn = 0; __any_sync(~0u, high - low > 1); turn++) {
    float upper = value_of_bits<kind>(bits_of_key<kind>(high)), lower = value_of_bits<kind>(bits_of_key<kind>(low)), part = 0.5f;
    if (turn > HALVINGS) part = __fdividef((float)(k - at_high) + 0.5f, (float)(at_low - at_high));
    uint32_t middle = key_of_value<kind>(at_low ? upper * (1 - part) + lower * part : top - depth);
    if (turn > HALVINGS && turn % 2) middle = low + (high - low) / 2;
    middle = max(low + 1, min(middle, high - 1));
    depth *= 4;
    uint32_t count = count_above_key(s, middle);
    if (high - low <= 1) continue; // other rows of the warp
    if (count == k) low = middle, high = middle + 1;
    else if (count > k) low = middle, at_low = count;
    else high = middle, at_high = count;
  }
  return low;
}

// ---- The list of a row

// Elements of a chunk that are above a word, as bits.
template <int kind> INLINE uint32_t chunk_above(const Vec &v, uint32_t word) {
  uint32_t found = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) found |= word_above<kind, 0>(v.u[j], word, kind == KIND_FP32 ? j : 2 * j);
  return kind == KIND_FP32 ? found : (found | found >> 15) & 0xff;
}

// The row's elements above `word` in order of the columns; how many they are. Places are counted for three rounds in a word.
template <int kind, int rounds, class Entry> INLINE int list_above(const Short<kind, rounds> &s, uint32_t word, Entry *list) {
  enum { FIELD = 10, MOST = (1 << FIELD) - 1 };
  uint32_t found[rounds], to = 0;
#pragma unroll
  for (int r = 0; r < rounds; r++) found[r] = r < s.used ? chunk_above<kind>(s.v[r], word) : 0;
#pragma unroll
  for (int r = 0; r < rounds; r += 3) {
    if (r >= s.used) continue;
    uint32_t mine = 0;
#pragma unroll
    for (int t = r; t < min(r + 3, rounds); t++) mine |= __popc(found[t]) << (t - r) * FIELD;
    uint32_t before = row_before(s.lanes, s.lane, mine), whole = __shfl_sync(~0u, before + mine, threadIdx.x | (s.lanes - 1));
#pragma unroll
    for (int t = r; t < min(r + 3, rounds); t++) {
      uint32_t at = to + (before >> (t - r) * FIELD & MOST);
#pragma unroll 1
      for (uint32_t left = found[t]; left; left &= left - 1, at++) {
        int i = __ffs(left) - 1;
        make_entry(key_of_bits<kind>(bits_at<kind>(s.v[t], i)), (uint32_t)(column_of(s, t) + i), &list[at]);
      }
      to += whole >> (t - r) * FIELD & MOST;
    }
  }
  __syncwarp();
  return (int)to;
}

// A row's list, of which each of its lanes has a part.
template <class Entry> struct FewList {
  Entry *at;
  int begin, end;
};

// More than k are listed where the k-th is equal to others, whose key is `last`: those of the highest columns are none.
template <class S, class Entry> INLINE void drop_equals(const S &s, const FewList<Entry> &list, uint32_t last, int surplus) {
  int mine = 0;
  for (int i = list.begin; i < list.end; i++) mine += entry_key(list.at[i]) == last;
  int before = row_before(s.lanes, s.lane, mine), all = __shfl_sync(~0u, before + mine, threadIdx.x | (s.lanes - 1));
  for (int i = list.begin; i < list.end; i++)
    if (surplus > 0 && entry_key(list.at[i]) == last && before++ >= all - surplus) list.at[i] = 0;
}

template <int kind, int rounds, class Entry> INLINE uint32_t few_weight(const Short<kind, rounds> &s, Entry e) {
  return select_weight(short_place(s, value_of_bits<kind>(bits_of_key<kind>(entry_key(e)))));
}

// What this lane's entries above `limit` weigh.
template <int kind, int rounds, class Entry>
INLINE uint64_t few_above(const Short<kind, rounds> &s, const FewList<Entry> &list, Entry limit) {
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
INLINE void draw_few(const SampleParams &p, const Short<kind, rounds> &s, const FewList<Entry> &list, uint64_t row, uint64_t stream) {
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
  uint32_t low = key_below(s, (uint32_t)p.k, top);
  FewList<Entry> list = {(Entry *)held + (threadIdx.x >> p.lane_bits) * (p.n | 1)};
  int count = list_above(s, word_of_key<kind>(low), list.at), each = (count + s.lanes - 1) >> p.lane_bits;
  list.begin = min(s.lane * each, count), list.end = min(list.begin + each, count);
  if (__any_sync(~0u, count > p.k)) {
    drop_equals(s, list, low + 1, count - (int)p.k);
    __syncwarp();
  }
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
