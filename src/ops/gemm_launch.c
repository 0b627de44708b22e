// Which GEMM kernel runs. Up to 16 rows of A with B by columns, aligned: the one that reads B once. Otherwise on Hopper,
// where tensor copies can reach the tensors, the tile whose waves over the SMs take least; everything else: any.
#include <limits.h>

#include "ops/gemm_parts.h"

const char *const gemm_kernels[GEMM_KERNELS] = {
#define TILED(kind, a, b, tall, wide, stages, cluster, rate)                                                 \
  "sol_gemm_" #kind "_" #a #b "_" #tall "x" #wide "x" #stages "_" #cluster,
#define SKINNY(kind, eights, warps, deep)    "sol_gemm_" #kind "_skinny_" #eights,
#define SKINNY_89(kind, eights, warps, deep) SKINNY(kind, eights, warps, deep)
#define ANY(kind)                            "sol_gemm_" #kind "_any",
#include "kernels/gemm/gemm.def"
};

const uint32_t gemm_shared[GEMM_KERNELS] = {
#define TILED(kind, a, b, tall, wide, stages, cluster, rate) GEMM_SHARED(tall, wide, stages),
#define SKINNY(kind, eights, warps, deep)                    0,
#define SKINNY_89(kind, eights, warps, deep)                 0,
#define ANY(kind)                                            0,
#include "kernels/gemm/gemm.def"
};

typedef struct Variant {
  int kind, a_turned, b_turned, tall, wide, cluster, rate; // rate 0: not tiled
  uint32_t threads;
} Variant;
static const Variant variants[GEMM_KERNELS] = {
#define TILED(kind, a, b, tall, wide, stages, cluster, rate)                                                 \
  {kind, a, b, tall, wide, cluster, rate, GEMM_THREADS},
#define SKINNY(kind, eights, warps, deep)    {.threads = (warps)*32},
#define SKINNY_89(kind, eights, warps, deep) SKINNY(kind, eights, warps, deep)
#define ANY(kind)                            {.threads = GEMM_ANY_THREADS},
#include "kernels/gemm/gemm.def"
};

