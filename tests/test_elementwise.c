// The pieces that elementwise operations share, and what the shape lists of test_ops do not reach: every
// shift between two tensors, 1- and 8-byte types, two chunks a thread.
#include "check.h"
#include "measure/trial.h"
#include "ops/elementwise.h"
#include "ops/ends.h"

// As the kernels divide.
static uint64_t divide(uint64_t i, Divider d) {
  return (uint64_t)((unsigned __int128)(i << 1) * d.magic >> 64) >> d.shift;
}
static uint32_t divide32(uint32_t i, Divider32 d) {
  return (uint32_t)((uint64_t)i * d.magic >> d.shift);
}

static void try_divider(uint64_t by) {
  Divider d = elementwise_divider(by);
  const uint64_t most = INT64_MAX;
  for (uint64_t k = 0; k < 64; k++) {
    uint64_t near[] = {k,     (most >> k) - 1, most >> k, (most >> k) / by * by, (most >> k) / by * by - 1,
                       k * by};
    for (size_t j = 0; j < SOL_COUNT(near); j++) {
      uint64_t i = near[j];
      if (i <= most && !CHECK_INT(divide(i, d), i / by)) return;
      if (by > INT32_MAX || i > INT32_MAX) continue;
      if (!CHECK_INT(divide32((uint32_t)i, elementwise_divider32((uint32_t)by)), i / by)) return;
    }
  }
}

TEST(division_by_multiplication_is_exact) {
  for (uint64_t by = 1; by < 5200; by++) try_divider(by);
  for (int bit = 12; bit < 63; bit++)
    for (int off = -3; off <= 3; off++) try_divider(((uint64_t)1 << bit) + (uint64_t)off);
  try_divider(INT64_MAX);
}

TEST(exp_is_close) {
  for (int i = 0; i < 47432; i++) { // -87 to 88.5
    float x = -87 + 0.0037f * (float)i;
    double want = exp((double)x);
    if (!CHECK_MSG(fabs((double)elementwise_exp(x) - want) < 3 * 0x1p-24 * want, "exp(%g) is %g", (double)x,
                   (double)elementwise_exp(x)))
      return;
  }
  CHECK(elementwise_exp(INFINITY) == INFINITY && elementwise_exp(100) == INFINITY);
  CHECK(elementwise_exp(-INFINITY) == 0 && elementwise_exp(-200) == 0);
  CHECK(isnan(elementwise_exp(NAN)));
}

// Rows that lie apart, begin or end within a sector, and are not those of the input.
TEST(ends_of_rows_that_lie_apart) {
  char *y = (char *)256, *x = (char *)4096;
  CHECK_INT(ends_bytes(y, x, 70, 64), 64); // rows begin within a sector,
  CHECK_INT(ends_bytes(y, x, 96, 50), 50); // or end
  CHECK_INT(ends_bytes(y + 16, x, 128, 96), 96);
  CHECK_INT(ends_bytes(y + 16, x, 96, 96), 0); // dense
  CHECK_INT(ends_bytes(y, x, 50, 50), 0);
  CHECK_INT(ends_bytes(y, x, 128, 96), 0); // whole sectors
  CHECK_INT(ends_bytes(y, y, 70, 64), 0);  // in place
  CHECK_INT(ends_bytes(NULL, x, 70, 64), 0);
  CHECK_INT(ends_bytes(y, x, 4010, 2048), 2048);
  CHECK_INT(ends_bytes(y, x, 4010, 2050), 0); // too long
  CHECK_INT(ends_bytes(y, x, INT64_MAX, (int64_t)INT32_MAX + 1), 0);
}

// Context on cpu or emu; NULL where this build has no kernels.
static SolContext *open_context(SolBackend backend, const SolDevice *device) {
  SolContext *ctx = NULL;
  SolError err = {0};
  if (backend == SOL_BACKEND_EMU && !ops_image_count)
    return check_skip("built without nvcc: no kernels"), NULL;
  CHECK_MSG(!sol_context_create(&(SolContextOptions){.backend = backend, .device = device}, &ctx, &err), "%s",
            err.message);
  return ctx;
}

enum { ROOM = 4096 };

