// Row normalisations of short rows of any length, alignment and types. A block has some rows in shared memory (narrow.cuh), from where some lanes take each
// into registers and back. Two elements of 2 bytes that share a word are one access. A thread's rows all start alike: it has their columns' weights and biases in registers.
#ifndef SOL_KERNELS_NORM_NARROW_CUH
#define SOL_KERNELS_NORM_NARROW_CUH

#include "narrow.cuh"
#include "norm_fp8.cuh"

enum { NARROW_WORDS = 8 }; // that a lane has at most

// What a block has of the tensors.
typedef struct NormTiles {
  NarrowTile x, residual, y, second;
  int rows;
  Fp8Scale q; // fp8 by tensor
} NormTiles;

INLINE int narrow_size(int kind) { // of an element
  return kind == KIND_FP8 ? 1 : kind == KIND_FP32 ? 4 : 2;
}
INLINE int narrow_y_size(NormKernel c, const NormParams *p) { return c.op == NORM_RMS_FP8 ? 1 : narrow_size(p->y_kind); }

INLINE NormTiles narrow_tiles(NormKernel c, const NormParams *p) {
  const int in = norm_bytes(c);
  NormTiles t;
  t.rows = narrow_rows(&p->narrow, p->m);
  t.x = narrow_tile(&p->narrow, NARROW_X, c.op == NORM_EMBED ? nullptr : p->x, p->x_stride, in, t.rows);
  t.residual = narrow_tile(&p->narrow, NARROW_RESIDUAL, p->residual, p->residual_stride, in, t.rows);
  t.second = narrow_tile(&p->narrow, NARROW_SECOND, p->second, p->second_stride, in, t.rows);
  t.y = narrow_tile(&p->narrow, NARROW_Y, p->y, p->y_stride, narrow_y_size(c, p), t.rows);
  t.q.up = t.q.over = 1;
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) t.q = fp8_scale(*p->scales);
  return t;
}

// ---- In and out of shared memory

// Rows of a tensor from `begin` to `end` that are apart, one by one: some lanes start to copy the 16 bytes that a row has parts of, with what is
// beside the row. NULL: zeros.
INLINE void narrow_fetch_one(const NormParams *p, const NarrowTile &t, int row, const char *from, const char *begin, const char *end,
                             int size) {
  int lanes = 1 << p->how.copy_bits, lane = threadIdx.x & (lanes - 1), shift = (int)((uint32_t)(uintptr_t)from & 15);
  int bytes = (shift + t.bytes + 15) & ~15;
  const char *at = from - shift;
  char *to = narrow_memory + t.place + row * t.pitch;
  if (from && at >= begin && at + bytes <= end) {
    for (int i = lane * 16; i < bytes; i += lanes * 16) fetch16(to + i, at + i);
  } else {
    for (int i = lane * 16; i < bytes; i += lanes * 16)
      *(uint4 *)(to + i) = from ? load_singly(at + i, begin, end, size) : make_uint4(0, 0, 0, 0);
  }
}

INLINE void narrow_fetch_rows(const NormParams *p, const NarrowTile &t, const void *tensor, int size) {
  if (!t.apart) {
    narrow_fetch(t, size);
    return;
  }
  const char *begin = (const char *)tensor, *end = begin + ((int64_t)p->m - 1) * t.stride + t.bytes;
#pragma unroll 2
  for (int row = threadIdx.x >> p->how.copy_bits; row < t.rows; row += blockDim.x >> p->how.copy_bits)
    narrow_fetch_one(p, t, row, t.at + row * t.stride, begin, end, size);
}

// A row's whole 16 bytes, and what is before and after them by pieces that all of its rows' starts and lengths are multiples of.
INLINE void narrow_send_one(const NormParams *p, const NarrowTile &t, int row, int piece) {
  int lanes = 1 << p->how.copy_bits, lane = threadIdx.x & (lanes - 1);
  char *to = t.at + row * t.stride;
  const char *from = narrow_row(t, row);
  int head = min((int)(-(uint32_t)(uintptr_t)to & 15), t.bytes), body = (t.bytes - head) & ~15;
  for (int i = head + lane * 16; i < head + body; i += lanes * 16) *(uint4 *)(to + i) = *(const uint4 *)(from + i);
  for (int i = lane * piece; i < head; i += lanes * piece) move_one(to + i, from + i, piece);
  for (int i = head + body + lane * piece; i < t.bytes; i += lanes * piece) move_one(to + i, from + i, piece);
}

