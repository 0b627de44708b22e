// Row normalisations of long rows of any alignment and types: a block, the blocks of a cluster, or blocks all over the GPU (parts.cuh) hold a row in shared
// memory. A row is chunks on the output's boundaries, as in norm_span.cuh, cut into parts of consecutive ones; edges belong to the first part.
#ifndef SOL_KERNELS_NORM_SPREAD_CUH
#define SOL_KERNELS_NORM_SPREAD_CUH

#include "norm_span.cuh"
#include "stats.cuh"

// Chunks that a thread reads at a time where they go through registers; whose weights it loads at a time.
enum { SPREAD_BATCH = 2, SPREAD_PUT = 4 };

typedef struct SpreadShared {
  StatsRoom room[2];
  ClusterExchange exchange;
  bool left[PARTS_MOST];
} SpreadShared;

// What a thread has of a row's part: chunks `first`, first + blockDim.x, ... before `end`.
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
INLINE bool spread_raw(NormKernel c) { return c.op == NORM_RMS || c.op == NORM_LAYER; }

INLINE Vec spread_chunk(NormKernel c, const Spread1 &a, int k) {
  Vec v;
  v.v = a.mine[k * blockDim.x];
  if (a.shift) v.v = funnel(v.v, a.mine[k * blockDim.x + 1], (uint32_t)a.shift, norm_bytes(c));
  return v;
}

INLINE Strip spread_strip(NormKernel c, const NormParams *p, NormRow r) {
  const int per = 16 / norm_bytes(c);
  Strip s = strip_of((int)(-((uint32_t)(uintptr_t)r.y >> (p->y_kind == KIND_FP32 ? 2 : 1)) & (per - 1)), (int)p->n, per);
  if (spread_raw(c) && ((uintptr_t)r.x + s.head * norm_bytes(c)) & 15)
    s.head += per, s.chunks = max(0, s.chunks - 2), s.edges = (int)p->n - s.chunks * per;
  return s;
}

// Chunks of a part, and elements.
INLINE int spread_chunks(NormKernel c, const NormParams *p, Strip s, uint32_t part) {
  int of_part = (int)p->parts.length / (16 / norm_bytes(c)), left = s.chunks - (int)part * of_part;
  return max(0, min(left, of_part));
}
INLINE float spread_count(NormKernel c, const NormParams *p, Strip s, uint32_t part) {
  return part < p->parts.parts ? (float)(spread_chunks(c, p, s, part) * (16 / norm_bytes(c)) + (part ? 0 : s.edges)) : 0;
}

