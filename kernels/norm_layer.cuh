// Layernorm's own bodies. In 16-bit types layernorm is bound by instruction issue, so these have few instructions.
#ifndef SOL_KERNELS_NORM_LAYER_CUH
#define SOL_KERNELS_NORM_LAYER_CUH

#include "norm_any.cuh"

// ---- Rows in shared memory: as norm_big, but one pass over the row for its mean and its squares

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
enum { LAYER_THREADS = NORM_LAYER_THREADS };

// Over a block, as block_sum.
INLINE float layer_sum(float v, float *part) {
  v = lanes_sum(v, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return eight(part);
}

// Over as many neighbouring lanes as a cluster has blocks.
INLINE float layer_blocks(float v, int blocks) {
#pragma unroll
  for (int o = 8; o; o >>= 1)
    if (o < blocks) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// Chunks of a block of the cluster. The blocks take turns: p->aside chunks each, but for the last lap's.
INLINE int layer_chunks(const NormParams *p, int rank) {
  int full = p->aside - LAYER_THREADS;
  return full + max(0, min(LAYER_THREADS, p->chunks - (full << p->cluster_bits) - rank * LAYER_THREADS));
}

// A chunk's sum and sum of squares, both about k.
INLINE void layer_add(NormKernel c, Vec v, float k, float2 *sum, float2 *squares) {
  float f[8];
  widen(&v, c.kind, norm_bytes(c), f);
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j += 2) {
    float d = f[j] - k, e = f[j + 1] - k;
    sum->x += d, sum->y += e;
    squares->x = fmaf(d, d, squares->x), squares->y = fmaf(e, e, squares->y);
  }
}

INLINE Vec layer_load(const char *at) { // as load16_now
  Vec v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.u[0]), "=r"(v.u[1]), "=r"(v.u[2]), "=r"(v.u[3])
               : "l"(__cvta_generic_to_global(at)));
  return v;
}

INLINE void layer_big(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // a thread reads what it has written itself
  __shared__ __align__(16) float part[2][8];
  __shared__ ClusterExchange exchange;
  const int per = 16 / norm_bytes(c);
  int bits = p->cluster_bits, rank = bits ? (int)cluster_rank() : 0;
  if (bits) exchange_init(&exchange);
  uint64_t row = block_index() >> bits;
  int begin = rank * LAYER_THREADS + threadIdx.x, lap = LAYER_THREADS << bits;
  int count = p->chunks > begin ? ((p->chunks - begin - 1) >> (31 - __clz(lap))) + 1 : 0;
  NormShare share = {row, begin, lap, p->chunks, count};
  uint4 *held = far + threadIdx.x;
  big_hint(c, p, share);
  begin_kernel();
  if (threadIdx.x == 0) { // a part of a row further on, as long as this block's
    int64_t at = (int64_t)rank * p->span * 16;
    norm_prefetch(c, p, row, at, (int)min((int64_t)p->span * 16, (int64_t)p->chunks * 16 - at), false);
  }
  int step = lap * 16;
  int64_t from = (int64_t)begin * 16;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride + from;
  const char *weight = (const char *)p->weight + from, *bias = (const char *)p->bias + from;
  char *y = (char *)p->y + (int64_t)row * p->y_stride + from;
#pragma unroll 4
  for (int k = 0; k < count; k++) fetch16(held + k * LAYER_THREADS, x + (int64_t)k * step);
  Vec w[BATCH], b[BATCH];
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    w[i] = load16_now(weight + i * step, i < count);
    b[i] = load16_now(bias + i * step, i < count);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  // About the mean of a thread's own first chunk: however far the row is from zero, or that chunk from the row, no more
  // is lost than a thread's chunks times a rounding, as what they are apart counts in the row's variance.
  float k0 = 0, n = (float)(count * per), over = count ? __frcp_rn(n) : 0;
  float2 sum = make_float2(0, 0), squares = sum;
  if (count) {
    Vec a;
    a.v = *held;
    float2 first = norm_sum(c, a, sum);
    k0 = (first.x + first.y) * (1.f / per);
  }
#pragma unroll 4
  for (int k = 0; k < count; k++) {
    Vec a;
    a.v = held[k * LAYER_THREADS];
    layer_add(c, a, k0, &sum, &squares);
  }
  float d = sum.x + sum.y, q = fmaf(-d * over, d, squares.x + squares.y), away = fmaf(d, over, k0);
  int mine = layer_chunks(p, rank) * per;
  float mean = layer_sum(fmaf(k0, n, d), part[0]) * (mine ? __frcp_rn((float)mine) : 0);
  q = layer_sum(fmaf((away - mean) * n, away - mean, q), part[1]);
  if (bits) {
    exchange_all(&exchange, 1 << bits, make_float2(mean, q));
    int from_rank = threadIdx.x & ((1 << bits) - 1);
    float2 v = exchange.from[from_rank];
    n = (float)(layer_chunks(p, from_rank) * per);
    mean = layer_blocks(n * v.x, 1 << bits) * p->over_n;
    q = layer_blocks(fmaf(n * (v.x - mean), v.x - mean, v.y), 1 << bits);
  }
  float scale = rsqrtf(fmaf(q, p->over_n, p->eps));
  int k = 0;
#pragma unroll 1
  for (; k + c.chunks <= count; k += c.chunks) {
    if (k)
#pragma unroll
      for (int i = 0; i < c.chunks; i++) w[i] = layer_load(weight + i * step), b[i] = layer_load(bias + i * step);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      Vec a;
      a.v = held[i * LAYER_THREADS];
      *(uint4 *)(y + i * step) = norm_output(c, p, a, w[i], b[i], mean, scale).v;
    }
    weight += c.chunks * step, bias += c.chunks * step, y += c.chunks * step, held += c.chunks * LAYER_THREADS;
  }
