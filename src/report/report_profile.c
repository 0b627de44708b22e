// The measured bill: all kernels in a table, those that take longest in full.
#include "report/report_profile.h"

#include <string.h>

#include "base/format.h"

static void number(Fact *o, const char *key, const char *label, FactUnit unit, FactBasis basis,
                   double value) {
  if (profile_known(value))
    fact_number(o, key, label, unit, basis, value);
  else if (key)
    fact_unknown(o, key, 0); // text leaves out what is not known
}

static void measured(Fact *o, const char *key, FactUnit unit, double value) {
  number(o, key, 0, unit, BASIS_MEASURED, value);
}

static void triple(Fact *o, const char *key, const uint32_t v[3]) {
  if (v[0])
    fact_textf(o, key, 0, "%u,%u,%u", v[0], v[1], v[2]);
  else
    fact_unknown(o, key, 0);
}

// ---- JSON ----

static double value(const ProfileKernel *k, ProfileMetric m) {
  return profile_value(k, m);
}

static void sectors_facts(Fact *o, const char *key, double requests, double sectors) {
  Fact *part = fact_object(o, key, 0);
  measured(part, "requests", UNIT_PLAIN, requests);
  measured(part, "sectors", UNIT_PLAIN, sectors);
}

static void wavefront_facts(Fact *o, const char *key, double requests, double wavefronts, double conflicts) {
  Fact *part = fact_object(o, key, 0);
  measured(part, "requests", UNIT_PLAIN, requests);
  measured(part, "wavefronts", UNIT_PLAIN, wavefronts);
  measured(part, "conflicts", UNIT_PLAIN, conflicts);
}

double report_profile_l1_hit(const ProfileKernel *k) {
  double hits = value(k, PROFILE_load_hits), sectors = value(k, PROFILE_load_sectors);
  return sectors > 0 && profile_known(hits) ? hits / sectors : value(k, PROFILE_l1_hit_pct) / 100;
}

double report_profile_l2_hit(const ProfileKernel *k) {
  double hits = value(k, PROFILE_l2_hits), sectors = value(k, PROFILE_l2_sectors);
  return sectors > 0 && profile_known(hits) ? hits / sectors : value(k, PROFILE_l2_hit_pct) / 100;
}

// Under the keys that the emulated bill has.
static void bill_facts(Fact *o, const ProfileKernel *k) {
  measured(o, "instructions", UNIT_PLAIN, value(k, PROFILE_instructions));
  sectors_facts(o, "global_load", value(k, PROFILE_load_requests), value(k, PROFILE_load_sectors));
  sectors_facts(o, "global_store", value(k, PROFILE_store_requests), value(k, PROFILE_store_sectors));
  sectors_facts(o, "global_atomic", value(k, PROFILE_atom_requests) + value(k, PROFILE_red_requests),
                value(k, PROFILE_atom_sectors) + value(k, PROFILE_red_sectors));
  wavefront_facts(o, "shared_load", value(k, PROFILE_shared_load_requests),
                  value(k, PROFILE_shared_load_wavefronts), value(k, PROFILE_shared_load_conflicts));
  wavefront_facts(o, "shared_store", value(k, PROFILE_shared_store_requests),
                  value(k, PROFILE_shared_store_wavefronts), value(k, PROFILE_shared_store_conflicts));
  Fact *local = fact_object(o, "local", 0);
  measured(local, "sectors", UNIT_PLAIN,
           value(k, PROFILE_local_load_sectors) + value(k, PROFILE_local_store_sectors));
  measured(o, "active_lanes", UNIT_PLAIN, value(k, PROFILE_lanes));
  measured(o, "l1_hit", UNIT_SHARE, report_profile_l1_hit(k));
  measured(o, "l2_hit", UNIT_SHARE, report_profile_l2_hit(k));
  measured(o, "l2_bytes", UNIT_BYTES, 32 * value(k, PROFILE_l2_sectors));
  measured(o, "dram_bytes", UNIT_BYTES, value(k, PROFILE_dram_read) + value(k, PROFILE_dram_write));
  measured(o, "dram_read_bytes", UNIT_BYTES, value(k, PROFILE_dram_read));
  measured(o, "dram_write_bytes", UNIT_BYTES, value(k, PROFILE_dram_write));
  measured(o, "occupancy", UNIT_SHARE, value(k, PROFILE_occupancy) / 100);
  number(o, "registers", 0, UNIT_PLAIN, BASIS_NONE, k->registers);
  number(o, "static_shared", 0, UNIT_SIZE, BASIS_NONE, k->static_shared);
  number(o, "dynamic_shared", 0, UNIT_SIZE, BASIS_NONE, k->dynamic_shared);
  number(o, "local_bytes", 0, UNIT_SIZE, BASIS_NONE, k->local_bytes);
}

