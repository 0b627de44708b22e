// Rows in the shared memory of a block, or of a cluster's blocks. Each thread copies, and then reads, its own chunks alone.
#ifndef SOL_KERNELS_SOFTMAX_SPREAD_CUH
#define SOL_KERNELS_SOFTMAX_SPREAD_CUH

#include "held.cuh"
#include "softmax/softmax_apart.cuh"
#include "softmax/softmax_row.cuh"

#if __CUDA_ARCH__ >= 800
// As row_fold. What the blocks of a cluster have is folded by lanes, not one after the other: each step waits for the one before.
INLINE float2 spread_fold(RowShape s, RowFold *shared, float2 v) {
  RowShape alone = s;
  alone.cluster = 1;
  v = row_fold(alone, shared, v, FOLD_SOFTMAX);
  if (s.cluster == 1) return v;
  exchange_all(&shared->exchange, s.cluster, v);
  const int lanes = s.cluster <= 4 ? 4 : s.cluster <= 8 ? 8 : 16;
  int block = threadIdx.x % lanes;
  return lanes_fold(block < s.cluster ? shared->exchange.from[block] : make_float2(-INFINITY, 0), FOLD_SOFTMAX, lanes);
}

// The label's element, in the thread that has copied it.
INLINE Label shared_label(const Span &x, int64_t at, const uint4 *held, float edge, RowShape s, int kind) {
  Label l = {at, edge};
  if (!LABELS || at < x.head || at >= x.n - (x.edges - x.head)) return l;
  const uint32_t per = 16 / s.in, body = (uint32_t)at - x.head, turn = body / per / (s.threads * s.cluster);
  l.x = load_one(held + turn * s.threads, body % per, kind);
  return l;
}

// A row in the shared memory of a cluster's blocks. Each thread copies, and then reads, its own chunks alone: `count`
// of them. kind: of x, a literal.
INLINE void softmax_shared(const SoftmaxParams *p, RowShape s, RowFold *shared, uint4 *held, int kind) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  int chunks = (int)x.chunks, count = chunks > place.thread ? (chunks - place.thread + all - 1) / all : 0;
  float edge = -INFINITY;
  int64_t target = target_of_row(p, place);
  held += threadIdx.x;
#pragma unroll
  for (int k = 0; k < s.chunks; k++)
    if (k < count)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       (uint32_t)__cvta_generic_to_shared(held + k * s.threads)),
                   "l"(x.body + (int64_t)(k * all + place.thread) * 16)
                   : "memory");
  look_ahead(p, s);
  if (place.thread < x.edges) edge = load_one(x.at, span_edge(&x, place.thread), kind);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float2 sum = fold_shared(held, s, count, edge, kind);
  Label label = shared_label(x, label_column(p, place, &x, s, target), held, edge, s, kind);
  float2 row = spread_fold(s, shared, sum);
  Finish z = finish_of(row, row.x, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, s.wide);
  write_shared(p, y, held, x.head + (int64_t)place.thread * per, all, s, count, kind, row, z);
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, asks_log(p)));
  put_label(y, label);
}

// ---- Where y is not aligned as x is, or its elements have another size: warps of all blocks have consecutive segments of a row's chunks

// What a thread has of a row: `count` chunks from `first` on, a warp's lanes apart; `segment`: chunks of a warp.
typedef struct SpreadPlace {
  int first, count, segment;
} SpreadPlace;

INLINE SpreadPlace spread_place(const Span &x, RowPlace place) {
  uint32_t chunks = (uint32_t)x.chunks, each = (chunks + place.all - 1) / place.all;
  SpreadPlace a = {0, 0, (int)each * 32};
  a.first = place.thread / 32 * a.segment + place.thread % 32;
  if (a.first < (int)chunks) a.count = (int)min(each, (chunks - a.first + 31) / 32);
  return a;
}

