// sol fleet: command lines over the ranks of an MPI program, and one merged answer.
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/child.h"
#include "cli/cli_fleet.h"
#include "fleet/fleet.h"

enum { MOST_FILE = 64 << 20 };

typedef struct FleetArgs {
  CommonArgs common;
  const char *journal, *out;
  double silence;
} FleetArgs;

static bool is_command(const char *word) {
  return cli_find_command(word, NULL) != NULL;
}

static void show_progress(void *ctx, int done, int count) {
  const Cli *cli = ctx;
  if (cli_wants_progress(cli)) cli_status(cli, done < count ? "%d of %d jobs" : "", done, count);
}

static int failed_jobs(const FleetRun *run) {
  int failed = 0;
  for (int i = 0; i < run->jobs->count; i++) failed += run->results[i].exit != 0;
  return failed;
}

static void say_failed(Fact *root, const FleetRun *run) {
  static const FactColumn columns[] = {{"job", 0},           {"rank", 0},           {"ended with", 0},
                                       {"command", FIT_CUT}, {"it said", FIT_WRAP}, {0}};
  Fact *list = fact_list(root, "failed", "Jobs that failed");
  fact_columns(list, columns);
  for (int i = 0; i < run->jobs->count; i++) {
    const FleetResult *r = &run->results[i];
    if (!r->exit) continue;
    Fact *row = fact_object(list, 0, 0);
    fact_number(row, "job", "job", UNIT_PLAIN, BASIS_NONE, i);
    fact_number(row, "rank", "rank", UNIT_PLAIN, BASIS_NONE, r->rank);
    if (r->signal)
      fact_textf(row, 0, "ended with", "signal %d", r->signal);
    else
      fact_textf(row, 0, "ended with", r->exit < 0 ? "nothing" : "exit code %d", r->exit);
    fact_text(row, "command", "command", run->jobs->list[i].line);
    const char *said = r->errors.text ? r->errors.text : "";
    fact_textf(row, "errors", "it said", "%.*s", (int)strcspn(said, "\n"), said);
  }
}

static void say_slow(Fact *root, const FleetSlow *slow, int count) {
  static const FactColumn columns[] = {{"rank", 0},   {"figure", FIT_CUT}, {"value", 0},
                                       {"median", 0}, {"deviations", 0},   {0}};
  Fact *list = fact_list(root, "slow", "Slower than the others");
  fact_columns(list, columns);
  for (int i = 0; i < count; i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_number(row, "rank", "rank", UNIT_PLAIN, BASIS_NONE, slow[i].rank);
    fact_text(row, "figure", "figure", slow[i].figure);
    fact_number(row, "value", "value", UNIT_PLAIN, BASIS_MEASURED, slow[i].value);
    fact_number(row, "median", "median", UNIT_PLAIN, BASIS_MEASURED, slow[i].median);
    fact_number(row, "deviations", "deviations", UNIT_PLAIN, BASIS_NONE, slow[i].deviations);
  }
}

static void say_ranks(Fact *root, const FleetRun *run) {
  static const FactColumn columns[] = {{"rank", 0}, {"host", 0}, {"jobs", 0}, {"died", 0}, {0}};
  Fact *list = fact_list(root, "ranks", "Ranks");
  fact_columns(list, columns);
  for (int i = 0; i < run->rank_count; i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_number(row, "rank", "rank", UNIT_PLAIN, BASIS_NONE, i);
    fact_text(row, "host", "host", run->ranks[i].host);
    fact_number(row, "jobs", "jobs", UNIT_PLAIN, BASIS_EXACT, run->ranks[i].jobs);
    fact_text(row, 0, "died", run->ranks[i].died ? "died" : "");
  }
}

static int print_summary(Cli *cli, const FleetRun *run, const FleetSlow *slow, int slow_count) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_title(root, "%d jobs over %d rank%s", run->jobs->count, run->rank_count,
             run->rank_count > 1 ? "s" : "");
  fact_number(root, "jobs", "jobs", UNIT_PLAIN, BASIS_EXACT, run->jobs->count);
  fact_number(root, "failed_jobs", "failed", UNIT_PLAIN, BASIS_EXACT, failed_jobs(run));
  say_ranks(root, run);
  if (failed_jobs(run)) say_failed(root, run);
  if (slow_count) say_slow(root, slow, slow_count);
  for (int i = 0; i < run->rank_count; i++)
    if (run->ranks[i].died)
      fact_note(root, "Rank %d (%s) died; others took over its work.", i, run->ranks[i].host);
  int sharing = 0;
  for (int i = 0; i < run->rank_count; i++) sharing += run->ranks[i].shared;
  if (sharing)
    fact_note(
        root,
        "%d ranks share a GPU with others: they measured each other's load, and none of them is called slow.",
        sharing);
  if (run->jobs->list[0].rank >= 0 && run->rank_count < 3)
    fact_note(root, "Of fewer than three ranks none can be called slow.");
  fact_note(root, "--json prints what every job printed, merged.");
  return cli_print(cli, root);
}

