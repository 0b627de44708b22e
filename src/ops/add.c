// y = a + b
#include "ops/op_map.h"

static Map map_of(const SolAdd *a) {
  return (Map){MAP_OF(a),   .a = a->a, .b = a->b, .a_stride = a->a_stride, .b_stride = a->b_stride,
               .f = MAP_ADD};
}

static bool make(const OpsCase *c, void *args) {
  SolAdd *a = args;
  *a = (SolAdd){OPS_MATRIX_CASE(c)};
  if (c->pad) a->a_stride = a->n + c->pad, a->b_stride = a->n + 2 * c->pad, a->y_stride = a->n + c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolAdd *a = args;
  SolDtype out = ops_or(a->out_dtype, a->dtype);
  v[0] = OPS_VIEW(SolAdd, y, out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride, .alias = 2);
  v[1] = OPS_VIEW(SolAdd, a, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->a_stride);
  v[2] = OPS_VIEW(SolAdd, b, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->b_stride);
  return 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolAdd *a = args;
  return ops_check_reals(a->dtype, ops_or(a->out_dtype, a->dtype), err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Map m = map_of(args);
  return map_cpu(ctx, &m);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Map m = map_of(args);
  return map_launch(ctx, &ops_add, &m, stream);
}

static void reference(const void *args, double *const *at) {
  Map m = map_of(args);
  map_reference(&m, at[1], at[2], 1, 1, at[0]);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolAdd *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

const OpsDef ops_add = {
    .name = "add",
    OPS_ARGS(SolAdd, "MxN"),
    OPS_OWN_FUNCTIONS,
    .slack = 2,
    MAP_OP,
};
