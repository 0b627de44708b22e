// Rows of rmsnorm and layernorm that start anywhere, in the shared memory of a block or a cluster: as layer_big (norm_layer.cuh), and weights and biases are cut out of the two aligned
// 16 bytes around each chunk's. Input and output start alike, in one type; weights and biases, of that type, on 16 bytes. Single elements at the row's ends are one a thread's.
#ifndef SOL_KERNELS_NORM_SHIFT_CUH
#define SOL_KERNELS_NORM_SHIFT_CUH

#include "norm_layer.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// Which chunks a thread has: the threads of all blocks of the cluster take turns, of which the first begins on a line of 128 bytes of the output. p->aside: turns, at least four.
typedef struct ShiftShare {
  uint64_t row;
  int blocks, rank, lap, begin, count, lead, edge; // lead: chunks from the line's start to the row's first; edge: column, -1: none
  Strip strip;
} ShiftShare;

INLINE ShiftShare shift_share(NormKernel c, const NormParams *p) {
  const int per = 16 / norm_bytes(c);
  ShiftShare s;
  uint64_t rank;
  s.blocks = p->rows, s.lap = LAYER_THREADS * s.blocks;
  split(block_index(), (uint64_t)s.blocks, &s.row, &rank);
  uint32_t y = (uint32_t)(uintptr_t)p->y + (uint32_t)((int64_t)s.row * p->y_stride);
  s.strip = strip_of((int)(-y & 15) / norm_bytes(c), (int)p->n, per);
  s.lead = (int)((y + (uint32_t)(s.strip.head * norm_bytes(c))) & 127) / 16;
  s.rank = (int)rank, s.begin = s.rank * LAYER_THREADS + (int)threadIdx.x - s.lead;
  if (s.begin < 0) s.begin += s.lap;
  int last = s.begin + (p->aside - 1) * s.lap;
  s.count = p->aside - (last >= s.strip.chunks) - (last - s.lap >= s.strip.chunks);
  s.edge = s.rank == 0 && (int)threadIdx.x < s.strip.edges ? strip_edge(s.strip, threadIdx.x, per) : -1;
  return s;
}

// Elements of a block of the cluster.
INLINE float shift_elements(NormKernel c, const NormParams *p, const ShiftShare &s, int rank) {
  int rest = s.strip.chunks + s.lead - (p->aside - 2) * s.lap - rank * LAYER_THREADS, chunks = (p->aside - 2) * LAYER_THREADS;
  chunks += max(0, min(LAYER_THREADS, rest)) + max(0, min(LAYER_THREADS, rest - s.lap)) - (rank ? 0 : s.lead);
  return (float)(chunks * (16 / norm_bytes(c)) + (rank ? 0 : s.strip.edges));
}

// What a block adds up to: as layer_part; rmsnorm: squares.
INLINE float2 shift_part(NormKernel c, const NormParams *p, const uint4 *held, const ShiftShare &s, float edge, float (*part)[8]) {
  const int per = 16 / norm_bytes(c);
  float2 sum = make_float2(0, 0), squares = sum;
  Vec a;
  if (c.op != NORM_LAYER) {
#pragma unroll 4
    for (int k = 0; k < s.count; k++) a.v = held[k * LAYER_THREADS], sum = norm_sum(c, a, sum);
    return make_float2(layer_sum(fmaf(edge, edge, sum.x + sum.y), part[0]), 0);
  }
  a.v = *held;
  float2 first = norm_sum(c, a, sum);
  float k0 = (first.x + first.y) * (1.f / per), n = (float)(s.count * per), d = 0, q = 0;
#pragma unroll 4
  for (int k = 0; k < s.count; k++) {
    a.v = held[k * LAYER_THREADS];
    layer_add(c, a, k0, &sum, &squares);
  }
  if (s.edge >= 0) d = edge - k0, q = d * d, n++;
  d += sum.x + sum.y, q += squares.x + squares.y;
  float over = __frcp_rn(n), away = fmaf(d, over, k0);
  float mean = layer_sum(fmaf(k0, n, d), part[0]) * __frcp_rn(shift_elements(c, p, s, s.rank));
  return make_float2(mean, layer_sum(fmaf((away - mean) * n, away - mean, fmaf(-d * over, d, q)), part[1]));
}

INLINE float2 shift_whole(NormKernel c, const NormParams *p, const ShiftShare &s, float2 v, ClusterExchange *exchange) {
  int from_rank = layer_lane(s.blocks);
  bool there = from_rank < s.blocks;
  exchange_all(exchange, s.blocks, v);
  v = exchange->from[there ? from_rank : 0];
  if (c.op != NORM_LAYER) return make_float2(layer_blocks(there ? v.x : 0, s.blocks), 0);
  float n = there ? shift_elements(c, p, s, from_rank) : 0, mean = layer_blocks(there ? n * v.x : 0, s.blocks) * p->over_n;
  return make_float2(mean, layer_blocks(there ? fmaf(n * (v.x - mean), v.x - mean, v.y) : 0, s.blocks));
}

typedef struct ShiftAt { // pointers at the thread's next chunk; vectors: at the aligned 16 bytes where its own begin
  const char *weight, *bias;
  char *y;
  const uint4 *held;
  int step, next, words; // bytes from chunk to chunk; to the second 16 bytes; words of the vectors before a chunk's, 4: the first 16 bytes are a chunk's
  uint32_t half;         // bits before it in its first word
} ShiftAt;

INLINE void shift_on(ShiftAt &a, int chunks) {
  a.weight += chunks * a.step, a.bias += chunks * a.step, a.y += chunks * a.step, a.held += chunks * LAYER_THREADS;
}

