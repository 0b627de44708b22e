// Which elements of a row of any length, alignment and types a thread has, and their loads and stores.
//
// A chunk is `per` elements, 16 bytes of input. Thread t of the row's `all` has chunks t, t + all, ...
// NORM_SHIFTED: chunk 0 starts at the 16-byte boundary at or before the row's start, so that all accesses but those of
// the first and the last chunk are vectors. Outputs lie as the input does; what does not (weights, rows of a table) is
// loaded as the two vectors around it, and shifted.
#ifndef SOL_KERNELS_NORM_PLACE_CUH
#define SOL_KERNELS_NORM_PLACE_CUH

#include "norm.cuh"

// Columns of this thread. Those of chunk k: first + k * jump + j * step, where they are within lo..hi-1.
typedef struct NormPlace {
  uint64_t row;
  int thread;
  int first, jump, step, lo, hi, head;
  int64_t base; // columns before column 0: the tile's start
  bool vector;  // whole chunks are one access
} NormPlace;

INLINE int norm_out_bytes(NormKernel c, const NormParams *p) {
  return c.op == NORM_RMS_FP8 ? 1 : p->y_kind == KIND_FP32 ? 4 : 2;
}

INLINE NormPlace any_place(NormKernel c, const NormParams *p) {
  NormPlace s;
  int all = p->threads << p->cluster_bits, per = 16 / norm_bytes(c);
  s.row = ((block_index() >> p->cluster_bits) << p->row_bits) + (threadIdx.x >> p->thread_bits);
  s.thread = threadIdx.x & ((1 << p->thread_bits) - 1);
#if __CUDA_ARCH__ >= 900
  if (p->cluster_bits) s.thread += (int)cluster_rank() * p->threads;
#endif
  bool beside = p->layout == NORM_BESIDE;
  s.first = beside ? s.thread : s.thread * per, s.jump = all * per, s.step = beside ? all : 1;
  s.vector = p->layout == NORM_SHIFTED;
  s.lo = s.head = 0, s.base = 0;
  s.hi = s.row < p->m ? (int)min((int64_t)1 << 30, p->n) : 0;
  return s;
}

// Once the row's addresses are known: chunks from the boundary before it. Looked-up rows may lie in any way: there
// it is the output's.
INLINE void any_shift(NormKernel c, const NormParams *p, NormPlace *s, NormRow r) {
  if (p->layout != NORM_SHIFTED) return;
  const int in = norm_bytes(c);
  int out = norm_out_bytes(c, p);
  const char *anchor = c.op == NORM_EMBED ? r.second : r.x;
  if (anchor) s->head = (int)((uint32_t)(uintptr_t)anchor / in) & (16 / in - 1);
  else s->head = (int)((uint32_t)(uintptr_t)r.y / out) & (min(16 / in, 16 / out) - 1);
  s->first -= s->head;
}

INLINE int any_column(NormPlace s, int k) {
  return s.first + k * s.jump;
}

INLINE bool any_whole(NormKernel c, NormPlace s, int at) { // the chunk at column `at` is one access
  return s.vector && at >= s.lo && at + 16 / norm_bytes(c) <= s.hi;
}

INLINE bool any_inside(NormPlace s, int column) {
  return column >= s.lo && column < s.hi;
}

// ---- Loads and stores of one chunk

// One by one; what is outside the row is zero. Whole words are put together, never parts of them under a condition:
// where such parts were, the third word came out wrong on an H200 (and right on the emulator, from the same PTX).
INLINE Vec any_load_singly(NormKernel c, NormPlace s, const char *row, int at) {
  uint32_t u[4];
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (norm_bytes(c) == 4) {
      int i = at + j * s.step;
      u[j] = any_inside(s, i) ? ((const uint32_t *)row)[i] : 0;
    } else {
      int i = at + 2 * j * s.step, next = i + s.step;
      uint32_t low = any_inside(s, i) ? ((const uint16_t *)row)[i] : 0;
      uint32_t high = any_inside(s, next) ? ((const uint16_t *)row)[next] : 0;
      u[j] = low | high << 16;
    }
  }
  Vec v;
  v.v = make_uint4(u[0], u[1], u[2], u[3]);
  return v;
}

