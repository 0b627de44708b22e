// Which elements of a row a thread has, and their loads and stores, where rows are not whole aligned chunks of one type.
//
// A chunk is `per` elements, 16 bytes of input, four words; a word is one element of 4 bytes or two of 2. Of the row's
// `all` threads, thread t has chunks t, t + all, ..., their words next to each other.
// "Striped" kernels, for rows that start anywhere, have a warp-striped arrangement: a warp has some 128-byte lines of
// the output, and neighbouring lanes have neighbouring words of a line. Accesses are then coalesced whatever the
// alignment of the input and the weights, without shifts. Elements of 2 bytes at the row's ends may share their words
// with other rows: two threads take one of them each (`edge`).
#ifndef SOL_KERNELS_NORM_PLACE_CUH
#define SOL_KERNELS_NORM_PLACE_CUH

#include "norm.cuh"

// Columns of this thread: first + any_offset, where they are within lo..hi-1.
typedef struct NormPlace {
  uint64_t row;
  int thread;
  int first, jump, step, lo, hi, head;
  int64_t base; // columns before column 0: the tile's start
  int64_t edge; // striped: one more column of the row, without base, that this thread has; -1: none
  bool vector;  // whole chunks are one access
  bool all;     // striped: all words are known to be within the row
} NormPlace;

INLINE int norm_out_bytes(NormKernel c, const NormParams *p) {
  return c.op == NORM_RMS_FP8 ? 1 : p->y_kind == KIND_FP32 ? 4 : 2;
}

INLINE int norm_pair(NormKernel c) { // elements of a word
  return 4 / norm_bytes(c);
}

// Of element j of the thread's chunk k.
INLINE int any_offset(NormKernel c, NormPlace s, int k, int j) {
  return k * s.jump + j / norm_pair(c) * s.step + j % norm_pair(c);
}
INLINE int any_column(NormKernel c, NormPlace s, int k, int j) {
  return s.first + any_offset(c, s, k, j);
}

INLINE NormPlace any_place(NormKernel c, const NormParams *p) {
  NormPlace s;
  int all = p->threads << p->cluster_bits, per = 16 / norm_bytes(c), pair = norm_pair(c);
  s.row = ((block_index() >> p->cluster_bits) << p->row_bits) + (threadIdx.x >> p->thread_bits);
  s.thread = threadIdx.x & ((1 << p->thread_bits) - 1);
#if __CUDA_ARCH__ >= 900
  if (p->cluster_bits) s.thread += (int)cluster_rank() * p->threads;
#endif
  if (c.striped) { // rows that have fewer lanes than a warp are short: a chunk a thread
    int group = c.chunks == 1 ? min(p->threads, 32) : 32, lane = s.thread & (group - 1);
    s.step = group * pair, s.jump = 4 * s.step;
    s.first = (s.thread - lane) * (per * c.chunks) + lane * pair;
  } else {
    s.step = pair, s.jump = all * per, s.first = s.thread * per;
  }
  s.vector = !c.striped && p->layout == NORM_VECTORS;
  s.lo = s.head = 0, s.base = 0, s.edge = -1, s.all = false;
  s.hi = s.row < p->m ? (int)min((int64_t)1 << 30, p->n) : 0;
  return s;
}

// Columns of all threads of a row together.
INLINE int64_t any_span(NormKernel c, const NormParams *p) {
  return (int64_t)(p->threads << p->cluster_bits) * (16 / norm_bytes(c) * c.chunks);
}

// Once the row's addresses are known. Striped: columns count from the boundary at or before the output's start.
INLINE void any_shift(NormKernel c, const NormParams *p, NormPlace *s, NormRow r) {
  if (!c.striped) return;
  s->head = (int)((uint32_t)(uintptr_t)r.y / norm_out_bytes(c, p)) & (p->line - 1);
  s->first -= s->head;
  if (norm_pair(c) == 1 || !s->hi) return;
  int left = (p->threads << p->cluster_bits) - s->thread; // there are two threads at least
  if (left == 1 && s->head & 1) s->edge = 0;
  if (left == 2 && (s->head ^ (int)p->n) & 1) s->edge = p->n - 1;
}

