// Row normalisations of short rows of any length, alignment and types. A block has some rows in shared memory (narrow.cuh), and so has it
// weights and biases, as floats. Some lanes visit each row twice: for its sums, and for what is written. Two elements of 2 bytes that share a word of x are
// one access; the row's first and last element may share theirs with other rows, and are taken singly.
#ifndef SOL_KERNELS_NORM_NARROW_CUH
#define SOL_KERNELS_NORM_NARROW_CUH

#include "few.cuh"
#include "norm_fp8.cuh"

enum { NARROW_BATCH = 4 }; // words that a lane loads at a time
enum { NARROW_NEAR = 4 << 20 }; // bytes of a small table

// What a block has of the tensors.
typedef struct NormTiles {
  NarrowTile x, residual, y, second;
  const float *weight, *bias; // offset included
  int rows;
  Fp8Scale q; // fp8 by tensor
} NormTiles;

INLINE int narrow_size(int kind) { // of an element
  return kind == KIND_FP8 ? 1 : kind == KIND_FP32 ? 4 : 2;
}
INLINE int narrow_y_size(NormKernel c, const NormParams *p) { return c.op == NORM_RMS_FP8 ? 1 : narrow_size(p->y_kind); }

// Weights and biases are there twice where two elements are a word, once on 8 bytes and once beside: two neighbours are one access wherever the row starts.
INLINE int narrow_copies(NormKernel c) { return 4 / norm_bytes(c); }

INLINE NormTiles narrow_tiles(NormKernel c, const NormParams *p) {
  const int in = norm_bytes(c);
  NormTiles t;
  t.rows = narrow_rows(&p->narrow, p->m);
  t.x = narrow_tile(&p->narrow, NARROW_X, c.op == NORM_EMBED ? nullptr : p->x, p->x_stride, in, t.rows);
  t.residual = narrow_tile(&p->narrow, NARROW_RESIDUAL, p->residual, p->residual_stride, in, t.rows);
  t.second = narrow_tile(&p->narrow, NARROW_SECOND, p->second, p->second_stride, in, t.rows);
  t.y = narrow_tile(&p->narrow, NARROW_Y, p->y, p->y_stride, narrow_y_size(c, p), t.rows);
  t.weight = (const float *)(narrow_memory + p->how.vectors);
  t.bias = t.weight + narrow_copies(c) * (p->narrow.n | 1);
  t.q.up = t.q.over = 1;
  return t;
}

// ---- In and out of shared memory

// Rows of a tensor from `begin` to `end` that are apart, one by one: some lanes start to copy the 16 bytes that a row has parts of, with what is
// beside the row. NULL: zeros. near: through L1.
INLINE void narrow_fetch_one(bool near, const NormParams *p, const NarrowTile &t, int row, const char *from, const char *begin, const char *end,
                             int size) {
  int lanes = 1 << p->how.copy_bits, lane = threadIdx.x & (lanes - 1), shift = (int)((uint32_t)(uintptr_t)from & 15);
  int bytes = (shift + t.bytes + 15) & ~15;
  const char *at = from - shift;
  char *to = narrow_memory + t.place + row * t.pitch;
  if (from && at >= begin && at + bytes <= end) {
    for (int i = lane * 16; i < bytes; i += lanes * 16) near ? fetch16<true>(to + i, at + i) : fetch16(to + i, at + i);
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
    narrow_fetch_one(false, p, t, row, t.at + row * t.stride, begin, end, size);
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

// Short rows, a piece a lane: all that a row has of a sector is written by one store.
INLINE void narrow_send_pieces(const NarrowTile &t, int pieces, int piece) {
  int bits = 32 - __clz(pieces - 1), at = (threadIdx.x & ((1 << bits) - 1)) * piece; // 2^bits lanes have a row
  int step = NARROW_THREADS >> bits, row = threadIdx.x >> bits;
  if (at >= t.bytes) return;
  char *to = t.at + row * t.stride + at;
#pragma unroll 2
  for (; row < t.rows; row += step, to += step * t.stride) move_one(to, narrow_row(t, row, to - at) + at, piece);
}

INLINE void narrow_send_rows(const NormParams *p, const NarrowTile &t, int which, int size) {
  if (!t.apart) {
    narrow_send(t, size);
    return;
  }
  const int few = 64; // bytes: less than three sectors
  int piece = p->how.piece[which], pieces = t.bytes / piece;
  bool whole = (((uint32_t)(uintptr_t)t.at | (uint32_t)t.stride | t.bytes) & 15) == 0; // 16 bytes
  if (t.bytes < few && pieces <= 32 && !whole) {
    narrow_send_pieces(t, pieces, piece);
    return;
  }
#pragma unroll 2
  for (int row = threadIdx.x >> p->how.copy_bits; row < t.rows; row += blockDim.x >> p->how.copy_bits)
    narrow_send_one(p, t, row, p->how.piece[which]);
}

// An element of a vector of weights or biases as it is stored; nothing waits for it here.
INLINE uint32_t vector_load(const void *vector, int i, int n, int kind) {
  if (!vector || i >= n) return 0;
  return kind == KIND_FP32 ? ((const uint32_t *)vector)[i] : ((const uint16_t *)vector)[i];
}

INLINE float vector_float(uint32_t u, int kind) {
  if (kind == KIND_FP32) return __uint_as_float(u);
  return kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)u)) : __uint_as_float(u << 16);
}

