// s = x + residual, rounded and written; y = s / sqrt(mean(s^2) + eps) * (weight + weight_offset)
#include "ops/norm.h"

#include <math.h>

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_add_rmsnorm_" #T "_" #name,
#include "kernels/norm.def"
};

static Norm norm_of(const SolAddRmsnorm *a) {
  return NORM_OF(a, x);
}

static const char *const option_names[] = {"", "1 + weight"};

static bool make(const OpsCase *c, void *args) {
  SolAddRmsnorm *a = args;
  *a = (SolAddRmsnorm){NORM_CASE(c), .weight_offset = (float)c->option};
  if (c->pad) {
    a->x_stride = a->residual_stride = a->n + c->pad;
    a->y_stride = a->residual_out_stride = a->n + (c->pad == 5 ? 1 : 2) * c->pad; // tests with 5 are in place
  }
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolAddRmsnorm *a = args;
  Norm norm = norm_of(a);
  v[0] = OPS_VIEW(SolAddRmsnorm, y, norm.out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .alias = norm.out == a->dtype ? 2 : 0);
  v[1] = OPS_VIEW(SolAddRmsnorm, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolAddRmsnorm, residual, a->dtype, a->residual_out ? OPS_IN : OPS_INOUT, .rows = a->m,
                  .cols = a->n, .stride = a->residual_stride);
  v[3] = OPS_VIEW(SolAddRmsnorm, residual_out, a->dtype, OPS_OUT, .optional = true, .rows = a->m,
                  .cols = a->n, .stride = a->residual_out_stride, .alias = 3);
  v[4] =
      OPS_VIEW(SolAddRmsnorm, weight, norm.weight_dtype, OPS_IN, .optional = true, .rows = 1, .cols = a->n);
  return 5;
}

static SolStatus check(const void *args, SolError *err) {
  Norm norm = norm_of(args);
  return norm_check(&norm, false, err);
}

// Where the sum is written.
static void *sum_of(const SolAddRmsnorm *a, int64_t *stride) {
  *stride = ops_stride(a->residual_out ? a->residual_out_stride : a->residual_stride, a->n);
  return a->residual_out ? a->residual_out : a->residual;
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolAddRmsnorm *a = args;
  Norm norm = norm_of(a);
  int64_t xs = norm.x_stride, ys = norm.y_stride;
  int64_t rs = ops_stride(a->residual_stride, a->n), ss;
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
    float scale = norm_scale(&norm, sum);
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, sums, row * ss + at, c, f);
      norm_apply(&norm, f, at, c, scale, NULL);
      cpu_store(norm.out, a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolAddRmsnorm *a = args;
  Norm norm = norm_of(a);
  NormCall call = norm_call(&norm);
  int in = ops_size(a->dtype);
  call.p.residual = a->residual;
  call.p.residual_stride = ops_stride(a->residual_stride, a->n) * in;
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

static void cost(const void *args, SolOpArgs *op) {
  const SolAddRmsnorm *a = args;
  *op = (SolOpArgs){NORM_COST(a)};
}

const OpsDef ops_add_rmsnorm = {
    .name = "add_rmsnorm",
    OPS_ARGS(SolAddRmsnorm, "MxN"),
    OPS_OPTIONS(option_names),
    NORM_OP(ops_row_bench),
    OPS_KERNELS("add_rmsnorm", kernel_names),
};
