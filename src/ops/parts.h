// The launch rule of kernels that cut rows into parts over the whole GPU: kernels/parts.cuh.
#ifndef SOL_OPS_PARTS_H
#define SOL_OPS_PARTS_H

#include "kernels/parts.h"
#include "ops/operation.h"

enum { PARTS_SHARED = 64 << 10 }; // bytes of shared memory that a part has at most

// Into how many parts a row of so many bytes is cut: they have `held` bytes, or as much more as makes no more of them than a block has threads and
// than run at a time. 0: this GPU has no such kernels.
static inline int64_t parts_count(const SolContext *ctx, int64_t bytes, int64_t held) {
  int64_t most = (int64_t)ctx->sms * 2, parts = ops_ceil_div(bytes, held);
  if (ctx->cc < 80) return 0;
  if (most > PARTS_MOST) most = PARTS_MOST;
  return parts < most ? parts : most;
}

// The same where all of a row is to be held; 0 where that is too much.
static inline int64_t parts_held(const SolContext *ctx, int64_t bytes, int64_t held) {
  int64_t parts = parts_count(ctx, bytes, held);
  return parts * held >= bytes ? parts : 0;
}

// Blocks of a cluster, each with up to `held` bytes of a row; 0: that is too many.
static inline int64_t parts_cluster(const SolContext *ctx, int64_t bytes, int64_t held) {
  int64_t most = ctx->cc >= 90 ? 16 : 1, blocks = ops_ceil_div(bytes, held);
  return blocks <= most ? blocks : 0;
}

// relay.cuh: rows between those that are summed up and those that are written. With fewer rows than `lag` turns of blocks without any would be in between.
static inline uint32_t parts_lag(uint64_t rows, int64_t lag) {
  return (uint32_t)(rows < (uint64_t)lag ? rows : (uint64_t)lag);
}

// A shape of `rows` rows of n elements of `in` bytes, cut into so many parts. How a row is cut depends on n alone. y: the
// output, of elements of `out` bytes.
static inline PartShape parts_shape(const void *y, int64_t rows, int64_t n, int in, int out, int64_t parts) {
  int64_t per = 16 / in, line = 128 / in, length = ops_ceil_div(ops_ceil_div(n, parts), line) * line;
  parts = (n - per) / length + 1; // wherever the row's first chunk begins, the last part has an element
  uint64_t sign = ((uint64_t)(uintptr_t)y ^ (uint64_t)n << 40) * 0x9e3779b97f4a7c15u ^ 0xd1b54a32d192ed03u;
  return (PartShape){.rows = (uint64_t)rows,
                     .length = length,
                     .parts = (uint32_t)parts,
                     .sign = {(uint32_t)sign, (uint32_t)(sign >> 32)},
                     .polls = 256 * (int32_t)(1 + length * in / PARTS_SHARED), // of some 0.5 us each
                     .front =
                         (int32_t)ops_ceil_div(16 + 24 * parts, per * out * PARTS_THREADS) * PARTS_THREADS};
}

// Grid and block of a launch.
static inline void parts_launch(const PartShape *s, OpsLaunch *l) {
  l->block = PARTS_THREADS;
  ops_grid(l->grid, s->rows * (s->parts + 1) + 1, 1);
}

#endif
