// Row normalisations of any length, alignment and types. As in norm.cuh a row is held in registers by
// some lanes, a block or a cluster; how many is the launcher's choice (NormParams). Rows too long for that are read
// again for every pass (norm_loop).
#ifndef SOL_KERNELS_NORM_ANY_CUH
#define SOL_KERNELS_NORM_ANY_CUH

#include "norm_direct.cuh"
#include "norm_place.cuh"
#include "norm_words.cuh"

// ---- Reductions

// Over some of a row's elements: a sum, and for FP8 the bits of the largest |x * weight|.
typedef struct NormPart {
  float sum;
  uint32_t top;
} NormPart;

typedef struct NormShared {
  NormPart warps[16];
  ClusterExchange exchange;
} NormShared;

// Over groups of `lanes` (a power of two) neighbouring lanes.
INLINE NormPart part_lanes(NormKernel c, NormPart v, int lanes) {
  v.sum = lanes_sum(v.sum, lanes);
  if (c.op == NORM_RMS_FP8) v.top = lanes_top(v.top, lanes);
  return v;
}

// Call this early before each reduction, so that the other blocks have arrived by the time of the exchange.
INLINE void any_ready(const NormParams *p, NormShared *shared) {
  if (p->cluster_bits) exchange_init(&shared->exchange);
}

// Every thread of the row gets the sum over the row. Each call has its own `shared`.
INLINE NormPart any_fold(NormKernel c, const NormParams *p, NormShared *shared, NormPart v) {
  if (p->threads < 32) return part_lanes(c, v, p->threads);
  v = part_lanes(c, v, 32);
  if (p->threads == 32) return v;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = p->threads / 32;
  int from = (int)(threadIdx.x >> p->thread_bits) * warps, mine = lane & (p->warp_lanes - 1);
  if (lane == 0) shared->warps[warp] = v;
  __syncthreads();
  v.sum = 0, v.top = 0;
  if (mine < warps) v = shared->warps[from + mine];
  v = part_lanes(c, v, p->warp_lanes);
  if (p->cluster_bits) {
    int blocks = 1 << p->cluster_bits;
    exchange_all(&shared->exchange, blocks, make_float2(v.sum, c.op == NORM_RMS_FP8 ? __uint_as_float(v.top) : 0));
    float2 theirs = shared->exchange.from[lane & (blocks - 1)];
    v.sum = theirs.x, v.top = __float_as_uint(theirs.y);
    v = part_lanes(c, v, blocks);
  }
  return v;
}

// What a tile adds up to: squares, or for layernorm the elements themselves.
INLINE NormPart any_sum(NormKernel c, const NormParams *p, NormPlace s, const Vec *v) {
  const char *weight = any_tile(p, s, p->weight);
  float2 sum = make_float2(0, 0);
  NormPart t;
  t.top = 0;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    sum = norm_sum(c, v[k], sum);
    if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW) {
      float f[8], w[8];
      widen(&v[k], c.kind, norm_bytes(c), f);
      any_weight(c, p, s, weight, k, nullptr, 1, w);
#pragma unroll
      for (int j = 0; j < 16 / norm_bytes(c); j++) t.top = max(t.top, __float_as_uint(fabsf(f[j] * w[j])));
    }
  }
  t.sum = sum.x + sum.y;
  return t;
}

// Layernorm: the tile's squared distances from the mean.
INLINE float any_squares(NormKernel c, NormPlace s, const Vec *v, float mean) {
  float2 sum = make_float2(0, 0);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (any_whole(c, s, k)) {
      sum = norm_squares(c, v[k], mean, sum);
      continue;
    }
    float f[8];
    widen(&v[k], c.kind, norm_bytes(c), f);
#pragma unroll
    for (int j = 0; j < 16 / norm_bytes(c); j++) {
      float d = any_has(c, s, k, j) ? f[j] - mean : 0;
      if (j % 2) sum.y = fmaf(d, d, sum.y);
      else sum.x = fmaf(d, d, sum.x);
    }
  }
  return sum.x + sum.y;
}

// ---- One row

// Loads a tile: c.chunks chunks. Sums and looked-up rows are written on the way.
INLINE void any_take(NormKernel c, NormPlace s, NormRow r, Vec *v) {
  NormPlace from = s;
  if (c.op == NORM_EMBED && !r.known) from.hi = from.lo;
  any_load_whole(c, from, r.x, v);
  if (c.op == NORM_ADD) {
    Vec more[8];
    any_load_whole(c, s, r.residual, more); // the chunks of both rows are in flight before the single elements
    any_load_rest(c, from, r.x, v);
    any_load_rest(c, s, r.residual, more);
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = norm_add(c, v[k], more[k]);
  } else {
    any_load_rest(c, from, r.x, v);
  }
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && r.second)) any_store_raw(c, s, r.second, v);
}

