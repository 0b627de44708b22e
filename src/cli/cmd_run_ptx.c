// sol run-ptx: one kernel by hand, on the emulator or a GPU; counts of every memory transaction.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"
#include "driver/args.h"
#include "report/counts.h"

typedef struct RunArgs {
  CommonArgs common;
  const char *kernel, *grid, *block, *cluster, *device;
  TextList args, save, show, check;
  int64_t smem, max_instructions, workers, top;
  double seconds;
  int backend, by;
  bool cooperative, keep_going, list;
} RunArgs;

enum { MAX_PTX = 1 << 30, MAX_ARGS = MAX_TEXTS };

// All that a run holds, so that it can be let go in one place.
typedef struct Run {
  Cli *cli;
  const RunArgs *args;
  const SolDevice *device;
  SolPtxSource sources[MAX_POSITIONAL];
  int source_count;
  SolDriver *driver;
  SolDriverModule *module;
  SolDriverKernel *kernel;
  SolKernelArg arg[MAX_ARGS];
  uint8_t *params;
  SolDriverLaunch launch;
  SolEmuLaunch emu;
  SolEmuResult result;
  double seconds;
} Run;

// The one thing a signal handler may touch. Ctrl-C ends the launch, and the counts so far are shown.
static volatile bool interrupted;
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = true;
}

static void let_go(Run *r) {
  sol_emu_result_free(&r->result);
  sol_driver_close(r->driver);
  free(r->params);
  for (int i = 0; i < r->source_count; i++) free((char *)(uintptr_t)r->sources[i].text);
}

// An error in a PTX text is shown with its line; with several texts the message names the one concerned.
static int ptx_error(Run *r, const SolError *err) {
  for (int i = 0; i < r->source_count; i++) {
    const SolPtxSource *s = &r->sources[i];
    bool named = strncmp(err->message, s->name, strlen(s->name)) == 0;
    if (err->line > 0 && (r->source_count == 1 || named))
      return cli_error(r->cli, err, r->source_count == 1 ? s->name : 0, s->text, s->length);
  }
  return cli_error(r->cli, err, 0, 0, 0);
}

static int read_sources(Run *r) {
  const CommonArgs *common = &r->args->common;
  if (!common->positional_count) return cli_fail(r->cli, "name a PTX file");
  for (int i = 0; i < common->positional_count; i++) {
    SolError err = {0};
    size_t length = 0;
    char *text = cli_read_file(common->positional[i], MAX_PTX, &length, &err);
    if (!text) return cli_error(r->cli, &err, 0, 0, 0);
    r->sources[r->source_count++] = (SolPtxSource){common->positional[i], text, length};
  }
  return EXIT_OK;
}

// "32,1024" or "32x1024": up to three counts, the others 1.
static int parse_dims(Cli *cli, const char *option, const char *text, uint32_t out[3]) {
  char copy[64];
  sol_format(copy, sizeof copy, "%.60s", text);
  for (char *p = copy; *p; p++)
    if (*p == ',') *p = 'x';
  int64_t dims[3] = {1, 1, 1};
  int rank = 0;
  SolError err = {0};
  if (sol_parse_shape(copy, strlen(copy), 3, dims, &rank, &err))
    return cli_error(cli, &err, option, text, strlen(text));
  for (int i = 0; i < 3; i++) {
    if (i < rank && dims[i] > UINT32_MAX) return cli_fail(cli, "%s: larger than a launch can be", option);
    out[i] = i < rank ? (uint32_t)dims[i] : 1;
  }
  return EXIT_OK;
}

static int parse_checks(Run *r) {
  static const struct {
    const char *name;
    unsigned bit;
  } checks[] = {{"memory", 0},
                {"init", SOL_EMU_CHECK_INIT},
                {"race", SOL_EMU_CHECK_RACE},
                {"sync", SOL_EMU_CHECK_SYNC}};
  for (int i = 0; i < r->args->check.count; i++) {
    const char *p = r->args->check.text[i];
    for (size_t n = strcspn(p, ",|"); *p; p += n + (p[n] != 0), n = strcspn(p, ",|")) {
      size_t k = 0;
      while (k < SOL_COUNT(checks) && (strlen(checks[k].name) != n || strncmp(checks[k].name, p, n) != 0))
        k++;
      if (k == SOL_COUNT(checks))
        return cli_fail(r->cli, "--check: '%.*s' is none of memory, init, race, sync", (int)n, p);
      r->emu.checks |= checks[k].bit;
    }
  }
  return EXIT_OK;
}

