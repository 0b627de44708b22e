// A kernel's source lines with their text, the costliest first; and its PTX instructions.
#include <string.h>

#include "base/format.h"
#include "base/plain.h"
#include "report/report_access.h"
#include "report/report_audit.h"

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

// Which columns this kernel needs.
typedef struct Columns {
  bool sectors, wavefronts, local, lanes, chains;
} Columns;

static Columns columns_of(const AuditKernel *k) {
  const SolEmuCounts *c = k->kinds;
  bool chains = false;
  for (uint32_t i = 0; i < k->line_count; i++) chains |= k->lines[i].inlined && *k->lines[i].inlined;
  return (Columns){
      .chains = chains,
      .sectors = k->total.requests > 0,
      .wavefronts = k->total.shared_requests > 0,
      .local = c[SOL_EMU_KIND_LOCAL_LOAD].requests + c[SOL_EMU_KIND_LOCAL_STORE].requests > 0,
      .lanes = k->active_lanes < 31.5,
  };
}

static void counts(Fact *row, const SolEmuCounts *c, double lanes, const AuditInst *worst, Columns show,
                   FactBasis basis) {
#define NUMBER(group, key, label, unit, on, value)                                                           \
  fact_number(row, key, (group) ? label : NULL, unit, on, value)
#define EXACT(key, value) fact_number(row, key, NULL, UNIT_PLAIN, basis, value)
  bool sectors = show.sectors && c->requests, shared = show.wavefronts && c->shared_requests;
  EXACT("instructions", (double)c->executions);
  NUMBER(show.lanes, "active_lanes", "lanes", UNIT_PLAIN, basis, lanes);
  EXACT("divergent_branches", (double)c->divergent);
  NUMBER(sectors, "requests", "requests", UNIT_COUNT, basis, (double)c->requests);
  EXACT("sectors", (double)c->sectors);
  EXACT("ideal_sectors", (double)c->sectors_ideal);
  EXACT("sectors_per_request", ratio((double)c->sectors, (double)c->requests));
  if (sectors && worst)
    fact_textf(row, 0, "sectors (ideal)", "%.1f (%.1f)",
               ratio((double)worst->counts.sectors, (double)worst->counts.requests),
               ratio((double)worst->counts.sectors_ideal, (double)worst->counts.requests));
  fact_number(row, "worst_sectors_per_request", 0, UNIT_PLAIN, basis,
              worst ? ratio((double)worst->counts.sectors, (double)worst->counts.requests) : 0);
  EXACT("shared_requests", (double)c->shared_requests);
  EXACT("wavefronts", (double)c->wavefronts);
  EXACT("ideal_wavefronts", (double)c->wavefronts_ideal);
  if (shared)
    fact_textf(row, 0, "wavefronts (ideal)", "%.1f (%.1f)",
               ratio((double)c->wavefronts, (double)c->shared_requests),
               ratio((double)c->wavefronts_ideal, (double)c->shared_requests));
  else if (show.wavefronts)
    fact_text(row, 0, "wavefronts (ideal)", ""); // a table has the columns of its fullest row
  NUMBER(sectors && c->l1_hits + c->l1_misses, "l1_hit", "L1 hits", UNIT_SHARE, BASIS_MODELLED,
         ratio((double)c->l1_hits, (double)(c->l1_hits + c->l1_misses)));
  NUMBER(sectors && c->l2_hits + c->l2_misses, "l2_hit", "L2 hits", UNIT_SHARE, BASIS_MODELLED,
         ratio((double)c->l2_hits, (double)(c->l2_hits + c->l2_misses)));
  NUMBER(sectors, "dram_bytes", "DRAM", UNIT_BYTES, BASIS_MODELLED, (double)(c->dram_read + c->dram_write));
#undef NUMBER
#undef EXACT
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void place(Fact *row, const char *file, uint32_t line) {
  fact_text(row, "file", 0, file);
  fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, line);
  fact_textf(row, 0, "line", "%s:%u", base_name(file), line);
}

// Less than this share of the time is not worth a row of its own.
#define SMALL_SHARE 0.01

static const FactColumn line_columns[] = {{"cost", 0},
                                          {"line", 0},
                                          {"sectors (ideal)", 0},
                                          {"wavefronts (ideal)", 0},
                                          {"source", FIT_CUT_CODE},
                                          {"inlined", FIT_CUT},
                                          {"wasted", 0},
                                          {"local sectors", 0},
                                          {"DRAM", 0},
                                          {"lanes", 0},
                                          {"requests", 0},
                                          {"L1 hits", 0},
                                          {"L2 hits", 0},
                                          {0}};
static const FactColumn instruction_columns[] = {{"line", 0},
                                                 {"instruction", FIT_CUT},
                                                 {"sectors (ideal)", 0},
                                                 {"wavefronts (ideal)", 0},
                                                 {"DRAM", 0},
                                                 {"stride", 0},
                                                 {"requests", 0},
                                                 {"lanes", 0},
                                                 {"L1 hits", 0},
                                                 {"L2 hits", 0},
                                                 {0}};

