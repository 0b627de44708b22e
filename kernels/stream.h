// What kernels of stream.cuh share with their launchers.
#ifndef SOL_KERNELS_STREAM_H
#define SOL_KERNELS_STREAM_H

#include "parts.h"

// Warps of a block that sum parts up, as many that write them, those that exchange sums with other blocks, and one that loads.
enum { STREAM_WARPS = 8, STREAM_EXCHANGES = 11, STREAM_WORKERS = 32 * STREAM_WARPS };
enum { STREAM_THREADS = 32 * (2 * STREAM_WARPS + STREAM_EXCHANGES + 1) };
enum { STREAM_SLOTS = 16, STREAM_PARTS = 160 }; // of a block, of a row: at most

enum { STREAM_POLLS = 4096 }; // looks for the other parts' sums, some milliseconds: a part that is left costs more

typedef struct StreamShape {
  const void *x;
  void *y;
  int64_t n, x_stride, y_stride; // elements of a row; bytes from one to the next
  PartShape parts;               // length: of the lines of 128 bytes that every part has
  uint32_t longer;               // so many parts, the first, have one line more
  int32_t slots, of_part;        // of a block; that a part passes through
  int32_t slot_chunks;           // of 16 bytes
  int32_t flight;                // slots that are loaded at a time, at most
  int32_t items;                 // parts that are in the slots at a time, at most
  int32_t room_bytes;            // of what the operation has beside a part's elements, for each of them
} StreamShape;

#endif
