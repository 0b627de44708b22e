// y = exp(x - max) / sum, or x - max - log(sum). A row stays on the chip between the fold over it and the write, in
// registers or, spread over a cluster, in shared memory; only rows beyond that are read twice. README.md has the
// measurements.
//
// One fold gives both: every thread keeps the largest of its own elements and the sum of exp(. - that), and pairs of
// these are joined. fmaxf passes over NaN, the sum does not; +inf makes inf - inf in its own thread; of a row that is
// all -inf the sum is 0. Each way every element comes out NaN.
//
// cross_entropy is an epilogue (LABELS: label_of, weigh_label, put_label): the loss of a row, log(sum) - (x[label] - max), and, in place of the
// softmax, its gradient.
#include "elementwise.cuh"
#include "narrow.cuh"
#include "softmax/softmax_apart.cuh"
#include "softmax/softmax_beside.cuh"
#include "softmax/softmax_direct.cuh"
#include "softmax/softmax_relay.cuh"
#include "softmax/softmax_row.cuh"
#include "softmax/softmax_spread.cuh"
#include "softmax/softmax_widen.cuh"

// A row in registers.
INLINE void softmax_held(const SoftmaxParams *p, RowShape s, RowFold *shared) {
  const int per = 16 / s.in, edge_count = SPAN_EDGES(s.threads, s.in);
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  int chunks = (int)x.chunks, column[4]; // of the edges; -1: none
  auto nobody_has = [&](int k) { return k > 1 && s.threads >= 32 && k * s.threads >= chunks; }; // chunk k, the same in a warp
  const bool late = s.threads > 32; // rows of a warp or less have no registers to spare for the label
  int64_t target = late ? target_of_row(p, place) : 0;
  Label label;
  Vec v[ROW_MAX_CHUNKS];
  // Two accumulators of each, in turn: dependent chains of half the length.
  float f[ROW_MAX_CHUNKS][8], edge[4], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < s.chunks; k++) v[k] = span_load(&x, k * s.threads + place.thread, span_lowest(kind));
  look_ahead(p, s);
  if (!late) label = label_of(p, place, &x, s, kind, target_of_row(p, place));
#pragma unroll
  for (int q = 0; q < edge_count; q++) {
    int e = q * s.threads + place.thread;
    column[q] = e < x.edges ? (int)span_edge(&x, e) : -1;
    edge[q] = column[q] >= 0 ? load_one(x.at, column[q], kind) : -INFINITY;
  }
#pragma unroll
  for (int k = 0; k < s.chunks; k++) {
    if (nobody_has(k)) continue;
    widen(&v[k], kind, s.in, f[k]);
#pragma unroll
    for (int j = 0; j < per; j++) tops[j % 2] = fmaxf(tops[j % 2], f[k][j]);
  }
#pragma unroll
  for (int q = 0; q < edge_count; q++) tops[0] = fmaxf(tops[0], edge[q]);
  if (late) label = label_of(p, place, &x, s, kind, target);
  float top = fmaxf(tops[0], tops[1]), mine = start_of(top);
#pragma unroll
  for (int k = 0; k < s.chunks; k++) {
    if (nobody_has(k)) continue;
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, asks_log(p), &sums[j % 2]);
  }
#pragma unroll
  for (int q = 0; q < edge_count; q++) edge[q] = keep(edge[q], mine, asks_log(p), &sums[0]);
  float2 row = row_fold(s, shared, make_float2(top, sums[0] + sums[1]), FOLD_SOFTMAX);
  Finish z = finish_of(row, mine, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  drop(label.at, f[0], s.chunks * 8);
  drop(label.at, edge, edge_count);
  Target y = target_of(p, place, s.wide);
#pragma unroll
  for (int k = 0; k < s.chunks; k++) {
    int i = k * s.threads + place.thread;
    if (i >= chunks) continue;
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = finish(z, f[k][j]);
    store_chunk(y, x.head + i * per, s.in, f[k]);
  }
#pragma unroll
  for (int q = 0; q < edge_count; q++)
    if (column[q] >= 0) store_one(y.at, column[q], y.kind, finish(z, edge[q]));
  put_label(y, label);
}

