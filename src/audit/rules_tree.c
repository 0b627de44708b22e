// The rule about sums of a block that pass through shared memory step by step.
#include "audit/rules.h"
#include "base/format.h"

#define FEWEST_THREADS 64.0 // of a block: with fewer there is one warp, or hardly a tree
#define NEAR_WHOLE     0.1  // by which the number of trees of a block may miss a whole number
#define AGAIN          1.5  // executions of a warp: as many are a loop's
#define WARP_STEPS     5.0  // that halve 32 lanes
#define STEP_ISSUES    2.0  // of a step within a warp: the shuffle, and what combines

// A tree halves the threads that go on from step to step, so that all its steps together store one value less than there are
// threads, with a barrier or two between steps. Neither depends on which threads go on, or on whether its loop is unrolled.
typedef struct Tree {
  double trees;                       // of a block
  double steps;                       // of a tree
  double barriers, lanes, executions; // of a warp; of the stores
  uint32_t first, last;               // of the stores
  const AuditInst *costliest;
} Tree;

static bool is_of_all_threads(const AuditInst *in, double warps) {
  double executions = (double)in->counts.executions, turns = executions / warps;
  return (double)in->counts.lanes >= 32 * executions && turns >= 1 && turns == __builtin_floor(turns);
}

static bool find_stores(const Rules *r, Tree *t) {
  const AuditKernel *k = r->kernel;
  double warps = rule_warps(k), most = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (in->barrier) t->barriers += (double)in->counts.executions / warps;
    if (in->kind != SOL_EMU_KIND_SHARED_STORE || is_of_all_threads(in, warps)) continue;
    if (t->executions <= 0) t->first = i;
    t->last = i;
    t->lanes += (double)in->counts.lanes;
    t->executions += (double)in->counts.executions;
    if (r->demands[i].issues > most) most = r->demands[i].issues, t->costliest = in;
  }
  return t->costliest;
}

static bool is_tree(const Rules *r, double threads, Tree *t) {
  const AuditKernel *k = r->kernel;
  double trees = t->lanes / (k->work.launches * k->work.blocks * (threads - 1));
  t->trees = __builtin_floor(trees + 0.5);
  t->steps = 0;
  for (double left = threads; left > 1; left /= 2) t->steps++;
  if (t->trees < 1 || trees < t->trees * (1 - NEAR_WHOLE) || trees > t->trees * (1 + NEAR_WHOLE))
    return false;
  return t->barriers >= t->trees * (t->steps - 1) && t->barriers <= t->trees * 2 * (t->steps + 1);
}

// What a tree ends at: an access of all threads, or one to global memory.
static bool is_outside(const AuditInst *in, double warps) {
  return rule_is_global(in) || in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC ||
         (in->kind == SOL_EMU_KIND_SHARED_STORE && is_of_all_threads(in, warps));
}

// Its steps go: what stands between its stores, the barriers beside them, and what else a loop around them repeats.
static void remove_steps(const Rules *r, const Tree *t, uint8_t *gone, MachineWork *after) {
  const AuditKernel *k = r->kernel;
  double warps = rule_warps(k);
  for (uint32_t i = t->first; i <= t->last; i++) gone[i] = 1;
  for (int64_t step = -1; step <= 1; step += 2)
    for (int64_t i = (step < 0 ? t->first : t->last) + step; i >= 0 && i < k->inst_count; i += step) {
      const AuditInst *in = &k->insts[i];
      if (is_outside(in, warps)) break;
      if (in->barrier || (double)in->counts.executions > AGAIN * warps) gone[i] = 1;
    }
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (gone[i]) rule_remove(after, &r->demands[i], 1);
}

// In their place each warp combines its lanes, stores one value, and the first warp combines those.
static void add_shuffles(const AuditKernel *k, const Tree *t, MachineWork *after) {
  double trees = t->trees * k->work.launches * k->work.blocks, warps = k->work.warps_per_block;
  double shuffles = trees * (warps + 1) * WARP_STEPS, values = trees * (warps + 1);
  after->issues += shuffles * STEP_ISSUES + values;
  after->shared_wavefronts += shuffles + values;
  after->shared_waits += shuffles + trees;
  after->barriers += trees * warps;
}

void rule_tree(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  Tree t = {0};
  if (!s || rule_threads(s) < FEWEST_THREADS || !find_stores(r, &t) || !is_tree(r, rule_threads(s), &t))
    return;
  uint8_t *gone = sol_arena_alloc(&r->program->arena, k->inst_count + 1);
  MachineWork after = k->work;
  MachinePipe pipe;
  if (!gone) return;
  remove_steps(r, &t, gone, &after);
  r->needs.compute = audit_compute_light(r->program, k, gone, &pipe);
  add_shuffles(k, &t, &after);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(
      w.message, sizeof w.message,
      "%.0f threads combine their values by a tree in shared memory: %.0f steps with a barrier each, and half as "
      "many threads go on from step to step.",
      rule_threads(s), t.steps);
  sol_format(w.evidence, sizeof w.evidence, "%.0f barriers a warp; %.1f lanes active where the tree stores",
             t.barriers, rule_ratio(t.lanes, t.executions));
  rule_report(r, RULE_tree, t.costliest, &after, &w);
}