// 16 bytes that start anywhere: the aligned 16 around their first byte, and the next.
typedef struct Around {
  uint4 lo, hi;
} Around;

// Whether those lie within the vector that the chunk at column `at` is part of.
INLINE bool any_safe(NormKernel c, NormPlace s, const char *from, int at) {
  const int in = norm_bytes(c);
  int shift = (int)((uint32_t)(uintptr_t)from & 15) / in; // elements; of 32 bytes there are 32 / in
  bool inside = s.base + at >= shift && s.hi - at >= 32 / in - shift;
  return any_whole(c, s, at) && (!shift || inside);
}

INLINE Around any_fetch(NormKernel c, NormPlace s, const char *row, int at) {
  const char *from = row + (int64_t)at * norm_bytes(c), *aligned = from - ((uintptr_t)from & 15);
  bool safe = any_safe(c, s, from, at);
  Around a;
  a.lo = load16(aligned, safe).v;
  a.hi = load16(aligned + 16, safe && aligned != from).v;
  return a;
}

INLINE Vec any_join(NormKernel c, NormPlace s, const char *row, int at, Around a) {
  const char *from = row + (int64_t)at * norm_bytes(c);
  uint32_t shift = (uint32_t)(uintptr_t)from & 15;
  uint32_t w[8] = {a.lo.x, a.lo.y, a.lo.z, a.lo.w, a.hi.x, a.hi.y, a.hi.z, a.hi.w};
  if (!any_safe(c, s, from, at)) return any_load_singly(c, s, row, at);
  Vec v;
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
#pragma unroll
  for (int i = 0; i < 4; i++)
    v.u[i] = norm_bytes(c) == 4 ? w[i] : __funnelshift_r(w[i], w[i + 1], (shift & 3) * 8);
  return v;
}

// The tile's chunks of a row, in two steps: whole ones, then what is left. A table's rows may lie differently from the
// output's; the other inputs do not.
INLINE void any_load_whole(NormKernel c, NormPlace s, const char *row, Vec *v) {
  if (c.op == NORM_EMBED) return;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    int at = any_column(s, k);
    v[k] = load16(row + (int64_t)at * norm_bytes(c), any_whole(c, s, at));
  }
}

INLINE void any_load_rest(NormKernel c, NormPlace s, const char *row, Vec *v) {
  if (c.op == NORM_EMBED) {
    Around a[8];
#pragma unroll
    for (int k = 0; k < c.chunks; k++) a[k] = any_fetch(c, s, row, any_column(s, k));
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = any_join(c, s, row, any_column(s, k), a[k]);
    return;
  }
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    int at = any_column(s, k);
    if (!any_whole(c, s, at)) v[k] = any_load_singly(c, s, row, at);
  }
}

INLINE void any_load(NormKernel c, NormPlace s, const char *row, Vec *v) {
  any_load_whole(c, s, row, v);
  any_load_rest(c, s, row, v);
}

// The chunk as it is.
INLINE void any_store_raw(NormKernel c, NormPlace s, char *row, int at, Vec v) {
  const int in = norm_bytes(c);
  if (any_whole(c, s, at)) {
    *(uint4 *)(row + (int64_t)at * in) = v.v;
    return;
  }
#pragma unroll
  for (int j = 0; j < 16 / in; j++) {
    int i = at + j * s.step;
    if (!any_inside(s, i)) continue;
    if (in == 4) ((uint32_t *)row)[i] = v.u[j];
    else ((uint16_t *)row)[i] = v.h[j];
  }
}

#if __CUDA_ARCH__ >= 890
INLINE
#else
static __device__ __noinline__ // many instructions
#endif
uint32_t fp8_pair(float a, float b) {
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
}

// One by one.
INLINE void any_store_singly(NormKernel c, const NormParams *p, NormPlace s, char *row, int at, const float *f) {
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) {
    int i = at + j * s.step;
    if (!any_inside(s, i)) continue;
    if (c.op == NORM_RMS_FP8) row[i] = (char)fp8_pair(f[j], 0);
    else store_one(row, i, p->y_kind, f[j]);
  }
}

