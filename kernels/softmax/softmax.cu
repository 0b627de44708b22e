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
#include "softmax/softmax.h"
#include "chunks.cuh"
#include "softmax/apart.cuh"
#include "elementwise.cuh"
#include "narrow.cuh"
#include "packed.cuh"
#include "parts.cuh"
#include "row.cuh"
#include "span.cuh"

#define LOG2E 1.4426950408889634f

// Whether the kernels are cross_entropy's (kernels/cross_entropy): softmax's have no registers to spare for it.
#ifndef LABELS
#define LABELS 0
#endif

// Where a row is written. `wide`: its chunks, too, are aligned so that they can be written whole.
typedef struct Target {
  char *at;
  int kind, wide;
} Target;

INLINE Target target_of(const SoftmaxParams *p, RowPlace place, int wide) {
  Target t = {(char *)p->y + (int64_t)place.row * p->y_stride, p->y_kind, wide};
  return t;
}

// One access, whatever loop it is in: in the rest of an unrolled loop nvcc makes four of a plain store of a uint4.
INLINE void store16(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

INLINE void store_chunk(Target t, int64_t column, int in, const float *f) {
  int per = 16 / in;
  if (!t.wide) {
#pragma unroll
    for (int j = 0; j < per; j++) store_one(t.at, column + j, t.kind, f[j]);
  } else if (t.kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < per; j += 4)
      store16((float *)t.at + column + j, __float_as_uint(f[j]), __float_as_uint(f[j + 1]), __float_as_uint(f[j + 2]),
              __float_as_uint(f[j + 3]));
  } else if (per == 8) {
    store16((uint16_t *)t.at + column, narrow2(f[0], f[1], t.kind), narrow2(f[2], f[3], t.kind),
            narrow2(f[4], f[5], t.kind), narrow2(f[6], f[7], t.kind));
  } else {
    *(uint2 *)((uint16_t *)t.at + column) = make_uint2(narrow2(f[0], f[1], t.kind), narrow2(f[2], f[3], t.kind));
  }
}

INLINE Span row_span(const SoftmaxParams *p, RowPlace place, int in) {
  return span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, in);
}

// Prefetches into L2 the rows, or this block's part of one, about 5 MB further on: a little faster.
INLINE void look_ahead(const SoftmaxParams *p, RowShape s) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x || !p->ahead) return;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) / s.cluster * s.rows + p->ahead;
  if (first + s.rows > p->m) return;
  uintptr_t from = (uintptr_t)p->x + first * p->x_stride, to = from + (s.rows - 1) * p->x_stride + p->n * s.in;
  from = (from + 15) & ~(uintptr_t)15;
  if (s.cluster > 1 && to > from) {
    uintptr_t part = (to - from) / s.cluster & ~(uintptr_t)15;
    from += part * cluster_rank();
    to = from + part;
  }
  to &= ~(uintptr_t)15;
  if (from < to)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((uint32_t)(to - from)) : "memory");
#endif
}

// Where this thread's sum starts from: its largest, or anything where it has no element above -inf.
INLINE float start_of(float top) {
  return top == -INFINITY ? 0 : top;
}

// result = kept * times + plus, where kept is exp(x - mine), or x - mine for log_softmax. Times 0: 0, of NaN too.
typedef struct Finish {
  float times, plus;
} Finish;

INLINE Finish finish_of(float2 row, float mine, int log) {
  Finish z = {log ? 1 : __fdividef(ex2((mine - row.x) * LOG2E), row.y), log ? (mine - row.x) - logf(row.y) : 0};
  return z;
}

INLINE float finish(Finish z, float kept) { return LABELS && z.times == 0 ? 0 : fmaf(kept, z.times, z.plus); }

// The element of a row that is the right one, for the thread that stores that element: its column and, after weigh_label, its
// gradient.
enum { LABEL_OF_ANOTHER = -1, NO_LABEL = -2 }; // in place of the column; no label: the row counts for nothing
typedef struct Label {
  int64_t at;
  float x;
} Label;

INLINE bool stores(const Span *x, int64_t column, int per, int all, int thread) {
  int64_t chunk = (column - x->head) / per;
  int64_t turn = column < x->head ? column : chunk < x->chunks ? chunk : column - (x->n - x->edges);
  return (int)((uint32_t)turn % (uint32_t)all) == thread;
}

