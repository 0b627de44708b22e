// y = f(x, vector[column]): the one body of scale_columns, bias_relu_scale and bias_gelu.
#ifndef SOL_KERNELS_COLUMNS_CUH
#define SOL_KERNELS_COLUMNS_CUH

#include "columns.h"
#include "single.cuh"

enum { SCALE_COLUMNS, BIAS_RELU_SCALE, BIAS_GELU };

// The rounding of each step is explicit: an element gets the same bits in a full chunk and in a short one.
INLINE float columns_apply(int op, float x, float v, float scale) {
  if (op == SCALE_COLUMNS) return __fmul_rn(x, v);
  float u = __fadd_rn(x, v);
  if (op == BIAS_RELU_SCALE) return __fmul_rn(u < 0 ? 0 : u, scale); // a NaN is not below 0
  // gelu, tanh form: u / (1 + exp(-2 z)), z = sqrt(2 / pi) (u + 0.044715 u^3)
  const float a = -2.3022081985f, b = -0.10294323960f; // times -2 log2(e)
  return over_one_plus_exp2(u, __fmul_rn(u, __fmaf_rn(b, __fmul_rn(u, u), a)));
}

// The vector is loaded by pieces of four elements, 8 or 16 bytes, on their boundaries in memory: per / 4 + 1 of them hold the `per`
// elements under a chunk, wherever in a piece they start. A piece that is not wholly the vector's is loaded by elements.
INLINE void load_ragged_piece(const void *vector, int n, int at, int j, int per, int words, uint32_t *w) {
#pragma unroll
  for (int k = 0; k <= per / 4; k++) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      bool wanted = k == j && at + i >= 0 && at + i < n;
      if (words == 4) {
        if (wanted) w[4 * k + i] = __ldg((const uint32_t *)vector + at + i);
      } else if (wanted) {
        uint32_t h = __ldg((const uint16_t *)vector + at + i);
        w[2 * k + i / 2] = i % 2 ? (w[2 * k + i / 2] & 0xffff) | h << 16 : (w[2 * k + i / 2] & 0xffff0000u) | h;
      }
    }
  }
}

// `per` elements of the vector from `column` on, those beyond its ends whatever is there. skew: elements from a piece's boundary to
// the vector's first. It is so long that not both of its ends are under one chunk, or skew is 0 and it has a whole piece. w has
// space for four more elements; those wanted begin (column + skew) % 4 elements after w does. inside: chunks in the middle of the
// vector have a shorter way; where rows are so short that most warps have both kinds of chunks, two ways take longer than one.
INLINE void load_pieces(const void *vector, int n, int column, int skew, bool inside, int per, int kind, uint32_t *w) {
  const int words = kind == KIND_FP32 ? 4 : 2, last = per / 4;
  int q = (column + skew) >> 2, from = (skew + 3) / 4 - q, to = min((n + skew) / 4 - q, last + 1); // whole: from `from` to `to` - 1
  const char *at = (const char *)vector + ((int64_t)q * 4 - skew) * words;
  if (inside && from <= 0 && to > last) { // the middle of a long row
#pragma unroll
    for (int k = 0; k <= last; k++) load_aligned(at + k * 4 * words, words, 1, w + k * words);
    return;
  }
#pragma unroll
  for (int k = 0; k <= last; k++) load_aligned(at + min(max(k, from), to - 1) * (4 * words), words, 1, w + k * words);
  bool tail = (n + skew) % 4 && to <= last, head = skew && from > 0;
  int j = tail ? to : from - 1;
  if (head || tail) load_ragged_piece(vector, n, (q + j) * 4 - skew, j, per, words, w);
}

INLINE void cut_pieces(uint32_t *w, int from, int per, int kind) {
  if (kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < per + 2; j++) w[j] = from & 2 ? w[j + 2] : w[j];
#pragma unroll
    for (int j = 0; j < per; j++) w[j] = from & 1 ? w[j + 1] : w[j];
  } else {
#pragma unroll
    for (int j = 0; j <= per / 2; j++) w[j] = from & 2 ? w[j + 1] : w[j];
#pragma unroll
    for (int j = 0; j < per / 2; j++) w[j] = __funnelshift_r(w[j], w[j + 1], (from & 1) * 16);
  }
}

