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
  uint32_t weight, key; // those that weigh more are kept, and of those with this weight and key ...
  uint32_t kept;        // ... so many
  bool one_key;         // all elements of this weight have the same key
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
  if (most)
    m = lanes_highest(m);
  else
    m.sum = lanes_total(m.sum), m.count = lanes_sum(m.count);
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

// Whether any lane of the warp has a chunk u: not beyond the end of a short row.
template <class W> INLINE bool has_chunk(const W &w, int u) {
  return u == 0 || __shfl_sync(~0u, w.b.chunks, 0) > u;
}

template <int kind, int threads, bool once> INLINE void weigh_batch(Weighed<kind, threads, once> &w) {
#pragma unroll
  for (int u = 0; u < BATCH; u++) {
#pragma unroll
    for (int i = 0; i < w.per; i++) w.weight[u][i] = 0;
    if (!has_chunk(w, u)) continue;
#pragma unroll
    for (int i = 0; i < w.per; i++)
      w.weight[u][i] =
          select_weight(value_of_bits<kind>(element_bits<kind>(w.b.v[u], i)), w.top, w.per_octave);
  }
  w.edge_weight = select_weight(value_of_bits<kind>(w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu)),
                                w.top, w.per_octave);
}

// each() for all batches of this warp, loaded and weighed. What is not there is -infinity and has no weight. `again`: a batch
// whose weights are in registers is loaded once more, for its elements.
template <bool again, int kind, int threads, bool once, class Each>
INLINE void each_batch(Weighed<kind, threads, once> &w, Each each) {
#pragma unroll 1
  for (int at = w.part.begin; at == w.part.begin || at < w.part.end; at += 32 * BATCH) {
    if (!once || again) w.b = load_batch<kind, 32>(w.part, at);
    if (!once) weigh_batch(w);
    each();
    if (once) break;
  }
}

// each(weight, bits, u) for the elements of a batch.
template <int kind, int threads, bool once, class Each>
INLINE void each_weight(const Weighed<kind, threads, once> &w, Each each) {
#pragma unroll
  for (int u = 0; u < BATCH; u++)
    if (has_chunk(w, u)) {
#pragma unroll
      for (int i = 0; i < w.per; i++) each(w.weight[u][i], element_bits<kind>(w.b.v[u], i));
    }
  each(w.edge_weight, w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu));
}

// The sum of the weights of at least `least`, or the number of elements that have them.
template <int kind, int threads, bool once>
INLINE uint64_t measure(Weighed<kind, threads, once> &w, bool counts, uint32_t least) {
  Mass m = {0, 0};
  each_batch<false>(w, [&] {
    if (counts)
      each_weight(w, [&](uint32_t weight, uint32_t) { m.count += weight >= least; });
    else {
      m.sum += w.edge_weight >= least ? w.edge_weight : 0;
#pragma unroll
      for (int u = 0; u < BATCH; u++)
        if (has_chunk(w, u)) {
          uint32_t sum = 0;
#pragma unroll
          for (int i = 0; i < w.per; i++) sum += w.weight[u][i] >= least ? w.weight[u][i] : 0;
          m.sum += sum;
        }
    }
  });
  m = row_fold<false, threads>(w, m);
  return counts ? m.count : m.sum;
}

// The lowest and the highest weight from `least` to `most`.
template <int kind, int threads, bool once>
INLINE void narrow_range(Weighed<kind, threads, once> &w, uint32_t *least, uint32_t *most) {
  uint32_t low = ~0u, high = 0;
  each_batch<false>(w, [&] {
    each_weight(w, [&](uint32_t weight, uint32_t) {
      low = min(low, weight >= *least ? weight : ~0u), high = max(high, weight <= *most ? weight : 0);
    });
  });
  Mass m = row_fold<true, threads>(w, Mass{high, ~low});
  *least = ~m.count, *most = (uint32_t)m.sum;
}

// The weight of the last element that is needed for `target`, of the sum or of the count, the largest first; `above`: the
// measure of those that weigh more, `with`: with those of this weight. All with any weight are enough for it: `all`.
template <int kind, int threads, bool once>
INLINE uint32_t search_weight(Weighed<kind, threads, once> &w, bool counts, uint64_t all, uint64_t target,
                              uint64_t *above, uint64_t *with) {
  uint32_t low = 1, high = select_power(0); // of the weights in question
  uint64_t from = all, to = 0;              // at least `low`; more than `high`
#pragma unroll 1
  for (int step = 1;; step++) {
    if (step % 8 == 0 || from - to <= (counts ? 32 : 32 * (uint64_t)low)) narrow_range(w, &low, &high);
    if (low == high) break;
    float share = (float)(from - target) / (float)(from - to), l = __log2f((float)low),
          h = __log2f((float)high);
    if (step % 3 == 0) share = 0.5f;
    uint32_t middle = min(max((uint32_t)exp2f(l + (h - l) * share), low + 1), high);
    uint64_t m = measure(w, counts, middle);
    if (m >= target)
      low = middle, from = m;
    else
      high = middle - 1, to = m;
  }
  *above = to, *with = from;
  return low;
}

