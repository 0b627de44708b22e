// Which tiles a GEMM takes on Hopper: of the kernels that fit, the one whose time by the estimate is least.
#include <limits.h>
#include <math.h>

#include "ops/gemm_parts.h"

const GemmVariant gemm_variants[GEMM_KERNELS] = {
#define TILED(kind, a, b, tall, wide, stages, down, across, per_sm)                                          \
  {kind, a, b, tall, wide, stages, down, across, false, false, per_sm, GEMM_THREADS(per_sm)},
#define SPLIT(kind, a, b, wide, stages, swapped, per_sm)                                                     \
  {kind, a, b, 1, wide, stages, 1, 1, true, swapped, per_sm, GEMM_THREADS(per_sm)},
#define SKINNY(kind, eights, warps, deep)    {.threads = (warps)*32},
#define SKINNY_89(kind, eights, warps, deep) SKINNY(kind, eights, warps, deep)
#define ANY(kind)                            {.threads = GEMM_ANY_THREADS},
#define WEIGHTS(kind, bits, stages)          {.threads = GEMM_THREADS(2)},
#define ANY_WEIGHTS(kind, bits)              {.threads = GEMM_ANY_THREADS},
#include "kernels/gemm/gemm.def"
};

bool gemm_reaches(const void *at, int64_t stride, int64_t batch_stride, int64_t batch, int size) {
  return !((uintptr_t)at % 16) && !(stride * size % 16) && (batch < 2 || !(batch_stride * size % 16)) &&
         stride * size < INT64_C(1) << 40 && batch_stride * size < INT64_C(1) << 40;
}

// Whether tensor copies can read A and B: aligned, and coordinates and tiles fit into 31 bits.
bool gemm_can_tile(const SolGemm *a) {
  int in = ops_size(a->dtype);
  double tiles = ((double)a->m / 16 + 2) * ((double)a->n / 64 + 2) * (double)a->batch * GEMM_PARTS;
  return a->k > 0 && a->k < INT_MAX / 2 && a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && a->batch < INT_MAX &&
         tiles < INT_MAX && gemm_reaches(a->a, a->a_stride, a->a_batch_stride, a->batch, in) &&
         gemm_reaches(a->b, a->b_stride, a->b_batch_stride, a->batch, in);
}

// Tensor copies write C of gemm_wgmma.cuh, in pieces that half of a tile must have whole.
bool gemm_tile_fits(const SolGemm *a, int kernel) {
  const GemmVariant *v = &gemm_variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  return v->tall && v->kind == ops_kind(a->dtype) && v->a_turned == !!a->a_columns &&
         v->b_turned == !a->b_columns &&
         (v->split || ((!gated || v->wide % 128 == 0) &&
                       gemm_reaches(a->c, a->c_stride, a->c_batch_stride, a->batch, ops_size(gemm_out(a)))));
}

static int64_t steps_of(const SolGemm *a) {
  return ops_ceil_div(a->k * ops_size(a->dtype), 128);
}

// Clusters that run at a time. An SM's neighbours within a GPC are at least 16: clusters do not go beyond it.
static int64_t clusters_of(const SolContext *ctx, int size, int per_sm) {
  int64_t blocks = (int64_t)ctx->sms * per_sm, each = 16 * per_sm;
  int64_t clusters = size <= 2 ? blocks / size : blocks / each * (each / size);
  return clusters ? clusters : 1;
}

GemmPlan gemm_plan(const SolContext *ctx, const SolGemm *a, int kernel, int parts) {
  const GemmVariant *v = &gemm_variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  int64_t tall = GEMM_ROWS(v->tall) * v->down, wide = v->wide * v->across, steps = steps_of(a);
  int64_t down = v->swapped ? a->n : a->m, across = v->swapped ? a->m : a->n;
  GemmPlan p = {.kernel = kernel, .parts = parts < steps ? parts : (int)steps};
  p.rows = ops_ceil_div(down, gated && v->swapped ? tall / 2 : tall);
  p.columns = ops_ceil_div(across, gated && !v->swapped ? wide / 2 : wide);
  p.tiles = p.rows * p.columns * a->batch;
  p.at_a_time = clusters_of(ctx, v->down * v->across * p.parts, v->per_sm);
  return p;
}

