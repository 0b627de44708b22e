// What binds a kernel, and how near it comes to a roof.
#include "base/format.h"
#include "profile/judge.h"

static double larger(double a, double b) { // of the known
  return !profile_known(b) || a >= b ? a : b;
}

// ---- what each unit reaches ----

// The counters' own time: that of the passes they were taken in.
static double counted_seconds(const ProfileKernel *k) {
  double ns = profile_value(k, PROFILE_time);
  return profile_known(ns) ? ns * 1e-9 : k->seconds;
}

static SolFigure dram_roof(const Judge *j, double read, double write) {
  const ProfileRoofs *r = j->roofs;
  double total = read + write;
  if (total > 0 && read > 0.9 * total) return r->read;
  if (total > 0 && write > 0.9 * total) return r->write;
  return r->copy;
}

static double over(double rate, SolFigure roof) {
  return sol_known(roof) && roof.value > 0 ? rate / roof.value : PROFILE_UNKNOWN;
}

static void reach_dram(Judge *j, ProfileStep *s) {
  ProfileDiagnosis *d = j->out;
  double read = judge_look(j, s, PROFILE_dram_read), write = judge_look(j, s, PROFILE_dram_write);
  double seconds = counted_seconds(j->kernel), pct = judge_look(j, s, PROFILE_dram_pct);
  judge_look(j, s, PROFILE_time);
  d->dram_rate = (read + write) / seconds;
  if (!profile_known(d->dram_rate)) d->dram_rate = profile_value(j->kernel, PROFILE_dram_rate);
  j->dram_roof = dram_roof(j, read, write);
  double share = over(d->dram_rate, j->dram_roof);
  j->by_rate = profile_known(share);
  d->shares[MACHINE_DRAM] = j->by_rate ? share : pct / 100;
}

static void reach_l2(Judge *j, ProfileStep *s) {
  ProfileDiagnosis *d = j->out;
  double sectors = judge_look(j, s, PROFILE_l2_sectors), pct = judge_look(j, s, PROFILE_l2_pct) / 100;
  d->l2_rate = 32 * sectors / counted_seconds(j->kernel);
  d->shares[MACHINE_L2] = larger(over(d->l2_rate, j->roofs->l2), pct);
}

// Counters "of active clocks" are scaled to the whole time, where the idle clocks are known.
static double active_share(Judge *j) {
  double active = profile_value(j->kernel, PROFILE_active_cycles),
         all = profile_value(j->kernel, PROFILE_cycles);
  double share = active / all;
  return share > 0 && share < 1 ? share : 1;
}

static void reach_sm(Judge *j, ProfileStep *s) {
  ProfileDiagnosis *d = j->out;
  double active = active_share(j), sm = judge_look(j, s, PROFILE_sm_pct) / 100;
  double tensor = profile_value(j->kernel, PROFILE_tensor_pct) / 100 * active;
  double issue = profile_value(j->kernel, PROFILE_issue_pct) / 100 * active;
  d->shares[MACHINE_L1] = judge_look(j, s, PROFILE_l1_pct) / 100 * active;
  d->shares[MACHINE_TENSOR] = tensor;
  d->shares[MACHINE_ISSUE] = larger(issue, sm);
  // The SM's figure is that of its busiest pipe: where that is the tensor pipe, it is not the others'.
  if (profile_known(tensor) && profile_known(sm) && tensor > 0.9 * sm) d->shares[MACHINE_ISSUE] = issue;
}

static bool is_memory(MachineResource r) {
  return r == MACHINE_DRAM || r == MACHINE_L2 || r == MACHINE_L1;
}

static double best_of(const ProfileDiagnosis *d, bool memory, MachineResource *which) {
  double best = PROFILE_UNKNOWN;
  for (int r = MACHINE_DRAM; r <= MACHINE_TENSOR; r++) {
    if (is_memory((MachineResource)r) != memory || !profile_known(d->shares[r])) continue;
    if (!profile_known(best) || d->shares[r] > best) best = d->shares[r], *which = (MachineResource)r;
  }
  return best;
}

ProfileBand judge_band(double share) {
  if (!profile_known(share)) return PROFILE_NO_BAND;
  return share > 0.8    ? PROFILE_EXCELLENT
         : share >= 0.6 ? PROFILE_GOOD
         : share >= 0.3 ? PROFILE_WASTEFUL
                        : PROFILE_POOR;
}

// ---- step 1 ----

typedef struct Busy {
  double memory, compute; // shares of the busiest unit of each; unknown: not counted
  MachineResource memory_unit, compute_unit;
  bool covered; // all of DRAM, L2 and L1 were looked at
} Busy;