// One by one: where a chunk runs on over the end of a row into the next, or the vector is short.
INLINE void load_columns(const void *vector, int64_t column, int64_t n, int per, int kind, uint32_t *w) {
#pragma unroll
  for (int j = 0; j < per; j++) {
    int64_t at = max(column, (int64_t)0);
    if (kind == KIND_FP32) {
      w[j] = __ldg((const uint32_t *)vector + at);
    } else {
      uint32_t h = __ldg((const uint16_t *)vector + at);
      w[j / 2] = j % 2 ? w[j / 2] | h << 16 : h;
    }
    column = column + 1 == n ? 0 : column + 1;
  }
}

// The elements of the vector under a chunk of x that starts at `column` of a row, which may be below 0.
INLINE void take_columns(const ColumnsParams &p, int64_t column, int per, int kind, float *v) {
  const int words = kind == KIND_FP32 ? 4 : 2;
  uint32_t w[12];
  if (p.pieces && !(p.flat && column + per > p.n)) {
    int skew = (int)((uint32_t)(uintptr_t)p.vector & (4 * words - 1)) / words;
    load_pieces(p.vector, (int)p.n, (int)column, skew, p.spread.parts.by != 0, per, kind, w);
    cut_pieces(w, (int)column + skew, per, kind);
  } else {
    load_columns(p.vector, column, p.n, per, kind, w);
  }
  to_floats(w, per, kind, v);
}

// The chunks of a thread's rows, of x that lies as y does: one access each, at the ends of rows, too.
INLINE void load_alike(Extent e, const char *row, int64_t apart, int64_t rows, Chunk c, int64_t length, int per, int size, Raw *raw) {
  const char *at = row + c.first * size;
#pragma unroll
  for (int k = 0; k < COLUMNS_ROWS; k++) raw[k].beyond = 0;
  if (c.full) {
#pragma unroll
    for (int k = 0; k < COLUMNS_ROWS; k++)
      if (k * COLUMNS_APART < rows) load_aligned(at + k * apart, per * size / 4, 0, raw[k].w);
    return;
  }
#pragma unroll
  for (int k = 0; k < COLUMNS_ROWS; k++) {
    if (k * COLUMNS_APART >= rows) continue;
    if (at + k * apart >= e.begin && at + k * apart + per * size <= e.end) load_aligned(at + k * apart, per * size / 4, 0, raw[k].w);
    else load_some(row + k * apart, c.first, length, per, size, &raw[k]);
  }
}

// Any types, rows and alignment. Rows COLUMNS_APART apart start alike, whatever the stride: where rows are not one, a thread takes the same
// columns of some of them, and the vector's elements once. (take_chunk counts only the rows that are a thread's first.) alike: chunks of x start
// where y's do. A kind of -1 is known at run time.
INLINE void columns_any(int op, int in, int out, bool alike, int x_kind, int y_kind, const ColumnsParams &p) {
  const int per = CHUNK_OF(in, out), each = COLUMNS_ROWS;
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  int64_t row = (int64_t)(c.row / COLUMNS_APART * (COLUMNS_APART * each) + c.row % COLUMNS_APART);
  int64_t left = p.flat ? 1 : p.spread.last - row + 1; // rows from this one on
  const char *x = (const char *)p.x + row * p.x_stride * in;
  char *y = (char *)p.y + row * p.y_stride * out;
  int64_t column = p.flat && c.first > 0 ? chunk_column(p.spread, p.flat, c) : c.first;
  float f[8], v[8];
  Raw a[COLUMNS_ROWS];
  Extent e = extent_of(p.x, p.x_stride, p.spread, in);
  const int64_t x_apart = COLUMNS_APART * p.x_stride * in, y_apart = COLUMNS_APART * p.y_stride * out;
  if (p.spread.ends) {
#pragma unroll
    for (int k = 0; k < each; k++)
      if (k * COLUMNS_APART < left) chunk_ends(p.spread, y + k * y_apart, c, per);
  }
  if (alike) load_alike(e, x, x_apart, left, c, p.spread.length, per, in, a);
#pragma unroll
  for (int k = 0; k < each; k++)
    if (!alike && k * COLUMNS_APART < left) load_chunk(e, x + k * x_apart, c, p.spread.length, per, in, &a[k]);
#pragma unroll
  for (int j = 0; j < per; j++) v[j] = op == SCALE_COLUMNS ? 1 : 0;
  if (p.vector && (in == 4 || p.vector_kind == KIND_FP32)) take_columns(p, column, per, KIND_FP32, v);
  else if (p.vector && (x_kind < 0 ? p.x_kind : x_kind) == KIND_FP16) take_columns(p, column, per, KIND_FP16, v);
  else if (p.vector) take_columns(p, column, per, KIND_BF16, v);
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (k * COLUMNS_APART >= left) break;
    if (!alike) cut_chunk(&a[k], per, in);
    to_floats(a[k].w, per, kind_of(in, x_kind < 0 ? p.x_kind : x_kind), f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = columns_apply(op, f[j], v[j], p.scale);
    store_within(y + k * y_apart, c, p.spread.length, per, out, y_kind < 0 ? p.y_kind : y_kind, f);
  }
}

