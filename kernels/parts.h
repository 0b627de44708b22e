// What kernels that visit a row in parts, twice (parts.cuh), share with their launchers.
#ifndef SOL_KERNELS_PARTS_H
#define SOL_KERNELS_PARTS_H

#include <stdint.h>

// Threads of a block, and with them the most parts of a row.
enum { PARTS_THREADS = 256, PARTS_MOST = PARTS_THREADS };
enum { PARTS_BLOCKS = 3 }; // that fit an SM, with 64 KiB each

typedef struct PartShape {
  uint64_t rows;
  int64_t length;   // elements of a part, a multiple of 16 bytes of them
  uint32_t parts;   // of a row
  uint32_t sign[2]; // what tells words that were posted from what was in memory before
  int32_t front;    // 16-byte chunks of the input whose output has posts: they are written last
  int32_t polls;    // looks at a post before a block gives its part up
} PartShape;

#endif
