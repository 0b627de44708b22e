// Which GEMM kernel runs. Few rows of A with B by columns, aligned: one that reads B once. Otherwise on Hopper, where
// tensor copies can reach the tensors, the tile that gemm_rule.c picks; everything else: any.
#include <limits.h>

#include "ops/gemm_parts.h"

const char *const gemm_kernels[GEMM_KERNELS] = {
#define ROW(id, name, ...) "sol_gemm_" name,
#include "ops/gemm_kernels.def"
};

const uint32_t gemm_shared[GEMM_KERNELS] = {
#define ROW(id, name, shared, ...) shared,
#include "ops/gemm_kernels.def"
};

GemmEpilogue gemm_epilogue_of(const SolGemm *a) {
  return (GemmEpilogue){.c = a->c,
                        .bias = a->bias,
                        .residual = a->residual,
                        .c_stride = a->c_stride,
                        .c_batch_stride = a->c_batch_stride,
                        .residual_stride = a->residual_stride,
                        .residual_batch_stride = a->residual_batch_stride,
                        .a_scale = a->a_scale,
                        .b_scale = a->b_scale,
                        .alpha = a->alpha,
                        .beta = a->beta,
                        .activation = (int)a->activation,
                        .out_kind = ops_kind(gemm_out(a)),
                        .bias_kind = ops_kind(gemm_bias_type(a))};
}

// ---- tiles ----

SolStatus gemm_make_map_of(SolContext *ctx, SolDtype dtype, const void *at, int64_t x, int64_t y,
                           int64_t batch, int64_t stride, int64_t batch_stride, int span, int box_y,
                           GemmMap *out) {
  static const uint8_t types[] = {SOL_TENSOR_F32, SOL_TENSOR_F16, SOL_TENSOR_BF16, SOL_TENSOR_U8};
  uint64_t size = (uint64_t)ops_size(dtype);
  SolTensorMap m = {
      .base = (uintptr_t)at,
      .dims = {(uint64_t)x, (uint64_t)y, (uint64_t)batch, 1, 1},
      .strides = {size, (uint64_t)stride * size, batch > 1 ? (uint64_t)batch_stride * size : 16},
      .box = {(uint32_t)span / (uint32_t)size, (uint32_t)box_y, 1, 1, 1},
      .steps = {1, 1, 1, 1, 1},
      .rank = 3,
      .type = types[ops_kind(dtype)],
      .swizzle = span == 128 ? SOL_TENSOR_SWIZZLE_128B : SOL_TENSOR_SWIZZLE_64B};
  SolError err;
  SolStatus status = sol_driver_tensor_map(ctx->driver, &m, (uint8_t *)out, &err);
  return status ? ops_fail(status, "gemm: %s", err.message) : SOL_OK;
}

SolStatus gemm_make_map(SolContext *ctx, SolDtype dtype, const void *at, int64_t x, int64_t y, int64_t batch,
                        int64_t stride, int64_t batch_stride, int box_y, GemmMap *out) {
  return gemm_make_map_of(ctx, dtype, at, x, y, batch, stride, batch_stride, 128, box_y, out);
}

// swapped: B's map is the first and A's the second. Only gemm_wgmma.cuh stores C by its map.
static SolStatus make_maps(SolContext *ctx, const SolGemm *a, const GemmPlan *plan, GemmTiledParams *p) {
  const GemmVariant *v = &gemm_variants[plan->way.kernel];
  int64_t wide = gemm_b_width(a);
  bool swapped = plan->way.swapped;
  int box_a = v->a_turned ? 64 : GEMM_BOX_A(v->rows), box_b = GEMM_BOX_B(v->b_turned, v->wide);
  SolStatus status =
      gemm_make_map(ctx, a->dtype, a->a, a->a_columns ? a->m : a->k, a->a_columns ? a->k : a->m, a->batch,
                    a->a_stride, a->a_batch_stride, swapped ? box_b : box_a, swapped ? &p->b : &p->a);
  if (!status)
    status =
        gemm_make_map(ctx, a->dtype, a->b, a->b_columns ? a->k : wide, a->b_columns ? wide : a->k, a->batch,
                      a->b_stride, a->b_batch_stride, swapped ? box_a : box_b, swapped ? &p->a : &p->b);
  if (!status && !v->split)
    status = gemm_make_map_of(ctx, gemm_out(a), a->c, a->n, a->m, a->batch, a->c_stride, a->c_batch_stride,
                              swapped ? 128 : GEMM_SPAN(v->wide), swapped ? GEMM_SWAPPED_ROWS : 64, &p->c);
  return status;
}

