// Row normalisations of rows of any alignment and types, several to a block or a cluster one after another. Rows p->alike apart start alike in every tensor, whatever
// their length: a block takes such rows, so that it shifts weights and biases to where the rows' chunks are once, and keeps them in shared memory beside the rows.
//
// Rows come by bulk copies, some ahead of the one that is worked on. A row is summed up before the one before it is written, so that the exchange of sums
// over the cluster takes none of the block's time.
#ifndef SOL_KERNELS_NORM_STREAM_CUH
#define SOL_KERNELS_NORM_STREAM_CUH

#include "funnel.cuh"
#include "hopper.cuh"
#include "norm_any.cuh"
#include "stats.cuh"
#include "strip.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
enum { STREAM_POSTS = 3, STREAM_BLOCKS = 16 }; // rows whose sums are under way at a time; blocks of a cluster, at most

typedef struct StreamShared {
  uint64_t full[NORM_STREAM_SLOTS], posted[STREAM_POSTS];
  float2 from[STREAM_POSTS][STREAM_BLOCKS];
  Stats warps[2][NORM_STREAM_THREADS / 32];
} StreamShared;

// What a thread has of each row: chunks first, first + blockDim.x, ... of `count` of its block's, and perhaps an edge.
typedef struct StreamPart {
  Strip strip;
  int begin, count; // the block's chunks
  int first, all;   // this thread, of so many that share the row
  int edge;         // column; -1: none
  int shift;        // bytes from 16-byte boundaries of the input to chunks
} StreamPart;

INLINE Strip stream_strip(NormKernel c, const NormParams *p, const char *x, const char *y) {
  const int per = 16 / norm_bytes(c);
  int head = (int)(-((uint32_t)(uintptr_t)y >> (p->y_kind == KIND_FP32 ? 2 : 1)) & (per - 1));
  Strip s = strip_of(head, (int)p->n, per);
  // What is read around a chunk is within the row: the first and the last are edges.
  if (((uintptr_t)x + head * norm_bytes(c)) & 15) s.head += per, s.chunks = max(0, s.chunks - 2), s.edges = (int)p->n - s.chunks * per;
  return s;
}
INLINE int stream_chunks(const NormParams *p, Strip s, int rank) { return max(0, min(p->span, s.chunks - rank * p->span)); }
INLINE float stream_elements(NormKernel c, const NormParams *p, Strip s, int rank) {
  return (float)(stream_chunks(p, s, rank) * (16 / norm_bytes(c)) + (rank ? 0 : s.edges));
}

INLINE StreamPart stream_part(NormKernel c, const NormParams *p, const char *x, const char *y, int rank) {
  StreamPart a;
  a.first = c.lanes ? threadIdx.x % c.lanes : threadIdx.x, a.all = c.lanes ? c.lanes : blockDim.x;
  a.strip = stream_strip(c, p, x, y);
  a.begin = rank * p->span, a.count = stream_chunks(p, a.strip, rank);
  a.edge = rank == 0 && a.first < a.strip.edges ? strip_edge(a.strip, a.first, 16 / norm_bytes(c)) : -1;
  a.shift = (int)((uintptr_t)x + a.strip.head * norm_bytes(c)) & 15;
  return a;
}
INLINE int stream_column(NormKernel c, const StreamPart &a, int i) { return a.strip.head + (a.begin + i) * (16 / norm_bytes(c)); }

// Starts to copy a row, by one thread.
INLINE void stream_fetch(NormKernel c, const StreamPart &a, const char *row, uint4 *slot, uint64_t *full) {
#if __CUDA_ARCH__ >= 900
  int bytes = a.count ? (a.count + (a.shift != 0)) * 16 : 0;
  barrier_expect(full, bytes);
  if (bytes)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(slot)),
                 "l"(__cvta_generic_to_global(row + (int64_t)stream_column(c, a, 0) * norm_bytes(c) - a.shift)), "r"(bytes), "r"(shared_address(full))
                 : "memory");
