// Pieces for rows that start anywhere, 16 bytes at a time: chunks begin where a chunk of the output does, inputs
// that are aligned otherwise (a table's rows) and weights are read by two accesses and a shift (funnel.cuh). What is before the first chunk and after the last
// is one element a thread (strip.cuh).
#ifndef SOL_KERNELS_NORM_SPAN_CUH
#define SOL_KERNELS_NORM_SPAN_CUH

#include "funnel.cuh"
#include "norm_any.cuh"
#include "strip.cuh"

// What a thread has of its row: chunks `first`, first + all, ... of s.chunks, and perhaps an edge.
typedef struct NormSpan {
  Strip s;
  int first, all;
  NormPlace place; // the edge's column
} NormSpan;

INLINE int span_column(NormKernel c, const NormSpan &a, int k) {
  return a.s.head + (a.first + k * a.all) * (16 / norm_bytes(c));
}
INLINE bool span_has(const NormSpan &a, int k) { return a.first + k * a.all < a.s.chunks; }

// The chunks of a row of the input's type, of a tensor from `begin` to `end`.
INLINE void span_take(NormKernel c, const NormSpan &a, const char *row, bool known, const char *begin, const char *end, Vec *v) {
  const int in = norm_bytes(c);
  const char *from = row + (int64_t)span_column(c, a, 0) * in;
  int step = a.all * 16;
  if (!((uintptr_t)from & 15)) {
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = load16(from + k * step, known && span_has(a, k));
    return;
  }
  Around around[4];
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    around[k] = load_around(from + k * step, known && span_has(a, k) && is_around(from + k * step, begin, end));
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    v[k].v = take_around(around[k], from + k * step, in);
    if (known && span_has(a, k) && !is_around(from + k * step, begin, end))
      v[k].v = load_singly(from + k * step, begin, end, in);
  }
}

// Weights or biases are of the input's type and on 16 bytes: where a chunk has a part of such a block, it is whole.
INLINE bool span_plain(NormKernel c, const NormParams *p, const void *vector) {
  return vector && p->weight_kind == c.kind && !((uintptr_t)vector & 15);
}

INLINE Vec span_blocks(NormKernel c, const NormSpan &a, const void *vector, int k) {
  const char *from = (const char *)vector + (int64_t)span_column(c, a, k) * norm_bytes(c);
  uint32_t shift = (uint32_t)(uintptr_t)from & 15;
  Vec lo = load16_now(from - shift, span_has(a, k)), hi = load16_now(from - shift + 16, span_has(a, k) && shift), v;
  v.v = funnel(lo.v, hi.v, shift, norm_bytes(c));
  return v;
}

// Those of chunk k, which the thread has, as floats.
INLINE void span_vector(NormKernel c, const NormParams *p, const NormSpan &a, const void *vector, int k, float *f) {
  if (span_plain(c, p, vector)) {
    Vec v = span_blocks(c, a, vector, k);
    widen(&v, c.kind, norm_bytes(c), f);
  } else {
#pragma unroll
    for (int j = 0; j < 16 / norm_bytes(c); j++)
      f[j] = load_one(vector, span_column(c, a, k) + j, p->weight_kind == KIND_FP32 ? KIND_FP32 : c.kind);
  }
}

INLINE void span_store_raw(NormKernel c, const NormSpan &a, char *row, const Vec *v) {
  const int in = norm_bytes(c);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    char *to = row + (int64_t)span_column(c, a, k) * in;
    if (!span_has(a, k)) continue;
    if (!((uintptr_t)to & 15)) {
      *(uint4 *)to = v[k].v;
    } else {
#pragma unroll
      for (int j = 0; j < 16 / in; j++) {
        if (in == 4) ((uint32_t *)to)[j] = v[k].u[j];
        else ((uint16_t *)to)[j] = v[k].h[j];
      }
    }
  }
}

INLINE void span_put(NormKernel c, const NormParams *p, const NormSpan &a, char *y, const Vec *v, float mean,
                     float scale) {
  const int in = norm_bytes(c), per = 16 / in;
  float shift = scale * p->offset;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    float f[8], by[8], plus[8];
    if (!span_has(a, k)) continue;
    if (p->weight) span_vector(c, p, a, p->weight, k, by);
    if (c.op == NORM_LAYER && p->bias) span_vector(c, p, a, p->bias, k, plus);
    widen(&v[k], c.kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) {
      by[j] = p->weight ? fmaf(by[j], scale, shift) : scale;
      f[j] = c.op == NORM_LAYER ? fmaf(f[j] - mean, by[j], p->bias ? plus[j] : 0) : f[j] * by[j];
    }
    norm_store(c, p, y, span_column(c, a, k), f);
  }
}

// The row, and with two inputs their sum; what is to be written of it on the way.
INLINE void span_row(NormKernel c, const NormParams *p, const NormSpan &a, NormRow r, Vec *v) {
  int64_t last = c.op == NORM_EMBED ? p->vocab - 1 : (int64_t)p->m - 1, bytes = p->n * norm_bytes(c);
  const char *x = (const char *)p->x, *residual = (const char *)p->residual;
  span_take(c, a, r.x, r.known, x, x + last * p->x_stride + bytes, v);
  if (c.op == NORM_ADD) {
    Vec more[4];
    span_take(c, a, r.residual, true, residual, residual + last * p->residual_stride + bytes, more);
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = norm_add(c, v[k], more[k]);
  }
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && r.second)) span_store_raw(c, a, r.second, v);
}

#endif
