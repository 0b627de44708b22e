// The k largest elements of a short row, which is in registers (rounds.cuh), as a list in shared memory in order of the columns.
//
// The k-th largest is searched by halving: each turn counts the elements above a value, two at a time, and the search is over as soon as these are k.
// NaN, which is also what is beside the row, and -infinity are not listed.
#ifndef SOL_KERNELS_SELECT_CUT_CUH
#define SOL_KERNELS_SELECT_CUT_CUH

#include "key.cuh"
#include "rounds.cuh"

INLINE uint32_t row_mask(int lanes) { // lanes of this one's row
  uint32_t own = lanes == 32 ? ~0u : (1u << lanes) - 1;
  return own << (threadIdx.x & 31 & -lanes);
}
template <class T> INLINE T row_before(int lanes, int lane, T v) { // the sum of the lanes before this one
  T upto = v;
#pragma unroll 1
  for (int o = 1; o < lanes; o *= 2) {
    T other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto += other;
  }
  return upto - v;
}

// Element i of a chunk, where i is known at run time.
template <int kind> INLINE uint32_t bits_at(const Vec &v, int i) {
  int word = kind == KIND_FP32 ? i : i / 2;
  uint32_t bits = word & 2 ? word & 1 ? v.u[3] : v.u[2] : word & 1 ? v.u[1] : v.u[0];
  return kind == KIND_FP32 ? bits : i % 2 ? bits >> 16 : bits & 0xffff;
}

// The largest element of a chunk that is not NaN; of a word.
template <int kind> INLINE uint32_t chunk_word(const Vec &v) {
  return larger_word<kind, 0>(larger_word<kind, 0>(v.u[0], v.u[1]), larger_word<kind, 0>(v.u[2], v.u[3]));
}
template <int kind> INLINE float word_top(uint32_t word) {
  if (kind == KIND_FP32) return __uint_as_float(word);
  float2 two = widen2(word, kind);
  return fmaxf(two.x, two.y);
}

// ---- The search

template <int kind> INLINE uint32_t key_of_value(float value) { // rounded, and no infinity of what is not one
  if (kind == KIND_FP16) value = fminf(fmaxf(value, -65504.0f), 65504.0f);
  return key_of_bits<kind>(kind == KIND_FP32 ? __float_as_uint(value) : narrow_one(value, kind));
}
template <int kind> INLINE float value_of_key(uint32_t key) { return value_of_bits<kind>(bits_of_key<kind>(key)); }

// Which lanes of four share a row, as bytes of 1: what sum_masks gets.
INLINE uint32_t mask_shares(int lanes) {
  int from = threadIdx.x % 4, to = threadIdx.x / 8 % 4; // `from` adds to columns of `to`
  return ((from ^ to) & -min(lanes, 4)) == 0 ? 0x01010101u : 0;
}

// Adds masks of 16-bit elements, which are two bytes of -1 each, of all lanes of four that share a row: to two sums, by the tensor cores.
INLINE void sum_masks(const uint32_t (&mask)[4], uint32_t shares, int (&sum)[4]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(mask[0]), "r"(mask[1]), "r"(mask[2]), "r"(mask[3]), "r"(shares));
}

// The sum over the lanes of a row, of which those next to each other, `from` of them, have the same.
template <class S> INLINE uint32_t row_count(const S &s, uint32_t count, int from) {
#pragma unroll
  for (int o = 1; o < 32; o *= 2)
    if (o >= from && o < s.lanes) count += __shfl_xor_sync(~0u, count, o);
  return count;
}

// How many elements of the row are above that of a key. shares: mask_shares.
template <int kind, class S> INLINE uint32_t count_above_key(const S &s, uint32_t shares, uint32_t key) {
  const uint32_t word = word_below<kind, 0>(key + 1);
#if __CUDA_ARCH__ >= 800
  if constexpr (kind != KIND_FP32) {
    int sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < S::rounds; r++) {
      uint32_t mask[4];
      if (r >= s.used) continue;
#pragma unroll
      for (int j = 0; j < 4; j++) mask[j] = mask_above<kind, 0>(s.v[r].u[j], word);
      sum_masks(mask, shares, sum);
    }
    return row_count(s, (uint32_t)-(sum[0] + sum[2]) / 2, 4);
  }
#endif
  uint32_t all = 0;
#pragma unroll
  for (int r = 0; r < S::rounds; r++)
    if (r < s.used)
