// Counts by instruction that CUPTI gets by patching kernels ("smsp__sass_..."): exact where the hardware's
// own counters also hold what the pipes lost to each other. Shared memory's wavefronts are such a count.
//
//   Sass *s;
//   sass_open(device, names, count, &s, &err);
//   sass_range(s, work, ctx, values, &err);     work launches and waits; it is run once
//   sass_close(s);
#ifndef SOL_MEASURE_SASS_H
#define SOL_MEASURE_SASS_H

#include "measure/counters.h"

typedef struct Sass Sass;

// device: the GPU's number, whose primary context the work has to use. Names are kept, not copied.
// SOL_ERR_UNSUPPORTED: no CUPTI, or this GPU has none of them.
SolStatus sass_open(int device, const char *const *metrics, int count, Sass **out, SolError *err);
void sass_close(Sass *sass); // NULL is fine
// Summed over every instruction that `work` executes; not-a-number for a metric that this GPU does not have.
SolStatus sass_range(Sass *sass, CountersWork *work, void *ctx, double *values, SolError *err);

#endif
