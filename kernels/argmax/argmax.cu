// y[i] = column of the largest element of row i: the first of equals, NaN above everything.
//
// First the row's threads reduce to the largest value, which costs no more than a maximum; then the few threads that have
// it search for its column, in the last chunk that raised their maximum. topk with k = 1 is the same, and the value.
#include "argmax/argmax.h"
#include "cluster_exchange.cuh"
#include "packed.cuh"
#include "span.cuh"

enum { DEPTH = 4 }; // chunks in flight at once

// The largest of `count` chunks.
INLINE float highest(const Vec *v, int count, int kind, int in) {
  Vec top = v[0];
  float f[2];
#pragma unroll
  for (int u = 1; u < count; u++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (in == 4) top.f[i] = higher(top.f[i], v[u].f[i]);
      else top.u[i] = higher2(top.u[i], v[u].u[i], kind);
  if (in == 4) {
    f[0] = higher(top.f[0], top.f[1]), f[1] = higher(top.f[2], top.f[3]);
  } else {
    float2 two = widen2(higher2(higher2(top.u[0], top.u[1], kind), higher2(top.u[2], top.u[3], kind), kind), kind);
    f[0] = two.x, f[1] = two.y;
  }
  return higher(f[0], f[1]);
}

// A number for every value, in their order: -0 and +0 have the same, all NaN the highest, nothing has 0.
INLINE uint32_t key_of(float f) {
  uint32_t u = __float_as_uint(f + 0.0f);
  return f != f ? ~0u : u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u);
}

// What comes right below the value of a key, in every element of a word: the value alone is above it or, like NaN,
// compares with nothing. Below -infinity: NaN, which nothing compares with.
INLINE uint32_t below(uint32_t key, int kind) {
  uint32_t u = key ^ (key >> 31 ? 0x80000000u : ~0u), sign = 0x80000000u, top = 0x7f800000u;
  if (kind != KIND_FP32) u = narrow_one(__uint_as_float(u), kind), sign = 0x8000, top = kind == KIND_FP16 ? 0x7c00 : 0x7f80;
  u = u & sign ? u + 1 : u ? u - 1 : sign | 1;
  if (key == ~0u) u = top;
  return kind == KIND_FP32 ? u : u | u << 16;
}

// Which elements of a word are above `low` or NaN: bits 0 and 16; bit 0 of fp32.
INLINE uint32_t above(uint32_t word, uint32_t low, int kind) {
  if (kind == KIND_FP32) return !(__uint_as_float(word) <= __uint_as_float(low));
#if __CUDA_ARCH__ >= 900
  uint32_t is;
  if (kind == KIND_FP16) asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else asm("set.gtu.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  return is;
#else
  float2 f = widen2(word, kind), g = widen2(low, kind);
  return (!(f.x <= g.x) ? 1 : 0) | (!(f.y <= g.y) ? 0x10000 : 0);
#endif
}

INLINE uint32_t lanes_lowest(uint32_t column, int lanes) {
#if __CUDA_ARCH__ >= 800
  if (lanes == 32) return __reduce_min_sync(~0u, column);
#endif
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) column = min(column, __shfl_xor_sync(~0u, column, o));
  return column;
}

INLINE uint32_t lanes_highest(uint32_t key, int lanes) {
#if __CUDA_ARCH__ >= 800
  if (lanes == 32) return __reduce_max_sync(~0u, key);
#endif
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) key = max(key, __shfl_xor_sync(~0u, key, o));
  return key;
}

// Shared memory, for rows of more than a warp: the highest of each warp, the first column of each row of the block; and
// the exchanges of both between the blocks of a cluster.
typedef struct BestFold {
  uint32_t warps[32];
  unsigned long long columns[32];
  ClusterExchange exchange;
} BestFold;

// The highest key of a row's threads, in one block.
INLINE uint32_t row_highest(RowShape s, BestFold *shared, uint32_t key) {
  key = lanes_highest(key, s.threads < 32 ? s.threads : 32);
  if (s.threads <= 32) return key;
  int warps = s.threads / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared->warps[warp] = key;
  __syncthreads();
  return lanes_highest(shared->warps[first + threadIdx.x % warps], warps);
}

// The row's first column, for its first thread: of those that its threads have left in shared memory, and of the blocks of
// a cluster with the highest key. Rows for clusters are so short that 32 bits hold a column.
INLINE unsigned long long row_first(RowShape s, BestFold *shared, int row, uint32_t key) {
  __syncthreads();
  unsigned long long column = shared->columns[row];
  float2 both = make_float2(__uint_as_float(key), __uint_as_float((uint32_t)column));
  if (s.cluster == 1 || !exchange_to_first(&shared->exchange, s.cluster, both)) return column;
  unsigned long long best = 0; // the lower column is the higher number
#pragma unroll
  for (int i = 0; i < s.cluster; i++) {
    both = shared->exchange.from[i];
    best = max(best, (unsigned long long)__float_as_uint(both.x) << 32 | ~__float_as_uint(both.y));
  }
  return ~(uint32_t)best;
}

