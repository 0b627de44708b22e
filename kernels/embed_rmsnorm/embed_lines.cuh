// rmsnorm of table[ids[row]], longer rows that start anywhere: some warps have a row, by aligned 16 bytes of y, in their registers (cells.cuh). What is
// left at both ends of a row are single elements, one a lane.
#ifndef SOL_KERNELS_EMBED_LINES_CUH
#define SOL_KERNELS_EMBED_LINES_CUH

#include "cells.cuh"
#include "embed_cells.cuh"

// A row of an output, of which a thread has EMBED_LINE_EACH cells and, of a row's first 32 threads, an element at its ends.
typedef struct EmbedLine {
  int head, cells; // elements before the first whole cell; whole cells
} EmbedLine;

// size: bytes of an element at y; per: elements of a cell.
INLINE EmbedLine line_of(const char *y, int n, int size, int per) {
  EmbedLine l;
  l.head = min((int)(-(uint32_t)(uintptr_t)y & (per * size - 1)) / size, n);
  l.cells = (n - l.head) / per;
  return l;
}

// Of columns of x, too, which is read by aligned bytes, as many as a cell has of it, that have to be between `begin` and `end`: without the cells for
// which they are not.
INLINE void line_within(EmbedLine *l, const char *x, const char *begin, const char *end, CellKind k) {
  const int per = cell_per(k), bytes = per * k.in;
  const char *first = x + l->head * k.in, *last = first + l->cells * bytes;
  if (last + (-(uintptr_t)last & (bytes - 1)) > end) l->cells--;
  if (first - ((uintptr_t)first & (bytes - 1)) < begin) l->head += per, l->cells--;
}

// The column that this thread has singly; -1: none.
INLINE int line_edge(const EmbedLine &l, int n, int per, int lane) {
  int column = lane < 16 ? lane : l.head + max(l.cells, 0) * per + lane - 16;
  return lane < 32 && column < (lane < 16 ? min(l.head, n) : n) ? column : -1;
}

// Cell i of columns of x; NULL: zeros.
INLINE void line_load(const EmbedLine &l, const char *x, CellKind k, int i, CellRaw *raw) {
  const int bytes = cell_per(k) * k.in;
  const char *at = x + l.head * k.in + i * bytes;
  raw->beyond = (uint32_t)(uintptr_t)at & (bytes - 1);
  const char *from = at - raw->beyond;
  bool there = x && i < l.cells;
  raw->low = bytes == 16 ? cell_load16<0>(from, there) : cell_load8<0>(from, there);
  raw->high = bytes == 16 ? cell_load16<16>(from, there && raw->beyond) : cell_load8<8>(from, there && raw->beyond);
}

INLINE void line_load_all(const EmbedLine &l, const char *x, CellKind k, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4]) {
  CellRaw raw[EMBED_LINE_EACH];
#pragma unroll
  for (int j = 0; j < EMBED_LINE_EACH; j++) line_load(l, x, k, lane + j * lanes, &raw[j]);
#pragma unroll
  for (int j = 0; j < EMBED_LINE_EACH; j++) cell_cut(raw[j], k, u[j]);
}

// size: bytes of an element at y.
INLINE void line_store(const EmbedLine &l, char *y, int size, int per, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4], int stream) {
  char *to = y + l.head * size + lane * (per * size);
#pragma unroll
  for (int j = 0; j < EMBED_LINE_EACH; j++)
    if (lane + j * lanes < l.cells) cell_store(to + j * lanes * (per * size), u[j], per * size / 4, stream);
}

INLINE void line_move(const char *x, char *y, int column, int size) {
  if (size == 4) ((uint32_t *)y)[column] = x ? ((const uint32_t *)x)[column] : 0;
  else ((uint16_t *)y)[column] = x ? ((const uint16_t *)x)[column] : 0;
}

// The rows themselves; u: the cells of y's.
INLINE void line_second(const EmbedParams *p, const EmbedLine &of_y, const char *x, char *second, CellKind k, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4]) {
  const int per = cell_per(k), bytes = per * k.in;
  EmbedLine l = of_y;
  if (((uintptr_t)second + l.head * k.in) % bytes == 0) line_store(l, second, k.in, per, lane, lanes, u, p->stream);
  else {
    l = line_of(second, p->n, k.in, per);
    if (x) line_within(&l, x, (const char *)p->table, p->table_end, k);
#pragma unroll 1
    for (int i = lane; i < l.cells; i += lanes) {
      CellRaw raw;
      uint32_t v[4];
      line_load(l, x, k, i, &raw);
      cell_cut(raw, k, v);
      cell_store(second + l.head * k.in + i * bytes, v, bytes / 4, p->stream);
    }
  }
  int edge = line_edge(l, p->n, per, lane);
  if (edge >= 0) line_move(x, second, edge, k.in);
}

