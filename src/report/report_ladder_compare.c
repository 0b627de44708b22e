// Compares predictions with measurements, of this run or of an earlier --json.
#include <math.h>
#include <stdlib.h>

#include "base/format.h"
#include "report/report_ladder.h"

#define LEAST_DRAM 1e6 // bytes: below, a difference is within the noise

// ---- reading an earlier run ----

static double number_of(SolJson object, const char *key) {
  SolJson value;
  double number;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : NAN;
}

static double number_or_zero(SolJson object, const char *key) {
  double number = number_of(object, key);
  return isnan(number) ? 0 : number;
}

static bool read_figures(SolJson rung, const char *key, LadderFigures *f) {
  SolJson o, value;
  if (!sol_json_get(rung, key, &o) || sol_json_kind(o) != SOL_JSON_OBJECT) return false;
  *f = (LadderFigures){.counts = ladder_counts_unknown()};
  if (sol_json_get(o, "ran", &value)) sol_json_bool(value, &f->ran);
  if (sol_json_get(o, "checked", &value)) sol_json_bool(value, &f->checked);
  if (sol_json_get(o, "error", &value)) sol_json_string(value, f->message, sizeof f->message);
  f->us = number_or_zero(o, "time_us");
  f->light_us = number_or_zero(o, "light_us");
  f->spread = number_or_zero(o, "spread");
  f->least_us = number_or_zero(o, "least_us");
  f->most_us = number_or_zero(o, "most_us");
  f->launches = number_or_zero(o, "launches");
  f->registers = (int)number_or_zero(o, "registers");
  f->rounds = (int)number_or_zero(o, "rounds");
  f->calls = (int)number_or_zero(o, "calls");
  f->sets = (int)number_or_zero(o, "sets");
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    if (sol_json_text_is(o, "bound", machine_resource_key((MachineResource)r))) f->bound = (MachineResource)r;
#define LADDER_READ(name) f->counts.name = number_of(o, #name);
  LADDER_COUNTS(LADDER_READ)
#undef LADDER_READ
  return true;
}

static bool is_this(const LadderAnswer *a, SolJson ladder) {
  char shape[96];
  report_ladder_shape_text(a->ladder, a->c.dim, shape, sizeof shape);
  return sol_json_text_is(ladder, "name", a->ladder->name) && sol_json_text_is(ladder, "shape", shape) &&
         sol_json_text_is(ladder, "dtype", sol_dtype_name(a->c.dtype));
}

bool report_ladder_read(LadderAnswer *a, SolJson root, bool predictions) {
  SolJson list, ladder, rungs, rung;
  bool any = false;
  if (!sol_json_get(root, "ladders", &list)) return false;
  for (SolJsonIter it = {list, 0}; sol_json_next(&it, NULL, &ladder);) {
    if (!is_this(a, ladder) || !sol_json_get(ladder, "rungs", &rungs)) continue;
    for (SolJsonIter at = {rungs, 0}; sol_json_next(&at, NULL, &rung);)
      for (int i = 0; i < a->count; i++) {
        LadderRow *row = &a->rows[i];
        if (!sol_json_text_is(rung, "rung", row->rung->name)) continue;
        row->measured = read_figures(rung, "measured", &row->gpu);
        if (predictions) row->emulated = read_figures(rung, "predicted", &row->emu);
        any = true;
      }
  }
  return any;
}

// ---- comparing ----

static bool has_both(const LadderRow *r) {
  return r->emulated && r->measured && r->emu.ran && r->gpu.ran;
}

static double off_by(double predicted, double measured) {
  if (!(predicted > 0) || !(measured > 0)) return NAN;
  return fmax(predicted / measured, measured / predicted) - 1;
}

