// What the shape lists of test_ops leave out of topk, sample, quantize and cast: ties, masked rows, rows of NaN; whether the
// weights are those of a softmax and the choices follow them; codes against the emulator's conversions.
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "emu/isa/num_cvt.h"
#include "kernels/quantize/quantize.h"
#include "kernels/select/weight.h"
#include "ops/cpu.h"
#include "ops/operation.h"

enum { WIDE = 40000, MOST = 64, MANY = 1000 };
static float row[WIDE];

static SolContext *open_on(SolBackend backend) {
  SolContext *ctx = NULL;
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, NULL), SOL_OK);
  return ctx;
}

static void *device_of(SolContext *ctx, const void *host, size_t bytes) {
  void *at = NULL;
  CHECK_INT(sol_context_alloc(ctx, bytes, &at, NULL), SOL_OK);
  if (host) CHECK_INT(sol_context_write(ctx, at, host, bytes, NULL), SOL_OK);
  return at;
}

// topk of one row; elements of 16 bits are rounded in it.
static void topk_of_type(SolContext *ctx, SolDtype dtype, int64_t n, int64_t k, int32_t *ids) {
  uint16_t narrow[WIDE];
  for (int64_t c = 0; c < n && dtype != SOL_FP32; c++) {
    cpu_store(dtype, narrow, c, 1, &row[c]);
    cpu_load(dtype, narrow, c, 1, &row[c]);
  }
  void *x = device_of(ctx, dtype == SOL_FP32 ? (void *)row : narrow,
                      (size_t)n * 4 / (dtype == SOL_FP32 ? 1 : 2)),
       *v = device_of(ctx, NULL, MANY * 4), *i = device_of(ctx, NULL, MANY * 4);
  SolTopk a = {.values = v, .x = x, .ids = i, .m = 1, .n = n, .k = k, .dtype = dtype};
  CHECK_MSG(!sol_topk(ctx, &a, NULL), "%s", sol_last_error()->message);
  CHECK_INT(sol_context_sync(ctx, NULL), SOL_OK);
  CHECK_INT(sol_context_read(ctx, ids, i, (size_t)k * 4, NULL), SOL_OK);
  sol_context_free(ctx, x, NULL), sol_context_free(ctx, v, NULL), sol_context_free(ctx, i, NULL);
}

static void topk_of(SolContext *ctx, int64_t n, int64_t k, int32_t *ids) {
  topk_of_type(ctx, SOL_FP32, n, k, ids);
}

static int32_t sample_of(SolContext *ctx, int64_t n, int64_t k, float p, float temperature, int64_t seed) {
  void *x = device_of(ctx, row, (size_t)n * 4), *s = device_of(ctx, &seed, 8), *i = device_of(ctx, NULL, 4);
  SolSample a = {.ids = i, .x = x, .seeds = s, .m = 1, .n = n, .top_k = k, .top_p = p, .dtype = SOL_FP32};
  int32_t id = -2;
  a.temperature = temperature;
  CHECK_MSG(!sol_sample(ctx, &a, NULL), "%s", sol_last_error()->message);
  CHECK_INT(sol_context_sync(ctx, NULL), SOL_OK);
  CHECK_INT(sol_context_read(ctx, &id, i, 4, NULL), SOL_OK);
  sol_context_free(ctx, x, NULL), sol_context_free(ctx, s, NULL), sol_context_free(ctx, i, NULL);
  return id;
}

static void rows_of_one_value(SolContext *ctx) {
  const float values[] = {0, -INFINITY, INFINITY, NAN, -1e30f};
  int32_t ids[MOST];
  for (size_t v = 0; v < SOL_COUNT(values); v++) {
    for (int i = 0; i < 5003; i++) row[i] = values[v];
    topk_of(ctx, 5003, 9, ids);
    for (int i = 0; i < 9; i++) CHECK_INT(ids[i], i); // of equals the lowest columns
    int32_t id = sample_of(ctx, 5003, 7, 0, 1, 11);
    if (values[v] != values[v])
      CHECK_INT(id, -1);
    else
      CHECK_MSG(id >= 0 && id < 7, "%d is not among the first 7 equals", id);
  }
}

