// Row normalisations of rows that start anywhere and are longer than a block holds, through a ring of shared memory (ring.cuh). Input and output start
// alike: where x has 16 bytes, y has as many elements on a boundary of their size. Weights and biases are of x's type; what a block needs of
// them is in its shared memory where there is space, and else read for each row.
#ifndef SOL_KERNELS_NORM_RING_CUH
#define SOL_KERNELS_NORM_RING_CUH

#include "norm_spread.cuh"
#include "norm_fp8.cuh"
#include "ring.cuh"

// What turns elements of a row into results.
typedef struct RingRow {
  const uint4 *w, *b; // what is around the weights of the part's first chunk, and its biases
  uint32_t shift;     // of the first of them
  char *y;            // the chunks' first column
  float mean, scale;
  Fp8Scale q;
} RingRow;

INLINE Vec ring_vector(const uint4 *at, uint32_t shift, int chunk, int in) {
  Vec v;
  v.v = at[chunk];
  if (shift) v.v = funnel(v.v, at[chunk + 1], shift, in);
  return v;
}

INLINE int ring_out(NormKernel c, const NormParams *p) {
  return c.op == NORM_RMS_FP8 ? 1 : p->y_kind == c.kind ? norm_bytes(c) : p->y_kind == KIND_FP32 ? 4 : 2;
}

INLINE float ring_one(NormKernel c, const NormParams *p, const RingRow &r, float f, float w, float b) {
  float by = w + p->offset;
  if (c.op == NORM_RMS_FP8) return f * by; // and divided by q
  by = fmaf(w, r.scale, r.scale * p->offset);
  return c.op == NORM_LAYER ? fmaf(f - r.mean, by, b) : f * by;
}

INLINE void ring_chunk(NormKernel c, const NormParams *p, const RingRow &r, int chunk, Vec v) {
  const int in = norm_bytes(c), per = 16 / in;
  float f[8], w[8], b[8];
  Vec weight = ring_vector(r.w, r.shift, chunk, in), bias;
  if (c.op == NORM_LAYER) bias = ring_vector(r.b, r.shift, chunk, in);
  widen(&v, c.kind, in, f), widen(&weight, c.kind, in, w);
  if (c.op == NORM_LAYER) widen(&bias, c.kind, in, b);
#pragma unroll
  for (int j = 0; j < per; j++) f[j] = ring_one(c, p, r, f[j], w[j], c.op == NORM_LAYER ? b[j] : 0);
  if (c.op == NORM_RMS_FP8) {
    if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
      for (int j = 0; j < per; j++) f[j] *= r.scale;
    fp8_divide(r.q, per, f);
    uint2 words = fp8_words(c, f);
    if (per == 8) *(uint2 *)(r.y + (int64_t)chunk * 8) = words;
    else *(uint32_t *)(r.y + (int64_t)chunk * 4) = words.x;
  } else {
    span_store(c, p, r.y, chunk * per, f);
  }
}

// Element `column` of a row: one of those before its chunks and after them.
INLINE void ring_edge(NormKernel c, const NormParams *p, const RingRow &r, const char *x, char *y, int64_t column) {
  float f = load_one(x, column, c.kind), w = load_one(p->weight, column, c.kind);
  f = ring_one(c, p, r, f, w, c.op == NORM_LAYER ? load_one(p->bias, column, c.kind) : 0);
  if (c.op == NORM_RMS_FP8) {
    if (p->scaling == NORM_SCALE_TENSOR) f *= r.scale;
    fp8_divide(r.q, 1, &f);
  }
  store_one(y, column, c.op == NORM_RMS_FP8 ? KIND_FP8 : p->y_kind, f);
}

INLINE RingRow ring_row(NormKernel c, const NormParams *p, float2 sums, float *scales) {
  RingRow r;
  r.mean = sums.x;
  r.scale = rsqrtf((c.op == NORM_LAYER ? sums.y : sums.x) * p->over_n + p->eps);
  if (c.op == NORM_RMS_FP8) {
    if (p->scaling == NORM_SCALE_TENSOR) r.q = fp8_scale(*p->scales);
    else r.q = fp8_choose(sums.y, r.scale, scales, scales != nullptr);
  }
  return r;
}

// Vectors of the part from column `from` on, which is a multiple of 16 bytes.
INLINE const uint4 *ring_vectors(NormKernel c, const NormParams *p, const void *vector, int64_t from, uint4 *here) {
  const int in = norm_bytes(c);
  const uint4 *there = (const uint4 *)((const char *)vector + from * in);
  if (!p->ring_vectors) return there;
  int blocks = (int)((min(p->ring.parts.length + 16 / in, p->n - from) * in + 15) / 16);
  for (int i = threadIdx.x; i < blocks; i += ring_threads()) fetch16(here + i, there + i);
  return here;
}

