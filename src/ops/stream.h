// The launch rule of kernels that pass parts of rows through the shared memory of blocks that stay: kernels/stream.cuh.
#ifndef SOL_OPS_STREAM_H
#define SOL_OPS_STREAM_H

#include "kernels/stream.h"
#include "ops/parts.h"

enum { STREAM_SHARED = (227 << 10) - (4 << 10) }; // of a block, beside what the kernel has of its own

// Fills s, whose tensors are given, for `rows` rows of elements of `in` bytes, to `out`, in parts of some `target` bytes with a room of so many bytes each, and the launch.
// False: this GPU has no such kernels, or the blocks together do not hold a row beside what they load and write.
static inline bool stream_shape(const SolContext *ctx, int64_t rows, int in, int out, int64_t target,
                                int32_t room, StreamShape *s, OpsLaunch *l) {
  int64_t parts = ops_ceil_div(s->n * in, target), blocks = ctx->sms;
  bool has_shared = ctx->cc >= 90 && ctx->cc < 120; // 12.x: 99 KiB a block
  if (!has_shared || s->x == s->y || rows * parts == 0) return false;
  s->parts = parts_shape(s->y, rows, s->n, in, out, parts);
  parts = s->parts.parts;
  s->room_bytes = (room + 15) / 16 * 16;
  s->slot_bytes = (int32_t)((s->parts.length * in + 16 + s->room_bytes + 127) / 128 * 128);
  int64_t slots = STREAM_SHARED / s->slot_bytes;
  s->slots = (int32_t)(slots < STREAM_SLOTS ? slots : STREAM_SLOTS);
  if (s->slots < ops_ceil_div(parts, blocks) + 2) return false;
  l->block = (uint32_t)(STREAM_THREADS - 32 * (STREAM_SLOTS - s->slots));
  l->grid[0] = (uint32_t)(rows * parts < blocks ? rows * parts : blocks);
  l->shared = (uint32_t)(s->slots * s->slot_bytes);
  return true;
}

#endif
