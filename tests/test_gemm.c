// sol_gemm beyond what test_ops tries: every tiled kernel by itself, over several tiles, on the emulator; the same bits for
// a row however many rows are decoded at a time; arguments that are refused.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "measure/trial.h"
#include "ops/gemm_parts.h"

enum {
  M = 136,
  N = 264,
  K = 144,
  DECODED = 16,
  WIDE = 1104,
  DEEP = 544,
  GROUPS = 5
}; // WIDE, DEEP: N and K of what is decoded

static SolContext *open_backend(SolBackend backend) {
  SolContext *ctx = NULL;
  if (sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, NULL)) return NULL;
  ctx->checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_INIT;
  return ctx;
}

// A case of test_ops whose kernel is given; the first option with so many steps that every stage is used again, where boxes outside of A
// and B are no longer copied. false: it is for other types or another layout.
static bool try_tile(SolContext *ctx, GemmWay way, int option, SolDtype dtype, SolDtype out) {
  int64_t deep = option ? K : K + 64 * gemm_variants[way.kernel].stages;
  OpsCase c = {.dim = {M, N, deep}, .dtype = dtype, .out_dtype = out, .option = option};
  Trial t;
  SolError err = {0};
  SolStatus status = trial_open(&t, ctx, &ops_gemm, &c, &(TrialOptions){.seed = 5}, &err);
  if (!status && way.swapped && !gemm_variants[way.kernel].split) // it has no residual
    ((SolGemm *)t.args)->residual = NULL, t.shares[4] = -1;
  bool fits = !status && gemm_tile_fits((const SolGemm *)t.args, &way);
  for (int k = 0; fits && !status && k < t.count; k++)
    if (t.memory[k]) status = sol_context_write(ctx, t.memory[k], t.host[k], t.bytes[k], &err);
  if (fits && !status) status = gemm_launch_tile(ctx, (const SolGemm *)t.args, way, NULL);
  if (fits && status) printf("%s\n", sol_last_error()->message);
  if (fits && !status) status = trial_check(&t, NULL, &err);
  if (fits && status)
    printf("%s in %d, clusters of %d by %d%s, option %d: %s\n", gemm_kernels[way.kernel], way.parts, way.down,
           way.across, way.swapped ? ", swapped" : "", option, err.message);
  CHECK(!fits || !status);
  trial_close(&t);
  return fits;
}

// In clusters of every shape by turns, as far as the kernel has them, and 1 to 3 blocks that share out k.
static GemmWay way_of(int kernel, int turn) {
  GemmWay way = {.kernel = kernel, .parts = 1, .down = 1, .across = 1};
  const GemmVariant *v = &gemm_variants[kernel];
  way.across = 1 + turn / 2 % 2;
  if (v->wide / GEMM_BOX_B(v->b_turned, v->wide) > 1) way.down = 1 + turn % 2;
  if (v->split) way.parts = way.down * way.across == 4 ? 2 : 1 + turn % 3;
  return way;
}

enum { BRIEF = CHECK_SANITIZED }; // one layout of every third tile

// Each layout once in one of the output types, with the operands as they are and swapped; each epilogue once.
TEST(every_tile_is_right) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  CHECK(ctx);
  if (ctx) ctx->sms = 4; // so few that clusters take several tiles
  for (int kernel = 0; ctx && kernel < GEMM_KERNELS; kernel += BRIEF ? 3 : 1) {
    if (!ops_has_kernel(ctx, &ops_gemm, kernel) || !gemm_variants[kernel].rows) continue;
    int ran = 0, ran_swapped = 0, turn = kernel;
    for (int option = 0; option <= 8 && !(BRIEF && ran && ran_swapped); option++) {
      bool epilogue = option > 3 && option < 8;
      GemmWay way = way_of(kernel, turn);
      if (epilogue && kernel % 4 != option % 4) continue;
      if (try_tile(ctx, way, option, SOL_BF16, option % 2 ? SOL_FP32 : SOL_BF16))
        ran++, way = way_of(kernel, ++turn);
      if (!epilogue && try_tile(ctx, way, option, SOL_FP16, SOL_FP16)) ran++, way = way_of(kernel, ++turn);
      way.swapped = true;
      if (try_tile(ctx, way, option, SOL_BF16, SOL_BF16)) ran_swapped++, turn++;
      if (gemm_variants[kernel].kind == 1 && !epilogue && try_tile(ctx, way, option, SOL_FP16, SOL_FP16))
        ran_swapped++, turn++;
    }
    CHECK(ran > 0 && ran_swapped > 0);
  }
  sol_context_destroy(ctx);
}

