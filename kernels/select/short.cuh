// A random element of a short row, held in registers (rounds.cuh): what is beside the row is NaN, which is never chosen.
#ifndef SOL_KERNELS_SELECT_SHORT_CUH
#define SOL_KERNELS_SELECT_SHORT_CUH

#include "rounds.cuh"
#include "weigh.cuh"

template <int kind, int rounds_> struct Short : Rounds<kind == KIND_FP32 ? 4 : 2, rounds_> {
  SelectScale scale;
};

INLINE uint32_t row_mask(int lanes) { // lanes of this one's row
  uint32_t own = lanes == 32 ? ~0u : (1u << lanes) - 1;
  return own << (threadIdx.x & 31 & -lanes);
}
template <class T> INLINE T row_sum(int lanes, T v) {
#pragma unroll 1
  for (int o = lanes / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
INLINE uint32_t row_most(int lanes, uint32_t v) {
#pragma unroll 1
  for (int o = lanes / 2; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));
  return v;
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

// The chunk of a round that is known at run time.
template <int kind, int rounds> INLINE Vec chunk_of(const Short<kind, rounds> &s, int round) {
  Vec v = s.v[0];
#pragma unroll
  for (int r = 1; r < rounds; r++)
    if (r == round) v = s.v[r];
  return v;
}

// ---- The largest elements

// Bits of the elements of a chunk that have a key of at least `key`: one each, first elements of words, then second ones.
template <int kind> INLINE uint32_t chunk_from(const Vec &v, uint32_t key) {
  uint32_t below = word_below<kind, 0>(key), found = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) found |= word_above<kind, 0>(v.u[j], below) << j;
  return found;
}
// The column in a chunk of such a bit.
template <int kind> INLINE int bit_column(int bit) { return kind == KIND_FP32 ? bit : (bit & 15) * 2 + (bit >> 4); }

// Those bits in the order of the columns: which one is the first, and without it.
template <int kind> INLINE int first_bit(uint32_t found) {
  int first = __ffs(found & 0xffff) - 1, second = __ffs(found >> 16) - 1;
  return first >= 0 && (second < 0 || first <= second) ? first : 16 + second;
}

// How many elements of the row have a key of at least `key`.
template <int kind, int rounds> INLINE uint32_t count_from(const Short<kind, rounds> &s, uint32_t key) {
  uint32_t below = word_below<kind, 0>(key), all = 0;
#pragma unroll
  for (int r = 0; r < rounds; r++)
    if (r < s.used)
#pragma unroll
      for (int j = 0; j < 4; j++) all += mask_above<kind>(s.v[r].u[j], below);
  return row_sum(s.lanes, count_masks<kind>(all));
}

// The column of the equal element number `rank`, from 1 on, among those with that key.
template <int kind, int rounds> INLINE int equal_column(const Short<kind, rounds> &s, uint32_t key, uint32_t rank) {
  auto equals = [&](const Vec &v) { return chunk_from<kind>(v, key) & ~chunk_from<kind>(v, key + 1); };
  uint32_t count[(rounds + 2) / 3] = {}, mine = 0;
  int round = 0;
  bool done = false;
#pragma unroll
  for (int r = 0; r < rounds; r++)
    if (r < s.used) count[r / 3] |= __popc(equals(s.v[r])) << r % 3 * 10;
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    if (r >= s.used) continue;
    if (r % 3 == 0) mine = row_sum(s.lanes, count[r / 3]);
    uint32_t here = mine >> r % 3 * 10 & 1023;
    done |= rank <= here;
    if (!done) rank -= here, round = r + 1;
  }
  uint32_t found = equals(chunk_of(s, round)), before = row_before(s.lanes, s.lane, (uint32_t)__popc(found));
  bool own = before < rank && rank <= before + __popc(found);
  int column = 0;
#pragma unroll 1
  for (; own && before < rank; before++) {
    int bit = first_bit<kind>(found);
    found &= ~(1u << bit), column = column_of(s, round) + bit_column<kind>(bit);
  }
  return (int)row_most(s.lanes, own ? column : 0);
}

template <int kind> INLINE uint32_t key_of_float(float f) {
  return key_of_bits<kind>(kind == KIND_FP32 ? __float_as_uint(f) : narrow_one(f, kind));
}

// What is below a key of the row's becomes -infinity, and of the elements with that key those behind a column.
template <int kind, int rounds> INLINE void drop_below(Short<kind, rounds> &s, uint32_t key, int column) {
  uint32_t below = word_below<kind, 0>(key), right = word_below<kind, 0>(key + 1), lowest = span_lowest(kind);
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    if (r >= s.used) continue;
    int at = column_of(s, r);
    if (at <= column && column < at + s.per - 1)
#pragma unroll
      for (int i = 0; i < s.per; i++)
        if (at + i > column && key_of_bits<kind>(element_bits<kind>(s.v[r], i)) == key) drop_element<kind>(s.v[r], i);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t is = mask_above<kind>(s.v[r].u[j], at > column ? right : below);
      s.v[r].u[j] = (s.v[r].u[j] & is) | (lowest & ~is);
    }
  }
}