INLINE bool any_whole(NormKernel c, NormPlace s, int k) { // chunk k is one access
  int at = any_column(c, s, k, 0);
  return s.vector && at >= s.lo && at + 16 / norm_bytes(c) <= s.hi;
}

INLINE bool any_inside(NormPlace s, int column) {
  return column >= s.lo && column < s.hi;
}

// Word j of chunk k is within the row. Offsets are constants where a warp has them: one comparison each.
INLINE bool any_has_word(NormKernel c, NormPlace s, int k, int j) {
  if (s.all) return true;
  int at = any_offset(c, s, k, j * norm_pair(c)), below = s.lo - s.first, end = s.hi - s.first - norm_pair(c);
  return at >= below && at <= end;
}

// Element j of chunk k is one that this thread has. Striped: by whole words.
INLINE bool any_has(NormKernel c, NormPlace s, int k, int j) {
  return c.striped ? any_has_word(c, s, k, j / norm_pair(c)) : any_inside(s, any_column(c, s, k, j));
}

// Striped: a row of the input's type is aligned so that it can be accessed by words. The same for all threads of the row.
INLINE bool any_by_words(NormKernel c, NormPlace s, const char *row) {
  return c.striped && (norm_pair(c) == 1 || !(((uint32_t)(uintptr_t)row + s.first * 2) & 2));
}

// ---- Loads and stores of one chunk

// One by one; what is outside the row is zero. Whole words are put together, never parts of them under a condition:
// where such parts were, the third word came out wrong on an H200 (and right on the emulator, from the same PTX).
INLINE Vec any_load_singly(NormKernel c, NormPlace s, const char *row, int k) {
  uint32_t u[4];
  row += (int64_t)s.first * norm_bytes(c);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int i = any_offset(c, s, k, j * norm_pair(c));
    if (norm_bytes(c) == 4) {
      u[j] = any_has(c, s, k, j) ? ((const uint32_t *)row)[i] : 0;
    } else {
      uint32_t low = any_has(c, s, k, 2 * j) ? ((const uint16_t *)row)[i] : 0;
      uint32_t high = any_has(c, s, k, 2 * j + 1) ? ((const uint16_t *)row)[i + 1] : 0;
      u[j] = low | high << 16;
    }
  }
  Vec v;
  v.v = make_uint4(u[0], u[1], u[2], u[3]);
  return v;
}

INLINE Vec any_load_words(NormKernel c, NormPlace s, const char *row, int k) {
  uint32_t u[4];
  row += (int64_t)s.first * norm_bytes(c);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int i = any_offset(c, s, k, j * norm_pair(c));
    u[j] = any_has_word(c, s, k, j) ? *(const uint32_t *)(row + i * norm_bytes(c)) : 0;
  }
  Vec v;
  v.v = make_uint4(u[0], u[1], u[2], u[3]);
  return v;
}

// The tile's chunks of a row of the input's type, in two steps: what is one access, then what is left.
INLINE void any_load_whole(NormKernel c, NormPlace s, const char *row, Vec *v) {
  if (c.striped) {
    if (any_by_words(c, s, row))
#pragma unroll
      for (int k = 0; k < c.chunks; k++) v[k] = any_load_words(c, s, row, k);
    return;
  }
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    v[k] = load16(row + (int64_t)any_column(c, s, k, 0) * norm_bytes(c), any_whole(c, s, k));
}

INLINE void any_load_rest(NormKernel c, NormPlace s, const char *row, Vec *v) {
  if (any_by_words(c, s, row)) return;
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (!any_whole(c, s, k)) v[k] = any_load_singly(c, s, row, k);
}

INLINE void any_load(NormKernel c, NormPlace s, const char *row, Vec *v) {
  any_load_whole(c, s, row, v);
  any_load_rest(c, s, row, v);
}

INLINE void any_store_words(NormKernel c, NormPlace s, char *row, int k, Vec v) {
  row += (int64_t)s.first * norm_bytes(c);
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (any_has_word(c, s, k, j)) *(uint32_t *)(row + any_offset(c, s, k, j * norm_pair(c)) * norm_bytes(c)) = v.u[j];
}

