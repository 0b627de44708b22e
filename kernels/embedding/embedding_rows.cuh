// Rows that start anywhere, by words (words.cuh), and rows of a few elements.
#ifndef SOL_KERNELS_EMBEDDING_ROWS_CUH
#define SOL_KERNELS_EMBEDDING_ROWS_CUH

#include "embedding.cuh"
#include "narrow.cuh"
#include "tiny.cuh"
#include "words.cuh"

// ---- Short rows: `lanes` lanes have a row, `steps` words each; a warp has some rows after another, whose ids its lanes read, one each.

INLINE int64_t word_columns(const EmbeddingParams *p, WordKind c) { return c.convert ? p->n : p->n / c.out; }

// The rows that the warp takes next are prefetched into L2: what it loads itself does not keep enough in flight.
INLINE void rows_fetch(const EmbeddingParams *p, const char *from, int row, int rows, int lane, int lanes) {
  if (!p->ahead) return;
  const char *x = (const char *)__shfl_sync(~0u, (unsigned long long)from, row % 32);
  int64_t bytes = p->x_bytes;
  if (x && row < rows)
    for (int64_t at = lane * 128; at < bytes; at += lanes * 128) prefetch_l2(x + at);
}

INLINE void embedding_rows_of(const EmbeddingParams *p, WordKind c, int lanes, int steps) {
  const int step = lanes * (4 / c.out), at_once = 32 / lanes, together = steps <= 6 ? 2 : 1;
  int lane = threadIdx.x % lanes, slot = threadIdx.x % 32 / lanes, n = (int)word_columns(p, c);
  uint64_t begin = thread_index() / 32 * p->warp_rows;
  if (begin >= (uint64_t)p->m) return;
  int rows = (int)min((uint64_t)p->warp_rows, (uint64_t)p->m - begin);
  const char *from = threadIdx.x % 32 < rows ? flat_row(p, begin + threadIdx.x % 32, true).x : NULL;
#pragma unroll 1
  for (int i = 0; i < rows; i += at_once * together) {
    WordRow r[2];
    WordPair v[2][16];
    char *y[2];
    int64_t edge[2];
    uint32_t end[2];
#pragma unroll
    for (int t = 0; t < together; t++) {
      int row = i + t * at_once + slot;
      const char *x = (const char *)__shfl_sync(~0u, (unsigned long long)from, row % 32);
      y[t] = (char *)p->y + (int64_t)(begin + row) * p->y_stride;
      r[t] = word_row(c, n, x, y[t], lane, lanes < 8 ? 4 * lanes : 32);
      edge[t] = word_edge(c, n, y[t], lane);
      if (row >= rows) r[t].last = -1, edge[t] = -1;
#pragma unroll
      for (int k = 0; k < steps; k++) v[t][k] = word_load(r[t], c, k, step);
      end[t] = edge_load(c, x, edge[t]);
    }
    rows_fetch(p, from, i + at_once * together + slot, rows, lane, lanes);
#pragma unroll
    for (int t = 0; t < together; t++) {
#pragma unroll
      for (int k = 0; k < steps; k++) word_store(c, r[t], k, step, v[t][k]);
      edge_store(c, y[t], edge[t], end[t]);
    }
  }
}

INLINE void embedding_rows(const EmbeddingParams *p, int in, int out, int convert) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind};
  wait_for_predecessor();
  let_successor_start();
  switch (p->words) {
#define WORD_ROWS(number, lanes, steps)                                                                                \
  case number: embedding_rows_of(p, c, lanes, steps); break;
#include "embedding_rows.def"
  }
}

// The same for rows that are whole aligned 16 bytes.
INLINE void embedding_chunks_of(const EmbeddingParams *p, int lanes, int steps) {
  const int at_once = 32 / lanes, together = steps <= 4 ? 2 : 1;
  int lane = threadIdx.x % lanes, slot = threadIdx.x % 32 / lanes, n = (int)p->n;
  uint64_t begin = thread_index() / 32 * p->warp_rows;
  if (begin >= (uint64_t)p->m) return;
  int rows = (int)min((uint64_t)p->warp_rows, (uint64_t)p->m - begin);
  const char *from = threadIdx.x % 32 < rows ? flat_row(p, begin + threadIdx.x % 32, true).x : NULL;
#pragma unroll 1
  for (int i = 0; i < rows; i += at_once * together) {
    uint4 v[2][8];
    int at = lane * 16;
#pragma unroll
    for (int t = 0; t < together; t++) {
      int row = i + t * at_once + slot;
      const char *x = (const char *)__shfl_sync(~0u, (unsigned long long)from, row % 32);
#pragma unroll
      for (int k = 0; k < steps; k++) v[t][k] = load_if(x + at + k * lanes * 16, x && row < rows && at + k * lanes * 16 < n);
    }
    rows_fetch(p, from, i + at_once * together + slot, rows, lane, lanes);
#pragma unroll
    for (int t = 0; t < together; t++) {
      int row = i + t * at_once + slot;
      char *y = (char *)p->y + (int64_t)(begin + row) * p->y_stride + at;
#pragma unroll
      for (int k = 0; k < steps; k++)
        if (row < rows && at + k * lanes * 16 < n) *(uint4 *)(y + k * lanes * 16) = v[t][k];
    }
  }
}

