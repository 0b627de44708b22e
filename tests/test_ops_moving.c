// Operations that move data: what test_ops cannot say. gather's order; more batches than a grid has along one
// axis; skewed and fully filled histograms; arguments that only these operations have.
#include "check.h"
#include "measure/trial.h"
#include "ops/operation.h"

static SolContext *open_backend(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err;
  if (backend == SOL_BACKEND_EMU && !ops_image_count)
    return check_skip("built without nvcc: no kernels"), NULL;
  SolStatus status = sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, &err);
  if (status && backend == SOL_BACKEND_CUDA) return check_skip("no GPU: %s", err.message), NULL;
  CHECK_MSG(!status, "%s: %s", sol_backend_name(backend), err.message);
  return ctx;
}

// One test of each backend, so that one that is not here is seen to be skipped.
#define ON_EACH_BACKEND(run)                                                                                 \
  TEST(run##_cpu) {                                                                                          \
    run(SOL_BACKEND_CPU);                                                                                    \
  }                                                                                                          \
  TEST(run##_emu) {                                                                                          \
    run(SOL_BACKEND_EMU);                                                                                    \
  }                                                                                                          \
  TEST(run##_cuda) {                                                                                         \
    run(SOL_BACKEND_CUDA);                                                                                   \
  }

static void *upload(SolContext *ctx, const void *from, size_t bytes) {
  void *at = NULL;
  CHECK_INT(sol_context_alloc(ctx, bytes, &at, NULL), SOL_OK);
  CHECK_INT(sol_context_write(ctx, at, from, bytes, NULL), SOL_OK);
  return at;
}

static void release(SolContext *ctx, const void *memory) {
  CHECK_INT(sol_context_free(ctx, (void *)(uintptr_t)memory, NULL), SOL_OK);
}

static void download(SolContext *ctx, void *to, void *from, size_t bytes) {
  CHECK_INT(sol_context_sync(ctx, NULL), SOL_OK);
  CHECK_INT(sol_context_read(ctx, to, from, bytes, NULL), SOL_OK);
  CHECK_INT(sol_context_free(ctx, from, NULL), SOL_OK);
}

TEST(order_is_by_id_and_stable) {
  enum { COUNT = 3000 };
  static int64_t ids[COUNT], order[COUNT];
  static int32_t ids32[COUNT], order32[COUNT];
  static const int64_t ranges[] = {1, 2, 7, 1000, COUNT, INT64_MAX / 4};
  for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
    uint64_t random = 88172645463325252u + r;
    for (int i = 0; i < COUNT; i++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      ids[i] = (int64_t)(random >> 1) % ranges[r] - ranges[r] / 3; // bad ones too
      ids32[i] = (int32_t)ids[i];
    }
    CHECK_INT(sol_gather_order(ids, order, COUNT, SOL_INT64, NULL), SOL_OK);
    CHECK_INT(sol_gather_order(ids32, order32, COUNT, SOL_DTYPE_DEFAULT, NULL), SOL_OK);
    int wrong = 0;
    for (int i = 1; i < COUNT; i++) {
      int64_t a = order[i - 1], b = order[i];
      if (ids[a] > ids[b] || (a >= b && ids[a] == ids[b])) wrong++;
      int32_t c = order32[i - 1], d = order32[i];
      if (ids32[c] > ids32[d] || (c >= d && ids32[c] == ids32[d])) wrong++;
    }
    CHECK_INT(wrong, 0); // strictly ascending pairs of (id, position): a permutation, too
  }
}

TEST(order_of_few) {
  int32_t ids[3] = {5, 5, -1}, order[3] = {9, 9, 9};
  CHECK_INT(sol_gather_order(NULL, NULL, 0, SOL_INT32, NULL), SOL_OK);
  CHECK_INT(sol_gather_order(ids, order, 1, SOL_INT32, NULL), SOL_OK);
  CHECK(order[0] == 0 && order[1] == 9);
  CHECK_INT(sol_gather_order(ids, order, 3, SOL_INT32, NULL), SOL_OK);
  CHECK(order[0] == 2 && order[1] == 0 && order[2] == 1);
}

