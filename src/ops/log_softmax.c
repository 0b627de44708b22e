// y = x - max - log(sum(exp(x - max))) by rows
#include <math.h>

#include "ops/softmax.h"

static SolStatus check(const void *args, SolError *err) {
  return softmax_check(&ops_log_softmax, args, err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  return softmax_cpu(ctx, args, true);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  return softmax_launch(ctx, &ops_log_softmax, args, true, stream);
}

static void reference(const void *args, double *const *at) {
  const SolSoftmax *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < a->n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < a->n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < a->n; i++) at[0][row * a->n + i] = x[i] - top - log(sum);
  }
}

static SolStatus cost(const void *args, SolOpArgs *op, SolError *err) {
  const SolSoftmax *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .out_dtype = a->out_dtype};
  return ops_cost_op("log_softmax", op, err);
}

const OpsDef ops_log_softmax = {
    .name = "log_softmax",
    .shape = "MxN",
    .args_bytes = sizeof(SolSoftmax),
    .make = softmax_make,
    .views = softmax_views,
    .check = check,
    .cpu = cpu,
    .launch = launch,
    .reference = reference,
    .cost = cost,
    .slack = 8,
    OPS_CASES(softmax_shapes, ops_row_bench),
    .module = "softmax",
    .kernels = softmax_kernels,
    .kernel_count = SOFTMAX_KERNELS,
    .shared = softmax_shared,
};
