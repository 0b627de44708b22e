// What random values seldom meet in argmax, histogram, stencil, rmsnorm to fp8 and layernorm: rows of nothing
// but -inf, equals at every pair of places, bins' borders, infinities just beyond the reach of a star,
// weights so small that a scale has no reciprocal, rows far from zero. On cpu, and on emu where there are
// kernels.
#include <float.h>

#include "check.h"
#include "ops/cpu.h"

static SolContext *open_context(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err;
  bool ok = sol_context_create(&(SolContextOptions){.backend = backend, .workers = 2}, &ctx, &err) == SOL_OK;
  CHECK_MSG(ok, "%s", err.message);
  return ctx;
}

static SolBackend last_backend(void) {
  if (!ops_image_count) check_skip("built without nvcc: no kernels");
  return ops_image_count ? SOL_BACKEND_EMU : SOL_BACKEND_CPU;
}

static void *put(SolContext *ctx, const void *from, size_t bytes) {
  void *at = NULL;
  CHECK(sol_context_alloc(ctx, bytes, &at, NULL) == SOL_OK);
  if (from) CHECK(sol_context_write(ctx, at, from, bytes, NULL) == SOL_OK);
  return at;
}

static void *take(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (!memory) abort();
  return memory;
}

static void get(SolContext *ctx, void *to, void *from, size_t bytes) {
  CHECK(sol_context_read(ctx, to, from, bytes, NULL) == SOL_OK);
}

// Rows of n elements: the same value everywhere but `high` at two places. One row for each pair of places.
static void equals(SolContext *ctx, SolDtype dtype, int n, float low, float high, const int (*pairs)[2],
                   int m) {
  size_t size = dtype == SOL_FP32 ? 4 : 2, bytes = size * (size_t)(m * n);
  char *x = take(bytes);
  int32_t *y = take(sizeof *y * (size_t)m);
  for (int i = 0; i < m * n; i++) {
    float f = i % n == pairs[i / n][0] || i % n == pairs[i / n][1] ? high : low;
    cpu_store(dtype, x, i, 1, &f);
  }
  SolArgmax a = {
      .y = put(ctx, NULL, sizeof *y * (size_t)m), .x = put(ctx, x, bytes), .m = m, .n = n, .dtype = dtype};
  CHECK_MSG(sol_argmax(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, y, a.y, sizeof *y * (size_t)m);
  for (int i = 0; i < m; i++) {
    int want = pairs[i][0] < pairs[i][1] ? pairs[i][0] : pairs[i][1];
    CHECK_MSG(y[i] == (low == high ? 0 : want), "n %d, %g among %g at %d and %d: %d", n, (double)high,
              (double)low, pairs[i][0], pairs[i][1], y[i]);
  }
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, a.y, NULL);
  free(x);
  free(y);
}

TEST(argmax_of_equals) {
  static const int lengths[] = {1, 5, 37, 130, 1037, 4100, 33000};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
      int n = lengths[k], pairs[6][2] = {{0, n - 1},     {n - 1, n - 1}, {n / 2, n - 1},
                                         {n / 3, n / 2}, {1 % n, n / 2}, {n - 1, 3 % n}};
      for (int type = 0; type < 3; type++) {
        SolDtype dtype = (SolDtype[]){SOL_FP32, SOL_BF16, SOL_FP16}[type];
        float least = dtype == SOL_FP16 ? 0x1p-24f : 0x1p-133f; // above 0
        equals(ctx, dtype, n, -INFINITY, -INFINITY, pairs, 6);
        equals(ctx, dtype, n, -INFINITY, -2, pairs, 6);
        equals(ctx, dtype, n, 1, INFINITY, pairs, 6);
        equals(ctx, dtype, n, INFINITY, NAN, pairs, 6);
        equals(ctx, dtype, n, 0, -0.0f, pairs, 6);
        equals(ctx, dtype, n, -least, -0.0f, pairs, 6);
        equals(ctx, dtype, n, 0, least, pairs, 6);
        equals(ctx, dtype, n, -2 * least, -least, pairs, 6);
      }
    }
    sol_context_destroy(ctx);
  }
}