// first: this thread's first element, which was loaded before the rows were asked for. Of the others some are loaded before any is stored.
INLINE void narrow_fill_vector(NormKernel c, float *to, const void *vector, uint32_t first, int kind, int n, float none, float plus) {
  const int batch = 4;
  for (int i = threadIdx.x; i < n; i += batch * NARROW_THREADS) {
    uint32_t u[batch];
#pragma unroll
    for (int k = 0; k < batch; k++) u[k] = i < NARROW_THREADS && k == 0 ? first : vector_load(vector, i + k * NARROW_THREADS, n, kind);
#pragma unroll
    for (int k = 0; k < batch; k++) {
      int at = i + k * NARROW_THREADS;
      if (at >= n) break;
      to[at] = vector ? vector_float(u[k], kind) + plus : none;
      if (narrow_copies(c) == 2) to[(n | 1) + at] = to[at];
    }
  }
}

// Those of a word's elements.
INLINE float2 narrow_vector_at(NormKernel c, const float *copy, int column) {
  return narrow_copies(c) == 1 ? make_float2(copy[column], 0) : *(const float2 *)(copy + column);
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

// Rows of a small table come through L1: from L2 all SMs would ask the same slices for them.
INLINE void narrow_look_up(NormKernel c, const NormParams *p, const NarrowTile &t) {
  const bool near = p->vocab * p->x_stride <= NARROW_NEAR;
  const char *begin = (const char *)p->x, *end = begin + (p->vocab - 1) * p->x_stride + t.bytes;
  narrow_load_ids(c, p, t.rows);
#pragma unroll 4
  for (int row = threadIdx.x >> p->how.copy_bits; row < t.rows; row += blockDim.x >> p->how.copy_bits)
    narrow_fetch_one(near, p, t, row, narrow_ids(p)[row], begin, end, norm_bytes(c));
}

// ---- One row

// What a lane has of a row: `count` words, the first at `column`, `step` columns from one to the next; and perhaps the row's
// first or last element. Elements of 2 bytes: words are those of x, two elements.
typedef struct NarrowShare {
  char *x, *residual, *y, *second; // the row in shared memory
  const float *weight, *bias;      // the copies whose words are where this row's are
  int column, step, count, edge[2]; // edges: columns; -1: none
  int lanes, n;                     // n: 0 beyond the last row
} NarrowShare;

INLINE NarrowShare narrow_share(NormKernel c, const NormParams *p, const NormTiles *t, int row, int lane, int lanes) {
  const int per = 4 / norm_bytes(c);
  NarrowShare s;
  bool there = row < t->rows;
  s.x = c.op == NORM_EMBED ? narrow_row(t->x, row, there ? narrow_ids(p)[row] : nullptr) : narrow_row(t->x, row);
  s.residual = c.op == NORM_ADD ? narrow_row(t->residual, row) : nullptr;
  s.second = c.op == NORM_ADD || c.op == NORM_EMBED ? narrow_row(t->second, row) : nullptr;
  s.y = narrow_row(t->y, row);
  s.n = there ? p->narrow.n : 0, s.lanes = lanes;
  int head = per == 2 && s.n ? (int)((uint32_t)(uintptr_t)s.x >> 1 & 1) : 0, words = (s.n - head) / per;
  s.column = head + lane * per, s.step = lanes * per;
  s.weight = t->weight + (head ? p->narrow.n | 1 : 0), s.bias = t->bias + (head ? p->narrow.n | 1 : 0);
  s.count = words > lane ? ((words - lane - 1) >> p->narrow.lane_bits) + 1 : 0;
  s.edge[0] = head && lane == 0 ? 0 : -1;
  s.edge[1] = per == 2 && (s.n - head) & 1 && lane == lanes - 1 ? s.n - 1 : -1;
  return s;
}

INLINE float2 word_floats(NormKernel c, uint32_t u) {
  return norm_bytes(c) == 4 ? make_float2(__uint_as_float(u), 0) : widen2(u, c.kind);
}
INLINE uint32_t word_of(NormKernel c, float2 f) { return norm_bytes(c) == 4 ? __float_as_uint(f.x) : narrow2(f.x, f.y, c.kind); }
INLINE uint32_t word_take(NormKernel c, const char *row, int column) { return *(const uint32_t *)(row + column * norm_bytes(c)); }

// The same elements of another tensor. plain: they are a word there, too.
INLINE uint32_t word_take_other(NormKernel c, const char *row, int column, bool plain) {
  if (plain || norm_bytes(c) == 4) return word_take(c, row, column);
  return ((const uint16_t *)row)[column] | (uint32_t)((const uint16_t *)row)[column + 1] << 16;
}
INLINE void word_give(NormKernel c, char *row, int column, bool plain, uint32_t u) {
  if (plain || norm_bytes(c) == 4) {
    *(uint32_t *)(row + column * norm_bytes(c)) = u;
  } else {
    ((uint16_t *)row)[column] = (uint16_t)u, ((uint16_t *)row)[column + 1] = (uint16_t)(u >> 16);
  }
}

// Results. plain: in x's type, or fp8, and words where x has words.
INLINE void word_result(NormKernel c, const NormParams *p, char *y, int column, bool plain, float2 f) {
  if (c.op == NORM_RMS_FP8 && plain && norm_bytes(c) == 2) {
    *(uint16_t *)(y + column) = (uint16_t)fp8_pair(f.x, f.y);
  } else if (c.op != NORM_RMS_FP8 && plain) {
    word_give(c, y, column, true, word_of(c, f));
  } else {
    int kind = c.op == NORM_RMS_FP8 ? KIND_FP8 : p->y_kind;
    store_one(y, column, kind, f.x);
    if (norm_bytes(c) == 2) store_one(y, column + 1, kind, f.y);
  }
}

// Sums, rounded to the type, and looked-up elements are written on the way; sums take the place of x. u, v: words of x and residual.
INLINE float2 word_input(NormKernel c, const NormParams *p, const NarrowShare &s, int column, bool plain, uint32_t u, uint32_t v) {
  float2 f = word_floats(c, u);
  if (c.op == NORM_ADD) {
    float2 g = word_floats(c, v);
    u = word_of(c, make_float2(f.x + g.x, f.y + g.y));
    word_give(c, s.x, column, true, u);
    f = word_floats(c, u);
  }
  bool second = c.op == NORM_ADD ? s.second != s.x : c.op == NORM_EMBED && p->second;
  if (second) word_give(c, s.second, column, plain, u);
  return f;
}

INLINE float edge_input(NormKernel c, const NormParams *p, const NarrowShare &s, int column) {
  float f = load_one(s.x, column, c.kind);
  if (c.op == NORM_ADD) {
    store_one(s.x, column, c.kind, f + load_one(s.residual, column, c.kind));
    f = load_one(s.x, column, c.kind);
  }
  if ((c.op == NORM_ADD && s.second != s.x) || (c.op == NORM_EMBED && p->second)) store_one(s.second, column, c.kind, f);
  return f;
}

// A lane's part of the row's sums. Layernorm: of what elements are above a middle, the mean of the lane's first, as in stats.cuh. A lane adds up every
// NARROW_BATCH-th of its words by themselves: norm_direct.cuh has a lane for each of those sums.
typedef struct NarrowSums {
  float middle, sum, squares;
  float top; // fp8 by row: the largest |x * weight|
} NarrowSums;

typedef struct NarrowParts {
  float sum[NARROW_BATCH], squares[NARROW_BATCH];
} NarrowParts;

INLINE void narrow_sum_one(NormKernel c, float f, float *sum, float *squares, float middle) {
  if (c.op == NORM_LAYER) f -= middle, *sum += f;
  *squares = fmaf(f, f, *squares);
}

// All but the last change places.
INLINE void narrow_turn_parts(NarrowParts *p) {
  float sum = p->sum[0], squares = p->squares[0];
#pragma unroll
  for (int k = 0; k < NARROW_BATCH - 2; k++) p->sum[k] = p->sum[k + 1], p->squares[k] = p->squares[k + 1];
  p->sum[NARROW_BATCH - 2] = sum, p->squares[NARROW_BATCH - 2] = squares;
}

INLINE void narrow_sum_pair(NormKernel c, float2 f, float *sum, float *squares, float middle) {
  narrow_sum_one(c, f.x, sum, squares, middle);
  if (norm_bytes(c) == 2) narrow_sum_one(c, f.y, sum, squares, middle);
}

// `batch` words from `column` on: all are loaded before the first is stored.
INLINE void narrow_sum_words(NormKernel c, const NormParams *p, const NormTiles *t, const NarrowShare &s, int column, int batch, bool plain,
                             NarrowSums *sums, NarrowParts *parts) {
  bool by_row = c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW;
  uint32_t u[NARROW_BATCH], v[NARROW_BATCH];
#pragma unroll
  for (int k = 0; k < batch; k++) {
    u[k] = word_take(c, s.x, column + k * s.step);
    v[k] = c.op == NORM_ADD ? word_take_other(c, s.residual, column + k * s.step, plain) : 0;
  }
#pragma unroll
  for (int k = 0; k < batch; k++, column += s.step) {
    float2 f = word_input(c, p, s, column, plain, u[k], v[k]);
    if (by_row) sums->top = higher(sums->top, fabsf(f.x * t->weight[column]));
    if (by_row && norm_bytes(c) == 2) sums->top = higher(sums->top, fabsf(f.y * t->weight[column + 1]));
    narrow_sum_pair(c, f, &parts->sum[k], &parts->squares[k], sums->middle);
  }
}

// Of the sum of a lane's first NARROW_BATCH words, or of its first alone where it has fewer: of one alone, far from the others, the squares would be mostly
// its distance.
INLINE float narrow_middle_of(NormKernel c, float2 f, int count) {
  float over = count < NARROW_BATCH ? 1 : 1.f / NARROW_BATCH;
  return norm_bytes(c) == 4 ? f.x * over : (f.x + f.y) * (0.5f * over);
}

INLINE float narrow_middle(NormKernel c, const NarrowShare &s) {
  if (!s.count) return s.edge[0] >= 0 ? load_one(s.x, s.edge[0], c.kind) : s.edge[1] >= 0 ? load_one(s.x, s.edge[1], c.kind) : 0;
  float2 f = word_floats(c, word_take(c, s.x, s.column));
#pragma unroll
  for (int k = 1; k < NARROW_BATCH; k++) {
    if (s.count < NARROW_BATCH) continue;
    float2 g = word_floats(c, word_take(c, s.x, s.column + k * s.step));
    f.x += g.x, f.y += g.y;
  }
  return narrow_middle_of(c, f, s.count);
}

INLINE NarrowSums narrow_sums(NormKernel c, const NormParams *p, const NormTiles *t, const NarrowShare &s, bool plain) {
  NarrowSums sums = {c.op == NORM_LAYER ? narrow_middle(c, s) : 0, 0, 0, 0};
  NarrowParts parts = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  int column = s.column, i = 0;
#pragma unroll 1
  for (; i + NARROW_BATCH <= s.count; i += NARROW_BATCH, column += NARROW_BATCH * s.step)
    narrow_sum_words(c, p, t, s, column, NARROW_BATCH, plain, &sums, &parts);
#pragma unroll 1
  for (int k = 0; k < NARROW_BATCH - 1; k++, column += s.step) { // after so many turns each is where it was
    if (i + k < s.count) narrow_sum_words(c, p, t, s, column, 1, plain, &sums, &parts);
    narrow_turn_parts(&parts);
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
    if (norm_bytes(c) == 4 || s.edge[e] < 0) continue;
    float f = edge_input(c, p, s, s.edge[e]);
    if (c.op == NORM_RMS_FP8) sums.top = higher(sums.top, fabsf(f * t->weight[s.edge[e]]));
    narrow_sum_one(c, f, &parts.sum[e * (NARROW_BATCH - 1)], &parts.squares[e * (NARROW_BATCH - 1)], sums.middle);
  }
  sums.sum = (parts.sum[0] + parts.sum[2]) + (parts.sum[1] + parts.sum[3]);
  sums.squares = (parts.squares[0] + parts.squares[2]) + (parts.squares[1] + parts.squares[3]);
  return sums;
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

INLINE NarrowRow narrow_whole(NormKernel c, const NormParams *p, const NarrowShare &s, NarrowSums v, Fp8Scale q, uint64_t row,
                              bool first) {
  NarrowRow r = {0, 0, q};
  float sum = v.sum, squares = v.squares;
  if (c.op == NORM_LAYER) {
    float count = (float)(s.count * (4 / norm_bytes(c)) + (s.edge[0] >= 0) + (s.edge[1] >= 0));
    float apart = count > 0 ? __fdividef(sum, count) : 0, mean = v.middle + apart;
    squares = fmaf(-sum, apart, squares);
    // Around the first lane's middle: sums of what lanes' means are apart lose less than sums of the means.
    float base = __shfl_sync(~0u, v.middle, threadIdx.x % 32 & -s.lanes);
    r.mean = fmaf(some_lanes_sum((mean - base) * count, s.lanes), p->over_n, base);
    squares = fmaf((mean - r.mean) * count, mean - r.mean, squares);
  }
  r.scale = rsqrtf(fmaf(some_lanes_sum(squares, s.lanes), p->over_n, p->eps));
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW)
    r.q = fp8_choose(some_lanes_highest(v.top, s.lanes), r.scale, p->scales + row, first);
  return r;
}

INLINE float narrow_result(NormKernel c, const NormParams *p, const NarrowRow &r, float weight, float bias, float f) {
  if (c.op == NORM_LAYER) return fmaf(f - r.mean, weight * r.scale, bias);
  if (c.op != NORM_RMS_FP8) return f * (weight * r.scale);
  f *= weight;
  if (p->scaling != NORM_SCALE_ROW) f *= r.scale;
  return f * r.q.up * r.q.over;
}

INLINE void narrow_result_words(NormKernel c, const NormParams *p, const NarrowShare &s, const NarrowRow &r, int column,
                                int batch, bool plain) {
  const int per = 4 / norm_bytes(c);
  uint32_t u[NARROW_BATCH];
  float2 w[NARROW_BATCH], b[NARROW_BATCH];
#pragma unroll
  for (int k = 0; k < batch; k++) {
    u[k] = word_take(c, s.x, column + k * s.step);
    w[k] = narrow_vector_at(c, s.weight, column + k * s.step);
    b[k] = c.op == NORM_LAYER ? narrow_vector_at(c, s.bias, column + k * s.step) : make_float2(0, 0);
  }
#pragma unroll
  for (int k = 0; k < batch; k++) {
    float2 f = word_floats(c, u[k]);
    f.x = narrow_result(c, p, r, w[k].x, b[k].x, f.x);
    if (per == 2) f.y = narrow_result(c, p, r, w[k].y, b[k].y, f.y);
    word_result(c, p, s.y, column + k * s.step, plain, f);
  }
}

INLINE void narrow_results(NormKernel c, const NormParams *p, const NormTiles *t, const NarrowShare &s, const NarrowRow &r, bool plain) {
  int column = s.column, i = 0;
#pragma unroll 1
  for (; i + NARROW_BATCH <= s.count; i += NARROW_BATCH, column += NARROW_BATCH * s.step)
    narrow_result_words(c, p, s, r, column, NARROW_BATCH, plain);
#pragma unroll 1
  for (; i < s.count; i++, column += s.step) narrow_result_words(c, p, s, r, column, 1, plain);
#pragma unroll
  for (int e = 0; e < 2; e++) {
    int at = s.edge[e];
    if (norm_bytes(c) == 4 || at < 0) continue;
    float f = narrow_result(c, p, r, t->weight[at], c.op == NORM_LAYER ? t->bias[at] : 0, load_one(s.x, at, c.kind));
    store_one(s.y, at, c.op == NORM_RMS_FP8 ? KIND_FP8 : p->y_kind, f);
  }
}

// All rows of the block.
INLINE void narrow_turns(NormKernel c, const NormParams *p, const NormTiles *t, bool plain) {
  uint64_t first = block_index() * p->narrow.rows;
  int lanes = 1 << p->narrow.lane_bits, lane = threadIdx.x & (lanes - 1);
#pragma unroll 1
  for (int at = 0; at < t->rows; at += NARROW_THREADS >> p->narrow.lane_bits) {
    int row = at + (int)(threadIdx.x >> p->narrow.lane_bits);
    NarrowShare s = narrow_share(c, p, t, row, lane, lanes);
    NarrowSums sums = narrow_sums(c, p, t, s, plain);
    NarrowRow whole = narrow_whole(c, p, s, sums, t->q, first + row, s.n && lane == 0);
    narrow_results(c, p, t, s, whole, plain);
  }
}

// ---- Rows of a few elements (few.cuh): one lane has all of a row in registers

// What elements are from their mean. The mean is rounded, and where elements are close to each other that shows: what is left of their sum is taken off, too.
INLINE void few_center(float *f, int n, int most, float over_n) { // n elements, of `most` places
  float sum = 0, rest = 0;
#pragma unroll
  for (int k = 0; k < most; k++) sum += f[k];
  sum *= over_n;
#pragma unroll
  for (int k = 0; k < most; k++) f[k] = k < n ? f[k] - sum : 0, rest += f[k];
  rest *= over_n;
#pragma unroll
  for (int k = 0; k < most; k++) f[k] = k < n ? f[k] - rest : 0;
}

// x + residual, rounded to the type.
INLINE void few_add(NormKernel c, float *f, const float *g, int pairs) {
#pragma unroll
  for (int k = 0; k < 2 * pairs; k += 2) {
    float2 sum = make_float2(f[k] + g[k], f[k + 1] + g[k + 1]);
    if (norm_bytes(c) == 2) sum = widen2(narrow2(sum.x, sum.y, c.kind), c.kind);
    f[k] = sum.x, f[k + 1] = sum.y;
  }
}

typedef struct FewPlaces { // of a row, bytes of narrow_memory
  int x, residual, y, second;
} FewPlaces;

// Makes of a row's n elements what they become; the other places of `most` have zeros.
INLINE void few_norm(NormKernel c, const NormParams *p, Fp8Scale q, uint64_t row, int n, int most, const float *w, const float *b, float *f) {
  float squares = 0, top = 0;
  NarrowRow r = {0, 0, q};
  if (c.op == NORM_LAYER) few_center(f, n, most, p->over_n);
#pragma unroll
  for (int k = 0; k < most; k++) {
    squares = fmaf(f[k], f[k], squares);
    if (c.op == NORM_RMS_FP8) top = higher(top, fabsf(f[k] * w[k]));
  }
  r.scale = rsqrtf(fmaf(squares, p->over_n, p->eps));
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW) r.q = fp8_choose(top, r.scale, p->scales + row, true);
#pragma unroll
  for (int k = 0; k < most; k++) f[k] = narrow_result(c, p, r, w[k], b[k], f[k]);
}