#pragma unroll 1
  for (; k < count; k++) {
    Vec a;
    a.v = *held;
    *(uint4 *)y = norm_output(c, p, a, layer_load(weight), layer_load(bias), mean, scale).v;
    weight += step, bias += step, y += step, held += LAYER_THREADS;
  }
}
#endif

// ---- Any other rows: as norm_any, but two reductions

// Striped: all words of this thread's warp are within the row. Only the warps at the row's two ends have others.
INLINE bool layer_within(NormKernel c, NormPlace s) {
  int first = s.first - s.thread % 32 * norm_pair(c), words = 128 * c.chunks;
  return first >= s.lo && first + words * norm_pair(c) <= s.hi;
}

// Weights and biases of a chunk. words: both are aligned so that they can be read by words.
INLINE void layer_vectors(NormKernel c, const NormParams *p, NormPlace s, bool words, int k, Vec *w, Vec *b) {
  const char *weight = (const char *)p->weight, *bias = (const char *)p->bias;
  *w = words ? any_load_words(c, s, weight, k) : any_load_singly(c, s, weight, k);
  *b = words ? any_load_words(c, s, bias, k) : any_load_singly(c, s, bias, k);
}

// Writes a tile. w, b: as they were loaded before (c.early).
INLINE void layer_put(NormKernel c, const NormParams *p, NormPlace s, bool words, char *y, const Vec *v, Vec *w, Vec *b,
                      float mean, float scale) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (!c.early) layer_vectors(c, p, s, words, k, &w[k], &b[k]);
    any_store_words(c, s, y, k, norm_output(c, p, v[k], w[k], b[k], mean, scale));
  }
}

INLINE void layer_any(NormKernel c, const NormParams *p) {
  __shared__ NormShared shared[2];
  NormPlace s = any_place(c, p);
  any_hint(c, p, s);
  any_ready(p, &shared[0]);
  begin_kernel();
  NormRow r = norm_row(c, p, s.row, s.thread == 0);
  any_shift(c, p, &s, r);
  // Striped: most warps are wholly within the row and skip the bounds checks. Not of 16-bit types: both ways do not fit the registers, and
  // most such rows are layer_rows' or norm_ring's.
  NormPlace inner = s;
  inner.all = true;
  bool within = c.striped && c.chunks > 1 && norm_bytes(c) == 4 && layer_within(c, s);
  // All of the row's type, nothing left out. In fp16 that would spill.
  bool plain = c.striped && c.kind != KIND_FP16 && p->weight && p->bias && p->weight_kind == c.kind && p->y_kind == c.kind;
  bool words = any_by_words(c, s, (const char *)p->weight) && any_by_words(c, s, (const char *)p->bias);
  Vec v[8], w[8], b[8];
  if (within) any_take(c, inner, r, v);
  else any_take(c, s, r, v);
  NormEdge edge = any_take_edge(c, p, s, r);
  any_prefetch(c, p, s);
  if (c.early && plain)
#pragma unroll
    for (int k = 0; k < c.chunks; k++)
      if (within) layer_vectors(c, p, inner, words, k, &w[k], &b[k]);
      else layer_vectors(c, p, s, words, k, &w[k], &b[k]);
  NormPart total = any_join(any_sum(c, p, s, v), any_sum_edge(c, edge));
  float mean = any_fold(c, p, &shared[0], total).sum * p->over_n;
  any_ready(p, &shared[1]);
  total.sum = within ? any_squares(c, inner, v, mean) : any_squares(c, s, v, mean);
  total.sum += any_square_edge(s, edge, mean);
  float variance = any_fold(c, p, &shared[1], total).sum * p->over_n, scale = rsqrtf(variance + p->eps);
  if (plain && within && words) layer_put(c, p, inner, true, r.y, v, w, b, mean, scale);
  else if (plain && within) layer_put(c, p, inner, false, r.y, v, w, b, mean, scale);
  else if (plain) layer_put(c, p, s, false, r.y, v, w, b, mean, scale);
  else any_put(c, p, s, r.y, v, mean, variance, 0, nullptr);
  any_put_edge(c, p, s, r.y, edge, mean, variance, 0);
}

#endif
