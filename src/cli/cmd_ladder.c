// sol ladder: every rung of a ladder on the emulator, on a GPU, or both; and predictions against a stored
// run.
#define _POSIX_C_SOURCE 200809L // isatty, gmtime_r
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/plain.h"
#include "base/threads.h"
#include "cli/cli_ladder.h"

static volatile sig_atomic_t interrupted; // by ctrl-C, or a time limit: what there is so far is shown
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

// A rung that takes a second or more shows a line with its name and progress.
static void say_progress(LadderJob *j, const Ladder *ladder, const char *rung, const char *where) {
  CliLaunch *l = &j->shown;
  double now = sol_thread_clock();
  if (!j->started) j->started = now;
  if (!ladder) {
    cli_status(j->cli, "%s", "");
    return;
  }
  sol_format(l->what, sizeof l->what, "[%d/%d] %s %s (%s): ", j->done < j->count ? j->done + 1 : j->count,
             j->count, ladder->name, rung, where);
  l->started = 0;
  if (now - j->started > 1) cli_status(j->cli, "%s", l->what);
}

// ---- running ----

static void run_on(LadderJob *j, LadderSession *s, LadderAnswer *a, bool gpu) {
  LadderRun run;
  SolError err = {0};
  say_progress(j, a->ladder, "", gpu ? "GPU" : "emulator");
  SolStatus status = ladder_open(&run, s, a->ladder, &a->c, &err);
  if (status) {
    a->status = status;
    sol_format(a->message, sizeof a->message, "%s: %s", gpu ? "GPU" : "emulator", err.message);
  }
  for (int i = 0; i < a->count && !status && !interrupted; i++) {
    LadderRow *row = &a->rows[i];
    say_progress(j, a->ladder, row->rung->name, gpu ? "GPU" : "emulator");
    *(gpu ? &row->measured : &row->emulated) = true;
    ladder_go(&run, row->rung, gpu ? &row->gpu : &row->emu);
  }
  ladder_close(&run);
}

static void run_all(LadderJob *j) {
  for (; j->done < j->count && !interrupted; j->done++) {
    LadderAnswer *a = &j->answers[j->done];
    if (j->gpu) run_on(j, j->gpu, a, true);
    bool too_long = j->gpu && ladder_too_long(a->ladder, &a->c);
    if (too_long) j->too_long = a;
    if (j->emu && !too_long) run_on(j, j->emu, a, false);
    if (j->results.text && !report_ladder_read(a, j->results, j->args->stored))
      j->not_there++, j->one_not_there = a;
  }
  say_progress(j, NULL, NULL, NULL);
}

// Counters are read when all times have been taken. What is not available stays unknown, and a note says why.
static void count_answer(LadderJob *j, LadderAnswer *a, LadderCounters *counters) {
  LadderRun run;
  SolError err = {0};
  SolStatus opened = ladder_open(&run, j->gpu, a->ladder, &a->c, &err);
  for (int r = 0; r < a->count && !opened && !interrupted; r++) {
    LadderRow *row = &a->rows[r];
    if (!row->measured || !row->gpu.ran) continue;
    say_progress(j, a->ladder, row->rung->name, "counters");
    if (ladder_count(&run, row->rung, counters, &row->gpu.counts, &err))
      sol_format(j->no_counters, sizeof j->no_counters, "%s %s: %s", a->ladder->name, row->rung->name,
                 err.message);
  }
  if (opened) sol_format(j->no_counters, sizeof j->no_counters, "%s: %s", a->ladder->name, err.message);
  ladder_close(&run);
}

static void count_all(LadderJob *j, LadderCounted what) {
  LadderCounters counters;
  SolError err = {0};
  if (ladder_counters_open(&counters, j->gpu, what, &err)) {
    sol_format(j->no_counters, sizeof j->no_counters, "%s", err.message);
    return;
  }
  j->gpu->most_sets = what == LADDER_DRAM ? 0 : 1;
  for (int i = 0; i < j->done && !interrupted; i++) count_answer(j, &j->answers[i], &counters);
  ladder_counters_close(&counters);
  say_progress(j, NULL, NULL, NULL);
}

// ---- the answer ----