static Busy look_at_units(Judge *j, ProfileStep *s) {
  const ProfileDiagnosis *d = j->out;
  Busy b = {.memory_unit = MACHINE_RESOURCES, .compute_unit = MACHINE_ISSUE};
  double all = judge_look(j, s, PROFILE_memory_pct) / 100, best = best_of(d, true, &b.memory_unit);
  b.memory = larger(best, all);
  b.compute = best_of(d, false, &b.compute_unit);
  // A busier one that has no separate counter in the file.
  if (!(best > all - 0.05) && profile_known(all)) b.memory_unit = MACHINE_RESOURCES;
  b.covered =
      profile_known(all) || (profile_known(d->shares[MACHINE_L2]) && profile_known(d->shares[MACHINE_L1]));
  return b;
}

static const char *unit_name(MachineResource unit) {
  return unit == MACHINE_RESOURCES ? "which unit was not counted" : machine_resource_name(unit);
}

static void say_bound(Judge *j, ProfileStep *s, const Busy *b, double best) {
  bool by_memory = b->memory >= b->compute, both = b->memory >= JUDGE_BINDS && b->compute >= JUDGE_BINDS;
  const char *says = both                 ? "both are near their limit"
                     : best < JUDGE_IDLE  ? "neither is busy: the kernel is bound by latency"
                     : best < JUDGE_BINDS ? "neither is near its limit: latency takes part of the time"
                     : by_memory          ? "memory-bound"
                                          : "compute-bound";
  char text[320];
  size_t n =
      sol_format(text, sizeof text, "%s: memory %.0f%% (%s), compute %.0f%% (%s)", says, b->memory * 100,
                 unit_name(b->memory_unit), b->compute * 100, unit_name(b->compute_unit));
  if (!b->covered && (!by_memory || best < JUDGE_BINDS))
    sol_format(text + n, sizeof text - n, "; L2 and L1 were not counted, and may be what is busy");
  s->text = judge_keep(j, text);
}

void judge_bound(Judge *j) {
  ProfileDiagnosis *d = j->out;
  ProfileStep *s = &d->steps[PROFILE_STEP_BOUND];
  reach_dram(j, s);
  reach_l2(j, s);
  reach_sm(j, s);
  Busy b = look_at_units(j, s);
  bool memory = profile_known(b.memory), compute = profile_known(b.compute);
  if (!memory || !compute) {
    char text[120];
    s->verdict = PROFILE_NOT_COUNTED;
    sol_format(text, sizeof text, "not counted: the throughput of %s%s%s", memory ? "" : "memory",
               memory || compute ? "" : " and of ", compute ? "" : "the SMs");
    s->text = judge_keep(j, text);
  }
  if (!memory) return; // either might bind
  double best = larger(b.memory, b.compute);
  bool by_memory = !compute || b.memory >= b.compute;
  d->busiest = best;
  d->bound = best < JUDGE_IDLE ? MACHINE_LATENCY : by_memory ? b.memory_unit : b.compute_unit;
  if (!compute) {
    if (b.memory >= JUDGE_BINDS) d->kind = "memory"; // however busy the SMs are
    return;
  }
  bool both = b.memory >= JUDGE_BINDS && b.compute >= JUDGE_BINDS;
  d->kind = both ? "both" : best < JUDGE_IDLE ? "latency" : by_memory ? "memory" : "compute";
  s->verdict = best < JUDGE_IDLE ? PROFILE_BAD : PROFILE_FINE;
  say_bound(j, s, &b, best);
}

// ---- the verdict ----

static bool is_clean(const ProfileStep *steps) {
  return steps[PROFILE_STEP_COALESCING].verdict == PROFILE_FINE &&
         steps[PROFILE_STEP_SHARED].verdict == PROFILE_FINE &&
         steps[PROFILE_STEP_SPILLS].verdict == PROFILE_FINE;
}

void judge_verdict(Judge *j) {
  ProfileDiagnosis *d = j->out;
  bool clean = is_clean(d->steps) && !j->partly;
  for (int r = MACHINE_DRAM; r <= MACHINE_TENSOR; r++) {
    bool cache = r == MACHINE_L2 || r == MACHINE_L1;
    bool idle = !is_memory((MachineResource)r) && d->shares[r] < JUDGE_IDLE;
    if ((cache && !clean) || idle || !profile_known(d->shares[r]) || d->shares[r] <= d->share) continue;
    d->share = d->shares[r];
    d->roof_of = (MachineResource)r;
  }
  // Without DRAM's share nothing can be said of memory, and without the SMs' nothing of arithmetic.
  if (!profile_known(d->shares[MACHINE_DRAM])) d->share = PROFILE_UNKNOWN;
  d->band = judge_band(d->share);
  if (d->band == PROFILE_NO_BAND) return;
  char text[160], rate[32];
  if (d->roof_of == MACHINE_DRAM && j->by_rate) {
    judge_rate(rate, sizeof rate, j->dram_roof.value);
    sol_format(text, sizeof text, "%s, %s (%s)", machine_resource_name(d->roof_of), rate,
               j->roofs->measured ? "measured on this GPU" : "datasheet");
  } else {
    sol_format(text, sizeof text, "%s, by the counters", machine_resource_name(d->roof_of));
  }
  d->roof = judge_keep(j, text);
}
