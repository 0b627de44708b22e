// Sum, max, sum of squares over rows, columns or all. Everything is added up in an order that the shape alone fixes, so
// the same input gives the same bits; a second launch adds up what the blocks of the first leave in the workspace.
#include "reduce/reduce.h"
#include "cluster_exchange.cuh"
#include "narrow.cuh"
#include "rounds.cuh"
#include "span.cuh"

// `how` is a literal wherever these are used.
INLINE float nothing(int how) {
  return how == HOW_MAX ? -INFINITY : 0;
}

INLINE float add(float a, float b, int how) {
  return how == HOW_MAX ? higher(a, b) : a + b;
}

INLINE float take(float sum, float f, int how) {
  return how == HOW_SQUARES ? fmaf(f, f, sum) : add(sum, f, how);
}

INLINE uint32_t rest_of(int kind, int how) {
  return how == HOW_MAX ? span_lowest(kind) : 0;
}

INLINE float take_chunk(float sum, const Vec *v, int kind, int in, int how) {
  float f[8];
  widen(v, kind, in, f);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) sum = take(sum, f[j], how);
  return sum;
}

// The row's, for its first thread.
INLINE float fold_row(RowShape s, RowFold *shared, float sum, int how) {
  RowShape block = s;
  block.cluster = 1;
  float2 v = row_fold(block, shared, make_float2(sum, 0), how == HOW_MAX ? FOLD_HIGHEST : FOLD_SUM);
  if (s.cluster == 1 || !exchange_to_first(&shared->exchange, s.cluster, v)) return v.x;
  sum = shared->exchange.from[0].x;
#pragma unroll
  for (int i = 1; i < s.cluster; i++) sum = add(sum, shared->exchange.from[i].x, how);
  return sum;
}

INLINE void finish(const ReduceParams *p, int64_t i, float sum) {
  store_one(p->y, i, p->y_kind, p->divisor == 1 ? sum : sum / p->divisor);
}

// What thread `thread` of `all` has of a row. The row's ends come last: then L1 has them, with the chunks of its neighbours.
// Index: of chunks.
template <class Index> INLINE float span_sum(const Span *x, Index thread, Index all, int kind, int in, int how) {
  enum { DEPTH = 6 };
  const uint32_t rest = rest_of(kind, how);
  const Index chunks = (Index)x->chunks;
  const uint4 *body = (const uint4 *)x->body;
  float sum[DEPTH];
#pragma unroll
  for (int u = 0; u < DEPTH; u++) sum[u] = nothing(how);
#pragma unroll 1
  for (Index i = thread; i < chunks; i += DEPTH * all) {
    Vec v[DEPTH];
#pragma unroll
    for (int u = 0; u < DEPTH; u++) {
      v[u].v = make_uint4(rest, rest, rest, rest);
      if (i + u * all < chunks) v[u].v = body[i + u * all];
    }
#pragma unroll
    for (int u = 0; u < DEPTH; u++) sum[u] = take_chunk(sum[u], &v[u], kind, in, how);
  }
#pragma unroll 1
  for (Index e = thread; e < x->edges; e += all) sum[0] = take(sum[0], load_one(x->at, span_edge(x, (int)e), kind), how);
  return add(add(add(sum[0], sum[1], how), add(sum[2], sum[3], how), how), add(sum[4], sum[5], how), how);
}

// With the kind a literal, or every element would be converted in both ways.
template <class Index> INLINE float reduce_span(const Span *x, Index thread, Index all, int kind, int in, int how) {
  if (in == 4) return span_sum(x, thread, all, KIND_FP32, 4, how);
  if (kind == KIND_FP16) return span_sum(x, thread, all, KIND_FP16, 2, how);
  return span_sum(x, thread, all, KIND_BF16, 2, how);
}

// Rows: each by the threads of its group.
INLINE void reduce_row(const ReduceParams *p, RowShape s, RowFold *shared, int how) {
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  const int all = s.threads * s.cluster;
  float sum = s.threads == 1024 ? reduce_span(&x, (int64_t)place.thread, (int64_t)all, kind, s.in, how) // rows of any length
                                : reduce_span(&x, place.thread, all, kind, s.in, how);
  sum = fold_row(s, shared, sum, how);
  if (place.thread == 0 && place.row < p->m) finish(p, (int64_t)place.row, sum);
}

