// A random element of a row by the weights of all of them, or of those down to a cut: top_p, or a top_k too large for a list.
//
// Every warp has consecutive chunks of the row, so that the order of the columns is that of blocks, warps, chunks and lanes.
// Where a row is short enough for its threads to have one batch each (`once`), the weights stay in registers; otherwise they
// are computed again in each pass. The cut is a weight: those above it are kept, and of those equal to it so many, first
// the larger elements, then the lower columns. It is found by a search that interpolates between the sums at two weights.
#ifndef SOL_KERNELS_SELECT_WEIGH_CUH
#define SOL_KERNELS_SELECT_WEIGH_CUH

#include "draw.cuh"

enum { NOT_MINE = -2 }; // in place of a column

// A sum of weights and a number of elements.
typedef struct Mass {
  uint64_t sum;
  uint32_t count;
} Mass;

typedef struct WeighShared {
  Mass warp[2][8], block[2]; // by turns
  Mass tail;
} WeighShared;

typedef struct Cut {
  uint32_t weight, key; // elements of this weight and key are kept only where `kept` has not been used up
  uint32_t kept;
  bool one_key; // all elements of this weight have the same key
} Cut;

template <int kind, int threads, bool once> struct Weighed {
  enum { per = kind == KIND_FP32 ? 4 : 8 };
  Part part; // of this warp
  WeighShared *shared;
  int warp, rank, blocks, turn;
  float top, per_octave;
  Batch<32> b;
  uint32_t weight[BATCH][per], edge_weight;
};

INLINE Mass lanes_mass(Mass m) {
  uint64_t sum =
      lanes_total(m.sum & ((1ull << 48) - 1)) + ((uint64_t)lanes_sum((uint32_t)(m.sum >> 48)) << 48);
  return Mass{sum, lanes_sum(m.count)};
}
INLINE Mass lanes_highest(Mass m) {
  return Mass{lanes_most((uint32_t)m.sum), lanes_most(m.count)};
}
INLINE Mass remote_mass(const Mass *here, int rank) {
  return Mass{remote_word(&here->sum, rank), remote_word(&here->count, rank)};
}

// Of all threads of the row together: the sums, or the largest of each. Two sets of shared variables by turns: one barrier
// is enough.
template <bool most, int threads, class W> INLINE Mass row_fold(W &w, Mass m) {
  int lane = threadIdx.x % 32, t = w.turn;
  w.turn ^= 1;
  m = most ? lanes_highest(m) : lanes_mass(m);
  if (threads == 32) return m;
  if (lane == 0) w.shared->warp[t][w.warp] = m;
  __syncthreads();
  m = lane < threads / 32 ? w.shared->warp[t][lane] : Mass{0, 0};
  m = most ? lanes_highest(m) : lanes_mass(m);
  if (w.blocks == 1) return m;
  if (threadIdx.x == 0) w.shared->block[t] = m;
  cluster_barrier();
  m = lane < w.blocks ? remote_mass(&w.shared->block[t], lane) : Mass{0, 0};
  return most ? lanes_highest(m) : lanes_mass(m);
}

template <int kind> INLINE uint32_t element_bits(const Vec &v, int i) {
  return kind == KIND_FP32 ? v.u[i] : v.u[i / 2] >> i % 2 * 16 & 0xffff;
}

template <int kind, int threads, bool once> INLINE void weigh_batch(Weighed<kind, threads, once> &w) {
#pragma unroll
  for (int u = 0; u < BATCH; u++)
#pragma unroll
    for (int i = 0; i < w.per; i++)
      w.weight[u][i] = u < w.b.chunks ? select_weight(value_of_bits<kind>(element_bits<kind>(w.b.v[u], i)),
                                                      w.top, w.per_octave)
                                      : 0;
  w.edge_weight =
      w.b.edge >= 0 ? select_weight(value_of_bits<kind>(w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu)),
                                    w.top, w.per_octave)
                    : 0;
}

