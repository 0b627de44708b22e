// A random element of a short row, held in registers (rounds.cuh): what is beside the row is NaN, which is never chosen.
#ifndef SOL_KERNELS_SELECT_SHORT_CUH
#define SOL_KERNELS_SELECT_SHORT_CUH

#include "coarse.cuh"
#include "cut.cuh"
#include "staged.cuh"
#include "weigh.cuh"

template <int kind, int rounds_> struct Short : Rounds<kind == KIND_FP32 ? 4 : 2, rounds_> {
  SelectScale scale;
};

// ---- The row

template <int kind, int rounds> INLINE float top_of(const Short<kind, rounds> &s) {
  uint32_t word = ~0u;
#pragma unroll
  for (int r = 0; r < rounds; r++)
    if (r < s.used) word = larger_word<kind, 0>(word, chunk_word<kind>(s.v[r]));
  float top = word_top<kind>(word);
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  return top;
}

// A row of which only the elements equal to the largest have any weight, that being infinite or very large: these become 0 and
// all others -infinity.
template <int kind, int rounds> INLINE void keep_equal(Short<kind, rounds> &s, float top) {
#pragma unroll
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (kind == KIND_FP32) {
        s.v[r].u[j] = __uint_as_float(s.v[r].u[j]) == top ? 0 : span_lowest(kind);
      } else {
        float2 two = widen2(s.v[r].u[j], kind);
        s.v[r].u[j] = (two.x == top ? 0 : span_lowest(kind) & 0xffff) | (two.y == top ? 0 : span_lowest(kind) & 0xffff0000u);
      }
    }
}

// Which lanes of a row vote for it.
template <int kind, int rounds> INLINE uint32_t row_vote(const Short<kind, rounds> &s, bool vote) {
  return s.lanes == 1 ? (uint32_t)vote << threadIdx.x % 32 : __ballot_sync(~0u, vote) & row_mask(s.lanes);
}

// The chunk of a round that is known at run time.
template <int kind, int rounds> INLINE Vec chunk_of(const Short<kind, rounds> &s, int round) {
  Vec v = s.v[0];
#pragma unroll
  for (int r = 1; r < rounds; r++)
    if (r == round) v = s.v[r];
  return v;
}

// ---- Draws (weight.h)

// Sums of this lane's chunks, of rounds and of the row; where in them a random number falls.
template <int rounds, class Sum> struct Sums {
  uint32_t of[rounds];
  Sum round[rounds], whole; // of hulls 32 bits are enough
};
typedef struct Spot {
  int round; // -1: not in a chunk of this lane
  uint32_t rest;
} Spot;

template <class S, int rounds, class Sum> INLINE void join_sums(const S &s, Sums<rounds, Sum> &sums) {
#pragma unroll
  for (int r = 0; r < rounds; r++) sums.round[r] = sums.of[r];
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1)
#pragma unroll
    for (int r = 0; r < rounds; r++) sums.round[r] += __shfl_xor_sync(~0u, sums.round[r], o);
  sums.whole = 0;
#pragma unroll
  for (int r = 0; r < rounds; r++) sums.whole += sums.round[r];
}

template <class S, int rounds, class Sum> INLINE Spot find_chunk(const S &s, const Sums<rounds, Sum> &sums, Sum wanted) {
  int round = 0;
  Sum before = 0, upto = 0;
  uint32_t mine = sums.of[0];
#pragma unroll
  for (int r = 0; r < rounds - 1; r++) {
    upto += sums.round[r];
    if (wanted >= upto) round = r + 1, before = upto, mine = sums.of[r + 1];
  }
  wanted -= before + row_before(s.lanes, s.lane, (Sum)mine);
  return Spot{wanted < mine ? round : -1, (uint32_t)wanted}; // less than 0, too
}

template <int kind, int rounds> INLINE float short_place(const Short<kind, rounds> &s, float x) {
  SelectScale scale = s.scale;
  if (kind != KIND_FP32) scale.shift = 0;
  return select_place(x, scale);
}

// The hulls of a chunk's weights, of fp32.
template <bool cuts, int kind, int rounds>
INLINE void chunk_hulls(const Short<kind, rounds> &s, const Vec &v, uint32_t low, uint32_t *hull) {
#pragma unroll
  for (int i = 0; i < s.per; i++) {
    hull[i] = select_hull(short_place(s, v.f[i]));
    if (cuts) hull[i] &= mask_above<kind, 0>(v.u[i], low);
  }
}

