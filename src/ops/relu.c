// y = max(x, 0)
#include "ops/op_map.h"

static Map map_of(const SolRelu *a) {
  return (Map){MAP_OF(a), .a = a->x, .a_stride = a->x_stride, .f = MAP_RELU};
}

static bool make(const OpsCase *c, void *args) {
  SolRelu *a = args;
  *a = (SolRelu){OPS_MATRIX_CASE(c)};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolRelu *a = args;
  SolDtype out = ops_or(a->out_dtype, a->dtype);
  v[0] = OPS_VIEW(SolRelu, y, out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride, .alias = 2);
  v[1] = OPS_VIEW(SolRelu, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolRelu *a = args;
  return ops_check_reals(a->dtype, ops_or(a->out_dtype, a->dtype), err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Map m = map_of(args);
  return map_cpu(ctx, &m);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Map m = map_of(args);
  return map_launch(ctx, &ops_relu, &m, stream);
}

static void reference(const void *args, double *const *at) {
  Map m = map_of(args);
  map_reference(&m, at[1], NULL, 1, 1, at[0]);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolRelu *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

const OpsDef ops_relu = {
    .name = "relu",
    OPS_ARGS(SolRelu, "MxN"),
    OPS_OWN_FUNCTIONS,
    MAP_OP,
};
