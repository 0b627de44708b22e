// sol bench and what is under it: medians and spreads, rotating sets of tensors, timing by graphs (against a
// driver that only keeps books, fake_cuda.h) and by the clock, comparison with an earlier run, the command
// line.
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_read.h"
#include "check.h"
#include "fake_cuda.h"
#include "measure/draw.h"
#include "report/report_bench.h"

static const char *program;
static char output[1 << 20];

static int run(const char *arguments) {
  const char *tool = getenv("SOL");
  char command[2048];
  snprintf(command, sizeof command, "%s bench %s", tool ? tool : "build/sol", arguments);
  FILE *p = popen(command, "r");
  if (!p) return -1;
  output[fread(output, 1, sizeof output - 1, p)] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static SolContext *create(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err = {0};
  SolContextOptions options = {.backend = backend, .workers = 1};
  CHECK_MSG(!sol_context_create(&options, &ctx, &err), "%s: %s", sol_backend_name(backend), err.message);
  return ctx;
}

TEST(stats) {
  CHECK(stats_of(NULL, 0).median == 0);
  double one[] = {7};
  Stats s = stats_of(one, 1);
  CHECK(s.median == 7 && s.spread == 0 && s.least == 7 && s.most == 7);
  double five[] = {5, 1, 4, 2, 3}; // quartiles 2 and 4
  s = stats_of(five, 5);
  CHECK(s.median == 3 && s.least == 1 && s.most == 5 && s.count == 5);
  CHECK_NEAR(s.spread, 2.0 / 3, 1e-12);
  double disturbed[] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 1000};
  CHECK(stats_of(disturbed, 11).spread == 0);
}

// Rows of a large table: what sets share, and what they do not.
static bool make_rows(const OpsCase *c, void *args) {
  SolEmbedding *a = args;
  *a = (SolEmbedding){.m = c->dim[0], .n = c->dim[1], .vocab = c->dim[2], .dtype = c->dtype};
  return true;
}
static int views_rows(const void *args, OpsView *v) {
  const SolEmbedding *a = args;
  v[0] = (OpsView){"y", offsetof(SolEmbedding, y), a->y, a->dtype, OPS_OUT, .rows = a->m, .cols = a->n};
  v[1] = (OpsView){"table",     offsetof(SolEmbedding, table), a->table, a->dtype, OPS_IN, .rows = a->vocab,
                   .cols = a->n};
  v[2] = (OpsView){"ids",        offsetof(SolEmbedding, ids), a->ids,           SOL_INT32, OPS_IN, .rows = 1,
                   .cols = a->m, .fill = OPS_FILL_DISTINCT,   .limit = a->vocab};
  return 3;
}
static void cost_rows(const void *args, SolOpArgs *op) {
  const SolEmbedding *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .vocab = a->vocab};
}
static const OpsDef rows_op = {.name = "embedding",
                               .shape = "MxNxV",
                               .args_bytes = sizeof(SolEmbedding),
                               .make = make_rows,
                               .views = views_rows,
                               .cost = cost_rows};

TEST(sets_rotate) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  Sets s;
  enum { COUNT = 6, N = 1000, M = 3000 }; // together more than the block that random values are made of
  OpsCase c = {.dim = {M, N}, .dtype = SOL_BF16};
  CHECK_INT(sets_plan(&s, ctx, &ops_copy, &c, 1, &err), SOL_OK);
  CHECK(s.bytes == 2.0 * M * N * 2);
  CHECK(sets_memory(&s, COUNT) >= COUNT * s.bytes);
  CHECK_INT(sets_open(&s, COUNT, 1, &err), SOL_OK);
  const unsigned char *seen[COUNT];
  for (int i = 0; i < COUNT; i++) {
    SolCopy a;
    sets_args(&s, i, &a);
    CHECK_INT(a.m, M);
    CHECK_INT((uintptr_t)a.x % 16, 2 + (uintptr_t)s.memory[1] % 16); // one element after an aligned address
    const unsigned char *y = a.y;
    CHECK(y[0] == 0xA5 && y[(size_t)M * N * 2 - 1] == 0xA5);
    seen[i] = a.x;
    const uint16_t *x = a.x;
    for (int k = 0; k < M * N; k += 997) CHECK((x[k] & 0x7f80) != 0x7f80); // finite
    for (int k = 0; k < i; k++) {
      CHECK(seen[k] + (size_t)M * N * 2 <= seen[i] || seen[i] + (size_t)M * N * 2 <= seen[k]);
      CHECK_MSG(memcmp(seen[k], seen[i], 4096) != 0, "sets %d and %d hold the same", k, i);
    }
  }
  sets_close(&s);
  c.dtype = SOL_FP4;
  CHECK(sets_plan(&s, ctx, &ops_copy, &c, 0, &err) != SOL_OK);
  sets_close(&s);
  sol_context_destroy(ctx);
}