// Whether the columns are those of the largest, in order: NaN first, both zeros alike, of equals the lower column.
static bool in_order(const int32_t *ids, int n, int k) {
  for (int i = 0; i < k; i++) {
    float it = row[ids[i]];
    int before = 0;
    for (int c = 0; c < n; c++) {
      bool equal = row[c] == it || (isnan(row[c]) && isnan(it));
      before += equal ? c < ids[i] : isnan(row[c]) || row[c] > it;
    }
    if (!CHECK_INT(before, i)) return false;
  }
  return true;
}

static void short_rows_of_all_kinds(SolContext *ctx) {
  const float kinds[] = {NAN,     -NAN,      0, -0.0f, INFINITY, -INFINITY, 1e-45f,
                         -1e-45f, 0x1p-130f, 1, -1,    3e38f,    -3e38f};
  int32_t ids[MOST];
  for (int n = 17; n < 256; n += 59)
    for (int k = 2; k <= MOST && k <= n; k += 13) {
      for (int i = 0; i < n; i++) row[i] = kinds[i * 7 % (k % 2 ? 13 : 11)];
      topk_of(ctx, n, k, ids);
      if (!in_order(ids, n, k)) return;
    }
}

// Short rows of elements that differ in their last bits alone, or in nothing: all of them, or some beside others.
static void short_rows_that_are_alike(SolContext *ctx) {
  enum { N = 250, K = 50 };
  int32_t ids[MOST];
  for (int apart = 0; apart < 3; apart++)
    for (int others = 0; others < 3; others++) { // none, 45 larger ones, 60 of them
      for (int i = 0; i < N; i++) {
        row[i] = 1 + (float)(i * 97 % N) * (float)apart * 0x1p-23f;
        if (i % 4 == 1 && i / 4 < others * 15 + 30 * (others > 0)) row[i] = 2 + (float)i;
      }
      topk_of(ctx, N, K, ids);
      if (!in_order(ids, N, K)) return;
    }
}

// Rows of all types whose elements are not spread as random ones are: all equal, two values, one far from all others, many at one place and
// few elsewhere, masked, with NaN.
static float odd_value(int pattern, int i) {
  float f = (float)(i * 7919 % 4001) * 0x1p-9f - 3;
  switch (pattern) {
  case 0: return 2;
  case 1: return i % 3 ? -1e4f : 1;
  case 2: return i == 77 ? 5e4f : f;
  case 3: return i % 5 ? 1 + f * 1e-4f : f;
  case 4: return i % 4 ? -INFINITY : f;
  default: return i % 50 == 3 ? NAN : i % 7 ? f : -f * 0;
  }
}
static void odd_rows_of_all_types(SolContext *ctx) {
  static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  static const int shapes[][2] = {{3001, MANY}, {2048, 70}, {311, 50}, {777, 64}, {65, 2}};
  int32_t ids[MANY];
  for (size_t t = 0; t < SOL_COUNT(types); t++)
    for (int pattern = 0; pattern < 6; pattern++)
      for (size_t s = 0; s < SOL_COUNT(shapes); s++) {
        int n = shapes[s][0], k = shapes[s][1];
        for (int i = 0; i < n; i++) row[i] = odd_value(pattern, i);
        topk_of_type(ctx, types[t], n, k, ids);
        if (!in_order(ids, n, k)) return;
      }
}

static void masked_rows(SolContext *ctx) { // as constrained decoding has them
  for (int i = 0; i < WIDE; i++) row[i] = -INFINITY;
  row[0] = NAN, row[123] = 1, row[9999] = 2, row[WIDE - 1] = 2;
  int32_t ids[MOST];
  topk_of(ctx, WIDE, 6, ids);
  const int32_t want[] = {0, 9999, WIDE - 1, 123, 1, 2};
  for (int i = 0; i < 6; i++) CHECK_INT(ids[i], want[i]);
  for (int64_t seed = 0; seed < 6; seed++) {
    int32_t id = sample_of(ctx, WIDE, 0, 0.95f, 1, seed);
    CHECK_MSG(id == 123 || id == 9999 || id == WIDE - 1, "seed %lld chose %d", (long long)seed, id);
    CHECK_INT(sample_of(ctx, WIDE, 0, 0, 0, seed), 9999); // temperature 0
    id = sample_of(ctx, WIDE, 0, 0.5f, 1, seed);          // the first two have more than that
    CHECK_MSG(id == 9999 || id == WIDE - 1, "top_p 0.5, seed %lld chose %d", (long long)seed, id);
  }
}