// Of those with the cut's weight the larger elements come first: the key of the last one that is kept, and how many of that.
template <int kind, int threads, bool once> INLINE Cut cut_keys(Weighed<kind, threads, once> &w, Cut cut) {
  uint32_t low = ~0u, high = 0, above = 0;
  each_batch<true>(w, [&] {
    each_weight(w, [&](uint32_t weight, uint32_t bits) {
      if (weight == cut.weight)
        low = min(low, key_of_bits<kind>(bits)), high = max(high, key_of_bits<kind>(bits));
    });
  });
  Mass m = row_fold<true, threads>(w, Mass{high, ~low});
  low = ~m.count, high = (uint32_t)m.sum;
  cut.one_key = low == high;
#pragma unroll 1
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    m = Mass{0, 0};
    each_batch<true>(w, [&] {
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

// What is kept of some elements: of those equal to the cut as many as are left.
INLINE uint64_t kept_of(Mass m, const Cut &cut) {
  return m.sum + (uint64_t)cut.weight * min(cut.kept, m.count);
}

// Whether `wanted` falls on them; otherwise it and the cut are reduced by them.
INLINE bool falls_on(Mass m, uint64_t *wanted, Cut *cut) {
  uint64_t mine = kept_of(m, *cut);
  if (*wanted < mine) return true;
  *wanted -= mine, cut->kept -= min(cut->kept, m.count);
  return false;
}

// Of several parts in order, one a lane: the first on which `wanted` falls; both are reduced by what comes before it.
INLINE int find_part(Mass m, uint64_t *wanted, Cut *cut) {
  uint32_t before = cut->kept ? (uint32_t)lanes_upto(m.count) - m.count : 0,
           left = cut->kept - min(cut->kept, before);
  uint64_t mine = m.sum + (uint64_t)cut->weight * min(left, m.count), upto = lanes_upto(mine);
  uint32_t found = __ballot_sync(~0u, upto > *wanted);
  int lane = found ? __ffs(found) - 1 : 31;
  *wanted -= __shfl_sync(~0u, upto - mine, lane);
  cut->kept = __shfl_sync(~0u, left, lane);
  return lane;
}

// What an element adds: its weight where the cut keeps it for certain, one to the count where it is equal to it.
template <int kind> INLINE void add_element(const Cut &cut, uint32_t weight, uint32_t bits, Mass *m) {
  bool above = weight > cut.weight, equal = weight == cut.weight;
  if (cut.kept && !cut.one_key && equal)
    above = key_of_bits<kind>(bits) > cut.key, equal = key_of_bits<kind>(bits) == cut.key;
  m->sum += above ? weight : 0, m->count += equal;
}

template <int kind, int threads, bool once>
INLINE Mass chunk_mass(const Weighed<kind, threads, once> &w, const Cut &cut, int u) {
  Mass m = {0, 0};
  uint32_t sum = 0;
  if (!cut.kept) {
#pragma unroll
    for (int i = 0; i < w.per; i++) sum += w.weight[u][i] > cut.weight ? w.weight[u][i] : 0;
    m.sum = sum;
  } else if (cut.one_key) {
#pragma unroll
    for (int i = 0; i < w.per; i++)
      sum += w.weight[u][i] > cut.weight ? w.weight[u][i] : 0, m.count += w.weight[u][i] == cut.weight;
    m.sum = sum;
  } else {
#pragma unroll
    for (int i = 0; i < w.per; i++)
      add_element<kind>(cut, w.weight[u][i], element_bits<kind>(w.b.v[u], i), &m);
  }
  return m;
}
template <int kind, int threads, bool once>
INLINE Mass edge_mass(const Weighed<kind, threads, once> &w, const Cut &cut, bool tail) {
  Mass m = {0, 0};
  if (w.b.edge >= 0 && (w.b.edge >= w.part.x.head) == tail)
    add_element<kind>(cut, w.edge_weight, w.b.edge_word & (kind == KIND_FP32 ? ~0u : 0xffffu), &m);
  return m;
}

// The column in this batch, of the one lane that has it, else NOT_MINE: in the edges before or after the chunks (-1, BATCH), or
// in chunk u of a lane.
template <int kind, int threads, bool once>
INLINE int find_in_chunk(const Weighed<kind, threads, once> &w, Cut cut, uint64_t wanted, int u) {
  bool edges = u < 0 || u == BATCH;
  uint32_t weight[w.per];
  Vec bits = w.b.v[0];
  Mass m = edges ? edge_mass(w, cut, u == BATCH) : Mass{0, 0};
#pragma unroll
  for (int v = 0; v < BATCH; v++)
    if (v == u) {
      m = chunk_mass(w, cut, v), bits = w.b.v[v];
#pragma unroll
      for (int i = 0; i < w.per; i++) weight[i] = w.weight[v][i];
    }
  int lane = find_part(m, &wanted, &cut), found = NOT_MINE;
  if (lane != threadIdx.x % 32) return NOT_MINE;
  if (edges) return w.b.edge;
#pragma unroll
  for (int i = 0; i < w.per; i++) {
    Mass one = {0, 0};
    add_element<kind>(cut, weight[i], element_bits<kind>(bits, i), &one);
    if (found == NOT_MINE && falls_on(one, &wanted, &cut))
      found = w.part.x.head + (w.b.from + u * 32) * w.per + i;
  }
  return found;
}

// The same of this warp's batches, without the edges after the chunks.
template <int kind, int threads, bool once>
INLINE int find_in_warp(Weighed<kind, threads, once> &w, Cut cut, uint64_t wanted) {
  int column = NOT_MINE;
  bool done = false;
  each_batch<false>(w, [&] {
    if (done) return;
    int at = -1;
    done = falls_on(lanes_mass(edge_mass(w, cut, false)), &wanted, &cut);
#pragma unroll
    for (int u = 0; u < BATCH; u++)
      if (!done && has_chunk(w, u)) done = falls_on(lanes_mass(chunk_mass(w, cut, u)), &wanted, &cut), at = u;
    if (done) column = find_in_chunk(w, cut, wanted, at);
  });
  return column;
}

// The column that the random number falls on, for the one thread of the row that finds it; NOT_MINE for the others.
template <int kind, int threads, bool once>
INLINE int find_column(Weighed<kind, threads, once> &w, Cut cut, uint64_t random) {
  Mass m = {0, 0}, tail = {0, 0};
  each_batch<false>(w, [&] {
    Mass one = edge_mass(w, cut, false), end = edge_mass(w, cut, true);
    m.sum += one.sum, m.count += one.count, tail.sum += end.sum, tail.count += end.count;
#pragma unroll
    for (int u = 0; u < BATCH; u++)
      if (has_chunk(w, u)) one = chunk_mass(w, cut, u), m.sum += one.sum, m.count += one.count;
  });
  int lane = threadIdx.x % 32, t = w.turn;
  tail = lanes_mass(tail);
  if (threads > 32 && w.rank == 0 && threadIdx.x == 0) w.shared->tail = tail;
  m = row_fold<false, threads>(w, m); // leaves the sums of warps and blocks in shared memory
  if (w.blocks > 1)
    tail = remote_mass(&w.shared->tail, 0);
  else if (threads > 32)
    tail = w.shared->tail;
  uint64_t wanted = __umul64hi(random, kept_of(Mass{m.sum + tail.sum, m.count + tail.count}, cut)),
           all = wanted;
  Cut rest = cut;
  if (!falls_on(m, &all, &rest))
    return w.rank == 0 && w.warp == 0 ? find_in_chunk(w, rest, all, BATCH) : NOT_MINE;
  if (w.blocks > 1) {
    m = lane < w.blocks ? remote_mass(&w.shared->block[t], lane) : Mass{0, 0};
    if (find_part(m, &wanted, &cut) != w.rank) return NOT_MINE;
  }
  if (threads > 32) {
    m = lane < threads / 32 ? w.shared->warp[t][lane] : Mass{0, 0};
    if (find_part(m, &wanted, &cut) != w.warp) return NOT_MINE;
  }
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
  uint64_t whole = 0, equal = 0;
#pragma unroll 1
  for (int by = p.k ? 0 : 1; by < (p.share ? 2 : 1); by++) { // first the count, then the sum
    uint64_t all = measure(w, !by, 1), target = (uint64_t)p.k, above, with;
    if (!by && all <= target) continue;
    if (by) target = __umul64hi(cut.kept ? whole : all, p.share << 32);
    if (!target) target = 1;
    cut.weight = search_weight(w, !by, all, target, &above, &with);
    cut.kept = (uint32_t)(by ? (target - above + cut.weight - 1) / cut.weight : target - above);
    equal = by ? (with - above) / cut.weight : with - above;
    if (!by && p.share) whole = measure(w, false, cut.weight + 1) + (uint64_t)cut.kept * cut.weight;
  }
  if (!cut.kept) return cut;
  if (cut.kept == equal) return Cut{cut.weight - 1, 0, 0, true};
  return cut_keys(w, cut);
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