TEST(order_of_bad_arguments) {
  int32_t ids[1] = {0}, order[1];
  SolError err;
  CHECK_INT(sol_gather_order(ids, order, 1, SOL_FP32, &err), SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "fp32");
  CHECK_INT(sol_gather_order(NULL, order, 1, SOL_INT32, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_gather_order(ids, NULL, 1, SOL_INT32, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_gather_order(ids, order, -1, SOL_INT32, &err), SOL_ERR_RANGE);
  CHECK_INT(sol_gather_order(ids, order, (int64_t)1 << 31, SOL_INT32, &err), SOL_ERR_RANGE);
}

// An order that is no permutation is the caller's mistake; nothing outside y may be written for it.
static void gather_in_bad_order(SolBackend backend) {
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  float x[4] = {1, 2, 3, 4}, y[6] = {-1, -1, -1, -1, -1, -1};
  int32_t ids[4] = {3, 2, 1, 0}, order[4] = {-1, 4, 2, INT32_MAX};
  SolGather a = {.m = 4, .n = 1, .rows = 4, .dtype = SOL_FP32};
  a.x = upload(ctx, x, sizeof x), a.ids = upload(ctx, ids, sizeof ids),
  a.order = upload(ctx, order, sizeof order);
  float *all = upload(ctx, y, sizeof y);
  a.y = all + 1;
  CHECK_INT(sol_gather(ctx, &a, NULL), SOL_OK);
  download(ctx, y, all, sizeof y);
  release(ctx, a.x), release(ctx, a.ids), release(ctx, a.order);
  for (int i = 0; i < 6; i++) CHECK_NEAR((double)y[i], i == 3 ? 2 : -1, 0);
  sol_context_destroy(ctx);
}

ON_EACH_BACKEND(gather_in_bad_order)

// Of many rows a warp takes several after another; for a GPU of one SM these are many. Short rows of several classes, odd and not; some ids
// are bad.
static void gather_many(SolBackend backend, int64_t n) {
  enum { M = 5000, ROWS = 60 };
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  ctx->sms = 1;
  size_t bytes = (size_t)(M * n) * 2;
  uint16_t *x = malloc((size_t)(ROWS * n) * 2), *y = calloc(1, bytes);
  int32_t *ids = malloc(sizeof *ids * M);
  CHECK(x && y && ids);
  for (int64_t i = 0; i < ROWS * n; i++) x[i] = (uint16_t)(i * 7 + 1);
  for (int i = 0; i < M; i++) ids[i] = (i * 31 + i / 7) % (ROWS + 1); // ROWS: none
  SolGather a = {.m = M, .n = n, .rows = ROWS, .dtype = SOL_BF16};
  a.x = upload(ctx, x, (size_t)(ROWS * n) * 2), a.ids = upload(ctx, ids, sizeof *ids * M);
  a.y = upload(ctx, y, bytes);
  CHECK_INT(sol_gather(ctx, &a, NULL), SOL_OK);
  download(ctx, y, a.y, bytes);
  int64_t wrong = 0;
  for (int64_t i = 0; i < M * n; i++) {
    int32_t id = ids[i / n];
    wrong += y[i] != (id < ROWS ? x[id * n + i % n] : 0);
  }
  CHECK_INT(wrong, 0);
  release(ctx, a.x), release(ctx, a.ids);
  free(x), free(y), free(ids);
  sol_context_destroy(ctx);
}

static void gather_many_rows(SolBackend backend) {
  gather_many(backend, 9);   // a thread has a row
  gather_many(backend, 21);  // some lanes do, by words
  gather_many(backend, 301); // a warp does
  gather_many(backend, 64);  // by 16 bytes
}

ON_EACH_BACKEND(gather_many_rows)

// The same for embed_rmsnorm, whose rows must come out as they do where a warp has one alone.
static void embed_many(SolBackend backend, int64_t n) {
  enum { M = 3500, ROWS = 40 };
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  int sms = ctx->sms;
  size_t bytes = (size_t)(M * n) * 2;
  uint16_t *x = malloc((size_t)(ROWS * n) * 2), *y[2] = {calloc(1, bytes), calloc(1, bytes)};
  int32_t *ids = malloc(sizeof *ids * M);
  CHECK(x && y[0] && y[1] && ids);
  for (int64_t i = 0; i < ROWS * n; i++) x[i] = (uint16_t)(0x3f00 + i % 255); // 0.5 to 2
  for (int i = 0; i < M; i++) ids[i] = (i * 31 + i / 7) % (ROWS + 1);
  SolEmbedRmsnorm a = {.m = M, .n = n, .vocab = ROWS, .dtype = SOL_BF16, .eps = 1e-5f};
  a.table = upload(ctx, x, (size_t)(ROWS * n) * 2), a.ids = upload(ctx, ids, sizeof *ids * M);
  for (int few = 0; few < 2; few++) {
    ctx->sms = few ? sms : 1;
    a.y = upload(ctx, y[few], bytes);
    CHECK_INT(sol_embed_rmsnorm(ctx, &a, NULL), SOL_OK);
    download(ctx, y[few], a.y, bytes);
  }
  CHECK(!memcmp(y[0], y[1], bytes));
  int64_t zeros = 0, bad = 0;
  for (int64_t i = 0; i < M * n; i++) zeros += !y[0][i], bad += ids[i / n] == ROWS;
  CHECK_INT(zeros, bad);
  release(ctx, a.table), release(ctx, a.ids);
  free(x), free(y[0]), free(y[1]), free(ids);
  sol_context_destroy(ctx);
}

static void embed_many_rows(SolBackend backend) {
  embed_many(backend, 21);
  embed_many(backend, 57);
  embed_many(backend, 301);
}

ON_EACH_BACKEND(embed_many_rows)

// Ids that the call right before writes: on a GPU the next kernel is there already, and has looked at the old
// ones. Each call's rows must be those of its own ids, and its flag too. Rows of several classes of length.
static void embed_ids_just_written(SolBackend backend, int64_t n) {
  enum { CALLS = 24, ROWS = 2, VOCAB = 50 };
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  size_t bytes = (size_t)(VOCAB * n) * sizeof(float), out = CALLS * ROWS * (size_t)n * sizeof(float);
  float *host = malloc(bytes), *late = calloc(1, out), *now = calloc(1, out);
  int32_t ids[CALLS][ROWS], bad[CALLS] = {0}, flags[2][CALLS];
  for (int64_t i = 0; i < VOCAB * n; i++) host[i] = (float)(i * 2654435761u % 4093) / 4096 - 0.5f;
  for (int i = 0; i < CALLS * ROWS; i++) ids[i / ROWS][i % ROWS] = i % 11 == 7 ? -1 : i * 17 % VOCAB;
  float *table = upload(ctx, host, bytes), *y[2] = {upload(ctx, now, out), upload(ctx, late, out)};
  int32_t *all = upload(ctx, ids, sizeof ids), *given = upload(ctx, ids[0], sizeof ids[0]);
  int32_t *flag[2] = {upload(ctx, bad, sizeof bad), upload(ctx, bad, sizeof bad)};
  SolEmbedRmsnorm a = {.table = table,
                       .weight = table,
                       .m = ROWS,
                       .n = n,
                       .vocab = VOCAB,
                       .dtype = SOL_FP32,
                       .bad_id = SOL_BAD_ID_FLAG,
                       .eps = 1e-5f};
  for (int written = 0; written < 2; written++) // the ids where they are; then copied just before
    for (int i = 0; i < CALLS; i++) {
      SolCopy copy = {.y = given, .x = all + i * ROWS, .m = 1, .n = ROWS, .dtype = SOL_INT32};
      if (written) CHECK_INT(sol_copy(ctx, &copy, NULL), SOL_OK);
      a.ids = written ? given : all + i * ROWS;
      a.y = y[written] + (int64_t)i * ROWS * n, a.bad = flag[written] + i;
      CHECK_INT(sol_embed_rmsnorm(ctx, &a, NULL), SOL_OK);
    }
  for (int k = 0; k < 2; k++)
    download(ctx, flags[k], flag[k], sizeof bad), download(ctx, k ? late : now, y[k], out);
  CHECK_MSG(memcmp(now, late, out) == 0, "%s, rows of %lld", sol_backend_name(backend), (long long)n);
  for (int i = 0; i < CALLS; i++) {
    CHECK_INT(flags[0][i], ids[i][0] < 0 || ids[i][1] < 0);
    CHECK_INT(flags[1][i], flags[0][i]);
  }
  release(ctx, table), release(ctx, all), release(ctx, given);
  free(host), free(late), free(now);
  sol_context_destroy(ctx);
}

static void embed_late_ids(SolBackend backend) {
  static const int64_t lengths[] = {64, 1024, 2048, 4096, 4099, 20000};
  for (size_t i = 0; i < SOL_COUNT(lengths); i++) embed_ids_just_written(backend, lengths[i]);
}
ON_EACH_BACKEND(embed_late_ids)

// 70000 batches: more than a grid has blocks along its second axis.
static void transpose_many(SolBackend backend, int64_t m, int64_t n) {
  enum { BATCH = 70000 };
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  int64_t each = m * n;
  size_t bytes = (size_t)(BATCH * each) * sizeof(uint16_t);
  uint16_t *x = malloc(bytes), *y = malloc(bytes);
  for (int64_t i = 0; i < BATCH * each; i++) x[i] = (uint16_t)(i * 40503 >> 3), y[i] = 0xA5A5;
  SolTranspose a = {.batch = BATCH, .m = m, .n = n, .dtype = SOL_BF16};
  void *out = upload(ctx, y, bytes);
  a.x = upload(ctx, x, bytes), a.y = out;
  CHECK_INT(sol_transpose(ctx, &a, NULL), SOL_OK);
  download(ctx, y, out, bytes);
  int64_t wrong = 0;
  for (int64_t i = 0; i < BATCH * each; i++) wrong += y[i / each * each + i % n * m + i / n % m] != x[i];
  CHECK_INT(wrong, 0);
  release(ctx, a.x);
  free(x);
  free(y);
  sol_context_destroy(ctx);
}

static void transpose_many_batches(SolBackend backend) {
  if (CHECK_SANITIZED) SKIP("small batches take the same code");
  transpose_many(backend, 3, 2);
  if (backend != SOL_BACKEND_CPU) transpose_many(backend, 8, 8);
}
ON_EACH_BACKEND(transpose_many_batches)

// Every element in one bin, in the first and the last, and all of them outside.
// What only large tensors are given: rows that a transpose gathers from shared memory, and odd dense rows whose threads take
// several chunks that lie a period apart.
static void large_odd_rows(SolBackend backend) {
  static const struct {
    const OpsDef *def;
    OpsCase c;
  } cases[] = {
      {&ops_transpose, {.dtype = SOL_BF16, .dim = {100003, 137}}},
      {&ops_transpose, {.dtype = SOL_FP16, .dim = {70001, 97, 2}, .pad = 3}},
      {&ops_transpose, {.dtype = SOL_FP16, .dim = {175, 64, 245}}},
      {&ops_transpose, {.dtype = SOL_BF16, .dim = {129, 64, 245}}},
      {&ops_scale_columns, {.dtype = SOL_BF16, .out_dtype = SOL_FP16, .dim = {130003, 69}}},
      {&ops_bias_gelu, {.dtype = SOL_FP16, .dim = {13, 690011}}},
      {&ops_bias_relu_scale, {.dtype = SOL_FP32, .out_dtype = SOL_BF16, .dim = {65001, 70}}},
  };
  if (CHECK_SANITIZED) SKIP("takes minutes");
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    Trial t;
    SolError err = {0};
    SolStatus status = trial_open(&t, ctx, cases[i].def, &cases[i].c, &(TrialOptions){.seed = i}, &err);
    if (!status) status = trial_run(&t, &err);
    if (!status) status = trial_check(&t, NULL, &err);
    CHECK_MSG(!status, "%s, case %zu: %s", cases[i].def->name, i, err.message);
    trial_close(&t);
  }
  sol_context_destroy(ctx);
}
ON_EACH_BACKEND(large_odd_rows)

static void skewed(SolBackend backend, int64_t bins) {
  enum { COUNT = 50001 };
  static int32_t x[COUNT], counts[65536];
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  int32_t values[] = {0, (int32_t)bins - 1, -1, (int32_t)bins, INT32_MIN, INT32_MAX};
  for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
    for (int i = 0; i < COUNT; i++) x[i] = values[k];
    memset(counts, 0, sizeof counts);
    SolHistogram a = {.n = COUNT, .bins = bins, .dtype = SOL_INT32};
    void *in = upload(ctx, x, sizeof x);
    a.x = in;
    a.counts = upload(ctx, counts, (size_t)bins * 4);
    CHECK_INT(sol_histogram(ctx, &a, NULL), SOL_OK);
    download(ctx, counts, a.counts, (size_t)bins * 4);
    release(ctx, in);
    int64_t sum = 0;
    for (int64_t b = 0; b < bins; b++) sum += counts[b];
    CHECK_INT(sum, k < 2 ? COUNT : 0);
    if (k < 2) CHECK_INT(counts[values[k]], COUNT);
  }
  sol_context_destroy(ctx);
}

