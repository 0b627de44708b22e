// Nsight Compute's CSV: real files of an H200, and every way in which a file can be wrong.
#include "check.h"

#include "base/error.h"
#include "profile/import.h"
#include "profile/ncu_value.h"

static char *read_file(const char *name, size_t *length) {
  char path[256];
  snprintf(path, sizeof path, "tests/data/ncu/%s", name);
  FILE *f = fopen(path, "rb");
  if (!CHECK_MSG(f, "cannot open %s", path)) exit(1);
  static char text[1 << 18];
  *length = fread(text, 1, sizeof text - 1, f);
  text[*length] = 0;
  fclose(f);
  return text;
}

static SolStatus import(Profile *p, const char *text, size_t length, SolError *err) {
  *err = (SolError){0};
  profile_start(p, PROFILE_FROM_NCU);
  SolStatus status = profile_import_csv(p, text, length, NULL, err);
  if (!status) status = profile_finish(p, err);
  return status;
}

static void import_file(Profile *p, const char *name) {
  size_t length;
  SolError err;
  const char *text = read_file(name, &length);
  CHECK_MSG(!import(p, text, length, &err), "%s: %s", name, err.message);
}

static double value(const Profile *p, ProfileMetric m) {
  return p->kernel_count ? profile_value(&p->kernels[0], m) : PROFILE_UNKNOWN;
}

TEST(full_raw_page) {
  Profile p;
  import_file(&p, "h200-full-raw.csv");
  CHECK_INT(p.kernel_count, 1);
  CHECK_STR(p.kernels[0].title, "transpose");
  CHECK_STR(p.gpu.name, "NVIDIA H200");
  CHECK_INT(p.gpu.cc, 90);
  CHECK_INT(p.kernels[0].grid[1], 64);
  CHECK_INT(p.kernels[0].block[0], 32);
  CHECK_INT(p.kernels[0].registers, 24);
  CHECK_INT(p.kernels[0].static_shared, 4096);
  CHECK_INT(p.kernels[0].dynamic_shared, 0);
  CHECK_NEAR(p.seconds, 28960e-9, 1e-12);
  CHECK_INT(value(&p, PROFILE_dram_read), 16780544);
  CHECK_INT(value(&p, PROFILE_dram_write), 532992);
  CHECK_INT(value(&p, PROFILE_load_requests), 131072);
  CHECK_INT(value(&p, PROFILE_load_sectors), 524288);
  CHECK_INT(value(&p, PROFILE_shared_load_wavefronts), 4214802);
  CHECK_INT(value(&p, PROFILE_shared_load_conflicts), 4083730);
  CHECK_INT(value(&p, PROFILE_l2_sectors), 1048576);
  CHECK_INT(value(&p, PROFILE_shared_passes), 4325376);
  CHECK_INT(value(&p, PROFILE_shared_passes_ideal), 262144);
  CHECK_INT(value(&p, PROFILE_global_sectors_ideal), 1048576);
  CHECK_NEAR(value(&p, PROFILE_dram_pct), 12.44, 1e-9); // by its other name
  CHECK_NEAR(value(&p, PROFILE_dram_rate), 597843093922.65, 1e-12);
  CHECK_NEAR(value(&p, PROFILE_active_cycles), 39524.73, 1e-12);
  CHECK_INT(value(&p, PROFILE_cycles), 43626);
  CHECK_INT(value(&p, PROFILE_load_use), 32);
  CHECK(!profile_known(value(&p, PROFILE_l2_reads))); // not in the file: unknown, not 0
  profile_free(&p);
}

TEST(metrics_raw_page) {
  Profile p;
  import_file(&p, "h200-metrics-raw.csv");
  CHECK_INT(value(&p, PROFILE_dram_read), 16781568);
  CHECK_INT(value(&p, PROFILE_time), 29248);
  CHECK_INT(value(&p, PROFILE_load_sectors), 524288);
  CHECK(!profile_known(value(&p, PROFILE_store_sectors)));
  CHECK(!profile_known(value(&p, PROFILE_sm_pct)));
  CHECK_INT(p.gpu.sms, 132);
  profile_free(&p);
}