INLINE void narrow_send_rows(const NormParams *p, const NarrowTile &t, int which, int size) {
  if (!t.apart) {
    narrow_send(t, size);
    return;
  }
#pragma unroll 2
  for (int row = threadIdx.x >> p->how.copy_bits; row < t.rows; row += blockDim.x >> p->how.copy_bits)
    narrow_send_one(p, t, row, p->how.piece[which]);
}

INLINE float narrow_weight(const NormParams *p, int column, int kind) {
  return p->weight ? load_one(p->weight, column, p->weight_kind == KIND_FP32 ? KIND_FP32 : kind) + p->offset : 1;
}
INLINE float narrow_bias(const NormParams *p, int column, int kind) {
  return p->bias ? load_one(p->bias, column, p->weight_kind == KIND_FP32 ? KIND_FP32 : kind) : 0;
}

// The table's rows that the block's ids name, in shared memory beside the tiles; NULL: there is none. After a barrier.
INLINE const char **narrow_ids(const NormParams *p) { return (const char **)(narrow_memory + p->narrow.place[NARROW_IDS]); }

INLINE void narrow_load_ids(NormKernel c, const NormParams *p, int rows) {
  uint64_t first = block_index() * p->narrow.rows;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    NormRow r = norm_row(c, p, first + row, true);
    narrow_ids(p)[row] = r.known ? r.x : nullptr;
  }
  __syncthreads();
}

INLINE void narrow_look_up(NormKernel c, const NormParams *p, const NarrowTile &t) {
  const char *begin = (const char *)p->x, *end = begin + (p->vocab - 1) * p->x_stride + t.bytes;
  narrow_load_ids(c, p, t.rows);
#pragma unroll 4
  for (int row = threadIdx.x >> p->how.copy_bits; row < t.rows; row += blockDim.x >> p->how.copy_bits)
    narrow_fetch_one(p, t, row, narrow_ids(p)[row], begin, end, norm_bytes(c));
}

// ---- One row

INLINE float2 word_floats(NormKernel c, uint32_t u) {
  return norm_bytes(c) == 4 ? make_float2(__uint_as_float(u), 0) : widen2(u, c.kind);
}
INLINE uint32_t word_of(NormKernel c, float2 f) { return norm_bytes(c) == 4 ? __float_as_uint(f.x) : narrow2(f.x, f.y, c.kind); }

// A row in shared memory.
typedef struct NarrowRows {
  char *x, *residual, *y, *second;
} NarrowRows;

INLINE NarrowRows narrow_at(NormKernel c, const NormParams *p, const NormTiles *t, int row) {
  NarrowRows r;
  r.x = c.op == NORM_EMBED ? narrow_row(t->x, row, narrow_ids(p)[row]) : narrow_row(t->x, row);
  r.residual = c.op == NORM_ADD ? narrow_row(t->residual, row) : nullptr;
  r.second = c.op == NORM_ADD || c.op == NORM_EMBED ? narrow_row(t->second, row) : nullptr;
  r.y = narrow_row(t->y, row);
  return r;
}

// Whether a row's first element is the second of a word: of x, or of y where rows of x are looked up. Alike for rows that are an even number apart.
INLINE int narrow_head(NormKernel c, const NormParams *p, const NormTiles *t, int row) {
  if (norm_bytes(c) == 4 || (c.op == NORM_EMBED && p->y_kind == KIND_FP32)) return 0;
  const NarrowTile &of = c.op == NORM_EMBED ? t->y : t->x;
  return (int)((uint32_t)(uintptr_t)(of.at + row * of.stride) >> 1 & 1);
}

// What a lane has of each of its rows: words `lanes` apart, the first at `column`. Elements of 2 bytes: two are a word. The row's first and last element may share
// theirs with other rows.
typedef struct NarrowLane {
  int column, step, count; // column: -1 where the word starts before the row
  bool lead, single;       // the first word's first element is not the row's; nor is the last word's second
} NarrowLane;

// Whether an element of word k is the row's: a lane has `words` words, or up to two less.
INLINE bool lane_has(const NarrowLane &a, int k, int words, int second) {
  if (k == 0 && !second && a.lead) return false;
  return k < words - 2 || (k < a.count && !(second && a.single && k == a.count - 1));
}

