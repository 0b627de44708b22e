// The life of one block as facts: a picture in text, all of it in JSON.
#include <string.h>

#include "base/format.h"
#include "report/report_audit.h"

enum { COLUMNS = 60, EACH = MACHINE_BUCKETS / COLUMNS };

static void number(Fact *o, const char *key, FactUnit unit, double value) {
  fact_number(o, key, 0, unit, BASIS_MODELLED, value);
}

static void shares(Fact *o, const char *key, const float *values) {
  Fact *list = fact_list(o, key, 0);
  for (int b = 0; b < MACHINE_BUCKETS; b++)
    number(list, 0, UNIT_SHARE, (double)(int)((double)values[b] * 1000 + 0.5) / 1000);
}

static const char *does_of(const MachineRole *r) {
  if (r->copies && r->multiplies) return "copy and multiply";
  return r->copies ? "copy" : r->multiplies ? "multiply" : "neither copy nor multiply";
}

static const AuditInst *inst_at(const AuditKernel *k, uint32_t place) {
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].place == place) return &k->insts[i];
  return NULL;
}

static double mean_share(const AuditKernel *k, const MachineTimeline *t, const MachineWait *w) {
  double warps = k->slowest->occupancy.warps_per_block;
  return warps > 0 ? w->clocks / warps / t->clocks : 0;
}

static const char *state_words(MachineState state) {
  static const char *const words[] = {"issuing", "copies", "tensor cores", "other warps",
                                      "loads and shared memory"};
  _Static_assert(SOL_COUNT(words) == MACHINE_STATES, "words for each");
  return words[state];
}

// ---- JSON ----

static void unit_facts(Fact *o, const MachineTimeline *t) {
  Fact *list = fact_list(o, "units", 0);
  for (int u = 0; u < MACHINE_UNITS; u++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "unit", 0, machine_unit_key((MachineUnit)u));
    number(row, "busy", UNIT_SHARE, t->busy[u]);
    shares(row, "shares", t->unit[u]);
  }
}

static void role_facts(Fact *o, const MachineTimeline *t) {
  Fact *list = fact_list(o, "roles", 0);
  for (uint32_t i = 0; i < t->role_count; i++) {
    const MachineRole *r = &t->roles[i];
    Fact *row = fact_object(list, 0, 0);
    number(row, "first_warp", UNIT_PLAIN, r->first);
    number(row, "warps", UNIT_PLAIN, r->warps);
    fact_text(row, "does", 0, does_of(r));
    Fact *part = fact_object(row, "share", 0), *states = fact_object(row, "shares", 0);
    for (int s = 0; s < MACHINE_STATES; s++) {
      number(part, machine_state_key((MachineState)s), UNIT_SHARE, r->share[s]);
      shares(states, machine_state_key((MachineState)s), r->state[s]);
    }
  }
}

static bool same_line(const AuditInst *a, const AuditInst *b) {
  return a && b && a->line == b->line && strcmp(a->file, b->file) == 0 &&
         strcmp(a->inlined ? a->inlined : "", b->inlined ? b->inlined : "") == 0;
}

// Waits by source line, longest first: loops are unrolled.
static uint32_t by_line(const AuditKernel *k, const MachineTimeline *t, MachineWait *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->wait_count; i++) {
    uint32_t at = 0;
    while (at < count && (out[at].what != t->waits[i].what ||
                          !same_line(inst_at(k, out[at].place), inst_at(k, t->waits[i].place))))
      at++;
    if (at == count) out[count++] = (MachineWait){.place = t->waits[i].place, .what = t->waits[i].what};
    out[at].clocks += t->waits[i].clocks;
    out[at].times += t->waits[i].times;
    for (MachineWait w = out[at]; at > 0 && out[at - 1].clocks < w.clocks; at--)
      out[at] = out[at - 1], out[at - 1] = w;
  }
  return count;
}

static void wait_facts(Fact *o, const AuditKernel *k, const MachineTimeline *t) {
  Fact *list = fact_list(o, "waits", 0);
  MachineWait waits[MACHINE_WAITS];
  uint32_t count = by_line(k, t, waits);
  for (uint32_t i = 0; i < count; i++) {
    const MachineWait *w = &waits[i];
    const AuditInst *in = inst_at(k, w->place);
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "for", 0, machine_state_key(w->what));
    fact_text(row, "file", 0, in ? in->file : NULL);
    number(row, "line", UNIT_PLAIN, in ? in->line : 0);
    fact_text(row, "instruction", 0, in ? in->text : NULL);
    number(row, "times", UNIT_PLAIN, w->times);
    number(row, "clocks", UNIT_CLOCKS, w->clocks);
    number(row, "share", UNIT_SHARE, mean_share(k, t, w));
  }
}

// ---- text ----

static char shade(double share) {
  return share < 0.05 ? ' ' : share < 0.25 ? '.' : share < 0.5 ? ':' : share < 0.75 ? '+' : '#';
}

static double mean(const float *values, int column) {
  double sum = 0;
  for (int b = 0; b < EACH; b++) sum += (double)values[column * EACH + b];
  return sum / EACH;
}

static void unit_row(SolBuffer *b, const char *name, const float *values, double busy) {
  sol_buffer_format(b, "  %-15s|", name);
  for (int c = 0; c < COLUMNS; c++) sol_buffer_format(b, "%c", shade(mean(values, c)));
  sol_buffer_format(b, "| %3.0f%%\n", busy * 100);
}