TEST(histogram_borders) {
  // low and high themselves, just outside, so little below low that the product underflows, infinities, NaN.
  const float low = 0, high = 1e30f,
              x[] = {low, high, -FLT_MIN, -1e-45f, 1.0001e30f, INFINITY, -INFINITY, NAN, 5e29f, -0.0f};
  static const int bins[] = {1, 2, 1000, 12286, 12287, 40000};
  enum { N = sizeof x / sizeof *x, MANY = 160000 };
  float *all = malloc(sizeof *all * MANY);
  int32_t *counts = malloc(sizeof *counts * 40000);
  if (!CHECK(all && counts)) {
    free(all);
    free(counts);
    return;
  }
  for (int i = 0; i < MANY; i++) all[i] = x[i % N];
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t k = 0; k < sizeof bins / sizeof *bins; k++) {
      memset(counts, 0, sizeof *counts * 40000);
      SolHistogram a = {.counts = put(ctx, counts, sizeof *counts * (size_t)bins[k]),
                        .x = put(ctx, all, sizeof *all * MANY),
                        .n = MANY,
                        .bins = bins[k],
                        .dtype = SOL_FP32,
                        .low = low,
                        .high = high};
      CHECK_MSG(sol_histogram(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
      get(ctx, counts, a.counts, sizeof *counts * (size_t)bins[k]);
      long long sum = 0;
      for (int i = 0; i < bins[k]; i++) sum += counts[i];
      CHECK_INT(sum, MANY / N * 4); // low, -0, the middle, high
      CHECK_INT(counts[0], bins[k] == 1 ? MANY / N * 4 : MANY / N * 2);
      if (bins[k] > 2) CHECK_INT(counts[bins[k] - 1], MANY / N);
      sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
      sol_context_free(ctx, a.counts, NULL);
    }
    sol_context_destroy(ctx);
  }
  free(all);
  free(counts);
}

static float of_bits(SolDtype dtype, const void *at, int i) {
  if (dtype == SOL_FP32) return ((const float *)at)[i];
  uint32_t h = ((const uint16_t *)at)[i], top = dtype == SOL_FP16 ? 0x7c00 : 0x7f80;
  CHECK_MSG(h == 0 || h == top, "element %d is %#x", i, h); // nothing else comes out here
  return h == top ? INFINITY : 0;
}

// An infinity in the middle reaches as far as the radius along each axis, and not an element further.
static void reach(SolContext *ctx, SolDtype dtype, int m, int n, int radius) {
  size_t size = dtype == SOL_FP32 ? 4 : 2, bytes = size * (size_t)(m * n);
  void *x = take(bytes), *y = take(bytes);
  int row = m / 2, column = n / 2, middle = row * n + column;
  if (dtype == SOL_FP32)
    ((float *)x)[middle] = INFINITY;
  else
    ((uint16_t *)x)[middle] = dtype == SOL_FP16 ? 0x7c00 : 0x7f80;
  SolStencil a = {.y = put(ctx, NULL, bytes),
                  .x = put(ctx, x, bytes),
                  .m = m,
                  .n = n,
                  .dtype = dtype,
                  .radius = radius,
                  .centre = 2};
  for (int d = 0; d < 8; d++) a.side[d] = d < radius ? 0.5f : 0;
  CHECK_MSG(sol_stencil(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, y, a.y, bytes);
  int wrong = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      int down = abs(i - row), across = abs(j - column);
      bool reached = (down == 0 && across <= radius) || (across == 0 && down <= radius);
      wrong += of_bits(dtype, y, i * n + j) != (reached ? INFINITY : 0);
    }
  CHECK_MSG(!wrong, "%s %dx%d, radius %d: %d wrong", sol_dtype_name(dtype), m, n, radius, wrong);
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, a.y, NULL);
  free(x);
  free(y);
}

