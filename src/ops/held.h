// The launch rule of kernels that hold a row in the shared memory of a cluster's blocks: kernels/held.cuh.
#ifndef SOL_OPS_HELD_H
#define SOL_OPS_HELD_H

#include "kernels/held.h"
#include "ops/operation.h"

// Fills block, cluster, grid and shared of a launch over `rows` rows of n elements of `in` bytes. It depends on n alone,
// never on the number of rows. `holds`: the row is wanted more than once. A block has about 16 KiB of a row, so that
// several are on an SM and one loads while another stores; a longer row takes more blocks, up to a cluster of 16, and
// only then more of each.
static inline void held_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, bool holds,
                             OpsLaunch *l) {
  enum { MOST_BLOCKS = 16, OF_BLOCK = 16 << 10, EACH = 8 }; // EACH: chunks of a thread
  int64_t chunks = ops_ceil_div(n, 16 / in), blocks = 1;
  while (ctx->cc >= 90 && blocks < MOST_BLOCKS && chunks * 16 > OF_BLOCK * blocks) blocks *= 2;
  int64_t threads = ops_ceil_div(ops_ceil_div(chunks, blocks * EACH), 32) * 32;
  l->block = (uint32_t)(threads > HELD_THREADS ? HELD_THREADS : threads);
  l->cluster = (uint32_t)blocks;
  int64_t shared = ops_ceil_div(chunks, blocks * l->block) * l->block * 16;
  if (shared > HELD_SHARED) shared = HELD_SHARED;
  l->shared = holds ? (uint32_t)shared : 0;
  ops_grid(l->grid, (uint64_t)(rows * blocks), 1);
}

#endif
