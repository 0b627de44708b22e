// Rows that no cluster holds, in parts all over the GPU (parts.cuh).
#ifndef SOL_KERNELS_SOFTMAX_PARTS_CUH
#define SOL_KERNELS_SOFTMAX_PARTS_CUH

#include "parts.cuh"
#include "softmax/softmax_row.cuh"

#if __CUDA_ARCH__ >= 800
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
  write_shared(p, y, held + start * PARTS_THREADS, x.head + first * per, PARTS_THREADS, s, a.count - start, kind, row, z);
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

#endif