INLINE void any_store(NormKernel c, const NormParams *p, NormPlace s, char *row, int at, const float *f) {
  const int per = 16 / norm_bytes(c);
  if (!any_whole(c, s, at)) {
    any_store_singly(c, p, s, row, at, f);
  } else if (c.op == NORM_RMS_FP8) {
    uint32_t low = fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
    if (per == 4) *(uint32_t *)(row + at) = low;
    else *(uint2 *)(row + at) = make_uint2(low, fp8_pair(f[4], f[5]) | fp8_pair(f[6], f[7]) << 16);
  } else if (p->y_kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < per; j += 4)
      *(float4 *)((float *)row + at + j) = make_float4(f[j], f[j + 1], f[j + 2], f[j + 3]);
  } else {
    uint32_t u[4];
    if (p->y_kind == KIND_FP16)
#pragma unroll
      for (int j = 0; j < per; j += 2) u[j / 2] = narrow2(f[j], f[j + 1], KIND_FP16);
    else
#pragma unroll
      for (int j = 0; j < per; j += 2) u[j / 2] = narrow2(f[j], f[j + 1], KIND_BF16);
    if (per == 8) *(uint4 *)((uint16_t *)row + at) = make_uint4(u[0], u[1], u[2], u[3]);
    else *(uint2 *)((uint16_t *)row + at) = make_uint2(u[0], u[1]);
  }
}

// Columns of weight or bias as floats; `vector` is that of the tile's first column. Input's type, or fp32.
INLINE void any_vector(NormKernel c, const NormParams *p, NormPlace s, const char *vector, int at, float *f) {
  const int in = norm_bytes(c), per = 16 / in;
  if (p->weight_kind == c.kind) {
    Vec v = any_join(c, s, vector, at, any_fetch(c, s, vector, at));
    widen(&v, c.kind, in, f);
    return;
  }
  if (any_whole(c, s, at) && !((uintptr_t)(vector + (int64_t)at * 4) & 15)) {
#pragma unroll
    for (int j = 0; j < per; j += 4) *(float4 *)(f + j) = *(const float4 *)(vector + (int64_t)(at + j) * 4);
    return;
  }
#pragma unroll
  for (int j = 0; j < per; j++) {
    int i = at + j * s.step;
    f[j] = any_inside(s, i) ? ((const float *)vector)[i] : 0;
  }
}

// The same in two steps, for weights that are wanted early: what was loaded as it is, then as floats.
typedef struct NormWeights {
  Around a[4]; // of the input's type: for every chunk
} NormWeights;

INLINE void any_fetch_weights(NormKernel c, const NormParams *p, NormPlace s, const char *weight, NormWeights *early) {
  if (!weight || p->weight_kind != c.kind) return;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) early->a[k] = any_fetch(c, s, weight, any_column(s, k));
}

INLINE const char *any_tile(const NormParams *p, NormPlace s, const void *vector) { // NULL stays NULL
  return vector ? (const char *)vector + s.base * (p->weight_kind == KIND_FP32 ? 4 : 2) : nullptr;
}

// (weight + offset) * scale, or scale.
INLINE void any_weight(NormKernel c, const NormParams *p, NormPlace s, const char *weight, int at, float scale, float *f) {
  float shift = p->offset * scale;
  if (weight) any_vector(c, p, s, weight, at, f);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] = weight ? fmaf(f[j], scale, shift) : scale;
}

INLINE void any_join_weights(NormKernel c, const NormParams *p, NormPlace s, const char *weight,
                             const NormWeights *early, int k, float scale, float *f) {
  int at = any_column(s, k);
  if (!weight || p->weight_kind != c.kind) {
    any_weight(c, p, s, weight, at, scale, f);
    return;
  }
  Vec v = any_join(c, s, weight, at, early->a[k]);
  widen(&v, c.kind, norm_bytes(c), f);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] = fmaf(f[j], scale, p->offset * scale);
}

#endif
