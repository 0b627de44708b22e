// sol_attention and sol_decode_attention beyond what test_ops tries: the error over a whole tensor, rows that see nothing, the same bits
// whatever the batch, arguments that are refused, costs.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "measure/trial.h"

static SolContext *open_backend(SolBackend backend) {
  SolContext *ctx = NULL;
  if (sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, NULL)) return NULL;
  ctx->checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_INIT;
  return ctx;
}

// |got - want| over |want|, of a whole tensor, beyond the rounding of each element to its type; INFINITY: a NaN.
static double error_of(const OpsView *v, const unsigned char *got, const double *want) {
  double wrong = 0, all = 0;
  for (int64_t i = 0; i < v->batch * v->rows * v->cols; i++) {
    double x = trial_element(v->dtype, got, i),
           rounding = fabs(want[i]) * (v->dtype == SOL_BF16 ? 0x1p-9 : 0x1p-12);
    double off = fmax(fabs(x - want[i]) - rounding, 0);
    if (isnan(x)) return INFINITY;
    wrong += off * off, all += want[i] * want[i];
  }
  return sqrt(wrong / all);
}

// Bytes of a trial's memory before a tensor.
static ptrdiff_t before(const Trial *t, int k) {
  return (const char *)t->view[k].at - (const char *)t->memory[k];
}

// Inputs as test_ops has them, dense.
static void try_error(SolContext *ctx, const OpsDef *def, const OpsCase *c, double most) {
  Trial t;
  SolError err = {0};
  double *want[OPS_MAX_VIEWS + 1] = {0};
  SolStatus status = trial_open(&t, ctx, def, c, &(TrialOptions){.seed = 3 + ctx->async_order}, &err);
  if (!status) status = trial_run(&t, &err);
  for (int k = 0; k < t.count && !status; k++) {
    const OpsView *v = &t.view[k];
    int64_t count = v->batch * v->rows * v->cols;
    if (!v->at) continue;
    want[k] = calloc((size_t)count, sizeof(double));
    for (int64_t i = 0; i < count && v->role == OPS_IN; i++)
      want[k][i] = trial_element(v->dtype, t.host[k] + before(&t, k), i);
  }
  if (!status) def->reference(t.args, want);
  if (!status) status = sol_context_read(ctx, t.host[0], t.memory[0], t.bytes[0], &err);
  CHECK_MSG(!status, "%s: %s", def->name, err.message);
  double error = status ? INFINITY : error_of(&t.view[0], t.host[0] + before(&t, 0), want[0]);
  CHECK_MSG(error < most, "%s, %lld elements a head, option %d: error %.2g", def->name, (long long)c->dim[3],
            c->option, error);
  for (int k = 0; k < OPS_MAX_VIEWS; k++) free(want[k]);
  trial_close(&t);
}

static void try_errors(SolBackend backend) {
  SolContext *ctx = open_backend(backend);
  CHECK(ctx);
  if (!ctx) return;
  for (int option = 0; option < 3; option++) {
    try_error(ctx, &ops_attention, &(OpsCase){.dim = {1, 2, 150, 64}, .dtype = SOL_BF16, .option = option},
              2e-3);
    try_error(ctx, &ops_attention,
              &(OpsCase){.dim = {1, 1, 150, 128}, .dtype = SOL_FP16, .option = option % 2}, 6e-4);
  }
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {1, 4, 288, 128}, .dtype = SOL_BF16}, 2e-3);
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {1, 4, 48, 576}, .dtype = SOL_BF16}, 2e-3);
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {1, 33, 288, 576}, .dtype = SOL_BF16}, 2e-3);
  for (int fp8 = 0; fp8 < 2; fp8++)
    try_error(ctx, &ops_decode_attention,
              &(OpsCase){.dim = {1, 20, 2300, 576}, .dtype = SOL_BF16, .option = fp8 * 4}, 2e-3); // parts
  // On a GPU of one SM a block has several parts one after another, of teams of one warp and of two, and of two tiles of MLA's heads.
  int sms = ctx->sms;
  ctx->sms = 1;
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {11, 8, 70, 64}, .dtype = SOL_BF16}, 2e-3);
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {40, 11, 70, 128}, .dtype = SOL_BF16, .option = 2},
            2e-3);
  try_error(ctx, &ops_decode_attention, &(OpsCase){.dim = {20, 19, 70, 128}, .dtype = SOL_BF16, .option = 2},
            2e-3);
  for (int option = 3; option < 5; option++) // a window; fp8
    try_error(ctx, &ops_decode_attention,
              &(OpsCase){.dim = {3, 70, 150, 576}, .dtype = SOL_BF16, .option = option}, 2e-3);
  ctx->sms = sms;
  sol_context_destroy(ctx);
}