INLINE void ring_sum(NormKernel c, const NormParams *p, RingShared *shared, const uint4 *memory, const uint4 *w, uint64_t row, uint32_t lap, Turn &t) {
  const int in = norm_bytes(c), per = 16 / in;
  RingPart a = ring_part(p->ring, row, ring_rank(p->ring), in);
  bool has_edge = (int)threadIdx.x < a.x.edges;
  int64_t column = has_edge ? span_edge(&a.x, threadIdx.x) : 0;
  float edge = has_edge ? load_one(a.x.at, column, c.kind) : 0;
  if (c.op == NORM_LAYER) {
    Running r = {edge, {0, 0}, {0, 0}};
    int count = 0;
    ring_see(p->ring, shared, memory, a, t, [&](Vec v, int) {
      if (!count) r.middle = chunk_mean(v, c.kind, in);
      run_chunk(r, v, c.kind, in), count++;
    });
    if (has_edge) run_one(r, edge);
    ring_hand_stats(shared, lap, run_end(r, count * per + has_edge));
    return;
  }
  float2 sum = make_float2(edge * edge, 0);
  bool by_row = c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW;
  uint32_t shift = ring_head(p->ring, row, in) * in;
  float top = 0;
  if (by_row && has_edge) top = fabsf(edge * (load_one(p->weight, a.begin + column, c.kind) + p->offset));
  ring_see(p->ring, shared, memory, a, t, [&](Vec v, int chunk) {
    sum = norm_sum(c, v, sum);
    if (!by_row) return;
    float f[8], by[8];
    Vec weight = ring_vector(w, shift, chunk, in);
    widen(&v, c.kind, in, f), widen(&weight, c.kind, in, by);
#pragma unroll
    for (int j = 0; j < per; j++) top = ring_higher(top, fabsf(f[j] * (by[j] + p->offset)));
  });
  ring_hand_sum(shared, lap, make_float2(sum.x + sum.y, top));
}

INLINE void ring_put(NormKernel c, const NormParams *p, RingShared *shared, const uint4 *memory, const uint4 *w, const uint4 *b, uint64_t row, uint32_t lap, Turn &t) {
  const int in = norm_bytes(c);
  RingPart a = ring_part(p->ring, row, ring_rank(p->ring), in);
  float2 sums;
  bool there = ring_sums(shared, lap, &sums);
  RingRow r = ring_row(c, p, sums, nullptr);
  r.w = w, r.b = b, r.shift = ring_head(p->ring, row, in) * in;
  char *y = ring_y(p->ring, row);
  r.y = y + (a.begin + a.x.head) * ring_out(c, p);
  int front = !there ? INT32_MAX : ring_rank(p->ring) ? 0 : p->ring.parts.front;
  ring_give(p->ring, shared, memory, a, t, front, [&](Vec v, int chunk) { ring_chunk(c, p, r, chunk, v); });
  if (there && (int)threadIdx.x < a.x.edges && (!front || (int)threadIdx.x >= a.x.head))
    ring_edge(c, p, r, (const char *)p->x + (int64_t)row * p->x_stride, y, a.begin + span_edge(&a.x, threadIdx.x));
}

// Columns begin to end - 1 of a row, by a warp.
INLINE void ring_range(NormKernel c, const NormParams *p, uint64_t row, float2 sums, int64_t begin, int64_t end) {
  const int in = norm_bytes(c), per = 16 / in;
  const char *from = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = ring_y(p->ring, row);
  Span x = span_of(from + begin * in, end - begin, in);
  int lane = threadIdx.x % 32;
  RingRow r = ring_row(c, p, sums, p->scaling == NORM_SCALE_ROW && begin == 0 && lane == 0 ? p->scales + row : nullptr);
  int64_t column = begin + x.head, base = column / per * per;
  r.w = (const uint4 *)((const char *)p->weight + base * in), r.b = (const uint4 *)((const char *)p->bias + base * in);
  r.shift = (uint32_t)(column - base) * in;
  r.y = y + column * ring_out(c, p);
#pragma unroll 2
  for (int i = lane; i < (int)x.chunks; i += 32) ring_chunk(c, p, r, i, span_load(&x, i, 0));
  if (lane < x.edges) ring_edge(c, p, r, from, y, begin + span_edge(&x, lane));
}

INLINE void norm_ring(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 ring_memory[];
  __shared__ RingShared shared;
  const int in = norm_bytes(c);
  const bool means = c.op == NORM_LAYER;
  ring_begin(p->ring, &shared);
  begin_kernel();
  if (ring_ends(p->ring)) {
    ring_last(p->ring, means, &shared, in, [&](uint64_t row, float2 sums, int64_t begin, int64_t end) { ring_range(c, p, row, sums, begin, end); });
    return;
  }
  if (ring_helps(p->ring, means, &shared, ring_memory, in)) return;
  int64_t from = ring_rank(p->ring) * p->ring.parts.length;
  uint4 *vectors = ring_memory + p->ring.slots * RING_EACH * ring_threads();
  const uint4 *w = ring_vectors(c, p, p->weight, from, vectors), *b = w;
  if (c.op == NORM_LAYER) b = ring_vectors(c, p, p->bias, from, vectors + p->ring_vectors);
  wait_for_fetches();
  named_sync(1, ring_threads());
  ring_work(
      p->ring, [&](uint64_t row, uint32_t lap, Turn &t) { ring_sum(c, p, &shared, ring_memory, w, row, lap, t); },
      [&](uint64_t row, uint32_t lap, Turn &t) { ring_put(c, p, &shared, ring_memory, w, b, row, lap, t); });
}

#if __CUDA_ARCH__ >= 900
#undef NORM_RING
#define NORM_RING(name, op, T, number) NORM_KERNEL(name, RING_THREADS + RING_MORE, 1, norm_ring, op, T, 1, 0, 0, 0)
#endif

#endif
