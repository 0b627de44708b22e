// Rules about how a block's threads share its work: one lane for all, or too few lanes for a warp.
#include "audit/rules.h"
#include "base/format.h"

#define ALONE       1.5   // lanes of an execution: no more is taken as one lane
#define PATH_SHARE  0.25  // of a block's longest path: less is not what the block waits for
#define MAIN_SHARE  0.5   // likewise: as much is most of it
#define EXCHANGES   10.0  // of a warp, to combine what all threads found
#define BARRIERS    2.0   // likewise
#define LANES_USED  0.75  // of a block's warps: above, idle lanes are not worth a word
#define GOOD_BLOCK  256.0 // threads of the block that is advised
#define MOST_BUSY   0.5   // of a grid's warps: with fewer, it has too many blocks
#define FEW_THREADS 64.0  // of a block: with more, few lanes are idle

// ---- one_lane ----

static double clocks_of(const Rules *r, uint32_t i) {
  MachineWork d = r->demands[i];
  d.stall = r->kernel->work.stall;
  return machine_wait_clocks(&r->program->machine, &d);
}

// A guard that is rarely true leaves no lane, and the lanes of a guarded branch are those that take it: neither is one lane.
static bool is_alone(const AuditInst *in) {
  double executions = (double)in->counts.executions, lanes = (double)in->counts.lanes;
  return executions > 0 && !in->barrier && !in->branch && lanes <= ALONE * executions &&
         lanes * ALONE >= executions;
}

// All lanes of all warps take a part: a warp's instruction does 32 elements. The bytes stay the same.
static void share_out(const MachineWork *d, double part, MachineWork *after) {
  double gone = 1 - part;
#define SHARE(name) after->name = rule_most(after->name - d->name * gone, 0);
  SHARE(issues)
  SHARE(fp32)
  SHARE(fp16)
  SHARE(fp64)
  SHARE(integer)
  SHARE(special)
  SHARE(convert)
  SHARE(l1_wavefronts)
  SHARE(shared_wavefronts)
  SHARE(l2_requests)
  SHARE(load_waits)
  SHARE(load_wait_clocks)
  SHARE(shared_waits)
#undef SHARE
}

void rule_one_lane(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  const MachineModel *m = &r->program->machine;
  double warps = k->work.warps_per_block, all = machine_wait_clocks(m, &k->work), alone = 0, most = 0;
  const AuditInst *worst = NULL;
  if (!s || warps < 2 || k->work.chain <= 1) return;
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    if (!is_alone(&k->insts[i])) continue;
    double clocks = clocks_of(r, i);
    alone += clocks;
    share_out(&r->demands[i], 1.0 / 32, &after);
    if (clocks > most) most = clocks, worst = &k->insts[i];
  }
  double longest = k->work.chain * all / warps; // of all blocks
  alone = rule_least(alone, longest);
  if (!worst || alone < PATH_SHARE * longest) return;
  double whole = rule_warps(k);
  after.barriers += BARRIERS * whole;
  after.shared_waits += EXCHANGES * whole;
  double mean = machine_wait_clocks(m, &after) / warps, added = mean - (all - alone + alone / 32) / warps;
  // Where that lane is most of the path, the others are taken to have equal parts of the rest: both clocks are
  // estimates, and the difference of two long ones says little about what is short.
  double rest = longest - alone;
  if (alone >= MAIN_SHARE * longest) rest = rule_least(rest, (all - alone) / warps);
  double path = rest + alone / 32 / warps + rule_most(added, 0);
  after.chain = rule_most(rule_ratio(path, mean), 1);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(
      w.message, sizeof w.message,
      "One lane does this for its block of %.0f threads, which wait: %.0f%% of the block's longest path.",
      rule_threads(s), 100 * alone / longest);
  sol_format(w.evidence, sizeof w.evidence,
             "%.1f lanes active in %.0f executions of this instruction; the longest path of a block is %.1f "
             "times that of its average warp",
             rule_ratio((double)worst->counts.lanes, (double)worst->counts.executions),
             (double)worst->counts.executions, k->work.chain);
  rule_report(r, RULE_one_lane, worst, &after, &w);
}

// ---- tiny_blocks ----

