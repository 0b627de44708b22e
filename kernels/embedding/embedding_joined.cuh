// Dense rows of y, which starts at 16 bytes, from rows of 2 or 4 bytes an element that start anywhere: so many rows as are whole chunks of 16 bytes
// are joined. A block copies its rows into shared memory, by the table's chunks, and writes y by its own. A thread has the same chunk of
// some joined rows, so that its row and its column among them are the same for all.
#ifndef SOL_KERNELS_EMBEDDING_JOINED_CUH
#define SOL_KERNELS_EMBEDDING_JOINED_CUH

#include "embedding_rows.cuh"

// In shared memory: where each row comes from, where its first element is there; then the rows.
typedef struct JoinedRows {
  const char **from;
  int *place; // bytes
  char *memory;
  int rows, vectors; // vectors: of 16 bytes of a row that make a chunk of y
} JoinedRows;

INLINE void joined_find(const EmbeddingParams *p, const JoinedRows &t, uint64_t first) {
  for (int i = threadIdx.x; i < t.rows; i += blockDim.x) {
    const char *x = flat_row(p, first + i, true).x;
    if (!x) x = (const char *)flow_zeros;
    t.from[i] = x;
    t.place[i] = i * p->pitch + (int)((uint32_t)(uintptr_t)x & 15);
  }
  // Ids of a later block: those are read once, from DRAM, and everything waits for them.
  uint64_t later = first + p->ahead + threadIdx.x * 32;
  if (p->ahead && threadIdx.x * 32 < t.rows && later < (uint64_t)p->m) prefetch_l2((const char *)p->ids + later * (p->wide_ids ? 8 : 4));
}

// The aligned 16 bytes that have a part of a row. What is beyond the table is not read.
INLINE void joined_fill(const EmbeddingParams *p, const JoinedRows &t, int in) {
  const int bytes = (int)p->per_row * in, most = (bytes + 30) / 16;
  const uint32_t over = ~0u / most + 1;
#pragma unroll 4
  for (int i = threadIdx.x; i < t.rows * most; i += blockDim.x) {
    int row = (int)__umulhi(i, over), chunk = (i - row * most) * 16;
    const char *x = t.from[row];
    int shift = (int)((uint32_t)(uintptr_t)x & 15), left = shift + bytes - chunk;
    const char *at = x - shift + chunk;
    char *to = t.memory + row * p->pitch + chunk;
    if (left <= 0) continue;
    if (at < (const char *)p->x || at + 16 > p->x_end) *(uint4 *)to = load_singly(at, x, x + bytes, in);
    else if (p->near) fetch16<true>(to, at);
    else fetch16(to, at);
    if (left > 16) continue;
    for (int k = 1; k <= t.vectors; k++) *(uint4 *)(to + 16 * k) = make_uint4(0, 0, 0, 0); // more is read than a row has
  }
  wait_for_fetches();
}

// Behind each row the first elements of the next: one fewer than a chunk has.
INLINE void joined_follow(const EmbeddingParams *p, const JoinedRows &t, int in, int per) {
  int e = threadIdx.x % per;
  for (int row = threadIdx.x / per; row < t.rows - 1 && e < per - 1; row += blockDim.x / per)
    move_one(t.memory + t.place[row] + ((int)p->per_row + e) * in, t.memory + t.place[row + 1] + e * in, in);
}

// A chunk of y from byte `place` of shared memory on.
INLINE uint4 joined_cut(WordKind c, const char *memory, int place) {
  const uint4 *from = (const uint4 *)(memory + (place & -16));
  Vec v, w;
  float f[8];
  v.v = funnel(from[0], from[1], place & 15, c.in);
  if (!c.convert) return v.v;
  widen(&v, c.x_kind, c.in, f);
  if (c.in == 4) {
    v.v = funnel(from[1], from[2], place & 15, 4);
    widen(&v, c.x_kind, c.in, f + 4);
  }
  narrow(&w, c.y_kind, 2, f);
  return w.v;
}

INLINE void joined_write(const EmbeddingParams *p, WordKind c, const JoinedRows &t, char *y) {
  const int per = 8;
  int n = (int)p->per_row, groups = max((int)blockDim.x / p->units, 1), group = groups == 1 ? 0 : threadIdx.x / p->units;
  if (group >= groups) return;
#pragma unroll 1
  for (int unit = threadIdx.x - group * p->units; unit < p->units; unit += blockDim.x) {
    int row = unit * per / n, column = unit * per - row * n, left = n - column;
    char *to = y + (group * p->units + unit) * 16;
#pragma unroll 2
    for (row += group * p->joined; row < t.rows; row += groups * p->joined, to += groups * p->units * 16) {
      uint4 v = joined_cut(c, t.memory, t.place[row] + column * c.in);
      if (left >= per || row + 1 < t.rows) {
        store16(to, v, c.stream);
        continue;
      }
      const uint32_t w[4] = {v.x, v.y, v.z, v.w}; // the last of y
#pragma unroll
      for (int j = 0; j < per; j++)
        if (j < left) ((uint16_t *)to)[j] = (uint16_t)(w[j / 2] >> j % 2 * 16);
    }
  }
}

INLINE void embedding_joined(const EmbeddingParams *p, int in, int convert) {
  const WordKind c = {in, 2, convert, in == 4 ? KIND_FP32 : p->x_kind, p->y_kind, p->stream};
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, first = block * p->staged;
  wait_for_predecessor();
  let_successor_start();
  if (first >= (uint64_t)p->m) return;
  JoinedRows t = {(const char **)staged_memory};
  t.place = (int *)(t.from + p->staged);
  t.memory = staged_memory + (p->staged * 12 + 15) / 16 * 16;
  t.rows = (int)min((uint64_t)p->staged, (uint64_t)p->m - first);
  t.vectors = in / 2;
  joined_find(p, t, first);
  __syncthreads();
  joined_fill(p, t, in);
  __syncthreads();
  joined_follow(p, t, in, 8);
  __syncthreads();
  joined_write(p, c, t, (char *)p->y + (int64_t)first * p->y_stride);
}

#endif