// Divides values by their scale. q: the row's, by tensor or by row; by block they have their own, which is written.
INLINE void any_quantize(NormKernel c, const NormParams *p, NormPlace s, int k, Fp8Scale q, float *f) {
  const int per = 16 / norm_bytes(c);
  if (!c.striped && p->scaling == NORM_SCALE_BLOCK) { // 128 columns are neighbouring lanes' chunks
    int lanes = min(128 / per, p->threads), at = any_column(c, s, k, 0);
    uint32_t top = 0;
#pragma unroll
    for (int j = 0; j < per; j++)
      if (at + j < s.hi) top = max(top, __float_as_uint(fabsf(f[j])));
    q = fp8_choose(__uint_as_float(lanes_top(top, lanes)), 1,
                   p->scales + (int64_t)s.row * ((p->n + 127) / 128) + (s.base + at) / 128,
                   at < s.hi && !(s.thread & (lanes - 1)));
  }
  fp8_divide(q, per, f);
}

// The element that a thread has in addition to its chunks, and its weight and bias.
typedef struct NormEdge {
  float x, weight, bias;
} NormEdge;

INLINE NormEdge any_take_edge(NormKernel c, const NormParams *p, NormPlace s, NormRow r) {
  NormEdge e = {0, 1, 0};
  if (s.edge < 0) return e;
  if (r.known) e.x = load_one(r.x, s.edge, c.kind);
  if (c.op == NORM_ADD) {
    e.x += load_one(r.residual, s.edge, c.kind);
    uint16_t sum = narrow_one(e.x, c.kind);
    if (norm_bytes(c) == 2) e.x = load_one(&sum, 0, c.kind);
  }
  if (p->weight) e.weight = load_one(p->weight, s.edge, p->weight_kind) + p->offset;
  if (c.op == NORM_LAYER && p->bias) e.bias = load_one(p->bias, s.edge, p->weight_kind);
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && r.second)) store_one(r.second, s.edge, c.kind, e.x);
  return e;
}

INLINE float any_square_edge(NormPlace s, NormEdge e, float mean) {
  return s.edge < 0 ? 0 : (e.x - mean) * (e.x - mean);
}

INLINE NormPart any_join(NormPart a, NormPart b) {
  a.sum += b.sum, a.top = max(a.top, b.top);
  return a;
}

INLINE NormPart any_sum_edge(NormKernel c, NormEdge e) {
  NormPart t = {c.op == NORM_LAYER ? e.x : e.x * e.x, __float_as_uint(fabsf(e.x * e.weight))};
  return t;
}

INLINE void any_put_edge(NormKernel c, const NormParams *p, NormPlace s, char *y, NormEdge e, float mean, float variance,
                         uint32_t top) {
  if (s.edge < 0) return;
  float scale = rsqrtf(variance + p->eps), by = scale * e.weight;
  float f = c.op == NORM_LAYER ? fmaf(e.x - mean, by, e.bias) : e.x * by;
  if (c.op == NORM_RMS_FP8) fp8_divide(fp8_row(p, s.row, scale * __uint_as_float(top), false), 1, &f);
  any_store_one(c, p, y, s.edge, f);
}

// Writes a tile. `variance`: layernorm's; otherwise the mean of squares. `early`: weights that were loaded before.
INLINE void any_put(NormKernel c, const NormParams *p, NormPlace s, char *y, const Vec *v, float mean, float variance,
                    uint32_t top, const Vec *early) {
  const int in = norm_bytes(c), per = 16 / in;
  const char *weight = any_tile(p, s, p->weight), *bias = c.op == NORM_LAYER ? any_tile(p, s, p->bias) : nullptr;
  float scale = rsqrtf(variance + p->eps);
  Fp8Scale q = {1, 1};
  if (c.op == NORM_RMS_FP8)
    q = fp8_row(p, s.row, scale * __uint_as_float(top), s.thread == 0 && !s.base && s.hi);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    float f[8], w[8], b[8];
    widen(&v[k], c.kind, in, f);
    any_weight(c, p, s, weight, k, early, scale, w);
    if (bias) any_vector(c, p, s, bias, k, b);
#pragma unroll
    for (int j = 0; j < per; j++)
      f[j] = c.op == NORM_LAYER ? fmaf(f[j] - mean, w[j], bias ? b[j] : 0) : f[j] * w[j];
    if (c.op == NORM_RMS_FP8) any_quantize(c, p, s, k, q, f);
    any_store(c, p, s, y, k, f);
  }
}

