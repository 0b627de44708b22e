// What the rungs of the sum are launched with.
#ifndef SOL_KERNELS_REDUCE_RUNGS_H
#define SOL_KERNELS_REDUCE_RUNGS_H
#include <stdint.h>

enum {
  REDUCE_RUNG_THREADS = 256,
  REDUCE_RUNG_VECTORS = 4,                                             // of 16 bytes a thread
  REDUCE_RUNG_WIDE = REDUCE_RUNG_THREADS * REDUCE_RUNG_VECTORS * 4     // elements of such a block
};

typedef struct ReduceRung {
  float *y;          // one sum a block; the atomic rung and the one-pass rung: one in all
  const float *x;    // (n), on 16 bytes
  uint64_t n;
  float *part;       // one pass: a sum a block
  uint32_t *arrived; // one pass: how many blocks have left their sum; 0 before and after
} ReduceRung;

#endif
