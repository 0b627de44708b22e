// y[i] = column of the largest element of row i: the first of equals, NaN above everything.
//
// First the row's threads reduce to the largest value, which costs no more than a maximum; then the few threads that have
// it search for its column, in the last chunk that raised their maximum. topk with k = 1 is the same, and the value.
// Short rows have as few lanes as hold them in registers, several rows a warp.
#include "argmax/argmax.h"
#include "cluster_exchange.cuh"
#include "narrow.cuh"
#include "packed.cuh"
#include "rounds.cuh"
#include "span.cuh"

enum { GROUP = 4 }; // chunks that are compared together

// The largest of a group of chunks.
INLINE float highest(const Vec *v, int kind, int in) {
  Vec top = v[0];
  float f[2];
#pragma unroll
  for (int u = 1; u < GROUP; u++)
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
  return lanes_highest(shared->warps[first + threadIdx.x % 32 % warps], 32); // some warps' several times, where they are fewer
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

// The first element above `low` in a group of a thread's chunks, which are `all` apart from chunk `from` on; ~0: there is none.
INLINE uint64_t column_of(const Span *x, int64_t from, const Vec *v, uint32_t low, int all, int kind, int in) {
  const int per = 16 / in;
  uint32_t found = 0; // a bit a word; 16 bits further on those of second elements
#pragma unroll
  for (int u = 0; u < GROUP; u++)
#pragma unroll
    for (int i = 0; i < 4; i++) found |= above(v[u].u[i], low, kind) << (4 * u + i) & 0x10001u << (4 * u + i);
  if (!found) return UINT64_MAX;
  int bit = __ffs((found | found >> 16) & 0xffff) - 1, second = in == 2 && !(found >> bit & 1);
  return (uint64_t)(x->head + (from + bit / 4 * all) * per + bit % 4 * (4 / in) + second);
}

// The largest of a thread's chunks, as a key.
typedef struct Best {
  uint32_t key;
  uint32_t turn; // the number of the group that has it
} Best;

// A row so short that its threads hold all of it: `depth` chunks each, all in flight at once.
typedef struct Chunks {
  Vec v[8];
} Chunks;

INLINE Best best_held(const Span *x, int thread, int all, int depth, int kind, int in, Chunks *c) {
  Best best = {0, 0};
  const int chunks = (int)x->chunks;
#pragma unroll
  for (int u = 0; u < depth; u++) {
    c->v[u].v = make_uint4(span_lowest(kind), span_lowest(kind), span_lowest(kind), span_lowest(kind));
    if (thread + u * all < chunks) c->v[u].v = ((const uint4 *)x->body)[thread + u * all];
  }
#pragma unroll
  for (int u = 0; u < depth; u += GROUP)
    if (u == 0 || u * all < chunks) best.key = max(best.key, key_of(highest(c->v + u, kind, in)));
  return best;
}

INLINE uint64_t column_held(const Span *x, int thread, int all, int depth, int kind, int in, const Chunks *c, uint32_t low) {
  uint64_t column = UINT64_MAX;
#pragma unroll
  for (int u = 0; u < depth; u += GROUP)
    if (u == 0 || u * all < (int)x->chunks)
      column = min(column, column_of(x, thread + u * all, c->v + u, low, all, kind, in));
  return column;
}

INLINE void load_group(const Span *x, int64_t from, int all, int kind, Vec *v) {
#pragma unroll
  for (int u = 0; u < GROUP; u++) v[u] = span_load(x, from + u * all, span_lowest(kind));
}

// A longer one, in a loop, the next group in flight while one is compared; that with the largest is read again for its column.
INLINE Best best_of(const Span *x, int thread, int all, int kind, int in) {
  Best best = {0, 0};
  Vec v[GROUP], next[GROUP];
  load_group(x, thread, all, kind, v);
  uint32_t turn = 0;
  for (int64_t i = thread; i < x->chunks; i += GROUP * all, turn++) {
    load_group(x, i + GROUP * all, all, kind, next);
    uint32_t key = key_of(highest(v, kind, in));
    if (key > best.key) best.key = key, best.turn = turn;
#pragma unroll
    for (int u = 0; u < GROUP; u++) v[u] = next[u];
  }
  return best;
}

INLINE uint64_t column_again(const Span *x, int thread, Best best, int all, int kind, int in, uint32_t low) {
  Vec v[GROUP];
  int64_t from = thread + (int64_t)best.turn * (GROUP * all);
  load_group(x, from, all, kind, v);
  return column_of(x, from, v, low, all, kind, in);
}

INLINE void put(const ArgmaxParams *p, uint64_t row, int64_t column, const char *x, int in) {
  int64_t to = (int64_t)row * p->y_stride;
  if (p->wide) ((int64_t *)p->y)[to] = column;
  else ((int32_t *)p->y)[to] = (int32_t)column;
  if (!p->values) return;
  to = (int64_t)row * p->values_stride;
  if (in == 4) ((uint32_t *)p->values)[to] = ((const uint32_t *)x)[column];
  else ((uint16_t *)p->values)[to] = ((const uint16_t *)x)[column];
}

// The column of the largest element that is not NaN, by one thread or a whole warp; -1: there is none. Rows with a NaN where it does not
// count are not worth a fast way.
static __device__ __noinline__ int64_t largest_number(const char *x, int64_t n, int kind, int lane, int lanes) {
  uint32_t best = 0;
  int64_t column = -1;
  for (int64_t c = lane; c < n; c += lanes) {
    float f = load_one(x, c, kind);
    if (f == f && key_of(f) > best) best = key_of(f), column = c;
  }
  for (int o = lanes / 2; o; o >>= 1) {
    uint32_t other = __shfl_xor_sync(~0u, best, o);
    int64_t there = __shfl_xor_sync(~0u, column, o);
    if (other > best || (other == best && there < column)) best = other, column = there;
  }
  return column;
}

// depth: chunks that a thread holds; 0: rows of any length.
INLINE void argmax_row(const ArgmaxParams *p, RowShape s, int depth, int kind, BestFold *shared) {
  const int all = s.threads * s.cluster;
  const int row = s.cluster > 1 ? 0 : threadIdx.x / s.threads;
  RowPlace place = row_place(s);
  Span x = span_of((const char *)p->x + (int64_t)place.row * p->x_stride, place.row < p->m ? p->n : 0, s.in);
  if (s.threads > 32 && threadIdx.x % s.threads == 0) shared->columns[row] = ~0ull;
  Chunks held;
  Best best = depth ? best_held(&x, place.thread, all, depth, kind, s.in, &held) : best_of(&x, place.thread, all, kind, s.in);
  uint32_t edge_key = 0;
  int64_t edge = 0;
  for (int e = place.thread; e < x.edges; e += all) {
    uint32_t k = key_of(load_one(x.at, span_edge(&x, e), kind));
    if (k > edge_key) edge_key = k, edge = span_edge(&x, e);
  }
  uint32_t top = row_highest(s, shared, max(best.key, edge_key));
  uint64_t column = UINT64_MAX;
  if (depth) column = column_held(&x, place.thread, all, depth, kind, s.in, &held, below(top, kind));
  else if (best.key == top) column = column_again(&x, place.thread, best, all, kind, s.in, below(top, kind));
  if (edge_key == top) column = min(column, (uint64_t)edge);
  if (s.threads <= 32) { // rows so short that 32 bits hold a column
    column = lanes_lowest((uint32_t)column, s.threads);
  } else {
    if (column != UINT64_MAX) atomicMin(&shared->columns[row], (unsigned long long)column);
    column = row_first(s, shared, row, top);
  }
  if (p->skip_nan && place.row < p->m && place.thread < (s.threads < 32 ? 1 : 32)) {
    bool is_nan = top == ~0u;
    if (s.cluster > 1) { // the highest of this block alone
      float f = place.thread ? 0 : load_one(x.at, (int64_t)column, kind);
      is_nan = __any_sync(~0u, f != f);
    }
    if (is_nan) column = (uint64_t)largest_number(x.at, p->n, kind, place.thread, s.threads < 32 ? 1 : 32);
  }
  if (place.thread == 0 && place.row < p->m) put(p, place.row, (int64_t)column, x.at, s.in);
}

// ---- Short rows (rounds.cuh): what is beside the row is -infinity

INLINE uint32_t chunk_highest(const Vec &v, int kind) {
  if (kind != KIND_FP32) return higher2(higher2(v.u[0], v.u[1], kind), higher2(v.u[2], v.u[3], kind), kind);
  return __float_as_uint(higher(higher(v.f[0], v.f[1]), higher(v.f[2], v.f[3])));
}

// The first element of a chunk above `low`; there is one.
INLINE int first_above(const Vec &v, uint32_t low, int kind) {
  uint32_t found = 0; // a bit a word; 16 bits further on those of second elements
#pragma unroll
  for (int j = 0; j < 4; j++) found |= above(v.u[j], low, kind) << j & 0x10001u << j;
  int word = __ffs((found | found >> 16) & 15) - 1;
  return kind == KIND_FP32 ? word : 2 * word + !(found >> word & 1);
}

template <int kind, int rounds> INLINE void argmax_short(const ArgmaxParams &p) {
  Rounds<kind == KIND_FP32 ? 4 : 2, rounds> s;
  uint64_t row = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (128 >> p.lane_bits) + (threadIdx.x >> p.lane_bits);
  uint32_t lowest = span_lowest(kind), best = lowest, highest[rounds];
  s.lanes = 1 << p.lane_bits, s.lane = threadIdx.x & (s.lanes - 1), s.used = p.rounds;
  load_rounds(s, p.x, p.x_stride, p.m, (int)p.n, row, lowest);
#pragma unroll
  for (int r = 0; r < rounds; r++) {
    highest[r] = r < s.used ? chunk_highest(s.v[r], kind) : lowest;
    best = kind == KIND_FP32 ? __float_as_uint(higher(__uint_as_float(best), __uint_as_float(highest[r])))
                             : higher2(best, highest[r], kind);
  }
  float2 two = kind == KIND_FP32 ? make_float2(__uint_as_float(best), -INFINITY) : widen2(best, kind);
  uint32_t key = key_of(higher(two.x, two.y)), column = ~0u;
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) key = max(key, __shfl_xor_sync(~0u, key, o));
  uint32_t low = below(key, kind);
  int round = -1;
  Vec v = s.v[0];
#pragma unroll
  for (int r = rounds - 1; r >= 0; r--)
    if (r < s.used && above(highest[r], low, kind)) round = r, v = s.v[r];
  if (round >= 0) column = column_of(s, round) + first_above(v, low, kind);
#pragma unroll 1
  for (int o = s.lanes / 2; o; o >>= 1) column = min(column, __shfl_xor_sync(~0u, column, o));
  if (key == key_of(-INFINITY)) column = 0; // and so is what is beside the row
  const char *x = (const char *)p.x + (int64_t)row * p.x_stride;
  if (s.lane == 0 && row < p.m && p.skip_nan && key == ~0u) column = (uint32_t)largest_number(x, p.n, kind, 0, 1);
  if (s.lane == 0 && row < p.m) put(&p, row, (int32_t)column, x, s.size);
}

