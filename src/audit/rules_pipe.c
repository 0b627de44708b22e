// Rules about instructions that are serialised or unnecessary: bank conflicts, atomics, divergence, needless use
// of shared memory, spills.
#include "audit/inside.h"
#include "audit/rules.h"
#include "base/format.h"

#define CONFLICT    1.1  // passes over the fewest possible: below, nothing is said
#define OFTEN       0.05 // of the executions of a branch diverge: fewer are not what leaves lanes idle
#define MIXED_LANES 0.95 // share of lanes that are active: above, a warp counts as whole
#define IN_L1       0.98 // share of hits: above, local memory costs little more than registers
#define ANGLE_ARRAYS                                                                                         \
  80 // bytes a thread: as many the math library takes for angles; with more, the kernel has its own
#define MOST_OWN     128 // bytes from lane to lane that can be one thread's elements
#define SECTOR_WORDS 8.0 // addresses of 4 bytes that share a sector, and so its turns
#define LONE_LANE    1.5 // lanes that are active, at most, where one lane does what others wait for
#define EXCHANGES    5.0 // between the lanes of a warp, to combine what they have
#define MOST_LANES   0.9 // of those of an atomic at one address: it is a sum over the warp

// ---- bank_conflict ----

static bool conflicts(const AuditInst *in) {
  return (in->kind == SOL_EMU_KIND_SHARED_LOAD || in->kind == SOL_EMU_KIND_SHARED_STORE) &&
         (double)in->counts.wavefronts > CONFLICT * (double)in->counts.wavefronts_ideal;
}

// Bytes that a lane accesses between its own address and the next lane's, from the same register.
static uint64_t bytes_of_lane(const AuditKernel *k, const AuditInst *in) {
  uint64_t bytes = in->width;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *other = &k->insts[i];
    int64_t apart = other->offset - in->offset, stride = in->pattern.stride;
    if (stride < 0) stride = -stride;
    if (other != in && other->kind == in->kind && in->base && other->base == in->base && apart &&
        apart < stride && apart > -stride)
      bytes += other->width;
  }
  return bytes;
}

static void name_padding(const AuditKernel *k, const AuditInst *in, RuleWords *w) {
  const SolEmuPattern *p = &in->pattern;
  uint32_t width = in->width;
  uint64_t stride = (uint64_t)(p->stride < 0 ? -p->stride : p->stride);
  uint32_t pad = width > 4 ? width : 4;
  if (p->rows * 2 >= p->seen && p->rows && stride <= width) {
    sol_format(
        w->fix, sizeof w->fix,
        "A warp accesses parts of several rows here, which start in the same banks: make the block a "
        "multiple of 32 wide in x, or pad the rows so that each begins in the bank after the last one "
        "that the warp accesses in the row before (16 lanes of 4 bytes: 64 bytes past a multiple of 128).");
    return;
  }
  if (p->strided * 2 < p->seen || stride <= width || stride % 4)
    return; // no one stride: the rule's own advice
  if (stride > 16 && stride <= MOST_OWN && bytes_of_lane(k, in) * 2 >= stride &&
      bytes_of_lane(k, in) > width) {
    sol_format(
        w->fix, sizeof w->fix,
        "Each thread takes %llu bytes side by side: let adjacent threads take adjacent elements, the thread's own "
        "ones being a warp's row apart (threadIdx.x + k * 32 in place of threadIdx.x * K + k).",
        (unsigned long long)stride);
    return;
  }
  if (stride <= 16 && stride % width == 0 && width >= 4) {
    sol_format(
        w->fix, sizeof w->fix,
        "Lanes are %llu bytes apart: let adjacent threads take adjacent elements (threadIdx.x + k * blockDim.x), or "
        "let each take its %llu bytes with one access.",
        (unsigned long long)stride, (unsigned long long)stride);
    return;
  }
  if (p->stride < 0) { // rows are an element longer than that
    sol_format(
        w->fix, sizeof w->fix,
        "Lanes are %llu bytes apart, backwards, as along a diagonal: pad rows by one more column (%u bytes), so that they "
        "are %llu bytes apart.",
        (unsigned long long)stride, pad, (unsigned long long)(stride + pad));
    return;
  }
  sol_format(w->fix, sizeof w->fix,
             "Lanes are %llu bytes apart. Pad rows by %u bytes, to %llu (one more column: [%llu] instead of "
             "[%llu] elements of %u bytes), or swizzle: store column c of row r at c ^ (r %% %u).",
             (unsigned long long)stride, pad, (unsigned long long)(stride + pad),
             (unsigned long long)((stride + pad) / pad), (unsigned long long)(stride / pad), pad, 128 / pad);
}

