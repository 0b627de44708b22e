// rmsnorm of table[ids[row]], short rows that start anywhere, in registers: some lanes have a row by words of y (words.cuh), or a thread
// has a row of a few elements (tiny.cuh). Input, output and the rows themselves are of one type.
#ifndef SOL_KERNELS_EMBED_ROWS_CUH
#define SOL_KERNELS_EMBED_ROWS_CUH

#include "embed_rows.h"
#include "norm_narrow.cuh"
#include "tiny.cuh"
#include "words.cuh"

// Where a row of the table is; NULL: the id names none.
INLINE const char *embed_from(const EmbedParams *p, uint64_t row) {
  if (row >= p->m) return NULL;
  int64_t id = load_id(p->ids, row, p->wide_ids);
  if ((uint64_t)id < (uint64_t)p->vocab) return (const char *)p->table + id * p->table_stride;
  if (p->bad) *p->bad = 1;
  return NULL;
}

// While the predecessor runs, which may still write the ids: where the row is likely to be. A stale id costs needless lines in L2, nothing else.
INLINE const char *embed_likely(const EmbedParams *p, uint64_t row) {
  if (row >= p->m) return NULL;
  int64_t id = p->wide_ids ? __ldcg((const long long *)p->ids + row) : __ldcg((const int *)p->ids + row);
  return (uint64_t)id < (uint64_t)p->vocab ? (const char *)p->table + id * p->table_stride : NULL;
}

INLINE void embed_hint_weights(const EmbedParams *p) {
  int bytes = p->weight ? p->n * (p->weight_kind == KIND_FP32 ? 4 : 2) : 0;
  if (blockIdx.x < 4 && (int)threadIdx.x * 128 < bytes) prefetch_l2((const char *)p->weight + threadIdx.x * 128); // some blocks are enough
}

// Where blocks are few: prefetches a warp's rows, a line a lane.
INLINE void embed_hint(const EmbedParams *p, int in) {
  if (!may_hint()) return;
  int lane = threadIdx.x % 32, bytes = p->n * in;
  const char *likely = lane < p->warp_rows ? embed_likely(p, thread_index() / 32 * p->warp_rows + lane) : NULL;
  for (int i = 0; i < p->warp_rows; i++) {
    const char *x = (const char *)__shfl_sync(~0u, (unsigned long long)likely, i);
    if (x && lane * 128 < bytes + 127) prefetch_l2(x + min(lane * 128, bytes - 1));
  }
  embed_hint_weights(p);
}

// Weights as floats, in shared memory: of elements of 2 bytes twice, the second time an odd number of floats further on, so that any two
// neighbours are one access.
INLINE void embed_weights(const EmbedParams *p, float *to, int copies) {
  for (int i = threadIdx.x; i < p->n; i += EMBED_THREADS) {
    float w = p->weight ? load_one(p->weight, i, p->weight_kind) + p->offset : 1;
    to[i] = w;
    if (copies == 2) to[(p->n | 1) + i] = w;
  }
}

INLINE float2 pair_floats(WordKind c, uint32_t u) { return c.in == 4 ? make_float2(__uint_as_float(u), 0) : widen2(u, c.x_kind); }

// The rows themselves where their words are others than y's: loaded once more, from L1.
INLINE void embed_copy(WordKind c, int n, const char *x, char *to, int lane, int lanes, int steps, bool there) {
  const int step = lanes * 2;
  WordRow r = word_row(c, n, x, to, lane, min(32, 4 * lanes));
  int edge = word_edge(c, n, to, lane);
  if (!there) r.last = -1, edge = -1;
#pragma unroll
  for (int k = 0; k < steps; k++) word_store(c, r, k, step, word_load(r, c, k, step));
  edge_store(c, to, edge, edge_load(c, x, edge));
}

