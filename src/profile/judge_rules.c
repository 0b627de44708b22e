// Those of the audit's rules that counters of a whole kernel can decide. They have no lines, and no time
// model behind them: gains stay unknown.
#include "audit/rules.h"
#include "base/format.h"
#include "profile/judge.h"

static double value(const Judge *j, ProfileMetric metric) {
  return profile_value(j->kernel, metric);
}

// A finding with the rule's own advice, `more` after it.
static void found(Judge *j, RuleId rule, const char *more, const char *message, const char *evidence) {
  ProfileDiagnosis *d = j->out;
  if (d->finding_count == d->finding_cap) {
    uint32_t cap = d->finding_cap ? d->finding_cap * 2 : 8;
    AuditFinding *list = sol_arena_alloc(j->arena, cap * sizeof *list);
    if (!list) return;
    if (d->finding_count) memcpy(list, d->findings, d->finding_count * sizeof *list);
    d->findings = list;
    d->finding_cap = cap;
  }
  const RuleText *text = audit_rule((uint32_t)rule);
  char fix[700];
  sol_format(fix, sizeof fix, "%s%s%s", text->fix, more[0] ? " " : "", more);
  d->findings[d->finding_count++] = (AuditFinding){.rule = text->id,
                                                   .message = judge_keep(j, message),
                                                   .fix = judge_keep(j, fix),
                                                   .evidence = judge_keep(j, evidence),
                                                   .gain = PROFILE_UNKNOWN,
                                                   .saved = PROFILE_UNKNOWN};
}

#define WHICH_LINE "`sol audit` names the line and distinguishes strides from gathers."

// ---- access patterns ----

// One sector more than the bytes need, at every request: they do not start where a sector does.
static bool is_misaligned(double sectors, double use) {
  double whole = sectors * use / 32; // sectors' worth of bytes a request
  for (int n = 4; n <= 16; n *= 2)
    if (whole > 0.98 * n && whole < 1.02 * n) return sectors > n + 0.7 && sectors < n + 1.1;
  return false;
}

static void judge_access(Judge *j, const char *what, double sectors, ProfileMetric use_metric) {
  double use = value(j, use_metric);
  char message[240], evidence[160];
  size_t n = sol_format(evidence, sizeof evidence, "%s: %.2f sectors a request", what, sectors);
  if (profile_known(use))
    sol_format(evidence + n, sizeof evidence - n, ", %.1f of 32 bytes of a sector used", use);
  if (profile_known(use) && is_misaligned(sectors, use)) {
    sol_format(message, sizeof message,
               "%s take a sector more than their bytes need at nearly every request: %.2f.", what, sectors);
    found(j, RULE_misaligned, "", message, evidence);
  } else if (use < 24 || (!profile_known(use) && sectors > 16.05)) {
    if (profile_known(use))
      sol_format(message, sizeof message, "%s use %.0f%% of the bytes they move (%.1f sectors a request).",
                 what, use / 32 * 100, sectors);
    else
      sol_format(message, sizeof message,
                 "%s touch %.1f sectors a request, more than even contiguous 16-byte accesses would (16).",
                 what, sectors);
    found(j, RULE_uncoalesced, WHICH_LINE, message, evidence);
  }
}

static void judge_narrow(Judge *j) {
  const ProfileDiagnosis *d = j->out;
  double lanes = value(j, PROFILE_lanes), use = value(j, PROFILE_load_use);
  bool four = d->load_sectors > 3.9 && d->load_sectors < 4.1 && !(use < 28.8);
  bool room = d->kind && d->busiest < 0.8 &&
              (d->bound == MACHINE_DRAM || d->bound == MACHINE_LATENCY || d->bound == MACHINE_ISSUE);
  if (!four || !room || lanes < 31) return;
  char evidence[120];
  sol_format(evidence, sizeof evidence, "loads: %.2f sectors a request", d->load_sectors);
  found(j, RULE_narrow, "", "Loads read 4 bytes a lane, and memory is not at its limit.", evidence);
}

// ---- on the SM ----

