// What the ceiling kernels and their launcher share.
#ifndef SOL_KERNELS_CEILINGS_H
#define SOL_KERNELS_CEILINGS_H

#include <stdint.h>

// Of the streaming kernels. n counts 16-byte pieces.
typedef struct CeilingStream {
  uint64_t in, out, n;
  uint32_t repeat; // times over the same bytes: those that stay in L2
  uint32_t
      keep; // reading kernels: store what was read, so that a test can check it; 0: only if it is all ones
} CeilingStream;

// Of the kernels that time themselves or compute.
typedef struct CeilingWork {
  uint64_t in;     // chains of indices
  uint64_t out;    // results, where keep is not 0
  uint64_t clocks; // uint64_t[4] for each block: clocks and nanoseconds it took, where a walk ended
  uint32_t warm, steps, keep;
  float scale, add; // of the arithmetic: x = x * scale + add
} CeilingWork;

enum {
  CEILING_BLOCK = 256,    // threads of the streaming kernels' blocks
  CEILING_FMA_CHAINS = 8, // independent sums of a thread, so that latency does not count
  CEILING_MMA_CHAINS = 4, // likewise of a warp
  CEILING_SHARED_THREADS = 1024,
  CEILING_SHARED_UNROLL = 8
};

#endif
