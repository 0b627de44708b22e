// One kernel in full, as text: the verdict, the steps with their counters, what to change.
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "report/report_profile.h"

static double value(const ProfileKernel *k, ProfileMetric m) {
  return profile_value(k, m);
}

static FactUnit unit_of(ProfileMetric m) {
  const char *unit = profile_metric(m)->unit;
  return strcmp(unit, "B") == 0 ? UNIT_BYTES : strcmp(unit, "B/s") == 0 ? UNIT_BYTES_PER_S : UNIT_PLAIN;
}

// A counter with its unit: "16.78 MB", "28.96 us", "81.9%", "1048576".
static void counter_text(char *out, size_t cap, ProfileMetric m, double value) {
  const char *unit = profile_metric(m)->unit;
  if (strcmp(unit, "ns") == 0)
    fact_write_number(out, cap, UNIT_US, value * 1e-3);
  else if (strcmp(unit, "%") == 0)
    sol_format(out, cap, "%.1f%%", value);
  else if (unit[0])
    fact_write_number(out, cap, unit_of(m), value);
  else if (value == __builtin_floor(value) && value < SOL_EXACT)
    sol_format(out, cap, "%.0f", value);
  else
    sol_format(out, cap, "%.2f", value);
}

static void step_lines(Fact *o, const ProfileKernel *k, const ProfileDiagnosis *d) {
  for (int i = 0; i < PROFILE_STEPS; i++) {
    const ProfileStep *s = &d->steps[i];
    fact_line(o, 2, true, "%d. %s%s", i + 1, profile_step_title((ProfileStepId)i),
              s->verdict == PROFILE_BAD ? " (!)" : "");
    fact_line(o, 5, false, "%s", s->text ? s->text : "not counted");
    SolBuffer list = {0};
    for (int c = 0; c < s->used_count; c++) {
      char text[48];
      counter_text(text, sizeof text, s->used[c], value(k, s->used[c]));
      sol_buffer_format(&list, "%s%s %s", c ? ", " : "[", profile_metric(s->used[c])->name, text);
    }
    if (list.text) fact_line(o, 7, false, "%s]", list.text);
    sol_buffer_free(&list);
  }
}

static void finding_lines(Fact *o, const ProfileDiagnosis *d) {
  if (d->finding_count) fact_line(o, 0, true, "What to change");
  for (uint32_t i = 0; i < d->finding_count; i++) {
    const AuditFinding *f = &d->findings[i];
    fact_line(o, 2, true, "%u. %s", i + 1, f->rule);
    fact_line(o, 5, false, "%s", f->message);
    fact_line(o, 5, false, "Fix: %s", f->fix);
  }
}

static void pair(Fact *o, const char *label, SolBuffer *b) {
  if (b->length) fact_text(o, 0, label, b->text);
  b->length = 0;
}

static void verdict_text(SolBuffer *b, const ProfileDiagnosis *d) {
  if (d->band == PROFILE_NO_BAND || !d->roof) return;
  sol_buffer_format(b, "%s: %.0f%% of %s", profile_band_name(d->band), d->share * 100, d->roof);
  MachineResource bound = profile_bound(d);
  if (bound != MACHINE_RESOURCES && bound != d->roof_of && bound != MACHINE_LATENCY)
    sol_buffer_format(b, "; busiest is %s, %.0f%%", machine_resource_name(bound), d->busiest * 100);
  if (d->band == PROFILE_POOR) {
    bool pattern =
        d->load_sectors > 16.05 || d->store_sectors > 16.05 || bound == MACHINE_L1 || bound == MACHINE_L2;
    sol_buffer_puts(b, pattern ? "; an access-pattern problem"
                               : "; an access-pattern problem, or too few bytes in flight");
  }
  bool waste = false;
  for (uint32_t i = 0; i < d->finding_count; i++) waste |= strcmp(d->findings[i].rule, "uncoalesced") == 0;
  if (waste && d->band <= PROFILE_GOOD) sol_buffer_puts(b, "; but part of what it moves is wasted");
}

static void launch_text(SolBuffer *b, const ProfileKernel *k) {
  char least[32], most[32];
  sol_buffer_format(b, "%.0f", k->launches);
  if (k->graph_launches > 0) sol_buffer_format(b, " (%.0f in graphs)", k->graph_launches);
  if (k->grid[0])
    sol_buffer_format(b, ", grid %u,%u,%u block %u,%u,%u", k->grid[0], k->grid[1], k->grid[2], k->block[0],
                      k->block[1], k->block[2]);
  if (k->timed > 1) {
    fact_write_number(least, sizeof least, UNIT_US, k->least * 1e6);
    fact_write_number(most, sizeof most, UNIT_US, k->most * 1e6);
    sol_buffer_format(b, ", %s to %s each", least, most);
  }
}

