// sol run-ptx: launches one kernel on the emulator or a GPU; counts every memory transaction.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/kernel.h"
#include "report/report_counts.h"

typedef struct RunArgs {
  CommonArgs common;
  KernelArgs kernel;
  const char *device;
  TextList show, check;
  int64_t top;
  int backend, by;
  bool keep_going, list;
} RunArgs;

typedef struct Run {
  Cli *cli;
  const RunArgs *args;
  const SolDevice *device;
  KernelRun kernel;
} Run;

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
      r->kernel.emu.checks |= checks[k].bit;
    }
  }
  return EXIT_OK;
}

static int list_kernels(Run *r) {
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  const SolPtxModule *ptx = sol_driver_ptx(r->kernel.module);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  Fact *list = fact_list(root, "kernels", "Kernels");
  static const FactColumn columns[] = {
      {"kernel", FIT_CUT}, {"parameters", FIT_WRAP}, {"PTX instructions", 0}, {"shared memory", 0}, {0}};
  fact_columns(list, columns);
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

// ---- the answer ----

static void dims_text(const uint32_t d[3], char out[48]) {
  sol_format(out, 48, "%u,%u,%u", d[0], d[1], d[2]);
}

// The first elements of the buffers named with --show.
static int show_buffers(Run *r, Fact *root) {
  Fact *list = r->args->show.count ? fact_object(root, "buffers", "Buffers") : NULL;
  for (int s = 0; s < r->args->show.count; s++) {
    const char *name = r->args->show.text[s];
    const SolKernelArg *a = cli_kernel_buffer(&r->kernel, name, strlen(name));
    if (!a) return cli_fail(r->cli, "--show: no buffer is named '%.60s'", name);
    uint64_t count = a->count < 16 ? a->count : 16, width = a->bytes / a->count;
    uint8_t bytes[16 * 8];
    SolError err = {0};
    if (sol_driver_read(r->kernel.driver, bytes, a->address, count * width, &err))
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

static int print_answer(Run *r) {
  const RunArgs *args = r->args;
  bool emu = args->backend == 0;
  const SolEmuResult *result = &r->kernel.result;
  char grid[48], block[48];
  dims_text(r->kernel.launch.grid, grid);
  dims_text(r->kernel.launch.block, block);
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  const char *name = sol_driver_function(r->kernel.kernel)->name;
  fact_title(root, "%s, grid %s, block %s on %s%s", name, grid, block,
             emu ? "the emulator as " : "this machine's GPU", emu ? r->device->name : "");
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "kernel", 0, name);
  fact_text(root, "backend", 0, emu ? "emu" : "cuda");
  if (!emu) {
    fact_number(root, "time_us", "time between events, launch included", UNIT_US, BASIS_MEASURED,
                r->kernel.seconds * 1e6);
  } else {
    fact_text(root, "device", 0, r->device->id);
    fact_text(root, "end", "ended", cli_kernel_end_text(result->end));
    fact_number(root, "blocks", "blocks run", UNIT_PLAIN, BASIS_EXACT, (double)result->blocks);
    fact_number(root, "warp_instructions", "warp instructions (PTX)", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.executions);
    fact_number(root, "thread_instructions", "thread instructions (PTX)", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.lanes);
    fact_number(root, "divergent_branches", "divergent branches", UNIT_PLAIN, BASIS_EXACT,
                (double)result->total.divergent);
    fact_number(root, "dram_read_bytes", "DRAM read", UNIT_BYTES, BASIS_MODELLED,
                (double)result->total.dram_read);
    fact_number(root, "dram_write_bytes", "DRAM written", UNIT_BYTES, BASIS_MODELLED,
                (double)result->total.dram_write);
    report_counts_by_kind(root, result);
    size_t most = args->top ? (size_t)args->top : args->common.json ? SIZE_MAX : 20;
    if (args->by) report_counts_by_place(root, sol_driver_ptx(r->kernel.module), result, args->by == 1, most);
    report_counts_findings(root, result);
  }
  int code = show_buffers(r, root);
  if (!code) code = cli_print(r->cli, root);
  if (!code) code = cli_kernel_save(&r->kernel);
  if (!code && emu && (result->end != SOL_EMU_DONE || result->finding_count)) code = EXIT_PROGRAM;
  return code;
}

static int run_kernel(Run *r) {
  const RunArgs *args = r->args;
  KernelRun *k = &r->kernel;
  int count = 0;
  if (!args->common.positional_count) return cli_fail(r->cli, "name a PTX file");
  int code = cli_kernel_read(k, args->common.positional, args->common.positional_count);
  if (!code) code = cli_devices(r->cli, args->device, &r->device, 1, &count);
  if (!code) code = parse_checks(r);
  if (!code) code = cli_kernel_open(k, (SolBackend)args->backend, r->device);
  if (!code && args->list) return list_kernels(r);
  if (!code) code = cli_kernel_geometry(k, false);
  if (!code) code = cli_kernel_pick(k);
  if (!code) code = cli_kernel_make_args(k);
  k->emu.keep_going = args->keep_going;
  if (!code) code = cli_kernel_launch(k);
  return code ? code : print_answer(r);
}

static int run(Cli *cli, void *arguments) {
  Run *r = calloc(1, sizeof *r);
  if (!r) return cli_fail(cli, "out of memory");
  r->cli = cli;
  r->args = arguments;
  r->kernel.cli = cli;
  r->kernel.args = &r->args->kernel;
  int code = run_kernel(r);
  cli_kernel_close(&r->kernel);
  free(r);
  return code;
}

static const Option options[] = {
    KERNEL_OPTIONS(RunArgs, kernel),
    {"backend", OPTION_CHOICE, offsetof(RunArgs, backend), "WHERE", "emu|cuda", 0,
     "the emulator, or this machine's GPU"},
    DEVICE_OPTION(RunArgs, device, 0),
    {"check", OPTION_TEXTS, offsetof(RunArgs, check), "LIST", "memory|init|race|sync", 0,
     "check for more faults: memory,init,race,sync (memory is always on)"},
    {"keep-going", OPTION_FLAG, offsetof(RunArgs, keep_going), 0, 0, 0, "continue after a bad access"},
    {"by", OPTION_CHOICE, offsetof(RunArgs, by), "WHAT", "kind|line|instruction", 0,
     "a table by source line or PTX instruction as well"},
    {"top", OPTION_COUNT, offsetof(RunArgs, top), "N", 0, 1, "rows of that table (default 20; JSON: all)"},
    {"show", OPTION_TEXTS, offsetof(RunArgs, show), "NAME", 0, 0, "print a buffer's first elements"},
    {"list", OPTION_FLAG, offsetof(RunArgs, list), 0, 0, 0, "list the kernels and their parameters"},
    COMMON_OPTIONS};

const Command cmd_run_ptx = {
    .name = "run-ptx",
    .usage = "FILE.ptx... --kernel NAME --grid X,Y,Z --block X,Y,Z [--arg ARG]... [options]",
    .summary = "run one kernel of a PTX file on the emulator (or a GPU) and count its memory transactions",
    .details = KERNEL_ARG_HELP
    "\n"
    "Requests, sectors and wavefronts are exact for the PTX; cache hits and DRAM bytes are modelled: "
    "caches are empty at the start, and what stays dirty in L2 is not written. "
    "What the kernel prints goes to standard error. Exit code 4: the kernel faulted, hung or was "
    "stopped.\n\n"
    "JSON: schema, kernel, backend, device, end, blocks, warp_instructions, thread_instructions, "
    "dram_read_bytes, dram_write_bytes, memory [{kind, executions, requests, sectors, ideal_sectors, "
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