static void random_values(uint16_t *to, int count, unsigned seed) { // bf16, -2 to 2
  for (int i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    to[i] = (uint16_t)((seed >> 31) << 15 | (0x3f00 + (seed >> 20 & 0xff)));
  }
}

typedef struct Decoding {
  uint16_t a[DECODED * DEEP], b[WIDE * DEEP];
  float scales[WIDE * GROUPS];
} Decoding;

// b: bf16, or bytes that are fp8 (no NaN) or int4.
static void fill_decoding(Decoding *d, SolWeights weights) {
  uint8_t *bytes = (uint8_t *)d->b;
  random_values(d->a, DECODED * DEEP, 1);
  random_values(d->b, WIDE * DEEP, 2);
  for (int i = 0; weights && i < WIDE * DEEP; i++) {
    bytes[i] = (uint8_t)(d->b[i] >> 8 ^ (d->b[i] << 1));
    if (weights == SOL_WEIGHTS_FP8 && (bytes[i] & 127) == 127) bytes[i] = 0;
  }
  for (int i = 0; i < WIDE * GROUPS; i++) d->scales[i] = (float)(i % 13 + 1) / 8;
}

// Decodes the first m of the rows; out: the bits of C, which has half as many columns when gated.
static void decode(SolContext *ctx, int m, const Decoding *d, SolWeights weights, bool gated, uint16_t *out) {
  void *at[4] = {0};
  const void *from[4] = {NULL, d->a, d->b, d->scales};
  int n = gated ? WIDE / 2 : WIDE;
  size_t bytes[4] = {(size_t)m * (size_t)n * 2, (size_t)m * DEEP * 2, sizeof d->b, sizeof d->scales};
  for (int i = 0; i < 4; i++)
    CHECK(!sol_context_alloc(ctx, bytes[i], &at[i], NULL) &&
          (!i || !sol_context_write(ctx, at[i], from[i], bytes[i], NULL)));
  SolGemm g = {.c = at[0],
               .a = at[1],
               .b = at[2],
               .b_scales = weights == SOL_WEIGHTS_INT4 ? at[3] : NULL,
               .m = m,
               .n = n,
               .k = DEEP,
               .activation = gated ? SOL_ACTIVATION_SILU_MUL : SOL_ACTIVATION_NONE,
               .dtype = SOL_BF16,
               .b_columns = 1,
               .weights = weights};
  g = gemm_filled(&g);
  CHECK(!sol_gemm(ctx, &g, NULL));
  CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, at[0], bytes[0], NULL));
  for (int i = 0; i < 4; i++) sol_context_free(ctx, at[i], NULL);
}

static float number(uint16_t bf16) {
  uint32_t bits = (uint32_t)bf16 << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// Sums of several hundred: bf16's rounding of them.
static void check_close(const uint16_t *got, const uint16_t *want, int count) {
  int wrong = 0;
  for (int i = 0; i < count; i++)
    wrong += !(fabsf(number(got[i]) - number(want[i])) <= 0.01f * fabsf(number(want[i])) + 0.25f);
  CHECK_INT(wrong, 0);
}

// On as many SMs as the emulator's GPU has, and on one, whose blocks have more columns than they multiply at a time.
TEST(rows_do_not_depend_on_how_many_are_decoded) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  static Decoding d;
  static uint16_t all[DECODED * WIDE], few[DECODED * WIDE], on_cpu[DECODED * WIDE];
  SolContext *ctx = open_backend(SOL_BACKEND_EMU), *cpu = open_backend(SOL_BACKEND_CPU);
  CHECK(ctx && cpu);
  for (int i = 0; ctx && cpu && i < 9; i += BRIEF ? 4 : 1) {
    int weights = i % 3, n = i < 6 ? WIDE : WIDE / 2;
    if (i >= 3) ctx->sms = 1;
    fill_decoding(&d, (SolWeights)weights);
    decode(ctx, DECODED, &d, (SolWeights)weights, i >= 6, all);
    decode(cpu, DECODED, &d, (SolWeights)weights, i >= 6, on_cpu);
    check_close(all, on_cpu, DECODED * n);
    for (int m = 1; m < DECODED; m += BRIEF ? 14 : 6) {
      decode(ctx, m, &d, (SolWeights)weights, i >= 6, few);
      CHECK(!memcmp(all, few, (size_t)m * (size_t)n * 2));
    }
  }
  sol_context_destroy(ctx);
  sol_context_destroy(cpu);
}

// Of a product in bf16, A by rows and B by columns, on this machine's emulated GPU.
static GemmPlan picked(SolContext *ctx, int64_t m, int64_t n, int64_t k) {
  GemmPlan plan = {.way.kernel = -1};
  SolGemm g = {.m = m, .n = n, .k = k, .dtype = SOL_BF16, .b_columns = 1};
  g = gemm_filled(&g);
  CHECK(gemm_pick(ctx, &g, &plan) && gemm_estimate(ctx, &g, &plan) > 0);
  return plan;
}