// The same layout conflicts wherever it is accessed: one finding.
static bool conflict_alike(const AuditInst *a, const AuditInst *b) {
  const SolEmuPattern *p = &a->pattern, *q = &b->pattern;
  if (a == b || rule_same_line(a, b)) return true;
  return a->width == b->width && p->stride == q->stride && p->stride && p->strided * 2 > p->seen &&
         q->strided * 2 > q->seen;
}

void rule_bank_conflict(Rules *r) {
  const AuditKernel *k = r->kernel;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i], *worst = in;
    bool first = conflicts(in);
    for (uint32_t b = 0; b < i && first; b++)
      first = !(conflicts(&k->insts[b]) && conflict_alike(in, &k->insts[b]));
    if (!first) continue;
    MachineWork after = k->work;
    double requests = 0, passes = 0, ideal = 0;
    for (uint32_t m = i; m < k->inst_count; m++) {
      const AuditInst *other = &k->insts[m];
      if (!conflicts(other) || !conflict_alike(in, other)) continue;
      requests += (double)other->counts.shared_requests;
      passes += (double)other->counts.wavefronts;
      ideal += (double)other->counts.wavefronts_ideal;
      if (other->counts.wavefronts > worst->counts.wavefronts) worst = other;
    }
    after.shared_wavefronts -= passes - ideal;
    RuleWords w = {{0}, {0}, {0}};
    sol_format(
        w.message, sizeof w.message,
        "Lanes conflict in the same banks of shared memory: a request takes %.1f wavefronts where %.1f would do.",
        rule_ratio(passes, requests), rule_ratio(ideal, requests));
    sol_format(w.evidence, sizeof w.evidence,
               "stride %lld B, %u bytes a lane, %.0f requests, %.0f wavefronts too many",
               (long long)worst->pattern.stride, worst->width, requests, passes - ideal);
    name_padding(k, worst, &w);
    rule_report(r, RULE_bank_conflict, worst, &after, &w);
  }
}

// ---- atomics ----

// Swaps that are tried until they succeed become as few. Where they take a lock, what it guards cannot be combined.
static void combine_swaps(double left, MachineWork *w) {
  if (w->swaps <= 0 || w->held_clocks > 0) return;
  double part = rule_least(left / w->swaps, 1);
  w->swaps *= part, w->swap_lanes *= part, w->swap_sectors *= part, w->swap_active *= part,
      w->swap_queue *= part;
  if (w->swap_guarded <= left) return;
  w->swap_guard_clocks *= left / w->swap_guarded;
  w->swap_guarded = left;
}

