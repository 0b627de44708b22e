// Short rows that start anywhere: embed_rows.cuh.
#ifndef SOL_KERNELS_EMBED_ROWS_H
#define SOL_KERNELS_EMBED_ROWS_H

#include <stdint.h>

#include "../cells.h"
#include "../tiny.h"

enum { EMBED_THREADS = 128, EMBED_LINE_EACH = 4 }; // of a block; cells of a thread, where a warp has a row

typedef struct EmbedParams {
  const void *table, *weight, *ids; // weight: NULL: ones
  void *y, *second;                 // second: the rows themselves; NULL: not wanted
  int64_t table_stride, y_stride, second_stride; // bytes
  const char *table_end;
  uint64_t m;
  int64_t vocab;
  int32_t *bad; // NULL: no flag
  int32_t n, wide_ids, weight_kind;
  float eps, offset, over_n;
  int32_t ends, second_ends; // bytes of a row of y and of second where their ends are prefetched; 0: they are not
  CellShape cell;           // of the kernel by cells
  int32_t stream, y_kind;   // there: outputs are stored so that L2 keeps the table; the type of y
  int32_t words, warp_rows; // the number in embed_rows.def, and the rows of a warp, 32 at most
} EmbedParams;

#endif