static GemmEpilogue epilogue_of(const SolGemm *a) {
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

static int64_t tile_width(const SolGemm *a, int wide) {
  return a->activation == SOL_ACTIVATION_SILU_MUL ? wide / 2 : wide;
}

// ---- tiles ----

static bool reaches(const void *at, int64_t stride, int64_t batch_stride, int64_t batch, int size) {
  return !((uintptr_t)at % 16) && !(stride * size % 16) && (batch < 2 || !(batch_stride * size % 16)) &&
         stride * size < INT64_C(1) << 40 && batch_stride * size < INT64_C(1) << 40;
}

// Whether tensor copies can: aligned, and coordinates and tiles fit into 31 bits.
static bool can_tile(const SolGemm *a) {
  int in = ops_size(a->dtype), out = ops_size(gemm_out(a));
  double tiles = ((double)a->m / 128 + 2) * ((double)a->n / 64 + 2) * (double)a->batch;
  return a->k > 0 && a->k < INT_MAX / 2 && a->m < INT_MAX / 2 && a->n < INT_MAX / 4 && a->batch < INT_MAX &&
         tiles < INT_MAX && reaches(a->a, a->a_stride, a->a_batch_stride, a->batch, in) &&
         reaches(a->b, a->b_stride, a->b_batch_stride, a->batch, in) &&
         reaches(a->c, a->c_stride, a->c_batch_stride, a->batch, out);
}

typedef struct Plan {
  int kernel;
  int64_t rows, columns, tiles, at_a_time;
} Plan;

static Plan plan_of(const SolContext *ctx, const SolGemm *a, int kernel) {
  const Variant *v = &variants[kernel];
  Plan p = {.kernel = kernel};
  p.rows = ops_ceil_div(a->m, GEMM_ROWS(v->tall) * v->cluster);
  p.columns = ops_ceil_div(a->n, tile_width(a, v->wide));
  p.tiles = p.rows * p.columns * a->batch;
  p.at_a_time = ctx->sms > v->cluster ? ctx->sms / v->cluster : 1;
  return p;
}

// Of what all SMs together take for the tiles' waves.
static double waves_time(const Plan *p) {
  const Variant *v = &variants[p->kernel];
  return (double)ops_ceil_div(p->tiles, p->at_a_time) * v->tall * v->wide / v->rate;
}

bool gemm_tile_fits(const SolGemm *a, int kernel) {
  const Variant *v = &variants[kernel];
  bool gated = a->activation == SOL_ACTIVATION_SILU_MUL;
  return v->rate && v->kind == ops_kind(a->dtype) && v->a_turned == !!a->a_columns &&
         v->b_turned == !a->b_columns && (!gated || v->wide >= 128);
}

static bool pick_tile(SolContext *ctx, const SolGemm *a, Plan *best) {
  bool found = false;
  if (ctx->cc < 90 || !can_tile(a)) return false;
  for (int i = 0; i < GEMM_KERNELS; i++) {
    if (!gemm_tile_fits(a, i) || !ops_has_kernel(ctx, &ops_gemm, i)) continue;
    Plan p = plan_of(ctx, a, i);
    if (!found || waves_time(&p) < waves_time(best)) *best = p, found = true;
  }
  return found;
}

static SolStatus make_map(SolContext *ctx, SolDtype dtype, const void *at, int64_t x, int64_t y,
                          int64_t batch, int64_t stride, int64_t batch_stride, int box_y, GemmMap *out) {
  static const uint8_t types[] = {SOL_TENSOR_F32, SOL_TENSOR_F16, SOL_TENSOR_BF16, SOL_TENSOR_U8};
  uint64_t size = (uint64_t)ops_size(dtype);
  SolTensorMap m = {
      .base = (uintptr_t)at,
      .dims = {(uint64_t)x, (uint64_t)y, (uint64_t)batch, 1, 1},
      .strides = {size, (uint64_t)stride * size, batch > 1 ? (uint64_t)batch_stride * size : 16},
      .box = {(uint32_t)(128 / size), (uint32_t)box_y, 1, 1, 1},
      .steps = {1, 1, 1, 1, 1},
      .rank = 3,
      .type = types[ops_kind(dtype)],
      .swizzle = SOL_TENSOR_SWIZZLE_128B};
  SolError err;
  SolStatus status = sol_driver_tensor_map(ctx->driver, &m, (uint8_t *)out, &err);
  return status ? ops_fail(status, "gemm: %s", err.message) : SOL_OK;
}

static SolStatus make_maps(SolContext *ctx, const SolGemm *a, const Variant *v, GemmTiledParams *p) {
  int64_t wide = gemm_b_width(a);
  SolStatus status = make_map(ctx, a->dtype, a->a, a->a_columns ? a->m : a->k, a->a_columns ? a->k : a->m,
                              a->batch, a->a_stride, a->a_batch_stride, GEMM_BOX_A(v->a_turned), &p->a);
  if (!status)
    status = make_map(ctx, a->dtype, a->b, a->b_columns ? a->k : wide, a->b_columns ? wide : a->k, a->batch,
                      a->b_stride, a->b_batch_stride, GEMM_BOX_B(v->b_turned, v->wide), &p->b);
  if (!status)
    status =
        make_map(ctx, gemm_out(a), a->c, a->n, a->m, a->batch, a->c_stride, a->c_batch_stride, 64, &p->c);
  return status;
}

static SolStatus launch_tiled(SolContext *ctx, const SolGemm *a, const Plan *plan, SolStream stream) {
  enum {
    GROUP = 8
  }; // rows of tiles that go together, in blocks: so many keep what runs at a time nearly square
  const Variant *v = &variants[plan->kernel];
  GemmTiledParams p = {.end = epilogue_of(a),
                       .m = (int)a->m,
                       .n = (int)a->n,
                       .k = (int)a->k,
                       .batch = (int)a->batch,
                       .rows = (int)plan->rows,
                       .columns = (int)plan->columns,
                       .group = GROUP / v->cluster};
  SolStatus status = make_maps(ctx, a, v, &p);
  if (status) return status;
  int64_t clusters = plan->tiles < plan->at_a_time ? plan->tiles : plan->at_a_time;
  OpsLaunch l = {.kernel = plan->kernel,
                 .grid = {(uint32_t)(clusters * v->cluster), 1, 1},
                 .block = v->threads,
                 .cluster = (uint32_t)v->cluster,
                 .shared = gemm_shared[plan->kernel],
                 .early = true,
                 .one_param = true,
                 .params = &p,
                 .bytes = sizeof p};
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch_tile(SolContext *ctx, const SolGemm *args, int kernel, SolStream stream) {
  SolGemm a = gemm_filled(args);
  Plan plan = plan_of(ctx, &a, kernel);
  return launch_tiled(ctx, &a, &plan, stream);
}

// ---- few rows, and any ----

static bool is_skinny(const SolContext *ctx, const SolGemm *a) {
  enum { MOST = 16 };
  int size = ops_size(a->dtype);
  return ctx->cc >= 80 && a->m <= MOST && a->b_columns && (!a->a_columns || a->m == 1) &&
         a->k * size % 16 == 0 && a->k > 0 &&
         reaches(a->a, a->a_columns ? 16 : a->a_stride, a->a_batch_stride, a->batch, size) &&
         (!a->a_columns || a->a_stride == 1) && reaches(a->b, a->b_stride, a->b_batch_stride, a->batch, size);
}

static SolStatus launch_any(SolContext *ctx, const SolGemm *a, int kernel, int tall, int wide,
                            SolStream stream) {
  GemmAnyParams p = {.a = a->a,
                     .b = a->b,
                     .end = epilogue_of(a),
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
  OpsLaunch l = {
      .kernel = kernel, .block = variants[kernel].threads, .early = true, .params = &p, .bytes = sizeof p};
  ops_grid(l.grid, (uint64_t)(ops_ceil_div(a->m, tall) * ops_ceil_div(a->n, tile_width(a, wide)) * a->batch),
           1);
  return ops_launch(ctx, &ops_gemm, &l, stream);
}

SolStatus gemm_launch(SolContext *ctx, const void *args, SolStream stream) {
  SolGemm a = gemm_filled(args);
  static const int skinny[][2] = {{GEMM_SKINNY_1_1, GEMM_SKINNY_1_2},
                                  {GEMM_SKINNY_2_1, GEMM_SKINNY_2_2},
                                  {GEMM_SKINNY_3_1, GEMM_SKINNY_3_2}};
  static const int any[] = {GEMM_ANY_1, GEMM_ANY_2, GEMM_ANY_3};
  int kind = ops_kind(a.dtype) - 1;
  Plan plan = {0};
  if (is_skinny(ctx, &a)) {
    int kernel = skinny[kind][a.m > 8];
    if (ops_has_kernel(ctx, &ops_gemm, kernel))
      return launch_any(ctx, &a, kernel, GEMM_SKINNY_ROWS, GEMM_SKINNY_COLUMNS, stream);
  }
  if (pick_tile(ctx, &a, &plan)) return launch_tiled(ctx, &a, &plan, stream);
  return launch_any(ctx, &a, any[kind], GEMM_ANY_TILE, GEMM_ANY_TILE, stream);
}
