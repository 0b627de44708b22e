// Instructions summed by the source line they come from, the costliest first.
#include "audit/inside.h"
#include "base/error.h"
#include "base/sort.h"

static AuditLine *line_of(AuditKernel *k, const AuditInst *in) {
  for (uint32_t i = k->line_count; i-- > 0;) // the latest first: instructions of a line stand together
    if (k->lines[i].line == in->line && strcmp(k->lines[i].file, in->file) == 0) return &k->lines[i];
  AuditLine *line = &k->lines[k->line_count++];
  *line = (AuditLine){.file = in->file, .line = in->line};
  return line;
}

static void add_kind(AuditLine *line, const AuditInst *in) {
  const SolEmuCounts *c = &in->counts;
  sol_emu_counts_add(&line->counts, c);
  switch (in->kind) {
  case SOL_EMU_KIND_GLOBAL_LOAD:
  case SOL_EMU_KIND_TEXTURE: sol_emu_counts_add(&line->global_load, c); break;
  case SOL_EMU_KIND_GLOBAL_STORE: sol_emu_counts_add(&line->global_store, c); break;
  case SOL_EMU_KIND_GLOBAL_ATOMIC: sol_emu_counts_add(&line->atomic, c); break;
  case SOL_EMU_KIND_LOCAL_LOAD:
  case SOL_EMU_KIND_LOCAL_STORE: sol_emu_counts_add(&line->local, c); break;
  case SOL_EMU_KIND_SHARED_LOAD:
  case SOL_EMU_KIND_SHARED_STORE:
  case SOL_EMU_KIND_SHARED_ATOMIC: sol_emu_counts_add(&line->shared, c); break;
  default: break;
  }
  if (c->sectors > c->sectors_ideal) line->wasted_bytes += 32.0 * (double)(c->sectors - c->sectors_ideal);
}

typedef struct Lanes {
  double lanes, executions;
} Lanes;

static void count_lanes(Lanes *to, const AuditInst *in) {
  if (in->unit == SOL_EMU_CLASS_CONTROL) return;
  to->lanes += (double)in->counts.lanes;
  to->executions += (double)in->counts.executions;
}

static double mean_lanes(const Lanes *l) {
  return l->executions > 0 ? l->lanes / l->executions : 32;
}

static double per_request(const AuditInst *in) {
  return in->counts.requests ? (double)in->counts.sectors / (double)in->counts.requests : 0;
}

static void find_worst(AuditKernel *k, AuditLine *line) {
  line->worst = UINT32_MAX;
  for (uint32_t i = 0; i < line->count; i++) {
    uint32_t at = k->by_line[line->first + i];
    if (k->insts[at].kind == SOL_EMU_KIND_OTHER || per_request(&k->insts[at]) <= 0) continue;
    if (line->worst == UINT32_MAX || per_request(&k->insts[at]) > per_request(&k->insts[line->worst]))
      line->worst = at;
  }
}

// How the line came into the kernel: of the instructions inlined there, the one executed most.
static void find_chain(const AuditKernel *k, AuditLine *line) {
  uint64_t most = 0;
  line->inlined = "";
  for (uint32_t i = 0; i < line->count; i++) {
    const AuditInst *in = &k->insts[k->by_line[line->first + i]];
    if (!in->inlined || !*in->inlined || in->counts.executions <= most) continue;
    most = in->counts.executions;
    line->inlined = in->inlined;
  }
}

static void find_lanes(AuditKernel *k) {
  Lanes all = {0};
  for (uint32_t i = 0; i < k->line_count; i++) {
    Lanes own = {0};
    for (uint32_t j = 0; j < k->lines[i].count; j++) {
      const AuditInst *in = &k->insts[k->by_line[k->lines[i].first + j]];
      count_lanes(&own, in);
      count_lanes(&all, in);
    }
    k->lines[i].active_lanes = mean_lanes(&own);
    find_worst(k, &k->lines[i]);
    find_chain(k, &k->lines[i]);
  }
  k->active_lanes = mean_lanes(&all);
}

static bool before(const void *x, const void *y) {
  const AuditLine *a = x, *b = y;
  if (a->cost != b->cost) return a->cost > b->cost;
  if (a->counts.executions != b->counts.executions) return a->counts.executions > b->counts.executions;
  return a->line < b->line;
}

SolStatus audit_lines(AuditProgram *p, AuditKernel *k, SolError *err) {
  uint32_t *owner = sol_arena_alloc(&p->arena, (k->inst_count + 1) * sizeof *owner);
  k->by_line = sol_arena_alloc(&p->arena, (k->inst_count + 1) * sizeof *k->by_line);
  k->lines = sol_arena_alloc(&p->arena, (k->inst_count + 1) * sizeof *k->lines);
  if (!owner || !k->by_line || !k->lines) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  k->line_count = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    AuditLine *line = line_of(k, &k->insts[i]);
    add_kind(line, &k->insts[i]);
    owner[i] = (uint32_t)(line - k->lines);
    line->count++;
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < k->line_count; i++) {
    k->lines[i].first = at;
    at += k->lines[i].count;
    k->lines[i].count = 0;
  }
  for (uint32_t i = 0; i < k->inst_count; i++) {
    AuditLine *line = &k->lines[owner[i]];
    k->by_line[line->first + line->count++] = i;
  }
  audit_line_costs(p, k);
  find_lanes(k);
  sol_sort(k->lines, k->line_count, sizeof *k->lines, before);
  return SOL_OK;
}
