// loss = log(sum of exp(x)) - x[target] of each row, and its gradient, (softmax(x) - (column == target)) * scale, over x
// itself or elsewhere. A row is held on the chip between the two: one read and one write.
//
// NaN and infinities are as softmax has them: a row that holds a NaN or +inf has a NaN loss and gradient.
#include "cross_entropy.h"

#include "elementwise.cuh"
#include "held.cuh"

#define LOG2E 1.4426950408889634f

// More elements in a running (largest, sum of exp(. - largest)).
INLINE float2 more(float2 a, const float *f, int count) {
  float top = a.x;
#pragma unroll
  for (int j = 0; j < count; j++) top = fmaxf(top, f[j]);
  float mine = top == -INFINITY ? 0 : top, sum = top == a.x ? a.y : a.y * ex2((a.x - mine) * LOG2E);
#pragma unroll
  for (int j = 0; j < count; j++) sum += ex2((f[j] - mine) * LOG2E);
  return make_float2(top, sum);
}

typedef struct Entropy {
  int64_t target; // -1: the row is ignored
  float top, over, log_sum;
} Entropy;

// The gradient of one element; where it is the target's, the loss as well.
INLINE float gradient_of(const CrossEntropyParams &p, const Entropy &e, uint64_t row, float f, int64_t column) {
  if (e.target < 0) return 0;
  float g = ex2((f - e.top) * LOG2E) * e.over;
  if (column == e.target) {
    p.loss[row] = e.log_sum - (f - e.top);
    g -= 1;
  }
  return g * p.scale;
}

INLINE void write_chunk(const CrossEntropyParams &p, char *y, int64_t column, int kind, int in, const float *f) {
  if (p.alike) {
    Vec v;
    narrow(&v, kind, in, f);
    *(uint4 *)(y + column * in) = v.v;
  } else {
#pragma unroll
    for (int j = 0; j < 16 / in; j++) store_one(y, column + j, kind, f[j]);
  }
}

INLINE void cross_entropy(const CrossEntropyParams &p, int in, int kind, HeldShared *shared, uint4 *memory) {
  const int per = 16 / in;
  Held h = held_of(p.x, p.x_stride, p.n, in, memory, p.shared);
  held_fill(h);
  float f[8], edge = -INFINITY;
  float2 mine = make_float2(-INFINITY, 0);
#pragma unroll 4
  for (int k = 0; k < h.count; k++) {
    held_chunk(h, k, kind, in, f);
    mine = more(mine, f, per);
  }
  int64_t at = held_edge(h);
  if (at >= 0) edge = load_one(h.x.at, at, kind), mine = more(mine, &edge, 1);
  uint64_t all = word_of(mine);
  held_fold<1>(h, shared, &all, word_of(make_float2(-INFINITY, 0)), SoftmaxJoin());
  held_leave(h);
  float2 row = floats_of(all);
  Entropy e = {load_id(p.targets, h.row, p.wide_ids), row.x, 1 / row.y, logf(row.y)};
  if (e.target < 0 || e.target >= p.n) e.target = -1;
  bool first = h.rank == 0 && threadIdx.x == 0;
  if (first && e.target < 0) p.loss[h.row] = 0;
  if (first && e.target >= 0 && !p.gradient) p.loss[h.row] = e.log_sum - (load_one(h.x.at, e.target, kind) - e.top);
  if (p.gradient) {
    char *y = (char *)p.gradient + (int64_t)h.row * p.gradient_stride;
#pragma unroll 2
    for (int k = 0; k < h.count; k++) {
      int64_t column = held_chunk(h, k, kind, in, f);
#pragma unroll
      for (int j = 0; j < per; j++) f[j] = gradient_of(p, e, h.row, f[j], column + j);
      write_chunk(p, y, column, kind, in, f);
    }
    if (at >= 0) store_one(y, at, kind, gradient_of(p, e, h.row, edge, at));
  }
  held_end(h);
}

#define CROSS_ENTROPY(in)                                                                                    \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_cross_entropy_##in(const __grid_constant__ CrossEntropyParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    begin_kernel();                                                                                          \
    cross_entropy(p, in, in == 4 ? KIND_FP32 : p.x_kind, &shared, memory);                                   \
  }
CROSS_ENTROPY(2)
CROSS_ENTROPY(4)