TEST(the_rule_takes_what_fits_the_size) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  CHECK(ctx && !ops_load(ctx, ops_index(ctx, &ops_gemm), NULL));
  if (!ctx) return;
  GemmPlan many = picked(ctx, 8192, 8192, 8192), few = picked(ctx, 24, 14048, 13912),
           deep = picked(ctx, 240, 512, 16384);
  CHECK(!gemm_variants[many.way.kernel].split && many.tiles > many.at_a_time);
  CHECK(few.way.swapped); // no products for rows that are not there
  CHECK(gemm_variants[deep.way.kernel].split && deep.way.parts > 1); // too few tiles for the SMs
  CHECK_INT(picked(ctx, 240, 512, 64).way.parts, 1);                 // nothing to share out
  sol_context_destroy(ctx);
}

// Clusters keep to a GPC, so that fewer may run at a time than SMs have room for; a persistent grid of more would take twice as long.
TEST(a_grid_has_no_more_clusters_than_run_at_a_time) {
  SolContext ctx = {.backend = SOL_BACKEND_CUDA, .cc = 90, .sms = 132};
  SolGemm g = {.m = 8192, .n = 8192, .k = 64, .dtype = SOL_BF16, .b_columns = 1};
  g = gemm_filled(&g);
  for (int i = 0; i < 2; i++)
    for (int size = 1; size <= OPS_CLUSTER; size++) ctx.clusters[i][size - 1] = (i + 1) * (132 / size - 2);
  for (int kernel = 0; kernel < GEMM_KERNELS; kernel++) {
    const GemmVariant *v = &gemm_variants[kernel];
    if (!v->rows || v->kind != 2) continue;
    for (int size = 1; size <= 4; size *= 2) {
      GemmWay way = {.kernel = kernel, .parts = 1, .down = size > 1 ? 2 : 1, .across = size / 2 > 1 ? 2 : 1};
      CHECK_INT(gemm_plan(&ctx, &g, way).at_a_time, v->per_sm * (132 / size - 2));
    }
  }
}

TEST(bad_arguments_are_refused) {
  static uint16_t a[64], b[128], c[64];
  static const float scales[8];
  SolContext *ctx = open_backend(SOL_BACKEND_CPU);
  const SolGemm good = {.c = c, .a = a, .b = b, .m = 8, .n = 8, .k = 8, .dtype = SOL_BF16};
  SolGemm bad[15];
  for (int i = 0; i < 15; i++) bad[i] = good;
  bad[0].dtype = SOL_FP32;
  bad[1].out_dtype = SOL_INT8;
  bad[2].activation = SOL_ACTIVATION_SILU_MUL, bad[2].beta = 1;
  bad[3].n = -1;
  bad[4].c = a;
  bad[5].weight_dtype = SOL_FP16;
  bad[6].activation = (SolActivation)9;
  bad[7].n = INT64_MAX / 2 + 2, bad[7].activation = SOL_ACTIVATION_SILU_MUL;
  bad[8].b = NULL;
  bad[9].weights = SOL_WEIGHTS_FP8; // B by rows
  bad[10].b_scales = scales;
  bad[11].weights = SOL_WEIGHTS_INT4, bad[11].b_columns = 1; // no scales
  bad[12].weights = SOL_WEIGHTS_INT4, bad[12].b_columns = 1, bad[12].b_scales = scales, bad[12].k = 7;
  bad[13].weights = (SolWeights)3, bad[13].b_columns = 1;
  bad[14].weights = SOL_WEIGHTS_FP8, bad[14].b_columns = 1, bad[14].dtype = SOL_FP8;
  CHECK(!sol_gemm(ctx, &good, NULL));
  for (int i = 0; i < 15; i++) CHECK(sol_gemm(ctx, &bad[i], NULL));
  sol_context_destroy(ctx);
}

TEST(costs) {
  SolGemm g = {
      .m = 32, .n = 64, .k = 128, .batch = 3, .dtype = SOL_BF16, .activation = SOL_ACTIVATION_SILU_MUL};
  SolCost cost;
  CHECK(!sol_gemm_cost(&g, &cost, NULL));
  CHECK(cost.flops == 3 * 2.0 * 32 * 128 * 128);
  CHECK(cost.bytes_read == 3 * (32.0 * 128 + 128 * 128) * 2 && cost.bytes_written == 3 * 32.0 * 64 * 2);
}

CHECK_MAIN
