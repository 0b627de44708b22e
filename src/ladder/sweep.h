// What sweeps share. Their arrays hold small whole numbers, so that sums of floats are exact in any order.
//   array job: y and x of N floats, each moved once
#ifndef SOL_LADDER_SWEEP_H
#define SOL_LADDER_SWEEP_H

#include "kernels/sweeps/rungs.h"
#include "ladder/ladder.h"

enum { SWEEP_Y, SWEEP_X, SWEEP_BUFFERS };

// A point that is named by its parameter.
#define SWEEP_POINT(value) .name = #value, .x = (value)
// Fields that every sweep has alike.
#define SWEEP_OF(parameter) .sweep = true, .axis = parameter, .dtypes = {SOL_FP32}

static inline uint32_t sweep_blocks(int64_t work, int64_t each) {
  return (uint32_t)((work + each - 1) / each);
}

static inline const float *sweep_in(const LadderHost *h, int buffer) {
  return h->in[buffer];
}

LadderBuffer sweep_input(const char *name, int64_t count);
LadderBuffer sweep_output(const char *name, int64_t count);
// An output of which a point writes a part; the rest must stay 0.
LadderBuffer sweep_partial(const char *name, int64_t count);

int sweep_array_buffers(const LadderCase *c, LadderBuffer *b);
double sweep_array_bytes(const LadderCase *c, const LadderRung *rung);
void sweep_copied(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out); // y = x
#define SWEEP_ARRAY_JOB .shape = "N", .buffers = sweep_array_buffers
// One thread for each of `threads`, in blocks of `block`.
SolStatus sweep_launch(const LadderCall *call, const char *kernel, int64_t threads, uint32_t block,
                       uint32_t shared, SolError *err);
#define SWEEP_GRID_LIMIT .most = INT64_C(1) << 36, .most_of = "elements: a grid has 2^31 - 1 blocks"

// Times are compared, not rates: moving bytes of global memory is not what such a sweep is about.
double sweep_no_bytes(const LadderCase *c, const LadderRung *rung);

// The dynamic shared memory with which an SM holds at most so many blocks.
SolStatus sweep_shared_for(const LadderCall *call, uint64_t blocks, uint32_t *out, SolError *err);

#endif