// head: the row's first element is the second of a word.
INLINE NarrowLane narrow_lane(NormKernel c, const NormParams *p, int head, int lane) {
  const int per = 4 / norm_bytes(c);
  int n = p->narrow.n, all = (n + head + per - 1) / per;
  NarrowLane a;
  a.column = lane * per - head, a.step = per << p->narrow.lane_bits;
  a.lead = head && lane == 0;
  a.count = (all - lane + (1 << p->narrow.lane_bits) - 1) >> p->narrow.lane_bits;
  a.single = per == 2 && (n + head) & 1 && ((all - 1 - lane) & ((1 << p->narrow.lane_bits) - 1)) == 0;
  return a;
}

// Two elements from `column` on, of which some may not be the row's. words: they are a word in shared memory.
INLINE uint32_t lane_take(NormKernel c, const char *row, int column, bool first, bool second, bool words) {
  if (norm_bytes(c) == 4) return first ? ((const uint32_t *)row)[column] : 0;
  if (words && first && second) return *(const uint32_t *)(row + column * 2);
  const uint16_t *at = (const uint16_t *)row + column;
  return (first ? at[0] : 0) | (uint32_t)(second ? at[1] : 0) << 16;
}
INLINE void lane_give(NormKernel c, char *row, int column, bool first, bool second, bool words, uint32_t u) {
  if (norm_bytes(c) == 4) {
    if (first) ((uint32_t *)row)[column] = u;
  } else if (words && first && second) {
    *(uint32_t *)(row + column * 2) = u;
  } else {
    if (first) ((uint16_t *)row)[column] = (uint16_t)u;
    if (second) ((uint16_t *)row)[column + 1] = (uint16_t)(u >> 16);
  }
}

// Results. words: in x's type, or fp8, and words where x has words.
INLINE void lane_result(NormKernel c, const NormParams *p, char *y, int column, bool first, bool second, bool words, float2 f) {
  if (c.op == NORM_RMS_FP8 && words && first && second) {
    *(uint16_t *)(y + column) = (uint16_t)fp8_pair(f.x, f.y);
  } else if (c.op != NORM_RMS_FP8 && words) {
    lane_give(c, y, column, first, second, true, word_of(c, f));
  } else {
    int kind = c.op == NORM_RMS_FP8 ? KIND_FP8 : p->y_kind;
    if (first) store_one(y, column, kind, f.x);
    if (second && norm_bytes(c) == 2) store_one(y, column + 1, kind, f.y);
  }
}