// The element on which the rest of a random number falls.
template <int per> INLINE int find_element(const uint32_t *weight, uint32_t *rest) {
  int at = 0;
  uint32_t upto = 0, before = 0;
#pragma unroll
  for (int i = 0; i < per; i++) {
    upto += weight[i];
    if (upto <= *rest) at = i + 1, before = upto;
  }
  *rest -= before;
  return at;
}
template <int kind> INLINE float value_at(const Vec &v, int i) { return value_of_bits<kind>(bits_at<kind>(v, i)); }

// How many elements of the row come before element `at` of a chunk of the lane that is its `owner`, a lane of the warp: larger ones, and
// equal ones of lower columns.
template <int kind, int rounds>
INLINE uint32_t count_before(const Short<kind, rounds> &s, int owner, const Vec &v, int round, int at) {
  const int per = s.per;
  uint32_t bits = 0, all = 0, equal = 0;
#pragma unroll
  for (int i = 0; i < per; i++)
    if (i == at) bits = element_bits<kind>(v, i);
  bits = __shfl_sync(~0u, bits, owner);
  int column = __shfl_sync(~0u, column_of(s, round) + at, owner);
  uint32_t word = kind == KIND_FP32 ? bits : bits * 0x10001u, below = word_below<kind, 0>(key_of_bits<kind>(bits));
  if (threadIdx.x % 32 == owner)
#pragma unroll
    for (int i = 0; i < per; i++) equal += i < at && key_of_bits<kind>(element_bits<kind>(v, i)) == key_of_bits<kind>(bits);
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    if (r >= s.used) continue;
    uint32_t beyond = column_of(s, r) + per <= column ? below : word;
#pragma unroll
    for (int j = 0; j < 4; j++) all += mask_above<kind, 0>(s.v[r].u[j], beyond);
  }
  uint32_t count = count_masks<kind>(all) + equal;
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) count += __shfl_xor_sync(~0u, count, o);
  return count;
}

// Rounds that are summed, several at a time.
template <int rounds> INLINE int whole_turns(int used) { return min((used + SHORT_TURN - 1) / SHORT_TURN * SHORT_TURN, rounds); }

// What is right below the rough cut of the p.k largest (weight.h), in a word.
template <int kind, int rounds> INLINE uint32_t below_cut(const SampleParams &p, const Short<kind, rounds> &s, float top) {
  uint32_t low = span_lowest(kind);
  int none = 0, many = 1 << SELECT_HALVINGS; // parts that fewer than k elements do not exceed, and that more do not
#pragma unroll 1
  for (int i = 0; i < SELECT_HALVINGS; i++) {
    int part = (none + many) / 2;
    float cut = select_cut(top, p.depth, part);
    uint32_t bits = kind == KIND_FP32 ? __float_as_uint(cut) : narrow_one(kind == KIND_FP16 ? fmaxf(cut, -65504.0f) : cut, kind);
    uint32_t here = word_below<kind, 0>(key_of_bits<kind>(bits)), all = 0;
#pragma unroll
    for (int r = 0; r < rounds; r++)
      if (r < s.used)
#pragma unroll
        for (int j = 0; j < 4; j++) all += mask_above<kind, 0>(s.v[r].u[j], here);
    uint32_t count = count_masks<kind>(all);
#pragma unroll 1
    for (int o = s.lanes / 2; o; o >>= 1) count += __shfl_xor_sync(~0u, count, o);
    if (count >= (uint32_t)p.k) many = part, low = here;
    else none = part;
  }
  return low;
}

template <bool cuts, int kind> INLINE Vec coarse_chunk(const Vec &v, const Coarse &coarse, uint32_t low) {
  Vec hulls;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    hulls.u[j] = coarse_word<kind>(v.u[j], coarse);
    if (cuts) hulls.u[j] &= mask_above<kind, 0>(v.u[j], low);
  }
  return hulls;
}

// The trials that are made: of number `first` and up to `end`.
typedef struct Trials {
  uint32_t first, end;
} Trials;
#define ALL_TRIALS \
  Trials { 0, ~0u }

