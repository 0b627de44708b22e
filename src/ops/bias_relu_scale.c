// y = max(x + bias[column], 0) * scale
#include "ops/columns.h"

static const char *const kernel_names[] = {
#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each) "sol_bias_relu_scale_" #name,
#define COLUMNS_DENSE(in, out)                                 "sol_bias_relu_scale_dense_" #in "_" #out,
#define COLUMNS_ANY(in, out, alike)                            "sol_bias_relu_scale_" #in "_" #out "_" #alike,
#define COLUMNS_SHORT(in, out)                                 "sol_bias_relu_scale_short_" #in "_" #out,
#define COLUMNS_PAIRS(in, out)                                 "sol_bias_relu_scale_pairs_" #in "_" #out,
#define COLUMNS_SINGLE()                                       "sol_bias_relu_scale_single",
#include "kernels/columns.def"
};

static void apply(float *restrict f, const float *restrict v, int64_t count, float scale) {
  for (int64_t i = 0; v && i < count; i++) f[i] += v[i];
  for (int64_t i = 0; i < count; i++) f[i] = (f[i] < 0 ? 0 : f[i]) * scale; // a NaN is not below 0
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Columns a = bias_columns(args);
  return columns_cpu(ctx, &a, apply);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Columns a = bias_columns(args);
  return columns_launch(ctx, &ops_bias_relu_scale, &a, stream);
}

static double one(double x, double v, double scale) {
  double u = x + v;
  return (u < 0 ? 0 : u) * scale;
}

static void reference(const void *args, double *const *at) {
  Columns a = bias_columns(args);
  columns_reference(&a, at, one, 0);
}

const OpsDef ops_bias_relu_scale = {
    .name = "bias_relu_scale",
    BIAS_OP,
    .slack = 2,
    OPS_KERNELS("bias_relu_scale", kernel_names),
};