// Blocks of several rows do not prefetch.
INLINE void any_prefetch(NormKernel c, const NormParams *p, NormPlace s) {
  if (s.thread || p->row_bits) return;
  norm_prefetch(c, p, s.row, 0, (int)min(p->n * norm_bytes(c), (int64_t)1 << 30), true);
}

INLINE void any_hint_vector(const NormParams *p, NormPlace s, const void *vector) {
  int64_t at = (int64_t)s.thread * 128;
  if (vector && at < p->n * (p->weight_kind == KIND_FP32 ? 4 : 2)) prefetch_l2((const char *)vector + at);
}

// Prefetches into L2 while the predecessor still runs, a line a thread. The first rows' threads prefetch the weights,
// which all blocks are about to load at once. Looked-up rows are not known yet.
INLINE void any_hint(NormKernel c, const NormParams *p, NormPlace s) {
#if __CUDA_ARCH__ >= 900
  if (s.row < 4) {
    any_hint_vector(p, s, p->weight);
    if (c.op == NORM_LAYER) any_hint_vector(p, s, p->bias);
  }
#endif
  if (!may_hint() || c.op == NORM_EMBED || s.row >= p->m) return;
  int64_t from = (int64_t)s.row * p->x_stride + (int64_t)s.thread * 128;
  if ((int64_t)s.thread * 128 >= p->n * norm_bytes(c)) return;
  prefetch_l2((const char *)p->x + from);
  if (c.op == NORM_ADD)
    prefetch_l2((const char *)p->residual + (int64_t)s.row * p->residual_stride + (int64_t)s.thread * 128);
}

// Layernorm: norm_layer.cuh.
INLINE void norm_any(NormKernel c, const NormParams *p) {
  __shared__ NormShared shared[2];
  NormPlace s = any_place(c, p);
  any_hint(c, p, s);
  norm_ends(c, p, s.row, s.thread, p->threads);
  any_ready(p, &shared[0]);
  begin_kernel();
  NormRow r = norm_row(c, p, s.row, s.thread == 0);
  any_shift(c, p, &s, r);
  Vec v[8];
  any_take(c, s, r, v);
  NormEdge edge = any_take_edge(c, p, s, r);
  any_prefetch(c, p, s);
  Vec early[8];
  if (c.early && p->weight && p->weight_kind == c.kind) any_load(c, s, (const char *)p->weight, early);
  NormPart total = any_join(any_sum(c, p, s, v), any_sum_edge(c, edge));
  total = any_fold(c, p, &shared[0], total);
  float squares = total.sum * p->over_n;
  any_put(c, p, s, r.y, v, 0, squares, total.top, c.early ? early : nullptr);
  any_put_edge(c, p, s, r.y, edge, 0, squares, total.top);
}

// A row by tiles, in several passes: for its sum (or that of squares), for layernorm's variance, for the output.
INLINE void norm_loop(NormKernel c, const NormParams *p) {
  __shared__ NormShared shared[2];
  NormPlace s = any_place(c, p);
  int64_t n = s.hi ? p->n : 0, tile = any_span(c, p);
  float mean = 0, variance = 0;
  NormPart total;
  total.sum = 0, total.top = 0;
  any_ready(p, &shared[0]);
  begin_kernel();
  NormRow r = norm_row(c, p, s.row, s.thread == 0);
  any_shift(c, p, &s, r);
  NormEdge edge = any_take_edge(c, p, s, r);
#pragma unroll 1
  for (int pass = 0; pass < 3; pass++) {
    if (pass == 1 && c.op != NORM_LAYER) continue;
#pragma unroll 1
    for (s.base = 0; s.base < n + s.head; s.base += tile) {
      NormRow t = r;
      int64_t skip = s.base * norm_bytes(c);
      Vec v[8];
      t.x += skip, t.residual += skip, t.y += s.base * norm_out_bytes(c, p);
      if (t.second) t.second += skip;
      s.lo = s.base ? -s.head : 0, s.hi = (int)min(n - s.base, (int64_t)1 << 30);
      if (pass == 0) any_take(c, s, t, v);
      else if (c.op == NORM_ADD) any_load(c, s, t.second, v);
      else {
        NormPlace from = s;
        if (c.op == NORM_EMBED && !r.known) from.hi = from.lo;
        any_load(c, from, t.x, v);
      }
      if (pass == 0) {
        total = any_join(total, any_sum(c, p, s, v));
      } else if (pass == 1) {
        total.sum += any_squares(c, s, v, mean);
      } else {
        any_put(c, p, s, t.y, v, mean, variance, total.top, nullptr);
      }
    }
    if (pass == 0) {
      total = any_join(total, any_sum_edge(c, edge));
      total = any_fold(c, p, &shared[0], total);
      if (c.op == NORM_LAYER) any_ready(p, &shared[1]);
      mean = variance = total.sum * p->over_n;
      total.sum = 0;
    } else if (pass == 1) {
      total.sum += any_square_edge(s, edge, mean);
      variance = any_fold(c, p, &shared[1], total).sum * p->over_n;
    } else {
      any_put_edge(c, p, s, r.y, edge, mean, variance, total.top);
    }
  }
}

