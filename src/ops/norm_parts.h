// What the files that choose a row normalisation's kernel share: norm_launch.c, norm_short.c for short rows, norm_long.c for rows in shared memory.
#ifndef SOL_OPS_NORM_PARTS_H
#define SOL_OPS_NORM_PARTS_H

#include "ops/norm.h"

enum { NORM_PER_TYPE = NORM_h_lanes2 }; // kernels of a type

// A call, what follows from it, and the launch that is being planned.
typedef struct NormPlan {
  const SolContext *ctx;
  NormCall *call;
  NormParams *p;        // the call's
  int kind, type;       // of the input; 0, 1, 2: fp32, fp16, bf16
  int64_t in, out, per; // bytes of an element; elements of the input in 16 bytes
  bool clusters;        // the GPU has clusters, and the kernels that need them
  OpsLaunch l;
} NormPlan;

// The kernel of that name (of fp32 in norm.def) for the call's type.
static inline int norm_kernel(const NormPlan *a, int kernel) {
  return a->call->fp8 + a->type * NORM_PER_TYPE + kernel;
}

static inline int norm_bits(int64_t v) { // of the next power of two
  int bits = 0;
  while ((int64_t)1 << bits < v) bits++;
  return bits;
}

static inline bool norm_on_16(const void *at, int64_t stride) {
  return ((uintptr_t)at | (uint64_t)stride) % 16 == 0;
}

NormPlan norm_plan(const SolContext *ctx, NormCall *call, bool clusters);
// How many rows ahead a block prefetches into L2: measured. It does not change results.
int32_t norm_rows_ahead(const NormParams *p, int64_t row_bytes, int kernel);
// Vectors on 16 bytes, of the input's type, and one input: rows in shared memory are then read and written by chunks.
bool norm_has_plain_vectors(const NormPlan *a);

// Aligned rows of layernorm in the shared memory of a block or a cluster: it always plans the launch.
void norm_plan_layer(NormPlan *a);
// Each plans the launch, or returns false: rows are too short or too long for it, or not such.
bool norm_plan_short(NormPlan *a);
bool norm_plan_rows(NormPlan *a);      // 16-bit rows of layernorm, several to a block one after another
bool norm_plan_shifted(NormPlan *a);   // long ones that start anywhere, held so; input and output alike
bool norm_plan_clustered(NormPlan *a); // in the shared memory of a cluster; input and output of one type
bool norm_plan_spread(NormPlan *a);    // any in the shared memory of a cluster
bool norm_plan_relay(NormPlan *a);     // any that are read twice, the second time out of L2; not in place

#endif