INLINE int64_t target_at(const SoftmaxParams *p, uint64_t row) {
  return p->wide_ids ? ((const int64_t *)p->targets)[row] : ((const int32_t *)p->targets)[row];
}

// What cross_entropy reads, along with the row and before the fold: after it everything would wait for two more loads.
INLINE Label label_of(const SoftmaxParams *p, RowPlace place, const Span *x, RowShape s, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS || place.row >= p->m) return l;
  int64_t at = target_at(p, place.row);
  if (at < 0 || at >= p->n) l.at = NO_LABEL;
  else if (stores(x, at, 16 / s.in, s.threads * s.cluster, place.thread)) l.at = at, l.x = load_one(x->at, at, kind);
  return l;
}

// What it does between the fold and the write: the loss, by the thread that has the label's element, and its gradient,
// which that thread writes after its other elements.
INLINE void weigh_label(const SoftmaxParams *p, RowPlace place, Label *l, float2 row, Finish *z) {
  if (!LABELS || place.row >= p->m) return;
  z->times = l->at == NO_LABEL ? 0 : z->times * p->scale;
  if (l->at == NO_LABEL && place.thread == 0) p->loss[place.row] = 0;
  if (l->at < 0) return;
  float below = l->x - row.x;
  p->loss[place.row] = logf(row.y) - below;
  l->x = (__fdividef(ex2(below * LOG2E), row.y) - 1) * p->scale;
}

INLINE void put_label(Target y, Label l) {
  if (LABELS && l.at >= 0) store_one(y.at, l.at, y.kind, l.x);
}

INLINE float keep(float f, float mine, int log, float *sum) {
  float d = f - mine, e = ex2(d * LOG2E);
  *sum += e;
  return log ? d : e;
}

// A row in registers.
INLINE void softmax_held(const SoftmaxParams *p, RowShape s, RowFold *shared) {
  const int per = 16 / s.in, edge_count = SPAN_EDGES(s.threads, s.in);
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  int chunks = (int)x.chunks, column[4]; // of the edges; -1: none
  Vec v[ROW_MAX_CHUNKS];
  // Two accumulators of each, in turn: dependent chains of half the length.
  float f[ROW_MAX_CHUNKS][8], edge[4], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < s.chunks; k++) v[k] = span_load(&x, k * s.threads + place.thread, span_lowest(kind));
  look_ahead(p, s);
  Label label = label_of(p, place, &x, s, kind);
#pragma unroll
  for (int q = 0; q < edge_count; q++) {
    int e = q * s.threads + place.thread;
    column[q] = e < x.edges ? (int)span_edge(&x, e) : -1;
    edge[q] = column[q] >= 0 ? load_one(x.at, column[q], kind) : -INFINITY;
  }
#pragma unroll
  for (int k = 0; k < s.chunks; k++) {
    widen(&v[k], kind, s.in, f[k]);
#pragma unroll
    for (int j = 0; j < per; j++) tops[j % 2] = fmaxf(tops[j % 2], f[k][j]);
  }
#pragma unroll
  for (int q = 0; q < edge_count; q++) tops[0] = fmaxf(tops[0], edge[q]);
  float top = fmaxf(tops[0], tops[1]), mine = start_of(top);
