// The short rows of norm_narrow.cuh where there are few of them, from memory to registers and back: nothing is staged, all loads of a row, its weights
// and its biases are in flight together, and there is no barrier. Every row is added up in the same order as there: of rows of a few elements a lane has a
// whole one; of others each of NARROW_BATCH * 2^lane_bits lanes has what is there one of the sums of a lane. One type throughout, or to fp8.
#ifndef SOL_KERNELS_NORM_DIRECT_CUH
#define SOL_KERNELS_NORM_DIRECT_CUH

#include "norm.cuh"
#include "norm_narrow.cuh"

// ---- While the predecessor still runs: prefetches into L2

// Of rows that are shorter than a line the first one that starts in it prefetches it.
INLINE void direct_hint_line(const char *row, int64_t stride) {
  if (stride >= 128 || ((uint32_t)(uintptr_t)row & 127) < (uint32_t)stride) prefetch_l2(row);
}

INLINE void direct_hint_few(NormKernel c, const NormParams *p, uint64_t row) {
  if (!may_hint()) return;
  narrow_hint_vectors(c, p);
  if (row >= p->m) return;
  if (c.op == NORM_EMBED) {
    bool many = !norm_crowded(c, p);
    if (!many) direct_hint_line((const char *)p->ids + row * (p->wide_ids ? 8 : 4), p->wide_ids ? 8 : 4);
    int64_t id = many ? norm_guess(c, p, row) : -1;
    if (id >= 0) prefetch_l2((const char *)p->x + id * p->x_stride);
    return;
  }
  direct_hint_line((const char *)p->x + (int64_t)row * p->x_stride, p->x_stride);
  if (c.op == NORM_ADD) direct_hint_line((const char *)p->residual + (int64_t)row * p->residual_stride, p->residual_stride);
}

INLINE void direct_hint(NormKernel c, const NormParams *p, uint64_t row, int lane) {
  if (!may_hint()) return;
  narrow_hint_vectors(c, p);
  int64_t from = norm_crowded(c, p) ? -1 : norm_guess(c, p, row);
  if (row >= p->m || from < 0 || lane * 128 >= p->narrow.n * norm_bytes(c)) return;
  prefetch_l2((const char *)p->x + from * p->x_stride + lane * 128);
  if (c.op == NORM_ADD) prefetch_l2((const char *)p->residual + (int64_t)row * p->residual_stride + lane * 128);
}

// ---- Rows of a few elements: a whole row a lane, n elements, up to `most`

INLINE uint32_t direct_one(NormKernel c, const void *row, int i, bool there) {
  if (!there) return 0;
  return norm_bytes(c) == 4 ? ((const uint32_t *)row)[i] : ((const uint16_t *)row)[i];
}

INLINE void direct_few_store(char *row, int kind, int n, int most, const float *f) {
#pragma unroll
  for (int k = 0; k < most; k++)
    if (k < n) store_one(row, k, kind, f[k]);
}

INLINE void direct_few(NormKernel c, const NormParams *p, int most) {
  const int n = p->narrow.n;
  uint64_t row = thread_index();
  direct_hint_few(c, p, row);
  begin_kernel();
  if (row >= p->m) return;
  NormRow r = norm_row(c, p, row, true);
  uint32_t x[FEW_MOST], more[FEW_MOST], weight[FEW_MOST], bias[FEW_MOST];
#pragma unroll
  for (int k = 0; k < most; k++) {
    weight[k] = direct_one(c, p->weight, k, k < n && p->weight);
    if (c.op == NORM_LAYER) bias[k] = direct_one(c, p->bias, k, k < n && p->bias);
    x[k] = direct_one(c, r.x, k, k < n && r.known);
    if (c.op == NORM_ADD) more[k] = direct_one(c, r.residual, k, k < n);
  }
  float f[FEW_MOST], g[FEW_MOST], w[FEW_MOST], b[FEW_MOST];
#pragma unroll
  for (int k = 0; k < most; k++) {
    f[k] = vector_float(x[k], c.kind), b[k] = 0;
    if (c.op == NORM_ADD) g[k] = vector_float(more[k], c.kind);
    w[k] = k < n ? (p->weight ? vector_float(weight[k], c.kind) + p->offset : 1) : 0;
    if (c.op == NORM_LAYER) b[k] = vector_float(bias[k], c.kind);
  }
  if (c.op == NORM_ADD) few_add(c, f, g, most / 2);
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) direct_few_store(r.second, c.kind, n, most, f);
  Fp8Scale q = {1, 1};
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  few_norm(c, p, q, row, n, most, w, b, f);
  direct_few_store(r.y, c.op == NORM_RMS_FP8 ? KIND_FP8 : c.kind, n, most, f);
}

