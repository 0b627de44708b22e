// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel], mean and variance over a group of channels: its
// elements are one row of memory, held on the chip between the statistics and the write.
//
// The variance is that of each thread's elements around their own mean, put together pair by pair: no squares of large numbers
// are subtracted.
#include "group_norm.h"

#include "held.cuh"
#include "pieces.cuh"
#include "group_ring.cuh"
#include "group_stream.cuh"

INLINE Stats stats_join(Stats a, Stats b) {
  Stats s;
  float apart = b.mean - a.mean, all = a.count + b.count, part = all > 0 ? __fdividef(b.count, all) : 0;
  s.count = all;
  s.mean = fmaf(apart, part, a.mean);
  s.squares = fmaf(apart * apart, a.count * part, a.squares + b.squares);
  return s;
}

INLINE Stats lane_stats(Stats s, int o) {
  Stats b;
  b.count = __shfl_xor_sync(~0u, s.count, o);
  b.mean = __shfl_xor_sync(~0u, s.mean, o);
  b.squares = __shfl_xor_sync(~0u, s.squares, o);
  return b;
}

INLINE void stats_put(uint64_t *to, Stats s) {
  to[0] = word_of(make_float2(s.mean, s.squares));
  to[1] = word_of(make_float2(s.count, 0));
}

INLINE Stats stats_get(uint64_t first, uint64_t second) {
  Stats s;
  s.mean = floats_of(first).x, s.squares = floats_of(first).y, s.count = floats_of(second).x;
  return s;
}

// Those of all threads of the row, in an order that is the same in all of them.
INLINE Stats stats_fold(const Held &h, HeldShared *shared, Stats s) {
  for (int o = 1; o < h.lanes; o *= 2) {
    Stats b = lane_stats(s, o);
    s = h.lane & o ? stats_join(b, s) : stats_join(s, b);
  }
  if (h.warps == 1 && h.blocks == 1) return s;
  if (h.lane == 0) stats_put(shared->warps[0][h.warp], s);
  __syncthreads();
  const uint64_t *first = shared->warps[0][0];
  s = stats_get(first[0], first[1]);
  for (int w = 1; w < h.warps; w++) s = stats_join(s, stats_get(shared->warps[0][w][0], shared->warps[0][w][1]));
  if (h.blocks == 1) return s;
  if (threadIdx.x == 0) stats_put(shared->block[0], s);
  cluster_barrier();
  for (int i = 0; i < h.blocks; i++) {
    Stats b = stats_get(remote_word(&shared->block[0][0], i), remote_word(&shared->block[0][1], i));
    s = i ? stats_join(s, b) : b;
  }
  return s;
}

// A thread's chunks go through its part of shared memory, `room` at a time: all of them at once but for groups that are too long.
INLINE int room_of(const Held &h, HeldShape s) { return s.shared / (16 * s.lanes * h.warps * s.rows); }

INLINE void fill_from(const Held &h, int begin, int room) {
  const uint4 *from = (const uint4 *)h.x.body + h.first + (int64_t)h.lanes * begin;
  int count = min(room, h.count - begin);
#pragma unroll 8
  for (int k = 0; k < count; k++) fetch16(h.mine + h.lanes * k, from + h.lanes * k);
  wait_for_fetches();
}

// each(16 bytes, their first column) for the chunks from `begin` on that are in shared memory.
template <class Each> INLINE void each_chunk(const Held &h, int begin, int room, int in, Each each) {
  int count = min(room, h.count - begin);
#pragma unroll 1
  for (int k = 0; k < count; k++) each(h.mine[h.lanes * k], held_column(h, begin + k, in));
}

// Those of this thread's elements: sums of what they are above the first of them.
INLINE Stats stats_of(const Held &h, int room, int kind, int in) {
  const int per = 16 / in;
  float sum[2] = {0, 0}, squares[2] = {0, 0}, first = 0;
  int64_t at = held_edge(h, 0);
  int count = h.count * per;
  if (h.count || at >= 0) first = load_one(h.x.at, h.count ? held_column(h, 0, in) : at, kind);
  for (int begin = 0; begin < h.count; begin += room) {
    fill_from(h, begin, room);
    each_chunk(h, begin, room, in, [&](uint4 chunk, int64_t) {
      float f[8];
      uint32_t w[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
      to_floats(w, per, kind, f);
#pragma unroll
      for (int j = 0; j < per; j++) {
        float d = f[j] - first;
        sum[j % 2] += d;
        squares[j % 2] = fmaf(d, d, squares[j % 2]);
      }
    });
  }
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++, count++) {
    float d = load_one(h.x.at, at, kind) - first;
    sum[0] += d;
    squares[0] = fmaf(d, d, squares[0]);
  }
  Stats s;
  float all = sum[0] + sum[1], mean = count ? all / (float)count : 0;
  s.count = (float)count;
  s.mean = first + mean;
  s.squares = fmaf(-all, mean, squares[0] + squares[1]);
  return s;
}