// each() for all batches of this warp, loaded and weighed.
template <int kind, int threads, bool once, class Each>
INLINE void each_batch(Weighed<kind, threads, once> &w, Each each) {
#pragma unroll 1
  for (int at = w.part.begin; at == w.part.begin || at < w.part.end; at += 32 * BATCH) {
    if (!once) {
      w.b = load_batch<kind, 32>(w.part, at);
      weigh_batch(w);
    }
    each();
    if (once) break;
  }
}

// each(weight, bits) for the elements of a batch.
template <int kind, int threads, bool once, class Each>
INLINE void each_weight(const Weighed<kind, threads, once> &w, Each each) {
#pragma unroll
  for (int u = 0; u < BATCH; u++)
#pragma unroll
    for (int i = 0; i < w.per; i++) each(w.weight[u][i], element_bits<kind>(w.b.v[u], i));
  each(w.edge_weight, w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu));
}

// The elements that weigh at least `least`.
template <int kind, int threads, bool once>
INLINE Mass mass_from(Weighed<kind, threads, once> &w, uint32_t least) {
  Mass m = {0, 0};
  each_batch(w, [&] {
    each_weight(w, [&](uint32_t weight, uint32_t) {
      if (weight >= least) m.sum += weight, m.count++;
    });
  });
  return row_fold<false, threads>(w, m);
}

// The lowest and the highest weight from `least` to `most`.
template <int kind, int threads, bool once>
INLINE void narrow_range(Weighed<kind, threads, once> &w, uint32_t *least, uint32_t *most) {
  uint32_t low = ~0u, high = 0;
  each_batch(w, [&] {
    each_weight(w, [&](uint32_t weight, uint32_t) {
      if (weight >= *least && weight <= *most) low = min(low, weight), high = max(high, weight);
    });
  });
  Mass m = row_fold<true, threads>(w, Mass{high, ~low});
  *least = ~m.count, *most = (uint32_t)m.sum;
}

// The weight of the last element that is needed for `target`, of the sum or of the count, the largest first; `above`: those
// that weigh more. All with any weight are enough for it, and they are `all`.
template <int kind, int threads, bool once>
INLINE uint32_t search_weight(Weighed<kind, threads, once> &w, bool counts, Mass all, uint64_t target,
                              Mass *above) {
  uint32_t low = 1, high = select_power(0); // of the weights in question
  Mass of_low = all, of_high = {0, 0};      // at least `low`; more than `high`
#pragma unroll 1
  for (int step = 1;; step++) {
    if (of_low.count - of_high.count <= 64 || step % 4 == 0) narrow_range(w, &low, &high);
    if (low == high) break;
    uint64_t from = counts ? of_low.count : of_low.sum, to = counts ? of_high.count : of_high.sum;
    float share = (float)(from - target) / (float)(from - to), l = __log2f((float)low),
          h = __log2f((float)high);
    if (step % 3 == 0) share = 0.5f;
    uint32_t middle = (uint32_t)exp2f(l + (h - l) * share);
    middle = min(max(middle, low + 1), high);
    Mass m = mass_from(w, middle);
    if ((counts ? m.count : m.sum) >= target)
      low = middle, of_low = m;
    else
      high = middle - 1, of_high = m;
  }
  *above = of_high;
  return low;
}

// Of those with the cut's weight the larger elements come first: the key of the last one that is kept, and how many of that.
template <int kind, int threads, bool once> INLINE Cut cut_keys(Weighed<kind, threads, once> &w, Cut cut) {
  uint32_t low = ~0u, high = 0;
  each_batch(w, [&] {
    each_weight(w, [&](uint32_t weight, uint32_t bits) {
      if (weight == cut.weight)
        low = min(low, key_of_bits<kind>(bits)), high = max(high, key_of_bits<kind>(bits));
    });
  });
  Mass m = row_fold<true, threads>(w, Mass{high, ~low});
  low = ~m.count, high = (uint32_t)m.sum;
  cut.one_key = low == high;
  uint32_t above = 0;
#pragma unroll 1
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    m = Mass{0, 0};
    each_batch(w, [&] {
      each_weight(w, [&](uint32_t weight, uint32_t bits) {
        m.count += weight == cut.weight && key_of_bits<kind>(bits) >= middle;
      });
    });
    m = row_fold<false, threads>(w, m);
    if (m.count >= cut.kept)
      low = middle;
    else
      high = middle - 1, above = m.count;
  }
  cut.key = low, cut.kept -= above;
  return cut;
}

