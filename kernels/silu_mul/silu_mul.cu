// y = silu(gate) * up, also as fp8 with a scale for the tensor, for each row or for each 128 columns of a row.
#include "silu_mul.h"

#include "elementwise.cuh"

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

// Gate and up under a chunk anywhere in a row; zeros beyond its end.
typedef struct Pair {
  Raw gate, up;
} Pair;

INLINE void load_pair(SiluParams p, uint64_t row, int64_t first, int per, int in, Pair *pair) {
  const char *gate = (const char *)p.gate + (int64_t)row * p.gate_stride * in;
  const char *up = (const char *)p.up + (int64_t)row * p.up_stride * in;
  int64_t n = p.spread.length;
  if (first + per <= n) {
    load_chunk(gate, first, n, per, in, 0, &pair->gate);
    load_chunk(up, first, n, per, in, 0, &pair->up);
  } else {
    load_some(gate, first, n, per, in, &pair->gate);
    load_some(up, first, n, per, in, &pair->up);
  }
}

// Its results; silu(0) * 0 is 0, too. Returns the largest magnitude, NaN aside.
INLINE float silu_pair(SiluParams p, const Pair *pair, int per, int in, float *f) {
  float g[8], most = 0;
  to_floats(pair->gate.w, per, kind_of(in, p.x_kind), f);
  to_floats(pair->up.w, per, kind_of(in, p.x_kind), g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    most = fmaxf(most, fabsf(f[j]));
  }
  return most;
}

INLINE void store_part(SiluParams p, uint64_t row, int64_t first, int per, float scale, float inverse, float *f) {
  uint8_t *y = (uint8_t *)p.y + (int64_t)row * p.y_stride;
  int64_t n = p.spread.length;
#pragma unroll
  for (int j = 0; j < per; j++) f[j] = over_scale(f[j], scale, inverse);
  if (first + per <= n && ((uintptr_t)(y + first) & (per - 1)) == 0) {
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

INLINE void silu_block(int in, SiluParams p) {
  const int per = CHUNK_OF(in, 1), lanes = 128 / per;
  uint64_t i = thread_index(), row = 0, c = 0;
  float f[8], most = 0;
  begin_kernel();
  bool mine = i < p.spread.chunks;
  if (mine) {
    row = divide(i, p.spread.divider);
    c = i - row * p.spread.divider.by;
    Pair pair;
    load_pair(p, row, (int64_t)(c * per), per, in, &pair);
    most = silu_pair(p, &pair, per, in, f);
  }
  most = lanes_max(most, lanes); // a group's lanes are all `mine`, or none is
  if (!mine) return;
  float scale = __fdiv_rn(most, 448), inverse = inverse_of(scale);
  if (c % lanes == 0) p.scales[i / lanes] = scale;
  store_part(p, row, (int64_t)(c * per), per, scale, inverse, f);
}

INLINE float threads_max(float most, int threads, float *shared) {
  most = lanes_max(most, threads < 32 ? threads : 32);
  if (threads <= 32) return most;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
  __syncthreads();
  most = shared[0];
#pragma unroll
  for (int w = 1; w < threads / 32; w++) most = fmaxf(most, shared[w]);
  return most;
}

INLINE void silu_row(int in, int threads, int rows, int chunks, SiluParams p) {
  __shared__ float shared[32];
  const int per = CHUNK_OF(in, 1);
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, row = block * rows + threadIdx.x / threads;
  int64_t n = p.spread.length, first = (int64_t)(threadIdx.x % threads) * per;
  const int64_t step = (int64_t)threads * per;
  float f[4][8], most = 0; // those beyond `chunks` fold away
  Pair pair[4];
  begin_kernel();
  if (row >= p.rows) return; // a whole warp, or a whole block
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (first + k * step < n) load_pair(p, row, first + k * step, per, in, &pair[k]);
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (first + k * step < n) most = fmaxf(most, silu_pair(p, &pair[k], per, in, f[k]));
  if (!chunks)
    for (int64_t at = first; at < n; at += step) {
      load_pair(p, row, at, per, in, &pair[0]);
      most = fmaxf(most, silu_pair(p, &pair[0], per, in, f[0]));
    }
  most = threads_max(most, threads, shared);
  float scale = __fdiv_rn(most, 448), inverse = inverse_of(scale);
  if (first == 0) p.scales[row] = scale;
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (first + k * step < n) store_part(p, row, first + k * step, per, scale, inverse, f[k]);
  if (!chunks)
    for (int64_t at = first; at < n; at += step) {
      load_pair(p, row, at, per, in, &pair[0]);
      silu_pair(p, &pair[0], per, in, f[0]);
      store_part(p, row, at, per, scale, inverse, f[0]);
    }
}

#define SILU(in, out)                                                                                        \
  KERNEL __launch_bounds__(256, 8) sol_silu_mul_lean_##in##_##out(SiluLean p) { silu_lean(in, out, p); }     \
  KERNEL __launch_bounds__(256) sol_silu_mul_any_##in##_##out(SiluParams p) { silu_any(in, out, p); }
#define SILU_BLOCK(in) KERNEL __launch_bounds__(256) sol_silu_mul_block_##in(SiluParams p) { silu_block(in, p); }
#define SILU_ROW(in, threads, rows, chunks)                                                                  \
  KERNEL __launch_bounds__(threads * rows) sol_silu_mul_row_##in##_##threads##_##chunks(SiluParams p) {      \
    silu_row(in, threads, rows, chunks, p);                                                                  \
  }
#include "silu_mul.def"
