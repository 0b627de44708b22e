// A part of a long row of any alignment in shared memory: which chunks a thread has of it, how they come there, and what they add up to (norm_spread.cuh). Chunks are on the
// output's boundaries, as in norm_span.cuh; edges belong to the row's first part.
#ifndef SOL_KERNELS_NORM_SPREAD_PART_CUH
#define SOL_KERNELS_NORM_SPREAD_PART_CUH

#include "norm_span.cuh"
#include "relay.cuh"
#include "stats.cuh"

// Chunks that a thread reads at a time where they go through registers; whose weights it loads at a time, with the rest of what the kernel has in registers; chunks of
// the second input that a thread has under way.
enum { SPREAD_BATCH = 2, SPREAD_PUT = 4, SPREAD_PAIRS = NORM_SPREAD_PAIRS };

typedef struct SpreadShared {
  StatsRoom room[2];
  ClusterExchange exchange;
} SpreadShared;

// What a thread has of a row's part: chunks `first`, first + blockDim.x, ... before `end`. Warps start on lines of 128 bytes of the output.
typedef struct Spread1 {
  NormRow r;
  Strip s;
  int edge; // column; -1: none
  int first, end, count;
  uint4 *mine;
  int shift; // of rows that are held as the input's aligned 16 bytes: bytes from those to the chunks
} Spread1;

// Rows that are held as they lie in the input, though that starts otherwise than the output: what is around a chunk is then within the row, as the first and the last
// chunk are edges.
INLINE bool spread_raw(NormKernel c) { return c.op != NORM_ADD; }

INLINE Vec spread_chunk(NormKernel c, const Spread1 &a, int k) {
  Vec v;
  v.v = a.mine[k * blockDim.x];
  if (a.shift) v.v = funnel(v.v, a.mine[k * blockDim.x + 1], (uint32_t)a.shift, norm_bytes(c));
  return v;
}

INLINE int spread_out_bytes(const NormParams *p) { return p->y_kind == KIND_FP32 ? 4 : 2; }

INLINE Strip spread_strip(NormKernel c, const NormParams *p, NormRow r) {
  const int per = 16 / norm_bytes(c);
  Strip s = strip_of((int)(-((uint32_t)(uintptr_t)r.y / spread_out_bytes(p)) & (per - 1)), (int)p->n, per);
  if (spread_raw(c) && ((uintptr_t)r.x + s.head * norm_bytes(c)) & 15)
    s.head += per, s.chunks = max(0, s.chunks - 2), s.edges = (int)p->n - s.chunks * per;
  return s;
}

// Chunks from the last line of the output that begins before the row's first chunk to that: parts are counted from there.
INLINE int spread_lead(NormKernel c, const NormParams *p, NormRow r, Strip s) {
  int out = spread_out_bytes(p);
  return (int)(((uint32_t)(uintptr_t)r.y + (uint32_t)(s.head * out)) & 127) / (16 / norm_bytes(c) * out);
}

// A part's first chunk: below 0 where its line begins before the row's first.
INLINE int spread_begin(NormKernel c, const NormParams *p, int lead, uint32_t part) { return (int)part * (int)(p->parts.length / (16 / norm_bytes(c))) - lead; }
INLINE int spread_end(NormKernel c, const NormParams *p, Strip s, int lead, uint32_t part) {
  return part + 1 >= p->parts.parts ? s.chunks : min(s.chunks, spread_begin(c, p, lead, part + 1));
}

// Elements of a part.
INLINE float spread_count(NormKernel c, const NormParams *p, NormRow r, Strip s, uint32_t part) {
  if (part >= p->parts.parts) return 0;
  int lead = spread_lead(c, p, r, s), chunks = spread_end(c, p, s, lead, part) - max(0, spread_begin(c, p, lead, part));
  return (float)(max(0, chunks) * (16 / norm_bytes(c)) + (part ? 0 : s.edges));
}

INLINE int spread_turns(const Spread1 &a, int end) { return a.first < end ? (int)((uint32_t)(end - a.first - 1) / blockDim.x) + 1 : 0; }