// Of several parts in order, one a lane: the first with which the sums of what the cut keeps exceed `wanted`; both are
// reduced by what comes before it. -1: they do not exceed it.
INLINE int find_part(Mass m, uint64_t *wanted, Cut *cut) {
  int lane = threadIdx.x % 32;
  uint32_t before = (uint32_t)lanes_upto(m.count) - m.count,
           left = cut->kept > before ? cut->kept - before : 0;
  uint64_t mine = m.sum + (uint64_t)cut->weight * min(left, m.count), upto = lanes_upto(mine);
  uint32_t found = __ballot_sync(~0u, upto > *wanted);
  lane = found ? __ffs(found) - 1 : 31;
  *wanted -= __shfl_sync(~0u, upto - (found ? mine : 0), lane);
  cut->kept = __shfl_sync(~0u, found ? left : left - min(left, m.count), lane);
  return found ? lane : -1;
}

// What an element adds: its weight where the cut keeps it for certain, one to the count where it is equal to it.
template <int kind> INLINE void add_element(const Cut &cut, uint32_t weight, uint32_t bits, Mass *m) {
  bool above = weight > cut.weight, equal = weight == cut.weight;
  if (!cut.one_key && equal)
    above = key_of_bits<kind>(bits) > cut.key, equal = key_of_bits<kind>(bits) == cut.key;
  if (above) m->sum += weight;
  m->count += equal;
}

template <int kind, int threads, bool once>
INLINE Mass chunk_mass(const Weighed<kind, threads, once> &w, const Cut &cut, int u) {
  Mass m = {0, 0};
#pragma unroll
  for (int i = 0; i < w.per; i++) add_element<kind>(cut, w.weight[u][i], element_bits<kind>(w.b.v[u], i), &m);
  return u < w.b.chunks ? m : Mass{0, 0};
}
template <int kind, int threads, bool once>
INLINE Mass edge_mass(const Weighed<kind, threads, once> &w, const Cut &cut, bool tail) {
  Mass m = {0, 0};
  if (w.b.edge >= 0 && (w.b.edge >= w.part.x.head) == tail)
    add_element<kind>(cut, w.edge_weight, w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu), &m);
  return m;
}

// The column in this batch, of the one lane that has it, else NOT_MINE: in the edges before or after the chunks (-1, BATCH), or in chunk
// u of a lane.
template <int kind, int threads, bool once>
INLINE int64_t find_in_chunk(const Weighed<kind, threads, once> &w, Cut cut, uint64_t wanted, int u) {
  bool edges = u < 0 || u == BATCH;
  Mass m = edges ? edge_mass(w, cut, u == BATCH) : Mass{0, 0};
#pragma unroll
  for (int v = 0; v < BATCH; v++)
    if (v == u) m = chunk_mass(w, cut, v);
  int lane = find_part(m, &wanted, &cut);
  if (lane != threadIdx.x % 32) return NOT_MINE;
  if (edges) return w.b.edge;
  int64_t column = w.part.x.head + (w.b.from + u * 32) * w.per, found = NOT_MINE;
#pragma unroll
  for (int v = 0; v < BATCH; v++)
#pragma unroll
    for (int i = 0; i < w.per; i++)
      if (v == u && found == NOT_MINE) {
        Mass one = {0, 0};
        add_element<kind>(cut, w.weight[v][i], element_bits<kind>(w.b.v[v], i), &one);
        uint64_t mine = one.sum + (uint64_t)cut.weight * min(one.count, cut.kept);
        if (wanted < mine) found = column + i;
        wanted -= mine, cut.kept -= min(one.count, cut.kept);
      }
  return found;
}

