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
  if (p->ends) ends_prefetch((const char *)p->y + (int64_t)begin * p->y_stride, p->y_stride, p->ends, rows, threadIdx.x % 32, 32);
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
      r[t] = word_row(c, (int64_t)n, x, y[t], (int64_t)lane, min(32, 4 * lanes));
      edge[t] = word_edge(c, (int64_t)n, y[t], (int64_t)lane);
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

// ---- Dense rows, y as one sequence of words (of 8 bytes where rows are on those), `each` a thread. A block reads the ids of all rows that it
// has a part of, then neighbouring lanes load what makes neighbouring words: one element or some, which may be of two rows.

enum { FLOW_ROWS = FLOW_BYTES / 16 + 2 };    // most rows of a block: they have 16 bytes at least
__device__ uint4 flow_zeros[FLOW_MOST / 16]; // what a bad id stands for

typedef struct Flow {
  const char **from; // where each row comes from
  char *y;           // of the block's first word
  int begin, end;    // its elements, counted from the start of its first row; begin may be before it
} Flow;

INLINE void flow_ids(const EmbeddingParams *p, const char **from, uint64_t first, int rows) {
  for (int i = threadIdx.x; i <= rows; i += EMBEDDING_THREADS) { // and what flow_place reads of the last one's next
    const char *x = flat_row(p, first + i, true).x;
    from[i] = x ? x : (const char *)flow_zeros;
  }
  // Ids of a later block: those are read once, from DRAM, and everything waits for them.
  uint64_t later = first + p->ahead + threadIdx.x * 32;
  if (p->ahead && threadIdx.x * 32 < rows && later < (uint64_t)p->m) prefetch_l2((const char *)p->ids + later * (p->wide_ids ? 8 : 4));
}

// Where element e is, and what follows it: fewer elements than a row has.
typedef struct FlowPlace {
  const char *x, *next; // of element e; of the next row
  int left;             // elements of the row from e on
} FlowPlace;

INLINE FlowPlace flow_place(const EmbeddingParams *p, const Flow &f, int e, int in) {
  int n = (int)p->per_row, row = (int)__umulhi(e, p->over), column = e - row * n;
  FlowPlace at = {f.from[row] + column * in, f.from[row + 1], n - column};
  return at;
}

// The compiler does not see that these addresses are of global memory.
INLINE uint32_t flow_load(const char *x, int in) {
  uint32_t v;
  size_t at = __cvta_generic_to_global(x);
  if (in == 4) asm("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(at));
  else if (in == 2) asm("ld.global.u16 %0, [%1];" : "=r"(v) : "l"(at));
  else asm("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}

INLINE uint2 flow_load8(const char *x) {
  uint2 v;
  asm("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(__cvta_generic_to_global(x)));
  return v;
}

INLINE void flow_load_word(WordKind c, const FlowPlace &at, uint32_t *v) {
#pragma unroll
  for (int j = 0; j < 4 / c.out; j++)
    v[j] = flow_load(j && j >= at.left ? at.next + (j - at.left) * c.in : at.x + j * c.in, c.in);
}

INLINE uint32_t flow_word(WordKind c, const uint32_t *v) {
  if (c.convert && c.out == 4) return __float_as_uint(element_float(c, v[0]));
  if (c.convert) return narrow2(element_float(c, v[0]), element_float(c, v[1]), c.y_kind);
  uint32_t u = 0;
#pragma unroll
  for (int j = 0; j < 4 / c.out; j++) u |= v[j] << 8 * c.out * j;
  return u;
}

template <typename Word> INLINE void flow_store(char *to, Word u, int stream) {
  if (stream) __stcs((Word *)to, u);
  else *(Word *)to = u;
}

// `each` words a thread, from element `begin` on, that are all there.
INLINE void flow_turn(const EmbeddingParams *p, WordKind c, const Flow &f, int begin, int each) {
  const int per = c.out == 8 ? 1 : 4 / c.out, word = c.out * per;
  uint2 wide[8];
  uint32_t v[8][4];
#pragma unroll
  for (int k = 0; k < each; k++) {
    FlowPlace at = flow_place(p, f, begin + (k * EMBEDDING_THREADS + (int)threadIdx.x) * per, c.in);
    if (c.out == 8) wide[k] = flow_load8(at.x);
    else flow_load_word(c, at, v[k]);
  }
  char *y = f.y + (begin - f.begin) * c.out + threadIdx.x * word;
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (c.out == 8) flow_store(y + k * EMBEDDING_THREADS * word, wide[k], c.stream);
    else flow_store(y + k * EMBEDDING_THREADS * word, flow_word(c, v[k]), c.stream);
  }
}

INLINE void flow_one(WordKind c, char *to, const char *x) {
  if (c.convert) store_one(to, 0, c.y_kind, load_one(x, 0, c.x_kind));
  else move_one(to, x, c.in);
}

INLINE void embedding_flow(const EmbeddingParams *p, int in, int out, int convert, int each) {
  __shared__ const char *from[FLOW_ROWS + 1];
  const WordKind c = {in, out, convert, p->x_kind, p->y_kind, p->stream};
  const int per = out == 8 ? 1 : 4 / out, turn = EMBEDDING_THREADS * each * per, most = turn * p->turns;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, row, column;
  int head = (int)((uint32_t)(uintptr_t)p->y & (out * per - 1)) / out;
  int64_t first = (int64_t)block * most - head, left = p->m * (int64_t)p->per_row - first; // elements
  wait_for_predecessor();
  let_successor_start();
  if (left <= 0) return;
  flat_split(p, first < 0 ? 0 : (uint64_t)first, &row, &column);
  Flow f = {from, (char *)p->y + first * out, (int)column - (first < 0 ? head : 0), 0};
  f.end = f.begin + (int)min((int64_t)most, left);
  flow_ids(p, from, row, (int)__umulhi(f.end - 1, p->over) + 1);
  __syncthreads();
  if (f.begin >= 0 && left >= most) {
#pragma unroll 1
    for (int t = 0; t < p->turns; t++) flow_turn(p, c, f, f.begin + t * turn, each);
  } else
    for (int e = max(f.begin, 0) + (int)threadIdx.x; e < f.end; e += EMBEDDING_THREADS)
      flow_one(c, f.y + (e - f.begin) * out, flow_place(p, f, e, in).x);
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
