// One operation on one set of tensors, filled, run and compared with its double-precision reference. Tests and
// bench both work through it, on any backend.
#ifndef SOL_MEASURE_TRIAL_H
#define SOL_MEASURE_TRIAL_H

#include "ops/operation.h"

typedef struct TrialOptions {
  uint64_t seed;
  int misalign;          // every tensor starts that many elements after an aligned address
  bool specials;         // NaN, infinities and huge values among the inputs
  bool in_place;         // tensors that may coincide do
  bool bad_ids;          // some ids are out of range
  bool without_optional; // tensors that may be absent are
} TrialOptions;

typedef struct Trial {
  const OpsDef *def;
  SolContext *ctx;
  TrialOptions options;
  OpsView view[OPS_MAX_VIEWS];
  int count;
  int shares[OPS_MAX_VIEWS];          // the view whose memory it uses; itself where its own
  void *memory[OPS_MAX_VIEWS];        // on the backend
  unsigned char *host[OPS_MAX_VIEWS]; // what was written there before the run
  size_t bytes[OPS_MAX_VIEWS];
  _Alignas(16) unsigned char args[512];
} Trial;

// SOL_ERR_NOT_FOUND: the operation has no such case. Close it after a failure, too.
SolStatus trial_open(Trial *t, SolContext *ctx, const OpsDef *def, const OpsCase *c,
                     const TrialOptions *options, SolError *err);
// Outputs are poisoned and inputs restored, then the operation runs to its end.
SolStatus trial_run(Trial *t, SolError *err);
// Compares every element, and everything around the outputs that must not have changed. *worst: the largest
// error as a share of what is allowed; above 1 the status is SOL_ERR_RANGE and err says where. (May be NULL.)
SolStatus trial_check(Trial *t, double *worst, SolError *err);
void trial_close(Trial *t);

// `count` elements as the tensor is filled, one after another; the same seed, the same values.
void trial_values(const OpsView *view, uint64_t seed, void *to, int64_t count);
// Element i of an array.
double trial_element(SolDtype dtype, const void *at, int64_t i);
// How far `got` is from the reference, as a share of what is allowed: the type's rounding, and `slack` times
// 2^-24 times the row's largest value. Above 1 it is wrong.
double trial_error(SolDtype dtype, double slack, double got, double want, double row_max);

#endif
