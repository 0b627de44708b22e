// The launch rule of kernels that take rows through a ring of shared memory: kernels/ring.cuh.
#ifndef SOL_OPS_RING_H
#define SOL_OPS_RING_H

#include "kernels/ring.h"
#include "ops/parts.h"

enum { RING_SHARED = (227 << 10) - (4 << 10) };     // of a block, beside what the kernel has of its own
enum { RING_TURN = RING_THREADS * 16 * RING_EACH }; // bytes of a slot
enum { RING_L2 = 24 << 20 };                        // bytes of a row that should stay in L2 between two reads
enum { RING_POLLS = 4096 };                         // some milliseconds: a part that is given up costs more
enum { RING_DEPTH = 3 }; // parts that are summed up before the first is written, at most

// Fills r, whose tensors are given, for `rows` rows of elements of `in` bytes, to `out`, and the launch: all blocks but one share each row. False: this
// GPU has no such kernels, or rows are not such.
static inline bool ring_shape(const SolContext *ctx, int64_t rows, int in, int out, RingShape *r,
                              OpsLaunch *l) {
  int64_t per = 16 / in, blocks = ctx->sms - 1;
  bool has_shared = ctx->cc >= 90 && ctx->cc < 120; // 12.x: 99 KiB a block
  if (!has_shared || blocks < 1 || r->x == r->y) return false;
  r->parts = parts_shape(r->y, rows, r->n, in, out, blocks < RING_PARTS ? blocks : RING_PARTS);
  r->parts.front = (int32_t)ops_ceil_div(16 + 24 * r->parts.parts, per * out);
  r->parts.polls = RING_POLLS;
  r->teams = 1;
  l->block = RING_THREADS + RING_MORE;
  l->grid[0] = r->parts.parts + 1;
  return r->parts.front * per <= r->parts.length - per;
}

// Slots in what is left of the shared memory beside `besides` bytes. Returns their bytes.
static inline int64_t ring_slots(int in, int64_t besides, RingShape *r) {
  int64_t need = ops_ceil_div(r->parts.length * in + 32, RING_TURN),
          slots = (RING_SHARED - besides) / RING_TURN;
  int64_t depth = slots / need - 1; // one more is being loaded
  r->slots = (int32_t)slots;
  r->depth = (int32_t)(depth < 1 ? 1 : depth > RING_DEPTH ? RING_DEPTH : depth);
  r->remember = (int32_t)(RING_L2 / (r->parts.parts * RING_TURN));
  return slots * RING_TURN;
}

#endif
