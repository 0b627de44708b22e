// Row normalisations of rows that start anywhere, several of them to a block or a cluster, one after another. A block takes rows that start alike, p->alike rows
// apart: it has weights and biases, shifted to where these rows' chunks are, in registers for all of them.
//
// Rows are held in shared memory, as the aligned 16 bytes of the input that they consist of. While one is written, the next is summed up and those after it arrive. Every warp posts
// what its part of a row adds up to, and takes all posts of the row a turn later: there is no barrier of the block, and nothing waits for what was just posted.
//
// How a row is cut follows from its length and start alone, and with it the order of every sum.
#ifndef SOL_KERNELS_NORM_ROWS_CUH
#define SOL_KERNELS_NORM_ROWS_CUH

#include "funnel.cuh"
#include "norm_any.cuh"
#include "stats.cuh"
#include "strip.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
enum { ROWS_LANE = 33 }; // 16 bytes that a warp holds in a turn: a lane's chunk may end in those of the next lane

// What a thread has of every row: chunks, which start on as many bytes of the output as they have there, and perhaps an edge.
typedef struct RowsPlace {
  Strip s;
  int warps, warp;     // of the row, in all its blocks; this one
  int first, count;    // chunks first, first + 32 warps, ...
  int full, rest;      // chunks that all warps have, and what is left for the first of them
  int shift;           // bytes from the aligned 16 bytes of the input to the chunks
  int edge, sum_edge;  // columns beside the chunks, and beside those 16 bytes; -1: none
} RowsPlace;

INLINE RowsPlace rows_place(NormKernel c, const NormParams *p, const char *x, const char *y) {
  const int in = norm_bytes(c), per = 16 / in;
  RowsPlace a;
  int of_block = blockDim.x / 32, rank = p->cluster_bits ? (int)cluster_rank() : 0;
  a.warps = of_block << p->cluster_bits, a.warp = rank * of_block + threadIdx.x / 32;
  a.s = strip_of((int)(-((uint32_t)(uintptr_t)y >> (p->y_kind == KIND_FP32 ? 2 : 1)) & (per - 1)), (int)p->n, per);
  a.shift = (int)((uintptr_t)x + a.s.head * in) & 15;
  if (a.shift) // what is around a chunk is then within the row
    a.s.head += per, a.s.chunks = max(0, a.s.chunks - 2), a.s.edges = (int)p->n - a.s.chunks * per;
  a.first = a.warp * 32 + threadIdx.x % 32;
  a.full = (int)((uint32_t)a.s.chunks / (uint32_t)(32 * a.warps)), a.rest = a.s.chunks - a.full * 32 * a.warps;
  a.count = a.full + (a.first < a.rest);
  Strip raw = a.s;
  raw.head -= a.shift / in;
  a.edge = a.first < a.s.edges ? strip_edge(a.s, a.first, per) : -1;
  a.sum_edge = a.first < a.s.edges ? strip_edge(raw, a.first, per) : -1;
  return a;
}

// Elements of a row that a warp sums up.
INLINE float rows_elements(NormKernel c, const RowsPlace &a, int warp) {
  return (float)((a.full * 32 + max(0, min(a.rest - 32 * warp, 32))) * (16 / norm_bytes(c)) + (warp ? 0 : a.s.edges));
}

// Starts to copy a row: from, the thread's first 16 bytes of it. Each row is a group of copies, though there may be none.
INLINE void rows_fetch(NormKernel c, const RowsPlace &a, const char *from, bool there, uint4 *mine) {
  const int lane = threadIdx.x % 32, count = there ? a.count : 0;
  uint32_t step = 512 * a.warps;
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (k < count) fetch16(mine + k * ROWS_LANE, from + k * step);
  if (a.shift && lane == 31)
#pragma unroll 1
    for (int k = 0; k < count; k++) fetch16(mine + k * ROWS_LANE + 1, from + k * step + 16);
  else if (a.shift && count && a.first + (count - 1) * 32 * a.warps == a.s.chunks - 1) // the row's last
    fetch16(mine + (count - 1) * ROWS_LANE + 1, from + (count - 1) * step + 16);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

INLINE void rows_vector(NormKernel c, const RowsPlace &a, const void *vector, Vec *v) {
  const char *from = (const char *)vector + (a.s.head * norm_bytes(c) + a.first * 16);
  int step = 512 * a.warps;
#pragma unroll
  for (int k = 0; k < c.chunks; k += 2) {
    Around first = load_around(from + k * step, k < a.count), second = first;
    if (k + 1 < c.chunks) second = load_around(from + (k + 1) * step, k + 1 < a.count);
    v[k].v = take_around(first, from, norm_bytes(c)), keep_packed(&v[k]);
    if (k + 1 < c.chunks) v[k + 1].v = take_around(second, from, norm_bytes(c)), keep_packed(&v[k + 1]);
  }
}

// What a warp's part of a row adds up to: mean and squares about it; rmsnorm: squares. elements: of that part.
INLINE float2 rows_sum(NormKernel c, const RowsPlace &a, const uint4 *mine, float edge, float elements) {
  Vec v;
  v.v = a.count ? *mine : make_uint4(0, 0, 0, 0);
  if (c.op == NORM_LAYER) {
    // About the mean of the first lane's first chunk: what the part's mean is away from that counts in the row's variance.
    float middle = __shfl_sync(~0u, a.count ? chunk_mean(v, c.kind, norm_bytes(c)) : edge, 0);
    Running r = {middle, {0, 0}, {0, 0}};
#pragma unroll
    for (int k = 0; k < c.chunks; k++) {
      if (k >= a.count) continue;
      v.v = mine[k * ROWS_LANE];
      run_chunk(r, v, c.kind, norm_bytes(c));
    }
    if (a.sum_edge >= 0) run_one(r, edge);
    float sum = warp_sum(r.sum.x + r.sum.y), squares = warp_sum(r.squares.x + r.squares.y), apart = __fdividef(sum, fmaxf(elements, 1));
    return make_float2(middle + apart, fmaf(-sum, apart, squares));
  }
  float2 sum = make_float2(a.sum_edge >= 0 ? edge * edge : 0, 0);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (k >= a.count) continue;
    v.v = mine[k * ROWS_LANE];
    sum = norm_sum(c, v, sum);
  }
  return make_float2(warp_sum(sum.x + sum.y), 0);
}