static void say_where(const LadderJob *j, Fact *root) {
  if (j->where.device) fact_text(root, "device", 0, j->where.device->id);
  if (j->where.gpu[0]) {
    fact_text(root, "gpu", 0, j->where.gpu);
    fact_text(root, "driver", 0, j->where.driver[0] ? j->where.driver : 0);
  }
  if (j->gpu) {
    const SolDriverInfo *info = &j->gpu->timer.info;
    fact_number(root, "cuda", 0, UNIT_PLAIN, BASIS_NONE, info->cuda);
    fact_number(root, "l2_bytes", 0, UNIT_SIZE, BASIS_NONE, (double)info->l2_bytes);
    fact_number(root, "launch_us", 0, UNIT_US, BASIS_MEASURED, j->gpu->timer.launch_us);
  }
}

static void say_notes(const LadderJob *j, Fact *root) {
  if (j->no_gpu[0]) fact_note(root, "No GPU here (%s).", j->no_gpu);
  if (j->gpu)
    fact_note(
        root,
        "Measured: calls in a CUDA graph (launches into a stream where the rung is about that), each on "
        "another set of arrays, median of %d. Light: our own copy of the same bytes in the same run.",
        j->gpu->timer.rounds);
  if (j->not_there) {
    char shape[96];
    report_ladder_shape_text(j->one_not_there->ladder, j->one_not_there->c.dim, shape, sizeof shape);
    fact_note(root,
              "The file of results has nothing of %d of them at these sizes and types (%s at %s is one).",
              j->not_there, j->one_not_there->ladder->name, shape);
  }
  if (j->no_device[0])
    fact_note(root, "Nothing is predicted: '%s' is none of the GPUs that `sol devices` lists.", j->no_device);
  if (j->emu && j->too_long)
    fact_note(
        root,
        "%s is not predicted at this size: the emulator would take hours (--backend emu does it all the same).",
        j->too_long->ladder->name);
  if (j->no_counters[0]) fact_note(root, "Not all counters of the GPU could be read (%s).", j->no_counters);
  if (j->done < j->count) fact_note(root, "Stopped after %d of %d.", j->done, j->count);
}

static int print_answer(LadderJob *j) {
  int code = EXIT_OK;
  bool compare = j->args->compare;
  if (j->args->markdown && !j->args->common.json) {
    SolBuffer text = {0};
    if (compare) report_ladder_compare_markdown(&text, j->answers, j->done, &j->where);
    for (int i = 0; i < j->done && !compare; i++) {
      if (i) sol_buffer_puts(&text, "\n");
      report_ladder_markdown(&text, &j->answers[i], &j->where);
    }
    SolBuffer plain = {.failed = text.failed}; // names of GPUs come from files
    if (text.text) sol_buffer_plain(&plain, text.text, text.length, true);
    code = cli_write(&plain);
    sol_buffer_free(&plain);
    sol_buffer_free(&text);
  } else {
    Fact *root = facts_root(&j->cli->arena, FACT_OBJECT);
    j->where.width = cli_style(j->cli).width;
    j->where.source = j->args->source;
    fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
    cli_say_command(j->cli, root);
    say_where(j, root);
    fact_bool(root, "complete", 0, j->done == j->count);
    if (!compare || j->args->common.json) report_ladder_facts(root, j->answers, j->done, &j->where);
    if (compare) report_ladder_compare_facts(root, j->answers, j->done, &j->where);
    say_notes(j, root);
    code = cli_print(j->cli, root);
  }
  for (int i = 0; i < j->done && !code; i++) {
    const LadderAnswer *a = &j->answers[i];
    if (a->status) code = EXIT_FAILED;
    for (int r = 0; r < a->count && !code; r++) {
      const LadderRow *row = &a->rows[r];
      if (row->emulated && row->emu.status && row->emu.status != SOL_ERR_UNSUPPORTED) code = EXIT_FAILED;
      if (row->measured && row->gpu.status && row->gpu.status != SOL_ERR_UNSUPPORTED) code = EXIT_FAILED;
    }
  }
  return code;
}

static int list(Cli *cli) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  report_ladder_list_facts(root);
  fact_note(root, "sol ladder NAME runs one; all, ladders or sweeps run several.");
  return cli_print(cli, root);
}