static int list_kernels(Run *r) {
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  const SolPtxModule *ptx = sol_driver_ptx(r->module);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  Fact *list = fact_list(root, "kernels", "Kernels");
  for (uint32_t i = 0; i < ptx->function_count; i++) {
    const PtxFunction *f = &ptx->functions[i];
    if (!f->entry) continue;
    Fact *row = fact_object(list, 0, 0);
    SolBuffer params = {0};
    for (uint32_t p = 0; p < f->param_count; p++) {
      const PtxSymbol *s = &ptx->symbols[f->params[p]];
      uint64_t one = (uint64_t)sol_ptx_type_bits((PtxType)s->type) / 8;
      sol_buffer_format(&params, "%s%s", p ? ", " : "", sol_ptx_type_name((PtxType)s->type));
      if (one && s->size != one) sol_buffer_format(&params, "[%llu]", (unsigned long long)(s->size / one));
    }
    fact_text(row, "name", "kernel", f->name);
    fact_text(row, "params", "parameters", params.text ? params.text : "");
    fact_number(row, "instructions", "PTX instructions", UNIT_PLAIN, BASIS_NONE, f->inst_count);
    fact_number(row, "shared_bytes", "shared memory", UNIT_SIZE, BASIS_NONE, (double)f->shared_bytes);
    sol_buffer_free(&params);
  }
  return cli_print(r->cli, root);
}