static void counters_facts(Fact *o, const ProfileKernel *k) {
  Fact *all = fact_object(o, "counters", 0);
  for (int m = 0; m < PROFILE_METRICS; m++)
    measured(all, profile_metric((ProfileMetric)m)->name, UNIT_PLAIN, value(k, (ProfileMetric)m));
  Fact *part = fact_object(o, "counted_launches", 0); // where not all of them were
  for (int m = 0; m < PROFILE_METRICS; m++)
    if (k->counted[m] > 0 && k->counted[m] < k->launches)
      number(part, profile_metric((ProfileMetric)m)->name, 0, UNIT_PLAIN, BASIS_NONE, k->counted[m]);
}

static void shares_facts(Fact *o, const ProfileDiagnosis *d) {
  Fact *shares = fact_object(o, "shares", 0);
  for (int r = MACHINE_DRAM; r <= MACHINE_TENSOR; r++)
    measured(shares, machine_resource_key((MachineResource)r), UNIT_SHARE, d->shares[r]);
}

static void roofline_facts(Fact *o, const ProfileKernel *k, const ProfileDiagnosis *d) {
  Fact *point = fact_object(o, "roofline", 0);
  measured(point, "flops", UNIT_FLOPS, d->flops);
  measured(point, "intensity", UNIT_INTENSITY, d->intensity);
  measured(point, "flops_per_s", UNIT_FLOPS_PER_S, d->flops / k->seconds);
  number(point, "attainable_flops", 0, UNIT_FLOPS_PER_S, BASIS_MODELLED, d->attainable);
}

static const char *verdict_name(ProfileVerdict verdict) {
  static const char *const names[] = {"fine", "bad", "not counted"};
  return names[verdict];
}

static void step_facts(Fact *o, const ProfileKernel *k, const ProfileDiagnosis *d) {
  Fact *list = fact_list(o, "steps", 0);
  for (int i = 0; i < PROFILE_STEPS; i++) {
    const ProfileStep *s = &d->steps[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "step", 0, profile_step_name((ProfileStepId)i));
    fact_text(row, "verdict", 0, verdict_name(s->verdict));
    fact_text(row, "text", 0, s->text);
    Fact *used = fact_object(row, "counters", 0);
    for (int c = 0; c < s->used_count; c++)
      measured(used, profile_metric(s->used[c])->name, UNIT_PLAIN, value(k, s->used[c]));
    Fact *missing = fact_list(row, "missing", 0);
    for (int c = 0; c < s->missing_count; c++) fact_text(missing, 0, 0, profile_metric(s->missing[c])->name);
  }
}

static void finding_facts(Fact *o, const ProfileDiagnosis *d) {
  Fact *list = fact_list(o, "findings", 0);
  for (uint32_t i = 0; i < d->finding_count; i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "rule", 0, d->findings[i].rule);
    fact_text(row, "message", 0, d->findings[i].message);
    fact_text(row, "fix", 0, d->findings[i].fix);
    fact_text(row, "evidence", 0, d->findings[i].evidence);
  }
}