// The state that most of the warps' time goes to; nothing once they have ended.
static char state_letter(const MachineRole *r, int column) {
  static const char letters[] = {'#', 'c', 't', 'w', 'm'};
  double most = 0, sum = 0;
  int best = 0;
  for (int s = 0; s < MACHINE_STATES; s++) {
    double share = mean(r->state[s], column);
    sum += share;
    if (share > most) most = share, best = s;
  }
  return sum < 0.5 ? ' ' : letters[best];
}

static void role_row(SolBuffer *b, const MachineRole *r) {
  char name[32];
  if (r->warps > 1)
    sol_format(name, sizeof name, "warps %u-%u", r->first, r->first + r->warps - 1);
  else
    sol_format(name, sizeof name, "warp %u", r->first);
  sol_buffer_format(b, "  %-15s|", name);
  for (int c = 0; c < COLUMNS; c++) sol_buffer_format(b, "%c", state_letter(r, c));
  sol_buffer_format(b, "| %s\n", does_of(r));
}

void report_timeline_picture(SolBuffer *b, const MachineTimeline *t) {
  unit_row(b, "copies", t->unit[MACHINE_COPIES], t->busy[MACHINE_COPIES]);
  unit_row(b, "tensor cores", t->unit[MACHINE_TENSORS], t->busy[MACHINE_TENSORS]);
  unit_row(b, "CUDA cores", t->unit[MACHINE_CORES], t->busy[MACHINE_CORES]);
  for (uint32_t i = 0; i < t->role_count; i++) role_row(b, &t->roles[i]);
}

static void picture(Fact *o, const MachineTimeline *t) {
  SolBuffer b = {0};
  report_timeline_picture(&b, t);
  if (b.text) fact_picture(o, b.text);
  sol_buffer_free(&b);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The place of a wait and the call of it, where it is inlined.
static const char *place_of(const AuditInst *in, char *out, size_t cap) {
  const char *at = in->inlined ? in->inlined : "", *last = at, *before = at;
  for (const char *next; (next = strstr(last, " > ")); last = next + 3) before = last;
  if (*at)
    sol_format(out, cap, "%s", before);
  else
    sol_format(out, cap, "%s:%u", base_name(in->file), in->line);
  return out;
}

static void wait_lines(Fact *o, const AuditKernel *k, const MachineTimeline *t) {
  enum { NAMED = 6 };
  const double least = 0.01; // of the warps' time
  MachineWait waits[MACHINE_WAITS];
  uint32_t count = by_line(k, t, waits);
  for (uint32_t i = 0; i < count && i < NAMED; i++) {
    const MachineWait *w = &waits[i];
    const AuditInst *in = inst_at(k, w->place);
    if (mean_share(k, t, w) < least || !in) break;
    char place[200];
    fact_line(o, 2, false, "%.0f%% of the warps' time: waits for %s, %s", 100 * mean_share(k, t, w),
              state_words(w->what), place_of(in, place, sizeof place));
  }
}

static void text_facts(Fact *o, const AuditKernel *k, const MachineTimeline *t, double us) {
  const AuditShape *s = k->slowest;
  fact_line(o, 0, true, "Timeline of block %llu%s: %.0f clocks, %.2f us (predicted)",
            (unsigned long long)s->timeline_block, s->timeline_cut ? ", its beginning" : "", t->clocks, us);
  picture(o, t);
  fact_line(
      o, 2, false,
      "Units: ' ' idle . : + # busy. Warps: # issue, wait for c copies, t tensor cores, w other warps, m loads and shared memory.");
  fact_line(
      o, 2, false,
      "Copies are in flight %.0f%% of the time (bytes move in %.0f%%), tensor cores multiply %.0f%%, both together %.0f%%: "
      "%.0f%% of the copies' time is hidden behind products.",
      100 * t->busy[MACHINE_COPIES], 100 * t->transfer, 100 * t->busy[MACHINE_TENSORS], 100 * t->overlap,
      100 * t->hidden);
  wait_lines(o, k, t);
}

void report_timeline_facts(Fact *kernel, const AuditProgram *p, const AuditKernel *k, const AuditView *view) {
  const AuditShape *s = k->slowest;
  const MachineTimeline *t = s ? s->timeline : NULL;
  if (view->timeline == AUDIT_NO_TIMELINE || !t || !(t->clocks > 0)) return;
  double us = t->clocks / p->device->boost_clock.value * 1e6;
  Fact *o = fact_object(kernel, "timeline", 0);
  number(o, "block", UNIT_PLAIN, (double)s->timeline_block);
  fact_bool(o, "cut", 0, s->timeline_cut);
  number(o, "clocks", UNIT_CLOCKS, t->clocks);
  number(o, "us", UNIT_US, us);
  number(o, "exposed_clocks", UNIT_CLOCKS, t->exposed);
  number(o, "transfer", UNIT_SHARE, t->transfer);
  number(o, "overlap", UNIT_SHARE, t->overlap);
  number(o, "hidden", UNIT_SHARE, t->hidden);
  unit_facts(o, t);
  role_facts(o, t);
  wait_facts(o, k, t);
  if (view->timeline == AUDIT_TIMELINE_SHOWN) text_facts(kernel, k, t, us);
}
