// Row normalisations at the speed of a copy: rows of whole, aligned 16-byte chunks, one element type throughout.
// A row is loaded once, held, reduced over and written once. Some lanes of a warp, a block, or a cluster of blocks
// take a row; which of them depends on the row's length alone, so that its result does not depend on the number of
// rows. norm_any.cuh has everything else.
#ifndef SOL_KERNELS_NORM_CUH
#define SOL_KERNELS_NORM_CUH

#include "norm_fp8.cuh"

// ---- Rows in registers

// Called while the predecessor still runs: the row of x to prefetch; -1: unknown. The predecessor may still write the
// ids: a stale one costs some needless lines in L2, nothing else.
INLINE int64_t norm_guess(NormKernel c, const NormParams *p, uint64_t row) {
  if (c.op != NORM_EMBED) return (int64_t)row;
  if (!may_hint() || row >= p->m) return -1;
  // past L1, which would keep it
  int64_t id = p->wide_ids ? __ldcg((const long long *)p->ids + row) : __ldcg((const int *)p->ids + row);
  return (uint64_t)id < (uint64_t)p->vocab ? id : -1;
}

// Of a table of a few lines the prefetches of all rows would ask the same slices of L2.
INLINE bool norm_crowded(NormKernel c, const NormParams *p) { return c.op == NORM_EMBED && p->vocab * p->x_stride < 16 * (int64_t)p->m; }

INLINE void norm_hint(NormKernel c, const NormParams *p, NormRow r, int t, int step, int only, const bool *mine) {
  if (!may_hint()) return;
  if (norm_crowded(c, p)) r.known = false;
  if (c.op == NORM_EMBED && c.chunks == 4) { // measured: one thread for all; with two chunks a thread it is none better
    int from = only < 0 ? 0 : only * step, bytes = min(p->chunks * 16 - from, only < 0 ? 4 * step : step);
    if (t || bytes <= 0) return;
    if (r.known) prefetch_far(r.x + from, bytes);
    if (blockIdx.x < 4) prefetch_far((const char *)p->weight + from, bytes);
    return;
  }
  if (t % 8) return; // a line of 128 bytes is eight threads'
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (!mine[k]) continue;
    int from = t * 16 + k * step;
    if (r.known) prefetch_l2(r.x + t * 16 + k * step);
    if (c.op == NORM_ADD) prefetch_l2(r.residual + t * 16 + k * step);
    if (blockIdx.x >= 4) continue; // some blocks are enough for what all of them need
    prefetch_l2((const char *)p->weight + from);
    if (c.op == NORM_LAYER) prefetch_l2((const char *)p->bias + from);
  }
}

INLINE void norm_weights(NormKernel c, const NormParams *p, int t, int step, const bool *mine, Vec *w, Vec *b) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    w[k] = load16_now((const char *)p->weight + t * 16 + k * step, mine[k]);
    if (c.op == NORM_LAYER) b[k] = load16_now((const char *)p->bias + t * 16 + k * step, mine[k]);
  }
}

INLINE void held_second(NormKernel c, NormRow r, int t, int step, const bool *mine, const Vec *v) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (r.second && mine[k]) norm_put(c, r.stream, r.second + t * 16 + k * step, v[k].v);
}

// Kernels that take such rows as held_mixed. Longer ones of rmsnorm are faster by norm_any; 16-bit ones of layernorm with four chunks a thread have no registers for it.
INLINE bool norm_mixes(NormKernel c) { return c.op == NORM_RMS ? c.lanes != 0 : c.op == NORM_LAYER && (c.chunks == 2 || norm_bytes(c) == 4); }

// Weights or results of another type than the row's: weights are loaded where they are used, four at a time, as there are no registers for more.
INLINE void held_mixed(NormKernel c, const NormParams *p, char *y, int t, int all, const bool *mine, const Vec *v, float mean, float scale) {
  const int per = 16 / norm_bytes(c);
  float shift = scale * p->offset;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    float f[8];
    int column = (t + k * all) * per;
    if (!mine[k]) continue;
    Vec x = v[k];
    keep_packed(&x);
    widen(&x, c.kind, norm_bytes(c), f);
#pragma unroll
    for (int j = 0; j < per; j += 4) {
      float w[4], b[4];
      norm_vector4(c, p, p->weight, column + j, w);
      if (c.op == NORM_LAYER) norm_vector4(c, p, p->bias, column + j, b);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float by = fmaf(w[i], scale, shift);
        f[j + i] = c.op == NORM_LAYER ? fmaf(f[j + i] - mean, by, b[i]) : f[j + i] * by;
      }
    }
    norm_store(c, p, y, column, f);
    asm volatile("" ::: "memory");
  }
}