// The first element above `low` in a thread's chunks, which are `all` apart from chunk `from` on; ~0: there is none.
INLINE uint64_t column_of(const Span *x, int64_t from, const Vec *v, uint32_t low, int all, int kind, int in) {
  const int per = 16 / in;
  uint32_t found = 0; // a bit a word; 16 bits further on those of second elements
#pragma unroll
  for (int u = 0; u < DEPTH; u++)
#pragma unroll
    for (int i = 0; i < 4; i++) found |= above(v[u].u[i], low, kind) << (4 * u + i) & 0x10001u << (4 * u + i);
  if (!found) return UINT64_MAX;
  int bit = __ffs((found | found >> 16) & 0xffff) - 1, second = in == 2 && !(found >> bit & 1);
  return (uint64_t)(x->head + (from + bit / 4 * all) * per + bit % 4 * (4 / in) + second);
}

// `once`: rows are so short that a thread still has its chunks at the end.
INLINE void argmax_row(const ArgmaxParams *p, RowShape s, int once, int kind, BestFold *shared) {
  const int all = s.threads * s.cluster;
  const int row = s.cluster > 1 ? 0 : threadIdx.x / s.threads;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  if (s.threads > 32 && threadIdx.x % s.threads == 0) shared->columns[row] = ~0ull;
  // The largest of a thread's chunks and the first of those that held it; the same of its edges.
  uint32_t key = 0, edge_key = 0;
  int64_t from = place.thread, edge = 0;
  Vec v[DEPTH];
  for (int64_t i = place.thread; once || i < x.chunks; i += DEPTH * all) {
#pragma unroll
    for (int u = 0; u < DEPTH; u++) v[u] = span_load(&x, i + u * all, span_lowest(kind));
    uint32_t k = key_of(highest(v, DEPTH, kind, s.in));
    if (k > key) key = k, from = i;
    if (once) break;
  }
  for (int e = place.thread; e < x.edges; e += all) {
    uint32_t k = key_of(load_one(x.at, span_edge(&x, e), kind));
    if (k > edge_key) edge_key = k, edge = span_edge(&x, e);
  }
  uint32_t top = row_highest(s, shared, key > edge_key ? key : edge_key);
  uint64_t column = UINT64_MAX;
  if (once || key == top) {
#pragma unroll
    for (int u = 0; u < DEPTH; u++)
      if (!once) v[u] = span_load(&x, from + u * all, span_lowest(kind));
    column = column_of(&x, from, v, below(top, kind), all, kind, s.in);
  }
  if (edge_key == top) column = min(column, (uint64_t)edge);
  if (s.threads <= 32) { // rows so short that 32 bits hold a column
    column = lanes_lowest((uint32_t)column, s.threads);
  } else {
    if (column != UINT64_MAX) atomicMin(&shared->columns[row], (unsigned long long)column);
    column = row_first(s, shared, row, top);
  }
  if (place.thread || place.row >= p->m) return;
  int64_t to = (int64_t)place.row * p->y_stride;
  if (p->wide) ((int64_t *)p->y)[to] = (int64_t)column;
  else ((int32_t *)p->y)[to] = (int32_t)column;
  if (!p->values) return;
  to = (int64_t)place.row * p->values_stride;
  if (s.in == 4) ((uint32_t *)p->values)[to] = ((const uint32_t *)x.at)[column];
  else ((uint16_t *)p->values)[to] = ((const uint16_t *)x.at)[column];
}

#define ROWS(in, threads, rows, cluster, upto)                                                               \
  KERNEL __launch_bounds__(threads * rows, ((upto) <= DEPTH * threads ? 1280 : 1024) / (threads * rows))      \
  sol_argmax_##in##_rows_##threads##x##cluster(ArgmaxParams p) {                                             \
    __shared__ BestFold shared;                                                                              \
    const RowShape s = {threads, 1, rows, cluster, in, in, 1};                                               \
    if (cluster > 1) exchange_init(&shared.exchange);                                                                \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    const int once = (upto) <= DEPTH * threads * cluster;                                                    \
    if (in == 4) argmax_row(&p, s, once, KIND_FP32, &shared);                                                \
    else if (p.x_kind == KIND_FP16) argmax_row(&p, s, once, KIND_FP16, &shared);                             \
    else argmax_row(&p, s, once, KIND_BF16, &shared);                                                        \
  }
#define SPAN(threads, rows, cluster, upto) ROWS(2, threads, rows, cluster, upto) ROWS(4, threads, rows, cluster, upto)
#if __CUDA_ARCH__ >= 900
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#else
#define SPAN_90(threads, rows, cluster, upto)
#endif
#include "span.def"
