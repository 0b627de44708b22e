// The measurements of `sol bench` as facts.
#ifndef SOL_REPORT_BENCH_H
#define SOL_REPORT_BENCH_H

#include "base/json_read.h"
#include "measure/bench.h"
#include "report/facts.h"

// One case of a run.
typedef struct BenchRow {
  const OpsDef *def;
  OpsCase c;
  int misalign;
  SolCost cost;
  SolStatus status; // of the timing, or of the check where that failed; message says what went wrong
  char message[256];
  bool timed, checked, wrong, counted;
  int64_t number; // drawn at random: which of the seed's
  double worst;   // checked: the largest error as a share of what is allowed
  BenchResult result;
  SolDriverCounts counts;          // counted: on the emulator
  double before_us, before_spread; // of an earlier run; 0: it does not have this case
} BenchRow;

// Text that names the case within an operation: "8192x4096".
void report_bench_shape(const BenchRow *row, char *out, size_t cap);
// Its option by name; "" where the operation has none.
const char *report_bench_option(const BenchRow *row);
// Looks the case up in an earlier run's JSON.
void report_bench_before(BenchRow *row, SolJson root);
// How far from light: against the copy by rows where there is one. 0: not timed.
double report_bench_to_light(const BenchRow *row);
// 1: slower than before by more than the spread, -1: faster, 0: neither or unknown.
int report_bench_changed(const BenchRow *row);

// "cases": the table; then the summary. before: an earlier run was given.
void report_bench_rows(Fact *root, const BenchRow *rows, int count, bool before);
void report_bench_summary(Fact *root, const BenchRow *rows, int count, bool before);
// Of cases drawn at random: how time over light is distributed, and the worst ten by name.
void report_bench_distribution(Fact *root, const BenchRow *rows, int count);

#endif
