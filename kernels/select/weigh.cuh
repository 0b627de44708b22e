// A random element of a row by the weights of all of them, or of those down to a cut: top_p, or a top_k too large for a list.
//
// The row is held in shared memory (held.cuh): read from global memory once, by a warp, a block or a cluster of blocks, in the order
// of the columns. Passes over it: the largest element; where something is cut, histograms of how far elements are below it;
// then the sums of the weights, chunk by chunk, in which the random number finds its chunk. Chunks whose elements are all too
// far below the largest to count are passed over.
#ifndef SOL_KERNELS_SELECT_WEIGH_CUH
#define SOL_KERNELS_SELECT_WEIGH_CUH

#include "draw.cuh"

enum { NOT_MINE = -2 }; // in place of a column

// A histogram of distances below the largest (select_steps), level by level: bins of 2^first steps, then 2^bits times finer ones
// down to 8 steps, which all have one weight. `alone`: a row has one warp, otherwise a block of WEIGH_THREADS.
enum { WEIGH_THREADS = 128 };
template <bool alone> struct Level {
  enum { bins = alone ? 128 : 512, first = alone ? 21 : 19, bits = alone ? 6 : 8, last = 3 }; // all bits of SELECT_FAR
  enum { threads = alone ? 32 : WEIGH_THREADS, each = bins / threads };
};

// What a row's threads of one block share.
template <bool alone> struct WeighShared {
  uint32_t low[Level<alone>::bins], high[Level<alone>::bins]; // of a bin's sum, 14 bits of each weight and the others
  uint64_t total[Level<alone>::bins]; // for the other blocks of a cluster; then entries of a bin, their weights in `low`
  uint32_t listed;
  uint64_t warp[2][8], block[2];                              // by turns
  uint64_t above, with;
  uint32_t bin;
};

// Elements above `value` are kept, and of those that are equal to it the ones up to `column`.
typedef struct Cut {
  float value;
  int column;
} Cut;

template <int kind, bool alone_> struct Weigher {
  enum { per = kind == KIND_FP32 ? 4 : 8, alone = alone_ };
  Held h;
  WeighShared<alone_> *shared;
  uint32_t *sums;         // of this thread's chunks, in shared memory, as far apart as they are
  int rounds;             // chunks that a thread has at most
  uint32_t front, back;   // bits of its single elements before the first chunk and after the last; -infinity: none
  int front_at, back_at;  // their columns
  float top, steps_a_unit, floor; // what is below `floor` counts for nothing
  int64_t seed;
};

INLINE uint64_t lanes_all(uint64_t v) {
  return lanes_total(v & ((1ull << 48) - 1)) + ((uint64_t)lanes_sum((uint32_t)(v >> 48)) << 48);
}

// Of all threads of the row together: the sum, or the largest. Two sets of shared variables by turns: one barrier is enough.
// The sums of warps and blocks stay in shared memory until the next but one.
template <bool most, class W> INLINE uint64_t row_all(W &w, uint64_t v) {
  auto join = [](uint64_t a) {
    if (!most) return lanes_all(a);
    uint32_t upper = lanes_most((uint32_t)(a >> 32));
    return (uint64_t)upper << 32 | lanes_most((uint32_t)(a >> 32) == upper ? (uint32_t)a : 0);
  };
  int lane = threadIdx.x % 32, t = w.h.turn;
  w.h.turn ^= 1;
  v = join(v);
  if (W::alone) return v;
  if (lane == 0) w.shared->warp[t][w.h.warp] = v;
  __syncthreads();
  v = join(lane < w.h.warps ? w.shared->warp[t][lane] : 0);
  if (w.h.blocks == 1) return v;
  if (threadIdx.x == 0) w.shared->block[t] = v;
  cluster_barrier();
  return join(lane < w.h.blocks ? remote_word(&w.shared->block[t], lane) : 0);
}

// The sum over the row's threads of this block alone.
template <class W> INLINE uint64_t block_all(W &w, uint64_t v) {
  int lane = threadIdx.x % 32, t = w.h.turn;
  w.h.turn ^= 1;
  v = lanes_all(v);
  if (W::alone) return v;
  if (lane == 0) w.shared->warp[t][w.h.warp] = v;
  __syncthreads();
  return lanes_all(lane < w.h.warps ? w.shared->warp[t][lane] : 0);
}

