// What the kernels of softmax and cross_entropy share: where a row is written, its label, and what of a fold each element needs.
#ifndef SOL_KERNELS_SOFTMAX_ROW_CUH
#define SOL_KERNELS_SOFTMAX_ROW_CUH

#include "softmax/softmax.h"
#include "ends.cuh"
#include "packed.cuh"
#include "row.cuh"
#include "span.cuh"

#define LOG2E 1.4426950408889634f

// Whether the kernels are cross_entropy's (kernels/cross_entropy): softmax's have no registers to spare for it.
#ifndef LABELS
#define LABELS 0
#endif

// Whether the logarithm is asked for: cross_entropy has none.
INLINE int asks_log(const SoftmaxParams *p) { return LABELS ? 0 : p->log; }

// Where a row is written. `wide`: its chunks, too, are aligned so that they can be written whole; WIDE_ONCE: and leave L2 first.
enum { WIDE_ONCE = 2 };
typedef struct Target {
  char *at;
  int kind, wide;
} Target;

INLINE Target target_of(const SoftmaxParams *p, RowPlace place, int wide) {
  Target t = {(char *)p->y + (int64_t)place.row * p->y_stride, p->y_kind, wide};
  return t;
}

// One access, whatever loop it is in: in the rest of an unrolled loop nvcc makes four of a plain store of a uint4.
INLINE void store16(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d, int wide = 1) {
  if (wide == WIDE_ONCE)
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  else asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c),
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
              __float_as_uint(f[j + 3]), t.wide);
  } else if (per == 8) {
    store16((uint16_t *)t.at + column, narrow2(f[0], f[1], t.kind), narrow2(f[2], f[3], t.kind),
            narrow2(f[4], f[5], t.kind), narrow2(f[6], f[7], t.kind), t.wide);
  } else {
    *(uint2 *)((uint16_t *)t.at + column) = make_uint2(narrow2(f[0], f[1], t.kind), narrow2(f[2], f[3], t.kind));
  }
}

INLINE Span row_span(const SoftmaxParams *p, RowPlace place, int in) {
  return span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, in);
}

// While the predecessor still runs: a store waits for the sector.
INLINE void target_ends(const SoftmaxParams *p, RowPlace place) {
  if (p->ends && place.row < p->m) ends_prefetch((const char *)p->y + (int64_t)place.row * p->y_stride, 0, p->ends, 1, place.thread, place.all);
}

// Prefetches into L2 the rows, or this block's part of one, about 5 MB further on, and their labels: a little faster.
INLINE void look_ahead(const SoftmaxParams *p, RowShape s) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x || !p->ahead) return;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) / s.cluster * s.rows + p->ahead;
  if (first + s.rows > p->m) return;
  if (LABELS) prefetch_l2((const char *)p->targets + (first << (p->wide_ids ? 3 : 2)));
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

// result = kept * times + plus, where kept is exp(x - mine), or x - mine for log_softmax.
typedef struct Finish {
  float times, plus;
} Finish;

INLINE Finish finish_of(float2 row, float mine, int log) {
  Finish z = {log ? 1 : __fdividef(ex2((mine - row.x) * LOG2E), row.y), log ? (mine - row.x) - logf(row.y) : 0};
  return z;
}

INLINE float finish(Finish z, float kept) { return fmaf(kept, z.times, z.plus); }

// The element of a row that is the right one, for the thread that stores that element: its column and, after weigh_label, its
// gradient.
enum { LABEL_OF_ANOTHER = -1, NO_LABEL = -2 }; // in place of the column; no label: the row counts for nothing
typedef struct Label {
  int64_t at;
  float x;
} Label;

// Index: of columns.
template <class Index> INLINE bool stores(const Span *x, Index column, int per, int all, int thread) {
  Index body = column - x->head, chunk = body / per;
  Index turn = column < (Index)x->head ? column : chunk < (Index)x->chunks ? chunk : column - (Index)(x->n - x->edges);
  return (int)((uint32_t)turn % (uint32_t)all) == thread;
}

INLINE int64_t target_at(const SoftmaxParams *p, uint64_t row) {
  return p->wide_ids ? ((const int64_t *)p->targets)[row] : ((const int32_t *)p->targets)[row];
}

// What cross_entropy reads in addition. The row's label is asked for before the row, and looked at when the thread's elements have been summed: a branch on it
// earlier would wait for one more load than the row needs.
INLINE int64_t target_of_row(const SoftmaxParams *p, RowPlace place) { return LABELS && place.row < p->m ? target_at(p, place.row) : 0; }

template <class Index = uint32_t> INLINE int64_t label_column(const SoftmaxParams *p, RowPlace place, const Span *x, RowShape s, int64_t target) {
  if (!LABELS || place.row >= p->m) return LABEL_OF_ANOTHER;
  if (target < 0 || target >= p->n) return NO_LABEL;
  return stores(x, (Index)target, 16 / s.in, s.threads * s.cluster, place.thread) ? target : LABEL_OF_ANOTHER;
}

template <class Index = uint32_t>
INLINE Label label_of(const SoftmaxParams *p, RowPlace place, const Span *x, RowShape s, int kind, int64_t target) {
  Label l = {label_column<Index>(p, place, x, s, target), 0};
  if (LABELS && l.at >= 0) l.x = load_one(x->at, l.at, kind);
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

// Elements of a row that counts for nothing, in registers: NaN times 0 would be NaN.
INLINE void drop(int64_t label, float *f, int count) {
#if LABELS
  if (label != NO_LABEL) return;
#pragma unroll
  for (int j = 0; j < count; j++) f[j] = 0;
#endif
}

INLINE float keep(float f, float mine, int log, float *sum) {
  float d = f - mine, e = ex2(d * LOG2E);
  *sum += e;
  return log ? d : e;
}

// The result of one element once the row's largest and sum are known.
INLINE float result(float f, float2 row, Finish z, int log) {
  float d = f - row.x;
  return log ? d + z.plus : LABELS && z.times == 0 ? 0 : ex2(d * LOG2E) * z.times;
}

INLINE void finish_chunk(const SoftmaxParams *p, Target y, int64_t column, int in, float *f, float2 row, Finish z) {
#pragma unroll
  for (int j = 0; j < 16 / in; j++) f[j] = result(f[j], row, z, asks_log(p));
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
INLINE void write_alike(Target y, const uint4 *held, int64_t first, int step, RowShape s, int count, int log, float2 row,
                        Finish z) {
  const int per = 16 / s.in;
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    float f[8];
    reread(held + k * s.threads, y.kind, s.in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = result(f[j], row, z, log);
    store_chunk(y, first + (int64_t)k * step * per, s.in, f);
  }
}

// Writes `count` chunks of the row, `step` apart; the first is at column `first`.
INLINE void write_shared(const SoftmaxParams *p, Target y, const uint4 *held, int64_t first, int step, RowShape s, int count,
                         int kind, float2 row, Finish z) {
  const int per = 16 / s.in;
  float f[8];
  if (p->y_kind == kind) {
    y.kind = kind;
    if (asks_log(p)) write_alike(y, held, first, step, s, count, 1, row, z);
    else write_alike(y, held, first, step, s, count, 0, row, z);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    reread(held + k * s.threads, kind, s.in, f);
    finish_chunk(p, y, first + (int64_t)k * step * per, s.in, f, row, z);
  }
}

#endif

#endif
