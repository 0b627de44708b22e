// A random element of a row by the weights of all of them, or of those down to a cut: a top_k too large for a list.
//
// The row is held in shared memory (held.cuh): read from global memory once, by a warp, a block or a cluster of blocks, in the order
// of the columns. Passes over it: the largest element; with such a top_k, histograms of how far elements are below it;
// then the sums of the weights, chunk by chunk, in which the random number finds its chunk (weight.h has
// the rule); with top_p also those of the elements before the one that was found. Chunks whose elements are all too
// far below the largest to count are passed over.
#ifndef SOL_KERNELS_SELECT_WEIGH_CUH
#define SOL_KERNELS_SELECT_WEIGH_CUH

#include "cut.cuh"
#include "draw.cuh"

// A histogram of distances below the largest (steps_of), level by level: bins of 2^first steps, then 2^bits times finer ones
// down to 8 steps. `alone`: a row has one warp, otherwise a block of WEIGH_THREADS.
enum { WEIGH_THREADS = 128 };
template <bool alone> struct Level {
  enum { bins = alone ? 128 : 512, first = alone ? 21 : 19, bits = alone ? 6 : 8, last = 3 }; // all bits of FAR
  enum { threads = alone ? 32 : WEIGH_THREADS, each = bins / threads };
};

// What a random number falls on.
typedef struct Found {
  int column;
  uint32_t bits;
} Found;