#pragma unroll
  for (int k = 0; k < s.chunks; k++)
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, p->log, &sums[j % 2]);
#pragma unroll
  for (int q = 0; q < edge_count; q++) edge[q] = keep(edge[q], mine, p->log, &sums[0]);
  float2 row = row_fold(s, shared, make_float2(top, sums[0] + sums[1]), FOLD_SOFTMAX);
  Finish z = finish_of(row, mine, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
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

// The result of one element once the row's largest and sum are known.
INLINE float result(float f, float2 row, Finish z, int log) {
  float d = f - row.x;
  return log ? d + z.plus : LABELS && z.times == 0 ? 0 : ex2(d * LOG2E) * z.times;
}

INLINE void finish_chunk(const SoftmaxParams *p, Target y, int64_t column, int in, float *f, float2 row, Finish z) {
#pragma unroll
  for (int j = 0; j < 16 / in; j++) f[j] = result(f[j], row, z, p->log);
  store_chunk(y, column, in, f);
}

// More elements in a running (largest, sum of exp(. - largest)).
INLINE float2 join(float2 a, const float *f, int count) {
  float top = a.x;
#pragma unroll
  for (int j = 0; j < count; j++) top = fmaxf(top, f[j]);
  float mine = start_of(top), sum = top == a.x ? a.y : a.y * ex2((a.x - mine) * LOG2E);
#pragma unroll
  for (int j = 0; j < count; j++) sum += ex2((f[j] - mine) * LOG2E);
  return make_float2(top, sum);
}

#if __CUDA_ARCH__ >= 800
// Shared memory is read again each time: values kept in registers would leave fewer blocks on an SM to hide latency.
INLINE void reread(const uint4 *at, int kind, int in, float *f) {
  Vec v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.u[0]), "=r"(v.u[1]), "=r"(v.u[2]), "=r"(v.u[3])
               : "r"((uint32_t)__cvta_generic_to_shared(at))
               : "memory");
  widen(&v, kind, in, f);
}

// The largest of a thread's elements. Those of 2 bytes are compared packed, two at a time.
INLINE float top_shared(const uint4 *held, RowShape s, int count, int kind) {
  uint32_t top[4] = {span_lowest(kind), span_lowest(kind), span_lowest(kind), span_lowest(kind)};
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    Vec v;
    v.v = held[k * s.threads];
#pragma unroll
    for (int j = 0; j < 4; j++)
      top[j] = s.in == 2 ? larger2(top[j], v.u[j], kind)
                         : __float_as_uint(fmaxf(__uint_as_float(top[j]), __uint_as_float(v.u[j])));
  }
  if (s.in == 2) {
    float2 two = widen2(larger2(larger2(top[0], top[1], kind), larger2(top[2], top[3], kind), kind), kind);
    return fmaxf(two.x, two.y);
  }
  return fmaxf(fmaxf(__uint_as_float(top[0]), __uint_as_float(top[1])),
               fmaxf(__uint_as_float(top[2]), __uint_as_float(top[3])));
}

// A thread's largest and sum, of its chunks and one more element.
INLINE float2 fold_shared(const uint4 *held, RowShape s, int count, float edge, int kind) {
  float top = fmaxf(edge, top_shared(held, s, count, kind)), mine = start_of(top), f[8];
  float sums[2] = {ex2((edge - mine) * LOG2E), 0};
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    reread(held + k * s.threads, kind, s.in, f);
#pragma unroll
    for (int j = 0; j < 16 / s.in; j++) sums[j % 2] += ex2((f[j] - mine) * LOG2E);
  }
  return make_float2(top, sums[0] + sums[1]);
}

// The write where y has x's kind: it and `log` are literals.
INLINE void write_alike(Target y, const uint4 *held, int64_t first, RowShape s, int count, int log, float2 row,
                        Finish z) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    float f[8];
    reread(held + k * s.threads, y.kind, s.in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = result(f[j], row, z, log);
    store_chunk(y, first + (int64_t)k * all * per, s.in, f);
  }
}

INLINE void write_shared(const SoftmaxParams *p, Target y, const uint4 *held, int64_t first, RowShape s, int count,
                         int kind, float2 row, Finish z) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  float f[8];
  if (p->y_kind == kind) {
    y.kind = kind;
    if (p->log) write_alike(y, held, first, s, count, 1, row, z);
    else write_alike(y, held, first, s, count, 0, row, z);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    reread(held + k * s.threads, kind, s.in, f);
    finish_chunk(p, y, first + (int64_t)k * all * per, s.in, f, row, z);
  }
}

// A row in the shared memory of a cluster's blocks. Each thread copies, and then reads, its own chunks alone: `count`
// of them. kind: of x, a literal.
INLINE void softmax_shared(const SoftmaxParams *p, RowShape s, RowFold *shared, uint4 *held, int kind) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  int chunks = (int)x.chunks, count = chunks > place.thread ? (chunks - place.thread + all - 1) / all : 0;
  float edge = -INFINITY;
  held += threadIdx.x;