INLINE float some_lanes_sum(float v, int lanes) { // lanes: known at run time
  for (int o = lanes >> 1; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
INLINE float some_lanes_highest(float v, int lanes) {
  for (int o = lanes >> 1; o; o >>= 1) v = higher(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

// Of the row: mean, 1 / deviation, largest.
typedef struct NarrowRow {
  float mean, scale;
  Fp8Scale q;
} NarrowRow;

INLINE float narrow_result(NormKernel c, const NormParams *p, const NarrowRow &r, float weight, float bias, float f) {
  if (c.op == NORM_LAYER) return fmaf(f - r.mean, weight * r.scale, bias);
  if (c.op != NORM_RMS_FP8) return f * (weight * r.scale);
  f *= weight;
  if (p->scaling != NORM_SCALE_ROW) f *= r.scale;
  return f * r.q.up * r.q.over;
}

// Words of a lane in registers, as floats; elements that are not the row's are 0.
typedef struct NarrowHeld {
  float2 f[NARROW_WORDS], w[NARROW_WORDS], b[NARROW_WORDS];
} NarrowHeld;

// Weights and biases of its columns: its rows all start alike.
INLINE void held_vectors(NormKernel c, const NormParams *p, const NarrowLane &a, int words, NarrowHeld *h) {
#pragma unroll
  for (int k = 0; k < words; k++) {
    bool first = lane_has(a, k, words, 0), second = norm_bytes(c) == 2 && lane_has(a, k, words, 1);
    int column = a.column + k * a.step;
    h->w[k] = make_float2(first ? narrow_weight(p, column, c.kind) : 0, second ? narrow_weight(p, column + 1, c.kind) : 0);
    h->b[k] = make_float2(0, 0);
    if (c.op == NORM_LAYER) h->b[k] = make_float2(first ? narrow_bias(p, column, c.kind) : 0, second ? narrow_bias(p, column + 1, c.kind) : 0);
  }
}

// Takes a row; sums of two inputs, rounded to the type, and looked-up elements are written on the way.
INLINE void held_take(NormKernel c, const NormParams *p, const NarrowLane &a, const NarrowRows &r, int words, bool plain, NarrowHeld *h) {
  uint32_t u[NARROW_WORDS], v[NARROW_WORDS];
#pragma unroll
  for (int k = 0; k < words; k++) {
    bool first = lane_has(a, k, words, 0), second = norm_bytes(c) == 2 && lane_has(a, k, words, 1);
    u[k] = lane_take(c, r.x, a.column + k * a.step, first, second, c.op != NORM_EMBED || plain);
    v[k] = c.op == NORM_ADD ? lane_take(c, r.residual, a.column + k * a.step, first, second, plain) : 0;
  }
#pragma unroll
  for (int k = 0; k < words; k++) {
    bool first = lane_has(a, k, words, 0), second = norm_bytes(c) == 2 && lane_has(a, k, words, 1);
    float2 f = word_floats(c, u[k]);
    if (c.op == NORM_ADD) {
      float2 g = word_floats(c, v[k]);
      u[k] = word_of(c, make_float2(f.x + g.x, f.y + g.y));
      f = word_floats(c, u[k]);
    }
    if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) lane_give(c, r.second, a.column + k * a.step, first, second, plain, u[k]);
    h->f[k] = make_float2(first ? f.x : 0, second ? f.y : 0);
  }
}

// Elements become what they are from the row's mean. The sum is of what they are from one of them: where they are close to each other, that is exact.
INLINE void held_center(NormKernel c, const NormParams *p, const NarrowLane &a, int words, int lanes, NarrowHeld *h) {
  float base = __shfl_sync(~0u, a.lead ? h->f[0].y : h->f[0].x, threadIdx.x % 32 & -lanes), sum = 0, more = 0;
#pragma unroll
  for (int k = 0; k < words; k++) {
    h->f[k].x = lane_has(a, k, words, 0) ? h->f[k].x - base : 0, sum += h->f[k].x;
    if (norm_bytes(c) == 2) h->f[k].y = lane_has(a, k, words, 1) ? h->f[k].y - base : 0, more += h->f[k].y;
  }
  float mean = some_lanes_sum(sum + more, lanes) * p->over_n;
#pragma unroll
  for (int k = 0; k < words; k++) {
    h->f[k].x = lane_has(a, k, words, 0) ? h->f[k].x - mean : 0;
    if (norm_bytes(c) == 2) h->f[k].y = lane_has(a, k, words, 1) ? h->f[k].y - mean : 0;
  }
}

INLINE NarrowRow held_whole(NormKernel c, const NormParams *p, int words, int lanes, Fp8Scale q, uint64_t row, bool first, const NarrowHeld *h) {
  float2 squares = make_float2(0, 0);
  float top = 0;
#pragma unroll
  for (int k = 0; k < words; k++) {
    squares.x = fmaf(h->f[k].x, h->f[k].x, squares.x), squares.y = fmaf(h->f[k].y, h->f[k].y, squares.y);
    if (c.op == NORM_RMS_FP8) top = higher(top, higher(fabsf(h->f[k].x * h->w[k].x), fabsf(h->f[k].y * h->w[k].y)));
  }
  NarrowRow r = {0, 0, q};
  r.scale = rsqrtf(fmaf(some_lanes_sum(squares.x + squares.y, lanes), p->over_n, p->eps));
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW) r.q = fp8_choose(some_lanes_highest(top, lanes), r.scale, p->scales + row, first);
  return r;
}

// All rows of the block. words: a literal.
INLINE void narrow_turns(NormKernel c, const NormParams *p, const NormTiles *t, int words, bool plain) {
  uint64_t first = block_index() * p->narrow.rows;
  int lanes = 1 << p->narrow.lane_bits, lane = threadIdx.x & (lanes - 1), row = (int)(threadIdx.x >> p->narrow.lane_bits);
  NarrowHeld h;
  NarrowRows r = narrow_at(c, p, t, 0);
  NarrowLane a = narrow_lane(c, p, narrow_head(c, p, t, row), lane);
  held_vectors(c, p, a, words, &h);
#pragma unroll
  for (int k = 0; k < words; k++) h.f[k] = make_float2(0, 0);
  narrow_arrived();
#pragma unroll 1
  for (int at = 0; at < t->rows; at += NARROW_THREADS >> p->narrow.lane_bits) {
    bool there = at + row < t->rows;
    if (there) r = narrow_at(c, p, t, at + row), held_take(c, p, a, r, words, plain, &h); // otherwise the row before is there still: nothing of it is written
    if (c.op == NORM_LAYER) held_center(c, p, a, words, lanes, &h);
    NarrowRow whole = held_whole(c, p, words, lanes, t->q, first + at + row, there && lane == 0, &h);
#pragma unroll
    for (int k = 0; k < words; k++) {
      float2 f = h.f[k];
      f.x = narrow_result(c, p, whole, h.w[k].x, h.b[k].x, f.x);
      if (norm_bytes(c) == 2) f.y = narrow_result(c, p, whole, h.w[k].y, h.b[k].y, f.y);
      lane_result(c, p, r.y, a.column + k * a.step, there && lane_has(a, k, words, 0), there && norm_bytes(c) == 2 && lane_has(a, k, words, 1), plain, f);
    }
  }
}

// ---- Rows of a few elements: one lane has all of a row in registers, without the loops

enum { NARROW_FEW = 8 };
// What elements are from their mean. The mean is rounded, and where elements are close to each other that shows: what is left of their sum is taken off, too.
INLINE void narrow_center(float *f, int n, float mean, float over_n) {
  float rest = 0;
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++) f[k] = k < n ? f[k] - mean : 0, rest += f[k];
  rest *= over_n;
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++) f[k] = k < n ? f[k] - rest : 0;
}