TEST(stencil_reach) {
  static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (int radius = 1; radius <= 8; radius++)
      for (int i = 0; i < 3; i++) {
        reach(ctx, types[i], 1, 300, radius);
        reach(ctx, types[i], 1, 77, radius);
        reach(ctx, types[i], 100, 640, radius); // a tile in the middle has all it needs inside
        reach(ctx, types[i], 100, 643, radius);
        reach(ctx, types[i], 3, 20, radius);
        reach(ctx, types[i], 7, 600, radius);
      }
    sol_context_destroy(ctx);
  }
}

// Coefficients too far apart, too large or too small for tensor cores: results are right all the same.
static void coefficients(SolContext *ctx, SolDtype dtype, float centre, float side, float expected) {
  enum { M = 20, N = 30 };
  float y[M * N];
  uint16_t x[M * N];
  for (int i = 0; i < M * N; i++) x[i] = dtype == SOL_FP16 ? 0x3c00 : 0x3f80; // 1
  SolStencil a = {.y = put(ctx, NULL, sizeof y),
                  .x = put(ctx, x, sizeof x),
                  .m = M,
                  .n = N,
                  .dtype = dtype,
                  .out_dtype = SOL_FP32,
                  .radius = 2,
                  .centre = centre,
                  .side = {side, side}};
  CHECK_MSG(sol_stencil(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, y, a.y, sizeof y);
  float got = y[M / 2 * N + N / 2];
  CHECK_MSG(fabsf(got - expected) <= 1e-6f * fabsf(expected) || got == expected, "%s %g %g: %g, not %g",
            sol_dtype_name(dtype), (double)centre, (double)side, (double)got, (double)expected);
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, a.y, NULL);
}

TEST(stencil_coefficients) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (int i = 0; i < 2; i++) {
      SolDtype dtype = i ? SOL_BF16 : SOL_FP16;
      coefficients(ctx, dtype, 0, 0.1f, 0.8f);
      coefficients(ctx, dtype, 0.333333f, 0.01234567f, 0.333333f + 8 * 0.01234567f);
      coefficients(ctx, dtype, 0, 3e-30f, 2.4e-29f);
      coefficients(ctx, dtype, 1e30f, -1e30f, -7e30f);
      coefficients(ctx, dtype, INFINITY, 1, INFINITY);
      coefficients(ctx, dtype, 0, 1e-39f, 8e-39f);
      coefficients(ctx, dtype, 8e-9f, 1e-9f, 1.6e-8f);
    }
    sol_context_destroy(ctx);
  }
}

// fp32 rows of n to fp8 y, with the scales that they get.
static void to_fp8(SolContext *ctx, const float *x, const float *w, int m, int n, SolScaling scaling,
                   uint8_t *y, float *scales, size_t scale_bytes) {
  size_t count = (size_t)m * (size_t)n;
  SolRmsnorm a = {.y = put(ctx, NULL, count),
                  .x = put(ctx, x, count * sizeof *x),
                  .weight = put(ctx, w, (size_t)n * sizeof *w),
                  .scales = put(ctx, NULL, scale_bytes),
                  .m = m,
                  .n = n,
                  .dtype = SOL_FP32,
                  .out_dtype = SOL_FP8,
                  .scaling = scaling};
  CHECK_MSG(sol_rmsnorm(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, y, a.y, count);
  get(ctx, scales, a.scales, scale_bytes);
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, (void *)(uintptr_t)a.weight, NULL);
  sol_context_free(ctx, a.y, NULL);
  sol_context_free(ctx, a.scales, NULL);
}

