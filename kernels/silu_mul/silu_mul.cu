// y = silu(gate) * up, also as fp8 with a scale for the tensor, for each row or for each 128 columns of a row.
#include "silu_mul.h"

#include "elementwise.cuh"
#include "funnel.cuh"

INLINE float silu_mul(float gate, float up) {
  return __fmul_rn(over_one_plus_exp2(gate, __fmul_rn(gate, -1.4426950409f)), up);
}

// Lean: rows of whole chunks on 16-byte boundaries.
INLINE void lean_chunk(int in, int out, int x_kind, int y_kind, SiluLean p, uint32_t i) {
  const int per = CHUNK_OF(in, out);
  uint32_t a[4], b[4];
  float f[8], g[8];
  uint32_t row = p.divider.by ? divide32(i, p.divider) : 0, c = i - row * p.divider.by;
  load_aligned((const char *)p.gate + row * p.gate_stride + (uint64_t)c * (per * in), per * in / 4, 0, a);
  load_aligned((const char *)p.up + row * p.up_stride + (uint64_t)c * (per * in), per * in / 4, 0, b);
  float scale = out == 1 ? __ldg(p.scales) : 1, inverse = out == 1 ? __frcp_rn(scale) : 1;
  to_floats(a, per, x_kind, f);
  to_floats(b, per, x_kind, g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    if (out == 1) f[j] = over_scale(f[j], scale, inverse);
  }
  from_floats(f, per, y_kind, a);
  store_aligned((char *)p.y + row * p.y_stride + (uint64_t)c * (per * out), per * out / 4, a);
}

INLINE void silu_lean(int in, int out, SiluLean p) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  begin_kernel();
  if (i >= p.chunks) return;
  if (in == 4 && out == 2) {
    if (p.y_kind == KIND_FP16) lean_chunk(in, out, KIND_FP32, KIND_FP16, p, i);
    else lean_chunk(in, out, KIND_FP32, KIND_BF16, p, i);
  } else if (in == 4) {
    lean_chunk(in, out, KIND_FP32, kind_of(out, 0), p, i);
  } else if (p.x_kind == KIND_FP16) {
    lean_chunk(in, out, KIND_FP16, kind_of(out, KIND_FP16), p, i);
  } else {
    lean_chunk(in, out, KIND_BF16, kind_of(out, KIND_BF16), p, i);
  }
}

INLINE void silu_any(int in, int out, SiluParams p) {
  const int per = CHUNK_OF(in, out);
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  const char *gate = (const char *)p.gate + (int64_t)c.row * p.gate_stride * in;
  const char *up = (const char *)p.up + (int64_t)c.row * p.up_stride * in;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride * out;
  float scale = out == 1 ? __ldg(p.scales) : 1, inverse = out == 1 ? __frcp_rn(scale) : 1;
  float f[8], g[8];
  Raw a, b;
  if (c.full) {
    load_chunk(gate, c.first, p.spread.length, per, in, 0, &a);
    load_chunk(up, c.first, p.spread.length, per, in, 0, &b);
  } else {
    load_some(gate, c.first, p.spread.length, per, in, &a);
    load_some(up, c.first, p.spread.length, per, in, &b);
  }
  to_floats(a.w, per, kind_of(in, p.x_kind), f);
  to_floats(b.w, per, kind_of(in, p.x_kind), g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    if (out == 1) f[j] = over_scale(f[j], scale, inverse);
  }
  if (c.full) store_chunk(y, c.first, per, out, p.y_kind, f);
  else store_some(y, c.first, p.spread.length, per, out, p.y_kind, f);
}

// fp8 with scales of its own. A thread holds `count` pieces of a row, `step` apart: vectors where all rows are whole
// vectors on 16 bytes, otherwise single elements, neighbouring threads beside each other. Types are known where this is
// compiled: branches between loads keep them apart.
typedef struct SiluRow {
  const char *gate, *up;
  uint8_t *y;
  int n; // columns, as many as matter
} SiluRow;

INLINE SiluRow silu_row_from(const SiluParams *p, uint64_t row, int64_t column, int in) {
  int64_t left = p->spread.length - column;
  SiluRow r;
  r.gate = (const char *)p->gate + ((int64_t)row * p->gate_stride + column) * in;
  r.up = (const char *)p->up + ((int64_t)row * p->up_stride + column) * in;
  r.y = (uint8_t *)p->y + (int64_t)row * p->y_stride + column;
  r.n = left < INT32_MAX ? (int)left : INT32_MAX;
  return r;
}

// Their results, 0 beyond the row's end. Returns the largest magnitude, NaN aside.
INLINE float silu_take(const SiluRow *r, int first, int step, int per, int count, int in, int kind, float (*f)[8]) {
  Vec a[8], b[8];
  float g[8], most = 0;
#pragma unroll
  for (int k = 0; k < count; k++) {
    int at = first + k * step;
    if (per > 1) {
      a[k].v = load_if(r->gate + at * in, at < r->n);
      b[k].v = load_if(r->up + at * in, at < r->n);
    } else {
      a[k].f[0] = at < r->n ? load_one(r->gate, at, kind) : 0;
      b[k].f[0] = at < r->n ? load_one(r->up, at, kind) : 0;
    }
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    to_floats(a[k].u, per, per > 1 ? kind : KIND_FP32, f[k]);
    to_floats(b[k].u, per, per > 1 ? kind : KIND_FP32, g);
#pragma unroll
    for (int j = 0; j < per; j++) {
      f[k][j] = silu_mul(f[k][j], g[j]);
      most = fmaxf(most, fabsf(f[k][j]));
    }
  }
  return most;
}