TEST(errors_cpu) {
  try_errors(SOL_BACKEND_CPU);
}

TEST(errors_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  try_errors(SOL_BACKEND_EMU);
}

// As late as copies and products can complete: nothing is read before, and no block ends, whose shared memory would then be another's. Blocks
// without a part of a short sequence, whose window begins within a copy, too.
TEST(decode_waits_for_what_it_started_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  static const OpsCase cases[] = {{.dim = {1, 1, 4200, 128}, .dtype = SOL_BF16, .option = 3},
                                  {.dim = {2, 20, 150, 128}, .dtype = SOL_FP16},
                                  {.dim = {2, 3, 200, 576}, .dtype = SOL_FP16},
                                  {.dim = {2, 33, 200, 576}, .dtype = SOL_FP16}};
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  if (!CHECK(ctx)) return;
  for (ctx->async_order = 1; ctx->async_order < 8; ctx->async_order++)
    for (size_t i = 0; i < SOL_COUNT(cases); i++) try_error(ctx, &ops_decode_attention, &cases[i], 2e-3);
  sol_context_destroy(ctx);
}

// On a GPU of one SM a block has all heads one after another, so that their places in shared memory are filled again and again; copies complete as late as
// they can.
TEST(heads_one_after_another_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  static const OpsCase cases[] = {{.dim = {2, 5, 80, 64}, .dtype = SOL_BF16},
                                  {.dim = {2, 5, 80, 64}, .dtype = SOL_BF16, .pad = 5},
                                  {.dim = {2, 3, 115, 128}, .dtype = SOL_FP16, .pad = 3, .option = 1},
                                  {.dim = {2, 3, 91, 256}, .dtype = SOL_BF16, .pad = 5},
                                  {.dim = {1, 3, 121, 256}, .dtype = SOL_BF16, .pad = 5},
                                  {.dim = {1, 5, 70, 64}, .dtype = SOL_BF16, .option = 6},
                                  {.dim = {2, 5, 60, 256}, .dtype = SOL_FP16, .pad = 1},
                                  {.dim = {3, 7, 33, 128}, .dtype = SOL_BF16, .pad = 7},
                                  {.dim = {2, 19, 12, 64}, .dtype = SOL_BF16, .pad = 5}};
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  if (!CHECK(ctx)) return;
  ctx->sms = 1;
  for (ctx->async_order = 0; ctx->async_order < 4; ctx->async_order++)
    for (size_t i = 0; i < SOL_COUNT(cases); i++) {
      Trial t;
      SolError err = {0};
      int misalign = (int)ctx->async_order * 3;
      SolStatus status =
          trial_open(&t, ctx, &ops_attention, &cases[i], &(TrialOptions){.misalign = misalign}, &err);
      if (!status) status = trial_run(&t, &err);
      if (!status) status = trial_check(&t, NULL, &err);
      CHECK_MSG(!status, "case %zu, order %d: %s", i, (int)ctx->async_order, err.message);
      trial_close(&t);
    }
  sol_context_destroy(ctx);
}

// ---- rows that see nothing ----

enum { D = 64, TOKENS = 5, BF16_ONE = 0x3f80, NOT_WRITTEN = 0x7fc1 };

typedef struct Held {
  void *at[7];
  size_t count;
} Held;

static void *put(SolContext *ctx, Held *h, const void *from, size_t bytes) {
  void *at = NULL;
  CHECK(!sol_context_alloc(ctx, bytes, &at, NULL) && !sol_context_write(ctx, at, from, bytes, NULL));
  return h->at[h->count++] = at;
}

static void let_go(SolContext *ctx, Held *h) {
  for (size_t i = 0; i < h->count; i++) sol_context_free(ctx, h->at[i], NULL);
}

