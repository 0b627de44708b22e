// C = activation(alpha A B + beta C + bias) + residual
#include <math.h>

#include "base/error.h"
#include "ops/gemm_parts.h"

SolGemm gemm_filled(const SolGemm *args) {
  SolGemm a = *args;
  int64_t wide = gemm_b_width(&a);
  if (!a.batch) a.batch = 1;
  if (a.alpha == 0) a.alpha = 1;
  if (!a.c_stride) a.c_stride = a.n;
  if (!a.a_stride) a.a_stride = a.a_columns ? a.m : a.k;
  if (!a.b_stride) a.b_stride = a.b_columns ? a.k : wide;
  if (!a.residual_stride) a.residual_stride = a.n;
  if (!a.c_batch_stride) a.c_batch_stride = a.m * a.c_stride;
  if (!a.a_batch_stride) a.a_batch_stride = (a.a_columns ? a.k : a.m) * a.a_stride;
  if (!a.b_batch_stride) a.b_batch_stride = (a.b_columns ? wide : a.k) * a.b_stride;
  if (!a.residual_batch_stride) a.residual_batch_stride = a.m * a.residual_stride;
  return a;
}

// Layouts and epilogues; fp16 takes the layouts and the weights, fp32 nothing.
static const char *const option_names[] = {"B by columns", "both by rows", "A by columns", "both by columns",
                                           "gelu, alpha",  "silu_mul",     "relu, beta",   "batch of 2",
                                           "fp8",          "fp8 weights",  "int4 weights"};

static bool make(const OpsCase *c, void *args) {
  SolGemm *a = args;
  int o = c->option;
  if (c->dtype == SOL_FP32 || (c->dtype == SOL_FP16 && o > 3 && o < 9)) return false;
  if (o == 10 && (c->dim[2] % 2 || c->pad % 2)) return false;
  *a = (SolGemm){.m = c->dim[0],
                 .n = c->dim[1],
                 .k = c->dim[2],
                 .dtype = c->dtype,
                 .out_dtype = c->out_dtype,
                 .weight_dtype = c->weight_dtype};
  a->b_columns = o != 1 && o != 2;
  a->a_columns = o == 2 || o == 3;
  if (o == 4) a->activation = SOL_ACTIVATION_GELU, a->alpha = 0.25f;
  if (o == 5) a->activation = SOL_ACTIVATION_SILU_MUL;
  if (o == 6) a->activation = SOL_ACTIVATION_RELU, a->beta = -0.5f;
  if (c->pad) {
    SolGemm full = gemm_filled(a);
    a->c_stride = full.c_stride + c->pad, a->a_stride = full.a_stride + 2 * c->pad;
    a->b_stride = full.b_stride + c->pad, a->residual_stride = full.residual_stride + 3 * c->pad;
  }
  if (o == 8) a->dtype = SOL_FP8;
  if (o > 8) a->weights = o == 9 ? SOL_WEIGHTS_FP8 : SOL_WEIGHTS_INT4;
  if (o == 7 || o == 10) { // where the matrices lie does not depend on how many rows there are
    SolGemm full = gemm_filled(a);
    a->batch = 2;
    a->c_batch_stride = full.c_batch_stride, a->a_batch_stride = full.a_batch_stride;
    a->b_batch_stride = full.b_batch_stride, a->residual_batch_stride = full.residual_batch_stride;
  }
  return true;
}

// Of int4 two are one element of this view.
static OpsView view_of_b(const SolGemm *a) {
  int64_t wide = gemm_b_width(a);
  bool int4 = a->weights == SOL_WEIGHTS_INT4, fp8 = a->weights == SOL_WEIGHTS_FP8;
  return OPS_VIEW(SolGemm, b,
                  int4  ? SOL_INT8
                  : fp8 ? SOL_FP8
                        : a->dtype,
                  OPS_IN, .batch = a->batch, .rows = a->b_columns ? wide : a->k,
                  .cols = int4           ? a->k / 2
                          : a->b_columns ? a->k
                                         : wide,
                  .stride = int4 ? a->b_stride / 2 : a->b_stride,
                  .batch_stride = int4 ? a->b_batch_stride / 2 : a->b_batch_stride,
                  .fill = int4 ? OPS_FILL_IDS : OPS_FILL_NORMAL, .limit = 128);
}