// What a row's threads of one block share.
template <bool alone> struct WeighShared {
  uint32_t bins[Level<alone>::bins];
  uint64_t entry[Level<alone>::bins]; // of a bin
  uint32_t listed, bin, above, with;
  uint64_t warp[2][8], block[2]; // by turns
  Found found;
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
  float top, floor; // what is below `floor` counts for nothing
  SelectScale scale;
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

template <int kind, bool alone> INLINE float place_of_value(const Weigher<kind, alone> &w, float x) {
  SelectScale s = w.scale;
  if (kind != KIND_FP32) s.shift = 0;
  return select_place(x, s);
}
template <int kind, bool alone> INLINE float place_of(const Weigher<kind, alone> &w, uint32_t bits) {
  return place_of_value(w, value_of_bits<kind>(bits));
}

// How far an element is below the largest, in 2^-23 octaves. From FAR on it has no weight.
enum { FAR = 31 << 23 };
template <int kind, bool alone> INLINE uint32_t steps_of(const Weigher<kind, alone> &w, uint32_t bits) {
  return (uint32_t)((SELECT_TOP - place_of(w, bits)) * 0x1p28f);
}

// This thread's single elements, before the first chunk and after the last.
template <int kind, bool alone> INLINE void load_ends(Weigher<kind, alone> &w) {
  int lane = threadIdx.x % 32, tail = w.h.x.edges - w.h.x.head;
  bool first = w.h.rank == 0 && w.h.warp == 0, last = w.h.rank == w.h.blocks - 1 && w.h.warp == w.h.warps - 1;
  w.front_at = lane, w.back_at = (int)w.h.x.n - tail + lane;
  w.front = w.back = lowest_bits<kind>();
  auto load = [&](int c) { return kind == KIND_FP32 ? ((const uint32_t *)w.h.x.at)[c] : ((const uint16_t *)w.h.x.at)[c]; };
  if (first && lane < w.h.x.head) w.front = load(w.front_at);
  if (last && lane < tail) w.back = load(w.back_at);
}

// The row of this thread, in shared memory.
template <int kind, bool alone>
INLINE void weigh_begin(Weigher<kind, alone> &w, const SampleParams &p, WeighShared<alone> *shared, uint4 *memory) {
  const int in = kind == KIND_FP32 ? 4 : 2;
  w.h = held_of(p.x, p.x_stride, p.n, in, memory, p.held);
  w.shared = shared;
  w.sums = (uint32_t *)((char *)memory + p.held.shared) + (w.h.mine - memory);
  int all = w.h.lanes * w.h.warps * w.h.blocks;
  w.rounds = ((int)w.h.x.chunks + all - 1) / all;
  load_ends(w);
  w.seed = w.h.row < p.m ? p.seeds[w.h.row] : 0; // in flight along with the row
  held_fill(w.h);
}

// The key of the row's largest element.
template <int kind, bool alone> INLINE uint32_t top_key(Weigher<kind, alone> &w) {
  uint32_t word = span_lowest(kind), key = 0;
  Vec v;
#pragma unroll 4
  for (int k = 0; k < w.h.kept; k++) {
    v.v = w.h.mine[32 * k];
    word = larger_word<kind, 0>(word, chunk_word<kind>(v));
  }
#pragma unroll 4
  for (int k = w.h.kept; k < w.h.count; k++) {
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
  float rounding = (fabsf(w.scale.add) + 1) * 0x1p-22f, reach = __fdiv_ru((float)steps * 0x1p-28f + rounding, w.scale.per);
  w.floor = __fsub_rd(w.top, reach * (1 + 0x1p-20f));
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

// The number right below.
INLINE float right_below(float f) {
  uint32_t u = __float_as_uint(f);
  return __uint_as_float(f > 0 ? u - 1 : f < 0 ? u + 1 : 0x80000001u);
}

// What elements are drawn by: the weights of all (0), or of those down to a cut.
enum { CUT = 1 };
template <int what, int kind, bool alone> INLINE uint32_t weigh_one(const Weigher<kind, alone> &w, Cut cut, uint32_t bits, int column) {
  float x = value_of_bits<kind>(bits), place = place_of(w, bits);
  if (what && !(x > cut.value || (x == cut.value && column <= cut.column))) return 0;
  return select_weight(place);
}

template <int kind> INLINE void drop_element(Vec &v, int i) {
  if (kind == KIND_FP32) v.u[i] = span_lowest(kind);
  else v.u[i / 2] = (v.u[i / 2] & (i % 2 ? 0xffffu : 0xffff0000u)) | (span_lowest(kind) & (i % 2 ? 0xffff0000u : 0xffffu));
}

// Of a chunk that begins at `column`. Whole chunks of what counts for nothing are passed over.
template <int what, int kind, bool alone>
INLINE uint32_t weigh_chunk(const Weigher<kind, alone> &w, Cut cut, Vec v, int column) {
  const int per = w.per;
  uint32_t sum = 0;
  float f[8], above = cut.value;
  if (word_top<kind>(chunk_word<kind>(v)) < w.floor) return 0;
  if (what && column <= cut.column) {
    above = right_below(cut.value);
    if (column + per - 1 > cut.column) // the one chunk that has elements on both sides
#pragma unroll
      for (int i = 0; i < per; i++)
        if (column + i > cut.column && value_of_bits<kind>(element_bits<kind>(v, i)) == cut.value) drop_element<kind>(v, i);
  }
  widen(&v, kind, 16 / per, f);
#pragma unroll
  for (int i = 0; i < per; i++) {
    float place = place_of_value(w, f[i]);
    uint32_t weight = select_weight(place);
    if (!(what) || f[i] > above) sum += weight;
  }
  return sum;
}

// The sum of the row. That of each chunk stays in shared memory, those of warps and blocks until the next but one.
template <int what, int kind, bool alone> INLINE uint64_t measure(Weigher<kind, alone> &w, Cut cut) {
  uint64_t mine = (uint64_t)weigh_one<what>(w, cut, w.front, w.front_at) + weigh_one<what>(w, cut, w.back, w.back_at);
  int column = (int)held_column(w.h, 0, 16 / w.per);
  const uint4 *from = w.h.mine;
  uint32_t *to = w.sums;
  Vec v;
#pragma unroll 2
  for (int k = 0; k < w.h.kept; k++, from += 32, to += 32, column += 32 * w.per) {
    v.v = *from;
    mine += *to = weigh_chunk<what>(w, cut, v, column);
  }
#pragma unroll 1
  for (int k = w.h.kept; k < w.h.count; k++, column += 32 * w.per) {
    v.v = held_vector(w.h, k);
    mine += weigh_chunk<what>(w, cut, v, column);
  }
  return row_all<false>(w, mine);
}

// In chunk k of one lane, an element for each of the first lanes.
template <int what, int kind, bool alone>
INLINE Found find_in_chunk(const Weigher<kind, alone> &w, Cut cut, int k, int lane, uint64_t wanted) {
  const int i = threadIdx.x % 32;
  Vec v;
  v.v = k < w.h.count ? held_vector(w.h, k) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < 4; j++) v.u[j] = __shfl_sync(~0u, v.u[j], lane);
  int column = __shfl_sync(~0u, (int)held_column(w.h, k, 16 / w.per), lane);
  uint32_t bits = 0;
#pragma unroll
  for (int j = 0; j < w.per; j++)
    if (j == i) bits = element_bits<kind>(v, j);
  int at = find_part(i < w.per ? weigh_one<what>(w, cut, bits, column + i) : 0, &wanted);
  return Found{column + at, __shfl_sync(~0u, bits, at)};
}

// In this warp's part of the row, whose chunks' sums are known.
template <int what, int kind, bool alone> INLINE Found find_in_warp(const Weigher<kind, alone> &w, Cut cut, uint64_t wanted) {
  auto at_end = [&](uint32_t bits, int column) {
    int lane = find_part(weigh_one<what>(w, cut, bits, column), &wanted);
    return Found{__shfl_sync(~0u, column, lane), __shfl_sync(~0u, bits, lane)};
  };
  uint64_t part = lanes_total(weigh_one<what>(w, cut, w.front, w.front_at));
  if (wanted < part) return at_end(w.front, w.front_at);
  wanted -= part;
#pragma unroll 1
  for (int k = 0; k < w.rounds; k++) {
    uint32_t sum = 0;
    if (k < w.h.kept) {
      sum = w.sums[w.h.lanes * k];
    } else if (k < w.h.count) {
      Vec v;
      v.v = held_vector(w.h, k);
      sum = weigh_chunk<what>(w, cut, v, (int)held_column(w.h, k, 16 / w.per));
    }
    part = lanes_total(sum);
    if (wanted < part) {
      int from = find_part(sum, &wanted);
      return find_in_chunk<what>(w, cut, k, from, wanted);
    }
    wanted -= part;
  }
  return at_end(w.back, w.back_at);
}

// The element on which `wanted` falls, in what was measured last, for all threads of the row.
template <int what, int kind, bool alone> INLINE Found find(Weigher<kind, alone> &w, Cut cut, uint64_t wanted) {
  int lane = threadIdx.x % 32, t = w.h.turn ^ 1, rank = 0;
  if (alone) return find_in_warp<what>(w, cut, wanted);
  if (w.h.blocks > 1) rank = find_part(lane < w.h.blocks ? remote_word(&w.shared->block[t], lane) : 0, &wanted);
  if (rank == w.h.rank && find_part(lane < w.h.warps ? w.shared->warp[t][lane] : 0, &wanted) == w.h.warp) {
    Found f = find_in_warp<what>(w, cut, wanted);
    if (lane == 0) w.shared->found = f;
  }
  if (w.h.blocks == 1) {
    __syncthreads();
    return w.shared->found;
  }
  cluster_barrier();
  const Found *f = &w.shared->found;
  return Found{(int)remote_word((const uint32_t *)&f->column, rank), remote_word(&f->bits, rank)};
}

// ---- Draws (weight.h)

enum { NOT_MINE = -2 }; // in place of a column: another warp has it

template <int kind, bool alone> INLINE int draw_once(Weigher<kind, alone> &w, Cut cut, uint64_t stream) {
  uint64_t whole = measure<CUT>(w, cut);
  Found f = find<CUT>(w, cut, __umul64hi(select_random(stream, 0), whole));
  return w.h.rank || w.h.warp ? NOT_MINE : f.column;
}

template <int kind, bool alone> INLINE int draw_share(Weigher<kind, alone> &w, const SampleParams &p, Cut cut, uint64_t stream) {
  uint64_t whole = p.k ? measure<CUT>(w, cut) : measure<0>(w, cut), target = target_of(p, whole);
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    Found f = find<CUT>(w, cut, __umul64hi(select_random(stream, trial), whole));
    cut = Cut{value_of_bits<kind>(f.bits), f.column - 1};
    w.floor = cut.value;
    whole = measure<CUT>(w, cut);
    if (whole < target) return w.h.rank || w.h.warp ? NOT_MINE : f.column;
  }
}

// ---- What top_k leaves

// A level of the histogram: of the elements that are `prefix` bins of the level before below the largest. own: this thread's bins,
// of all blocks together.
template <int kind, bool alone> INLINE void fill_bins(Weigher<kind, alone> &w, int shift, uint32_t prefix, uint32_t *own) {
  typedef Level<alone> L;
  uint32_t *bins = w.shared->bins + threadIdx.x % L::threads * L::each;
  uint32_t span = shift == L::first ? FAR : 1u << (shift + L::bits), from = prefix << shift << (shift == L::first ? 0 : L::bits);
#pragma unroll
  for (int i = 0; i < L::each; i++) bins[i] = 0;
  warps_sync(w.h.warps);
  each_above(w, [&](uint32_t bits, int) {
    uint32_t steps = steps_of(w, bits);
    if (steps - from < span) atomicAdd(&w.shared->bins[(steps - from) >> shift], 1);
  });
  if (w.h.blocks > 1) cluster_barrier();
  else warps_sync(w.h.warps);
#pragma unroll
  for (int i = 0; i < L::each; i++) {
    own[i] = w.h.blocks == 1 ? bins[i] : 0;
    for (int b = 0; b < w.h.blocks && w.h.blocks > 1; b++) own[i] += remote_word(&bins[i], b);
  }
  if (w.h.blocks > 1) cluster_barrier();
}

typedef struct Bin {
  uint32_t number, above, with; // how many are before it; and with its own
} Bin;

// The first bin that reaches `target` with those before it. `before`: of the bins before these.
template <class W> INLINE Bin find_bin(W &w, const uint32_t *own, uint32_t before, uint32_t target) {
  typedef Level<W::alone> L;
  uint32_t mine = 0;
#pragma unroll
  for (int i = 0; i < L::each; i++) mine += own[i];
  uint32_t upto = (uint32_t)lanes_upto(mine), sum = __shfl_sync(~0u, upto, 31);
  if (!W::alone) {
    int t = w.h.turn;
    w.h.turn ^= 1;
    if (threadIdx.x % 32 == 0) w.shared->warp[t][w.h.warp] = sum;
    __syncthreads();
    for (int i = 0; i < w.h.warp; i++) before += (uint32_t)w.shared->warp[t][i];
  }
  uint32_t above = before + upto - mine;
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

template <int kind> INLINE Cut cut_at(uint32_t key, int column) {
  return Cut{value_of_bits<kind>(bits_of_key<kind>(key)), column};
}

// The last of the `target` largest elements, where no more than a list holds are from `from` to `end` steps below the largest:
// each is compared with all of them. above: how many are nearer to the largest.
template <int kind, bool alone>
INLINE Cut cut_listed(Weigher<kind, alone> &w, uint32_t from, uint32_t end, uint32_t above, uint32_t target) {
  typedef Level<alone> L;
  WeighShared<alone> *s = w.shared;
  const int thread = threadIdx.x % L::threads;
  if (thread == 0) s->listed = 0;
  warps_sync(w.h.warps);
  each_above(w, [&](uint32_t bits, int column) {
    uint32_t steps = steps_of(w, bits);
    if (steps < from || steps > end) return;
    s->entry[atomicAdd(&s->listed, 1)] = (uint64_t)key_of_bits<kind>(bits) << 32 | ~(uint32_t)column;
  });
  if (w.h.blocks > 1) cluster_barrier();
  else warps_sync(w.h.warps);
  uint64_t last = 0;
  for (uint32_t i = thread; i < s->listed; i += L::threads) {
    uint32_t before = above;
    for (int b = 0; b < w.h.blocks; b++) {
      uint32_t others = remote_word(&s->listed, b);
#pragma unroll 4
      for (uint32_t j = 0; j < others; j++) before += remote_word(&s->entry[j], b) > s->entry[i];
    }
    if (before + 1 == target) last = s->entry[i];
  }
  last = row_all<true>(w, last);
  warps_sync(w.h.warps);
  return cut_at<kind>((uint32_t)(last >> 32), (int)~(uint32_t)last);
}

// The same of many elements, of which `kept` are needed: the larger elements come first, of equals the lower columns.
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
  uint32_t begin = 0, last = INT32_MAX; // the column up to which equals are needed
#pragma unroll 1
  while (begin < last) {
    uint32_t middle = begin + (last - begin) / 2;
    uint64_t count = 0;
    each_above(w, [&](uint32_t bits, int column) { count += key_of_bits<kind>(bits) == low && (uint32_t)column <= middle; });
    if (row_all<false>(w, count) >= kept - above) last = middle;
    else begin = middle + 1;
  }
  return cut_at<kind>(low, (int)last);
}

// What is needed for the p.k largest elements. Where no more have any weight: all.
template <int kind, bool alone> INLINE Cut cut_of(Weigher<kind, alone> &w, const SampleParams &p) {
  typedef Level<alone> L;
  uint32_t own[L::each], above = 0, target = (uint32_t)p.k, prefix = 0;
  Cut cut = {-0x1.fffffep127f, INT32_MAX};
#pragma unroll 1
  for (int shift = L::first; p.k; shift -= L::bits) {
    fill_bins(w, shift, prefix, own);
    if (shift == L::first) {
      uint32_t mine = 0;
#pragma unroll
      for (int i = 0; i < L::each; i++) mine += own[i];
      mine = lanes_sum(mine);
      if (!alone) {
        w.shared->bin = 0;
        __syncthreads();
        if (threadIdx.x % 32 == 0) atomicAdd(&w.shared->bin, mine);
        __syncthreads();
        mine = w.shared->bin;
        __syncthreads();
      }
      if (mine <= target) break;
    }
    Bin b = find_bin(w, own, above, target);
    prefix = (shift == L::first ? 0 : prefix << L::bits) + b.number, above = b.above;
    uint32_t from = prefix << shift, end = from + ((1u << shift) - 1);
    bool few = b.with - b.above <= L::bins;
    set_floor(w, end);
    if (!few && shift > L::last) continue;
    cut = few ? cut_listed(w, from, end, above, target) : cut_equals(w, from, end, target - above);
    w.floor = cut.value;
    break;
  }
  return cut;
}

// ---- The kernels

template <int kind, bool alone> INLINE int64_t weigh_row(Weigher<kind, alone> &w, const SampleParams &p) {
  const uint32_t lowest = lowest_bits<kind>(), infinite = lowest & (kind == KIND_FP32 ? 0x7fffffffu : 0x7fffu);
  uint32_t key = top_key(w);
  uint64_t stream = select_stream((uint64_t)w.seed, p.step);
  bool none = key <= lowest_key<kind>();
  w.top = w.floor = value_of_bits<kind>(none ? lowest : bits_of_key<kind>(key));
  if (none || key == key_of_bits<kind>(infinite) || (kind != KIND_FP32 && fabsf(w.top * p.per) > SELECT_FURTHEST))
    return w.h.rank || w.h.warp ? NOT_MINE : draw_equal<kind>(p, w.h.x.at, none ? lowest : bits_of_key<kind>(key), stream,
                                                                select_weight(SELECT_TOP));
  w.scale = select_scale(w.top, p.per);
  set_floor(w, 29 << 23);
  Cut cut = cut_of(w, p);
  return p.share ? draw_share(w, p, cut, stream) : draw_once(w, cut, stream);
}

template <int kind, bool alone> INLINE void weigh(const SampleParams &p, WeighShared<alone> *shared, uint4 *memory) {
  Weigher<kind, alone> w;
  weigh_begin(w, p, shared, memory);
  if (w.h.row >= p.m) return;
  int64_t id = weigh_row(w, p);
  held_leave(w.h);
  if (id != NOT_MINE && threadIdx.x % 32 == 0) put_id(p, w.h.row, id);
  held_end(w.h);
}

#define WEIGH(in, name, alone)                                                                               \
  KERNEL __launch_bounds__(WEIGH_THREADS, alone ? 6 : 5) sol_weigh_##in##_##name(const __grid_constant__ SampleParams p) {\
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