// More queries than keys: the first see none. Variable lengths: a sequence without keys.
static void see_nothing(SolBackend backend) {
  SolContext *ctx = open_backend(backend);
  uint16_t x[TOKENS * D], out[TOKENS * D];
  float lse[TOKENS] = {0};
  int32_t q_starts[3] = {0, 2, TOKENS}, kv_starts[3] = {0, 0, 3}; // 2 queries of no keys; 3 of 3
  Held h = {0};
  CHECK(ctx);
  if (!ctx) return;
  for (int i = 0; i < TOKENS * D; i++) x[i] = BF16_ONE, out[i] = NOT_WRITTEN;
  SolAttention a = {
      .batch = 1, .heads = 1, .queries = TOKENS, .keys = 3, .d = D, .dtype = SOL_BF16, .causal = 1};
  a.o = put(ctx, &h, out, sizeof out), a.q = put(ctx, &h, x, sizeof x), a.k = put(ctx, &h, x, sizeof x);
  a.v = a.k, a.lse = put(ctx, &h, lse, sizeof lse);
  for (int packed = 0; packed < 2; packed++) {
    if (packed) {
      a.q_starts = put(ctx, &h, q_starts, sizeof q_starts),
      a.kv_starts = put(ctx, &h, kv_starts, sizeof kv_starts);
      a.batch = 2, a.q_tokens = TOKENS, a.kv_tokens = 3;
    }
    CHECK_INT(sol_attention(ctx, &a, NULL), SOL_OK);
    CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, a.o, sizeof out, NULL));
    CHECK(!sol_context_read(ctx, lse, a.lse, sizeof lse, NULL));
    for (int i = 0; i < TOKENS; i++) { // all scores are 8, all values 1
      CHECK_INT(out[i * D], i < 2 ? 0 : BF16_ONE);
      if (i < 2)
        CHECK(lse[i] == -INFINITY);
      else
        CHECK_NEAR((double)lse[i], 8 + log(i - 1), 1e-4);
    }
  }
  let_go(ctx, &h);
  sol_context_destroy(ctx);
}

// Variable lengths: sequences without queries, one of several and all of them, write nothing; without any key there are zeros.
static void no_tokens(SolBackend backend) {
  SolContext *ctx = open_backend(backend);
  uint16_t x[TOKENS * D], out[TOKENS * D];
  const int32_t none[4] = {0}, some[4] = {0, 0, 2, 2}, keys[4] = {0, 1, 2, 3};
  Held h = {0};
  CHECK(ctx);
  if (!ctx) return;
  for (int i = 0; i < TOKENS * D; i++) x[i] = BF16_ONE, out[i] = NOT_WRITTEN;
  SolAttention a = {
      .batch = 3, .heads = 1, .queries = 2, .keys = 3, .d = D, .kv_tokens = 3, .dtype = SOL_BF16};
  a.o = put(ctx, &h, out, sizeof out), a.q = put(ctx, &h, x, sizeof x), a.k = put(ctx, &h, x, sizeof x),
  a.v = a.k;
  a.kv_starts = put(ctx, &h, keys, sizeof keys), a.q_starts = put(ctx, &h, none, sizeof none);
  CHECK_INT(sol_attention(ctx, &a, NULL), SOL_OK);
  CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, a.o, sizeof out, NULL));
  for (int i = 0; i < TOKENS; i++) CHECK_INT(out[i * D], NOT_WRITTEN);
  a.q_starts = put(ctx, &h, some, sizeof some), a.q_tokens = 2;
  for (int key = 1; key >= 0; key--) {
    if (!key) a.kv_starts = put(ctx, &h, none, sizeof none), a.kv_tokens = 0;
    CHECK_INT(sol_attention(ctx, &a, NULL), SOL_OK);
    CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, a.o, sizeof out, NULL));
    for (int i = 0; i < TOKENS; i++) CHECK_INT(out[i * D], i >= 2 ? NOT_WRITTEN : key ? BF16_ONE : 0);
  }
  let_go(ctx, &h);
  sol_context_destroy(ctx);
}