INLINE void embed_row(const EmbedParams *p, WordKind c, const float *weights, const char *x, char *y, char *second, int lane, int lanes,
                      int steps, bool there) {
  const int per = 4 / c.out, step = lanes * per;
  WordRow r = word_row(c, p->n, x, y, lane, min(32, 4 * lanes));
  int edge = word_edge(c, p->n, y, lane);
  if (!there) r.last = -1, edge = -1;
  uint32_t u[16], end = edge_load(c, x, edge);
  WordPair v[16];
  word_load_all(c, r, steps, step, v);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < steps; k++) {
    u[k] = word_of_pair(c, v[k]);
    float2 f = pair_floats(c, u[k]);
    sum = fmaf(f.x, f.x, sum);
    if (per == 2) sum = fmaf(f.y, f.y, sum);
  }
  if (per == 2) sum = fmaf(element_float(c, end), element_float(c, end), sum);
#pragma unroll
  for (int o = lanes / 2; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  float scale = rsqrtf(fmaf(sum, p->over_n, p->eps));
  if (p->second && (per == 1 || !(((uintptr_t)second ^ (uintptr_t)y) & 2))) {
    WordRow s = r;
    s.y = second + (r.y - y);
#pragma unroll
    for (int k = 0; k < steps; k++) word_put(c, s, k, step, u[k]);
    edge_store(c, second, edge, end);
  } else if (p->second)
    embed_copy(c, p->n, x, second, lane, lanes, steps, there);
  const float *w = weights + (r.y - y) / c.out + (per == 2 && (uintptr_t)y & 2 ? p->n | 1 : 0);
#pragma unroll
  for (int k = 0; k < steps; k++) {
    if (!word_inside(r, k, step)) continue;
    float2 f = pair_floats(c, u[k]), by = per == 2 ? *(const float2 *)(w + k * step) : make_float2(w[k * step], 0);
    f.x *= by.x * scale, f.y *= by.y * scale;
    word_put(c, r, k, step, per == 2 ? narrow2(f.x, f.y, c.y_kind) : __float_as_uint(f.x));
  }
  if (per == 2 && edge >= 0) store_one(y, edge, c.y_kind, element_float(c, end) * (weights[edge] * scale));
}

// A warp has some rows after another, whose ids its lanes read, one each.
INLINE void embed_rows_of(const EmbedParams *p, WordKind c, const float *weights, const char *from, int lanes, int steps) {
  int lane = threadIdx.x % lanes, slot = threadIdx.x % 32 / lanes;
  uint64_t begin = thread_index() / 32 * p->warp_rows;
  int rows = begin < p->m ? (int)min((uint64_t)p->warp_rows, p->m - begin) : 0;
  char *y = (char *)p->y + (int64_t)(begin + slot) * p->y_stride, *second = (char *)p->second + (int64_t)(begin + slot) * p->second_stride;
#pragma unroll 1
  for (int i = slot; i - slot < rows; i += 32 / lanes) {
    const char *x = (const char *)__shfl_sync(~0u, (unsigned long long)from, i % 32);
    embed_row(p, c, weights, x, y, second, lane, lanes, steps, i < rows);
    y += 32 / lanes * p->y_stride, second += 32 / lanes * p->second_stride;
  }
}

// Prefetches the ends of what is written of a warp's rows.
INLINE void embed_ends(const EmbedParams *p) {
  uint64_t begin = thread_index() / 32 * p->warp_rows;
  if (begin >= p->m || !(p->ends | p->second_ends)) return;
  int lane = threadIdx.x % 32, rows = (int)min((uint64_t)p->warp_rows, p->m - begin);
  if (p->ends) ends_prefetch((const char *)p->y + (int64_t)begin * p->y_stride, p->y_stride, p->ends, rows, lane, 32);
  if (p->second_ends) ends_prefetch((const char *)p->second + (int64_t)begin * p->second_stride, p->second_stride, p->second_ends, rows, lane, 32);
}

