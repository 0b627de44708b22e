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

// Clusters that run at a time. An SM's neighbours within a GPC are at least 16: clusters do not go beyond it.
static int64_t clusters_of(const SolContext *ctx, int size, int per_sm) {
  int64_t blocks = (int64_t)ctx->sms * per_sm, each = 16 * per_sm;
  int64_t clusters = size <= 2 ? blocks / size : blocks / each * (each / size);
  return clusters ? clusters : 1;
}

GemmPlan gemm_plan(const SolContext *ctx, const SolGemm *a, int kernel, int parts) {
  const GemmVariant *v = &gemm_variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  int64_t tall = GEMM_ROWS(v->tall) * v->down, wide = v->wide * v->across, steps = gemm_steps(a);
  int64_t down = v->swapped ? a->n : a->m, across = v->swapped ? a->m : a->n;
  GemmPlan p = {.kernel = kernel, .parts = parts < steps ? parts : (int)steps};
  p.rows = ops_ceil_div(down, gated && v->swapped ? tall / 2 : tall);
  p.columns = ops_ceil_div(across, gated && !v->swapped ? wide / 2 : wide);
  p.tiles = p.rows * p.columns * a->batch;
  p.at_a_time = clusters_of(ctx, v->down * v->across * p.parts, v->per_sm);
  return p;
}

// ---- the estimate ----

// Microseconds, unless they say otherwise; fitted to what bench/gemm_sweep.cpp measured on an H200 (kernels/gemm/README.md).
static const double clock_ghz = 1.6, clock_less = 0.22;               // less: of what takes long, for power
static const double line_ns = 1.08, line_more = 0.49;                 // a line of L2; more: when all SMs load
static const double call_us = 2.2, tile_us = 0.2, tile_area_us = 1.8; // a call; a tile's end, and by its size
static const double split_us = 0.8, few_us = 0.5,
                    split_area_us = 2.6;              // the end of one that was split; few: swapped
static const double memory_us = 2.5, memory_tb = 4.3; // DRAM: before it is busy; TB/s

// L2's lines of 128 bytes that a row's 128 bytes are in, on average over rows `bytes` apart.
static double lines_of(int64_t bytes) {
  return bytes % 128 == 0 ? 1 : bytes % 64 == 0 ? 1.5 : bytes % 32 == 0 ? 1.75 : 1.9;
}

// What a block's step takes: multiplying a stage, or loading its own part of it. busy: the share of the SMs that load.
static double step_time(const SolGemm *a, const GemmVariant *v, double busy) {
  int64_t size = ops_size(a->dtype), rows = GEMM_ROWS(v->tall);
  double flops = 2.0 * (double)a->m * (double)gemm_b_width(a) * (double)a->k * (double)a->batch;
  double clock = clock_ghz - clock_less * fmin(1, flops / (2e11 * 2 / (double)size));
  double multiply = (double)(rows * v->wide) * 64 / 2048 / clock;
  int64_t first = v->swapped ? a->b_stride : a->a_stride, second = v->swapped ? a->a_stride : a->b_stride;
  double lines =
      (double)rows / v->across * lines_of(first * size) + (double)v->wide / v->down * lines_of(second * size);
  return fmax(multiply, lines * (line_ns + line_more * fmax(0, 2 * busy - 1))) * 1e-3;
}

static double bytes_of(const SolGemm *a) {
  double m = (double)a->m, n = (double)a->n, k = (double)a->k, out = ops_size(gemm_out(a));
  return (double)a->batch * (ops_size(a->dtype) * k * (m + (double)gemm_b_width(a)) + out * m * n);
}

// Blocks that share an SM take turns at its tensor cores; their ends overlap.
double gemm_estimate(const SolContext *ctx, const SolGemm *a, const GemmPlan *p) {
  const GemmVariant *v = &gemm_variants[p->kernel];
  int64_t blocks = p->tiles * v->down * v->across * p->parts, waves = ops_ceil_div(p->tiles, p->at_a_time);
  int64_t turns = ops_ceil_div(p->tiles * v->per_sm, p->at_a_time);
  double area = GEMM_ROWS(v->tall) * v->wide / 32768.0, steps = (double)ops_ceil_div(gemm_steps(a), p->parts);
  double end =
      v->split ? (v->swapped ? few_us : split_us) + split_area_us * area : tile_us + tile_area_us * area;
  double step = step_time(a, v, fmin(1, (double)blocks / ctx->sms));
  double time = call_us + (double)turns * steps * step + (double)waves * end;
  double memory = memory_us + bytes_of(a) / (memory_tb * 1e6);
  return fmax(time, memory) + 0.1 * fmin(time, memory); // they do not overlap as a whole
}

// More blocks than two for each place gain nothing.
static int most_parts(const SolContext *ctx, const SolGemm *a, int kernel) {
  const GemmVariant *v = &gemm_variants[kernel];
  if (!v->split) return 1;
  int64_t tiles = gemm_plan(ctx, a, kernel, 1).tiles, steps = gemm_steps(a) / 2;
  int64_t room = tiles ? 2 * ctx->sms * v->per_sm / tiles : 1;
  int64_t most = room < steps ? room : steps;
  return most < 1 ? 1 : most < GEMM_PARTS ? (int)most : GEMM_PARTS;
}

bool gemm_pick(SolContext *ctx, const SolGemm *a, GemmPlan *best) {
  bool found = false;
  double least = 0;
  if (ctx->cc < 90 || !gemm_can_tile(a)) return false;
  for (int i = 0; i < GEMM_KERNELS; i++) {
    if (!gemm_tile_fits(a, i) || !ops_has_kernel(ctx, &ops_gemm, i)) continue;
    for (int parts = 1; parts <= most_parts(ctx, a, i); parts *= 2) {
      GemmPlan p = gemm_plan(ctx, a, i, parts);
      double time = gemm_estimate(ctx, a, &p);
      if (!found || time < least) *best = p, least = time, found = true;
    }
  }
  return found;
}
