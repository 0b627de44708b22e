// Launches GEMM of few rows of A, and of weights of fewer bits than A's.
#include <limits.h>

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

SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream) {
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