TEST(tables_are_shared) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  Sets s;
  enum { COUNT = 40, M = 50, V = 5000 };
  OpsCase c = {.dim = {M, 8, V}, .dtype = SOL_FP32};
  CHECK_INT(sets_plan(&s, ctx, &rows_op, &c, 0, &err), SOL_OK);
  CHECK_INT(sets_open(&s, COUNT, 1, &err), SOL_OK);
  SolEmbedding first, a;
  sets_args(&s, 0, &first);
  for (int i = 1; i < COUNT; i++) {
    sets_args(&s, i, &a);
    CHECK(a.table == first.table && a.y != first.y && a.ids != first.ids);
    CHECK(memcmp(a.ids, first.ids, M * 4) != 0);
    static bool used[V];
    memset(used, 0, sizeof used);
    const int32_t *ids = a.ids;
    for (int k = 0; k < M; k++) {
      if (!CHECK(ids[k] >= 0 && ids[k] < V && !used[ids[k]])) break;
      used[ids[k]] = true;
    }
  }
  sets_close(&s);
  sol_context_destroy(ctx);
}

TEST(lengths_are_full) { // as their cost has them
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  Sets s;
  enum { B = 7, TOKENS = 40 };
  OpsCase c = {.dim = {B, 2, TOKENS, 64}, .dtype = SOL_BF16, .option = 3}; // tests have them ragged
  CHECK_INT(sets_plan(&s, ctx, &ops_decode_attention, &c, 0, &err), SOL_OK);
  CHECK_INT(sets_open(&s, 1, 1, &err), SOL_OK);
  SolDecodeAttention a;
  sets_args(&s, 0, &a);
  for (int i = 0; i < B; i++) CHECK_INT(a.lengths[i], TOKENS);
  sets_close(&s);
  sol_context_destroy(ctx);
}

TEST(what_a_case_has_not_is_not_there_when_misaligned) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  Sets s;
  OpsCase c = {.dim = {2, 3, 20, 64}, .dtype = SOL_BF16};
  CHECK_INT(sets_plan(&s, ctx, &ops_attention, &c, 1, &err), SOL_OK);
  CHECK_INT(sets_open(&s, 1, 1, &err), SOL_OK);
  SolAttention a;
  sets_args(&s, 0, &a);
  CHECK(a.q && a.k && a.v && a.o);
  CHECK(!a.q_starts && !a.kv_starts); // with starts it would be a batch of sequences of no tokens
  sets_close(&s);
  sol_context_destroy(ctx);
}

TEST(gather_gets_no_order) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  Sets s;
  SolGather a;
  CHECK_INT(sets_plan(&s, ctx, &ops_gather, &(OpsCase){.dim = {50, 8, 5000}, .dtype = SOL_FP32}, 0, &err),
            SOL_OK);
  CHECK_INT(sets_open(&s, 2, 1, &err), SOL_OK);
  sets_args(&s, 1, &a);
  CHECK(a.x && a.ids && a.y && !a.order);
  CHECK_INT(sol_gather(ctx, &a, NULL), SOL_OK);
  sets_close(&s);
  sol_context_destroy(ctx);
}

TEST(cpu_times) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolError err = {0};
  static Bench b;
  CHECK_INT(bench_open(&b, ctx, true, &err), SOL_OK);
  BenchResult r;
  OpsCase c = {.dim = {64, 1001}, .dtype = SOL_FP32};
  CHECK_INT(bench_case(&b, &ops_copy, &c, 0, &r, &err), SOL_OK);
  CHECK(r.time.us.median > 0 && r.time.us.least <= r.time.us.median && r.time.us.median <= r.time.us.most);
  CHECK(r.light.us.median > 0 && r.time.cost.bytes_read == 64 * 1001 * 4);
  CHECK(!r.has_rows_light); // rows of 4004 bytes, but dense: a contiguous copy is what to reach
  CHECK(r.time.footprint >= 200e6);
  int lights = b.light_count;
  CHECK_INT(bench_case(&b, &ops_copy, &c, 0, &r, &err), SOL_OK);
  CHECK_INT(b.light_count, lights); // light is timed once a run
  c.dim[1] = 1000;
  CHECK_INT(bench_case(&b, &ops_copy, &c, 0, &r, &err), SOL_OK);
  CHECK(!r.has_rows_light);
  CHECK_INT(bench_case(&b, &ops_copy, &c, 1, &r, &err), SOL_OK);
  CHECK(r.has_rows_light); // one row that is as misaligned
  c.pad = 24;
  CHECK_INT(bench_case(&b, &ops_copy, &c, 0, &r, &err), SOL_OK);
  CHECK(r.has_rows_light && r.rows_light.cost.bytes_read <= r.light.cost.bytes_read);
  bench_close(&b);
  sol_context_destroy(ctx);
}

