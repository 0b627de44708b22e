// The launch rule of kernels that take rows through a ring of shared memory: kernels/ring.cuh.
#ifndef SOL_OPS_RING_H
#define SOL_OPS_RING_H

#include <stdlib.h>

#include "kernels/ring.h"
#include "ops/parts.h"

enum { RING_SHARED = (227 << 10) - (4 << 10) }; // of a block, beside what the kernel has of its own

// Parts of a row: of about `piece` bytes, and so many that few blocks are left when the GPU's are dealt to teams; or all blocks.
static inline int64_t ring_parts(int64_t blocks, int64_t bytes, int64_t piece) {
  int64_t least = ops_ceil_div(bytes, piece), best = least;
  if (blocks > RING_PARTS) blocks = RING_PARTS;
  if (2 * least > blocks) return blocks;
  for (int64_t parts = least; parts <= least + least / 3; parts++)
    if (blocks / parts * parts > blocks / best * best) best = parts;
  return best;
}

// knobs: threads, blocks an SM, KiB of a part, spare
static inline void ring_knobs(const char *name, int64_t *k, int count) {
  const char *env = getenv(name);
  for (int i = 0; env && *env && i < count; i++) k[i] = strtoll(env, (char **)&env, 10), env += *env == ',';
}

// Fills r, whose tensors are given, for `rows` rows of elements of `in` bytes, to `out`, and the launch. besides: bytes of shared memory that a part
// needs for each that it has, in all and for each row that is under way. False: they are not such rows.
static inline bool ring_shape(const SolContext *ctx, const int64_t *k, int64_t rows, int in, int out,
                              RingShape *r, OpsLaunch *l) {
  int64_t per = 16 / in, blocks = ctx->sms - 1;
  if (ctx->cc < 90 || k[1] == 0 || blocks < 1 || r->x == r->y) return false;
  r->parts = parts_shape(r->y, rows, r->n, in, out, ring_parts(blocks, r->n * in, k[2] << 10));
  r->parts.front = (int32_t)ops_ceil_div(16 + 24 * r->parts.parts, per * out);
  if (r->parts.front * per > r->parts.length - per) return false;
  r->parts.polls = 4096; // some milliseconds: a part that is given up costs more
  r->teams = (uint32_t)(blocks / r->parts.parts);
  l->block = (uint32_t)k[0] + RING_MORE;
  l->grid[0] = (uint32_t)blocks + 1;
  l->cluster = 1;
  return true;
}

// Slots in what is left of the shared memory, beside `besides` bytes. Returns the bytes of slots, 0: too few.
static inline int64_t ring_slots(const int64_t *k, int in, int64_t besides, RingShape *r) {
  int64_t turn = k[0] * 16 * RING_EACH, need = ops_ceil_div(r->parts.length * in + 32, turn);
  int64_t slots = (RING_SHARED - besides) / turn, depth;
  if (slots < 3) return 0;
  r->slots = (int32_t)(slots < RING_SLOTS ? slots : RING_SLOTS);
  depth = r->slots / need - k[3];
  r->depth = (int32_t)(depth < 1 ? 1 : depth > 3 ? 3 : depth);
  return r->slots * turn;
}

#endif
