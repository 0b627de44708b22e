// rmsnorm of table[ids[row]], longer rows that start anywhere: a warp has a row, by aligned 16 bytes of y, in its registers (cells.cuh). What is left at
// both ends of a row are single elements, one a lane. Both outputs start alike within 16 bytes.
#ifndef SOL_KERNELS_EMBED_LINES_CUH
#define SOL_KERNELS_EMBED_LINES_CUH

#include "cells.cuh"
#include "embed_rows.cuh"

// A row of an output, of which a thread has EMBED_LINE_EACH cells and an element at its ends.
typedef struct EmbedLine {
  int head, cells; // elements before the first whole cell; whole cells
} EmbedLine;

INLINE EmbedLine line_of(const char *y, int n, int size) {
  EmbedLine l;
  l.head = min((int)(-(uint32_t)(uintptr_t)y & 15) / size, n);
  l.cells = (n - l.head) / (16 / size);
  return l;
}

// Of columns of x, too, which is read by aligned 16 bytes that have to be between `begin` and `end`: without the cells for which they are not.
INLINE void line_within(EmbedLine *l, const char *x, const char *begin, const char *end, int size) {
  const int per = 16 / size;
  const char *first = x + l->head * size, *last = first + l->cells * 16;
  if (last + (-(uintptr_t)last & 15) > end) l->cells--;
  if (first - ((uintptr_t)first & 15) < begin) l->head += per, l->cells--;
}

// The column that this thread has singly; -1: none.
INLINE int line_edge(const EmbedLine &l, int n, int size, int lane) {
  int column = lane < 16 ? lane : l.head + max(l.cells, 0) * (16 / size) + lane - 16;
  return lane < 32 && column < (lane < 16 ? min(l.head, n) : n) ? column : -1;
}

// Cell k of a thread, of columns of x; NULL: zeros.
INLINE void line_load(const EmbedLine &l, const char *x, int size, int lane, CellRaw *raw) {
  const char *at = x + l.head * size + lane * 16;
  raw->beyond = (uint32_t)(uintptr_t)at & 15;
  const char *from = at - raw->beyond;
  bool there = x && lane < l.cells;
  raw->low = cell_load16<0>(from, there);
  raw->high = cell_load16<16>(from, there && raw->beyond);
}

INLINE void line_load_all(const EmbedLine &l, const char *x, int size, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4]) {
  CellRaw raw[EMBED_LINE_EACH];
#pragma unroll
  for (int k = 0; k < EMBED_LINE_EACH; k++) line_load(l, x, size, lane + k * lanes, &raw[k]);
#pragma unroll
  for (int k = 0; k < EMBED_LINE_EACH; k++) cell_cut(raw[k], size, u[k]);
}

INLINE void line_store(const EmbedLine &l, char *y, int size, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4], int stream) {
  char *to = y + l.head * size + lane * 16;
#pragma unroll
  for (int k = 0; k < EMBED_LINE_EACH; k++)
    if (lane + k * lanes < l.cells) cell_store(to + k * lanes * 16, u[k], stream);
}

INLINE void line_move(const char *x, char *y, int column, int size) {
  if (size == 4) ((uint32_t *)y)[column] = x ? ((const uint32_t *)x)[column] : 0;
  else ((uint16_t *)y)[column] = x ? ((const uint16_t *)x)[column] : 0;
}

// Of a thread's cells. alike: weights are of elements' type.
INLINE void line_results(const EmbedParams *p, const EmbedLine &l, int kind, bool alike, float scale, int lane, int lanes, uint32_t u[EMBED_LINE_EACH][4]) {
  const int size = kind == KIND_FP32 ? 4 : 2, per = 16 / size;
#pragma unroll
  for (int k = 0; k < EMBED_LINE_EACH; k++) {
    int i = lane + k * lanes;
    float f[8], w[8];
    CellRaw raw;
    uint32_t v[4];
    if (alike) {
      line_load(l, (const char *)p->weight, size, i, &raw);
      cell_cut(raw, size, v);
      widen((const Vec *)v, kind, size, w);
    } else
#pragma unroll
      for (int j = 0; j < per; j++) w[j] = p->weight ? load_one(p->weight, min(l.head + i * per + j, p->n - 1), p->weight_kind) : 0;
    widen((const Vec *)u[k], kind, size, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] *= (p->weight ? w[j] + p->offset : 1) * scale;
    Vec out;
    narrow(&out, size == 2 ? p->y_kind : kind, size, f);
#pragma unroll
    for (int q = 0; q < 4; q++) u[k][q] = out.u[q];
  }
}

INLINE void embed_lines(const EmbedParams *p, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2;
  const int lanes = 32, lane = threadIdx.x % lanes;
  uint64_t row = thread_index() / lanes;
  if (may_hint()) {
    const char *likely = embed_likely(p, row);
    for (int at = lane * 128; likely && at < p->n * size; at += lanes * 128) prefetch_l2(likely + at);
    embed_hint_weights(p);
  }
  begin_kernel();
  bool there = row < p->m;
  const char *x = embed_from(p, row);
  char *y = (char *)p->y + (int64_t)row * p->y_stride, *second = (char *)p->second + (int64_t)row * p->second_stride;
  EmbedLine l = line_of(y, p->n, size);
  const bool alike = p->weight && p->weight_kind == kind;
  if (x) line_within(&l, x, (const char *)p->table, p->table_end, size);
  if (alike) line_within(&l, (const char *)p->weight, (const char *)p->weight, (const char *)p->weight + p->n * size, size);
  int column = there ? line_edge(l, p->n, size, lane) : -1;
  if (!there) l.cells = 0;
  uint32_t u[EMBED_LINE_EACH][4];
  line_load_all(l, x, size, lane, lanes, u);
  float edge = column >= 0 && x ? load_one(x, column, kind) : 0, sum = edge * edge;
#pragma unroll
  for (int k = 0; k < EMBED_LINE_EACH; k++) {
    float f[8];
    bool here = lane + k * lanes < l.cells;
    widen((const Vec *)u[k], kind, size, f);
#pragma unroll
    for (int j = 0; j < 16 / size; j++) sum = here ? fmaf(f[j], f[j], sum) : sum;
  }
  if (p->second) line_store(l, second, size, lane, lanes, u, p->stream);
  if (p->second && column >= 0) line_move(x, second, column, size);
  float scale = rsqrtf(fmaf(warp_sum(sum), p->over_n, p->eps));
  if (alike) line_results(p, l, kind, true, scale, lane, lanes, u);
  else line_results(p, l, kind, false, scale, lane, lanes, u);
  line_store(l, y, size, lane, lanes, u, p->stream);
  if (column >= 0) {
    float w = p->weight ? load_one(p->weight, column, p->weight_kind) + p->offset : 1;
    store_one(y, column, size == 2 ? p->y_kind : kind, edge * (w * scale));
  }
}

#endif