INLINE void narrow_few_row(NormKernel c, const NormParams *p, const NormTiles *t, const NarrowRows &s, uint64_t row, const float *w, const float *b) {
  int n = p->narrow.n;
  float f[NARROW_FEW], sum = 0, squares = 0, top = 0;
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++) {
    f[k] = k < n ? load_one(s.x, k, c.kind) : 0;
    if (c.op == NORM_ADD && k < n) {
      f[k] += load_one(s.residual, k, c.kind);
      uint16_t half = norm_bytes(c) == 2 ? narrow_one(f[k], c.kind) : 0;
      if (norm_bytes(c) == 2) f[k] = load_one(&half, 0, c.kind);
    }
    if (k < n && (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second))) store_one(s.second, k, c.kind, f[k]);
    sum += f[k];
  }
  NarrowRow r = {0, 0, t->q};
  if (c.op == NORM_LAYER) narrow_center(f, n, sum * p->over_n, p->over_n);
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++) {
    squares = fmaf(f[k], f[k], squares);
    if (c.op == NORM_RMS_FP8) top = higher(top, fabsf(f[k] * w[k]));
  }
  r.scale = rsqrtf(fmaf(squares, p->over_n, p->eps));
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW) r.q = fp8_choose(top, r.scale, p->scales + row, true);
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++)
    if (k < n) store_one(s.y, k, c.op == NORM_RMS_FP8 ? KIND_FP8 : p->y_kind, narrow_result(c, p, r, w[k], b[k], f[k]));
}

INLINE void narrow_few(NormKernel c, const NormParams *p, const NormTiles *t) {
  float w[NARROW_FEW], b[NARROW_FEW];
#pragma unroll
  for (int k = 0; k < NARROW_FEW; k++) {
    w[k] = k < p->narrow.n ? narrow_weight(p, k, c.kind) : 0;
    b[k] = c.op == NORM_LAYER && k < p->narrow.n ? narrow_bias(p, k, c.kind) : 0;
  }
  narrow_arrived();
#pragma unroll 1
  for (int row = threadIdx.x; row < t->rows; row += NARROW_THREADS)
    narrow_few_row(c, p, t, narrow_at(c, p, t, row), block_index() * p->narrow.rows + row, w, b);
}

// Starts to bring the block's rows into shared memory; and what was made of them back.
INLINE void narrow_begin(NormKernel c, const NormParams *p, const NormTiles *t) {
  if (c.op == NORM_EMBED) narrow_look_up(c, p, t->x);
  else narrow_fetch_rows(p, t->x, p->x, norm_bytes(c));
  if (c.op == NORM_ADD) narrow_fetch_rows(p, t->residual, p->residual, norm_bytes(c));
}
INLINE void narrow_end(NormKernel c, const NormParams *p, const NormTiles *t) {
  __syncthreads();
  narrow_send_rows(p, t->y, NARROW_Y, narrow_y_size(c, p));
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) narrow_send_rows(p, t->second, NARROW_SECOND, norm_bytes(c));
}

INLINE void norm_narrow(NormKernel c, const NormParams *p) {
  begin_kernel();
  NormTiles t = narrow_tiles(c, p);
  narrow_begin(c, p, &t);
  bool plain = p->how.plain;
  if (p->narrow.n <= NARROW_FEW) narrow_few(c, p, &t);
  else if (p->narrow.each == 6) narrow_turns(c, p, &t, 6, plain);
  else narrow_turns(c, p, &t, 8, plain);
  narrow_end(c, p, &t);
}

#endif