// A row of any length, read once for its largest and sum, and again, last chunks first: those are still in the cache.
INLINE void softmax_long(const SoftmaxParams *p, RowShape s, RowFold *shared) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  float f[8], edge = -INFINITY;
  float2 row = make_float2(-INFINITY, 0);
  Label label = label_of<uint64_t>(p, place, &x, s, kind, target_of_row(p, place));
  int64_t i = place.thread;
  for (; i < x.chunks; i += 2 * all) {
    Vec v = span_load(&x, i, 0), w = span_load(&x, i + all, span_lowest(kind));
    widen(&v, kind, s.in, f);
    row = join(row, f, per);
    widen(&w, kind, s.in, f);
    row = join(row, f, per);
  }
  if (place.thread < x.edges) {
    edge = load_one(x.at, span_edge(&x, place.thread), kind);
    row = join(row, &edge, 1);
  }
  row = row_fold(s, shared, row, FOLD_SOFTMAX);
  Finish z = finish_of(row, row.x, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, p->wide);
  for (i -= all; i >= 0; i -= all) {
    if (i >= x.chunks) continue;
    Vec v = span_load(&x, i, 0);
    widen(&v, kind, s.in, f);
    finish_chunk(p, y, x.head + i * per, s.in, f, row, z);
  }
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, asks_log(p)));
  put_label(y, label);
}

// ---- Short rows (narrow.cuh)

// The column of a row's label, and its gradient; below 0: another thread has it, or there is none.
INLINE int narrow_label(const SoftmaxParams *p, NarrowTile x, NarrowPlace a, uint64_t at, int64_t label, int kind, float2 row,
                        Finish *z, float *gradient) {
  if (!LABELS || !a.n) return LABEL_OF_ANOTHER;
  if (label < 0 || label >= p->n) {
    z->times = 0;
    if (a.lane == 0) p->loss[at] = 0;
    return NO_LABEL;
  }
  z->times *= p->scale;
  if (((int)label & (a.lanes - 1)) != a.lane) return LABEL_OF_ANOTHER;
  float below = load_one(narrow_row(x, a.row), label, kind) - row.x;
  p->loss[at] = logf(row.y) - below;
  *gradient = (__fdividef(ex2(below * LOG2E), row.y) - 1) * p->scale;
  return (int)label;
}

INLINE float lanes_sum(float sum, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) sum += __shfl_xor_sync(~0u, sum, o);
  return sum;
}

INLINE void narrow_softmax(const SoftmaxParams *p, NarrowTile x, NarrowTile y, NarrowPlace a, uint64_t at, int64_t target,
                           int kind) {
  float f[NARROW_EACH], tops[2] = {-INFINITY, -INFINITY}, kept[NARROW_EACH] = {}, gradient = 0;
  narrow_take(narrow_row(x, a.row), a, kind, -INFINITY, f);
#pragma unroll
  for (int k = 0; k < a.each; k++) tops[k % 2] = fmaxf(tops[k % 2], f[k]);
  // The row's largest first: of few lanes two folds have fewer instructions than one of pairs.
  float top = lanes_fold(make_float2(fmaxf(tops[0], tops[1]), 0), FOLD_MAX, a.lanes).x, mine = start_of(top);
#pragma unroll
  for (int k = 0; k < a.each; k++) f[k] = keep(f[k], mine, asks_log(p), &kept[k]);
  float2 row = make_float2(top, lanes_sum(beside_sum(4, a.each, kept), a.lanes));
  Finish z = finish_of(row, mine, asks_log(p));
  int label = narrow_label(p, x, a, at, target, kind, row, &z, &gradient);
  if (LABELS && !p->y) return;
  drop(label, f, a.each);
#pragma unroll
  for (int k = 0; k < a.each; k++) f[k] = finish(z, f[k]);
  narrow_give(narrow_row(y, a.row), a, kind, p->y_kind, f);
  if (LABELS && label >= 0) store_one(narrow_row(y, a.row), label, p->y_kind, gradient);
}

// The label of the thread's row number `at` of this block, if there is one.
INLINE int64_t turn_label(const SoftmaxParams *p, uint64_t first, int at, int rows, int lane_bits) {
  int row = at + (int)(threadIdx.x >> lane_bits);
  return LABELS && row < rows ? target_at(p, first + row) : -1;
}