// Where the k-th largest of `count` elements above `floor` would be if they were distributed normally, from half of them; how many
// there would be a unit. Only the time depends on it.
typedef struct Guess {
  float at, a_unit;
} Guess;
template <int kind, int rounds> INLINE Guess guess_of(const Short<kind, rounds> &s, float floor, float k, float count) {
  float sum = 0, squares = 0, number = 0, f[8];
#pragma unroll
  for (int r = 0; r < rounds; r += 2) {
    if (r >= s.used) continue;
    widen(&s.v[r], kind, s.size, f);
#pragma unroll
    for (int i = 0; i < s.per; i++)
      if (f[i] > floor) sum += f[i], squares = fmaf(f[i], f[i], squares), number += 1;
  }
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) {
    sum += __shfl_xor_sync(~0u, sum, o), squares += __shfl_xor_sync(~0u, squares, o);
    number += __shfl_xor_sync(~0u, number, o);
  }
  float mean = __fdividef(sum, number), deviation = sqrtf(fmaxf(__fdividef(squares, number) - mean * mean, 0));
  float share = __fdividef(k - 0.5f, count), z = (__powf(1 - share, 0.135f) - __powf(share, 0.135f)) * 5.063f; // Tukey's lambda
  return Guess{mean + z * deviation, __fdividef(0.4f * count * __expf(-0.5f * z * z), deviation)};
}

// Between two keys, of which `from` elements reach the lower and `to` are above the higher: by turns half of the values' distance and where
// the k-th would be if they were evenly distributed; now and then half of the keys'.
template <int kind> INLINE float middle_of(uint32_t low, uint32_t high, int turn, uint32_t from, uint32_t to, uint32_t k) {
  float a = value_of_bits<kind>(bits_of_key<kind>(low)), b = value_of_bits<kind>(bits_of_key<kind>(high));
  if (turn % 8 == 7) return value_of_bits<kind>(bits_of_key<kind>(low + (high - low) / 2));
  return b - (b - a) * (turn & 1 ? __fdividef((float)(k - to), (float)(from - to)) : 0.5f);
}

// Leaves the k largest, where more have any weight; all rows of a warp together.
template <int kind, int rounds> INLINE void cut_short(Short<kind, rounds> &s, uint32_t k, float top) {
  enum { GUESSES = 4 };
  float floor = top - __fdividef(29.0f / 32, s.scale.per);
  uint32_t least = lowest_key<kind>() + 1, low = max(key_of_float<kind>(floor) - 1, least), high = key_of_float<kind>(top);
  uint32_t from = count_from(s, low), to = 0;
  bool cuts = from > k, done = !cuts, raised = false, lowered = false; // a row of nothing but NaN has none
  Guess guess = guess_of(s, floor, (float)k, (float)from);
#pragma unroll 1
  for (int turn = 0;; turn++) {
    done |= low >= high || from == k;
    if (!__any_sync(~0u, !done)) break;
    float x = turn < GUESSES && !(raised && lowered) ? guess.at : middle_of<kind>(low, high, turn, from, to, k);
    uint32_t key = fabsf(x) <= 0x1.fffffep127f ? key_of_float<kind>(x) : low + (high - low) / 2;
    uint32_t middle = done ? high : min(max(key, low + 1), high), count = count_from(s, middle);
    float off = (float)(int)(count - k);
    guess.at += __fdividef(off + copysignf(1.5f * (float)(turn + 1), off), guess.a_unit); // somewhat beyond it, to have both sides
    if (done) continue;
    if (count >= k) low = middle, from = count, raised = true;
    else high = middle - 1, to = count, lowered = true;
  }
  bool some = cuts && from > k; // of the equal ones
  int column = __any_sync(~0u, some) ? equal_column(s, low, some ? k - to : 1) : 0;
  drop_below(s, cuts ? low : least, some ? column : INT32_MAX - s.per);
}

// ---- Draws (weight.h)

// Sums of this lane's chunks, of rounds and of the row; where in them a random number falls.
template <int rounds> struct Sums {
  uint32_t of[rounds];
  uint64_t round[rounds], whole;
};
typedef struct Spot {
  int round; // -1: not in a chunk of this lane
  uint32_t rest;
} Spot;

