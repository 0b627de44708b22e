// Ladders as facts: in text tables of counts and of times and what each rung changes, in JSON one
// object a rung.
#include "report/report_ladder.h"

#include <math.h>

#include "base/format.h"
#include "ladder/source.h"
#include "report/plot.h"

static const char *const stories[] = {"first", "faster", "slower", "same"};

void report_ladder_shape_text(const Ladder *ladder, const int64_t dim[4], char *out, size_t cap) {
  size_t n = 0;
  int rank = 1;
  for (const char *p = ladder->shape; *p; p++) rank += *p == 'x';
  out[0] = 0;
  for (int i = 0; i < rank && i < 4 && n < cap; i++)
    n += sol_format(out + n, cap - n, "%s%lld", i ? "x" : "", (long long)dim[i]);
}

const LadderRow *report_ladder_before(const LadderAnswer *a, const LadderRow *row) {
  if (row->rung->against) {
    for (int i = 0; i < a->count; i++)
      if (!strcmp(a->rows[i].rung->name, row->rung->against)) return &a->rows[i];
    return NULL;
  }
  return row > a->rows && row->rung == row[-1].rung + 1 ? row - 1 : NULL;
}

static const LadderFigures *figures_of(const LadderRow *row, bool gpu) {
  const LadderFigures *f = gpu ? &row->gpu : &row->emu;
  return row && (gpu ? row->measured : row->emulated) && f->ran && f->us > 0 ? f : NULL;
}

bool ladder_seen(const LadderRung *rung, const LadderWhere *where) {
  const SolDevice *device = where->device;
  if (where->gpu[0] && sol_device_find(where->gpu, &device, NULL)) device = NULL;
  return rung->seen && device && strcmp(device->id, rung->seen_on) == 0;
}

LadderVerdict report_ladder_verdict(const LadderAnswer *a, const LadderRow *row, bool gpu) {
  // Of the ratios of neighbouring rungs nine in ten are predicted within 27% (bench/results, H200).
  static const double same = 0.05, noise = 0.01, error = 0.27;
  const LadderRow *before = report_ladder_before(a, row);
  const LadderFigures *now = figures_of(row, gpu), *then = before ? figures_of(before, gpu) : NULL;
  if (row->rung->story == LADDER_FIRST || !now || !then) return LADDER_UNDECIDED;
  double gain = then->us / now->us, least = 1 + noise + (gpu ? now->spread + then->spread : 0);
  double against = row->rung->story == LADDER_FASTER   ? 1 / gain
                   : row->rung->story == LADDER_SLOWER ? gain
                                                       : fmax(gain, 1 / gain);
  bool holds = row->rung->story == LADDER_SAME ? against < 1 + same : against < 1 / least;
  if (holds) return LADDER_AS_EXPECTED;
  return gpu || against > 1 + error ? LADDER_NOT_AS_EXPECTED : LADDER_UNDECIDED;
}

static const FactColumn list_columns[] = {
    {"name", 0}, {"what it shows", FIT_WRAP}, {"rungs", 0}, {"points", 0}, {"default", 0},
    {"type", 0}, {"sizes", FIT_CUT},          {0}};

void report_ladder_list_facts(Fact *root) {
  for (int sweeps = 0; sweeps < 2; sweeps++) {
    Fact *list = fact_list(root, sweeps ? "sweeps" : "ladders", sweeps ? "Sweeps" : "Ladders");
    fact_columns(list, list_columns);
    for (int i = 0; i < LADDER_COUNT; i++) {
      const Ladder *l = ladders[i];
      char shape[96];
      if (l->sweep != (sweeps == 1)) continue;
      report_ladder_shape_text(l, l->size, shape, sizeof shape);
      Fact *row = fact_object(list, 0, 0);
      fact_text(row, "name", "name", l->name);
      fact_number(row, "rungs", sweeps ? "points" : "rungs", UNIT_PLAIN, BASIS_NONE, l->rung_count);
      fact_text(row, "dims", "sizes", l->shape);
      fact_text(row, "shape", "default", shape);
      fact_text(row, "dtype", "type", sol_dtype_name(l->dtypes[0]));
      fact_text(row, "title", "what it shows", l->title);
      fact_text(row, "about", 0, l->about);
      Fact *rungs = fact_list(row, "names", 0);
      for (int r = 0; r < l->rung_count; r++) fact_text(rungs, 0, 0, l->rungs[r].name);
    }
  }
}

// ---- JSON ----

