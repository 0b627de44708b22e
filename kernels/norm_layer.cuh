// Layernorm's own bodies. In 16-bit types layernorm is bound by instruction issue, so these have few instructions.
#ifndef SOL_KERNELS_NORM_LAYER_CUH
#define SOL_KERNELS_NORM_LAYER_CUH

#include "funnel.cuh"
#include "norm_any.cuh"
#include "stats.cuh"
#include "strip.cuh"

// ---- Rows in shared memory: as norm_big, but one pass over the row for its mean and its squares

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
enum { LAYER_THREADS = NORM_LAYER_THREADS };

// Over a block, as block_sum.
INLINE float layer_sum(float v, float *part) {
  v = lanes_sum(v, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return eight(part);
}

// Over as many neighbouring lanes as a cluster has blocks, or the next power of two, of which layer_lane is one's number.
INLINE float layer_blocks(float v, int blocks) {
#pragma unroll
  for (int o = 8; o; o >>= 1)
    if (o < blocks) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
INLINE int layer_lane(int blocks) { return (int)threadIdx.x & (blocks > 8 ? 15 : blocks > 4 ? 7 : blocks > 2 ? 3 : blocks - 1); }

// Which chunks a thread has: the threads of all blocks of the cluster take turns, and p->aside is how many turns there are; all but the last are full, and more than a batch.
typedef struct LayerShare {
  uint64_t row;
  int blocks, rank, begin, lap, count; // lap: chunks from a thread's one to its next
} LayerShare;

INLINE LayerShare layer_share(const NormParams *p) {
  LayerShare s;
  uint64_t rank;
  s.blocks = p->rows, s.lap = LAYER_THREADS * s.blocks;
  split(block_index(), (uint64_t)s.blocks, &s.row, &rank);
  s.rank = (int)rank, s.begin = s.rank * LAYER_THREADS + (int)threadIdx.x;
  s.count = p->aside - (s.begin + (p->aside - 1) * s.lap >= p->chunks);
  return s;
}

// Chunks of a block of the cluster.
INLINE int layer_chunks(const NormParams *p, const LayerShare &s, int rank) {
  int rest = p->chunks - (p->aside - 1) * s.lap - rank * LAYER_THREADS;
  return (p->aside - 1) * LAYER_THREADS + max(0, min(LAYER_THREADS, rest));
}

// A chunk's sum and sum of squares, both about k.
INLINE void layer_add(NormKernel c, Vec v, float k, float2 *sum, float2 *squares) {
  float f[8];
  widen(&v, c.kind, norm_bytes(c), f);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j += 2) {
    float d = f[j] - k, e = f[j + 1] - k;
    sum->x += d, sum->y += e;
    squares->x = fmaf(d, d, squares->x), squares->y = fmaf(e, e, squares->y);
  }
}

INLINE Vec layer_load(const char *at) { // as load16_now
  Vec v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.u[0]), "=r"(v.u[1]), "=r"(v.u[2]), "=r"(v.u[3])
               : "l"(__cvta_generic_to_global(at)));
  return v;
}

// Mean and squares of this block's elements, about the mean of a thread's own first chunk: however far the row is from zero, or that chunk from
// the row, no more is lost than a thread's chunks times a rounding, as what they are apart counts in the row's variance.
INLINE float2 layer_part(NormKernel c, const NormParams *p, const uint4 *held, const LayerShare &s, float (*part)[8]) {
  const int per = 16 / norm_bytes(c);
  float2 sum = make_float2(0, 0), squares = sum;
  Vec a;
  a.v = *held;
  float2 first = norm_sum(c, a, sum);
  float k0 = (first.x + first.y) * (1.f / per), n = (float)(s.count * per), over = __frcp_rn(n);
#pragma unroll 4
  for (int k = 0; k < s.count; k++) {
    a.v = held[k * LAYER_THREADS];
    layer_add(c, a, k0, &sum, &squares);
  }
  float d = sum.x + sum.y, q = fmaf(-d * over, d, squares.x + squares.y), away = fmaf(d, over, k0);
  int mine = layer_chunks(p, s, s.rank) * per;
  float mean = layer_sum(fmaf(k0, n, d), part[0]) * __frcp_rn((float)mine);
  return make_float2(mean, layer_sum(fmaf((away - mean) * n, away - mean, q), part[1]));
}

