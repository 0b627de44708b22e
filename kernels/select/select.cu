// The k largest elements of a row, and a random one of them.
//
// Where few elements are kept, one pass finds a key that at least k elements reach, a second one collects all that do, and
// the rest is done in a short list. Otherwise (many equal elements, or no top_k) both look for a cut: the key of the last
// element that is kept, and the last column of those equal to it. The key is found by search: each round counts (or weighs)
// what is at or above three keys that divide the range into four. Then the columns of those equal to it are walked in order.
// No sums of floats are compared, so the result does not depend on how a row is divided.
#include "select.h"
#include "weight.h"

#include "elementwise.cuh"
#include "held.cuh"
#include "packed.cuh"

// What a row's threads in one block share. In a cluster the first block's list is the whole row's.
typedef struct SelectShared {
  HeldShared held;
  int next[4]; // of each row: entries of its list
  uint32_t counts[2][32];
} SelectShared;

// The row, and how its elements compare.
typedef struct Select {
  Held h;
  HeldShared *shared;
  int kind, nan_first; // otherwise a NaN comes last
  uint64_t *list;      // entries: keys above, the complements of their columns below
  int room, *next;     // entries it has space for; how many there are
  uint32_t (*counts)[32];
} Select;

typedef struct Cut {
  uint32_t key; // those above it are kept, and of those equal to it the columns up to `last`
  int64_t last;
} Cut;

// What an element counts for: where the cut keeps it 1, 1 if it has this key, or its weight.
enum { COUNT_ALL, COUNT_EQUAL, COUNT_WEIGHT };
typedef struct Measure {
  Cut cut;
  int how;
  uint32_t key;
  float top, per; // weight.h
} Measure;

// There is much code, used in many places: what is called is not inlined.
#define CALLED template <int in> static __device__ __noinline__

// A number for every value, in their order; of 16-bit types 16 or 19 bits. -0 is +0.
template <int in> INLINE uint32_t key_of(const Select &s, float f) {
  uint32_t u = __float_as_uint(f + 0.0f), shift = in == 4 ? 0 : s.kind == KIND_FP16 ? 13 : 16;
  if (f != f) return s.nan_first ? ~0u >> shift : 0;
  return (u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u)) >> shift;
}

// The value of a key that is not a NaN's; +0 for both zeros.
template <int in> INLINE float value_of(const Select &s, uint32_t key) {
  uint32_t shift = in == 4 ? 0 : s.kind == KIND_FP16 ? 13 : 16, u = key << shift;
  return __uint_as_float((u >> 31 ? u ^ 0x80000000u : ~u) & ~0u << shift);
}

INLINE bool is_kept(Cut c, uint32_t key, int64_t column) {
  return key > c.key || (key == c.key && column <= c.last);
}

INLINE uint64_t measure(const Measure &m, float f, uint32_t key, int64_t column) {
  if (!is_kept(m.cut, key, column)) return 0;
  return m.how == COUNT_WEIGHT ? select_weight(f, m.top, m.per) : m.how == COUNT_ALL || key == m.key;
}

CALLED void fold_sums(Select &s, uint64_t *v) { // three of them
  held_fold<3>(s.h, s.shared, v, 0, CountJoin());
}

CALLED uint64_t fold_most(Select &s, uint64_t v) {
  held_fold<1>(s.h, s.shared, &v, 0, MostJoin());
  return v;
}

CALLED uint64_t total_of(Select &s, const Measure &m) {
  uint64_t v[3] = {0, 0, 0};
  held_each(s.h, s.kind, in, [&](float f, int64_t c) { v[0] += measure(m, f, key_of<in>(s, f), c); });
  fold_sums<in>(s, v);
  return v[0];
}

INLINE uint64_t lanes_before(uint64_t v) { // the sum of the lanes before this one
  uint64_t all = v;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint64_t other = __shfl_up_sync(~0u, all, o);
    if (threadIdx.x % 32 >= o) all += other;
  }
  return all - v;
}