// Coarse hulls of elements of 16 bits; whether this thread's row is done. What is beside the row has the least of them, and is there as if it were elements before and after the row's; with
// a cut it has none.
template <bool cuts, int kind, int rounds>
INLINE bool draw_coarse(const SampleParams &p, const Short<kind, rounds> &s, float top, uint64_t row, uint64_t stream, Trials trials) {
  uint32_t sums[rounds], own, sum = 0; // of rounds
  const uint32_t shares = coarse_shares(s.lanes), low = cuts ? below_cut(p, s, top) : 0;
  const Coarse coarse = coarse_of<kind>(top, p.steps);
  uint64_t random = select_random(stream, trials.first); // in time: what follows is one chain of dependent instructions
#pragma unroll
  for (int r = 0; r < rounds; r += SHORT_TURN) {
#pragma unroll
    for (int t = r; t < r + SHORT_TURN && t < rounds; t++) sums[t] = 0;
    if (r >= s.used) continue;
#pragma unroll
    for (int t = r; t < r + SHORT_TURN && t < rounds; t++) // several at a time, so that one need not wait for the other
      sum_coarse(coarse_chunk<cuts, kind>(s.v[t], coarse, low), shares, s.lanes, &own, &sums[t]);
  }
#pragma unroll 1
  for (int o = 4; o < s.lanes; o *= 2)
#pragma unroll
    for (int r = 0; r < rounds; r++) sums[r] += __shfl_xor_sync(~0u, sums[r], o);
#pragma unroll
  for (int r = 0; r < rounds; r++) sum += sums[r];
  const int before = cuts ? 0 : s.lane * s.per - s.first, beside = cuts ? 0 : whole_turns<rounds>(s.used) * s.lanes * s.per - (int)p.n;
  sum -= (uint32_t)beside * SELECT_FLOOR;
  bool done = !s.n || top != top;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = trials.first; trial != trials.end && __any_sync(~0u, !done); random = select_random(stream, ++trial)) {
    uint32_t wanted = (uint32_t)__umul64hi(random, sum) + (uint32_t)before * SELECT_FLOOR, upto = 0, less = 0;
    int round = 0;
#pragma unroll
    for (int r = 0; r < rounds - 1; r++) {
      upto += sums[r];
      if (wanted >= upto) round = r + 1, less = upto;
    }
    Vec v = chunk_of(s, round), hulls = coarse_chunk<cuts, kind>(v, coarse, low);
    own = ~0u; // one lane has all of the row
    if (s.lanes > 1) sum_coarse(hulls, shares, s.lanes, &own, &upto);
    uint32_t rest = wanted - less - row_before(s.lanes, s.lane, own);
    bool mine = rest < own; // less than 0, too, is not
    int at = find_coarse(hulls, &rest);
    bool taken = !done && mine && select_takes(value_at<kind>(v, at), top, p.per, kind == KIND_BF16, rest, random);
    uint32_t by = row_vote(s, taken);
    if (cuts && count_before(s, by ? __ffs(by) - 1 : 0, v, round, at) >= (uint32_t)p.k) taken = by = 0;
    if (taken) put_id(p, row, column_of(s, round) + at);
    done |= by != 0;
  }
  return done;
}

// Hulls of fp32; whether this thread's row is done. cuts: of the p.k largest.
template <bool cuts, int kind, int rounds>
INLINE bool draw_hulls(const SampleParams &p, const Short<kind, rounds> &s, float top, uint64_t row, uint64_t stream, Trials trials) {
  Sums<rounds, uint32_t> sums;
  const uint32_t low = cuts ? below_cut(p, s, top) : 0;
  uint32_t hull[8];
  uint64_t random = select_random(stream, trials.first);
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    sums.of[r] = 0;
    if (r >= s.used) continue;
    chunk_hulls<cuts>(s, s.v[r], low, hull);
#pragma unroll
    for (int i = 0; i < s.per; i++) sums.of[r] += hull[i];
  }
  join_sums(s, sums);
  bool done = !s.n || !sums.whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = trials.first; trial != trials.end && __any_sync(~0u, !done); random = select_random(stream, ++trial)) {
    Spot spot = find_chunk(s, sums, (uint32_t)__umul64hi(random, sums.whole));
    Vec v = chunk_of(s, spot.round);
    chunk_hulls<cuts>(s, v, low, hull);
    int at = find_element<Short<kind, rounds>::per>(hull, &spot.rest);
    bool taken = !done && spot.round >= 0 && spot.rest < select_hulled(short_place(s, value_at<kind>(v, at)));
    uint32_t by = row_vote(s, taken);
    if (cuts && count_before(s, by ? __ffs(by) - 1 : 0, v, spot.round, at) >= (uint32_t)p.k) taken = by = 0;
    if (taken) put_id(p, row, column_of(s, spot.round) + at);
    done |= by != 0;
  }
  return done;
}