// The row's, from those of the cluster's blocks. v: of this block.
INLINE float2 layer_whole(NormKernel c, const NormParams *p, const LayerShare &s, float2 v, ClusterExchange *exchange) {
  int from_rank = layer_lane(s.blocks);
  bool there = from_rank < s.blocks;
  exchange_all(exchange, s.blocks, v);
  v = exchange->from[there ? from_rank : 0];
  float n = there ? (float)(layer_chunks(p, s, from_rank) * (16 / norm_bytes(c))) : 0, mean = layer_blocks(there ? n * v.x : 0, s.blocks) * p->over_n;
  return make_float2(mean, layer_blocks(there ? fmaf(n * (v.x - mean), v.x - mean, v.y) : 0, s.blocks));
}

// Where a thread is in its row's chunks, all pointers at the next of them.
typedef struct LayerAt {
  const char *weight, *bias;
  char *y;
  const uint4 *held;
  int step, vector; // bytes from chunk to chunk; of weights and biases
} LayerAt;

INLINE void layer_on(LayerAt &a, int chunks) {
  a.weight += chunks * a.vector, a.bias += chunks * a.vector, a.y += chunks * a.step, a.held += chunks * LAYER_THREADS;
}

// Weights and biases in fp32 of elements of 2 bytes (c.wide): two 16 bytes each for a chunk, so half as many chunks at a time.
INLINE int layer_batch(NormKernel c) { return c.wide ? c.chunks / 2 : c.chunks; }

// Of the first `count` chunks of a batch, all asked for before the first is used. all: every one is there.
INLINE void layer_ask(NormKernel c, const LayerAt &a, bool all, int count, Vec *w, Vec *b) {
  const int each = c.wide ? 2 : 1;
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    const char *weight = a.weight + i / each * a.vector + i % each * 16, *bias = a.bias + i / each * a.vector + i % each * 16;
    w[i] = all ? layer_load(weight) : load16_now(weight, i / each < count);
    b[i] = all ? layer_load(bias) : load16_now(bias, i / each < count);
  }
}

// Chunk i of the batch.
INLINE void layer_give(NormKernel c, const NormParams *p, const LayerAt &a, int i, const Vec *w, const Vec *b, float mean, float scale) {
  Vec v;
  v.v = a.held[i * LAYER_THREADS];
  if (!c.wide) {
    v = norm_output(c, p, v, w[i], b[i], mean, scale);
  } else {
    float f[8];
    widen(&v, c.kind, norm_bytes(c), f);
    norm_affine(c, p, f, w[2 * i].f, b[2 * i].f, mean, scale);
    narrow(&v, c.kind, norm_bytes(c), f);
  }
  *(uint4 *)(a.y + i * a.step) = v.v;
}

// w, b: of the first batch, which every thread has. It comes before the loop: so nothing of it moves to other registers, which would wait for it.
INLINE void layer_write(NormKernel c, const NormParams *p, LayerAt a, int count, Vec *w, Vec *b, float mean, float scale) {
  const int batch = layer_batch(c);
#pragma unroll
  for (int i = 0; i < batch; i++) layer_give(c, p, a, i, w, b, mean, scale);
#pragma unroll 1
  for (count -= batch; count >= batch; count -= batch) {
    Vec weight[BATCH], bias[BATCH];
    layer_on(a, batch);
    layer_ask(c, a, true, batch, weight, bias);
#pragma unroll
    for (int i = 0; i < batch; i++) layer_give(c, p, a, i, weight, bias, mean, scale);
  }
  if (!count) return;
  layer_on(a, batch);
  layer_ask(c, a, false, count, w, b);
#pragma unroll
  for (int i = 0; i < batch - 1; i++)
    if (i < count) layer_give(c, p, a, i, w, b, mean, scale);
}