INLINE Spread1 spread_part(NormKernel c, const NormParams *p, NormRow r, uint32_t part, uint4 *memory) {
  const int per = 16 / norm_bytes(c);
  Spread1 a;
  int begin = (int)part * (int)(p->parts.length / per);
  a.r = r;
  a.s = spread_strip(c, p, r);
  a.shift = spread_raw(c) ? (int)((uintptr_t)r.x + a.s.head * norm_bytes(c)) & 15 : 0;
  a.edge = part == 0 && (int)threadIdx.x < a.s.edges ? strip_edge(a.s, threadIdx.x, per) : -1;
  a.first = begin + (int)threadIdx.x, a.end = begin + spread_chunks(c, p, a.s, part);
  a.count = a.first < a.end ? (int)((uint32_t)(a.end - a.first - 1) / blockDim.x) + 1 : 0;
  a.mine = memory + threadIdx.x;
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

// again: with two inputs their sums were written before.
INLINE void spread_take(NormKernel c, const NormParams *p, const Spread1 &a, int k, bool again, Vec *v) {
  NormSpan n = spread_span(a, k);
  if (again && c.op == NORM_ADD) {
    const char *begin = (const char *)p->second;
    span_take(c, n, a.r.second, true, begin, begin + ((int64_t)p->m - 1) * p->second_stride + p->n * norm_bytes(c), v);
  } else {
    span_row(c, p, n, a.r, v);
  }
}

INLINE void spread_fill(NormKernel c, const NormParams *p, const Spread1 &a, bool again) {
  const char *from = a.r.x + (int64_t)(a.s.head + a.first * (16 / norm_bytes(c))) * norm_bytes(c);
  if (spread_raw(c) || (c.op != NORM_ADD && a.r.known && !a.r.second && !((uintptr_t)from & 15))) {
    bool more = a.shift && a.count && a.first + (a.count - 1) * (int)blockDim.x == a.end - 1; // it has the last chunk, which ends in 16 bytes more
    from -= a.shift;
#pragma unroll 8
    for (int k = 0; k < a.count; k++) fetch16(a.mine + k * blockDim.x, from + (int64_t)k * blockDim.x * 16);
    if (more) fetch16(a.mine + (a.count - 1) * blockDim.x + 1, from + (int64_t)(a.count - 1) * blockDim.x * 16 + 16);
    wait_for_fetches();
    if (a.shift) __syncthreads(); // chunks end in what the next thread has copied
    return;
  }
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

// What a part adds up to: its squares; layernorm: mean and squares.
INLINE float2 spread_sum(NormKernel c, const Spread1 &a, float edge, float elements, StatsRoom *room) {
  Vec v;
  if (c.op == NORM_LAYER) {
    v = spread_chunk(c, a, 0);
    Running r = {a.count ? chunk_mean(v, c.kind, norm_bytes(c)) : edge, {0, 0}, {0, 0}};
#pragma unroll 4
    for (int k = 0; k < a.count; k++) run_chunk(r, spread_chunk(c, a, k), c.kind, norm_bytes(c));
    if (a.edge >= 0) run_one(r, edge);
    Stats s = stats_block(run_end(r, a.count * (16 / norm_bytes(c)) + (a.edge >= 0)), fmaxf(elements, 1), room);
    return make_float2(s.mean, s.squares);
  }
  float2 sum = make_float2(edge * edge, 0);
#pragma unroll 4
  for (int k = 0; k < a.count; k++) sum = norm_sum(c, spread_chunk(c, a, k), sum);
  return make_float2(parts_sum(sum.x + sum.y, room->part[0]), 0);
}

// Mean and variance (or the mean of squares) of a row, of its parts' sums: thread i has part i's.
INLINE float2 spread_row(NormKernel c, const NormParams *p, Strip s, float2 v, StatsRoom *room) {
  if (c.op != NORM_LAYER) return make_float2(0, parts_sum(v.x, room->part[0]) * p->over_n);
  Stats one = {spread_count(c, p, s, threadIdx.x), v.x, v.y};
  Stats all = stats_block(one, (float)p->n, room);
  return make_float2(all.mean, all.squares * p->over_n);
}

// Weights, and biases, of some of the thread's chunks, as the two aligned 16 bytes around each. All are loaded before the first is used: with one chunk
// at a time their latency decided.
typedef struct SpreadVectors {
  Around w[SPREAD_PUT], b[SPREAD_PUT];
} SpreadVectors;

INLINE int spread_batch(NormKernel c) { return c.op == NORM_LAYER || c.op == NORM_EMBED ? SPREAD_PUT / 2 : SPREAD_PUT; }

// Vectors are of the input's type and start on 16 bytes: the 16 bytes around a chunk's are whole.
INLINE bool spread_plain(NormKernel c, const NormParams *p) {
  return span_plain(c, p, p->weight) && (c.op != NORM_LAYER || span_plain(c, p, p->bias));
}

INLINE void spread_vectors(NormKernel c, const NormParams *p, const Spread1 &a, int k, SpreadVectors *v) {
  int64_t at = (int64_t)(a.s.head + (a.first + k * (int)blockDim.x) * (16 / norm_bytes(c))) * norm_bytes(c);
  int step = blockDim.x * 16;
#pragma unroll
  for (int i = 0; i < spread_batch(c); i++) {
    v->w[i] = load_around((const char *)p->weight + at + i * step, k + i < a.count);
    if (c.op == NORM_LAYER) v->b[i] = load_around((const char *)p->bias + at + i * step, k + i < a.count);
  }
}

INLINE void spread_give(NormKernel c, const NormParams *p, const Spread1 &a, int k, const SpreadVectors *v, float mean, float scale) {
  const int per = 16 / norm_bytes(c);
  int column = a.s.head + (a.first + k * (int)blockDim.x) * per;
  const char *weight = (const char *)p->weight + (int64_t)column * norm_bytes(c), *bias = (const char *)p->bias + (int64_t)column * norm_bytes(c);
#pragma unroll
  for (int i = 0; i < spread_batch(c); i++) {
    Vec w, b;
    if (k + i >= a.count) continue;
    w.v = take_around(v->w[i], weight, norm_bytes(c)); // alike for all chunks
    if (c.op == NORM_LAYER) b.v = take_around(v->b[i], bias, norm_bytes(c));
    norm_give(c, p, spread_chunk(c, a, k + i), w, b, mean, scale, a.r.y, column + i * (int)blockDim.x * per);
    if (c.op == NORM_LAYER) asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
  }
}

// A chunk's result, of the input's type. Layernorm: x * scale - mean * scale, which is as exact as the mean is; away: the latter.
INLINE Vec spread_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float away, float scale) {
  const int in = norm_bytes(c);
  float f[8], w[8], b[8];
  if (c.op != NORM_LAYER) return norm_output(c, p, v, weight, bias, 0, scale);
  widen(&v, c.kind, in, f);
  widen(&weight, c.kind, in, w);
  widen(&bias, c.kind, in, b);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) f[j] = fmaf(fmaf(f[j], scale, away), w[j] + p->offset, b[j]);
  narrow(&v, c.kind, in, f);
  return v;
}

