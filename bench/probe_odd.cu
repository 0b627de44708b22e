// Rows that start anywhere (3001x5125), normalised in several ways, against a copy of the same bytes: what the library
// has (any3); elements one by one, neighbours beside each other ("scalar"); blocks that take R rows of the same
// alignment and keep the weights, shifted once, in registers ("class"); weights shifted on their way out of shared
// memory ("shm"); looked-up rows, shifted in registers ("around") or through shared memory ("through"); and wide aligned
// rows in registers ("held"). Prints a line a variant: the time in microseconds, its multiple of a dense copy of the same bytes,
// registers, blocks an SM. WRONG: the result is not the reference's. Needs sm_90.
//   nvcc -std=c++17 -O3 -arch=sm_90a -Ikernels bench/probe_odd.cu -o probe_odd && ./probe_odd
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <vector>

#include "norm_any.cuh"

static void ck(cudaError_t e, int line) {
  if (!e) return;
  printf("line %d: %s\n", line, cudaGetErrorString(e));
  exit(1);
}
#define CK(x) ck(x, __LINE__)
#ifndef PART
#define PART 0 // 1 to 3: a part of the variants alone; 4: what the library has
#endif
enum { RMS, ADD, EMBED };

struct Args {
  const char *x, *r, *w;
  char *y, *s;
  const long long *ids;
  int m, n, rows, period, ahead; // rows: of a block; period: rows of the same alignment are so far apart
  int64_t stride;                // bytes, of all
};

// ---- Pieces

template <bool F32> __device__ __forceinline__ void wide(uint4 v, float *f) {
  Vec u;
  u.v = v;
  widen(&u, F32 ? KIND_FP32 : KIND_BF16, F32 ? 4 : 2, f);
}
template <bool F32> __device__ __forceinline__ uint4 thin(const float *f) {
  Vec u;
  narrow(&u, F32 ? KIND_FP32 : KIND_BF16, F32 ? 4 : 2, f);
  return u.v;
}
template <bool F32> __device__ __forceinline__ float one(const char *p, int64_t i) { return load_one(p, i, F32 ? KIND_FP32 : KIND_BF16); }
template <bool F32> __device__ __forceinline__ void put(char *p, int64_t i, float f) { store_one(p, i, F32 ? KIND_FP32 : KIND_BF16, f); }
__device__ __forceinline__ void keep(uint4 &v) { asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)); }
template <bool F32> __device__ __forceinline__ uint4 join(uint4 lo, uint4 hi, uint32_t shift) {
  uint32_t w[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
  if (!F32)
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = __funnelshift_r(w[i], w[i + 1], (shift & 3) * 8);
  return make_uint4(w[0], w[1], w[2], w[3]);
}
__device__ __forceinline__ uint4 get(const char *p, bool there) { return load16_now(p, there).v; }
template <bool F32> __device__ __forceinline__ uint4 around(const char *p, bool there) { // reads up to 15 bytes more
  const char *a = p - ((uintptr_t)p & 15);
  return join<F32>(get(a, there), get(a + 16, there && a != p), (uint32_t)(uintptr_t)p & 15);
}
// 16 bytes out of shared memory, from any element on.
template <bool F32, int HOW> __device__ __forceinline__ uint4 shifted(const char *p) {
  if (HOW == 1) {
    uint32_t s = (uint32_t)(uintptr_t)p & 15;
    const char *a = p - s;
    return join<F32>(*(const uint4 *)a, *(const uint4 *)(a + 16), s);
  }
  if (F32) {
    const uint32_t *q = (const uint32_t *)p;
    return make_uint4(q[0], q[1], q[2], q[3]);
  }
  uint32_t s = (uint32_t)(uintptr_t)p & 2, w[5];
  const uint32_t *q = (const uint32_t *)(p - s);
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = q[i];
  return make_uint4(__funnelshift_r(w[0], w[1], s * 8), __funnelshift_r(w[1], w[2], s * 8), __funnelshift_r(w[2], w[3], s * 8), __funnelshift_r(w[3], w[4], s * 8));
}
__device__ __forceinline__ void ask(const char *x, int bytes) { // L2 for a row
  int head = (int)(-(uintptr_t)x & 15);
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(x + head)), "r"((bytes - head) & ~15) : "memory");
}
template <bool F32> __device__ __forceinline__ float2 squares(uint4 v, float2 s) {
  float f[8];
  wide<F32>(v, f);
#pragma unroll
  for (int j = 0; j < (F32 ? 4 : 8); j += 2) s.x = fmaf(f[j], f[j], s.x), s.y = fmaf(f[j + 1], f[j + 1], s.y);
  return s;
}
template <bool F32> __device__ __forceinline__ uint4 times(uint4 v, uint4 w, float scale) {
  float f[8], g[8];
  wide<F32>(v, f), wide<F32>(w, g);
#pragma unroll
  for (int j = 0; j < (F32 ? 4 : 8); j++) f[j] *= g[j] * scale;
  return thin<F32>(f);
}
template <bool F32> __device__ __forceinline__ uint4 plus(uint4 v, uint4 w) {
  float f[8], g[8];
  wide<F32>(v, f), wide<F32>(w, g);
#pragma unroll
  for (int j = 0; j < (F32 ? 4 : 8); j++) f[j] += g[j];
  return thin<F32>(f);
}

// Whole chunks of a row that starts at p, and its edges.
template <bool F32> struct Row {
  int head, chunks, edges;
  __device__ __forceinline__ Row(const char *p, int n) {
    const int B = F32 ? 4 : 2;
    head = (int)(-(uint32_t)(uintptr_t)p & 15) / B;
    chunks = (n - head) / (16 / B);
    edges = n - chunks * (16 / B);
  }
  __device__ __forceinline__ int edge(int e, int n) const { return e >= edges ? -1 : e < head ? e : n - edges + e; }
};

// ---- Rows of a class

