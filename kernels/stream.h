// What kernels of stream.cuh share with their launchers.
#ifndef SOL_KERNELS_STREAM_H
#define SOL_KERNELS_STREAM_H

#include "parts.h"

// Slots of a block, at most; warps that sum up, and as many that write. With a warp for each slot and one that ends rows a thread has 80 registers.
enum { STREAM_SLOTS = 8, STREAM_WARPS = 8, STREAM_ITEM_THREADS = 32 * STREAM_WARPS };
enum { STREAM_THREADS = 32 * (2 * STREAM_WARPS + STREAM_SLOTS) };

enum { STREAM_POLLS = 4096 }; // looks for an answer, some milliseconds: a part that is left costs more

typedef struct StreamShape {
  const void *x;
  void *y;
  int64_t n, x_stride, y_stride; // elements of a row; bytes from one to the next
  PartShape parts;
  int32_t slots;                  // of a block
  int32_t slot_bytes, room_bytes; // of a slot, and of what the operation has there beside the part's elements, at its end
} StreamShape;

#endif
