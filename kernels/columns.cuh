// y = f(x, vector[column]): the one body of scale_columns, bias_relu_scale and bias_gelu.
#ifndef SOL_KERNELS_COLUMNS_CUH
#define SOL_KERNELS_COLUMNS_CUH

#include "columns.h"
#include "elementwise.cuh"

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

// Any types, rows and alignment.
INLINE void columns_any(int op, int in, int out, const ColumnsParams &p) {
  const int per = CHUNK_OF(in, out);
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  const char *x = (const char *)p.x + (int64_t)c.row * p.x_stride * in;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride * out;
  // A flat chunk before the tensor's first element has that row's last columns there, which do no harm.
  int64_t column = c.first;
  if (p.flat) column = c.first < 0 ? (p.n - -c.first % p.n) % p.n : chunk_column(p.spread, p.flat, c);
  bool wraps = p.flat && column + per > p.n;
  float f[8], v[8];
  Raw a;
  Weights b;
  load_chunk(extent_of(p.x, p.x_stride, p.spread, in), x, c, p.spread.length, per, in, &a);
  if (p.vector && !wraps) load_weights_at(p.vector, p.n, column, per, p.vector_kind, &b);
#pragma unroll
  for (int j = 0; j < per; j++) v[j] = op == SCALE_COLUMNS ? 1 : 0;
  if (p.vector && wraps) load_columns(p.vector, column, p.n, per, p.vector_kind, v);
  else if (p.vector) widen_weights(per, p.vector_kind, &b, v);
  cut_chunk(&a, per, in);
  to_floats(a.w, per, kind_of(in, p.x_kind), f);
#pragma unroll
  for (int j = 0; j < per; j++) f[j] = columns_apply(op, f[j], v[j], p.scale);
  store_within(y, c, p.spread.length, per, out, p.y_kind, f);
}

// The vector's columns from `column` on where rows are odd: they start between vectors. 16-bit elements are loaded by 8
// bytes, three loads for eight elements; a chunk that runs over the end of the row loads them one by one.
INLINE void load_odd_columns(const void *vector, uint32_t column, uint32_t n, int per, int kind, uint32_t *w) {
  if (kind == KIND_FP32 && column + per <= n) {
#pragma unroll
    for (int j = 0; j < per; j++) w[j] = __ldg((const uint32_t *)vector + column + j);
  } else if (kind != KIND_FP32 && column + 12 <= n) {
    const uint2 *at = (const uint2 *)vector + column / 4;
#pragma unroll
    for (int j = 0; j < 3; j++) {
      uint2 two = __ldg(at + j);
      w[2 * j] = two.x, w[2 * j + 1] = two.y;
    }
#pragma unroll
    for (int j = 0; j < 5; j++) w[j] = column & 2 ? w[j + 1] : w[j];
#pragma unroll
    for (int j = 0; j < 4; j++) w[j] = __funnelshift_r(w[j], w[j + 1], (column & 1) * 16);
  } else {
#pragma unroll
    for (int j = 0; j < per; j++) {
      if (kind == KIND_FP32) {
        w[j] = __ldg((const uint32_t *)vector + column);
      } else {
        uint32_t h = __ldg((const uint16_t *)vector + column);
        w[j / 2] = j % 2 ? w[j / 2] | h << 16 : h;
      }
      column = column + 1 == n ? 0 : column + 1;
    }
  }
}

// The vector under a chunk: chunk `column` of it, or from element `column` on where rows are odd.
INLINE void lean_columns(ColumnsLean p, uint32_t column, int per, int odd, int kind, uint32_t *w) {
  const int bytes = per * (kind == KIND_FP32 ? 4 : 2);
  const char *at = (const char *)p.vector + (uint64_t)column * bytes;
  if (odd) {
    load_odd_columns(p.vector, column, p.divider.by, per, kind, w);
  } else if (bytes > 16) {
    load_aligned(at, 4, 1, w);
    load_aligned(at + 16, 4, 1, w + 4);
  } else {
    load_aligned(at, bytes / 4, 1, w);
  }
}

// The last elements of a dense tensor with odd rows, less than a chunk. Using few registers matters more here than time.
INLINE void lean_tail(int op, ColumnsLean p, uint32_t first) {
#pragma unroll 1
  for (uint32_t e = first; e < p.total; e++) {
    uint32_t column = e - divide32(e, p.divider) * p.divider.by;
    float v = p.vector ? load_one(p.vector, column, p.vector_kind) : op == SCALE_COLUMNS ? 1 : 0;
    store_one(p.y, e, p.y_kind, columns_apply(op, load_one(p.x, e, p.x_kind), v, p.scale));
  }
}

// The common cases, without the code that other cases need: short kernels are bound by instructions, too.
// odd: a dense tensor, walked as one row; otherwise rows of whole chunks. Each thread takes `each` chunks, 1 or (dense
// rows alone) 2. A kind of -1 is known at run time.
INLINE void columns_lean(int op, int in, int out, int x_kind, int y_kind, int odd, int each, ColumnsLean p) {
  const int per = CHUNK_OF(in, out);
  uint32_t first = blockIdx.x * (blockDim.x * each) + threadIdx.x, a[2][4], b[2][8], row[2], column[2];
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
    if (may_hint() && i < p.chunks && threadIdx.x % 8 == 0) prefetch_l2((const char *)p.x + at[k]);
  }
  begin_kernel();
  if (odd && first < p.chunks && p.total - first * per < per) {
    lean_tail(op, p, first * per);
    return;
  }
#pragma unroll
  for (int k = 0; k < each; k++)
    if (first + k * blockDim.x < p.chunks) load_aligned((const char *)p.x + at[k], per * in / 4, 0, a[k]);
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
