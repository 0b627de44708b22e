// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel], over groups of channels
#include <math.h>

#include "base/error.h"
#include "kernels/group_norm/group_norm.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/held.h"

static const char *const kernel_names[] = {"sol_group_norm_2", "sol_group_norm_4"};
static const uint32_t kernel_shared[] = {GROUP_NORM_SHARED, GROUP_NORM_SHARED};

static SolDtype out_of(const SolGroupNorm *a) {
  return ops_or(a->out_dtype, a->dtype);
}
static SolDtype weight_of(const SolGroupNorm *a) {
  return ops_or(a->weight_dtype, a->dtype);
}
// Elements of a group, all of which are one row. -1 where that is too many.
static int64_t row_of(const SolGroupNorm *a) {
  return a->groups > 0 && a->c % a->groups == 0 ? ops_times(a->c / a->groups, a->s) : -1;
}

static bool make(const OpsCase *c, void *args) {
  SolGroupNorm *a = args;
  *a = (SolGroupNorm){.batch = c->dim[0],
                      .c = c->dim[1],
                      .s = c->dim[2],
                      .groups = c->dim[3],
                      .dtype = c->dtype,
                      .out_dtype = c->out_dtype,
                      .weight_dtype = c->weight_dtype,
                      .eps = 1e-5f};
  return !c->pad && a->groups > 0 && a->c % a->groups == 0;
}

// A row of x and y is a group: what its elements have in common is rounded alike.
static int views(const void *args, OpsView *v) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a), rows = a->batch && n >= 0 ? a->groups : 0;
  v[0] =
      OPS_VIEW(SolGroupNorm, y, out_of(a), OPS_OUT, .batch = a->batch, .rows = rows, .cols = n, .alias = 2);
  v[1] = OPS_VIEW(SolGroupNorm, x, a->dtype, OPS_IN, .batch = a->batch, .rows = rows, .cols = n);
  v[2] = OPS_VIEW(SolGroupNorm, weight, weight_of(a), OPS_IN, .rows = 1, .cols = a->c, .optional = true,
                  .fill = OPS_FILL_UNIT);
  v[3] = OPS_VIEW(SolGroupNorm, bias, weight_of(a), OPS_IN, .rows = 1, .cols = a->c, .optional = true,
                  .fill = OPS_FILL_UNIT);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolGroupNorm *a = args;
  if (a->groups <= 0 || a->c < 0 || a->c % a->groups)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%lld channels do not make %lld groups", (long long)a->c,
                    (long long)a->groups);
  if (weight_of(a) != a->dtype && weight_of(a) != SOL_FP32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "weight and bias must be %s or fp32, not %s",
                    sol_dtype_name(a->dtype), sol_dtype_name(weight_of(a)));
  return ops_check_reals(a->dtype, out_of(a), err);
}

// CPU: the mean, then the variance around it
static void cpu_stats(const SolGroupNorm *a, int64_t start, int64_t n, double *mean, double *variance) {
  float f[CPU_CHUNK];
  double sum = 0, squares = 0;
  CPU_CHUNKS(at, c, n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) sum += (double)f[i];
  }
  *mean = sum / (double)n;
  CPU_CHUNKS(at, c, n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) squares += ((double)f[i] - *mean) * ((double)f[i] - *mean);
  }
  *variance = squares / (double)n;
}

