// Rows that start anywhere, by the aligned cells of 16 bytes of y: cells.cuh; host: src/ops/cells.h.
#ifndef SOL_KERNELS_CELLS_H
#define SOL_KERNELS_CELLS_H

#include <stdint.h>

enum { CELL_GROUPS = 4, CELL_MOST_THREADS = 320, CELL_MOST_ROWS = 512, CELL_ZEROS = 2048, CELL_IDS = 2, CELL_FROM_BYTES = 8 * CELL_MOST_ROWS }; // bytes of a row, at most; ids of a thread; bytes of a tile's addresses

// A block has up to CELL_GROUPS groups of rows at a time, a tile. Rows that are a period apart start alike within 16 bytes of y, so that what a
// thread has of a row in one group are the same columns in all of them, and in all tiles.
typedef struct CellShape {
  int32_t period;    // rows of a group
  int32_t rows;      // of a tile; at most two a thread
  int32_t cells;     // of a row, at most
  int32_t positions; // period * cells
  int32_t n;         // columns
  uint32_t over;     // 2^32 / cells, rounded up
  int32_t dense;     // rows of y have no gaps: two of them may share a cell
  int32_t edges;     // the table starts or ends within 16 bytes
  int32_t wide_ids;
  int32_t *bad; // NULL: no flag
  const void *ids;
  int64_t m, count;        // rows of y, of the table
  int64_t stride;          // bytes from row to row of the table
  const char *begin, *end; // of the table
} CellShape;

#endif
