#ifndef SOL_KERNELS_TRANSPOSE_H
#define SOL_KERNELS_TRANSPOSE_H
#include "../elementwise.h"

// Elements whose sectors (32 bytes) a row of y may be off by: a tile that stores whole sectors needs so many more rows.
#define TRANSPOSE_SLACK(size) (32 / (size))
// How many threads each kind of kernel takes for a tile (transpose.cuh).
#define TRANSPOSE_THREADS_WIDE(size, tall, wide, rows)   ((tall) / (rows) * (wide) * (size) / 16)
#define TRANSPOSE_THREADS_ODD(size, tall, wide, rows)    ((tall) * (wide) / (rows))
#define TRANSPOSE_THREADS_PLAIN                          TRANSPOSE_THREADS_ODD
#define TRANSPOSE_THREADS_SHIFT                          TRANSPOSE_THREADS_WIDE
#define TRANSPOSE_THREADS_CHUNKS(size, tall, wide, rows) (TRANSPOSE_CHUNKS * (tall) / (rows))
#define TRANSPOSE_THREADS_DIRECT(size, tall, wide, rows) ((wide) / ((size) < 4 ? 4 / (size) : 1))
#define TRANSPOSE_THREADS_FEW_ROWS(size, tall, wide, rows)    256
#define TRANSPOSE_THREADS_FEW_COLUMNS(size, tall, wide, rows) 256
#define TRANSPOSE_THREADS_SINGLE(size, tall, wide, rows)      256
#define TRANSPOSE_THREADS_GATHER(size, tall, wide, rows)      TRANSPOSE_GATHER_THREADS
enum { TRANSPOSE_GATHER_THREADS = 256, TRANSPOSE_CHUNKS = 16 }; // chunks of a row that a tile loads

// Blocks: x walks down the tiles of a column of tiles, so that neighbours write neighbouring pieces of y's rows;
// y and z together count the columns of tiles, batch after batch.
typedef struct TransposeParams {
  void *y;
  const void *x;
  int64_t m, n;                                 // of x
  int64_t y_stride, x_stride, y_batch, x_batch; // bytes
  uint32_t batches, tiles_n;
  int32_t span, pitch; // few rows or columns, gather: elements of a long row in a block, bytes of it in shared memory
  uint32_t ahead_m, ahead_n; // a block prefetches into L2 the tile this many tiles further on; none where both are 0
  Divider32 of_m, of_n;      // single elements, few rows: by m; single elements: by n
  // Few rows: 1 << lane_bits threads bring a row; how many threads put packed rows together, and how far on in shared memory a thread's next chunk is.
  int32_t lane_bits, active, step;
} TransposeParams;

#endif