// Short rows: a block has a span of many of them in shared memory, some lanes to a row.
INLINE void narrow_sums(const ReduceParams *p, NarrowTile x, int rows, int kind, int how) {
  const NarrowCopy copy = {p->narrow.lane_bits, NARROW_EACH};
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p->narrow.rows;
#pragma unroll 1
  for (int at = 0; at < rows; at += blockDim.x >> copy.lane_bits) {
    NarrowPlace a = narrow_place(&p->narrow, copy, at, rows);
    float f[NARROW_EACH], sum[2] = {nothing(how), nothing(how)};
    narrow_take(narrow_row(x, a.row), a, kind, nothing(how), f);
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++) sum[k % 2] = take(sum[k % 2], f[k], how);
    float2 all = make_float2(add(sum[0], sum[1], how), 0);
    all = lanes_fold(all, how == HOW_MAX ? FOLD_HIGHEST : FOLD_SUM, a.lanes);
    if (a.lane == 0 && a.row < rows) finish(p, (int64_t)(first + a.row), all.x);
  }
}

// A row by one thread, of words: four sums, by column, whichever the row's first byte of a word, so that the order depends on n
// alone. 16-bit rows start in the middle of a word or at its start: what is before the first whole word and after the last is a
// single element.
INLINE float serial_sum(const char *row, int n, int kind, int how) {
  const int size = kind == KIND_FP32 ? 4 : 2;
  float sum[4];
#pragma unroll
  for (int j = 0; j < 4; j++) sum[j] = nothing(how);
  int before = size == 2 ? (int)((uint32_t)(uintptr_t)row / 2 & 1) : 0, words = (n - before) * size / 4;
  if (before) sum[3] = take(sum[3], load_one(row, 0, kind), how);
  const uint32_t *at = (const uint32_t *)(row + 2 * before);
  const int step = size == 4 ? 4 : 2; // words of four columns
  int k = 0;
#pragma unroll 4
  for (; k + step <= words; k += step) {
#pragma unroll
    for (int j = 0; j < step; j++) {
      float2 two = size == 4 ? make_float2(__uint_as_float(at[k + j]), 0) : widen2(at[k + j], kind);
      sum[size == 4 ? j : 2 * j] = take(sum[size == 4 ? j : 2 * j], two.x, how);
      if (size == 2) sum[2 * j + 1] = take(sum[2 * j + 1], two.y, how);
    }
  }
#pragma unroll
  for (int j = 0; j < 3; j++) // up to three columns
    if (before + k * 4 / size + j < n) sum[j] = take(sum[j], load_one(at + k, j, kind), how);
  return add(add(sum[0], sum[2], how), add(sum[1], sum[3], how), how);
}

INLINE void serial_sums(const ReduceParams *p, NarrowTile x, int rows, int kind, int how) {
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p->narrow.rows;
  for (int row = threadIdx.x; row < rows; row += blockDim.x)
    finish(p, (int64_t)(first + row), serial_sum(narrow_row(x, row), (int)p->n, kind, how));
}

// Dense rows of words that lie in different banks: one thread a row, which takes the fewest instructions.
INLINE void narrow_or_serial(const ReduceParams *p, NarrowTile x, int rows, int kind, int how) {
  if (p->narrow.each) narrow_sums(p, x, rows, kind, how);
  else serial_sums(p, x, rows, kind, how);
}

INLINE void reduce_narrow(const ReduceParams *p, int in, int how) {
  int rows = narrow_rows(&p->narrow, p->m);
  NarrowTile x = narrow_tile(&p->narrow, NARROW_X, p->x, p->x_stride, in, rows);
  narrow_fetch(x, in);
  narrow_arrived();
  if (in == 4) narrow_or_serial(p, x, rows, KIND_FP32, how);
  else if (p->x_kind == KIND_FP16) narrow_or_serial(p, x, rows, KIND_FP16, how);
  else narrow_or_serial(p, x, rows, KIND_BF16, how);
}

// Which of `units` a thread has: a chunk of the buffer that a row has parts of.
typedef struct Unit {
  uint64_t row;
  uint32_t chunk;
} Unit;

INLINE Unit unit_of(const ReduceParams *p, uint64_t index) {
  uint64_t row, chunk;
  split(index, p->per_row, &row, &chunk);
  return Unit{row, (uint32_t)chunk};
}

INLINE Unit unit_after(const ReduceParams *p, Unit u, Unit step) {
  u.row += step.row, u.chunk += step.chunk;
  if (u.chunk >= p->per_row) u.chunk -= (uint32_t)p->per_row, u.row++;
  return u;
}