INLINE void columns_any_by_kind(int op, int in, int out, bool alike, const ColumnsParams &p) {
  bool one = in == 2 && out == 2 && p.x_kind == p.y_kind;
  if (one && p.x_kind == KIND_BF16) columns_any(op, in, out, alike, KIND_BF16, KIND_BF16, p);
  else if (one) columns_any(op, in, out, alike, KIND_FP16, KIND_FP16, p);
  else columns_any(op, in, out, alike, -1, -1, p);
}

// The vector under a chunk: chunk `column` of it, or from element `column` on where rows are odd.
INLINE void lean_columns(ColumnsLean p, uint32_t column, int per, int odd, int kind, uint32_t *w) {
  const int bytes = per * (kind == KIND_FP32 ? 4 : 2);
  const char *at = (const char *)p.vector + (uint64_t)column * bytes;
  if (odd && column + per <= p.divider.by) {
    load_pieces(p.vector, (int)p.divider.by, (int)column, 0, true, per, kind, w);
    cut_pieces(w, (int)column, per, kind);
  } else if (odd) {
    load_columns(p.vector, column, p.divider.by, per, kind, w);
  } else if (bytes > 16) {
    load_aligned(at, 4, 1, w);
    load_aligned(at + 16, 4, 1, w + 4);
  } else {
    load_aligned(at, bytes / 4, 1, w);
  }
}

// Element `at` of x and `to` of y.
template <typename P> INLINE void columns_one(int op, const P &p, int64_t at, int64_t to, int64_t column) {
  uint32_t x = single_load(p.x, at, p.x_kind), v = p.vector ? single_load(p.vector, column, p.vector_kind) : 0;
  float by = p.vector ? single_float(v, p.vector_kind) : op == SCALE_COLUMNS ? 1 : 0;
  store_one(p.y, to, p.y_kind, columns_apply(op, single_float(x, p.x_kind), by, p.scale));
}

INLINE void columns_single(int op, const ColumnsParams &p) {
  int64_t row, column;
  bool there = single_place(p.spread, &row, &column);
  int64_t at = row * p.x_stride + column;
  if (there) single_hint(p.x, at, column, p.x_kind == KIND_FP32 ? 4 : 2);
  begin_kernel();
  if (!there) return;
  const int size = p.y_kind == KIND_FP32 ? 4 : 2;
  unit_ends((const char *)p.y + row * p.y_stride * size, p.spread.ends, (uint64_t)column, (uint64_t)p.spread.length);
  columns_one(op, p, at, row * p.y_stride + column, column);
}

// Short rows that are apart: several elements of a thread. A kind of -1 is known at run time.
INLINE void columns_short(int op, int in, int out, int x_kind, int y_kind, const ColumnsParams &p) {
  Singles a = singles_place(p.spread);
  uint32_t x[SINGLE_EACH], v[SINGLE_EACH];
  const bool narrow = in == 2 && p.vector_kind != KIND_FP32;
  const int from = kind_of(in, x_kind < 0 ? p.x_kind : x_kind), to = kind_of(out, y_kind < 0 ? p.y_kind : y_kind);
  begin_kernel();
  singles_ends(a, p.spread, p.y, p.y_stride * out, out);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++)
    x[k] = singles_load(singles_at(a, k, p.x, p.x_stride * in, in), in);
  if (!p.vector) {
#pragma unroll
    for (int k = 0; k < SINGLE_EACH; k++) v[k] = op == SCALE_COLUMNS ? __float_as_uint(1) : 0;
  } else if (narrow) {
#pragma unroll
    for (int k = 0; k < SINGLE_EACH; k++) v[k] = __ldg((const uint16_t *)p.vector + a.column[k]);
#pragma unroll
    for (int k = 0; k < SINGLE_EACH; k++) v[k] = __float_as_uint(single_float(v[k], from));
  } else {
#pragma unroll
    for (int k = 0; k < SINGLE_EACH; k++) v[k] = __ldg((const uint32_t *)p.vector + a.column[k]);
  }
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    float f = columns_apply(op, single_float(x[k], from), __uint_as_float(v[k]), p.scale);
    uint32_t u = out == 4 ? __float_as_uint(f) : narrow_one(f, to);
    if (a.there[k]) singles_store(singles_at(a, k, p.y, p.y_stride * out, out), out, u);
  }
}