// ---- Other rows

// Two neighbouring elements as they are stored: in `low` alone where they are one word.
typedef struct DirectPair {
  uint32_t low, high;
} DirectPair;

// Those of each of a lane's words. word: they are words here, too.
INLINE void direct_load(NormKernel c, const char *at, int step, int count, int steps, bool word, DirectPair *u) {
  const int in = norm_bytes(c);
  if (in == 4 || word) {
#pragma unroll
    for (int k = 0; k < steps; k++) u[k].low = k < count ? *(const uint32_t *)(at + k * step * in) : 0;
  } else {
#pragma unroll
    for (int k = 0; k < steps; k++) {
      u[k].low = k < count ? *(const uint16_t *)(at + k * step * in) : 0;
      u[k].high = k < count ? *(const uint16_t *)(at + k * step * in + 2) : 0;
    }
  }
}

INLINE uint32_t direct_word(NormKernel c, DirectPair u, bool word) { return norm_bytes(c) == 4 || word ? u.low : u.low | u.high << 16; }

// What of a row each of `lanes` lanes has. y and the others are not known. weight, bias: in shared memory, as in norm_narrow.cuh.
INLINE NarrowShare direct_share(NormKernel c, const char *x, int n, int lane, int lanes, const float *weight, const float *bias) {
  const int per = 4 / norm_bytes(c);
  int head = per == 2 && n ? (int)((uint32_t)(uintptr_t)x >> 1 & 1) : 0, words = (n - head) / per;
  NarrowShare s;
  s.column = head + lane * per, s.step = lanes * per, s.lanes = lanes, s.n = n;
  s.weight = weight + (head ? n | 1 : 0), s.bias = bias + (head ? n | 1 : 0);
  s.count = words > lane ? ((words - lane - 1) >> (__ffs(lanes) - 1)) + 1 : 0;
  s.edge[0] = head && lane == 0 ? 0 : -1;
  s.edge[1] = per == 2 && (n - head) & 1 && lane == lanes - 1 ? n - 1 : -1;
  return s;
}

// As narrow_middle. s: norm_narrow.cuh's lane, one of whose sums this lane has; first: this lane's first word.
INLINE float direct_middle(NormKernel c, const NarrowShare &s, float2 first) {
  int from = (int)threadIdx.x % 32 & -(NARROW_BATCH * s.lanes), mine = from + ((int)threadIdx.x & (s.lanes - 1));
  float2 f = make_float2(__shfl_sync(~0u, first.x, mine), __shfl_sync(~0u, first.y, mine));
#pragma unroll
  for (int k = 1; k < NARROW_BATCH; k++) {
    float2 g = make_float2(__shfl_sync(~0u, first.x, mine + k * s.lanes), __shfl_sync(~0u, first.y, mine + k * s.lanes));
    if (s.count >= NARROW_BATCH) f.x += g.x, f.y += g.y;
  }
  return narrow_middle_of(c, f, s.count);
}

// The sum of norm_narrow.cuh's lane, from the lanes that have one each of its sums, in the same order.
INLINE float direct_join(float v, int lanes) {
  v += __shfl_xor_sync(~0u, v, 2 * lanes);
  return v + __shfl_xor_sync(~0u, v, lanes);
}

// The element at an end of the row that shares its word with another row's: at most one of the two is this lane's where lanes are many. -1: none.
typedef struct DirectEdge {
  int column;
  float x;
} DirectEdge;

INLINE DirectEdge direct_edge(NormKernel c, const NormParams *p, const NormRow &r, int column) { // of a row that is there
  DirectEdge e = {column, 0};
  if (norm_bytes(c) == 4 || column < 0) return e;
  uint32_t x = direct_one(c, r.x, column, r.known), more = direct_one(c, r.residual, column, c.op == NORM_ADD);
  e.x = vector_float(x, c.kind);
  if (c.op == NORM_ADD) {
    uint16_t sum = narrow_one(e.x + vector_float(more, c.kind), c.kind);
    ((uint16_t *)r.second)[column] = sum, e.x = vector_float(sum, c.kind);
  }
  if (c.op == NORM_EMBED && p->second) ((uint16_t *)r.second)[column] = (uint16_t)x;
  return e;
}