// The sum of what the threads of a row have, the same for all of them.
INLINE float line_sum(float sum, int lanes) {
  float *sums = (float *)cell_memory;
  int warp = threadIdx.x / 32, first = warp / (lanes / 32) * (lanes / 32);
  sum = warp_sum(sum);
  if (lanes == 32) return sum;
  if (threadIdx.x % 32 == 0) sums[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < lanes / 32; i++) sum += sums[first + i];
  return sum;
}

// Of a thread's cells. alike: weights are of elements' type.
INLINE void line_results(const EmbedParams *p, const EmbedLine &l, int kind, CellKind k, bool alike, float scale, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4]) {
  const int per = cell_per(k);
#pragma unroll
  for (int j = 0; j < EMBED_LINE_EACH; j++) {
    int at = lane + j * lanes;
    float f[8], w[8];
    CellRaw raw;
    uint32_t v[4];
    if (alike) {
      line_load(l, (const char *)p->weight, k, at, &raw);
      cell_cut(raw, k, v);
      embed_cell_widen(kind, per, v, w);
    } else
#pragma unroll
      for (int e = 0; e < per; e++) w[e] = p->weight ? load_one(p->weight, min(l.head + at * per + e, p->n - 1), p->weight_kind) : 0;
    embed_cell_widen(kind, per, u[j], f);
#pragma unroll
    for (int e = 0; e < per; e++) f[e] *= (p->weight ? w[e] + p->offset : 1) * scale;
    embed_cell_narrow(k.out == 4 ? KIND_FP32 : p->y_kind, per * k.out / 4, f, u[j]);
  }
}

// out: bytes of an element of y.
INLINE void embed_lines(const EmbedParams *p, int kind, int out) {
  const CellKind k = {kind == KIND_FP32 ? 4 : 2, out};
  const int per = cell_per(k);
  int lanes = p->words, lane = threadIdx.x % lanes;
  uint64_t row = block_index() * (blockDim.x / lanes) + threadIdx.x / lanes;
  if (may_hint()) {
    const char *likely = embed_likely(p, row);
    for (int at = lane * 128; likely && at < p->n * k.in; at += lanes * 128) prefetch_l2(likely + at);
    embed_hint_weights(p);
  }
  begin_kernel();
  bool there = row < p->m;
  const char *x = embed_from(p, row), *weight = (const char *)p->weight;
  char *y = (char *)p->y + (int64_t)row * p->y_stride, *second = (char *)p->second + (int64_t)row * p->second_stride;
  const bool alike = p->weight && p->weight_kind == kind;
  EmbedLine l = line_of(y, p->n, out, per);
  if (x) line_within(&l, x, (const char *)p->table, p->table_end, k);
  if (alike) line_within(&l, weight, weight, weight + p->n * k.in, k);
  int column = there ? line_edge(l, p->n, per, lane) : -1;
  if (!there) l.cells = 0;
  uint32_t u[EMBED_LINE_EACH][4];
  line_load_all(l, x, k, lane, lanes, u);
  float edge = column >= 0 && x ? load_one(x, column, kind) : 0, sum = edge * edge;
#pragma unroll
  for (int j = 0; j < EMBED_LINE_EACH; j++) {
    float squares = embed_cell_squares(kind, per, u[j]);
    if (lane + j * lanes < l.cells) sum += squares;
  }
  if (p->second && there) line_second(p, l, x, second, k, lane, lanes, u);
  float scale = rsqrtf(fmaf(line_sum(sum, lanes), p->over_n, p->eps));
  if (alike) line_results(p, l, kind, k, true, scale, lane, lanes, u);
  else line_results(p, l, kind, k, false, scale, lane, lanes, u);
  line_store(l, y, out, per, lane, lanes, u, p->stream);
  if (column >= 0) {
    float w = p->weight ? load_one(p->weight, column, p->weight_kind) + p->offset : 1;
    store_one(y, column, out == 4 ? KIND_FP32 : p->y_kind, edge * (w * scale));
  }
}

#endif
