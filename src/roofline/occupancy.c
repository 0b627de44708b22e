// Occupancy by the rules of NVIDIA's calculator (the CUDA toolkit's cuda_occupancy.h), with what differs
// between architectures taken from the device's figures. docs/occupancy.md states the rules and what is left
// out.
#include "sol/occupancy.h"

#include <limits.h>

#include "base/error.h"
#include "base/port.h"

// The figures in use, each with the least value that makes sense.
#define SM_FIGURES(X)                                                                                        \
  X(warp_size, 1)                                                                                            \
  X(max_threads_per_block, 1)                                                                                \
  X(max_warps_per_sm, 1)                                                                                     \
  X(max_blocks_per_sm, 1)                                                                                    \
  X(regs_per_sm, 1)                                                                                          \
  X(max_regs_per_block, 1)                                                                                   \
  X(max_regs_per_thread, 1)                                                                                  \
  X(reg_alloc_unit, 1)                                                                                       \
  X(warp_alloc_unit, 1)                                                                                      \
  X(smem_per_sm, 1)                                                                                          \
  X(smem_per_block, 1)                                                                                       \
  X(smem_reserved, 0)                                                                                        \
  X(smem_alloc_unit, 1)

typedef struct Sm {
#define SM_FIELD(field, least) int64_t field;
  SM_FIGURES(SM_FIELD)
#undef SM_FIELD
} Sm;

// Far above any SM, and small enough that no product below leaves 64 bits.
#define MOST_FIGURE (1 << 20)

static const char *device_name(const SolDevice *device) {
  return device->id ? device->id : "this device";
}

static SolStatus read_figure(const SolDevice *device, SolFigure figure, const char *field, int64_t least,
                             int64_t *out, SolError *err) {
  if (!sol_known(figure)) {
    sol_fail(err, SOL_ERR_UNKNOWN, "occupancy on %.60s needs its %s, which is unknown", device_name(device),
             field);
    sol_hint(err, "give %s a value and its source, or choose another device", field);
    return SOL_ERR_UNKNOWN;
  }
  // The negated form also refuses a NaN.
  if (!(figure.value >= (double)least && figure.value <= MOST_FIGURE) ||
      figure.value != __builtin_floor(figure.value)) {
    sol_fail(err, SOL_ERR_ARGUMENT, "%s of %.60s is %g", field, device_name(device), figure.value);
    sol_hint(err, "it has to be a whole number from %lld to %d", (long long)least, MOST_FIGURE);
    return SOL_ERR_ARGUMENT;
  }
  *out = (int64_t)figure.value;
  return SOL_OK;
}

