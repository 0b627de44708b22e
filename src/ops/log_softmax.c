// y = x - max - log(sum(exp(x - max))) by rows
#include <math.h>

#include "ops/softmax.h"

static SolStatus cpu(SolContext *ctx, const void *args) {
  return softmax_cpu(ctx, args, true);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  return softmax_launch(ctx, &ops_log_softmax, args, (SoftmaxParams){.log = 1, .scale = 1}, stream);
}

static void reference(const void *args, double *const *at) {
  const SolSoftmax *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double top, sum;
    softmax_reference_row(x, a->n, &top, &sum);
    for (int64_t i = 0; i < a->n; i++) at[0][row * a->n + i] = x[i] - top - log(sum);
  }
}

const OpsDef ops_log_softmax = {.name = "log_softmax", SOFTMAX_OP, .slack = 8};
