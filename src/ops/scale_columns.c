// y = x * scale[column]
#include "ops/columns.h"

static const char *const kernel_names[] = {
#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each) "sol_scale_columns_" #name,
#define COLUMNS_DENSE(in, out)                                 "sol_scale_columns_dense_" #in "_" #out,
#define COLUMNS_ANY(in, out, alike)                            "sol_scale_columns_" #in "_" #out "_" #alike,
#define COLUMNS_SHORT(in, out)                                 "sol_scale_columns_short_" #in "_" #out,
#define COLUMNS_PAIRS(in, out)                                 "sol_scale_columns_pairs_" #in "_" #out,
#define COLUMNS_SINGLE()                                       "sol_scale_columns_single",
#include "kernels/columns.def"
};

static Columns columns_of(const void *args) {
  const SolScaleColumns *a = args;
  return (Columns){COLUMNS_OF(a), .vector = a->scale, .scale = 1,
                   .vector_field = offsetof(SolScaleColumns, scale), .vector_name = "scale"};
}

static bool make(const OpsCase *c, void *args) {
  SolScaleColumns *a = args;
  *a = (SolScaleColumns){OPS_MATRIX_CASE(c), .weight_dtype = c->weight_dtype};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->option ? 2 : 1) * c->pad;
  return !c->option || c->pad;
}

static int views(const void *args, OpsView *v) {
  Columns a = columns_of(args);
  return columns_views(&a, v);
}

static SolStatus check(const void *args, SolError *err) {
  Columns a = columns_of(args);
  return columns_check(&a, err);
}

static void apply(float *restrict f, const float *restrict v, int64_t count, float scale) {
  (void)scale;
  for (int64_t i = 0; i < count; i++) f[i] *= v[i];
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Columns a = columns_of(args);
  return columns_cpu(ctx, &a, apply);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Columns a = columns_of(args);
  return columns_launch(ctx, &ops_scale_columns, &a, stream);
}

static double one(double x, double v, double scale) {
  (void)scale;
  return x * v;
}

static void reference(const void *args, double *const *at) {
  Columns a = columns_of(args);
  columns_reference(&a, at, one, 1);
}

static void cost(const void *args, SolOpArgs *op) {
  Columns a = columns_of(args);
  columns_cost(&a, op);
}

const OpsDef ops_scale_columns = {
    .name = "scale_columns",
    OPS_ARGS(SolScaleColumns, "MxN"),
    .make = make,
    .views = views,
    .check = check,
    .cost = cost,
    COLUMNS_OP,
    OPS_KERNELS("scale_columns", kernel_names),
};