static int run(Cli *cli, void *arguments) {
  LadderJob j = {.cli = cli, .args = arguments, .shown = {.cli = cli}};
  if (!j.args->common.positional_count && !cli_given(cli, "compare") && !cli_given(cli, "markdown"))
    return list(cli);
  int code = cli_ladder_plan(&j);
  if (!code) {
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    run_all(&j);
    bool counts = j.gpu && (j.args->compare || j.args->common.json) && !j.args->no_counters;
    if (counts) count_all(&j, LADDER_EXACT);
    if (counts) count_all(&j, LADDER_WAVES);
    if (counts) count_all(&j, LADDER_DRAM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    code = print_answer(&j);
  }
  cli_ladder_plan_free(&j);
  return code;
}

static const Option options[] = {
    DEVICE_OPTION(LadderArgs, device, false),
    {"shape", OPTION_TEXT, offsetof(LadderArgs, shape), "MxN", 0, 0, "sizes, in place of the ladder's own"},
    {"dtype", OPTION_DTYPE, offsetof(LadderArgs, dtype), "TYPE", 0, 0,
     "type of the data (default: the ladder's first)"},
    {"rung", OPTION_TEXTS, offsetof(LadderArgs, rungs), "NAME", 0, 0, "only this rung; may be given again"},
    {"backend", OPTION_CHOICE, offsetof(LadderArgs, backend), "WHERE", "auto|emu|cuda|both", 0,
     "predict, measure or both (default: both on a GPU, emu without, or for another)"},
    {"small", OPTION_FLAG, offsetof(LadderArgs, small), 0, 0, 0, "the small sizes that tests run"},
    {"workers", OPTION_COUNT, offsetof(LadderArgs, workers), "N", 0, 1,
     "threads of the emulator (default: one a core)"},
    {"no-check", OPTION_FLAG, offsetof(LadderArgs, no_check), 0, 0, 0,
     "do not compare results with the reference"},
    {"no-counters", OPTION_FLAG, offsetof(LadderArgs, no_counters), 0, 0, 0,
     "do not read the GPU's counters (--compare and --json read them)"},
    {"quick", OPTION_FLAG, offsetof(LadderArgs, quick), 0, 0, 0, "fewer rounds on a GPU"},
    {"compare", OPTION_FLAG, offsetof(LadderArgs, compare), 0, 0, 0,
     "compare predictions with measurements: this run's, or those of RESULTS.json"},
    {"stored", OPTION_FLAG, offsetof(LadderArgs, stored), 0, 0, 0,
     "run nothing: predictions too are those of RESULTS.json"},
    {"source", OPTION_FLAG, offsetof(LadderArgs, source), 0, 0, 0,
     "show each rung's code under what it changes"},
    {"markdown", OPTION_FLAG, offsetof(LadderArgs, markdown), 0, 0, 0,
     "print the page of docs/ladders, or docs/accuracy.md's table"},
    HTML_OPTION,
    SVG_OPTION,
    COMMON_OPTIONS};

static const char ladder_names[] = "all ladders sweeps "
#define LADDER(name) #name " "
#include "ladder/ladders.def"
    ;

const Command cmd_ladder = {
    .name = "ladder",
    .usage = "[NAME...|all|ladders|sweeps] [RESULTS.json] [options]",
    .summary = "a job from a naive kernel to the speed of a copy, one change a rung, predicted and measured",
    .details =
        "With no name: the list. Each rung is a different kernel for the same job; its result is checked, "
        "then it is counted and its time predicted on the emulator, or measured on a GPU over rotating sets "
        "of arrays; so on the emulator L2 is empty before each launch, and what a launch leaves dirty in it "
        "counts as written. Light is our own copy of the same bytes. A sweep varies one parameter of one kernel.\n\n"
        "RESULTS.json is what an earlier --json printed: --compare and --markdown take measured figures "
        "from it, so that no GPU is needed. Ctrl-C (or SIGTERM) stops after the current rung and shows the "
        "results so far. Exit code 1: a rung failed, or its result was wrong; the others are shown all the "
        "same.\n\n"
        "JSON: schema, command, date, device, gpu, driver, complete, ladders [{name, title, about, sweep, "
        "dims, shape, dtype, error, rungs [{rung, x, change, why, story, against, streamed, bytes, "
        "predicted {...}, measured {...}}]}]; predicted and measured {ran, checked, error, time_us, "
        "light_us, bytes_per_s, of_light, to_before, to_first, as_told, counts}. With --compare: comparison "
        "{rows [...], counts, counts_differ, dram_median, ...}.",
    .examples = "sol ladder                                  # the list\n"
                "sol ladder transpose --device h200          # one, predicted for a GPU\n"
                "sol ladder transpose --rung naive --rung tile --shape 4096x4096\n"
                "sol ladder all --json > now.json            # everything\n"
                "sol ladder all --compare now.json           # predictions against a stored run",
    .positional = ladder_names,
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(LadderArgs),
    .run = run,
};
