// Ladders: every rung of every ladder and sweep on the emulator with all checks on, the runner on a driver
// that only keeps books (fake_cuda.h), comparison with a stored run, the command line.
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_read.h"
#include "check.h"
#include "cli/cli.h"
#include "fake_cuda.h"
#include "ladder/source.h"
#include "report/report_ladder.h"

static const char *program;
static char output[4 << 20];

static int run(const char *arguments) {
  const char *tool = getenv("SOL");
  char command[2048];
  snprintf(command, sizeof command, "%s ladder %s", tool ? tool : "build/sol", arguments);
  FILE *p = popen(command, "r");
  if (!p) return -1;
  output[fread(output, 1, sizeof output - 1, p)] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static LadderCase small_case(const Ladder *l) {
  LadderCase c = {.dtype = l->dtypes[0]};
  memcpy(c.dim, l->small, sizeof c.dim);
  return c;
}

static bool open_emu(LadderSession *s, const char *device) {
  LadderOptions o = {.backend = SOL_BACKEND_EMU,
                     .checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_INIT};
  SolError err = {0};
  if (!ladder_image_count) return check_skip("built without nvcc: no kernels"), false;
  CHECK(!sol_device_find(device, &o.device, &err));
  return CHECK_MSG(!ladder_session_open(s, &o, &err), "%s", err.message);
}

// ---- what they are ----

TEST(definitions) {
  for (int i = 0; i < LADDER_COUNT; i++) {
    const Ladder *l = ladders[i];
    SolError err = {0};
    CHECK(ladder_find(l->name, &err) == l);
    CHECK_MSG(l->title && l->about && l->module && l->shape, "%s lacks a text", l->name);
    CHECK_MSG(!l->sweep || l->axis, "%s: what is x?", l->name);
    for (int d = 0; d < 4 && l->dtypes[d]; d++) {
      LadderCase c = {.dtype = l->dtypes[d]};
      memcpy(c.dim, l->size, sizeof c.dim);
      CHECK_MSG(!ladder_accept(l, &c, &err), "%s: its own size: %s", l->name, err.message);
      memcpy(c.dim, l->small, sizeof c.dim);
      CHECK_MSG(!ladder_accept(l, &c, &err), "%s: its small size: %s", l->name, err.message);
    }
    CHECK_MSG(l->dtypes[0] != SOL_DTYPE_DEFAULT, "%s takes no type", l->name);
    for (int r = 0; r < l->rung_count; r++) {
      const LadderRung *rung = &l->rungs[r];
      CHECK_MSG(ladder_rung(l, rung->name, &err) == r, "%s: two rungs %s", l->name, rung->name);
      CHECK_MSG(rung->op || rung->go || l->go, "%s %s runs nothing", l->name, rung->name);
      CHECK_MSG(l->sweep || (rung->change && rung->why), "%s %s lacks its story", l->name, rung->name);
      CHECK_MSG(!rung->against || ladder_rung(l, rung->against, &err) >= 0, "%s %s: against what?", l->name,
                rung->name);
      CHECK_MSG(l->sweep || (rung->story == LADDER_FIRST) == (r == 0), "%s %s: faster or slower?", l->name,
                rung->name);
    }
    for (int k = 0; k < i; k++) CHECK_MSG(ladders[k]->sweep <= l->sweep, "%s: sweeps come last", l->name);
  }
}

// ---- on the emulator ----

// The line of a table that starts with "ladder,rung,": what follows, up to its end. NULL: there is none.
static const char *line_of(const char *table, const char *ladder, const char *rung, const char *more) {
  char start[96];
  snprintf(start, sizeof start, "%s,%s,%s", ladder, rung, more);
  size_t length = strlen(start);
  for (const char *at = table; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
    if (!strncmp(at, start, length)) return at + length;
  return NULL;
}

// What an H200 counted at the same sizes: equal, but for what tests/data/h200-ladders-differ.csv explains.
static void hold_to_the_gpu(const Ladder *l, const LadderRung *rung, const LadderCounts *c, int *compared) {
  static char *table, *differ;
  size_t length;
  if (!table) table = cli_read_file("tests/data/h200-ladders.csv", 1 << 20, &length, NULL);
  if (!differ) differ = cli_read_file("tests/data/h200-ladders-differ.csv", 1 << 20, &length, NULL);
  const char *line = table ? line_of(table, l->name, rung->name, "") : NULL;
  if (table && !line && line_of(table, l->name, "not measured yet", "")) return;
  if (!CHECK_MSG(line && differ, "tests/data/h200-ladders.csv lacks %s %s", l->name, rung->name)) return;
#define COUNT(field)                                                                                         \
  {                                                                                                          \
    double measured = strtod(line, (char **)&line), expected = measured;                                     \
    const char *other = line_of(differ, l->name, rung->name, #field ",");                                    \
    line += *line == ',';                                                                                    \
    if (other) expected = strtod(other, NULL);                                                               \
    CHECK_MSG(c->field == expected, "%s %s: " #field " %.0f, an H200 has %.0f", l->name, rung->name,         \
              c->field, measured);                                                                           \
    *compared += !other;                                                                                     \
  }
  COUNT(load_requests)
  COUNT(load_sectors)
  COUNT(store_requests)
  COUNT(store_sectors)
  COUNT(atomic_requests)
  COUNT(atomic_sectors)
  COUNT(local_requests)
  COUNT(local_sectors)
  COUNT(wavefronts)
#undef COUNT
}

static void climb(const char *device, bool first_dtype_only) {
  int compared = 0;
  LadderSession s;
  if (!open_emu(&s, device)) return;
  for (int i = 0; i < LADDER_COUNT; i++) {
    const Ladder *l = ladders[i];
    for (int d = 0; d < 4 && l->dtypes[d]; d++) {
      if (d && first_dtype_only) break;
      LadderRun job;
      SolError err = {0};
      LadderCase c = small_case(l);
      double start = sol_thread_clock();
      int ran = 0;
      c.dtype = l->dtypes[d];
      CHECK_MSG(!ladder_open(&job, &s, l, &c, &err), "%s: %s", l->name, err.message);
      for (int r = 0; r < l->rung_count && job.module; r++) {
        LadderFigures f;
        SolStatus status = ladder_go(&job, &l->rungs[r], &f);
        if (status == SOL_ERR_UNSUPPORTED && l->rungs[r].min_cc > s.ctx->cc) continue;
        ran++;
        if (!CHECK_MSG(!status && f.ran, "%s %s on %s: %s", l->name, l->rungs[r].name, device, f.message))
          continue;
        CHECK_MSG(f.checked && f.worst <= 1, "%s %s is not checked", l->name, l->rungs[r].name);
        CHECK_MSG((f.us > 0 || f.launches == 0) && f.light_us >= 0, "%s %s has no time", l->name,
                  l->rungs[r].name);
        CHECK(isfinite(ladder_requests(&f.counts)) && isfinite(ladder_dram(&f.counts)));
        if (!strcmp(device, "h200") && !d) hold_to_the_gpu(l, &l->rungs[r], &f.counts, &compared);
      }
      ladder_close(&job);
      printf("%-18s %-5s %-5s %3d rungs  %.2f s\n", l->name, device, sol_dtype_name(c.dtype), ran,
             sol_thread_clock() - start);
    }
  }
  ladder_session_close(&s);
  if (!strcmp(device, "h200")) CHECK_MSG(compared > 2000, "%d counts compared", compared);
}

TEST(every_rung) {
  climb("h200", CHECK_SANITIZED);
}
TEST(every_rung_on_an_older_gpu) { // other PTX
  if (CHECK_SANITIZED) SKIP("too slow under sanitizers");
  climb("t4", true);
}

// A result that is not the one expected is found, whatever part of it is wrong.
static int64_t bad_element;
static void expect_wrongly(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  ladder_transpose.expect(h, buffer, first, count, out);
  if (bad_element >= first && bad_element < first + count) out[bad_element - first] += 1;
}

TEST(a_wrong_result) {
  LadderSession s;
  if (!open_emu(&s, "h200")) return;
  Ladder wrong = ladder_transpose;
  wrong.expect = expect_wrongly;
  const int64_t places[] = {0, 4711, 100 * 260 - 1, 100 * 260};
  for (int i = 0; i < 4; i++) {
    LadderRun job;
    LadderFigures f;
    SolError err = {0};
    LadderCase c = small_case(&wrong);
    bad_element = places[i];
    CHECK_MSG(!ladder_open(&job, &s, &wrong, &c, &err), "%s", err.message);
    bool is_wrong = i < 3; // the last lies outside
    CHECK_INT(ladder_go(&job, &wrong.rungs[2], &f), is_wrong ? SOL_ERR_RANGE : SOL_OK);
    CHECK(f.wrong == is_wrong && f.ran == !is_wrong && f.checked);
    if (is_wrong) CHECK_HAS(f.message, "wrong result: y[");
    ladder_close(&job);
  }
  ladder_session_close(&s);
}

// A rung that does nothing leaves poison, not an earlier rung's result.
static SolStatus do_nothing(const LadderCall *call, SolError *err) {
  (void)call, (void)err;
  return SOL_OK;
}
static SolStatus no_such_kernel(const LadderCall *call, SolError *err) {
  return ladder_launch(call, "transpose_nave", &(LadderGrid){.block = {32}}, "", 0, err);
}
static SolStatus too_many_threads(const LadderCall *call, SolError *err) {
  char params[32] = {0};
  return ladder_launch(call, "transpose_naive", &(LadderGrid){.block = {2048}}, params, sizeof params, err);
}

TEST(rungs_that_fail) {
  LadderSession s;
  if (!open_emu(&s, "h200")) return;
  LadderRun job;
  LadderFigures f;
  SolError err = {0};
  LadderCase c = small_case(&ladder_transpose);
  CHECK_MSG(!ladder_open(&job, &s, &ladder_transpose, &c, &err), "%s", err.message);
  CHECK_INT(ladder_go(&job, &ladder_transpose.rungs[0], &f), SOL_OK);
  CHECK_INT(ladder_go(&job, &(LadderRung){.name = "idle", .go = do_nothing}, &f), SOL_ERR_RANGE);
  CHECK(f.wrong);
  CHECK_INT(ladder_go(&job, &(LadderRung){.name = "lost", .go = no_such_kernel}, &f), SOL_ERR_NOT_FOUND);
  CHECK_HAS(f.message, "transpose_nave");
  CHECK(!f.ran && !f.wrong && !f.checked);
  CHECK_INT(ladder_go(&job, &(LadderRung){.name = "wide", .go = too_many_threads}, &f), SOL_ERR_ARGUMENT);
  CHECK_INT(ladder_go(&job, &(LadderRung){.name = "new", .go = do_nothing, .min_cc = 100}, &f),
            SOL_ERR_UNSUPPORTED);
  CHECK_HAS(f.message, "10.0");
  CHECK_INT(ladder_go(&job, &ladder_transpose.rungs[1], &f), SOL_OK); // it goes on
  ladder_close(&job);
  ladder_session_close(&s);
}

TEST(shapes_refused) {
  SolError err = {0};
  LadderCase c = {.dim = {65535 * 32 + 1, 4}, .dtype = SOL_FP32};
  CHECK(ladder_accept(&ladder_transpose, &c, &err) != SOL_OK);
  CHECK_HAS(err.message, "rows");
  c.dim[0] = 0;
  CHECK_INT(ladder_accept(&ladder_transpose, &c, &err), SOL_ERR_ARGUMENT);
  c.dim[0] = c.dim[1] = (int64_t)1 << 31;
  CHECK_INT(ladder_accept(&ladder_transpose, &c, &err), SOL_ERR_RANGE);
}

TEST(too_long) {
  LadderCase own = {.dim = {1024, 1024, 256}, .dtype = SOL_BF16},
             large = {.dim = {4096, 4096, 4096}, .dtype = SOL_BF16};
  CHECK(!ladder_too_long(&ladder_gemm, &own) && ladder_too_long(&ladder_gemm, &large));
  CHECK(!ladder_too_long(&ladder_transpose, &(LadderCase){.dim = {1 << 20, 1 << 14}, .dtype = SOL_FP32}));
}

// ---- on a GPU, as far as one without kernels goes ----

TEST(timed) {
  FakeCuda *fake = fake_open(program);
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return;
  if (!ladder_image_count) SKIP("built without nvcc: no kernels");
  LadderSession s;
  LadderRun job;
  LadderFigures f;
  SolError err = {0};
  LadderOptions o = {.backend = SOL_BACKEND_CUDA, .quick = true, .unchecked = true};
  if (!CHECK_MSG(!ladder_session_open(&s, &o, &err), "%s", err.message)) return;
  s.timer.footprint = 3e6; // a test need not fill a GPU's memory
  LadderCase c = small_case(&ladder_transpose);
  CHECK_MSG(!ladder_open(&job, &s, &ladder_transpose, &c, &err), "%s", err.message);
  CHECK(job.sets >= 15 && (double)job.sets * 2 * 4 * 100 * 260 >= 3e6);
  fake->violations = fake->not_loaded = 0;
  for (int r = 0; r < ladder_transpose.rung_count; r++) {
    memset(fake->calls, 0, sizeof fake->calls);
    CHECK_MSG(!ladder_go(&job, &ladder_transpose.rungs[r], &f), "%s", f.message);
    CHECK(f.ran && !f.checked && f.rounds == s.timer.rounds);
    CHECK_NEAR(f.us, 1000.0 / f.calls, 1e-6); // the fake's clock: a millisecond a replay
    CHECK(f.light_us > 0 && f.calls % f.sets == 0 && isnan(f.counts.load_sectors));
    CHECK_INT(fake->calls[FAKE_graph_exec_destroy], fake->calls[FAKE_graph_instantiate]);
  }
  CHECK(fake->violations == 0 && fake->not_loaded == 0 && s.light_count == 1);
  // A job that is not a matter of bytes: its arrays rotate all the same.
  LadderRun sums;
  LadderCase products = small_case(&ladder_gemm);
  CHECK_MSG(!ladder_open(&sums, &s, &ladder_gemm, &products, &err), "%s", err.message);
  CHECK((double)sums.sets * 2 * (256 * 256 + 2 * 256 * 64) >= 3e6);
  ladder_close(&sums);
  // Launched into a stream: no graph.
  LadderRung streamed = ladder_transpose.rungs[1];
  streamed.streamed = true;
  memset(fake->calls, 0, sizeof fake->calls);
  CHECK_MSG(!ladder_go(&job, &streamed, &f), "%s", f.message);
  CHECK(f.us > 0 && fake->calls[FAKE_graph_launch] == 0 && fake->calls[FAKE_launch] >= f.calls * f.rounds);
  // What fails leaves no recording behind, and the next rung runs.
  fake->fail_launch = 1;
  CHECK(ladder_go(&job, &ladder_transpose.rungs[0], &f) != SOL_OK);
  CHECK(!f.ran && f.message[0]);
  fake->fail_launch = 0;
  CHECK_INT(fake->capturing, 0);
  CHECK_INT(ladder_go(&job, &ladder_transpose.rungs[0], &f), SOL_OK);
  // Nothing was computed: the check says so.
  s.options.unchecked = false;
  CHECK_INT(ladder_go(&job, &ladder_transpose.rungs[0], &f), SOL_ERR_RANGE);
  CHECK(f.wrong && f.us == 0);
  ladder_close(&job);
  ladder_session_close(&s);
  CHECK_INT(fake->allocations, 0);
}

// ---- comparing ----

TEST(comparison) {
  LadderRow rows[4] = {0};
  LadderAnswer a = {.ladder = &ladder_transpose, .rows = rows, .count = 4};
  const double p[] = {10, 30, 20, 7}, m[] = {10, 20, 25, 7}; // off by 0, 50% and 25%
  for (int i = 0; i < 4; i++) {
    rows[i] = (LadderRow){.rung = &ladder_transpose.rungs[i], .emulated = true, .measured = i < 3};
    rows[i].emu = (LadderFigures){.ran = true, .us = p[i]};
    rows[i].gpu = (LadderFigures){.ran = true, .us = m[i], .counts = ladder_counts_unknown()};
    rows[i].emu.counts =
        (LadderCounts){.load_sectors = 8, .wavefronts = 4, .dram_read = 1e6, .dram_write = 1e6};
  }
  rows[0].gpu.counts.load_sectors = 8, rows[0].gpu.counts.wavefronts = 5;
  rows[1].gpu.counts.dram_read = 1e6, rows[1].gpu.counts.dram_write = 0.6e6; // off by 25%
  LadderComparison c = report_ladder_compare(&a, 1);
  CHECK(c.rows == 3 && c.counts == 2 && c.differ == 1 && c.time_rows == 3 && c.dram_rows == 1);
  CHECK_NEAR(c.time_median, 0.25, 1e-12);
  CHECK_NEAR(c.time_worst, 0.5, 1e-12);
  CHECK_NEAR(c.dram_median, 0.25, 1e-12);
  CHECK_STR(c.worst_time, "transpose tile");
  CHECK_INT(report_ladder_compare(&a, 0).rows, 0);
}

TEST(stories) {
  LadderRow rows[3] = {0};
  LadderRung rungs[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  LadderAnswer a = {.ladder = &ladder_transpose, .rows = rows, .count = 3};
  for (int i = 0; i < 3; i++)
    rows[i] = (LadderRow){.rung = &rungs[i], .measured = true, .gpu = {.ran = true, .us = 100}};
  const struct {
    LadderStory story;
    double before, now, spread;
    LadderVerdict want;
  } cases[] = {{LADDER_FASTER, 100, 90, 0, LADDER_AS_EXPECTED},
               {LADDER_FASTER, 100, 100, 0, LADDER_NOT_AS_EXPECTED},
               {LADDER_FASTER, 100, 97, 0.05, LADDER_NOT_AS_EXPECTED},
               {LADDER_FASTER, 100, 110, 0, LADDER_NOT_AS_EXPECTED},
               {LADDER_SLOWER, 100, 110, 0, LADDER_AS_EXPECTED},
               {LADDER_SLOWER, 100, 100, 0, LADDER_NOT_AS_EXPECTED},
               {LADDER_SAME, 100, 103, 0, LADDER_AS_EXPECTED},
               {LADDER_SAME, 100, 120, 0, LADDER_NOT_AS_EXPECTED},
               {LADDER_SAME, 120, 100, 0, LADDER_NOT_AS_EXPECTED},
               {LADDER_FIRST, 100, 120, 0, LADDER_UNDECIDED},
               {LADDER_FASTER, 0, 100, 0, LADDER_UNDECIDED}};
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    rungs[1].story = cases[i].story;
    rows[0].gpu.us = cases[i].before;
    rows[1].gpu.us = cases[i].now, rows[1].gpu.spread = cases[i].spread;
    CHECK_MSG(report_ladder_verdict(&a, &rows[1], true) == cases[i].want, "case %d", (int)i);
    CHECK_INT(report_ladder_verdict(&a, &rows[1], false), LADDER_UNDECIDED); // nothing is predicted here
  }
  CHECK(report_ladder_before(&a, &rows[0]) == NULL && report_ladder_before(&a, &rows[2]) == &rows[1]);
  rungs[2].against = "a";
  CHECK(report_ladder_before(&a, &rows[2]) == &rows[0]);
  rungs[2].against = NULL;
  rows[1] = rows[2]; // b was left out: c is set beside nothing
  a.count = 2;
  CHECK(report_ladder_before(&a, &rows[1]) == NULL);
}

// ---- the command ----

static double number(SolJson object, const char *key) {
  SolJson v;
  double n;
  return sol_json_get(object, key, &v) && sol_json_number(v, &n) ? n : NAN;
}

TEST(command_words) {
  CHECK_INT(run("2>&1"), 0);
  CHECK_HAS(output, "transpose");
  CHECK_HAS(output, "Sweeps");
  CHECK_INT(run("--help"), 0);
  CHECK_HAS(output, "--compare");
  const struct {
    const char *arguments, *says;
  } bad[] = {{"transpos 2>&1", "nearest: transpose"},
             {"transpose --device h20 2>&1", "h200"},
             {"transpose --shape 12x12x12 2>&1", "sizes MxN"},
             {"transpose --shape 12xa 2>&1", "^"},
             {"transpose --shape 2097121x1 2>&1", "rows"},
             {"transpose --shape 1x1 --small 2>&1", "exclude"},
             {"transpose --dtype int8 2>&1", "takes fp32"},
             {"transpose --dtype fp33 2>&1", "fp32"},
             {"transpose --rung tiles 2>&1", "nearest: tile"},
             {"transpose --backend gpu 2>&1", "none of"},
             {"transpose --workers 5000 2>&1", "at most"},
             {"transpose no-such.json --compare 2>&1", "cannot open"},
             {"transpose a.json 2>&1", "--compare, --markdown or --stored"},
             {"transpose --stored 2>&1", "a file of results"}};
  for (size_t i = 0; i < SOL_COUNT(bad); i++) {
    CHECK_MSG(run(bad[i].arguments) == 2, "%s: exit code", bad[i].arguments);
    CHECK_HAS(output, bad[i].says);
  }
}

TEST(command_json) {
  if (!ladder_image_count) SKIP("built without nvcc: no kernels");
  SolJson root, list, ladder, rungs, rung, predicted, v;
  SolError err = {0};
  CHECK_INT(run("transpose --device h200 --backend emu --small --json"), 0);
  if (!CHECK_MSG(!sol_json_check(output, strlen(output), &root, &err), "%s", err.message)) return;
  for (const char *const *k = (const char *const[]){"command", "date", "device", "complete", "basis", 0}; *k;
       k++)
    CHECK_MSG(sol_json_get(root, *k, &v), "key %s is missing", *k);
  CHECK(!sol_json_get(root, "gpu", &v));
  if (!CHECK(sol_json_get(root, "ladders", &list))) return;
  int count = 0;
  for (SolJsonIter it = {list, 0}; sol_json_next(&it, NULL, &ladder);)
    if (CHECK(sol_json_get(ladder, "rungs", &rungs)))
      for (SolJsonIter at = {rungs, 0}; sol_json_next(&at, NULL, &rung); count++) {
        if (!CHECK(sol_json_get(rung, "predicted", &predicted))) continue;
        CHECK(number(predicted, "time_us") > 0 && number(rung, "bytes") == 2 * 4 * 100 * 260);
        CHECK(number(predicted, "load_sectors") >= 3250 && number(predicted, "dram_read") == 4 * 100 * 260);
        CHECK(sol_json_get(rung, "story", &v) && sol_json_get(rung, "why", &v));
        CHECK(!sol_json_get(rung, "measured", &v));
      }
  CHECK_INT(count, ladder_transpose.rung_count);
  CHECK_HAS(output, "\"ladders[].rungs[].predicted.time_us\": \"modelled\"");
  CHECK_HAS(output, "\"ladders[].rungs[].predicted.load_sectors\": \"exact\"");
  CHECK_INT(run("transpose --small --rung padded --rung tile --shape 2>&1"), 2);
  CHECK_INT(run("transpose --backend emu --shape 33x35 --rung padded --rung tile 2>&1"), 0);
  CHECK_HAS(output, "33x35");
  CHECK(!strstr(output, "swizzled"));
  CHECK_HAS(output, "1.00x");
}

TEST(command_compare) {
  if (!ladder_image_count) SKIP("built without nvcc: no kernels");
  char path[] = "/tmp/sol-ladder-XXXXXX", arguments[256];
  int fd = mkstemp(path);
  if (!CHECK(fd >= 0)) return;
  FILE *f = fdopen(fd, "w");
  fputs(
      "{\"gpu\": \"NVIDIA H200\", \"driver\": \"580.1\", \"date\": \"2026-01-02\", \"ladders\": [{\"name\": "
      "\"transpose\", \"shape\": \"100x260\", \"dtype\": \"fp32\", \"rungs\": ["
      "{\"rung\": \"naive\", \"measured\": {\"ran\": true, \"time_us\": 3, \"light_us\": 1, "
      "\"load_requests\": 900, "
      "\"load_sectors\": 3700, \"store_sectors\": 1, \"dram_read\": 1040000, \"dram_write\": 520000}},"
      "{\"rung\": \"tile\", \"measured\": {\"ran\": true, \"time_us\": 4, \"light_us\": 1}},"
      "{\"rung\": \"padded\", \"measured\": {\"ran\": false, \"error\": \"it broke\"}}]}]}",
      f);
  fclose(f);
  snprintf(arguments, sizeof arguments, "transpose --small --compare %s 2>&1", path);
  CHECK_INT(run(arguments), 0);
  CHECK_HAS(output, "transpose naive: store_sectors 26000 emulated, 1 counted");
  CHECK_HAS(output, "NVIDIA H200");
  CHECK(!strstr(output, "swizzled"));
  snprintf(arguments, sizeof arguments, "transpose --small --compare %s --json", path);
  SolJson root, comparison, summary;
  SolError err = {0};
  CHECK_INT(run(arguments), 0);
  if (CHECK(!sol_json_check(output, strlen(output), &root, &err)) &&
      CHECK(sol_json_get(root, "comparison", &comparison) && sol_json_get(comparison, "summary", &summary))) {
    CHECK(number(summary, "rows") == 2 && number(summary, "counts") == 3 &&
          number(summary, "counts_differ") == 1);
    CHECK_NEAR(number(summary, "dram_median"), 1560000.0 / 208000 - 1, 1e-9);
  }
  snprintf(arguments, sizeof arguments, "transpose --small --compare --markdown %s", path);
  CHECK_INT(run(arguments), 0);
  CHECK_HAS(output,
            "NVIDIA H200, driver 580.1, 2026-01-02: 2 rungs and points. Exact counts that differ: 1 of 3.");
  CHECK_HAS(output, "| transpose | naive | differ | 0.21 | 1.56 | 0.13 |");
  snprintf(arguments, sizeof arguments, "transpose --small --markdown --stored %s", path);
  CHECK_INT(run(arguments), 0);
  CHECK_HAS(output, "# Transposing a matrix");
  CHECK_HAS(output, "NVIDIA H200, driver 580.1, 2026-01-02.");
  CHECK_HAS(output, "| tile | 4 us |");
  CHECK_HAS(output, "tile was expected to be faster than naive; it takes 1.33 times as long");
  CHECK_HAS(output, "| padded | it broke |");
  CHECK(!strstr(output, "## Predicted"));
  snprintf(arguments, sizeof arguments, "transpose --shape 64x64 --compare %s 2>&1", path);
  CHECK_INT(run(arguments), 0);
  CHECK_HAS(output, "has nothing of 1 of them");
  char folder[] = "/tmp/sol-ladder-docs-XXXXXX", command[512];
  if (CHECK(mkdtemp(folder) != NULL)) {
    snprintf(command, sizeof command, "DOCS=%s/made scripts/ladder-docs.sh %s >/dev/null", folder, path);
    CHECK_INT(system(command), 0);
    snprintf(command, sizeof command,
             "grep -q '(transpose.md): Transposing' %s/made/README.md && "
             "grep -q '^- .*naive' %s/made/transpose.md",
             folder, folder);
    CHECK_INT(system(command), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
  }
  snprintf(arguments, sizeof arguments, "transpose --compare --device a100 %s 2>&1", path);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, "NVIDIA H200");
  f = fopen(path, "w");
  if (CHECK(f != NULL)) fputs("{\"ladders\": 3}", f), fclose(f);
  snprintf(arguments, sizeof arguments, "transpose --compare %s 2>&1", path);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, "it has no ladders");
  f = fopen(path, "w");
  if (CHECK(f != NULL)) fputs("{\"ladders\": []}", f), fclose(f);
  CHECK_INT(run(arguments), 2);
  CHECK_HAS(output, "nothing measured on a GPU");
  unlink(path);
}

// The whole command against a driver that computes nothing: every result is wrong, and all are reported.
TEST(command_on_a_gpu) {
  char folder[4096], tool[4096], arguments[8400];
  const char *slash = strrchr(program, '/');
  if (!ladder_image_count) SKIP("built without nvcc: no kernels");
  if (!CHECK_MSG(slash, "run it by its path")) return;
  char *sol = getenv("SOL") ? strdup(getenv("SOL")) : NULL;
  snprintf(folder, sizeof folder, "%.*s/fake", (int)(slash - program), program);
  snprintf(tool, sizeof tool, "LD_LIBRARY_PATH=%.2000s %.2000s", folder, sol ? sol : "build/sol");
  setenv("SOL", tool, 1);
  snprintf(arguments, sizeof arguments, "transpose --backend cuda --quick --shape 512x1024 2>&1");
  CHECK_INT(run(arguments), 1);
  CHECK_HAS(output, "measured on  fake GPU 0");
  CHECK_HAS(output, "library (GPU): wrong result: y[0]");
  CHECK_INT(run("transpose --quick --no-check --shape 512x1024 2>&1"), 0); // a GPU that is in no list
  CHECK_HAS(output, "Nothing is predicted");
  CHECK_INT(run("transpose --backend both --quick --no-check --shape 512x1024 2>&1"), 2);
  CHECK_HAS(output, "unknown device 'fake GPU 0'");
  CHECK_INT(run("transpose --device h200 --quick --small 2>&1"), 0); // another GPU: predicted
  CHECK(!strstr(output, "fake"));
  CHECK_INT(run("transpose --backend cuda --quick --no-check --shape 512x1024 --json"), 0);
  CHECK_HAS(output, "\"gpu\": \"fake GPU 0\"");
  CHECK_HAS(output, "\"ladders[].rungs[].measured.time_us\": \"measured\"");
  if (sol)
    setenv("SOL", sol, 1);
  else
    unsetenv("SOL");
  free(sol);
}

TEST(a_prediction_within_the_models_error_is_no_contradiction) {
  LadderRung rungs[2] = {{.name = "a"}, {.name = "b", .story = LADDER_FASTER}};
  LadderRow rows[2] = {{.rung = &rungs[0], .emulated = true, .emu = {.ran = true, .us = 100}},
                       {.rung = &rungs[1], .emulated = true, .emu = {.ran = true}}};
  LadderAnswer a = {.rows = rows, .count = 2};
  static const struct {
    LadderStory story;
    double now;
    LadderVerdict want;
  } cases[] = {{LADDER_FASTER, 90, LADDER_AS_EXPECTED},      {LADDER_FASTER, 110, LADDER_UNDECIDED},
               {LADDER_FASTER, 140, LADDER_NOT_AS_EXPECTED}, {LADDER_SLOWER, 110, LADDER_AS_EXPECTED},
               {LADDER_SLOWER, 90, LADDER_UNDECIDED},        {LADDER_SLOWER, 70, LADDER_NOT_AS_EXPECTED},
               {LADDER_SAME, 103, LADDER_AS_EXPECTED},       {LADDER_SAME, 120, LADDER_UNDECIDED},
               {LADDER_SAME, 70, LADDER_NOT_AS_EXPECTED}};
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    rungs[1].story = cases[i].story;
    rows[1].emu.us = cases[i].now;
    CHECK_MSG(report_ladder_verdict(&a, &rows[1], false) == cases[i].want, "case %d", (int)i);
  }
}

TEST(remarks_belong_to_the_gpu_shown) {
  const SolDevice *h200 = NULL, *l4 = NULL, *on;
  LadderRung rung = {.name = "a", .seen_on = "h200", .seen = "so it is here"}, plain = {.name = "b"};
  CHECK(!sol_device_find("h200", &h200, NULL) && !sol_device_find("l4", &l4, NULL));
  CHECK(ladder_seen(&rung, &(LadderWhere){.device = h200}) &&
        !ladder_seen(&rung, &(LadderWhere){.device = l4}));
  CHECK(ladder_seen(&rung, &(LadderWhere){.gpu = "NVIDIA H200"}));
  CHECK(!ladder_seen(&rung, &(LadderWhere){.gpu = "NVIDIA L4"}));
  CHECK(!ladder_seen(&plain, &(LadderWhere){.device = h200}));
  for (int i = 0; i < LADDER_COUNT; i++) // what is said for every GPU names none of them
    for (int r = 0; r < ladders[i]->rung_count; r++) {
      const LadderRung *at = &ladders[i]->rungs[r];
      CHECK_MSG(!at->why || !strstr(at->why, "H200"), "%s %s", ladders[i]->name, at->name);
      CHECK(!at->seen || (at->seen_on && !sol_device_find(at->seen_on, &on, NULL)));
    }
}

TEST(the_code_of_a_rung_is_found) {
  LadderSource at;
  CHECK(ladder_source(&ladder_transpose, "transpose_tile", &at) && at.line > 0);
  CHECK_STR(at.path, "kernels/transpose/rungs.cu");
  CHECK(at.text && strncmp(at.text, "//", 2) == 0 && strncmp(at.text + at.length - 2, "}\n", 2) == 0);
  CHECK(ladder_source(&ladder_in_flight, "in_flight_8", &at) && at.line > 0); // a macro makes it
  CHECK(at.text && strstr(at.text, "in_flight_##"));
  CHECK(ladder_source(&ladder_transpose, "no_such_kernel", &at) && !at.line && !at.text);
  for (int i = 0; i < LADDER_COUNT; i++)
    CHECK_MSG(ladder_source(ladders[i], NULL, &at), "%s", ladders[i]->name);
}

int main(int argc, char **argv) {
  program = argv[0];
  return check_main(argc, argv);
}