// Rows that are apart of x and not of y, and not on chunks: pairs of y.
INLINE void columns_pairs(int op, int in, int out, int x_kind, int y_kind, const ColumnsParams &p) {
  Pairs a = pairs_place(p.spread);
  uint32_t x[SINGLE_EACH][2], v[SINGLE_EACH][2], u[2], n = p.spread.small.by;
  const bool narrow = in == 2 && p.vector_kind != KIND_FP32;
  const int from = kind_of(in, x_kind < 0 ? p.x_kind : x_kind), to = kind_of(out, y_kind < 0 ? p.y_kind : y_kind);
  begin_kernel();
  if (p.spread.chunks % 2 && thread_index() == 0) // the last element
    columns_one(op, p, p.spread.last * p.x_stride + n - 1, (int64_t)p.spread.chunks - 1, n - 1);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) pairs_load(a, k, p.x, p.x_stride * in, n, in, x[k]);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) v[k][0] = v[k][1] = op == SCALE_COLUMNS ? __float_as_uint(1) : 0;
#define PAIR_COLUMNS(type)                                                                                   \
  _Pragma("unroll") for (int k = 0; k < SINGLE_EACH; k++) {                                                  \
    v[k][0] = __ldg((const type *)p.vector + a.first.column[k]);                                             \
    v[k][1] = __ldg((const type *)p.vector + (a.wraps[k] ? 0 : a.first.column[k] + 1));                      \
  }
  if (p.vector && narrow) {
    PAIR_COLUMNS(uint16_t)
#pragma unroll
    for (int k = 0; k < SINGLE_EACH; k++)
      v[k][0] = __float_as_uint(single_float(v[k][0], from)), v[k][1] = __float_as_uint(single_float(v[k][1], from));
  } else if (p.vector) {
    PAIR_COLUMNS(uint32_t)
  }
#undef PAIR_COLUMNS
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    float f[2];
#pragma unroll
    for (int j = 0; j < 2; j++) f[j] = columns_apply(op, single_float(x[k][j], from), __uint_as_float(v[k][j]), p.scale);
    from_floats(f, 2, to, u);
    pairs_store(a, k, p.y, out, u);
  }
}

#define COLUMNS_BY_KIND(body, op, in, out, p)                                                                \
  bool one = in == 2 && out == 2 && p.x_kind == p.y_kind;                                                    \
  if (one && p.x_kind == KIND_BF16) body(op, in, out, KIND_BF16, KIND_BF16, p);                              \
  else if (one) body(op, in, out, KIND_FP16, KIND_FP16, p);                                                  \
  else body(op, in, out, -1, -1, p);

// Element e of a dense tensor with odd rows.
INLINE void lean_one(int op, const ColumnsLean &p, uint32_t e) { columns_one(op, p, e, e, e - divide32(e, p.divider) * p.divider.by); }

// The last elements of a large one, less than a chunk. Using few registers matters more here than time.
INLINE void lean_tail(int op, const ColumnsLean &p, uint32_t first) {
#pragma unroll 1
  for (uint32_t e = first; e < p.total; e++) lean_one(op, p, e);
}

// Large dense tensors with odd rows. After `period` chunks a row starts with a chunk again, and the same columns are under them: a thread
// takes chunks a period apart, and the vector's elements once for all of them. A kind of -1 is known at run time.
INLINE void columns_dense(int op, int in, int out, int x_kind, int y_kind, const ColumnsLean &p) {
  const int per = CHUNK_OF(in, out), each = COLUMNS_EACH;
  uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, group = divide32(thread, p.period), within = thread - group * p.period.by;
  uint32_t first = group * (each * p.period.by) + within, column = within * per - divide32(within * per, p.divider) * p.divider.by;
  uint32_t a[each][4], b[12];
  float f[8], v[8];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint32_t i = first + k * p.period.by;
    if (i < p.whole) load_aligned((const char *)p.x + (uint64_t)i * (per * in), per * in / 4, 0, a[k]);
  }