// PIPE: the next row is asked for before this one is summed. AHEAD: 1: L2 is asked for a row further on.
template <int OP, bool F32, int T, int C, int MB, int PIPE> __global__ void __launch_bounds__(T, MB) klass(Args a) {
  constexpr int B = F32 ? 4 : 2, PER = 16 / B;
  __shared__ __align__(16) float part[2][40];
  int t = threadIdx.x;
  int64_t row = (int64_t)(blockIdx.x / a.period) * a.rows * a.period + blockIdx.x % a.period;
  norm_begin();
  if (row >= a.m) return;
  int count = min(a.rows, (int)((a.m - row + a.period - 1) / a.period));
  int64_t step = a.stride * a.period, at = row * a.stride;
  Row<F32> z(a.x + at, a.n);
  int e = z.edge(T - 1 - t, a.n);
  at += z.head * B + t * 16;
  uint4 v[C], q[C], nv[C], nq[C], w[C];
  float ev = 0, eq = 0, ew = 0, nev = 0, neq = 0;
  bool there[C];
#pragma unroll
  for (int k = 0; k < C; k++) there[k] = t + k * T < z.chunks;
#define TAKE(V, Q, EV, EQ, AT)                                                                                         \
  do {                                                                                                                 \
    _Pragma("unroll") for (int k = 0; k < C; k++) V[k] = get(a.x + (AT) + k * T * 16, there[k]);                       \
    if (OP == ADD) _Pragma("unroll") for (int k = 0; k < C; k++) Q[k] = get(a.r + (AT) + k * T * 16, there[k]);        \
    int64_t e_ = (AT) - z.head * B - t * 16;                                                                           \
    if (e >= 0) EV = one<F32>(a.x + e_, e);                                                                            \
    if (OP == ADD && e >= 0) EQ = one<F32>(a.r + e_, e);                                                               \
  } while (0)
  TAKE(v, q, ev, eq, at);
  {
#pragma unroll
    for (int k = 0; k < C; k++) w[k] = around<F32>(a.w + (z.head + (t + k * T) * PER) * B, there[k]);
#pragma unroll
    for (int k = 0; k < C; k++) keep(w[k]);
    if (e >= 0) ew = one<F32>(a.w, e);
  }
#pragma unroll 1
  for (int i = 0; i < count; i++, at += step) {
    if (PIPE && i + 1 < count) TAKE(nv, nq, nev, neq, at + step);
    if (t == 0 && a.ahead) {
      int64_t far = row + (int64_t)i * a.period + a.ahead * (a.rows == 1 ? 1 : a.period);
      if (far < a.m) {
        ask(a.x + far * a.stride, a.n * B);
        if (OP == ADD) ask(a.r + far * a.stride, a.n * B);
      }
    }
    int64_t start = at - z.head * B - t * 16;
    if (OP == ADD) {
#pragma unroll
      for (int k = 0; k < C; k++) {
        v[k] = plus<F32>(v[k], q[k]);
        if (there[k]) *(uint4 *)(a.s + at + k * T * 16) = v[k];
      }
      if (e >= 0) {
        put<F32>(a.s + start, e, ev + eq);
        ev = F32 ? ev + eq : __bfloat162float(__float2bfloat16(ev + eq));
      }
    }
    float2 s = make_float2(0, 0);
#pragma unroll
    for (int k = 0; k < C; k++) s = squares<F32>(v[k], s);
    if (e >= 0) s.x = fmaf(ev, ev, s.x);
#pragma unroll
    for (int k = 0; k < C; k++) keep(v[k]);
    float scale = rsqrtf(block_sum(s.x + s.y, part[i & 1]) * (1.0f / a.n) + 1e-6f);
#pragma unroll
    for (int k = 0; k < C; k++) {
      uint4 o = times<F32>(v[k], w[k], scale);
      if (there[k]) *(uint4 *)(a.y + at + k * T * 16) = o;
    }
    if (e >= 0) put<F32>(a.y + start, e, ev * ew * scale);
    if (PIPE) {
#pragma unroll
      for (int k = 0; k < C; k++) v[k] = nv[k], q[k] = nq[k];
      ev = nev, eq = neq;
    } else if (i + 1 < count) {
      TAKE(v, q, ev, eq, at + step);
    }
  }
}

// ---- One row a block, weights by way of shared memory

template <int OP, bool F32, int T, int C, int MB, int HOW> __global__ void __launch_bounds__(T, MB) shm(Args a) {
  constexpr int B = F32 ? 4 : 2, PER = 16 / B;
  extern __shared__ __align__(16) char ws[];
  __shared__ __align__(16) float part[40];
  int t = threadIdx.x;
  int64_t row = blockIdx.x;
  norm_begin();
  Row<F32> z(a.x + row * a.stride, a.n);
  int e = z.edge(T - 1 - t, a.n);
  int64_t start = row * a.stride, at = start + z.head * B + t * 16;
  uint4 v[C], q[C];
  float ev = 0, eq = 0, ew = 0;
  int all = (a.n * B + 15) / 16;
  for (int k = t; k < all; k += T)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(ws + k * 16)), "l"(__cvta_generic_to_global(a.w + k * 16)) : "memory");
#pragma unroll
  for (int k = 0; k < C; k++) v[k] = get(a.x + at + k * T * 16, t + k * T < z.chunks);
  if (OP == ADD)
#pragma unroll
    for (int k = 0; k < C; k++) q[k] = get(a.r + at + k * T * 16, t + k * T < z.chunks);
  if (e >= 0) ev = one<F32>(a.x + start, e), ew = one<F32>(a.w, e);
  if (OP == ADD && e >= 0) eq = one<F32>(a.r + start, e);
  if (t == 0 && a.ahead && row + a.ahead < a.m) {
    ask(a.x + (row + a.ahead) * a.stride, a.n * B);
    if (OP == ADD) ask(a.r + (row + a.ahead) * a.stride, a.n * B);
  }
  if (OP == ADD) {
#pragma unroll
    for (int k = 0; k < C; k++) {
      v[k] = plus<F32>(v[k], q[k]);
      if (t + k * T < z.chunks) *(uint4 *)(a.s + at + k * T * 16) = v[k];
    }
    if (e >= 0) {
      put<F32>(a.s + start, e, ev + eq);
      ev = F32 ? ev + eq : __bfloat162float(__float2bfloat16(ev + eq));
    }
  }
  float2 s = make_float2(0, 0);
#pragma unroll
  for (int k = 0; k < C; k++) s = squares<F32>(v[k], s);
  if (e >= 0) s.x = fmaf(ev, ev, s.x);
#pragma unroll
  for (int k = 0; k < C; k++) keep(v[k]);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float scale = rsqrtf(block_sum(s.x + s.y, part) * (1.0f / a.n) + 1e-6f);
#pragma unroll
  for (int k = 0; k < C; k++)
    if (t + k * T < z.chunks) *(uint4 *)(a.y + at + k * T * 16) = times<F32>(v[k], shifted<F32, HOW>(ws + (z.head + (t + k * T) * PER) * B), scale);
  if (e >= 0) put<F32>(a.y + start, e, ev * ew * scale);
}