// Prefetches into L2, while the predecessor still runs, this thread's part of the row.
INLINE void layer_hint(const NormParams *p, const LayerShare &s) {
  if (!may_hint() || threadIdx.x % 8) return;
  for (int k = 0; k < s.count; k++) prefetch_l2((const char *)p->x + (int64_t)s.row * p->x_stride + ((int64_t)s.begin + k * s.lap) * 16);
}

INLINE void layer_big(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // a thread reads what it has written itself
  __shared__ __align__(16) float part[2][8];
  __shared__ ClusterExchange exchange;
  LayerShare s = layer_share(p);
  if (s.blocks > 1) exchange_init(&exchange);
  uint4 *held = far + threadIdx.x;
  layer_hint(p, s);
  begin_kernel();
  if (threadIdx.x == 0) { // a part of a row further on, as long as this block's
    int64_t at = (int64_t)s.rank * p->span * 16;
    norm_prefetch(c, p, s.row, at, (int)min((int64_t)p->span * 16, (int64_t)p->chunks * 16 - at), false);
  }
  int64_t from = (int64_t)s.begin * 16, vector = c.wide ? 2 * from : from;
  const char *x = (const char *)p->x + (int64_t)s.row * p->x_stride + from;
  LayerAt a = {(const char *)p->weight + vector, (const char *)p->bias + vector, (char *)p->y + (int64_t)s.row * p->y_stride + from, held,
               s.lap * 16, s.lap * (c.wide ? 32 : 16)};
#pragma unroll 4
  for (int k = 0; k < s.count; k++) fetch16(held + k * LAYER_THREADS, x + (int64_t)k * a.step);
  Vec w[BATCH], b[BATCH];
  layer_ask(c, a, true, layer_batch(c), w, b);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float2 stats = layer_part(c, p, held, s, part);
  if (s.blocks > 1) stats = layer_whole(c, p, s, stats, &exchange);
  layer_write(c, p, a, s.count, w, b, stats.x, rsqrtf(fmaf(stats.y, p->over_n, p->eps)));
}
#endif

// ---- 16-bit rows that start anywhere: a block or a cluster takes several that start alike, NORM_ALIKE rows apart. It has weights and biases, shifted to
// where these rows' chunks are, in registers for all of them, and copies rows into shared memory while it works on those before. Input and output start
// alike, weights and biases on 16 bytes.

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// What a thread has of each row: chunks, and perhaps an edge.
typedef struct LayerChunks {
  int at, step; // bytes from the row's start to the thread's first chunk, and from chunk to chunk
  int edge;     // column; -1: none
  int count;    // of the chunks
} LayerChunks;

// Of any of the block's rows: y.
INLINE Strip rows_strip(NormKernel c, const NormParams *p, const char *y) {
  return strip_of((int)(-(uint32_t)(uintptr_t)y & 15) / norm_bytes(c), (int)p->n, 16 / norm_bytes(c));
}

// Chunks from the last line of 128 bytes that begins before the first: warps start on lines, where that takes no more of them.
INLINE int rows_lead(NormKernel c, const NormParams *p, Strip s, const char *y) { return !p->aside ? 0 : (int)(((uint32_t)(uintptr_t)y + (uint32_t)(s.head * norm_bytes(c))) & 127) / 16; }

INLINE LayerChunks rows_chunks(NormKernel c, const NormParams *p, Strip s, const char *y, int rank) {
  const int per = 16 / norm_bytes(c);
  int all = (int)blockDim.x << p->cluster_bits, first = rank * (int)blockDim.x + (int)threadIdx.x;
  LayerChunks a;
  a.edge = first < s.edges ? strip_edge(s, first, per) : -1;
  first -= rows_lead(c, p, s, y);
  if (first < 0) first += all;
  a.at = (s.head + first * per) * norm_bytes(c), a.step = all * 16;
  a.count = first < s.chunks ? (s.chunks - first - 1) / all + 1 : 0;
  return a;
}