static int answer(Cli *cli, FleetRun *run, const char *path) {
  FleetSlow *slow = calloc(FLEET_MOST_SLOW, sizeof *slow);
  if (!slow) return cli_fail(cli, "out of memory");
  fleet_find_shared(run);
  int count = fleet_slow(run, slow, FLEET_MOST_SLOW), code = EXIT_OK;
  SolBuffer text = {0}, command = {0};
  char date[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
  sol_buffer_format(&command, "sol %s", cli->command->name);
  for (int i = 0; i < cli->argc; i++) sol_buffer_format(&command, " %s", cli->argv[i]);
  fleet_merge(run, command.text, date, slow, count, &text);
  SolError err = {0};
  if (path && !text.failed && cli_write_file(path, text.text, text.length, &err))
    code = cli_error(cli, &err, 0, 0, 0);
  if (!code) code = cli->args->json ? cli_write(&text) : print_summary(cli, run, slow, count);
  sol_buffer_free(&text);
  sol_buffer_free(&command);
  free(slow);
  return code ? code : failed_jobs(run) ? EXIT_FAILED : EXIT_OK;
}

// Where a rank has died MPI must not wait for it, neither here nor when the process ends.
static void leave(const FleetLink *link, const FleetRun *run, int code) {
  if (!link) return;
  link->close(!run->any_died);
  if (!run->any_died) return;
  fflush(NULL);
  _Exit(code);
}

static int run_jobs(Cli *cli, FleetRun *run, const char *path) {
  SolError err = {0};
  int code = EXIT_OK;
  run->progress = show_progress;
  run->ctx = cli;
  if (fleet_run(run, &err))
    cli_error(cli, &err, 0, 0, 0), code = EXIT_FAILED;
  else if (!run->link || run->link->rank == 0)
    code = answer(cli, run, path);
  leave(run->link, run, code);
  fleet_run_free(run);
  return code;
}

static int open_fleet(Cli *cli, const FleetLink **link) {
  char library[CHILD_PATH] = "";
  SolError err = {0};
  cli_child_library("SOL_FLEET", "fleet", "libsolfleet.so", library, sizeof library);
  return fleet_open(library, link, &err) ? cli_error(cli, &err, 0, 0, 0) : EXIT_OK;
}

int cli_fleet_same(Cli *cli) {
  const char *words[MAX_POSITIONAL + 2 * MAX_TEXTS] = {"sol", cli->command->name};
  int count = 2, code;
  for (int i = 0; i < cli->argc && count < (int)SOL_COUNT(words); i++)
    if (strcmp(cli->argv[i], "--fleet") != 0) words[count++] = cli->argv[i];
  FleetRun run = {0};
  FleetJobs jobs;
  SolError err = {0};
  if ((code = open_fleet(cli, &run.link))) return code;
  if (fleet_jobs_same(words, count, run.link ? run.link->size : 1, &jobs, &err))
    return cli_error(cli, &err, 0, 0, 0);
  run.jobs = &jobs;
  code = run_jobs(cli, &run, NULL);
  fleet_jobs_free(&jobs);
  return code;
}

static int run(Cli *cli, void *arguments) {
  const FleetArgs *args = arguments;
  if (args->common.positional_count != 1) return cli_fail(cli, "name one job file");
  const char *path = args->common.positional[0];
  FleetRun fleet = {.journal = args->journal, .silence = args->silence};
  FleetJobs jobs;
  SolError err = {0};
  size_t length;
  char *text = cli_read_file(path, MOST_FILE, &length, &err);
  if (!text) return cli_error(cli, &err, 0, 0, 0);
  int code =
      fleet_jobs_parse(text, length, is_command, &jobs, &err) ? cli_error(cli, &err, path, 0, 0) : EXIT_OK;
  free(text);
  if (code) return code;
  fleet.jobs = &jobs;
  code = open_fleet(cli, &fleet.link);
  if (!code) code = run_jobs(cli, &fleet, args->out);
  fleet_jobs_free(&jobs);
  return code;
}

static const Option options[] = {
    {"journal", OPTION_TEXT, offsetof(FleetArgs, journal), "FILE", 0, 0,
     "keep every finished job here at once; a run that finds the file does not run them again"},
    {"out", OPTION_TEXT, offsetof(FleetArgs, out), "FILE", 0, 0, "write the merged JSON there as well"},
    {"silence", OPTION_NUMBER, offsetof(FleetArgs, silence), "SECONDS", 0, 0,
     "a rank of another machine that is silent for so long counts as dead (default 30)"},
    COMMON_OPTIONS};

const Command cmd_fleet = {
    .name = "fleet",
    .usage = "JOBFILE [--journal FILE] [--out FILE] [options]",
    .summary = "command lines over the ranks of an MPI program, merged into one answer",
    .details =
        "A job file has one command line on each line: sol's commands (the word sol may be left out; they are asked for "
        "JSON), or any other program. Or JSON: an array of command lines, each a text or an array of words. Ranks take "
        "the next job when they are free; each runs as a process of its own. A rank that dies is reported and its job "
        "taken over: start Open MPI with 'mpirun --enable-recovery', or it ends all ranks with the first; --journal "
        "then lets the next run continue. Without a launcher the jobs run here, one after another.\n\n"
        "JSON: schema, command, date, results [{job, command, exit, signal, output, errors}] in the order of the file, "
        "runs [{job, rank, attempts, seconds}], ranks [{rank, host, pid, jobs, died, shared}], slow [{rank, figure, value, "
        "median, deviations}], failed [job].\n\nExit code 1: a job failed.",
    .examples = "sol fleet jobs.txt --journal done.jsonl --json\n"
                "mpirun -n 4 --enable-recovery sol fleet jobs.txt --journal done.jsonl --out merged.json\n"
                "mpirun sol devices --measure --fleet",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(FleetArgs),
    .run = run,
};