template <int kind> INLINE uint32_t element_bits(const Vec &v, int i) {
  return kind == KIND_FP32 ? v.u[i] : v.u[i / 2] >> i % 2 * 16 & 0xffff;
}

// The largest element of a chunk that is not NaN.
template <int kind> INLINE uint32_t chunk_word(const Vec &v) {
  return larger_word<kind, 0>(larger_word<kind, 0>(v.u[0], v.u[1]), larger_word<kind, 0>(v.u[2], v.u[3]));
}
template <int kind> INLINE float word_top(uint32_t word) {
  if (kind == KIND_FP32) return __uint_as_float(word);
  float2 two = widen2(word, kind);
  return fmaxf(two.x, two.y);
}

template <int kind, bool alone> INLINE uint32_t steps_of(const Weigher<kind, alone> &w, uint32_t bits) {
  return select_steps(value_of_bits<kind>(bits), w.top, w.steps_a_unit);
}

// The row of this thread, in shared memory.
template <int kind, bool alone>
INLINE void weigh_begin(Weigher<kind, alone> &w, const SampleParams &p, WeighShared<alone> *shared, uint4 *memory) {
  const int in = kind == KIND_FP32 ? 4 : 2;
  w.h = held_of(p.x, p.x_stride, p.n, in, memory, p.held);
  w.shared = shared;
  w.sums = (uint32_t *)((char *)memory + p.held.shared) + (w.h.mine - memory);
  w.steps_a_unit = p.per;
  int all = w.h.lanes * w.h.warps * w.h.blocks, lane = threadIdx.x % 32, tail = w.h.x.edges - w.h.x.head;
  w.rounds = ((int)w.h.x.chunks + all - 1) / all;
  bool first = w.h.rank == 0 && w.h.warp == 0, last = w.h.rank == w.h.blocks - 1 && w.h.warp == w.h.warps - 1;
  w.front_at = lane, w.back_at = (int)p.n - tail + lane;
  w.front = w.back = lowest_bits<kind>();
  auto load = [&](int c) { return in == 4 ? ((const uint32_t *)w.h.x.at)[c] : ((const uint16_t *)w.h.x.at)[c]; };
  if (first && lane < w.h.x.head) w.front = load(w.front_at);
  if (last && lane < tail) w.back = load(w.back_at);
  w.seed = w.h.row < p.m ? p.seeds[w.h.row] : 0; // in flight along with the row
  held_fill(w.h);
}

// The key of the row's largest element.
template <int kind, bool alone> INLINE uint32_t top_key(Weigher<kind, alone> &w) {
  uint32_t word = span_lowest(kind), key = 0;
#pragma unroll 4
  for (int k = 0; k < w.h.count; k++) {
    Vec v;
    v.v = held_vector(w.h, k);
    word = larger_word<kind, 0>(word, chunk_word<kind>(v));
  }
  auto raise = [&](uint32_t bits) {
    uint32_t it = key_of_bits<kind>(bits);
    if (it < (kind == KIND_FP32 ? ~0u : 0xffffu)) key = max(key, it);
  };
  if (kind == KIND_FP32) raise(word);
  else raise(word & 0xffff), raise(word >> 16);
  raise(w.front), raise(w.back);
  return (uint32_t)row_all<true>(w, key);
}

// Elements further below the largest than so many steps are below w.floor; rounded so that no others are.
template <class W> INLINE void set_floor(W &w, uint32_t steps) {
  float reach = __fdiv_ru((float)steps + 64, w.steps_a_unit) * (1 + 0x1p-20f);
  w.floor = __fsub_rd(w.top, reach);
}

// each(bits, column) for the elements of a chunk.
template <int kind, bool alone, class Each>
INLINE void each_in_chunk(const Weigher<kind, alone> &w, const Vec &v, int k, Each each) {
  int column = (int)held_column(w.h, k, 16 / w.per);
#pragma unroll
  for (int i = 0; i < w.per; i++) each(element_bits<kind>(v, i), column + i);
}

// The same for all of this thread's that may be above the floor.
template <int kind, bool alone, class Each> INLINE void each_above(const Weigher<kind, alone> &w, Each each) {
#pragma unroll 1
  for (int k = 0; k < w.h.count; k++) {
    Vec v;
    v.v = held_vector(w.h, k);
    if (word_top<kind>(chunk_word<kind>(v)) >= w.floor) each_in_chunk(w, v, k, each);
  }
  each(w.front, w.front_at), each(w.back, w.back_at);
}

