// Rows that lie side by side in an output and start anywhere in the input: so many of them are joined as are whole chunks of 16 bytes.
#ifndef SOL_OPS_JOINED_H
#define SOL_OPS_JOINED_H
#include "ops/cpu.h"
#include <stdlib.h>

typedef struct Joined {
  int32_t rows, units; // rows that are joined; their chunks
  uint32_t threads;    // of a block
  int32_t staged;      // rows of a block, whole numbers of joined ones
} Joined;

// Threads of a block of which most have something to do where each has one of `units` chunks, or one of each so many threads.
static inline int64_t joined_threads(int64_t units, int64_t most) {
  enum { LEAST = 96 };
  int64_t best = LEAST, used = 0; // used: of a thousand
  for (int64_t threads = LEAST; threads <= most; threads += 32) {
    int64_t busy = units <= threads ? threads / units * units * 1000 / threads
                                    : units * 1000 / (ops_ceil_div(units, threads) * threads);
    if (busy > used) used = busy, best = threads;
  }
  return best;
}

// m rows of `bytes` in the output, for each of which `shared` bytes of shared memory are needed. most: threads of a block.
static inline Joined joined_shape(const SolContext *ctx, int64_t m, int64_t bytes, int64_t shared,
                                  int64_t most) {
  enum { EACH = 128, SHARED = 44 << 10 }; // bytes of shared memory for a thread of a block; of a block
  int64_t bits = bytes | 16, joined = 16 / (bits & -bits), units = bytes * joined / 16,
          threads = joined_threads(units, most);
  int64_t hold = cpu_min(threads * EACH, SHARED) / shared,
          few = ops_ceil_div(m, 4 * (int64_t)ctx->sms), // all SMs have some
      rows = cpu_min(hold, few);
  return (Joined){(int32_t)joined, (int32_t)units, (uint32_t)threads,
                  (int32_t)(rows < joined ? joined : rows / joined * joined)};
}

#endif