// Weights and biases of the channels that a block meets, from `first` on; those that there is no space for are read each time.
enum { AFFINE_MOST = 512 };
typedef struct Affines {
  const GroupNormParams *p;
  const float2 *held; // NULL: none
  uint64_t first, count, group;
  float mean, over;
} Affines;

// All threads of the block, before a barrier.
INLINE Affines affine_fill(const GroupNormParams &p, const Held &h, int in, float2 *held) {
  Affines a;
  int64_t of_block = (int64_t)h.warps * ((h.x.chunks + h.lanes * h.warps * h.blocks - 1) / (h.lanes * h.warps * h.blocks)) * h.lanes;
  int64_t begin = h.rank * of_block * (16 / in), end = min(begin + of_block * (16 / in) + 2 * (16 / in), p.n);
  a.p = &p, a.group = h.row % p.groups;
  a.first = divide((uint64_t)min(begin, p.n - 1), p.divider);
  a.count = min(divide((uint64_t)max(end - 1, begin), p.divider) + 1, p.channels) - a.first;
  a.held = p.held.rows == 1 && a.count <= AFFINE_MOST ? held : NULL;
  if (a.held)
    for (int i = threadIdx.x; i < (int)a.count; i += blockDim.x) held[i] = affine_load(p, a.group * p.channels + a.first + i);
  return a;
}

// Of channel `inside` of the group, multiplied by what all elements are.
INLINE float2 affine_of(const Affines &a, uint64_t inside) {
  uint64_t i = inside - a.first;
  float2 v = a.held && i < a.count ? a.held[i] : affine_load(*a.p, a.group * a.p->channels + inside);
  v.x *= a.over;
  return v;
}

typedef struct Looked { // the channel that was looked up last
  uint64_t inside;
  int64_t end; // of its elements in the row
  float2 by;
} Looked;

INLINE float finish_one(const Affines &a, float f, int64_t at) {
  float2 by = affine_of(a, divide((uint64_t)at, a.p->divider));
  return fmaf(f - a.mean, by.x, by.y);
}

// A chunk: within a channel, of two of them, or, where channels are shorter, of more.
INLINE void finish_any(const Affines &a, Looked &c, int per, float *f, int64_t column) {
  if (column >= c.end) {
    c.inside = divide((uint64_t)column, a.p->divider);
    c.end = (int64_t)((c.inside + 1) * a.p->divider.by);
    c.by = affine_of(a, c.inside);
  }
  if (column + per <= c.end) {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, c.by.x, c.by.y);
  } else if ((int64_t)a.p->divider.by >= per) {
    int left = (int)(c.end - column);
    float2 next = affine_of(a, c.inside + 1);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, j < left ? c.by.x : next.x, j < left ? c.by.y : next.y);
  } else {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = finish_one(a, f[j], column + j);
  }
}

INLINE void put_any(const GroupNormParams &p, int per, char *y, int64_t column, const float *f) {
  uint32_t w[8];
  if (!p.alike) {
#pragma unroll
    for (int j = 0; j < per; j++) store_one(y, column + j, p.y_kind, f[j]);
  } else if (p.y_kind == KIND_FP32) {
    from_floats(f, per, KIND_FP32, w);
    store_aligned(y + column * 4, 4, w);
    if (per == 8) store_aligned(y + column * 4 + 16, 4, w + 4);
  } else {
    from_floats(f, per, p.y_kind, w);
    store_aligned(y + column * 2, per / 2, w);
  }
}

