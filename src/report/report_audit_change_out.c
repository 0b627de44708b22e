// The comparison of two bills as facts and as Markdown.

#include <math.h>

#include "base/format.h"
#include "report/report_audit_change.h"

typedef struct Cell {
  char text[48];
} Cell;

static Cell number_cell(FactUnit unit, bool there, double value) {
  Cell c = {"-"};
  if (there) fact_write_number(c.text, sizeof c.text, unit, value);
  return c;
}

// "+12%": of what was before.
static Cell change_cell(const ChangeSide *before, const ChangeSide *after) {
  Cell c = {""};
  if (!before->there || !after->there)
    sol_format(c.text, sizeof c.text, "%s", after->there ? "new" : "gone");
  else if (before->us > 0)
    sol_format(c.text, sizeof c.text, "%s%.1f%%", after->us < before->us ? "-" : "+",
               100 * fabs(after->us / before->us - 1));
  return c;
}

// "4.0, was 32.0", of a request to global memory.
static Cell sectors_cell(const ChangeLine *l) {
  Cell c = {""};
  bool before = l->before.there && l->before.sectors > 0, after = l->after.there && l->after.sectors > 0;
  if (before && after)
    sol_format(c.text, sizeof c.text, "%.1f, was %.1f", l->after.sectors, l->before.sectors);
  else if (before)
    sol_format(c.text, sizeof c.text, "was %.1f", l->before.sectors);
  else if (after)
    sol_format(c.text, sizeof c.text, "%.1f", l->after.sectors);
  return c;
}

static Cell place_cell(const ChangeLine *l) {
  Cell c = {""};
  double line = l->after.there ? l->after.line : l->before.line;
  sol_format(c.text, sizeof c.text, "%.36s:%.0f", l->file, line);
  return c;
}

// ---- facts ----

static void side_facts(Fact *row, const char *key, const ChangeSide *s, bool kernel) {
  if (!s->there) {
    fact_unknown(row, key, 0);
    return;
  }
  Fact *o = fact_object(row, key, 0);
  fact_number(o, kernel ? "time_us" : "cost_us", 0, UNIT_US, BASIS_MODELLED, s->us);
  fact_number(o, "dram_bytes", 0, UNIT_BYTES, BASIS_MODELLED, s->dram);
  if (kernel) fact_number(o, "tax", 0, UNIT_TIMES, BASIS_MODELLED, s->tax);
  if (!kernel) fact_number(o, "line", 0, UNIT_PLAIN, BASIS_NONE, s->line);
  if (!kernel) fact_number(o, "sectors_per_request", 0, UNIT_PLAIN, BASIS_EXACT, s->sectors);
}

static void rule_facts(Fact *o, const char *key, const char *label, const char **rules, uint32_t count) {
  Fact *list = fact_list(o, key, 0);
  for (uint32_t i = 0; i < count; i++) {
    fact_text(list, 0, 0, rules[i]);
    fact_line(o, 2, false, "%s: %s", label, rules[i]);
  }
}

static void line_facts(Fact *kernel, const ChangeKernel *k) {
  static const FactColumn columns[] = {
      {"line", 0}, {"before", 0}, {"after", 0}, {"sectors", 0}, {"source", FIT_CUT_CODE}, {0}};
  Fact *list = fact_list(kernel, "lines", 0), *text = fact_list(kernel, 0, k->line_count ? k->name : 0);
  fact_columns(text, columns);
  for (uint32_t i = 0; i < k->line_count; i++) {
    const ChangeLine *l = &k->lines[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "file", 0, l->file);
    fact_text(row, "source", 0, l->source);
    side_facts(row, "before", &l->before, false);
    side_facts(row, "after", &l->after, false);
    row = fact_object(text, 0, 0);
    fact_text(row, 0, "line", place_cell(l).text);
    fact_text(row, 0, "before", number_cell(UNIT_US, l->before.there, l->before.us).text);
    fact_text(row, 0, "after", number_cell(UNIT_US, l->after.there, l->after.us).text);
    fact_text(row, 0, "sectors", sectors_cell(l).text);
    fact_text(row, 0, "source", l->source);
  }
}