// Sequences without tokens, and with pages that are not in the cache.
static void decode_nothing(SolBackend backend) {
  enum { BATCH = 3 };
  SolContext *ctx = open_backend(backend);
  uint16_t x[4 * D], out[BATCH * D];
  float lse[BATCH] = {0};
  int32_t lengths[BATCH] = {0, 4, 2}, table[BATCH] = {0, 1, 0};
  Held h = {0};
  CHECK(ctx);
  if (!ctx) return;
  for (int i = 0; i < 4 * D; i++) x[i] = BF16_ONE;
  for (int i = 0; i < BATCH * D; i++) out[i] = NOT_WRITTEN;
  SolDecodeAttention a = {
      .batch = BATCH, .heads = 1, .d = D, .pages = 1, .page_size = 4, .table_pages = 1, .dtype = SOL_BF16};
  a.o = put(ctx, &h, out, sizeof out), a.q = put(ctx, &h, x, sizeof x), a.k_cache = put(ctx, &h, x, sizeof x);
  a.v_cache = a.k_cache, a.lse = put(ctx, &h, lse, sizeof lse);
  a.lengths = put(ctx, &h, lengths, sizeof lengths), a.table = put(ctx, &h, table, sizeof table);
  CHECK_INT(sol_decode_attention(ctx, &a, NULL), SOL_OK);
  CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, a.o, sizeof out, NULL));
  CHECK(!sol_context_read(ctx, lse, a.lse, sizeof lse, NULL));
  for (int i = 0; i < BATCH; i++) CHECK_INT(out[i * D], i < 2 ? 0 : BF16_ONE);
  CHECK(lse[0] == -INFINITY && lse[1] == -INFINITY);
  CHECK_NEAR((double)lse[2], 8 + log(2), 1e-4);
  let_go(ctx, &h);
  sol_context_destroy(ctx);
}

// ---- heads that share one of an fp8 cache, which test_ops does not try ----

enum { SHARED_TOKENS = 90, SHARED_HEADS = 19, SHARED_D = 128, SHARED_CACHE = SHARED_TOKENS * SHARED_D };

static void decode_shared(SolBackend backend, int heads, int d, uint16_t *out) {
  SolContext *ctx = open_backend(backend);
  static uint16_t q[SHARED_HEADS * SHARED_D];
  static uint8_t cache[2 * SHARED_CACHE]; // K, then V
  int32_t length = SHARED_TOKENS;
  uint32_t random = 1;
  Held h = {0};
  if (!CHECK(ctx)) return;
  for (size_t i = 0; i < sizeof cache; i++) // magnitudes up to 3.75
    random = random * 1664525 + 1013904223, cache[i] = (uint8_t)((random >> 31 << 7) | (random >> 8) % 0x48);
  for (size_t i = 0; i < SOL_COUNT(q); i++) // of 0.25 to 0.5
    random = random * 1664525 + 1013904223,
    q[i] = (uint16_t)(0x3e80 | (random >> 31 << 15) | (random >> 8) % 0x80);
  SolDecodeAttention a = {.batch = 1,
                          .heads = heads,
                          .kv_heads = 1,
                          .d = d,
                          .pages = 1,
                          .page_size = SHARED_TOKENS,
                          .dtype = SOL_BF16,
                          .kv_dtype = SOL_FP8};
  a.o = put(ctx, &h, out, (size_t)(heads * d) * 2), a.q = put(ctx, &h, q, sizeof q);
  a.k_cache = put(ctx, &h, cache, SHARED_CACHE), a.v_cache = put(ctx, &h, cache + SHARED_CACHE, SHARED_CACHE);
  a.lengths = put(ctx, &h, &length, sizeof length);
  CHECK_INT(sol_decode_attention(ctx, &a, NULL), SOL_OK);
  CHECK(!sol_context_sync(ctx, NULL) && !sol_context_read(ctx, out, a.o, (size_t)(heads * d) * 2, NULL));
  let_go(ctx, &h);
  sol_context_destroy(ctx);
}

TEST(heads_share_one_of_fp8_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  static uint16_t want[SHARED_HEADS * SHARED_D], got[SHARED_HEADS * SHARED_D];
  static const int shapes[][2] = {{11, 64}, {11, 128}, {SHARED_HEADS, 64}, {SHARED_HEADS, SHARED_D}};
  for (size_t k = 0; k < SOL_COUNT(shapes); k++) {
    double off = 0;
    decode_shared(SOL_BACKEND_CPU, shapes[k][0], shapes[k][1], want);
    decode_shared(SOL_BACKEND_EMU, shapes[k][0], shapes[k][1], got);
    for (int i = 0; i < shapes[k][0] * shapes[k][1]; i++)
      off = fmax(off, fabs(trial_element(SOL_BF16, got, i) - trial_element(SOL_BF16, want, i)));
    CHECK_MSG(off < 4e-3, "%d heads of %d: off by %.2g", shapes[k][0], shapes[k][1], off);
  }
}

