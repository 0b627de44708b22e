// y = activation(gate) * up, also as fp8 or int8
#include "base/error.h"
#include "ops/op_map.h"

enum { GATES = SOL_GATE_SILU + 1, OPTIONS = GATES + 2 };
static const char *const option_names[OPTIONS] = {"gelu", "relu",        "sigmoid",
                                                  "silu", "gelu to fp8", "gelu to int8"};

static Map map_of(const SolGatedMul *a) {
  static const int by_gate[GATES] = {MAP_GELU_MUL, MAP_RELU_MUL, MAP_SIGMOID_MUL, MAP_SILU_MUL};
  return (Map){MAP_OF(a),
               .a = a->gate,
               .b = a->up,
               .a_stride = a->gate_stride,
               .b_stride = a->up_stride,
               .y_scale = a->scale,
               .f = by_gate[a->activation]};
}

static bool is_byte(const SolGatedMul *a) {
  return a->out_dtype == SOL_FP8 || a->out_dtype == SOL_INT8;
}

static bool make(const OpsCase *c, void *args) {
  SolGatedMul *a = args;
  *a = (SolGatedMul){OPS_MATRIX_CASE(c), .activation = (SolGate)(c->option < GATES ? c->option : 0)};
  if (c->option >= GATES) a->out_dtype = c->option == GATES ? SOL_FP8 : SOL_INT8;
  if (c->pad) a->y_stride = a->n + c->pad, a->gate_stride = a->n + 2 * c->pad, a->up_stride = a->n + c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolGatedMul *a = args;
  SolDtype out = ops_or(a->out_dtype, a->dtype);
  v[0] = OPS_VIEW(SolGatedMul, y, out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride);
  v[1] = OPS_VIEW(SolGatedMul, gate, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->gate_stride);
  v[2] = OPS_VIEW(SolGatedMul, up, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->up_stride);
  v[3] = OPS_VIEW(SolGatedMul, scale, SOL_FP32, OPS_IN, .rows = 1, .cols = 1, .optional = true,
                  .fill = OPS_FILL_POSITIVE);
  return is_byte(a) ? 4 : 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolGatedMul *a = args;
  if ((unsigned)a->activation >= GATES)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such activation: %d", (int)a->activation);
  if (a->scale && !is_byte(a)) return sol_fail(err, SOL_ERR_ARGUMENT, "a scale is for fp8 and int8 alone");
  return ops_check_reals(a->dtype, is_byte(a) ? a->dtype : ops_or(a->out_dtype, a->dtype), err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  Map m = map_of(args);
  return map_cpu(ctx, &m);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  Map m = map_of(args);
  return map_launch(ctx, &ops_gated_mul, &m, stream);
}

static void reference(const void *args, double *const *at) {
  const SolGatedMul *a = args;
  Map m = map_of(a);
  map_reference(&m, at[1], at[2], 1, is_byte(a) && at[3] ? at[3][0] : 1, at[0]);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolGatedMul *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

// The accountant counts gelu's FLOPs.
static void cost_more(const void *args, SolCost *out) {
  static const double flops[GATES] = {9, 2, 4, 4};
  const SolGatedMul *a = args;
  out->flops = flops[a->activation] * (double)a->m * (double)a->n;
}

const OpsDef ops_gated_mul = {
    .name = "gated_mul",
    OPS_ARGS(SolGatedMul, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    .cost_more = cost_more,
    .slack = 16,
    MAP_OP,
};