// m rows of n elements, x and y starting that many bytes after a boundary: what is around y must not change.
static bool copies(SolContext *ctx, char *memory, SolDtype dtype, int64_t m, int64_t n, int x_off, int y_off,
                   int64_t x_stride, int64_t y_stride) {
  unsigned char before[2 * ROOM], after[2 * ROOM], want[2 * ROOM];
  int64_t size = sol_dtype_bits(dtype) / 8, xs = x_stride ? x_stride : n, ys = y_stride ? y_stride : n;
  for (int i = 0; i < 2 * ROOM; i++) before[i] = (unsigned char)(((unsigned)i * 2654435761u) >> 13);
  memcpy(want, before, sizeof want);
  for (int64_t r = 0; r < m; r++)
    memcpy(want + ROOM + 256 + y_off + r * ys * size, before + 256 + x_off + r * xs * size,
           (size_t)(n * size));
  SolError err;
  bool ok = CHECK(!sol_context_write(ctx, memory, before, sizeof before, &err));
  SolCopy args = {.y = memory + ROOM + 256 + y_off,
                  .x = memory + 256 + x_off,
                  .m = m,
                  .n = n,
                  .x_stride = x_stride,
                  .y_stride = y_stride,
                  .dtype = dtype};
  ok = ok && CHECK_MSG(!sol_copy(ctx, &args, NULL), "%s", sol_last_error()->message);
  ok = ok && CHECK(!sol_context_read(ctx, after, memory, sizeof after, &err));
  return ok && CHECK_MSG(!memcmp(after, want, sizeof want), "%s, %lldx%lld, x off by %d, y by %d",
                         sol_dtype_name(dtype), (long long)m, (long long)n, x_off, y_off);
}

TEST(copies_between_any_two_places) {
  static const SolDtype types[] = {SOL_INT8, SOL_BF16, SOL_FP32, SOL_INT64, SOL_FP64};
  static const int64_t lengths[] = {1, 7, 16, 65, 200};
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++) {
    SolContext *ctx = open_context(b, NULL);
    void *memory = NULL;
    SolError err;
    if (!ctx || !CHECK(!sol_context_alloc(ctx, 2 * ROOM, &memory, &err))) continue;
    for (size_t d = 0; d < SOL_COUNT(types); d++) {
      int size = sol_dtype_bits(types[d]) / 8;
      for (int x = 0; x < 16; x += size)
        for (int y = 0; y < 16; y += size)
          for (size_t l = 0; l < SOL_COUNT(lengths); l++)
            copies(ctx, memory, types[d], 1, lengths[l], x, y, 0, 0);
      copies(ctx, memory, types[d], 3, 70, 0, 0, 71, 75);
      copies(ctx, memory, types[d], 5, 3, size, 0, 4, 3);
      copies(ctx, memory, types[d], 4, 64, 0, 0, 80, 96);
    }
    sol_context_free(ctx, memory, NULL);
    sol_context_destroy(ctx);
  }
}

// Two chunks a thread are taken where that spares a round of blocks: on a GPU of one multiprocessor, soon.
TEST(two_chunks_a_thread) {
  static const OpsDef *const defs[] = {&ops_copy, &ops_scale_columns, &ops_bias_relu_scale, &ops_bias_gelu};
  static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  static const int64_t shapes[][4] = {{3, 4096}, {5, 4096}, {3, 8192}, {19, 1352}};
  const SolDevice *h100;
  SolError err = {0};
  if (!CHECK(!sol_device_find("h100-sxm", &h100, &err))) return;
  SolDevice one = *h100;
  one.sms.value = 1;
  SolContext *ctx = open_context(SOL_BACKEND_EMU, &one);
  if (!ctx) return;
  int two = 0;
  for (size_t k = 0; k < SOL_COUNT(defs); k++)
    for (size_t s = 0; s < SOL_COUNT(shapes); s++)
      for (size_t d = 0; d < SOL_COUNT(types); d++) {
        OpsCase c = {.dtype = types[d], .weight_dtype = s % 2 ? SOL_FP32 : types[d]};
        memcpy(c.dim, shapes[s], sizeof c.dim);
        two += elementwise_two(ctx, c.dim[0] * c.dim[1] / elementwise_chunk(types[d], types[d]));
        Trial t;
        SolStatus status = trial_open(&t, ctx, defs[k], &c, &(TrialOptions){.specials = true}, &err);
        if (!status) status = trial_run(&t, &err);
        if (!status) status = trial_check(&t, NULL, &err);
        trial_close(&t);
        CHECK_MSG(!status, "%s %lldx%lld: %s", defs[k]->name, (long long)c.dim[0], (long long)c.dim[1],
                  err.message);
      }
  CHECK(two > 8);
  sol_context_destroy(ctx);
}

// A cache that holds fp8 already, or bytes: nothing is converted.
TEST(kv_append_moves_bytes) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++) {
    SolContext *ctx = open_context(b, NULL);
    if (!ctx) continue;
    for (int64_t d = 1; d < 40; d += 7) {
      OpsCase c = {.dim = {6, 3, d}, .dtype = SOL_FP8};
      Trial t;
      SolError err = {0};
      SolStatus status = trial_open(&t, ctx, &ops_kv_append, &c, &(TrialOptions){.bad_ids = true}, &err);
      if (!status) status = trial_run(&t, &err);
      if (!status) status = trial_check(&t, NULL, &err);
      trial_close(&t);
      CHECK_MSG(!status, "%s", err.message);
    }
    sol_context_destroy(ctx);
  }
}