static void judge_spill(Judge *j) {
  const ProfileDiagnosis *d = j->out;
  if (!(d->local_sectors > 0)) return;
  char message[200], evidence[120];
  double global = value(j, PROFILE_load_sectors) + value(j, PROFILE_store_sectors);
  sol_format(evidence, sizeof evidence, "%.0f sectors of local memory", d->local_sectors);
  if (global > 0)
    sol_format(message, sizeof message,
               "Threads keep values in local memory: %.0f sectors, %.0f%% of all sectors requested from L1.",
               d->local_sectors, d->local_sectors / (global + d->local_sectors) * 100);
  else
    sol_format(message, sizeof message, "Threads keep values in local memory: %.0f sectors.",
               d->local_sectors);
  found(j, RULE_spill, "", message, evidence);
}

static void judge_conflicts(Judge *j) {
  const ProfileDiagnosis *d = j->out;
  if (!(d->conflicts > 0.1)) return;
  char message[200], evidence[160];
  sol_format(message, sizeof message,
             "%.0f%% of the shared-memory wavefronts are due to lanes that access the same bank.",
             d->conflicts * 100);
  double exact = value(j, PROFILE_shared_passes), ideal = value(j, PROFILE_shared_passes_ideal);
  if (profile_known(exact) && profile_known(ideal))
    sol_format(evidence, sizeof evidence, "%.0f wavefronts, %.0f would do", exact, ideal);
  else
    sol_format(evidence, sizeof evidence, "conflicts: loads %.0f, stores %.0f",
               value(j, PROFILE_shared_load_conflicts), value(j, PROFILE_shared_store_conflicts));
  found(j, RULE_bank_conflict, "", message, evidence);
}

static void judge_atomics(Judge *j) {
  double atomics = value(j, PROFILE_atom_requests) + value(j, PROFILE_red_requests);
  double others = value(j, PROFILE_load_requests) + value(j, PROFILE_store_requests);
  if (!(atomics > 0.1 * (others + atomics)) || !(j->out->busiest < 0.4) || !j->out->kind) return;
  char message[200], evidence[160];
  sol_format(
      message, sizeof message,
      "%.0f%% of the requests are atomics, and no unit is busy: they may be contending for the same addresses.",
      atomics / (others + atomics) * 100);
  sol_format(evidence, sizeof evidence, "%.0f atomic requests, %.0f others", atomics, others);
  found(j, RULE_atomics, "", message, evidence);
}

static void judge_divergence(Judge *j) {
  double lanes = value(j, PROFILE_lanes);
  if (!(lanes < 24)) return;
  char message[160], evidence[80];
  double threads = (double)j->kernel->block[0] * j->kernel->block[1] * j->kernel->block[2];
  if (threads > 0 && threads < 32 && lanes > 0.75 * threads) return; // the block has no more
  sol_format(message, sizeof message, "An instruction has %.1f of 32 lanes active.", lanes);
  sol_format(evidence, sizeof evidence, "%.2f lanes an instruction", lanes);
  found(j, RULE_divergence, "", message, evidence);
}

// ---- the launch ----

static double sms_of(const Judge *j) {
  return j->profile->gpu.sms ? j->profile->gpu.sms : sol_known(j->roofs->sms) ? j->roofs->sms.value : 0;
}

static double blocks_of(const ProfileKernel *k) {
  return (double)k->grid[0] * k->grid[1] * k->grid[2];
}

static bool judge_grid(Judge *j) {
  double blocks = blocks_of(j->kernel), sms = sms_of(j);
  if (!(blocks > 0) || !(sms > 0) || blocks >= sms) return false;
  char message[160], evidence[80];
  sol_format(message, sizeof message, "%.0f blocks for %.0f SMs: %.0f%% of the GPU is idle.", blocks, sms,
             (1 - blocks / sms) * 100);
  sol_format(evidence, sizeof evidence, "%.0f blocks, %.0f SMs", blocks, sms);
  found(j, RULE_small_grid, "", message, evidence);
  return true;
}