TEST(gpu_times_by_graphs) {
  FakeCuda *fake = fake_open(program);
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return;
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  if (!ctx) return;
  SolError err = {0};
  Timer t;
  CHECK_MSG(!timer_open(&t, ctx, true, &err), "%s", err.message);
  CHECK_HAS(t.info.name, "fake");
  CHECK(t.footprint >= 400e6);
  for (int big = 0; big < 2; big++) { // many small sets in several graphs; a few large ones in one
    memset(fake->calls, 0, sizeof fake->calls);
    fake->launches = fake->violations = 0;
    OpsCase c = {.dim = {big ? 4096 : 1, 4096}, .dtype = SOL_BF16};
    Timing out;
    CHECK_MSG(!timer_time(&t, &ops_copy, &c, 0, &out, &err), "%s", err.message);
    int graphs = fake->calls[FAKE_graph_instantiate];
    CHECK(big ? graphs == 1 : graphs > 1);
    CHECK_INT(fake->violations, 0);
    CHECK_INT(fake->calls[FAKE_graph_exec_destroy], graphs);
    CHECK_INT(fake->calls[FAKE_graph_destroy], graphs);
    CHECK(fake->calls[FAKE_graph_launch] >= 2 + t.rounds);
    CHECK_INT(fake->calls[FAKE_event_create], t.rounds + 1);
    CHECK_INT(fake->calls[FAKE_event_destroy], t.rounds + 1);
    CHECK_NEAR(out.us.median, 1000.0 / out.calls, 1e-6); // the fake's clock: a millisecond a replay
    CHECK(out.sets >= 3 && (big ? out.calls % out.sets == 0 : out.calls * graphs == out.sets));
    CHECK(big || out.footprint >= 250e6);
    CHECK(out.host_us > 0);
  }
  // A call that fails while it is being recorded leaves no recording behind.
  OpsCase c = {.dim = {8, 64}, .dtype = SOL_FP32};
  Timing out;
  fake->fail_launch = 1;
  CHECK(timer_time(&t, &ops_copy, &c, 0, &out, &err) != SOL_OK);
  fake->fail_launch = 0;
  CHECK_INT(fake->capturing, 0);
  CHECK_MSG(!timer_time(&t, &ops_copy, &c, 0, &out, &err), "%s", err.message);
  timer_close(&t);
  sol_context_destroy(ctx);
  CHECK_INT(fake->allocations, 0);
}

// A kernel that accesses what it must not breaks the context: all that follows fails with a message, and nothing of it is
// destroyed, for which a driver is in no state.
TEST(gpu_breaks_while_timing) {
  enum { ILLEGAL_ADDRESS = 700 };
  FakeCuda *fake = fake_open(program);
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return;
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  if (!ctx) return;
  SolError err = {0};
  Bench b = {0};
  CHECK_MSG(!bench_open(&b, ctx, true, &err), "%s", err.message);
  fake->fail_graph = ILLEGAL_ADDRESS;
  OpsCase c = {.dim = {8, 64}, .dtype = SOL_FP32};
  for (int i = 0; i < 2; i++) {
    BenchResult result;
    err = (SolError){0};
    CHECK(bench_case(&b, &ops_copy, &c, 0, &result, &err));
    CHECK_HAS(err.message, "700");
    err = (SolError){0};
    CHECK(bench_once(ctx, &ops_copy, &c, 0, true, NULL, NULL, &err));
    CHECK_HAS(err.message, "700");
  }
  bench_close(&b);
  sol_context_destroy(ctx);
  CHECK_INT(fake->destroyed_broken, 0);
  fake->fail_graph = fake->broken = fake->allocations = 0;
  for (int i = 0; i < FAKE_CONTEXTS; i++) fake->contexts[i].retained = 0;
}

