// Launches GEMM of few rows of A, and of weights of fewer bits than A's.
#include <limits.h>

#include "ops/gemm_parts.h"

static int bits_of(const SolGemm *a) {
  return a->weights == SOL_WEIGHTS_INT4 ? 4 : a->weights == SOL_WEIGHTS_FP8 ? 8 : 8 * ops_size(a->dtype);
}

static int kernel_of(const SolGemm *a) {
  static const int kernels[][3] = {{GEMM_FEW_1_16, GEMM_FEW_1_8, GEMM_FEW_1_4},
                                   {GEMM_FEW_2_16, GEMM_FEW_2_8, GEMM_FEW_2_4},
                                   {0, GEMM_FEW_3_8}};
  int bits = bits_of(a);
  return kernels[ops_kind(a->dtype) - 1][bits == 16 ? 0 : bits == 8 ? 1 : 2];
}

// A's rows lie along k, or there is one that does; 16 bytes at a time; sizes fit into 31 bits, and so do strides.
bool gemm_is_few(SolContext *ctx, const SolGemm *a) {
  enum { MOST = 16 };
  int size = ops_size(a->dtype), bits = bits_of(a);
  int64_t a_stride = a->a_columns ? 16 : a->a_stride;
  double tiles = ((double)a->m / 8 + 1) * ((double)a->n / 8 + 1) * (double)a->batch * GEMM_PARTS;
  return ctx->cc >= 80 && (a->weights || a->m <= MOST) && a->b_columns && a->k > 0 && a->k < INT_MAX / 4 &&
         a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && tiles < INT_MAX && a->k * bits % 128 == 0 &&
         (!a->a_columns || (a->m == 1 && a->a_stride == 1)) && a_stride * size < INT_MAX / 4 &&
         a->b_stride * bits / 8 < INT_MAX / 4 &&
         gemm_reaches(a->a, a_stride, a->a_batch_stride, a->batch, size) &&
         gemm_reaches(a->b, a->b_stride * bits / 8, a->b_batch_stride * bits / 8, a->batch, 1) &&
         ops_has_kernel(ctx, &ops_gemm, kernel_of(a));
}

// How the work is shared out. parts, across and warps do not depend on the rows, so that a row's sums are always made in the same order.
typedef struct Sharing {
  int parts, across, warps, rows, wide;
  int64_t ranges, eights, more; // of columns, in eights
} Sharing;

static bool is_roomy(const SolContext *ctx) { // 227 KiB of shared memory for a block
  return ctx->cc >= 90 && ctx->cc < 110;
}

// Clocks that a block takes for its columns of B, as measured on an H200, where reading B does not bind it: two warps of a scheduler take
// STEP for a step each, and all warps END for the sums of a group of columns, as many as warps side by side hold at once.
static int64_t block_clocks(const Sharing *s, int bits, int64_t columns, int64_t steps) {
  enum { STEP_4 = 2000, STEP_8 = 1300, END = 2000 };
  int64_t groups = ops_ceil_div(columns, s->across * GEMM_FEW_COLUMNS);
  return groups *
         (ops_ceil_div(steps * s->across, (int64_t)s->parts * s->warps) * (bits == 4 ? STEP_4 : STEP_8) +
          END);
}

// Scales of a column.
static int64_t groups_of(const SolGemm *a) {
  return bits_of(a) == 4 ? gemm_groups(a) : 0;
}

// How many warps of a block of gemm_few_held.cuh are side by side; 0: gemm_few.cuh is faster. That is so unless a block's columns of B are
// more than one of its warps has, and of 4-bit weights steps of k so few that A's elements are seldom loaded anew, of 8-bit ones so many
// that a block's begin takes little. Measured on an H200 on the shapes that the limits come from: 4 bits 0.85 to 1.06 of the other's time, and elsewhere up to
// 1.36; on others 0.80 to 0.98 with up to 16 rows of A, 0.85 to 1.04 with more; 8 bits 0.89 to 1.00, and elsewhere up to 1.17.
static int held_across(const SolContext *ctx, const SolGemm *a, int64_t own, const Sharing *s) {
  enum { COLUMNS = 36, MOST_4 = 7, LEAST_8 = 5 };
  int bits = bits_of(a);
  int64_t steps = ops_ceil_div(a->k * bits, 1024);
  int across = 1;
  if (bits == 16 || a->dtype == SOL_FP8 || !is_roomy(ctx) || s->parts > 1 || own < COLUMNS ||
      (bits == 4 ? steps > MOST_4 * s->warps : steps < LEAST_8 * s->warps))
    return 0;
  while (steps * across < s->warps) across *= 2;
  return across;
}

