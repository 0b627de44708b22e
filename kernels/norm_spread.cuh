// Row normalisations of long rows of any alignment and types: a block, the blocks of a cluster, or blocks one after another (relay.cuh) have a row in shared
// memory. A row is chunks on the output's boundaries, as in norm_span.cuh, cut into parts of consecutive ones; edges belong to the first part.
#ifndef SOL_KERNELS_NORM_SPREAD_CUH
#define SOL_KERNELS_NORM_SPREAD_CUH

#include "norm_spread_part.cuh"

// Weights, and biases, of some of the thread's chunks, as the two aligned 16 bytes around each. All are loaded before the first is used: with one chunk
// at a time their latency decided.
typedef struct SpreadVectors {
  Around w[SPREAD_PUT], b[SPREAD_PUT];
} SpreadVectors;

// early: a kernel of rows of one input that a cluster holds, of its type, alone. It has fewer registers, for more threads of an SM.
INLINE int spread_batch(NormKernel c) { return c.early || c.op == NORM_LAYER || c.op == NORM_EMBED ? SPREAD_PUT / 2 : SPREAD_PUT; }

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

// A chunk's results. Layernorm: x * scale - mean * scale, which is as exact as the mean is; away: the latter.
INLINE void spread_results(NormKernel c, const NormParams *p, float *f, const float *w, const float *b, float away, float scale) {
  if (c.op != NORM_LAYER) norm_affine(c, p, f, w, b, 0, scale);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c) && c.op == NORM_LAYER; j++) f[j] = fmaf(fmaf(f[j], scale, away), w[j] + p->offset, b[j]);
}