#pragma unroll
  for (int k = 0; k < s.chunks; k++)
    if (k < count)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       (uint32_t)__cvta_generic_to_shared(held + k * s.threads)),
                   "l"(x.body + (int64_t)(k * all + place.thread) * 16)
                   : "memory");
  look_ahead(p, s);
  Label label = label_of(p, place, &x, s, kind);
  if (place.thread < x.edges) edge = load_one(x.at, span_edge(&x, place.thread), kind);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float2 row = row_fold(s, shared, fold_shared(held, s, count, edge, kind), FOLD_SOFTMAX);
  Finish z = finish_of(row, row.x, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, s.wide);
  write_shared(p, y, held, x.head + (int64_t)place.thread * per, s, count, kind, row, z);
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, p->log));
  put_label(y, label);
}

// More of a thread's chunks in a running (largest, sum of exp(. - largest)).
INLINE float2 fold_more(float2 v, const uint4 *held, RowShape s, int count, int kind) {
  float top = fmaxf(v.x, top_shared(held, s, count, kind)), mine = start_of(top), f[8];
  float sums[2] = {v.x == top ? v.y : v.y * ex2((v.x - mine) * LOG2E), 0};
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    reread(held + k * s.threads, kind, s.in, f);
#pragma unroll
    for (int j = 0; j < 16 / s.in; j++) sums[j % 2] += ex2((f[j] - mine) * LOG2E);
  }
  return make_float2(top, sums[0] + sums[1]);
}

template <int left> INLINE void wait_for_groups(void) { asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory"); }

INLINE void softmax_spread(const SoftmaxParams *p, RowShape s, RowFold *shared, uint4 *held, int kind) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  int chunks = (int)x.chunks, count = chunks > place.thread ? (chunks - place.thread + all - 1) / all : 0, some = (count + 3) / 4;
  float edge = -INFINITY;
  held += threadIdx.x;
#pragma unroll
  for (int g = 0; g < 4; g++) {
#pragma unroll 4
    for (int k = g * some; k < min(count, (g + 1) * some); k++)
      fetch16(held + k * s.threads, x.body + (int64_t)(k * all + place.thread) * 16);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  if (p->lane_bits & 256) look_ahead(p, s);
  Label label = label_of(p, place, &x, s, kind);
  if (place.thread < x.edges) edge = load_one(x.at, span_edge(&x, place.thread), kind);
  float2 v = make_float2(-INFINITY, 0);
  if (p->lane_bits & 512) {
    wait_for_groups<0>();
    v = fold_more(v, held, s, count, kind);
  } else {
    wait_for_groups<3>();
    v = fold_more(v, held, s, min(some, count), kind);
    wait_for_groups<2>();
    v = fold_more(v, held + some * s.threads, s, max(min(some, count - some), 0), kind);
    wait_for_groups<1>();
    v = fold_more(v, held + 2 * some * s.threads, s, max(min(some, count - 2 * some), 0), kind);
    wait_for_groups<0>();
    v = fold_more(v, held + 3 * some * s.threads, s, max(min(some, count - 3 * some), 0), kind);
  }
  if (place.thread < x.edges) v = join(v, &edge, 1);
  float2 row = row_fold(s, shared, v, FOLD_SOFTMAX);
  Finish z = finish_of(row, row.x, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, s.wide);
  write_shared(p, y, held, x.head + (int64_t)place.thread * per, s, count, kind, row, z);
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, p->log));
  put_label(y, label);
}

// ---- Rows that no cluster holds, in parts all over the GPU (parts.cuh)

// What a thread has of a part: `count` chunks of the row from `first` on, a block's threads apart.
typedef struct SoftmaxPart {
  int64_t first;
  int count;
} SoftmaxPart;

INLINE SoftmaxPart softmax_part(const SoftmaxParams *p, const Span &x, uint32_t part, int per) {
  int64_t of_part = p->parts.length / per, end = min((part + 1) * of_part, x.chunks);
  SoftmaxPart a = {part * of_part + threadIdx.x, 0};
  if (a.first < end) a.count = (int)((uint32_t)(end - a.first - 1) / PARTS_THREADS) + 1;
  return a;
}