static void occupancy_text(SolBuffer *b, const ProfileKernel *k) {
  double reached = value(k, PROFILE_occupancy), most = value(k, PROFILE_occupancy_limit);
  if (profile_known(reached)) sol_buffer_format(b, "%.0f%% achieved", reached);
  if (profile_known(reached) && profile_known(most)) sol_buffer_format(b, " of %.0f%%", most);
  if (profile_known(k->registers))
    sol_buffer_format(b, "%s%.0f registers", b->length ? "; " : "", k->registers);
  double shared = (profile_known(k->static_shared) ? k->static_shared : 0) +
                  (profile_known(k->dynamic_shared) ? k->dynamic_shared : 0);
  char text[32];
  fact_write_number(text, sizeof text, UNIT_SIZE, shared);
  if (profile_known(k->static_shared)) sol_buffer_format(b, ", %s shared", text);
}

static void dram_text(SolBuffer *b, const ProfileKernel *k, const ProfileDiagnosis *d) {
  double read = value(k, PROFILE_dram_read), write = value(k, PROFILE_dram_write);
  char r[32], w[32], rate[32];
  if (profile_known(read) && profile_known(write)) {
    fact_write_number(r, sizeof r, UNIT_BYTES, read);
    fact_write_number(w, sizeof w, UNIT_BYTES, write);
    sol_buffer_format(b, "%s read, %s written", r, w);
  }
  if (!profile_known(d->dram_rate)) return;
  fact_write_number(rate, sizeof rate, UNIT_BYTES_PER_S, d->dram_rate);
  sol_buffer_format(b, "%s%s", b->length ? ", " : "", rate);
}

static void share_text(SolBuffer *b, const char *name, double share) {
  if (profile_known(share)) sol_buffer_format(b, "%s%s %.0f%%", b->length ? ", " : "", name, share * 100);
}

static void hits_text(SolBuffer *b, const ProfileKernel *k) {
  share_text(b, "L1", report_profile_l1_hit(k));
  share_text(b, "L2", report_profile_l2_hit(k));
}

// Of what each can sustain.
static void pipes_text(SolBuffer *b, const ProfileKernel *k, const ProfileDiagnosis *d) {
  share_text(b, "issue slots", value(k, PROFILE_issue_pct) / 100);
  share_text(b, "fp32", value(k, PROFILE_fma_pct) / 100);
  share_text(b, "tensor cores", value(k, PROFILE_tensor_pct) / 100);
  share_text(b, "L1 and shared memory", d->shares[MACHINE_L1]);
  share_text(b, "L2", d->shares[MACHINE_L2]);
  share_text(b, "DRAM", d->shares[MACHINE_DRAM]);
}

static void point_text(SolBuffer *b, const ProfileKernel *k, const ProfileDiagnosis *d) {
  char rate[32], roof[32];
  if (!(d->intensity > 0)) return;
  fact_write_number(rate, sizeof rate, UNIT_FLOPS_PER_S, d->flops / k->seconds);
  sol_buffer_format(b, "%.3g FLOP/byte, %s", d->intensity, rate);
  if (!profile_known(d->attainable)) return;
  fact_write_number(roof, sizeof roof, UNIT_FLOPS_PER_S, d->attainable);
  sol_buffer_format(b, " of %s under the roof", roof);
}

void report_profile_kernel_text(Fact *list, const ProfileKernel *k) {
  const ProfileDiagnosis *d = k->diagnosis;
  Fact *o = fact_object(list, 0, 0);
  SolBuffer b = {0};
  fact_title(o, "%s", k->title);
  if (profile_known(k->seconds)) fact_number(o, 0, "time", UNIT_US, BASIS_MEASURED, k->seconds * 1e6);
  if (profile_known(k->share)) fact_number(o, 0, "of the whole", UNIT_SHARE, BASIS_MEASURED, k->share);
  verdict_text(&b, d);
  pair(o, "verdict", &b);
  launch_text(&b, k);
  pair(o, "launches", &b);
  dram_text(&b, k, d);
  pair(o, "DRAM", &b);
  hits_text(&b, k);
  pair(o, "cache hits", &b);
  pipes_text(&b, k, d);
  pair(o, "busy", &b);
  occupancy_text(&b, k);
  pair(o, "occupancy", &b);
  point_text(&b, k, d);
  pair(o, "roofline", &b);
  sol_buffer_free(&b);
  step_lines(o, k, d);
  finding_lines(o, d);
}