// Labels are read a turn ahead, the first before the rows have arrived.
INLINE void softmax_turns(const SoftmaxParams *p, NarrowTile x, NarrowTile y, int rows, int kind, NarrowCopy copy) {
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p->narrow.rows;
  const int step = blockDim.x >> copy.lane_bits;
  int64_t next = turn_label(p, first, 0, rows, copy.lane_bits);
  narrow_arrived();
#pragma unroll 1
  for (int at = 0; at < rows; at += step) {
    int64_t label = next;
    next = turn_label(p, first, at + step, rows, copy.lane_bits);
    NarrowPlace a = narrow_place(&p->narrow, copy, at, rows);
    narrow_softmax(p, x, y, a, first + a.row, label, kind);
  }
}

INLINE void softmax_narrow(const SoftmaxParams *p, int kind) {
  const int in = kind == KIND_FP32 ? 4 : 2, out = p->y_kind == KIND_FP32 ? 4 : 2;
  int rows = narrow_rows(&p->narrow, p->m);
  NarrowTile x = narrow_tile(&p->narrow, NARROW_X, p->x, p->x_stride, in, rows);
  NarrowTile y = narrow_tile(&p->narrow, NARROW_Y, p->y, p->y_stride, out, rows);
  if (p->ends) narrow_ends(y);
  narrow_hint(x);
  let_successor_start();
  wait_for_predecessor();
  narrow_fetch(x, in);
#define SOFTMAX_TURNS(copy) softmax_turns(p, x, y, rows, kind, copy)
  if (p->n <= 2) SOFTMAX_TURNS((NarrowCopy{0, 2})); // rows of a few elements: no instructions for those that they do not have
  else if (p->n <= 4) SOFTMAX_TURNS((NarrowCopy{0, 4}));
  else NARROW_COPIES(p->narrow, NARROW_SOFTMAX, SOFTMAX_TURNS)
  __syncthreads();
  if (!LABELS || p->y) narrow_send(y, out);
}

// ---- Short rows in registers (chunks.cuh), wherever they start: y's elements have the size of x's, and its rows their alignment

// As label_of: a lane has every `lanes`-th chunk of its row.
INLINE Label rounds_label(const SoftmaxParams *p, RowLanes a, const RowChunks &r, int64_t at, int in, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS || a.row >= p->m) return l;
  int chunk = (r.before + (int)at * in) / 16;
  if (at < 0 || at >= p->n) l.at = NO_LABEL;
  else if ((chunk & (a.lanes - 1)) == a.lane) l.at = at, l.x = load_one((const char *)p->x + (int64_t)a.row * p->x_stride, at, kind);
  return l;
}