INLINE void part_fill(const Span &x, SoftmaxPart a, uint4 *held) { // a thread reads what it has copied itself
#pragma unroll 8
  for (int k = 0; k < a.count; k++) fetch16(held + k * PARTS_THREADS, x.body + (a.first + k * PARTS_THREADS) * 16);
  wait_for_fetches();
}

// Writes a thread's chunks from number `start` on, and then the label's element if it is among them.
INLINE void part_write(const SoftmaxParams *p, Target y, const Span &x, SoftmaxPart a, int start, const uint4 *held, RowShape s, int kind,
                       float2 row, Finish z, Label label) {
  const int per = 16 / s.in;
  int64_t first = a.first + start * PARTS_THREADS, at = (label.at - x.head) / per - first;
  write_shared(p, y, held + start * PARTS_THREADS, x.head + first * per, s, a.count - start, kind, row, z);
  if (label.at >= x.head && at >= 0 && at < (a.count - start) * PARTS_THREADS && at % PARTS_THREADS == 0) put_label(y, label);
}

// The row's label, in every thread; of a row without one nothing counts.
INLINE Label part_label(const SoftmaxParams *p, uint64_t row, const Span &x, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS) return l;
  l.at = target_at(p, row);
  if (l.at < 0 || l.at >= p->n) l.at = NO_LABEL;
  else l.x = load_one(x.at, l.at, kind);
  return l;
}
INLINE void part_weigh(const SoftmaxParams *p, uint64_t at, Label *l, float2 row, Finish *z, bool write) {
  if (!LABELS) return;
  float below = l->x - row.x;
  z->times = l->at == NO_LABEL ? 0 : z->times * p->scale;
  if (write) p->loss[at] = l->at == NO_LABEL ? 0 : logf(row.y) - below;
  l->x = (__fdividef(ex2(below * LOG2E), row.y) - 1) * p->scale;
}

// A row's last block writes what the others left: the start of the row, where they have posted, single elements at its ends, and parts that were given up.
INLINE void softmax_parts(const SoftmaxParams *p, RowShape s, RowFold *folds, uint4 *held, int kind) {
  __shared__ bool left[PARTS_MOST];
  const int t = threadIdx.x, per = 16 / s.in;
  Part at = part_of_block(p->parts);
  if (at.row >= p->m) return; // the first row has none before it
  RowPlace place = {at.row, t, PARTS_THREADS};
  Span x = row_span(p, place, s.in);
  Target y = target_of(p, place, 1);
  unsigned long long *posts = posts_of(y.at);
  SoftmaxPart a = softmax_part(p, x, at.part, per);
  Label label = part_label(p, at.row, x, kind);
  float edge = (at.last || at.part == 0) && t < x.edges ? load_one(x.at, span_edge(&x, t), kind) : -INFINITY;
  float2 v;
  held += t;
  if (at.last) {
    parts_left(p->parts, posts, left);
    posts_take(p->parts, posts, 0, &v);
  } else {
    part_fill(x, a, held);
    v = row_fold(s, &folds[0], fold_shared(held, s, a.count, edge, kind), FOLD_SOFTMAX);
    if (t == 0) post(p->parts, posts, at.part, v);
    bool there = posts_take(p->parts, posts, p->parts.polls, &v);
    if (t == 0) part_tell(p->parts, posts, at.part, there ? PART_READ : PART_LEFT);
    if (!there) return;
  }
  float2 row = row_fold(s, &folds[1], t < p->parts.parts ? v : make_float2(-INFINITY, 0), FOLD_SOFTMAX);
  Finish z = finish_of(row, row.x, p->log);
  part_weigh(p, at.row, &label, row, &z, at.last && t == 0);
  int front = p->parts.front / PARTS_THREADS;
  if (!at.last) {
    part_write(p, y, x, a, at.part ? 0 : min(front, a.count), held, s, kind, row, z, label);
    return;
  }
  for (uint32_t part = 0; part < p->parts.parts; part++) {
    if (part && !left[part]) continue;
    a = softmax_part(p, x, part, per);
    if (!left[part]) a.count = min(a.count, front);
    part_fill(x, a, held);
    part_write(p, y, x, a, 0, held, s, kind, row, z, label);
  }
  if (t < x.edges) {
    int64_t column = span_edge(&x, t);
    store_one(y.at, column, y.kind, LABELS && column == label.at ? label.x : result(edge, row, z, p->log));
  }
}
#endif

