// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel], mean and variance over a group of channels: its
// elements are one row of memory, held on the chip between the statistics and the write.
//
// The variance is that of each thread's elements around their own mean, and of these means around the row's: no squares
// of large numbers are subtracted.
#include "group_norm.h"

#include "elementwise.cuh"
#include "held.cuh"

typedef struct Stats { // of a thread's elements, less `shift`
  float shift, sum, squares, count;
} Stats;

INLINE void take(Stats &t, float f) {
  if (t.count == 0) t.shift = f;
  float d = f - t.shift;
  t.sum += d;
  t.squares = fmaf(d, d, t.squares);
  t.count += 1;
}

// The sum over all threads of the row.
INLINE float sum_of(Held &h, HeldShared *shared, float v) {
  uint64_t all = word_of(make_float2(v, 0));
  held_fold<1>(h, shared, &all, 0, SumJoin());
  return floats_of(all).x;
}

typedef struct Affine { // of the channel that was looked up last
  int64_t end;         // of its elements in the row
  float times, plus;
} Affine;

INLINE float finish(const GroupNormParams &p, Affine &c, uint64_t group, float f, int64_t at, float mean, float over) {
  if (at >= c.end) {
    uint64_t inside = divide((uint64_t)at, p.divider), channel = group * p.channels + inside;
    c.end = (int64_t)((inside + 1) * p.divider.by);
    c.times = p.weight ? load_one(p.weight, (int64_t)channel, p.weight_kind) * over : over;
    c.plus = p.bias ? load_one(p.bias, (int64_t)channel, p.weight_kind) : 0;
  }
  return fmaf(f - mean, c.times, c.plus);
}

INLINE void group_norm(const GroupNormParams &p, int in, int kind, HeldShared *shared, uint4 *memory) {
  const int per = 16 / in;
  Held h = held_of(p.x, p.n * in, p.n, in, memory, p.held);
  held_fill(h);
  float f[8], size = (float)p.n;
  Stats t = {0, 0, 0, 0};
#pragma unroll 2
  for (int k = 0; k < h.count; k++) {
    held_chunk(h, k, kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) take(t, f[j]);
  }
  int64_t at;
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) take(t, load_one(h.x.at, at, kind));
  float mine = t.count > 0 ? t.sum / t.count : 0; // less the shift
  float mean = sum_of(h, shared, t.count * (t.shift / size) + t.sum / size);
  float apart = t.shift - mean + mine;
  float variance = sum_of(h, shared, fmaf(t.count * apart, apart, t.squares - t.sum * mine)) / size;
  held_leave(h);
  float over = rsqrtf(variance + p.eps);
  uint64_t group = h.row % p.groups;
  char *y = (char *)p.y + (int64_t)h.row * p.n * (p.y_kind == KIND_FP32 ? 4 : 2);
  Affine c = {0, 0, 0};
#pragma unroll 1
  for (int k = 0; k < h.count; k++) {
    int64_t column = held_chunk(h, k, kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = finish(p, c, group, f[j], column + j, mean, over);
    if (p.alike) {
      Vec v;
      narrow(&v, p.y_kind, in, f);
      *(uint4 *)(y + column * in) = v.v;
    } else {
#pragma unroll
      for (int j = 0; j < per; j++) store_one(y, column + j, p.y_kind, f[j]);
    }
  }
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) {
    c.end = 0; // an edge may come before
    store_one(y, at, p.y_kind, finish(p, c, group, load_one(h.x.at, at, kind), at, mean, over));
  }
  held_end(h);
}

#define GROUP_NORM(in)                                                                                       \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_group_norm_##in(const __grid_constant__ GroupNormParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    begin_kernel();                                                                                          \
    group_norm(p, in, in == 4 ? KIND_FP32 : p.x_kind, &shared, memory);                                      \
  }
GROUP_NORM(2)
GROUP_NORM(4)