void report_audit_change_facts(Fact *root, const AuditChange *c) {
  static const FactColumn columns[] = {{"kernel", FIT_CUT}, {"change", 0},     {"before", 0},
                                       {"after", 0},        {"tax before", 0}, {"tax", 0},
                                       {"DRAM before", 0},  {"DRAM", 0},       {0}};
  fact_title(root, "%s against %s", c->after, c->before);
  fact_text(root, "before", 0, c->before);
  fact_text(root, "after", 0, c->after);
  fact_number(root, "before_us", "time before", UNIT_US, BASIS_MODELLED, c->before_us);
  fact_number(root, "after_us", "time", UNIT_US, BASIS_MODELLED, c->after_us);
  fact_number(root, "unchanged_kernels", "unchanged kernels", UNIT_PLAIN, BASIS_EXACT, c->same);
  Fact *text = fact_list(root, 0, c->count ? "Kernels that changed" : 0),
       *list = fact_list(root, "kernels", "");
  fact_columns(text, columns);
  for (uint32_t i = 0; i < c->count; i++) {
    const ChangeKernel *k = &c->kernels[i];
    Fact *row = fact_object(text, 0, 0);
    fact_text(row, 0, "kernel", k->name);
    fact_text(row, 0, "change", change_cell(&k->before, &k->after).text);
    fact_text(row, 0, "before", number_cell(UNIT_US, k->before.there, k->before.us).text);
    fact_text(row, 0, "after", number_cell(UNIT_US, k->after.there, k->after.us).text);
    fact_text(row, 0, "tax before", number_cell(UNIT_TIMES, k->before.there, k->before.tax).text);
    fact_text(row, 0, "tax", number_cell(UNIT_TIMES, k->after.there, k->after.tax).text);
    fact_text(row, 0, "DRAM before", number_cell(UNIT_BYTES, k->before.there, k->before.dram).text);
    fact_text(row, 0, "DRAM", number_cell(UNIT_BYTES, k->after.there, k->after.dram).text);
    Fact *o = fact_object(list, 0, 0);
    fact_text(o, "name", 0, k->name);
    side_facts(o, "before", &k->before, true);
    side_facts(o, "after", &k->after, true);
    line_facts(o, k);
    rule_facts(o, "new_findings", "New finding", k->new_rules, k->new_count);
    rule_facts(o, "gone_findings", "No longer found", k->gone_rules, k->gone_count);
  }
  if (!c->count) fact_note(root, "Nothing changed.");
}

// ---- Markdown ----

// A text of the program's: nothing in it is taken for Markdown.
static void put_code(SolBuffer *out, const char *text) {
  sol_buffer_puts(out, "`");
  for (; *text; text++) {
    char c = *text == '`' ? '\'' : (unsigned char)*text < 32 ? ' ' : *text;
    if (c == '|') sol_buffer_puts(out, "\\");
    sol_buffer_put(out, &c, 1);
  }
  sol_buffer_puts(out, "`");
}

static void put_lines(SolBuffer *out, const ChangeKernel *k) {
  enum { SHOWN = 10 };
  if (!k->line_count) return;
  sol_buffer_puts(out,
                  "\n| line | cost before | after | sectors a request | source |\n|---|---|---|---|---|\n");
  for (uint32_t i = 0; i < k->line_count && i < SHOWN; i++) {
    const ChangeLine *l = &k->lines[i];
    sol_buffer_puts(out, "| ");
    put_code(out, place_cell(l).text);
    sol_buffer_format(out, " | %s | %s | %s | ", number_cell(UNIT_US, l->before.there, l->before.us).text,
                      number_cell(UNIT_US, l->after.there, l->after.us).text, sectors_cell(l).text);
    if (l->source[0]) put_code(out, l->source);
    sol_buffer_puts(out, " |\n");
  }
  if (k->line_count > SHOWN) sol_buffer_format(out, "\n%u more lines changed.\n", k->line_count - SHOWN);
}

static void put_rules(SolBuffer *out, const char *label, const char **rules, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    sol_buffer_format(out, "\n%s: ", label);
    put_code(out, rules[i]);
    sol_buffer_puts(out, "\n");
  }
}

void report_audit_change_markdown(SolBuffer *out, const AuditChange *c) {
  sol_buffer_puts(out, "### Memory bill: ");
  put_code(out, c->after);
  sol_buffer_puts(out, " against ");
  put_code(out, c->before);
  sol_buffer_format(out, "\n\nPredicted time %s, was %s; %u kernel%s changed, %u did not.\n",
                    number_cell(UNIT_US, true, c->after_us).text,
                    number_cell(UNIT_US, true, c->before_us).text, c->count, c->count == 1 ? "" : "s",
                    c->same);
  if (c->count)
    sol_buffer_puts(out, "\n| kernel | change | before | after | tax before | tax | DRAM before | DRAM |\n"
                         "|---|---|---|---|---|---|---|---|\n");
  for (uint32_t i = 0; i < c->count; i++) {
    const ChangeKernel *k = &c->kernels[i];
    const ChangeSide *b = &k->before, *a = &k->after;
    sol_buffer_puts(out, "| ");
    put_code(out, k->name);
    sol_buffer_format(
        out, " | %s | %s | %s | %s | %s | %s | %s |\n", change_cell(b, a).text,
        number_cell(UNIT_US, b->there, b->us).text, number_cell(UNIT_US, a->there, a->us).text,
        number_cell(UNIT_TIMES, b->there, b->tax).text, number_cell(UNIT_TIMES, a->there, a->tax).text,
        number_cell(UNIT_BYTES, b->there, b->dram).text, number_cell(UNIT_BYTES, a->there, a->dram).text);
  }
  for (uint32_t i = 0; i < c->count; i++) {
    const ChangeKernel *k = &c->kernels[i];
    if (!k->line_count && !k->new_count && !k->gone_count) continue;
    sol_buffer_puts(out, "\n#### ");
    put_code(out, k->name);
    sol_buffer_puts(out, "\n");
    put_lines(out, k);
    put_rules(out, "New finding", k->new_rules, k->new_count);
    put_rules(out, "No longer found", k->gone_rules, k->gone_count);
  }
}
