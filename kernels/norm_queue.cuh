// Row normalisations of rows that start anywhere, several of them to a block or a cluster, one after another. A block takes rows that start alike, p->alike rows
// apart: it has weights and biases, shifted to where these rows' chunks are, in registers for all of them.
//
// Rows are held in shared memory, as the aligned 16 bytes of the input that they consist of. While one is written, the next is summed up and those after it arrive. Every warp posts
// what its part of a row adds up to, and takes all posts of the row a turn later: there is no barrier of the block, and nothing waits for what was just posted.
//
// How a row is cut follows from its length and start alone, and with it the order of every sum.
#ifndef SOL_KERNELS_NORM_QUEUE_CUH
#define SOL_KERNELS_NORM_QUEUE_CUH

#include "funnel.cuh"
#include "norm_any.cuh"
#include "stats.cuh"
#include "strip.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
enum { QUEUE_LANE = 33 }; // 16 bytes that a warp holds in a turn: a lane's chunk may end in those of the next lane

// What a thread has of every row: chunks, which start on as many bytes of the output as they have there, and perhaps an edge.
typedef struct QueuePlace {
  Strip s;
  int warps, warp;     // of the row, in all its blocks; this one
  int first, count;    // chunks first, first + 32 warps, ...
  int full, rest;      // chunks that all warps have, and what is left for the first of them
  int shift;           // bytes from the aligned 16 bytes of the input to the chunks
  int edge, sum_edge;  // columns beside the chunks, and beside those 16 bytes; -1: none
} QueuePlace;