static void known(Fact *f, const char *key, FactUnit unit, FactBasis basis, double value) {
  if (isfinite(value))
    fact_number(f, key, 0, unit, basis, value);
  else
    fact_unknown(f, key, 0);
}

static void count_keys(Fact *f, const LadderCounts *c, bool gpu) {
  FactBasis exact = gpu ? BASIS_MEASURED : BASIS_EXACT, modelled = gpu ? BASIS_MEASURED : BASIS_MODELLED;
  bool any = false;
#define LADDER_ANY(name) any |= isfinite(c->name);
  LADDER_COUNTS(LADDER_ANY)
#undef LADDER_ANY
  if (!any) return;
#define LADDER_PUT(name) known(f, #name, UNIT_PLAIN, &c->name >= &c->dram_read ? modelled : exact, c->name);
  LADDER_COUNTS(LADDER_PUT)
#undef LADDER_PUT
}

static void figure_keys(Fact *parent, const LadderAnswer *a, const LadderRow *row, bool gpu) {
  const LadderFigures *f = gpu ? &row->gpu : &row->emu;
  if (!(gpu ? row->measured : row->emulated)) return;
  FactBasis basis = gpu ? BASIS_MEASURED : BASIS_MODELLED;
  Fact *o = fact_object(parent, gpu ? "measured" : "predicted", 0);
  fact_bool(o, "ran", 0, f->ran);
  fact_bool(o, "checked", 0, f->checked);
  if (f->checked) fact_number(o, "worst_error", 0, UNIT_PLAIN, BASIS_NONE, f->worst);
  if (f->message[0]) fact_text(o, "error", 0, f->message);
  if (!f->ran) return;
  known(o, "time_us", UNIT_US, basis, f->us > 0 ? f->us : NAN);
  known(o, "light_us", UNIT_US, basis, f->light_us > 0 ? f->light_us : NAN);
  if (f->us > 0) {
    known(o, "bytes_per_s", UNIT_BYTES_PER_S, basis, row->bytes / f->us * 1e6);
    known(o, "of_light", UNIT_SHARE, basis, f->light_us / f->us);
    const LadderRow *before = report_ladder_before(a, row);
    const LadderFigures *then = before ? figures_of(before, gpu) : NULL, *first = figures_of(a->rows, gpu);
    if (then) known(o, "to_before", UNIT_TIMES, basis, then->us / f->us);
    if (first) known(o, "to_first", UNIT_TIMES, basis, first->us / f->us);
    LadderVerdict verdict = report_ladder_verdict(a, row, gpu);
    if (verdict) fact_bool(o, "as_told", 0, verdict == LADDER_AS_EXPECTED);
  }
  if (gpu) {
    fact_number(o, "spread", 0, UNIT_SHARE, BASIS_MEASURED, f->spread);
    fact_number(o, "least_us", 0, UNIT_US, BASIS_MEASURED, f->least_us);
    fact_number(o, "most_us", 0, UNIT_US, BASIS_MEASURED, f->most_us);
    fact_number(o, "rounds", 0, UNIT_PLAIN, BASIS_NONE, f->rounds);
    fact_number(o, "calls", 0, UNIT_PLAIN, BASIS_NONE, f->calls);
    fact_number(o, "sets", 0, UNIT_PLAIN, BASIS_NONE, f->sets);
  } else {
    fact_number(o, "launches", 0, UNIT_PLAIN, BASIS_EXACT, f->launches);
    fact_text(o, "bound", 0, machine_resource_key(f->bound));
    Fact *busy = f->timeline ? fact_object(o, "busy", 0) : NULL; // shares of a block's life
    for (int u = 0; u < MACHINE_UNITS && busy; u++)
      known(busy, machine_unit_key((MachineUnit)u), UNIT_SHARE, BASIS_MODELLED, f->timeline->busy[u]);
    fact_number(o, "registers", 0, UNIT_PLAIN, f->guessed ? BASIS_MODELLED : BASIS_EXACT, f->registers);
  }
  count_keys(o, &f->counts, gpu);
}

// The kernel as it was launched, or as the rung names it.
static const char *kernel_of(const LadderRow *row) {
  return row->emu.kernel ? row->emu.kernel : row->gpu.kernel ? row->gpu.kernel : row->rung->kernel;
}

