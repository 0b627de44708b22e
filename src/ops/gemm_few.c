// Launches GEMM of few rows of A on Hopper, and GEMM with weights of fewer bits than A.
#include <limits.h>

#include "ops/gemm_parts.h"

static int few_bits(const SolGemm *a) {
  return a->weights == SOL_WEIGHTS_INT4 ? 4 : a->weights || a->dtype == SOL_FP8 ? 8 : 16;
}

static int64_t few_bytes(const SolGemm *a, int64_t elements) {
  return elements * few_bits(a) / 8;
}

static int few_kernel(const SolGemm *a) {
  static const int kernels[][3] = {{GEMM_FEW_1_4, GEMM_FEW_1_8, GEMM_FEW_1_16},
                                   {GEMM_FEW_2_4, GEMM_FEW_2_8, GEMM_FEW_2_16},
                                   {0, GEMM_FEW_3_8, 0}};
  int bits = few_bits(a);
  return kernels[ops_kind(a->dtype) - 1][bits == 4 ? 0 : bits == 8 ? 1 : 2];
}

// A's rows lie along k, or there is one that does; aligned; sizes fit into 31 bits.
bool gemm_can_few(SolContext *ctx, const SolGemm *a) {
  int64_t a_stride = a->a_columns ? a->k : a->a_stride;
  double tiles = ((double)a->m / 16 + 1) * ((double)a->n / 8 + 1) * (double)a->batch;
  return ctx->cc >= 90 && a->k > 0 && a->k < INT_MAX / 4 && a->m < INT_MAX / 2 && a->n < INT_MAX / 4 &&
         tiles < INT_MAX && (double)gemm_b_width(a) * (double)gemm_groups(a) < INT_MAX &&
         (!a->a_columns || (a->m == 1 && a->a_stride == 1)) &&
         gemm_reaches(a->a, a_stride, a->a_batch_stride, a->batch, ops_size(a->dtype)) &&
         gemm_reaches(a->b, few_bytes(a, a->b_stride), few_bytes(a, a->b_batch_stride), a->batch, 1) &&
         ops_has_kernel(ctx, &ops_gemm, few_kernel(a));
}

// Columns of B that a block has: so many that blocks which run at a time have all, or as few times as it takes. Whatever
// the rows, so that a row's sums are always made in the same order.
static int few_wide(const SolContext *ctx, const SolGemm *a) {
  int64_t wide = gemm_b_width(a), all = wide * a->batch;
  int64_t turns = ops_ceil_div(all, (int64_t)ctx->sms * GEMM_FEW_WIDEST);
  int64_t each = ops_ceil_div(ops_ceil_div(all, turns * ctx->sms), 16) * 16;
  int64_t most = ops_ceil_div(wide, 16) * 16;
  each = each < most ? each : most;
  return (int)(each < GEMM_FEW_WIDEST ? each : GEMM_FEW_WIDEST);
}

static SolStatus few_maps(SolContext *ctx, const SolGemm *a, GemmFewParams *p) {
  SolDtype as = few_bits(a) == 16 ? a->dtype : SOL_FP8; // B's bytes
  int64_t size = ops_size(as);
  SolStatus status = gemm_make_map(ctx, a->dtype, a->a, a->k, a->m, a->batch,
                                   a->a_columns ? a->k : a->a_stride, a->a_batch_stride, 16, &p->tiled.b);
  if (status) return status;
  return gemm_make_map(ctx, as, a->b, few_bytes(a, a->k) / size, gemm_b_width(a), a->batch,
                       few_bytes(a, a->b_stride) / size, few_bytes(a, a->b_batch_stride) / size, p->wide / 2,
                       &p->tiled.a);
}

SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream) {
  enum { ROOM = GEMM_BLOCK_SHARED(2), MOST = 32 };
  int wide = few_wide(ctx, a), kernel = few_kernel(a);
  int slot = GEMM_FEW_SLOT(wide, GEMM_FEW_BOXES(8 * ops_size(a->dtype), few_bits(a))) + 16;
  GemmFewParams p = {.tiled = {.end = gemm_epilogue_of(a),
                               .m = (int)a->m,
                               .n = (int)a->n,
                               .k = (int)a->k,
                               .batch = (int)a->batch,
                               .rows = (int)ops_ceil_div(gemm_b_width(a), wide),
                               .columns = (int)ops_ceil_div(a->m, 16),
                               .group = 1},
                     .scales = a->b_scales,
                     .groups = (int)gemm_groups(a),
                     .wide = wide,
                     .slots = ROOM / slot < MOST ? ROOM / slot : MOST};
  SolStatus status = few_maps(ctx, a, &p);
  if (status) return status;
  OpsLaunch l = {.kernel = kernel,
                 .grid = {(uint32_t)(p.tiled.rows * p.tiled.columns * p.tiled.batch), 1, 1},
                 .block = gemm_variants[kernel].threads,
                 .shared = (uint32_t)(p.slots * slot),
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch_weights(SolContext *ctx, const SolGemm *a, SolStream stream) {
  static const int any[][2] = {{GEMM_ANY_WEIGHTS_1_8, GEMM_ANY_WEIGHTS_1_4},
                               {GEMM_ANY_WEIGHTS_2_8, GEMM_ANY_WEIGHTS_2_4}};
  int kernel = any[ops_kind(a->dtype) - 1][a->weights == SOL_WEIGHTS_INT4];
  if (gemm_can_few(ctx, a)) return gemm_launch_few(ctx, a, stream);
  GemmAnyWeightsParams p = {.any = gemm_any_params(a), .scales = a->b_scales, .groups = gemm_groups(a)};
  OpsLaunch l = {.kernel = kernel,
                 .block = gemm_variants[kernel].threads,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  gemm_any_grid(a, GEMM_ANY_TILE, GEMM_ANY_TILE, l.grid);
  return ops_launch(ctx, &ops_gemm, &l, stream);
}
