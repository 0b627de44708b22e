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

// Gate and up under a chunk anywhere in a row, as they were loaded. Nothing is waited for until they are used.
typedef struct Pair {
  Around gate, up;
  int there; // 1: gate is loaded; 2: up is
} Pair;

INLINE const char *row_of(const void *at, uint64_t row, int64_t stride, int in) {
  return (const char *)at + (int64_t)row * stride * in;
}

INLINE Around load_side(const char *row, int64_t first, int64_t n, int per, int in, int wide, int *there) {
  const char *from = row + first * in;
  int inside = first >= 0 && first + per <= n;
  Around a;
  *there = inside && (wide || is_around(from, row, row + n * in));
  if (!wide) return load_around(from, *there);
  a.lo = a.hi = load_if(from, *there);
  return a;
}

// `wide`: rows start on 16 bytes and end with a chunk.
INLINE void load_pair(const SiluParams *p, uint64_t row, int64_t first, int per, int in, int wide, Pair *pair) {
  int gate, up;
  pair->gate = load_side(row_of(p->gate, row, p->gate_stride, in), first, p->spread.length, per, in, wide, &gate);
  pair->up = load_side(row_of(p->up, row, p->up_stride, in), first, p->spread.length, per, in, wide, &up);
  pair->there = gate | up << 1;
}

INLINE void take_side(Around a, const char *row, int64_t first, int64_t n, int per, int in, int kind, int wide, int there,
                      float *f) {
  Vec v;
  const char *from = row + first * in;
  v.v = wide ? a.lo : take_around(a, from, in);
  if (!wide && !there) v.v = load_singly(from, row, row + n * in, in);
  to_floats(v.u, per, kind_of(in, kind), f);
}

// Its results, zeros outside the row; silu(0) * 0 is 0, too. Returns the largest magnitude, NaN aside.
INLINE float silu_pair(const SiluParams *p, uint64_t row, int64_t first, const Pair *pair, int per, int in, int wide,
                       float *f) {
  float g[8], most = 0;
  int64_t n = p->spread.length;
  take_side(pair->gate, row_of(p->gate, row, p->gate_stride, in), first, n, per, in, p->x_kind, wide, pair->there & 1, f);
  take_side(pair->up, row_of(p->up, row, p->up_stride, in), first, n, per, in, p->x_kind, wide, pair->there & 2, g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    most = fmaxf(most, fabsf(f[j]));
  }
  return most;
}

INLINE void store_part(const SiluParams *p, uint64_t row, int64_t first, int per, int wide, float scale, float inverse,
                       float *f) {
  uint8_t *y = (uint8_t *)p->y + (int64_t)row * p->y_stride;
  int64_t n = p->spread.length;
  if (first >= n) return;
  if (isinf(inverse)) {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fdiv_rn(f[j], scale);
  } else {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], inverse);
  }
  if (wide || (first >= 0 && first + per <= n && ((uintptr_t)(y + first) & (per - 1)) == 0)) {
    store_chunk(y, first, per, 1, KIND_FP8, f);
  } else {
    store_some(y, first, n, per, 1, KIND_FP8, f);
  }
}

// Zeros stay zeros: there the scale is 0 and nothing is divided by it.
INLINE float inverse_of(float scale) { return scale == 0 ? 0 : __frcp_rn(scale); }

INLINE float lanes_max(float most, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  return most;
}

INLINE void silu_block(int in, const SiluParams *p) {
  const int per = CHUNK_OF(in, 1), lanes = 128 / per;
  uint64_t i = thread_index(), row = 0, c = 0;
  float f[8], most = 0;
  begin_kernel();
  bool mine = i < p->spread.chunks;
  if (mine) {
    Pair pair;
    row = divide(i, p->spread.divider);
    c = i - row * p->spread.divider.by;
    load_pair(p, row, (int64_t)(c * per), per, in, 0, &pair);
    most = silu_pair(p, row, (int64_t)(c * per), &pair, per, in, 0, f);
  }
  most = lanes_max(most, lanes); // a group's lanes are all `mine`, or none is
  if (!mine) return;
  float scale = __fdiv_rn(most, 448), inverse = inverse_of(scale);
  if (c % lanes == 0) p->scales[i / lanes] = scale;
  store_part(p, row, (int64_t)(c * per), per, 0, scale, inverse, f);
}