static void rung_keys(Fact *parent, const LadderAnswer *a, const LadderWhere *where) {
  Fact *list = fact_list(parent, "rungs", 0);
  for (int i = 0; i < a->count; i++) {
    const LadderRow *row = &a->rows[i];
    Fact *o = fact_object(list, 0, 0);
    fact_text(o, "rung", 0, row->rung->name);
    if (a->ladder->sweep) fact_number(o, "x", 0, UNIT_PLAIN, BASIS_NONE, row->rung->x);
    if (row->rung->change) fact_text(o, "change", 0, row->rung->change);
    if (row->rung->why) fact_text(o, "why", 0, row->rung->why);
    if (ladder_seen(row->rung, where)) fact_text(o, "seen", 0, row->rung->seen);
    LadderSource at;
    if (kernel_of(row) && ladder_source(a->ladder, kernel_of(row), &at)) {
      fact_text(o, "file", 0, at.path);
      if (at.line) fact_number(o, "line", 0, UNIT_PLAIN, BASIS_NONE, at.line);
      if (at.text) fact_textf(o, "code", 0, "%.*s", (int)at.length, at.text);
    }
    if (!a->ladder->sweep) fact_text(o, "story", 0, stories[row->rung->story]);
    if (row->rung->against) fact_text(o, "against", 0, row->rung->against);
    fact_bool(o, "streamed", 0, row->rung->streamed);
    fact_number(o, "bytes", 0, UNIT_BYTES, BASIS_EXACT, row->bytes);
    figure_keys(o, a, row, false);
    figure_keys(o, a, row, true);
  }
}

// ---- for people ----

static void cell(Fact *row, const char *label, FactUnit unit, FactBasis basis, double value) {
  if (isfinite(value))
    fact_number(row, 0, label, unit, basis, value);
  else
    fact_text(row, 0, label, "");
}

// All digits while they are readable, in the whole table.
static FactUnit count_unit(const LadderAnswer *a) {
  double most = 0;
  for (int i = 0; i < a->count; i++) {
    const LadderCounts *c = &a->rows[i].emu.counts;
    const double counts[] = {ladder_requests(c), ladder_sectors(c), c->wavefronts, c->local_sectors};
    for (size_t k = 0; k < SOL_COUNT(counts); k++)
      if (counts[k] > most) most = counts[k];
  }
  return most < 1e7 ? UNIT_PLAIN : UNIT_COUNT;
}

static const FactColumn count_columns[] = {{"rung", FIT_CUT},
                                           {"point", FIT_CUT},
                                           {"sectors", 0},
                                           {"per request", 0},
                                           {"DRAM read", 0},
                                           {"DRAM written", 0},
                                           {"wavefronts", 0},
                                           {"requests", 0},
                                           {"local sectors", 0},
                                           {"launches", 0},
                                           {0}};
static const FactColumn time_columns[] = {{"rung", FIT_CUT},
                                          {"point", FIT_CUT},
                                          {"measured", 0},
                                          {"predicted", 0},
                                          {"of light", 0},
                                          {"over before", 0},
                                          {"bound by", FIT_CUT},
                                          {"tensor cores busy", 0},
                                          {"predicted / this", 0},
                                          {"rate", 0},
                                          {"over first", 0},
                                          {"spread", 0},
                                          {0}};

static void counts_table(Fact *parent, const LadderAnswer *a) {
  Fact *list = fact_list(parent, 0, "Counts of one call (emulated)");
  fact_columns(list, count_columns);
  bool local = false, shared = false, several = false;
  FactUnit unit = count_unit(a);
  for (int i = 0; i < a->count; i++) {
    const LadderFigures *f = &a->rows[i].emu;
    if (!a->rows[i].emulated || !f->ran) continue;
    local |= f->counts.local_requests > 0;
    shared |= f->counts.shared_requests > 0;
    several |= f->launches != 1;
  }
  for (int i = 0; i < a->count; i++) {
    const LadderFigures *f = &a->rows[i].emu;
    const LadderCounts *c = &f->counts;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, a->ladder->sweep ? "point" : "rung", a->rows[i].rung->name);
    double requests = ladder_requests(c), sectors = ladder_sectors(c);
    if (several) cell(row, "launches", UNIT_PLAIN, BASIS_EXACT, f->ran ? f->launches : NAN);
    cell(row, "requests", unit, BASIS_EXACT, requests);
    cell(row, "sectors", unit, BASIS_EXACT, sectors);
    cell(row, "per request", UNIT_PLAIN, BASIS_EXACT, requests > 0 ? sectors / requests : NAN);
    if (shared) cell(row, "wavefronts", unit, BASIS_EXACT, c->wavefronts);
    if (local) cell(row, "local sectors", unit, BASIS_EXACT, c->local_sectors);
    cell(row, "DRAM read", UNIT_BYTES, BASIS_MODELLED, c->dram_read);
    cell(row, "DRAM written", UNIT_BYTES, BASIS_MODELLED, c->dram_write);
  }
}