TEST(ties_and_masks_on_cpu) {
  SolContext *ctx = open_on(SOL_BACKEND_CPU);
  rows_of_one_value(ctx);
  short_rows_that_are_alike(ctx);
  short_rows_of_all_kinds(ctx);
  odd_rows_of_all_types(ctx);
  masked_rows(ctx);
  sol_context_destroy(ctx);
}

TEST(ties_and_masks_on_emu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = open_on(SOL_BACKEND_EMU);
  rows_of_one_value(ctx);
  short_rows_that_are_alike(ctx);
  short_rows_of_all_kinds(ctx);
  odd_rows_of_all_types(ctx);
  masked_rows(ctx);
  sol_context_destroy(ctx);
}

// Values of many kinds: a smooth row, one with infinities, masked ones, many NaN, very large ones.
static void fill_row(int pattern) {
  for (int i = 0; i < WIDE; i++) {
    float f = sinf((float)i * 0.7f) * 6 + (float)(i % 13);
    if (pattern == 1 && i % 400 == 399) f = INFINITY;
    if (pattern == 2) f = i % 300 == 7 ? f : -INFINITY;
    if (pattern == 3 && i % 3) f = NAN;
    if (pattern == 4) f *= 1e30f;
    if (pattern == 5) f = -INFINITY;
    if (pattern == 6)
      f = (float)(i % 3); // so many equal ones that what is beyond the k-th is dropped by its column
    row[i] = f;
  }
}

// Every way to draw: short rows, groups, lists, cuts of more than a list has, with and without a top_p.
TEST(emu_chooses_as_the_cpu) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  const struct {
    int64_t n, k;
    float p;
  } cases[] = {{300, 0, 0},        {300, 30, 0},   {300, 7, 0},     {100, 30, 0.8f},
               {512, 300, 0.9f},   {300, 0, 0.8f}, {512, 510, 0},   {33, 32, 0.9f},
               {700, 0, 0},        {5003, 0, 0},   {5003, 0, 0.7f}, {5003, 2000, 0},
               {5003, 2000, 0.9f}, {WIDE, 0, 0},   {7, 0, 0},       {30, 0, 0}};
  SolContext *cpu = open_on(SOL_BACKEND_CPU), *emu = open_on(SOL_BACKEND_EMU);
  for (int pattern = 0; pattern < 7; pattern++) {
    fill_row(pattern);
    for (size_t i = 0; i < SOL_COUNT(cases); i++)
      for (int64_t seed = 0; seed < 3; seed++) {
        int32_t want = sample_of(cpu, cases[i].n, cases[i].k, cases[i].p, 0.8f, seed);
        int32_t got = sample_of(emu, cases[i].n, cases[i].k, cases[i].p, 0.8f, seed);
        CHECK_MSG(got == want, "pattern %d, n %lld, k %lld, p %g, seed %lld: %d, not %d", pattern,
                  (long long)cases[i].n, (long long)cases[i].k, (double)cases[i].p, (long long)seed, got,
                  want);
      }
  }
  sol_context_destroy(cpu), sol_context_destroy(emu);
}