TEST(details_pages) {
  Profile p;
  import_file(&p, "h200-basic.csv");
  CHECK_INT(value(&p, PROFILE_time), 29472);
  CHECK_NEAR(value(&p, PROFILE_memory_pct), 82.13, 1e-9);
  CHECK_NEAR(value(&p, PROFILE_dram_pct), 12.29, 1e-9);
  CHECK_NEAR(value(&p, PROFILE_l1_pct), 90.03, 1e-9);
  CHECK_NEAR(value(&p, PROFILE_sm_pct), 10.29, 1e-9);
  CHECK_INT(p.kernels[0].registers, 24);
  CHECK(!profile_known(value(&p, PROFILE_dram_rate))); // another section's "Memory Throughput"
  profile_free(&p);
  import_file(&p, "h200-full-details.csv");
  CHECK_STR(p.kernels[0].title, "add_bias");
  CHECK_NEAR(value(&p, PROFILE_memory_pct), 81.1, 1e-2);
  CHECK(value(&p, PROFILE_dram_rate) > 2e11 && value(&p, PROFILE_dram_rate) < 3e11);
  CHECK(value(&p, PROFILE_instructions) > 1e4);
  CHECK_INT(value(&p, PROFILE_lanes), 32);
  CHECK_INT(p.note_count, 0);
  profile_free(&p);
  import_file(&p, "h200-sections.csv");
  CHECK_NEAR(value(&p, PROFILE_memory_pct), 81.9, 1e-3);
  CHECK(!profile_known(value(&p, PROFILE_occupancy)));
  CHECK(!profile_known(p.kernels[0].registers));
  profile_free(&p);
}

// ---- numbers and units ----

static NcuNumber number(const char *text, double *out) {
  *out = -1;
  return ncu_number((CsvField){text, strlen(text)}, out, NULL);
}