// The distribution that is promised: thirds of real and of odd widths, strides, all types; every case within
// the limits, and none that depends on another.
TEST(draws) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  static const SolDtype types[] = {SOL_FP32, SOL_BF16};
  DrawLimits limits = {1 << 20, 1 << 26, types, 2};
  enum { COUNT = 3000 };
  int odd = 0, real = 0, apart = 0, wide = 0, tall = 0, bf16 = 0, other = 0;
  SolError err = {0};
  for (int i = 0; i < COUNT; i++) {
    OpsCase c, again;
    SolCost cost;
    if (!CHECK_INT(draw_case(ctx, &ops_copy, 7, i, &limits, &c, &cost, &err), SOL_OK)) break;
    double bytes = cost.bytes_read + cost.bytes_written;
    CHECK(bytes >= limits.least_bytes && bytes <= limits.most_bytes && c.dim[0] > 0 && c.dim[1] > 0);
    odd += c.dim[1] % 2 != 0, real += c.dim[1] == 4096 || c.dim[1] == 50257, apart += c.pad != 0;
    wide += c.dim[1] > 32 * c.dim[0], tall += c.dim[0] > 32 * c.dim[1];
    bf16 += c.dtype == SOL_BF16, other += c.out_dtype && c.out_dtype != c.dtype;
    if (i % 100) continue;
    CHECK_INT(draw_case(ctx, &ops_copy, 7, i, &limits, &again, &cost, &err), SOL_OK);
    CHECK(!memcmp(&c, &again, sizeof c));
    CHECK_INT(draw_case(ctx, &ops_copy, 8, i, &limits, &again, &cost, &err), SOL_OK);
    CHECK(memcmp(&c, &again, sizeof c) != 0);
  }
  CHECK(odd > COUNT / 3 && odd < COUNT * 3 / 4 && real > COUNT / 100 && apart > COUNT / 8 &&
        apart < COUNT / 2);
  CHECK(wide > COUNT / 10 && tall > COUNT / 10 && bf16 > COUNT / 3 && bf16 < COUNT * 2 / 3 &&
        other > COUNT / 20);
  for (int op = 0; op < OPS_COUNT; op++) {
    OpsCase c;
    SolCost cost;
    CHECK_MSG(!draw_case(ctx, ops_defs[op], 7, op, &limits, &c, &cost, &err), "%s", err.message);
  }
  limits.least_bytes = 3, limits.most_bytes = 3;
  OpsCase c;
  SolCost cost;
  CHECK_INT(draw_case(ctx, &ops_copy, 7, 1, &limits, &c, &cost, &err), SOL_ERR_NOT_FOUND);
  sol_context_destroy(ctx);
}

TEST(emulator_counts) {
  SolContext *ctx = create(SOL_BACKEND_EMU);
  SolError err = {0};
  Timer t;
  CHECK_INT(timer_open(&t, ctx, true, &err), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.message, "no times");
  timer_close(&t);
  if (ops_image_count) {
    SolDriverCounts counts = {0};
    OpsCase c = {.dim = {4, 1024}, .dtype = SOL_FP32};
    double worst = -1;
    CHECK_MSG(!bench_once(ctx, &ops_copy, &c, 0, true, &worst, &counts, &err), "%s", err.message);
    CHECK(counts.launches == 1 && worst == 0);
    CHECK_INT(counts.total.sectors, 2 * 4 * 1024 * 4 / 32);
    CHECK_MSG(!bench_once(ctx, &ops_copy, &c, 0, true, &worst, NULL, &err), "%s", err.message);
    CHECK(counts.launches == 1); // it does not go on counting
  } else
    check_skip("built without nvcc: no kernels");
  sol_context_destroy(ctx);
}

static BenchRow row_of(double us, double spread) {
  BenchRow row = {.def = &ops_copy, .c = {.dim = {8, 64}, .dtype = SOL_BF16}, .timed = true};
  row.result.time.us = (Stats){.median = us, .spread = spread};
  return row;
}

