// How rows that start anywhere are given to a block's threads by the cells of 16 bytes of y: kernels/cells.cuh.
#ifndef SOL_OPS_CELLS_H
#define SOL_OPS_CELLS_H

#include <stdbool.h>

#include "kernels/cells.h"
#include "ops/cpu.h"

typedef struct CellRows {
  int64_t n, y_stride, x_stride, rows; // elements; rows: of the table
  int64_t other_stride;                // of another output; 0: none
  const char *x;
  int size;                            // of an element
} CellRows;

// As many rows for a group that few threads are without a cell, and few where there would be few blocks. once: a thread has one cell of a group at
// most. 0: there is no such number; otherwise the threads of a block. (What a row's cells are depends on its own address alone.)
static inline int cells_plan(const SolContext *ctx, const CellRows *r, int64_t m, int64_t most_bytes, bool once, CellShape *s) {
  enum { BLOCKS = 8 }; // an SM
  int64_t per = 16 / r->size, cells = ops_ceil_div(r->n + per - 1, per), unit = per;
  while (unit > 1 && (r->y_stride | r->other_stride) * (unit / 2) % per == 0) unit /= 2;
  double best = 0;
  int threads = 0;
  *s = (CellShape){.n = (int32_t)r->n, .cells = (int32_t)cells, .dense = r->y_stride == r->n};
  s->over = (uint32_t)(UINT32_MAX / (uint64_t)cells + 1);
  s->begin = r->x, s->end = r->x + ((r->rows - 1) * r->x_stride + r->n) * r->size;
  s->edges = ((uintptr_t)s->begin | (uintptr_t)s->end) % 8 != 0;
  for (int64_t rows = unit; rows == unit || rows * CELL_GROUPS * r->n * r->size <= most_bytes; rows += unit) {
    int64_t positions = rows * cells;
    if (rows * CELL_GROUPS > CELL_MOST_ROWS || (rows > unit && m < rows * ctx->sms * BLOCKS)) break;
    for (int t = 128; t <= CELL_MOST_THREADS; t += 32) {
      int64_t turns = ops_ceil_div(positions, t);
      double used = (double)positions / (double)(turns * t);
      if ((once && turns > 1) || used <= best + 0.01) continue;
      best = used, threads = t;
      s->period = (int32_t)rows, s->positions = (int32_t)positions;
    }
  }
  if (!threads) return 0;
  int64_t groups = m ? ops_ceil_div(m, s->period * ctx->sms * BLOCKS) : 1;
  s->rows = (int32_t)(s->period * cpu_min(groups, CELL_GROUPS));
  return threads;
}

#endif
