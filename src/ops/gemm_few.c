// Launches GEMM of few rows of A, and of weights of fewer bits than A's.
#include <limits.h>
#include <math.h>

#include "ops/gemm_parts.h"

static int bits_of(const SolGemm *a) {
  return a->weights == SOL_WEIGHTS_INT4 ? 4 : a->weights == SOL_WEIGHTS_FP8 ? 8 : 8 * ops_size(a->dtype);
}

static int kernel_of(const SolGemm *a, int tiles) {
#define BOTH(kind, bits)                                                                                     \
  { GEMM_FEW_##kind##_##bits##_2, GEMM_FEW_##kind##_##bits##_4 }
  static const int kernels[][3][2] = {{BOTH(1, 16), {GEMM_FEW_1_8_2}, BOTH(1, 4)},
                                      {BOTH(2, 16), {GEMM_FEW_2_8_2}, BOTH(2, 4)},
                                      {{0}, {GEMM_FEW_3_8_2}}};
#undef BOTH
  int bits = bits_of(a);
  return kernels[ops_kind(a->dtype) - 1][bits == 16 ? 0 : bits == 8 ? 1 : 2][tiles == 4];
}

// A's rows lie along k, or there is one that does; 16 bytes at a time; sizes fit into 31 bits.
bool gemm_is_few(SolContext *ctx, const SolGemm *a) {
  enum { MOST = 16 };
  int size = ops_size(a->dtype), bits = bits_of(a);
  int64_t a_stride = a->a_columns ? 16 : a->a_stride;
  double tiles = ((double)a->m / 8 + 1) * ((double)a->n / 8 + 1) * (double)a->batch * GEMM_PARTS;
  return ctx->cc >= 80 && (a->weights || a->m <= MOST) && a->b_columns && a->k > 0 && a->k < INT_MAX / 4 &&
         a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && tiles < INT_MAX && a->k * bits % 128 == 0 &&
         (!a->a_columns || (a->m == 1 && a->a_stride == 1)) &&
         gemm_reaches(a->a, a_stride, a->a_batch_stride, a->batch, size) &&
         gemm_reaches(a->b, a->b_stride * bits / 8, a->b_batch_stride * bits / 8, a->batch, 1) &&
         ops_has_kernel(ctx, &ops_gemm, kernel_of(a, 2));
}

// How the work is shared out. parts, across and warps do not depend on the rows, so that a row's sums are always made in the same order.
typedef struct Sharing {
  int parts, across, warps, tiles, rows;
  int64_t ranges;
} Sharing;

// As measured on an H200. k is shared out among as few blocks as leave an SM 12 columns of B, and among the warps of a block, or of
// weights of fewer bits a half or a quarter of them where an SM has columns for the others, or where steps are few. With more than 8 rows a warp takes 4 tiles, since A's bytes
// are copied for every group of columns; weights of 8 bits do better with twice the blocks.
static Sharing share_out(const SolContext *ctx, const SolGemm *a) {
  bool roomy = ctx->cc >= 90 && ctx->cc < 110; // 227 KiB of shared memory for a block
  int bits = bits_of(a);
  int64_t steps = ops_ceil_div(a->k * bits, 512), columns = gemm_b_width(a) * a->batch;
  Sharing s = {.parts = 1, .across = 1, .warps = roomy ? 8 : 4, .tiles = 2};
  while (roomy && s.parts < GEMM_PARTS && columns * s.parts < 12 * ctx->sms && steps >= 4 * s.parts * s.warps)
    s.parts *= 2;
  if (bits < 16 && columns * s.parts > (bits == 4 ? 64 : 40) * ctx->sms) s.across = 2;
  if (bits == 4 && columns * s.parts > 128 * ctx->sms) s.across = 4;
  while (s.across < s.warps && steps * s.across < 2 * s.parts * s.warps) s.across *= 2;
  if (roomy && a->m > 8 && bits != 8) s.tiles = 4;
  s.rows = s.tiles == 4 || (a->m > 8 && bits == 8) ? 16 : 8;
  int per_sm = bits == 16 || s.tiles == 4 || columns * s.parts <= (bits == 4 ? 32 : 48) * ctx->sms ? 1 : 2;
  int64_t room = s.parts == 1 ? ctx->sms * per_sm : gemm_clusters_of(ctx, s.parts, per_sm);
  int64_t units = ops_ceil_div(a->n, 8), others = ops_ceil_div(a->m, s.rows) * a->batch;
  // Many rows: so many blocks that the last turn matters little.
  s.ranges = others * 4 > room ? ops_ceil_div(4 * room, others) : room / others;
  s.ranges = s.ranges > units ? units : s.ranges;
  return s;
}

// ---- gemm_stream.cuh ----

// How its work is shared out. parts and across do not depend on the rows, so that a row's sums are always made in the same order.
typedef struct Streaming {
  int parts, across, each, stages, rows;
  int64_t ranges;
} Streaming;

static int stream_kernel(const SolGemm *a) {
  static const int kernels[][3] = {{GEMM_STREAM_1_16, GEMM_STREAM_1_8, GEMM_STREAM_1_4},
                                   {GEMM_STREAM_2_16, GEMM_STREAM_2_8, GEMM_STREAM_2_4}};
  int bits = bits_of(a);
  return kernels[ops_kind(a->dtype) - 1][bits == 16 ? 0 : bits == 8 ? 1 : 2];
}

// Tensor copies start later than others: an SM must have enough to read. In KiB, between sizes of models' weights that were slower and faster so on an
// H200; of 4 bits 434 KiB took as long or 8 % less, and 869 KiB 4 to 9 % longer.
bool gemm_streams(SolContext *ctx, const SolGemm *a) {
  int bits = bits_of(a), enough = bits == 4 ? 384 : bits == 8 ? 768 : 2560;
  double bytes = (double)gemm_b_width(a) * (double)a->batch * (double)a->k * bits / 8;
  if (ctx->cc < 90 || a->dtype == SOL_FP8 || bytes < 1024.0 * enough * ctx->sms) return false;
  return ops_has_kernel(ctx, &ops_gemm, stream_kernel(a));
}

// Columns of C that a box can have, in all and of a range of `columns` if `across` boxes side by side share them out evenly.
static int64_t stream_most(const SolGemm *a) {
  return a->activation == SOL_ACTIVATION_SILU_MUL ? GEMM_STREAM_COLUMNS / 2 : GEMM_STREAM_COLUMNS;
}
static int64_t stream_each(const SolGemm *a, int64_t columns, int across) {
  int64_t groups = ops_ceil_div(columns, across * stream_most(a));
  return ops_ceil_div(ops_ceil_div(columns, groups * across), 8) * 8;
}

// Microseconds of `parts` blocks to a cluster, about: the longer of DRAM, and of what the fullest SM reads of L2, weights and 8 rows of A; and of adding up parts.
static double stream_cost(const SolContext *ctx, const SolGemm *a, Streaming *s) {
  const double dram_rate = 30e3, l2_rate = 45e3, parts_us = 1; // bytes a microsecond and SM
  int64_t clusters = gemm_clusters_of(ctx, s->parts, 1), units = ops_ceil_div(a->n, 8);
  s->ranges = clusters / a->batch > units ? units : clusters / a->batch;
  if (s->ranges < 1) s->ranges = 1;
  int64_t columns = ops_ceil_div(units, s->ranges) * 8, turns = ops_ceil_div(s->ranges * a->batch, clusters);
  double deep = (double)a->k * bits_of(a) / 8 / s->parts, width = (double)gemm_b_width(a) / (double)a->n;
  for (s->across = 1; s->across < GEMM_STREAM_BOXES && s->across * stream_most(a) < columns;) s->across *= 2;
  s->each = (int)stream_each(a, columns, s->across);
  int64_t groups = ops_ceil_div(columns, s->across * s->each);
  double weights = (double)columns * width * deep;
  double rows = (double)groups * 8 * (double)a->k * ops_size(a->dtype) / s->parts;
  double time = fmax(weights / dram_rate, (weights + rows) / l2_rate);
  return (double)turns * time + (s->parts > 1 ? parts_us : 0);
}

static Streaming stream_out(const SolContext *ctx, const SolGemm *a) {
  Streaming best = {0};
  double least = 0;
  int64_t steps = ops_ceil_div(a->k * bits_of(a), 1024);
  for (int parts = 1; parts <= GEMM_PARTS && (parts == 1 || parts * 2 <= steps); parts *= 2) {
    Streaming s = {.parts = parts};
    double cost = stream_cost(ctx, a, &s);
    if (!best.parts || cost < least) best = s, least = cost;
  }
  while (best.across < GEMM_STREAM_BOXES && GEMM_STREAM_BOXES / best.across * best.parts > steps)
    best.across *= 2;
  best.rows = a->m > 8 ? 16 : 8;
  int64_t others = ops_ceil_div(a->m, best.rows) * a->batch, units = ops_ceil_div(a->n, 8),
          room = gemm_clusters_of(ctx, best.parts, 1);
  // Many rows: so many blocks that the last turn matters little.
  best.ranges = others * 4 > room ? ops_ceil_div(4 * room, others) : room / others;
  best.ranges = best.ranges > units ? units : best.ranges;
  best.each = (int)stream_each(a, ops_ceil_div(units, best.ranges) * 8, best.across);
  int stage = GEMM_STREAM_STAGE(ops_size(a->dtype), bits_of(a), best.rows, GEMM_STREAM_BOXES / best.across);
  best.stages = GEMM_STREAM_STAGES;
  while (GEMM_STREAM_SHARED(stage, best.stages) > GEMM_BLOCK_SHARED(1)) best.stages--;
  return best;
}

SolStatus gemm_launch_stream(SolContext *ctx, const SolGemm *a, SolStream stream) {
  Streaming s = stream_out(ctx, a);
  int bits = bits_of(a);
  GemmStreamParams p = {.few = {.any = gemm_any_params(a),
                                .scales = a->b_scales,
                                .groups = gemm_groups(a),
                                .rows = s.rows,
                                .ranges = (int)s.ranges,
                                .across = s.across},
                        .each = s.each,
                        .stages = s.stages};
  SolStatus status = gemm_make_map(ctx, a->dtype, a->a, a->k, a->m, a->batch,
                                   a->a_columns ? a->k : a->a_stride, a->a_batch_stride, s.rows, &p.a);
  if (!status)
    status = gemm_make_map(ctx, SOL_FP8, a->b, a->k * bits / 8, gemm_b_width(a), a->batch,
                           a->b_stride * bits / 8, a->b_batch_stride * bits / 8, s.each, &p.b);
  if (status) return status;
  int stage = GEMM_STREAM_STAGE(ops_size(a->dtype), bits, s.rows, GEMM_STREAM_BOXES / s.across);
  OpsLaunch l = {.kernel = stream_kernel(a),
                 .grid = {(uint32_t)(ops_ceil_div(a->m, s.rows) * s.ranges * s.parts * a->batch), 1, 1},
                 .block = GEMM_STREAM_THREADS,
                 .cluster = (uint32_t)s.parts,
                 .shared = (uint32_t)GEMM_STREAM_SHARED(stage, s.stages),
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream) {
  if (gemm_streams(ctx, a)) return gemm_launch_stream(ctx, a, stream);
  Sharing s = share_out(ctx, a);
  GemmFewParams p = {.any = gemm_any_params(a),
                     .scales = a->b_scales,
                     .groups = gemm_groups(a),
                     .rows = s.rows,
                     .ranges = (int)s.ranges,
                     .across = s.across};
  int64_t blocks = ops_ceil_div(a->m, s.rows) * s.ranges * s.parts * a->batch;
  OpsLaunch l = {.kernel = kernel_of(a, s.tiles),
                 .grid = {(uint32_t)blocks, 1, 1},
                 .block = (uint32_t)s.warps * 32,
                 .cluster = (uint32_t)s.parts,
                 .shared = (uint32_t)GEMM_FEW_SHARED(s.tiles, s.warps),
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}
