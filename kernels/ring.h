// What kernels that take rows through a ring of shared memory (ring.cuh) share with their launchers.
#ifndef SOL_KERNELS_RING_H
#define SOL_KERNELS_RING_H

#include "parts.h"

// Slots of a block, threads that work and those beside them, and parts of a row, at most.
enum { RING_SLOTS = 32, RING_THREADS = 512, RING_MORE = 64, RING_PARTS = 288 };
enum { RING_EACH = 2 };  // chunks of a slot that a thread has
enum { RING_READY = 4 }; // rows whose sums are known before they are needed, at most

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
  int32_t ahead;    // bytes of the next row that are prefetched into L2
} RingShape;

#endif
