// What softmax and log_softmax share, all but the name and the last step; and the kernels, with cross_entropy.
#ifndef SOL_OPS_SOFTMAX_H
#define SOL_OPS_SOFTMAX_H

#include "kernels/common.h"
#include "kernels/softmax/softmax.h"
#include "ops/operation.h"

enum {
#define ROW(id, ...) SOFTMAX_##id,
#include "ops/softmax_kernels.def"
  SOFTMAX_KERNELS
};
extern const char *const softmax_kernels[SOFTMAX_KERNELS];
extern const uint32_t softmax_shared[SOFTMAX_KERNELS]; // bytes

// Rows for every kernel, aligned and not.
enum { SOFTMAX_SHAPES = 32 };
extern const int64_t softmax_shapes[SOFTMAX_SHAPES][4];

bool softmax_make(const OpsCase *c, void *args);
int softmax_views(const void *args, OpsView *v);
SolStatus softmax_check(const void *args, SolError *err);
SolStatus softmax_cpu(SolContext *ctx, const SolSoftmax *a, bool log);
// last: what is asked for in the last step; the rest follows from a.
SolStatus softmax_launch(SolContext *ctx, const OpsDef *def, const SolSoftmax *a, SoftmaxParams last,
                         SolStream stream);
void softmax_cost(const void *args, SolOpArgs *op);
// The largest element of a row, and the sum of exp(x - largest).
void softmax_reference_row(const double *x, int64_t n, double *top, double *sum);
// The fields of a definition that both have alike; cpu, launch and reference are static functions of the
// file.
#define SOFTMAX_OP                                                                                           \
  OPS_ARGS(SolSoftmax, "MxN"), .make = softmax_make, .views = softmax_views, .check = softmax_check,         \
                               .cpu = cpu, .launch = launch, .reference = reference, .cost = softmax_cost,   \
                               OPS_CASES(softmax_shapes, ops_row_bench),                                     \
                               OPS_KERNELS("softmax", softmax_kernels), .shared = softmax_shared

#endif