// ---- fp32, one by one. ALIGN: 31: warps take whole lines of y, 7: whole sectors. 0: blocks take several rows, weights in registers.

template <int OP, int T, int E, int MB, int ALIGN, int EARLY> __global__ void __launch_bounds__(T, MB) scalar(Args a) {
  __shared__ __align__(16) float part[2][40];
  int t = threadIdx.x;
  int64_t row = (int64_t)blockIdx.x * a.rows;
  norm_begin();
  int count = min(a.rows, (int)(a.m - row));
  const float *w = (const float *)a.w;
  float wv[E], v[E];
#pragma unroll 1
  for (int i = 0; i < count; i++, row++) {
    float *y = (float *)(a.y + row * a.stride), *s2 = (float *)(a.s + row * a.stride);
    const float *r = (const float *)(a.r + row * a.stride);
    const float *x = (const float *)(a.x + (OP == EMBED ? a.ids[row] : row) * a.stride);
    int c = t - (int)((uint32_t)(uintptr_t)y >> 2 & ALIGN);
#pragma unroll
    for (int k = 0; k < E; k++) v[k] = (unsigned)(c + k * T) < (unsigned)a.n ? x[c + k * T] : 0;
    if (OP == ADD) {
      float q[E];
#pragma unroll
      for (int k = 0; k < E; k++) q[k] = (unsigned)(c + k * T) < (unsigned)a.n ? r[c + k * T] : 0;
#pragma unroll
      for (int k = 0; k < E; k++) {
        v[k] += q[k];
        if ((unsigned)(c + k * T) < (unsigned)a.n) s2[c + k * T] = v[k];
      }
    }
    if (EARLY && (i == 0 || ALIGN))
#pragma unroll
      for (int k = 0; k < E; k++) wv[k] = (unsigned)(c + k * T) < (unsigned)a.n ? w[c + k * T] : 0;
    if (t == 0 && a.ahead && row + a.ahead < a.m) {
      ask(a.x + (OP == EMBED ? a.ids[row + a.ahead] : row + a.ahead) * a.stride, a.n * 4);
      if (OP == ADD) ask(a.r + (row + a.ahead) * a.stride, a.n * 4);
    }
    float s0 = 0, s1 = 0;
#pragma unroll
    for (int k = 0; k < E; k++)
      if (k & 1) s1 = fmaf(v[k], v[k], s1);
      else s0 = fmaf(v[k], v[k], s0);
    float scale = rsqrtf(block_sum(s0 + s1, part[i & 1]) * (1.0f / a.n) + 1e-6f);
    if (!EARLY)
#pragma unroll
      for (int k = 0; k < E; k++) wv[k] = (unsigned)(c + k * T) < (unsigned)a.n ? w[c + k * T] : 0;
#pragma unroll
    for (int k = 0; k < E; k++)
      if ((unsigned)(c + k * T) < (unsigned)a.n) y[c + k * T] = v[k] * (wv[k] * scale);
  }
}

// ---- bf16 by words, two elements: warps take whole lines of y. What lies otherwise is read one by one; so are a first and
// a last element that share their word with another row.

template <int E, int T> __device__ __forceinline__ void pairs(const char *row, int c, const bool *in, uint32_t *v) {
  if ((uintptr_t)(row + c * 2) & 2) {
#pragma unroll
    for (int k = 0; k < E; k++) {
      uint32_t lo = 0, hi = 0;
      if (in[k]) lo = ((const uint16_t *)row)[c + 2 * k * T], hi = ((const uint16_t *)row)[c + 2 * k * T + 1];
      v[k] = lo | hi << 16;
    }
  } else {
#pragma unroll
    for (int k = 0; k < E; k++) v[k] = in[k] ? *(const uint32_t *)(row + (c + 2 * k * T) * 2) : 0;
  }
}
template <int OP, int T, int E, int MB, int ALIGN, int EARLY> __global__ void __launch_bounds__(T, MB) words(Args a) {
  __shared__ __align__(16) float part[40];
  int t = threadIdx.x;
  int64_t row = blockIdx.x;
  norm_begin();
  char *y = a.y + row * a.stride, *s2 = a.s + row * a.stride;
  const char *x = a.x + (OP == EMBED ? a.ids[row] : row) * a.stride, *r = a.r + row * a.stride;
  int head = (int)((uint32_t)(uintptr_t)y >> 1 & (2 * ALIGN + 1)), c = 2 * t - head;
  int e = t == T - 1 && head & 1 ? 0 : t == T - 2 && (head ^ a.n) & 1 ? a.n - 1 : -1;
  float ev = 0, eq = 0, ew = 0;
  uint32_t v[E], w[E];
  bool in[E];
#pragma unroll
  for (int k = 0; k < E; k++) in[k] = (unsigned)(c + 2 * k * T) < (unsigned)(a.n - 1);
  pairs<E, T>(x, c, in, v);
  if (e >= 0) ev = one<false>(x, e), ew = one<false>(a.w, e);
  if (OP == ADD) {
    uint32_t q[E];
    pairs<E, T>(r, c, in, q);
    if (e >= 0) eq = one<false>(r, e);
#pragma unroll
    for (int k = 0; k < E; k++) {
      float2 f = widen2(v[k], KIND_BF16), g = widen2(q[k], KIND_BF16);
      v[k] = narrow2(f.x + g.x, f.y + g.y, KIND_BF16);
      if (in[k]) *(uint32_t *)(s2 + (c + 2 * k * T) * 2) = v[k];
    }
    if (e >= 0) put<false>(s2, e, ev + eq), ev = __bfloat162float(__float2bfloat16(ev + eq));
  }
  if (EARLY) pairs<E, T>(a.w, c, in, w);
  if (t == 0 && a.ahead && row + a.ahead < a.m) {
    ask(a.x + (OP == EMBED ? a.ids[row + a.ahead] : row + a.ahead) * a.stride, a.n * 2);
    if (OP == ADD) ask(a.r + (row + a.ahead) * a.stride, a.n * 2);
  }
  float s0 = 0, s1 = 0;
#pragma unroll
  for (int k = 0; k < E; k++) {
    float2 f = widen2(v[k], KIND_BF16);
    s0 = fmaf(f.x, f.x, s0), s1 = fmaf(f.y, f.y, s1);
  }
  if (e >= 0) s0 = fmaf(ev, ev, s0);
#pragma unroll
  for (int k = 0; k < E; k++) asm volatile("" : "+r"(v[k]));
  float scale = rsqrtf(block_sum(s0 + s1, part) * (1.0f / a.n) + 1e-6f);
  if (!EARLY) pairs<E, T>(a.w, c, in, w);
#pragma unroll
  for (int k = 0; k < E; k++) {
    float2 f = widen2(v[k], KIND_BF16), g = widen2(w[k], KIND_BF16);
    if (in[k]) *(uint32_t *)(y + (c + 2 * k * T) * 2) = narrow2(f.x * (g.x * scale), f.y * (g.y * scale), KIND_BF16);
  }
  if (e >= 0) put<false>(y, e, ev * ew * scale);
}