// `steps` words a lane.
INLINE void direct_words(NormKernel c, const NormParams *p, int steps) {
  const int in = norm_bytes(c), per = 4 / in;
  const bool plain = p->how.plain, by_row = c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW;
  int few = 1 << p->narrow.lane_bits, lanes = NARROW_BATCH * few, lane = threadIdx.x & (lanes - 1);
  uint64_t row = block_index() * (NARROW_THREADS / lanes) + threadIdx.x / lanes;
  direct_hint(c, p, row, lane);
  begin_kernel();
  const int all = p->narrow.n, n = row < p->m ? all : 0;
  float *weight = (float *)narrow_memory, *bias = weight + narrow_copies(c) * (all | 1);
  uint32_t first = vector_load(p->weight, threadIdx.x, all, c.kind), second = c.op == NORM_LAYER ? vector_load(p->bias, threadIdx.x, all, c.kind) : 0;
  NormRow r = norm_row(c, p, row, lane == 0);
  NarrowShare s = direct_share(c, r.x, n, lane, lanes, weight, bias), joined = direct_share(c, r.x, n, lane & (few - 1), few, weight, bias);
  DirectPair u[NORM_DIRECT_STEPS], more[NORM_DIRECT_STEPS];
  direct_load(c, r.x + s.column * in, s.step, r.known ? s.count : 0, steps, true, u);
  if (c.op == NORM_ADD) direct_load(c, r.residual + s.column * in, s.step, s.count, steps, plain, more);
  DirectEdge edge[2] = {direct_edge(c, p, r, s.edge[0]), direct_edge(c, p, r, s.edge[1])};
  Fp8Scale q = {1, 1};
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  narrow_fill_vector(c, weight, p->weight, first, c.kind, all, 1, p->offset);
  if (c.op == NORM_LAYER) narrow_fill_vector(c, bias, p->bias, second, c.kind, all, 0, 0);
  __syncthreads();
  NarrowSums sums = {0, 0, 0, 0};
  if (c.op == NORM_LAYER) sums.middle = direct_middle(c, joined, word_floats(c, u[0].low));
#pragma unroll
  for (int k = 0; k < steps; k++) {
    if (k >= s.count) continue;
    float2 f = word_floats(c, u[k].low);
    if (c.op == NORM_ADD) {
      float2 g = word_floats(c, direct_word(c, more[k], plain));
      u[k].low = word_of(c, make_float2(f.x + g.x, f.y + g.y)), f = word_floats(c, u[k].low);
    }
    if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) word_give(c, r.second, s.column + k * s.step, plain, u[k].low);
    narrow_sum_pair(c, f, &sums.sum, &sums.squares, sums.middle);
    if (by_row) {
      float2 by = narrow_vector_at(c, s.weight, s.column + k * s.step);
      sums.top = higher(sums.top, fabsf(f.x * by.x));
      if (per == 2) sums.top = higher(sums.top, fabsf(f.y * by.y));
    }
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
    if (per == 1 || edge[e].column < 0) continue;
    if (by_row) sums.top = higher(sums.top, fabsf(edge[e].x * weight[edge[e].column]));
    narrow_sum_one(c, edge[e].x, &sums.sum, &sums.squares, sums.middle);
  }
  sums.squares = direct_join(sums.squares, few);
  if (c.op == NORM_LAYER) sums.sum = direct_join(sums.sum, few);
  if (by_row) sums.top = some_lanes_highest(sums.top, lanes);
  NarrowRow result = narrow_whole(c, p, joined, sums, q, row, n && lane == 0);
#pragma unroll
  for (int k = 0; k < steps; k++) {
    if (k >= s.count) continue;
    float2 f = word_floats(c, u[k].low), by = narrow_vector_at(c, s.weight, s.column + k * s.step);
    float2 plus = c.op == NORM_LAYER ? narrow_vector_at(c, s.bias, s.column + k * s.step) : make_float2(0, 0);
    f.x = narrow_result(c, p, result, by.x, plus.x, f.x);
    if (per == 2) f.y = narrow_result(c, p, result, by.y, plus.y, f.y);
    if (c.op == NORM_RMS_FP8) word_result(c, p, r.y, s.column + k * s.step, plain, f);
    else word_give(c, r.y, s.column + k * s.step, plain, word_of(c, f));
  }