#endif
}

INLINE void stream_ahead(NormKernel c, const StreamPart &a, const char *row) {
  if (a.count) prefetch_far(row + (int64_t)stream_column(c, a, 0) * norm_bytes(c) - a.shift, (a.count + (a.shift != 0)) * 16);
}

INLINE Vec stream_chunk(NormKernel c, const StreamPart &a, const uint4 *slot, int i) {
  Vec v;
  v.v = slot[i];
  if (a.shift) v.v = funnel(v.v, slot[i + 1], (uint32_t)a.shift, norm_bytes(c));
  return v;
}

// Weights or biases of the block's chunks, to shared memory: in fp32 beside 16-bit rows in two halves. A thread reads what it has written itself.
INLINE void stream_vector(NormKernel c, const NormParams *p, const StreamPart &a, const void *vector, float none, uint4 *room) {
  const int in = norm_bytes(c);
  int size = p->weight_kind == KIND_FP32 ? 4 : 2, parts = size / in;
  const char *begin = (const char *)vector, *end = begin + p->n * size;
#pragma unroll 2
  for (int i = threadIdx.x; i < a.count; i += blockDim.x)
    for (int h = 0; h < parts; h++) {
      const char *from = begin + (int64_t)stream_column(c, a, i) * size + h * 16;
      Vec v;
      if (!vector) {
        float f[8] = {none, none, none, none, none, none, none, none};
        narrow(&v, size == 4 ? KIND_FP32 : c.kind, size, f);
      } else if (is_around(from, begin, end)) {
        v.v = take_around(load_around(from, 1), from, 2);
      } else {
        v.v = load_singly(from, begin, end, 2);
      }
      room[i + h * p->span] = v.v;
    }
}

INLINE void stream_widen(NormKernel c, const NormParams *p, const uint4 *room, int i, float *f) {
  Vec v;
  v.v = room[i];
  if (norm_bytes(c) == 4 || p->weight_kind == c.kind) {
    widen(&v, c.kind, norm_bytes(c), f);
  } else {
    Vec u;
    u.v = room[i + p->span];
#pragma unroll
    for (int j = 0; j < 4; j++) f[j] = v.f[j], f[j + 4] = u.f[j];
  }
}

// Elements of a warp, the same for all rows.
INLINE float stream_warp_count(NormKernel c, const StreamPart &a) {
  int count = a.count > a.first ? (int)((uint32_t)(a.count - a.first - 1) / (uint32_t)a.all) + 1 : 0;
  return warp_sum((float)(count * (16 / norm_bytes(c)) + (a.edge >= 0)));
}

// Mean and squares of a warp's elements, of which there are `count`; or the sum of their squares. Layernorm: of what they are above a middle, the mean of the
// warp's first chunk. However far that is from the others, no more is lost than a warp's elements over a chunk's squared times a rounding, as what they are apart counts in the variance.
INLINE Stats stream_sum(NormKernel c, const StreamPart &a, const uint4 *slot, float edge, float count) {
  Stats s = {count, 0, 0};
  if (c.op != NORM_LAYER) {
    float2 sum = make_float2(a.edge >= 0 ? edge * edge : 0, 0);
#pragma unroll 4
    for (int i = a.first; i < a.count; i += a.all) sum = norm_sum(c, stream_chunk(c, a, slot, i), sum);
    s.squares = warp_sum(sum.x + sum.y);
    return s;
  }
  Running r = {edge, {0, 0}, {0, 0}};
  if (a.first < a.count) r.middle = chunk_mean(stream_chunk(c, a, slot, a.first), c.kind, norm_bytes(c));
  r.middle = __shfl_sync(~0u, r.middle, 0);
#pragma unroll 4
  for (int i = a.first; i < a.count; i += a.all) run_chunk(r, stream_chunk(c, a, slot, i), c.kind, norm_bytes(c));
  if (a.edge >= 0) run_one(r, edge);
  float sum = warp_sum(r.sum.x + r.sum.y), apart = count > 0 ? __fdividef(sum, count) : 0;
  s.mean = r.middle + apart;
  s.squares = fmaf(-sum, apart, warp_sum(r.squares.x + r.squares.y));
  return s;
}

