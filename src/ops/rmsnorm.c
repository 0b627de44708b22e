// y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset)
#include "ops/norm.h"

#include <math.h>

#include "base/error.h"

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_rmsnorm_" #T "_" #name,
#include "kernels/norm.def"
#define NORM(T, name, how, number) "sol_rmsnorm_fp8_" #T "_" #name,
#include "kernels/norm.def"
#define ODD(T, name, scales, lanes, chunks, threads, blocks) "sol_rmsnorm_odd_" #T "_" #name,
#include "kernels/norm_odd.def"
};

static Norm norm_of(const SolRmsnorm *a) {
  return NORM_OF(a, x);
}

enum { PLAIN, OFFSET, FP8_TENSOR, FP8_ROW, FP8_BLOCK, OPTIONS };
static const char *const option_names[OPTIONS] = {"", "1 + weight", "fp8 by tensor", "fp8 by row",
                                                  "fp8 by block"};

static bool make(const OpsCase *c, void *args) {
  SolRmsnorm *a = args;
  *a = (SolRmsnorm){NORM_CASE(c)};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->pad % 8 ? 2 : 1) * c->pad;
  if (c->option == OFFSET) a->weight_offset = 1;
  if (c->option < FP8_TENSOR) return true;
  a->out_dtype = SOL_FP8;
  a->scaling = (SolScaling)(c->option - FP8_TENSOR);
  return !c->out_dtype;
}

static int views(const void *args, OpsView *v) {
  const SolRmsnorm *a = args;
  Norm norm = norm_of(a);
  v[0] = OPS_VIEW(SolRmsnorm, y, norm.out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .alias = norm.out == a->dtype ? 2 : 0);
  v[1] = OPS_VIEW(SolRmsnorm, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolRmsnorm, weight, norm.weight_dtype, OPS_IN, .optional = true, .rows = 1, .cols = a->n);
  if (norm.out != SOL_FP8) return 3;
  v[3] = OPS_VIEW(SolRmsnorm, scales, SOL_FP32, OPS_OUT, .rows = a->m, .cols = 1);
  if (a->scaling == SOL_SCALE_TENSOR) v[3].role = OPS_IN, v[3].rows = 1, v[3].fill = OPS_FILL_POSITIVE;
  if (a->scaling == SOL_SCALE_BLOCK) v[3].cols = a->n / 128 + (a->n % 128 > 0);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolRmsnorm *a = args;
  Norm norm = norm_of(a);
  if ((unsigned)a->scaling > SOL_SCALE_BLOCK)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such scaling: %d", (int)a->scaling);
  if (norm.out != SOL_FP8 && (a->scales || a->scaling))
    return sol_fail(err, SOL_ERR_ARGUMENT, "scales and scaling are for fp8 output only");
  return norm_check(&norm, true, err);
}

// Divides elements by their common scale. `computed`: the scale is the largest magnitude / 448, not the
// caller's.
static float quantize(float *f, int64_t count, float scale, bool computed) {
  if (computed && scale == 0)
    for (int64_t i = 0; i < count; i++) f[i] = 0; // zeros stay zeros
  else
    for (int64_t i = 0; i < count; i++) f[i] /= scale;
  return scale;
}

// The largest magnitude, `top` included; NaN where there is one.
static float top_of(const float *f, int64_t count, float top) {
  for (int64_t i = 0; i < count; i++) top = !(fabsf(f[i]) <= top) && !isnan(top) ? fabsf(f[i]) : top;
  return top;
}

static void quantize_chunk(const SolRmsnorm *a, int64_t row, int64_t at, int64_t c, float *f) {
  if (a->scaling == SOL_SCALE_TENSOR) quantize(f, c, *a->scales, false);
  if (a->scaling == SOL_SCALE_ROW) quantize(f, c, a->scales[row], true);
  if (a->scaling != SOL_SCALE_BLOCK) return;
  float *scales = a->scales + row * (a->n / 128 + (a->n % 128 > 0)) + at / 128;
  for (int64_t b = 0; b < c; b += 128) {
    int64_t count = cpu_min(128, c - b);
    *scales++ = quantize(f + b, count, top_of(f + b, count, 0) / 448, true);
  }
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolRmsnorm *a = args;
  Norm norm = norm_of(a);
  int64_t xs = norm.x_stride, ys = norm.y_stride;
  float f[CPU_CHUNK];
  for (int64_t row = begin; row < end; row++) {
    double sum = 0;
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      sum += norm_squares(f, 0, c);
    }
    float scale = norm_scale(&norm, sum);
    if (norm.out == SOL_FP8 && a->scaling == SOL_SCALE_ROW) {
      float top = 0;
      CPU_CHUNKS(at, c, a->n) {
        cpu_load(a->dtype, a->x, row * xs + at, c, f);
        norm_apply(&norm, f, at, c, scale, NULL);
        top = top_of(f, c, top);
      }
      a->scales[row] = top / 448;
    }
    CPU_CHUNKS(at, c, a->n) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      norm_apply(&norm, f, at, c, scale, NULL);
      if (norm.out == SOL_FP8) quantize_chunk(a, row, at, c, f);
      cpu_store(norm.out, a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolRmsnorm *a = args;
  Norm norm = norm_of(a);
  NormCall call = norm_call(&norm);
  if (norm.out == SOL_FP8) call.fp8 = NORM_KERNELS;
  call.p.scales = a->scales;
  call.p.scaling = (int)a->scaling;
  return norm_launch(ctx, &ops_rmsnorm, &call, stream);
}

// Divides y by the scales of its rows or blocks, which it writes.
static void reference_fp8(const SolRmsnorm *a, double *y, double *scales) {
  int64_t width = a->scaling == SOL_SCALE_BLOCK ? 128 : a->n;
  for (int64_t row = 0; row < a->m; row++)
    for (int64_t at = 0; at < a->n; at += width) {
      double top = 0, *part = y + row * a->n + at, scale = *scales;
      int64_t count = cpu_min(width, a->n - at);
      for (int64_t i = 0; i < count; i++)
        if (!(fabs(part[i]) <= top) && !isnan(top)) top = fabs(part[i]);
      if (a->scaling != SOL_SCALE_TENSOR) scale = *scales++ = top / 448;
      for (int64_t i = 0; i < count; i++)
        part[i] = scale == 0 && a->scaling != SOL_SCALE_TENSOR ? 0 : part[i] / scale;
    }
}

static void reference(const void *args, double *const *at) {
  const SolRmsnorm *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double scale = 1 / sqrt(norm_reference_squares(x, a->n, 0) + (double)a->eps);
    norm_reference_row(at[0] + row * a->n, x, a->n, 0, scale, at[2], (double)a->weight_offset, NULL);
  }
  if (norm_of(a).out == SOL_FP8) reference_fp8(a, at[0], at[3]);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolRmsnorm *a = args;
  *op = (SolOpArgs){NORM_COST(a)};
}

const OpsDef ops_rmsnorm = {
    .name = "rmsnorm",
    OPS_ARGS(SolRmsnorm, "MxN"),
    OPS_OPTIONS(option_names),
    NORM_OP(ops_row_bench),
    OPS_KERNELS("rmsnorm", kernel_names),
};