// The chunks as they are.
INLINE void any_store_raw(NormKernel c, NormPlace s, char *row, const Vec *v) {
  const int in = norm_bytes(c);
  bool words = any_by_words(c, s, row);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (any_whole(c, s, k)) {
      *(uint4 *)(row + (int64_t)any_column(c, s, k, 0) * in) = v[k].v;
    } else if (words) {
      any_store_words(c, s, row, k, v[k]);
    } else {
#pragma unroll
      for (int j = 0; j < 16 / in; j++) {
        if (!any_has(c, s, k, j)) continue;
        if (in == 4) ((uint32_t *)row)[any_column(c, s, k, j)] = v[k].u[j];
        else ((uint16_t *)row)[any_column(c, s, k, j)] = v[k].h[j];
      }
    }
  }
}

INLINE void any_store_one(NormKernel c, const NormParams *p, char *row, int64_t i, float f) {
  if (c.op == NORM_RMS_FP8) row[i] = (char)fp8_pair(f, 0);
  else store_one(row, i, p->y_kind, f);
}

// Two elements, aligned to their size together. Striped kernels' outputs always are.
INLINE void any_store_pair(NormKernel c, const NormParams *p, char *row, int at, float a, float b) {
  if (c.op == NORM_RMS_FP8) *(uint16_t *)(row + at) = (uint16_t)fp8_pair(a, b);
  else if (p->y_kind == KIND_FP32) *(float2 *)(row + (int64_t)at * 4) = make_float2(a, b);
  else *(uint32_t *)(row + (int64_t)at * 2) = p->y_kind == KIND_FP16 ? narrow2(a, b, KIND_FP16) : narrow2(a, b, KIND_BF16);
}

INLINE void any_store(NormKernel c, const NormParams *p, NormPlace s, char *row, int k, const float *f) {
  const int per = 16 / norm_bytes(c);
  int at = any_column(c, s, k, 0);
  if (c.striped && p->y_kind == c.kind) {
    Vec v;
    narrow(&v, c.kind, norm_bytes(c), f);
    any_store_words(c, s, row, k, v);
  } else if (c.striped && norm_pair(c) == 2) {
#pragma unroll
    for (int j = 0; j < 8; j += 2)
      if (any_has_word(c, s, k, j / 2)) any_store_pair(c, p, row, any_column(c, s, k, j), f[j], f[j + 1]);
  } else if (!any_whole(c, s, k)) {
#pragma unroll
    for (int j = 0; j < per; j++)
      if (any_has(c, s, k, j)) any_store_one(c, p, row, any_column(c, s, k, j), f[j]);
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

// ---- Weight and bias: of the input's type, or fp32

INLINE const char *any_tile(const NormParams *p, NormPlace s, const void *vector) { // NULL stays NULL
  return vector ? (const char *)vector + s.base * (p->weight_kind == KIND_FP32 ? 4 : 2) : nullptr;
}

// Chunk k of either as floats; `vector` is that of the tile's first column.
INLINE void any_vector(NormKernel c, const NormParams *p, NormPlace s, const char *vector, int k, float *f) {
  const int in = norm_bytes(c), per = 16 / in;
  int at = any_column(c, s, k, 0);
  if (p->weight_kind == c.kind) {
    Vec v;
    if (any_by_words(c, s, vector)) v = any_load_words(c, s, vector, k);
    else if (any_whole(c, s, k)) v = load16(vector + (int64_t)at * in, true);
    else v = any_load_singly(c, s, vector, k);
    widen(&v, c.kind, in, f);
  } else if (any_whole(c, s, k)) {
#pragma unroll
    for (int j = 0; j < per; j += 4) *(float4 *)(f + j) = *(const float4 *)(vector + (int64_t)(at + j) * 4);
  } else {
#pragma unroll
    for (int j = 0; j < per; j++)
      f[j] = any_has(c, s, k, j) ? ((const float *)vector)[any_column(c, s, k, j)] : 0;
  }
}

// (weight + offset) * scale, or scale. early: the weight as it was loaded before, or NULL.
INLINE void any_weight(NormKernel c, const NormParams *p, NormPlace s, const char *weight, int k, const Vec *early,
                       float scale, float *f) {
  float shift = p->offset * scale;
  if (early && p->weight_kind == c.kind) widen(&early[k], c.kind, norm_bytes(c), f);
  else if (weight) any_vector(c, p, s, weight, k, f);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] = weight ? fmaf(f[j], scale, shift) : scale;
}

#endif
