// The k largest elements of a row, and a random one of them.
//
// Both look for a cut: the key of the last element that is kept, and the last column of those equal to it. The key is
// found by search: each round counts (or weighs) what is at or above three keys that divide the range into four. Then
// the columns of those equal to it are walked in order. No sums of floats are compared, so the result does not depend
// on how a row is divided.
#include "select.h"
#include "weight.h"

#include "elementwise.cuh"
#include "held.cuh"

// The row, and how its elements compare.
typedef struct Select {
  Held h;
  HeldShared *shared;
  int kind, nan_first; // otherwise a NaN comes last
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
  for (int w = 0; w < threadIdx.x / 32; w++) before += s.shared->warps[t][w][0];
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

// The k largest, of equals those with the lowest columns. The search starts from the k-th largest of the threads' own
// largest in some block, where there are so many threads: few elements are above it.
template <int in> INLINE Cut cut_of_count(Select &s, uint64_t k) {
  Measure m = {{0, INT64_MAX}, COUNT_ALL};
  uint32_t mine = 0, low = 0;
  held_each(s.h, s.kind, in, [&](float f, int64_t) { mine = max(mine, key_of<in>(s, f)); });
  for (int bit = in == 4 ? 31 : 18; bit >= 0 && k <= blockDim.x; bit--)
    if (__syncthreads_count(mine >= (low | 1u << bit)) >= (int)k) low |= 1u << bit;
  low = (uint32_t)fold_most<in>(s, low);
  m.key = search<in>(s, m, k, low, (uint32_t)fold_most<in>(s, mine));
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
INLINE Select select_of(const void *x, int64_t stride, int64_t n, int kind, int nan_first, HeldShared *shared, uint4 *memory,
                        int bytes) {
  Select s = {held_of(x, stride, n, in, memory, bytes), shared, in == 4 ? KIND_FP32 : kind, nan_first};
  held_fill(s.h);
  return s;
}

// To this place of the list in the first block of the cluster.
INLINE void put_in_first(const Held &h, uint64_t *place, uint64_t v) {
#if __CUDA_ARCH__ >= 900
  if (h.rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"((uint32_t)__cvta_generic_to_shared(place)));
    asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(v) : "memory");
    return;
  }
#endif
  *place = v;
}

INLINE void sort_down(uint64_t *list, int length) { // bitonic; length is a power of two
  for (int size = 2; size <= length; size *= 2)
    for (int apart = size / 2; apart; apart /= 2) {
      for (int i = threadIdx.x; i < length / 2; i += blockDim.x) {
        int a = i / apart * 2 * apart + i % apart, b = a + apart;
        uint64_t x = list[a], y = list[b];
        if ((x < y) == !(a & size)) list[a] = y, list[b] = x;
      }
      __syncthreads();
    }
}

typedef struct TopkShared {
  uint64_t list[TOPK_MOST]; // keys above, the complements of their columns below
  int next;
  HeldShared held;
} TopkShared;

// Everything that the cut keeps into the first block's list, in no order.
template <int in> INLINE void collect(Select &s, Cut cut, TopkShared *shared) {
  int t = s.h.turn, base = 0;
  total_of<in>(s, Measure{cut, COUNT_ALL}); // leaves each block's number in shared memory
  for (int i = 0; i < s.h.rank; i++) base += (int)remote_word(&s.shared->block[t][0], i);
  if (threadIdx.x == 0) shared->next = base;
  __syncthreads();
  held_each(s.h, s.kind, in, [&](float f, int64_t c) {
    uint32_t key = key_of<in>(s, f);
    if (!is_kept(cut, key, c)) return;
    put_in_first(s.h, &shared->list[atomicAdd(&shared->next, 1)], (uint64_t)key << 32 | ~(uint32_t)c);
  });
  if (s.h.blocks > 1) cluster_barrier();
}

template <int in> INLINE void topk(const TopkParams &p, TopkShared *shared, uint4 *memory) {
  Select s = select_of<in>(p.x, p.x_stride, p.n, p.x_kind, 1, &shared->held, memory, p.shared);
  Cut cut = {0, INT64_MAX};
  if (p.k < p.n) cut = cut_of_count<in>(s, (uint64_t)p.k);
  collect<in>(s, cut, shared);
  if (s.h.rank) return;
  int length = 1;
  while (length < p.k) length *= 2;
  for (int i = (int)p.k + threadIdx.x; i < length; i += blockDim.x) shared->list[i] = 0;
  __syncthreads();
  sort_down(shared->list, length);
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) {
    uint32_t column = ~(uint32_t)shared->list[i];
    int64_t value = (int64_t)s.h.row * p.values_stride + i, id = (int64_t)s.h.row * p.ids_stride + i;
    if (in == 4) ((uint32_t *)p.values)[value] = ((const uint32_t *)s.h.x.at)[column];
    else ((uint16_t *)p.values)[value] = ((const uint16_t *)s.h.x.at)[column];
    if (p.wide_ids) ((int64_t *)p.ids)[id] = column;
    else ((int32_t *)p.ids)[id] = (int32_t)column;
  }
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

template <int in> INLINE void sample(const SampleParams &p, HeldShared *shared, uint4 *memory) {
  Select s = select_of<in>(p.x, p.x_stride, p.n, p.x_kind, 0, shared, memory, p.shared);
  Measure m = {{0, INT64_MAX}, COUNT_WEIGHT, 0, 0, p.per};
  int64_t id = -1;
  if (top_of<in>(s, &m.top)) {
    if (p.k && p.k < p.n) m.cut = cut_of_count<in>(s, (uint64_t)p.k);
    uint64_t whole = total_of<in>(s, m);
    if (p.share) {
      uint64_t target = __umul64hi(whole, p.share << 32);
      m.cut = cut_of_weight<in>(s, m, target ? target : 1);
      whole = total_of<in>(s, m);
    }
    id = pick<in>(s, m, __umul64hi(select_random((uint64_t)p.seeds[s.h.row], p.step), whole));
  }
  if (s.h.rank == 0 && threadIdx.x == 0) {
    if (p.wide_ids) ((int64_t *)p.ids)[s.h.row] = id;
    else ((int32_t *)p.ids)[s.h.row] = (int32_t)id;
  }
  held_leave(s.h);
  held_end(s.h);
}

#define SELECT(in)                                                                                           \
  KERNEL __launch_bounds__(HELD_THREADS, 1) sol_topk_##in(const __grid_constant__ TopkParams p) {            \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ TopkShared shared;                                                                            \
    begin_kernel();                                                                                          \
    topk<in>(p, &shared, memory);                                                                            \
  }                                                                                                          \
  KERNEL __launch_bounds__(HELD_THREADS, 1) sol_sample_##in(const __grid_constant__ SampleParams p) {        \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    begin_kernel();                                                                                          \
    sample<in>(p, &shared, memory);                                                                          \
  }
SELECT(2)
SELECT(4)