INLINE uint64_t warp_total(uint64_t v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// What a lane has of a piece of the row: up to 16 bytes of elements from `column` on.
typedef struct Piece {
  uint4 v;
  int64_t column;
  int count; // of elements, the first of the piece; 0: none
} Piece;

// Of one warp: the column in which what is measured, in order, passes `wanted`, for the one lane that has it; else -1.
// `wanted` is reduced by all of it; ~0 once it was passed.
CALLED int64_t pass_in(const Select &s, const Measure &m, Piece p, uint64_t *wanted) {
  uint64_t v = 0;
  chunk_each(p.v, p.column, s.kind, in, [&](float f, int64_t c) {
    if (c < p.column + p.count) v += measure(m, f, key_of<in>(s, f), c);
  });
  uint64_t before = lanes_before(v), all = warp_total(v), left = *wanted - before;
  int64_t found = -1;
  if (*wanted >= before && left < v)
    chunk_each(p.v, p.column, s.kind, in, [&](float f, int64_t c) {
      uint64_t one = c < p.column + p.count ? measure(m, f, key_of<in>(s, f), c) : 0;
      if (found < 0 && left < one) found = c;
      left -= one;
    });
  *wanted = *wanted < all ? ~0ull : *wanted - all;
  return found;
}

// The same of `count` edges from `first` on, a lane each; all warps do it alike.
CALLED int64_t pass_in_edges(const Select &s, const Measure &m, int first, int count, uint64_t *wanted) {
  Piece p = {make_uint4(0, 0, 0, 0), 0, threadIdx.x % 32 < count};
  if (p.count) {
    p.column = span_edge(&s.h.x, first + threadIdx.x % 32);
    p.v.x = in == 4 ? ((const uint32_t *)s.h.x.at)[p.column] : ((const uint16_t *)s.h.x.at)[p.column];
  }
  return pass_in<in>(s, m, p, wanted);
}

// The same of this warp's chunks.
CALLED int64_t pass_in_chunks(const Select &s, const Measure &m, uint64_t wanted) {
  for (int k = 0;; k++) {
    Piece p = {make_uint4(0, 0, 0, 0), 0, k < s.h.count ? 16 / in : 0};
    if (p.count) p.v = held_vector(s.h, k), p.column = held_column(s.h, k, in);
    int64_t found = pass_in<in>(s, m, p, &wanted);
    if (wanted == ~0ull) return found;
  }
}

// The column of the first element at which the sum of what is measured, in order of the columns, exceeds `wanted`, which
// is less than the whole.
CALLED int64_t pick(Select &s, const Measure &m, uint64_t wanted) {
  const Held &h = s.h;
  uint64_t mine = 0, before = 0, v[3] = {0, 0, 0};
  int64_t found = pass_in_edges<in>(s, m, 0, h.x.head, &wanted);
  held_each_chunk(h, s.kind, in, [&](float f, int64_t c) { mine += measure(m, f, key_of<in>(s, f), c); });
  mine = warp_total(mine);
  // What the warps and blocks before this one have: the fold leaves it in shared memory.
  int t = h.turn;
  if (threadIdx.x % 32 == 0) v[0] = mine;
  fold_sums<in>(s, v);
  for (int w = 0; w < h.warp; w++) before += s.shared->warps[t][w][0];
  for (int i = 0; i < h.rank; i++) before += remote_word(&s.shared->block[t][0], i);
  int64_t here = -1;
  if (wanted != ~0ull && wanted >= before && wanted < before + mine) here = pass_in_chunks<in>(s, m, wanted - before);
  if (wanted != ~0ull && wanted >= v[0]) {
    wanted -= v[0];
    here = pass_in_edges<in>(s, m, h.x.head, h.x.edges - h.x.head, &wanted);
  }
  if (here >= 0) found = here;
  return (int64_t)fold_most<in>(s, (uint64_t)(found + 1)) - 1;
}

// The largest key, from low to high, at or above which the measure is at least `target`; at `low` it is.
CALLED uint32_t search(Select &s, const Measure &m, uint64_t target, uint32_t low, uint32_t high) {
  while (low < high) {
    uint32_t step = (high - low) / 4; // three keys divide the range
    uint32_t key[3] = {low + step, low + 2 * step, low + 3 * step};
    if (step == 0) key[0] = low + 1, key[1] = max(low + 1, high - 1), key[2] = high;
    uint64_t v[3] = {0, 0, 0};
    held_each(s.h, s.kind, in, [&](float f, int64_t c) {
      uint32_t k = key_of<in>(s, f);
      uint64_t one = k >= key[0] ? measure(m, f, k, c) : 0;
#pragma unroll
      for (int i = 0; i < 3; i++) v[i] += k >= key[i] ? one : 0;
    });
    fold_sums<in>(s, v);
    if (v[2] >= target) low = key[2];
    else if (v[1] >= target) low = key[1], high = key[2] - 1;
    else if (v[0] >= target) low = key[0], high = key[1] - 1;
    else high = key[0] - 1;
  }
  return low;
}

// The k largest, of equals those with the lowest columns. At least k elements have the key `low` or a higher one.
CALLED Cut cut_of_count(Select &s, uint64_t k, uint32_t low) {
  Measure m = {{0, INT64_MAX}, COUNT_ALL};
  m.key = search<in>(s, m, k, low, in == 4 ? ~0u : s.kind == KIND_FP16 ? ~0u >> 13 : ~0u >> 16);
  m.cut = Cut{m.key, -1};
  uint64_t above = total_of<in>(s, m);
  m.cut = Cut{0, INT64_MAX}, m.how = COUNT_EQUAL;
  return Cut{m.key, pick<in>(s, m, k - above - 1)};
}

// Of what the cut keeps the largest, until they have at least `target` of the weight. Elements of one key weigh the same.
template <int in> INLINE Cut cut_of_weight(Select &s, Measure m, uint64_t target) {
  m.key = search<in>(s, m, target, m.cut.key, key_of<in>(s, m.top));
  uint64_t v[3] = {0, 0, 0}; // what is above the key weighs, how many are equal to it, and what those weigh
  held_each(s.h, s.kind, in, [&](float f, int64_t c) {
    uint32_t k = key_of<in>(s, f);
    uint64_t weight = k >= m.key ? measure(m, f, k, c) : 0;
    v[0] += k > m.key ? weight : 0;
    v[1] += k == m.key && weight;
    v[2] += k == m.key ? weight : 0;
  });
  fold_sums<in>(s, v);
  uint64_t each = v[2] / v[1], kept = (target - v[0] + each - 1) / each;
  m.how = COUNT_EQUAL;
  return Cut{m.key, pick<in>(s, m, kept - 1)};
}

template <int in>
INLINE Select select_of(const void *x, int64_t stride, int64_t n, int kind, int nan_first, SelectShared *shared,
                        uint4 *memory, HeldShape shape, int room) {
  int row = shape.rows > 1 ? threadIdx.x / 32 : 0;
  Select s = {held_of(x, stride, n, in, memory, shape), &shared->held, in == 4 ? KIND_FP32 : kind, nan_first,
              (uint64_t *)((char *)memory + shape.shared) + row * room, room, &shared->next[row], shared->counts};
  held_fill(s.h);
  return s;
}

// Two elements in a word at once, or one of 4 bytes.
INLINE uint32_t larger_word(const Select &s, int in, uint32_t a, uint32_t b) {
  if (in == 2) return s.nan_first ? higher2(a, b, s.kind) : larger2(a, b, s.kind);
  float x = __uint_as_float(a), y = __uint_as_float(b);
  return __float_as_uint(s.nan_first ? higher(x, y) : fmaxf(x, y));
}

// The key of the largest element of a word.
template <int in> INLINE uint32_t word_key(const Select &s, uint32_t word) {
  if (in == 4) return key_of<in>(s, __uint_as_float(word));
  float2 two = widen2(word, s.kind);
  return max(key_of<in>(s, two.x), key_of<in>(s, two.y));
}
template <int in> INLINE uint32_t chunk_key(const Select &s, uint4 v) {
  return word_key<in>(s, larger_word(s, in, larger_word(s, in, v.x, v.y), larger_word(s, in, v.z, v.w)));
}

INLINE uint32_t lanes_total(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
#endif
}

// The sum over the row's threads in this block.
INLINE uint32_t block_total(const Select &s, uint32_t v, int turn) {
  v = lanes_total(v);
  if (s.h.warps == 1) return v;
  if (s.h.lane == 0) s.counts[turn][s.h.warp] = v;
  __syncthreads();
  return lanes_total(s.h.lane < s.h.warps ? s.counts[turn][s.h.lane] : 0);
}

// A key that at least k elements have or exceed, but not many more: that of the k-th largest of the threads' own largest. A
// thread has four or eight of them: the largest of the first words of its chunks, of the second words, ...
CALLED uint32_t low_of(Select &row, int k) {
  const Select s = row;
  const int units = 16 / in;
  uint32_t lowest = span_lowest(s.kind), top[4] = {lowest, lowest, lowest, lowest}, key[units], low = 0;
#pragma unroll 4
  for (int i = 0; i < s.h.count; i++) {
    Vec v;
    v.v = held_vector(s.h, i);
#pragma unroll
    for (int j = 0; j < 4; j++) top[j] = larger_word(s, in, top[j], v.u[j]);
  }
  int64_t edge;
  for (int i = 0; (edge = held_edge(s.h, i)) >= 0; i++) {
    uint32_t word = in == 4 ? ((const uint32_t *)s.h.x.at)[edge] : ((const uint16_t *)s.h.x.at)[edge];
    top[0] = larger_word(s, in, top[0], in == 4 ? word : word | (lowest & 0xffff0000u));
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float2 two = in == 4 ? make_float2(__uint_as_float(top[j]), 0) : widen2(top[j], s.kind);
    key[j] = key_of<in>(s, two.x);
    if (in == 2) key[j + 4] = key_of<in>(s, two.y);
  }
  int turn = 0;
#pragma unroll 1
  for (uint32_t bit = in == 4 ? 1u << 31 : s.kind == KIND_FP16 ? 1u << 18 : 1u << 15; bit > (in == 4 ? 1u << 11 : 0); bit >>= 1) {
    uint32_t count = 0, at = low | bit;
#pragma unroll
    for (int j = 0; j < units; j++) count += key[j] >= at;
    if (block_total(s, count, turn) >= (uint32_t)k) low = at;
    turn ^= 1;
  }
  if (s.h.blocks > 1) low = (uint32_t)fold_most<in>(row, low);
  // Units without elements are -infinity: from there on they do not count.
  return low <= key_of<in>(s, -INFINITY) ? 0 : low;
}

// Everything that the cut keeps, in no order, into the list of the first block; how many there are, which may be more than
// the list has room for: then it is not complete.
CALLED int collect(Select &row, Cut cut) {
  const Select s = row;
  auto take = [&](float f, int64_t c) {
    uint32_t key = key_of<in>(s, f);
    if (!is_kept(cut, key, c)) return;
    int to = atomicAdd(s.next, 1);
    if (to < s.room) s.list[to] = (uint64_t)key << 32 | ~(uint32_t)c;
  };
  held_sync(s.h);
  if (held_thread(s.h) == 0) *s.next = 0;
  held_sync(s.h);
#pragma unroll 2
  for (int i = 0; i < s.h.count; i++) {
    uint4 v = held_vector(s.h, i);
    if (chunk_key<in>(s, v) >= cut.key) chunk_each(v, held_column(s.h, i, in), s.kind, in, take);
  }
  int64_t edge;
  for (int i = 0; (edge = held_edge(s.h, i)) >= 0; i++) take(load_one(s.h.x.at, edge, s.kind), edge);
  held_sync(s.h);
  int mine = *s.next;
  if (s.h.blocks == 1) return mine;
  int t = s.h.turn;
  uint64_t v[3] = {threadIdx.x == 0 ? (uint64_t)mine : 0, 0, 0};
  fold_sums<in>(row, v); // leaves each block's number in shared memory
  if (s.h.rank || v[0] > (uint64_t)s.room) return (int)min(v[0], (uint64_t)INT32_MAX);
  for (int i = 1, to = mine; i < s.h.blocks; i++) {
    int count = (int)remote_word(&s.shared->block[t][0], i);
    for (int j = threadIdx.x; j < count; j += blockDim.x) s.list[to + j] = remote_word(&s.list[j], i);
    to += count;
  }
  return (int)v[0];
}

// Sorts the first `count` entries of the list, the largest first; bitonic. Behind them zeros, up to a power of two.
static __device__ __noinline__ void sort_list(uint64_t *list, int count, int thread, int warps) {
  int length = 1;
  while (length < count) length *= 2;
  for (int i = count + thread; i < length; i += 32 * warps) list[i] = 0;
  warps_sync(warps);
  for (int size = 2; size <= length; size *= 2)
    for (int apart = size / 2; apart; apart /= 2) {
      for (int i = thread; i < length / 2; i += 32 * warps) {
        int a = 2 * i - (i & (apart - 1)), b = a + apart;
        uint64_t x = list[a], y = list[b];
        if ((x < y) == !(a & size)) list[a] = y, list[b] = x;
      }
      warps_sync(warps);
    }
}
INLINE void sort_down(const Select &s, int count) { sort_list(s.list, count, held_thread(s.h), s.h.warps); }

// The k largest in the list of the first block, in order; of the others false. In the list of a row that has more equal
// elements than there is room for, exactly k.
template <int in> INLINE bool list_largest(Select &s, int64_t n, int k, int force) {
  uint32_t low = k < n ? low_of<in>(s, k) : 0;
  int count = collect<in>(s, Cut{low, INT64_MAX});
  if (count > s.room) {
    if (!force) return false;
    count = collect<in>(s, cut_of_count<in>(s, (uint64_t)k, low));
  }
  if (s.h.rank == 0) sort_down(s, count);
  return true;
}

template <int in> INLINE void topk(const TopkParams &p, SelectShared *shared, uint4 *memory) {
  Select s = select_of<in>(p.x, p.x_stride, p.n, p.x_kind, 1, shared, memory, p.held, p.room);
  if (s.h.row >= p.held.m) return;
  list_largest<in>(s, p.n, (int)p.k, 1);
  held_leave(s.h);
  for (int i = held_thread(s.h); s.h.rank == 0 && i < p.k; i += 32 * s.h.warps) {
    uint32_t column = ~(uint32_t)s.list[i];
    int64_t value = (int64_t)s.h.row * p.values_stride + i, id = (int64_t)s.h.row * p.ids_stride + i;
    if (in == 4) ((uint32_t *)p.values)[value] = ((const uint32_t *)s.h.x.at)[column];
    else ((uint16_t *)p.values)[value] = ((const uint16_t *)s.h.x.at)[column];
    if (p.wide_ids) ((int64_t *)p.ids)[id] = column;
    else ((int32_t *)p.ids)[id] = (int32_t)column;
  }
  held_end(s.h);
}

// The largest element that is a number; false: there is none.
template <int in> INLINE bool top_of(Select &s, float *top) {
  uint32_t mine = 0;
  held_each(s.h, s.kind, in, [&](float f, int64_t) {
    uint32_t u = __float_as_uint(f + 0.0f);
    if (f == f) mine = max(mine, u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u));
  });
  uint32_t key = (uint32_t)fold_most<in>(s, mine);
  *top = __uint_as_float(key >> 31 ? key ^ 0x80000000u : ~key);
  return key != 0;
}

