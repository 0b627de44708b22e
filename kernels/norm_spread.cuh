// Row normalisations of long rows of any alignment and types: a block, the blocks of a cluster, or blocks all over the GPU (parts.cuh) hold a row in shared
// memory. A row is chunks on the output's boundaries, as in norm_span.cuh, cut into parts of consecutive ones; edges belong to the first part.
#ifndef SOL_KERNELS_NORM_SPREAD_CUH
#define SOL_KERNELS_NORM_SPREAD_CUH

#include "norm_span.cuh"
#include "stats.cuh"

// Chunks that a thread reads at a time where they go through registers; whose weights it loads at a time, with the rest of what the kernel has in registers; chunks of
// the second input that a thread has under way.
enum { SPREAD_BATCH = 2, SPREAD_PUT = 4, SPREAD_PAIRS = NORM_SPREAD_PAIRS };

typedef struct SpreadShared {
  StatsRoom room[2];
  ClusterExchange exchange;
  bool left[PARTS_MOST];
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

// One input: copies that arrive while the thread does other work, until spread_arrived.
INLINE void spread_fetch(NormKernel c, const Spread1 &a) {
  const char *from = a.r.x + spread_from(c, a) - a.shift;
  bool more = a.shift && a.count && a.first + (a.count - 1) * (int)blockDim.x == a.end - 1; // it has the last chunk, which ends in 16 bytes more
  if (!a.r.known) { // embed: zeros
    for (int k = 0; k < a.count; k++) a.mine[k * blockDim.x] = make_uint4(0, 0, 0, 0);
    if (more) a.mine[(a.count - 1) * blockDim.x + 1] = make_uint4(0, 0, 0, 0);
    return;
  }
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
      *(uint4 *)(y + i * step) = spread_output(c, p, spread_chunk(c, a, k + i), weight, bias, away, scale).v;
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

// What this block does: a part of a row, or, of a row that is all over the GPU, what is left of it: parts that were given up, edges, and the start of the row.
INLINE Part spread_place(const NormParams *p, bool all_over) {
  if (all_over) return part_of_block(p->parts);
  Part at;
  uint64_t rank;
  split(block_index(), p->parts.parts, &at.row, &rank);
  at.part = (uint32_t)rank, at.last = false;
  return at;
}

// The sums of all parts of the row, in their threads. False: they did not come in time.
INLINE bool spread_exchange(const NormParams *p, bool all_over, Part at, unsigned long long *posts, SpreadShared *shared, float2 *v) {
  if (all_over) {
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

// Loads a part, and returns what it adds up to: its squares; layernorm: mean and squares. v: early: the vectors of the chunks from number k on.
INLINE float2 spread_load(NormKernel c, const NormParams *p, const Spread1 &a, uint32_t part, int k, uint4 *memory, SpreadVectors *v, StatsRoom *room) {
  bool soon = c.early && spread_soon(c, p) && k < a.count;
  bool paired = c.op == NORM_ADD && p->aside && spread_paired(c, a);
  uint4 *other = memory + p->aside + threadIdx.x;
  if (paired) spread_pairs_fetch(c, a, other);
  else if (c.op != NORM_ADD) spread_fetch(c, a);
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

// By the row's last block: what is left of a part, all of it or `front` chunks, the first of the row.
INLINE void spread_leave(NormKernel c, const NormParams *p, Spread1 a, bool whole, int front, float2 row) {
  SpreadVectors v;
  if (!whole) a.end = min(a.end, front), a.count = spread_turns(a, a.end);
  if (c.op == NORM_ADD) spread_pass(c, p, a, true);
  else spread_fetch(c, a), spread_arrived(a);
  spread_put(c, p, a, 0, &v, row);
  spread_put_edge(c, p, a, row);
}

INLINE void norm_spread(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 spread_memory[]; // a thread reads what it has written itself, and where rows are shifted what the next one has
  __shared__ SpreadShared shared;
  const bool all_over = !c.early && p->all_over;
  if (!all_over && p->parts.parts > 1) exchange_init(&shared.exchange);
  begin_kernel();
  Part at = spread_place(p, all_over);
  if (at.row >= p->m) return; // the first row has none before it
  NormRow r = norm_row(c, p, at.row, at.part == 0 && threadIdx.x == 0);
  unsigned long long *posts = posts_of(r.y);
  int front = all_over ? p->parts.front : 0; // chunks that are written last
  float2 v = make_float2(0, 0), row;
  if (all_over && at.last) {
    parts_left(p->parts, posts, shared.left);
    if (c.op == NORM_EMBED) r.second = nullptr;
    spread_exchange(p, all_over, at, posts, &shared, &v);
    row = spread_row(c, p, spread_part(c, p, r, 0, spread_memory), v, &shared.room[1]);
#pragma unroll 1
    for (uint32_t part = p->parts.parts - 1;; part--) {
      if (!part || shared.left[part]) {
        __syncthreads(); // all have read what was there before
        spread_leave(c, p, spread_part(c, p, r, part, spread_memory), shared.left[part], front, row);
      }
      if (!part) return;
    }
  }
  if (threadIdx.x == 0) { // the same part of a row further on
    int64_t from = at.part * p->parts.length;
    norm_prefetch(c, p, at.row, from * norm_bytes(c), (int)min(p->parts.length, p->n - from) * norm_bytes(c), true);
  }
  SpreadVectors vectors;
  Spread1 a = spread_part(c, p, r, at.part, spread_memory);
  int k = spread_turns(a, front);
  v = spread_load(c, p, a, at.part, k, spread_memory, &vectors, &shared.room[0]);
  if (!spread_exchange(p, all_over, at, posts, &shared, &v)) return;
  row = spread_row(c, p, a, v, &shared.room[1]);
  spread_put(c, p, a, k, &vectors, row);
  if (!all_over) spread_put_edge(c, p, a, row);
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
