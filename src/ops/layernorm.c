// y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias
#include "ops/norm.h"

#include <math.h>

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_layernorm_" #T "_" #name,
#include "kernels/norm.def"
};

static Norm norm_of(const SolLayernorm *a) {
  return NORM_OF(a, x);
}

static const char *const option_names[] = {"", "1 + weight"};

static bool make(const OpsCase *c, void *args) {
  SolLayernorm *a = args;
  *a = (SolLayernorm){NORM_CASE(c), .weight_offset = (float)c->option};
  if (c->pad)
    a->x_stride = a->n + c->pad,
    a->y_stride = a->n + (c->pad == 5 ? 1 : 2) * c->pad; // tests with 5 are in place
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolLayernorm *a = args;
  Norm norm = norm_of(a);
  v[0] = OPS_VIEW(SolLayernorm, y, norm.out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .alias = norm.out == a->dtype ? 2 : 0);
  v[1] = OPS_VIEW(SolLayernorm, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolLayernorm, weight, norm.weight_dtype, OPS_IN, .optional = true, .rows = 1, .cols = a->n);
  v[3] = OPS_VIEW(SolLayernorm, bias, norm.weight_dtype, OPS_IN, .optional = true, .rows = 1, .cols = a->n);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  Norm norm = norm_of(args);
  return norm_check(&norm, false, err);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolLayernorm *a = args;
  Norm norm = norm_of(a);
  int64_t xs = norm.x_stride, ys = norm.y_stride;
  float f[CPU_CHUNK];
  for (int64_t row = begin; row < end; row++) {
    double sum = 0, squares = 0;
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      sum += norm_sum(f, c);
    }
    double exact = sum / (double)a->n;
    float mean = (float)exact,
          rest =
              (float)(exact - (double)mean); // elements may be closer to each other than the mean's rounding
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      for (int64_t i = 0; i < c; i++) f[i] -= mean;
      squares += norm_squares(f, rest, c);
    }
    float scale = norm_scale(&norm, squares);
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      for (int64_t i = 0; i < c; i++) f[i] = f[i] - mean - rest;
      norm_apply(&norm, f, at, c, scale, a->bias);
      cpu_store(norm.out, a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolLayernorm *a = args;
  Norm norm = norm_of(a);
  NormCall call = norm_call(&norm);
  call.layer = true;
  call.p.bias = a->bias;
  return norm_launch(ctx, &ops_layernorm, &call, stream);
}

static void reference(const void *args, double *const *at) {
  const SolLayernorm *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double mean = 0;
    for (int64_t i = 0; i < a->n; i++) mean += x[i];
    mean /= (double)a->n;
    double scale = 1 / sqrt(norm_reference_squares(x, a->n, mean) + (double)a->eps);
    norm_reference_row(at[0] + row * a->n, x, a->n, mean, scale, at[2], (double)a->weight_offset, at[3]);
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolLayernorm *a = args;
  *op = (SolOpArgs){NORM_COST(a)};
}

const OpsDef ops_layernorm = {
    .name = "layernorm",
    OPS_ARGS(SolLayernorm, "MxN"),
    OPS_OPTIONS(option_names),
    NORM_OP(ops_row_bench),
    OPS_KERNELS("layernorm", kernel_names),
};