// A chunk's weights in shared memory, where each thread has its own.
template <int per> INLINE void put_weights(int round, const uint32_t *weight) {
#pragma unroll
  for (int i = 0; i < per; i += 4)
    held[(round * per + i) / 4 * SHORT_THREADS + threadIdx.x] = make_uint4(weight[i], weight[i + 1], weight[i + 2], weight[i + 3]);
}
template <int per> INLINE void take_weights(int round, uint32_t *weight) {
#pragma unroll
  for (int i = 0; i < per; i += 4) {
    uint4 v = held[(round * per + i) / 4 * SHORT_THREADS + threadIdx.x];
    weight[i] = v.x, weight[i + 1] = v.y, weight[i + 2] = v.z, weight[i + 3] = v.w;
  }
}

// Of the elements of a chunk only those above `low` keep their weights.
template <int kind> INLINE void weights_above(const Vec &v, uint32_t low, uint32_t *weight) {
  const int of_word = kind == KIND_FP32 ? 1 : 2;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    uint32_t *w = weight + j * of_word;
#if __CUDA_ARCH__ >= 900
    if (kind == KIND_FP16)
      asm("{ .reg .pred p, q; setp.gt.f16x2 p|q, %2, %3; selp.b32 %0, %0, 0, p; selp.b32 %1, %1, 0, q; }"
          : "+r"(w[0]), "+r"(w[of_word - 1])
          : "r"(v.u[j]), "r"(low));
    else if (kind == KIND_BF16)
      asm("{ .reg .pred p, q; setp.gt.bf16x2 p|q, %2, %3; selp.b32 %0, %0, 0, p; selp.b32 %1, %1, 0, q; }"
          : "+r"(w[0]), "+r"(w[of_word - 1])
          : "r"(v.u[j]), "r"(low));
    else if (!(v.f[j] > __uint_as_float(low))) w[0] = 0;
#else
    uint32_t above = mask_above<kind, 0>(v.u[j], low);
    if (!(above & 1)) w[0] = 0;
    if (!(above >> 31)) w[of_word - 1] = 0;
#endif
  }
}

// Only elements that come before element `at` of a chunk of the lane that is its `owner` keep their weights: larger ones, and equal ones of lower
// columns. weight: those of the chunk.
template <int kind, int rounds>
INLINE void keep_before(const Short<kind, rounds> &s, int owner, const Vec &v, int round, int at, const uint32_t *weight, Sums<rounds, uint64_t> &sums) {
  const int per = s.per;
  uint32_t own = bits_at<kind>(v, min(at, per - 1)), bits = __shfl_sync(~0u, own, owner), kept[8], equal = 0;
  int column = __shfl_sync(~0u, column_of(s, round) + at, owner);
  const uint32_t word = kind == KIND_FP32 ? bits : bits * 0x10001u, below = word_below<kind, 0>(key_of_bits<kind>(bits));
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    sums.of[r] = 0;
    if (r >= s.used) continue;
    take_weights<per>(r, kept);
    weights_above<kind>(s.v[r], column_of(s, r) + per <= column ? below : word, kept);
    put_weights<per>(r, kept);
#pragma unroll
    for (int i = 0; i < per; i++) sums.of[r] += kept[i];
  }
  if (threadIdx.x % 32 != owner) return;
#pragma unroll
  for (int i = 0; i < per; i++)
    if (i < at && value_of_bits<kind>(element_bits<kind>(v, i)) == value_of_bits<kind>(bits)) equal |= 1u << i;
  if (!equal) return;
  take_weights<per>(round, kept);
  uint32_t more = 0;
#pragma unroll
  for (int i = 0; i < per; i++)
    if (equal >> i & 1) kept[i] = weight[i], more += weight[i];
  put_weights<per>(round, kept);
#pragma unroll
  for (int r = 0; r < rounds; r++)
    if (r == round) sums.of[r] += more;
}

// With top_p.
template <int kind, int rounds>
INLINE void draw_weights(const SampleParams &p, const Short<kind, rounds> &s, uint64_t row, uint64_t stream) {
  enum { per = Short<kind, rounds>::per };
  uint32_t weight[8];
  Sums<rounds, uint64_t> sums;
  float f[8];
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    sums.of[r] = 0;
    if (r >= s.used) continue;
    widen(&s.v[r], kind, s.size, f);
#pragma unroll
    for (int i = 0; i < per; i++) sums.of[r] += weight[i] = select_weight(short_place(s, f[i]));
    put_weights<per>(r, weight);
  }
  join_sums(s, sums);
  uint64_t target = target_of(p, sums.whole);
  bool done = !sums.whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = 0; __any_sync(~0u, !done); trial++) {
    Spot spot = find_chunk(s, sums, (uint64_t)__umul64hi(select_random(stream, trial), sums.whole));
    int round = max(spot.round, 0);
    take_weights<per>(round, weight);
    int at = find_element<per>(weight, &spot.rest);
    uint32_t owner = __ballot_sync(~0u, spot.round >= 0) & row_mask(s.lanes);
    int from = owner ? __ffs(owner) - 1 : 0, column = __shfl_sync(~0u, column_of(s, round) + at, from);
    keep_before(s, from, chunk_of(s, round), round, at, weight, sums);
    join_sums(s, sums);
    if (!done && sums.whole < target) {
      done = true;
      if (s.lane == 0) put_id(p, row, column);
    }
  }
}