static void skewed_histograms(SolBackend backend) {
  static const int64_t bins[] = {1, 256, 12289, 65536};
  for (size_t i = 0; i < SOL_COUNT(bins); i++) skewed(backend, bins[i]);
}
ON_EACH_BACKEND(skewed_histograms)

// Both ends belong to bins; just outside them nothing does.
TEST(ends_of_a_histogram) {
  SolContext *ctx = open_backend(SOL_BACKEND_CPU);
  float x[] = {-1, 1, nextafterf(-1, -2), nextafterf(1, 2), NAN, INFINITY, -INFINITY, nextafterf(1, 0), 0};
  int32_t counts[4] = {10, 0, 0, 0};
  SolHistogram a = {.counts = counts, .x = x, .n = 9, .bins = 4, .dtype = SOL_FP32, .low = -1, .high = 1};
  CHECK_INT(sol_histogram(ctx, &a, NULL), SOL_OK);
  CHECK(counts[0] == 11 && counts[1] == 0 && counts[2] == 1 && counts[3] == 2);
  a.n = 0;
  CHECK_INT(sol_histogram(ctx, &a, NULL), SOL_OK);
  CHECK_INT(counts[0], 11);
  sol_context_destroy(ctx);
}

TEST(bad_arguments) {
  SolContext *ctx = open_backend(SOL_BACKEND_CPU);
  float x[4] = {0}, y[4];
  int32_t counts[4] = {0}, ids[4] = {0}, bad = 0;
  SolHistogram h = {.counts = counts, .x = x, .n = 4, .bins = 4, .dtype = SOL_FP32, .low = 1, .high = 1};
  CHECK_INT(sol_histogram(ctx, &h, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "from 1 to 1");
  h.high = INFINITY;
  CHECK_INT(sol_histogram(ctx, &h, NULL), SOL_ERR_ARGUMENT);
  h.low = -3e38f, h.high = 3e38f; // their distance is too large for fp32
  CHECK_INT(sol_histogram(ctx, &h, NULL), SOL_ERR_ARGUMENT);
  h.low = 0, h.high = 1, h.bins = 65537;
  CHECK_INT(sol_histogram(ctx, &h, NULL), SOL_ERR_RANGE);
  h.bins = 4, h.dtype = SOL_INT64;
  CHECK_INT(sol_histogram(ctx, &h, NULL), SOL_ERR_ARGUMENT);
  SolStencil s = {.y = y, .x = x, .m = 2, .n = 2, .dtype = SOL_FP32};
  CHECK_INT(sol_stencil(ctx, &s, NULL), SOL_ERR_RANGE);
  s.radius = 9;
  CHECK_INT(sol_stencil(ctx, &s, NULL), SOL_ERR_RANGE);
  s.radius = 1, s.y = x; // not in place
  CHECK_INT(sol_stencil(ctx, &s, NULL), SOL_ERR_ARGUMENT);
  SolGather g = {.y = y, .x = x, .ids = ids, .m = 2, .n = 2, .rows = 2, .dtype = SOL_FP32};
  g.bad_id = SOL_BAD_ID_FLAG;
  CHECK_INT(sol_gather(ctx, &g, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "bad is NULL");
  g.bad_id = SOL_BAD_ID_ZERO, g.bad = &bad;
  CHECK_INT(sol_gather(ctx, &g, NULL), SOL_ERR_ARGUMENT);
  g.bad = NULL, g.id_dtype = SOL_FP16;
  CHECK_INT(sol_gather(ctx, &g, NULL), SOL_ERR_ARGUMENT);
  SolTranspose t = {.y = x, .x = x, .m = 2, .n = 2, .dtype = SOL_FP32}; // not in place
  CHECK_INT(sol_transpose(ctx, &t, NULL), SOL_ERR_ARGUMENT);
  t.y = y, t.dtype = SOL_FP4;
  CHECK_INT(sol_transpose(ctx, &t, NULL), SOL_ERR_ARGUMENT);
  sol_context_destroy(ctx);
}

CHECK_MAIN

// A table beyond L2 is served strip by strip of its columns: every byte of every row is copied, wherever strips meet, and nothing beside.
static void strips(SolBackend backend, int64_t row, SolDtype dtype, int64_t size) {
  enum { ROWS = 21, IDS = 22 };
  SolContext *ctx = open_backend(backend);
  if (!ctx) return;
  int64_t bytes = row * size;
  char *table = malloc((size_t)(ROWS * bytes)), *y = malloc((size_t)(IDS * bytes + 16));
  int32_t ids[IDS];
  uint64_t random = 88172645463325252u;
  for (int64_t i = 0; i < ROWS * bytes / 4; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    memcpy(table + 4 * i, &random, 4);
  }
  for (int i = 0; i < IDS; i++) ids[i] = i * 8 % ROWS;
  ids[5] = ROWS; // there is no such row
  memset(y, 85, (size_t)(IDS * bytes + 16));
  SolGather a = {.m = IDS, .n = row, .rows = ROWS, .dtype = dtype};
  void *to = upload(ctx, y, (size_t)(IDS * bytes + 16));
  a.y = to, a.x = upload(ctx, table, (size_t)(ROWS * bytes)), a.ids = upload(ctx, ids, sizeof ids);
  CHECK_INT(sol_gather(ctx, &a, NULL), SOL_OK);
  download(ctx, y, to, (size_t)(IDS * bytes + 16));
  int wrong = 0;
  for (int i = 0; i < IDS; i++)
    if (i != 5) wrong += memcmp(y + i * bytes, table + ids[i] * bytes, (size_t)bytes) != 0;
  for (int64_t i = 0; i < bytes; i++) wrong += y[5 * bytes + i] != 0;
  for (int i = 0; i < 16; i++) wrong += y[IDS * bytes + i] != 85;
  CHECK_INT(wrong, 0);
  release(ctx, a.x), release(ctx, a.ids);
  free(table), free(y);
  sol_context_destroy(ctx);
}
static void strips_of_columns(SolBackend backend) {
  strips(backend, 600008, SOL_FP16, 2);
  strips(backend, 300007, SOL_FP32, 4);
}
ON_EACH_BACKEND(strips_of_columns)