template <class S, int rounds> INLINE void join_sums(const S &s, Sums<rounds> &sums) {
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

template <class S, int rounds> INLINE Spot find_chunk(const S &s, const Sums<rounds> &sums, uint64_t wanted) {
  int round = 0;
  uint64_t before = 0, upto = 0;
  uint32_t mine = sums.of[0];
#pragma unroll
  for (int r = 0; r < rounds - 1; r++) {
    upto += sums.round[r];
    if (wanted >= upto) round = r + 1, before = upto, mine = sums.of[r + 1];
  }
  wanted -= before + row_before(s.lanes, s.lane, (uint64_t)mine);
  return Spot{wanted < mine ? round : -1, (uint32_t)wanted}; // less than 0, too
}

template <int kind, int rounds> INLINE float short_place(const Short<kind, rounds> &s, float x) {
  SelectScale scale = s.scale;
  if (kind != KIND_FP32) scale.shift = 0;
  return select_place(x, scale);
}

// The elements of a chunk down to a cut, as bits; `column`: the first one's.
template <int kind> INLINE uint32_t kept_of(const Vec &v, Cut cut, int column) {
  const int per = kind == KIND_FP32 ? 4 : 8;
  float f[8], above = column <= cut.column ? right_below(cut.value) : cut.value;
  uint32_t kept = 0;
  widen(&v, kind, 16 / per, f);
#pragma unroll
  for (int i = 0; i < per; i++) kept |= f[i] > above ? 1u << i : 0;
  if (column <= cut.column && cut.column < column + per - 1)
#pragma unroll
    for (int i = 0; i < per; i++)
      if (column + i > cut.column && f[i] == cut.value) kept &= ~(1u << i);
  return kept;
}

// The hulls of a chunk's weights.
template <int kind, int rounds> INLINE void chunk_hulls(const Short<kind, rounds> &s, const Vec &v, uint32_t *hull) {
  float f[8];
  widen(&v, kind, s.size, f);
#pragma unroll
  for (int i = 0; i < s.per; i++) hull[i] = select_hull(short_place(s, f[i]));
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
template <int kind> INLINE float value_at(const Vec &v, int i) {
  const int per = kind == KIND_FP32 ? 4 : 8;
  float f[8], x = 0;
  widen(&v, kind, 16 / per, f);
#pragma unroll
  for (int j = 0; j < per; j++)
    if (j == i) x = f[j];
  return x;
}

template <int kind, int rounds>
INLINE void draw_hulls(const SampleParams &p, const Short<kind, rounds> &s, uint64_t row, uint64_t stream) {
  Sums<rounds> sums;
  uint32_t hull[8];
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    sums.of[r] = 0;
    if (r >= s.used) continue;
    chunk_hulls(s, s.v[r], hull);
#pragma unroll
    for (int i = 0; i < s.per; i++) sums.of[r] += hull[i];
  }
  join_sums(s, sums);
  bool done = !sums.whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = 0; __any_sync(~0u, !done); trial++) {
    Spot spot = find_chunk(s, sums, __umul64hi(select_random(stream, trial), sums.whole));
    Vec v = chunk_of(s, spot.round);
    chunk_hulls(s, v, hull);
    int at = find_element<Short<kind, rounds>::per>(hull, &spot.rest);
    bool taken = !done && spot.round >= 0 && spot.rest < select_weight(short_place(s, value_at<kind>(v, at)));
    if (taken) put_id(p, row, column_of(s, spot.round) + at);
    done |= (__ballot_sync(~0u, taken) & row_mask(s.lanes)) != 0;
  }
}

// A chunk of the lane's weights, of a round that is known at run time.
template <int per, int rounds> INLINE void weights_of(const uint32_t (&weight)[rounds * per], int round, uint32_t *chunk) {
#pragma unroll
  for (int i = 0; i < per; i++) {
    chunk[i] = weight[i];
#pragma unroll
    for (int r = 1; r < rounds; r++)
      if (r == round) chunk[i] = weight[r * per + i];
  }
}

// With top_p: the weights stay in registers.
template <int kind, int rounds>
INLINE void draw_weights(const SampleParams &p, const Short<kind, rounds> &s, uint64_t row, uint64_t stream) {
  enum { per = Short<kind, rounds>::per };
  uint32_t weight[rounds * per], chunk[8];
  Sums<rounds> sums;
  float f[8];
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    sums.of[r] = 0;
    if (r >= s.used) continue;
    widen(&s.v[r], kind, s.size, f);
#pragma unroll
    for (int i = 0; i < per; i++) sums.of[r] += weight[r * per + i] = select_weight(short_place(s, f[i]));
  }
  join_sums(s, sums);
  uint64_t target = target_of(p, sums.whole);
  bool done = !sums.whole;
  if (done && s.n && s.lane == 0) put_id(p, row, -1); // nothing but NaN
  Cut cut = {-0x1.fffffep127f, INT32_MAX};
