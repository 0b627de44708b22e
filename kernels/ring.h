// What kernels that take rows through a ring of shared memory (ring.cuh) share with their launchers.
#ifndef SOL_KERNELS_RING_H
#define SOL_KERNELS_RING_H

#include "parts.h"

enum { RING_SLOTS = 32, RING_PARTS = 160 }; // slots of a block, and parts of a row, at most
enum { RING_EACH = 2 };                     // chunks of a slot that a thread has
enum { RING_READY = 8 };                    // rows whose sums are on their way, at most
enum { RING_COLLECTORS = 2 };               // warps that wait for sums, for a row each
// Threads that work, at most, and those beside them: one warp loads, one stores.
enum { RING_THREADS = 512, RING_MORE = 32 * (2 + RING_COLLECTORS) };

typedef struct RingShape {
  const void *x;
  void *y;
  int64_t n, x_stride, y_stride; // elements of a row; bytes from one to the next
  PartShape parts;
  uint32_t
      teams; // so many rows are worked on at a time, by `parts` blocks each; the grid's other blocks end rows
  int32_t slots;    // of a block
  int32_t depth;    // parts that are summed up before the first of them is written
  int32_t remember; // slots of a part that are left in L2 between two reads
  int32_t bulk;     // the output is written from the slots, by asynchronous copies: it is of the input's type
  int32_t ahead;    // bytes of the next row that are prefetched into L2
} RingShape;

#endif
