// y[i] = column of the largest element of row i: the first of equals, NaN above everything.
#include "argmax/argmax.h"
#include "row.cuh"
#include "span.cuh"

typedef struct Best {
  float value;
  int64_t column;
} Best;

// Whether b stands before a. -0 and +0 are equal, NaN is equal to NaN.
INLINE Best better(Best a, Best b) {
  bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  bool equal = a.value == b.value || (nan_a && nan_b);
  bool take = equal ? b.column < a.column : nan_b || (!nan_a && b.value > a.value);
  return take ? b : a;
}

INLINE Best shuffle(Best a, int distance) {
  Best b = {__shfl_xor_sync(~0u, a.value, distance), __shfl_xor_sync(~0u, a.column, distance)};
  return b;
}

INLINE Best lanes_best(Best a, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) a = better(a, shuffle(a, o));
  return a;
}

// Shared memory: the best of each warp, and of each block of the cluster.
typedef struct BestFold {
  Best warps[32];
  Best blocks[16];
} BestFold;

INLINE Best row_best(RowShape s, BestFold *shared, Best a) {
  if (s.threads <= 32) return lanes_best(a, s.threads);
  a = lanes_best(a, 32);
  int warps = s.threads / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared->warps[warp] = a;
  __syncthreads();
  a = lanes_best(shared->warps[first + threadIdx.x % warps], warps);
#if __CUDA_ARCH__ >= 900
  if (s.cluster > 1) {
    if (threadIdx.x < s.cluster) { // into the slot of this block in every block's shared memory
      uint32_t mine = (uint32_t)__cvta_generic_to_shared(&shared->blocks[cluster_rank()]), there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"((int)threadIdx.x));
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(a.value) : "memory");
      asm volatile("st.shared::cluster.s64 [%0 + 8], %1;" ::"r"(there), "l"(a.column) : "memory");
    }
    cluster_arrive();
    cluster_wait();
    a = shared->blocks[0];
#pragma unroll
    for (int i = 1; i < s.cluster; i++) a = better(a, shared->blocks[i]);
  }
#endif
  return a;
}

// A chunk is looked into only where its largest beats what the thread has: that is seldom.
INLINE void look(Best *best, const Vec *v, int64_t column, int kind, int in) {
  const int per = 16 / in;
  float f[8], top;
  widen(v, kind, in, f);
  top = f[0];
#pragma unroll
  for (int j = 1; j < per; j++) top = higher(top, f[j]);
  if (top <= best->value || best->value != best->value) return;
  best->value = top;
#pragma unroll
  for (int j = per - 1; j >= 0; j--)
    if (f[j] == top || f[j] != f[j]) best->column = column + j; // the first: the last to be assigned
}

INLINE void argmax_row(const ArgmaxParams *p, RowShape s, BestFold *shared) {
  enum { DEPTH = 4 };
  const int per = 16 / s.in, all = s.threads * s.cluster, kind = s.in == 4 ? KIND_FP32 : p->x_kind;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  // Before it has looked at anything a thread has -inf at its first column: right where all it has is -inf.
  Best best = {-INFINITY, place.thread < x.chunks ? x.head + (int64_t)place.thread * per : INT64_MAX};
  for (int64_t i = place.thread; i < x.chunks; i += DEPTH * all) {
    Vec v[DEPTH];
#pragma unroll
    for (int u = 0; u < DEPTH; u++) v[u] = span_load(&x, i + u * all, span_lowest(kind));
#pragma unroll
    for (int u = 0; u < DEPTH; u++) look(&best, &v[u], x.head + (i + u * all) * per, kind, s.in);
  }
  for (int e = place.thread; e < x.edges; e += all) {
    Best edge = {load_one(x.at, span_edge(&x, e), kind), span_edge(&x, e)};
    best = better(best, edge);
  }
  if (s.cluster > 1) cluster_wait(); // all of them run: their shared memory may be written
  best = row_best(s, shared, best);
  if (place.thread || place.row >= p->m) return;
  if (p->wide) ((int64_t *)p->y)[place.row] = best.column;
  else ((int32_t *)p->y)[place.row] = (int32_t)best.column;
}

#define ROWS(in, threads, rows, cluster)                                                                     \
  KERNEL __launch_bounds__(threads * rows) sol_argmax_##in##_rows_##threads##x##cluster(ArgmaxParams p) {    \
    __shared__ BestFold shared;                                                                              \
    const RowShape s = {threads, 1, rows, cluster, in, in, 1};                                               \
    if (cluster > 1) cluster_arrive();                                                                       \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    argmax_row(&p, s, &shared);                                                                              \
  }
#define SPAN(threads, rows, cluster, upto) ROWS(2, threads, rows, cluster) ROWS(4, threads, rows, cluster)
#if __CUDA_ARCH__ >= 900
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#else
#define SPAN_90(threads, rows, cluster, upto)
#endif
#include "span.def"