// ---- Where a sum falls

// Of several parts in order, one a lane: the first on which `wanted` falls, which is reduced by those before it.
INLINE int find_part(uint64_t m, uint64_t *wanted) {
  uint64_t upto = lanes_upto(m);
  uint32_t found = __ballot_sync(~0u, upto > *wanted);
  int lane = found ? __ffs(found) - 1 : 31;
  *wanted -= __shfl_sync(~0u, upto - m, lane);
  return lane;
}

template <int kind, bool alone, class Weigh>
INLINE uint32_t chunk_sum(const Weigher<kind, alone> &w, const Vec &v, int k, Weigh weigh) {
  uint32_t sum = 0;
  if (word_top<kind>(chunk_word<kind>(v)) >= w.floor)
    each_in_chunk(w, v, k, [&](uint32_t bits, int column) { sum += weigh(bits, column); });
  return sum;
}

// In chunk k of one lane, an element for each of the first lanes.
template <int kind, bool alone, class Weigh>
INLINE int64_t find_in_chunk(const Weigher<kind, alone> &w, int k, int lane, uint64_t wanted, Weigh weigh) {
  const int i = threadIdx.x % 32;
  Vec v;
  v.v = k < w.h.count ? held_vector(w.h, k) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < 4; j++) v.u[j] = __shfl_sync(~0u, v.u[j], lane);
  int column = __shfl_sync(~0u, (int)held_column(w.h, k, 16 / w.per), lane) + i;
  uint32_t bits = 0;
#pragma unroll
  for (int j = 0; j < w.per; j++)
    if (j == i) bits = element_bits<kind>(v, j);
  uint32_t weight = i < w.per ? weigh(bits, column) : 0;
  return find_part(weight, &wanted) == i ? column : NOT_MINE;
}

// In this warp's part of the row, whose chunks' sums are known; front, back: the weights of its single elements.
template <int kind, bool alone, class Weigh>
INLINE int64_t find_in_warp(const Weigher<kind, alone> &w, uint32_t front, uint32_t back, uint64_t wanted, Weigh weigh) {
  const int lane = threadIdx.x % 32;
  uint64_t part = lanes_total(front);
  if (wanted < part) return find_part(front, &wanted) == lane ? w.front_at : NOT_MINE;
  wanted -= part;
#pragma unroll 1
  for (int k = 0; k < w.rounds; k++) {
    uint32_t sum = 0;
    if (k < w.h.kept) {
      sum = w.sums[w.h.lanes * k];
    } else if (k < w.h.count) {
      Vec v;
      v.v = held_vector(w.h, k);
      sum = chunk_sum(w, v, k, weigh);
    }
    part = lanes_total(sum);
    if (wanted < part) {
      int from = find_part(sum, &wanted);
      return find_in_chunk(w, k, from, wanted, weigh);
    }
    wanted -= part;
  }
  return find_part(back, &wanted) == lane ? w.back_at : NOT_MINE;
}

// The column on which wanted(the sum of all weights) falls, for the one thread that has it; NOT_MINE for the others.
template <int kind, bool alone, class Weigh, class Wanted>
INLINE int64_t locate(Weigher<kind, alone> &w, Weigh weigh, Wanted wanted_of) {
  uint32_t front = weigh(w.front, w.front_at), back = weigh(w.back, w.back_at);
  uint64_t mine = (uint64_t)front + back;
#pragma unroll 1
  for (int k = 0; k < w.h.count; k++) {
    Vec v;
    v.v = held_vector(w.h, k);
    uint32_t sum = chunk_sum(w, v, k, weigh);
    if (k < w.h.kept) w.sums[w.h.lanes * k] = sum;
    mine += sum;
  }
  int lane = threadIdx.x % 32, t = w.h.turn;
  uint64_t wanted = wanted_of(row_all<false>(w, mine));
  if (w.h.blocks > 1 && find_part(lane < w.h.blocks ? remote_word(&w.shared->block[t], lane) : 0, &wanted) != w.h.rank)
    return NOT_MINE;
  if (!alone && find_part(lane < w.h.warps ? w.shared->warp[t][lane] : 0, &wanted) != w.h.warp) return NOT_MINE;
  return find_in_warp(w, front, back, wanted, weigh);
}

// ---- What top_k and top_p leave