static int views(const void *args, OpsView *v) {
  const SolGemm *a = args;
  int64_t wide = gemm_b_width(a);
  bool int4 = a->weights == SOL_WEIGHTS_INT4, scaled = a->dtype == SOL_FP8 || a->weights == SOL_WEIGHTS_FP8;
  v[0] = OPS_VIEW(SolGemm, c, gemm_out(a), a->beta == 0 ? OPS_OUT : OPS_INOUT, .batch = a->batch,
                  .rows = a->m, .cols = a->n, .stride = a->c_stride, .batch_stride = a->c_batch_stride);
  v[1] =
      OPS_VIEW(SolGemm, a, a->dtype, OPS_IN, .batch = a->batch, .rows = a->a_columns ? a->k : a->m,
               .cols = a->a_columns ? a->m : a->k, .stride = a->a_stride, .batch_stride = a->a_batch_stride);
  v[2] = view_of_b(a);
  v[3] = OPS_VIEW(SolGemm, bias, gemm_bias_type(a), OPS_IN, .optional = true, .rows = 1, .cols = wide);
  v[4] = OPS_VIEW(SolGemm, residual, gemm_out(a), OPS_IN, .optional = true, .batch = a->batch, .rows = a->m,
                  .cols = a->n, .stride = a->residual_stride, .batch_stride = a->residual_batch_stride);
  v[5] = OPS_VIEW(SolGemm, a_scale, SOL_FP32, OPS_IN, .optional = true, .rows = a->dtype == SOL_FP8,
                  .cols = 1, .fill = OPS_FILL_POSITIVE);
  v[6] = OPS_VIEW(SolGemm, b_scale, SOL_FP32, OPS_IN, .optional = true, .rows = scaled, .cols = 1,
                  .fill = OPS_FILL_POSITIVE);
  v[7] = OPS_VIEW(SolGemm, b_scales, SOL_FP32, OPS_IN, .optional = !int4, .batch = a->batch,
                  .rows = int4 ? wide : 0, .cols = gemm_groups(a), .fill = OPS_FILL_POSITIVE);
  return 8;
}

static SolStatus check_weights(const SolGemm *a, SolError *err) {
  if ((unsigned)a->weights > SOL_WEIGHTS_INT4)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such weights: %d", (int)a->weights);
  if (a->b_scales && a->weights != SOL_WEIGHTS_INT4)
    return sol_fail(err, SOL_ERR_ARGUMENT, "b_scales go with int4 weights");
  if (a->weights && (a->dtype == SOL_FP8 || !a->b_columns))
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "weights of fewer bits go with A of fp16 or bf16 and B by columns");
  if (a->weights == SOL_WEIGHTS_INT4 && (a->k % 2 || a->b_stride % 2 || a->b_batch_stride % 2))
    return sol_fail(err, SOL_ERR_ARGUMENT, "of int4 weights K and B's strides must be even");
  return SOL_OK;
}

static SolStatus check(const void *args, SolError *err) {
  const SolGemm *a = args;
  SolDtype bias = gemm_bias_type(a);
  if (a->dtype != SOL_FP16 && a->dtype != SOL_BF16 && a->dtype != SOL_FP8)
    return sol_fail(err, SOL_ERR_ARGUMENT, "A and B must be fp16, bf16 or fp8, not %s",
                    sol_dtype_name(a->dtype));
  if (!ops_is_real(gemm_out(a)))
    return sol_fail(err, SOL_ERR_ARGUMENT, "C must be fp32, fp16 or bf16, not %s",
                    sol_dtype_name(gemm_out(a)));
  if ((a->a_scale && a->dtype != SOL_FP8) ||
      (a->b_scale && a->dtype != SOL_FP8 && a->weights != SOL_WEIGHTS_FP8))
    return sol_fail(err, SOL_ERR_ARGUMENT, "scales go with fp8, not with %s", sol_dtype_name(a->dtype));
  if (bias != gemm_wide(a) && bias != SOL_FP32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "bias must be %s or fp32, not %s", sol_dtype_name(gemm_wide(a)),
                    sol_dtype_name(bias));
  if (a->batch < 0 || a->m < 0 || a->n < 0 || a->k < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a size is negative");
  if ((unsigned)a->activation > SOL_ACTIVATION_SILU_MUL)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such activation: %d", (int)a->activation);
  if (a->activation == SOL_ACTIVATION_SILU_MUL && a->beta != 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "beta must be 0 with silu_mul, whose C is half as wide as A B");
  return check_weights(a, err);
}

// ---- the reference ----

static double element(const double *x, bool turned, int64_t row, int64_t column, int64_t rows,
                      int64_t columns) {
  return turned ? x[column * rows + row] : x[row * columns + column];
}

// b: the view, of int4 two in an element.
static double weight(const SolGemm *a, const double *b, int64_t z, int64_t k, int64_t j, int64_t wide) {
  if (a->weights != SOL_WEIGHTS_INT4) return element(b + z * wide * a->k, a->b_columns, k, j, a->k, wide);
  int byte = (int)b[(z * wide + j) * (a->k / 2) + k / 2], four = (byte >> k % 2 * 4) & 15;
  return four > 7 ? four - 16 : four;
}

// What the sum of the 128 k that end here is multiplied by.
static double scale_of(const SolGemm *a, double *const *at, int64_t z, int64_t k, int64_t j, int64_t wide) {
  return at[7] ? at[7][(z * wide + j) * gemm_groups(a) + k / GEMM_GROUP] : 1;
}

static double sum_of(const SolGemm *a, double *const *at, int64_t z, int64_t i, int64_t j, int64_t wide) {
  const double *x = at[1] + z * a->m * a->k;
  double sum = 0, part = 0;
  for (int64_t k = 0; k < a->k; k++) {
    part += element(x, a->a_columns, i, k, a->m, a->k) * weight(a, at[2], z, k, j, wide);
    if (k + 1 == a->k || (k + 1) % GEMM_GROUP == 0) sum += part * scale_of(a, at, z, k, j, wide), part = 0;
  }
  sum *= (double)a->alpha * (at[5] ? at[5][0] : 1) * (at[6] ? at[6][0] : 1);
  return sum + (at[3] ? at[3][j] : 0);
}

// exp(-x) beyond fp32 is infinite here, too: 0 times an infinite second factor is NaN.
static double silu(double x) {
  return x / (1 + (x < -88.7 ? INFINITY : exp(-x)));
}

static double activate(double x, SolActivation activation) {
  if (activation == SOL_ACTIVATION_RELU) return x < 0 ? 0 : x;
  if (activation != SOL_ACTIVATION_GELU) return x;
  return x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

static void reference(const void *args, double *const *at) {
  SolGemm a = gemm_filled(args);
  int64_t wide = gemm_b_width(&a);
  for (int64_t at_c = 0; at_c < a.batch * a.m * a.n; at_c++) {
    int64_t j = at_c % a.n, i = at_c / a.n % a.m, z = at_c / a.n / a.m;
    double x = sum_of(&a, at, z, i, j, wide);
    if (a.beta != 0) x += (double)a.beta * at[0][at_c];
    if (a.activation == SOL_ACTIVATION_SILU_MUL)
      x = silu(x) * sum_of(&a, at, z, i, j + a.n, wide);
    else
      x = activate(x, a.activation);
    at[0][at_c] = x + (at[4] ? at[4][at_c] : 0);
  }
}

// ---- the cost ----

static void cost(const void *args, SolOpArgs *op) {
  const SolGemm *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n, a->k}, .dtype = a->dtype, .out_dtype = gemm_out(a)};
}