// So many rows of a few groups that a warp has several of them: as many as there are of a row are chosen alike.
TEST(rows_of_a_warp_are_drawn_as_single_ones) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  enum { N = 1100, ROWS = 17001, BEGINS = WIDE - N };
  SolContext *emu = open_on(SOL_BACKEND_EMU);
  static int64_t seeds[ROWS];
  static int32_t ids[ROWS];
  fill_row(0);
  for (int i = 0; i < ROWS; i++) seeds[i] = i;
  // Rows overlap: each begins an element after the one before, as often as the buffer has it.
  void *x = device_of(emu, row, sizeof row), *s = device_of(emu, seeds, sizeof seeds),
       *y = device_of(emu, NULL, sizeof ids);
  SolSample a = {
      .ids = y, .x = x, .seeds = s, .m = ROWS, .n = N, .x_stride = 1, .temperature = 0.8f, .dtype = SOL_FP32};
  CHECK(ROWS <= BEGINS);
  CHECK_MSG(!sol_sample(emu, &a, NULL), "%s", sol_last_error()->message);
  CHECK_INT(sol_context_sync(emu, NULL), SOL_OK);
  CHECK_INT(sol_context_read(emu, ids, y, sizeof ids, NULL), SOL_OK);
  SolContext *cpu = open_on(SOL_BACKEND_CPU);
  for (int i = 0; i < ROWS; i += 97) {
    int32_t want = -2;
    SolSample one = {.ids = &want,
                     .x = row + i,
                     .seeds = seeds + i,
                     .m = 1,
                     .n = N,
                     .temperature = 0.8f,
                     .dtype = SOL_FP32};
    CHECK_MSG(!sol_sample(cpu, &one, NULL), "%s", sol_last_error()->message);
    CHECK_INT(ids[i], want);
  }
  sol_context_free(emu, x, NULL), sol_context_free(emu, s, NULL), sol_context_free(emu, y, NULL);
  sol_context_destroy(cpu), sol_context_destroy(emu);
}

// Rows whose largest elements all come first, so that the first ones say nothing of the rest: by a block and by a warp.
TEST(falling_rows_are_listed_whole) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *emu = open_on(SOL_BACKEND_EMU);
  const struct { int64_t m, n, k; } cases[] = {{emu->sms + 1, 30000, 60}, {8 * emu->sms, 3000, 40}};
  for (int i = 0; i < WIDE; i++) row[i] = (float)-i;
  for (size_t c = 0; c < SOL_COUNT(cases); c++) {
    int64_t m = cases[c].m, n = cases[c].n, k = cases[c].k;
    size_t bytes = (size_t)(m * k) * 4;
    int32_t *ids = malloc(bytes);
    void *x = device_of(emu, row, sizeof row), *v = device_of(emu, NULL, bytes),
         *y = device_of(emu, NULL, bytes);
    SolTopk a = {.values = v,
                 .x = x,
                 .ids = y,
                 .m = m,
                 .n = n,
                 .k = k,
                 .x_stride = 1,
                 .dtype = SOL_FP32}; // rows overlap
    CHECK(ids && n + m <= WIDE);
    CHECK_MSG(!sol_topk(emu, &a, NULL), "%s", sol_last_error()->message);
    CHECK_INT(sol_context_sync(emu, NULL), SOL_OK);
    CHECK_INT(sol_context_read(emu, ids, y, bytes, NULL), SOL_OK);
    for (int64_t i = 0; i < m * k; i++) CHECK_INT(ids[i], i % k);
    sol_context_free(emu, x, NULL), sol_context_free(emu, v, NULL), sol_context_free(emu, y, NULL);
    free(ids);
  }
  sol_context_destroy(emu);
}

static float half_of(uint32_t bits) { // of a finite element
  float f = bits & 0x7c00 ? ldexpf((float)((bits & 0x3ff) | 0x400), (int)(bits >> 10 & 31) - 25)
                          : ldexpf((float)(bits & 0x3ff), -24);
  return bits & 0x8000 ? -f : f;
}

