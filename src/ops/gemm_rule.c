// Which tiles a GEMM takes on Hopper: of the kernels that fit, the one whose time by the estimate is least.
#include <limits.h>
#include <math.h>

#include "ops/gemm_parts.h"

const GemmVariant gemm_variants[GEMM_KERNELS] = {
#define ROW(id, name, shared, ...) {__VA_ARGS__},
#include "ops/gemm_kernels.def"
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

// Whether a tile has enough boxes for the blocks of a cluster to share them.
static bool shares(const GemmVariant *v, const GemmWay *way) {
  int boxes_a = v->rows / (v->a_turned ? 64 : GEMM_BOX_A(v->rows)),
      boxes_b = v->wide / GEMM_BOX_B(v->b_turned, v->wide);
  return boxes_a >= way->across && boxes_b >= way->down &&
         (v->split ? way->down * way->across * way->parts <= GEMM_PARTS : way->parts == 1);
}

// Tensor copies write C of gemm_wgmma.cuh, in pieces that half of a tile must have whole; where the operands are swapped it has not all
// epilogues.
bool gemm_tile_fits(const SolGemm *a, const GemmWay *way) {
  const GemmVariant *v = &gemm_variants[way->kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL, a_turned = a->a_columns, b_turned = !a->b_columns;
  if (!v->rows || v->kind != ops_kind(a->dtype) || v->a_turned != (way->swapped ? b_turned : a_turned) ||
      v->b_turned != (way->swapped ? a_turned : b_turned) || !shares(v, way))
    return false;
  if (v->split) return !gated || way->swapped || v->wide >= 64;
  int out = ops_size(gemm_out(a));
  bool plain = !gated && a->beta == 0 && !a->residual && out == 2;
  return (way->swapped ? plain : !gated || v->wide % 128 == 0) &&
         gemm_reaches(a->c, a->c_stride, a->c_batch_stride, a->batch, out);
}

// Asked of two kernels, one that fills an SM and one that fills half of it, for all.
void gemm_ask_clusters(SolContext *ctx, SolDriverKernel *const *loaded) {
  static const int kernels[] = {GEMM_SPLIT_2_00_160_5, GEMM_SPLIT_2_00_32_5};
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

GemmPlan gemm_plan(const SolContext *ctx, const SolGemm *a, GemmWay way) {
  const GemmVariant *v = &gemm_variants[way.kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  int64_t tall = v->rows * way.down, wide = v->wide * way.across, steps = gemm_steps(a);
  int64_t down = way.swapped ? a->n : a->m, across = way.swapped ? a->m : a->n;
  if (way.parts > steps) way.parts = (int)steps;
  GemmPlan p = {.way = way};
  p.rows = ops_ceil_div(down, gated && way.swapped ? tall / 2 : tall);
  p.columns = ops_ceil_div(across, gated && !way.swapped ? wide / 2 : wide);
  p.tiles = p.rows * p.columns * a->batch;
  p.at_a_time = gemm_clusters_of(ctx, way.down * way.across * way.parts, v->per_sm);
  return p;
}

// ---- the estimate ----

// Fitted by bench/gemm_fit.py to what bench/gemm_sweep.cpp measured on an H200, for all kernels alike. Bytes a nanosecond and SM: into shared
// memory, of L2 where every SM reads, of L2 by one SM; how much more lines beyond one cost L2, and what of a tile is outside of C.
static const double mma_ghz = 1.61, shared_rate = 144, l2_rate = 93, l2_one_rate = 108, l2_more = 0.856,
                    empty_more = 0.0268;
// TB/s of DRAM; microseconds of a call, of a tile's end for 16384 elements of a warpgroup, of blocks that share operands until all are there.
static const double dram_tb = 3.76, call_us = 3.13, end_us = 1.99, cluster_us = 0.373;
// Nanoseconds of a step besides; microseconds of adding up the parts of k at all, and for 16384 elements.
static const double step_ns = 3, parts_us = 1.13, sums_us = 0.478;
// What overlaps takes a little longer than the longest: the norm of this order.
static const double overlap = 5.5;

// L2's lines of 128 bytes beyond one that a row's 128 bytes are in, on average over rows `bytes` apart.
static double more_lines(int64_t bytes) {
  return bytes % 128 == 0 ? 0 : bytes % 64 == 0 ? 0.5 : bytes % 32 == 0 ? 0.75 : 0.9;
}

static double bytes_of(const SolGemm *a) {
  double m = (double)a->m, n = (double)a->n, k = (double)a->k, out = ops_size(gemm_out(a));
  return (double)a->batch * (ops_size(a->dtype) * k * (m + (double)gemm_b_width(a)) + out * m * n);
}

static double norm(double a, double b) {
  return pow(pow(a, overlap) + pow(b, overlap), 1 / overlap);
}

// A step of 128 bytes of k, of all blocks that an SM has at a time; busy: the share of the SMs that have any.
static double step_of(const SolGemm *a, const GemmPlan *p, double blocks, double busy) {
  const GemmVariant *v = &gemm_variants[p->way.kernel];
  int64_t size = ops_size(a->dtype);
  double area = (double)(p->tiles * p->way.down * p->way.across) * v->rows * v->wide;
  double empty = 1 - (double)a->m * (double)gemm_b_width(a) * (double)a->batch / area;
  double more = 1 + l2_more * (more_lines(a->a_stride * size) + more_lines(a->b_stride * size)) / 2;
  double read = 128 * more * ((double)v->rows / p->way.across + (double)v->wide / p->way.down);
  double multiply = v->rows * v->wide / 32.0 / mma_ghz, copy = 128.0 * (v->rows + v->wide) / shared_rate;
  double step = norm(norm(multiply, copy), norm(read / l2_rate * busy, read / l2_one_rate));
  return blocks * step * (1 + empty_more * empty) + step_ns;
}

// Of the block that has most.
static double steps_of(const SolGemm *a, const GemmPlan *p) {
  return (double)(ops_ceil_div(p->tiles, p->at_a_time) * ops_ceil_div(gemm_steps(a), p->way.parts));
}

// Microseconds that no estimate is below, for less arithmetic.
static double at_least(const SolGemm *a, const GemmPlan *p) {
  const GemmVariant *v = &gemm_variants[p->way.kernel];
  return call_us + steps_of(a, p) * v->rows * v->wide / 32.0 / mma_ghz * 1e-3;
}

// Clusters of blocks that fit twice into an SM were measured to be put so.
double gemm_estimate(const SolContext *ctx, const SolGemm *a, const GemmPlan *p) {
  const GemmVariant *v = &gemm_variants[p->way.kernel];
  double size = p->way.down * p->way.across * p->way.parts, area = v->rows * v->wide, parts = p->way.parts;
  double blocks = (double)(p->tiles < p->at_a_time ? p->tiles : p->at_a_time) * size,
         sms = fmin(blocks, ctx->sms);
  double turns = (double)ops_ceil_div(p->tiles, p->at_a_time), each = size > 1 ? v->per_sm : blocks / sms;
  double time =
      norm(steps_of(a, p) * step_of(a, p, each, sms / ctx->sms) * 1e-3, bytes_of(a) / dram_tb * 1e-6);
  double sums = parts > 1 ? parts_us + sums_us * area / 16384 * (parts - 1) / parts : 0;
  double meeting = p->way.down * p->way.across > 1 ? cluster_us : 0;
  return time + call_us + meeting + turns * (end_us * area / GEMM_GROUPS(v->rows) / 16384 + sums);
}

// More blocks than two for each place gain nothing.
static int most_parts(const SolContext *ctx, const SolGemm *a, const GemmWay *way) {
  const GemmVariant *v = &gemm_variants[way->kernel];
  if (!v->split) return 1;
  int64_t tiles = gemm_plan(ctx, a, *way).tiles, steps = gemm_steps(a) / 2;
  int64_t together = way->down * way->across,
          room = tiles ? 2 * ctx->sms * v->per_sm / (tiles * together) : 1;
  int64_t most = room < steps ? room : steps, cluster = GEMM_PARTS / together;
  return most < 1 ? 1 : most < cluster ? (int)most : (int)cluster;
}

// A kernel for split k that only shares operands does what a tiled one does, more slowly: 10256x384x256 took 22.2 us so, and 9.2 otherwise.
static bool shares_alone(const GemmWay *way) {
  return gemm_variants[way->kernel].split && way->parts == 1 && way->down * way->across > 1;
}

bool gemm_pick(SolContext *ctx, const SolGemm *a, GemmPlan *best) {
  bool found = false;
  double least = 0;
  if (ctx->cc < 90 || !gemm_can_tile(a)) return false;
  for (int i = 0; i < 8 * GEMM_KERNELS; i++) {
    GemmWay way = {
        .kernel = i / 8, .parts = 1, .down = 1 + i / 4 % 2, .across = 1 + i / 2 % 2, .swapped = i % 2};
    if (!gemm_tile_fits(a, &way) || !ops_has_kernel(ctx, &ops_gemm, way.kernel)) continue;
    for (int most = most_parts(ctx, a, &way); way.parts <= most; way.parts++) {
      if (shares_alone(&way)) continue;
      GemmPlan p = gemm_plan(ctx, a, way);
      if (found && at_least(a, &p) > least) continue;
      double time = gemm_estimate(ctx, a, &p);
      if (!found || time < least) *best = p, least = time, found = true;
    }
  }
  return found;
}