// Adds the bins of this thread to `own` and clears them; the row's threads of a block, after and before a barrier.
template <class W> INLINE void take_bins(W &w, uint64_t *own) {
  typedef Level<W::alone> L;
  warps_sync(w.h.warps);
#pragma unroll
  for (int i = 0; i < L::each; i++) {
    int b = threadIdx.x % L::threads * L::each + i;
    own[i] += w.shared->low[b] + ((uint64_t)w.shared->high[b] << 14);
    w.shared->low[b] = w.shared->high[b] = 0;
  }
  warps_sync(w.h.warps);
}

// The same of all blocks of a cluster together.
template <class W> INLINE void join_blocks(W &w, uint64_t *own) {
  typedef Level<W::alone> L;
  if constexpr (!W::alone) {
    uint64_t *mine = w.shared->total + threadIdx.x * L::each;
    if (w.h.blocks == 1) return;
#pragma unroll
    for (int i = 0; i < L::each; i++) mine[i] = own[i], own[i] = 0;
    cluster_barrier();
#pragma unroll
    for (int i = 0; i < L::each; i++)
      for (int b = 0; b < w.h.blocks; b++) own[i] += remote_word(&mine[i], b);
    cluster_barrier(); // before they are written again
  }
}

typedef struct Bin {
  uint32_t number;
  uint64_t above, with; // the measure of those before it; and with its own
} Bin;

// The first bin that reaches `target` with those before it. `before`: of the bins before these.
template <class W> INLINE Bin find_bin(W &w, const uint64_t *own, uint64_t before, uint64_t target) {
  typedef Level<W::alone> L;
  uint64_t mine = 0;
#pragma unroll
  for (int i = 0; i < L::each; i++) mine += own[i];
  uint64_t upto = lanes_upto(mine), sum = __shfl_sync(~0u, upto, 31);
  if (!W::alone) {
    int t = w.h.turn;
    w.h.turn ^= 1;
    if (threadIdx.x % 32 == 0) w.shared->warp[t][w.h.warp] = sum;
    __syncthreads();
    for (int i = 0; i < w.h.warp; i++) before += w.shared->warp[t][i];
  }
  uint64_t above = before + upto - mine;
  if (above < target && target <= above + mine) {
#pragma unroll
    for (int i = 0; i < L::each; i++) {
      if (above < target && target <= above + own[i])
        w.shared->bin = threadIdx.x % L::threads * L::each + i, w.shared->above = above, w.shared->with = above + own[i];
      above += own[i];
    }
  }
  warps_sync(w.h.warps);
  Bin b = {w.shared->bin, w.shared->above, w.shared->with};
  warps_sync(w.h.warps);
  return b;
}

// A level of the histogram: of the elements that are `prefix` bins of the level before below the largest.
template <int kind, bool alone>
INLINE void fill_bins(Weigher<kind, alone> &w, bool counts, int shift, uint32_t prefix, uint64_t *own) {
  typedef Level<alone> L;
  enum { FLUSH = (1 << 18) / (L::threads * Weigher<kind, alone>::per) }; // what 14 bits and 18 of a count hold
  uint32_t span = shift == L::first ? SELECT_FAR : 1u << (shift + L::bits), from = prefix << shift << (shift == L::first ? 0 : L::bits);
  auto add = [&](uint32_t bits, int) {
    uint32_t steps = steps_of(w, bits);
    if (steps - from >= span) return;
    uint32_t b = (steps - from) >> shift, weight = counts ? 1 : select_power(steps);
    atomicAdd(&w.shared->low[b], weight & 0x3fff);
    if (!counts) atomicAdd(&w.shared->high[b], weight >> 14);
  };
#pragma unroll
  for (int i = 0; i < L::each; i++) own[i] = 0;
#pragma unroll 1
  for (int k = 0; k < w.rounds; k++) {
    if (k < w.h.count) {
      Vec v;
      v.v = held_vector(w.h, k);
      if (word_top<kind>(chunk_word<kind>(v)) >= w.floor) each_in_chunk(w, v, k, add);
    }
    if (k % FLUSH == FLUSH - 1) take_bins(w, own);
  }
  add(w.front, 0), add(w.back, 0);
  take_bins(w, own);
  join_blocks(w, own);
}

template <int kind> INLINE Cut cut_at(uint32_t key, int column) {
  return Cut{value_of_bits<kind>(bits_of_key<kind>(key)), column};
}