#pragma unroll 1
  for (uint32_t trial = 0; __any_sync(~0u, !done); trial++) {
    Spot spot = find_chunk(s, sums, __umul64hi(select_random(stream, trial), sums.whole));
    Vec v = chunk_of(s, spot.round);
    weights_of<per, rounds>(weight, spot.round, chunk);
    uint32_t left = kept_of<kind>(v, cut, column_of(s, spot.round)), equal = 0;
#pragma unroll
    for (int i = 0; i < per; i++)
      if (!(left >> i & 1)) chunk[i] = 0;
    int at = find_element<per>(chunk, &spot.rest);
    uint32_t owner = __ballot_sync(~0u, spot.round >= 0) & row_mask(s.lanes);
    int from = owner ? __ffs(owner) - 1 : 0;
    float value = value_at<kind>(v, at);
    cut.value = __shfl_sync(~0u, value, from), cut.column = __shfl_sync(~0u, column_of(s, spot.round) + at, from) - 1;
    widen(&v, kind, s.size, f);
#pragma unroll
    for (int i = 0; i < per; i++)
      if (i < at && f[i] == value) equal += chunk[i];
#pragma unroll
    for (int r = 0; r < rounds; r++) { // what is before it; of equals those of lower columns
      sums.of[r] = r == spot.round ? equal : 0;
      if (r >= s.used) continue;
      float above = column_of(s, r) + per - 1 <= cut.column ? right_below(cut.value) : cut.value;
      widen(&s.v[r], kind, s.size, f);
#pragma unroll
      for (int i = 0; i < per; i++)
        if (f[i] > above) sums.of[r] += weight[r * per + i];
    }
    join_sums(s, sums);
    if (!done && sums.whole < target) {
      done = true;
      if (s.lane == 0) put_id(p, row, cut.column + 1);
    }
  }
}

// The first element equal to the largest; -1 where there is none.
template <int kind, int rounds> INLINE int first_short(const Short<kind, rounds> &s, float top) {
  uint32_t first = ~0u, key = key_of_float<kind>(top);
#pragma unroll
  for (int r = rounds - 1; r >= 0; r--) {
    uint32_t found = r < s.used ? chunk_from<kind>(s.v[r], key) : 0;
    if (found) first = column_of(s, r) + bit_column<kind>(first_bit<kind>(found));
  }
  return (int)~row_most(s.lanes, ~first);
}

template <int kind, int rounds, bool share, bool cuts> INLINE void sample_short(const SampleParams &p) {
  Short<kind, rounds> s;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  uint64_t row = (block * blockDim.x + threadIdx.x) >> p.lane_bits;
  bool there = row < p.m;
  s.lanes = 1 << p.lane_bits, s.lane = threadIdx.x & (s.lanes - 1), s.used = p.rounds;
  load_rounds(s, p.x, p.x_stride, p.m, (int)p.n, row, ~0u);
  uint64_t stream = select_stream(there ? (uint64_t)p.seeds[row] : 0, p.step);
  float top = top_of(s);
  bool equal = !(fabsf(top) <= 0x1.fffffep127f) || (kind != KIND_FP32 && fabsf(top * p.per) > SELECT_FURTHEST);
  if (__any_sync(~0u, equal && there)) {
    Short<kind, rounds> other = s;
    keep_equal(other, top);
#pragma unroll
    for (int r = 0; r < rounds; r++)
      if (equal) s.v[r] = other.v[r];
    if (equal && top == top) top = 0;
  }
  s.scale = select_scale(top, p.per);
  if (p.k == 1) {
    int column = first_short(s, top);
    if (there && s.lane == 0) put_id(p, row, column);
    return;
  }
  if (cuts) cut_short(s, (uint32_t)p.k, top);
  if (share) draw_weights(p, s, row, stream);
  else draw_hulls(p, s, row, stream);
}

// Those without a top_k are kernels of their own, which take fewer registers.
#define SHORT_KERNEL(kind, rounds, share, cuts, name, blocks)                                                \
  KERNEL __launch_bounds__(128, blocks) sol_short_##kind##_##name(const __grid_constant__ SampleParams p) {  \
    begin_kernel();                                                                                          \
    sample_short<KIND_##kind, rounds, share, cuts>(p);                                                       \
  }
#define SHORT_KERNELS(kind, of_share, blocks)                                                                \
  SHORT_KERNEL(kind, SHORT_ROUNDS, false, false, hulls, 5)                                                   \
  SHORT_KERNEL(kind, of_share, true, false, weights, blocks)                                                 \
  SHORT_KERNEL(kind, SHORT_ROUNDS, false, true, hulls_cut, 4)                                                \
  SHORT_KERNEL(kind, of_share, true, true, weights_cut, 3)
SHORT_KERNELS(FP32, SHORT_ROUNDS, 4)
SHORT_KERNELS(FP16, SHORT_FEW, 3)
SHORT_KERNELS(BF16, SHORT_FEW, 4)

#endif