enum { HELD_MOST = 5 }; // chunks of a thread
// What a thread has of its row: chunks t, t + all, ...
typedef struct HeldPlace {
  uint64_t row;
  int t, all, step;       // step: bytes from one of its chunks to its next
  int only;               // where several blocks share a row: the chunk that this block writes; else -1
  bool there[HELD_MOST], mine[HELD_MOST]; // is within the row; is this block's to write
} HeldPlace;

// add_rmsnorm by a block: its sums are made in one order, whichever kernel takes the row.
INLINE bool held_ordered(NormKernel c) { return c.op == NORM_ADD && !c.lanes; }

// Where latency counts, a block's row is loaded by a prefetched id, before the id itself has been loaded.
INLINE bool held_soon(NormKernel c) { return c.early && !c.lanes; }

// Weights are loaded only after the row has been reduced.
INLINE bool held_late(NormKernel c) { return !c.early && c.op != NORM_RMS_FP8; }

INLINE HeldPlace held_place(NormKernel c, const NormParams *p) {
  int t = threadIdx.x, all = blockDim.x, chunks = p->chunks;
  if (held_ordered(c) && c.chunks == 2) t = t / 16 * 32 + t % 16, all = 16;
  uint64_t row = block_index();
  if (c.lanes) {
    row = row * (128 / c.lanes) + t / c.lanes;
    t %= c.lanes;
    all = c.lanes;
    if (row >= p->m) chunks = 0;
  }
  // Few long rows: several blocks share a row. Each reads all of it, so that the sums are the same, and writes a part of
  // it: with too few blocks to fill the GPU, the loads of weights and the stores are spread over more SMs.
  int only = -1;
  if (held_soon(c) && c.chunks > 1 && p->split) only = (int)(row % c.chunks), row /= c.chunks;
  HeldPlace s = {row, t, all, all * 16, only, {}, {}};
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    s.there[k] = t + k * all < chunks;
    s.mine[k] = s.there[k] && (only < 0 || only == k);
  }
  return s;
}

// Loads a thread's chunks of the row x. now: before what stands after it.
INLINE void held_load(NormKernel c, const HeldPlace &s, const char *x, bool known, bool now, Vec *v) {
  x += s.t * 16;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) v[k] = now ? load16_now(x + k * s.step, s.there[k] && known) : load16(x + k * s.step, s.there[k] && known);
}

// The row: v its chunks, with the residual's added, *y where the first of them goes. w, b: weights, where they are loaded early.
INLINE NormRow held_take(NormKernel c, const NormParams *p, const HeldPlace &s, Vec *v, Vec *w, Vec *b, char **y) {
  const bool soon = held_soon(c);
  Vec more[HELD_MOST];
  int64_t id = c.early ? norm_guess(c, p, s.row) : (int64_t)s.row;
  bool known = c.op != NORM_EMBED || id >= 0;
  NormRow r = norm_row_of(c, p, s.row, known ? id : 0);
  r.known = known;
  if (c.early) norm_hint(c, p, r, s.t, s.step, s.only, s.mine);
  if (c.lanes) norm_ends(c, p, s.row, s.t, s.all); // a block's rows are too long for it
  begin_kernel();
  if (c.early && c.lanes) norm_weights(c, p, s.t, s.step, s.mine, w, b);
  if (!soon) r = norm_row(c, p, s.row, s.t == 0);
  *y = r.y + s.t * 16;
  if (c.early) asm volatile("" : "+l"(*y)); // kept in a register, not computed again at the end
  held_load(c, s, r.x, r.known, soon, v);
#pragma unroll
  for (int k = 0; k < c.chunks && c.op == NORM_ADD; k++) more[k] = load16(r.residual + s.t * 16 + k * s.step, s.there[k]);
  if (soon || (!c.early && !held_late(c))) norm_weights(c, p, s.t, s.step, s.mine, w, b);
  if (soon && c.op == NORM_EMBED && (!r.known || load_id(p->ids, s.row, p->wide_ids) != id)) { // another id, or none
    r = norm_row(c, p, s.row, s.t == 0);
    held_load(c, s, r.x, r.known, false, v);
  }
#pragma unroll
  for (int k = 0; k < c.chunks && c.op == NORM_ADD; k++) v[k] = norm_add(c, v[k], more[k]);
  return r;
}