// ---- Looked-up rows of a class of y. HOW: 0, 1: through shared memory, out of it by words, by vectors and a shift;
// 2: two vectors around and a shift, in registers

template <bool F32, int T, int C, int MB, int HOW> __global__ void __launch_bounds__(T, MB) lookup(Args a) {
  constexpr int B = F32 ? 4 : 2, PER = 16 / B, SIZE = T * C * 16 + 48;
  extern __shared__ __align__(16) char buf[];
  __shared__ __align__(16) float part[2][40];
  int t = threadIdx.x;
  int64_t row = (int64_t)(blockIdx.x / a.period) * a.rows * a.period + blockIdx.x % a.period;
  norm_begin();
  if (row >= a.m) return;
  int count = min(a.rows, (int)((a.m - row + a.period - 1) / a.period));
  int64_t step = a.stride * a.period, start = row * a.stride;
  long long id = a.ids[row], next = count > 1 ? a.ids[row + a.period] : 0;
  Row<F32> z(a.y + start, a.n);
  int e = z.edge(T - 1 - t, a.n);
  uint4 v[C], w[C];
  float ew = 0;
#pragma unroll 1
  for (int i = 0; i < count; i++, row += a.period, start += step) {
    const char *x = a.x + id * a.stride;
    Row<F32> zx = HOW == 2 ? z : Row<F32>(x, a.n);
    int ex = HOW == 2 ? e : zx.edge(T - 1 - t, a.n);
    float ev = 0;
#pragma unroll
    for (int k = 0; k < C; k++) {
      const char *from = x + zx.head * B + (t + k * T) * 16;
      if (HOW == 2) v[k] = around<F32>(from, t + k * T < zx.chunks);
      else v[k] = get(from, t + k * T < zx.chunks);
    }
    if (ex >= 0) ev = one<F32>(x, ex);
    id = next;
    if (i + 2 < count) next = a.ids[row + 2 * a.period];
    if (i == 0) {
#pragma unroll
      for (int k = 0; k < C; k++) w[k] = around<F32>(a.w + (z.head + (t + k * T) * PER) * B, t + k * T < z.chunks);
#pragma unroll
      for (int k = 0; k < C; k++) keep(w[k]);
      if (e >= 0) ew = one<F32>(a.w, e);
    }
    if (t == 0 && a.ahead) {
      int64_t far = row + a.ahead * (a.rows == 1 ? 1 : a.period);
      if (far < a.m) ask(a.x + a.ids[far] * a.stride, a.n * B);
    }
    float2 s = make_float2(0, 0);
#pragma unroll
    for (int k = 0; k < C; k++) s = squares<F32>(v[k], s);
    if (ex >= 0) s.x = fmaf(ev, ev, s.x);
    char *mine = buf + (i & 1) * SIZE;
    if (HOW == 2) {
#pragma unroll
      for (int k = 0; k < C; k++) keep(v[k]);
    } else {
#pragma unroll
      for (int k = 0; k < C; k++)
        if (t + k * T < zx.chunks) *(uint4 *)(mine + 16 + (t + k * T) * 16) = v[k];
      if (ex >= 0) put<F32>(mine + 16 - zx.head * B, ex, ev);
    }
    float scale = rsqrtf(block_sum(s.x + s.y, part[i & 1]) * (1.0f / a.n) + 1e-6f);
    char *y = a.y + start;
#pragma unroll
    for (int k = 0; k < C; k++) {
      if (t + k * T >= z.chunks) continue;
      if (HOW != 2) v[k] = shifted<F32, HOW>(mine + 16 + (z.head - zx.head) * B + (t + k * T) * 16);
      *(uint4 *)(y + z.head * B + (t + k * T) * 16) = times<F32>(v[k], w[k], scale);
    }
    if (e >= 0) put<F32>(y, e, (HOW == 2 ? ev : one<F32>(mine + 16 - zx.head * B, e)) * ew * scale);
  }
}

// ---- Looked-up rows alone, fp32: one by one, warps on whole lines of y.

template <int T, int E> __global__ void __launch_bounds__(T) move1(Args a) {
  int per = (a.n + 31 + T * E - 1) / (T * E), c = threadIdx.x + blockIdx.x % per * (T * E);
  int64_t row = blockIdx.x / per;
  let_successor_start();
  wait_for_predecessor();
  float *y = (float *)(a.y + row * a.stride), v[E];
  const float *x = (const float *)(a.x + a.ids[row] * a.stride);
  c -= (int)((uint32_t)(uintptr_t)y >> 2 & 31);
#pragma unroll
  for (int k = 0; k < E; k++) v[k] = (unsigned)(c + k * T) < (unsigned)a.n ? x[c + k * T] : 0;
  if (threadIdx.x == 0 && a.ahead && row + a.ahead < a.m) {
    const char *far = a.x + a.ids[row + a.ahead] * a.stride + blockIdx.x % per * (T * E * 4);
    int left = a.n * 4 - blockIdx.x % per * (T * E * 4);
    if (left > 32) ask(far, min(left, T * E * 4));
  }
#pragma unroll
  for (int k = 0; k < E; k++)
    if ((unsigned)(c + k * T) < (unsigned)a.n) y[c + k * T] = v[k];
}

// ---- What the library has

#define LIB(name, threads, blocks, body, ...)                                                                          \
  __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ NormParams p) {                      \
    NormKernel c = {__VA_ARGS__};                                                                                      \
    body(c, &p);                                                                                                       \
  }
