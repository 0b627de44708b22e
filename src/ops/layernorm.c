// y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias
#include "ops/norm.h"

#include <math.h>

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_layernorm_" #T "_" #name,
#include "kernels/norm.def"
};

static SolDtype out_of(const SolLayernorm *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static SolDtype weight_of(const SolLayernorm *a) {
  return ops_or(a->weight_dtype, a->dtype);
}

static const char *const option_names[] = {"", "1 + weight"};

static bool make(const OpsCase *c, void *args) {
  SolLayernorm *a = args;
  *a = (SolLayernorm){.m = c->dim[0],
                      .n = c->dim[1],
                      .dtype = c->dtype,
                      .out_dtype = c->out_dtype,
                      .weight_dtype = c->weight_dtype,
                      .eps = 1e-5f,
                      .weight_offset = (float)c->option};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->pad == 5 ? 1 : 2) * c->pad; // 5: in place
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolLayernorm *a = args;
  v[0] = OPS_VIEW(SolLayernorm, y, .dtype = out_of(a), .role = OPS_OUT, .rows = a->m, .cols = a->n,
                  .stride = a->y_stride, .alias = out_of(a) == a->dtype ? 2 : 0);
  v[1] = OPS_VIEW(SolLayernorm, x, .dtype = a->dtype, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolLayernorm, weight, .dtype = weight_of(a), .optional = true, .rows = 1, .cols = a->n);
  v[3] = OPS_VIEW(SolLayernorm, bias, .dtype = weight_of(a), .optional = true, .rows = 1, .cols = a->n);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolLayernorm *a = args;
  return norm_check("layernorm", a->dtype, out_of(a), weight_of(a), false, a->eps, err);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolLayernorm *a = args;
  int64_t xs = norm_stride(a->x_stride, a->n), ys = norm_stride(a->y_stride, a->n);
  float f[CPU_CHUNK];
  for (int64_t row = begin; row < end; row++) {
    double sum = 0, squares = 0;
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      sum += norm_sum(f, c);
    }
    float mean = (float)(sum / (double)a->n);
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      squares += norm_squares(f, mean, c);
    }
    float scale = (float)(1 / sqrt(squares / (double)a->n + (double)a->eps));
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      for (int64_t i = 0; i < c; i++) f[i] -= mean;
      norm_apply(f, at, c, scale, weight_of(a), a->weight, a->weight_offset, a->bias);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolLayernorm *a = args;
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, a);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolLayernorm *a = args;
  int64_t in = sol_dtype_bits(a->dtype) / 8, out = sol_dtype_bits(out_of(a)) / 8;
  NormCall call = {.dtype = a->dtype,
                   .layer = true,
                   .p = {.y = a->y,
                         .x = a->x,
                         .weight = a->weight,
                         .bias = a->bias,
                         .m = (uint64_t)a->m,
                         .n = a->n,
                         .y_stride = norm_stride(a->y_stride, a->n) * out,
                         .x_stride = norm_stride(a->x_stride, a->n) * in,
                         .eps = a->eps,
                         .offset = a->weight_offset,
                         .y_kind = ops_kind(out_of(a)),
                         .weight_kind = ops_kind(weight_of(a))}};
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

static SolStatus cost(const void *args, SolOpArgs *op, SolError *err) {
  const SolLayernorm *a = args;
  *op = (SolOpArgs){
      .dim = {a->m, a->n}, .dtype = a->dtype, .out_dtype = a->out_dtype, .weight_dtype = a->weight_dtype};
  return ops_cost_op("layernorm", op, err);
}

const OpsDef ops_layernorm = {
    .name = "layernorm",
    .shape = "MxN",
    .args_bytes = sizeof(SolLayernorm),
    .options = (int)SOL_COUNT(option_names),
    .option_names = option_names,
    OPS_OWN_FUNCTIONS,
    .slack = 24,
    OPS_CASES(norm_shapes, ops_row_bench),
    .module = "layernorm",
    .kernels = kernel_names,
    .kernel_count = (int)SOL_COUNT(kernel_names),
    .shared = norm_shared,
};
