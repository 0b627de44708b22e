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
  bool sectors, wavefronts, local, lanes;
} Columns;

static Columns columns_of(const AuditKernel *k) {
  const SolEmuCounts *c = k->kinds;
  return (Columns){
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
  NUMBER(sectors, "l1_hit", "L1 hits", UNIT_SHARE, BASIS_MODELLED,
         ratio((double)c->l1_hits, (double)(c->l1_hits + c->l1_misses)));
  NUMBER(sectors, "l2_hit", "L2 hits", UNIT_SHARE, BASIS_MODELLED,
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

static double whole_cost(const AuditKernel *k) {
  double all = 0;
  for (uint32_t i = 0; i < k->line_count; i++) all += k->lines[i].cost;
  return all;
}

static const FactColumn line_columns[] = {{"cost", 0},
                                          {"line", 0},
                                          {"sectors (ideal)", 0},
                                          {"wavefronts (ideal)", 0},
                                          {"source", FIT_CUT_CODE},
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

void report_audit_line_facts(Fact *kernel, const AuditKernel *k, const AuditView *view) {
  Columns show = columns_of(k);
  double all = whole_cost(k);
  // Lines without an access matter where instructions do.
  bool busy =
      k->time.bound == MACHINE_ISSUE || k->time.bound == MACHINE_TENSOR || k->time.bound == MACHINE_LATENCY;
  Fact *list = fact_list(kernel, "lines", "By source line, costliest first");
  fact_columns(list, line_columns);
  for (uint32_t i = 0; i < k->line_count; i++) {
    const AuditLine *line = &k->lines[i];
    // Past the top, lines are for JSON alone.
    bool memory = line->counts.requests || line->counts.shared_requests || line->counts.divergent;
    bool people = i < view->top && line->cost > (memory ? 0 : busy ? 0.03 : 0.25) * all;
    Fact *row = fact_object(list, 0, 0);
    fact_number(row, "cost_us", 0, UNIT_US, BASIS_MODELLED, line->cost * 1e6);
    fact_number(row, "share", people ? "cost" : 0, UNIT_SHARE, BASIS_MODELLED, ratio(line->cost, all));
    Columns none = {0};
    const AuditInst *worst = line->worst == UINT32_MAX ? NULL : &k->insts[line->worst];
    counts(row, &line->counts, line->active_lanes, worst, people ? show : none, report_audit_basis(k));
    fact_number(row, "wasted_bytes", people && show.sectors ? "wasted" : 0, UNIT_BYTES, report_audit_basis(k),
                line->wasted_bytes);
    fact_number(row, "local_sectors", people && show.local ? "local sectors" : 0, UNIT_COUNT,
                report_audit_basis(k), (double)line->local.sectors);
    fact_text(row, "file", 0, line->file);
    fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, line->line);
    if (people) fact_textf(row, 0, "line", "%s:%u", base_name(line->file), line->line);
    fact_text(row, "source", 0, line->source);
    report_access_facts(row, k, line);
    if (people && line->source) fact_text(row, 0, "source", line->source);
  }
  if (view->instructions) instruction_facts(kernel, k, view, show);
}
