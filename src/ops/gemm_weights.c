// Launches GEMM with weights of fewer bits than A.
#include <limits.h>

#include "ops/gemm_parts.h"

// Bytes of B from an element on, of those before it.
static int64_t bytes_of(const SolGemm *a, int64_t elements) {
  return a->weights == SOL_WEIGHTS_INT4 ? elements / 2 : elements;
}

// A's rows lie along k, or there is one that does; aligned; sizes fit into 31 bits.
static bool can_copy(const SolGemm *a) {
  int64_t a_stride = a->a_columns ? a->k : a->a_stride;
  double tiles = ((double)a->m / 16 + 1) * ((double)a->n / 64 + 1) * (double)a->batch * GEMM_PARTS;
  return a->k > 0 && a->k < INT_MAX / 4 && a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && tiles < INT_MAX &&
         (!a->a_columns || (a->m == 1 && a->a_stride == 1)) &&
         gemm_reaches(a->a, a_stride, a->a_batch_stride, a->batch, ops_size(a->dtype)) &&
         gemm_reaches(a->b, bytes_of(a, a->b_stride), bytes_of(a, a->b_batch_stride), a->batch, 1);
}

// Blocks that share out k, whatever the rows, so that a row's sums are always made in the same order: the fewest with which
// clusters that run at a time have least to do.
static int few_parts(const SolContext *ctx, int64_t tiles, int64_t steps) {
  int best = 1;
  int64_t least = ops_ceil_div(tiles, gemm_clusters_of(ctx, 1, 2));
  for (int parts = 2; parts <= GEMM_PARTS && parts <= steps; parts++) {
    int64_t turns = ops_ceil_div(tiles, gemm_clusters_of(ctx, parts, 2));
    if (turns * best < least * parts) best = parts, least = turns;
  }
  return best;
}

static SolStatus launch_copied(SolContext *ctx, const SolGemm *a, int kernel, SolStream stream) {
  int64_t wide = gemm_b_width(a), tall = a->activation == SOL_ACTIVATION_SILU_MUL ? 64 : 128;
  GemmWeightsParams p = {.tiled = {.end = gemm_epilogue_of(a),
                                   .m = (int)a->m,
                                   .n = (int)a->n,
                                   .k = (int)a->k,
                                   .batch = (int)a->batch,
                                   .rows = (int)ops_ceil_div(a->n, tall),
                                   .columns = (int)ops_ceil_div(a->m, 16),
                                   .group = 1},
                         .scales = a->b_scales,
                         .groups = (int)gemm_groups(a)};
  SolStatus status = gemm_make_map(ctx, a->dtype, a->a, a->k, a->m, a->batch,
                                   a->a_columns ? a->k : a->a_stride, a->a_batch_stride, 16, &p.tiled.b);
  if (!status)
    status = gemm_make_map(ctx, SOL_FP8, a->b, bytes_of(a, a->k), wide, a->batch, bytes_of(a, a->b_stride),
                           bytes_of(a, a->b_batch_stride), 64, &p.tiled.a);
  if (status) return status;
  int64_t tiles = (int64_t)p.tiled.rows * p.tiled.columns * a->batch;
  int parts = few_parts(ctx, (int64_t)p.tiled.rows, ops_ceil_div(bytes_of(a, a->k), 128));
  OpsLaunch l = {.kernel = kernel,
                 .grid = {(uint32_t)(tiles * parts), 1, 1},
                 .block = gemm_variants[kernel].threads,
                 .cluster = (uint32_t)parts,
                 .shared = gemm_shared[kernel],
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch_weights(SolContext *ctx, const SolGemm *a, SolStream stream) {
  static const int fast[][2] = {{GEMM_WEIGHTS_1_8, GEMM_WEIGHTS_1_4}, {GEMM_WEIGHTS_2_8, GEMM_WEIGHTS_2_4}};
  static const int any[][2] = {{GEMM_ANY_WEIGHTS_1_8, GEMM_ANY_WEIGHTS_1_4},
                               {GEMM_ANY_WEIGHTS_2_8, GEMM_ANY_WEIGHTS_2_4}};
  int kind = ops_kind(a->dtype) - 1, int4 = a->weights == SOL_WEIGHTS_INT4;
  if (ctx->cc >= 90 && can_copy(a) && ops_has_kernel(ctx, &ops_gemm, fast[kind][int4]))
    return launch_copied(ctx, a, fast[kind][int4], stream);
  GemmAnyWeightsParams p = {.any = gemm_any_params(a), .scales = a->b_scales, .groups = gemm_groups(a)};
  OpsLaunch l = {.kernel = any[kind][int4],
                 .block = gemm_variants[any[kind][int4]].threads,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  gemm_any_grid(a, GEMM_ANY_TILE, GEMM_ANY_TILE, l.grid);
  return ops_launch(ctx, &ops_gemm, &l, stream);
}