// Of `count` chunks, at least one; of what is beyond them some again.
INLINE void shift_ask(NormKernel c, const ShiftAt &a, int count, Around *w, Around *b) {
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    int at = i < count ? i * a.step : 0;
    w[i].lo = layer_load(a.weight + at).v, w[i].hi = layer_load(a.weight + at + a.next).v;
    if (c.op == NORM_LAYER) b[i].lo = layer_load(a.bias + at).v, b[i].hi = layer_load(a.bias + at + a.next).v;
  }
}

INLINE void shift_cut(NormKernel c, const Around *w, const Around *b, int words, uint32_t half, Vec *weight, Vec *bias) {
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    const uint32_t u[9] = {w[i].lo.x, w[i].lo.y, w[i].lo.z, w[i].lo.w, w[i].hi.x, w[i].hi.y, w[i].hi.z, w[i].hi.w, 0};
    const uint32_t t[9] = {b[i].lo.x, b[i].lo.y, b[i].lo.z, b[i].lo.w, b[i].hi.x, b[i].hi.y, b[i].hi.z, b[i].hi.w, 0};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (words == 4) weight[i].u[j] = u[j], bias[i].u[j] = t[j];
      else if (norm_bytes(c) == 4) weight[i].u[j] = u[j + words], bias[i].u[j] = t[j + words];
      else weight[i].u[j] = __funnelshift_r(u[j + words], u[j + words + 1], half), bias[i].u[j] = __funnelshift_r(t[j + words], t[j + words + 1], half);
    }
  }
}

// `words` is the same for the whole row: one branch, and shifts by literals.
INLINE void shift_take(NormKernel c, const ShiftAt &a, const Around *w, const Around *b, Vec *weight, Vec *bias) {
  switch (a.words) {
  case 0: shift_cut(c, w, b, 0, a.half, weight, bias); break;
  case 1: shift_cut(c, w, b, 1, a.half, weight, bias); break;
  case 2: shift_cut(c, w, b, 2, a.half, weight, bias); break;
  case 3: shift_cut(c, w, b, 3, a.half, weight, bias); break;
  default: shift_cut(c, w, b, 4, a.half, weight, bias); break;
  }
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    keep_packed(&weight[i]);
    if (c.op == NORM_LAYER) keep_packed(&bias[i]);
  }
}

INLINE void shift_give(NormKernel c, const NormParams *p, const ShiftAt &a, int count, const Around *w, const Around *b, float mean, float scale) {
  Vec weight[2], bias[2];
  shift_take(c, a, w, b, weight, bias);
#pragma unroll
  for (int i = 0; i < c.chunks; i++) {
    Vec v;
    if (i >= count) continue;
    v.v = a.held[i * LAYER_THREADS];
    *(uint4 *)(a.y + i * a.step) = norm_output(c, p, v, weight[i], bias[i], mean, scale).v;
  }
}

INLINE void norm_shift(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // a thread reads what it has written itself
  __shared__ __align__(16) float part[2][8];
  __shared__ ClusterExchange exchange;
  const int in = norm_bytes(c), per = 16 / in;
  ShiftShare s = shift_share(c, p);
  if (s.blocks > 1) exchange_init(&exchange);
  begin_kernel();
  if (threadIdx.x == 0) { // a part of a row further on, as long as this block's
    int64_t at = (int64_t)s.rank * p->span * 16;
    norm_prefetch(c, p, s.row, at, (int)min((int64_t)p->span * 16, p->n * in - at), true);
  }
  int64_t column = s.strip.head + (int64_t)s.begin * per, from = column * in, aligned = from & ~(int64_t)15;
  const char *row = (const char *)p->x + (int64_t)s.row * p->x_stride;
  char *y = (char *)p->y + (int64_t)s.row * p->y_stride;
  int before = s.strip.head * in & 15;
  ShiftAt a = {(const char *)p->weight + aligned, (const char *)p->bias + aligned, y + from, far + threadIdx.x, s.lap * 16, before ? 16 : 0, before ? before / 4 : 4,
               before & 2 ? 16u : 0};
#pragma unroll 4
  for (int k = 0; k < s.count; k++) fetch16(far + threadIdx.x + k * LAYER_THREADS, row + from + (int64_t)k * a.step);
  float edge = s.edge >= 0 ? load_one(row, s.edge, c.kind) : 0;
  Around w[2], b[2];
  shift_ask(c, a, s.count, w, b);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float2 stats = shift_part(c, p, a.held, s, edge, part);
  if (s.blocks > 1) stats = shift_whole(c, p, s, stats, &exchange);
  if (c.op != NORM_LAYER) stats.y = stats.x, stats.x = 0;
  float scale = rsqrtf(fmaf(stats.y, p->over_n, p->eps));
  shift_give(c, p, a, s.count, w, b, stats.x, scale);
#pragma unroll 1
  for (int left = s.count - c.chunks; left > 0; left -= c.chunks) {
    Around weight[2], bias[2];
    shift_on(a, c.chunks);
    shift_ask(c, a, left, weight, bias);
    shift_give(c, p, a, left, weight, bias, stats.x, scale);
  }
  if (s.edge >= 0) {
    float by = (load_one(p->weight, s.edge, c.kind) + p->offset) * scale, plus = c.op == NORM_LAYER ? load_one(p->bias, s.edge, c.kind) : 0;
    store_one(y, s.edge, c.kind, fmaf(edge - stats.x, by, plus));
  }
}
#endif

#endif
