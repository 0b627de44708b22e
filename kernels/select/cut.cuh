// The k largest elements of a short row, which is in registers (rounds.cuh), as a list in shared memory in order of the columns.
//
// The k-th largest is searched by guesses: each turn counts the elements above a value, two at a time, and the search is over as soon as these are k or
// one more. NaN, which is also what is beside the row, and -infinity are not listed.
#ifndef SOL_KERNELS_SELECT_CUT_CUH
#define SOL_KERNELS_SELECT_CUT_CUH

#include "key.cuh"
#include "rounds.cuh"
#include "select.h"

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

// A key that k elements are above, or one more, as `count` says; more only where the last of them are equal, and fewer where there are no more.
typedef struct CutKey {
  uint32_t low, count;
} CutKey;

// Where the k-th largest would be if elements had the mean and the deviation of a few of them (host: normal_cut in src/ops/sample.c), and by how
// much it moves for each element that is missing. Where that is not a number: some way below the largest.
template <int kind, class S> INLINE float guess_cut(const SampleParams &p, const S &s, float top, float *apart) {
  float f[8], sum = 0, squares = 0, probe = __uint_as_float(0x7fc00000);
  if (s.used > 2) { // the second round is the row's in all lanes
    widen(&s.v[1], kind, S::size, f);
#pragma unroll
    for (int i = 0; i < S::per; i++) sum += f[i], squares += f[i] * f[i];
#pragma unroll 1
    for (int o = s.lanes / 2; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o), squares += __shfl_xor_sync(~0u, squares, o);
    float of = __fdividef(1, (float)(s.lanes * S::per)), mean = sum * of, deviation = sqrtf(fmaxf(squares * of - mean * mean, 0));
    probe = mean + p.cut * deviation, *apart = p.cut_apart * deviation;
  }
  if (!(fabsf(probe) <= 0x1.fffffep127f)) probe = top - 4, *apart = 4 / (float)p.k;
  return probe;
}

// The search: from a guess on by steps until it is between two keys, then by the counts of both. Either may leave values much less than their distances, so after some turns keys are
// halved in turn with that. `high`: the key of the largest.
template <int kind, class S> INLINE CutKey key_below(const SampleParams &p, const S &s, float top, uint32_t high) {
  enum { GUESSES = 8 };
  const uint32_t shares = mask_shares(s.lanes), k = (uint32_t)p.k;
  CutKey cut = {lowest_key<kind>(), 0};
  uint32_t at_high = 0;
  float upper = top, lower = 0, apart, probe = guess_cut<kind>(p, s, top, &apart);
  bool stepped = false; // `high` is no longer that of the largest
#pragma unroll 1
  for (int turn = 0; __any_sync(~0u, high - cut.low > 1); turn++) {
    uint32_t middle = key_of_value<kind>(probe);
    if (turn > GUESSES && turn % 2) middle = cut.low + (high - cut.low) / 2;
    middle = max(cut.low + 1, min(middle, high - 1));
    uint32_t count = count_above_key<kind>(s, shares, middle);
    if (high - cut.low <= 1) continue; // other rows of the warp
    float value = value_of_key<kind>(middle), missing = (float)(k + 1) - (float)count;
    if (count - k <= 1) high = middle + 1;
    if (count >= k) cut.low = middle, lower = value, cut.count = count;
    else high = middle, upper = value, at_high = count, stepped = true;
    if (cut.count && stepped) probe = upper + (lower - upper) * __fdividef((float)(k + 1 - at_high), (float)(cut.count - at_high));
    else probe = value - missing * apart, apart *= 2;
  }
  return cut;
}

// ---- The list

// Elements of a chunk that are above a word, as bits.
template <int kind> INLINE uint32_t chunk_above(const Vec &v, uint32_t word) {
  uint32_t found = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) found |= word_above<kind, 0>(v.u[j], word, kind == KIND_FP32 ? j : 2 * j);
  return kind == KIND_FP32 ? found : (found | found >> 15) & 0xff;
}

// An element's order above the complement of its column: of two entries the higher is the larger element, of equals that of the lower column.
INLINE void put_entry(uint32_t order, uint32_t complement, int, uint64_t *e) { *e = (uint64_t)order << 32 | complement; }
INLINE void put_entry(uint32_t orders, uint32_t complement, int second, uint32_t *e) { *e = __byte_perm(orders, complement, second ? 0x3254 : 0x1054); }

// The row's elements above `key` in order of the columns; how many they are. Places are counted for three rounds in a word.
template <int kind, class S, class Entry> INLINE int list_above(const S &s, uint32_t key, Entry *list) {
  enum { FIELD = 10, MOST = (1 << FIELD) - 1, of_word = S::per / 4 };
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
      Entry *at = list + to + (before >> (t - r) * FIELD & MOST);
      const uint32_t complement = ~(uint32_t)column_of(s, t);
      if (t < s.used)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          uint32_t orders = order_word<kind>(s.v[t].u[j]);
#pragma unroll
          for (int i = j * of_word; i < (j + 1) * of_word; i++)
            if (found[t] >> i & 1) put_entry(orders, complement - i, i % of_word, at++);
        }
      to += whole >> (t - r) * FIELD & MOST;
    }
  }
  __syncwarp();
  return (int)to;
}

// Of the elements with the key `last` those of the highest columns, `surplus` of them, become NaN. Rows of many equal elements are not worth a fast way.
template <int kind, class S> INLINE void drop_equals(S &s, uint32_t last, int surplus) {
  const uint32_t below = word_below<kind, 0>(last), above = word_below<kind, 0>(last + 1);
  auto equal_of = [&](int r) { return r < s.used ? chunk_above<kind>(s.v[r], below) & ~chunk_above<kind>(s.v[r], above) : 0; };
  int left = 0; // of those that stay
#pragma unroll
  for (int r = 0; r < S::rounds; r++) left += __popc(equal_of(r));
  left = (int)row_count(s, (uint32_t)left, 1) - surplus;
#pragma unroll
  for (int r = 0; r < S::rounds; r++) {
    uint32_t equal = equal_of(r);
    int mine = __popc(equal), before = row_before(s.lanes, s.lane, mine);
#pragma unroll
    for (int i = 0; i < S::per; i++) {
      uint32_t all = kind == KIND_FP32 ? ~0u : i % 2 ? 0xffff0000u : 0xffffu;
      if (equal >> i & 1 && before++ >= left) s.v[r].u[i * S::size / 4] |= all;
    }
    left -= __shfl_sync(~0u, before, threadIdx.x | (s.lanes - 1));
  }
}

#endif
