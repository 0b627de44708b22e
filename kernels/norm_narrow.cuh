// Row normalisations of short rows of any length, alignment and types (narrow.cuh).
#ifndef SOL_KERNELS_NORM_NARROW_CUH
#define SOL_KERNELS_NORM_NARROW_CUH

#include "narrow.cuh"
#include "norm_fp8.cuh"

// What a block has of the tensors.
typedef struct NormTiles {
  NarrowTile x, residual, y, second;
  int rows;
} NormTiles;

INLINE int narrow_size(int kind) { // of an element
  return kind == KIND_FP8 ? 1 : kind == KIND_FP32 ? 4 : 2;
}

INLINE NormTiles narrow_tiles(NormKernel c, const NormParams *p) {
  const int in = norm_bytes(c);
  NormTiles t;
  t.rows = narrow_rows(&p->narrow, p->m);
  t.x = narrow_tile(&p->narrow, NARROW_X, c.op == NORM_EMBED ? nullptr : p->x, p->x_stride, in, t.rows);
  t.residual = narrow_tile(&p->narrow, NARROW_RESIDUAL, p->residual, p->residual_stride, in, t.rows);
  t.second = narrow_tile(&p->narrow, NARROW_SECOND, p->second, p->second_stride, in, t.rows);
  t.y = narrow_tile(&p->narrow, NARROW_Y, p->y, p->y_stride, c.op == NORM_RMS_FP8 ? 1 : narrow_size(p->y_kind), t.rows);
  return t;
}

// The table's rows that the block's ids name, in shared memory beside the tiles; NULL: there is none. After narrow_arrived, or a barrier.
INLINE const char **narrow_ids(const NormParams *p) { return (const char **)(narrow_memory + p->narrow.place[NARROW_IDS]); }

INLINE void narrow_load_ids(NormKernel c, const NormParams *p, int rows) {
  uint64_t first = block_index() * p->narrow.rows;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    NormRow r = norm_row(c, p, first + row, true);
    narrow_ids(p)[row] = r.known ? r.x : nullptr;
  }
  __syncthreads();
}

// Starts to copy them. Those that are not there are left out.
INLINE void narrow_look_up(NormKernel c, const NormParams *p, NarrowTile t) {
  const char *begin = (const char *)p->x, *end = begin + (p->vocab - 1) * p->x_stride + t.bytes;
  narrow_load_ids(c, p, t.rows);
#pragma unroll 2
  for (int row = threadIdx.x / NARROW_COPIERS; row < t.rows; row += blockDim.x / NARROW_COPIERS) {
    const char *from = narrow_ids(p)[row];
    if (from) narrow_fetch_row(t, row, from, begin, end, norm_bytes(c));
  }
}

// A row of x as floats. A row of the table that is not there: zeros.
INLINE void narrow_input(NormKernel c, const NormParams *p, const NarrowTile &t, NarrowPlace a, float *f) {
  if (c.op != NORM_EMBED) {
    narrow_take(narrow_row(t, a.row), a, c.kind, 0, f);
    return;
  }
  const char *from = a.n ? narrow_ids(p)[a.row] : nullptr;
  if (!from) a.n = 0;
  narrow_take(narrow_row(t, a.row, from), a, c.kind, 0, f);
}

// x + residual, rounded to the type, in place of both.
INLINE void narrow_add(NormKernel c, const NormTiles *t, NarrowPlace a, float *f) {
  float g[NARROW_EACH];
  narrow_take(narrow_row(t->residual, a.row), a, c.kind, 0, g);
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    f[k] += g[k];
    uint16_t half = norm_bytes(c) == 2 ? narrow_one(f[k], c.kind) : 0;
    if (norm_bytes(c) == 2) f[k] = load_one(&half, 0, c.kind);
  }
}

INLINE void narrow_output(NormKernel c, const NormParams *p, const NarrowTile &y, NarrowPlace a, const float *f) {
  if (c.op == NORM_RMS_FP8) narrow_put(narrow_row(y, a.row), a, KIND_FP8, f);
  else narrow_give(narrow_row(y, a.row), a, c.kind, p->y_kind, f);
}

// Two chains of additions: the row's squares, or for layernorm its elements.
INLINE float narrow_sum(NormKernel c, const float *f) {
  float s[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) s[k % 2] = c.op == NORM_LAYER ? s[k % 2] + f[k] : fmaf(f[k], f[k], s[k % 2]);
  return s[0] + s[1];
}