TEST(changes_beyond_the_spread) {
  static const char text[] =
      "{\"cases\": [{\"op\": \"copy\", \"option\": \"\", \"dtype\": \"fp32\", \"out_dtype\": \"fp32\","
      "\"shape\": \"8x64\", \"time_us\": 1},"
      "{\"op\": \"copy\", \"option\": \"\", \"dtype\": \"bf16\", \"out_dtype\": \"bf16\", \"shape\": "
      "\"8x64\","
      "\"misalign\": 0, \"time_us\": 10, \"spread\": 0.02}]}";
  SolJson root;
  SolError err = {0};
  if (!CHECK(!sol_json_check(text, sizeof text - 1, &root, &err))) return;
  const struct {
    double us, spread;
    int want;
  } cases[] = {{10, 0.01, 0},   {10.2, 0.01, 0}, {10.5, 0.01, 1},
               {10.5, 0.05, 0}, {9.5, 0.01, -1}, {9.9, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    BenchRow row = row_of(cases[i].us, cases[i].spread);
    report_bench_before(&row, root);
    CHECK(row.before_us == 10 && row.before_spread == 0.02);
    CHECK_MSG(report_bench_changed(&row) == cases[i].want, "%g us, spread %g", cases[i].us, cases[i].spread);
  }
  BenchRow other = row_of(10, 0);
  other.misalign = 1;
  report_bench_before(&other, root);
  CHECK(other.before_us == 0 && report_bench_changed(&other) == 0);
}

static double number(SolJson object, const char *key) {
  SolJson v;
  double n;
  return sol_json_get(object, key, &v) && sol_json_number(v, &n) ? n : NAN;
}

TEST(command_json) {
  SolJson root, cases, row, v;
  SolError err = {0};
  CHECK_INT(run("copy --backend cpu --shape 32x1001 --shape 16x64 --dtype fp32,bf16 --json"), 0);
  if (!CHECK_MSG(!sol_json_check(output, strlen(output), &root, &err), "%s", err.message)) return;
  CHECK(number(root, "schema") == 1);
  for (const char *const *k = (const char *const[]){"command", "date", "backend", "summary", "basis", 0}; *k;
       k++)
    CHECK_MSG(sol_json_get(root, *k, &v), "key %s is missing", *k);
  char text[256] = "";
  CHECK(sol_json_get(root, "command", &v) && sol_json_string(v, text, sizeof text));
  CHECK_HAS(text, "sol bench copy --backend cpu");
  if (!CHECK(sol_json_get(root, "cases", &cases))) return;
  SolJsonIter it = {cases, 0};
  int count = 0;
  for (; sol_json_next(&it, NULL, &row); count++) {
    CHECK(number(row, "time_us") > 0 && number(row, "light_us") > 0 && number(row, "to_light") > 0);
    CHECK(number(row, "spread") >= 0 && number(row, "bytes") == number(row, "bytes_read") * 2);
    CHECK_NEAR(number(row, "to_light"), number(row, "time_us") / number(row, "light_us"), 1e-9);
    CHECK(number(row, "worst_error") == 0);
    CHECK(!sol_json_get(row, "rows_light_us", &v));
  }
  CHECK_INT(count, 4);
}

TEST(command_random) {
  SolJson root, spread, v;
  SolError err = {0};
  CHECK_INT(run("copy transpose --backend cpu --random 6 --seed 3 --max-bytes 64Ki --quick --json"), 0);
  if (!CHECK_MSG(!sol_json_check(output, strlen(output), &root, &err), "%s", err.message)) return;
  CHECK(number(root, "seed") == 3);
  if (!CHECK(sol_json_get(root, "distribution", &spread))) return;
  double mean = number(spread, "geometric_mean"), p90 = number(spread, "p90"),
         worst = number(spread, "worst");
  CHECK(number(spread, "cases") == 6 && mean > 0 && mean <= worst && p90 <= worst);
  if (!CHECK(sol_json_get(spread, "worst_cases", &v))) return;
  SolJsonIter it = {v, 0};
  SolJson row;
  double last = worst;
  int count = 0;
  for (; sol_json_next(&it, NULL, &row); count++) {
    CHECK(number(row, "to_light") <= last);
    last = number(row, "to_light");
  }
  CHECK_INT(count, 6);
  CHECK_INT(run("copy --backend cpu --random 1 --seed 20262400 --max-bytes 4Ki --quick"), 0);
  CHECK(strstr(output, "20262400")); // all of it, to be given again
  // Listed, nothing is run, whatever the sizes.
  CHECK_INT(run("--random 63 --seed 3 --min-bytes 64Mi --list --json"), 0);
  if (!CHECK_MSG(!sol_json_check(output, strlen(output), &root, &err), "%s", err.message)) return;
  CHECK(sol_json_get(root, "cases", &v) && !sol_json_get(root, "summary", &row));
  CHECK(!strstr(output, "\"gemm\"") && strstr(output, "\"kv_append\""));
}

// Results of the GPU's kernels on shapes, types and strides that nobody chose.
TEST(command_random_results) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  CHECK_INT(run("--random 42 --seed 5 --backend emu --max-bytes 16Ki --check all --json"), 0);
  CHECK(strstr(output, "\"checked\": true") && !strstr(output, "\"checked\": false"));
}