// Elements of a row that a block of the cluster has.
INLINE float rows_elements(NormKernel c, const NormParams *p, Strip s, const char *y, int rank) {
  int all = (int)blockDim.x << p->cluster_bits, lead = rows_lead(c, p, s, y), chunks = rank ? 0 : -lead;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) chunks += max(0, min((int)blockDim.x, s.chunks + lead - k * all - rank * (int)blockDim.x));
  return (float)(chunks * (16 / norm_bytes(c)) + (rank ? 0 : s.edges));
}

// Starts to copy a row. Each row is a group of copies, though there may be none.
INLINE void rows_fetch(NormKernel c, const LayerChunks &a, const char *row, bool there, uint4 *held) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (there && k < a.count) fetch16(held + k * blockDim.x, row + a.at + k * a.step);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

INLINE void rows_vector(NormKernel c, const LayerChunks &a, const void *vector, Vec *v) {
  const char *from = (const char *)vector + a.at;
#pragma unroll
  for (int k = 0; k < c.chunks; k += 2) {
    Around first = load_around(from + k * a.step, k < a.count), second = first;
    if (k + 1 < c.chunks) second = load_around(from + (k + 1) * a.step, k + 1 < a.count);
    v[k].v = take_around(first, from, norm_bytes(c)), keep_packed(&v[k]);
    if (k + 1 < c.chunks) v[k + 1].v = take_around(second, from, norm_bytes(c)), keep_packed(&v[k + 1]);
  }
}

// An exchange as exchange_all, one of several. Those with even numbers have one ClusterExchange, those with odd numbers another: nobody is further ahead
// than the next.
INLINE void rows_prepare(ClusterExchange *m) { // before exchange_init of the other
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((uint32_t)__cvta_generic_to_shared(&m->arrived)) : "memory");
}
INLINE void rows_exchange(ClusterExchange *m, int blocks, float2 v, int number) {
#if __CUDA_ARCH__ >= 900
  uint32_t arrived = (uint32_t)__cvta_generic_to_shared(&m->arrived), done = 0;
  if (number == 0) cluster_wait(); // all of them run, and are ready
  if (threadIdx.x == 0)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived), "r"(blocks * (int)sizeof(float2)) : "memory");
  if (threadIdx.x < blocks) {
    uint32_t slot = (uint32_t)__cvta_generic_to_shared(&m->from[cluster_rank()]), there, signal;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"((int)threadIdx.x));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(arrived), "r"((int)threadIdx.x));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there), "f"(v.x), "f"(v.y), "r"(signal)
                 : "memory");
  }
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(arrived), "r"(number >> 1 & 1)
                 : "memory");
#endif
}

typedef struct RowsShared { // of every other row
  StatsRoom room;
  ClusterExchange exchange;
} RowsShared;

// Mean and squares of the block's part of a row. elements: of that part.
INLINE Stats rows_part(NormKernel c, const LayerChunks &a, const uint4 *held, float edge, float elements, StatsRoom *room) {
  Vec v;
  v.v = *held;
  Running r = {a.count ? chunk_mean(v, c.kind, norm_bytes(c)) : edge, {0, 0}, {0, 0}};
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (k >= a.count) continue;
    v.v = held[k * blockDim.x];
    run_chunk(r, v, c.kind, norm_bytes(c));
  }
  if (a.edge >= 0) run_one(r, edge);
  return stats_block(run_end(r, a.count * (16 / norm_bytes(c)) + (a.edge >= 0)), elements, room);
}

