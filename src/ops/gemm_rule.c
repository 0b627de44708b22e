// Which tiles a GEMM takes on Hopper: of the kernels that fit, the one whose time by the estimate is least.
#include <limits.h>
#include <math.h>

#include "ops/gemm_parts.h"

const GemmVariant gemm_variants[GEMM_KERNELS] = {
#define TILED(kind, a, b, tall, wide, stages, down, across, per_sm)                                          \
  {kind, a, b, tall, wide, stages, down, across, false, per_sm, GEMM_THREADS(per_sm)},
#define SPLIT(kind, a, b, wide, stages, per_sm)                                                              \
  {kind, a, b, 1, wide, stages, 1, 1, true, per_sm, GEMM_THREADS(per_sm)},
#define FEW(kind, bits, tiles, deep, ahead)    {.wide = 16 * (tiles), .threads = GEMM_FEW_WARPS * 32},
#define FEW_89(kind, bits, tiles, deep, ahead) FEW(kind, bits, tiles, deep, ahead)
#define ANY(kind)                              {.threads = GEMM_ANY_THREADS},
#define ANY_WEIGHTS(kind, bits)                {.threads = GEMM_ANY_THREADS},
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

// Tensor copies write C of gemm_wgmma.cuh, in pieces that half of a tile must have whole; where the operands are swapped it has not all
// epilogues.
bool gemm_tile_fits(const SolGemm *a, int kernel, bool swapped) {
  const GemmVariant *v = &gemm_variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL, a_turned = a->a_columns, b_turned = !a->b_columns;
  if (!v->tall || v->kind != ops_kind(a->dtype) || v->a_turned != (swapped ? b_turned : a_turned) ||
      v->b_turned != (swapped ? a_turned : b_turned))
    return false;
  if (v->split) return !gated || swapped || v->wide >= 64;
  int out = ops_size(gemm_out(a));
  bool plain = !gated && a->beta == 0 && !a->residual && out == 2;
  return (swapped ? plain : !gated || v->wide % 128 == 0) &&
         gemm_reaches(a->c, a->c_stride, a->c_batch_stride, a->batch, out);
}

// Asked of two kernels, one that fills an SM and one that fills half of it, for all.
void gemm_ask_clusters(SolContext *ctx, SolDriverKernel *const *loaded) {
  static const int kernels[] = {GEMM_SPLIT_2_00_160_5, GEMM_SPLIT_2_00_64_4};
  for (int i = 0; i < 2 && ctx->backend == SOL_BACKEND_CUDA && ctx->cc >= 90; i++)
    for (uint32_t size = 1; size <= OPS_CLUSTER && loaded[kernels[i]]; size++) {
      SolDriverLaunch l = {.kernel = loaded[kernels[i]],
                           .grid = {size, 1, 1},
                           .block = {gemm_variants[kernels[i]].threads, 1, 1},
                           .cluster = {size, 1, 1},
                           .dynamic_shared = gemm_shared[kernels[i]]};
      int *out = &ctx->clusters[i][size - 1];
      if (sol_driver_active_clusters(ctx->driver, &l, out, NULL)) *out = 0;
    }
}

// Where it is not known: GPCs have at least 16 SMs, and clusters do not go beyond one.
int64_t gemm_clusters_of(const SolContext *ctx, int size, int per_sm) {
  int known = ctx->clusters[per_sm - 1][size - 1];
  if (known) return known;
  int64_t blocks = (int64_t)ctx->sms * per_sm, each = 16 * per_sm;
  int64_t clusters = size <= 2 ? blocks / size : blocks / each * (each / size);
  return clusters ? clusters : 1;
}

GemmPlan gemm_plan(const SolContext *ctx, const SolGemm *a, int kernel, int parts, bool swapped) {
  const GemmVariant *v = &gemm_variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  int64_t tall = GEMM_ROWS(v->tall) * v->down, wide = v->wide * v->across, steps = gemm_steps(a);
  int64_t down = swapped ? a->n : a->m, across = swapped ? a->m : a->n;
  GemmPlan p = {.kernel = kernel, .parts = parts < steps ? parts : (int)steps, .swapped = swapped};
  p.rows = ops_ceil_div(down, gated && swapped ? tall / 2 : tall);
  p.columns = ops_ceil_div(across, gated && !swapped ? wide / 2 : wide);
  p.tiles = p.rows * p.columns * a->batch;
  p.at_a_time = gemm_clusters_of(ctx, v->down * v->across * p.parts, v->per_sm);
  return p;
}

// ---- the estimate ----

// What a kernel takes, fitted by bench/gemm_fit.py to what bench/gemm_sweep.cpp measured on an H200: a step, and how much more where
// rows lie across lines of L2, in nanoseconds; the end of a tile and a call, in microseconds.
typedef struct GemmCost {
  int wide, down, across;
  bool split;
  double step, more, end, call;
} GemmCost;
static const GemmCost costs[] = {
    {256, 2, 1, false, 607, 65, 1.96, 2.79},  {224, 2, 1, false, 542, 69, 2.00, 2.76},
    {192, 2, 1, false, 466, 79, 1.69, 2.88},  {192, 2, 2, false, 480, 0, 1.75, 2.41},
    {160, 1, 2, false, 409, 101, 1.61, 2.26}, {160, 2, 2, false, 385, 21, 1.69, 2.58},
    {128, 2, 1, false, 341, 88, 1.26, 2.26},  {96, 2, 1, false, 299, 113, 1.00, 2.19},
    {64, 1, 1, false, 253, 89, 0.70, 2.24},   {64, 2, 2, false, 219, 32, 1.02, 2.90},
    {160, 1, 1, true, 470, 147, 6.64, 2.23},  {128, 1, 1, true, 410, 162, 6.01, 1.58},
    {96, 1, 1, true, 335, 166, 5.55, 1.48},   {64, 1, 1, true, 309, 143, 3.66, 3.93},
    {32, 1, 1, true, 194, 107, 3.55, 6.20},
};
// DRAM, and copies from L2 into shared memory: before they are busy; TB/s; how much more lines beyond one cost the latter.
static const double memory_us = 2.5, memory_tb = 4.3, copies_tb = 8, copies_more = 0.3;

static const GemmCost *cost_of(const GemmVariant *v) {
  const GemmCost *best = &costs[0]; // operands that do not lie along k have no times of their own
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
    const GemmCost *c = &costs[i];
    bool same = c->wide == v->wide && c->split == v->split;
    if (same) best = c;
    if (same && c->down == v->down && c->across == v->across) break;
  }
  return best;
}