// few: up to 8 words of a lane; the others have a kernel of their own, whose threads have more registers.
INLINE void embed_rows(const EmbedParams *p, int kind, bool few) {
  const int size = kind == KIND_FP32 ? 4 : 2;
  const WordKind c = {size, size, 0, kind, kind, 0};
  float *weights = (float *)narrow_memory;
  embed_hint(p, size);
  embed_ends(p);
  begin_kernel();
  int lane = threadIdx.x % 32;
  const char *from = lane < p->warp_rows ? embed_from(p, thread_index() / 32 * p->warp_rows + lane) : NULL;
  embed_weights(p, weights, 4 / size);
  __syncthreads();
  switch (p->words) {
#define EMBED_ROWS(number, lanes, steps)                                                                               \
  case number:                                                                                                         \
    if (few == ((steps) <= 8)) embed_rows_of(p, c, weights, from, lanes, steps);                                       \
    break;
#include "embed_rows.def"
  }
}

// ---- Rows of a few elements, dense in y and in the rows themselves: both are spans that a block puts together in shared memory.

INLINE NarrowTile embed_tile(const EmbedParams *p, void *tensor, int place, uint64_t first, int size) {
  int rows = (int)min((uint64_t)(2 * EMBED_THREADS), p->m - first);
  NarrowTile t = {(char *)tensor + (int64_t)first * p->n * size, place, p->n * size, p->n * size, rows, p->n * size, false};
  t.place += (int)((uint32_t)(uintptr_t)t.at & 15);
  return t;
}

INLINE void embed_tiny_row(const EmbedParams *p, int kind, const float *weights, Vec v[2]) {
  const int size = kind == KIND_FP32 ? 4 : 2, most = TINY_BYTES / size;
  float f[16], sum = 0;
  widen(&v[0], kind, size, f), widen(&v[1], kind, size, f + most / 2);
#pragma unroll
  for (int e = 0; e < most; e++) {
    if (e >= p->n) break;
    sum = fmaf(f[e], f[e], sum);
  }
  float scale = rsqrtf(fmaf(sum, p->over_n, p->eps));
#pragma unroll
  for (int e = 0; e < most; e++) {
    if (e >= p->n) break;
    f[e] *= weights[e] * scale;
  }
  narrow(&v[0], kind, size, f), narrow(&v[1], kind, size, f + most / 2);
}

INLINE void embed_tiny(const EmbedParams *p, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2, most = 2 * EMBED_THREADS;
  float *weights = (float *)narrow_memory;
  uint64_t first = block_index() * most;
  int row = 2 * threadIdx.x;
  // Of a table of a few lines all of the prefetches would ask the same slices of L2.
  for (int k = 0; k < 2 && may_hint() && p->vocab * p->table_stride >= 16 * (int64_t)p->m; k++) {
    const char *x = embed_likely(p, first + row + k);
    if (x) prefetch_l2(x);
  }
  if (may_hint()) embed_hint_weights(p);
  begin_kernel();
  if (first >= p->m) return;
  const char *from[2] = {embed_from(p, first + row), embed_from(p, first + row + 1)};
  embed_weights(p, weights, 1);
  NarrowTile y = embed_tile(p, p->y, 64, first, size), second = embed_tile(p, p->second, 80 + most * p->n * size, first, size);
  TinyTable table = {(const char *)p->table, p->table_end, p->n * size, size};
  Vec v[2][2];
  tiny_load(table, from, v);
  __syncthreads();
  if (row < y.rows) {
    if (p->second) tiny_put(narrow_row(second, row), v[0], v[1], p->n, size, row + 1 < y.rows);
    embed_tiny_row(p, kind, weights, v[0]), embed_tiny_row(p, kind, weights, v[1]);
    tiny_put(narrow_row(y, row), v[0], v[1], p->n, size, row + 1 < y.rows);
  }
  __syncthreads();
  narrow_send(y, size);
  if (p->second) narrow_send(second, size);
}

#endif