// The same of this warp's batches, without the edges after the chunks.
template <int kind, int threads, bool once>
INLINE int64_t find_in_warp(Weighed<kind, threads, once> &w, Cut cut, uint64_t wanted) {
  int64_t column = NOT_MINE;
  bool done = false;
  each_batch(w, [&] {
    if (done) return;
    int lane = threadIdx.x % 32;
    Mass m = lanes_mass(edge_mass(w, cut, false));
    if (lane) m = Mass{0, 0};
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      Mass of_chunk = lanes_mass(chunk_mass(w, cut, u));
      if (lane == u + 1) m = of_chunk;
    }
    int u = find_part(m, &wanted, &cut) - 1;
    if (u == -2) return;
    done = true;
    column = find_in_chunk(w, cut, wanted, u);
  });
  return column;
}

// The column that the random number falls on, for the one thread of the row that finds it; NOT_MINE for the others.
template <int kind, int threads, bool once>
INLINE int64_t find_column(Weighed<kind, threads, once> &w, Cut cut, uint64_t random) {
  Mass m = {0, 0}, tail = {0, 0};
  each_batch(w, [&] {
    Mass one = edge_mass(w, cut, false), end = edge_mass(w, cut, true);
    m.sum += one.sum, m.count += one.count, tail.sum += end.sum, tail.count += end.count;
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      one = chunk_mass(w, cut, u);
      m.sum += one.sum, m.count += one.count;
    }
  });
  int lane = threadIdx.x % 32, t = w.turn;
  m = lanes_mass(m), tail = lanes_mass(tail);
  if (threads > 32) {
    if (w.rank == 0 && threadIdx.x == 0) w.shared->tail = tail;
    m = row_fold<false, threads>(
        w, lane == 0 ? m : Mass{0, 0}); // leaves the sums of warps and blocks in shared memory
    m = lane < w.blocks ? w.blocks > 1 ? remote_mass(&w.shared->block[t], lane) : m : Mass{0, 0};
    tail = w.blocks > 1 ? remote_mass(&w.shared->tail, 0) : w.shared->tail;
  } else if (lane) {
    m = Mass{0, 0};
  }
  if (lane == w.blocks) m = tail;
  // The whole of what is kept: nothing reaches it.
  Cut all = cut;
  uint64_t wanted = 0, none = ~0ull;
  find_part(m, &none, &all);
  wanted = __umul64hi(random, ~none);
  int rank = find_part(m, &wanted, &cut);
  if (rank == w.blocks) return w.rank == 0 && w.warp == 0 ? find_in_chunk(w, cut, wanted, BATCH) : NOT_MINE;
  if (rank != w.rank) return NOT_MINE;
  if (threads > 32 &&
      find_part(lane < threads / 32 ? w.shared->warp[t][lane] : Mass{0, 0}, &wanted, &cut) != w.warp)
    return NOT_MINE;
  return find_in_warp(w, cut, wanted);
}

// The row of this warp and the key of its largest element; once: its batch.
template <int kind, int threads, bool once>
INLINE uint32_t weigh_begin(Weighed<kind, threads, once> &w, const SampleParams &p, const Part &row,
                            WeighShared *shared) {
  w.part = row, w.shared = shared, w.rank = row.rank, w.blocks = row.blocks, w.turn = 0;
  w.warp = threads == 32 ? 0 : threadIdx.x / 32;
  int all = row.blocks * (threads / 32), number = row.rank * (threads / 32) + w.warp;
  int chunks = (int)row.x.chunks, each = all > 1 ? (chunks + all - 1) / all : chunks;
  w.part.begin = min(number * each, chunks), w.part.end = min(w.part.begin + each, chunks);
  w.part.thread = threadIdx.x % 32;
  w.part.rank = number ? 1 : 0, w.part.blocks = number ? 3 : 1; // the first warp has the edges
  uint32_t word = span_lowest(kind);
#pragma unroll 1
  for (int at = w.part.begin; at == w.part.begin || at < w.part.end; at += 32 * BATCH) {
    w.b = load_batch<kind, 32>(w.part, at);
#pragma unroll
    for (int u = 0; u < BATCH; u++)
#pragma unroll
      for (int j = 0; j < 4; j++) word = larger_word<kind, 0>(word, w.b.v[u].u[j]);
    word = larger_word<kind, 0>(word, w.b.edge_word);
    if (once) break;
  }
  uint32_t key = key_of_bits<kind>(kind == KIND_FP32 ? word : word & 0xffff);
  if (kind != KIND_FP32) key = max(key, key_of_bits<kind>(word >> 16));
  return (uint32_t)row_fold<true, threads>(w, Mass{key, 0}).sum;
}