// Every element of 16 bits below some largest ones, at temperatures from the coldest to the hottest: what is found beyond its hull is not taken, and near the
// largest the hull is not much more than the weight.
TEST(no_weight_is_above_its_coarse_hull) {
  const float tops[] = {0, 3.25f, -40, 5000, 0x1p-20f, 60000},
              pers[] = {1.0f / 32, 0.0564f, 30, 0x1p-20f, 0x1p-60f, SELECT_STEEPEST};
  for (int at = 0; at < 2 * (int)(SOL_COUNT(tops) * SOL_COUNT(pers)); at++) {
    int bf16 = at % 2, t = at / 2 % (int)SOL_COUNT(tops);
    float per = pers[at / 2 / (int)SOL_COUNT(tops)], top = select_rounded(tops[t], bf16),
          steps = select_steps(per, bf16);
    uint32_t above = 0, loose = 0;
    for (uint32_t bits = 0; bits < 65536; bits++) {
      float x = bf16 ? select_float(bits << 16) : (bits & 0x7c00) == 0x7c00 ? -INFINITY : half_of(bits);
      if (!(x <= top)) continue;
      uint32_t hull = select_coarse(x, top, steps, bf16);
      above += select_takes(x, top, per, bf16, hull, 0);
      bool near = ((double)top - (double)x) * (double)per * 32 < 2;
      loose += near && !select_takes(x, top, per, bf16, (uint32_t)(hull * 0.85), 0);
    }
    CHECK_MSG(!above, "%u weights are above their hulls (top %g, per %g)", above, (double)top, (double)per);
    if (per >= 0x1p-10f && per < 100)
      CHECK_MSG(!loose, "%u hulls are loose (top %g, per %g)", loose, (double)top, (double)per);
  }
}

// Octaves below the largest, at any scale and wherever the largest is: the weight, and the hull that no weight exceeds by more
// than a rounding.
TEST(weights_are_those_of_a_softmax) {
  const float tops[] = {0, 3.25f, -40, 5000};
  for (size_t t = 0; t < SOL_COUNT(tops); t++) {
    uint32_t before = UINT32_MAX;
    for (int i = 0; i < 32 * 4096; i++) {
      float x = tops[t] - (float)i / 4096, place = select_place_of(x, tops[t], 1.0f / 32);
      double d = (double)tops[t] - (double)x, want = ldexp(exp2(-d), 28);
      uint32_t got = select_weight(place), hull = select_hull(place), of_it = select_hulled(place);
      // 5000 octaves are rounded to 2^-11 of one when they are subtracted: the whole row moves by half of that.
      double moved = want * (t == 3 ? 2e-4 : 3e-6);
      if (!CHECK_MSG(fabs(got - want) <= want * 5e-6 + moved + 1, "2^28 2^-%g is %u, not %.3f", d, got, want))
        break;
      if (!CHECK(fabs(of_it - ldexp(got, -7)) <= 1)) break;
      if (!CHECK_MSG(of_it <= hull + hull * 1e-5 + 1 && hull <= of_it * 1.062 + 2, "the hull of %u is %u",
                     of_it, hull))
        break;
      if (!CHECK(got <= before)) break;
      before = got;
    }
  }
  CHECK_INT(select_weight(0), 0);
  CHECK_INT(select_hull(0), 0);
  CHECK_INT(select_weight(SELECT_TOP), 1 << 28);
  CHECK_INT(select_hull(SELECT_TOP), 1 << 21);
  CHECK_INT(select_hulled(SELECT_TOP), 1 << 21);
  CHECK_INT(select_weight(select_place_of(NAN, 0, 1)), 0);
  CHECK_INT(select_weight(select_place_of(INFINITY, INFINITY, 1)), 1 << 28);
  CHECK_INT(select_weight(select_place_of(3, INFINITY, 1)), 0);
  CHECK_INT(select_weight(select_place_of(1e30f, 1e30f, 1)), 1 << 28);
  CHECK_INT(select_weight(select_place_of(0.999f, 1, SELECT_STEEPEST)), 0);
}

// No weight grows as its place falls, of all places where there is any.
TEST(weights_do_not_grow_as_logits_fall) {
  uint32_t last = 0;
  for (uint32_t bits = 0x3d800000; bits <= 0x3f800000; bits++) { // from 1/16, two octaves, to 1
    uint32_t weight = select_weight(select_float(bits));
    if (!CHECK_MSG(weight >= last, "at %a", (double)select_float(bits))) break;
    last = weight;
  }
}

