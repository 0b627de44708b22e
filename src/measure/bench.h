// One bench case: the operation's time compared with "light", the time of our own copy for the same bytes in the
// same run.
#ifndef SOL_MEASURE_BENCH_H
#define SOL_MEASURE_BENCH_H

#include "measure/timer.h"

enum { BENCH_LIGHTS = 512, BENCH_PLACES = 3 };

typedef struct Bench {
  Timer timer;
  struct BenchLight {
    OpsCase c;
    int misalign;
    Timing time;
  } light[BENCH_LIGHTS]; // what was timed already
  int light_count;
  bool places; // on a GPU: where a large call is not at light, buffers in other places are tried
} Bench;

typedef struct BenchResult {
  const OpsDef *def;
  OpsCase c;
  Timing time;
  Timing light;      // a copy of the same bytes, dense and aligned; half of them read, half written
  Timing rows_light; // where rows are further apart than dense, or not aligned: a copy of such rows
  bool has_rows_light;
} BenchResult;

// Close it after a failure, too.
SolStatus bench_open(Bench *b, SolContext *ctx, bool quick, SolError *err);
void bench_close(Bench *b);
// SOL_ERR_NOT_FOUND: the operation has no such case.
SolStatus bench_case(Bench *b, const OpsDef *def, const OpsCase *c, int misalign, BenchResult *out,
                     SolError *err);
// One call on any backend. check: its result against the double-precision reference; SOL_ERR_RANGE: it is
// wrong, *worst is the largest error as a share of what is allowed. counts (or NULL), on the emulator: what
// it counted.
SolStatus bench_once(SolContext *ctx, const OpsDef *def, const OpsCase *c, int misalign, bool check,
                     double *worst, SolDriverCounts *counts, SolError *err);
// What a call costs; nothing is run.
SolStatus bench_cost(SolContext *ctx, const OpsDef *def, const OpsCase *c, SolCost *out, SolError *err);

#endif