INLINE QueuePlace queue_place(NormKernel c, const NormParams *p, const char *x, const char *y) {
  const int in = norm_bytes(c), per = 16 / in;
  QueuePlace a;
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
INLINE float queue_elements(NormKernel c, const QueuePlace &a, int warp) {
  return (float)((a.full * 32 + max(0, min(a.rest - 32 * warp, 32))) * (16 / norm_bytes(c)) + (warp ? 0 : a.s.edges));
}

// Starts to copy a row: from, the thread's first 16 bytes of it. Each row is a group of copies, though there may be none.
INLINE void queue_fetch(NormKernel c, const QueuePlace &a, const char *from, bool there, uint4 *mine) {
  const int lane = threadIdx.x % 32, count = there ? a.count : 0;
  uint32_t step = 512 * a.warps;
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (k < count) fetch16(mine + k * QUEUE_LANE, from + k * step);
  if (a.shift && lane == 31)
#pragma unroll 1
    for (int k = 0; k < count; k++) fetch16(mine + k * QUEUE_LANE + 1, from + k * step + 16);
  else if (a.shift && count && a.first + (count - 1) * 32 * a.warps == a.s.chunks - 1) // the row's last
    fetch16(mine + (count - 1) * QUEUE_LANE + 1, from + (count - 1) * step + 16);
  asm volatile("cp.async.commit_group;" ::: "memory");
}

INLINE void queue_vector(NormKernel c, const QueuePlace &a, const void *vector, Vec *v) {
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

// An element as it is in memory, and as a float: it is loaded long before it is used.
INLINE uint32_t queue_load(NormKernel c, const char *row, int column, bool there) {
  if (!there || column < 0) return 0;
  return norm_bytes(c) == 4 ? ((const uint32_t *)row)[column] : ((const uint16_t *)row)[column];
}
INLINE float queue_float(NormKernel c, uint32_t u) { return norm_bytes(c) == 4 ? __uint_as_float(u) : widen2(u, c.kind).x; }

// What a warp's part of a row adds up to: mean and squares about it; rmsnorm: squares. elements: of that part.
INLINE float2 queue_sum(NormKernel c, const QueuePlace &a, const uint4 *mine, float edge, float elements) {
  Vec v;
  v.v = a.count ? *mine : make_uint4(0, 0, 0, 0);
  if (c.op == NORM_LAYER) {
    // About the mean of the first lane's first chunk: what the part's mean is away from that counts in the row's variance.
    float middle = __shfl_sync(~0u, a.count ? chunk_mean(v, c.kind, norm_bytes(c)) : edge, 0);
    Running r = {middle, {0, 0}, {0, 0}};
#pragma unroll
    for (int k = 0; k < c.chunks; k++) {
      if (k >= a.count) continue;
      v.v = mine[k * QUEUE_LANE];
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
    v.v = mine[k * QUEUE_LANE];
    sum = norm_sum(c, v, sum);
  }
  return make_float2(warp_sum(sum.x + sum.y), 0);
}

// ---- Posts: a row's are where those of the row NORM_QUEUE_POSTS before were. A warp that posts has taken those of two rows before, for which all warps had taken those of
// four rows before.

INLINE void queue_post(const NormParams *p, const QueuePlace &a, uint64_t *arrived, float2 *posts, int row, float2 v) {
#if __CUDA_ARCH__ >= 900
  int slot = row % NORM_QUEUE_POSTS, lane = threadIdx.x % 32;
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
INLINE float2 queue_take(NormKernel c, const NormParams *p, const QueuePlace &a, uint64_t *arrived, const float2 *posts, int row, float2 own) {
  int lane = threadIdx.x % 32, slot = row % NORM_QUEUE_POSTS;
  float2 v = make_float2(own.x, own.y);
  if (a.warps == 1) return make_float2(c.op == NORM_LAYER ? v.x : 0, (c.op == NORM_LAYER ? v.y : v.x) * p->over_n);
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"((uint32_t)__cvta_generic_to_shared(arrived + slot)), "r"(row / NORM_QUEUE_POSTS & 1)
                 : "memory");
#endif
  posts += slot * a.warps;
  float mean = 0, sum = 0;
#pragma unroll 1
  for (int j = lane; j < a.warps; j += 32) sum += c.op == NORM_LAYER ? posts[j].x * queue_elements(c, a, j) : posts[j].x;
  sum = warp_sum(sum);
  if (c.op == NORM_LAYER) {
    mean = sum * p->over_n, sum = 0;
#pragma unroll 1
    for (int j = lane; j < a.warps; j += 32) sum += fmaf(queue_elements(c, a, j) * (posts[j].x - mean), posts[j].x - mean, posts[j].y);
    sum = warp_sum(sum);
  }
  return make_float2(mean, sum * p->over_n);
}

// A chunk's result. Layernorm: x * scale - mean * scale, which is as exact as the mean is.
INLINE Vec queue_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float away, float scale, bool plus) {
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
INLINE void queue_put(NormKernel c, const NormParams *p, const QueuePlace &a, const uint4 *mine, Vec *w, Vec *b, float mean, float scale, char *y, bool plain, bool plus) {
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
    v.v = mine[k * QUEUE_LANE];
    if (a.shift) v.v = funnel(v.v, mine[k * QUEUE_LANE + 1], (uint32_t)a.shift, norm_bytes(c));
    if (plain) *(uint4 *)(to + k * step) = queue_output(c, p, v, w[k], b[k], away, scale, plus).v;
    else norm_give(c, p, v, w[k], b[k], mean, scale, y, a.s.head + (a.first + k * 32 * a.warps) * per);
    asm volatile("" ::: "memory"); // one after another: for all of them at once there are no registers
  }
}

INLINE void queue_put_edge(NormKernel c, const NormParams *p, const QueuePlace &a, float edge, float2 vectors, float mean, float scale, char *y) {
  if (a.edge >= 0) store_one(y, a.edge, p->y_kind, fmaf(edge - mean, vectors.x * scale, vectors.y));
}

INLINE void queue_init(const NormParams *p, uint64_t *arrived) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    for (int i = 0; i < NORM_QUEUE_POSTS; i++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(arrived + i)), "r"(p->cluster_bits ? 1 : (int)blockDim.x / 32)
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (p->cluster_bits) asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  else __syncthreads();
#endif
}

INLINE void norm_queue(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 queue_memory[]; // posts, then NORM_QUEUE_HELD rows
  __shared__ uint64_t arrived[NORM_QUEUE_POSTS];
  queue_init(p, arrived);
  uint64_t group = block_index() >> p->cluster_bits, alike = 1u << p->alike_bits, row = (group >> p->alike_bits) * alike * p->rows + (group & (alike - 1));
  begin_kernel();
  if (row >= p->m) return;
  int rows = (int)min((uint64_t)p->rows, (p->m - row + alike - 1) >> p->alike_bits);
  int64_t x_step = p->x_stride << p->alike_bits, y_step = p->y_stride << p->alike_bits;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  QueuePlace a = queue_place(c, p, x, y);
  const char *from = x + (a.s.head * norm_bytes(c) - a.shift + a.first * 16);
  float2 *posts = (float2 *)queue_memory;
  const int held = c.chunks * QUEUE_LANE * (int)(blockDim.x / 32);
  uint4 *mine = queue_memory + p->aside + threadIdx.x / 32 * (c.chunks * QUEUE_LANE) + threadIdx.x % 32;
  uint32_t edges[NORM_QUEUE_HELD]; // of the rows that are held, the oldest first
#pragma unroll
  for (int i = 0; i < NORM_QUEUE_HELD; i++) {
    queue_fetch(c, a, from + i * x_step, i < rows, mine + i * held);
    edges[i] = queue_load(c, x + i * x_step, a.sum_edge, i < rows);
  }
  Vec w[8], b[8];
  queue_vector(c, a, p->weight, w);
  if (c.op == NORM_LAYER) queue_vector(c, a, p->bias, b);
  float2 of_edge = make_float2(0, 0); // its weight and bias
  if (a.edge >= 0) of_edge.x = load_one(p->weight, a.edge, c.kind) + p->offset;
  if (a.edge >= 0 && c.op == NORM_LAYER) of_edge.y = load_one(p->bias, a.edge, c.kind);
  float elements = queue_elements(c, a, a.warp);
  wait_but(NORM_QUEUE_HELD - 1);
  float2 now = queue_sum(c, a, mine, queue_float(c, edges[0]), elements), next = now;
  if (a.warps > 1) queue_post(p, a, arrived, posts, 0, now);
#pragma unroll 1
  for (int i = 0; i < rows; i++, x += x_step, from += x_step, y += y_step) {
    uint4 *here = mine + i % NORM_QUEUE_HELD * held;
    uint32_t out_edge = a.shift ? queue_load(c, x, a.edge, true) : edges[0];
    wait_but(NORM_QUEUE_HELD - 2);
    __syncwarp();
    if (i + 1 < rows) {
      next = queue_sum(c, a, mine + (i + 1) % NORM_QUEUE_HELD * held, queue_float(c, edges[1]), elements);
      if (a.warps > 1) queue_post(p, a, arrived, posts, i + 1, next);
    }
    float2 sums = queue_take(c, p, a, arrived, posts, i, now);
    now = next;
    float scale = rsqrtf(sums.y + p->eps);
    bool plain = p->y_kind == c.kind;
    if (plain && (c.op != NORM_LAYER || p->offset == 0)) queue_put(c, p, a, here, w, b, sums.x, scale, y, true, false);
    else if (plain) queue_put(c, p, a, here, w, b, sums.x, scale, y, true, true);
    else queue_put(c, p, a, here, w, b, sums.x, scale, y, false, true);
    queue_put_edge(c, p, a, queue_float(c, out_edge), of_edge, sums.x, scale, y);
    __syncwarp();
    queue_fetch(c, a, from + NORM_QUEUE_HELD * x_step, i + NORM_QUEUE_HELD < rows, here);
#pragma unroll
    for (int e = 0; e + 1 < NORM_QUEUE_HELD; e++) edges[e] = edges[e + 1];
    edges[NORM_QUEUE_HELD - 1] = queue_load(c, x + NORM_QUEUE_HELD * x_step, a.sum_edge, i + NORM_QUEUE_HELD < rows);
  }
}
#endif

#if __CUDA_ARCH__ >= 900
#undef NORM_QUEUE
#define NORM_QUEUE(name, op, T, number) NORM_KERNEL(name, 32 * NORM_QUEUE_WARPS, 1, norm_queue, op, T, NORM_QUEUE_CHUNKS((T) == TYPE_f ? 4 : 2), 0, 1)
#endif

#endif