// Of the `threads` on a row: a warp, or the whole block.
INLINE float threads_max(float most, int threads, float *shared) {
  most = lanes_max(most, 32);
  if (threads <= 32) return most;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
  __syncthreads();
  return lanes_max(threadIdx.x % 32 < threads / 32 ? shared[threadIdx.x % 32] : 0, 32);
}

// A row by a warp (rows > 1) or a block of as many threads as it takes. Chunks lie on y's boundaries, so that a row that
// starts between two has a short one first.
INLINE void silu_row(int in, int rows, int chunks, int wide, const SiluParams *p) {
  __shared__ float shared[32];
  enum { MOST = 4 };
  const int per = CHUNK_OF(in, 1), threads = rows > 1 ? 32 : blockDim.x;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, row = block * rows + threadIdx.x / threads;
  uint32_t shift = wide ? 0 : (uint32_t)((uintptr_t)p->y + row * (uint64_t)p->y_stride) & (per - 1);
  int64_t n = p->spread.length, first = (int64_t)(threadIdx.x % threads) * per - shift;
  const int64_t step = (int64_t)threads * per;
  float f[MOST][8], most = 0; // those beyond `chunks` fold away
  Pair pair[MOST];
  begin_kernel();
  if (row >= p->rows) return; // a whole warp, or a whole block
#pragma unroll
  for (int k = 0; k < chunks; k++) load_pair(p, row, first + k * step, per, in, wide, &pair[k]);
#pragma unroll
  for (int k = 0; k < chunks; k++)
    most = fmaxf(most, silu_pair(p, row, first + k * step, &pair[k], per, in, wide, f[k]));
  if (!chunks)
    for (int64_t at = first; at < n; at += step) {
      load_pair(p, row, at, per, in, wide, &pair[0]);
      most = fmaxf(most, silu_pair(p, row, at, &pair[0], per, in, wide, f[0]));
    }
  most = threads_max(most, threads, shared);
  float scale = __fdiv_rn(most, 448), inverse = inverse_of(scale);
  if (threadIdx.x % threads == 0) p->scales[row] = scale;
#pragma unroll
  for (int k = 0; k < chunks; k++) store_part(p, row, first + k * step, per, wide, scale, inverse, f[k]);
  if (!chunks)
    for (int64_t at = first; at < n; at += step) {
      load_pair(p, row, at, per, in, wide, &pair[0]);
      silu_pair(p, row, at, &pair[0], per, in, wide, f[0]);
      store_part(p, row, at, per, wide, scale, inverse, f[0]);
    }
}

#define SILU(in, out)                                                                                        \
  KERNEL __launch_bounds__(256, 8) sol_silu_mul_lean_##in##_##out(SiluLean p) { silu_lean(in, out, p); }     \
  KERNEL __launch_bounds__(256) sol_silu_mul_any_##in##_##out(SiluParams p) { silu_any(in, out, p); }
#define SILU_BLOCK(in)                                                                                       \
  KERNEL __launch_bounds__(256) sol_silu_mul_block_##in(const __grid_constant__ SiluParams p) { silu_block(in, &p); }
#define SILU_ROW(in, threads, rows, chunks, wide, blocks)                                                    \
  KERNEL __launch_bounds__(threads * rows, blocks)                                                           \
  sol_silu_mul_row_##in##_##threads##_##chunks##_##wide(const __grid_constant__ SiluParams p) {              \
    silu_row(in, rows, chunks, wide, &p);                                                                    \
  }
#include "silu_mul.def"