static int count_of(const char *part) {
  int n = 0;
  for (const char *p = output; (p = strstr(p, part)); p += strlen(part)) n++;
  return n;
}

TEST(command_options) { // a shape that was given is timed with every option, and --option takes one
  CHECK_INT(run("transpose --backend cpu --shape 8x64 --dtype fp32 --json"), 0);
  CHECK_INT(count_of("\"op\":"), ops_transpose.options);
  char arguments[256];
  snprintf(arguments, sizeof arguments,
           "transpose --backend cpu --shape 8x64 --dtype fp32 --json --option '%s'",
           ops_transpose.option_names[1]);
  CHECK_INT(run(arguments), 0);
  CHECK_INT(count_of("\"op\":"), 1);
  CHECK_HAS(output, ops_transpose.option_names[1]);
}

TEST(command_baseline) {
  char path[] = "/tmp/sol-bench-XXXXXX", arguments[256];
  int fd = mkstemp(path);
  if (!CHECK(fd >= 0)) return;
  close(fd);
  snprintf(arguments, sizeof arguments, "copy --backend cpu --shape 32x64 --dtype fp32 --json > %s", path);
  CHECK_INT(run(arguments), 0);
  snprintf(arguments, sizeof arguments, "copy --backend cpu --shape 32x64 --baseline %s 2>&1", path);
  CHECK_INT(run(arguments), 0);
  CHECK_HAS(output, "before");
  CHECK_HAS(output, "slower beyond the spread");
  FILE *f = fopen(path, "w");
  if (CHECK(f != NULL)) fputs("[1, 2]", f), fclose(f);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, "no cases");
  f = fopen(path, "w");
  if (CHECK(f != NULL)) fputs("{\n  oops", f), fclose(f);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, ":2:3:");
  unlink(path);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, "cannot open");
}

TEST(command_words) {
  CHECK_INT(run("--help"), 0);
  CHECK_HAS(output, "--against-light");
  CHECK_INT(run("copy --backend cpu --shape 32x64 --dtype fp32 --against-light 2>&1"), 0);
  CHECK_HAS(output, "say nothing about a GPU");
  CHECK_HAS(output, "measured: ");
  if (ops_image_count) {
    CHECK_INT(run("copy --backend emu --shape 5x64 2>&1"), 0);
    CHECK_HAS(output, "emulator has no times");
    CHECK_HAS(output, "sectors / ideal");
  } else
    check_skip("built without nvcc: no kernels");
}

TEST(command_bad_input) {
  const struct {
    const char *arguments, *says;
  } bad[] = {{"copi", "nearest: copy"},
             {"copy --dtype fp31", "unknown dtype"},
             {"copy --dtype fp32,", "unknown dtype"},
             {"copy --shape 3", "copy has shapes MxN"},
             {"copy --shape 3x0", "--shape"},
             {"copy --shape 3x4x5x6", "copy has shapes MxN"},
             {"copy --shape 9999999999999x9999999999999", "cannot be counted"},
             {"copy --backend gpu", "is none of"},
             {"copy --check some", "is none of"},
             {"copy --dtype fp4 --shape 8x8", "copy"},
             {"copy --option none --shape 8x8", "has that option"},
             {"copy --out-dtype int8 --shape 8x8", "cannot turn"},
             {"copy --misalign 1e12 --shape 8x8", "--misalign"},
             {"--workers 0 copy", "--workers"},
             {"--workers 1e12 copy", "--workers"},
             {"--random 0", "--random"},
             {"--random 3 --shape 8x8", "leave out --shape"},
             {"--random 3 --min-bytes 1Gi", "--max-bytes"},
             {"--random 3 gemm --dtype fp32", "no operation named"},
             {"copy --min-bytes 64Mi", "go with --random"},
             {"--nonsense", "unknown option"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, "--backend cpu %s 2>&1", bad[i].arguments);
    int code = run(arguments);
    CHECK_MSG(code == 2, "sol bench %s: exit code %d: %s", bad[i].arguments, code, output);
    CHECK_HAS(output, bad[i].says);
  }
}

int main(int argc, char **argv) {
  program = argv[0];
  return check_main(argc, argv);
}