// Threads of several blocks in one: warps are full, and everything that a warp does is done by fewer of them.
static void fill_warps(const Rules *r, double used, double threads, MachineWork *after) {
  const AuditKernel *k = r->kernel;
  double passes = 0;
  share_out(&k->work, used, after);
  for (uint32_t i = 0; i < k->inst_count; i++) passes += (double)k->insts[i].counts.bytes / 128;
  after->l1_wavefronts = rule_least(k->work.l1_wavefronts, rule_most(after->l1_wavefronts, passes));
  after->barriers *= used;
  after->blocks = rule_most(k->work.blocks * threads / GOOD_BLOCK, 1);
  after->warps_per_block = GOOD_BLOCK / 32;
  SolOccupancy o;
  const AuditShape *s = rule_main_shape(k);
  double shared = (double)(k->static_shared + s->dynamic_shared) * GOOD_BLOCK / threads;
  SolKernelShape shape = {.threads = (int64_t)GOOD_BLOCK, .regs = k->registers, .smem = (int64_t)shared};
  if (!sol_occupancy(r->program->device, &shape, &o, NULL) && o.blocks_per_sm > 0)
    after->blocks_per_sm = o.blocks_per_sm;
}

// Most of the grid has nothing to do: without those blocks their start and their few instructions are saved.
static void report_idle_blocks(Rules *r, const AuditShape *s, double busy) {
  const AuditKernel *k = r->kernel;
  double warps = rule_warps(k);
  MachineWork after = k->work;
  after.blocks = rule_most(__builtin_ceil(k->work.blocks * busy), 1);
  for (uint32_t i = 0; i < k->inst_count; i++) {
    double executions = (double)k->insts[i].counts.executions;
    if (executions > busy * warps) rule_remove(&after, &r->demands[i], 1 - busy * warps / executions);
  }
  RuleWords w = {{0}, {0}, {0}};
  sol_format(
      w.message, sizeof w.message,
      "At most %.*f%% of the warps of these %.0f blocks read or write anything: the others return at once.",
      busy < 0.1 ? 1 : 0, 100 * busy, rule_blocks(s));
  sol_format(w.evidence, sizeof w.evidence, "%.0f blocks of %.0f threads", rule_blocks(s), rule_threads(s));
  sol_format(
      w.fix, sizeof w.fix,
      "Launch as many blocks as there is work for, (n + threads - 1) / threads for n elements of one thread each: at most "
      "%.0f here. Where each block has some work, make them smaller.",
      rule_blocks(s) * after.blocks / k->work.blocks);
  rule_report(r, RULE_tiny_blocks, NULL, &after, &w);
}

void rule_tiny_blocks(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  if (!s) return;
  double threads = rule_threads(s), used = threads / (32 * __builtin_ceil(threads / 32));
  bool idle = threads <= FEW_THREADS && used <= LANES_USED,
       starting = threads < GOOD_BLOCK && k->time.bound == MACHINE_BLOCKS;
  double busy = rule_busy_warps(k);
  if (!idle && busy < MOST_BUSY) {
    report_idle_blocks(r, s, busy);
    return;
  }
  if ((!idle && !starting) || rule_blocks(s) < 2) return;
  MachineWork after = k->work;
  fill_warps(r, idle ? used : 1, threads, &after);
  RuleWords w = {{0}, {0}, {0}};
  if (idle) {
    sol_format(
        w.message, sizeof w.message,
        "Blocks have %.0f threads: %.0f%% of the lanes of their warps do nothing, and an SM holds %d of its %d "
        "warps.",
        threads, 100 * (1 - used), s->occupancy.warps_per_sm, s->occupancy.max_warps_per_sm);
  } else {
    sol_format(w.message, sizeof w.message,
               "%.0f blocks of %.0f threads: starting them takes longer than anything that they do.",
               rule_blocks(s), threads);
    sol_format(
        w.fix, sizeof w.fix,
        "Use blocks of %.0f threads or more; or let each thread take several elements, in fewer blocks.",
        GOOD_BLOCK);
  }
  sol_format(w.evidence, sizeof w.evidence, "%.0f blocks of %.0f threads; %d blocks an SM (limit: %s)",
             rule_blocks(s), threads, s->occupancy.blocks_per_sm, sol_limiter_name(s->occupancy.limiter));
  rule_report(r, RULE_tiny_blocks, NULL, &after, &w);
}