// ---- the estimate ----

// L2's lines of 128 bytes that a row's 128 bytes are in, on average over rows `bytes` apart.
static double lines_of(int64_t bytes) {
  return bytes % 128 == 0 ? 1 : bytes % 64 == 0 ? 1.5 : bytes % 32 == 0 ? 1.75 : 1.9;
}

// What a block's stage takes: multiplying it, or loading its own part of it, a line after the other.
static double step_time(const SolContext *ctx, const SolGemm *a, const GemmVariant *v, double busy) {
  int size = ops_size(a->dtype);
  double flops = 2.0 * (double)a->m * (double)a->n * (double)a->k * (double)a->batch;
  double ghz = 1.6 - 0.22 * fmin(1, flops / 2e11); // large ones run at lower clocks
  double multiply = GEMM_ROWS(v->tall) * v->wide * 64 / 2048.0 / ghz * 1e-3 * v->per_sm;
  double of_a = GEMM_ROWS(v->tall) / (double)v->across, of_b = v->wide / (double)v->down;
  int64_t stride_a = v->swapped ? a->b_stride : a->a_stride,
          stride_b = v->swapped ? a->a_stride : a->b_stride;
  double lines = of_a * lines_of(stride_a * size) + of_b * lines_of(stride_b * size);
  double load = lines * (1.08 + 0.49 * fmax(0, busy - 0.5) * 2) * 1e-3 * v->per_sm;
  (void)ctx;
  return pow(pow(multiply, 5) + pow(load, 5), 0.2);
}

static double bytes_of(const SolGemm *a) {
  double m = (double)a->m, n = (double)a->n, k = (double)a->k, in = ops_size(a->dtype),
         out = ops_size(gemm_out(a));
  return (double)a->batch * (in * k * (m + (double)gemm_b_width(a)) + out * m * n);
}

double gemm_estimate(const SolContext *ctx, const SolGemm *a, const GemmPlan *p) {
  const GemmVariant *v = &gemm_variants[p->kernel];
  int64_t size = v->down * v->across * p->parts, waves = ops_ceil_div(p->tiles, p->at_a_time);
  double slots = (double)ctx->sms * v->per_sm, busy = fmin(1, (double)(p->tiles * size) / slots);
  double area = GEMM_ROWS(v->tall) * v->wide / 32768.0, steps = (double)ops_ceil_div(steps_of(a), p->parts);
  double tile = steps * step_time(ctx, a, v, busy) + 2 * area;
  if (v->split) tile += 0.6 + 2.6 * area * (p->parts - 1) / p->parts;
  double time = 2.2 + (double)waves * tile, memory = 2.5 + bytes_of(a) / 4.3e6;
  return pow(pow(time, 8) + pow(memory, 8), 0.125);
}

// Splitting k for few rows must not depend on how many there are: a row's sums are always made in the same order.
static int most_parts(const SolGemm *a, int kernel) {
  int64_t steps = steps_of(a);
  if (!gemm_variants[kernel].split) return 1;
  return steps < GEMM_PARTS ? (int)steps : GEMM_PARTS;
}

bool gemm_pick(SolContext *ctx, const SolGemm *a, GemmPlan *best) {
  bool found = false;
  double least = 0;
  if (ctx->cc < 90 || !gemm_can_tile(a)) return false;
  for (int i = 0; i < GEMM_KERNELS; i++) {
    if (!gemm_tile_fits(a, i) || !ops_has_kernel(ctx, &ops_gemm, i)) continue;
    for (int parts = 1; parts <= most_parts(a, i); parts++) {
      GemmPlan p = gemm_plan(ctx, a, i, parts);
      double time = gemm_estimate(ctx, a, &p);
      if (!found || time < least) *best = p, least = time, found = true;
    }
  }
  return found;
}