static SolStatus launch_tiled(SolContext *ctx, const SolGemm *a, const GemmPlan *plan, SolStream stream) {
  enum { BAND = 1024 }; // rows of tiles that go together: so many keep what runs at a time nearly square
  const GemmWay *way = &plan->way;
  const GemmVariant *v = &gemm_variants[way->kernel];
  int64_t size = way->down * way->across * way->parts;
  GemmTiledParams p = {.end = gemm_epilogue_of(a),
                       .m = (int)a->m,
                       .n = (int)a->n,
                       .k = (int)a->k,
                       .batch = (int)a->batch,
                       .rows = (int)plan->rows,
                       .columns = (int)plan->columns,
                       .group = BAND / (v->rows * way->down),
                       .down = way->down,
                       .across = way->across,
                       .swapped = way->swapped};
  SolStatus status = make_maps(ctx, a, plan, &p);
  if (status) return status;
  gemm_divide_by(&p, way->parts);
  int64_t clusters = v->split || plan->tiles < plan->at_a_time ? plan->tiles : plan->at_a_time;
  OpsLaunch l = {.kernel = way->kernel,
                 .grid = {(uint32_t)(clusters * size), 1, 1},
                 .block = v->threads,
                 .cluster = (uint32_t)size,
                 .shared = gemm_shared[way->kernel],
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch_tile(SolContext *ctx, const SolGemm *args, GemmWay way, SolStream stream) {
  SolGemm a = gemm_filled(args);
  GemmPlan plan = gemm_plan(ctx, &a, way);
  return launch_tiled(ctx, &a, &plan, stream);
}

// ---- any ----

GemmAnyParams gemm_any_params(const SolGemm *a) {
  return (GemmAnyParams){.a = a->a,
                         .b = a->b,
                         .end = gemm_epilogue_of(a),
                         .m = a->m,
                         .n = a->n,
                         .k = a->k,
                         .batch = a->batch,
                         .a_down = a->a_columns ? 1 : a->a_stride,
                         .a_across = a->a_columns ? a->a_stride : 1,
                         .a_batch = a->a_batch_stride,
                         .b_down = a->b_columns ? 1 : a->b_stride,
                         .b_across = a->b_columns ? a->b_stride : 1,
                         .b_batch = a->b_batch_stride};
}

static void any_grid(const SolGemm *a, uint32_t grid[3]) {
  int64_t width = a->activation == SOL_ACTIVATION_SILU_MUL ? GEMM_ANY_TILE / 2 : GEMM_ANY_TILE;
  ops_grid(grid, (uint64_t)(ops_ceil_div(a->m, GEMM_ANY_TILE) * ops_ceil_div(a->n, width) * a->batch), 1);
}

static SolStatus launch_any(SolContext *ctx, const SolGemm *a, SolStream stream) {
  static const int any[] = {GEMM_ANY_1, GEMM_ANY_2, GEMM_ANY_3};
  static const int weights[][2] = {{GEMM_ANY_WEIGHTS_1_8, GEMM_ANY_WEIGHTS_1_4},
                                   {GEMM_ANY_WEIGHTS_2_8, GEMM_ANY_WEIGHTS_2_4}};
  int kind = ops_kind(a->dtype) - 1;
  GemmAnyWeightsParams p = {.any = gemm_any_params(a), .scales = a->b_scales, .groups = gemm_groups(a)};
  OpsLaunch l = {.kernel = a->weights ? weights[kind][a->weights == SOL_WEIGHTS_INT4] : any[kind],
                 .block = GEMM_ANY_THREADS,
                 .early = true,
                 .params = &p,
                 .bytes = a->weights ? sizeof p : sizeof p.any};
  any_grid(a, l.grid);
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch(SolContext *ctx, const void *args, SolStream stream) {
  SolGemm a = gemm_filled(args);
  GemmPlan plan = {0};
  if (gemm_is_few(ctx, &a)) return gemm_launch_few(ctx, &a, stream);
  if (!a.weights && gemm_pick(ctx, &a, &plan)) return launch_tiled(ctx, &a, &plan, stream);
  return launch_any(ctx, &a, stream);
}