// Rows of +-1, 1/2, 1/4 and 0, whose quotients by a scale of top / 448 are exact in fp8, by weights of any
// magnitude; every third block of 128 columns is zeros.
static void fp8_weights(SolContext *ctx, int n, float weight, SolScaling scaling) {
  enum { ROWS = 2 };
  static const float values[] = {1, -0.5f, 0.25f, 0, -1};
  static const uint8_t codes[] = {0x7e, 0xf6, 0x6e, 0, 0xfe}; // 448, -224, 112, 0, -448
  int blocks = scaling == SOL_SCALE_BLOCK ? (n + 127) / 128 : 1;
  size_t count = (size_t)(ROWS * n), scale_bytes = sizeof(float) * (size_t)(ROWS * blocks);
  float *x = take(count * sizeof *x), *w = take((size_t)n * sizeof *w), *scales = take(scale_bytes);
  uint8_t *y = take(count);
  double squares = 0;
  for (int i = 0; i < ROWS * n; i++) {
    int j = i % n;
    x[i] = j / 128 % 3 == 1 ? 0 : values[j % 5], w[j] = weight;
    if (i < n) squares += (double)(x[i] * x[i]) / n;
  }
  to_fp8(ctx, x, w, ROWS, n, scaling, y, scales, scale_bytes);
  int wrong = 0;
  for (int i = 0; i < ROWS * n; i++) {
    int j = i % n;
    wrong += y[i] != (x[i] != 0 ? codes[j % 5] : 0) && !(x[i] == 0 && y[i] == 0x80);
  }
  for (int b = 0; b < ROWS * blocks; b++) {
    double want = b % blocks % 3 == 1 ? 0 : (double)weight / sqrt(squares) / 448;
    wrong += !(fabs((double)scales[b] - want) <= want * 1e-6);
  }
  CHECK_MSG(!wrong, "%s, rows of %d, weights %g: %d wrong", sol_backend_name(sol_context_backend(ctx)), n,
            (double)weight, wrong);
  free(x), free(w), free(scales), free(y);
}

TEST(fp8_scales_of_any_magnitude) {
  static const int lengths[] = {5, 64, 128, 200, 512, 1024, 4096, 5125, 20000, 70000};
  static const float weights[] = {1e-30f, 1, 1e30f};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t i = 0; i < SOL_COUNT(lengths) * SOL_COUNT(weights) * 2; i++)
      fp8_weights(ctx, lengths[i / 6], weights[i % 3], i / 3 % 2 ? SOL_SCALE_ROW : SOL_SCALE_BLOCK);
    sol_context_destroy(ctx);
  }
}

// A weight that is infinite makes its block's scale, or its row's, infinite: what else is there becomes 0,
// itself a NaN.
static void fp8_infinity(SolContext *ctx, int n, SolScaling scaling) {
  enum { SIGN = 0x80, A_NAN = 0x7f };
  int at = n / 2, width = scaling == SOL_SCALE_BLOCK ? 128 : n, blocks = (n + width - 1) / width;
  size_t row = (size_t)n * sizeof(float), scale_bytes = sizeof(float) * (size_t)blocks;
  float *x = malloc(row), *w = malloc(row), *scales = malloc(scale_bytes);
  uint8_t *y = malloc((size_t)n);
  if (CHECK(x && w && scales && y)) {
    for (int i = 0; i < n; i++) x[i] = i % 2 ? -1 : 0.5f, w[i] = i == at ? INFINITY : 1;
    to_fp8(ctx, x, w, 1, n, scaling, y, scales, scale_bytes);
    int wrong = 0;
    for (int i = 0; i < n; i++)
      if (i == at)
        wrong += (y[i] & ~SIGN) != A_NAN;
      else if (i / width == at / width)
        wrong += (y[i] & ~SIGN) != 0;
      else
        wrong += (y[i] & ~SIGN) == 0;
    for (int b = 0; b < blocks; b++) wrong += (scales[b] == INFINITY) != (b == at / width);
    CHECK_MSG(!wrong, "%s, rows of %d: %d wrong", sol_backend_name(sol_context_backend(ctx)), n, wrong);
  }
  free(x), free(w), free(scales), free(y);
}

TEST(fp8_scales_of_infinities) {
  static const int lengths[] = {5, 64, 132, 528, 1024, 4096, 5125, 20000, 300000};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t i = 0; i < SOL_COUNT(lengths) * 2; i++)
      fp8_infinity(ctx, lengths[i / 2], i % 2 ? SOL_SCALE_ROW : SOL_SCALE_BLOCK);
    sol_context_destroy(ctx);
  }
}

