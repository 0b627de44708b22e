// y[i] = column of the largest element of row i: the first of equals, NaN above everything.
//
// First the row's threads agree on the largest value, as cheaply as a maximum is had; then the few that have met it
// look where it stands, in the last chunks that raised what they had.
#include "argmax/argmax.h"
#include "row.cuh"
#include "span.cuh"

enum { DEPTH = 4 }; // chunks on their way at once

// Two elements in a word at once; NaN above all.
INLINE uint32_t higher2(uint32_t a, uint32_t b, int kind) {
  uint32_t c;
#if __CUDA_ARCH__ >= 800
  if (kind == KIND_FP16) asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  else asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
#else
  float2 f = widen2(a, kind), g = widen2(b, kind);
  c = narrow2(higher(f.x, g.x), higher(f.y, g.y), kind);
#endif
  return c;
}

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

INLINE uint32_t lanes_highest(uint32_t key, int lanes) {
#if __CUDA_ARCH__ >= 800
  if (lanes == 32) return __reduce_max_sync(~0u, key);
#endif
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) key = max(key, __shfl_xor_sync(~0u, key, o));
  return key;
}

// Shared memory: the highest of each warp and of each block of the cluster; the first column of each row of the block,
// and of each block of the cluster.
typedef struct BestFold {
  uint32_t warps[32], blocks[16];
  unsigned long long columns[32], of_blocks[16];
} BestFold;

INLINE uint32_t row_highest(RowShape s, BestFold *shared, uint32_t key) {
  key = lanes_highest(key, s.threads < 32 ? s.threads : 32);
  if (s.threads <= 32) return key;
  int warps = s.threads / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared->warps[warp] = key;
  __syncthreads();
  key = lanes_highest(shared->warps[first + threadIdx.x % warps], warps);
#if __CUDA_ARCH__ >= 900
  if (s.cluster > 1) {
    if (threadIdx.x < s.cluster) { // into the slot of this block in every block's shared memory
      uint32_t mine = (uint32_t)__cvta_generic_to_shared(&shared->blocks[cluster_rank()]), there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"((int)threadIdx.x));
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(key) : "memory");
    }
    cluster_arrive();
    cluster_wait();
#pragma unroll
    for (int i = 0; i < s.cluster; i++) key = max(key, shared->blocks[i]);
  }
#endif
  return key;
}

// The row's first column, of those that its threads have left in shared memory; right in the row's first thread.
INLINE unsigned long long row_first(RowShape s, BestFold *shared, int row) {
  if (s.threads <= 32) __syncwarp();
  else __syncthreads();
#if __CUDA_ARCH__ >= 900
  if (s.cluster > 1) {
    if (threadIdx.x == 0) { // to the first block
      uint32_t mine = (uint32_t)__cvta_generic_to_shared(&shared->of_blocks[cluster_rank()]), there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"(0));
      asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(shared->columns[0]) : "memory");
    }
    cluster_arrive();
    cluster_wait();
    if (cluster_rank()) return 0;
    unsigned long long column = shared->of_blocks[0];
#pragma unroll
    for (int i = 1; i < s.cluster; i++) column = min(column, shared->of_blocks[i]);
    return column;
  }
#endif
  return shared->columns[row];
}

// What a thread has met: its largest value, and ~column of an edge or the first of the chunks that held it.
typedef struct Best {
  float value;
  int64_t where;
} Best;

INLINE void meet(Best *best, float value, int64_t where) {
  if (value <= best->value || best->value != best->value) return;
  best->value = value;
  best->where = where;
}

// The first element that is the largest, of the chunks that `best` names.
INLINE int64_t column_of(const Span *x, Best best, const Vec *v, int all, int kind, int in) {
  const int per = 16 / in;
  int64_t column = 0;
  if (best.where < 0) return ~best.where;
#pragma unroll
  for (int u = DEPTH - 1; u >= 0; u--) {
    float f[8];
    widen(&v[u], kind, in, f);
#pragma unroll
    for (int j = per - 1; j >= 0; j--) // the first: the last to be assigned
      if ((f[j] == best.value || f[j] != f[j]) && best.where + u * all < x->chunks)
        column = x->head + (best.where + u * all) * per + j;
  }
  return column;
}

// `once`: rows are so short that a thread still has its chunks at the end.
INLINE void argmax_row(const ArgmaxParams *p, RowShape s, int once, BestFold *shared) {
  const int all = s.threads * s.cluster, kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  const int row = s.cluster > 1 ? 0 : threadIdx.x / s.threads;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  if (threadIdx.x % s.threads == 0) shared->columns[row] = ~0ull;
  // In the order of columns, for the first of equals stays. What a thread starts with is right where all it has is -inf.
  Best best = {-INFINITY, place.thread < x.head ? ~(int64_t)place.thread : place.thread};
  bool any = place.thread < x.edges || place.thread < x.chunks;
  if (place.thread >= x.head && place.thread >= x.chunks && any) best.where = ~span_edge(&x, place.thread);
  for (int e = place.thread; e < x.head; e += all) meet(&best, load_one(x.at, e, kind), ~(int64_t)e);
  Vec v[DEPTH];
  for (int64_t i = place.thread; i < x.chunks; i += DEPTH * all) {
#pragma unroll
    for (int u = 0; u < DEPTH; u++) v[u] = span_load(&x, i + u * all, span_lowest(kind));
    meet(&best, highest(v, DEPTH, kind, s.in), i);
    if (once) break;
  }
  for (int e = place.thread; e < x.edges; e += all)
    if (e >= x.head) meet(&best, load_one(x.at, span_edge(&x, e), kind), ~span_edge(&x, e));
  if (s.cluster > 1) cluster_wait(); // all of them run: their shared memory may be written
  uint32_t key = any ? key_of(best.value) : 0, top = row_highest(s, shared, key);
  if (s.threads <= 32) __syncwarp(); // columns[] is set
  if (any && key == top) {
#pragma unroll
    for (int u = 0; u < DEPTH; u++)
      if (!once && best.where >= 0) v[u] = span_load(&x, best.where + u * all, span_lowest(kind));
    atomicMin(&shared->columns[row], (unsigned long long)column_of(&x, best, v, all, kind, s.in));
  }
  int64_t column = (int64_t)row_first(s, shared, row);
  if (place.thread || place.row >= p->m) return;
  if (p->wide) ((int64_t *)p->y)[place.row] = column;
  else ((int32_t *)p->y)[place.row] = (int32_t)column;
}

#define ROWS(in, threads, rows, cluster, upto)                                                               \
  KERNEL __launch_bounds__(threads * rows, 1280 / (threads * rows)) /* 48 registers */                       \
  sol_argmax_##in##_rows_##threads##x##cluster(ArgmaxParams p) {                                             \
    __shared__ BestFold shared;                                                                              \
    const RowShape s = {threads, 1, rows, cluster, in, in, 1};                                               \
    if (cluster > 1) cluster_arrive();                                                                       \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    argmax_row(&p, s, (upto) <= DEPTH * threads * cluster, &shared);                                          \
  }
#define SPAN(threads, rows, cluster, upto) ROWS(2, threads, rows, cluster, upto) ROWS(4, threads, rows, cluster, upto)
#if __CUDA_ARCH__ >= 900
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#else
#define SPAN_90(threads, rows, cluster, upto)
#endif
#include "span.def"
