// Long rows, read twice (relay.cuh).
#ifndef SOL_KERNELS_SOFTMAX_RELAY_CUH
#define SOL_KERNELS_SOFTMAX_RELAY_CUH

#include "relay.cuh"
#include "softmax/softmax_spread.cuh"

#if __CUDA_ARCH__ >= 800
INLINE Relay relay_of_block(const SoftmaxParams *p) {
  uint64_t part;
  Relay r;
  split((uint64_t)blockIdx.y * gridDim.x + blockIdx.x, 2 * p->parts.parts, &r.row, &part);
  r.part = (uint32_t)part / 2, r.sums = part % 2 == 0;
  if (!r.sums) r.row -= p->lag; // before the first row: beyond the last
  return r;
}

INLINE int64_t relay_end(const SoftmaxParams *p, Relay at, const Span &x) { return min((int64_t)(at.part + 1) * p->parts.length, x.chunks); }

// What a thread has of a part: chunks of the row.
INLINE SpreadPlace relay_place(const SoftmaxParams *p, Relay at, const Span &x) {
  int64_t begin = (int64_t)at.part * p->parts.length, end = relay_end(p, at, x);
  SpreadPlace a = {0, 0, (int)p->parts.length / SOFTMAX_RELAY_THREADS * 32};
  a.first = (int)begin + threadIdx.x / 32 * a.segment + threadIdx.x % 32;
  if (a.first < (int)end) a.count = min(a.segment / 32, ((int)end - a.first + 31) / 32);
  return a;
}

// Where y's elements are twice as large as x's, a thread writes halves of chunks, so that threads next to each other write cells next to each other: of the
// 32 chunks of a turn, half `lane` and half 32 + lane.
INLINE int relay_half(SpreadPlace a, int k, int half) {
  int lane = threadIdx.x % 32;
  return 2 * (a.first - lane + 32 * k) + 32 * half + lane;
}
INLINE void relay_fetch_halves(uint4 *held, const Span &x, SpreadPlace a, int turns, int64_t end) {
  for (int k = 0; k < turns; k++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint2 *to = (uint2 *)(held + k * SOFTMAX_RELAY_THREADS) + half;
      if (relay_half(a, k, half) < 2 * end)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                     "l"(__cvta_generic_to_global(x.body + (int64_t)relay_half(a, k, half) * 8))
                     : "memory");
      else *to = make_uint2(0, 0); // the row ends within the turn
    }
}
INLINE void relay_write_halves(const SoftmaxParams *p, Target y, const uint4 *held, const Span &x, SpreadPlace a, int turns, int64_t end, int front,
                               int kind, float2 row, Finish z, Label label) {
  const int lane = threadIdx.x % 32, out = 4, per = 8, words = 4;
  int begin = x.head + max(a.first - lane, front) * per, stop = x.head + min(a.first - lane + a.segment, (int)end) * per;
  ApartCells c = apart_cells(y.at, begin * out, stop * out, (x.head + relay_half(a, 0, 0) * 4) * out, lane, 32, words);
#pragma unroll 1
  for (int k = 0; k < turns; k++) {
    float f[8];
    reread(held + k * SOFTMAX_RELAY_THREADS, kind, 2, f);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int column = x.head + relay_half(a, k, half) * 4;
      uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; j++) w[j] = __float_as_uint(LABELS && column + j == (int)label.at ? label.x : result(f[4 * half + j], row, z, asks_log(p)));
      apart_put(c, column * out, words, out, w);
    }
  }
  apart_end(c, (x.head + relay_half(a, turns, 0) * 4) * out, words, out);
}

// The row's largest and sum. Sums of its parts are there soon, if they are not yet. The first has the number of its readers beside its sign.
INLINE float2 relay_row(const SoftmaxParams *p, const unsigned long long *posts, RowShape s, RowFold *shared) {
  enum { EACH = SOFTMAX_RELAY_PARTS / SOFTMAX_RELAY_THREADS };
  float2 v[EACH], all = make_float2(-INFINITY, 0);
  bool there;
  do {
    there = true;
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      uint32_t part = threadIdx.x + u * SOFTMAX_RELAY_THREADS;
      unsigned long long x, y;
      if (part >= p->parts.parts) continue;
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(x), "=l"(y)
                   : "l"(__cvta_generic_to_global(posts + 2 * part))
                   : "memory");
      v[u] = make_float2(__uint_as_float((uint32_t)(x >> 32)), __uint_as_float((uint32_t)(y >> 32)));
      there = there && (uint32_t)x == p->parts.sign[0] && (uint32_t)y - p->parts.sign[1] <= (part ? 0 : p->parts.parts);
    }
  } while (!there);
#pragma unroll
  for (int u = 0; u < EACH; u++)
    if (threadIdx.x + u * SOFTMAX_RELAY_THREADS < p->parts.parts) all = fold(all, v[u], FOLD_SOFTMAX);
  __syncwarp();
  return row_fold(s, shared, all, FOLD_SOFTMAX);
}