// The same, all of the input's type.
INLINE Vec spread_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float away, float scale) {
  const int in = norm_bytes(c);
  float f[8], w[8], b[8];
  widen(&v, c.kind, in, f);
  widen(&weight, c.kind, in, w);
  widen(&bias, c.kind, in, b);
  spread_results(c, p, f, w, b, away, scale);
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

// Those of chunks from number k on, of the 16 bytes around them; where there are fewer, some again. All are asked for before the first is used.
INLINE void spread_ask(NormKernel c, const NormParams *p, const Spread1 &a, int k, SpreadVectors *v) {
  const int in = norm_bytes(c);
  int64_t column = a.s.head + (int64_t)(a.first + k * (int)blockDim.x) * (16 / in), at = column * in & ~(int64_t)15;
  bool two = a.s.head * in & 15;
#pragma unroll
  for (int i = 0; i < spread_batch(c); i++) {
    if (i && k + i < a.count) at += (int64_t)blockDim.x * 16;
    const char *weight = (const char *)p->weight + at, *bias = (const char *)p->bias + at;
    v->w[i].lo = load16_now(weight, true).v;
    v->w[i].hi = load16_now(weight + (two ? 16 : 0), true).v;
    if (c.op == NORM_LAYER) v->b[i].lo = load16_now(bias, true).v;
    if (c.op == NORM_LAYER) v->b[i].hi = load16_now(bias + (two ? 16 : 0), true).v;
  }
}

// What is read twice has L2 for itself: it is written so that it leaves L2 first.
INLINE void spread_store(NormKernel c, const NormParams *p, char *to, Vec v) {
  if (!c.early && p->lag) __stcs((uint4 *)to, v.v);
  else *(uint4 *)to = v.v;
}

// Chunks from number k on to an output of the input's type. words: of the vectors before a chunk's, a literal: shifts are then few instructions. v: early: the first ones' vectors.
INLINE void spread_put_plain(NormKernel c, const NormParams *p, const Spread1 &a, int k, int words, SpreadVectors *v, float2 row, float scale) {
  const int per = 16 / norm_bytes(c), batch = spread_batch(c);
  int64_t column = a.s.head + (int64_t)(a.first + k * (int)blockDim.x) * per;
  int step = (int)blockDim.x * 16;
  uint32_t half = a.s.head & 1 ? 16 : 0;
  char *y = a.r.y + column * norm_bytes(c);
  float away = -row.x * scale;
#pragma unroll 1
  while (k < a.count) {
    if (!c.early) spread_ask(c, p, a, k, v);
#pragma unroll
    for (int i = 0; i < batch; i++) {
      if (k + i >= a.count) continue;
      Vec weight = spread_cut(c, v->w[i], words, half), bias = weight;
      if (c.op == NORM_LAYER) bias = spread_cut(c, v->b[i], words, half);
      spread_store(c, p, y + i * step, spread_output(c, p, spread_chunk(c, a, k + i), weight, bias, away, scale));
      if (c.op == NORM_LAYER) asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
    }
    k += batch, y += batch * step;
    if (c.early && k < a.count) spread_ask(c, p, a, k, v);
  }
}

// Vectors in fp32 of rows of 2-byte elements: a chunk's are in three aligned 16 bytes.
INLINE bool spread_wide(NormKernel c, const NormParams *p) { return norm_bytes(c) == 2 && p->weight_kind == KIND_FP32; }

typedef struct SpreadWide {
  uint4 part[3];
} SpreadWide;

INLINE SpreadWide spread_wide_ask(const char *from, uint32_t shift) {
  SpreadWide a;
  from -= shift;
  a.part[0] = load16_now(from, true).v;
  a.part[1] = load16_now(from + 16, true).v;
  a.part[2] = load16_now(from + (shift ? 32 : 0), true).v;
  return a;
}

INLINE void spread_wide_take(SpreadWide a, uint32_t shift, float *f) {
  uint32_t u[12];
#pragma unroll
  for (int i = 0; i < 3; i++) u[4 * i] = a.part[i].x, u[4 * i + 1] = a.part[i].y, u[4 * i + 2] = a.part[i].z, u[4 * i + 3] = a.part[i].w;
#pragma unroll
  for (int i = 0; i < 10; i++) u[i] = shift & 8 ? u[i + 2] : u[i];
#pragma unroll
  for (int i = 0; i < 8; i++) f[i] = __uint_as_float(shift & 4 ? u[i + 1] : u[i]);
}

INLINE void spread_put_wide(NormKernel c, const NormParams *p, const Spread1 &a, int k, float2 row, float scale) {
  int column = a.s.head + (a.first + k * (int)blockDim.x) * 8, step = (int)blockDim.x * 8;
  const char *weight = (const char *)p->weight + (int64_t)column * 4, *bias = (const char *)p->bias + (int64_t)column * 4;
  char *y = a.r.y + (int64_t)column * 2;
  uint32_t shift = (uint32_t)column * 4 & 15;
  float away = -row.x * scale;
#pragma unroll 1
  for (; k < a.count; k++, weight += step * 4, bias += step * 4, y += step * 2) {
    SpreadWide around = spread_wide_ask(weight, shift), more = around;
    float f[8], w[8], b[8];
    if (c.op == NORM_LAYER) more = spread_wide_ask(bias, shift);
    Vec v = spread_chunk(c, a, k);
    spread_wide_take(around, shift, w);
    if (c.op == NORM_LAYER) spread_wide_take(more, shift, b);
    widen(&v, c.kind, 2, f);
    spread_results(c, p, f, w, b, away, scale);
    narrow(&v, c.kind, 2, f);
    *(uint4 *)y = v.v;
  }
}

// Whether the first chunks' vectors are asked for while the row is on its way.
INLINE bool spread_soon(NormKernel c, const NormParams *p) { return c.early ? !spread_wide(c, p) : spread_plain(c, p) && p->y_kind == c.kind; }

// Writes the thread's chunks from number k on. v: early: the first ones' vectors, where spread_soon says so.
INLINE void spread_put(NormKernel c, const NormParams *p, const Spread1 &a, int k, SpreadVectors *v, float2 row) {
  float scale = rsqrtf(row.y + p->eps);
  if (spread_soon(c, p)) {
    switch ((a.s.head * norm_bytes(c) & 15) ? (a.s.head * norm_bytes(c) & 15) >> 2 : 4) {
    case 0: spread_put_plain(c, p, a, k, 0, v, row, scale); break;
    case 1: spread_put_plain(c, p, a, k, 1, v, row, scale); break;
    case 2: spread_put_plain(c, p, a, k, 2, v, row, scale); break;
    case 3: spread_put_plain(c, p, a, k, 3, v, row, scale); break;
    default: spread_put_plain(c, p, a, k, 4, v, row, scale); break;
    }
    return;
  }
  if (c.early) {
    if (norm_bytes(c) == 2) spread_put_wide(c, p, a, k, row, scale);
    return;
  }
  if (spread_plain(c, p)) {
#pragma unroll 1
    for (; k < a.count; k += spread_batch(c)) {
      spread_vectors(c, p, a, k, v);
      spread_give(c, p, a, k, v, row.x, scale);
    }
    return;
  }
  c.chunks = 1;
#pragma unroll 1
  for (; k < a.count; k++) {
    Vec x = spread_chunk(c, a, k);
    span_put(c, p, spread_span(a, k), a.r.y, &x, row.x, scale);
  }
}

INLINE void spread_put_edge(NormKernel c, const NormParams *p, const Spread1 &a, float2 row) {
  NormEdge edge = spread_edge(c, p, a, true); // read again: what of it is asked for with the row is waited for with it
  any_put_edge(c, p, spread_span(a, 0).place, a.r.y, edge, row.x, row.y, 0);
}

// What this block does: a part of a row.
INLINE Relay spread_place(const NormParams *p, bool relay) {
  if (relay) return relay_of_block(p->parts, p->lag);
  Relay at;
  uint64_t rank;
  split(block_index(), p->parts.parts, &at.row, &rank);
  at.part = (uint32_t)rank, at.sums = at.puts = true;
  return at;
}

// The sums of all parts of the row, in their threads. False: this part's are posted, and that is all that the block does.
INLINE bool spread_exchange(const NormParams *p, bool relay, Relay at, unsigned long long *posts, SpreadShared *shared, float2 *v) {
  if (relay) {
    if (at.sums && threadIdx.x == 0) post(p->parts, posts, at.part, *v);
    if (at.puts) *v = relay_take(p->parts, posts);
    return at.puts;
  }
  if (p->parts.parts > 1) {
    exchange_all(&shared->exchange, (int)p->parts.parts, *v);
    *v = shared->exchange.from[min(threadIdx.x, p->parts.parts - 1)];
  }
  if (threadIdx.x >= p->parts.parts) *v = make_float2(0, 0);
  return true;
}

// Loads a part, and returns what it adds up to: its squares; layernorm: mean and squares. v: early: the vectors of the chunks from number k on.
INLINE float2 spread_load(NormKernel c, const NormParams *p, const Spread1 &a, uint32_t part, int k, bool relay, uint4 *memory, SpreadVectors *v, StatsRoom *room) {
  bool soon = c.early && spread_soon(c, p) && k < a.count;
  bool paired = c.op == NORM_ADD && p->aside && spread_paired(c, a);
  uint4 *other = memory + p->aside + threadIdx.x;
  if (paired) spread_pairs_fetch(c, a, other);
  else if (c.op != NORM_ADD) spread_fetch(c, a, a.r.x, relay, false);
  float edge = spread_edge(c, p, a, false).x;
  float2 sum;
  if (c.op == NORM_ADD) {
    if (paired) sum = spread_pairs(c, a, other);
    else spread_pass(c, p, a, false), sum = spread_squares(c, a);
    if (soon) spread_ask(c, p, a, k, v);
  } else { // vectors are asked for while the row is on its way
    if (soon) spread_ask(c, p, a, k, v);
    spread_arrived(a);
    if (c.op == NORM_EMBED && a.r.second) spread_second(c, a);
    if (c.op == NORM_LAYER) return spread_stats(c, a, edge, spread_count(c, p, a.r, a.s, part), room);
    sum = spread_squares(c, a);
  }
  return make_float2(parts_sum(fmaf(edge, edge, sum.x + sum.y), room->part[0]), 0);
}

// Loads a part again: with two inputs, their sums.
INLINE void spread_again(NormKernel c, const NormParams *p, const Spread1 &a) {
  if (c.op == NORM_ADD && !spread_paired(c, a)) spread_pass(c, p, a, true);
  else spread_fetch(c, a, c.op == NORM_ADD ? a.r.second : a.r.x, true, true);
}

// The chunks of a row's start, where the posts were, and its edges.
INLINE void spread_front(NormKernel c, const NormParams *p, Spread1 a, int front, float2 row) {
  SpreadVectors v;
  a.end = min(a.end, front), a.count = spread_turns(a, a.end);
  spread_again(c, p, a);
  spread_arrived(a);
  spread_put(c, p, a, 0, &v, row);
  spread_put_edge(c, p, a, row);
}

// A row is in the shared memory of a cluster's blocks, or it is read twice (relay.cuh).
INLINE void norm_spread(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 spread_memory[]; // a thread reads what it has written itself, and where rows are shifted what the next one has
  __shared__ SpreadShared shared;
  const bool relay = !c.early && p->lag;
  if (!relay && p->parts.parts > 1) exchange_init(&shared.exchange);
  begin_kernel();
  Relay at = spread_place(p, relay);
  if (at.row >= p->m) return;
  NormRow r = norm_row(c, p, at.row, at.sums && at.part == 0 && threadIdx.x == 0);
  unsigned long long *posts = posts_of(r.y);
  int front = relay ? p->parts.front : 0; // chunks that are written last
  float2 v = make_float2(0, 0), row;
  if (at.sums && threadIdx.x == 0) { // the same part of a row further on
    int64_t from = at.part * p->parts.length;
    norm_prefetch(c, p, at.row, from * norm_bytes(c), (int)min(p->parts.length, p->n - from) * norm_bytes(c), true);
  }
  SpreadVectors vectors;
  Spread1 a = spread_part(c, p, r, at.part, spread_memory);
  int k = spread_turns(a, front);
  if (at.sums) v = spread_load(c, p, a, at.part, k, relay, spread_memory, &vectors, &shared.room[0]);
  else if (c.op != NORM_ADD) spread_again(c, p, a);
  if (relay && c.op == NORM_ADD) __threadfence(); // the sums are there before their post, and are read after it
  if (!spread_exchange(p, relay, at, posts, &shared, &v)) return;
  if (relay && c.op == NORM_ADD) __threadfence(), __syncthreads(), spread_again(c, p, a);
  row = spread_row(c, p, a, v, &shared.room[1]);
  bool last = relay && threadIdx.x == 0 && relay_is_last(p->parts, relay_count(posts));
  if (relay) spread_arrived(a);
  spread_put(c, p, a, k, &vectors, row);
  if (!relay) spread_put_edge(c, p, a, row);
  else if (__syncthreads_or(last)) spread_front(c, p, spread_part(c, p, r, 0, spread_memory), front, row);
}

#define NORM_SPREAD(name, op, T, number) NORM_KERNEL(name, PARTS_THREADS, PARTS_BLOCKS, norm_spread, op, T, SPREAD_BATCH, 0, 0, 0)
#if __CUDA_ARCH__ >= 900
// Registers: rmsnorm's blocks of 256 threads are six to an SM, layernorm's four.
#define NORM_CLUSTERED(name, op, T, number)                                                                            \
  NORM_KERNEL(name, NORM_SPREAD_THREADS, (op) == NORM_RMS ? 3 : 2, norm_spread, op, T, SPREAD_BATCH, 0, 1, 0)
#else
#define NORM_CLUSTERED(...)
#endif

#endif