// Its chunk, with `rest` in place of what is beside the row.
INLINE Vec unit_load(const ReduceParams *p, Unit u, int in, uint32_t rest, int2 *kept) {
  const char *begin = (const char *)p->x, *end = begin + (int64_t)(p->m - 1) * p->x_stride + p->n * in;
  const char *row = begin + (int64_t)u.row * p->x_stride;
  int64_t from = 16 * (int64_t)u.chunk - (int64_t)((uint32_t)(uintptr_t)row & 15), left = p->n * in - from; // bytes
  const char *at = row + from;
  Vec v;
  v.v = make_uint4(rest, rest, rest, rest);
  *kept = make_int2(from < 0 ? (int)-from : 0, left < 16 ? (int)left : 16);
  if (u.row >= p->m || left <= 0) *kept = make_int2(0, 16);
  else if (at >= begin && at + 16 <= end) v.v = *(const uint4 *)at;
  else v.v = load_singly(at, begin, end, in);
  return v;
}

INLINE float reduce_units(const ReduceParams *p, uint64_t thread, uint64_t all, int kind, int in, int how) {
  enum { DEPTH = 4 };
  const uint32_t rest = rest_of(kind, how);
  float sum[DEPTH];
  Unit u = unit_of(p, thread), step = unit_of(p, all);
#pragma unroll
  for (int i = 0; i < DEPTH; i++) sum[i] = nothing(how);
#pragma unroll 1
  while (u.row < p->m) {
    Vec v[DEPTH];
    int2 kept[DEPTH];
#pragma unroll
    for (int i = 0; i < DEPTH; i++, u = unit_after(p, u, step)) v[i] = unit_load(p, u, in, rest, &kept[i]);
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
      if (kept[i].x) mask_before(v[i], kept[i].x, rest);
      if (kept[i].y < 16) mask_after(v[i], kept[i].y, rest);
      sum[i] = take_chunk(sum[i], &v[i], kind, in, how);
    }
  }
  return add(add(sum[0], sum[2], how), add(sum[1], sum[3], how), how);
}

// All: a single row, or rows as units, in turn over all threads. Block b writes y[b].
INLINE void reduce_all(const ReduceParams *p, int in, RowFold *shared, int how) {
  enum { THREADS = 256 };
  const RowShape s = {THREADS, 1, 1, 1, in, in, 1};
  const int kind = in == 4 ? KIND_FP32 : p->x_kind;
  uint64_t thread = (uint64_t)blockIdx.x * THREADS + threadIdx.x, step = (uint64_t)gridDim.x * THREADS;
  float sum = nothing(how);
  if (p->m == 1) {
    Span x = span_of(p->x, p->n, in);
    sum = reduce_span(&x, (int64_t)thread, (int64_t)step, kind, in, how);
  } else {
    if (in == 4) sum = reduce_units(p, thread, step, KIND_FP32, 4, how);
    else if (kind == KIND_FP16) sum = reduce_units(p, thread, step, KIND_FP16, 2, how);
    else sum = reduce_units(p, thread, step, KIND_BF16, 2, how);
  }
  sum = fold_row(s, shared, sum, how);
  if (threadIdx.x == 0) finish(p, blockIdx.x, sum);
}

// Columns: a block has a strip of `lanes` chunks and p->rows rows, its threads as lanes x (256 / lanes); they add up
// what they hold at the end. `wide`: all rows start on 16 bytes. Otherwise chunks are the buffer's: a thread's rows are a
// multiple of eight apart, so in all of them its chunk starts at the same column; threads of other rows differ by less than a chunk, and so much
// do strips overlap. Each block of a cluster has a part of the strip's
// rows, and the first adds up what the others send; without clusters a second launch does.
INLINE bool in_cluster(const ReduceParams *p) {
#if __CUDA_ARCH__ >= 900
  return p->cluster > 1;
#else
  return false;
#endif
}

INLINE uint32_t strip_of_batch(void) {
  uint32_t strip = blockIdx.x;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(strip)); // without clusters the block's
#endif
  return strip;
}

INLINE uint32_t strip_of(const ReduceParams *p) { return strip_of_batch() % p->strips; }
INLINE uint32_t batch_of(const ReduceParams *p) { return strip_of_batch() / p->strips; }

INLINE int strip_columns(const ReduceParams *p, int per, int wide) { return per * (p->lanes - !wide); }

