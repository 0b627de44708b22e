// y = gelu(x + bias[column]), the tanh form
#include "ops/columns.h"

#include <math.h>

static const char *const kernel_names[] = {
#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each) "sol_bias_gelu_" #name,
#define COLUMNS_DENSE(in, out)                                 "sol_bias_gelu_dense_" #in "_" #out,
#define COLUMNS_ANY(in, out, alike)                            "sol_bias_gelu_" #in "_" #out "_" #alike,
#define COLUMNS_SHORT(in, out)                                 "sol_bias_gelu_short_" #in "_" #out,
#define COLUMNS_PAIRS(in, out)                                 "sol_bias_gelu_pairs_" #in "_" #out,
#define COLUMNS_SINGLE()                                       "sol_bias_gelu_single",
#include "kernels/columns.def"
};

// gelu(u) = u / (1 + exp(-2 z)), z = sqrt(2 / pi) (u + 0.044715 u^3)
static void apply(float *restrict f, const float *restrict v, int64_t count, float scale) {
  (void)scale;
  for (int64_t i = 0; v && i < count; i++) f[i] += v[i];
  for (int64_t i = 0; i < count; i++) {
    float u = f[i], z = 0.79788456080f * u * (1 + 0.044715f * u * u);
    f[i] = u / (1 + elementwise_exp(-2 * z));
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Columns a = bias_columns(args);
  return columns_cpu(ctx, &a, apply);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Columns a = bias_columns(args);
  return columns_launch(ctx, &ops_bias_gelu, &a, stream);
}

static double one(double x, double v, double scale) {
  (void)scale;
  double u = x + v, z = 0.7978845608028654 * (u + 0.044715 * u * u * u);
  return 0.5 * u * (1 + tanh(z));
}

static void reference(const void *args, double *const *at) {
  Columns a = bias_columns(args);
  columns_reference(&a, at, one, 0);
}

const OpsDef ops_bias_gelu = {
    .name = "bias_gelu",
    BIAS_OP,
    .slack = 16,
    OPS_KERNELS("bias_relu_scale", kernel_names),
};
