// The launch rule of kernels that pass parts of rows through the shared memory of blocks that stay: kernels/stream.cuh.
#ifndef SOL_OPS_STREAM_H
#define SOL_OPS_STREAM_H

#include <stdlib.h>

#include "kernels/stream.h"
#include "ops/parts.h"

enum { STREAM_SHARED = (227 << 10) - (4 << 10) }; // of a block, beside what the kernel has of its own

// Fills s, whose tensors are given, for `rows` rows of elements of `in` bytes, to `out`, and the launch. A part has some `target` bytes, or as many more as make no more parts than there are
// SMs; it passes through slots of that size. room: bytes that the operation needs for a part of so many elements. False: this GPU has no such kernels, or the blocks
// together do not hold a row beside what they load and write.
static inline bool stream_shape(const SolContext *ctx, int64_t rows, int in, int out, int64_t target,
                                int64_t (*room)(const void *args, int64_t elements), const void *args,
                                StreamShape *s, OpsLaunch *l) {
  int64_t per = 16 / in, line = 128 / in, lines = (s->n - per) / line;
  int64_t most = ctx->sms < STREAM_PARTS ? ctx->sms : STREAM_PARTS, parts = ops_ceil_div(s->n * in, target);
  bool has_shared = ctx->cc >= 90 && ctx->cc < 120; // 12.x: 99 KiB a block
  if (parts > most) parts = most;
  if (!has_shared || s->x == s->y || rows == 0 || lines < parts || parts < 1) return false;
  s->parts = parts_shape(s->y, rows, s->n, in, out, parts);
  s->parts.parts = (uint32_t)parts;
  s->parts.length = lines / parts, s->longer = (uint32_t)(lines % parts);
  int64_t chunks = (s->parts.length + 2) * 8 + 1; // of a part, at most
  s->parts.front = (int32_t)ops_ceil_div(16 + 24 * parts, per * out);
  s->room_bytes = (int32_t)ops_ceil_div(room ? room(args, chunks * per + 2 * per) : 0, 16) * 16;
  s->of_part = (int32_t)ops_ceil_div(chunks * 16, target + target / 8);
  s->slot_chunks =
      (int32_t)(ops_ceil_div(ops_ceil_div(chunks, s->of_part), STREAM_WORKERS) * STREAM_WORKERS);
  if (parts > 1 && (s->parts.front > s->slot_chunks || s->parts.front > s->parts.length * 8)) return false;
  int64_t slots = STREAM_SHARED / (s->slot_chunks * 16 + s->room_bytes / s->of_part);
  for (s->slots = (int32_t)(slots < STREAM_SLOTS ? slots : STREAM_SLOTS);; s->slots--) {
    s->items = (s->slots + 2 * s->of_part - 2) / s->of_part;
    l->shared = (uint32_t)(s->slots * s->slot_chunks * 16 + s->items * s->room_bytes);
    if (s->slots <= s->of_part) return false;
    if (l->shared <= STREAM_SHARED) break;
  }
  int64_t FLIGHT = getenv("ST_FLIGHT") ? atoll(getenv("ST_FLIGHT")) : 48 << 10;
  int64_t flight = ops_ceil_div(FLIGHT, s->slot_chunks * 16);
  s->flight = (int32_t)(flight < s->slots ? flight : s->slots);
  l->block = STREAM_THREADS;
  l->grid[0] = (uint32_t)(rows * parts < ctx->sms ? rows * parts : ctx->sms);
  return true;
}

#endif