INLINE void few_row(NormKernel c, const NormParams *p, const NormTiles *t, const FewPlaces &at, uint64_t row, bool even, int pairs, const float *w, const float *b) {
  float f[FEW_MOST], g[FEW_MOST];
  few_load(c.kind, at.x, even, pairs, f);
  if (c.op == NORM_ADD) few_load(c.kind, at.residual, even, pairs, g), few_add(c, f, g, pairs);
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) few_store(at.second, even, pairs, c.kind, f);
  few_norm(c, p, t->q, row, 2 * pairs - (even ? 0 : 1), 2 * pairs, w, b, f);
  if (c.op == NORM_RMS_FP8) few_store(at.y, even, pairs, KIND_FP8, f);
  else if (p->y_kind == c.kind) few_store(at.y, even, pairs, c.kind, f);
  else if (p->y_kind == KIND_FP32) few_store(at.y, even, pairs, KIND_FP32, f);
  else few_store(at.y, even, pairs, p->y_kind == KIND_FP16 ? KIND_FP16 : KIND_BF16, f);
}

// Where a lane's first row is. (Its next is so many rows on that it starts as far beyond 16 bytes as this one.)
INLINE int few_place(const NarrowTile &t, int row) { return (int)(narrow_row(t, row) - narrow_memory); }

