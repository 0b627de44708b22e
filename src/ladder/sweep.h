// What sweeps share. Their arrays hold small whole numbers, so that sums of floats are exact in any order.
#ifndef SOL_LADDER_SWEEP_H
#define SOL_LADDER_SWEEP_H

#include "base/error.h"
#include "kernels/sweeps/rungs.h"
#include "ladder/ladder.h"

static inline uint32_t sweep_blocks(int64_t work, int64_t each) {
  return (uint32_t)((work + each - 1) / each);
}

static inline float *sweep_at(const LadderCall *call, int buffer) {
  return (float *)(uintptr_t)call->at[buffer];
}

static inline const float *sweep_in(const LadderHost *h, int buffer) {
  return h->in[buffer];
}

// 0 to 15, without an order that a kernel could get wrong unnoticed.
static inline void sweep_numbers(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  float *f = to;
  for (int64_t i = 0; i < count; i++) f[i] = (float)(sweep_scatter((uint32_t)i) >> 28);
}

// What a point leaves alone of an array stays 0, and is checked for it.
static inline void sweep_zeros(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  memset(to, 0, sizeof(float) * (size_t)count);
}

static inline LadderBuffer sweep_input(const char *name, int64_t count) {
  return (LadderBuffer){
      .name = name, .dtype = SOL_FP32, .count = count, .role = OPS_IN, .make = sweep_numbers};
}

static inline LadderBuffer sweep_output(const char *name, int64_t count) {
  return (LadderBuffer){.name = name, .dtype = SOL_FP32, .count = count, .role = OPS_OUT};
}

// An output of which a point writes a part.
static inline LadderBuffer sweep_partial(const char *name, int64_t count) {
  return (LadderBuffer){
      .name = name, .dtype = SOL_FP32, .count = count, .role = OPS_INOUT, .make = sweep_zeros};
}

// Grids are at most 2^31 - 1 blocks long.
static inline SolStatus sweep_at_most(const LadderCase *c, int64_t most, const char *what, SolError *err) {
  if (c->dim[0] <= most) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "at most %lld %s", (long long)most, what);
}

#endif