// A row of a few logits, drawn often: each comes out about as often as its probability says. Five deviations; the seeds
// are fixed, so this passes always or never.
static void distribution(float temperature, int64_t top_k, float top_p, const double *weights, int count) {
  enum { DRAWS = 20000, LOGITS = 5 };
  static float x[DRAWS * LOGITS];
  static int64_t seeds[DRAWS];
  static int32_t ids[DRAWS];
  static const float logits[LOGITS] = {1, 3, 2, -1, 2};
  SolContext *ctx = open_on(SOL_BACKEND_CPU);
  for (int i = 0; i < DRAWS; i++) memcpy(x + LOGITS * i, logits, sizeof logits), seeds[i] = i;
  SolSample a = {
      .ids = ids, .x = x, .seeds = seeds, .m = DRAWS, .n = LOGITS, .top_k = top_k, .dtype = SOL_FP32};
  a.temperature = temperature, a.top_p = top_p, a.step = 5;
  CHECK_MSG(!sol_sample(ctx, &a, NULL), "%s", sol_last_error()->message);
  double all = 0;
  int seen[LOGITS] = {0};
  for (int i = 0; i < DRAWS; i++) seen[ids[i]]++;
  for (int c = 0; c < count; c++) all += weights[c];
  for (int c = 0; c < count; c++) {
    double p = weights[c] / all, far = 5 * sqrt(DRAWS * p * (1 - p));
    CHECK_MSG(fabs(seen[c] - DRAWS * p) <= far, "column %d came %d times, not %.0f", c, seen[c], DRAWS * p);
  }
  sol_context_destroy(ctx);
}

// So many rows of a few elements that a block has several for each thread, and refused ones of many of them: the CPU's columns.
TEST(many_rows_of_a_few_elements) {
  enum { M = 400001, N = 3 };
  static uint16_t x[M * N];
  static int64_t seeds[M];
  static int32_t want[M], got[M];
  SolContext *cpu = open_on(SOL_BACKEND_CPU), *emu = open_on(SOL_BACKEND_EMU);
  for (int i = 0; i < M * N; i++) {
    float f = (float)(i * 7919LL % 4001) * 0x1p-9f - 3;
    cpu_store(SOL_BF16, x, i, 1, &f);
  }
  for (int i = 0; i < M; i++) seeds[i] = i;
  SolSample a = {.ids = want, .x = x, .seeds = seeds, .m = M, .n = N, .temperature = 0.8f, .dtype = SOL_BF16};
  CHECK_MSG(!sol_sample(cpu, &a, NULL), "%s", sol_last_error()->message);
  a.x = device_of(emu, x, sizeof x), a.seeds = device_of(emu, seeds, sizeof seeds);
  a.ids = device_of(emu, NULL, sizeof got);
  CHECK_MSG(!sol_sample(emu, &a, NULL), "%s", sol_last_error()->message);
  CHECK_INT(sol_context_sync(emu, NULL), SOL_OK);
  CHECK_INT(sol_context_read(emu, got, a.ids, sizeof got, NULL), SOL_OK);
  for (int i = 0; i < M; i++)
    if (!CHECK_MSG(got[i] == want[i], "row %d: column %d, not %d", i, got[i], want[i])) break;
  sol_context_free(emu, (void *)a.x, NULL), sol_context_free(emu, (void *)a.seeds, NULL);
  sol_context_free(emu, a.ids, NULL);
  sol_context_destroy(cpu), sol_context_destroy(emu);
}