#define BESIDE(op, T, blocks, early)                                                                                   \
  LIB(beside3_##op##_##T, 448, blocks, norm_any, NORM_##op, TYPE_##T, 3, 0, early, 1)                                  \
  LIB(beside2_##op##_##T, 448, 2, norm_any, NORM_##op, TYPE_##T, 2, 0, 1, 1)
BESIDE(RMS, f, 3, 0)
BESIDE(ADD, f, 2, 0)
BESIDE(EMBED, f, 3, 0)
BESIDE(RMS, b, 2, 1)
BESIDE(ADD, b, 2, 0)
BESIDE(EMBED, b, 2, 1)
#if !PART || PART == 3
LIB(twice_rms_f, 1024, 2, norm_twice, NORM_RMS, KIND_FP32, 0, 0, 0)
LIB(twice_rms_b, 1024, 2, norm_twice, NORM_RMS, KIND_BF16, 0, 0, 0)
LIB(big_emb_f, 512, 3, norm_big, NORM_EMBED, KIND_FP32, 0, 0, 0)
LIB(held_emb_f, 512, 3, norm_held, NORM_EMBED, KIND_FP32, 2, 0, 0)
LIB(held_rms_f, 512, 3, norm_held, NORM_RMS, KIND_FP32, 2, 0, 0)
LIB(held_rms_b, 512, 3, norm_held, NORM_RMS, KIND_BF16, 2, 0, 0)
LIB(held4_rms_f, 512, 2, norm_held, NORM_RMS, KIND_FP32, 4, 0, 0)
LIB(held4_rms_b, 512, 2, norm_held, NORM_RMS, KIND_BF16, 4, 0, 0)
LIB(held4w_rms_f, 1024, 1, norm_held, NORM_RMS, KIND_FP32, 4, 0, 0)
LIB(held4w_rms_b, 1024, 1, norm_held, NORM_RMS, KIND_BF16, 4, 0, 0)
LIB(held4_emb_f, 512, 2, norm_held, NORM_EMBED, KIND_FP32, 4, 0, 0)
#endif

// ---- Reference, and the clock

template <bool F32> __global__ void want(Args a, int op, char *y) {
  int64_t row = blockIdx.x;
  const char *x = a.x + (op == EMBED ? a.ids[row] : row) * a.stride, *r = a.r + row * a.stride;
  __shared__ double all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  auto value = [&](int i) {
    float v = one<F32>(x, i);
    if (op == ADD) v += one<F32>(r, i);
    return F32 ? v : __bfloat162float(__float2bfloat16(v));
  };
  double s = 0;
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) s += (double)value(i) * value(i);
  atomicAdd(&all, s);
  __syncthreads();
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) put<F32>(y + row * a.stride, i, (float)(value(i) / sqrt(all / a.n + 1e-6) * one<F32>(a.w, i)));
}
template <bool F32> __global__ void differ(const char *y, const char *z, int64_t n, int *worst) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    float p = one<F32>(y, i), q = one<F32>(z, i), d = fabsf(p - q) / (fabsf(q) + 0.01f);
    if (!(d < (F32 ? 2e-5f : 9e-3f))) atomicAdd(worst, 1);
  }
}
__global__ void copyk(const uint4 *x, uint4 *y, int64_t n) {
  let_successor_start();
  wait_for_predecessor();
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
template <bool F32> __global__ void fill(char *p, int64_t n, uint32_t seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    uint32_t h = (uint32_t)i * 2654435761u + seed;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    put<F32>(p, i, (h & 0xffff) / 32768.0f - 1.0f);
  }
}
__global__ void fill_ids(long long *p, int n, int vocab, uint32_t seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t h = i * 2654435761u + seed;
  h ^= h >> 15, h *= 2246822519u, h ^= h >> 13, h *= 3266489917u, h ^= h >> 16;
  p[i] = h % vocab;
}

static cudaStream_t stream;
static int LOOP = 16;
static float clock_of(const std::function<void(int)> &f) {
  cudaGraph_t g;
  cudaGraphExec_t e;
  CK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int k = 0; k < LOOP; k++) f(k);
  CK(cudaStreamEndCapture(stream, &g));
  CK(cudaGraphInstantiate(&e, g, 0));
  cudaEvent_t ev[12];
  for (auto &x : ev) cudaEventCreate(&x);
  for (int i = 0; i < 3; i++) CK(cudaGraphLaunch(e, stream));
  for (int i = 0; i < 11; i++) {
    cudaEventRecord(ev[i], stream);
    CK(cudaGraphLaunch(e, stream));
  }
  cudaEventRecord(ev[11], stream);
  CK(cudaStreamSynchronize(stream));
  std::vector<float> v;
  for (int i = 0; i < 11; i++) {
    float ms;
    cudaEventElapsedTime(&ms, ev[i], ev[i + 1]);
    v.push_back(ms * 1000 / LOOP);
  }
  std::sort(v.begin(), v.end());
  cudaGraphExecDestroy(e);
  cudaGraphDestroy(g);
  for (auto &x : ev) cudaEventDestroy(x);
  return v[5];
}
template <class P> static void launch(void (*kernel)(P), const P &p, int64_t grid, int block, size_t shared) {
  cudaLaunchConfig_t c = {};
  cudaLaunchAttribute at;
  at.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  at.val.programmaticStreamSerializationAllowed = 1;
  c.attrs = &at, c.numAttrs = 1, c.blockDim = block, c.gridDim = (unsigned)grid, c.dynamicSmemBytes = shared, c.stream = stream;
  CK(cudaLaunchKernelEx(&c, kernel, p));
}