INLINE void embedding_chunks(const EmbeddingParams *p) {
  wait_for_predecessor();
  let_successor_start();
  switch (p->words) {
#define CHUNK_ROWS(number, lanes, steps)                                                                               \
  case number: embedding_chunks_of(p, lanes, steps); break;
#include "embedding_chunks.def"
  }
}

// ---- Long rows: a warp has `lines` whole lines of y. per_row is a multiple of 32.

INLINE void embedding_words(const EmbeddingParams *p, int in, int out, int convert, int lines) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind};
  const int step = 32 * (4 / out);
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 4 * lines, 1)) return;
  int lane = threadIdx.x % 32;
  int64_t n = word_columns(p, c);
  WordRow r = word_row(c, n, at.x, at.y, (int64_t)(at.thread - lane) * lines + lane, 128);
  int64_t edge = word_edge(c, n, at.y, (int64_t)at.thread);
  WordPair v[16];
#pragma unroll
  for (int k = 0; k < lines; k++) v[k] = word_load(r, c, k, step);
  uint32_t end = edge_load(c, at.x, edge);
  if (lines == EMBEDDING_LINES) embedding_fetch(p, &at, in * (4 / out) * lines, 1); // not of a table in L2
#pragma unroll
  for (int k = 0; k < lines; k++) word_store(c, r, k, step, v[k]);
  edge_store(c, at.y, edge, end);
}

// ---- Dense rows of y that are a few elements: a thread has a row. A block's rows are put side by side in shared memory, and are
// one span of y.

INLINE void tiny_put(WordKind c, char *to, const TinyRow &r, const char *from, int n) {
  Vec v[2];
  tiny_take(r, from, c.in, v);
#pragma unroll
  for (int e = 0; e < TINY_BYTES / c.in; e++) {
    if (e >= n) break;
    uint32_t u = c.in == 4 ? v[e / 4].u[e % 4] : v[e / 8].h[e % 8];
    if (c.convert) store_one(to, e, c.y_kind, element_float(c, u));
    else if (c.out == 4) ((uint32_t *)to)[e] = u;
    else ((uint16_t *)to)[e] = (uint16_t)u;
  }
}

INLINE void embedding_tiny(const EmbeddingParams *p, int in, int out, int convert) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind};
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (EMBEDDING_THREADS * EMBEDDING_TINY_EACH);
  int n = (int)word_columns(p, c);
  wait_for_predecessor();
  let_successor_start();
  if (first >= (uint64_t)p->m) return;
  NarrowTile t = {(char *)p->y + (int64_t)first * p->y_stride, 0, n * out, n * out, 0, n * out, false};
  t.rows = (int)min((uint64_t)(EMBEDDING_THREADS * EMBEDDING_TINY_EACH), (uint64_t)p->m - first);
  t.place = (int)((uint32_t)(uintptr_t)t.at & 15);
  const char *from[EMBEDDING_TINY_EACH];
#pragma unroll
  for (int k = 0; k < EMBEDDING_TINY_EACH; k++) from[k] = flat_row(p, first + threadIdx.x + k * EMBEDDING_THREADS, true).x;
#pragma unroll
  for (int k = 0; k < EMBEDDING_TINY_EACH; k += 2) {
    TinyRow r[2];
#pragma unroll
    for (int j = 0; j < 2; j++) r[j] = tiny_load(from[k + j], n * in, in, (const char *)p->x, p->x_end);
#pragma unroll
    for (int j = 0; j < 2; j++) {
      int row = threadIdx.x + (k + j) * EMBEDDING_THREADS;
      if (row < t.rows) tiny_put(c, narrow_row(t, row), r[j], from[k + j], n);
    }
  }
  __syncthreads();
  narrow_send(t, out);
}

#endif