INLINE void few_rows(NormKernel c, const NormParams *p, const NormTiles *t, int pairs) {
  const bool even = p->narrow.n % 2 == 0;
  float w[FEW_MOST], b[FEW_MOST];
#pragma unroll
  for (int k = 0; k < 2 * pairs; k++) {
    w[k] = k < p->narrow.n ? t->weight[k] : 0;
    b[k] = c.op == NORM_LAYER && k < p->narrow.n ? t->bias[k] : 0;
  }
  int row = threadIdx.x;
  FewPlaces at = {0, 0, few_place(t->y, row), 0};
  if (c.op == NORM_EMBED) at.x = row < t->rows ? (int)(narrow_row(t->x, row, narrow_ids(p)[row]) - narrow_memory) : 0;
  else at.x = few_place(t->x, row);
  if (c.op == NORM_ADD) at.residual = few_place(t->residual, row);
  if (c.op == NORM_ADD || c.op == NORM_EMBED) at.second = few_place(t->second, row);
#pragma unroll 1
  for (; row < t->rows; row += NARROW_THREADS) {
    few_row(c, p, t, at, block_index() * p->narrow.rows + row, even, pairs, w, b);
    at.x += NARROW_THREADS * t->x.pitch, at.y += NARROW_THREADS * t->y.pitch;
    at.residual += NARROW_THREADS * t->residual.pitch, at.second += NARROW_THREADS * t->second.pitch;
    if (c.op == NORM_EMBED && row + NARROW_THREADS < t->rows) at.x = (int)(narrow_row(t->x, row + NARROW_THREADS, narrow_ids(p)[row + NARROW_THREADS]) - narrow_memory);
  }
}