template <bool F32> struct Bench {
  enum { SIZE = F32 ? 4 : 2, VOCAB = 32000 };
  int op, m, n, sets = 0;
  int64_t bytes, stride;
  std::vector<Args> a;
  char *ref = nullptr, *w, *table = nullptr;
  int *worst;
  float light;
  Bench(int op_, int m_, int n_) : op(op_), m(m_), n(n_) {
    stride = (int64_t)n * SIZE, bytes = (m * stride + 511) / 256 * 256;
    int64_t moved = bytes * (op == ADD ? 4 : 2);
    LOOP = (int)std::min<int64_t>(512, std::max<int64_t>(16, (int64_t)(1e3 / (moved / 4e6 + 1))));
    sets = (int)std::min<int64_t>(LOOP, std::max<int64_t>(3, (400000000 + moved - 1) / moved));
    CK(cudaMalloc(&w, n * SIZE + 64)), CK(cudaMalloc(&worst, 4)), CK(cudaMalloc(&ref, bytes));
    fill<F32><<<64, 256, 0, stream>>>(w, n, 999);
    if (op == EMBED) {
      CK(cudaMalloc(&table, VOCAB * stride + 64));
      fill<F32><<<4096, 256, 0, stream>>>(table, (int64_t)VOCAB * n, 5);
    }
    for (int i = 0; i < sets; i++) {
      Args b = {};
      b.m = m, b.n = n, b.stride = stride, b.w = w, b.rows = 1, b.period = 1;
      char *x = nullptr, *r = nullptr;
      long long *ids = nullptr;
      if (op != EMBED) CK(cudaMalloc(&x, bytes)), fill<F32><<<4096, 256, 0, stream>>>(x, (int64_t)m * n, i);
      if (op == ADD) CK(cudaMalloc(&r, bytes)), fill<F32><<<4096, 256, 0, stream>>>(r, (int64_t)m * n, i + 77);
      if (op == ADD) CK(cudaMalloc(&b.s, bytes));
      if (op == EMBED) CK(cudaMalloc(&ids, m * 8)), fill_ids<<<(m + 255) / 256, 256, 0, stream>>>(ids, m, VOCAB, i + 31);
      CK(cudaMalloc(&b.y, bytes));
      b.x = op == EMBED ? table : x, b.r = r, b.ids = ids;
      a.push_back(b);
    }
    want<F32><<<m, 256, 0, stream>>>(a[0], op, ref);
    CK(cudaStreamSynchronize(stream));
    std::vector<std::pair<char *, char *>> q(sets);
    int64_t c = bytes * (op == ADD ? 2 : 1);
    for (auto &s : q) CK(cudaMalloc(&s.first, c)), CK(cudaMalloc(&s.second, c)), CK(cudaMemset(s.first, 1, c));
    light = clock_of([&](int k) {
      cudaLaunchConfig_t g = {};
      cudaLaunchAttribute at;
      at.id = cudaLaunchAttributeProgrammaticStreamSerialization, at.val.programmaticStreamSerializationAllowed = 1;
      g.attrs = &at, g.numAttrs = 1, g.blockDim = 256, g.gridDim = (unsigned)((c / 16 + 255) / 256), g.stream = stream;
      CK(cudaLaunchKernelEx(&g, copyk, (const uint4 *)q[k % sets].first, (uint4 *)q[k % sets].second, c / 16));
    });
    for (auto &s : q) cudaFree(s.first), cudaFree(s.second);
    printf("%s %s %dx%d, dense copy %.2f us\n", op == RMS ? "rmsnorm" : op == ADD ? "add_rmsnorm" : "embed_rmsnorm", F32 ? "fp32" : "bf16", m, n, light);
  }
  ~Bench() {
    for (auto &b : a) {
      if (op != EMBED) cudaFree((void *)b.x);
      cudaFree((void *)b.r), cudaFree(b.s), cudaFree(b.y), cudaFree((void *)b.ids);
    }
    cudaFree(ref), cudaFree(w), cudaFree(worst), cudaFree(table);
  }
  int period() const { // rows of the same alignment
    int k = 1;
    while (k * stride % 16) k++;
    return k;
  }
  void line(const void *kernel, const char *name, int threads, size_t shared, const std::function<void(int)> &f, bool check = true) {
    CK(cudaMemsetAsync(a[0].y, 0xff, bytes, stream));
    CK(cudaMemsetAsync(worst, 0, 4, stream));
    f(0);
    cudaError_t bad = cudaStreamSynchronize(stream);
    if (bad) { printf("  %-40s %s\n", name, cudaGetErrorString(bad)); exit(1); }
    differ<F32><<<1024, 256, 0, stream>>>(a[0].y, ref, (int64_t)m * n, worst);
    int wrong = 0, fit = 0;
    CK(cudaMemcpyAsync(&wrong, worst, 4, cudaMemcpyDeviceToHost, stream));
    CK(cudaStreamSynchronize(stream));
    cudaFuncAttributes at;
    CK(cudaFuncGetAttributes(&at, kernel));
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, threads, shared));
    float us = clock_of(f);
    printf("  %-40s %8.2f %.3f  regs %d fit %d spill %d%s\n", name, us, us / light, at.numRegs, fit, (int)at.localSizeBytes, wrong && check ? " WRONG" : "");
    fflush(stdout);
  }
  void mine(void (*kernel)(Args), const char *name, int threads, size_t shared, int rows, bool classes, int ahead, int per = 1, bool check = true) {
    char label[96];
    snprintf(label, sizeof label, "%s R%d a%d", name, rows, ahead);
    if (shared > 48 << 10) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    int p = classes ? period() : 1;
    int64_t group = (int64_t)rows * p, grid = classes ? (m + group - 1) / group * p : (m + rows - 1) / rows;
    line((const void *)kernel, label, threads, shared, [=](int k) {
      Args b = a[k % sets];
      b.rows = rows, b.period = p, b.ahead = ahead;
      launch(kernel, b, grid * per, threads, shared);
    }, check);
  }
  void theirs(void (*kernel)(NormParams), const char *name, int threads, size_t shared, int rows, int ahead, int chunks) {
    char label[96];
    snprintf(label, sizeof label, "%s a%d", name, ahead);
    if (shared > 48 << 10) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    line((const void *)kernel, label, threads * rows, shared, [=](int k) {
      const Args &b = a[k % sets];
      NormParams p = {};
      p.x = b.x, p.y = b.y, p.weight = b.w, p.residual = b.r, p.second = b.s, p.ids = b.ids;
      p.x_stride = p.y_stride = p.residual_stride = p.second_stride = stride;
      p.m = m, p.n = n, p.eps = 1e-6f, p.over_n = 1.0f / n, p.vocab = VOCAB, p.wide_ids = 1;
      p.y_kind = p.weight_kind = F32 ? KIND_FP32 : KIND_BF16, p.layout = NORM_VECTORS, p.line = 128 / SIZE;
      p.threads = threads, p.chunks = p.span = chunks, p.ahead = ahead;
      p.thread_bits = 10, p.warp_lanes = 1;
      while (p.warp_lanes * 32 < threads) p.warp_lanes *= 2;
      if (rows > 1) {
        p.thread_bits = 0;
        while (1 << p.thread_bits < threads) p.thread_bits++;
        while (1 << p.row_bits < rows) p.row_bits++;
      }
      launch(kernel, p, (m + rows - 1) / rows, threads * rows, shared);
    });
  }
};