// Of a warp's lanes: those of all of them together.
INLINE Stats stream_merge(Stats s) {
  Stats all;
  all.count = warp_sum(s.count);
  all.mean = warp_sum(s.mean * s.count) * (all.count > 0 ? __fdividef(1, all.count) : 0);
  float apart = s.mean - all.mean;
  all.squares = warp_sum(fmaf(s.count * apart, apart, s.squares));
  return all;
}

// Sends what the block has of row number i to all blocks of the cluster: by the first warp, after a barrier.
INLINE void stream_post(NormKernel c, const NormParams *p, StreamShared *shared, int i, int rank) {
#if __CUDA_ARCH__ >= 900
  int lane = threadIdx.x, warps = blockDim.x / 32, at = i % STREAM_POSTS, blocks = 1 << p->cluster_bits;
  Stats s = {0, 0, 0};
  if (lane < warps) s = shared->warps[i & 1][lane];
  if (c.op == NORM_LAYER) s = stream_merge(s);
  else s.squares = warp_sum(s.squares);
  if (blocks == 1) {
    if (lane) return;
    shared->from[at][0] = make_float2(s.mean, s.squares);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&shared->posted[at])) : "memory");
    return;
  }
  uint32_t posted = shared_address(&shared->posted[at]), slot = shared_address(&shared->from[at][rank]), there, signal;
  if (lane == 0) barrier_expect(&shared->posted[at], blocks * (int)sizeof(float2));
  if (lane >= blocks) return;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"(lane));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(posted), "r"(lane));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there), "f"(s.mean), "f"(s.squares), "r"(signal)
               : "memory");
#endif
}

// Mean and variance (or the mean of squares) of row number i.
INLINE float2 stream_take(NormKernel c, const NormParams *p, const StreamPart &a, StreamShared *shared, int i) {
  int at = i % STREAM_POSTS, blocks = 1 << p->cluster_bits, rank = threadIdx.x & (blocks - 1);
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&shared->posted[at])), "r"(i / STREAM_POSTS & 1)
                 : "memory");
#endif
  float2 v = shared->from[at][rank];
  Stats s = {stream_elements(c, p, a.strip, rank), v.x, v.y};
  float mean = 0;
  if (c.op == NORM_LAYER) {
    mean = s.count * v.x;
#pragma unroll
    for (int o = STREAM_BLOCKS / 2; o; o >>= 1)
      if (o < blocks) mean += __shfl_xor_sync(~0u, mean, o);
    mean *= p->over_n;
    s.squares = fmaf(s.count * (v.x - mean), v.x - mean, v.y);
  }
#pragma unroll
  for (int o = STREAM_BLOCKS / 2; o; o >>= 1)
    if (o < blocks) s.squares += __shfl_xor_sync(~0u, s.squares, o);
  return make_float2(mean, s.squares * p->over_n);
}

INLINE void stream_put(NormKernel c, const NormParams *p, const StreamPart &a, const uint4 *slot, const uint4 *w, const uint4 *b, float mean, float scale,
                     float offset, char *y) {
  const int per = 16 / norm_bytes(c);
  float shift = scale * offset;
#pragma unroll 2
  for (int i = a.first; i < a.count; i += a.all) {
    float f[8], by[8], plus[8];
    Vec v = stream_chunk(c, a, slot, i);
    stream_widen(c, p, w, i, by);
    if (c.op == NORM_LAYER) stream_widen(c, p, b, i, plus);
    widen(&v, c.kind, norm_bytes(c), f);
#pragma unroll
    for (int j = 0; j < per; j++) {
      by[j] = fmaf(by[j], scale, shift);
      f[j] = c.op == NORM_LAYER ? fmaf(f[j] - mean, by[j], plus[j]) : f[j] * by[j];
    }
    norm_store(c, p, y, stream_column(c, a, i), f);
  }
}