template <int size, int rounds> INLINE void softmax_rounds(const SoftmaxParams *p, int kind) {
  const int per = 16 / size, y_kind = size == 4 ? KIND_FP32 : p->y_kind;
  RowLanes a = row_lanes(p->lane_bits);
  RowPlace place = {a.row, a.lane, a.lanes};
  const char *x = (const char *)p->x;
  Extent tensor = {x, x + (int64_t)(p->m - 1) * p->x_stride + p->n * size};
  int n = a.row < p->m ? (int)p->n : 0;
  RowChunks r = row_chunks(a, tensor, p->x_stride, n, size, rounds);
  row_ends(a, p->m, p->y, p->y_stride, p->ends);
  chunks_hint(r, rounds);
  let_successor_start();
  wait_for_predecessor();
  int64_t target = LABELS && n ? target_at(p, a.row) : 0;
  Vec v[rounds];
  float f[rounds][8], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
  chunks_load(r, rounds, size, v);
  const RowShape block = {1, 1, SOFTMAX_ROUNDS_THREADS >> p->lane_bits, 1, size, size, 1};
  look_ahead(p, block);
#pragma unroll
  for (int k = 0; k < rounds; k++) {
    chunk_mask(r, k, span_lowest(kind), v[k]);
    widen(&v[k], kind, size, f[k]);
#pragma unroll
    for (int j = 0; j < per; j++) tops[j % 2] = fmaxf(tops[j % 2], f[k][j]);
  }
  // The row's largest first: of few lanes two folds have fewer instructions than one of pairs.
  float top = fmaxf(tops[0], tops[1]);
  for (int o = a.lanes / 2; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  float mine = start_of(top);
#pragma unroll
  for (int k = 0; k < rounds; k++)
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, asks_log(p), &sums[j % 2]);
  Label label = rounds_label(p, a, r, target, size, kind);
  float2 row = make_float2(top, sums[0] + sums[1]);
  for (int o = a.lanes / 2; o; o /= 2) row.y += __shfl_xor_sync(~0u, row.y, o);
  Finish z = finish_of(row, mine, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  drop(label.at, f[0], rounds * 8);
#pragma unroll
  for (int k = 0; k < rounds; k++) {
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = finish(z, f[k][j]);
    from_floats(f[k], per, y_kind, v[k].u);
  }
  Target y = target_of(p, place, 1);
#pragma unroll
  for (int k = 0; k < rounds; k++) {
    int chunk = r.first + k * r.lanes, column = r.column + k * r.turn;
    int lo = max(-column, 0) * size, hi = min(r.bytes - 16 * chunk, 16);
    if (hi - lo == 16) store16(y.at + column * size, v[k].u[0], v[k].u[1], v[k].u[2], v[k].u[3]);
    else if (lo < hi) store_part(y.at + column * size, lo, hi, 4, size, v[k].u);
  }
  put_label(y, label);
}

// The next kernel may launch meanwhile; it waits for this one.
INLINE void begin(RowShape s, RowFold *shared) {
  row_begin(s, shared);
  let_successor_start();
  wait_for_predecessor();
}

// Prefetches while the predecessor still runs.
INLINE void hint(const SoftmaxParams *p, RowShape s) {
  RowPlace place = row_place(s);
  target_ends(p, place);
  if (!may_hint() || place.row >= p->m) return;
  const char *x = (const char *)p->x + (int64_t)place.row * p->x_stride;
#pragma unroll
  for (int k = 0; k < s.chunks; k++) {
    int64_t at = (int64_t)(k * s.threads + place.thread) * 16;
    if (place.thread % 8 == 0 && at < p->n * s.in) prefetch_l2(x + at);
  }
}

#define HOLD(name, in, threads, chunks, rows, blocks, wide)                                                   \
  KERNEL __launch_bounds__(threads * rows, blocks) name(SoftmaxParams p) {                                   \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, chunks, rows, 1, in, in, wide};                                             \
    hint(&p, s);                                                                                             \
    begin(s, &shared);                                                                                       \
    softmax_held(&p, s, &shared);                                                                            \
  }
#define HELD(in, threads, chunks, rows, blocks)                                                              \
  HOLD(sol_softmax_##in##_held_##threads##x##chunks, in, threads, chunks, rows, blocks, 1)
#define HELD_LABELS(...) // cross_entropy.def has them as HELD
#define APART_FROM(in, count, kind)                                                                          \
  if (p.y_kind == KIND_FP32) softmax_apart(&p, in, 4, count, kind);                                          \
  else softmax_apart(&p, in, 2, count, kind);
#define APART(in, count, blocks)                                                                             \
  KERNEL __launch_bounds__(SOFTMAX_APART_THREADS, blocks) sol_softmax_##in##_apart_##count(SoftmaxParams p) { \
    if (in == 4) {                                                                                           \
      APART_FROM(in, count, KIND_FP32)                                                                       \
    } else if (p.x_kind == KIND_FP16) {                                                                      \
      APART_FROM(in, count, KIND_FP16)                                                                       \
    } else {                                                                                                 \
      APART_FROM(in, count, KIND_BF16)                                                                       \
    }                                                                                                        \
  }
#define WIDEN(threads, chunks, rows, blocks)                                                                 \
  KERNEL __launch_bounds__(threads * rows, blocks) sol_softmax_widen_##threads##x##chunks(SoftmaxParams p) { \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, chunks, rows, 1, 2, 4, 0};                                                  \
    hint(&p, s);                                                                                             \
    begin(s, &shared);                                                                                       \
    if (p.x_kind == KIND_FP16) softmax_widen(&p, s, &shared, KIND_FP16);                                     \
    else softmax_widen(&p, s, &shared, KIND_BF16);                                                           \
  }
#define NARROW(in, kind)                                                                                     \
  KERNEL __launch_bounds__(NARROW_THREADS, 8) sol_softmax_narrow_##kind(SoftmaxParams p) {                   \
    softmax_narrow(&p, KIND_##kind);                                                                         \
  }
#define ROUNDS(in, kind, rounds, blocks)                                                                     \
  KERNEL __launch_bounds__(SOFTMAX_ROUNDS_THREADS, blocks) sol_softmax_rounds_##kind##_##rounds(SoftmaxParams p) { \
    softmax_rounds<in, rounds>(&p, KIND_##kind);                                                             \
  }
