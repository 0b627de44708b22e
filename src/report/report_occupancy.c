// The answers of sol occupancy, for the command line and for the page.
#include "report/report_occupancy.h"

#include <limits.h>

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

SolStatus report_occupancy_facts(Fact *root, const SolDevice *d, const SolKernelShape *kernel,
                                 SolError *err) {
  SolOccupancy o;
  SolStatus status = sol_occupancy(d, kernel, &o, err);
  if (status) return status;
  fact_title(root, "%lld threads per block on %s", (long long)kernel->threads, d->name);
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
  return SOL_OK;
}

// Register counts in steps of 8 (the allocation unit divided among a warp's lanes), block sizes in warps,
// shared memory in sixteenths of the most a block may have.
typedef struct Steps {
  int64_t first, last, step;
} Steps;

static Steps steps_of(const SolDevice *d, OccupancySweep input) {
  int64_t threads = (int64_t)d->max_threads_per_block.value, smem = (int64_t)d->smem_per_block.value;
  return input == SWEEP_REGS      ? (Steps){16, 255, 8}
         : input == SWEEP_THREADS ? (Steps){32, threads, 32}
                                  : (Steps){0, smem, smem / 16};
}

SolStatus report_occupancy_sweep(Fact *list, const SolDevice *d, SolKernelShape kernel, OccupancySweep input,
                                 SolError *err) {
  Steps s = steps_of(d, input);
  int64_t *value = input == SWEEP_REGS      ? &kernel.regs
                   : input == SWEEP_THREADS ? &kernel.threads
                                            : &kernel.smem;
  fact_columns(list, columns);
  for (int64_t v = s.first; v <= s.last && s.step > 0;
       v = v < s.last && v + s.step > s.last ? s.last : v + s.step) {
    SolOccupancy o;
    SolError why = {0};
    Fact *row = fact_object(list, 0, 0);
    *value = v;
    kernel_facts(row, &kernel, true);
    if (!sol_occupancy(d, &kernel, &o, &why)) {
      result_facts(row, &o);
      continue;
    }
    if (why.status != SOL_ERR_ARGUMENT) return *err = why, why.status;
    fact_text(row, "limiter", "limited by", "cannot launch");
  }
  return SOL_OK;
}
