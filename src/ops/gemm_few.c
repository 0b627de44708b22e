// Launches GEMM of few rows of A, and of weights of fewer bits than A's.
#include <limits.h>

#include "ops/gemm_parts.h"

static int bits_of(const SolGemm *a) {
  return a->weights == SOL_WEIGHTS_INT4 ? 4 : a->weights == SOL_WEIGHTS_FP8 ? 8 : 8 * ops_size(a->dtype);
}

static int kernel_of(const SolGemm *a) {
  static const int kernels[][3] = {{GEMM_FEW_1_16, GEMM_FEW_1_8, GEMM_FEW_1_4},
                                   {GEMM_FEW_2_16, GEMM_FEW_2_8, GEMM_FEW_2_4}};
  int bits = bits_of(a);
  return a->dtype == SOL_FP8 ? GEMM_FEW_3_8
                             : kernels[ops_kind(a->dtype) - 1][bits == 16  ? 0
                                                               : bits == 8 ? 1
                                                                           : 2];
}

// A's rows lie along k, or there is one that does; 16 bytes at a time; sizes fit into 31 bits.
bool gemm_is_few(SolContext *ctx, const SolGemm *a) {
  enum { MOST = 16 };
  int size = ops_size(a->dtype), bits = bits_of(a);
  int64_t a_stride = a->a_columns ? 16 : a->a_stride;
  double tiles = ((double)a->m / 16 + 1) * ((double)a->n / 8 + 1) * (double)a->batch * GEMM_PARTS;
  return ctx->cc >= 80 && (a->weights || a->m <= MOST) && a->b_columns && a->k > 0 && a->k < INT_MAX / 4 &&
         a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && tiles < INT_MAX && a->k * bits % 128 == 0 &&
         (!a->a_columns || (a->m == 1 && a->a_stride == 1)) &&
         gemm_reaches(a->a, a_stride, a->a_batch_stride, a->batch, size) &&
         gemm_reaches(a->b, a->b_stride * bits / 8, a->b_batch_stride * bits / 8, a->batch, 1) &&
         ops_has_kernel(ctx, &ops_gemm, kernel_of(a));
}

// Blocks of a kernel whose warps have `wide` columns each.
static int64_t blocks_of(const SolGemm *a, int wide, int across, int parts) {
  return ops_ceil_div(gemm_b_width(a), wide * across) * parts;
}

// How the work is shared out, whatever the rows, so that a row's sums are always made in the same order: the most blocks that run at a
// time, two to an SM, and of those the fewest that share out k, as measured on an H200. Where even the widest blocks are more: so wide that
// the last ones leave fewest places empty.
static void share_out(const SolContext *ctx, const SolGemm *a, int wide, int *across, int *parts) {
  int64_t room = 2 * ctx->sms, steps = ops_ceil_div(a->k * bits_of(a), 512);
  bool many = blocks_of(a, wide, GEMM_FEW_WARPS, 1) > room;
  double best = 0;
  *across = GEMM_FEW_WARPS, *parts = 1;
  for (int p = 1; p <= (ctx->cc >= 90 && !many ? GEMM_PARTS : 1); p *= 2)
    for (int w = GEMM_FEW_WARPS; w * wide >= 32; w /= 2) {
      int64_t blocks = blocks_of(a, wide, w, p);
      double full = (double)blocks / (double)(ops_ceil_div(blocks, room) * room);
      if (full <= best || (blocks > room && !many) || steps < 2 * p * GEMM_FEW_WARPS / w) continue;
      best = full, *across = w, *parts = p;
    }
}

SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream) {
  enum { LARGE = 32 << 20 }; // bytes of B from which prefetching pays whatever its type
  int kernel = kernel_of(a), bits = bits_of(a), wide = gemm_variants[kernel].wide, parts, across;
  share_out(ctx, a, wide, &across, &parts);
  bool ahead = bits == 16 || (bits == 8 && gemm_b_width(a) > LARGE / a->k);
  GemmFewParams p = {.any = gemm_any_params(a),
                     .scales = a->b_scales,
                     .groups = gemm_groups(a),
                     .across = across,
                     .ahead = ahead ? 4 : 0};
  int64_t blocks = ops_ceil_div(a->m, 16) * blocks_of(a, wide, across, parts) * a->batch;
  OpsLaunch l = {.kernel = kernel,
                 .grid = {(uint32_t)blocks, 1, 1},
                 .block = gemm_variants[kernel].threads,
                 .cluster = (uint32_t)parts,
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}