// The place of the entry at which the sum of weight(place), in order, exceeds `wanted`, of `count`; by one warp. `sum`: of
// all of them where none does.
template <class Weight> INLINE int walk(int count, uint64_t wanted, uint64_t *sum, Weight weight) {
  *sum = 0;
#pragma unroll 1
  for (int i = 0; i < count; i += 32) {
    int at = i + threadIdx.x % 32;
    uint64_t w = at < count ? weight(at) : 0, before = *sum + lanes_before(w);
    uint32_t found = __ballot_sync(~0u, before + w > wanted);
    if (found) return i + __ffs(found) - 1;
    *sum += warp_total(w);
  }
  return count;
}

// The same as the whole row's below, of the k entries of a list in order; the row's threads of one block.
template <int in> INLINE int64_t sample_listed(const SampleParams &p, Select &s, int k, uint64_t random) {
  float top = value_of<in>(s, (uint32_t)(s.list[0] >> 32));
  bool none = !(s.list[0] >> 32);
  uint64_t whole = 0, sum;
  int kept = k;
  held_sync(s.h);
  if (s.h.warp == 0 && !none) {
    auto weight = [&](int i) {
      uint32_t key = (uint32_t)(s.list[i] >> 32);
      return key ? (uint64_t)select_weight(value_of<in>(s, key), top, p.per) : 0;
    };
    walk(k, ~0ull, &whole, weight);
    if (p.share) {
      uint64_t target = __umul64hi(whole, p.share << 32);
      kept = min(k, walk(k, (target ? target : 1) - 1, &sum, weight) + 1);
      walk(kept, ~0ull, &whole, weight);
    }
    for (int i = threadIdx.x % 32; i < kept; i += 32) s.list[i] = s.list[i] << 32 | weight(i);
    if (s.h.lane == 0) *s.next = kept;
  }
  if (none) return -1;
  held_sync(s.h);
  sort_down(s, *s.next);
  auto weight = [&](int i) { return (uint64_t)(uint32_t)s.list[i]; };
  if (s.h.warp) return -1;
  return ~(uint32_t)(s.list[walk(kept, __umul64hi(random, whole), &sum, weight)] >> 32);
}