INLINE void held_fp8(NormKernel c, const NormParams *p, const HeldPlace &s, const NormRow &r, const Vec *v, const Vec *w, float (*part)[40]) {
  Fp8Held h;
  uint2 u[HELD_MOST];
  fp8_sums(c, p, p->scaling, v, w, 0, nullptr, part, &h);
  fp8_values(c, p, p->scaling, s.row, s.t, s.all, s.there, 0, &h, u);
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (s.there[k]) fp8_put(c, r.y, s.t + k * s.all, u[k]);
}

// A row's mean, of layernorm alone, and what its elements are multiplied by.
INLINE float2 held_stats(NormKernel c, const NormParams *p, const HeldPlace &s, Vec *v, float (*part)[40]) {
  float2 sums = make_float2(0, 0);
  if (!held_ordered(c))
#pragma unroll
    for (int k = 0; k < c.chunks; k++) sums = norm_sum(c, v[k], sums);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) keep_packed(&v[k]);
  float sum = held_ordered(c) ? fixed_order_sum(c, v, part[0]) : group_sum(c, sums.x + sums.y, part[0]), mean = 0;
  if (c.op == NORM_LAYER) {
    mean = sum * p->over_n;
    sums = make_float2(0, 0);
#pragma unroll
    for (int k = 0; k < c.chunks; k++)
      if (s.there[k]) sums = norm_squares(c, v[k], mean, sums);
#pragma unroll
    for (int k = 0; k < c.chunks; k++) keep_packed(&v[k]);
    sum = group_sum(c, sums.x + sums.y, part[1]);
  }
  return make_float2(mean, rsqrtf(fmaf(sum, p->over_n, p->eps))); // an explicit fma: early and late kernels give the same bits
}

INLINE void norm_held(NormKernel c, const NormParams *p) {
  __shared__ __align__(16) float part[2][40];
  HeldPlace s = held_place(c, p);
  Vec v[HELD_MOST], w[HELD_MOST], b[HELD_MOST];
  char *y;
  NormRow r = held_take(c, p, s, v, w, b, &y);
  if (!c.lanes && s.t == 0) norm_prefetch(c, p, s.row, 0, p->chunks * 16, false);
  held_second(c, r, s.t, s.step, s.mine, v);
  if (c.op == NORM_RMS_FP8) {
    held_fp8(c, p, s, r, v, w, part);
    return;
  }
  float2 stats = held_stats(c, p, s, v, part);
  if (norm_mixes(c) && (p->weight_kind != c.kind || p->y_kind != c.kind)) {
    held_mixed(c, p, y - s.t * 16, s.t, s.all, s.mine, v, stats.x, stats.y);
    return;
  }
  if (held_late(c)) norm_weights(c, p, s.t, s.step, s.mine, w, b);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    Vec out = norm_output(c, p, v[k], w[k], b[k], stats.x, stats.y);
    if (s.mine[k]) norm_put(c, r.stream, y + k * s.step, out.v);
  }
}

// ---- Rows in shared memory, of one block or of several that form a cluster. Layernorm's are in norm_layer.cuh.

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// What a thread has of its row: chunks begin, begin + lap, ... before end. The blocks of a cluster interleave along the
// row; with two inputs each block has a contiguous part of it. (Measured: README.md.)
typedef struct NormShare {
  uint64_t row;
  int begin, lap, end, count; // count: of these chunks
} NormShare;

INLINE NormShare norm_share(NormKernel c, const NormParams *p) {
  NormShare s;
  int all = blockDim.x, rank = p->cluster_bits ? (int)cluster_rank() : 0;
  s.row = block_index() >> p->cluster_bits;
  if (c.op == NORM_ADD) {
    s.begin = rank * p->span, s.lap = all, s.end = min(p->chunks, s.begin + p->span);
  } else {
    s.begin = rank * all, s.lap = all << p->cluster_bits, s.end = p->chunks;
  }
  s.begin += threadIdx.x;
  s.count = s.end > s.begin ? (s.end - s.begin - 1) / s.lap + 1 : 0;
  return s;
}