static bool moves(const LadderAnswer *a) { // some ladders do not measure bytes
  for (int i = 0; i < a->count; i++)
    if (a->rows[i].bytes > 0) return true;
  return false;
}

static bool lives(const LadderAnswer *a) {
  for (int i = 0; i < a->count; i++)
    if (a->rows[i].emu.timeline) return true;
  return false;
}

static void time_cells(Fact *row, const LadderAnswer *a, const LadderRow *r, bool gpu) {
  const LadderFigures *f = figures_of(r, gpu), *first = figures_of(a->rows, gpu);
  const LadderRow *before = report_ladder_before(a, r);
  const LadderFigures *then = before ? figures_of(before, gpu) : NULL;
  FactBasis basis = gpu ? BASIS_MEASURED : BASIS_MODELLED;
  double us = f ? f->us : NAN;
  cell(row, gpu ? "measured" : "predicted", UNIT_US, basis, us);
  if (gpu) cell(row, "spread", UNIT_SHARE, basis, f ? f->spread : NAN);
  if (moves(a)) {
    cell(row, "rate", UNIT_BYTES_PER_S, basis, r->bytes > 0 ? r->bytes / us * 1e6 : NAN);
    cell(row, "of light", UNIT_SHARE, basis, f && f->light_us > 0 ? f->light_us / us : NAN);
  }
  if (!a->ladder->sweep) cell(row, "over before", UNIT_TIMES, basis, then ? then->us / us : NAN);
  cell(row, "over first", UNIT_TIMES, basis, first ? first->us / us : NAN);
  if (!gpu) fact_text(row, 0, "bound by", f ? machine_resource_name(f->bound) : "");
  if (!gpu && lives(a))
    cell(row, "tensor cores busy", UNIT_SHARE, basis,
         f && f->timeline ? f->timeline->busy[MACHINE_TENSORS] : NAN);
}

static void times_table(Fact *parent, const LadderAnswer *a, bool gpu) {
  Fact *list = fact_list(parent, 0, gpu ? "Measured" : "Predicted");
  fact_columns(list, time_columns);
  bool both = false;
  for (int i = 0; i < a->count; i++) both |= gpu && a->rows[i].emulated;
  for (int i = 0; i < a->count; i++) {
    const LadderRow *r = &a->rows[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, a->ladder->sweep ? "point" : "rung", r->rung->name);
    time_cells(row, a, r, gpu);
    const LadderFigures *p = figures_of(r, false), *m = figures_of(r, true);
    if (both) cell(row, "predicted / this", UNIT_TIMES, BASIS_MODELLED, p && m ? p->us / m->us : NAN);
  }
}

static void failures(Fact *parent, const LadderAnswer *a) {
  Fact *list = NULL;
  for (int i = 0; i < a->count; i++)
    for (int gpu = 0; gpu < 2; gpu++) {
      const LadderFigures *f = gpu ? &a->rows[i].gpu : &a->rows[i].emu;
      if (!f->message[0]) continue;
      if (!list) list = fact_list(parent, 0, "What did not run, or came out wrong");
      fact_textf(list, 0, "", "%s (%s): %s", a->rows[i].rung->name, gpu ? "GPU" : "emulator", f->message);
    }
}

static void place_lines(Fact *parent, const LadderAnswer *a, const LadderRow *row, bool source) {
  LadderSource at;
  if (!kernel_of(row) || !ladder_source(a->ladder, kernel_of(row), &at)) return;
  if (at.line)
    fact_line(parent, 5, false, "Code: %s:%d", at.path, at.line);
  else
    fact_line(parent, 5, false, "Code: %s, %s", at.path, kernel_of(row));
  if (source && at.text) fact_code(parent, at.text, at.length);
}

static void texts(Fact *parent, const LadderAnswer *a, const LadderWhere *where) {
  bool any = false;
  for (int i = 0; i < a->count; i++) {
    const LadderRung *r = a->rows[i].rung;
    bool seen = ladder_seen(r, where);
    if (!r->change && !r->why && !seen && !where->source) continue;
    if (!any)
      fact_line(parent, 0, true, "%s", a->ladder->sweep ? "Points to look at" : "What each rung changes");
    any = true;
    fact_line(parent, 2, true, "%s%s%s", r->name, r->change ? ": " : "", r->change ? r->change : "");
    if (r->why || seen)
      fact_line(parent, 5, false, "%s%s%s", r->why ? r->why : "", r->why && seen ? " " : "",
                seen ? r->seen : "");
    if (!a->ladder->sweep || where->source) place_lines(parent, a, &a->rows[i], where->source);
  }
}

