// Group norm of groups that blocks all over the GPU share, through a ring of shared memory (kernels/ring.cuh). The output is aligned as the input is, and channels have at
// least a chunk's elements.
#ifndef SOL_KERNELS_GROUP_NORM_RING_CUH
#define SOL_KERNELS_GROUP_NORM_RING_CUH

#include "ring.cuh"
#include "pieces.cuh"

INLINE int out_bytes(const GroupNormParams &p) { return p.y_kind == KIND_FP32 ? 4 : 2; }

// The first channel of a row's group.
INLINE uint64_t first_channel(const GroupNormParams &p, uint64_t row) {
  uint64_t group, batch;
  split(row, p.groups, &batch, &group);
  return group * p.channels;
}

// Weights and biases of a part's channels.
INLINE void part_affines(const GroupNormParams &p, float2 *affines, uint64_t row, const RingPart &a) {
  uint64_t first = divide((uint64_t)a.begin, p.divider), from = first_channel(p, row) + first;
  int channels = (int)(divide((uint64_t)(a.begin + a.x.n - 1), p.divider) - first) + 1;
  for (int i = threadIdx.x; i < channels; i += ring_threads()) affines[i] = affine_load(p, from + i);
}

INLINE void group_sum(const GroupNormParams &p, RingShared *shared, const uint4 *memory, float2 *affines, uint64_t row, uint32_t lap, Turn &t, int in, int kind) {
  RingPart a = ring_part(p.ring, row, ring_rank(p.ring), in);
  bool has_edge = (int)threadIdx.x < a.x.edges;
  float edge = has_edge ? load_one(a.x.at, span_edge(&a.x, threadIdx.x), kind) : 0;
  part_affines(p, affines, row, a);
  Running r = {edge, {0, 0}, {0, 0}};
  int count = 0;
  ring_see(p.ring, shared, memory, a, t, [&](Vec v, int) {
    if (!count) r.middle = chunk_mean(v, kind, in);
    run_chunk(r, v, kind, in), count++;
  });
  if (has_edge) run_one(r, edge);
  ring_hand_stats(shared, lap, run_end(r, count * (16 / in) + has_edge));
}

INLINE void group_put(const GroupNormParams &p, RingShared *shared, uint4 *memory, float2 *affines, uint64_t row, uint32_t lap, Turn &t, int in, int kind) {
  const int per = 16 / in;
  RingPart at = ring_part(p.ring, row, ring_rank(p.ring), in);
  float2 sums;
  bool there = ring_sums(shared, lap, &sums);
  Piece a;
  a.x = at.x, a.y = ring_y(p.ring, row) + at.begin * out_bytes(p), a.affines = affines;
  a.mean = sums.x, a.over = rsqrtf(sums.y / (float)p.n + p.eps);
  int64_t second = (int64_t)((divide((uint64_t)at.begin, p.divider) + 1) * p.divider.by);
  a.first_end = (int)min(second - at.begin, (int64_t)INT32_MAX);
  int front = !there ? INT32_MAX : ring_rank(p.ring) ? 0 : p.ring.parts.front;
  Channel c = {0, 0, {0, 0}};
  ring_give(p.ring, shared, memory, at, t, front, [&](Vec &v, int chunk) {
    int column = a.x.head + chunk * per;
    float f[8];
    widen(&v, kind, in, f);
    if (column >= c.end || column < c.end - (int)p.divider32.by) c = channel_of(p, a, column);
    finish_chunk(a, c, per, f, column);
    if (p.ring.bulk) narrow(&v, kind, in, f);
    else put_chunk(p, per, a.y, column, f);
  });
  if (there && (int)threadIdx.x < a.x.edges && (!front || (int)threadIdx.x >= a.x.head))
    put_edge(p, a, load_one(a.x.at, span_edge(&a.x, threadIdx.x), kind));
}

// Columns begin to end - 1 of a group, by a warp.
INLINE void group_range(const GroupNormParams &p, uint64_t row, float2 sums, int64_t begin, int64_t end, int in, int kind) {
  const int per = 16 / in;
  Span x = span_of((const char *)p.x + ((int64_t)row * p.n + begin) * in, end - begin, in);
  char *y = (char *)p.y + ((int64_t)row * p.n + begin) * out_bytes(p);
  uint64_t first = first_channel(p, row);
  float over = rsqrtf(sums.y / (float)p.n + p.eps);
  int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int64_t i = lane; i < x.chunks; i += 32) {
    Vec v = span_load(&x, i, 0);
    int64_t column = x.head + i * per;
    uint64_t inside = divide((uint64_t)(begin + column), p.divider);
    int left = (int)min((int64_t)((inside + 1) * p.divider.by) - begin - column, (int64_t)per);
    float2 a = affine_load(p, first + inside), b = left < per ? affine_load(p, first + inside + 1) : a;
    float f[8];
    widen(&v, kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - sums.x, (j < left ? a.x : b.x) * over, j < left ? a.y : b.y);
    put_chunk(p, per, y + column * out_bytes(p), 0, f);
  }
  if (lane < x.edges) {
    int64_t column = span_edge(&x, lane);
    float2 a = affine_load(p, first + divide((uint64_t)(begin + column), p.divider));
    store_one(y, column, p.y_kind, fmaf(load_one(x.at, column, kind) - sums.x, a.x * over, a.y));
  }
}

INLINE void group_ring(const GroupNormParams &p, int in, int kind, RingShared *shared, uint4 *memory) {
  ring_begin(p.ring, shared);
  begin_kernel();
  if (ring_ends(p.ring)) {
    ring_last(p.ring, shared, in, [&](uint64_t row, float2 sums, int64_t begin, int64_t end) { group_range(p, row, sums, begin, end, in, kind); });
    return;
  }
  if (ring_helps(p.ring, shared, memory, in)) return;
  float2 *affines = (float2 *)(memory + p.ring.slots * RING_EACH * ring_threads());
  uint32_t rooms = 2 * (uint32_t)p.ring.depth; // warps are less than so many rows apart
  ring_work(
      p.ring,
      [&](uint64_t row, uint32_t lap, Turn &t) { group_sum(p, shared, memory, affines + lap % rooms * p.affines, row, lap, t, in, kind); },
      [&](uint64_t row, uint32_t lap, Turn &t) { group_put(p, shared, memory, affines + lap % rooms * p.affines, row, lap, t, in, kind); });
}
#endif
