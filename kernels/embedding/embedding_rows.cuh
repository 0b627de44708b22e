// Rows that start anywhere, by words (words.cuh), and rows of a few elements.
#ifndef SOL_KERNELS_EMBEDDING_ROWS_CUH
#define SOL_KERNELS_EMBEDDING_ROWS_CUH

#include "embedding.cuh"
#include "narrow.cuh"
#include "tiny.cuh"
#include "words.cuh"

// ---- Short rows: `lanes` lanes have a row, `steps` words each; a warp has some rows after another, whose ids its lanes read, one each.

INLINE int64_t word_columns(const EmbeddingParams *p, WordKind c) { return c.convert ? p->n : p->n / c.out; }

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
      r[t] = word_row(c, n, x, y[t], lane, min(32, 4 * lanes));
      edge[t] = word_edge(c, n, y[t], lane);
      if (row >= rows) r[t].last = -1, edge[t] = -1;
      word_load_all(c, r[t], steps, step, v[t]);
      end[t] = edge_load(c, x, edge[t]);
    }
#pragma unroll
    for (int t = 0; t < together; t++) {
#pragma unroll
      for (int k = 0; k < steps; k++) word_store(c, r[t], k, step, v[t][k]);
      edge_store(c, y[t], edge[t], end[t]);
    }
  }
}

INLINE void embedding_rows(const EmbeddingParams *p, int in, int out, int convert) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind, p->stream};
  wait_for_predecessor();
  let_successor_start();
  switch (p->words) {
#define WORD_ROWS(number, lanes, steps)                                                                                \
  case number: embedding_rows_of(p, c, lanes, steps); break;
#include "embedding_rows.def"
  }
}

// ---- Long rows: a warp has `lines` whole lines of y. per_row is a multiple of 32.

INLINE void embedding_words(const EmbeddingParams *p, int in, int out, int convert, int lines) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind, p->stream};
  const int step = 32 * (4 / out);
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 4 * lines, 1)) return;
  int lane = threadIdx.x % 32;
  int64_t n = word_columns(p, c);
  WordRow r = word_row(c, n, at.x, at.y, (int64_t)(at.thread - lane) * lines + lane, 128);
  int64_t edge = word_edge(c, n, at.y, (int64_t)at.thread);
  WordPair v[16];
  word_load_all(c, r, lines, step, v);
  uint32_t end = edge_load(c, at.x, edge);
  if (lines == EMBEDDING_LINES) embedding_fetch(p, &at, in * (4 / out) * lines, 1); // not of a table in L2
#pragma unroll
  for (int k = 0; k < lines; k++) word_store(c, r, k, step, v[k]);
  edge_store(c, at.y, edge, end);
}

// ---- Dense rows of y that are a few elements: a thread has two neighbouring rows. A block's rows are put side by side in shared memory, and are
// one span of y.

INLINE void tiny_convert(WordKind c, Vec v[2]) { // to elements of 2 bytes
  float f[16];
  widen(&v[0], c.x_kind, c.in, f), widen(&v[1], c.x_kind, c.in, f + 16 / c.in);
#pragma unroll
  for (int j = 0; j < 16 / c.in; j++) v[j / 4].u[j % 4] = narrow2(f[2 * j], f[2 * j + 1], c.y_kind);
}

INLINE void tiny_widen(WordKind c, char *to, const Vec v[2], int n) { // to floats
#pragma unroll
  for (int e = 0; e < TINY_BYTES / 2; e++) {
    if (e >= n) break;
    ((float *)to)[e] = element_float(c, v[e / 8].h[e % 8]);
  }
}

INLINE void embedding_tiny(const EmbeddingParams *p, int in, int out, int convert) {
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind, p->stream};
  const int most = 2 * EMBEDDING_THREADS;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * most;
  int n = (int)word_columns(p, c), row = 2 * threadIdx.x;
  wait_for_predecessor();
  let_successor_start();
  if (first >= (uint64_t)p->m) return;
  NarrowTile t = {(char *)p->y + (int64_t)first * p->y_stride, 0, n * out, n * out, 0, n * out, false};
  t.rows = (int)min((uint64_t)most, (uint64_t)p->m - first);
  t.place = (int)((uint32_t)(uintptr_t)t.at & 15);
  const char *from[2] = {flat_row(p, first + row, true).x, flat_row(p, first + row + 1, true).x};
  TinyTable table = {(const char *)p->x, p->x_end, n * in, in};
  Vec v[2][2];
  tiny_load(table, from, v);
  char *to = narrow_row(t, row);
  bool second = row + 1 < t.rows;
  if (row < t.rows && convert && out == 4) {
    tiny_widen(c, to, v[0], n);
    if (second) tiny_widen(c, to + n * out, v[1], n);
  } else if (row < t.rows) {
    if (convert) tiny_convert(c, v[0]), tiny_convert(c, v[1]);
    tiny_put(to, v[0], v[1], n, out, second);
  }
  __syncthreads();
  narrow_send(t, out);
}

#endif
