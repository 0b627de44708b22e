// Runs every rule over every kernel, and writes down what is worth changing.
#include "audit/rules.h"
#include "audit/inside.h"
#include "base/format.h"

const RuleText *audit_rule(uint32_t i) {
  static const RuleText rules[] = {
#define RULE(id, scope, title, meaning, fix, assumes) {#id, scope, title, meaning, fix, assumes},
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

bool rule_is_of_angles(const AuditTouch *t) {
  return t->label && audit_has(t->label, "__cudart_i2opi");
}

double rule_warps(const AuditKernel *k) {
  return k->work.launches * k->work.blocks * k->work.warps_per_block;
}

#define AT_ONCE 64.0 // PTX instructions: a warp that executes no more returns at once
double rule_busy_warps(const AuditKernel *k) {
  double warps = rule_warps(k), accesses = 0, besides = 0;
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].kind != SOL_EMU_KIND_OTHER && k->insts[i].kind != SOL_EMU_KIND_CONST_LOAD)
      accesses += (double)k->insts[i].counts.executions;
  for (uint32_t i = 0; i < k->inst_count; i++)
    if ((double)k->insts[i].counts.executions > accesses) besides += (double)k->insts[i].counts.executions;
  return accesses > 0 && accesses < warps && besides <= AT_ONCE * warps ? accesses / warps : 1;
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

static bool is_about_size(RuleId rule) {
  return rule == RULE_small_grid || rule == RULE_tail || rule == RULE_launch_bound;
}

// What is removed is waste whatever the size of the grid: sectors, passes, waiting for one lane.
static bool is_needless(RuleId rule) {
  return rule <= RULE_bank_conflict || rule == RULE_one_lane;
}

typedef struct Gain {
  double gain, saved, worth; // worth: seconds of this program, for the order and the threshold
  bool at_this_size;
} Gain;

static bool is_worth_it(const Rules *r, const Gain *g) {
  return g->gain >= RULE_MIN_GAIN && g->worth >= RULE_MIN_SHARE * r->program->time;
}

// What stands in another file than its caller, such as a header of the compiler's, is found by the caller's line.
static const char *with_caller(const AuditInst *at, const char *message, char *to, size_t cap) {
  if (!at || !at->inlined || !at->inlined[0] || !at->file) return message;
  const char *caller = at->inlined, *file = audit_base_name(at->file);
  size_t name = 0, place = 0;
  while (caller[name] && caller[name] != ':') name++;
  while (caller[place] && caller[place] != ' ') place++;
  if (strlen(file) == name && memcmp(file, caller, name) == 0) return message;
  sol_format(to, cap, "%s Called at %.*s.", message, (int)place, caller);
  return to;
}

static void put_finding(Rules *r, RuleId rule, const AuditInst *at, Gain g, const RuleWords *words) {
  const RuleText *text = audit_rule(rule);
  if (at) at = with_line(r->kernel, at);
  if (!is_worth_it(r, &g)) {
    AuditFinding *small = &r->kernel->small;
    if (g.gain >= RULE_MIN_GAIN && g.gain > small->gain)
      *small = (AuditFinding){
          .rule = text->id, .file = at ? at->file : NULL, .line = at ? at->line : 0, .gain = g.gain};
    return;
  }
  r->shown[rule] = rule_most(r->shown[rule], g.gain);
  bool toy = r->full > 1;
  char message[sizeof words->message + 128];
  AuditFinding finding = {.rule = text->id,
                          .file = at ? at->file : NULL,
                          .line = at ? at->line : 0,
                          .message = with_caller(at, words->message, message, sizeof message),
                          .fix = words->fix[0] ? words->fix : text->fix,
                          .evidence = words->evidence,
                          .assumes = text->assumes,
                          .gain = g.gain,
                          .saved = g.saved,
                          .worth = g.worth,
                          .at_this_size = g.at_this_size || (toy && is_about_size(rule)),
                          .at_full_size = toy && g.saved != g.worth};
  audit_find(r->program, r->kernel, &finding);
}

double rule_report_seconds(Rules *r, RuleId rule, const AuditInst *at, double before, double after,
                           const RuleWords *words) {
  if (!(after > 0) || !(before > 0)) return 0;
  put_finding(r, rule, at, (Gain){before / after, before - after, before - after, false}, words);
  return before / after;
}

// The same work for a grid so many times as large.
static MachineWork at_full_size(const MachineWork *work, double times) {
  MachineWork w = *work;
#define TIMES(name) w.name *= times;
  MACHINE_DEMANDS(TIMES)
#undef TIMES
  w.blocks *= times;
  return w;
}

double rule_in_l2(const AuditKernel *k) {
  return k->tax <= 1 ? k->found + k->left_dirty : 0;
}

static double seconds_after(const Rules *r, const MachineWork *after, double times) {
  MachineWork work = at_full_size(after, times);
  AuditNeeds needs = r->needs;
  needs.times = times;
  needs.bytes = rule_most(needs.bytes - rule_in_l2(r->kernel), 0);
  double seconds = audit_seconds_with(r->program, r->kernel, &work);
  return seconds > 0 ? rule_most(seconds, audit_light(r->program, &needs)) : 0;
}

double rule_report(Rules *r, RuleId rule, const AuditInst *at, const MachineWork *after,
                   const RuleWords *words) {
  double now = r->kernel->time.total, seconds = seconds_after(r, after, 1);
  if (r->full <= 1 || is_about_size(rule)) return rule_report_seconds(r, rule, at, now, seconds, words);
  MachineWork whole = at_full_size(&r->kernel->work, r->full);
  double before = audit_seconds_with(r->program, r->kernel, &whole), least = seconds_after(r, after, r->full);
  if (!(least > 0) || !(before > 0)) return 0;
  double gain = before / least;
  // What would bind a full grid, such as one hot atomic, does not bind this one.
  if (is_needless(rule) && seconds > 0 && now / seconds > gain)
    return rule_report_seconds(r, rule, at, now, seconds, words);
  Gain full = {gain, rule_most(now - seconds, 0), now * (1 - 1 / gain), false};
  // Warps that a full grid has hide what these few wait for: loads in flight are then a matter of this size.
  if (rule == RULE_in_flight && seconds > 0 && !is_worth_it(r, &full))
    full = (Gain){now / seconds, now - seconds, now - seconds, true};
  put_finding(r, rule, at, full, words);
  return gain;
}

// ---- all of them ----

// An input is too small for the GPU where some SMs have no block, or the launch takes longer than the work.
#define FULL_WAVES 8.0 // of blocks: then the last one does not matter
static double full_times(const AuditProgram *p, const AuditKernel *k) {
  const AuditShape *s = rule_main_shape(k);
  double sms = p->device->sms.value;
  if (!s || (rule_blocks(s) >= sms && k->time.seconds[MACHINE_LAUNCH] * 2 < k->time.total)) return 1;
  return rule_most(FULL_WAVES * sms * rule_most(k->work.blocks_per_sm, 1) / rule_most(k->work.blocks, 1), 1);
}

static bool look_at(Rules *r, AuditProgram *program, AuditKernel *kernel) {
  *r = (Rules){.program = program, .kernel = kernel};
  r->demands = sol_arena_alloc(&program->arena, (kernel->inst_count + 1) * sizeof *r->demands);
  r->access = sol_arena_alloc(&program->arena, kernel->inst_count + 1);
  if (!r->demands || !r->access) return false;
  AuditWaits waits =
      audit_waits(&program->machine, kernel->insts, kernel->inst_count, &kernel->flight, kernel->work.blocks);
  for (uint32_t i = 0; i < kernel->inst_count; i++)
    audit_demand(&program->machine, &kernel->insts[i], &waits, 1, &r->demands[i]);
  rules_classify_accesses(r);
  r->full = full_times(program, kernel);
  return true;
}

void audit_rules_run(AuditProgram *program) {
  static void (*const rules[])(Rules *) = {
#define RULE(id, scope, title, meaning, fix, assumes) rule_##id,
#include "audit/rules.def"
#undef RULE
  };
  for (uint32_t i = 0; i < program->kernel_count; i++) {
    Rules r;
    if (!(program->kernels[i].time.total > 0)) continue; // no time: nothing to gain by
    if (!look_at(&r, program, &program->kernels[i])) return;
    for (size_t k = 0; k < SOL_COUNT(rules); k++) {
      r.needs = audit_needs(r.kernel);
      rules[k](&r);
    }
  }
}