// The last element that is needed for the target, where no more than a list holds are from `from` to `end` steps below the largest:
// each is compared with all of them. above: the measure of those nearer to the largest.
template <int kind, bool alone>
INLINE Cut cut_listed(Weigher<kind, alone> &w, bool counts, uint32_t from, uint32_t end, uint64_t above, uint64_t target) {
  typedef Level<alone> L;
  WeighShared<alone> *s = w.shared;
  const int thread = threadIdx.x % L::threads;
  if (thread == 0) s->listed = 0;
  warps_sync(w.h.warps);
  each_above(w, [&](uint32_t bits, int column) {
    uint32_t steps = steps_of(w, bits);
    if (steps < from || steps > end) return;
    uint32_t i = atomicAdd(&s->listed, 1);
    s->total[i] = (uint64_t)key_of_bits<kind>(bits) << 32 | ~(uint32_t)column;
    s->low[i] = counts ? 1 : select_power(steps);
  });
  if (w.h.blocks > 1) cluster_barrier();
  else warps_sync(w.h.warps);
  uint64_t last = 0;
  for (uint32_t i = thread; i < s->listed; i += L::threads) {
    uint64_t before = above;
    for (int b = 0; b < w.h.blocks; b++) {
      uint32_t others = remote_word(&s->listed, b);
#pragma unroll 4
      for (uint32_t j = 0; j < others; j++)
        if (remote_word(&s->total[j], b) > s->total[i]) before += remote_word(&s->low[j], b);
    }
    if (before < target && target <= before + s->low[i]) last = s->total[i];
  }
  last = row_all<true>(w, last);
  if (alone) __syncwarp();
  for (uint32_t i = thread; i < s->listed; i += L::threads) s->low[i] = 0;
  warps_sync(w.h.warps);
  return cut_at<kind>((uint32_t)(last >> 32), (int)~(uint32_t)last);
}

// The same of many elements, all with one weight, of which `kept` are needed: the larger elements come first, of equals the lower
// columns.
template <int kind, bool alone>
INLINE Cut cut_equals(Weigher<kind, alone> &w, uint32_t from, uint32_t end, uint64_t kept) {
  uint32_t low = 0, high = 0; // low: complement
  auto key_in = [&](uint32_t bits) { // 0: not among them
    uint32_t steps = steps_of(w, bits);
    return steps >= from && steps <= end ? key_of_bits<kind>(bits) : 0;
  };
  auto count_from = [&](uint32_t least) {
    uint64_t count = 0;
    each_above(w, [&](uint32_t bits, int) { count += key_in(bits) >= least; });
    return row_all<false>(w, count);
  };
  each_above(w, [&](uint32_t bits, int) {
    uint32_t key = key_in(bits);
    if (key) low = max(low, ~key), high = max(high, key);
  });
  low = ~(uint32_t)row_all<true>(w, low), high = (uint32_t)row_all<true>(w, high);
#pragma unroll 1
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (count_from(middle) >= kept) low = middle;
    else high = middle - 1;
  }
  uint64_t above = count_from(low + 1);
  int64_t column = locate(w, [&](uint32_t bits, int) { return (uint32_t)(key_of_bits<kind>(bits) == low); },
                          [&](uint64_t) { return kept - above - 1; });
  return cut_at<kind>(low, (int)row_all<true>(w, column == NOT_MINE ? 0 : (uint64_t)column));
}

// What is needed for the target, of the count or of the sum, the largest first. whole: the sum of which top_p is meant; 0: of all.
// False: all of it.
template <int kind, bool alone>
INLINE bool search(Weigher<kind, alone> &w, const SampleParams &p, bool counts, uint64_t whole, Cut *cut) {
  typedef Level<alone> L;
  uint64_t own[L::each], above = 0, target = (uint64_t)p.k;
  uint32_t prefix = 0;
#pragma unroll 1
  for (int shift = L::first;; shift -= L::bits) {
    fill_bins(w, counts, shift, prefix, own);
    if (shift == L::first) {
      uint64_t mine = 0;
#pragma unroll
      for (int i = 0; i < L::each; i++) mine += own[i];
      uint64_t all = block_all(w, mine);
      if (counts && all <= target) return false;
      if (!counts) target = max((uint64_t)__umul64hi(whole ? whole : all, p.share << 32), (uint64_t)1);
    }
    Bin b = find_bin(w, own, above, target);
    prefix = (shift == L::first ? 0 : prefix << L::bits) + b.number, above = b.above;
    uint32_t from = prefix << shift, end = from + ((1u << shift) - 1);
    uint64_t unit = counts ? 1 : select_power(end); // no element in the bin weighs less
    bool few = b.with - b.above <= L::bins * unit;
    set_floor(w, end);
    if (!few && shift > L::last) continue;
    *cut = few ? cut_listed(w, counts, from, end, above, target) : cut_equals(w, from, end, (target - above + unit - 1) / unit);
    w.floor = cut->value;
    return true;
  }
}