// The largest element of a row that is there, and its scale. weights: see short_row.
template <bool weights, int kind, int rounds> INLINE float scale_row(const SampleParams &p, Short<kind, rounds> &s) {
  float top = top_of(s);
  bool equal = !(fabsf(top) <= 0x1.fffffep127f) || (kind != KIND_FP32 && weights && fabsf(top * p.per) > SELECT_FURTHEST);
  if (equal) {
    keep_equal(s, top);
    if (top == top) top = 0;
  }
  s.scale = select_scale(top, p.per);
  return top;
}

// The row of this thread and its random numbers; the largest element. weights: elements are to be weighed, not their hulls. close: rows are staged.
template <bool weights, bool close, int kind, int rounds>
INLINE float short_row(const SampleParams &p, Short<kind, rounds> &s, uint64_t *row, uint64_t *stream) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  const int lane_bits = close ? 0 : p.lane_bits;
  *row = block * (SHORT_THREADS >> lane_bits) + (threadIdx.x >> lane_bits);
  s.lanes = 1 << lane_bits, s.lane = threadIdx.x & (s.lanes - 1), s.used = p.rounds;
  uint64_t seed = close && *row < p.m ? (uint64_t)p.seeds[*row] : 0; // in flight along with the rows
  if (close) take_staged(s, p, *row, held + threadIdx.x / 32 * p.room, ~0u);
  else load_rounds(s, p.x, p.x_stride, p.m, (int)p.n, *row, ~0u);
  if (kind != KIND_FP32 && !weights)
#pragma unroll
    for (int r = 0; r < rounds; r++)
      if (r % SHORT_TURN && r >= s.used && r < whole_turns<rounds>(s.used)) s.v[r].v = make_uint4(~0u, ~0u, ~0u, ~0u);
  if (!close && *row < p.m) seed = (uint64_t)p.seeds[*row];
  *stream = select_stream(seed, p.step);
  return scale_row<weights>(p, s);
}

template <int kind, int rounds, bool share, bool cuts, bool close> INLINE void sample_short(const SampleParams &p) {
  Short<kind, rounds> s;
  uint64_t row, stream;
  float top = short_row<share, close>(p, s, &row, &stream);
  if (share) draw_weights(p, s, row, stream);
  else if constexpr (kind != KIND_FP32) draw_coarse<cuts>(p, s, top, row, stream, ALL_TRIALS);
  else draw_hulls<cuts>(p, s, top, row, stream, ALL_TRIALS);
}

#define SHORT_KERNEL(kind, rounds, share, cuts, close, name, blocks)                                         \
  KERNEL __launch_bounds__(SHORT_THREADS, blocks) sol_short_##kind##_##name(const __grid_constant__ SampleParams p) {  \
    begin_kernel();                                                                                          \
    sample_short<KIND_##kind, rounds, share, cuts, close>(p);                                                \
  }
// few, many: rounds of the kernels for all elements; theirs, and those between, have registers for 28, 20 and 24 warps of an SM. weighed: of those with a top_p.
// close_...: of rows close to each other, one a thread.
#define SHORT_KERNELS(kind, of_few, of_many, weighed)                                                        \
  SHORT_KERNEL(kind, of_few, false, false, false, few, 7)                                                    \
  SHORT_KERNEL(kind, SHORT_SOME, false, false, false, some, 6)                                               \
  SHORT_KERNEL(kind, of_many, false, false, false, many, 5)                                                  \
  SHORT_KERNEL(kind, SHORT_ROUNDS, false, true, false, cut, 4)                                               \
  SHORT_KERNEL(kind, weighed, true, false, false, weights, 5)                                                \
  SHORT_KERNEL(kind, of_few, false, false, true, close_few, 7)                                               \
  SHORT_KERNEL(kind, of_many, false, false, true, close_many, 5)
SHORT_KERNELS(FP32, SHORT_FEW, SHORT_ROUNDS, SHORT_ROUNDS)
SHORT_KERNELS(FP16, SHORT_LESS, SHORT_MANY, SHORT_LESS)
SHORT_KERNELS(BF16, SHORT_LESS, SHORT_MANY, SHORT_LESS)

#endif