#define BESIDE(in, kind, blocks)                                                                             \
  KERNEL __launch_bounds__(32 * SOFTMAX_BESIDE_WARPS, blocks) sol_softmax_beside_##kind(SoftmaxParams p) {   \
    softmax_beside<in, false>(&p, KIND_##kind);                                                              \
  }
#define BESIDE_MORE(in, kind, blocks)                                                                        \
  KERNEL __launch_bounds__(32 * SOFTMAX_BESIDE_WARPS, blocks) sol_softmax_beside_more_##kind(SoftmaxParams p) { \
    softmax_beside<in, true>(&p, KIND_##kind);                                                               \
  }
#define DIRECT(in, kind)                                                                                     \
  KERNEL __launch_bounds__(SOFTMAX_DIRECT_THREADS, 10) sol_softmax_direct_##kind(SoftmaxParams p) {          \
    softmax_direct<in>(&p, KIND_##kind);                                                                     \
  }
#define LONG(name, in, threads, cluster)                                                                     \
  KERNEL __launch_bounds__(threads) name(SoftmaxParams p) {                                                  \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, 1, 1, cluster, in, in, 1};                                                  \
    begin(s, &shared);                                                                                       \
    softmax_long(&p, s, &shared);                                                                            \
  }
#define LOOP(in, threads) LONG(sol_softmax_##in##_loop, in, threads, 1)
#define OF_KIND(in, body, ...)                                                                               \
  if (in == 4) body(&p, s, __VA_ARGS__, KIND_FP32);                                                          \
  else if (p.x_kind == KIND_FP16) body(&p, s, __VA_ARGS__, KIND_FP16);                                       \
  else body(&p, s, __VA_ARGS__, KIND_BF16);
#define HELD_SHARED_ROWS(in, threads, chunks, cluster, blocks)                                               \
  KERNEL __launch_bounds__(threads, blocks) sol_softmax_##in##_shared_##threads##x##chunks##x##cluster(      \
      SoftmaxParams p) {                                                                                     \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, chunks, 1, cluster, in, in, 1};                                             \
    begin(s, &shared);                                                                                       \
    OF_KIND(in, softmax_shared, &shared, held)                                                               \
  }
#define SPREAD_ROWS(in, blocks)                                                                              \
  KERNEL __launch_bounds__(SOFTMAX_SPREAD_THREADS, blocks) sol_softmax_##in##_spread(SoftmaxParams p) {      \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {(int)blockDim.x, 1, 1, cluster_blocks(), in, in, 1};                                 \
    begin(s, &shared);                                                                                       \
    OF_KIND(in, softmax_spread, &shared, held)                                                               \
  }
#define RELAYED(in)                                                                                          \
  KERNEL __launch_bounds__(SOFTMAX_RELAY_THREADS, 6) sol_softmax_##in##_relay(SoftmaxParams p) {             \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {SOFTMAX_RELAY_THREADS, 1, 1, 1, in, in, 1};                                          \
    begin(s, &shared);                                                                                       \
    OF_KIND(in, softmax_relay, &shared, held)                                                                \
  }
#if __CUDA_ARCH__ >= 800
#define RELAY(in) RELAYED(in)
#define SPREAD(in, blocks) SPREAD_ROWS(in, blocks)
#else
#define RELAY(in)
#define SPREAD(in, blocks)
#endif
#if __CUDA_ARCH__ >= 800
#define SHARED(in, threads, chunks, cluster, blocks) HELD_SHARED_ROWS(in, threads, chunks, cluster, blocks)
#else
#define SHARED(in, threads, chunks, cluster, blocks)
#endif
#if __CUDA_ARCH__ >= 900
#define SHARED_90(in, threads, chunks, cluster, blocks) HELD_SHARED_ROWS(in, threads, chunks, cluster, blocks)
#define LOOP_90(in, threads, cluster) LONG(sol_softmax_##in##_loop_cluster, in, threads, cluster)
#else
#define SHARED_90(in, threads, chunks, cluster, blocks)
#define LOOP_90(in, threads, cluster)
#endif
#ifndef SOFTMAX_DEF
#define SOFTMAX_DEF "softmax/softmax.def"
#endif
#include SOFTMAX_DEF