#pragma unroll
  for (int j = 0; j < per; j++) v[j] = op == SCALE_COLUMNS ? 1 : 0;
  if (p.vector && in == 2 && p.vector_kind != KIND_FP32) {
    lean_columns(p, column, per, 1, x_kind, b);
    to_floats(b, per, x_kind < 0 ? p.x_kind : x_kind, v);
  } else if (p.vector) {
    lean_columns(p, column, per, 1, KIND_FP32, b);
    to_floats(b, per, KIND_FP32, v);
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint32_t i = first + k * p.period.by;
    if (i >= p.whole) {
      if (i < p.chunks) lean_tail(op, p, i * per);
      break;
    }
    to_floats(a[k], per, in == 4 ? KIND_FP32 : x_kind < 0 ? p.x_kind : x_kind, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = columns_apply(op, f[j], v[j], p.scale);
    from_floats(f, per, out == 4 ? KIND_FP32 : y_kind < 0 ? p.y_kind : y_kind, b);
    store_aligned((char *)p.y + (uint64_t)i * (per * out), per * out / 4, b);
  }
}

INLINE void columns_dense_by_kind(int op, int in, int out, const ColumnsLean &p) {
  bool alike = in == 2 && out == 2 && p.x_kind == p.y_kind;
  if (alike && p.x_kind == KIND_BF16) columns_dense(op, in, out, KIND_BF16, KIND_BF16, p);
  else if (alike) columns_dense(op, in, out, KIND_FP16, KIND_FP16, p);
  else columns_dense(op, in, out, -1, -1, p);
}

// The common cases, without the code that other cases need: short kernels are bound by instructions, too.
// odd: a dense tensor, walked as one row; otherwise rows of whole chunks. Each thread takes `each` chunks, 1 or (dense
// rows alone) 2. A kind of -1 is known at run time.
INLINE void columns_lean(int op, int in, int out, int x_kind, int y_kind, int odd, int each, ColumnsLean p) {
  const int per = CHUNK_OF(in, out);
  uint32_t first = blockIdx.x * (blockDim.x * each) + threadIdx.x, a[2][4], b[2][12], row[2], column[2];
  const bool dense = odd || each == 2, narrow = in == 2 && p.vector_kind != KIND_FP32;
  const int v_kind = x_kind < 0 ? p.vector_kind : x_kind;
  float f[8], v[8];
  uint64_t at[2];
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint32_t i = first + k * blockDim.x;
    row[k] = divide32(odd ? i * per : i, p.divider);
    column[k] = (odd ? i * per : i) - row[k] * p.divider.by;
    at[k] = dense ? (uint64_t)i * (per * in) : row[k] * p.x_stride + (uint64_t)column[k] * (per * in);
    if (may_hint() && i < (odd ? p.whole : p.chunks) && threadIdx.x % 8 == 0) prefetch_l2((const char *)p.x + at[k]);
  }
  begin_kernel();
  if (odd && first >= p.whole) { // the last elements, one a thread
    uint32_t e = p.whole * per + first - p.whole;
    if (e < p.total) lean_one(op, p, e);
    return;
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (first + k * blockDim.x >= p.chunks) continue;
    if (!dense) unit_ends((const char *)p.y + row[k] * p.y_stride, p.ends, column[k], p.divider.by);
    load_aligned((const char *)p.x + at[k], per * in / 4, 0, a[k]);
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (first + k * blockDim.x >= p.chunks) continue;
    if (p.vector && narrow) lean_columns(p, column[k], per, odd, v_kind, b[k]);
    else if (p.vector) lean_columns(p, column[k], per, odd, KIND_FP32, b[k]);
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint32_t i = first + k * blockDim.x;
    if (i >= p.chunks) continue;
    if (!p.vector) {
#pragma unroll
      for (int j = 0; j < per; j++) v[j] = op == SCALE_COLUMNS ? 1 : 0;
    } else if (narrow) {
      to_floats(b[k], per, v_kind, v);
    } else {
      to_floats(b[k], per, KIND_FP32, v);
    }
    to_floats(a[k], per, x_kind < 0 ? p.x_kind : x_kind, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = columns_apply(op, f[j], v[j], p.scale);
    from_floats(f, per, y_kind < 0 ? p.y_kind : y_kind, a[k]);
    uint64_t to = dense ? (uint64_t)i * (per * out) : row[k] * p.y_stride + (uint64_t)column[k] * (per * out);
    store_aligned((char *)p.y + to, per * out / 4, a[k]);
  }
}

#endif
