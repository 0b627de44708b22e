// What kernels that hold a row in the shared memory of a cluster's blocks share with their launchers.
#ifndef SOL_KERNELS_HELD_H
#define SOL_KERNELS_HELD_H

#include <stdint.h>

// The most dynamic shared memory of a block for its rows, and the most threads.
enum { HELD_SHARED = 64 << 10, HELD_THREADS = 512 };

typedef struct HeldShape {
  uint64_t m;          // rows in all
  int32_t rows, lanes; // of a block; of a warp on a row: 32 unless several rows share a block
  int32_t shared;      // bytes for them, all rows of a block together
} HeldShape;

#endif
