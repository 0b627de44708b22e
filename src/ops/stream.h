// The launch rule of kernels that pass parts of rows through the shared memory of blocks that stay: kernels/stream.cuh.
#ifndef SOL_OPS_STREAM_H
#define SOL_OPS_STREAM_H

#include "kernels/stream.h"
#include "ops/parts.h"

enum { STREAM_SHARED = (227 << 10) - (4 << 10) }; // of a block, beside what the kernel has of its own
enum { STREAM_PART = 189 }; // lines of 128 bytes of a part, unless there are too many parts
// Chunks of a slot, at most, and bytes that a block has under way: with fewer the memory is idle, with more posts wait behind them.
enum { STREAM_CHUNKS = 7 * STREAM_WORKERS, STREAM_FLIGHT = 48 << 10 };

// Slots that parts of so many chunks pass through: as few as there can be.
static inline void stream_slots(StreamShape *s, int64_t chunks) {
  s->of_part = (int32_t)ops_ceil_div(chunks, STREAM_CHUNKS);
  s->slot_chunks = (int32_t)ops_ceil_div(chunks, s->of_part);
}

// Fills s, whose tensors are given, for `rows` rows of elements of `in` bytes, to `out`, and the launch. A part fits a slot, or has as much more as makes no more parts than there are
// SMs. room: bytes that the operation needs for a part of so many elements, NULL: none. False: this GPU has no such kernels, or the blocks together do not hold a row beside what they load and write.
static inline bool stream_shape(const SolContext *ctx, int64_t rows, int in, int out,
                                int64_t (*room)(const void *args, int64_t elements), const void *args,
                                StreamShape *s, OpsLaunch *l) {
  int64_t per = 16 / in, lines = (s->n - per) / (128 / in), parts = ops_ceil_div(lines, STREAM_PART);
  int64_t most = ctx->sms < STREAM_PARTS ? ctx->sms : STREAM_PARTS;
  bool has_shared = ctx->cc >= 90 && ctx->cc < 120; // 12.x: 99 KiB a block
  if (parts > most) parts = most;
  if (!has_shared || s->x == s->y || rows == 0 || parts < 1) return false;
  s->parts = parts_shape(s->y, rows, s->n, in, out, parts);
  s->parts.parts = (uint32_t)parts;
  s->parts.length = lines / parts, s->longer = (uint32_t)(lines % parts);
  int64_t chunks = (s->parts.length + 2) * 8 + 1; // of a part, at most
  s->room_bytes = (int32_t)ops_ceil_div(room ? room(args, (chunks + 2) * per) : 0, 16) * 16;
  stream_slots(s, chunks);
  if (parts > 1 && 16 + 16 * parts > s->parts.length * (128 / in) * out)
    return false; // posts are in a part's output
  for (s->slots = STREAM_SLOTS; s->slots > s->of_part; s->slots--) {
    s->items = (s->slots + 2 * s->of_part - 2) / s->of_part; // a part's place is free when its last slot is
    l->shared = (uint32_t)(s->slots * s->slot_chunks * 16 + s->items * s->room_bytes);
    if (l->shared <= STREAM_SHARED) break;
  }
  if (s->slots <= s->of_part) return false;
  int64_t flight = ops_ceil_div(STREAM_FLIGHT, s->slot_chunks * 16);
  s->flight = (int32_t)(flight < s->slots ? flight : s->slots);
  l->block = STREAM_THREADS;
  l->grid[0] = (uint32_t)(rows * parts < ctx->sms ? rows * parts : ctx->sms);
  return true;
}

#endif
