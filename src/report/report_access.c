#include "report/report_access.h"

#include "report/report_audit.h"

#include <string.h>

static double ratio(uint64_t a, uint64_t b) {
  return b ? (double)a / (double)b : 0;
}

// Times a request takes what the same bytes would take at best.
static double waste(const SolEmuCounts *c) {
  return c->requests ? ratio(c->sectors, c->sectors_ideal) : ratio(c->wavefronts, c->wavefronts_ideal);
}

static const AuditInst *worst_of(const AuditKernel *k, const AuditLine *line) {
  const AuditInst *worst = NULL;
  for (uint32_t i = 0; i < line->count; i++) {
    const AuditInst *in = &k->insts[k->by_line[line->first + i]];
    bool accesses = in->pattern.seen && (in->counts.requests || in->counts.shared_requests);
    if (accesses && (!worst || waste(&in->counts) > waste(&worst->counts))) worst = in;
  }
  return worst;
}

// How most executions' lanes lie, in one word.
static const char *layout_of(const SolEmuPattern *p) {
  uint64_t plain = p->strided - p->rows;
  if (p->scattered * 2 > p->seen) return "scattered";
  if (p->uniform * 2 > p->seen) return "uniform";
  if (p->rows * 2 > p->seen) return "rows";
  return plain * 2 > p->seen && p->stride_times * 2 > p->seen ? "strided" : "mixed";
}

void report_access_facts(Fact *row, const AuditKernel *k, const AuditLine *line) {
  const AuditInst *in = worst_of(k, line);
  if (!in) return;
  const SolEmuPattern *p = &in->pattern;
  const SolEmuCounts *c = &in->counts;
  FactBasis basis = report_audit_basis(k);
  Fact *o = fact_object(row, "access", 0);
  fact_text(o, "instruction", 0, in->text);
  fact_text(o, "memory", 0, c->requests ? "global" : "shared");
  fact_bool(o, "load", 0, in->kind == SOL_EMU_KIND_GLOBAL_LOAD || in->kind == SOL_EMU_KIND_SHARED_LOAD);
  fact_number(o, "width", 0, UNIT_BYTES, basis, p->width);
  fact_text(o, "layout", 0, layout_of(p));
  fact_number(o, "stride_bytes", 0, UNIT_BYTES, basis, (double)p->stride);
  fact_number(o, "misaligned", 0, UNIT_SHARE, basis, ratio(p->misaligned, p->seen));
  Fact *list = fact_list(o, "lane_offsets", 0);
  for (int lane = 0; lane < 32 && p->example.mask; lane++) {
    if (p->example.mask >> lane & 1)
      fact_number(list, 0, 0, UNIT_BYTES, BASIS_NONE, p->example.lane[lane]);
    else
      fact_unknown(list, 0, 0);
  }
  fact_number(o, "lanes", 0, UNIT_PLAIN, basis, ratio(c->lanes, c->executions));
  if (c->requests) {
    fact_number(o, "sectors_per_request", 0, UNIT_PLAIN, basis, ratio(c->sectors, c->requests));
    fact_number(o, "ideal_sectors_per_request", 0, UNIT_PLAIN, basis, ratio(c->sectors_ideal, c->requests));
  } else {
    fact_number(o, "wavefronts_per_request", 0, UNIT_PLAIN, basis, ratio(c->wavefronts, c->shared_requests));
    fact_number(o, "ideal_wavefronts_per_request", 0, UNIT_PLAIN, basis,
                ratio(c->wavefronts_ideal, c->shared_requests));
  }
}

static double flops_of(const AuditInst *in) {
  if (in->flops > 0) return in->flops * (double)in->counts.executions;
  if (in->unit != SOL_EMU_CLASS_FLOAT && in->unit != SOL_EMU_CLASS_HALF && in->unit != SOL_EMU_CLASS_DOUBLE)
    return 0;
  const char *text = in->text ? in->text : "";
  if (*text == '@') text += strcspn(text, " ");
  while (*text == ' ') text++;
  bool both = strncmp(text, "fma.", 4) == 0 || strncmp(text, "mad.", 4) == 0;
  bool one = strncmp(text, "add.", 4) == 0 || strncmp(text, "sub.", 4) == 0 || strncmp(text, "mul.", 4) == 0;
  double each = (both ? 2 : one ? 1 : 0) * (strcspn(text, " ") > 4 && strstr(text, "x2 ") ? 2 : 1);
  return each * (double)in->counts.lanes;
}

double report_flops(const AuditKernel *k) {
  double sum = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) sum += flops_of(&k->insts[i]);
  return sum;
}