INLINE void group_norm(const GroupNormParams &p, int in, int kind, HeldShared *shared, float2 *affines, uint4 *memory) {
  const int per = 16 / in;
  Held h = held_of(p.x, p.n * in, p.n, in, memory, p.held);
  int room = room_of(h, p.held), last = h.count > 0 ? (h.count - 1) / room * room : -1;
  Affines a = affine_fill(p, h, in, affines);
  Stats s = stats_fold(h, shared, stats_of(h, room, kind, in));
  if (h.warps == 1) __syncwarp();
  held_leave(h);
  a.mean = s.mean, a.over = rsqrtf(s.squares / (float)p.n + p.eps);
  char *y = (char *)p.y + (int64_t)h.row * p.n * (p.y_kind == KIND_FP32 ? 4 : 2);
  Looked c = {0, 0, {0, 0}};
  int64_t at;
  for (int begin = last; begin >= 0; begin -= room) { // the last are still there
    if (begin != last) fill_from(h, begin, room);
    c.end = 0; // these come before
    each_chunk(h, begin, room, in, [&](uint4 chunk, int64_t column) {
      float f[8];
      uint32_t w[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
      to_floats(w, per, kind, f);
      finish_any(a, c, per, f, column);
      put_any(p, per, y, column, f);
    });
  }
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++)
    store_one(y, at, p.y_kind, finish_one(a, load_one(h.x.at, at, kind), at));
  held_end(h);
}

// By the type of the elements: a literal in each copy of the body.
#define BY_KIND(in, body, ...)                                                                               \
  if (in == 4) body(p, in, KIND_FP32, __VA_ARGS__);                                                          \
  else if (p.x_kind == KIND_FP16) body(p, in, KIND_FP16, __VA_ARGS__);                                       \
  else body(p, in, KIND_BF16, __VA_ARGS__);
#define GROUP_NORM(in)                                                                                       \
  KERNEL __launch_bounds__(HELD_THREADS, 1) sol_group_norm_##in(const __grid_constant__ GroupNormParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    __shared__ float2 affines[AFFINE_MOST];                                                                  \
    begin_kernel();                                                                                          \
    BY_KIND(in, group_norm, &shared, affines, memory)                                                        \
  }                                                                                                          \
  KERNEL __launch_bounds__(PARTS_THREADS, 5) sol_group_norm_##in##_cluster(                                  \
      const __grid_constant__ GroupNormParams p) {                                                           \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ GroupShared shared;                                                                           \
    BY_KIND(in, group_cluster, &shared, memory)                                                              \
  }
// One for each type: with two copies of the body behind a branch the chunks in registers spill.
#define GROUP_PARTS(name, in, kind)                                                                          \
  KERNEL __launch_bounds__(PARTS_THREADS, PARTS_BLOCKS) sol_group_norm_##name##_parts(                       \
      const __grid_constant__ GroupNormParams p) {                                                           \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ GroupShared shared;                                                                           \
    begin_kernel();                                                                                          \
    group_parts(p, in, kind, &shared, memory);                                                               \
  }
GROUP_NORM(2)
GROUP_NORM(4)
GROUP_PARTS(h, 2, KIND_FP16)
GROUP_PARTS(b, 2, KIND_BF16)
GROUP_PARTS(f, 4, KIND_FP32)
// What parts do not hold: where there are asynchronous copies.
#define GROUP_RING(name, in, kind)                                                                            \
  KERNEL __launch_bounds__(RING_THREADS + RING_MORE, 1) sol_group_norm_##name##_ring(                         \
      const __grid_constant__ GroupNormParams p) {                                                           \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ RingShared shared;                                                                            \
    group_ring(p, in, kind, &shared, memory);                                                                \
  }
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
GROUP_RING(h, 2, KIND_FP16)
GROUP_RING(b, 2, KIND_BF16)
GROUP_RING(f, 4, KIND_FP32)
#define GROUP_STREAM(name, in, kind)                                                                         \
  KERNEL __launch_bounds__(STREAM_THREADS, 1) sol_group_norm_##name##_stream(                                \
      const __grid_constant__ GroupNormParams p) {                                                           \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ StreamShared shared;                                                                          \
    stream(p.stream, GroupStream{p, kind, in, out_bytes(p)}, &shared, memory, in);                           \
  }
GROUP_STREAM(h, 2, KIND_FP16)
GROUP_STREAM(b, 2, KIND_BF16)
GROUP_STREAM(f, 4, KIND_FP32)
#endif