template <int kind, bool alone> INLINE uint32_t weight_kept(const Weigher<kind, alone> &w, const Cut &cut, uint32_t bits, int column) {
  float x = value_of_bits<kind>(bits);
  return x > cut.value || (x == cut.value && column <= cut.column) ? select_power(steps_of(w, bits)) : 0;
}

template <int kind, bool alone> INLINE Cut cut_of(Weigher<kind, alone> &w, const SampleParams &p) {
  Cut cut = {-INFINITY, INT32_MAX};
  if (p.k) search(w, p, true, 0, &cut);
  if (!p.share) return cut;
  uint64_t whole = 0;
  if (p.k) {
    each_above(w, [&](uint32_t bits, int column) { whole += weight_kept(w, cut, bits, column); });
    whole = row_all<false>(w, whole);
  }
  search(w, p, false, whole, &cut);
  return cut;
}

// ---- The kernels

template <int kind, bool alone>
INLINE int64_t weigh_row(Weigher<kind, alone> &w, const SampleParams &p) {
  const uint32_t lowest = lowest_bits<kind>(), infinite = lowest & (kind == KIND_FP32 ? 0x7fffffffu : 0x7fffu);
  uint32_t key = top_key(w);
  uint64_t random = select_random((uint64_t)w.seed, p.step);
  if (key <= lowest_key<kind>() || key == key_of_bits<kind>(infinite)) {
    if (w.h.rank || w.h.warp) return NOT_MINE;
    int64_t column = draw_equal<kind>(p, w.h.x.at, key <= lowest_key<kind>() ? lowest : infinite, random);
    return threadIdx.x % 32 == 0 ? column : NOT_MINE;
  }
  w.top = w.floor = value_of_bits<kind>(bits_of_key<kind>(key));
  if (p.k == 1)
    return locate(w, [&](uint32_t bits, int) { return (uint32_t)(key_of_bits<kind>(bits) == key); }, [](uint64_t) { return (uint64_t)0; });
  set_floor(w, SELECT_FAR);
  auto wanted = [&](uint64_t all) { return __umul64hi(random, all); };
  if (!p.k && !p.share) return locate(w, [&](uint32_t bits, int) { return select_power(steps_of(w, bits)); }, wanted);
  Cut cut = cut_of(w, p);
  return locate(w, [&](uint32_t bits, int column) { return weight_kept(w, cut, bits, column); }, wanted);
}

template <int kind, bool alone> INLINE void weigh(const SampleParams &p, WeighShared<alone> *shared, uint4 *memory) {
  typedef Level<alone> L;
  Weigher<kind, alone> w;
  if (p.k || p.share)
    for (int i = threadIdx.x % L::threads; i < L::bins; i += L::threads) shared->low[i] = shared->high[i] = 0;
  __syncwarp();
  weigh_begin(w, p, shared, memory);
  if (w.h.row >= p.m) return;
  int64_t id = weigh_row(w, p);
  held_leave(w.h);
  if (id != NOT_MINE) put_id(p, w.h.row, id);
  held_end(w.h);
}

#define WEIGH(in, name, alone)                                                                               \
  KERNEL __launch_bounds__(WEIGH_THREADS, 6) sol_weigh_##in##_##name(const __grid_constant__ SampleParams p) {\
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ WeighShared<alone> shared[alone ? WEIGH_THREADS / 32 : 1];                                    \
    begin_kernel();                                                                                          \
    auto *mine = shared + (alone ? threadIdx.x / 32 : 0);                                                    \
    if (in == 4) weigh<KIND_FP32, alone>(p, mine, held);                                                     \
    else if (p.x_kind == KIND_FP16) weigh<KIND_FP16, alone>(p, mine, held);                                  \
    else weigh<KIND_BF16, alone>(p, mine, held);                                                             \
  }
WEIGH(2, warp, true)
WEIGH(4, warp, true)
WEIGH(2, block, false)
WEIGH(4, block, false)

#endif
