// Host side of kernels/tile.cuh: what of a tensor a block stages in shared memory, and where.
#ifndef SOL_OPS_TILE_H
#define SOL_OPS_TILE_H

#include "kernels/tile.h"
#include "ops/elementwise.h"

// x (m, n), and y, if `out` is not 0; strides in elements; in, out: bytes of an element. A block has about `bytes` of shared memory, and
// whole multiples of `step` columns, one at least; of rows, if it can, whole multiples of `turn`.
typedef struct TileNeed {
  int64_t m, n, x_stride, y_stride, in, out, step, turn, bytes;
} TileNeed;

// Sets the grid and the shared memory, too.
TileShape tile_shape(const SolContext *ctx, TileNeed t, OpsLaunch *l);

#endif