static void cost_more(const void *args, SolCost *out) {
  const SolGemm *a = args;
  double c = (double)a->m * (double)a->n, in = ops_size(a->dtype), to = ops_size(gemm_out(a));
  if (a->activation == SOL_ACTIVATION_SILU_MUL) {
    out->bytes_read += (double)a->n * (double)a->k * in;
    out->flops *= 2;
  }
  double wide = (double)gemm_b_width(a), bytes = a->weights == SOL_WEIGHTS_INT4 ? 0.5 : 1;
  if (a->weights) out->bytes_read -= wide * (double)a->k * (in - bytes);
  if (a->b_scales) out->bytes_read += wide * (double)gemm_groups(a) * 4;
  if (a->beta != 0) out->bytes_read += c * to;
  if (a->residual) out->bytes_read += c * to;
  double batch = a->batch ? (double)a->batch : 1;
  out->bytes_read *= batch, out->bytes_written *= batch, out->flops *= batch;
  out->bytes_read += a->a_scale ? 4 : 0;
  out->bytes_read += a->b_scale ? 4 : 0;
  if (a->bias) out->bytes_read += (double)gemm_b_width(a) * ops_size(gemm_bias_type(a));
}

// Sums of fp8 are rounded to about 13 bits of the largest product at each step.
static double slack_of(const void *args) {
  return ((const SolGemm *)args)->dtype == SOL_FP8 ? 16384 : 64;
}

// Tiles of 128 by 256 and 128 by 128 with a second, ragged one; one row and up to 16; nothing; no k.
static const int64_t shapes[][4] = {{1, 40, 72}, {9, 72, 136}, {72, 24, 264}, {200, 264, 72},
                                    {3, 7, 5},   {0, 8, 8},    {5, 8, 0}};
// Decoding, which reading B bounds; then a large one, which is bound by arithmetic.
static const int64_t bench[][4] = {{1, 4096, 4096},  {4, 4096, 4096},   {16, 4096, 4096}, {1, 28672, 8192},
                                   {8, 28672, 8192}, {16, 28672, 8192}, {512, 4096, 4096}};

const OpsDef ops_gemm = {
    .name = "gemm",
    OPS_ARGS(SolGemm, "MxNxK"),
    OPS_OPTIONS(option_names),
    .make = make,
    .views = views,
    .check = check,
    .cpu = gemm_cpu,
    .launch = gemm_launch,
    .reference = reference,
    .cost = cost,
    .cost_more = cost_more,
    .slack_of = slack_of,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("gemm", gemm_kernels),
    .loaded = gemm_ask_clusters,
    .shared = gemm_shared,
    .least_shared = GEMM_FEW_SHARED(0, 4),
};
