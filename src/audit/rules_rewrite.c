// The rule about bytes that are stored more than once.
#include "audit/rules.h"
#include "base/format.h"

#define WRITTEN_AGAIN 4.0  // times a byte is stored: fewer are not worth a word
#define WARPS_A_BLOCK 32.0 // at most
#define UNROLLED      4.0  // turns of a loop whose loads ptxas puts together where no store is between them

// Of one allocation: what its stores, and the loads of it, ask for.
typedef struct Writes {
  double stored, loaded; // bytes
  const AuditInst *worst;
} Writes;

static bool is_of(const AuditInst *in, const AuditTouch *t) {
  return rule_is_global(in) && !in->pattern.several && in->pattern.allocation == t->address;
}

static Writes sum_writes(const AuditKernel *k, const AuditTouch *t) {
  Writes w = {0};
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (!is_of(in, t)) continue;
    if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD) {
      w.loaded += (double)in->counts.bytes;
      continue;
    }
    w.stored += (double)in->counts.bytes;
    if (!w.worst || in->counts.bytes > w.worst->counts.bytes) w.worst = in;
  }
  return w;
}

// A byte is stored once; and where it was also read in every turn, that once as well.
static void move_less(const Rules *r, const AuditTouch *t, const Writes *w, MachineWork *after) {
  double stores = 1 - rule_least(t->written / w->stored, 1);
  double loads = w->loaded > 0 ? 1 - rule_least(t->read / w->loaded, 1) : 0;
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *in = &r->kernel->insts[i];
    if (!is_of(in, t)) continue;
    bool load = in->kind == SOL_EMU_KIND_GLOBAL_LOAD;
    rule_remove(after, &r->demands[i], load ? loads : stores);
  }
}

// The loads of a turn need no longer wait for the store of the turn before.
static void wait_together(const Rules *r, const AuditTouch *t, const AuditInst *store, MachineWork *after) {
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *in = &r->kernel->insts[i];
    if (!rule_same_line(in, store) || is_of(in, t)) continue;
    after->load_waits -= r->demands[i].load_waits * (1 - 1 / UNROLLED);
    after->load_wait_clocks -= r->demands[i].load_wait_clocks * (1 - 1 / UNROLLED);
  }
}

// Fewer places than threads, though of each block at most one warp may be what stores.
static bool by_many_threads(const AuditKernel *k, const AuditTouch *t, const AuditInst *store) {
  double lanes = rule_ratio((double)store->counts.lanes, (double)store->counts.executions);
  return t->written * WARPS_A_BLOCK < rule_warps(k) * lanes * store->width;
}

// A store whose turns go to one place after another: no register holds them all.
static bool passes_over(const AuditInst *in) {
  return in->pattern.step && in->pattern.step_times * 2 > in->pattern.steps;
}

void rule_rewrite(Rules *r) {
  const AuditKernel *k = r->kernel;
  for (uint32_t i = 0; i < k->touch_count; i++) {
    const AuditTouch *t = &k->touches[i];
    Writes w = sum_writes(k, t);
    if (!w.worst || t->written <= 0 || w.stored < WRITTEN_AGAIN * t->written) continue;
    if (w.loaded > 0 && k->work.barriers > 0) continue; // others may read it between the stores
    MachineWork after = k->work;
    move_less(r, t, &w, &after);
    bool many = by_many_threads(k, t, w.worst);
    if (!many) wait_together(r, t, w.worst, &after); // a flag that others set is nothing a thread waits for
    RuleWords words = {{0}, {0}, {0}};
    sol_format(
        words.message, sizeof words.message,
        "Each of the %s that are stored here is stored %.0f times: %s go to L2, of which the last %s count.",
        rule_bytes(t->written).text, w.stored / t->written, rule_bytes(w.stored).text,
        rule_bytes(t->written).text);
    sol_format(words.evidence, sizeof words.evidence, "%s stored, %s distinct; %s of them read again",
               rule_bytes(w.stored).text, rule_bytes(t->written).text, rule_bytes(w.loaded).text);
    if (many)
      sol_format(
          words.fix, sizeof words.fix,
          "Many threads store to the same bytes, of which any may come last: what a thread alone reads again belongs in "
          "a local variable in place of the array, the rest in a place of each thread's own; or let one of them store.");
    else if (passes_over(w.worst))
      sol_format(
          words.fix, sizeof words.fix,
          "Each pass goes over all of them: hold them in shared memory (or in a local array that loops with constant "
          "bounds keep in registers) and store them once, after the last pass.");
    rule_report(r, RULE_rewrite, w.worst, &after, &words);
  }
}