#pragma unroll
  for (int e = 0; e < 2; e++) {
    if (per == 1 || edge[e].column < 0) continue;
    store_one(r.y, edge[e].column, c.op == NORM_RMS_FP8 ? KIND_FP8 : c.kind, narrow_result(c, p, result, weight[edge[e].column], c.op == NORM_LAYER ? bias[edge[e].column] : 0, edge[e].x));
  }
}

// ---- Rows of which 16 bytes hold one or several, dense and on 16 bytes, few or many: a thread has a chunk of them, each row added up as above

INLINE void packed_hint(NormKernel c, const NormParams *p, int64_t at, int64_t bytes) {
  if (!may_hint()) return;
  if (threadIdx.x == 0 && p->weight) prefetch_l2(p->weight);
  if (threadIdx.x == 1 && c.op == NORM_LAYER && p->bias) prefetch_l2(p->bias);
  if (threadIdx.x % 8 || at >= bytes) return;
  prefetch_l2((const char *)p->x + at);
  if (c.op == NORM_ADD) prefetch_l2((const char *)p->residual + at);
}

// What the tensor has of a chunk from byte `at` on.
INLINE Vec packed_load(NormKernel c, const void *tensor, int64_t at, int64_t bytes) {
  const char *begin = (const char *)tensor;
  Vec v;
  v.v = at + 16 <= bytes ? *(const uint4 *)(begin + at) : load_singly(begin + at, begin, begin + bytes, norm_bytes(c));
  return v;
}
INLINE void packed_store(NormKernel c, void *tensor, int64_t at, int64_t bytes, Vec v) {
  char *to = (char *)tensor + at;
  if (at + 16 <= bytes) *(uint4 *)to = v.v;
  else store_part(to, 0, (int)(bytes - at), 4, norm_bytes(c), v.u);
}

INLINE void packed_rows(NormKernel c, const NormParams *p, int n) {
  const int size = norm_bytes(c), per = 16 / size;
  int64_t at = (int64_t)thread_index() * 16, bytes = (int64_t)p->m * (n * size);
  float f[8], w[8], b[8];
  packed_hint(c, p, at, bytes);
  begin_kernel();
  if (at >= bytes) return;
  uint32_t weight[8], bias[8]; // asked for first: of a chunk at the end single elements are waited for
#pragma unroll
  for (int k = 0; k < n; k++) weight[k] = vector_load(p->weight, k, n, p->weight_kind), bias[k] = c.op == NORM_LAYER ? vector_load(p->bias, k, n, p->weight_kind) : 0;
  Vec v = packed_load(c, p->x, at, bytes);
  if (c.op == NORM_ADD) v = norm_add(c, v, packed_load(c, p->residual, at, bytes));
  if (c.op == NORM_ADD) packed_store(c, p->second, at, bytes, v);
#pragma unroll
  for (int k = 0; k < n; k++) {
    w[k] = p->weight ? vector_float(weight[k], p->weight_kind) + p->offset : 1;
    b[k] = vector_float(bias[k], p->weight_kind);
  }
  widen(&v, c.kind, size, f);
#pragma unroll
  for (int j = 0; j < per; j += n) few_norm(c, p, {1, 1}, 0, n, n, w, b, f + j);
  narrow(&v, c.kind, size, f);
  packed_store(c, p->y, at, bytes, v);
}

INLINE void norm_packed(NormKernel c, const NormParams *p) {
  if (p->n == 1) packed_rows(c, p, 1);
  else if (p->n == 2) packed_rows(c, p, 2);
  else if (p->n == 4) packed_rows(c, p, 4);
  else if (norm_bytes(c) == 2) packed_rows(c, p, 8);
}

INLINE void norm_direct(NormKernel c, const NormParams *p) {
  int n = p->narrow.n;
  if (n <= 2) direct_few(c, p, 2);
  else if (n <= 4) direct_few(c, p, 4);
  else if (n <= 8) direct_few(c, p, 8);
  else if (n <= FEW_MOST) direct_few(c, p, FEW_MOST);
  else if (p->how.steps <= NORM_DIRECT_STEPS / 4) direct_words(c, p, NORM_DIRECT_STEPS / 4);
  else if (p->how.steps <= NORM_DIRECT_STEPS / 2) direct_words(c, p, NORM_DIRECT_STEPS / 2);
  else direct_words(c, p, NORM_DIRECT_STEPS);
}

#endif
