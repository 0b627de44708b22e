// Sum, max, sum of squares over rows, columns or all. Everything is added up in an order that the shape alone fixes, so
// the same input gives the same bits; a second launch adds up what the blocks of the first leave in the workspace.
#include "reduce/reduce.h"
#include "mail.cuh"
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
  if (s.cluster == 1 || !mail_to_first(&shared->mail, s.cluster, v)) return v.x;
  sum = shared->mail.from[0].x;
#pragma unroll
  for (int i = 1; i < s.cluster; i++) sum = add(sum, shared->mail.from[i].x, how);
  return sum;
}

INLINE void finish(const ReduceParams *p, int64_t i, float sum) {
  store_one(p->y, i, p->y_kind, p->divisor == 1 ? sum : sum / p->divisor);
}

// What thread `thread` of `all` has of a row.
INLINE float reduce_span(const Span *x, int64_t thread, int64_t all, int kind, int in, int how) {
  enum { DEPTH = 4 };
  float sum[DEPTH];
#pragma unroll
  for (int u = 0; u < DEPTH; u++) sum[u] = nothing(how);
  for (int64_t i = thread; i < x->chunks; i += DEPTH * all) {
    Vec v[DEPTH];
#pragma unroll
    for (int u = 0; u < DEPTH; u++) v[u] = span_load(x, i + u * all, rest_of(kind, how));
#pragma unroll
    for (int u = 0; u < DEPTH; u++) sum[u] = take_chunk(sum[u], &v[u], kind, in, how);
  }
  for (int64_t e = thread; e < x->edges; e += all)
    sum[0] = take(sum[0], load_one(x->at, span_edge(x, (int)e), kind), how);
  return add(add(sum[0], sum[1], how), add(sum[2], sum[3], how), how);
}

// Rows: each by the threads of its group.
INLINE void reduce_row(const ReduceParams *p, RowShape s, RowFold *shared, int how) {
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  float sum = reduce_span(&x, place.thread, s.threads * s.cluster, kind, s.in, how);
  sum = fold_row(s, shared, sum, how);
  if (place.thread == 0 && place.row < p->m) finish(p, (int64_t)place.row, sum);
}

// One of `units`: a chunk of a row, or, the last for each row, its edges.
INLINE float reduce_unit(const ReduceParams *p, uint64_t unit, float sum, int kind, int in, int how) {
  uint64_t row, chunk;
  split(unit, p->per_row, &row, &chunk);
  Span x = span_of((const char *)p->x + (int64_t)row * p->x_stride, p->n, in);
  if (chunk < x.chunks) {
    Vec v = span_load(&x, (int64_t)chunk, 0);
    sum = take_chunk(sum, &v, kind, in, how);
  }
  if (chunk == p->per_row - 1)
    for (int e = 0; e < x.edges; e++) sum = take(sum, load_one(x.at, span_edge(&x, e), kind), how);
  return sum;
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
#pragma unroll 2
    for (uint64_t i = thread; i < p->units; i += step) sum = reduce_unit(p, i, sum, kind, in, how);
  }
  sum = fold_row(s, shared, sum, how);
  if (threadIdx.x == 0) finish(p, blockIdx.x, sum);
}

// Columns: a block has a strip of `lanes` chunks and p->rows rows, its threads as lanes x (256 / lanes); they add up
// what they hold at the end, half and half. `wide`: a thread's columns are one 16-byte chunk, rows on 16 bytes.
// Otherwise they are `lanes` apart and loaded one by one, neighbouring threads beside each other.
INLINE int64_t column_of(const ReduceParams *p, int in, int wide, int j) {
  int per = 16 / in, lane = threadIdx.x & (p->lanes - 1);
  int64_t first = (int64_t)blockIdx.x * p->lanes * per;
  return first + (wide ? lane * per + j : j * p->lanes + lane);
}

// One by one, those that there are.
INLINE Vec columns_load(const ReduceParams *p, int in, int wide, const char *at, uint32_t rest) {
  Vec v;
  v.v = make_uint4(rest, rest, rest, rest);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) {
    int64_t c = column_of(p, in, wide, j);
    if (c >= p->n) continue;
    if (in == 4) v.u[j] = ((const uint32_t *)at)[c];
    else v.h[j] = ((const uint16_t *)at)[c];
  }
  return v;
}

