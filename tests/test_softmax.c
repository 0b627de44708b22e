// What the shape lists of test_ops leave out of softmax, reduce and argmax: extreme values, ties, rows that
// must not depend on each other, and the workspace. On cpu, and on emu where there are kernels.
#include <float.h>

#include "check.h"
#include "ops/operation.h"

static SolContext *open_context(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err;
  bool ok = sol_context_create(&(SolContextOptions){.backend = backend, .workers = 2}, &ctx, &err) == SOL_OK;
  CHECK_MSG(ok, "%s", err.message);
  return ctx;
}

static SolBackend last_backend(void) {
  return ops_image_count ? SOL_BACKEND_EMU : SOL_BACKEND_CPU;
}

static void *put(SolContext *ctx, const void *from, size_t bytes) {
  void *at = NULL;
  CHECK(sol_context_alloc(ctx, bytes, &at, NULL) == SOL_OK);
  if (from) CHECK(sol_context_write(ctx, at, from, bytes, NULL) == SOL_OK);
  return at;
}

static void get(SolContext *ctx, void *to, void *from, size_t bytes) {
  CHECK(sol_context_read(ctx, to, from, bytes, NULL) == SOL_OK);
}

// One row of fp32 through softmax or log_softmax.
static void run_row(SolContext *ctx, bool log_of, const float *x, float *y, int64_t m, int64_t n) {
  size_t bytes = sizeof(float) * (size_t)(m * n);
  SolSoftmax a = {.x = put(ctx, x, bytes), .y = put(ctx, NULL, bytes), .m = m, .n = n, .dtype = SOL_FP32};
  SolStatus status = log_of ? sol_log_softmax(ctx, &a, NULL) : sol_softmax(ctx, &a, NULL);
  CHECK_MSG(status == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, y, a.y, bytes);
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, a.y, NULL);
}

// Masks are often the lowest finite number: a row of nothing else is uniform, not NaN.
TEST(softmax_extremes) {
  enum { N = 37 };
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    static const float levels[] = {-FLT_MAX, FLT_MAX, -1e30f, 3e20f, 0, FLT_MIN};
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
      float x[N], y[N];
      for (int i = 0; i < N; i++) x[i] = levels[k];
      run_row(ctx, false, x, y, 1, N);
      for (int i = 0; i < N; i++) CHECK_NEAR((double)y[i], 1.0 / N, 1e-6);
      run_row(ctx, true, x, y, 1, N);
      for (int i = 0; i < N; i++) CHECK_NEAR((double)y[i], -log((double)N), 1e-6);
    }
    float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = i == 20 ? 1e30f : -FLT_MAX;
    run_row(ctx, false, x, y, 1, N);
    for (int i = 0; i < N; i++) CHECK(y[i] == (i == 20 ? 1.0f : 0.0f));
    sol_context_destroy(ctx);
  }
}

static bool bad_row(SolContext *ctx, bool log_of, int n, float odd, float rest) {
  float *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
  bool all = x && y;
  for (int i = 0; i < n && all; i++) x[i] = i == n - 1 ? odd : rest;
  if (all) run_row(ctx, log_of, x, y, 1, n);
  for (int i = 0; i < n && all; i++) all = isnan(y[i]);
  free(x);
  free(y);
  return all;
}

TEST(softmax_nan_rows) {
  static const int lengths[] = {1, 2, 7, 128, 1000, 5125};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
      for (int log_of = 0; log_of < 2; log_of++) {
        CHECK(bad_row(ctx, log_of, lengths[k], NAN, 1));
        CHECK(bad_row(ctx, log_of, lengths[k], INFINITY, -2));
        CHECK(bad_row(ctx, log_of, lengths[k], -INFINITY, -INFINITY));
      }
    sol_context_destroy(ctx);
  }
}

// A row alone has the bits that it has among others, whatever its length and place.
TEST(rows_are_independent) {
  static const int lengths[] = {3, 31, 128, 769, 4096};
  enum { M = 5, MOST = 4096 };
  static float x[M * MOST], y[M * MOST], alone[MOST], sums[M], one;
  for (int i = 0; i < M * MOST; i++) x[i] = (float)((i * 7919) % 1009) / 100 - 5;
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
      int n = lengths[k];
      size_t row = sizeof(float) * (size_t)n;
      SolSoftmax a = {.m = M, .n = n, .dtype = SOL_FP32};
      a.x = put(ctx, x, M * row), a.y = put(ctx, NULL, M * row);
      SolReduce r = {.x = a.x, .y = put(ctx, NULL, sizeof sums), .m = M, .n = n, .dtype = SOL_FP32};
      CHECK(sol_softmax(ctx, &a, NULL) == SOL_OK && sol_reduce(ctx, &r, NULL) == SOL_OK);
      get(ctx, y, a.y, M * row);
      get(ctx, sums, r.y, sizeof sums);
      SolSoftmax last = a;
      last.m = 1, last.x = (const float *)a.x + 4 * n, last.y = (float *)a.y + 4 * n;
      SolReduce last_sum = r;
      last_sum.m = 1, last_sum.x = last.x;
      CHECK(sol_softmax(ctx, &last, NULL) == SOL_OK && sol_reduce(ctx, &last_sum, NULL) == SOL_OK);
      get(ctx, alone, last.y, row);
      get(ctx, &one, r.y, sizeof one);
      CHECK_MSG(!memcmp(alone, y + 4 * n, row) && one == sums[4], "rows of %d depend on M", n);
      sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
      sol_context_free(ctx, a.y, NULL);
      sol_context_free(ctx, r.y, NULL);
    }
    sol_context_destroy(ctx);
  }
}