INLINE Spread1 spread_part(NormKernel c, const NormParams *p, NormRow r, uint32_t part, uint4 *memory) {
  Spread1 a;
  a.r = r;
  a.s = spread_strip(c, p, r);
  int lead = spread_lead(c, p, r, a.s), begin = spread_begin(c, p, lead, part);
  a.shift = spread_raw(c) ? (int)((uintptr_t)r.x + a.s.head * norm_bytes(c)) & 15 : 0;
  a.edge = part == 0 && (int)threadIdx.x < a.s.edges ? strip_edge(a.s, threadIdx.x, 16 / norm_bytes(c)) : -1;
  a.first = begin + (int)threadIdx.x, a.end = spread_end(c, p, a.s, lead, part);
  if (a.first < 0) a.first += (int)blockDim.x;
  a.count = spread_turns(a, a.end);
  a.mine = memory + (a.first - begin);
  return a;
}

// The thread's chunks from number k on, as norm_span.cuh has them; and its edge.
INLINE NormSpan spread_span(const Spread1 &a, int k) {
  NormSpan n;
  n.s = a.s;
  n.s.chunks = a.end;
  n.first = a.first + k * (int)blockDim.x, n.all = blockDim.x;
  n.place.edge = a.edge;
  return n;
}

// Bytes of the input from the row's start to the thread's first chunk.
INLINE int64_t spread_from(NormKernel c, const Spread1 &a) { return (int64_t)(a.s.head + a.first * (16 / norm_bytes(c))) * norm_bytes(c); }

// again: with two inputs their sums were written before.
INLINE void spread_take(NormKernel c, const NormParams *p, const Spread1 &a, int k, bool again, Vec *v) {
  NormSpan n = spread_span(a, k);
  if (again) {
    const char *begin = (const char *)p->second;
    span_take(c, n, a.r.second, true, begin, begin + ((int64_t)p->m - 1) * p->second_stride + p->n * norm_bytes(c), v);
  } else {
    span_row(c, p, n, a.r, v);
  }
}

// Copies that arrive while the thread does other work, until spread_arrived. row: x, or what lies as it does. relay, again: relay_policy.
INLINE void spread_fetch(NormKernel c, const Spread1 &a, const char *row, bool relay, bool again) {
  const char *from = row + spread_from(c, a) - a.shift;
  bool more = a.shift && a.count && a.first + (a.count - 1) * (int)blockDim.x == a.end - 1; // it has the last chunk, which ends in 16 bytes more
  if (!a.r.known) { // embed: zeros
    for (int k = 0; k < a.count; k++) a.mine[k * blockDim.x] = make_uint4(0, 0, 0, 0);
    if (more) a.mine[(a.count - 1) * blockDim.x + 1] = make_uint4(0, 0, 0, 0);
    return;
  }
  uint64_t policy = relay_policy(again);
  if (relay)
#pragma unroll 8
    for (int k = 0; k < a.count; k++) relay_fetch(a.mine + k * blockDim.x, from + (int64_t)k * blockDim.x * 16, policy);
  else
#pragma unroll 8
    for (int k = 0; k < a.count; k++) fetch16(a.mine + k * blockDim.x, from + (int64_t)k * blockDim.x * 16);
  if (more) fetch16(a.mine + (a.count - 1) * blockDim.x + 1, from + (int64_t)(a.count - 1) * blockDim.x * 16 + 16);
}

INLINE void spread_arrived(const Spread1 &a) {
  wait_for_fetches();
  if (a.shift) __syncthreads(); // chunks end in what the next thread has copied
}

// embed: the row itself, as it was looked up.
INLINE void spread_second(NormKernel c, const Spread1 &a) {
  c.chunks = 1;
#pragma unroll 1
  for (int k = 0; k < a.count; k++) {
    Vec v = spread_chunk(c, a, k);
    span_store_raw(c, spread_span(a, k), a.r.second, &v);
  }
}

// Two inputs that start as the output does: chunks of the second go through a few places of the thread's own, and each sum takes the first one's place
// while others are on their way.
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
INLINE bool spread_paired(NormKernel c, const Spread1 &a) {
  int64_t from = spread_from(c, a);
  return !(((uintptr_t)a.r.x + from | (uintptr_t)a.r.residual + from | (uintptr_t)a.r.second + from) & 15);
}