// ---- Rows of a few elements, dense or a few bytes apart: a block has a span of many in shared memory (narrow.cuh), one thread a row

INLINE uint32_t first_nan(const char *x, int kind) {
  uint32_t column = 0;
  for (float f = load_one(x, 0, kind); f == f; f = load_one(x, column, kind)) column++;
  return column;
}

// Which elements of a word are not below `top`: bits 0 and 16.
INLINE uint32_t not_below(uint32_t word, uint32_t top, int kind) {
#if __CUDA_ARCH__ >= 900
  uint32_t is;
  if (kind == KIND_FP16) asm("set.ge.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(top));
  else asm("set.ge.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(top));
  return is;
#else
  float2 f = widen2(word, kind), g = widen2(top, kind);
  return (f.x >= g.x ? 1 : 0) | (f.y >= g.y ? 0x10000 : 0);
#endif
}

INLINE uint32_t serial_column(const float *x, int n, bool *nan) {
  float best = x[0], top = best; // top: NaN if there is one
  int column = 0;
#pragma unroll 4
  for (int c = 1; c < n; c++) {
    float f = x[c];
    top = higher(top, f);
    if (f > best) best = f, column = c;
  }
  *nan = top != top;
  return *nan ? first_nan((const char *)x, KIND_FP32) : (uint32_t)column;
}

// Elements of 16 bits two at a time, by words. The first and the last may be shared with other rows, whose elements become -infinity.
INLINE uint32_t serial_column(const char *x, int n, int kind, bool *nan) {
  int before = (int)((uint32_t)(uintptr_t)x / 2 & 1), last = (before + n - 1) / 2;
  const uint32_t *at = (const uint32_t *)(x - 2 * before), lowest = span_lowest(kind);
  uint32_t first_word = __byte_perm(at[0], lowest, before ? 0x3254 : 0x3210), last_word = last ? at[last] : first_word;
  last_word = __byte_perm(last_word, lowest, (before + n) % 2 ? 0x5410 : 0x3210);
  if (!last) first_word = last_word;
  uint32_t best = higher2(first_word, last_word, kind);
#pragma unroll 4
  for (int k = 1; k < last; k++) best = higher2(best, at[k], kind);
  best = higher2(best, __byte_perm(best, best, 0x1032), kind); // of both halves
  float top = widen2(best, kind).x;
  *nan = top != top;
  if (*nan) return first_nan(x, kind);
  uint32_t found = not_below(last_word, best, kind);
  int word = last;
#pragma unroll 4
  for (int k = last - 1; k > 0; k--) {
    uint32_t here = not_below(at[k], best, kind);
    if (here) found = here, word = k;
  }
  uint32_t here = not_below(first_word, best, kind);
  if (here) found = here, word = 0;
  return (uint32_t)max(2 * word - before + !(found & 1), 0); // in a row of -infinity, what is before it is as large
}

template <int kind> INLINE void argmax_serial(const ArgmaxParams &p) {
  const int in = kind == KIND_FP32 ? 4 : 2;
  int rows = narrow_rows(&p.narrow, p.m);
  NarrowTile x = narrow_tile(&p.narrow, NARROW_X, p.x, p.x_stride, in, rows);
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p.narrow.rows;
  NarrowTile span = x; // what is between rows, too, but nothing after the last one
  if (rows) span.rows = 1, span.bytes = (rows - 1) * x.bytes + (int)p.n * in;
  narrow_fetch(span, in);
  if (in == 2 && threadIdx.x == 0 && rows) { // the other halves of the words at the ends are read, too
    char *begin = narrow_row(x, 0), *end = begin + span.bytes;
    if ((uintptr_t)begin & 2) ((uint16_t *)begin)[-1] = 0;
    if ((uintptr_t)end & 2) *(uint16_t *)end = 0;
  }
  narrow_arrived();
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const char *at = narrow_row(x, row);
    bool nan;
    int64_t column = kind == KIND_FP32 ? serial_column((const float *)at, (int)p.n, &nan) : serial_column(at, (int)p.n, kind, &nan);
    if (p.skip_nan && nan) column = largest_number(at, p.n, kind, 0, 1);
    put(&p, first + row, column, at, in);
  }
}

#define SERIAL(in, kind)                                                                                    \
  KERNEL __launch_bounds__(NARROW_THREADS, 12) sol_argmax_serial_##kind(const __grid_constant__ ArgmaxParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    argmax_serial<KIND_##kind>(p);                                                                           \
  }
