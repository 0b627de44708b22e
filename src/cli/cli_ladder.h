// Shared by the files of sol ladder.
#ifndef SOL_CLI_LADDER_H
#define SOL_CLI_LADDER_H

#include "cli/cli.h"
#include "report/report_ladder.h"

typedef struct LadderArgs {
  CommonArgs common;
  const char *device, *shape;
  SolDtype dtype;
  TextList rungs;
  int backend; // LADDER_AUTO ...
  int64_t workers;
  bool small, no_check, no_counters, quick, compare, stored, markdown, source;
} LadderArgs;
enum { LADDER_AUTO, LADDER_EMU, LADDER_CUDA, LADDER_BOTH };

typedef struct LadderJob {
  Cli *cli;
  const LadderArgs *args;
  LadderAnswer *answers;
  int count, done;
  LadderSession *emu, *gpu; // NULL: not run there
  LadderWhere where;
  char no_gpu[256], no_counters[256];
  char no_device[96]; // a GPU that nothing can be predicted for
  const char *results_path;
  char results_device[64]; // that its predictions are for; empty: not given
  char *results_text;
  SolJson results; // .text NULL: none
  int not_there;   // answers that it has nothing of; the last of them
  const LadderAnswer *one_not_there;
  const LadderAnswer *too_long; // was not predicted beside its measurement: the last of those
  CliLaunch shown;              // the line on the terminal
  double started;               // when the first rung was, by the host's clock
} LadderJob;

// What is to be run, and where: reads the arguments and opens the backends. An exit code.
int cli_ladder_plan(LadderJob *j);
void cli_ladder_plan_free(LadderJob *j);

#endif