// A row of any length, read once for its largest and sum, and again, last chunks first: those are still in the cache.
INLINE void softmax_long(const SoftmaxParams *p, RowShape s, RowFold *shared) {
  const int per = 16 / s.in, all = s.threads * s.cluster;
  const int kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = row_span(p, place, s.in);
  float f[8], edge = -INFINITY;
  float2 row = make_float2(-INFINITY, 0);
  Label label = label_of(p, place, &x, s, kind);
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
  Finish z = finish_of(row, row.x, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  Target y = target_of(p, place, p->wide);
  for (i -= all; i >= 0; i -= all) {
    if (i >= x.chunks) continue;
    Vec v = span_load(&x, i, 0);
    widen(&v, kind, s.in, f);
    finish_chunk(p, y, x.head + i * per, s.in, f, row, z);
  }
  if (place.thread < x.edges) store_one(y.at, span_edge(&x, place.thread), y.kind, result(edge, row, z, p->log));
  put_label(y, label);
}

// ---- Short rows (narrow.cuh)

// The place of a row's label among the thread's columns, and its gradient; -1: another thread has it, or none.
INLINE int narrow_label(const SoftmaxParams *p, NarrowTile x, NarrowPlace a, uint64_t at, int64_t label, int kind, float2 row,
                        Finish *z, float *gradient) {
  if (!LABELS || !a.n) return -1;
  if (label < 0 || label >= p->n) {
    z->times = 0;
    if (a.lane == 0) p->loss[at] = 0;
    return -1;
  }
  z->times *= p->scale;
  if (((int)label & (a.lanes - 1)) != a.lane) return -1;
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
  float f[NARROW_EACH], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0}, gradient = 0;
  narrow_take(narrow_row(x, a.row), a, kind, -INFINITY, f);
#pragma unroll
  for (int k = 0; k < a.each; k++) tops[k % 2] = fmaxf(tops[k % 2], f[k]);
  // The row's largest first: of few lanes two folds have fewer instructions than one of pairs.
  float top = lanes_fold(make_float2(fmaxf(tops[0], tops[1]), 0), FOLD_MAX, a.lanes).x, mine = start_of(top);
#pragma unroll
  for (int k = 0; k < a.each; k++) f[k] = keep(f[k], mine, p->log, &sums[k % 2]);
  float2 row = make_float2(top, lanes_sum(sums[0] + sums[1], a.lanes));
  Finish z = finish_of(row, mine, p->log);
  int label = narrow_label(p, x, a, at, target, kind, row, &z, &gradient);
  if (LABELS && !p->y) return;
#pragma unroll
  for (int k = 0; k < a.each; k++) f[k] = LABELS && label == a.lane + k * a.lanes ? gradient : finish(z, f[k]);
  narrow_give(narrow_row(y, a.row), a, kind, p->y_kind, f);
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
  let_successor_start();
  wait_for_predecessor();
  narrow_fetch(x, in);
#define SOFTMAX_TURNS(copy) softmax_turns(p, x, y, rows, kind, copy)
  NARROW_COPIES(p->narrow, NARROW_SOFTMAX, SOFTMAX_TURNS)
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
  int64_t target = LABELS && n ? target_at(p, a.row) : 0;
  Vec v[rounds];
  float f[rounds][8], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
  chunks_load(r, rounds, size, v);
  const RowShape block = {1, 1, SOFTMAX_ROUNDS_THREADS >> p->lane_bits, 1, size, size, 1};
  look_ahead(p, block);
  Label label = rounds_label(p, a, r, target, size, kind);
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
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, p->log, &sums[j % 2]);
  float2 row = make_float2(top, sums[0] + sums[1]);
  for (int o = a.lanes / 2; o; o /= 2) row.y += __shfl_xor_sync(~0u, row.y, o);
  Finish z = finish_of(row, mine, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
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

// ---- Rows in registers whose x and y differ in alignment, or in the size of their elements (apart.cuh)

// As label_of; every thread of the row knows its gradient then, for a neighbour may store it.
INLINE Label apart_label(const SoftmaxParams *p, RowLanes a, const RowChunks &r, int in, int count, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS || a.row >= p->m) return l;
  int64_t at = target_at(p, a.row);
  int turn = (r.before + (int)at * in) / 16 - r.first;
  if (at < 0 || at >= p->n) l.at = NO_LABEL;
  else if (turn >= 0 && turn < count * a.lanes && (turn & (a.lanes - 1)) == 0)
    l.at = at, l.x = load_one((const char *)p->x + (int64_t)a.row * p->x_stride, at, kind);
  return l;
}

