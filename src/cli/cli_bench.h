// Shared by the files of sol bench.
#ifndef SOL_CLI_BENCH_H
#define SOL_CLI_BENCH_H

#include "cli/cli.h"
#include "report/report_bench.h"

enum { BENCH_CHECK_SMALL, BENCH_CHECK_ALL, BENCH_CHECK_NONE, BENCH_DTYPES = 16 };

typedef struct BenchArgs {
  CommonArgs common;
  TextList dtypes, shapes;
  SolDtype out_dtype, weight_dtype;
  int64_t misalign, workers;
  const char *baseline, *option;
  int backend, check;
  int64_t random, seed;
  double least_bytes, most_bytes;
  bool quick, against_light, list, fleet;
} BenchArgs;

typedef struct BenchRun {
  Cli *cli;
  const BenchArgs *args;
  SolContext *ctx;
  Bench *bench;
  SolDtype dtype[BENCH_DTYPES];
  int dtype_count;
  BenchRow *rows;
  int count, room, left_out, done;
  bool has_baseline;
  char no_gpu[256]; // why backend auto is the CPU
  SolError refused; // what the first case that an operation does not take was refused for
} BenchRun;

// A row more; what a call of the case costs is known.
int cli_bench_add(BenchRun *r, const BenchRow *row);
// Whether the operation is among those named on the command line.
bool cli_bench_wanted(const BenchRun *r, const OpsDef *def);
// Fills r->rows with cases drawn at random (--random). The exit code.
int cli_bench_draw(BenchRun *r);
// Fills r->rows with the cases selected; r->ctx is open. The exit code.
int cli_bench_list(BenchRun *r);
// What can be checked before a context is opened: names, types, sizes.
int cli_bench_check_args(BenchRun *r);

#endif
