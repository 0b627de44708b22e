// sol occupancy: how many warps of a kernel an SM holds, what limits it and what would lift it.
#include <limits.h>

#include "base/text.h"
#include "cli/cli.h"
#include "sol/occupancy.h"

typedef struct OccupancyArgs {
  CommonArgs common;
  const char *device;
  int64_t threads, regs, smem;
  int sweep; // none, regs, threads, smem
} OccupancyArgs;

static const FactColumn columns[] = {{"change", FIT_CUT},  {"threads", 0},       {"registers", 0},
                                     {"shared memory", 0}, {"occupancy", 0},     {"limited by", FIT_CUT},
                                     {"warps per SM", 0},  {"blocks per SM", 0}, {0}};

static void kernel_facts(Fact *row, const SolKernelShape *k, bool labelled) {
  fact_number(row, "threads", labelled ? "threads" : 0, UNIT_PLAIN, BASIS_NONE, (double)k->threads);
  fact_number(row, "regs", labelled ? "registers" : 0, UNIT_PLAIN, BASIS_NONE, (double)k->regs);
  fact_number(row, "smem", labelled ? "shared memory" : 0, UNIT_SIZE, BASIS_NONE, (double)k->smem);
}

static void result_facts(Fact *row, const SolOccupancy *o) {
  fact_number(row, "blocks_per_sm", "blocks per SM", UNIT_PLAIN, BASIS_EXACT, o->blocks_per_sm);
  fact_number(row, "warps_per_sm", "warps per SM", UNIT_PLAIN, BASIS_EXACT, o->warps_per_sm);
  fact_number(row, "max_warps_per_sm", 0, UNIT_PLAIN, BASIS_EXACT, o->max_warps_per_sm);
  fact_number(row, "occupancy", "occupancy", UNIT_SHARE, BASIS_EXACT, o->occupancy);
  fact_text(row, "limiter", "limited by", sol_limiter_name(o->limiter));
}

static void limits(Fact *root, const SolOccupancy *o) {
  Fact *machine = fact_object(root, "blocks_by", 0);
  Fact *list = fact_list(root, 0, "Blocks per SM that each resource alone would allow");
  const struct {
    const char *key, *name;
    int blocks;
  } rows[] = {{"warps", "warp slots", o->blocks_by_warps},
              {"slots", "block slots", o->blocks_by_slots},
              {"regs", "registers", o->blocks_by_regs},
              {"smem", "shared memory", o->blocks_by_smem}};
  for (size_t i = 0; i < SOL_COUNT(rows); i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, "resource", rows[i].name);
    if (rows[i].blocks == INT_MAX) { // the kernel uses none of it
      fact_unknown(machine, rows[i].key, 0);
      fact_text(row, 0, "blocks", "no limit");
      continue;
    }
    fact_number(machine, rows[i].key, 0, UNIT_PLAIN, BASIS_NONE, rows[i].blocks);
    fact_number(row, 0, "blocks", UNIT_PLAIN, BASIS_NONE, rows[i].blocks);
  }
}

static void lift_facts(Fact *root, const SolDevice *d, const SolKernelShape *kernel) {
  SolLift lifts[SOL_MAX_LIFTS];
  int count = 0;
  if (sol_occupancy_lifts(d, kernel, lifts, &count, 0)) return;
  Fact *list = fact_list(root, "lifts", "Nearest changes that lift it");
  fact_columns(list, columns);
  for (int i = 0; i < count; i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "change", "change", lifts[i].input);
    kernel_facts(row, &lifts[i].kernel, true);
    result_facts(row, &lifts[i].after);
  }
  if (!count) fact_note(root, "No single change of registers, shared memory or block size lifts it further.");
}

static int one(Cli *cli, const OccupancyArgs *args, const SolDevice *d, const SolKernelShape *kernel) {
  SolOccupancy o;
  SolError err = {0};
  if (sol_occupancy(d, kernel, &o, &err)) return cli_error(cli, &err, 0, 0, 0);
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_title(root, "%lld threads per block on %s", (long long)args->threads, d->name);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "device", 0, d->id);
  kernel_facts(root, kernel, true);
  result_facts(root, &o);
  fact_number(root, "warps_per_block", 0, UNIT_PLAIN, BASIS_NONE, o.warps_per_block);
  fact_number(root, "regs_per_block", "registers per block, as allocated", UNIT_PLAIN, BASIS_EXACT,
              (double)o.regs_per_block);
  fact_number(root, "smem_per_block", "shared memory per block, as allocated", UNIT_SIZE, BASIS_EXACT,
              (double)o.smem_per_block);
  limits(root, &o);
  lift_facts(root, d, kernel);
  return cli_print(cli, root);
}

// Register counts in steps of 8 (the allocation unit divided among a warp's lanes), block sizes in warps,
// shared memory in sixteenths of the most a block may have.
static int sweep(Cli *cli, const OccupancyArgs *args, const SolDevice *d, SolKernelShape kernel) {
  int64_t first = 0, last = 0, step = 0;
  int64_t *input = &kernel.regs;
  if (args->sweep == 1) first = 16, last = 255, step = 8;
  if (args->sweep == 2)
    first = 32, last = (int64_t)d->max_threads_per_block.value, step = 32, input = &kernel.threads;
  if (args->sweep == 3) last = (int64_t)d->smem_per_block.value, step = last / 16, input = &kernel.smem;
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_title(root, "Occupancy on %s", d->name);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "device", 0, d->id);
  Fact *list = fact_list(root, "sweep", "");
  fact_columns(list, columns);
  for (int64_t v = first; v <= last; v = v < last && v + step > last ? last : v + step) {
    *input = v;
    Fact *row = fact_object(list, 0, 0);
    kernel_facts(row, &kernel, true);
    SolOccupancy o;
    SolError err = {0};
    if (!sol_occupancy(d, &kernel, &o, &err)) {
      result_facts(row, &o);
      continue;
    }
    if (err.status != SOL_ERR_ARGUMENT) return cli_error(cli, &err, 0, 0, 0);
    fact_text(row, "limiter", "limited by", "cannot launch");
  }
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
  return args->sweep ? sweep(cli, args, d, kernel) : one(cli, args, d, &kernel);
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