static void cpu_groups(const void *args, int64_t begin, int64_t end) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a), of_group = a->c / a->groups;
  for (int64_t row = begin; row < end; row++) {
    double mean, variance;
    cpu_stats(a, row * n, n, &mean, &variance);
    float middle = (float)mean, over = (float)(1 / sqrt(variance + (double)a->eps));
    for (int64_t k = 0; k < of_group; k++) {
      float f[CPU_CHUNK], times = 1, plus = 0;
      int64_t channel = row % a->groups * of_group + k, start = row * n + k * a->s;
      if (a->weight) cpu_load(weight_of(a), a->weight, channel, 1, &times);
      if (a->bias) cpu_load(weight_of(a), a->bias, channel, 1, &plus);
      CPU_CHUNKS(at, c, a->s) {
        cpu_load(a->dtype, a->x, start + at, c, f);
        for (int64_t i = 0; i < c; i++) f[i] = (f[i] - middle) * (over * times) + plus;
        cpu_store(out_of(a), a->y, start + at, c, f);
      }
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolGroupNorm *a = args;
  cpu_parallel(ctx, a->batch * a->groups, a->batch * a->c * a->s, cpu_groups, a);
  return SOL_OK;
}

// Groups of up to 4 KiB share a block, longer ones have one or a cluster, whose shared memory holds as much of the group as it can.
static HeldShape plan(const SolContext *ctx, int64_t rows, int64_t n, int in, OpsLaunch *l) {
  enum { MOST_BLOCKS = 16, SHORT = 256, LEAST = 4, EACH = 8 };
  int64_t chunks = ops_ceil_div(n, 16 / in);
  if (chunks <= SHORT) return held_short(rows, chunks, LEAST, true, l);
  HeldShape s = held_long(ctx, rows, chunks, MOST_BLOCKS, EACH, l);
  int64_t all = ops_ceil_div(chunks, l->cluster * l->block),
          most = (ctx->cc >= 90 ? GROUP_NORM_SHARED : HELD_SHARED) / (16 * l->block);
  l->shared = (uint32_t)(cpu_min(all, most) * 16) * l->block;
  s.shared = (int32_t)l->shared;
  return s;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolGroupNorm *a = args;
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  GroupNormParams p = {.y = a->y,
                       .x = a->x,
                       .weight = a->weight,
                       .bias = a->bias,
                       .n = row_of(a),
                       .groups = (uint64_t)a->groups,
                       .channels = (uint64_t)(a->c / a->groups),
                       .divider = elementwise_divider((uint64_t)a->s),
                       .x_kind = ops_kind(a->dtype),
                       .y_kind = ops_kind(out_of(a)),
                       .weight_kind = ops_kind(weight_of(a)),
                       .alike = ((uintptr_t)a->x & 15) / (uintptr_t)in ==
                                    ((uintptr_t)a->y & (uintptr_t)(16 / in * out - 1)) / (uintptr_t)out &&
                                (uintptr_t)a->y % 16 % (uintptr_t)out == 0,
                       .eps = a->eps};
  OpsLaunch l = {.kernel = in == 4, .early = true, .params = &p, .bytes = sizeof p};
  p.held = plan(ctx, a->batch * a->groups, p.n, in, &l);
  return ops_launch(ctx, &ops_group_norm, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a);
  for (int64_t row = 0; n && row < a->batch * a->groups; row++) {
    const double *x = at[1] + row * n;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) {
      int64_t channel = row % a->groups * (a->c / a->groups) + i / a->s;
      double y = (x[i] - mean) / sqrt(variance + (double)a->eps);
      at[0][row * n + i] = y * (at[2] ? at[2][channel] : 1) + (at[3] ? at[3][channel] : 0);
    }
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolGroupNorm *a = args;
  *op = (SolOpArgs){.dim = {a->batch, a->c, a->s},
                    .dtype = a->dtype,
                    .out_dtype = a->out_dtype,
                    .weight_dtype = a->weight_dtype};
}

// Batch, channels, elements of a channel, groups: a channel to an element, several to a vector, one to a cluster.
static const int64_t shapes[][4] = {{1, 1, 1, 1},    {2, 6, 1, 3},   {3, 8, 5, 2},    {2, 32, 49, 8},
                                    {1, 4, 1000, 2}, {2, 64, 64, 4}, {1, 2, 9001, 1}, {1, 3, 200001, 1},
                                    {0, 4, 4, 2},    {2, 4, 0, 2}};
static const int64_t bench[][4] = {{2, 320, 4096, 32},  {2, 1280, 256, 32},   {8, 320, 16384, 32},
                                   {4, 512, 65536, 32}, {2, 256, 262144, 32}, {64, 64, 3136, 16}};

const OpsDef ops_group_norm = {
    .name = "group_norm",
    OPS_ARGS(SolGroupNorm, "BxCxSxG"),
    OPS_OWN_FUNCTIONS,
    .slack = 64,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("group_norm", kernel_names),
    .shared = kernel_shared,
    .least_shared = HELD_SHARED,
};