TEST(numbers) {
  double v;
  static const struct {
    const char *text;
    double value;
  } good[] = {
      {"0", 0},       {"1,234", 1234}, {"12,345,678.25", 12345678.25}, {"1234567", 1234567}, {" 5 ", 5},
      {"0.10", 0.10}, {"1e3", 1000},   {"1,048,576", 1048576}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    CHECK_MSG(number(good[i].text, &v) == NCU_NUMBER, "%s", good[i].text);
    CHECK_NEAR(v, good[i].value, 1e-15);
  }
  static const char *const foreign[] = {
      "48,97", "1.234,5",      "10.196.000",         "1 234",     "1'234", "12,34,567", "1,2345",
      ",5",    "1\302\240234", "1\342\200\257234,5", "1234,567.5"};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    CHECK_MSG(number(foreign[i], &v) == NCU_FOREIGN, "%s is %d", foreign[i], (int)number(foreign[i], &v));
  static const char *const none[] = {"", "n/a", "nan", "no data"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    CHECK_MSG(number(none[i], &v) == NCU_NONE, "%s", none[i]);
  static const char *const bad[] = {"x", "12x", "1e", "inf", "-", "1-2", "0x10", "--1", "1.", "(1; 2)"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(number(bad[i], &v) == NCU_BAD, "%s is %d", bad[i], (int)number(bad[i], &v));
}

static double unit(const char *text, const char *wanted) {
  return ncu_unit((CsvField){text, strlen(text)}, wanted, NULL);
}

TEST(units) {
  CHECK_NEAR(unit("ns", "ns"), 1, 0);
  CHECK_NEAR(unit("usecond", "ns"), 1e3, 0);
  CHECK_NEAR(unit("ms", "ns"), 1e6, 0);
  CHECK_NEAR(unit("Mbyte", "B"), 1e6, 0);
  CHECK_NEAR(unit("Kbyte/block", "B"), 1e3, 0);
  CHECK_NEAR(unit("Gbyte/second", "B/s"), 1e9, 0);
  CHECK_NEAR(unit("byte/s", "B/s"), 1, 0);
  CHECK_NEAR(unit("%", "%"), 1, 0);
  CHECK_NEAR(unit("sector", ""), 1, 0);
  CHECK_NEAR(unit("Ksector", ""), 1e3, 0);
  CHECK_NEAR(unit("register/thread", ""), 1, 0);
  // What does not fit is refused, not taken at face value.
  CHECK_NEAR(unit("cycle", "ns"), 0, 0);
  CHECK_NEAR(unit("Gbyte/s", "B"), 0, 0);
  CHECK_NEAR(unit("Gbyte", "B/s"), 0, 0);
  CHECK_NEAR(unit("%", "B"), 0, 0);
  CHECK_NEAR(unit("%", ""), 0, 0);
  CHECK_NEAR(unit("Zbyte", "B"), 0, 0);
}

// ---- tables made up ----

#define HEAD "\"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"Block Size\",\"CC\","
#define ROW  "\"0\",\"1\",\"k(int)\",\"(8, 1, 1)\",\"(64, 1, 1)\",\"9.0\","
#define UNIT "\"\",\"\",\"\",\"\",\"\",\"\","

static SolStatus import_text(Profile *p, const char *text, SolError *err) {
  return import(p, text, strlen(text), err);
}

static void fails(const char *text, int line, const char *message, const char *hint) {
  Profile p;
  SolError err;
  if (CHECK_MSG(import_text(&p, text, &err), "read: %.60s", text)) {
    CHECK_HAS(err.message, message);
    CHECK_HAS(err.hint, hint);
    if (line) CHECK_INT(err.line, line);
  }
  profile_free(&p);
}

TEST(units_are_applied_and_rounding_is_said) {
  Profile p;
  SolError err;
  CHECK(!import_text(&p,
                     HEAD "\"gpu__time_duration.sum\",\"dram__bytes_read.sum\"\n" UNIT
                          "\"usecond\",\"Mbyte\"\n" ROW "\"28.96\",\"16.78\"\n",
                     &err));
  CHECK_NEAR(value(&p, PROFILE_time), 28960, 1e-12);
  CHECK_NEAR(value(&p, PROFILE_dram_read), 16.78e6, 1e-12);
  CHECK_INT(p.note_count, 1);
  CHECK_HAS(p.notes[0], "--print-units base");
  profile_free(&p);
}

TEST(own_name_wins_over_an_alias) {
  for (int order = 0; order < 2; order++) {
    Profile p;
    SolError err;
    const char *own = HEAD "\"dram__throughput.avg.pct_of_peak_sustained_elapsed\","
                           "\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\"\n" UNIT
                           "\"%\",\"%\"\n" ROW "\"11\",\"22\"\n";
    const char *alias = HEAD "\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\","
                             "\"dram__throughput.avg.pct_of_peak_sustained_elapsed\"\n" UNIT
                             "\"%\",\"%\"\n" ROW "\"22\",\"11\"\n";
    CHECK(!import_text(&p, order ? own : alias, &err));
    CHECK_INT(value(&p, PROFILE_dram_pct), 11);
    profile_free(&p);
  }
}

TEST(per_clock_counters_become_counts) {
  Profile p;
  SolError err;
  CHECK(!import_text(&p,
                     HEAD "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed\","
                          "\"sm__cycles_elapsed.max\"\n" UNIT "\"inst/cycle\",\"cycle\"\n" ROW
                          "\"2.5\",\"1,000\"\n",
                     &err));
  CHECK_INT(value(&p, PROFILE_ffma), 2500);
  profile_free(&p);
}

TEST(what_was_not_counted_is_unknown) {
  Profile p;
  SolError err;
  CHECK(!import_text(&p,
                     HEAD "\"gpu__time_duration.sum\",\"dram__bytes_read.sum\"\n" UNIT "\"ns\",\"byte\"\n" ROW
                          "\"5\",\"n/a\"\n",
                     &err));
  CHECK(!profile_known(value(&p, PROFILE_dram_read)));
  CHECK_HAS(p.notes[0], "n/a");
  profile_free(&p);
}

TEST(several_tables_comments_and_line_ends) {
  Profile p;
  SolError err;
  const char *text =
      "\xef\xbb\xbf# a comment\r\nhello, \"world\"\r\n==PROF== Connected\r\n" HEAD
      "\"gpu__time_duration.sum\"\r\n" UNIT "\"ns\"\r\n" ROW "\"5\"\r\n\r\n==PROF== again\r\n" HEAD
      "\"gpu__time_duration.sum\"\r\n" UNIT "\"us\"\r\n" ROW "\"7\"\r\n";
  CHECK(!import_text(&p, text, &err));
  CHECK_INT(p.launches, 2);
  CHECK_INT(p.kernel_count, 1);
  CHECK_INT(value(&p, PROFILE_time), 7005);
  CHECK_NEAR(p.kernels[0].least, 5e-9, 1e-12);
  CHECK_NEAR(p.kernels[0].most, 7e-6, 1e-12);
  profile_free(&p);
}

TEST(a_column_put_before_and_quotes_in_a_name) {
  Profile p;
  SolError err;
  CHECK(!import_text(&p,
                     "\"prog\",\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"prog\",\"\",\"\",\"ns\"\n"
                     "\"prog\",\"0\",\"void f<\"\"x\"\", 4>(int, float*)\",\"9\"\n",
                     &err));
  CHECK_STR(p.kernels[0].title, "f<\"x\",4>");
  CHECK_INT(value(&p, PROFILE_time), 9);
  profile_free(&p);
}

TEST(filters) {
  Profile p;
  SolError err = {0};
  const char *text =
      HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n" ROW "\"1\"\n" ROW "\"2\"\n" ROW "\"4\"\n"
           "\"3\",\"1\",\"other(int)\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"9.0\",\"8\"\n";
  static const struct {
    ProfileFilter filter;
    double want;
  } cases[] = {{{.kernels = "k"}, 7},        {{.kernels = "oth*"}, 8},         {{.kernels = "k,other"}, 15},
               {{.skip = 1, .count = 2}, 6}, {{.kernels = "k", .skip = 2}, 4}, {{.count = 1}, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ProfileFilter filter = cases[i].filter;
    profile_start(&p, PROFILE_FROM_NCU);
    CHECK(!profile_import_csv(&p, text, strlen(text), &filter, &err));
    CHECK(!profile_finish(&p, &err));
    CHECK_NEAR(p.seconds, cases[i].want * 1e-9, 1e-12);
    profile_free(&p);
  }
  ProfileFilter none = {.kernels = "missing"};
  profile_start(&p, PROFILE_FROM_NCU);
  CHECK(profile_import_csv(&p, text, strlen(text), &none, &err));
  CHECK_HAS(err.message, "none of the file's 4 launches");
  profile_free(&p);
}

TEST(foreign_numbers) {
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"us\"\n" ROW "\"28,96\"\n", 3, "28,96", "LC_ALL=C");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"us\"\n" ROW "\"1.028,96\"\n", 3, "1.028,96", "LC_ALL=C");
  // A count with a point: thousands, as some languages write them.
  fails(HEAD "\"dram__bytes_read.sum\",\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\"\n" UNIT
             "\"byte\",\"sector\"\n" ROW "\"512\",\"65.536\"\n",
        3, "cannot have a fraction", "LC_ALL=C");
}

TEST(malformed) {
  fails("", 0, "no table", "ncu --csv");
  fails("a,b\n1,2\n", 0, "no table", "ncu --csv");
  fails(HEAD "\"gpu__time_duration.sum\"\n", 0, "cut off", "ncu --csv");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n", 0, "cut off", "ncu --csv");
  fails(HEAD "\"gpu__time_duration.sum\"\n" ROW "\"5\"\n", 2, "units is missing", "ncu --csv");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n" ROW "\"5\",\"6\"\n", 3, "8 fields", "--log-file");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n\"0\",\"1\",\"k(i", 3, "ends inside", "cut off");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n\"0\",\"1\"x,\"k\"\n", 3, "quoted field", "");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n" ROW "\"five\"\n", 3, "no number", "ncu --csv");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"cycle\"\n" ROW "\"5\"\n", 3, "no unit",
        "--print-units base");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\nthe program says\n", 3, "neither", "--log-file");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT
             "\"ns\"\n\"0\",\"1\",\"k\",\"8\",\"(64, 1, 1)\",\"9.0\",\"5\"\n",
        3, "the grid", "");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT
             "\"ns\"\n\"0\",\"1\",\"k\",\"(8, 1, 1)\",\"(64, 1)\",\"9.0\",\"5\"\n",
        3, "the block", "");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT
             "\"ns\"\n\"0\",\"1\",\"k\",\"(8, 1, 1)\",\"(64, 1, 1)\",\"x\",\"5\"\n",
        3, "compute capability", "");
  fails(HEAD "\"gpu__time_duration.sum\"\n" UNIT "\"ns\"\n" ROW
             "\"5\"\n\"1\",\"1\",\"k\",\"(8, 1, 1)\",\"(64, 1, 1)\",\"8.0\",\"5\"\n",
        4, "different compute capability", "--devices");
  fails("ID;Kernel Name;gpu__time_duration.sum\n;;ns\n0;k;5\n", 1, "commas", "spreadsheet");
  fails("\"ID\",\"Kernel Name\",\"Metric Name\"\n\"0\",\"k\",\"Duration\"\n", 1, "Metric Value", "");
  fails("\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        "\"0\",\"k\",\"GPU Speed Of Light Throughput\",\"Duration\"\n",
        2, "before its Metric Value", "");
  fails("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", 0,
        "not allowed", "NVreg_RestrictProfilingToAdminUsers=0");
  fails("==WARNING== No kernels were profiled.\n", 0, "no kernels", "filters");
  fails("  k (8, 1, 1)x(64, 1, 1)\n    Section: GPU Speed Of Light Throughput\n", 0, "plain text output",
        "--csv");
  Profile p;
  SolError err;
  CHECK(import(&p, "\xff\xfe\"\0I\0", 6, &err));
  CHECK_HAS(err.message, "UTF-16");
  profile_free(&p);
  CHECK(import(&p, "NVR\0\1\2", 6, &err));
  CHECK_HAS(err.hint, "ncu --import");
  profile_free(&p);
  CHECK(import(&p, "ab\0cd", 5, &err));
  CHECK_HAS(err.message, "zero byte");
  profile_free(&p);
}