// One atomic for each address and block remains when blocks combine first. Contention in a sector is between all
// atomics of the kernel: one finding, where most of them are.
static void report_global_atomics(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditInst *in = NULL;
  double lanes = 0, same = 0, executions = 0, turns = k->work.atomic_turns;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *other = &k->insts[i];
    if (other->kind != SOL_EMU_KIND_GLOBAL_ATOMIC) continue;
    lanes += (double)other->counts.atomics;
    same += (double)other->pattern.same;
    executions += (double)other->counts.executions;
    if (!in || other->counts.atomics > in->counts.atomics) in = other;
  }
  if (!in || turns <= 0 || same <= 0) return;
  double blocks = k->work.launches * k->work.blocks;
  double words =
      rule_least(__builtin_ceil(0.9 * lanes / same), SECTOR_WORDS); // that share the busiest sector
  double left = rule_least(turns, blocks * words);
  MachineWork after = k->work;
  after.atomic_turns = left;
  after.atomic_clocks *= left / turns;
  after.atomic_end_clocks *= left / turns;
  after.l2_requests -= after.l2_atomics * (1 - left / turns);
  after.l2_atomics *= left / turns;
  combine_swaps(left, &after);
  RuleWords w = {{0}, {0}, {0}};
  double sharing = rule_ratio(same, executions);
  size_t n =
      sol_format(w.message, sizeof w.message,
                 "Of %.0f atomic operations %.0f go to the same 32 bytes and are serialised", lanes, turns);
  sol_format(w.message + n, sizeof w.message - n,
             sharing < 1.05 ? "." : "; %.1f lanes of a warp share an address.", sharing);
  sol_format(w.evidence, sizeof w.evidence,
             "%.1f atomics a warp, %.0f blocks; one for each address and block would be %.0f in sequence",
             rule_ratio(lanes, executions), blocks, left);
  rule_report(r, RULE_atomics, in, &after, &w);
}

// Those of one type are one finding. A float's is a loop that serves one lane of an address a turn, waits and all (work.c): of lanes
// that are combined first, one is left, and shuffles in place of the others.
static void report_shared_atomics(Rules *r, bool real) {
  const AuditKernel *k = r->kernel;
  const AuditInst *worst = NULL;
  MachineWork after = k->work;
  double extra = 0, passes = 0, requests = 0, same = 0, lanes = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    double times = (double)in->counts.shared_requests, turns = (double)in->pattern.same,
           over = (double)in->counts.wavefronts - (double)in->counts.wavefronts_ideal;
    if (in->kind != SOL_EMU_KIND_SHARED_ATOMIC || in->real != real || over <= 0) continue;
    if (real && turns > times) {
      rule_remove(&after, &r->demands[i], 1 - times / turns);
      double exchanges = EXCHANGES * times * in->width / 4;
      after.shared_wavefronts += exchanges, after.issues += 2 * exchanges;
      after.shared_waits += EXCHANGES * times;
    } else
      after.shared_wavefronts -= over;
    extra += over, passes += (double)in->counts.wavefronts, requests += times;
    same += turns, lanes += (double)in->counts.lanes;
    if (!worst || in->counts.wavefronts > worst->counts.wavefronts) worst = in;
  }
  if (!worst) return;
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "Atomics in shared memory are serialised: a request takes %.1f wavefronts.",
             rule_ratio(passes, requests));
  sol_format(w.evidence, sizeof w.evidence, "%.1f lanes at one address, %.0f wavefronts too many",
             rule_ratio(same, requests), extra);
  bool one_word = same > MOST_LANES * lanes;
  sol_format(
      w.fix, sizeof w.fix,
      one_word
          ? "The lanes of a warp have one address: add them up first (%s), and let one lane do the atomic."
          : "Give each warp a copy of its own and add them up at the end, or combine lanes that hit the same "
            "address first (__match_any_sync, then %s).",
      real ? "__shfl_down_sync" : "__reduce_add_sync");
  rule_report(r, RULE_atomics, worst, &after, &w);
}

void rule_atomics(Rules *r) {
  report_global_atomics(r);
  report_shared_atomics(r, false);
  report_shared_atomics(r, true);
}

// ---- divergence ----

// Lanes of a warp there are on average: less than 32 where blocks are not whole warps.
static double lanes_in_warp(const AuditKernel *k) {
  const AuditShape *s = rule_main_shape(k);
  double threads = s ? rule_threads(s) : 32;
  return threads / __builtin_ceil(threads / 32);
}