// Sum, and for FP8 the largest, over the blocks of a cluster. v: of this block's elements.
INLINE float2 cluster_fold(NormKernel c, const NormParams *p, ClusterExchange *exchange, float2 v) {
  int blocks = 1 << p->cluster_bits;
  exchange_all(exchange, blocks, v);
  v = make_float2(0, 0);
  for (int i = 0; i < blocks; i++) {
    v.x += exchange->from[i].x;
    if (c.op == NORM_RMS_FP8) v.y = higher(v.y, exchange->from[i].y);
  }
  return v;
}

enum { BATCH = 4 }; // chunks whose weights a thread holds at once

// Chunks of a row are copied asynchronously, while the thread does other work,
INLINE void big_fetch(const char *from, int step, int count, uint4 *to) {
  for (int k = 0; k < count; k++, from += step) fetch16(to + k * blockDim.x, from);
}

// and are summed when they have arrived. second: NULL, or where to store them.
INLINE float2 big_sum(NormKernel c, NormRow r, int count, uint4 *held, char *second, int step) {
  float2 s = make_float2(0, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll 2
  for (int k = 0; k < count; k++) {
    Vec a;
    if (!r.known) held[k * blockDim.x] = make_uint4(0, 0, 0, 0);
    a.v = held[k * blockDim.x];
    if (second) norm_put(c, r.stream, second + k * step, a.v);
    s = norm_sum(c, a, s);
  }
  return s;
}

// The same with two inputs, NORM_LAPS chunks of each a thread at most: each chunk is added and stored while the copies
// of others are still in flight. (With one input there is nothing to store yet: no gain.)
INLINE void pair_fetch(const char *x, const char *residual, int step, int count, uint4 *held, uint4 *other) {
#pragma unroll
  for (int k = 0; k < NORM_LAPS; k++) {
    if (k < count) fetch16(held + k * blockDim.x, x + k * step), fetch16(other + k * blockDim.x, residual + k * step);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
}

INLINE void wait_but(int groups) { // for all copies but those of the last so many groups
  if (groups == 5) asm volatile("cp.async.wait_group 5;" ::: "memory");
  if (groups == 4) asm volatile("cp.async.wait_group 4;" ::: "memory");
  if (groups == 3) asm volatile("cp.async.wait_group 3;" ::: "memory");
  if (groups == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
  if (groups == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
  if (groups == 0) asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// Sums take the first input's place.
INLINE float2 pair_sum(NormKernel c, int count, uint4 *held, const uint4 *other, char *second, int step) {
  float2 s = make_float2(0, 0);
#pragma unroll
  for (int k = 0; k < NORM_LAPS; k++) {
    Vec a, b;
    wait_but(NORM_LAPS - 1 - k);
    if (k >= count) continue;
    a.v = held[k * blockDim.x], b.v = other[k * blockDim.x];
    a = norm_add(c, a, b);
    held[k * blockDim.x] = a.v;
    *(uint4 *)(second + k * step) = a.v;
    s = norm_sum(c, a, s);
  }
  return s;
}

// Weights of chunks k and on.
INLINE void big_weights(NormKernel c, const NormParams *p, NormShare share, int k, Vec *w) {
  int64_t from = ((int64_t)share.begin + (int64_t)k * share.lap) * 16;
  int step = share.lap * 16;
#pragma unroll
  for (int i = 0; i < c.chunks; i++)
    w[i] = load16_now((const char *)p->weight + from + i * step, k + i < share.count);
}

// Sums, and the largest |x * weight|, of a row once its copies have arrived. w: the first weights.
INLINE float2 big_sum_top(NormKernel c, const NormParams *p, NormShare share, const uint4 *held, Vec *w, float *top) {
  float2 s = make_float2(0, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll 1
  for (int k = 0; k < share.count; k += c.chunks) {
    if (k) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      Vec a;
      if (k + i >= share.count) continue;
      a.v = held[(k + i) * blockDim.x];
      s = norm_sum(c, a, s);
      float f[8];
      *top = higher(*top, fp8_product(c, p, a, w[i], f));
    }
  }
  return s;
}

// The output in fp8.
INLINE void big_put_fp8(NormKernel c, const NormParams *p, NormShare share, NormRow r, const uint4 *held, Vec *w,
                        float scale, Fp8Scale q) {
  int laps = __shfl_sync(~0u, share.count, 0); // a warp's first lane has as many as any
#pragma unroll 1
  for (int k = 0; k < laps; k += c.chunks) {
    if (k || p->scaling == NORM_SCALE_ROW) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      if (k + i >= laps) continue;
      float f[8];
      Vec a;
      bool there = k + i < share.count;
      a.v = there ? held[(k + i) * blockDim.x] : make_uint4(0, 0, 0, 0);
      float top = fp8_product(c, p, a, w[i], f);
      int at = share.begin + (k + i) * share.lap;
      if (p->scaling == NORM_SCALE_BLOCK)
        q = fp8_block(c, p, share.row, at, there, lanes_highest(top, 8 * norm_bytes(c)), scale);
      if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
        for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] *= scale;
      fp8_divide(q, 16 / norm_bytes(c), f);
      if (there) fp8_put(c, r.y, at, fp8_words(c, f));
    }
  }
}

// Prefetches into L2, while the predecessor still runs, this thread's part of the block's share of the row.
INLINE void big_hint(NormKernel c, const NormParams *p, NormShare share) {
  bool first = c.op == NORM_ADD && block_index() < 256; // of large grids: no gain with one input
  if (!(may_hint() || first) || c.op == NORM_EMBED || threadIdx.x % 8) return;
  for (int k = 0; k < share.count; k++) {
    int64_t at = ((int64_t)share.begin + k * share.lap) * 16;
    prefetch_l2((const char *)p->x + (int64_t)share.row * p->x_stride + at);
    if (c.op == NORM_ADD) prefetch_l2((const char *)p->residual + (int64_t)share.row * p->residual_stride + at);
  }
}

INLINE void norm_big(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // a thread reads what it has written itself
  __shared__ __align__(16) float part[2][40];
  __shared__ ClusterExchange exchange;
  if (p->cluster_bits) exchange_init(&exchange);
  NormShare share = norm_share(c, p);
  uint4 *held = far + threadIdx.x;
  big_hint(c, p, share);
  begin_kernel();
  if (threadIdx.x == 0) { // a part of a row further on, as long as this block's; which block will need it does not matter
    int64_t at = (int64_t)(p->cluster_bits ? cluster_rank() : 0) * p->span * 16;
    norm_prefetch(c, p, share.row, at, (int)min((int64_t)p->span * 16, (int64_t)p->chunks * 16 - at), false);
  }
  NormRow r = norm_row(c, p, share.row, share.begin == 0);
  Vec w[BATCH], none;
  int step = share.lap * 16;
  int64_t from = (int64_t)share.begin * 16;
  uint4 *other = held + p->aside;
  char *second = r.second ? r.second + from : nullptr;
  bool by_row = c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW;
  float top = 0;
  if (c.op == NORM_ADD) pair_fetch(r.x + from, r.residual + from, step, share.count, held, other);
  else if (r.known) big_fetch(r.x + from, step, share.count, held);
  if (c.early) big_weights(c, p, share, 0, w);
  float2 s = c.op == NORM_ADD ? pair_sum(c, share.count, held, other, second, step)
             : by_row         ? big_sum_top(c, p, share, held, w, &top)
                              : big_sum(c, r, share.count, held, second, step);
  if (by_row) highest_give(c, top, part[1]);
  Fp8Scale q = {1, 1};
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  float2 total = make_float2(block_sum(s.x + s.y, part[0]), 0);
  if (by_row) total.y = highest_take(c, 0, part[1]);
  if (p->cluster_bits) total = cluster_fold(c, p, &exchange, total);
  float scale = rsqrtf(total.x * p->over_n + p->eps);
  if (c.op == NORM_RMS_FP8) {
    if (by_row) q = fp8_choose(total.y, scale, p->scales + share.row, share.begin == 0);
    big_put_fp8(c, p, share, r, held, w, scale, q);
    return;
  }
  char *y = r.y + from;
#pragma unroll 1
  for (int k = 0; k < share.count; k += c.chunks, y += c.chunks * step) {
    if (k || !c.early) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      Vec a;
      if (k + i >= share.count) continue;
      a.v = held[(k + i) * blockDim.x];
      norm_put(c, r.stream, y + i * step, norm_output(c, p, a, w[i], none, 0, scale).v);
    }
  }
}
#endif

#endif
