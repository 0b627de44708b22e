// What the rungs of the gather are launched with.
#ifndef SOL_KERNELS_GATHER_RUNGS_H
#define SOL_KERNELS_GATHER_RUNGS_H
#include <stdint.h>

typedef struct GatherRung {
  float *y;           // (count)
  const float *x;     // the table
  const int32_t *ids; // one an element; batched: one a run of `run` elements
  uint64_t count, run;
} GatherRung;

#endif