// In a row of one block, and far apart in one that a cluster of blocks takes.
TEST(argmax_ties) {
  enum { N = 1030, FAR = 145 };
  static float x[N * FAR];
  static const struct {
    int at[3];
    float value, rest;
    int want;
  } cases[] = {{{5, 900, 1029}, 3, 1, 5},
               {{1029, 17, 40}, NAN, INFINITY, 17},
               {{3, 2, 1}, 0.0f, -0.0f, 0},
               {{7, 8, 9}, -INFINITY, -INFINITY, 0},
               {{1028, 1029, 1029}, 2, -INFINITY, 1028},
               {{0, 0, 0}, 1, 0, 0}};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
      int apart = k % 2 ? FAR : 1, c = (int)k / 2, n = N * apart;
      int64_t y = -1;
      for (int i = 0; i < n; i++) x[i] = cases[c].rest;
      for (int i = 0; i < 3; i++) x[cases[c].at[i] * apart] = cases[c].value;
      SolArgmax a = {.m = 1, .n = n, .dtype = SOL_FP32, .id_dtype = SOL_INT64};
      a.x = put(ctx, x, sizeof(float) * (size_t)n), a.y = put(ctx, NULL, sizeof y);
      CHECK(sol_argmax(ctx, &a, NULL) == SOL_OK);
      get(ctx, &y, a.y, sizeof y);
      CHECK_INT(y, cases[c].want * apart);
      sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
      sol_context_free(ctx, a.y, NULL);
    }
    sol_context_destroy(ctx);
  }
}

TEST(reduce_workspace) {
  SolReduce a = {.m = 5000, .n = 64, .dtype = SOL_FP32, .axis = SOL_AXIS_COLUMNS};
  SolContext *cpu = open_context(SOL_BACKEND_CPU);
  CHECK_INT(sol_reduce_workspace(cpu, &a), 0);
  CHECK_INT(sol_reduce_workspace(NULL, &a), 0);
  sol_context_destroy(cpu);
  if (last_backend() != SOL_BACKEND_EMU) return;
  SolContext *ctx = open_context(SOL_BACKEND_EMU);
  int64_t bytes = sol_reduce_workspace(ctx, &a);
  CHECK(bytes > 0);
  a.x = put(ctx, NULL, 5000 * 64 * 4), a.y = put(ctx, NULL, 64 * 4);
  CHECK(sol_reduce(ctx, &a, NULL) == SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "sol_reduce_workspace");
  a.workspace = put(ctx, NULL, (size_t)bytes);
  a.workspace_bytes = bytes - 4;
  CHECK(sol_reduce(ctx, &a, NULL) == SOL_ERR_ARGUMENT);
  a.workspace_bytes = bytes;
  a.workspace = NULL;
  CHECK(sol_reduce(ctx, &a, NULL) == SOL_ERR_ARGUMENT);
  a.axis = SOL_AXIS_ROWS;
  CHECK_INT(sol_reduce_workspace(ctx, &a), 0);
  a.axis = (SolAxis)7;
  CHECK(sol_reduce(ctx, &a, NULL) == SOL_ERR_ARGUMENT);
  a.axis = SOL_AXIS_ROWS, a.reduction = (SolReduction)9;
  CHECK(sol_reduce(ctx, &a, NULL) == SOL_ERR_ARGUMENT);
  sol_context_destroy(ctx);
}

// A cluster adds up a column's parts in the order in which a second launch does on GPUs without clusters.
TEST(reduce_columns_everywhere) {
  enum { M = 520, N = 7168 };
  static float x[M * N], y[2][N];
  if (last_backend() != SOL_BACKEND_EMU) return;
  for (int i = 0; i < M * N; i++) x[i] = (float)((int)((uint32_t)i * 2654435761u >> 16) - 32768) * 0x1p-7f;
  for (int how = SOL_REDUCE_SUM; how <= SOL_REDUCE_SUM_SQUARES; how++) {
    for (int old = 0; old < 2; old++) {
      SolContextOptions options = {.backend = SOL_BACKEND_EMU, .workers = 2};
      SolContext *ctx = NULL;
      SolReduce a = {
          .m = M, .n = N, .dtype = SOL_FP32, .axis = SOL_AXIS_COLUMNS, .reduction = (SolReduction)how};
      CHECK_INT(sol_device_find(old ? "a100-80gb" : "h200", &options.device, NULL), SOL_OK);
      CHECK_INT(sol_context_create(&options, &ctx, NULL), SOL_OK);
      a.workspace_bytes = sol_reduce_workspace(ctx, &a);
      a.x = put(ctx, x, sizeof x), a.y = put(ctx, NULL, sizeof *y);
      a.workspace = put(ctx, NULL, (size_t)a.workspace_bytes + 1);
      CHECK_MSG(sol_reduce(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
      get(ctx, y[old], a.y, sizeof *y);
      sol_context_destroy(ctx);
    }
    CHECK_MSG(!memcmp(y[0], y[1], sizeof *y), "reduction %d", how);
  }
}

CHECK_MAIN