// k is shared out among as few blocks as leave an SM 12 columns of B. Of a block's warps some are side by side, the others share out k:
// weights of 16 bits are bound by reading them, fastest with one, those of fewer bits by their instructions. Half of the warps where four
// rings hold nearly all of an SM's weights: then blocks of the next kernel start beside these.
static Sharing share_out(const SolContext *ctx, const SolGemm *a) {
  bool roomy = is_roomy(ctx);
  int bits = bits_of(a);
  int64_t steps = ops_ceil_div(a->k * bits, roomy ? 1024 : 512), columns = gemm_b_width(a) * a->batch;
  Sharing s = {.parts = 1, .across = 1, .warps = roomy ? 8 : 4, .rows = a->m > 8 ? 16 : 8};
  while (roomy && s.parts < GEMM_PARTS && columns * s.parts < 12 * ctx->sms && steps >= 2 * s.parts * s.warps)
    s.parts *= 2;
  int64_t room = s.parts == 1 ? ctx->sms : gemm_clusters_of(ctx, s.parts, 1),
          own = ops_ceil_div(columns, room);
  if (s.parts == 1 && own <= GEMM_FEW_COLUMNS && own * a->k * bits / 8 <= 6 * GEMM_FEW_RING(roomy))
    s.warps = 4;
  for (Sharing t = s; bits < 16 && t.across < t.warps;) {
    t.across *= 2;
    if (block_clocks(&t, bits, own, steps) <= block_clocks(&s, bits, own, steps)) s.across = t.across;
  }
  while (s.across < s.warps && steps * s.across < 2 * s.parts * s.warps) s.across *= 2;
  int held = held_across(ctx, a, own, &s);
  if (held) s.across = held;
  int64_t units = ops_ceil_div(a->n, 8), others = ops_ceil_div(a->m, s.rows) * a->batch;
  // Many rows: so many blocks that the last turn matters little.
  s.ranges = others * 4 > room ? ops_ceil_div(4 * room, others) : room / others;
  s.ranges = s.ranges > units ? units : s.ranges;
  s.eights = units / s.ranges, s.more = units % s.ranges;
  if (held) {
    int64_t most = (s.eights + (s.more > 0)) * (a->activation == SOL_ACTIVATION_SILU_MUL ? 16 : 8);
    s.wide = gemm_few_held_wide(s.warps, s.rows, s.warps / s.across, (int)groups_of(a), (int)most);
  }
  return s;
}

// Bytes of a column to prefetch while the kernel before ends: of 4-bit weights, where blocks start beside its blocks. Of wider ones, and of more
// bytes, it gains nothing.
static int hint_of(const SolContext *ctx, const SolGemm *a, const Sharing *s) {
  enum { BYTES = 16384, UNIT = 256 }; // of a block
  bool beside = is_roomy(ctx) && s->warps == 4;
  return beside && bits_of(a) == 4 ? (int)(BYTES / ((s->eights + 1) * 8) / UNIT * UNIT) : 0;
}

SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream) {
  Sharing s = share_out(ctx, a);
  GemmFewParams p = {.any = gemm_any_params(a),
                     .scales = a->b_scales,
                     .groups = groups_of(a),
                     .rows = s.rows,
                     .ranges = (int)s.ranges,
                     .across = s.across,
                     .hint = hint_of(ctx, a, &s),
                     .wide = s.wide,
                     .eights = (int)s.eights,
                     .more = (int)s.more};
  int64_t blocks = ops_ceil_div(a->m, s.rows) * s.ranges * s.parts * a->batch;
  OpsLaunch l = {.kernel = kernel_of(a),
                 .grid = {(uint32_t)blocks, 1, 1},
                 .block = (uint32_t)s.warps * 32,
                 .cluster = (uint32_t)s.parts,
                 .shared = (uint32_t)(s.wide ? GEMM_FEW_HELD_SHARED(s.warps, s.rows, s.warps / s.across,
                                                                    s.wide, (int)p.groups)
                                             : GEMM_FEW_SHARED(is_roomy(ctx), s.warps)),
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}