// ---- Kernels

#define NORM_KERNEL(name, threads, blocks, body, ...)                                                                  \
  KERNEL __launch_bounds__(threads, blocks) name(const __grid_constant__ NormParams p) {                              \
    NormKernel c = {__VA_ARGS__};                                                                                      \
    body(c, &p);                                                                                                       \
  }
// Threads of a block, and blocks that are to fit an SM, bound the registers; they are such that nothing spills.
#define NORM_LANES(name, op, T, lanes)                                                                                 \
  NORM_KERNEL(name, 128, (op) == NORM_LAYER ? 8 : 12, norm_held, op, T, 2, lanes, 1)
#define NORM_WARP(name, op, T, chunks)                                                                                 \
  NORM_KERNEL(name, 128, (chunks) == 3 ? 7 : (chunks) == 4 ? 6 : 5, norm_held, op, T, chunks, 32, 1)
#define NORM_BLOCK(name, op, T, early)                                                                                 \
  NORM_KERNEL(name, 512, (early) ? 2 : 3, norm_held, op, T, 2, 0, early)
#define NORM_BLOCK4(name, op, T, early) NORM_KERNEL(name, 512, (early) ? 1 : 2, norm_held, op, T, 4, 0, early)
// Two inputs: two blocks fit an SM, those of 16-bit types with fewer threads, for they take more registers.
#define NORM_ANY(name, op, T, chunks)                                                                                   \
  NORM_KERNEL(name, (op) == NORM_ADD && (T) != TYPE_f ? NORM_ANY_THREADS : 512, (op) == NORM_ADD ? 2 : 1, norm_any, op, T, chunks, 0, 0, 0)
// In fp32 more blocks fit an SM. Weights are loaded early where there are registers for them.
#define NORM_STRIPED(name, op, T, chunks)                                                                               \
  NORM_KERNEL(name, NORM_STRIPED_THREADS, (T) == TYPE_f && ((op) == NORM_RMS || (op) == NORM_EMBED) ? 3 : 2, norm_any,   \
              op, T, chunks, 0, (op) == NORM_ADD || (T) != TYPE_f, 1)
#define NORM_ROWS(...) // layernorm alone has these
#define NORM_WIDE(...)
#define NORM_SHIFTED(...) // rmsnorm and layernorm have it
#define NORM_NARROW(name, op, T, number)                                                                               \
  NORM_KERNEL(name, NARROW_THREADS, 8, norm_narrow, op, T, 0, 0, 0)
#define NORM_DIRECT(name, op, T, number) NORM_KERNEL(name, NARROW_THREADS, (op) == NORM_LAYER ? 3 : 4, norm_direct, op, T, 0, 0, 0)
#define NORM_WORDS(name, op, T, number) NORM_WORDS_##T(name, op, T)
#define NORM_WORDS_TYPE_f(name, op, T) NORM_KERNEL(name, NARROW_THREADS, 8, norm_words, op, T, 0, 0, 0)
#define NORM_WORDS_TYPE_h(...)
#define NORM_WORDS_TYPE_b(...)
#define NORM_PACKED(name, op, T, number) NORM_KERNEL(name, NARROW_THREADS, 12, norm_packed, op, T, 0, 0, 0)
#define NORM_LOOP(name, op, T, striped) NORM_KERNEL(name, 512, 1, norm_loop, op, T, (striped) ? 1 : 2, 0, 0, striped)
// Kernels that need clusters and programmatic dependent launch. The launcher takes their presence to mean that the other
// kernels were compiled with both, too.
#if __CUDA_ARCH__ >= 900
#define NORM_BIG(name, op, T, number)                                                                                  \
  NORM_KERNEL(name, (op) == NORM_ADD ? 1024 : 512, (op) == NORM_ADD ? 1 : 3, norm_big, op, T,                          \
              (op) == NORM_RMS_FP8 ? 2 : 4, 0, 1, 0)
#else
#define NORM_BIG(...)
#endif

#endif