// The branch that stands closest before the instruction and diverges often; else, as loops put branches after what they
// repeat, the one that diverges most.
static const AuditInst *branch_before(const AuditKernel *k, uint32_t at) {
  const AuditInst *most = NULL;
  for (uint32_t i = at; i-- > 0;)
    if ((double)k->insts[i].counts.divergent > OFTEN * (double)k->insts[i].counts.executions)
      return &k->insts[i];
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].counts.divergent && (!most || k->insts[i].counts.divergent > most->counts.divergent))
      most = &k->insts[i];
  return most;
}

void rule_divergence(Rules *r) {
  const AuditKernel *k = r->kernel;
  if (!k->total.divergent) return;
  MachineWork after = k->work;
  double full = lanes_in_warp(k), idle = 0, most = 0;
  uint32_t worst = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const SolEmuCounts *c = &k->insts[i].counts;
    double share = rule_ratio((double)c->lanes, (double)c->executions * full), empty = 1 - share;
    // The lanes of a guarded branch are those that take it: a warp that goes on as one has none.
    if (share >= MIXED_LANES || k->insts[i].barrier || k->insts[i].branch) continue;
    const MachineWork *d = &r->demands[i];
    after.issues -= d->issues * empty;
    after.fp32 -= d->fp32 * empty;
    after.fp16 -= d->fp16 * empty;
    after.fp64 -= d->fp64 * empty;
    after.integer -= d->integer * empty;
    after.special -= d->special * empty;
    after.convert -= d->convert * empty;
    idle += d->issues * empty;
    if (d->issues * empty > most) most = d->issues * empty, worst = i;
  }
  const AuditInst *branch = branch_before(k, worst);
  if (!branch) return;
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "%.0f%% of the branches executed here diverge: %.0f%% of the kernel's "
             "instruction slots are spent on inactive lanes.",
             100 * rule_ratio((double)branch->counts.divergent, (double)branch->counts.executions),
             100 * rule_ratio(idle, k->work.issues));
  sol_format(w.evidence, sizeof w.evidence, "%.1f of %.0f lanes active on average, %llu divergent branches",
             rule_ratio((double)k->total.lanes, (double)k->total.executions), full,
             (unsigned long long)k->total.divergent);
  const SolEmuCounts *c = &k->insts[worst].counts;
  if ((double)c->lanes < LONE_LANE * (double)c->executions)
    sol_format(
        w.fix, sizeof w.fix,
        "One lane of a warp does this while the others wait. Let lanes share it, or keep one value a lane until there "
        "is a warp of them (32 rows, then all lanes at once); or make it shorter.");
  rule_report(r, RULE_divergence, branch, &after, &w);
}

// ---- shared_detour ----

static bool same_address(const AuditInst *a, const AuditInst *b) {
  return a->base && a->base == b->base && a->offset == b->offset;
}

// Whether what this load reads was put there by the same thread: some store has the same address in the same
// register, the same width, and ran as often.
static bool reads_its_own(const AuditKernel *k, const AuditInst *load) {
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *store = &k->insts[i];
    bool puts = store->kind == SOL_EMU_KIND_SHARED_STORE || store->async;
    if (puts && store->width == load->width && same_address(load, store) && store->place < load->place &&
        store->counts.executions >= load->counts.executions)
      return true;
  }
  return false;
}

static bool is_shared(const AuditInst *in) {
  return in->kind == SOL_EMU_KIND_SHARED_LOAD || in->kind == SOL_EMU_KIND_SHARED_STORE;
}