// Those of the row. i: its number in this block.
INLINE Stats rows_whole(NormKernel c, const NormParams *p, const char *y, Stats s, int i, ClusterExchange *exchange) {
  int blocks = 1 << p->cluster_bits, rank = threadIdx.x & (blocks - 1);
  if (blocks == 1) return s;
  float theirs = rows_elements(c, p, rows_strip(c, p, y), y, rank);
  rows_exchange(exchange, blocks, make_float2(s.mean, s.squares), i);
  float2 v = exchange->from[rank];
  s.mean = layer_blocks(theirs * v.x, blocks) * p->over_n;
  s.squares = layer_blocks(fmaf(theirs * (v.x - s.mean), v.x - s.mean, v.y), blocks);
  return s;
}

INLINE void rows_put(NormKernel c, const NormParams *p, const LayerChunks &a, const uint4 *held, Vec *w, Vec *b, float mean, float scale, char *y) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    Vec v;
    keep_packed(&w[k]), keep_packed(&b[k]); // not widened once for all rows: there are no registers for that
    if (k >= a.count) continue;
    v.v = held[k * blockDim.x];
    *(uint4 *)(y + a.at + k * a.step) = norm_output(c, p, v, w[k], b[k], mean, scale).v;
    asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
  }
}

INLINE void rows_put_edge(NormKernel c, const NormParams *p, const LayerChunks &a, float apart, float scale, char *y) {
  if (a.edge < 0) return;
  float weight = load_one(p->weight, a.edge, c.kind) + p->offset, bias = load_one(p->bias, a.edge, c.kind);
  store_one(y, a.edge, c.kind, fmaf(apart, weight * scale, bias));
}

INLINE void layer_rows(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // three rows; a thread reads what it has written itself
  __shared__ RowsShared shared[2];
  int rank = p->cluster_bits ? (int)cluster_rank() : 0;
  if (p->cluster_bits) rows_prepare(&shared[1].exchange), exchange_init(&shared[0].exchange);
  uint64_t group = block_index() >> p->cluster_bits, row = group / NORM_ALIKE * NORM_ALIKE * p->rows + group % NORM_ALIKE;
  begin_kernel();
  if (row >= p->m) return;
  int rows = (int)min((uint64_t)p->rows, (p->m - row + NORM_ALIKE - 1) / NORM_ALIKE);
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  Strip strip = rows_strip(c, p, y);
  LayerChunks a = rows_chunks(c, p, strip, y, rank);
  const int held = c.chunks * (int)blockDim.x; // chunks of a row in shared memory
  uint4 *mine = far + threadIdx.x;
  rows_fetch(c, a, x, true, mine);
  rows_fetch(c, a, x + NORM_ALIKE * p->x_stride, rows > 1, mine + held);
  float edge = a.edge >= 0 ? load_one(x, a.edge, c.kind) : 0, elements = fmaxf(rows_elements(c, p, strip, y, rank), 1);
  Vec w[4], b[4];
  rows_vector(c, a, p->weight, w);
  rows_vector(c, a, p->bias, b);
  int now = 0, then = 2; // where this row is, and the one after the next will be
#pragma unroll 1
  for (int i = 0; i < rows; i++, y += NORM_ALIKE * p->y_stride) {
    x += NORM_ALIKE * p->x_stride;
    rows_fetch(c, a, x + NORM_ALIKE * p->x_stride, i + 2 < rows, mine + then * held);
    float next = a.edge >= 0 && i + 1 < rows ? load_one(x, a.edge, c.kind) : 0;
    wait_but(2);
    Stats s = rows_part(c, a, mine + now * held, edge, elements, &shared[i & 1].room);
    s = rows_whole(c, p, y, s, i, &shared[i & 1].exchange);
    float scale = rsqrtf(fmaf(s.squares, p->over_n, p->eps));
    rows_put(c, p, a, mine + now * held, w, b, s.mean, scale, y);
    rows_put_edge(c, p, a, edge - s.mean, scale, y);
    edge = next;
    then = now, now = now == 2 ? 0 : now + 1;
  }
}
#endif