TEST(rows_that_see_nothing_cpu) {
  see_nothing(SOL_BACKEND_CPU);
  no_tokens(SOL_BACKEND_CPU);
  decode_nothing(SOL_BACKEND_CPU);
}

TEST(rows_that_see_nothing_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  see_nothing(SOL_BACKEND_EMU);
  no_tokens(SOL_BACKEND_EMU);
  decode_nothing(SOL_BACKEND_EMU);
}

// ---- arguments ----

TEST(bad_arguments_are_refused) {
  static uint16_t x[4][8 * 64];
  SolContext *ctx = open_backend(SOL_BACKEND_CPU);
  const SolAttention good = {.o = x[0],
                             .q = x[1],
                             .k = x[2],
                             .v = x[3],
                             .batch = 1,
                             .heads = 2,
                             .kv_heads = 1,
                             .queries = 4,
                             .keys = 4,
                             .d = 64,
                             .dtype = SOL_BF16,
                             .causal = 1};
  enum { BAD = 12 };
  SolAttention bad[BAD];
  for (int i = 0; i < BAD; i++) bad[i] = good;
  bad[0].d = 80;
  bad[1].dtype = SOL_FP32;
  bad[2].kv_heads = 3;
  bad[3].causal = 0, bad[3].window = 2;
  bad[4].window = -1;
  bad[5].scale = -1;
  bad[6].soft_cap = NAN;
  bad[7].q_tokens = 4;
  bad[8].kv_tokens = 4;
  bad[9].o = x[2];
  bad[10].keys = -1;
  bad[11].k = NULL;
  CHECK_INT(sol_attention(ctx, &good, NULL), SOL_OK);
  for (int i = 0; i < BAD; i++) CHECK_MSG(sol_attention(ctx, &bad[i], NULL), "bad[%d]", i);
  sol_context_destroy(ctx);
}

TEST(bad_arguments_of_decoding_are_refused) {
  static uint16_t x[4][8 * 64];
  static int32_t lengths[2] = {3, 4}, table[2] = {0, 1};
  SolContext *ctx = open_backend(SOL_BACKEND_CPU);
  const SolDecodeAttention good = {.o = x[0],
                                   .q = x[1],
                                   .k_cache = x[2],
                                   .v_cache = x[3],
                                   .table = table,
                                   .lengths = lengths,
                                   .batch = 2,
                                   .heads = 1,
                                   .d = 64,
                                   .pages = 2,
                                   .page_size = 4,
                                   .table_pages = 1,
                                   .dtype = SOL_BF16};
  enum { BAD = 12 };
  SolDecodeAttention bad[BAD];
  for (int i = 0; i < BAD; i++) bad[i] = good;
  bad[0].d = 96;
  bad[1].kv_dtype = SOL_FP16;
  bad[2].v_dim = 128;
  bad[3].v_cache = NULL;
  bad[4].table = NULL;
  bad[5].table_pages = 0;
  bad[6].lengths = NULL;
  bad[7].page_size = -4;
  bad[8].pages = INT64_MAX / 2;
  bad[9].d = 576, bad[9].v_dim = 512; // has a v_cache
  bad[10].table = NULL, bad[10].table_pages = 0, bad[10].pages = 1;
  bad[11].k_scale = -1;
  CHECK_INT(sol_decode_attention(ctx, &good, NULL), SOL_OK);
  for (int i = 0; i < BAD; i++) CHECK_MSG(sol_decode_attention(ctx, &bad[i], NULL), "bad[%d]", i);
  sol_context_destroy(ctx);
}