// f becomes its distances from the mean; returns the sum of their squares.
INLINE float narrow_centre(NarrowPlace a, float mean, float *f) {
  float s[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    f[k] = narrow_has(a, k) ? f[k] - mean : 0;
    s[k % 2] = fmaf(f[k], f[k], s[k % 2]);
  }
  return s[0] + s[1];
}

// A row to fp8, by tensor or by row: `f` and the weights in, what is stored out.
INLINE void narrow_fp8(const NormParams *p, NarrowPlace a, uint64_t row, const float *w, float *f) {
  float2 v = make_float2(0, 0);
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    v.x = fmaf(f[k], f[k], v.x);
    f[k] *= w[k];
    v.y = higher(v.y, fabsf(f[k]));
  }
  v = make_float2(lanes_sum(v.x, a.lanes), lanes_highest(v.y, a.lanes));
  float scale = rsqrtf(fmaf(v.x, p->over_n, p->eps));
  bool by_row = p->scaling == NORM_SCALE_ROW;
  Fp8Scale q = by_row ? fp8_choose(v.y, scale, p->scales + row, a.n && a.lane == 0) : fp8_scale(*p->scales);
  if (!by_row)
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++) f[k] *= scale;
  fp8_divide(q, NARROW_EACH, f);
}

INLINE void narrow_norm(NormKernel c, const NormParams *p, NarrowPlace a, const float *w, const float *b, float *f) {
  float sum = lanes_sum(narrow_sum(c, f), a.lanes), mean = 0;
  if (c.op == NORM_LAYER) {
    mean = sum * p->over_n;
    sum = lanes_sum(narrow_centre(a, mean, f), a.lanes);
  }
  float scale = rsqrtf(fmaf(sum, p->over_n, p->eps));
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++)
    f[k] = c.op == NORM_LAYER ? fmaf(f[k], w[k] * scale, b[k]) : f[k] * (w[k] * scale);
}

// Weights, offset included, and biases of this lane's columns.
INLINE void narrow_weights(NormKernel c, const NormParams *p, float *w, float *b) {
  NarrowCopy any = {p->narrow.lane_bits, NARROW_EACH};
  NarrowPlace a = narrow_place(&p->narrow, any, 0, NARROW_THREADS);
  narrow_vector(p->weight, a, p->weight_kind, 1, w);
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) w[k] += p->weight ? p->offset : 0;
  if (c.op == NORM_LAYER) narrow_vector(p->bias, a, p->weight_kind, 0, b);
}

// All rows of the block.
INLINE void narrow_turns(NormKernel c, const NormParams *p, const NormTiles *t, NarrowCopy copy, const float *w,
                         const float *b) {
  uint64_t first = block_index() * p->narrow.rows;
#pragma unroll 1
  for (int at = 0; at < t->rows; at += blockDim.x >> copy.lane_bits) {
    NarrowPlace a = narrow_place(&p->narrow, copy, at, t->rows);
    float f[NARROW_EACH];
    narrow_input(c, p, t->x, a, f);
    if (c.op == NORM_ADD) narrow_add(c, t, a, f);
    if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) narrow_put(narrow_row(t->second, a.row), a, c.kind, f);
    if (c.op == NORM_RMS_FP8) narrow_fp8(p, a, first + a.row, w, f);
    else narrow_norm(c, p, a, w, b, f);
    narrow_output(c, p, t->y, a, f);
  }
}

INLINE void norm_narrow(NormKernel c, const NormParams *p) {
  float w[NARROW_EACH], b[NARROW_EACH];
  begin_kernel();
  NormTiles t = narrow_tiles(c, p);
  if (c.op == NORM_EMBED) narrow_look_up(c, p, t.x);
  else narrow_fetch(t.x, norm_bytes(c));
  if (c.op == NORM_ADD) narrow_fetch(t.residual, norm_bytes(c));
  narrow_weights(c, p, w, b);
  narrow_arrived();
#define NARROW_TURNS(copy) narrow_turns(c, p, &t, copy, w, b)
  NARROW_COPIES(p->narrow, NARROW_NORM, NARROW_TURNS)
  __syncthreads();
  narrow_send(t.y, c.op == NORM_RMS_FP8 ? 1 : narrow_size(p->y_kind));
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) narrow_send(t.second, norm_bytes(c));
}

#endif
