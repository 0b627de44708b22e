// s = x + residual, rounded and written; y = s / sqrt(mean(s^2) + eps) * (weight + weight_offset)
#include "ops/norm.h"

#include <math.h>

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_add_rmsnorm_" #T "_" #name,
#include "kernels/norm.def"
};

static SolDtype out_of(const SolAddRmsnorm *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static SolDtype weight_of(const SolAddRmsnorm *a) {
  return ops_or(a->weight_dtype, a->dtype);
}

static const char *const option_names[] = {"", "1 + weight"};

static bool make(const OpsCase *c, void *args) {
  SolAddRmsnorm *a = args;
  *a = (SolAddRmsnorm){.m = c->dim[0],
                       .n = c->dim[1],
                       .dtype = c->dtype,
                       .out_dtype = c->out_dtype,
                       .weight_dtype = c->weight_dtype,
                       .eps = 1e-5f,
                       .weight_offset = (float)c->option};
  if (c->pad) {
    a->x_stride = a->residual_stride = a->n + c->pad;
    a->y_stride = a->residual_out_stride = a->n + (c->pad == 5 ? 1 : 2) * c->pad; // 5 is tried in place
  }
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolAddRmsnorm *a = args;
  v[0] = OPS_VIEW(SolAddRmsnorm, y, .dtype = out_of(a), .role = OPS_OUT, .rows = a->m, .cols = a->n,
                  .stride = a->y_stride, .alias = out_of(a) == a->dtype ? 2 : 0);
  v[1] = OPS_VIEW(SolAddRmsnorm, x, .dtype = a->dtype, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolAddRmsnorm, residual, .dtype = a->dtype, .role = a->residual_out ? OPS_IN : OPS_INOUT,
                  .rows = a->m, .cols = a->n, .stride = a->residual_stride);
  v[3] = OPS_VIEW(SolAddRmsnorm, residual_out, .dtype = a->dtype, .role = OPS_OUT, .optional = true,
                  .rows = a->m, .cols = a->n, .stride = a->residual_out_stride, .alias = 3);
  v[4] = OPS_VIEW(SolAddRmsnorm, weight, .dtype = weight_of(a), .optional = true, .rows = 1, .cols = a->n);
  return 5;
}

static SolStatus check(const void *args, SolError *err) {
  const SolAddRmsnorm *a = args;
  return norm_check("add_rmsnorm", a->dtype, out_of(a), weight_of(a), false, a->eps, err);
}

// Where the sum goes.
static void *sum_of(const SolAddRmsnorm *a, int64_t *stride) {
  *stride = norm_stride(a->residual_out ? a->residual_out_stride : a->residual_stride, a->n);
  return a->residual_out ? a->residual_out : a->residual;
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolAddRmsnorm *a = args;
  int64_t xs = norm_stride(a->x_stride, a->n), ys = norm_stride(a->y_stride, a->n);
  int64_t rs = norm_stride(a->residual_stride, a->n), ss;
  void *sums = sum_of(a, &ss);
  float f[CPU_CHUNK], g[CPU_CHUNK];
  for (int64_t row = begin; row < end; row++) {
    double sum = 0;
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      cpu_load(a->dtype, a->residual, row * rs + at, c, g);
      for (int64_t i = 0; i < c; i++) f[i] += g[i];
      cpu_store(a->dtype, sums, row * ss + at, c, f);
      cpu_load(a->dtype, sums, row * ss + at, c, f); // as it was rounded
      sum += norm_squares(f, 0, c);
    }
    float scale = (float)(1 / sqrt(sum / (double)a->n + (double)a->eps));
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, sums, row * ss + at, c, f);
      norm_apply(f, at, c, scale, weight_of(a), a->weight, a->weight_offset, NULL);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolAddRmsnorm *a = args;
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, a);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolAddRmsnorm *a = args;
  int64_t in = sol_dtype_bits(a->dtype) / 8, out = sol_dtype_bits(out_of(a)) / 8;
  NormCall call = {.dtype = a->dtype,
                   .p = {.y = a->y,
                         .x = a->x,
                         .weight = a->weight,
                         .residual = a->residual,
                         .m = (uint64_t)a->m,
                         .n = a->n,
                         .y_stride = norm_stride(a->y_stride, a->n) * out,
                         .x_stride = norm_stride(a->x_stride, a->n) * in,
                         .residual_stride = norm_stride(a->residual_stride, a->n) * in,
                         .eps = a->eps,
                         .offset = a->weight_offset,
                         .y_kind = ops_kind(out_of(a)),
                         .weight_kind = ops_kind(weight_of(a))}};
  call.p.second = sum_of(a, &call.p.second_stride);
  call.p.second_stride *= in;
  return norm_launch(ctx, &ops_add_rmsnorm, &call, stream);
}

static void reference(const void *args, double *const *at) {
  const SolAddRmsnorm *a = args;
  bool back = !a->residual_out || a->residual_out == a->residual;
  for (int64_t row = 0; row < a->m; row++) {
    int64_t from = row * a->n;
    double *y = at[0] + from, squares = 0;
    for (int64_t i = 0; i < a->n; i++) {
      double s = norm_reference_round(a->dtype, at[1][from + i] + at[2][from + i]);
      if (back) at[2][from + i] = s;
      if (at[3]) at[3][from + i] = s;
      y[i] = s;
    }
    squares = norm_reference_squares(y, a->n, 0);
    norm_reference_row(y, y, a->n, 0, 1 / sqrt(squares + (double)a->eps), at[4], (double)a->weight_offset,
                       NULL);
  }
}

static SolStatus cost(const void *args, SolOpArgs *op, SolError *err) {
  const SolAddRmsnorm *a = args;
  *op = (SolOpArgs){
      .dim = {a->m, a->n}, .dtype = a->dtype, .out_dtype = a->out_dtype, .weight_dtype = a->weight_dtype};
  return ops_cost_op("add_rmsnorm", op, err);
}

const OpsDef ops_add_rmsnorm = {
    .name = "add_rmsnorm",
    .shape = "MxN",
    .args_bytes = sizeof(SolAddRmsnorm),
    .options = (int)SOL_COUNT(option_names),
    .option_names = option_names,
    OPS_OWN_FUNCTIONS,
    .slack = 24,
    OPS_CASES(norm_shapes, ops_row_bench),
    .module = "add_rmsnorm",
    .kernels = kernel_names,
    .kernel_count = (int)SOL_COUNT(kernel_names),
    .shared = norm_shared,
};
