// The epilogue on the accumulators of a warpgroup's 64 rows: one pass over the registers for each thing that is asked
// for. Register i of a thread is in row i / 2 % 2 * 8 and column i / 4 * 8 + i % 2 from the thread's own first.
#ifndef SOL_KERNELS_GEMM_EPILOGUE_CUH
#define SOL_KERNELS_GEMM_EPILOGUE_CUH

#include <limits.h>

#include "common.cuh"
#include "gemm/gemm.h"

// x / d.by; x is not negative.
INLINE int gemm_divide(int x, GemmDivisor d) {
  int quotient = (int)__umulhi((uint32_t)x, d.inverse); // or one less
  return quotient + (x - quotient * d.by >= d.by);
}

// u / (1 + exp(-2 z)), z = sqrt(2 / pi) (u + 0.044715 u^3)
INLINE float gemm_gelu(float u) {
  float z = u * (0.7978845608f + 0.0356774081f * u * u);
  return __fdividef(u, 1 + __expf(-2 * z));
}

INLINE float gemm_silu(float u) {
  return __fdividef(u, 1 + __expf(-u));
}

INLINE float gemm_relu(float v) {
  return v < 0 ? 0 : v; // NaN stays NaN
}

INLINE float gemm_activate(float v, int activation) {
  return activation == GEMM_RELU ? gemm_relu(v) : activation == GEMM_GELU ? gemm_gelu(v) : v;
}

INLINE float gemm_alpha(const GemmEpilogue *e) {
  return e->alpha * (e->a_scale ? *e->a_scale : 1) * (e->b_scale ? *e->b_scale : 1);
}

// Where a thread's accumulators are in C.
typedef struct GemmPlace {
  int64_t row, column, batch; // of the thread's first
  int64_t m, n;
  int64_t gated; // columns more that the second half of the registers is off: with GEMM_SILU_MUL; otherwise 0
} GemmPlace;

// d += by * x, whose rows are `stride` elements apart: `bytes`, of an element, is a literal.
template <int regs>
INLINE void gemm_add(float (&d)[regs], const GemmPlace *at, const char *x, int kind, int bytes, int64_t stride, float by) {
  const char *rows[2] = {x + (at->row * stride + at->column) * bytes, x + ((at->row + 8) * stride + at->column) * bytes};
  int left = (int)min(at->n - at->column, (int64_t)INT_MAX), in[2];
  in[0] = at->row < at->m ? left : 0, in[1] = at->row + 8 < at->m ? left : 0;
#pragma unroll
  for (int i = 0; i < regs; i++) {
    int column = i / 4 * 8 + i % 2;
    if (column >= in[i / 2 % 2]) continue;
    const char *from = rows[i / 2 % 2] + column * bytes;
    d[i] += by * (bytes == 4 ? *(const float *)from : widen2(*(const uint16_t *)from, kind).x);
  }
}

// columns: of the bias.
template <int regs> INLINE void gemm_bias(float (&d)[regs], const GemmPlace *at, const void *bias, int kind, int64_t columns) {
  const char *halves[2] = {(const char *)bias + at->column * (kind == KIND_FP32 ? 4 : 2), nullptr};
  int left[2] = {(int)min(columns - at->column, (int64_t)INT_MAX), 0};
  halves[1] = halves[0] + at->gated * (kind == KIND_FP32 ? 4 : 2);
  left[1] = (int)min(columns - at->column - at->gated, (int64_t)INT_MAX);
#pragma unroll
  for (int i = 0; i < regs; i += 4)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      int column = i / 4 * 8 + j;
      float b = column < left[i >= regs / 2] ? load_one(halves[i >= regs / 2], column, kind) : 0;
      d[i + j] += b, d[i + 2 + j] += b;
    }
}

// The same where the accumulators' rows are C's columns; at->row: the thread's first.
template <int regs> INLINE void gemm_bias_swapped(float (&d)[regs], const GemmPlace *at, const void *bias, int kind) {
  float b[2];
#pragma unroll
  for (int i = 0; i < 2; i++) b[i] = at->row + i * 8 < at->n ? load_one(bias, at->row + i * 8, kind) : 0;
#pragma unroll
  for (int i = 0; i < regs; i++) d[i] += b[i / 2 % 2];
}

// With GEMM_SILU_MUL the result is in the first half of the registers.
template <int regs> INLINE void gemm_apply(float (&d)[regs], int activation) {
  if (activation == GEMM_SILU_MUL) {
#pragma unroll
    for (int i = 0; i < regs / 2; i++) d[i] = gemm_silu(d[i]) * d[i + regs / 2];
  } else if (activation == GEMM_GELU) {
#pragma unroll
    for (int i = 0; i < regs; i++) d[i] = gemm_gelu(d[i]);
  } else if (activation == GEMM_RELU) {
#pragma unroll
    for (int i = 0; i < regs; i++) d[i] = gemm_relu(d[i]);
  }
}

