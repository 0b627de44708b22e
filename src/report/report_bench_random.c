// sol bench --random: how far from light, over the whole distribution.
#include <math.h>
#include <stdlib.h>

#include "report/report_bench.h"

enum { NAMED = 10 };

static int farther(const void *a, const void *b) {
  double x = report_bench_to_light(*(const BenchRow *const *)a);
  double y = report_bench_to_light(*(const BenchRow *const *)b);
  return (x < y) - (x > y);
}

static void name_case(Fact *list, const BenchRow *row) {
  char shape[96];
  Fact *f = fact_object(list, 0, 0);
  report_bench_shape(row, shape, sizeof shape);
  fact_number(f, "to_light", "time / light", UNIT_TIMES, BASIS_MEASURED, report_bench_to_light(row));
  fact_number(f, "number", "case", UNIT_PLAIN, BASIS_NONE, (double)row->number);
  fact_text(f, "op", "op", row->def->name);
  fact_text(f, "option", "option", report_bench_option(row));
  fact_text(f, "dtype", "dtype", sol_dtype_name(row->c.dtype));
  fact_text(f, "out_dtype", "to", sol_dtype_name(ops_or(row->c.out_dtype, row->c.dtype)));
  fact_text(f, "shape", "shape", shape);
  fact_number(f, "pad", "apart", UNIT_PLAIN, BASIS_NONE, (double)row->c.pad);
  fact_number(f, "time_us", "time", UNIT_US, BASIS_MEASURED, row->result.time.us.median);
}

static void say_distribution(Fact *root, const BenchRow **sorted, int count) { // farthest first
  double logs = 0;
  int near = 0, far = 0;
  for (int i = 0; i < count; i++) {
    double ratio = report_bench_to_light(sorted[i]);
    logs += log(ratio), near += ratio <= 1.05, far += ratio > 1.1;
  }
  Fact *f = fact_object(root, "distribution", "Time over light");
  fact_number(f, "cases", "cases", UNIT_PLAIN, BASIS_NONE, count);
  fact_number(f, "geometric_mean", "geometric mean", UNIT_TIMES, BASIS_MEASURED, exp(logs / count));
  fact_number(f, "p90", "90th percentile", UNIT_TIMES, BASIS_MEASURED,
              report_bench_to_light(sorted[count / 10]));
  fact_number(f, "worst", "worst", UNIT_TIMES, BASIS_MEASURED, report_bench_to_light(sorted[0]));
  fact_number(f, "within_1_05", "cases within 1.05x", UNIT_SHARE, BASIS_MEASURED, (double)near / count);
  fact_number(f, "beyond_1_1", "cases beyond 1.1x", UNIT_PLAIN, BASIS_MEASURED, far);
  Fact *list = fact_list(f, "worst_cases", "Farthest from light");
  for (int i = 0; i < count && i < NAMED; i++) name_case(list, sorted[i]);
}

void report_bench_distribution(Fact *root, const BenchRow *rows, int count) {
  const BenchRow **sorted = malloc(sizeof *sorted * (size_t)(count + 1));
  if (!sorted) return;
  int timed = 0;
  for (int i = 0; i < count; i++)
    if (report_bench_to_light(&rows[i]) > 0) sorted[timed++] = &rows[i];
  qsort(sorted, (size_t)timed, sizeof *sorted, farther);
  if (timed) say_distribution(root, sorted, timed);
  free(sorted);
}
