// A page of docs/ladders: the same texts and figures as the terminal's.
#include <math.h>

#include "base/format.h"
#include "report/report_audit.h"
#include "report/report_ladder.h"
#include "report/wrap.h"

static const LadderFigures *figures_of(const LadderRow *row, bool gpu) {
  const LadderFigures *f = gpu ? &row->gpu : &row->emu;
  return (gpu ? row->measured : row->emulated) && f->ran && f->us > 0 ? f : NULL;
}

static void number(SolBuffer *out, FactUnit unit, double value) {
  char text[48] = "";
  if (isfinite(value)) fact_write_number(text, sizeof text, unit, value);
  sol_buffer_format(out, " %s |", text);
}

static void wrapped(SolBuffer *out, const char *text, size_t indent) {
  enum { PAGE = 120 };
  report_wrap(out, text, indent, 0, PAGE, "");
  sol_buffer_puts(out, "\n");
}

static void columns(SolBuffer *out, const char *const *names, int count) {
  sol_buffer_puts(out, "\n|");
  for (int i = 0; i < count; i++) sol_buffer_format(out, " %s |", names[i]);
  sol_buffer_puts(out, "\n|");
  for (int i = 0; i < count; i++) sol_buffer_puts(out, "---|");
  sol_buffer_puts(out, "\n");
}

static void counts(SolBuffer *out, const LadderAnswer *a) {
  static const char *const names[] = {"rung",       "requests",  "sectors",     "sectors a request",
                                      "wavefronts", "DRAM read", "DRAM written"};
  sol_buffer_puts(
      out, "\n## Counts\n\nOf one call, on the emulator: exact, but for the DRAM's, which are modelled.\n");
  columns(out, names, (int)SOL_COUNT(names));
  for (int i = 0; i < a->count; i++) {
    const LadderCounts *c = &a->rows[i].emu.counts;
    if (!a->rows[i].emulated || !a->rows[i].emu.ran) continue;
    double requests = ladder_requests(c), sectors = ladder_sectors(c);
    sol_buffer_format(out, "| %s |", a->rows[i].rung->name);
    number(out, UNIT_PLAIN, requests);
    number(out, UNIT_PLAIN, sectors);
    number(out, UNIT_PLAIN, requests > 0 ? sectors / requests : NAN);
    number(out, UNIT_PLAIN, c->wavefronts);
    number(out, UNIT_BYTES, c->dram_read);
    number(out, UNIT_BYTES, c->dram_write);
    sol_buffer_puts(out, "\n");
  }
}

static void times(SolBuffer *out, const LadderAnswer *a, const LadderWhere *where, bool gpu) {
  static const char *const names[] = {"rung", "time", "rate", "of light", "over before", "over first"};
  const LadderFigures *first = figures_of(a->rows, gpu);
  sol_buffer_format(out, "\n## %s\n\n", gpu ? "Measured" : "Predicted");
  if (gpu)
    sol_buffer_format(out, "%s%s%s%s%s.\n", where->gpu, where->driver[0] ? ", driver " : "", where->driver,
                      where->date[0] ? ", " : "", where->date);
  else
    sol_buffer_format(out, "By the time model, for %s.\n", where->device ? where->device->name : "a GPU");
  columns(out, names, (int)SOL_COUNT(names) - (a->ladder->sweep ? 2 : 0));
  for (int i = 0; i < a->count; i++) {
    const LadderRow *row = &a->rows[i], *before = report_ladder_before(a, row);
    const LadderFigures *f = figures_of(row, gpu), *then = before ? figures_of(before, gpu) : NULL;
    const LadderFigures *tried = gpu ? &row->gpu : &row->emu;
    if (!f) {
      if (tried->message[0]) sol_buffer_format(out, "| %s | %s |\n", row->rung->name, tried->message);
      continue;
    }
    sol_buffer_format(out, "| %s |", row->rung->name);
    number(out, UNIT_US, f->us);
    number(out, UNIT_BYTES_PER_S, row->bytes > 0 ? row->bytes / f->us * 1e6 : NAN);
    number(out, UNIT_SHARE, f->light_us > 0 ? f->light_us / f->us : NAN);
    if (!a->ladder->sweep) number(out, UNIT_TIMES, then ? then->us / f->us : NAN);
    if (!a->ladder->sweep) number(out, UNIT_TIMES, first ? first->us / f->us : NAN);
    sol_buffer_puts(out, "\n");
  }
}