// L2's lines of 128 bytes beyond one that a row's 128 bytes are in, on average over rows `bytes` apart.
static double more_lines(int64_t bytes) {
  return bytes % 128 == 0 ? 0 : bytes % 64 == 0 ? 0.5 : bytes % 32 == 0 ? 0.75 : 0.9;
}

static double bytes_of(const SolGemm *a) {
  double m = (double)a->m, n = (double)a->n, k = (double)a->k, out = ops_size(gemm_out(a));
  return (double)a->batch * (ops_size(a->dtype) * k * (m + (double)gemm_b_width(a)) + out * m * n);
}

// Blocks that share an SM take turns at it.
double gemm_estimate(const SolContext *ctx, const SolGemm *a, const GemmPlan *p) {
  const GemmVariant *v = &gemm_variants[p->kernel];
  const GemmCost *c = cost_of(v);
  int64_t size = ops_size(a->dtype), blocks = p->tiles * v->down * v->across * p->parts;
  int64_t turns = ops_ceil_div(p->tiles * (blocks <= ctx->sms ? 1 : v->per_sm), p->at_a_time);
  double more = (more_lines(a->a_stride * size) + more_lines(a->b_stride * size)) / 2;
  double steps = (double)(turns * ops_ceil_div(gemm_steps(a), p->parts));
  double time = steps * (c->step + c->more * more) * 1e-3 +
                (double)ops_ceil_div(p->tiles, p->at_a_time) * c->end + c->call;
  double copied =
      (double)(p->tiles * gemm_steps(a) * 128 * (GEMM_ROWS(v->tall) * v->down + v->wide * v->across));
  double memory =
      memory_us + fmax(bytes_of(a) / memory_tb, copied * (1 + copies_more * more) / copies_tb) * 1e-6;
  return fmax(time, memory) + 0.3 * fmin(time, memory); // they do not overlap as a whole
}

// More blocks than two for each place gain nothing.
static int most_parts(const SolContext *ctx, const SolGemm *a, int kernel, bool swapped) {
  const GemmVariant *v = &gemm_variants[kernel];
  if (!v->split) return 1;
  int64_t tiles = gemm_plan(ctx, a, kernel, 1, swapped).tiles, steps = gemm_steps(a) / 2;
  int64_t room = tiles ? 2 * ctx->sms * v->per_sm / tiles : 1;
  int64_t most = room < steps ? room : steps;
  return most < 1 ? 1 : most < GEMM_PARTS ? (int)most : GEMM_PARTS;
}

bool gemm_pick(SolContext *ctx, const SolGemm *a, GemmPlan *best) {
  bool found = false;
  double least = 0;
  if (ctx->cc < 90 || !gemm_can_tile(a)) return false;
  for (int i = 0; i < 2 * GEMM_KERNELS; i++) {
    int kernel = i / 2;
    bool swapped = i % 2;
    if (!gemm_tile_fits(a, kernel, swapped) || !ops_has_kernel(ctx, &ops_gemm, kernel)) continue;
    for (int parts = 1; parts <= most_parts(ctx, a, kernel, swapped); parts++) {
      GemmPlan p = gemm_plan(ctx, a, kernel, parts, swapped);
      double time = gemm_estimate(ctx, a, &p);
      if (!found || time < least) *best = p, least = time, found = true;
    }
  }
  return found;
}