#pragma unroll
      for (int j = 0; j < 4; j++) all += mask_above<kind, 0>(s.v[r].u[j], word);
  return row_count(s, count_masks<kind>(all), 1);
}

// A key that k elements or more are above, more only where the k-th is equal to others; fewer where there are no more. `high`: one that fewer are above, at_high of them.
// First distances are halved, then a guess is made by how many elements are above both ends. Both may leave values much less than their distances, so after some turns keys
// are halved in turn with guesses.
template <int kind, class S> INLINE uint32_t key_below(const S &s, uint32_t k, uint32_t high, uint32_t at_high) {
  enum { HALVINGS = 2, GUESSES = 7 };
  const uint32_t shares = mask_shares(s.lanes);
  uint32_t low = lowest_key<kind>(), at_low = 0; // elements above it; 0: not known
  float upper = value_of_key<kind>(high), lower = 0, probe = upper, depth = 4; // lower: where at_low is known
#pragma unroll 1
  for (int turn = 0; __any_sync(~0u, high - low > 1); turn++) {
    float part = 0.5f;
    if (turn > HALVINGS) part = __fdividef((float)(k - at_high) + 0.5f, (float)(at_low - at_high));
    probe -= depth, depth *= 2;
    uint32_t middle = key_of_value<kind>(at_low ? upper * (1 - part) + lower * part : probe);
    if (turn > HALVINGS + GUESSES && turn % 2) middle = low + (high - low) / 2;
    middle = max(low + 1, min(middle, high - 1));
    uint32_t count = count_above_key<kind>(s, shares, middle);
    if (high - low <= 1) continue; // other rows of the warp
    float value = value_of_key<kind>(middle);
    if (count == k) high = middle + 1;
    if (count >= k) low = middle, lower = value, at_low = count;
    else high = middle, upper = value, at_high = count;
  }
  return low;
}

// ---- The list

// Elements of a chunk that are above a word, as bits.
template <int kind> INLINE uint32_t chunk_above(const Vec &v, uint32_t word) {
  uint32_t found = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) found |= word_above<kind, 0>(v.u[j], word, kind == KIND_FP32 ? j : 2 * j);
  return kind == KIND_FP32 ? found : (found | found >> 15) & 0xff;
}

// The row's elements above `key` in order of the columns; how many they are. Places are counted for three rounds in a word.
template <int kind, class S, class Entry> INLINE int list_above(const S &s, uint32_t key, Entry *list) {
  enum { FIELD = 10, MOST = (1 << FIELD) - 1 };
  const uint32_t word = word_below<kind, 0>(key + 1);
  uint32_t found[S::rounds], to = 0;
#pragma unroll
  for (int r = 0; r < S::rounds; r++) found[r] = r < s.used ? chunk_above<kind>(s.v[r], word) : 0;
#pragma unroll
  for (int r = 0; r < S::rounds; r += 3) {
    if (r >= s.used) continue;
    uint32_t mine = 0;
#pragma unroll
    for (int t = r; t < r + 3 && t < S::rounds; t++) mine |= __popc(found[t]) << (t - r) * FIELD;
    uint32_t before = row_before(s.lanes, s.lane, mine), whole = __shfl_sync(~0u, before + mine, threadIdx.x | (s.lanes - 1));
#pragma unroll
    for (int t = r; t < r + 3 && t < S::rounds; t++) {
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
template <class Entry> struct CutList {
  Entry *at;
  int begin, end;
};
template <class S, class Entry> INLINE CutList<Entry> part_of_list(const S &s, Entry *list, int count) {
  int each = (count + s.lanes - 1) / s.lanes, begin = min(s.lane * each, count);
  return CutList<Entry>{list, begin, min(begin + each, count)};
}

// Where `surplus` more than k are listed, for the k-th is equal to others, whose key is `last`: those of the highest columns become 0.
template <class S, class Entry> INLINE void drop_equals(const S &s, const CutList<Entry> &list, uint32_t last, int surplus) {
  int mine = 0;
  for (int i = list.begin; i < list.end; i++) mine += entry_key(list.at[i]) == last;
  int before = row_before(s.lanes, s.lane, mine), all = __shfl_sync(~0u, before + mine, threadIdx.x | (s.lanes - 1));
  for (int i = list.begin; i < list.end; i++)
    if (surplus > 0 && entry_key(list.at[i]) == last && before++ >= all - surplus) list.at[i] = 0;
  __syncwarp();
}

#endif