// Zeros stay zeros: there the scale is 0 and nothing is divided by it. A scale whose reciprocal overflows is enlarged,
// and so are the values.
INLINE void silu_give(const SiluRow *r, int first, int step, int per, int count, float scale, float (*f)[8]) {
  float more = scale < 0x1p-100f ? 0x1p64f : 1, inverse = scale == 0 ? 0 : __frcp_rn(__fmul_rn(scale, more));
#pragma unroll
  for (int k = 0; k < count; k++) {
    int at = first + k * step;
    if (at >= r->n) break;
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = __fmul_rn(__fmul_rn(f[k][j], more), inverse);
    if (per > 1) store_chunk(r->y, at, per, 1, KIND_FP8, f[k]);
    else store_one(r->y, at, KIND_FP8, f[k][0]);
  }
}

INLINE float lanes_max(float most, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  return most;
}

INLINE void silu_block(int in, int wide, int kind, const SiluParams *p) {
  const int per = wide ? 16 / in : 1, lanes = wide ? 128 / per : 32, count = wide ? 1 : 4;
  uint64_t i = thread_index(), block = i / lanes, row = divide(block, p->spread.divider);
  int first = (int)(threadIdx.x % lanes) * per;
  float f[4][8];
  begin_kernel();
  SiluRow r = silu_row_from(p, row, (int64_t)(block - row * p->spread.divider.by) * 128, in);
  if (block >= p->spread.chunks) r.n = 0;
  float scale = __fdiv_rn(lanes_max(silu_take(&r, first, 32, per, count, in, kind, f), lanes), 448);
  if (i % lanes == 0 && r.n) p->scales[block] = scale;
  silu_give(&r, first, 32, per, count, scale, f);
}

// `threads`: of a row where a block has several rows; otherwise it has as many as the row needs. No count: the row is computed
// twice.
INLINE void silu_row(int in, int wide, int threads, int rows, int count, int kind, const SiluParams *p) {
  __shared__ float shared[32];
  const int per = wide ? 16 / in : 1;
  int of = rows > 1 ? threads : blockDim.x, thread = rows > 1 ? threadIdx.x % threads : threadIdx.x;
  uint64_t row = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * rows + (rows > 1 ? threadIdx.x / threads : 0);
  int first = thread * per, step = of * per;
  float f[8][8], most = 0;
  begin_kernel();
  if (rows == 1 && row >= p->rows) return; // a whole block
  SiluRow r = silu_row_from(p, row, 0, in);
  if (row >= p->rows) r.n = 0;
  if (count) most = silu_take(&r, first, step, per, count, in, kind, f);
  else
    for (int64_t at = 0; at < p->spread.length; at += step) {
      r = silu_row_from(p, row, at, in);
      most = fmaxf(most, silu_take(&r, first, step, per, 1, in, kind, f));
    }
  most = lanes_max(most, rows > 1 ? threads : 32);
  if (rows == 1) {
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
    __syncthreads();
    most = lanes_max(threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : 0, 32);
  }
  float scale = __fdiv_rn(most, 448);
  if (thread == 0 && row < p->rows) p->scales[row] = scale;
  if (count) silu_give(&r, first, step, per, count, scale, f);
  else
    for (int64_t at = 0; at < p->spread.length; at += step) {
      r = silu_row_from(p, row, at, in);
      silu_take(&r, first, step, per, 1, in, kind, f);
      silu_give(&r, first, step, per, 1, scale, f);
    }
}

#define SILU(in, out)                                                                                        \
  KERNEL __launch_bounds__(256, 8) sol_silu_mul_lean_##in##_##out(SiluLean p) { silu_lean(in, out, p); }     \
  KERNEL __launch_bounds__(256) sol_silu_mul_any_##in##_##out(SiluParams p) { silu_any(in, out, p); }
#define SILU_BY_KIND(call, in, ...)                                                                          \
  if (in == 4) call(in, __VA_ARGS__, KIND_FP32, &p);                                                         \
  else if (p.x_kind == KIND_FP16) call(in, __VA_ARGS__, KIND_FP16, &p);                                      \
  else call(in, __VA_ARGS__, KIND_BF16, &p);
#define SILU_BLOCK(in, wide)                                                                                 \
  KERNEL __launch_bounds__(256) sol_silu_mul_block_##in##_##wide(const __grid_constant__ SiluParams p) {     \
    SILU_BY_KIND(silu_block, in, wide)                                                                       \
  }
#define SILU_ROW(in, wide, threads, rows, count, blocks)                                                     \
  KERNEL __launch_bounds__(threads * rows, blocks)                                                           \
  sol_silu_mul_row_##in##_##wide##_##threads##_##count(const __grid_constant__ SiluParams p) {               \
    SILU_BY_KIND(silu_row, in, wide, threads, rows, count)                                                   \
  }
#include "silu_mul.def"