#define STR_(...) #__VA_ARGS__
#define STR(...)  STR_(__VA_ARGS__)
// Rows ahead that L2 is asked for: of one row a block, or of several.
static std::vector<int> aheads(int R, int64_t stride) { return R == 1 ? std::vector<int>{0, (int)((3 << 20) / stride), (int)((6 << 20) / stride)} : std::vector<int>{0, 2}; }
#define CLASS(op, f, T, C, MB, PIPE)                                                                                   \
  for (int R : PIPE ? std::vector<int>{2, 3, 4, 6, 8, 12} : std::vector<int>{1, 2, 4})                                 \
    for (int ah : aheads(R, b.stride)) b.mine(klass<op, f, T, C, MB, PIPE>, "class " STR(T) "x" STR(C) " mb" STR(MB) " pipe" STR(PIPE), T, 0, R, true, ah)
#define SHM(op, f, T, C, MB, HOW)                                                                                      \
  for (int ah : aheads(1, b.stride)) b.mine(shm<op, f, T, C, MB, HOW>, "shm " STR(T) "x" STR(C) " mb" STR(MB) " how" STR(HOW), T, (size_t)b.stride + 64, 1, false, ah)
#define SCALAR(op, T, E, MB, ALIGN, EARLY)                                                                             \
  for (int R : ALIGN ? std::vector<int>{1} : std::vector<int>{1, 2, 4})                                                \
    for (int ah : aheads(1, b.stride)) b.mine(scalar<op, T, E, MB, ALIGN, EARLY>, "scalar " STR(T) "x" STR(E) " mb" STR(MB) " align" STR(ALIGN) " early" STR(EARLY), T, 0, R, false, ah)
#define LOOKUP(f, T, C, MB, HOW)                                                                                       \
  for (int R : {1, 2, 4, 8})                                                                                           \
    for (int ah : aheads(R, b.stride)) b.mine(lookup<f, T, C, MB, HOW>, "lookup " STR(T) "x" STR(C) " mb" STR(MB) " how" STR(HOW), T, HOW == 2 ? 0 : (R > 1 ? 2 : 1) * (T * C * 16 + 48), R, true, ah)
