// sol occupancy: how many warps of a kernel an SM holds, what limits it and what would lift it.
#include "base/text.h"
#include "cli/cli.h"
#include "report/report_occupancy.h"

typedef struct OccupancyArgs {
  CommonArgs common;
  const char *device;
  int64_t threads, regs, smem;
  int sweep; // none, regs, threads, smem
} OccupancyArgs;

static int one(Cli *cli, const SolDevice *d, const SolKernelShape *kernel) {
  SolError err = {0};
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  if (report_occupancy_facts(root, d, kernel, &err)) return cli_error(cli, &err, 0, 0, 0);
  return cli_print(cli, root);
}

static int sweep(Cli *cli, const OccupancyArgs *args, const SolDevice *d, SolKernelShape kernel) {
  SolError err = {0};
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_title(root, "Occupancy on %s", d->name);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "device", 0, d->id);
  if (report_occupancy_sweep(fact_list(root, "sweep", ""), d, kernel, (OccupancySweep)args->sweep, &err))
    return cli_error(cli, &err, 0, 0, 0);
  return cli_print(cli, root);
}

static int run(Cli *cli, void *arguments) {
  OccupancyArgs *args = arguments;
  if (args->common.positional_count)
    return cli_fail(cli, "unexpected argument '%.60s'", args->common.positional[0]);
  if (!cli_given(cli, "threads")) {
    if (!args->sweep) return cli_fail(cli, "--threads is needed");
    args->threads = 256;
  }
  const SolDevice *d;
  int count;
  int code = cli_devices(cli, args->device, &d, 1, &count);
  if (code) return code;
  SolKernelShape kernel = {args->threads, args->regs, args->smem};
  return args->sweep ? sweep(cli, args, d, kernel) : one(cli, d, &kernel);
}

static const Option options[] = {
    {"threads", OPTION_COUNT, offsetof(OccupancyArgs, threads), "N", 0, 1, "threads per block"},
    {"regs", OPTION_COUNT, offsetof(OccupancyArgs, regs), "N", 0, 0,
     "registers per thread, as ptxas -v prints them"},
    {"smem", OPTION_COUNT, offsetof(OccupancyArgs, smem), "BYTES", 0, 0,
     "shared memory per block, static and dynamic: 48Ki"},
    DEVICE_OPTION(OccupancyArgs, device, 0),
    {"sweep", OPTION_CHOICE, offsetof(OccupancyArgs, sweep), "INPUT", "none|regs|threads|smem", 0,
     "a table over one input, the others fixed"},
    COMMON_OPTIONS};

const Command cmd_occupancy = {
    .name = "occupancy",
    .usage = "--threads N [--regs N] [--smem BYTES] [--device NAME] [--sweep INPUT]",
    .summary = "blocks and warps per SM, what limits them and what would lift them",
    .details =
        "Counts as NVIDIA's own calculator (cuda_occupancy.h) does, allocation granularities included.\n\n"
        "JSON: schema, device, threads, regs, smem, blocks_per_sm, warps_per_sm, max_warps_per_sm, "
        "occupancy (0 to 1), limiter (warps|blocks|registers|shared memory), blocks_by {warps, slots, regs, "
        "smem}, lifts [...]; with --sweep: sweep [...].",
    .examples = "sol occupancy --threads 256 --regs 64 --smem 0 --device a100\n"
                "sol occupancy --threads 256 --sweep regs --device a100   # the table by registers\n"
                "sol occupancy --regs 40 --smem 16Ki --sweep threads      # the table by block size",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(OccupancyArgs),
    .run = run,
};