// `count` rows from `at` on, `down` bytes apart; a thread's columns are `chunk` bytes into them, or one by one.
INLINE void columns_sum(const ReduceParams *p, int in, int wide, const char *at, int64_t down, int count, float *sum,
                        int how) {
  enum { DEPTH = 8, APART = 4 };
  const int per = 16 / in, kind = in == 4 ? KIND_FP32 : p->x_kind;
  const uint32_t rest = rest_of(kind, how);
  float f[8];
  if (wide && column_of(p, in, 1, per - 1) < p->n) {
    at += column_of(p, in, 1, 0) * in;
    for (int i = 0; i < count; i += DEPTH) {
      Vec v[DEPTH];
#pragma unroll
      for (int u = 0; u < DEPTH; u++, at += down) {
        v[u].v = make_uint4(rest, rest, rest, rest);
        if (i + u < count) v[u].v = *(const uint4 *)at;
      }
#pragma unroll
      for (int u = 0; u < DEPTH; u++) {
        widen(&v[u], kind, in, f);
#pragma unroll
        for (int j = 0; j < per; j++) sum[j] = take(sum[j], f[j], how);
      }
    }
    return;
  }
#pragma unroll APART
  for (int i = 0; i < count; i++, at += down) {
    Vec v = columns_load(p, in, wide, at, rest);
    widen(&v, kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) sum[j] = take(sum[j], f[j], how);
  }
}

INLINE void reduce_columns(const ReduceParams *p, int in, int wide, float *part, int how) {
  enum { THREADS = 256 };
  const int per = 16 / in;
  int step = THREADS / p->lanes, first = threadIdx.x / p->lanes;
  uint64_t begin = blockIdx.y * (uint64_t)p->rows, end = begin + p->rows < p->m ? begin + p->rows : p->m;
  int64_t count = ((int64_t)(end - begin) - first + step - 1) / step; // fewer than 2^31, by the plan
  float sum[8];
#pragma unroll
  for (int j = 0; j < per; j++) sum[j] = nothing(how);
  columns_sum(p, in, wide, (const char *)p->x + (int64_t)(begin + first) * p->x_stride, step * p->x_stride, (int)count, sum,
              how);
#pragma unroll
  for (int j = 0; j < per; j++) part[j * THREADS + threadIdx.x] = sum[j];
  for (int half = THREADS / 2; half >= p->lanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
#pragma unroll
    for (int j = 0; j < per; j++)
      part[j * THREADS + threadIdx.x] =
          add(part[j * THREADS + threadIdx.x], part[j * THREADS + threadIdx.x + half], how);
  }
  if (threadIdx.x >= p->lanes) return;
#pragma unroll
  for (int j = 0; j < per; j++) {
    int64_t c = column_of(p, in, wide, j);
    if (c < p->n) finish(p, blockIdx.y * p->n + c, part[j * THREADS + threadIdx.x]);
  }
}

#define EACH_HOW(call_)                                                                                      \
  let_successor_start();                                                                                     \
  wait_for_predecessor();                                                                                    \
  if (p.how == HOW_MAX) call_(HOW_MAX);                                                                      \
  else if (p.how == HOW_SQUARES) call_(HOW_SQUARES);                                                         \
  else call_(HOW_SUM);

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
#include "span.def"

#define ALL(in)                                                                                              \
  KERNEL __launch_bounds__(256, 5) sol_reduce_##in##_all(ReduceParams p) {                                   \
    __shared__ RowFold shared;                                                                               \
    EACH_HOW(ALL_BODY_##in)                                                                                  \
  }
#define ALL_BODY_2(how) reduce_all(&p, 2, &shared, how)
#define ALL_BODY_4(how) reduce_all(&p, 4, &shared, how)
ALL(2)
ALL(4)

#define COLUMNS(name, in, body)                                                                              \
  KERNEL __launch_bounds__(256, 4) name(ReduceParams p) {                                                    \
    __shared__ float part[16 / in * 256];                                                                    \
    EACH_HOW(body)                                                                                           \
  }
#define WIDE_2(how)  reduce_columns(&p, 2, 1, part, how)
#define WIDE_4(how)  reduce_columns(&p, 4, 1, part, how)
#define APART_2(how) reduce_columns(&p, 2, 0, part, how)
#define APART_4(how) reduce_columns(&p, 4, 0, part, how)
COLUMNS(sol_reduce_2_columns, 2, WIDE_2)
COLUMNS(sol_reduce_4_columns, 4, WIDE_4)
COLUMNS(sol_reduce_2_columns_apart, 2, APART_2)
COLUMNS(sol_reduce_4_columns_apart, 4, APART_4)