// A chunk's columns that the row has, one by one.
INLINE Vec columns_singly(const char *row, int64_t column, int64_t n, int in, uint32_t rest) {
  Vec v;
  v.v = make_uint4(rest, rest, rest, rest);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) {
    if (column + j < 0 || column + j >= n) continue;
    if (in == 4) v.u[j] = ((const uint32_t *)row)[column + j];
    else v.h[j] = ((const uint16_t *)row)[column + j];
  }
  return v;
}

INLINE void columns_take(const Vec *v, int in, float *sum, int kind, int how) {
  float f[8];
  widen(v, kind, in, f);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) sum[j] = take(sum[j], f[j], how);
}

enum { COLUMNS_DEPTH = 8 };

// The first `left` of so many rows' chunks from `at` on, `down` bytes apart; all loads are in flight at once.
INLINE const char *columns_round(const char *at, int64_t down, int left, int in, float *sum, int kind, int how) {
  const uint32_t rest = rest_of(kind, how);
  Vec v[COLUMNS_DEPTH];
#pragma unroll
  for (int u = 0; u < COLUMNS_DEPTH; u++, at += down) {
    v[u].v = make_uint4(rest, rest, rest, rest);
    if (u < left) v[u].v = *(const uint4 *)at;
  }
#pragma unroll
  for (int u = 0; u < COLUMNS_DEPTH; u++) columns_take(&v[u], in, sum, kind, how);
  return at;
}

// What a thread has: the chunk from `column` on of `count` rows, `step` apart, from row `row` on, which is at `at`.
// A chunk may have columns before or after the row's: they are read where they are of the matrix, and not used. Only of a thread's first and last row can
// they be outside: its rows are 16 bytes apart at least.
INLINE void columns_sum(const ReduceParams *p, int in, const char *at, int64_t column, uint64_t row, int step, int count, float *sum,
                        int kind, int how) {
  const int64_t down = step * p->x_stride;
  if (column >= p->n || count <= 0) return;
  auto singly = [&](const char *row) {
    Vec v = columns_singly(row, column, p->n, in, rest_of(kind, how));
    columns_take(&v, in, sum, kind, how);
  };
  const char *last = at + (count - 1) * down, *begin = at - (int64_t)row * p->x_stride;
  const char *end = begin + (int64_t)(p->m - 1) * p->x_stride + p->n * in;
  bool first_cut = at + column * in < begin, last_cut = last + column * in + 16 > end;
  if (first_cut) singly(at);
  last_cut = last_cut && !(first_cut && count == 1);
  count -= first_cut + last_cut;
  at += (first_cut ? down : 0) + column * in;
#pragma unroll 1
  for (; count >= COLUMNS_DEPTH; count -= COLUMNS_DEPTH)
    at = columns_round(at, down, COLUMNS_DEPTH, in, sum, kind, how);
  if (count > 0) columns_round(at, down, count, in, sum, kind, how);
  if (last_cut) singly(last);
}

enum { COLUMNS_THREADS = 256, COLUMNS_WARPS = COLUMNS_THREADS / 32, COLUMNS_CLUSTER = 8 };

typedef struct ColumnsFold {
  float slots[COLUMNS_THREADS * 8]; // of each thread's rows, or each warp's, a strip's columns
  float parts[COLUMNS_CLUSTER][COLUMNS_THREADS]; // of each block of the cluster
  ClusterExchange exchange;
} ColumnsFold;

// Column t of the strip, for thread t: what the block's threads have of it. Rows on 16 bytes: a warp's threads have the same columns, and
// add them up first. Otherwise a thread's chunk starts `shift` columns before the strip's.
INLINE float columns_fold(const ReduceParams *p, int per, int wide, int shift, ColumnsFold *shared, float *sum, int how) {
  const int lane = threadIdx.x & (p->lanes - 1), columns = strip_columns(p, per, wide);
  int slot = wide ? threadIdx.x / 32 : threadIdx.x / p->lanes, slots = wide ? COLUMNS_WARPS : COLUMNS_THREADS / p->lanes;
  if (wide)
    for (int o = 16; o >= p->lanes; o /= 2)
#pragma unroll
      for (int j = 0; j < per; j++) sum[j] = add(sum[j], __shfl_xor_sync(~0u, sum[j], o), how);
  if (!wide || threadIdx.x % 32 < p->lanes)
#pragma unroll
    for (int j = 0; j < per; j++) {
      int column = lane * per + j - shift;
      if (wide || (column >= 0 && column < columns)) shared->slots[slot * columns + column] = sum[j];
    }
  __syncthreads();
  float all = nothing(how);
  if (threadIdx.x >= columns) return all;
#pragma unroll 8
  for (int w = 0; w < slots; w++) all = add(all, shared->slots[w * columns + threadIdx.x], how);
  return all;
}