// Parts need a workspace, on a GPU.
TEST(a_workspace_that_is_too_small_is_refused) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  Trial t;
  SolError err = {0};
  OpsCase c = {.dim = {1, 2, 2200, 128}, .dtype = SOL_BF16};
  CHECK_INT(trial_open(&t, ctx, &ops_decode_attention, &c, NULL, &err), SOL_OK);
  SolDecodeAttention a;
  memcpy(&a, t.args, sizeof a);
  int64_t wanted = sol_decode_attention_workspace(ctx, &a);
  CHECK(wanted > 0 && wanted == a.workspace_bytes);
  a.workspace_bytes -= 4;
  CHECK_INT(sol_decode_attention(ctx, &a, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "sol_decode_attention_workspace");
  trial_close(&t);
  sol_context_destroy(ctx);
}

// For the most parts that a sequence of up to so many tokens is cut into: a block is launched for each.
TEST(a_workspace_has_room_for_the_parts_there_are) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  static const int64_t parts[][2] = {{1024, 0}, {1040, 2}, {8192, 8}, {16368, 16}, {16384, 32}, {16400, 32}};
  SolContext *ctx = open_backend(SOL_BACKEND_EMU);
  for (int i = 0; i < 6; i++) {
    SolDecodeAttention a = {
        .batch = 3, .heads = 2, .d = 128, .dtype = SOL_BF16, .pages = 3, .page_size = parts[i][0]};
    CHECK_INT(sol_decode_attention_workspace(ctx, &a), parts[i][1] * a.batch * a.heads * (128 + 2) * 4);
  }
  sol_context_destroy(ctx);
}

// ---- costs ----

static SolCost accounted(SolOpArgs args) {
  SolCost cost = {0};
  SolError err = {0};
  CHECK_INT(sol_op_find("attention", &args.op, &err), SOL_OK);
  CHECK_MSG(!sol_op_cost(&args, &cost, &err), "%s", err.message);
  return cost;
}

TEST(costs_are_the_accountants) {
  SolCost cost, want;
  SolAttention a = {.batch = 4,
                    .heads = 32,
                    .kv_heads = 8,
                    .queries = 4096,
                    .keys = 4096,
                    .d = 128,
                    .dtype = SOL_BF16,
                    .causal = 1};
  CHECK(!sol_attention_cost(&a, &cost, NULL));
  want = accounted((SolOpArgs){.dim = {4, 32, 4096, 128}, .dtype = SOL_BF16, .kv_heads = 8});
  CHECK(cost.flops == want.flops && cost.bytes_read == want.bytes_read &&
        cost.bytes_written == want.bytes_written);
  a.causal = 0;
  CHECK(!sol_attention_cost(&a, &cost, NULL));
  CHECK(cost.flops == 4.0 * 4 * 32 * 4096 * 4096 * 128);
  a.q_tokens = 4 * 100,
  a.kv_tokens = 4 * 300; // packed: what the tensors hold, not the longest that is allowed
  a.q_starts = a.kv_starts = (const int32_t *)&cost;
  CHECK(!sol_attention_cost(&a, &cost, NULL));
  CHECK(cost.flops == 4.0 * 4 * 32 * 100 * 300 * 128 && cost.bytes_written == 4.0 * 100 * 32 * 128 * 2);
  CHECK(cost.bytes_read == 4.0 * (100 * 32 + 2 * 300 * 8) * 128 * 2);
  SolDecodeAttention d = {.batch = 4,
                          .heads = 32,
                          .kv_heads = 8,
                          .d = 128,
                          .pages = 1024,
                          .page_size = 16,
                          .table_pages = 256,
                          .dtype = SOL_BF16,
                          .kv_dtype = SOL_FP8,
                          .table = (const int32_t *)&cost};
  CHECK(!sol_decode_attention_cost(&d, &cost, NULL));
  want = accounted((SolOpArgs){.dim = {4, 32, 4096, 128},
                               .dtype = SOL_BF16,
                               .kv_dtype = SOL_FP8,
                               .kv_heads = 8,
                               .phase = SOL_PHASE_DECODE});
  CHECK(cost.flops == want.flops && cost.bytes_read == want.bytes_read &&
        cost.bytes_written == want.bytes_written);
  d.d = 576, d.v_dim = 512, d.kv_heads = 1;
  CHECK(!sol_decode_attention_cost(&d, &cost, NULL)); // the latent is read once
  CHECK(cost.bytes_read == 4.0 * 4096 * 576 + 4.0 * 32 * 576 * 2 && cost.bytes_written == 4.0 * 32 * 512 * 2);
}

CHECK_MAIN
