// loss = log(sum of exp(x)) - x[target] of each row, and its gradient
#include <math.h>

#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/softmax.h"

static SolDtype id_of(const SolCrossEntropy *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}
static float scale_of(const SolCrossEntropy *a) {
  return a->scale == 0 ? 1 : a->scale;
}

static bool make(const OpsCase *c, void *args) {
  SolCrossEntropy *a = args;
  *a = (SolCrossEntropy){.m = c->dim[0], .n = c->dim[1], .dtype = c->dtype, .id_dtype = c->id_dtype};
  a->scale = 0.25f;
  if (c->pad) a->x_stride = a->n + c->pad, a->gradient_stride = a->n + (c->pad == 3 ? 4 : c->pad);
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolCrossEntropy *a = args;
  v[0] = OPS_VIEW(SolCrossEntropy, loss, SOL_FP32, OPS_OUT, .rows = 1, .cols = a->n ? a->m : 0);
  v[1] = OPS_VIEW(SolCrossEntropy, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolCrossEntropy, targets, id_of(a), OPS_IN, .rows = 1, .cols = a->m, .fill = OPS_FILL_IDS,
                  .limit = a->n);
  v[3] = OPS_VIEW(SolCrossEntropy, gradient, a->dtype, OPS_OUT, .rows = a->m, .cols = a->n,
                  .stride = a->gradient_stride, .alias = 2, .optional = true, .extra = true, .unit = 1);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolCrossEntropy *a = args;
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be fp32, fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  return ops_check_ids("targets", id_of(a), err);
}

// CPU
static float row_top(const SolCrossEntropy *a, int64_t start) {
  float top = -INFINITY, f[CPU_CHUNK];
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) top = f[i] > top ? f[i] : top;
  }
  return top;
}

static double row_sum(const SolCrossEntropy *a, int64_t start, float top) {
  double sum = 0;
  float f[CPU_CHUNK];
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) f[i] = elementwise_exp(f[i] - top); // inf - inf is a NaN, and stays one
    for (int64_t i = 0; i < c; i++) sum += (double)f[i];
  }
  return sum;
}

static void cpu_gradient(const SolCrossEntropy *a, int64_t row, int64_t target, float top, float by) {
  int64_t from = row * ops_stride(a->x_stride, a->n), to = row * ops_stride(a->gradient_stride, a->n);
  float f[CPU_CHUNK];
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, from + at, c, f);
    for (int64_t i = 0; i < c; i++) f[i] = target < 0 ? 0 : elementwise_exp(f[i] - top) * by * scale_of(a);
    if (target >= at && target < at + c) f[target - at] -= scale_of(a);
    cpu_store(a->dtype, a->gradient, to + at, c, f);
  }
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolCrossEntropy *a = args;
  for (int64_t row = begin; row < end; row++) {
    int64_t start = row * ops_stride(a->x_stride, a->n), target = cpu_id(id_of(a), a->targets, row);
    bool used = target >= 0 && target < a->n;
    float top = row_top(a, start), x = 0;
    double sum = row_sum(a, start, top);
    if (used) cpu_load(a->dtype, a->x, start + target, 1, &x);
    a->loss[row] = used ? (float)(log(sum) - (double)(x - top)) : 0;
    if (a->gradient) cpu_gradient(a, row, used ? target : -1, top, (float)(1 / sum));
  }
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolCrossEntropy *a = args;
  SolSoftmax rows = {.y = a->gradient,
                     .x = a->x,
                     .m = a->m,
                     .n = a->n,
                     .y_stride = a->gradient_stride,
                     .x_stride = a->x_stride,
                     .dtype = a->dtype,
                     .out_dtype = a->dtype};
  SoftmaxParams last = {
      .loss = a->loss, .targets = a->targets, .scale = scale_of(a), .wide_ids = id_of(a) == SOL_INT64};
  return softmax_launch(ctx, &ops_cross_entropy, &rows, last, stream);
}

static void reference(const void *args, double *const *at) {
  const SolCrossEntropy *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double top = -INFINITY, sum = 0, target = at[2][row];
    bool used = target >= 0 && target < (double)a->n;
    for (int64_t i = 0; i < a->n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < a->n; i++) sum += exp(x[i] - top);
    at[0][row] = used ? log(sum) - (x[(int64_t)target] - top) : 0;
    for (int64_t i = 0; at[3] && i < a->n; i++)
      at[3][row * a->n + i] =
          used ? (exp(x[i] - top) / sum - ((double)i == target ? 1 : 0)) * (double)scale_of(a) : 0;
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolCrossEntropy *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .id_dtype = a->id_dtype};
}

// The accountant counts the loss alone; the gradient's bytes are added as those of an extra output.
static void cost_more(const void *args, SolCost *out) {
  const SolCrossEntropy *a = args;
  double elements = (double)a->m * (double)a->n;
  if (!a->gradient) return;
  out->flops += 3 * elements; // multiply, subtract, scale
  out->trips += 1;
}

// Blocks of one warp, of many; clusters of 2 to 16; more than shared memory holds.
static const int64_t shapes[][4] = {{1, 1},      {5, 2},      {70, 7},   {33, 31},   {9, 770},
                                    {3, 1023},   {4, 4096},   {2, 9001}, {1, 32000}, {1, 50257},
                                    {1, 131073}, {1, 600001}, {0, 64}};
static const int64_t bench[][4] = {{1, 128256},   {64, 128256},   {4096, 32000},
                                   {4096, 50257}, {2048, 128256}, {8192, 4096}};

const OpsDef ops_cross_entropy = {
    .name = "cross_entropy",
    OPS_ARGS(SolCrossEntropy, "MxN"),
    OPS_OWN_ROWS,
    .cost_more = cost_more,
    .slack = 32,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("cross_entropy", softmax_kernels),
    .shared = softmax_shared,
};
