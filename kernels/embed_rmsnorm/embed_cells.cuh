// rmsnorm of table[ids[row]], short rows that start anywhere, by aligned cells of y (cells.cuh): a thread has the same cell of some rows, whose elements
// stay in its registers while a block puts the rows' sums together. Both outputs start alike within 16 bytes.
#ifndef SOL_KERNELS_EMBED_CELLS_CUH
#define SOL_KERNELS_EMBED_CELLS_CUH

#include "cells.cuh"
#include "embed_rows.cuh"

typedef struct EmbedCells {
  float *scale; // of each row
  float *part;  // of each cell: the sum of its squares
} EmbedCells;

INLINE EmbedCells embed_cells_memory(const CellShape &s) {
  char *at = cell_memory + 2 * CELL_FROM_BYTES;
  return (EmbedCells){(float *)at, (float *)(at + 4 * CELL_GROUPS * s.period)};
}

// While the predecessor runs, where blocks are few: a row a thread, and weights.
INLINE void embed_cells_hint(const EmbedParams *p, uint64_t first, int in) {
  if (!may_hint()) return;
  for (int i = threadIdx.x; i < p->cell.rows; i += blockDim.x) {
    const char *x = embed_likely(p, first + i);
    for (int at = 0; x && at < p->n * in; at += 128) prefetch_l2(x + at);
  }
  embed_hint_weights(p);
}

// The weights of a cell as they are stored, and as floats: none of the loads waits for another.
INLINE void embed_cell_weights(const EmbedParams *p, const Cell &c, int per, uint32_t *w) {
  if (!p->weight) return;
  const bool wide = p->weight_kind == KIND_FP32;
  const char *from = (const char *)p->weight + c.column * (wide ? 4 : 2);
#pragma unroll
  for (int j = 0; j < per; j++) {
    w[j] = 0;
    if (wide && j >= c.begin && j < c.end) w[j] = ((const uint32_t *)from)[j];
    if (!wide && j >= c.begin && j < c.end) w[j] = ((const uint16_t *)from)[j];
  }
}
INLINE void embed_cell_floats(const EmbedParams *p, int per, const uint32_t *w, float *f) {
#pragma unroll
  for (int j = 0; j < per; j++) {
    if (!p->weight) f[j] = 1;
    else if (p->weight_kind == KIND_FP32) f[j] = __uint_as_float(w[j]) + p->offset;
    else f[j] = (p->weight_kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)w[j])) : __uint_as_float(w[j] << 16)) + p->offset;
  }
}

INLINE float embed_cell_squares(int kind, int size, const uint32_t *u) {
  float f[8], sum = 0, odd = 0;
  widen((const Vec *)u, kind, size, f);
#pragma unroll
  for (int j = 0; j < 16 / size; j += 2) sum = fmaf(f[j], f[j], sum), odd = fmaf(f[j + 1], f[j + 1], odd);
  return sum + odd;
}

// Each row's scale, from what its cells have.
INLINE void embed_cells_scales(const EmbedParams *p, const CellShape &s, const EmbedCells &m) {
  for (int i = threadIdx.x; i < CELL_GROUPS * s.period; i += blockDim.x) {
    const float *part = m.part + i * s.cells;
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < s.cells; k++) sum += part[k];
    m.scale[i] = rsqrtf(fmaf(sum, p->over_n, p->eps));
  }
}

// The rows themselves, of which a thread has the cells in u.
INLINE void embed_cells_second(const EmbedParams *p, const CellShape &s, const Cell &c, const uint32_t u[CELL_GROUPS][4], int rows, bool joined, char *second, int size) {
  bool parts = __any_sync(~0u, c.part);
  char *to = second + c.row * p->second_stride + c.column * size;
#pragma unroll
  for (int g = 0; g < CELL_GROUPS; g++, to += s.period * p->second_stride) {
    uint32_t v[4] = {u[g][0], u[g][1], u[g][2], u[g][3]};
    cell_give(c, size, to, c.row + g * s.period < rows, joined, parts, v, p->stream);
  }
}

// Blocks stay: what a thread knows of its cells, weights above all, serves for all tiles.
INLINE void embed_cells(const EmbedParams *p, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2, per = 16 / size;
  const CellShape s = p->cell;
  const EmbedCells m = embed_cells_memory(s);
  const int phase = (int)((uint32_t)(uintptr_t)p->y & 15) / size, stride = (int)(p->y_stride / size);
  uint32_t weights[8];
  float w[8];
  embed_cells_hint(p, blockIdx.x * s.rows, size);
  begin_kernel();
  CellIds id = cell_ids(s, blockIdx.x);
  Cell c = cell_at(s, threadIdx.x, phase, stride, size, s.dense);
  embed_cell_weights(p, c, per, weights);
  embed_cell_floats(p, per, weights, w);
  bool odd = false;
#pragma unroll 1
  for (uint64_t tile = blockIdx.x; tile * s.rows < (uint64_t)s.m; tile += gridDim.x, odd = !odd) {
    const char **from = (const char **)(cell_memory + (odd ? CELL_FROM_BYTES : 0));
    const uint64_t first = tile * s.rows;
    const int rows = (int)min((int64_t)s.rows, s.m - (int64_t)first);
    const bool joined = s.dense && rows == s.rows;
    cell_from(s, tile, id, from);
    __syncthreads();
    id = cell_ids(s, tile + gridDim.x);
    if (s.dense && !joined) c = cell_at(s, threadIdx.x, phase, stride, size, false); // the last tile
    const bool parts = __any_sync(~0u, c.part);
    uint32_t u[CELL_GROUPS][4];
    cell_take(s, c, from, size, u);
#pragma unroll
    for (int g = 0; g < CELL_GROUPS; g++) {
#pragma unroll
      for (int q = 0; q < 4; q++) u[g][q] &= c.mask[q];
      float squares = embed_cell_squares(kind, size, u[g]);
      if ((int)threadIdx.x < s.positions) m.part[g * s.positions + threadIdx.x] = squares;
    }
    __syncthreads();
    embed_cells_scales(p, s, m);
    char *second = (char *)p->second + (int64_t)first * p->second_stride;
    if (p->second) embed_cells_second(p, s, c, u, rows, joined, second, size);
    __syncthreads();
    char *to = (char *)p->y + ((int64_t)first + c.row) * p->y_stride + c.column * size;
#pragma unroll
    for (int g = 0; g < CELL_GROUPS; g++, to += s.period * p->y_stride) {
      float f[8], scale = m.scale[c.row + g * s.period];
      widen((const Vec *)u[g], kind, size, f);
#pragma unroll
      for (int j = 0; j < per; j++) f[j] *= w[j] * scale;
      Vec v;
      narrow(&v, size == 2 ? p->y_kind : kind, size, f);
      cell_give(c, size, to, c.row + g * s.period < rows, joined, parts, v.u, p->stream);
    }
  }
}

#endif