static bool fits(const Judge *j, SolOccupancy *out) {
  const ProfileKernel *k = j->kernel;
  double shared = (profile_known(k->static_shared) ? k->static_shared : 0) +
                  (profile_known(k->dynamic_shared) ? k->dynamic_shared : 0);
  SolKernelShape shape = {.threads = (int64_t)k->block[0] * k->block[1] * k->block[2],
                          .regs = profile_known(k->registers) ? (int64_t)k->registers : 0,
                          .smem = (int64_t)shared};
  return j->profile->gpu.device && shape.threads > 0 && shape.regs > 0 &&
         sol_occupancy(j->profile->gpu.device, &shape, out, NULL) == SOL_OK;
}

static void judge_tail(Judge *j) {
  SolOccupancy o;
  if (!fits(j, &o)) return;
  double waves = blocks_of(j->kernel) / (sms_of(j) * o.blocks_per_sm), whole = __builtin_ceil(waves);
  if (!(waves > 1) || whole / waves < 1.25 || j->out->busiest > 0.8) return;
  char message[200], evidence[120];
  sol_format(message, sizeof message, "%.2f waves of blocks take as long as %.0f.", waves, whole);
  sol_format(evidence, sizeof evidence, "%.0f blocks, %d on an SM at once, %.0f SMs", blocks_of(j->kernel),
             o.blocks_per_sm, sms_of(j));
  found(j, RULE_tail, "", message, evidence);
}

static void judge_waiting(Judge *j, bool small) {
  const ProfileDiagnosis *d = j->out;
  double occupancy = value(j, PROFILE_occupancy), wait = value(j, PROFILE_wait_load);
  if (small || !d->kind || !(d->busiest < 0.6) || d->bound == MACHINE_TENSOR) return;
  char message[200], evidence[160], more[160] = "";
  SolOccupancy o;
  bool known = fits(j, &o);
  size_t n = sol_format(evidence, sizeof evidence, "achieved occupancy %.0f%%", occupancy);
  if (profile_known(wait))
    sol_format(evidence + n, sizeof evidence - n, ", %.1f warps waiting for loads for each that issues",
               wait);
  if (occupancy < 40) {
    double fit = known ? o.occupancy * 100 : value(j, PROFILE_occupancy_limit);
    if (occupancy < 0.6 * fit)
      sol_format(more, sizeof more,
                 "%.0f%% would fit: the grid has too few blocks for the SMs, or they end unevenly.", fit);
    else if (known && o.limiter != SOL_LIMIT_WARPS)
      sol_format(more, sizeof more, "Here it is %s: %d blocks of %d warps on an SM.",
                 sol_limiter_name(o.limiter), o.blocks_per_sm, o.warps_per_block);
    sol_format(message, sizeof message,
               "%.0f%% of the warps an SM could hold are resident, and no unit is busy.", occupancy);
    found(j, RULE_occupancy, more, message, evidence);
  } else if (occupancy >= 40 && wait > 4) {
    sol_format(message, sizeof message,
               "For each warp that issues, %.1f wait for loads, and no unit is busy.", wait);
    found(j, RULE_in_flight, "", message, evidence);
  }
}

static void judge_launch(Judge *j) {
  const ProfileKernel *k = j->kernel;
  bool graph = k->graph_launches > k->launches / 2;
  SolFigure cost = graph ? j->roofs->graph_us : j->roofs->launch_us;
  double us = k->seconds / k->launches * 1e6;
  if (!sol_known(cost) || !(us < cost.value) || k->launches < 8) return;
  char message[200], evidence[120];
  sol_format(message, sizeof message,
             "A launch takes %.2f us, and starting one%s costs %.2f us: %.0f launches.", us,
             graph ? " in a graph" : "", cost.value, k->launches);
  sol_format(evidence, sizeof evidence, "%.0f launches of %.2f us", k->launches, us);
  found(j, RULE_launch_bound, "", message, evidence);
}

void judge_rules(Judge *j) {
  const ProfileDiagnosis *d = j->out;
  if (profile_known(d->load_sectors)) judge_access(j, "Global loads", d->load_sectors, PROFILE_load_use);
  if (profile_known(d->store_sectors)) judge_access(j, "Global stores", d->store_sectors, PROFILE_store_use);
  judge_spill(j);
  judge_conflicts(j);
  judge_atomics(j);
  judge_divergence(j);
  bool small = judge_grid(j);
  judge_narrow(j);
  judge_waiting(j, small);
  judge_tail(j);
  judge_launch(j);
}