// The largest of each of so many rows that these have one thread each: the CPU's values and columns.
TEST(largest_of_many_short_rows) {
  enum { M = 34001, N = 65 };
  static float x[M * N], want[M], got[M];
  static int32_t columns[2][M];
  SolContext *cpu = open_on(SOL_BACKEND_CPU), *emu = open_on(SOL_BACKEND_EMU);
  for (int i = 0; i < M * N; i++) x[i] = i % 5003 ? (float)(i * 7919LL % 601) : NAN;
  SolTopk a = {.values = want, .x = x, .ids = columns[0], .m = M, .n = N, .k = 1, .dtype = SOL_FP32};
  CHECK_MSG(!sol_topk(cpu, &a, NULL), "%s", sol_last_error()->message);
  a.x = device_of(emu, x, sizeof x), a.values = device_of(emu, NULL, sizeof got);
  a.ids = device_of(emu, NULL, sizeof columns[1]);
  CHECK_MSG(!sol_topk(emu, &a, NULL), "%s", sol_last_error()->message);
  CHECK_INT(sol_context_sync(emu, NULL), SOL_OK);
  CHECK_INT(sol_context_read(emu, got, a.values, sizeof got, NULL), SOL_OK);
  CHECK_INT(sol_context_read(emu, columns[1], a.ids, sizeof columns[1], NULL), SOL_OK);
  CHECK(!memcmp(got, want, sizeof got));
  for (int i = 0; i < M; i++)
    if (!CHECK_MSG(columns[1][i] == columns[0][i], "row %d: column %d, not %d", i, columns[1][i],
                   columns[0][i]))
      break;
  sol_context_free(emu, (void *)a.x, NULL), sol_context_free(emu, a.values, NULL);
  sol_context_free(emu, a.ids, NULL);
  sol_context_destroy(cpu), sol_context_destroy(emu);
}

TEST(choices_follow_the_probabilities) {
  distribution(1, 0, 0, (double[]){exp(1), exp(3), exp(2), exp(-1), exp(2)}, 5);
  distribution(0.5f, 0, 0, (double[]){exp(2), exp(6), exp(4), exp(-2), exp(4)}, 5);
  distribution(1, 2, 0, (double[]){0, exp(3), exp(2), 0, 0}, 5); // of equals the lower column
  distribution(1, 0, 0.7f, (double[]){0, exp(3), exp(2), 0, 0}, 5);
  distribution(1, 0, 0.5f, (double[]){0, 1, 0, 0, 0}, 5);
}

TEST(codes_are_those_of_the_conversions) {
  for (int i = -7000; i <= 7000; i++) {
    float v = (float)i / 1000;
    uint32_t want = num_cvt_small_f32(v, NUM_E2M1, false);
    if (v != 0)
      CHECK_MSG((quantize_e2m1(v) & 15) == want, "e2m1 of %g is %u, not %u", (double)v, quantize_e2m1(v) & 15,
                want);
  }
  CHECK_INT(quantize_e2m1(INFINITY) & 15, 7);
  CHECK_INT(quantize_e2m1(NAN) & 15, 7);
  static const uint32_t bits[][2] = {{0, 0},
                                     {1, 0},
                                     {0x400000, 0},
                                     {0x400001, 1},
                                     {0x800000, 1},
                                     {0x800001, 2},
                                     {0x3f800000, 127},
                                     {0x3f800001, 128},
                                     {0x7f7fffff, 254},
                                     {0x7f800000, 254}};
  for (size_t i = 0; i < SOL_COUNT(bits); i++) CHECK_INT(quantize_e8m0(bits[i][0]), bits[i][1]);
}

TEST(a_cast_to_the_same_type_keeps_every_bit) {
  SolContext *ctx = open_on(SOL_BACKEND_CPU);
  int64_t x[3] = {INT64_MAX, INT64_MIN + 1, (INT64_C(1) << 60) + 1}, y[3] = {0};
  SolCast a = {.y = y, .x = x, .m = 1, .n = 3, .dtype = SOL_INT64};
  CHECK_INT(sol_cast(ctx, &a, NULL), SOL_OK);
  CHECK(!memcmp(x, y, sizeof x));
  double reals[] = {1e300, -1e300, NAN, 2.5, -3.5};
  int32_t whole[5];
  a = (SolCast){.y = whole, .x = reals, .m = 1, .n = 5, .dtype = SOL_FP64, .out_dtype = SOL_INT32};
  CHECK_INT(sol_cast(ctx, &a, NULL), SOL_OK);
  const int32_t want[] = {INT32_MAX, INT32_MIN, 0, 2, -4};
  for (int i = 0; i < 5; i++) CHECK_INT(whole[i], want[i]);
  sol_context_destroy(ctx);
}

CHECK_MAIN