static void story_note(Fact *parent, const LadderAnswer *a, bool gpu) {
  int decided = 0, wrong = 0;
  SolBuffer text = {0};
  for (int i = 0; i < a->count; i++) {
    const LadderRow *row = &a->rows[i], *before = report_ladder_before(a, row);
    LadderVerdict verdict = report_ladder_verdict(a, row, gpu);
    decided += verdict != LADDER_UNDECIDED;
    if (verdict != LADDER_NOT_AS_EXPECTED) continue;
    double gain = figures_of(before, gpu)->us / figures_of(row, gpu)->us;
    sol_buffer_format(&text, "%s%s was expected to be %s %s, and takes %.2f times as long",
                      wrong++ ? "; " : "", row->rung->name,
                      row->rung->story == LADDER_FASTER   ? "faster than"
                      : row->rung->story == LADDER_SLOWER ? "slower than"
                                                          : "as fast as",
                      before->rung->name, 1 / gain);
  }
  const char *what = gpu ? "Measured" : "Predicted";
  if (decided && !wrong)
    fact_note(parent, "%s as expected: every change does what is said of it above.", what);
  if (wrong)
    fact_note(
        parent,
        "%s otherwise than expected: %s. On this GPU, at this size, such a change does not do what is said "
        "of it above.",
        what, text.text ? text.text : "");
  sol_buffer_free(&text);
}

static void plot(Fact *parent, const LadderAnswer *a, size_t width) {
  enum { MOST = 256 };
  PlotPoint points[MOST];
  bool rates = true;
  int count = a->count < MOST ? a->count : MOST;
  for (int i = 0; i < count; i++) rates &= a->rows[i].bytes > 0;
  for (int i = 0; i < count; i++) {
    const LadderRow *r = &a->rows[i];
    const LadderFigures *p = figures_of(r, false), *m = figures_of(r, true);
    points[i] = (PlotPoint){.label = r->rung->name};
    if (p) points[i].mark = rates ? r->bytes / p->us * 1e6 : p->us;
    if (m) points[i].bar = rates ? r->bytes / m->us * 1e6 : m->us;
  }
  SolBuffer text = {0};
  report_plot_bars(points, count, rates ? UNIT_BYTES_PER_S : UNIT_US, width, &text);
  if (text.text) fact_block(parent, text.text);
  sol_buffer_free(&text);
}

static void answer_facts(Fact *list, const LadderAnswer *a, const LadderWhere *where) {
  const Ladder *l = a->ladder;
  Fact *o = fact_object(list, 0, 0);
  char shape[96];
  report_ladder_shape_text(l, a->c.dim, shape, sizeof shape);
  fact_title(o, "%s: %s, %s %s", l->name, l->title, shape, sol_dtype_name(a->c.dtype));
  if (where->device) fact_text(o, 0, "predicted for", where->device->name);
  if (where->gpu[0])
    fact_textf(o, 0, "measured on", "%s%s%s%s%s", where->gpu, where->driver[0] ? ", driver " : "",
               where->driver, where->date[0] ? ", " : "", where->date);
  fact_note(o, "%s", l->about);
  fact_text(o, "name", 0, l->name);
  fact_text(o, "title", 0, l->title);
  fact_text(o, "about", 0, l->about);
  fact_bool(o, "sweep", 0, l->sweep);
  if (l->sweep && l->axis) fact_text(o, "axis", 0, l->axis);
  fact_text(o, "dims", 0, l->shape);
  fact_text(o, "shape", 0, shape);
  fact_text(o, "dtype", 0, sol_dtype_name(a->c.dtype));
  if (a->message[0]) fact_text(o, "error", "could not run", a->message);
  bool emulated = false, measured = false;
  for (int i = 0; i < a->count; i++) emulated |= a->rows[i].emulated, measured |= a->rows[i].measured;
  if (emulated) counts_table(o, a);
  if (emulated) times_table(o, a, false);
  if (measured) times_table(o, a, true);
  failures(o, a);
  if (l->sweep) plot(o, a, where->width);
  texts(o, a, where);
  if (!l->sweep && measured) story_note(o, a, true);
  if (!l->sweep && emulated && !measured) story_note(o, a, false);
  rung_keys(o, a, where);
}

void report_ladder_facts(Fact *root, const LadderAnswer *answers, int count, const LadderWhere *where) {
  Fact *list = fact_list(root, "ladders", "");
  for (int i = 0; i < count; i++) answer_facts(list, &answers[i], where);
}