// Counts that are exact in both, and how many of them differ. DRAM's are not among them.
static int count_differences(const LadderRow *r, int *known) {
  int differ = 0;
  const LadderCounts *p = &r->emu.counts, *m = &r->gpu.counts;
#define LADDER_DIFFER(name)                                                                                  \
  if (&p->name < &p->dram_read && isfinite(p->name) && isfinite(m->name))                                    \
    ++*known, differ += p->name != m->name;
  LADDER_COUNTS(LADDER_DIFFER)
#undef LADDER_DIFFER
  return differ;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  if (!count) return NAN;
  qsort(values, (size_t)count, sizeof *values, ascending);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

LadderComparison report_ladder_compare(const LadderAnswer *answers, int count) {
  LadderComparison c = {0};
  int rows = 0;
  for (int i = 0; i < count; i++) rows += answers[i].count;
  double *dram = calloc((size_t)rows + 1, sizeof *dram), *time = calloc((size_t)rows + 1, sizeof *time);
  for (int i = 0; i < count && dram && time; i++)
    for (int k = 0; k < answers[i].count; k++) {
      const LadderRow *r = &answers[i].rows[k];
      if (!has_both(r)) continue;
      c.rows++;
      c.differ += count_differences(r, &c.counts);
      // What stays dirty in L2 is not in the GPU's counter, but in the model's.
      bool moves = ladder_dram(&r->gpu.counts) >= LEAST_DRAM;
      double d = moves ? off_by(ladder_dram(&r->emu.counts), ladder_dram(&r->gpu.counts)) : NAN,
             t = off_by(r->emu.us, r->gpu.us);
      if (isfinite(d)) {
        dram[c.dram_rows++] = d;
        if (d >= c.dram_worst)
          c.dram_worst = d,
          sol_format(c.worst_dram, sizeof c.worst_dram, "%s %s", answers[i].ladder->name, r->rung->name);
      }
      if (isfinite(t)) {
        time[c.time_rows++] = t;
        if (t >= c.time_worst)
          c.time_worst = t,
          sol_format(c.worst_time, sizeof c.worst_time, "%s %s", answers[i].ladder->name, r->rung->name);
      }
    }
  c.dram_median = dram ? median(dram, c.dram_rows) : NAN;
  c.time_median = time ? median(time, c.time_rows) : NAN;
  free(dram);
  free(time);
  return c;
}

static void put(Fact *f, const char *key, const char *label, FactUnit unit, FactBasis basis, double value) {
  if (isfinite(value))
    fact_number(f, key, label, unit, basis, value);
  else if (label)
    fact_text(f, 0, label, "");
}

static const char *counts_word(const LadderRow *r) {
  int known = 0, differ = count_differences(r, &known);
  return !known ? "" : differ ? "differ" : "equal";
}

// Every count that differs, one text each.
static void each_difference(const LadderAnswer *a, const LadderRow *r,
                            void (*say)(void *to, const char *text), void *to) {
  const LadderCounts *p = &r->emu.counts, *m = &r->gpu.counts;
  char text[192];
#define LADDER_SAY(field)                                                                                    \
  if (&p->field < &p->dram_read && isfinite(p->field) && isfinite(m->field) && p->field != m->field) {       \
    sol_format(text, sizeof text, "%s %s: %s %.15g emulated, %.15g counted", a->ladder->name, r->rung->name, \
               #field, p->field, m->field);                                                                  \
    say(to, text);                                                                                           \
  }
  LADDER_COUNTS(LADDER_SAY)
#undef LADDER_SAY
}

static void say_fact(void *to, const char *text) {
  fact_text(to, 0, "", text);
}

static void say_item(void *to, const char *text) {
  sol_buffer_format(to, "- %s\n", text);
}

void report_ladder_compare_facts(Fact *root, const LadderAnswer *answers, int count,
                                 const LadderWhere *where) {
  Fact *o = fact_object(root, "comparison", "");
  fact_title(o, "Predictions for %s against measurements%s%s%s%s", where->gpu,
             where->driver[0] ? ", driver " : "", where->driver, where->date[0] ? ", " : "", where->date);
  Fact *list = fact_list(o, "rows", "Predicted and measured");
  static const FactColumn columns[] = {
      {"ladder", FIT_CUT}, {"rung", FIT_CUT}, {"predicted", 0}, {"measured", 0},      {"p / m", 0},
      {"counts", 0},       {"ratio", 0},      {"DRAM", 0},      {"DRAM measured", 0}, {0}};
  fact_columns(list, columns);
  LadderComparison c = report_ladder_compare(answers, count);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < answers[i].count; k++) {
      const LadderRow *r = &answers[i].rows[k];
      if (!has_both(r)) continue;
      Fact *row = fact_object(list, 0, 0);
      double p = ladder_dram(&r->emu.counts), m = ladder_dram(&r->gpu.counts);
      fact_text(row, "ladder", "ladder", answers[i].ladder->name);
      fact_text(row, "rung", "rung", r->rung->name);
      fact_text(row, "counts", c.counts ? "counts" : 0, counts_word(r));
      put(row, "dram_predicted", c.dram_rows ? "DRAM" : 0, UNIT_BYTES, BASIS_MODELLED, p);
      put(row, "dram_measured", c.dram_rows ? "DRAM measured" : 0, UNIT_BYTES, BASIS_MEASURED, m);
      put(row, "dram_ratio", c.dram_rows ? "ratio" : 0, UNIT_TIMES, BASIS_NONE, m > 0 ? p / m : NAN);
      put(row, "predicted_us", "predicted", UNIT_US, BASIS_MODELLED, r->emu.us > 0 ? r->emu.us : NAN);
      put(row, "measured_us", "measured", UNIT_US, BASIS_MEASURED, r->gpu.us);
      put(row, "time_ratio", "p / m", UNIT_TIMES, BASIS_NONE, r->emu.us > 0 ? r->emu.us / r->gpu.us : NAN);
    }
  if (c.differ) {
    Fact *differ = fact_list(o, "differ", "Counts that differ");
    for (int i = 0; i < count; i++)
      for (int k = 0; k < answers[i].count; k++)
        if (has_both(&answers[i].rows[k]))
          each_difference(&answers[i], &answers[i].rows[k], say_fact, differ);
  }
  Fact *s = fact_object(o, "summary", "Off by");
  put(s, "rows", "rungs and points with both", UNIT_PLAIN, BASIS_NONE, c.rows);
  put(s, "counts", "exact counts compared", UNIT_PLAIN, BASIS_NONE, c.counts);
  put(s, "counts_differ", "of those differ", UNIT_PLAIN, BASIS_NONE, c.differ);
  if (c.dram_rows) {
    put(s, "dram_median", "DRAM bytes (1 MB and more), median", UNIT_SHARE, BASIS_NONE, c.dram_median);
    put(s, "dram_worst", "DRAM bytes, worst", UNIT_SHARE, BASIS_NONE, c.dram_worst);
    fact_text(s, "dram_worst_at", "which is", c.worst_dram);
  }
  if (c.time_rows) {
    put(s, "time_median", "time, median", UNIT_SHARE, BASIS_NONE, c.time_median);
    put(s, "time_worst", "time, worst", UNIT_SHARE, BASIS_NONE, c.time_worst);
    fact_text(s, "time_worst_at", "which is ", c.worst_time);
  }
}

static void number(SolBuffer *out, const char *format, double value) {
  sol_buffer_puts(out, " ");
  if (isfinite(value)) sol_buffer_format(out, format, value);
  sol_buffer_puts(out, " |");
}

void report_ladder_compare_markdown(SolBuffer *out, const LadderAnswer *answers, int count,
                                    const LadderWhere *where) {
  LadderComparison c = report_ladder_compare(answers, count);
  sol_buffer_format(out, "%s%s%s%s%s: %d rungs and points. Exact counts that differ: %d of %d. ", where->gpu,
                    where->driver[0] ? ", driver " : "", where->driver, where->date[0] ? ", " : "",
                    where->date, c.rows, c.differ, c.counts);
  if (c.dram_rows)
    sol_buffer_format(out,
                      "DRAM bytes (of 1 MB and more) are off by %.1f%% at the median, %.0f%% at worst (%s). ",
                      c.dram_median * 100, c.dram_worst * 100, c.worst_dram);
  if (c.time_rows)
    sol_buffer_format(out, "Time is off by %.1f%% at the median, %.0f%% at worst (%s).", c.time_median * 100,
                      c.time_worst * 100, c.worst_time);
  sol_buffer_puts(
      out, "\n\n| ladder | rung | counts | DRAM MB modelled | measured | ratio | predicted us | measured "
           "us | ratio |\n|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < count; i++)
    for (int k = 0; k < answers[i].count; k++) {
      const LadderRow *r = &answers[i].rows[k];
      if (!has_both(r)) continue;
      double p = ladder_dram(&r->emu.counts), m = ladder_dram(&r->gpu.counts);
      sol_buffer_format(out, "| %s | %s | %s |", answers[i].ladder->name, r->rung->name, counts_word(r));
      number(out, "%.2f", p / 1e6);
      number(out, "%.2f", m / 1e6);
      number(out, "%.2f", m > 0 ? p / m : NAN);
      number(out, "%.2f", r->emu.us > 0 ? r->emu.us : NAN);
      number(out, "%.2f", r->gpu.us);
      number(out, "%.2f", r->emu.us > 0 ? r->emu.us / r->gpu.us : NAN);
      sol_buffer_puts(out, "\n");
    }
  if (c.differ) sol_buffer_puts(out, "\nCounts that differ:\n\n");
  for (int i = 0; i < count && c.differ; i++)
    for (int k = 0; k < answers[i].count; k++)
      if (has_both(&answers[i].rows[k])) each_difference(&answers[i], &answers[i].rows[k], say_item, out);
}