// And what all blocks of the cluster have, for the first of them: in the order in which a second launch adds up as
// many rows.
INLINE float columns_collect(const ReduceParams *p, int columns, ColumnsFold *shared, float sum, int how) {
  uint32_t rank = cluster_rank();
  cluster_wait();
  if (!rank && threadIdx.x == 0) exchange_expect(&shared->exchange, p->cluster * columns * (int)sizeof sum);
  if (threadIdx.x < columns) exchange_send(&shared->exchange, &shared->parts[rank][threadIdx.x], sum);
  if (rank || threadIdx.x >= columns) return sum;
  exchange_wait(&shared->exchange);
  float f[COLUMNS_CLUSTER];
#pragma unroll
  for (int i = 0; i < COLUMNS_CLUSTER; i++) f[i] = i < p->cluster ? shared->parts[i][threadIdx.x] : nothing(how);
  return add(add(add(f[0], f[2], how), add(f[1], f[3], how), how), add(add(f[4], f[6], how), add(f[5], f[7], how), how), how);
}

INLINE void reduce_columns(const ReduceParams *p, int in, int wide, ColumnsFold *shared, int how) {
  const int per = 16 / in, columns = strip_columns(p, per, wide); // at most as many as threads
  int step = COLUMNS_THREADS / p->lanes, lane = threadIdx.x & (p->lanes - 1);
  uint32_t which = in_cluster(p) ? cluster_rank() : blockIdx.y;
  uint64_t begin = which * (uint64_t)p->rows, end = begin + p->rows < p->m ? begin + p->rows : p->m;
  uint64_t row = begin + threadIdx.x / p->lanes;
  int64_t count = ((int64_t)(end - row) + step - 1) / step; // fewer than 2^31, by the plan
  float sum[8];
#pragma unroll
  for (int j = 0; j < per; j++) sum[j] = nothing(how);
  const char *at = (const char *)p->x + batch_of(p) * p->x_batch + (int64_t)row * p->x_stride;
  int shift = wide ? 0 : (int)((uint32_t)(uintptr_t)at & 15) / in;
  int64_t first = (int64_t)strip_of(p) * columns, column = first + lane * per - shift;
  if (in == 4) columns_sum(p, in, at, column, row, step, (int)count, sum, KIND_FP32, how);
  else if (p->x_kind == KIND_FP16) columns_sum(p, in, at, column, row, step, (int)count, sum, KIND_FP16, how);
  else columns_sum(p, in, at, column, row, step, (int)count, sum, KIND_BF16, how);
  float all = columns_fold(p, per, wide, shift, shared, sum, how);
  if (in_cluster(p)) {
    all = columns_collect(p, columns, shared, all, how);
    if (which) return;
  }
  int64_t c = first + threadIdx.x;
  int64_t part = in_cluster(p) ? batch_of(p) : (int64_t)batch_of(p) * gridDim.y + blockIdx.y;
  if (threadIdx.x < columns && c < p->n) finish(p, part * p->n + c, all);
}

// Columns of a few rows: a thread has 16 bytes of them and all rows, wherever these start, and no thread waits for another.
INLINE void reduce_columns_few(const ReduceParams *p, int in, int kind, int how) {
  enum { DEPTH = 4 };
  const int per = 16 / in;
  int64_t column = ((int64_t)(blockIdx.x % p->strips) * blockDim.x + threadIdx.x) * per, batch = blockIdx.x / p->strips;
  if (column >= p->n) return;
  const char *begin = (const char *)p->x + batch * p->x_batch, *end = begin + (int64_t)(p->m - 1) * p->x_stride + p->n * in;
  const char *at = begin + column * in;
  float sum[8];
#pragma unroll
  for (int j = 0; j < per; j++) sum[j] = nothing(how);
#pragma unroll 1
  for (int left = (int)p->m; left > 0; left -= DEPTH, at += DEPTH * p->x_stride) {
    Around around[DEPTH];
#pragma unroll
    for (int u = 0; u < DEPTH; u++) {
      const char *from = at + u * p->x_stride;
      around[u] = load_around(from, u < left && is_around(from, begin, end));
    }
#pragma unroll
    for (int u = 0; u < DEPTH; u++) {
      const char *from = at + u * p->x_stride;
      Vec v = {take_around(around[u], from, in)};
      if (u < left && !is_around(from, begin, end)) v.v = load_singly(from, begin, end, in);
      if (u < left) columns_take(&v, in, sum, kind, how);
    }
  }
#pragma unroll
  for (int j = 0; j < per; j++)
    if (column + j < p->n) finish(p, batch * p->n + column + j, sum[j]);
}