// Whole numbers: exact. Positions include some that the tables have not.
static void rope_is_exact(SolContext *ctx, SolRope a) {
  int64_t all = a.t * a.h * a.d, half = a.rotary / 2, table = a.rows * half;
  float *x = malloc(sizeof *x * (size_t)all), *y = malloc(sizeof *y * (size_t)all);
  float *c = malloc(sizeof *c * (size_t)table), *s = malloc(sizeof *s * (size_t)table);
  int32_t *at = malloc(sizeof *at * (size_t)a.t);
  for (int64_t i = 0; i < all; i++) x[i] = (float)(i % 251 - 100);
  for (int64_t i = 0; i < table; i++) c[i] = (float)(i % 7 - 3), s[i] = (float)(i % 11 - 5);
  for (int64_t i = 0; i < a.t; i++) at[i] = (int32_t)(i * 5 % (a.rows + 2) - 1);
  struct {
    const void *from;
    void *to;
    size_t bytes;
  } m[5] = {{x, NULL, sizeof *x * (size_t)all},
            {NULL, NULL, sizeof *x * (size_t)all},
            {c, NULL, sizeof *c * (size_t)table},
            {s, NULL, sizeof *s * (size_t)table},
            {at, NULL, sizeof *at * (size_t)a.t}};
  for (int i = 0; i < 5; i++) {
    CHECK(!sol_context_alloc(ctx, m[i].bytes, &m[i].to, NULL));
    if (m[i].from) CHECK(!sol_context_write(ctx, m[i].to, m[i].from, m[i].bytes, NULL));
  }
  a.x = m[0].to, a.y = m[1].to, a.cos = m[2].to, a.sin = m[3].to, a.positions = m[4].to;
  CHECK_MSG(!sol_rope(ctx, &a, NULL), "%s", sol_last_error()->message);
  CHECK(!sol_context_read(ctx, y, a.y, m[1].bytes, NULL));
  int64_t wrong = 0;
  for (int64_t i = 0; i < all; i++) {
    int64_t k = i % a.d, row = at[i / (a.h * a.d)], pair = a.interleaved ? k / 2 : k % half;
    bool turns = k < a.rotary && row >= 0 && row < a.rows, second = a.interleaved ? k % 2 : k >= half;
    int64_t other = a.interleaved ? i ^ 1 : second ? i - half : i + half;
    float want = x[i];
    if (turns) want = x[i] * c[row * half + pair] + (second ? 1 : -1) * x[other] * s[row * half + pair];
    wrong += y[i] != want;
  }
  CHECK_INT(wrong, 0);
  for (int i = 0; i < 5; i++) sol_context_free(ctx, m[i].to, NULL);
  free(x), free(y), free(c), free(s), free(at);
}

// Many bytes of tokens: a kernel looks at positions ahead. Odd numbers of heads and of chunks only copied.
TEST(rope_ahead_and_odd) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++) {
    SolContext *ctx = open_context(b, NULL);
    if (!ctx) continue;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
      SolRope a = {.t = 70,
                   .h = 1,
                   .d = 16384,
                   .rotary = 16384,
                   .rows = 9,
                   .dtype = SOL_FP32,
                   .interleaved = interleaved};
      rope_is_exact(ctx, a);
      a.t = 5, a.h = 3, a.d = 52, a.rotary = 32;
      rope_is_exact(ctx, a);
    }
    sol_context_destroy(ctx);
  }
}

// All zeros: the scale is 0 and so are the elements, in rows and in blocks.
TEST(zeros_stay_zeros_in_fp8) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++)
    for (int scaling = SOL_SCALE_ROW; scaling <= SOL_SCALE_BLOCK; scaling++) {
      SolContext *ctx = open_context(b, NULL);
      void *memory = NULL;
      SolError err;
      if (!ctx || !CHECK(!sol_context_alloc(ctx, ROOM, &memory, &err))) continue;
      unsigned char bytes[ROOM];
      memset(bytes, 0, 2048);
      memset(bytes + 2048, 0xA5, 2048);
      CHECK(!sol_context_write(ctx, memory, bytes, ROOM, &err));
      char *at = memory;
      SolSiluMul args = {.y = at + 2048,
                         .gate = at,
                         .up = at + 1024,
                         .scales = (float *)(void *)(at + 3072),
                         .m = 1,
                         .n = 200,
                         .dtype = SOL_FP32,
                         .out_dtype = SOL_FP8,
                         .scaling = (SolScaling)scaling};
      CHECK_MSG(!sol_silu_mul(ctx, &args, NULL), "%s", sol_last_error()->message);
      CHECK(!sol_context_read(ctx, bytes, memory, ROOM, &err));
      for (int i = 0; i < 200; i++) CHECK_INT(bytes[2048 + i], 0);
      CHECK_INT(bytes[2048 + 200], 0xA5);
      float scales[2];
      memcpy(scales, bytes + 3072, sizeof scales);
      CHECK(scales[0] == 0 && (scaling == SOL_SCALE_ROW || scales[1] == 0));
      sol_context_free(ctx, memory, NULL);
      sol_context_destroy(ctx);
    }
}

CHECK_MAIN
