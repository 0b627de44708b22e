// Short rows that start anywhere: embed_rows.cuh.
#ifndef SOL_KERNELS_EMBED_ROWS_H
#define SOL_KERNELS_EMBED_ROWS_H

#include <stdint.h>

#include "../tiny.h"

enum { EMBED_THREADS = 128, EMBED_JOINED_THREADS = 320 }; // of a block; at most, where rows are joined

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
  int32_t words, warp_rows; // the number in embed_rows.def, and the rows of a warp, 32 at most
  // Joined rows: how many are joined, their chunks, the rows of a block, the bytes from one to the next in shared memory, lanes that sum a row.
  int32_t joined, units, staged, pitch, lanes;
} EmbedParams;

#endif