// Rows of small values about `level`, which is far from zero, but for `far` elements that are `out` more,
// from `at` on.
static void layer_far(SolContext *ctx, SolDtype dtype, int n, float level, float out, int at, int far) {
  size_t size = dtype == SOL_FP32 ? 4 : 2;
  float *f = take((size_t)n * sizeof *f), *one = take((size_t)n * sizeof *one);
  char *x = take((size_t)n * size), *w = take((size_t)n * size);
  double mean = 0, squares = 0, top = 0, worst = 0;
  for (int i = 0; i < n; i++) {
    f[i] = level + (float)(i * 7 % 5 - 2) + (i >= at && i < at + far ? out : 0), one[i] = 1;
    cpu_store(dtype, x, i, 1, &f[i]);
    cpu_load(dtype, x, i, 1, &f[i]);
    mean += (double)f[i] / n;
  }
  for (int i = 0; i < n; i++) squares += ((double)f[i] - mean) * ((double)f[i] - mean) / n;
  cpu_store(dtype, w, 0, n, one);
  SolLayernorm a = {.y = put(ctx, NULL, (size_t)n * sizeof(float)),
                    .x = put(ctx, x, (size_t)n * size),
                    .weight = put(ctx, w, (size_t)n * size),
                    .bias = put(ctx, w, (size_t)n * size),
                    .m = 1,
                    .n = n,
                    .dtype = dtype};
  CHECK_MSG(sol_layernorm(ctx, &a, NULL) == SOL_OK, "%s", sol_last_error()->message);
  get(ctx, x, a.y, (size_t)n * size);
  cpu_load(dtype, x, 0, n, one);
  for (int i = 0; i < n; i++) {
    double want = ((double)f[i] - mean) / sqrt(squares) + 1;
    top = fmax(top, fabs(want)), worst = fmax(worst, fabs((double)one[i] - want));
  }
  // The mean is rounded, and everything is once more: in the output's type.
  double room = 8 * 0x1p-24 * (fabs(mean) / sqrt(squares) + 3 * top);
  if (dtype != SOL_FP32) room += top * (dtype == SOL_FP16 ? 0x1p-11 : 0x1p-8);
  CHECK_MSG(worst <= room, "%s, %s, rows of %d, level %g, %d from %d on %g more: off by %g, not %g",
            sol_backend_name(sol_context_backend(ctx)), sol_dtype_name(dtype), n, (double)level, far, at,
            (double)out, worst, room);
  sol_context_free(ctx, (void *)(uintptr_t)a.x, NULL);
  sol_context_free(ctx, (void *)(uintptr_t)a.weight, NULL);
  sol_context_free(ctx, (void *)(uintptr_t)a.bias, NULL);
  sol_context_free(ctx, a.y, NULL);
  free(f), free(one), free(x), free(w);
}

TEST(layernorm_far_from_zero) {
  static const int lengths[] = {40, 128, 1024, 4096, 5125, 8192, 16384, 20000, 65536, 70000, 131080};
  for (SolBackend b = SOL_BACKEND_CPU; b <= last_backend(); b++) {
    SolContext *ctx = open_context(b);
    for (size_t i = 0; i < SOL_COUNT(lengths); i++) {
      int n = lengths[i];
      layer_far(ctx, SOL_FP32, n, 4096, 0, 0, 0);
      layer_far(ctx, SOL_BF16, n, 64, 0, 0, 0);
      layer_far(ctx, SOL_FP16, n, 1024, 0, 0, 0);
      layer_far(ctx, SOL_FP32, n, 0, 32768, 0,
                1); // a row's, a block's, a thread's first are what others are not
      layer_far(ctx, SOL_FP32, n, -1000, 65536, 0, 8);
      layer_far(ctx, SOL_FP32, n, 100, 100000, n / 2, n / 4);
      layer_far(ctx, SOL_FP16, n, 0, 16384, n / 3, 1);
    }
    sol_context_destroy(ctx);
  }
}

CHECK_MAIN