// As label_of, for every thread of the row.
INLINE Label relay_label(const SoftmaxParams *p, uint64_t row, const Span &x, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS) return l;
  l.at = target_at(p, row);
  if (l.at < 0 || l.at >= p->n) l.at = NO_LABEL;
  else l.x = load_one(x.at, l.at, kind);
  return l;
}
INLINE void relay_weigh(const SoftmaxParams *p, Relay at, Label *l, float2 row, Finish *z) {
  if (!LABELS) return;
  float below = l->x - row.x;
  z->times = l->at == NO_LABEL ? 0 : z->times * p->scale;
  if (at.part == 0 && threadIdx.x == 0) p->loss[at.row] = l->at == NO_LABEL ? 0 : logf(row.y) - below;
  l->x = (__fdividef(ex2(below * LOG2E), row.y) - 1) * p->scale;
}

// Writes what a thread has of a part, but for the start of the row.
INLINE void relay_write(const SoftmaxParams *p, Relay at, Target y, const uint4 *held, const Span &x, SpreadPlace a, RowShape s, int kind, float2 row,
                        Finish z, Label label) {
  const int per = 16 / s.in, front = at.part == 0 ? p->parts.front : 0;
  if (s.in == 2 && y.kind == KIND_FP32) {
    relay_write_halves(p, y, held, x, a, __shfl_sync(~0u, a.count, 0), relay_end(p, at, x), front, kind, row, z, label);
    return;
  }
  if (!p->wide) {
    write_any(p, y, held, x, a, front, s, kind, row, z, label);
    return;
  }
  int skip = min(max((front - a.first + 31) / 32, 0), a.count);
  write_shared(p, y, held + skip * s.threads, x.head + (int64_t)(a.first + 32 * skip) * per, 32, s, a.count - skip, kind, row, z);
  int64_t body = label.at - x.head, turn = body / per - a.first - 32 * skip;
  if (body >= 0 && turn >= 0 && turn < 32 * (a.count - skip) && turn % 32 == 0) put_label(y, label);
}

// The start of a row, where the posts were, and its single elements: by a block.
INLINE void relay_front(const SoftmaxParams *p, Target y, const Span &x, int in, int kind, float2 row, Finish z, Label label) {
  int front = x.head + (int)min((int64_t)p->parts.front, x.chunks) * (16 / in), tail = x.edges - x.head;
#pragma unroll 4
  for (int i = threadIdx.x; i < front + tail; i += SOFTMAX_RELAY_THREADS) {
    int64_t column = i < front ? i : x.n - tail + (i - front);
    float f = load_one(x.at, column, kind);
    store_one(y.at, column, y.kind, LABELS && column == label.at ? label.x : result(f, row, z, asks_log(p)));
  }
}

// kind: of x, a literal.
INLINE void softmax_relay(const SoftmaxParams *p, RowShape s, RowFold *shared, uint4 *held, int kind) {
  const int t = threadIdx.x;
  Relay at = relay_of_block(p);
  if (at.row >= p->m) return;
  RowPlace place = {at.row, t, SOFTMAX_RELAY_THREADS};
  Span x = row_span(p, place, s.in);
  SpreadPlace a = relay_place(p, at, x);
  Target y = target_of(p, place, WIDE_ONCE);
  unsigned long long *posts = posts_of(y.at);
  uint64_t policy = relay_policy(!at.sums);
  held += t;
  bool halves = s.in == 2 && y.kind == KIND_FP32 && !at.sums;
  if (halves) relay_fetch_halves(held, x, a, __shfl_sync(~0u, a.count, 0), relay_end(p, at, x));
#pragma unroll 8
  for (int k = 0; k < (halves ? 0 : a.count); k++) relay_fetch(held + k * s.threads, x.body + (int64_t)(a.first + 32 * k) * 16, policy);
  if (at.sums) {
    float edge = at.part == 0 && t < x.edges ? load_one(x.at, span_edge(&x, t), kind) : -INFINITY;
    wait_for_fetches();
    float2 sum = row_fold(s, shared, fold_shared(held, s, a.count, edge, kind), FOLD_SOFTMAX);
    if (t == 0) post(p->parts, posts, at.part, sum);
    return;
  }
  Label label = relay_label(p, at.row, x, kind);
  float2 row = relay_row(p, posts, s, shared);
  // All threads have read the posts: those loads have given their values, so nothing that is stored later changes them.
  uint32_t before = t == 0 ? relay_count(posts) : 0;
  Finish z = finish_of(row, row.x, asks_log(p));
  relay_weigh(p, at, &label, row, &z);
  wait_for_fetches();
  relay_write(p, at, y, held, x, a, s, kind, row, z, label);
  if (__syncthreads_or(t == 0 && relay_is_last(p->parts, before))) relay_front(p, y, x, s.in, kind, row, z, label);
}
#endif

#endif
