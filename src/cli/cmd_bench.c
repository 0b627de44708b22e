// sol bench: the library's operations timed, compared with our own copy of the same bytes.
#define _POSIX_C_SOURCE 200809L // isatty, gmtime_r
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/cli_bench.h"
#include "cli/cli_fleet.h"

enum { MAX_BASELINE = 64 << 20 };
static const double small_bytes = 2 << 20; // what the reference gets through in a moment

static volatile bool interrupted; // by ctrl-C, or a time limit: what was measured so far is shown
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = true;
}

static int open_context(BenchRun *r) {
  SolContextOptions options = {.backend = (SolBackend)r->args->backend, .workers = (int)r->args->workers};
  SolError err = {0};
  if (r->args->list) options.backend = SOL_BACKEND_CPU; // nothing is run
  if (options.backend == SOL_BACKEND_AUTO) {
    options.backend = SOL_BACKEND_CUDA;
    if (!sol_context_create(&options, &r->ctx, &err)) return EXIT_OK;
    sol_format(r->no_gpu, sizeof r->no_gpu, "%s", err.message);
    options.backend = SOL_BACKEND_CPU;
  }
  return sol_context_create(&options, &r->ctx, &err) ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

static int read_baseline(BenchRun *r) {
  if (!r->args->baseline) return EXIT_OK;
  SolError err = {0};
  SolJson root, cases;
  size_t length = 0;
  char *text = cli_read_file(r->args->baseline, MAX_BASELINE, &length, &err);
  if (!text) return cli_error(r->cli, &err, 0, 0, 0);
  int code = EXIT_OK;
  if (sol_json_check(text, length, &root, &err))
    code = cli_error(r->cli, &err, r->args->baseline, text, length);
  else if (!sol_json_get(root, "cases", &cases) || sol_json_kind(cases) != SOL_JSON_ARRAY)
    code =
        cli_fail(r->cli, "'%.120s' is not what sol bench --json prints: it has no cases", r->args->baseline);
  for (int i = 0; i < r->count && !code; i++) report_bench_before(&r->rows[i], root);
  r->has_baseline = !code;
  free(text);
  return code;
}

static void say_progress(const BenchRun *r, const BenchRow *row) {
  char shape[96] = "";
  if (row) report_bench_shape(row, shape, sizeof shape);
  if (row)
    cli_status(r->cli, "[%d/%d] %s %s %s", r->done + 1, r->count, row->def->name,
               sol_dtype_name(row->c.dtype), shape);
  else
    cli_status(r->cli, "%s", "");
}

static void failed(BenchRow *row, SolStatus status, const SolError *err) {
  row->status = status;
  sol_format(row->message, sizeof row->message, "%s", err->message);
}

static void run_case(BenchRun *r, BenchRow *row) {
  SolError err = {0};
  bool check =
      r->args->check == BENCH_CHECK_ALL ||
      (r->args->check == BENCH_CHECK_SMALL && row->cost.bytes_read + row->cost.bytes_written <= small_bytes);
  bool emu = !r->bench;
  if (check || emu) {
    SolStatus status = bench_once(r->ctx, row->def, &row->c, row->misalign, check, &row->worst,
                                  emu ? &row->counts : NULL, &err);
    row->wrong = status == SOL_ERR_RANGE;
    row->checked = check && (!status || row->wrong);
    row->counted = emu && row->counts.launches;
    if (status) failed(row, status, &err);
    if (status || emu) return;
  }
  SolStatus status = bench_case(r->bench, row->def, &row->c, row->misalign, &row->result, &err);
  row->timed = !status;
  if (status) failed(row, status, &err);
}

static int farther_from_light(const void *a, const void *b) {
  double x = report_bench_to_light(a), y = report_bench_to_light(b);
  return (x < y) - (x > y);
}

static void say_machine(const BenchRun *r, Fact *root) {
  SolBackend backend = sol_context_backend(r->ctx);
  fact_text(root, "backend", "backend", sol_backend_name(backend));
  if (backend == SOL_BACKEND_CUDA) {
    const SolDriverInfo *info = &r->bench->timer.info;
    fact_text(root, "gpu", "GPU", info->name[0] ? info->name : 0);
    fact_text(root, "uuid", 0, info->uuid[0] ? info->uuid : 0);
    fact_text(root, "driver", "driver", info->driver[0] ? info->driver : 0);
    fact_number(root, "cuda", 0, UNIT_PLAIN, BASIS_NONE, info->cuda);
    fact_number(root, "l2_bytes", 0, UNIT_SIZE, BASIS_NONE, (double)info->l2_bytes);
    fact_number(root, "launch_us", "host time of an empty kernel's launch", UNIT_US, BASIS_MEASURED,
                r->bench->timer.launch_us);
  } else if (backend == SOL_BACKEND_CPU)
    fact_number(root, "threads", "threads", UNIT_PLAIN, BASIS_NONE, sol_pool_count(r->ctx->pool));
}

static void say_notes(const BenchRun *r, Fact *root) {
  SolBackend backend = sol_context_backend(r->ctx);
  if (r->no_gpu[0]) fact_note(root, "No GPU here (%s).", r->no_gpu);
  if (backend == SOL_BACKEND_CPU)
    fact_note(root, "These are times of this machine's CPU. They say nothing about a GPU's.");
  if (backend == SOL_BACKEND_EMU)
    fact_note(root,
              "The emulator has no times: it counts the memory transactions of the GPU's kernels. Times "
              "need a GPU (--backend cuda).");
  if (backend == SOL_BACKEND_CUDA)
    fact_note(root,
              "Time: of a call in a CUDA graph, over rotating buffers of %.0f MB or more; median of %d. "
              "Light: our own copy of the same bytes in the same run. Spread: the middle half of the "
              "samples over the median.",
              r->bench->timer.footprint / 1e6, r->bench->timer.rounds);
  if (r->left_out && r->args->random)
    fact_note(root, "For %d of them no case of these sizes and types was found.", r->left_out);
  else if (r->left_out)
    fact_note(root, "%d larger cases were left out%s; name one with --shape.", r->left_out,
              r->args->quick ? " (--quick)" : "");
  if (r->done < r->count) fact_note(root, "Stopped after %d of %d cases.", r->done, r->count);
}

static int print_answer(BenchRun *r) {
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  cli_say_command(r->cli, root);
  say_machine(r, root);
  fact_bool(root, "complete", 0, r->done == r->count);
  if (r->args->random) { // in text all its digits, so that it can be given again
    fact_number(root, "seed", 0, UNIT_PLAIN, BASIS_NONE, (double)r->args->seed);
    fact_textf(root, 0, "seed", "%lld", (long long)r->args->seed);
  }
  if (r->args->against_light) qsort(r->rows, (size_t)r->done, sizeof *r->rows, farther_from_light);
  report_bench_rows(root, r->rows, r->done, r->has_baseline);
  report_bench_summary(root, r->rows, r->done, r->has_baseline);
  if (r->args->random) report_bench_distribution(root, r->rows, r->done);
  say_notes(r, root);
  int code = cli_print(r->cli, root);
  for (int i = 0; i < r->done && !code; i++) {
    if (r->rows[i].wrong) code = EXIT_PROGRAM;
  }
  for (int i = 0; i < r->done && !code; i++)
    if (r->rows[i].status) code = EXIT_FAILED;
  return code;
}

static int run_bench(BenchRun *r) {
  int code = cli_bench_check_args(r);
  if (!code) code = open_context(r);
  if (!code) code = cli_bench_list(r);
  if (!code) code = read_baseline(r);
  if (code) return code;
  if (r->args->list) return r->done = r->count, print_answer(r);
  if (sol_context_backend(r->ctx) != SOL_BACKEND_EMU) {
    SolError err = {0};
    r->bench = calloc(1, sizeof *r->bench);
    if (!r->bench) return cli_fail(r->cli, "out of memory");
    if (bench_open(r->bench, r->ctx, r->args->quick, &err)) return cli_error(r->cli, &err, 0, 0, 0);
    r->bench->timer.device_only = r->args->random;
    r->bench->places = r->args->random && sol_context_backend(r->ctx) == SOL_BACKEND_CUDA;
  }
  signal(SIGINT, on_interrupt);
  signal(SIGTERM, on_interrupt);
  for (; r->done < r->count && !interrupted; r->done++) {
    say_progress(r, &r->rows[r->done]);
    run_case(r, &r->rows[r->done]);
  }
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  say_progress(r, NULL);
  return print_answer(r);
}

static int run(Cli *cli, void *arguments) {
  BenchRun r = {.cli = cli, .args = arguments};
  if (r.args->fleet) return cli_fleet_same(cli);
  int code = run_bench(&r);
  if (r.bench) bench_close(r.bench);
  free(r.bench);
  free(r.rows);
  sol_context_destroy(r.ctx);
  return code;
}

static const Option options[] = {
    {"dtype", OPTION_TEXTS, offsetof(BenchArgs, dtypes), "TYPE,...", "fp32|fp16|bf16", 0,
     "input types (default bf16,fp32)"},
    {"shape", OPTION_TEXTS, offsetof(BenchArgs, shapes), "MxN", 0, 0,
     "a shape, in place of the operation's own list; may be given again"},
    {"option", OPTION_TEXT, offsetof(BenchArgs, option), "NAME", 0, 0,
     "an option of an operation, as the table names it, at every shape (default: the first; others at one)"},
    {"out-dtype", OPTION_DTYPE, offsetof(BenchArgs, out_dtype), "TYPE", 0, 0,
     "output type (default: the input's)"},
    {"weight-dtype", OPTION_DTYPE, offsetof(BenchArgs, weight_dtype), "TYPE", 0, 0,
     "type of weights and biases (default: the input's)"},
    {"misalign", OPTION_COUNT, offsetof(BenchArgs, misalign), "N", 0, 0,
     "every tensor starts N elements after an aligned address"},
    {"backend", OPTION_CHOICE, offsetof(BenchArgs, backend), "WHERE", "auto|cpu|emu|cuda", 0,
     "where to run: the GPU where there is one, else the CPU (default)"},
    {"workers", OPTION_COUNT, offsetof(BenchArgs, workers), "N", 0, 1,
     "threads of cpu and emu (default: one a core)"},
    {"check", OPTION_CHOICE, offsetof(BenchArgs, check), "WHICH", "small|all|none", 0,
     "cases whose results are compared with the reference first (default: small)"},
    {"quick", OPTION_FLAG, offsetof(BenchArgs, quick), 0, 0, 0,
     "cases up to 64 MiB, the first option of each operation, fewer rounds"},
    {"random", OPTION_COUNT, offsetof(BenchArgs, random), "N", 0, 1,
     "N cases drawn at random, operations in turn, in place of their own shapes"},
    {"seed", OPTION_COUNT, offsetof(BenchArgs, seed), "S", 0, 0, "what --random draws (default 0)"},
    {"min-bytes", OPTION_NUMBER, offsetof(BenchArgs, least_bytes), "BYTES", 0, 0,
     "--random: cases that move at least that much (64Mi)"},
    {"max-bytes", OPTION_NUMBER, offsetof(BenchArgs, most_bytes), "BYTES", 0, 0,
     "--random: at most that much (default: GPU 4Gi, CPU 16Mi, emulator 1Mi)"},
    {"list", OPTION_FLAG, offsetof(BenchArgs, list), 0, 0, 0, "--random: list the cases and run none"},
    {"against-light", OPTION_FLAG, offsetof(BenchArgs, against_light), 0, 0, 0, "farthest from light first"},
    {"baseline", OPTION_TEXT, offsetof(BenchArgs, baseline), "FILE", 0, 0,
     "an earlier --json: show what changed, and mark what changed beyond the spread"},
    FLEET_OPTION(BenchArgs, fleet),
    HTML_OPTION,
    SVG_OPTION,
    COMMON_OPTIONS};

static const char op_names[] =
#define OP(name, Args) #name " "
#include "ops/operations.def"
    ;

const Command cmd_bench = {
    .name = "bench",
    .usage = "[OP...] [--dtype TYPE,...] [--shape MxN]... [options]",
    .summary = "time the library's operations against our own copy of the same bytes",
    .details =
        "With no name: every operation, at its own list of shapes. Light is our copy kernel's time for the "
        "same bytes, read and written, in the same run; where rows are further apart than dense, or tensors not "
        "aligned, a second copy has such rows. The spread is the middle half of the samples over their "
        "median.\n\n"
        "On a GPU: device events around CUDA-graph replays, over rotating inputs and outputs larger than "
        "three times the L2 together. On the CPU: the wall clock. The emulator counts memory transactions "
        "and has no times. Ctrl-C (or SIGTERM) stops after the current case and shows the results so far. "
        "Exit code 4: a result is wrong.\n\n"
        "--random draws shapes, types, strides and options: rows and columns log-uniform from 1 to 2^22, a "
        "third of the widths those of real models, a third odd, a quarter of the cases with rows apart; gemm "
        "only where it is named. A case depends on the seed, its number and the operations named, on nothing else. Beside the table: "
        "geometric mean, 90th percentile and worst of time over light, and the worst ten by name.\n\n"
        "JSON: schema, command, date, backend, gpu, driver, cuda, l2_bytes, launch_us, complete, cases "
        "[{op, option, dtype, out_dtype, shape, bytes, time_us, bytes_per_s, light_us, to_light, "
        "rows_light_us, to_rows_light, spread, before_us, change, verdict, bytes_read, bytes_written, "
        "misalign, pad, weight_dtype, id_dtype, option_number, number, "
        "checked, worst_error, error, least_us, most_us, host_us, host_over_us, rounds, calls, "
        "sets, footprint_bytes}], summary {timed, failed, to_light, to_light_large, worst_large, "
        "beyond_light, host_over_us, ...}; with --random seed and distribution {cases, "
        "geometric_mean, p90, worst, within_1_05, beyond_1_1, worst_cases [...]}.",
    .examples = "sol bench                                   # everything\n"
                "sol bench rmsnorm softmax --dtype bf16      # two operations\n"
                "sol bench rmsnorm --shape 8192x4096 --shape 1x4096\n"
                "sol bench --random 200 --seed 7 --min-bytes 64Mi\n"
                "sol bench --json > now.json; sol bench --baseline now.json",
    .positional = op_names,
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(BenchArgs),
    .run = run,
};