// What top_k and top_p leave.
template <int kind, int threads, bool once>
INLINE Cut cut_of(Weighed<kind, threads, once> &w, const SampleParams &p) {
  Cut cut = {0, 0, 0, true};
  if (!p.k && !p.share) return cut;
  Mass all = mass_from(w, 1), above;
  uint64_t whole = all.sum;
#pragma unroll 1
  for (int by = 0; by < 2; by++) { // first the count, then the sum
    uint64_t target = by ? __umul64hi(whole, p.share << 32) : (uint64_t)p.k;
    if (by ? !p.share : !p.k || all.count <= p.k) continue;
    if (!target) target = 1;
    cut.weight = search_weight(w, !by, all, target, &above);
    cut.kept = (uint32_t)(by ? (target - above.sum + cut.weight - 1) / cut.weight : target - above.count);
    whole = above.sum + (uint64_t)cut.kept * cut.weight;
  }
  return cut.kept ? cut_keys(w, cut) : cut;
}

template <int kind, int threads, bool once>
INLINE int64_t weigh_row(const SampleParams &p, const Part &row, WeighShared *shared) {
  Weighed<kind, threads, once> w;
  uint64_t random = select_random((uint64_t)p.seeds[row.row], p.step);
  uint32_t key = weigh_begin(w, p, row, shared);
  if (key <= lowest_key<kind>()) {
    if (w.rank || w.warp) return NOT_MINE;
    int64_t column = draw_lowest<kind>(p, row.x.at, random);
    return threadIdx.x % 32 == 0 ? column : NOT_MINE;
  }
  w.top = value_of_bits<kind>(bits_of_key<kind>(key)), w.per_octave = p.per;
  if (once) weigh_batch(w);
  return find_column(w, cut_of(w, p), random);
}

template <int kind, int threads, bool once> INLINE void weigh(const SampleParams &p, WeighShared *shared) {
  Part row = part_of<threads>(p.x, p.x_stride, p.n, kind == KIND_FP32 ? 4 : 2, p.m);
  if (row.row >= p.m) return;
  int64_t id = weigh_row<kind, threads, once>(p, row, shared);
  if (row.blocks > 1) cluster_arrive();
  if (id != NOT_MINE) {
    if (p.wide_ids)
      ((int64_t *)p.ids)[row.row] = id;
    else
      ((int32_t *)p.ids)[row.row] = (int32_t)id;
  }
  if (row.blocks > 1) cluster_wait();
}

#define WEIGH(in, threads, rows, once)                                                                       \
  KERNEL __launch_bounds__(threads *rows, 512 / (threads * rows))                                            \
      sol_weigh_##in##_##threads##_##once(const __grid_constant__ SampleParams p) {                          \
    __shared__ WeighShared shared;                                                                           \
    begin_kernel();                                                                                          \
    if (in == 4)                                                                                             \
      weigh<KIND_FP32, threads, once>(p, &shared);                                                           \
    else if (p.x_kind == KIND_FP16)                                                                          \
      weigh<KIND_FP16, threads, once>(p, &shared);                                                           \
    else                                                                                                     \
      weigh<KIND_BF16, threads, once>(p, &shared);                                                           \
  }
WEIGH(2, 32, 4, 1)
WEIGH(4, 32, 4, 1)
WEIGH(2, 256, 1, 1)
WEIGH(4, 256, 1, 1)
WEIGH(2, 256, 1, 0)
WEIGH(4, 256, 1, 0)

#endif