// Cut anywhere inside of its only launch's line, a raw page is an error, never a profile with fewer numbers.
TEST(truncated_anywhere) {
  size_t length;
  const char *whole = read_file("h200-full-raw.csv", &length);
  const char *last = NULL;
  for (const char *at = whole; (at = strstr(at, "\n\"0\",")) != NULL; at++) last = at + 1;
  if (!CHECK(last)) return;
  for (size_t cut = (size_t)(last - whole); cut + 2 < length; cut++) {
    Profile p;
    SolError err;
    char *copy = malloc(cut ? cut : 1); // its own size, so that reading past the end shows
    memcpy(copy, whole, cut);
    CHECK_MSG(import(&p, copy, cut, &err), "cut at %zu of %zu it was read", cut, length);
    CHECK(err.message[0] && err.hint[0]);
    profile_free(&p);
    free(copy);
  }
  whole = read_file("h200-basic.csv", &length);
  for (size_t cut = 0; cut < length; cut++) {
    Profile p;
    SolError err;
    char *copy = malloc(cut ? cut : 1);
    memcpy(copy, whole, cut);
    if (!import(&p, copy, cut, &err)) CHECK(p.kernel_count == 1 && !(value(&p, PROFILE_time) < 29472));
    profile_free(&p);
    free(copy);
  }
}

TEST(a_details_page_cut_between_lines_is_noted) {
  Profile p;
  SolError err;
  const char *text =
      "\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"k\",\"S\",\"Duration\",\"ns\",\"5\"\n\"0\",\"k\",\"S\",\"SOL SM\",\"%\",\"5\"\n"
      "\"1\",\"k\",\"S\",\"Duration\",\"ns\",\"6\"\n";
  CHECK(!import_text(&p, text, &err));
  CHECK_INT(p.launches, 2);
  CHECK_HAS(p.note_count ? p.notes[0] : "", "cut off");
  profile_free(&p);
}

CHECK_MAIN