static SolStatus read_sm(const SolDevice *device, Sm *sm, SolError *err) {
  SolStatus status;
#define SM_READ(field, least)                                                                                \
  if ((status = read_figure(device, device->field, #field, least, &sm->field, err))) return status;
  SM_FIGURES(SM_READ)
#undef SM_READ
  return SOL_OK;
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t round_down(int64_t value, int64_t unit) {
  return value / unit * unit;
}
static int64_t round_up(int64_t value, int64_t unit) {
  return round_down(value + unit - 1, unit);
}

static int64_t warps_of(const Sm *sm, int64_t threads) {
  return round_up(threads, sm->warp_size) / sm->warp_size;
}
static int64_t regs_of_warp(const Sm *sm, int64_t regs) {
  return round_up(regs * sm->warp_size, sm->reg_alloc_unit);
}
static int64_t smem_of_block(const Sm *sm, int64_t smem) {
  return round_up(smem + sm->smem_reserved, sm->smem_alloc_unit);
}

// Why a block cannot launch, in the order in which it is checked.
typedef enum Misfit { FITS = 0, THREADS, REGS_PER_THREAD, REGS_PER_BLOCK, SMEM, WHOLE_BLOCK } Misfit;

// Every value is known to be small once its check is passed, so the sums and products are safe.
static Misfit check_block(const Sm *sm, const SolKernelShape *kernel) {
  if (kernel->threads < 1 || kernel->threads > sm->max_threads_per_block) return THREADS;
  if (kernel->regs < 0 || kernel->regs > sm->max_regs_per_thread) return REGS_PER_THREAD;
  // The hardware checks a launch as though every sub-partition of the SM got as many warps as the fullest
  // one.
  int64_t warps = round_up(warps_of(sm, kernel->threads), sm->warp_alloc_unit);
  int64_t per_warp = regs_of_warp(sm, kernel->regs);
  if (per_warp * warps > sm->max_regs_per_block) return REGS_PER_BLOCK;
  if (kernel->smem < 0 || kernel->smem > sm->smem_per_block) return SMEM;
  if (smem_of_block(sm, kernel->smem) > sm->smem_per_block + sm->smem_reserved) return SMEM;
  return FITS;
}

static int64_t blocks_by_regs(const Sm *sm, int64_t per_warp, int64_t warps_per_block) {
  if (per_warp == 0) return INT_MAX;
  // Registers belong to the sub-partitions, and a warp is assigned to one: what is left over in each is lost.
  int64_t warps_per_part = sm->regs_per_sm / sm->warp_alloc_unit / per_warp;
  return warps_per_part * sm->warp_alloc_unit / warps_per_block;
}

static SolLimiter find_limiter(const SolOccupancy *o) {
  if (o->blocks_by_warps == o->blocks_per_sm) return SOL_LIMIT_WARPS;
  if (o->blocks_by_slots == o->blocks_per_sm) return SOL_LIMIT_BLOCKS;
  return o->blocks_by_regs == o->blocks_per_sm ? SOL_LIMIT_REGISTERS : SOL_LIMIT_SMEM;
}

static Misfit occupy(const Sm *sm, const SolKernelShape *kernel, SolOccupancy *out) {
  Misfit misfit = check_block(sm, kernel);
  if (misfit) return misfit;
  int64_t warps = warps_of(sm, kernel->threads), per_warp = regs_of_warp(sm, kernel->regs);
  int64_t smem = smem_of_block(sm, kernel->smem);
  int64_t by_warps = sm->max_warps_per_sm / warps, by_regs = blocks_by_regs(sm, per_warp, warps);
  int64_t by_smem = smem ? sm->smem_per_sm / smem : INT_MAX;
  int64_t blocks = smaller(smaller(by_warps, sm->max_blocks_per_sm), smaller(by_regs, by_smem));
  // Cannot be for figures that agree with one another.
  if (blocks < 1) return WHOLE_BLOCK;
  *out = (SolOccupancy){
      .blocks_per_sm = (int)blocks,
      .warps_per_sm = (int)(blocks * warps),
      .max_warps_per_sm = (int)sm->max_warps_per_sm,
      .warps_per_block = (int)warps,
      .occupancy = (double)(blocks * warps) / (double)sm->max_warps_per_sm,
      .blocks_by_warps = (int)by_warps,
      .blocks_by_slots = (int)sm->max_blocks_per_sm,
      .blocks_by_regs = (int)by_regs,
      .blocks_by_smem = (int)by_smem,
      .regs_per_block = per_warp * warps,
      .smem_per_block = smem,
  };
  out->limiter = find_limiter(out);
  return FITS;
}

static void fail_regs_per_block(const SolDevice *device, const Sm *sm, const SolKernelShape *kernel,
                                SolError *err) {
  int64_t unit = sm->warp_alloc_unit, per_warp = regs_of_warp(sm, kernel->regs);
  int64_t warps = round_up(warps_of(sm, kernel->threads), unit);
  int64_t fewer_regs = round_down(sm->max_regs_per_block / warps, sm->reg_alloc_unit) / sm->warp_size;
  int64_t fewer_threads = round_down(sm->max_regs_per_block / per_warp, unit) * sm->warp_size;
  sol_fail(err, SOL_ERR_ARGUMENT,
           "%lld threads of %lld registers take %lld registers a block, granularity included; %.60s has %lld",
           (long long)kernel->threads, (long long)kernel->regs, (long long)(per_warp * warps),
           device_name(device), (long long)sm->max_regs_per_block);
  sol_hint(err, "use at most %lld registers a thread (__launch_bounds__(%lld)) or at most %lld threads",
           (long long)fewer_regs, (long long)kernel->threads,
           (long long)smaller(fewer_threads, sm->max_threads_per_block));
}

static SolStatus fail_misfit(Misfit misfit, const SolDevice *device, const Sm *sm,
                             const SolKernelShape *kernel, SolError *err) {
  const char *name = device_name(device);
  switch (misfit) {
  case FITS: return SOL_OK;
  case THREADS:
    sol_fail(err, SOL_ERR_ARGUMENT, "a block of %lld threads cannot launch on %.60s",
             (long long)kernel->threads, name);
    sol_hint(err, "use from 1 to %lld threads a block", (long long)sm->max_threads_per_block);
    break;
  case REGS_PER_THREAD:
    sol_fail(err, SOL_ERR_ARGUMENT, "%lld registers a thread are not possible on %.60s",
             (long long)kernel->regs, name);
    sol_hint(err, "use from 1 to %lld, as ptxas -v prints them; 0 leaves registers out",
             (long long)sm->max_regs_per_thread);
    break;
  case REGS_PER_BLOCK: fail_regs_per_block(device, sm, kernel, err); break;
  case SMEM:
    sol_fail(err, SOL_ERR_ARGUMENT, "a block with %lld bytes of shared memory cannot launch on %.60s",
             (long long)kernel->smem, name);
    sol_hint(err,
             "use from 0 to %lld bytes, static and dynamic together; above 48 KiB the kernel has to opt in",
             (long long)round_down(sm->smem_per_block, sm->smem_alloc_unit));
    break;
  case WHOLE_BLOCK:
    sol_fail(err, SOL_ERR_ARGUMENT, "by its figures an SM of %.60s holds no block of %lld threads", name,
             (long long)kernel->threads);
    sol_hint(err, "check the device's limits per block against those per SM");
    break;
  }
  return SOL_ERR_ARGUMENT;
}

static SolStatus start(const SolDevice *device, const SolKernelShape *kernel, Sm *sm, SolOccupancy *out,
                       SolError *err) {
  if (!device || !kernel) return sol_fail(err, SOL_ERR_ARGUMENT, "%s is NULL", device ? "kernel" : "device");
  SolStatus status = read_sm(device, sm, err);
  return status ? status : fail_misfit(occupy(sm, kernel, out), device, sm, kernel, err);
}

SolStatus sol_occupancy(const SolDevice *device, const SolKernelShape *kernel, SolOccupancy *out,
                        SolError *err) {
  Sm sm;
  return out ? start(device, kernel, &sm, out, err) : sol_fail(err, SOL_ERR_ARGUMENT, "out is NULL");
}

static bool is_higher(const Sm *sm, const SolOccupancy *now, SolLift *lift) {
  return occupy(sm, &lift->kernel, &lift->after) == FITS && lift->after.warps_per_sm > now->warps_per_sm;
}

static bool lift_by_regs(const Sm *sm, const SolOccupancy *now, SolLift *lift) {
  lift->input = "regs";
  while (--lift->kernel.regs > 0)
    if (is_higher(sm, now, lift)) return true;
  return false;
}

static bool lift_by_smem(const Sm *sm, const SolOccupancy *now, SolLift *lift) {
  lift->input = "smem";
  // The most that lets one block more in; where something else keeps it out, is_higher says no.
  int64_t share = round_down(sm->smem_per_sm / (now->blocks_per_sm + 1), sm->smem_alloc_unit);
  int64_t smem = share - sm->smem_reserved;
  if (smem < 0 || smem >= lift->kernel.smem) return false;
  lift->kernel.smem = smem;
  return is_higher(sm, now, lift);
}

static bool lift_by_threads(const Sm *sm, const SolOccupancy *now, SolLift *lift) {
  int64_t from = lift->kernel.threads, nearest = INT64_MAX;
  SolLift trial = *lift;
  trial.input = "threads";
  for (int64_t threads = sm->warp_size; threads <= sm->max_threads_per_block; threads += sm->warp_size) {
    int64_t distance = threads < from ? from - threads : threads - from;
    if (distance > nearest) break;
    trial.kernel.threads = threads;
    if (!is_higher(sm, now, &trial)) continue;
    if (distance == nearest && trial.after.warps_per_sm <= lift->after.warps_per_sm) continue;
    nearest = distance;
    *lift = trial;
  }
  return nearest != INT64_MAX;
}

SolStatus sol_occupancy_lifts(const SolDevice *device, const SolKernelShape *kernel,
                              SolLift lifts[SOL_MAX_LIFTS], int *count, SolError *err) {
  static bool (*const by[SOL_MAX_LIFTS])(const Sm *, const SolOccupancy *,
                                         SolLift *) = {lift_by_regs, lift_by_smem, lift_by_threads};
  if (count) *count = 0;
  if (!lifts || !count) return sol_fail(err, SOL_ERR_ARGUMENT, "%s is NULL", lifts ? "count" : "lifts");
  Sm sm;
  SolOccupancy now;
  SolStatus status = start(device, kernel, &sm, &now, err);
  if (status) return status;
  for (int i = 0; i < SOL_MAX_LIFTS; i++) {
    SolLift trial = {.kernel = *kernel};
    if (by[i](&sm, &now, &trial)) lifts[(*count)++] = trial;
  }
  return SOL_OK;
}

const char *sol_limiter_name(SolLimiter limiter) {
  switch (limiter) {
  case SOL_LIMIT_WARPS: return "warps";
  case SOL_LIMIT_BLOCKS: return "blocks";
  case SOL_LIMIT_REGISTERS: return "registers";
  case SOL_LIMIT_SMEM: return "shared memory";
  }
  return "?";
}