// Of the rungs that use tensor cores: which unit is critical, how long it idles, and the life of a block.
static void timelines(SolBuffer *out, const LadderAnswer *a) {
  bool any = false;
  for (int i = 0; i < a->count; i++) {
    const LadderFigures *f = figures_of(&a->rows[i], false);
    const MachineTimeline *t = f ? f->timeline : NULL;
    if (!t) continue;
    if (!any)
      sol_buffer_puts(
          out,
          "\n## Timelines\n\nThe life of a block by the time model, from left to right. Units: ' ' idle . : + # busy. "
          "Warps: # issue, wait for c copies,\nt tensor cores, w other warps, m loads and shared memory.\n");
    any = true;
    sol_buffer_format(
        out, "\n**%s**, %.0f clocks, the launch bound by %s; the tensor cores idle for %.0f%%:\n\n```\n",
        a->rows[i].rung->name, t->clocks, machine_resource_name(f->bound),
        100 * (1 - t->busy[MACHINE_TENSORS]));
    report_timeline_picture(out, t);
    sol_buffer_puts(out, "```\n");
  }
}

static void texts(SolBuffer *out, const LadderAnswer *a, const LadderWhere *where) {
  bool any = false;
  for (int i = 0; i < a->count; i++) {
    const LadderRung *r = a->rows[i].rung;
    bool seen = ladder_seen(r, where);
    if (!r->change && !r->why && !seen) continue;
    if (!any) sol_buffer_format(out, "\n## %s\n\n", a->ladder->sweep ? "Points to look at" : "The rungs");
    any = true;
    SolBuffer item = {0};
    sol_buffer_format(&item, "- **%s**: %s%s%s", r->name, r->change ? r->change : "",
                      r->change && r->why ? ". " : "", r->why ? r->why : "");
    if (seen) sol_buffer_format(&item, "%s%s", r->change || r->why ? " " : "", r->seen);
    if (item.text) wrapped(out, item.text, 2);
    sol_buffer_free(&item);
  }
}

static void story(SolBuffer *out, const LadderAnswer *a) {
  int decided = 0, wrong = 0;
  for (int i = 0; i < a->count; i++)
    decided += report_ladder_verdict(a, &a->rows[i], true) != LADDER_UNDECIDED;
  if (!decided) return;
  for (int i = 0; i < a->count; i++) {
    const LadderRow *row = &a->rows[i], *before = report_ladder_before(a, row);
    if (report_ladder_verdict(a, row, true) != LADDER_NOT_AS_EXPECTED) continue;
    if (!wrong++) sol_buffer_puts(out, "\nNot as expected on this GPU:\n\n");
    sol_buffer_format(out, "- %s was expected to be %s %s; it takes %.2f times as long.\n", row->rung->name,
                      row->rung->story == LADDER_FASTER   ? "faster than"
                      : row->rung->story == LADDER_SLOWER ? "slower than"
                                                          : "as fast as",
                      before->rung->name, row->gpu.us / before->gpu.us);
  }
  if (!wrong) sol_buffer_puts(out, "\nThe measured order is the expected one.\n");
}

void report_ladder_markdown(SolBuffer *out, const LadderAnswer *a, const LadderWhere *where) {
  char shape[96];
  bool emulated = false, measured = false;
  report_ladder_shape_text(a->ladder, a->c.dim, shape, sizeof shape);
  for (int i = 0; i < a->count; i++) emulated |= a->rows[i].emulated, measured |= a->rows[i].measured;
  sol_buffer_format(out, "# %s\n\n", a->ladder->title);
  wrapped(out, a->ladder->about, 0);
  sol_buffer_puts(out, "\n");
  sol_buffer_format(out, "`sol ladder %s`: %s = %s, %s.%s\n", a->ladder->name, a->ladder->shape, shape,
                    sol_dtype_name(a->c.dtype),
                    a->rows[0].bytes > 0 ? " Light is our own copy of the same bytes." : "");
  texts(out, a, where);
  if (measured) times(out, a, where, true);
  if (measured && !a->ladder->sweep) story(out, a);
  if (emulated) times(out, a, where, false);
  if (emulated) timelines(out, a);
  if (emulated) counts(out, a);
}
