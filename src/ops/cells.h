// How rows that start anywhere are given to a block's threads by the cells of 16 bytes of y: kernels/cells.cuh.
#ifndef SOL_OPS_CELLS_H
#define SOL_OPS_CELLS_H

#include <stdbool.h>

#include "kernels/cells.h"
#include "ops/cpu.h"

typedef struct CellRows {
  int64_t n, y_stride, x_stride, rows; // elements; rows: of the table
  const char *x;
  int size; // of an element
  int64_t m;
  const void *ids;
  bool wide_ids;
  int32_t *bad; // NULL: no flag
} CellRows;

// As many rows for a group that few threads are without a cell, and few where there would be few tiles. 0: rows are too long; otherwise the
// threads of a block. (What a row's cells are depends on its own address alone.)
static inline int cells_plan(const SolContext *ctx, const CellRows *r, CellShape *s) {
  enum { TILES = 8, MOST = 24 << 10 }; // an SM; bytes of y in a tile
  int64_t per = 16 / r->size, cells = ops_ceil_div(r->n + per - 1, per), unit = per;
  while (unit > 1 && r->y_stride * (unit / 2) % per == 0) unit /= 2;
  double best = 0;
  int threads = 0;
  *s = (CellShape){.n = (int32_t)r->n,
                   .cells = (int32_t)cells,
                   .dense = r->y_stride == r->n,
                   .m = r->m,
                   .count = r->rows,
                   .stride = r->x_stride * r->size,
                   .ids = r->ids,
                   .wide_ids = r->wide_ids,
                   .bad = r->bad};
  s->over = (uint32_t)(UINT32_MAX / (uint64_t)cells + 1);
  s->begin = r->x, s->end = r->x + ((r->rows - 1) * r->x_stride + r->n) * r->size;
  s->edges = ((uintptr_t)s->begin | (uintptr_t)s->end) % 16 != 0;
  for (int64_t rows = unit; rows == unit || rows * CELL_GROUPS * r->n * r->size <= MOST; rows += unit) {
    int64_t positions = rows * cells;
    if (rows * CELL_GROUPS > CELL_MOST_ROWS || (rows > unit && r->m < rows * ctx->sms * TILES)) break;
    for (int t = 128; t <= CELL_MOST_THREADS; t += 32) {
      double used = (double)positions / (double)t;
      if (used > 1 || rows * CELL_GROUPS > CELL_IDS * t || used <= best + 0.01) continue;
      best = used, threads = t;
      s->period = (int32_t)rows, s->positions = (int32_t)positions;
    }
  }
  if (!threads) return 0;
  int64_t groups = r->m ? ops_ceil_div(r->m, s->period * ctx->sms * TILES) : 1;
  s->rows = (int32_t)(s->period * cpu_min(groups, CELL_GROUPS));
  return threads;
}

// Blocks that stay, as many as are there at a time.
static inline void cells_grid(const SolContext *ctx, const CellShape *s, int threads, OpsLaunch *l) {
  enum { REGISTERS = 64, ALL = 65536 };
  int64_t blocks = (int64_t)ctx->sms * (ALL / (REGISTERS * threads));
  ops_grid(l->grid, (uint64_t)cpu_min(blocks, ops_ceil_div(s->m, s->rows)), 1);
  l->block = (uint32_t)threads;
}

#endif