// As label_of.
INLINE Label spread_label(const SoftmaxParams *p, RowPlace place, const Span &x, SpreadPlace a, int per, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS || place.row >= p->m) return l;
  int64_t at = target_at(p, place.row), body = at - x.head, edge = at < x.head ? at : at - (x.n - x.edges);
  int chunk = (int)(body / per) - a.first;
  bool inside = body >= 0 && body / per < x.chunks;
  if (at < 0 || at >= p->n) l.at = NO_LABEL;
  else if (inside ? chunk >= 0 && chunk < 32 * a.count && chunk % 32 == 0 : edge == place.thread)
    l.at = at, l.x = load_one(x.at, at, kind);
  return l;
}

// Writes what a thread has, but for the row's first `front` chunks.
INLINE void write_apart(Target y, const uint4 *held, const Span &x, SpreadPlace a, int front, RowShape s, int out,
                        int log, int kind, float2 row, Finish z, Label label) {
  const int per = 16 / s.in, words = per * out / 4, y_kind = out == 4 ? KIND_FP32 : y.kind;
  int lane = threadIdx.x % 32, turns = __shfl_sync(~0u, a.count, 0), begin = x.head + (a.first - lane) * per;
  int end = min(begin + a.segment * per, x.head + (int)x.chunks * per), column = x.head + a.first * per;
  begin = max(begin, x.head + front * per);
  const int at = (int)label.at; // of rows that these kernels have, 32 bits hold a column
  ApartCells c = apart_cells(y.at, begin * out, end * out, column * out, lane, 32, words);
#pragma unroll 2
  for (int k = 0; k < turns; k++, column += 32 * per) {
    float f[8];
    uint32_t w[8];
    reread(held + max(min(k, a.count - 1), 0) * s.threads, kind, s.in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = LABELS && column + j == at ? label.x : result(f[j], row, z, log);
    from_floats(f, per, y_kind, w);
    apart_put(c, column * out, words, out, w);
  }
  apart_end(c, column * out, words, out);
}

// `out` and `log` are literals in the loops. Elements of 2 bytes that become larger are the relay's.
INLINE void write_any(const SoftmaxParams *p, Target y, const uint4 *held, const Span &x, SpreadPlace a, int front, RowShape s, int kind, float2 row,
                      Finish z, Label label) {
  if (asks_log(p)) {
    if (s.in == 4 && y.kind == KIND_FP32) write_apart(y, held, x, a, front, s, 4, 1, kind, row, z, label);
    else write_apart(y, held, x, a, front, s, 2, 1, kind, row, z, label);
  } else {
    if (s.in == 4 && y.kind == KIND_FP32) write_apart(y, held, x, a, front, s, 4, 0, kind, row, z, label);
    else write_apart(y, held, x, a, front, s, 2, 0, kind, row, z, label);
  }
}

// kind: of x, a literal. Threads and blocks of a row are known at run time.
INLINE void softmax_spread(const SoftmaxParams *p, RowShape s, RowFold *shared, uint4 *held, int kind) {
  const int per = 16 / s.in;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  SpreadPlace a = spread_place(x, place);
  float edge = -INFINITY;
  held += threadIdx.x;
#pragma unroll 8
  for (int k = 0; k < a.count; k++) fetch16(held + k * s.threads, x.body + (int64_t)(a.first + 32 * k) * 16);
  look_ahead(p, s);
  Label label = spread_label(p, place, x, a, per, kind);
  if (place.thread < x.edges) edge = load_one(x.at, span_edge(&x, place.thread), kind);
  wait_for_fetches();
  float2 row = spread_fold(s, shared, fold_shared(held, s, a.count, edge, kind));
  Finish z = finish_of(row, row.x, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, 1);
  write_any(p, y, held, x, a, 0, s, kind, row, z, label);
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, asks_log(p)));
  if (label.at < x.head || label.at >= x.head + x.chunks * per) put_label(y, label);
}
#endif

#endif