// ---- Posts: a row's are where those of the row NORM_ROWS_POSTS before were. A warp that posts has taken those of two rows before, for which all warps had taken those of
// four rows before.

INLINE void rows_post(const NormParams *p, const RowsPlace &a, uint64_t *arrived, float2 *posts, int row, float2 v) {
#if __CUDA_ARCH__ >= 900
  int slot = row % NORM_ROWS_POSTS, lane = threadIdx.x % 32;
  uint32_t bar = (uint32_t)__cvta_generic_to_shared(arrived + slot), to = (uint32_t)__cvta_generic_to_shared(posts + slot * a.warps + a.warp);
  if (!p->cluster_bits) {
    if (lane == 0) {
      posts[slot * a.warps + a.warp] = v;
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
    }
    return;
  }
  if (threadIdx.x == 0)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(a.warps * (int)sizeof(float2)) : "memory");
  if (lane < 1 << p->cluster_bits) {
    uint32_t there, signal;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(lane));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(bar), "r"(lane));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there), "f"(v.x), "f"(v.y), "r"(signal)
                 : "memory");
  }
#endif
}

// Mean and variance (or the mean of squares) of a row.
INLINE float2 rows_take(NormKernel c, const NormParams *p, const RowsPlace &a, uint64_t *arrived, const float2 *posts, int row, float2 own) {
  int lane = threadIdx.x % 32, slot = row % NORM_ROWS_POSTS;
  float2 v = make_float2(own.x, own.y);
  if (a.warps == 1) return make_float2(c.op == NORM_LAYER ? v.x : 0, (c.op == NORM_LAYER ? v.y : v.x) * p->over_n);
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"((uint32_t)__cvta_generic_to_shared(arrived + slot)), "r"(row / NORM_ROWS_POSTS & 1)
                 : "memory");
#endif
  posts += slot * a.warps;
  float mean = 0, sum = 0;
#pragma unroll 1
  for (int j = lane; j < a.warps; j += 32) sum += c.op == NORM_LAYER ? posts[j].x * rows_elements(c, a, j) : posts[j].x;
  sum = warp_sum(sum);
  if (c.op == NORM_LAYER) {
    mean = sum * p->over_n, sum = 0;
#pragma unroll 1
    for (int j = lane; j < a.warps; j += 32) sum += fmaf(rows_elements(c, a, j) * (posts[j].x - mean), posts[j].x - mean, posts[j].y);
    sum = warp_sum(sum);
  }
  return make_float2(mean, sum * p->over_n);
}

// A chunk's result. Layernorm: x * scale - mean * scale, which is as exact as the mean is.
INLINE Vec rows_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float away, float scale, bool plus) {
  const int in = norm_bytes(c);
  float f[8], w[8], b[8];
  if (c.op != NORM_LAYER) return norm_output(c, p, v, weight, bias, 0, scale);
  widen(&v, c.kind, in, f);
  widen(&weight, c.kind, in, w);
  widen(&bias, c.kind, in, b);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) f[j] = fmaf(fmaf(f[j], scale, away), plus ? w[j] + p->offset : w[j], b[j]);
  narrow(&v, c.kind, in, f);
  return v;
}