#define LIBRARY(op, T, threads)                                                                                        \
  for (int ah : aheads(1, b.stride)) b.theirs(beside3_##op##_##T, "library", threads, 0, 1, ah, 0)
#define WORDS(op, T, E, MB, ALIGN, EARLY)                                                                              \
  for (int ah : aheads(1, b.stride)) b.mine(words<op, T, E, MB, ALIGN, EARLY>, "words " STR(T) "x" STR(E) " mb" STR(MB) " align" STR(ALIGN) " early" STR(EARLY), T, 0, 1, false, ah)
#define MOVE(T, E)                                                                                                     \
  for (int ah : aheads(1, b.stride)) b.mine(move1<T, E>, "lookup alone " STR(T) "x" STR(E), T, 0, 1, false, ah, (5125 + 31 + T * E - 1) / (T * E), false)


#if !PART || PART == 1
static void rms_f(void) {
  Bench<true> b(RMS, 3001, 5125);
  LIBRARY(RMS, f, 448);
  SHM(RMS, true, 448, 3, 3, 0);
  SCALAR(RMS, 448, 12, 3, 31, 0); SCALAR(RMS, 448, 12, 3, 31, 1); SCALAR(RMS, 448, 12, 3, 7, 1); SCALAR(RMS, 448, 12, 3, 7, 0); SCALAR(RMS, 352, 15, 4, 31, 0); SCALAR(RMS, 352, 15, 3, 31, 1); SCALAR(RMS, 448, 12, 3, 0, 1);
  CLASS(RMS, true, 352, 4, 3, 0); CLASS(RMS, true, 448, 3, 2, 1);
}
static void add_f(void) {
  Bench<true> b(ADD, 3001, 5125);
  LIBRARY(ADD, f, 448);
  SCALAR(ADD, 576, 9, 2, 31, 0); SCALAR(ADD, 576, 9, 2, 31, 1); SCALAR(ADD, 448, 12, 2, 31, 0); SCALAR(ADD, 448, 12, 2, 31, 1); SCALAR(ADD, 448, 12, 3, 31, 0);
  CLASS(ADD, true, 448, 3, 2, 0);
}
#endif
#if !PART || PART == 2
static void rms_b(void) {
  Bench<false> b(RMS, 3001, 5125);
  LIBRARY(RMS, b, 224);
  WORDS(RMS, 224, 12, 5, 31, 0); WORDS(RMS, 224, 12, 5, 31, 1); WORDS(RMS, 224, 12, 6, 31, 0); WORDS(RMS, 448, 6, 3, 31, 0); WORDS(RMS, 448, 6, 3, 31, 1); WORDS(RMS, 320, 9, 4, 31, 0); WORDS(RMS, 320, 9, 4, 31, 1); WORDS(RMS, 224, 12, 5, 7, 1);
  CLASS(RMS, false, 224, 3, 4, 0);
}
static void add_b(void) {
  Bench<false> b(ADD, 3001, 5125);
  LIBRARY(ADD, b, 224);
  WORDS(ADD, 224, 12, 4, 31, 0); WORDS(ADD, 224, 12, 4, 31, 1); WORDS(ADD, 448, 6, 2, 31, 0); WORDS(ADD, 448, 6, 2, 31, 1); WORDS(ADD, 320, 9, 3, 31, 0); WORDS(ADD, 320, 9, 3, 31, 1);
  CLASS(ADD, false, 224, 3, 4, 0);
}
static void emb_b(void) {
  Bench<false> b(EMBED, 3001, 5125);
  LIBRARY(EMBED, b, 224);
  WORDS(EMBED, 224, 12, 5, 31, 0); WORDS(EMBED, 224, 12, 5, 31, 1); WORDS(EMBED, 448, 6, 3, 31, 0); WORDS(EMBED, 448, 6, 3, 31, 1); WORDS(EMBED, 320, 9, 4, 31, 0);
  LOOKUP(false, 224, 3, 4, 0); LOOKUP(false, 224, 3, 4, 1);
}
static void small(int op) {
  Bench<false> b(op, 1000, 769);
  b.theirs(op == ADD ? beside2_ADD_b : beside2_RMS_b, "library 64 threads, 2 rows", 64, 0, 2, 0, 0);
  b.theirs(op == ADD ? beside2_ADD_b : beside2_RMS_b, "library 64 threads", 64, 0, 1, 0, 0);
  if (op == ADD) {
    CLASS(ADD, false, 96, 1, 8, 0); WORDS(ADD, 64, 7, 8, 31, 1); WORDS(ADD, 128, 4, 8, 31, 1); WORDS(ADD, 64, 7, 8, 31, 0); WORDS(ADD, 128, 4, 8, 31, 0); WORDS(ADD, 224, 2, 4, 31, 1);
  } else {
    CLASS(RMS, false, 64, 2, 8, 0); WORDS(RMS, 64, 7, 8, 31, 1); WORDS(RMS, 128, 4, 8, 31, 1); WORDS(RMS, 64, 7, 8, 31, 0); WORDS(RMS, 128, 4, 8, 31, 0); WORDS(RMS, 224, 2, 4, 31, 1);
  }
}
static void small_f(int op) {
  Bench<true> b(op, 1000, 769);
  b.theirs(op == ADD ? beside2_ADD_f : beside2_RMS_f, "library 128 threads", 128, 0, 1, 0, 0);
  if (op == ADD) {
    SCALAR(ADD, 128, 7, 8, 31, 1); SCALAR(ADD, 128, 7, 8, 31, 0); SCALAR(ADD, 224, 4, 4, 31, 1);
  } else {
    SCALAR(RMS, 128, 7, 8, 31, 1); SCALAR(RMS, 128, 7, 8, 31, 0); SCALAR(RMS, 224, 4, 4, 31, 1);
  }
}
#endif
#if !PART || PART == 3
static void emb_f(void) {
  Bench<true> b(EMBED, 3001, 5125);
  LIBRARY(EMBED, f, 448);
  MOVE(128, 8); MOVE(256, 4); MOVE(256, 5);
  SCALAR(EMBED, 448, 12, 3, 31, 0); SCALAR(EMBED, 448, 12, 3, 31, 1); SCALAR(EMBED, 576, 9, 3, 31, 0); SCALAR(EMBED, 352, 15, 4, 31, 0);
  LOOKUP(true, 448, 3, 2, 1); LOOKUP(true, 448, 3, 2, 2);
}
static void held_embed(int m, int n, std::vector<int> far) {
  Bench<true> b(EMBED, m, n);
  int chunks = n / 4;
  for (int ah : far) {
    if (chunks > 1024) b.theirs(big_emb_f, "big", 512, chunks * 16, 1, ah, chunks);
    else b.theirs(held_emb_f, "held by 2", chunks / 2, 0, 1, ah, chunks);
    b.theirs(held4_emb_f, "held by 4", chunks / 4, 0, 1, ah, chunks);
  }
}
template <bool F32> static void held_rms(int m, int n, std::vector<int> far) {
  Bench<F32> b(RMS, m, n);
  int chunks = n / (F32 ? 4 : 8);
  for (int ah : far) {
    if (chunks > 2048) {
      b.theirs(F32 ? twice_rms_f : twice_rms_b, "twice", 1024, 0, 1, ah, chunks);
      b.theirs(F32 ? held4w_rms_f : held4w_rms_b, "held by 4", 1024, 0, 1, ah, chunks);
    } else if (chunks > 1024) {
      b.theirs(F32 ? twice_rms_f : twice_rms_b, "twice", 512, 0, 1, ah, chunks);
      b.theirs(F32 ? held4_rms_f : held4_rms_b, "held by 4", 512, 0, 1, ah, chunks);
    } else {
      b.theirs(F32 ? held_rms_f : held_rms_b, "held by 2", chunks / 2, 0, 1, ah, chunks);
      b.theirs(F32 ? held4_rms_f : held4_rms_b, "held by 4", chunks / 4, 0, 1, ah, chunks);
    }
  }
}
static void aligned(void) {
  held_embed(16384, 8192, {96, 128, 192, 256});
  held_embed(8192, 4096, {192, 384});
  held_rms<true>(16384, 8192, {96, 192});
  held_rms<true>(4096, 16384, {48, 96});
  held_rms<true>(8192, 4096, {192, 384});
  held_rms<false>(16384, 8192, {192, 384});
  held_rms<false>(4096, 16384, {96, 192});
  held_rms<false>(8192, 4096, {384, 768});
}
#endif

#if PART == 4
template <bool F32> static void library(int op, int m, int n) {
  Bench<F32> b(op, m, n);
  int threads = n < 1000 ? (F32 ? 128 : 64) : F32 ? 448 : 224, rows = threads == 64 ? 2 : 1;
  for (int ah : aheads(1, b.stride)) {
    if (n < 1000 && op == RMS) b.theirs(F32 ? beside2_RMS_f : beside2_RMS_b, "library", threads, 0, rows, 0, 0);
    if (n < 1000 && op == ADD) b.theirs(F32 ? beside2_ADD_f : beside2_ADD_b, "library", threads, 0, rows, 0, 0);
    if (n < 1000 && ah == 0) return;
    if (op == RMS) b.theirs(F32 ? beside3_RMS_f : beside3_RMS_b, "library", threads, 0, 1, ah, 0);
    if (op == ADD) b.theirs(F32 ? beside3_ADD_f : beside3_ADD_b, "library", threads, 0, 1, ah, 0);
    if (op == EMBED) b.theirs(F32 ? beside3_EMBED_f : beside3_EMBED_b, "library", threads, 0, 1, ah, 0);
  }
}
#endif

int main(int count, char **names) {
  CK(cudaStreamCreate(&stream));
  auto wanted = [&](const char *name) {
    for (int i = 1; i < count; i++)
      if (!strcmp(names[i], name)) return true;
    return count < 2;
  };
#if !PART || PART == 1
  if (wanted("rms_f")) rms_f();
  if (wanted("add_f")) add_f();
#endif
#if !PART || PART == 2
  if (wanted("rms_b")) rms_b();
  if (wanted("add_b")) add_b();
  if (wanted("emb_b")) emb_b();
  if (wanted("small")) small(ADD), small(RMS), small_f(ADD), small_f(RMS);
#endif
#if !PART || PART == 3
  if (wanted("emb_f")) emb_f();
  if (wanted("aligned")) aligned();
#endif
#if PART == 4
  for (int op : {RMS, ADD, EMBED}) library<false>(op, 3001, 5125), library<true>(op, 3001, 5125);
  for (int op : {RMS, ADD}) library<false>(op, 1000, 769), library<true>(op, 1000, 769);
#endif
}