INLINE void narrow_few(NormKernel c, const NormParams *p, const NormTiles *t) {
#define NORM_FEW(pairs) few_rows(c, p, t, pairs)
  FEW_PAIRS(p->narrow.n, NORM_FEW)
#undef NORM_FEW
}

// While the predecessor still runs: prefetches into L2.
INLINE void narrow_hint_vectors(NormKernel c, const NormParams *p) {
  int at = (int)threadIdx.x * 128;
  if (blockIdx.x >= 4 || at >= p->narrow.n * norm_bytes(c)) return; // some blocks are enough for what all of them need
  if (p->weight) prefetch_l2((const char *)p->weight + at);
  if (c.op == NORM_LAYER && p->bias) prefetch_l2((const char *)p->bias + at);
}

INLINE void narrow_prefetch(NormKernel c, const NormParams *p, const NormTiles *t) {
  if (p->ends) narrow_ends(t->y);
  if ((c.op == NORM_ADD || c.op == NORM_EMBED) && p->second_ends) narrow_ends(t->second);
  if (may_hint()) narrow_hint_vectors(c, p);
  if (c.op != NORM_EMBED) narrow_hint(t->x);
  if (c.op == NORM_ADD) narrow_hint(t->residual);
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
  NormTiles t = narrow_tiles(c, p);
  narrow_prefetch(c, p, &t);
  begin_kernel();
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) t.q = fp8_scale(*p->scales);
  int n = p->narrow.n, kind = p->weight_kind;
  uint32_t weight = vector_load(p->weight, threadIdx.x, n, kind), bias = c.op == NORM_LAYER ? vector_load(p->bias, threadIdx.x, n, kind) : 0;
  narrow_begin(c, p, &t);
  narrow_fill_vector(c, (float *)t.weight, p->weight, weight, kind, n, 1, p->offset);
  if (c.op == NORM_LAYER) narrow_fill_vector(c, (float *)t.bias, p->bias, bias, kind, n, 0, 0);
  narrow_arrived();
  if (p->narrow.n <= FEW_MOST) narrow_few(c, p, &t);
  else if (p->how.plain) narrow_turns(c, p, &t, true);
  else narrow_turns(c, p, &t, false);
  narrow_end(c, p, &t);
}

#endif