static int pick_kernel(Run *r) {
  const SolPtxModule *ptx = sol_driver_ptx(r->module);
  const char *name = r->args->kernel, *first = NULL;
  int count = 0;
  for (uint32_t i = 0; i < ptx->function_count; i++)
    if (ptx->functions[i].entry && count++ == 0) first = ptx->functions[i].name;
  if (!first) return cli_fail(r->cli, "there is no kernel in it");
  if (!name && count > 1)
    return cli_fail(r->cli, "there are %d kernels in it; name one with --kernel (--list shows them)", count);
  if (!name) name = first;
  SolError err = {0};
  return sol_driver_kernel(r->module, name, &r->kernel, &err) ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

static int make_buffer(Run *r, int i) {
  SolKernelArg *a = &r->arg[i];
  SolError err = {0};
  uint64_t seed = (uint64_t)i + 1;
  size_t length = (size_t)a->bytes;
  char path[256];
  void *bytes;
  if (a->init == SOL_INIT_FILE) {
    sol_format(path, sizeof path, "%.*s", (int)(a->rest_length < 255 ? a->rest_length : 255), a->rest);
    bytes = cli_read_file(path, (size_t)a->bytes, &length, &err);
    if (bytes && length != a->bytes) {
      free(bytes);
      return cli_fail(r->cli, "'%.80s' has %zu bytes, the buffer %llu", path, length,
                      (unsigned long long)a->bytes);
    }
  } else {
    bytes = malloc(length ? length : 1);
    if (bytes)
      sol_arg_fill(a, seed, bytes);
    else
      sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory");
  }
  if (!bytes) return cli_error(r->cli, &err, 0, 0, 0);
  char label[48];
  if (a->name[0])
    sol_format(label, sizeof label, "%s", a->name);
  else
    sol_format(label, sizeof label, "argument %d", i + 1);
  SolStatus status = sol_driver_alloc(r->driver, a->bytes, label, &a->address, &err);
  if (!status) status = sol_driver_write(r->driver, a->address, bytes, a->bytes, &err);
  free(bytes);
  return status ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

static int make_args(Run *r) {
  const PtxFunction *f = sol_driver_function(r->kernel);
  const SolPtxModule *ptx = sol_driver_ptx(r->module);
  const TextList *given = &r->args->args;
  if ((uint32_t)given->count != f->param_count)
    return cli_fail(r->cli, "%s takes %u argument%s, %d given (--arg)", f->name, f->param_count,
                    f->param_count == 1 ? "" : "s", given->count);
  r->params = calloc(1, (size_t)f->param_size + 1);
  if (!r->params) return cli_fail(r->cli, "out of memory");
  for (int i = 0; i < given->count; i++) {
    SolError err = {0};
    const char *text = given->text[i];
    if (sol_arg_parse(text, strlen(text), &r->arg[i], &err))
      return cli_error(r->cli, &err, "--arg", text, strlen(text));
    if (r->arg[i].buffer) {
      int code = make_buffer(r, i);
      if (code) return code;
    }
    if (sol_arg_pack(f, ptx, i, &r->arg[i], r->params, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  }
  r->launch.params = r->params;
  r->launch.param_bytes = f->param_size;
  return EXIT_OK;
}

static void print_text(void *ctx, const char *text, size_t length) {
  (void)ctx;
  fwrite(text, 1, length, stderr); // the program's own output, apart from the answer
}

// ---- the answer ----

static const char *end_text(SolEmuEnd end) {
  switch (end) {
  case SOL_EMU_DONE: return "done";
  case SOL_EMU_FAULT: return "fault";
  case SOL_EMU_INSTRUCTION_LIMIT: return "instruction limit";
  case SOL_EMU_TIME_LIMIT: return "time limit";
  case SOL_EMU_INTERRUPTED: return "interrupted";
  }
  return "?";
}

static void dims_text(const uint32_t d[3], char out[48]) {
  sol_format(out, 48, "%u,%u,%u", d[0], d[1], d[2]);
}

// The first elements of the buffers named with --show.
static int show_buffers(Run *r, Fact *root) {
  Fact *list = r->args->show.count ? fact_object(root, "buffers", "Buffers") : NULL;
  for (int s = 0; s < r->args->show.count; s++) {
    int i = 0;
    while (i < r->args->args.count &&
           (!r->arg[i].buffer || strcmp(r->arg[i].name, r->args->show.text[s]) != 0))
      i++;
    if (i == r->args->args.count)
      return cli_fail(r->cli, "--show: no buffer is named '%.60s'", r->args->show.text[s]);
    const SolKernelArg *a = &r->arg[i];
    uint64_t count = a->count < 16 ? a->count : 16, width = a->bytes / a->count;
    uint8_t bytes[16 * 8];
    SolError err = {0};
    if (sol_driver_read(r->driver, bytes, a->address, count * width, &err))
      return cli_error(r->cli, &err, 0, 0, 0);
    SolBuffer text = {0};
    for (uint64_t k = 0; k < count; k++) {
      char element[32];
      sol_arg_format(a->type, bytes + k * width, element, sizeof element);
      sol_buffer_format(&text, "%s%s", k ? " " : "", element);
    }
    fact_textf(list, a->name, a->name, "%s%s", text.text ? text.text : "", count < a->count ? " ..." : "");
    sol_buffer_free(&text);
  }
  return EXIT_OK;
}

static int save_buffers(Run *r) {
  for (int s = 0; s < r->args->save.count; s++) {
    const char *text = r->args->save.text[s], *equals = strchr(text, '=');
    int i = 0;
    size_t n = equals ? (size_t)(equals - text) : 0;
    while (i < r->args->args.count && (strlen(r->arg[i].name) != n || strncmp(r->arg[i].name, text, n) != 0))
      i++;
    if (!equals || !n || i == r->args->args.count)
      return cli_fail(r->cli, "--save: expected NAME=FILE with a buffer's name, not '%.60s'", text);
    SolError err = {0};
    void *bytes = malloc((size_t)r->arg[i].bytes);
    FILE *f = NULL;
    if (!bytes)
      sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory");
    else if (!sol_driver_read(r->driver, bytes, r->arg[i].address, r->arg[i].bytes, &err))
      f = fopen(equals + 1, "wb");
    bool written = f && fwrite(bytes, 1, (size_t)r->arg[i].bytes, f) == r->arg[i].bytes;
    if (f && fclose(f)) written = false;
    free(bytes);
    if (!written && !err.status) sol_fail(&err, SOL_ERR_IO, "cannot write '%.120s'", equals + 1);
    if (err.status) return cli_error(r->cli, &err, 0, 0, 0);
  }
  return EXIT_OK;
}

static int print_answer(Run *r) {
  const RunArgs *args = r->args;
  bool emu = args->backend == 0;
  const SolEmuResult *result = &r->result;
  char grid[48], block[48];
  dims_text(r->launch.grid, grid);
  dims_text(r->launch.block, block);
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  const char *name = sol_driver_function(r->kernel)->name;
  fact_title(root, "%s, grid %s, block %s on %s%s", name, grid, block,
             emu ? "the emulator as " : "this machine's GPU", emu ? r->device->name : "");
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "kernel", 0, name);
  fact_text(root, "backend", 0, emu ? "emu" : "cuda");
  if (!emu) {
    fact_number(root, "time_us", "time between events, launch included", UNIT_US, BASIS_MEASURED,
                r->seconds * 1e6);
  } else {
    fact_text(root, "device", 0, r->device->id);
    fact_text(root, "end", "ended", end_text(result->end));
    fact_number(root, "blocks", "blocks run", UNIT_PLAIN, BASIS_EXACT, (double)result->blocks);
    fact_number(root, "warp_instructions", "warp instructions (PTX)", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.executions);
    fact_number(root, "thread_instructions", "thread instructions (PTX)", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.lanes);
    fact_number(root, "divergent_branches", "branches whose lanes parted", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.divergent);
    fact_number(root, "dram_read_bytes", "DRAM read", UNIT_BYTES, BASIS_MODELLED,
                (double)result->total.dram_read);
    fact_number(root, "dram_write_bytes", "DRAM written", UNIT_BYTES, BASIS_MODELLED,
                (double)result->total.dram_write);
    counts_by_kind(root, result);
    size_t most = args->top ? (size_t)args->top : args->common.json ? SIZE_MAX : 20;
    if (args->by) counts_by_place(root, sol_driver_ptx(r->module), result, args->by == 1, most);
    counts_findings(root, result);
  }
  int code = show_buffers(r, root);
  if (!code) code = cli_print(r->cli, root);
  if (!code) code = save_buffers(r);
  if (!code && emu && (result->end != SOL_EMU_DONE || result->finding_count)) code = EXIT_PROGRAM;
  return code;
}

static int run_kernel(Run *r) {
  const RunArgs *args = r->args;
  int code = read_sources(r), count = 0;
  if (!code) code = cli_devices(r->cli, args->device, &r->device, 1, &count);
  if (!code) code = parse_checks(r);
  if (code) return code;
  SolError err = {0};
  SolDriverOptions options = {
      .backend = (SolBackend)args->backend, .device = r->device, .workers = (int)args->workers};
  if (sol_driver_open(&options, &r->driver, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  if (sol_driver_load(r->driver, r->sources, r->source_count, &r->module, &err)) return ptx_error(r, &err);
  if (args->list) return list_kernels(r);
  if (!args->grid || !args->block) return cli_fail(r->cli, "--grid and --block are needed");
  code = parse_dims(r->cli, "--grid", args->grid, r->launch.grid);
  if (!code) code = parse_dims(r->cli, "--block", args->block, r->launch.block);
  if (!code && args->cluster) code = parse_dims(r->cli, "--cluster", args->cluster, r->launch.cluster);
  if (!code) code = pick_kernel(r);
  if (!code) code = make_args(r);
  if (code) return code;
  r->launch.kernel = r->kernel;
  r->launch.dynamic_shared = (uint64_t)args->smem;
  r->launch.cooperative = args->cooperative;
  r->emu.max_instructions = (uint64_t)args->max_instructions;
  r->emu.max_seconds = args->seconds;
  r->emu.keep_going = args->keep_going;
  r->emu.interrupt = &interrupted;
  r->emu.print = print_text;
  r->launch.emu = &r->emu;
  signal(SIGINT, on_interrupt);
  SolStatus status = sol_driver_launch(r->driver, &r->launch, &r->result, &r->seconds, &err);
  signal(SIGINT, SIG_DFL);
  return status ? cli_error(r->cli, &err, 0, 0, 0) : print_answer(r);
}

static int run(Cli *cli, void *arguments) {
  Run *r = calloc(1, sizeof *r);
  if (!r) return cli_fail(cli, "out of memory");
  r->cli = cli;
  r->args = arguments;
  int code = run_kernel(r);
  let_go(r);
  free(r);
  return code;
}

static const Option options[] = {
    {"kernel", OPTION_TEXT, offsetof(RunArgs, kernel), "NAME", 0, 0,
     "the kernel; may be left out where there is one"},
    {"grid", OPTION_TEXT, offsetof(RunArgs, grid), "X,Y,Z", 0, 0, "blocks"},
    {"block", OPTION_TEXT, offsetof(RunArgs, block), "X,Y,Z", 0, 0, "threads per block"},
    {"cluster", OPTION_TEXT, offsetof(RunArgs, cluster), "X,Y,Z", 0, 0, "blocks per cluster"},
    {"arg", OPTION_TEXTS, offsetof(RunArgs, args), "ARG", 0, 0, "an argument, in order: see below"},
    {"smem", OPTION_COUNT, offsetof(RunArgs, smem), "BYTES", 0, 0, "dynamic shared memory"},
    {"cooperative", OPTION_FLAG, offsetof(RunArgs, cooperative), 0, 0, 0,
     "all blocks resident: grid-wide barriers work"},
    {"backend", OPTION_CHOICE, offsetof(RunArgs, backend), "WHERE", "emu|cuda", 0,
     "the emulator, or this machine's GPU"},
    DEVICE_OPTION(RunArgs, device, 0),
    {"check", OPTION_TEXTS, offsetof(RunArgs, check), "LIST", "memory|init|race|sync", 0,
     "look for more faults: memory,init,race,sync (memory is always on)"},
    {"keep-going", OPTION_FLAG, offsetof(RunArgs, keep_going), 0, 0, 0, "go on after a bad access"},
    {"max-instructions", OPTION_COUNT, offsetof(RunArgs, max_instructions), "N", 0, 1,
     "stop after so many warp instructions"},
    {"seconds", OPTION_NUMBER, offsetof(RunArgs, seconds), "S", 0, 0, "stop after so long"},
    {"workers", OPTION_COUNT, offsetof(RunArgs, workers), "N", 0, 1,
     "threads that emulate (default: one a core)"},
    {"by", OPTION_CHOICE, offsetof(RunArgs, by), "WHAT", "kind|line|instruction", 0,
     "a table by source line or PTX instruction as well"},
    {"top", OPTION_COUNT, offsetof(RunArgs, top), "N", 0, 1, "rows of that table (default 20; JSON: all)"},
    {"show", OPTION_TEXTS, offsetof(RunArgs, show), "NAME", 0, 0, "print a buffer's first elements"},
    {"save", OPTION_TEXTS, offsetof(RunArgs, save), "NAME=FILE", 0, 0, "write a buffer to a file, raw"},
    {"list", OPTION_FLAG, offsetof(RunArgs, list), 0, 0, 0, "list the kernels and their parameters"},
    COMMON_OPTIONS};

const Command cmd_run_ptx = {
    .name = "run-ptx",
    .usage = "FILE.ptx... --kernel NAME --grid X,Y,Z --block X,Y,Z [--arg ARG]... [options]",
    .summary = "run one kernel by hand on the emulator (or a GPU) and count its memory transactions",
    .details =
        "Arguments: [NAME:]TYPE[COUNT][=INIT] is a buffer: f32[8192*1024], out:f32[1Mi], "
        "ids:s32[64]=random:100.\n"
        "TYPE: f16 bf16 f32 f64 u8 u16 u32 u64 s8 s16 s32 s64. INIT: random (default), random:N, iota, zero, "
        "a\n"
        "number, @FILE. A buffer named out... starts as zero. [TYPE:]VALUE is a number; hex:BYTES a "
        "structure.\n"
        "\n"
        "Requests, sectors and wavefronts are exact for the PTX; cache hits and DRAM bytes are modelled. "
        "What the\n"
        "kernel prints goes to standard error. Exit code 4: the kernel faulted, hung or was stopped.\n"
        "\n"
        "JSON: schema, kernel, backend, device, end, blocks, warp_instructions, thread_instructions,\n"
        "dram_read_bytes, dram_write_bytes, memory [{kind, executions, requests, sectors, ideal_sectors,\n"
        "shared_requests, wavefronts, ideal_wavefronts, ...}], lines or instructions [...], findings [...].",
    .examples = "sol run-ptx examples/scale.ptx --list\n"
                "sol run-ptx examples/scale.ptx --kernel contiguous_scale --grid 32 --block 256 --arg "
                "out:f32[8192] --arg f32[8192] --arg f32[64] --arg 8192 --arg 64\n"
                "sol run-ptx examples/scale.ptx --kernel column_scale --grid 1,64 --block 128 --by line "
                "--show out --arg out:f32[128*64] --arg f32[128*64]=iota --arg f32[64]=2 --arg 128 --arg 64",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(RunArgs),
    .run = run,
};