// A kernel in JSON.
static void kernel_facts(Fact *list, const ProfileKernel *k) {
  const ProfileDiagnosis *d = k->diagnosis;
  Fact *o = fact_object(list, 0, 0);
  fact_text(o, "name", 0, k->title);
  fact_text(o, "symbol", 0, k->name);
  triple(o, "grid", k->grid);
  triple(o, "block", k->block);
  number(o, "launches", 0, UNIT_PLAIN, BASIS_EXACT, k->launches);
  number(o, "graph_launches", 0, UNIT_PLAIN, BASIS_EXACT, k->graph_launches);
  measured(o, "time_us", UNIT_US, k->seconds * 1e6);
  measured(o, "least_us", UNIT_US, k->least * 1e6);
  measured(o, "most_us", UNIT_US, k->most * 1e6);
  measured(o, "share", UNIT_SHARE, k->share);
  fact_text(o, "kind", 0, d->kind);
  fact_text(o, "bound", 0, profile_bound(d) == MACHINE_RESOURCES ? NULL : machine_resource_key(d->bound));
  fact_text(o, "band", 0, profile_band_name(d->band));
  measured(o, "busiest", UNIT_SHARE, d->busiest);
  measured(o, "roof_share", UNIT_SHARE, d->share);
  fact_text(o, "roof", 0, d->roof);
  measured(o, "dram_bytes_per_s", UNIT_BYTES_PER_S, d->dram_rate);
  measured(o, "l2_bytes_per_s", UNIT_BYTES_PER_S, d->l2_rate);
  measured(o, "load_sectors_per_request", UNIT_PLAIN, d->load_sectors);
  measured(o, "store_sectors_per_request", UNIT_PLAIN, d->store_sectors);
  measured(o, "shared_conflicts", UNIT_SHARE, d->conflicts);
  shares_facts(o, d);
  bill_facts(o, k);
  roofline_facts(o, k, d);
  step_facts(o, k, d);
  finding_facts(o, d);
  counters_facts(o, k);
}

static void share_cell(Fact *row, const char *label, double share) {
  if (profile_known(share))
    fact_textf(row, 0, label, "%.0f%%", share * 100);
  else
    fact_text(row, 0, label, "");
}

static void ratio_cell(Fact *row, const char *label, double ratio) {
  if (profile_known(ratio))
    fact_textf(row, 0, label, "%.1f", ratio);
  else
    fact_text(row, 0, label, "");
}

static void table(Fact *root, const Profile *p, bool any_counter) {
  enum { ROWS = 40 };
  static const FactColumn columns[] = {
      {"kernel", FIT_CUT}, {"time", 0},      {"share", 0},     {"verdict", 0}, {"bound by", FIT_CUT},
      {"DRAM", 0},         {"launches", 0},  {"L2", 0},        {"L1", 0},      {"ld s/r", 0},
      {"st s/r", 0},       {"occupancy", 0}, {"conflicts", 0}, {"L1 hits", 0}, {0}};
  Fact *list = fact_list(root, 0, "");
  fact_columns(list, columns);
  for (uint32_t i = 0; i < p->kernel_count && i < ROWS; i++) {
    const ProfileKernel *k = &p->kernels[i];
    const ProfileDiagnosis *d = k->diagnosis;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, "kernel", k->title);
    fact_number(row, 0, "launches", UNIT_PLAIN, BASIS_NONE, k->launches);
    if (profile_known(k->seconds))
      fact_number(row, 0, "time", UNIT_US, BASIS_MEASURED, k->seconds * 1e6);
    else
      fact_unknown(row, 0, "time");
    share_cell(row, "share", k->share);
    if (!any_counter) continue;
    share_cell(row, "DRAM", d->shares[MACHINE_DRAM]);
    share_cell(row, "L2", d->shares[MACHINE_L2]);
    share_cell(row, "L1", d->shares[MACHINE_L1]);
    ratio_cell(row, "ld s/r", d->load_sectors);
    ratio_cell(row, "st s/r", d->store_sectors);
    share_cell(row, "conflicts", d->conflicts);
    share_cell(row, "L1 hits", report_profile_l1_hit(k));
    share_cell(row, "occupancy", value(k, PROFILE_occupancy) / 100);
    fact_text(row, 0, "bound by",
              profile_bound(d) == MACHINE_RESOURCES ? "" : machine_resource_name(d->bound));
    fact_text(row, 0, "verdict", d->band == PROFILE_NO_BAND ? "" : profile_band_name(d->band));
  }
  if (p->kernel_count > ROWS)
    fact_note(root, "%u more kernels; --json has them all.", p->kernel_count - ROWS);
}