static void instruction_facts(Fact *kernel, const AuditKernel *k, const AuditView *view, Columns show) {
  Fact *list = fact_list(kernel, "ptx", "By PTX instruction, in the order of the text");
  fact_columns(list, instruction_columns);
  size_t shown = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    bool memory = in->counts.requests || in->counts.shared_requests;
    if (!memory && shown >= view->top) continue;
    shown++;
    Fact *row = fact_object(list, 0, 0);
    place(row, in->file, in->line);
    fact_text(row, "instruction", 0, in->text);
    counts(row, &in->counts, ratio((double)in->counts.lanes, (double)in->counts.executions), in, show,
           report_audit_basis(k));
    if (in->pattern.stride_times) {
      fact_number(row, "stride_bytes", 0, UNIT_BYTES, report_audit_basis(k), (double)in->pattern.stride);
      fact_textf(row, 0, "stride", "%lld B", (long long)in->pattern.stride);
    }
    fact_text(row, 0, "instruction", in->text);
  }
}

// ---- the table of lines ----

static void line_numbers(Fact *row, const AuditKernel *k, const AuditLine *line, Columns show) {
  const AuditInst *worst = line->worst == UINT32_MAX ? NULL : &k->insts[line->worst];
  FactBasis basis = report_audit_basis(k);
  counts(row, &line->counts, line->active_lanes, worst, show, basis);
  fact_number(row, "wasted_bytes", show.sectors ? "wasted" : 0, UNIT_BYTES, basis, line->wasted_bytes);
  fact_number(row, "local_sectors", show.local ? "local sectors" : 0, UNIT_COUNT, basis,
              (double)line->local.sectors);
}

static void json_row(Fact *list, const AuditKernel *k, const AuditLine *line) {
  Fact *row = fact_object(list, 0, 0);
  fact_number(row, "cost_us", 0, UNIT_US, BASIS_MODELLED, line->cost * 1e6);
  fact_number(row, "share", 0, UNIT_SHARE, BASIS_MODELLED, ratio(line->cost, k->time.total));
  line_numbers(row, k, line, (Columns){0});
  fact_text(row, "file", 0, line->file);
  fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, line->line);
  fact_text(row, "source", 0, line->source);
  fact_text(row, "inlined", 0, line->inlined);
  report_access_facts(row, k, line);
}

static void text_row(Fact *list, const AuditKernel *k, const AuditLine *line, Columns show) {
  Fact *row = fact_object(list, 0, 0);
  fact_number(row, 0, "cost", UNIT_SHARE, BASIS_MODELLED, ratio(line->cost, k->time.total));
  line_numbers(row, k, line, show);
  fact_textf(row, 0, "line", "%s:%u", base_name(line->file), line->line);
  if (line->source) fact_text(row, 0, "source", line->source);
  if (show.chains) fact_text(row, 0, "inlined", line->inlined);
}

static void sum_row(Fact *list, const AuditKernel *k, double seconds, const char *what) {
  Fact *row = fact_object(list, 0, 0);
  fact_number(row, 0, "cost", UNIT_SHARE, BASIS_MODELLED, ratio(seconds, k->time.total));
  fact_text(row, 0, "line", what);
}

// Lines without an access are shown where they cost something.
static bool worth_showing(const AuditKernel *k, const AuditLine *line) {
  bool memory = line->counts.requests || line->counts.shared_requests || line->counts.divergent;
  return line->cost > (memory ? 0 : SMALL_SHARE * k->time.total);
}

static void text_table(Fact *kernel, const AuditKernel *k, const AuditView *view) {
  Columns show = columns_of(k);
  Fact *list = fact_list(kernel, 0, "By source line, costliest first; the rows add up to the time");
  double rest = 0;
  size_t shown = 0, left = 0;
  fact_columns(list, line_columns);
  for (uint32_t i = 0; i < k->line_count; i++) {
    const AuditLine *line = &k->lines[i];
    if (shown < view->top && worth_showing(k, line) && report_audit_file_wanted(view, line->file))
      text_row(list, k, line, show), shown++;
    else
      rest += line->cost, left += line->cost > 0;
  }
  char what[48];
  sol_format(what, sizeof what, "%zu more line%s", left, left == 1 ? "" : "s");
  if (left) sum_row(list, k, rest, what);
  sum_row(list, k, k->parts[MACHINE_LAUNCH], "launch");
  if (k->unowned > 0) sum_row(list, k, k->unowned, "no line");
}

void report_audit_line_facts(Fact *kernel, const AuditKernel *k, const AuditView *view) {
  Fact *list = fact_list(kernel, "lines", 0);
  for (uint32_t i = 0; i < k->line_count; i++)
    if (report_audit_file_wanted(view, k->lines[i].file)) json_row(list, k, &k->lines[i]);
  fact_number(kernel, "launch_cost_us", 0, UNIT_US, BASIS_MODELLED, k->parts[MACHINE_LAUNCH] * 1e6);
  fact_number(kernel, "unowned_cost_us", 0, UNIT_US, BASIS_MODELLED, k->unowned * 1e6);
  text_table(kernel, k, view);
  if (view->instructions) instruction_facts(kernel, k, view, columns_of(k));
}