// First C is added, then the residual, by the same code: there is much of it, unrolled over the registers. swapped: the accumulators' rows
// are C's columns; only alpha, the bias and the activation of one factor go with that.
template <int regs> INLINE void gemm_finish(float (&d)[regs], const GemmEpilogue *e, const GemmPlace *at, bool swapped = false) {
  bool wide = e->out_kind == KIND_FP32;
  float alpha = gemm_alpha(e);
  if (alpha != 1)
#pragma unroll
    for (int i = 0; i < regs; i++) d[i] *= alpha;
#pragma unroll 1
  for (int turn = 0; turn < 2; turn++) {
    const char *x = (const char *)(swapped ? nullptr : turn ? e->residual : e->beta != 0 ? e->c : nullptr);
    int64_t stride = turn ? e->residual_stride : e->c_stride, batch = turn ? e->residual_batch_stride : e->c_batch_stride;
    x = x ? x + at->batch * batch * (wide ? 4 : 2) : nullptr;
    if (x && wide) gemm_add(d, at, x, KIND_FP32, 4, stride, turn ? 1 : e->beta);
    else if (x) gemm_add(d, at, x, e->out_kind, 2, stride, turn ? 1 : e->beta);
    if (turn) break;
    if (e->bias && swapped) gemm_bias_swapped(d, at, e->bias, e->bias_kind);
    else if (e->bias) gemm_bias(d, at, e->bias, e->bias_kind, e->activation == GEMM_SILU_MUL ? 2 * at->n : at->n);
    gemm_apply(d, e->activation);
  }
}

// Four elements at once.
INLINE void gemm_store_four(char *to, int kind, float a, float b, float c, float d) {
  if (kind == KIND_FP32) *(float4 *)to = make_float4(a, b, c, d);
  else *(uint2 *)to = make_uint2(narrow2(a, b, kind), narrow2(c, d, kind));
}

// Whether four elements of C from a multiple of four columns on can be stored at once.
INLINE bool gemm_stores_four(const GemmEpilogue *e) {
  int64_t size = e->out_kind == KIND_FP32 ? 4 : 2;
  return (((int64_t)(uintptr_t)e->c | e->c_stride * size | e->c_batch_stride * size) & (4 * size - 1)) == 0;
}

// Of four elements of a row the `left` first ones.
INLINE void gemm_add_four(float (&f)[4], const void *x, int64_t at, int kind, float by, int64_t left) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i < left) f[i] += by * load_one(x, at + i, kind);
}

// Four elements of a row; at_once: they can be stored so. What the epilogue has is asked once for all of them: where k is shared out, blocks
// do nothing else meanwhile.
INLINE void gemm_finish_four(const GemmEpilogue *e, float alpha, bool at_once, int64_t batch, int64_t row, int64_t column, int64_t n,
                             const float (&v)[4], const float (&up)[4]) {
  int64_t at = batch * e->c_batch_stride + row * e->c_stride + column, left = n - column;
  float f[4];
#pragma unroll
  for (int i = 0; i < 4; i++) f[i] = v[i] * alpha;
  if (e->beta != 0) gemm_add_four(f, e->c, at, e->out_kind, e->beta, left);
  if (e->bias) gemm_add_four(f, e->bias, column, e->bias_kind, 1, left);
  if (e->activation == GEMM_SILU_MUL) {
    float u[4] = {up[0] * alpha, up[1] * alpha, up[2] * alpha, up[3] * alpha};
    if (e->bias) gemm_add_four(u, e->bias, n + column, e->bias_kind, 1, left);
#pragma unroll
    for (int i = 0; i < 4; i++) f[i] = gemm_silu(f[i]) * u[i];
  } else if (e->activation != GEMM_LINEAR)
#pragma unroll
    for (int i = 0; i < 4; i++) f[i] = gemm_activate(f[i], e->activation);
  if (e->residual)
    gemm_add_four(f, e->residual, batch * e->residual_batch_stride + row * e->residual_stride + column, e->out_kind, 1, left);
  if (at_once && column + 3 < n) gemm_store_four((char *)e->c + at * (e->out_kind == KIND_FP32 ? 4 : 2), e->out_kind, f[0], f[1], f[2], f[3]);
  else
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (column + i < n) store_one(e->c, at + i, e->out_kind, f[i]);
}

#endif