// ---- Any other rows: as norm_any, but two reductions

// Striped: all words of this thread's warp are within the row. Only the warps at the row's two ends have others.
INLINE bool layer_within(NormKernel c, NormPlace s) {
  int first = s.first - s.thread % 32 * norm_pair(c), words = 128 * c.chunks;
  return first >= s.lo && first + words * norm_pair(c) <= s.hi;
}

// Weights and biases of a chunk. words: both are aligned so that they can be read by words.
INLINE void layer_vectors(NormKernel c, const NormParams *p, NormPlace s, bool words, int k, Vec *w, Vec *b) {
  const char *weight = (const char *)p->weight, *bias = (const char *)p->bias;
  *w = words ? any_load_words(c, s, weight, k) : any_load_singly(c, s, weight, k);
  *b = words ? any_load_words(c, s, bias, k) : any_load_singly(c, s, bias, k);
}

// Writes a tile. w, b: as they were loaded before (c.early).
INLINE void layer_put(NormKernel c, const NormParams *p, NormPlace s, bool words, char *y, const Vec *v, Vec *w, Vec *b,
                      float mean, float scale) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (!c.early) layer_vectors(c, p, s, words, k, &w[k], &b[k]);
    any_store_words(c, s, y, k, norm_output(c, p, v[k], w[k], b[k], mean, scale));
  }
}

INLINE void layer_any(NormKernel c, const NormParams *p) {
  __shared__ NormShared shared[2];
  NormPlace s = any_place(c, p);
  any_hint(c, p, s);
  norm_ends(c, p, s.row, s.thread, p->threads);
  any_ready(p, &shared[0]);
  begin_kernel();
  NormRow r = norm_row(c, p, s.row, s.thread == 0);
  any_shift(c, p, &s, r);
  // Striped: most warps are wholly within the row and skip the bounds checks. Not of 16-bit types: both ways do not fit the registers, and
  // most such rows are layer_rows' or norm_ring's.
  NormPlace inner = s;
  inner.all = true;
  bool within = c.striped && c.chunks > 1 && norm_bytes(c) == 4 && layer_within(c, s);
  // All of the row's type, nothing left out. In fp16 that would spill.
  bool plain = c.striped && c.kind != KIND_FP16 && p->weight && p->bias && p->weight_kind == c.kind && p->y_kind == c.kind;
  bool words = any_by_words(c, s, (const char *)p->weight) && any_by_words(c, s, (const char *)p->bias);
  Vec v[8], w[8], b[8];
  if (within) any_take(c, inner, r, v);
  else any_take(c, s, r, v);
  NormEdge edge = any_take_edge(c, p, s, r);
  any_prefetch(c, p, s);
  if (c.early && plain)
#pragma unroll
    for (int k = 0; k < c.chunks; k++)
      if (within) layer_vectors(c, p, inner, words, k, &w[k], &b[k]);
      else layer_vectors(c, p, s, words, k, &w[k], &b[k]);
  NormPart total = any_join(any_sum(c, p, s, v), any_sum_edge(c, edge));
  float mean = any_fold(c, p, &shared[0], total).sum * p->over_n;
  any_ready(p, &shared[1]);
  total.sum = within ? any_squares(c, inner, v, mean) : any_squares(c, s, v, mean);
  total.sum += any_square_edge(s, edge, mean);
  float variance = any_fold(c, p, &shared[1], total).sum * p->over_n, scale = rsqrtf(variance + p->eps);
  if (plain && within && words) layer_put(c, p, inner, true, r.y, v, w, b, mean, scale);
  else if (plain && within) layer_put(c, p, inner, false, r.y, v, w, b, mean, scale);
  else if (plain) layer_put(c, p, s, false, r.y, v, w, b, mean, scale);
  else any_put(c, p, s, r.y, v, mean, variance, 0, nullptr);
  any_put_edge(c, p, s, r.y, edge, mean, variance, 0);
}

#endif
