// Runs every rule over every kernel, and writes down what is worth changing.
#include "audit/rules.h"
#include "audit/inside.h"
#include "base/format.h"

const RuleText *audit_rule(uint32_t i) {
  static const RuleText rules[] = {
#define RULE(id, scope, title, meaning, fix) {#id, scope, title, meaning, fix},
#include "audit/rules.def"
#undef RULE
  };
  return i < SOL_COUNT(rules) ? &rules[i] : NULL;
}

// ---- sizes for people ----

RuleSize rule_bytes(double bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  RuleSize s = {{0}};
  size_t u = 0;
  while (bytes >= 1000 && u + 1 < SOL_COUNT(units)) bytes /= 1000, u++;
  sol_format(s.text, sizeof s.text, u && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
  return s;
}

RuleSize rule_kib(double bytes) {
  RuleSize s = {{0}};
  if (bytes < 1024) {
    sol_format(s.text, sizeof s.text, "%.0f B", bytes);
  } else {
    bool whole = bytes / 1024 == __builtin_floor(bytes / 1024);
    sol_format(s.text, sizeof s.text, whole ? "%.0f KiB" : "%.1f KiB", bytes / 1024);
  }
  return s;
}

// ---- what rules ask about a kernel ----

void rule_remove(MachineWork *work, const MachineWork *demands, double share) {
#define REMOVE(name) work->name = rule_most(work->name - demands->name * share, 0);
  MACHINE_DEMANDS(REMOVE)
#undef REMOVE
}

const AuditTouch *rule_touch(const AuditKernel *k, const AuditInst *in) {
  if (!in->pattern.allocation || in->pattern.several) return NULL;
  for (uint32_t i = 0; i < k->touch_count; i++)
    if (k->touches[i].address == in->pattern.allocation) return &k->touches[i];
  return NULL;
}

AuditTouch rule_touch_or_all(const AuditKernel *k, const AuditInst *in) {
  const AuditTouch *one = in ? rule_touch(k, in) : NULL;
  if (one) return *one;
  AuditTouch all = {0};
  for (uint32_t i = 0; i < k->touch_count; i++) {
    all.read += k->touches[i].read;
    all.written += k->touches[i].written;
    all.read_sectors += k->touches[i].read_sectors;
    all.written_sectors += k->touches[i].written_sectors;
    all.partial_sectors += k->touches[i].partial_sectors;
  }
  return all;
}

double rule_warps(const AuditKernel *k) {
  return k->work.launches * k->work.blocks * k->work.warps_per_block;
}

double rule_loads_per_warp(const AuditKernel *k) {
  double loads = 0;
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].kind == SOL_EMU_KIND_GLOBAL_LOAD) loads += (double)k->insts[i].counts.requests;
  return rule_ratio(loads, rule_warps(k));
}

bool rule_is_global(const AuditInst *in) {
  return in->kind == SOL_EMU_KIND_GLOBAL_LOAD || in->kind == SOL_EMU_KIND_GLOBAL_STORE;
}

bool rule_waits(const AuditKernel *k) {
  double busiest = 0;
  for (int i = MACHINE_DRAM; i < MACHINE_LATENCY; i++) busiest = rule_most(busiest, k->time.seconds[i]);
  return k->time.seconds[MACHINE_LATENCY] >= busiest / 2;
}

const AuditShape *rule_main_shape(const AuditKernel *k) {
  const AuditShape *longest = NULL;
  for (uint32_t i = 0; i < k->shape_count; i++)
    if (!longest || k->shapes[i].time.total > longest->time.total) longest = &k->shapes[i];
  return longest;
}

double rule_threads(const AuditShape *s) {
  return (double)s->block[0] * s->block[1] * s->block[2];
}

double rule_blocks(const AuditShape *s) {
  return (double)s->grid[0] * s->grid[1] * s->grid[2];
}

// ---- reporting ----

// Some instructions have no line of their own (the compiler made or moved them): then the next before has.
static const AuditInst *with_line(const AuditKernel *k, const AuditInst *at) {
  for (const AuditInst *in = at; in >= k->insts; in--)
    if (in->line) return in;
  return at;
}

double rule_report_seconds(Rules *r, RuleId rule, const AuditInst *at, double before, double after,
                           const RuleWords *words) {
  if (!(after > 0) || !(before > 0)) return 0;
  double gain = before / after;
  if (gain < RULE_MIN_GAIN || before - after < RULE_MIN_SHARE * r->program->time) return gain;
  r->shown[rule] = rule_most(r->shown[rule], gain);
  if (at) at = with_line(r->kernel, at);
  const RuleText *text = audit_rule(rule);
  AuditFinding finding = {.rule = text->id,
                          .file = at ? at->file : NULL,
                          .line = at ? at->line : 0,
                          .message = words->message,
                          .fix = words->fix[0] ? words->fix : text->fix,
                          .evidence = words->evidence,
                          .gain = gain,
                          .saved = before - after};
  audit_find(r->program, r->kernel, &finding);
  return gain;
}

double rule_report(Rules *r, RuleId rule, const AuditInst *at, const MachineWork *after,
                   const RuleWords *words) {
  double seconds = audit_seconds_with(r->program, r->kernel, after);
  return rule_report_seconds(r, rule, at, r->kernel->time.total, seconds, words);
}

// ---- all of them ----

static bool look_at(Rules *r, AuditProgram *program, AuditKernel *kernel) {
  *r = (Rules){.program = program, .kernel = kernel};
  r->demands = sol_arena_alloc(&program->arena, (kernel->inst_count + 1) * sizeof *r->demands);
  r->access = sol_arena_alloc(&program->arena, kernel->inst_count + 1);
  if (!r->demands || !r->access) return false;
  AuditWaits waits = audit_waits(program->device, kernel->insts, kernel->inst_count, &kernel->flight);
  for (uint32_t i = 0; i < kernel->inst_count; i++)
    audit_demand(&program->machine, &kernel->insts[i], &waits, 1, &r->demands[i]);
  rules_classify_accesses(r);
  return true;
}

void audit_rules_run(AuditProgram *program) {
  static void (*const rules[])(Rules *) = {
#define RULE(id, scope, title, meaning, fix) rule_##id,
#include "audit/rules.def"
#undef RULE
  };
  for (uint32_t i = 0; i < program->kernel_count; i++) {
    Rules r;
    if (!(program->kernels[i].time.total > 0)) continue; // no time: nothing to gain by
    if (!look_at(&r, program, &program->kernels[i])) return;
    for (size_t k = 0; k < SOL_COUNT(rules); k++) rules[k](&r);
  }
}
