// y = x * x_scale / y_scale, in another type
#include "base/error.h"
#include "ops/op_map.h"

enum { OPTIONS = 10 };
static const char *const option_names[OPTIONS] = {"",           "to fp8",   "from fp8",   "to int8",
                                                  "from int8",  "to int32", "from int32", "int64 to fp64",
                                                  "from int64", "to int64"};
// The types of x and y by option; 0: the case's.
static const SolDtype option_types[OPTIONS][2] = {
    {0, 0},         {0, SOL_FP8},   {SOL_FP8, 0},          {0, SOL_INT8},  {SOL_INT8, 0},
    {0, SOL_INT32}, {SOL_INT32, 0}, {SOL_INT64, SOL_FP64}, {SOL_INT64, 0}, {0, SOL_INT64}};

static SolDtype out_of(const SolCast *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static Map map_of(const SolCast *a) {
  return (Map){MAP_OF(a),    .a = a->x, .a_stride = a->x_stride, .a_scale = a->x_scale, .y_scale = a->y_scale,
               .f = MAP_SELF};
}

static bool make(const OpsCase *c, void *args) {
  SolCast *a = args;
  *a = (SolCast){OPS_MATRIX_CASE(c)};
  if (option_types[c->option][0]) a->out_dtype = out_of(a), a->dtype = option_types[c->option][0];
  if (option_types[c->option][1]) a->out_dtype = option_types[c->option][1];
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->pad == 3 ? 5 : c->pad);
  return true;
}

static bool is_whole(SolDtype d) {
  return d == SOL_INT8 || d == SOL_INT32 || d == SOL_INT64;
}

static int views(const void *args, OpsView *v) {
  const SolCast *a = args;
  v[0] =
      OPS_VIEW(SolCast, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride, .alias = 2);
  v[1] = OPS_VIEW(SolCast, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride,
                  .fill = is_whole(a->dtype) ? OPS_FILL_IDS : OPS_FILL_NORMAL,
                  .limit = a->dtype == SOL_INT8 ? 128 : 1 << 20);
  v[2] = OPS_VIEW(SolCast, x_scale, SOL_FP32, OPS_IN, .rows = 1, .cols = 1, .optional = true,
                  .fill = OPS_FILL_POSITIVE);
  v[3] = OPS_VIEW(SolCast, y_scale, SOL_FP32, OPS_IN, .rows = 1, .cols = 1, .optional = true,
                  .fill = OPS_FILL_POSITIVE);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolCast *a = args;
  if (map_takes(a->dtype) && map_takes(out_of(a))) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "cannot turn %s into %s", sol_dtype_name(a->dtype),
                  sol_dtype_name(out_of(a)));
}

// Nothing to convert: the elements' bytes are moved, so that an int64 keeps all of its bits.
static bool is_copy(const SolCast *a) {
  return a->dtype == out_of(a) && !a->x_scale && !a->y_scale;
}

static SolCopy copy_of(const SolCast *a) {
  return (SolCopy){a->y, a->x, a->m, a->n, a->y_stride, a->x_stride, a->dtype, a->dtype};
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolCast *a = args;
  Map m = map_of(a);
  SolCopy copy = copy_of(a);
  if (!is_copy(a)) return map_cpu(ctx, &m);
  if (a->x != a->y) cpu_parallel(ctx, a->m, a->m * a->n, ops_copy.cpu_rows, &copy);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolCast *a = args;
  Map m = map_of(a);
  SolCopy copy = copy_of(a);
  if (!is_copy(a)) return map_launch(ctx, &ops_cast, &m, stream);
  return a->x == a->y ? SOL_OK : ops_copy.launch(ctx, &copy, stream);
}

static void reference(const void *args, double *const *at) {
  Map m = map_of(args);
  map_reference(&m, at[1], NULL, at[2] ? at[2][0] : 1, at[3] ? at[3][0] : 1, at[0]);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolCast *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

const OpsDef ops_cast = {
    .name = "cast",
    OPS_ARGS(SolCast, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    .slack = 2,
    MAP_OP,
};