INLINE float2 apart_fold(float2 v, RowLanes a, int lane_bits, float2 *warps) {
  v = lanes_fold(v, FOLD_SOFTMAX, a.lanes);
  if (lane_bits >= 0) return v;
  if (a.lane == 0) warps[a.warp] = v;
  __syncthreads();
  return lanes_fold(a.lane < blockDim.x / 32 ? warps[a.lane] : make_float2(-INFINITY, 0), FOLD_SOFTMAX, 32);
}

INLINE void softmax_apart(const SoftmaxParams *p, int in, int out, int count, int kind) {
  __shared__ float2 warps[SOFTMAX_APART_THREADS / 32];
  const int per = 16 / in, words = per * out / 4, y_kind = out == 4 ? KIND_FP32 : p->y_kind;
  RowLanes a = row_lanes(p->lane_bits);
  const char *x = (const char *)p->x;
  Extent tensor = {x, x + (int64_t)(p->m - 1) * p->x_stride + p->n * in};
  RowChunks r = row_chunks(a, tensor, p->x_stride, a.row < p->m ? (int)p->n : 0, in, count);
  RowPlace place = {a.row, r.first, 0};
  Vec v[ROW_MAX_CHUNKS];
  float f[ROW_MAX_CHUNKS][8], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
  chunks_load(r, count, in, v);
  Label label = apart_label(p, a, r, in, count, kind);
#pragma unroll
  for (int k = 0; k < count; k++) {
    chunk_mask(r, k, span_lowest(kind), v[k]);
    if (r.first + k * r.lanes >= r.chunks) v[k].v = make_uint4(span_lowest(kind), span_lowest(kind), span_lowest(kind), span_lowest(kind));
    widen(&v[k], kind, in, f[k]);
#pragma unroll
    for (int j = 0; j < per; j++) tops[j % 2] = fmaxf(tops[j % 2], f[k][j]);
  }
  float top = fmaxf(tops[0], tops[1]), mine = start_of(top);
#pragma unroll
  for (int k = 0; k < count; k++)
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, p->log, &sums[j % 2]);
  float2 row = apart_fold(make_float2(top, sums[0] + sums[1]), a, p->lane_bits, warps);
  Finish z = finish_of(row, mine, p->log);
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  ApartCells c = apart_cells((char *)p->y + (int64_t)a.row * p->y_stride, r, a, words, out);
#pragma unroll
  for (int k = 0; k < count; k++) {
    uint32_t w[8];
    int column = r.column + k * r.turn;
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = LABELS && column + j == label.at ? label.x : finish(z, f[k][j]);
    from_floats(f[k], per, y_kind, w);
    apart_put(c, column * out, words, out, w);
  }
  apart_end(c, (r.column + count * r.turn) * out, words, out);
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
#define APART_FROM(in, count, kind)                                                                          \
  if (p.y_kind == KIND_FP32) softmax_apart(&p, in, 4, count, kind);                                          \
  else softmax_apart(&p, in, 2, count, kind);
#define APART(in, count, blocks)                                                                             \
  KERNEL __launch_bounds__(SOFTMAX_APART_THREADS, blocks) sol_softmax_##in##_apart_##count(SoftmaxParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    if (in == 4) {                                                                                           \
      APART_FROM(in, count, KIND_FP32)                                                                       \
    } else if (p.x_kind == KIND_FP16) {                                                                      \
      APART_FROM(in, count, KIND_FP16)                                                                       \
    } else {                                                                                                 \
      APART_FROM(in, count, KIND_BF16)                                                                       \
    }                                                                                                        \
  }