void rule_shared_detour(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditInst *worst = NULL;
  double bytes = 0;
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC) return;
    if (in->kind == SOL_EMU_KIND_SHARED_LOAD) {
      if (!reads_its_own(k, in)) return; // it is used to hand values over
      bytes += (double)in->counts.lanes * in->width;
      if (!worst || in->counts.executions > worst->counts.executions) worst = in;
    }
    if (is_shared(in) || in->barrier) rule_remove(&after, &r->demands[i], 1);
    if (in->async) after.shared_wavefronts -= r->demands[i].shared_wavefronts;
  }
  if (!worst) return;
  const AuditShape *s = rule_main_shape(k);
  if (s && s->occupancy.limiter == SOL_LIMIT_SMEM) {
    const SolOccupancy *o = &s->occupancy;
    int blocks = o->blocks_by_warps < o->blocks_by_slots ? o->blocks_by_warps : o->blocks_by_slots;
    after.blocks_per_sm = blocks < o->blocks_by_regs ? blocks : o->blocks_by_regs;
  }
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "%s go through shared memory, and every thread reads back what it wrote itself.",
             rule_bytes(bytes).text);
  sol_format(w.evidence, sizeof w.evidence, "%.0f wavefronts of shared memory, %.0f barriers",
             k->work.shared_wavefronts, k->work.barriers);
  rule_report(r, RULE_shared_detour, worst, &after, &w);
}

// ---- spill ----

// What L1 holds costs its wavefronts, and what is stored goes on to L2.
static bool binds_local(const AuditKernel *k) {
  return k->time.bound == MACHINE_L1 || k->time.bound == MACHINE_L2;
}

// ptxas's own spills are not in the PTX; the time holds a store and a load of each word and thread.
static void report_hidden_spills(Rules *r) {
  const AuditKernel *k = r->kernel;
  double bytes = audit_spilled(k->registers_from, k->stack_bytes, k->local_array_bytes);
  if (bytes <= 0) return;
  double warps = rule_warps(k);
  MachineWork after = k->work, spills = machine_spills(&r->program->machine, bytes, warps,
                                                       k->work.blocks_per_sm * k->work.warps_per_block * 32);
  if (spills.l2_reads <= 0 && !binds_local(k)) return; // they stay in L1
  rule_remove(&after, &spills, 1);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(
      w.message, sizeof w.message,
      "ptxas keeps %.0f bytes a thread in local memory beyond the kernel's own arrays: %d registers were not "
      "enough. At least %s of traffic that is not attributed to any line of the bill.",
      bytes, k->registers, rule_bytes(spills.issues * 128).text);
  sol_format(w.evidence, sizeof w.evidence,
             "stack %llu B, of which %llu B are arrays; one store and load of each word",
             (unsigned long long)k->stack_bytes, (unsigned long long)k->local_array_bytes);
  rule_report(r, RULE_spill, NULL, &after, &w);
}

void rule_spill(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditInst *worst = NULL;
  double sectors = 0, hits = 0, misses = 0;
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (in->kind == SOL_EMU_KIND_LOCAL_LOAD)
      hits += (double)in->counts.l1_hits, misses += (double)in->counts.l1_misses;
    if (in->kind != SOL_EMU_KIND_LOCAL_LOAD && in->kind != SOL_EMU_KIND_LOCAL_STORE) continue;
    rule_remove(&after, &r->demands[i], 1);
    sectors += (double)in->counts.sectors;
    if (!worst || in->counts.sectors > worst->counts.sectors) worst = in;
  }
  report_hidden_spills(r);
  if (!worst || (hits >= IN_L1 * (hits + misses) && !binds_local(k))) return;
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "%s are moved to and from local memory, for values of a thread that are not in registers.",
             rule_bytes(sectors * 32).text);
  sol_format(w.evidence, sizeof w.evidence,
             "%llu bytes of local arrays a thread, %.1f MB of it from and to DRAM",
             (unsigned long long)k->local_array_bytes,
             (k->work.dram_read + k->work.dram_write - after.dram_read - after.dram_write) / 1e6);
  for (uint32_t i = 0; i < k->touch_count && k->local_array_bytes <= ANGLE_ARRAYS; i++)
    if (rule_is_of_angles(&k->touches[i]))
      sol_format(
          w.fix, sizeof w.fix,
          "This is how sin, cos and tan reduce large arguments (from about 10^5 on): subtract whole turns before, or "
          "use sinpi and cospi; where its accuracy suffices, __sinf has no such array.");
  rule_report(r, RULE_spill, worst, &after, &w);
}