#define EACH_HOW(call_)                                                                                      \
  let_successor_start();                                                                                     \
  wait_for_predecessor();                                                                                    \
  if (p.how == HOW_MAX) {                                                                                    \
    call_(HOW_MAX);                                                                                          \
  } else if (p.how == HOW_SQUARES) {                                                                         \
    call_(HOW_SQUARES);                                                                                      \
  } else {                                                                                                   \
    call_(HOW_SUM);                                                                                          \
  }

#define ROWS_NAME(in, threads, cluster) sol_reduce_##in##_rows_##threads##x##cluster
#define ROWS_BODY(how) reduce_row(&p, s, &shared, how)
#define ROWS(in, threads, rows, cluster)                                                                     \
  KERNEL __launch_bounds__(threads * rows, 1280 / (threads * rows)) /* 48 registers */                       \
  ROWS_NAME(in, threads, cluster)(ReduceParams p) {                                                          \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, 1, rows, cluster, in, in, 1};                                               \
    row_begin(s, &shared);                                                                                   \
    EACH_HOW(ROWS_BODY)                                                                                      \
  }
#define SPAN(threads, rows, cluster, upto) ROWS(2, threads, rows, cluster) ROWS(4, threads, rows, cluster)
#if __CUDA_ARCH__ >= 900
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#else
#define SPAN_90(threads, rows, cluster, upto)
#endif
#include "reduce/rows.def"

#define NARROW(in)                                                                                           \
  KERNEL __launch_bounds__(NARROW_THREADS, 12) sol_reduce_##in##_narrow(ReduceParams p) {                     \
    EACH_HOW(NARROW_BODY_##in)                                                                               \
  }
#define NARROW_BODY_2(how) reduce_narrow(&p, 2, how)
#define NARROW_BODY_4(how) reduce_narrow(&p, 4, how)
NARROW(2)
NARROW(4)

#define ALL(in)                                                                                              \
  KERNEL __launch_bounds__(256, 4) sol_reduce_##in##_all(ReduceParams p) {                                   \
    __shared__ RowFold shared;                                                                               \
    EACH_HOW(ALL_BODY_##in)                                                                                  \
  }
#define ALL_BODY_2(how) reduce_all(&p, 2, &shared, how)
#define ALL_BODY_4(how) reduce_all(&p, 4, &shared, how)
ALL(2)
ALL(4)

#define COLUMNS(name, blocks, body)                                                                              \
  KERNEL __launch_bounds__(COLUMNS_THREADS, blocks) name(ReduceParams p) {                                  \
    __shared__ ColumnsFold shared;                                                                           \
    if (in_cluster(&p)) exchange_init(&shared.exchange);                                                             \
    EACH_HOW(body)                                                                                           \
  }
#define WIDE_2(how)  reduce_columns(&p, 2, 1, &shared, how)
#define WIDE_4(how)  reduce_columns(&p, 4, 1, &shared, how)
#define APART_2(how)                                                                                         \
  {                                                                                                          \
    if (p.lanes) reduce_columns(&p, 2, 0, &shared, how);                                                     \
    else if (p.x_kind == KIND_FP16) reduce_columns_few(&p, 2, KIND_FP16, how);                               \
    else reduce_columns_few(&p, 2, KIND_BF16, how);                                                          \
  }
#define APART_4(how)                                                                                         \
  {                                                                                                          \
    if (p.lanes) reduce_columns(&p, 4, 0, &shared, how);                                                     \
    else reduce_columns_few(&p, 4, KIND_FP32, how);                                                          \
  }
COLUMNS(sol_reduce_2_columns, 4, WIDE_2)
COLUMNS(sol_reduce_4_columns, 4, WIDE_4)
COLUMNS(sol_reduce_2_columns_apart, 4, APART_2)
COLUMNS(sol_reduce_4_columns_apart, 4, APART_4)