// 16 bytes that start `words` words and perhaps half a word into the 32 that a is. words: a literal; 4: they are a.lo.
INLINE Vec spread_cut(NormKernel c, Around a, int words, uint32_t half) {
  const uint32_t u[8] = {a.lo.x, a.lo.y, a.lo.z, a.lo.w, a.hi.x, a.hi.y, a.hi.z, a.hi.w};
  Vec v;
#pragma unroll
  for (int i = 0; i < 4; i++) v.u[i] = words == 4 ? u[i] : norm_bytes(c) == 4 ? u[i + words] : __funnelshift_r(u[i + words], u[i + words + 1], half);
  return v;
}

// `batch` chunks from number k on: all of their vectors are loaded before the first is used. at: bytes of the vectors before the 16 that the first chunk's start in.
INLINE void spread_put_some(NormKernel c, const NormParams *p, const Spread1 &a, int k, int64_t at, int words, int batch, char *y, float away, float scale) {
  const int step = blockDim.x * 16;
  uint32_t half = a.s.head & 1 ? 16 : 0;
  Around w[SPREAD_PUT], b[SPREAD_PUT];
#pragma unroll
  for (int i = 0; i < batch; i++) {
    const char *weight = (const char *)p->weight + at + i * step, *bias = (const char *)p->bias + at + i * step;
    w[i].lo = load16_now(weight, true).v;
    if (words < 4) w[i].hi = load16_now(weight + 16, true).v;
    if (c.op == NORM_LAYER) b[i].lo = load16_now(bias, true).v;
    if (c.op == NORM_LAYER && words < 4) b[i].hi = load16_now(bias + 16, true).v;
  }
#pragma unroll
  for (int i = 0; i < batch; i++) {
    Vec weight = spread_cut(c, w[i], words, half), bias = weight;
    if (c.op == NORM_LAYER) bias = spread_cut(c, b[i], words, half);
    *(uint4 *)(y + i * step) = spread_output(c, p, spread_chunk(c, a, k + i), weight, bias, away, scale).v;
    if (c.op == NORM_LAYER) asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
  }
}

// Chunks from number k on to an output of the input's type. words: of the vectors before a chunk's, a literal: shifts are then few instructions.
INLINE void spread_put_plain(NormKernel c, const NormParams *p, const Spread1 &a, int k, int words, float2 row, float scale) {
  const int per = 16 / norm_bytes(c), batch = spread_batch(c);
  int64_t column = a.s.head + (int64_t)(a.first + k * (int)blockDim.x) * per, at = column * norm_bytes(c) & ~(int64_t)15, step = (int64_t)blockDim.x * 16;
  char *y = a.r.y + column * norm_bytes(c);
  float away = -row.x * scale;
#pragma unroll 1
  for (; k + batch <= a.count; k += batch, at += batch * step, y += batch * step) spread_put_some(c, p, a, k, at, words, batch, y, away, scale);
#pragma unroll 1
  for (; k < a.count; k++, at += step, y += step) spread_put_some(c, p, a, k, at, words, 1, y, away, scale);
}

// Writes the thread's chunks from number k on.
INLINE void spread_put(NormKernel c, const NormParams *p, const Spread1 &a, int k, float2 row) {
  float scale = rsqrtf(row.y + p->eps);
  if (spread_plain(c, p) && p->y_kind == c.kind) {
    switch ((a.s.head * norm_bytes(c) & 15) ? (a.s.head * norm_bytes(c) & 15) >> 2 : 4) {
    case 0: spread_put_plain(c, p, a, k, 0, row, scale); break;
    case 1: spread_put_plain(c, p, a, k, 1, row, scale); break;
    case 2: spread_put_plain(c, p, a, k, 2, row, scale); break;
    case 3: spread_put_plain(c, p, a, k, 3, row, scale); break;
    default: spread_put_plain(c, p, a, k, 4, row, scale); break;
    }
    return;
  }
  if (spread_plain(c, p)) {
#pragma unroll 1
    for (; k < a.count; k += spread_batch(c)) {
      SpreadVectors v;
      spread_vectors(c, p, a, k, &v);
      spread_give(c, p, a, k, &v, row.x, scale);
    }
    return;
  }
  c.chunks = 1;
#pragma unroll 1
  for (; k < a.count; k++) {
    Vec v = spread_chunk(c, a, k);
    span_put(c, p, spread_span(a, k), a.r.y, &v, row.x, scale);
  }
}