typedef struct StreamEdge {
  float weight, bias;
} StreamEdge;

INLINE StreamEdge stream_edge(NormKernel c, const NormParams *p, const StreamPart &a) {
  StreamEdge e = {1, 0};
  if (a.edge >= 0 && p->weight) e.weight = load_one(p->weight, a.edge, p->weight_kind) + p->offset;
  if (a.edge >= 0 && c.op == NORM_LAYER && p->bias) e.bias = load_one(p->bias, a.edge, p->weight_kind);
  return e;
}

INLINE void stream_put_edge(NormKernel c, const NormParams *p, const StreamPart &a, StreamEdge e, float x, float mean, float scale, char *y) {
  if (a.edge < 0) return;
  float by = e.weight * scale;
  store_one(y, a.edge, p->y_kind, c.op == NORM_LAYER ? fmaf(x - mean, by, e.bias) : x * by);
}

// Short rows: each warp of a block has its own, one after another. Weights and biases are the block's.
INLINE void norm_strands(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 stream_memory[];
  __shared__ uint64_t full[NORM_STRANDS_THREADS / 32][NORM_STREAM_SLOTS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32, slots = p->slots, room = p->span + 1;
  if (lane == 0)
    for (int i = 0; i < slots; i++) barrier_init(&full[warp][i], 1);
  barrier_init_done();
  uint64_t group = block_index(), row = group / p->alike * p->alike * p->rows * warps + group % p->alike + p->alike * warp;
  begin_kernel();
  int64_t step = (int64_t)p->alike * warps, x_step = step * p->x_stride, y_step = step * p->y_stride;
  int rows = row < p->m ? (int)min((uint64_t)p->rows, (p->m - row + step - 1) / step) : 0;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  StreamPart a = stream_part(c, p, x, y, 0);
  uint4 *mine = stream_memory + warp * slots * room;
  uint4 *w = stream_memory + warps * slots * room, *b = w + p->span * (p->weight_kind == KIND_FP32 && norm_bytes(c) == 2 ? 2 : 1);
  if (lane == 0)
    for (int i = 0; i < slots && i < rows; i++) stream_fetch(c, a, x + i * x_step, mine + i * room, &full[warp][i]);
  stream_vector(c, p, a, p->weight, 1, w);
  if (c.op == NORM_LAYER) stream_vector(c, p, a, p->bias, 0, b);
  StreamEdge e = stream_edge(c, p, a);
  float next = a.edge >= 0 && rows ? load_one(x, a.edge, c.kind) : 0, offset = p->weight ? p->offset : 0;
  float count = stream_warp_count(c, a);
  __syncthreads();
  int slot = 0;
  uint32_t parity = 0;
#pragma unroll 1
  for (int i = 0; i < rows; i++, y += y_step) {
    float edge = next;
    if (a.edge >= 0 && i + 1 < rows) next = load_one(x + (i + 1) * x_step, a.edge, c.kind);
    uint4 *now = mine + slot * room;
    barrier_wait(&full[warp][slot], parity);
    Stats s = stream_sum(c, a, now, edge, count);
    float scale = rsqrtf(fmaf(s.squares, p->over_n, p->eps));
    stream_put(c, p, a, now, w, b, s.mean, scale, offset, y);
    stream_put_edge(c, p, a, e, edge, s.mean, scale, y);
    __syncwarp();
    if (lane == 0 && i + slots < rows) stream_fetch(c, a, x + (i + slots) * x_step, now, &full[warp][slot]);
    if (++slot == slots) slot = 0, parity ^= 1;
  }
}

INLINE void norm_stream(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 stream_memory[];
  __shared__ StreamShared shared;
  int rank = p->cluster_bits ? (int)cluster_rank() : 0, slots = p->slots, room = p->span + 1;
  if (threadIdx.x == 0) {
    for (int i = 0; i < slots; i++) barrier_init(&shared.full[i], 1);
    for (int i = 0; i < STREAM_POSTS; i++) barrier_init(&shared.posted[i], 1);
    barrier_init_done();
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  uint64_t group = block_index() >> p->cluster_bits, row = group / p->alike * p->alike * p->rows + group % p->alike;
  begin_kernel();
  int rows = row < p->m ? (int)min((uint64_t)p->rows, (p->m - row + p->alike - 1) / p->alike) : 0;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  int64_t x_step = p->alike * p->x_stride, y_step = p->alike * p->y_stride;
  StreamPart a = stream_part(c, p, x, y, rank);
  uint4 *w = stream_memory + slots * room, *b = w + p->span * (p->weight_kind == KIND_FP32 && norm_bytes(c) == 2 ? 2 : 1);
  if (threadIdx.x == 0)
    for (int i = 0; i < slots && i < rows; i++) stream_fetch(c, a, x + i * x_step, stream_memory + i * room, &shared.full[i]);
  float edge = 0, next = a.edge >= 0 && rows ? load_one(x, a.edge, c.kind) : 0;
  StreamEdge e = stream_edge(c, p, a);
  stream_vector(c, p, a, p->weight, 1, w);
  if (c.op == NORM_LAYER) stream_vector(c, p, a, p->bias, 0, b);
  float offset = p->weight ? p->offset : 0;
  float count = stream_warp_count(c, a);
  cluster_wait(); // all of them run, and their barriers are ready
  int slot = 0, last = 0; // of the row that is summed up, and of the one that is written
  uint32_t parity = 0;
#pragma unroll 1
  for (int i = 0; i <= rows; i++) { // row i is summed up, row i - 1 written
    float now = next;
    if (i < rows) {
      if (a.edge >= 0 && i + 1 < rows) next = load_one(x + (i + 1) * x_step, a.edge, c.kind);
      barrier_wait(&shared.full[slot], parity);
      Stats s = stream_sum(c, a, stream_memory + slot * room, now, count);
      if (threadIdx.x % 32 == 0) shared.warps[i & 1][threadIdx.x / 32] = s;
      __syncthreads(); // and row i - 2 is written
      if (threadIdx.x == 0 && i >= 2 && i - 2 + slots < rows) {
        int free = last ? last - 1 : slots - 1;
        stream_fetch(c, a, x + (i - 2 + slots) * x_step, stream_memory + free * room, &shared.full[free]);
        if (p->ahead && i - 2 + slots + p->ahead < rows) stream_ahead(c, a, x + (i - 2 + slots + p->ahead) * x_step);
      }
      if (threadIdx.x < 32) stream_post(c, p, &shared, i, rank);
    }
    if (i) {
      float2 r = stream_take(c, p, a, &shared, i - 1);
      float scale = rsqrtf(r.y + p->eps);
      stream_put(c, p, a, stream_memory + last * room, w, b, r.x, scale, offset, y);
      stream_put_edge(c, p, a, e, edge, r.x, scale, y);
      y += y_step;
    }
    edge = now, last = slot;
    if (++slot == slots) slot = 0, parity ^= 1;
  }
}

#undef NORM_STREAM
#define NORM_STREAM(name, op, T, number) NORM_KERNEL(name, NORM_STREAM_THREADS, 2, norm_stream, op, T, 0, 0, 0, 0)
#undef NORM_STRANDS
#define NORM_STRANDS(name, op, T, number) NORM_KERNEL(name, NORM_STRANDS_THREADS, 3, norm_strands, op, T, 0, 32, 0, 0)
#endif
#endif