template <int in> INLINE int64_t sample_row(const SampleParams &p, Select &s, uint64_t random) {
  Measure m = {{0, INT64_MAX}, COUNT_WEIGHT, 0, 0, p.per};
  if (!top_of<in>(s, &m.top)) return -1;
  if (p.k) m.cut = cut_of_count<in>(s, (uint64_t)p.k, 0);
  uint64_t whole = total_of<in>(s, m);
  if (p.share) {
    uint64_t target = __umul64hi(whole, p.share << 32);
    m.cut = cut_of_weight<in>(s, m, target ? target : 1);
    whole = total_of<in>(s, m);
  }
  return pick<in>(s, m, __umul64hi(random, whole));
}

template <int in> INLINE void sample(const SampleParams &p, SelectShared *shared, uint4 *memory) {
  Select s = select_of<in>(p.x, p.x_stride, p.n, p.x_kind, 0, shared, memory, p.held, p.room);
  if (s.h.row >= p.held.m) return;
  uint64_t random = select_random((uint64_t)p.seeds[s.h.row], p.step);
  bool listed = p.k && p.k <= s.room && list_largest<in>(s, p.n, (int)p.k, 0);
  int64_t id = -1;
  if (!listed) id = sample_row<in>(p, s, random);
  else if (s.h.rank == 0) id = sample_listed<in>(p, s, (int)p.k, random);
  if (s.h.rank == 0 && held_thread(s.h) == 0) {
    if (p.wide_ids) ((int64_t *)p.ids)[s.h.row] = id;
    else ((int32_t *)p.ids)[s.h.row] = (int32_t)id;
  }
  held_leave(s.h);
  held_end(s.h);
}

#define SELECT(in)                                                                                           \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_topk_##in(const __grid_constant__ TopkParams p) {            \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ SelectShared shared;                                                                          \
    begin_kernel();                                                                                          \
    topk<in>(p, &shared, memory);                                                                            \
  }                                                                                                          \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_sample_##in(const __grid_constant__ SampleParams p) {        \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ SelectShared shared;                                                                          \
    begin_kernel();                                                                                          \
    sample<in>(p, &shared, memory);                                                                          \
  }
SELECT(2)
SELECT(4)