#define NARROW(in, kind)                                                                                     \
  KERNEL __launch_bounds__(NARROW_THREADS, 8) sol_softmax_narrow_##kind(SoftmaxParams p) {                   \
    softmax_narrow(&p, KIND_##kind);                                                                         \
  }
#define ROUNDS(in, kind, rounds, blocks)                                                                     \
  KERNEL __launch_bounds__(SOFTMAX_ROUNDS_THREADS, blocks) sol_softmax_rounds_##kind##_##rounds(SoftmaxParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    softmax_rounds<in, rounds>(&p, KIND_##kind);                                                             \
  }
#define LONG(name, in, threads, cluster)                                                                     \
  KERNEL __launch_bounds__(threads) name(SoftmaxParams p) {                                                  \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, 1, 1, cluster, in, in, 1};                                                  \
    begin(s, &shared);                                                                                       \
    softmax_long(&p, s, &shared);                                                                            \
  }
#define LOOP(in, threads) LONG(sol_softmax_##in##_loop, in, threads, 1)
#define SPREAD(in, threads, chunks, cluster, blocks)                                                         \
  KERNEL __launch_bounds__(threads, blocks) sol_softmax_##in##_shared_##threads##x##chunks##x##cluster(      \
      SoftmaxParams p) {                                                                                     \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {threads, chunks, 1, cluster, in, in, 1};                                             \
    begin(s, &shared);                                                                                       \
    if (in == 4) softmax_shared(&p, s, &shared, held, KIND_FP32);                                            \
    else if (p.x_kind == KIND_FP16) softmax_shared(&p, s, &shared, held, KIND_FP16);                         \
    else softmax_shared(&p, s, &shared, held, KIND_BF16);                                                    \
  }
#define ROAM(in, kinds)                                                                                      \
  KERNEL __launch_bounds__(512, 3) sol_softmax_##in##_roam(SoftmaxParams p) {                                \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold shared;                                                                               \
    const RowShape s = {(int)blockDim.x, 1, 1, p.lane_bits & 255, in, in, 1};                                           \
    begin(s, &shared);                                                                                       \
    if (in == 4) softmax_spread(&p, s, &shared, held, KIND_FP32);                                            \
    else if (p.x_kind == KIND_FP16) softmax_spread(&p, s, &shared, held, KIND_FP16);                         \
    else softmax_spread(&p, s, &shared, held, KIND_BF16);                                                    \
  }
#define PARTED(in)                                                                                           \
  KERNEL __launch_bounds__(PARTS_THREADS, PARTS_BLOCKS) sol_softmax_##in##_parts(SoftmaxParams p) {          \
    extern __shared__ __align__(128) uint4 held[];                                                           \
    __shared__ RowFold folds[2];                                                                             \
    const RowShape s = {PARTS_THREADS, 1, 1, 1, in, in, 1};                                                  \
    begin(s, folds);                                                                                         \
    if (in == 4) softmax_parts(&p, s, folds, held, KIND_FP32);                                               \
    else if (p.x_kind == KIND_FP16) softmax_parts(&p, s, folds, held, KIND_FP16);                            \
    else softmax_parts(&p, s, folds, held, KIND_BF16);                                                       \
  }
#if __CUDA_ARCH__ >= 800
#define PARTS(in) PARTED(in)
#define SHARED(in, threads, chunks, cluster, blocks) SPREAD(in, threads, chunks, cluster, blocks)
#else
#define PARTS(in)
#define SHARED(in, threads, chunks, cluster, blocks)
#endif
#if __CUDA_ARCH__ >= 900
#define SHARED_90(in, threads, chunks, cluster, blocks) SPREAD(in, threads, chunks, cluster, blocks)
#define PROBE(in) ROAM(in, 0)
#define LOOP_90(in, threads, cluster) LONG(sol_softmax_##in##_loop_cluster, in, threads, cluster)
#else
#define SHARED_90(in, threads, chunks, cluster, blocks)
#define LOOP_90(in, threads, cluster)
#define PROBE(in)
#endif
#ifndef SOFTMAX_DEF
#define SOFTMAX_DEF "softmax/softmax.def"
#endif
#include SOFTMAX_DEF