static void gpu_facts(Fact *root, const Profile *p) {
  Fact *gpu = fact_object(root, "gpu", 0);
  fact_text(gpu, "name", 0, p->gpu.name[0] ? p->gpu.name : NULL);
  fact_text(gpu, "device", 0, p->gpu.device ? p->gpu.device->id : NULL);
  fact_text(gpu, "driver", 0, p->gpu.driver[0] ? p->gpu.driver : NULL);
  if (p->gpu.cc)
    fact_textf(gpu, "arch", 0, "sm_%d", p->gpu.cc);
  else
    fact_unknown(gpu, "arch", 0);
  number(gpu, "sms", 0, UNIT_PLAIN, BASIS_NONE, p->gpu.sms ? p->gpu.sms : PROFILE_UNKNOWN);
}

static void roof(Fact *o, const char *key, SolFigure figure) {
  number(o, key, 0, UNIT_PLAIN, BASIS_NONE, sol_known(figure) ? figure.value : PROFILE_UNKNOWN);
}

static void roofs_facts(Fact *root, const ProfileRoofs *r) {
  Fact *o = fact_object(root, "roofs", 0);
  fact_bool(o, "measured", 0, r->measured);
  roof(o, "read", r->read);
  roof(o, "write", r->write);
  roof(o, "copy", r->copy);
  roof(o, "l2", r->l2);
  roof(o, "fp32", r->fp32);
  roof(o, "fp64", r->fp64);
  roof(o, "tensor", r->tensor);
  roof(o, "launch_us", r->launch_us);
  roof(o, "graph_launch_us", r->graph_us);
}

void report_profile_facts(Fact *root, const Profile *p, const ProfileRoofs *roofs, const ProfileView *view) {
  bool any = false;
  for (uint32_t i = 0; i < p->kernel_count; i++)
    for (int m = 0; m < PROFILE_METRICS; m++) any |= m != PROFILE_time && p->kernels[i].counted[m] > 0;
  fact_text(root, "source", 0, p->source == PROFILE_FROM_NCU ? "ncu csv" : "cupti");
  gpu_facts(root, p);
  roofs_facts(root, roofs);
  number(root, "launches", 0, UNIT_PLAIN, BASIS_EXACT, p->launches);
  measured(root, "time_us", UNIT_US, p->seconds * 1e6);
  table(root, p, any);
  char time[32] = "";
  if (profile_known(p->seconds)) fact_write_number(time, sizeof time, UNIT_US, p->seconds * 1e6);
  fact_note(root, "%.0f launch%s of %u kernel%s%s%s.", p->launches, p->launches > 1 ? "es" : "",
            p->kernel_count, p->kernel_count > 1 ? "s" : "", time[0] ? ", in all " : "", time);
  Fact *list = fact_list(root, "kernels", 0),
       *shown = fact_list(root, 0, any ? "In full, most time first" : 0);
  for (uint32_t i = 0; i < p->kernel_count; i++) kernel_facts(list, &p->kernels[i]);
  for (uint32_t i = 0; i < p->kernel_count && i < view->top && any; i++)
    report_profile_kernel_text(shown, &p->kernels[i]);
  if (any && p->kernel_count > view->top)
    fact_note(root, "%zu of %u kernels in full; --top N shows more, --kernel NAME selects.", view->top,
              p->kernel_count);
  if (any)
    fact_note(
        root,
        "DRAM, L2, L1: share of what the GPU can sustain. ld s/r, st s/r: sectors a request of global loads and "
        "stores. Verdict: how much of the roof worth reaching is reached, over 80%% excellent, from 60%% "
        "good, from "
        "30%% wasteful, below poor. That roof is the busiest unit's; but where part of what L1 or L2 move is "
        "waste "
        "(sectors, conflicts, spills) it is DRAM's or arithmetic's.");
}
