// The launch rule of kernels that hold a row in the shared memory of a cluster's blocks: kernels/held.cuh.
#ifndef SOL_OPS_HELD_H
#define SOL_OPS_HELD_H

#include "kernels/held.h"
#include "ops/operation.h"

// Rows of up to 4 KiB share a block of 128 threads: each has a power of two of lanes, at least `LEAST`, and few chunks a
// lane, all in shared memory.
static inline HeldShape held_short(int64_t rows, int64_t chunks, OpsLaunch *l) {
  enum { THREADS = 128, EACH = 2, LEAST = 4 };
  HeldShape s = {.m = (uint64_t)rows, .lanes = LEAST};
  while (s.lanes < 32 && s.lanes * EACH < chunks) s.lanes *= 2;
  s.rows = THREADS / s.lanes;
  l->block = THREADS;
  l->shared = (uint32_t)(ops_ceil_div(chunks, s.lanes) * THREADS * 16);
  s.shared = (int32_t)l->shared;
  ops_grid(l->grid, (uint64_t)ops_ceil_div(rows, s.rows), 1);
  return s;
}

// Longer ones: a block has up to `bytes` of a row; a longer row takes more blocks, up to a cluster of `most`, and only then more of
// each. A thread has `each` chunks, or more where that would be too many threads.
static inline HeldShape held_blocks(const SolContext *ctx, int64_t rows, int64_t chunks, int64_t bytes,
                                    int most, int each, OpsLaunch *l) {
  int64_t blocks = 1;
  while (ctx->cc >= 90 && blocks < most && chunks * 16 > bytes * blocks) blocks *= 2;
  int64_t threads = ops_ceil_div(ops_ceil_div(chunks, blocks * each), 32) * 32;
  l->block = (uint32_t)(threads > HELD_THREADS ? HELD_THREADS : threads);
  l->cluster = (uint32_t)blocks;
  int64_t shared = ops_ceil_div(chunks, blocks * l->block) * l->block * 16;
  if (shared > HELD_SHARED) shared = HELD_SHARED;
  l->shared = (uint32_t)shared;
  ops_grid(l->grid, (uint64_t)(rows * blocks), 1);
  return (HeldShape){(uint64_t)rows, 1, 32, (int32_t)l->shared};
}

#endif