INLINE void spread_pairs_fetch(NormKernel c, const Spread1 &a, uint4 *other) {
  const char *x = a.r.x + spread_from(c, a), *residual = a.r.residual + spread_from(c, a);
  int step = (int)blockDim.x * 16;
#pragma unroll
  for (int k = 0; k < SPREAD_PAIRS; k++) {
    if (k < a.count) fetch16(a.mine + k * blockDim.x, x + k * step), fetch16(other + k * blockDim.x, residual + k * step);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
}

INLINE float2 spread_pairs(NormKernel c, const Spread1 &a, uint4 *other) {
  int step = (int)blockDim.x * 16;
  int64_t from = spread_from(c, a), ahead = from + SPREAD_PAIRS * step;
  const char *x = a.r.x + ahead, *residual = a.r.residual + ahead;
  char *second = a.r.second + from;
  float2 sum = make_float2(0, 0);
#pragma unroll 1
  for (int k = 0; k < a.count; k += SPREAD_PAIRS)
#pragma unroll
    for (int i = 0; i < SPREAD_PAIRS; i++, x += step, residual += step, second += step) {
      if (k + i >= a.count) break;
      Vec u, v;
      wait_but(SPREAD_PAIRS - 1);
      u.v = a.mine[(k + i) * blockDim.x], v.v = other[i * blockDim.x];
      u = norm_add(c, u, v);
      a.mine[(k + i) * blockDim.x] = u.v;
      *(uint4 *)second = u.v;
      sum = norm_sum(c, u, sum);
      if (k + i + SPREAD_PAIRS < a.count) fetch16(a.mine + (k + i + SPREAD_PAIRS) * blockDim.x, x), fetch16(other + i * blockDim.x, residual);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
  return sum;
}
#else // all of them through registers
INLINE bool spread_paired(NormKernel, const Spread1 &) { return false; }
INLINE void spread_pairs_fetch(NormKernel, const Spread1 &, uint4 *) {}
INLINE float2 spread_pairs(NormKernel, const Spread1 &, uint4 *) { return make_float2(0, 0); }
#endif

// Otherwise, and of sums that were written before: through registers.
INLINE void spread_pass(NormKernel c, const NormParams *p, const Spread1 &a, bool again) {
#pragma unroll 1
  for (int k = 0; k < a.count; k += c.chunks) {
    Vec v[SPREAD_BATCH];
    spread_take(c, p, a, k, again, v);
#pragma unroll
    for (int i = 0; i < c.chunks; i++)
      if (k + i < a.count) a.mine[(k + i) * blockDim.x] = v[i].v;
  }
}

INLINE NormEdge spread_edge(NormKernel c, const NormParams *p, Spread1 a, bool again) {
  NormPlace s = spread_span(a, 0).place;
  if (again && c.op == NORM_ADD) c.op = NORM_RMS, a.r.x = a.r.second;
  return any_take_edge(c, p, s, a.r);
}

INLINE float2 spread_squares(NormKernel c, const Spread1 &a) {
  float2 sum = make_float2(0, 0);
#pragma unroll 4
  for (int k = 0; k < a.count; k++) sum = norm_sum(c, spread_chunk(c, a, k), sum);
  return sum;
}

// Layernorm: mean and squares of what a part has.
INLINE float2 spread_stats(NormKernel c, const Spread1 &a, float edge, float elements, StatsRoom *room) {
  Running r = {a.count ? chunk_mean(spread_chunk(c, a, 0), c.kind, norm_bytes(c)) : edge, {0, 0}, {0, 0}};
#pragma unroll 4
  for (int k = 0; k < a.count; k++) run_chunk(r, spread_chunk(c, a, k), c.kind, norm_bytes(c));
  if (a.edge >= 0) run_one(r, edge);
  Stats s = stats_block(run_end(r, a.count * (16 / norm_bytes(c)) + (a.edge >= 0)), fmaxf(elements, 1), room);
  return make_float2(s.mean, s.squares);
}

// Mean and variance (or the mean of squares) of a row, of its parts' sums: thread i has part i's.
INLINE float2 spread_row(NormKernel c, const NormParams *p, const Spread1 &a, float2 v, StatsRoom *room) {
  if (c.op != NORM_LAYER) return make_float2(0, parts_sum(v.x, room->part[0]) * p->over_n);
  Stats one = {spread_count(c, p, a.r, a.s, threadIdx.x), v.x, v.y};
  Stats all = stats_block(one, (float)p->n, room);
  return make_float2(all.mean, all.squares * p->over_n);
}

#endif