// plain: the output is of the input's type; plus: weights have an offset. Both are literals.
INLINE void rows_put(NormKernel c, const NormParams *p, const RowsPlace &a, const uint4 *mine, Vec *w, Vec *b, float mean, float scale, char *y, bool plain, bool plus) {
  const int per = 16 / norm_bytes(c);
  float away = -mean * scale;
  char *to = y + (a.s.head + a.first * per) * norm_bytes(c);
  uint32_t step = 512 * a.warps;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    Vec v;
    keep_packed(&w[k]); // not widened once for all rows: there are no registers for that
    if (c.op == NORM_LAYER) keep_packed(&b[k]);
    if (k >= a.count) continue;
    v.v = mine[k * ROWS_LANE];
    if (a.shift) v.v = funnel(v.v, mine[k * ROWS_LANE + 1], (uint32_t)a.shift, norm_bytes(c));
    if (plain) *(uint4 *)(to + k * step) = rows_output(c, p, v, w[k], b[k], away, scale, plus).v;
    else norm_give(c, p, v, w[k], b[k], mean, scale, y, a.s.head + (a.first + k * 32 * a.warps) * per);
    asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
  }
}

INLINE void rows_put_edge(NormKernel c, const NormParams *p, const RowsPlace &a, float edge, float mean, float scale, char *y) {
  if (a.edge < 0) return;
  float by = (load_one(p->weight, a.edge, c.kind) + p->offset) * scale;
  store_one(y, a.edge, p->y_kind, c.op == NORM_LAYER ? fmaf(edge - mean, by, load_one(p->bias, a.edge, c.kind)) : edge * by);
}

INLINE void rows_init(const NormParams *p, uint64_t *arrived) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    for (int i = 0; i < NORM_ROWS_POSTS; i++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(arrived + i)), "r"(p->cluster_bits ? 1 : (int)blockDim.x / 32)
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (p->cluster_bits) asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  else __syncthreads();
#endif
}

INLINE void norm_rows(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 rows_memory[]; // posts, then NORM_ROWS_HELD rows
  __shared__ uint64_t arrived[NORM_ROWS_POSTS];
  rows_init(p, arrived);
  uint64_t group = block_index() >> p->cluster_bits, alike = 1u << p->alike_bits, row = (group >> p->alike_bits) * alike * p->rows + (group & (alike - 1));
  begin_kernel();
  if (row >= p->m) return;
  int rows = (int)min((uint64_t)p->rows, (p->m - row + alike - 1) >> p->alike_bits);
  int64_t x_step = p->x_stride << p->alike_bits, y_step = p->y_stride << p->alike_bits;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  RowsPlace a = rows_place(c, p, x, y);
  const char *from = x + (a.s.head * norm_bytes(c) - a.shift + a.first * 16);
  float2 *posts = (float2 *)rows_memory;
  const int held = c.chunks * ROWS_LANE * (int)(blockDim.x / 32);
  uint4 *mine = rows_memory + p->aside + threadIdx.x / 32 * (c.chunks * ROWS_LANE) + threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < NORM_ROWS_HELD; i++) rows_fetch(c, a, from + i * x_step, i < rows, mine + i * held);
  float elements = rows_elements(c, a, a.warp), edge = a.sum_edge >= 0 ? load_one(x, a.sum_edge, c.kind) : 0;
  Vec w[8], b[8];
  rows_vector(c, a, p->weight, w);
  if (c.op == NORM_LAYER) rows_vector(c, a, p->bias, b);
  wait_but(NORM_ROWS_HELD - 1);
  float2 now = rows_sum(c, a, mine, edge, elements), next = now;
  if (a.warps > 1) rows_post(p, a, arrived, posts, 0, now);
#pragma unroll 1
  for (int i = 0; i < rows; i++, x += x_step, from += x_step, y += y_step) {
    uint4 *here = mine + i % NORM_ROWS_HELD * held;
    float out_edge = a.edge >= 0 ? load_one(x, a.edge, c.kind) : 0;
    edge = a.sum_edge >= 0 && i + 1 < rows ? load_one(x + x_step, a.sum_edge, c.kind) : 0;
    wait_but(NORM_ROWS_HELD - 2);
    __syncwarp();
    if (i + 1 < rows) {
      next = rows_sum(c, a, mine + (i + 1) % NORM_ROWS_HELD * held, edge, elements);
      if (a.warps > 1) rows_post(p, a, arrived, posts, i + 1, next);
    }
    float2 sums = rows_take(c, p, a, arrived, posts, i, now);
    now = next;
    float scale = rsqrtf(sums.y + p->eps);
    bool plain = p->y_kind == c.kind;
    if (plain && (c.op != NORM_LAYER || p->offset == 0)) rows_put(c, p, a, here, w, b, sums.x, scale, y, true, false);
    else if (plain) rows_put(c, p, a, here, w, b, sums.x, scale, y, true, true);
    else rows_put(c, p, a, here, w, b, sums.x, scale, y, false, true);
    rows_put_edge(c, p, a, out_edge, sums.x, scale, y);
    __syncwarp();
    rows_fetch(c, a, from + NORM_ROWS_HELD * x_step, i + NORM_ROWS_HELD < rows, here);
  }
}
#endif

#if __CUDA_ARCH__ >= 900
#undef NORM_ROWS
#define NORM_ROWS(name, op, T, number) NORM_KERNEL(name, 32 * NORM_ROWS_WARPS, 1, norm_rows, op, T, NORM_ROWS_CHUNKS, 0, 1)
#endif

#endif