INLINE void spread_put_edge(NormKernel c, const NormParams *p, const Spread1 &a, float2 row) {
  NormEdge edge = spread_edge(c, p, a, true);
  any_put_edge(c, p, spread_span(a, 0).place, a.r.y, edge, row.x, row.y, 0);
}

// What this block does: a part of a row, or, of a row that is all over the GPU, what is left of it: parts that were given up, edges, and the start of the row.
INLINE Part spread_place(const NormParams *p) {
  if (p->all_over) return part_of_block(p->parts);
  Part at;
  uint64_t rank;
  split(block_index(), p->parts.parts, &at.row, &rank);
  at.part = (uint32_t)rank, at.last = false;
  return at;
}

// The sums of all parts of the row, in their threads. False: they did not come in time.
INLINE bool spread_exchange(const NormParams *p, Part at, unsigned long long *posts, SpreadShared *shared, float2 *v) {
  if (p->all_over) {
    if (threadIdx.x == 0 && !at.last) post(p->parts, posts, at.part, *v);
    bool there = posts_take(p->parts, posts, at.last ? 0 : p->parts.polls, v);
    if (threadIdx.x == 0 && !at.last) part_tell(p->parts, posts, at.part, there ? PART_READ : PART_LEFT);
    return there;
  }
  if (p->parts.parts > 1) {
    exchange_all(&shared->exchange, (int)p->parts.parts, *v);
    *v = shared->exchange.from[min(threadIdx.x, p->parts.parts - 1)];
  }
  if (threadIdx.x >= p->parts.parts) *v = make_float2(0, 0);
  return true;
}

INLINE void norm_spread(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 spread_memory[]; // a thread reads what it has written itself
  __shared__ SpreadShared shared;
  if (!p->all_over && p->parts.parts > 1) exchange_init(&shared.exchange);
  begin_kernel();
  Part at = spread_place(p);
  if (at.row >= p->m) return; // the first row has none before it
  NormRow r = norm_row(c, p, at.row, at.part == 0 && threadIdx.x == 0);
  unsigned long long *posts = posts_of(r.y);
  if (threadIdx.x == 0 && !at.last) { // the same part of a row further on
    int64_t from = at.part * p->parts.length;
    norm_prefetch(c, p, at.row, from * norm_bytes(c), (int)min(p->parts.length, p->n - from) * norm_bytes(c), true);
  }
  float2 v = make_float2(0, 0), row = v;
  uint32_t part = at.part;
  if (at.last) {
    part = p->parts.parts - 1;
    parts_left(p->parts, posts, shared.left);
    if (c.op == NORM_EMBED) r.second = nullptr;
  }
  for (bool first = true;; part--) {
    if (at.last && part && !first && !shared.left[part]) continue; // nothing of it is left to do
    int start = p->all_over && part == 0 ? p->parts.front / PARTS_THREADS : 0; // turns that are written last
    Spread1 a = spread_part(c, p, r, part, spread_memory);
    bool whole = !at.last || shared.left[part];
    if (!whole) a.count = part ? 0 : min(a.count, start), a.end = min(a.end, start * (int)blockDim.x);
    if (at.last) start = 0;
    spread_fill(c, p, a, at.last);
    if (!at.last) v = spread_sum(c, a, spread_edge(c, p, a, false).x, spread_count(c, p, a.s, part), &shared.room[0]);
    if (first && !spread_exchange(p, at, posts, &shared, &v)) return;
    if (first) row = spread_row(c, p, a.s, v, &shared.room[1]);
    first = false;
    spread_put(c, p, a, start, row);
    if (at.last || !p->all_over) spread_put_edge(c, p, a, row);
    if (!at.last || part == 0) return;
  }
}

#define NORM_SPREAD(name, op, T, number) NORM_KERNEL(name, PARTS_THREADS, PARTS_BLOCKS, norm_spread, op, T, SPREAD_BATCH, 0, 0, 0)

#endif