#define SHORT(in, kind, rounds, blocks)                                                                     \
  KERNEL __launch_bounds__(128, blocks) sol_argmax_short_##kind##_##rounds(const __grid_constant__ ArgmaxParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    argmax_short<KIND_##kind, rounds>(p);                                                                    \
  }
#define OF_SIZE(in, threads, depth, rows, cluster)                                                           \
  KERNEL __launch_bounds__(threads * rows, 1024 / (threads * rows))                                          \
  sol_argmax_##in##_rows_##threads##x##depth##x##cluster(const __grid_constant__ ArgmaxParams p) {                     \
    __shared__ BestFold shared;                                                                              \
    const RowShape s = {threads, 1, rows, cluster, in, in, 1};                                               \
    if (cluster > 1) exchange_init(&shared.exchange);                                                        \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    if (in == 4) argmax_row(&p, s, depth, KIND_FP32, &shared);                                               \
    else if (p.x_kind == KIND_FP16) argmax_row(&p, s, depth, KIND_FP16, &shared);                            \
    else argmax_row(&p, s, depth, KIND_BF16, &shared);                                                       \
  }
#define ROWS(threads, depth, rows, cluster, upto)                                                            \
  OF_SIZE(2, threads, depth, rows, cluster) OF_SIZE(4, threads, depth, rows, cluster)
#if __CUDA_ARCH__ >= 900
#define ROWS_90(threads, depth, rows, cluster, upto) ROWS(threads, depth, rows, cluster, upto)
#else
#define ROWS_90(threads, depth, rows, cluster, upto)
#endif
#include "argmax/argmax.def"
