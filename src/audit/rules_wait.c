// Rules about exposed latency: grids, occupancy, width and number of loads, tail effect, launches. Several of
// them may remove the same waiting time: each gain is that of its fix alone. Of `narrow` and `in_flight`, which
// are both about the loads of a thread, one is reported.
#include "audit/rules.h"
#include "base/format.h"

#define WIDEST          16.0  // bytes a lane can move at once
#define MOST_AT_ONCE    8.0   // loads a thread is advised to issue before it waits
#define NEARLY          1.03  // a smaller change is preferred that comes this close to the best
#define STREAM_SHARE    0.5   // of the global bytes, that can be widened: less would not change much
#define SMALLEST_BLOCK  64.0  // threads; blocks are advised to be no smaller
#define LAUNCHES        8.0   // of a kernel: fewer are not worth a graph ...
#define ALL_LAUNCHES    100.0 // ... but where the program has so many
#define LAUNCH_BOUND    0.5   // share of the time that goes into starting it
#define LAST_WAVE       0.5   // share of it that is filled: above, it is as good as whole
#define IN_LOOP         0.25 // executions over those of a load: with fewer, an instruction is not in its loop
#define FEWEST_PER_WARP 2.0  // loads that a warp executes; with fewer there is none to issue early

// ---- small_grid ----

static double arrays_read(const AuditKernel *k) {
  double count = 0;
  for (uint32_t i = 0; i < k->touch_count; i++) count += k->touches[i].read > 0;
  return count;
}

// How many times over the blocks could be split: a thread's loop into its turns, a block into smaller ones.
static double splits(const AuditKernel *k, const AuditShape *s) {
  double turns = 1;
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (rule_is_global(&k->insts[i]))
      turns = rule_most(turns, rule_ratio((double)k->insts[i].counts.requests, rule_warps(k)));
  turns = rule_most(turns, rule_loads_per_warp(k) / rule_most(arrays_read(k), 1)); // a loop that was unrolled
  double smaller = k->work.barriers > 0 ? 1 : rule_most(rule_threads(s) / SMALLEST_BLOCK, 1);
  return __builtin_floor(turns * smaller);
}

void rule_small_grid(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  double sms = r->program->device->sms.value;
  if (!s || rule_blocks(s) >= sms) return;
  MachineWork after = k->work;
  after.blocks = rule_least(k->work.blocks * splits(k, s), sms * rule_most(k->work.blocks_per_sm, 1));
  // Blocks that were split without a loop to share out have fewer warps each; their number stays.
  double turns = rule_most(rule_loads_per_warp(k), 1), times = after.blocks / k->work.blocks;
  if (times > turns) after.warps_per_block = rule_most(k->work.warps_per_block * turns / times, 1);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "%.0f block%s for %.0f SMs: %.0f of them are idle, the others have %.0f warp%s of the %d "
             "they can hold.",
             rule_blocks(s), rule_blocks(s) == 1 ? "" : "s", sms, sms - rule_blocks(s),
             k->work.warps_per_block, k->work.warps_per_block == 1 ? "" : "s", s->occupancy.max_warps_per_sm);
  sol_format(w.evidence, sizeof w.evidence, "grid %u x %u x %u, %.0f threads a block, %.1f loads a warp",
             s->grid[0], s->grid[1], s->grid[2], rule_threads(s), rule_loads_per_warp(k));
  sol_format(
      w.fix, sizeof w.fix,
      "Split the work into %.0f blocks or more: fewer loop iterations for each thread, smaller blocks, or "
      "the reduced dimension shared among several blocks.",
      after.blocks);
  rule_report(r, RULE_small_grid, NULL, &after, &w);
}

// ---- narrow ----

typedef struct Streams { // global accesses whose lanes lie end to end
  double bytes, all_bytes;
  double loads, all_loads; // executions
  uint32_t widest;         // bytes a lane
  const AuditInst *worst;  // the one most executed
} Streams;

static bool can_widen(const AuditInst *in) {
  const SolEmuPattern *p = &in->pattern;
  return rule_is_global(in) && in->width < WIDEST && p->seen &&
         (double)p->contiguous >= 0.9 * (double)p->seen && p->stride == (int64_t)in->width &&
         (double)p->misaligned <= 0.1 * (double)p->seen && !in->async &&
         (double)in->counts.lanes >=
             0.9 * 32 * (double)in->counts.executions; // lanes that idle have nothing to take
}

static Streams streams_of(const AuditKernel *k) {
  Streams s = {0};
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    double executions = (double)in->counts.executions;
    if (!rule_is_global(in)) continue;
    s.all_bytes += (double)in->counts.bytes;
    if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD) s.all_loads += executions;
    if (!can_widen(in)) continue;
    s.bytes += (double)in->counts.bytes;
    if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD) s.loads += executions;
    if (in->width > s.widest) s.widest = in->width;
    if (!s.worst || in->counts.executions > s.worst->counts.executions) s.worst = in;
  }
  return s;
}

// Elements of one array that a thread takes, the most: trips of a loop, unrolled or not.
static double trips_of(const AuditKernel *k) {
  double most = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    double here = 0;
    for (uint32_t j = 0; can_widen(in) && j < k->inst_count; j++) {
      const AuditInst *other = &k->insts[j];
      if (can_widen(other) && rule_same_line(in, other) && in->kind == other->kind &&
          in->pattern.allocation == other->pattern.allocation)
        here += (double)other->counts.executions;
    }
    most = rule_most(most, here);
  }
  return rule_ratio(most, rule_warps(k));
}

// Where there are fewer elements than a thread would take, fewer warps do the work: with fewer of them, lanes and warps
// exchange less.
static void use_fewer_warps(const Rules *r, double times, MachineWork *after) {
  const AuditKernel *k = r->kernel;
  double trips = trips_of(k), gone = 1 - trips / times;
  if (trips < 2 || gone <= 0) return;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    SolEmuClass unit = k->insts[i].unit;
    if (unit == SOL_EMU_CLASS_WARP || unit == SOL_EMU_CLASS_BARRIER) rule_remove(after, &r->demands[i], gone);
  }
}

// Each thread does `times` neighbouring elements: accesses, their waits, and what is done once a thread.
static void widen(const Rules *r, const Streams *s, double times, MachineWork *after) {
  const AuditKernel *k = r->kernel;
  double gone = 1 - 1 / times;
  use_fewer_warps(r, times, after);
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    const MachineWork *d = &r->demands[i];
    bool once = in->unit == SOL_EMU_CLASS_CONTROL || in->indexing;
    if (!can_widen(in) && !once) continue;
    after->issues -= d->issues * gone;
    after->integer -= d->integer * gone;
    if (once) continue;
    double passes = (double)in->counts.bytes / 128; // once full
    after->l1_wavefronts -= rule_most(d->l1_wavefronts - rule_most(d->l1_wavefronts / times, passes), 0);
  }
  double loads = rule_ratio(s->loads, s->all_loads);
  after->load_waits *= 1 - loads * gone;
  after->load_wait_clocks *= 1 - loads * gone;
  if (rule_loads_per_warp(k) < times) after->blocks = rule_most(__builtin_floor(k->work.blocks / times), 1);
}

void rule_narrow(Rules *r) {
  const AuditKernel *k = r->kernel;
  Streams s = streams_of(k);
  // Wider accesses help neither arithmetic nor atomics; and blocks of too few threads come first.
  if (k->lights.compute > k->lights.memory || k->time.bound == MACHINE_ATOMICS ||
      r->shown[RULE_tiny_blocks] > 0)
    return;
  // Of a grid that leaves SMs idle, wider accesses would use even fewer threads: more loads in flight come first.
  const AuditShape *shape = rule_main_shape(k);
  if (shape && rule_blocks(shape) < r->program->device->sms.value && rule_waits(k)) return;
  if (!s.worst || s.bytes < STREAM_SHARE * s.all_bytes) return;
  if ((double)s.worst->counts.executions < STREAM_SHARE * rule_warps(k))
    return; // most warps do not even come there
  double times = __builtin_floor(WIDEST / s.widest);
  if (times < 2) return;
  MachineWork after = k->work;
  widen(r, &s, times, &after);
  double wide = times * s.worst->width; // less than the widest where another access has wider elements
  RuleWords w = {{0}, {0}, {0}};
  size_t n = sol_format(
      w.message, sizeof w.message,
      "Lanes access %u byte%s each at contiguous addresses: %.0f of them could be one access of %.0f bytes.",
      s.worst->width, s.worst->width == 1 ? "" : "s", times, wide);
  if (k->flight.waits > 0)
    sol_format(w.message + n, sizeof w.message - n, " Now a warp has %.0f bytes in flight when it waits.",
               (double)k->flight.bytes / k->flight.waits);
  sol_format(w.evidence, sizeof w.evidence,
             "%.0f%% of the global bytes are accessed contiguously at less than 16 bytes a lane; bound by %s",
             100 * rule_ratio(s.bytes, s.all_bytes), machine_resource_name(k->time.bound));
  sol_format(w.fix, sizeof w.fix,
             "Let each thread access %.0f neighbouring elements with one access of %.0f bytes%s, and "
             "handle the rest at the end of the array one by one. Addresses must be multiples of that.",
             times, wide,
             wide == 8             ? " (float2, uint2)"
             : wide < WIDEST       ? ""
             : s.worst->width == 8 ? " (double2, ulonglong2)"
                                   : " (float4, uint4)");
  rule_report(r, RULE_narrow, s.worst, &after, &w);
}

// ---- occupancy ----

static SolKernelShape shape_of(const AuditKernel *k, const AuditShape *s) {
  return (SolKernelShape){.threads = (int64_t)rule_threads(s),
                          .regs = k->registers,
                          .smem = (int64_t)(k->static_shared + s->dynamic_shared)};
}

// The largest number of registers, or of bytes, at which an SM holds so many blocks; -1: none.
static int64_t most_for(const SolDevice *d, SolKernelShape shape, bool regs, int blocks) {
  int64_t low = regs ? 15 : -1,
          high = regs ? shape.regs : shape.smem; // low fits or is none, high does not fit
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    SolKernelShape tried = shape;
    *(regs ? &tried.regs : &tried.smem) = middle;
    SolOccupancy o;
    if (sol_occupancy(d, &tried, &o, NULL) == SOL_OK && o.blocks_per_sm >= blocks)
      low = middle;
    else
      high = middle;
  }
  return low == (regs ? 15 : -1) ? -1 : low;
}

static double seconds_at(const Rules *r, double blocks_per_sm) {
  MachineWork after = r->kernel->work;
  after.blocks_per_sm = blocks_per_sm;
  return audit_seconds_with(r->program, r->kernel, &after);
}

// The fewest blocks an SM, up to `most`, that come close to the best time.
static int enough_blocks(const Rules *r, int now, int most) {
  double best = r->kernel->time.total;
  for (int b = now + 1; b <= most; b++) {
    double t = seconds_at(r, b);
    if (t > 0) best = rule_least(best, t);
  }
  for (int b = now; b < most; b++)
    if (seconds_at(r, b) <= best * NEARLY) return b;
  return most;
}

// What limits, and what would let `blocks` in; false: nothing that can be named.
static bool name_lift(const Rules *r, const AuditShape *s, int blocks, RuleWords *w) {
  const AuditKernel *k = r->kernel;
  SolKernelShape shape = shape_of(k, s);
  bool regs = s->occupancy.limiter == SOL_LIMIT_REGISTERS;
  int64_t most = most_for(r->program->device, shape, regs, blocks);
  if (most < 0) return false;
  int warps = blocks * s->occupancy.warps_per_block;
  if (regs)
    sol_format(w->fix, sizeof w->fix,
               "At %lld registers a thread or fewer (now %lld) an SM holds %d blocks, %d warps: "
               "__launch_bounds__(%lld, %d), fewer values alive at a time, less unrolling.",
               (long long)most, (long long)shape.regs, blocks, warps, (long long)shape.threads, blocks);
  else
    sol_format(
        w->fix, sizeof w->fix,
        "At %s of shared memory a block or less (now %s) an SM holds %d blocks, %d warps: smaller tiles, "
        "fewer stages, or no more than is used.",
        rule_kib((double)most).text, rule_kib((double)shape.smem).text, blocks, warps);
  return true;
}

void rule_occupancy(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  if (!s || !rule_waits(k) || s->occupancy.blocks_per_sm < 1) return;
  const SolOccupancy *o = &s->occupancy;
  if (rule_blocks(s) <= r->program->device->sms.value * o->blocks_per_sm)
    return; // no block waits for a place
  RuleWords w = {{0}, {0}, {0}};
  int most = o->blocks_by_warps < o->blocks_by_slots ? o->blocks_by_warps : o->blocks_by_slots, blocks;
  MachineWork after = k->work;
  if (o->limiter == SOL_LIMIT_REGISTERS && k->registers_from != AUDIT_FROM_PTXAS)
    return; // too rough an estimate
  if (o->limiter == SOL_LIMIT_REGISTERS || o->limiter == SOL_LIMIT_SMEM) {
    blocks = enough_blocks(r, o->blocks_per_sm, most);
    while (blocks > o->blocks_per_sm && !name_lift(r, s, blocks, &w)) blocks--;
    if (blocks <= o->blocks_per_sm) return;
    after.blocks_per_sm = blocks;
  } else if (o->limiter == SOL_LIMIT_BLOCKS && o->occupancy < 1) {
    double times = rule_least(1 / o->occupancy, 4);
    after.warps_per_block *= times;
    after.blocks = rule_most(after.blocks / times, 1);
    sol_format(w.fix, sizeof w.fix,
               "Blocks of %.0f threads fill an SM's %d block slots with %d warps: blocks of %.0f fill %.0f.",
               rule_threads(s), o->blocks_per_sm, o->warps_per_sm, rule_threads(s) * times,
               o->warps_per_sm * times);
  } else {
    return;
  }
  sol_format(w.message, sizeof w.message,
             "An SM holds %d of %d warps (%d block%s; limit: %s), too few to hide the latency of memory.",
             o->warps_per_sm, o->max_warps_per_sm, o->blocks_per_sm, o->blocks_per_sm == 1 ? "" : "s",
             sol_limiter_name(o->limiter));
  sol_format(w.evidence, sizeof w.evidence,
             "%d registers a thread (%s), %s of shared memory and %.0f threads a block; waiting %.1f us, "
             "busy %.1f us",
             k->registers, k->registers_from == AUDIT_FROM_PTXAS ? "ptxas" : "an estimate",
             rule_kib((double)(k->static_shared + s->dynamic_shared)).text, rule_threads(s),
             k->time.seconds[MACHINE_LATENCY] * 1e6, k->time.seconds[MACHINE_DRAM] * 1e6);
  rule_report(r, RULE_occupancy, NULL, &after, &w);
}

// ---- in_flight ----

// The busiest load whose next address is known before its value has arrived: of a warp that advances through
// memory in equal steps, not of one that searches or follows pointers.
static const AuditInst *busiest_load(const AuditKernel *k) {
  const AuditInst *most = NULL;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD || in->pattern.step_times * 2 <= in->pattern.steps) continue;
    if (in->pattern.step == 0) continue; // it waits for a value to change
    if (!most || in->counts.executions > most->counts.executions) most = in;
  }
  return most;
}

static double seconds_in_flight(const Rules *r, double times, MachineWork *after) {
  *after = r->kernel->work;
  after->load_waits /= times;
  after->load_wait_clocks /= times;
  return audit_seconds_with(r->program, r->kernel, after);
}

// Whether the loop of this load stores as well, or has atomics: the compiler moves no load above those that might overlap.
// What stands between two instructions of one loop is executed about as often as they are.
static bool is_held_back(const AuditKernel *k, const AuditInst *load) {
  double often = IN_LOOP * (double)load->counts.executions;
  for (int64_t step = -1; step <= 1; step += 2)
    for (int64_t i = load - k->insts + step; i >= 0 && i < k->inst_count; i += step) {
      const AuditInst *in = &k->insts[i];
      if ((double)in->counts.executions < often) break;
      if (in->kind == SOL_EMU_KIND_GLOBAL_STORE || in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC)
        return !load->read_only;
    }
  return false;
}

static void describe_flight(const Rules *r, const AuditInst *load, double now, double times, RuleWords *w) {
  const AuditKernel *k = r->kernel;
  double bytes = rule_ratio((double)k->flight.bytes, k->flight.waits);
  double per_sm = rule_least(k->work.blocks_per_sm, k->work.blocks / r->program->device->sms.value);
  double warps = rule_most(per_sm, 1) * k->work.warps_per_block;
  sol_format(
      w->message, sizeof w->message,
      "A warp has %.1f load%s in flight when it waits, %.0f bytes; the %.0f warp%s of an SM together %s.",
      now, now < 1.05 ? "" : "s", bytes, warps, warps < 1.5 ? "" : "s", rule_kib(bytes * warps).text);
  sol_format(w->evidence, sizeof w->evidence,
             "%.1f executions of this load a warp, %u bytes a lane; waiting %.1f us, DRAM busy %.1f us",
             rule_ratio((double)load->counts.requests, rule_warps(k)), load->width,
             k->time.seconds[MACHINE_LATENCY] * 1e6, k->time.seconds[MACHINE_DRAM] * 1e6);
  sol_format(
      w->fix, sizeof w->fix,
      "Issue %.0f independent loads before the first is used: #pragma unroll %.0f on the loop, or prefetch the "
      "next elements while working on these.%s More warps on an SM do the same.",
      rule_most(now, 1) * times, times,
      is_held_back(k, load)
          ? " Mark the pointers __restrict__: the compiler cannot move loads above a store that might "
            "overlap them."
          : "");
}

void rule_in_flight(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditInst *load = busiest_load(k);
  if (!load || k->flight.waits <= 0 || !rule_waits(k) || r->shown[RULE_narrow] > 0) return;
  double now = rule_ratio((double)k->flight.loads, k->flight.waits);
  double turns = rule_ratio((double)load->counts.requests, rule_warps(k));
  double most = rule_least(rule_least(turns, MOST_AT_ONCE), MOST_AT_ONCE / now), times = 2;
  if (turns < FEWEST_PER_WARP || most < 2) return;
  MachineWork after;
  double best = seconds_in_flight(r, most, &after);
  while (times * 2 <= most && seconds_in_flight(r, times, &after) > best * NEARLY) times *= 2;
  seconds_in_flight(r, times, &after);
  RuleWords w = {{0}, {0}, {0}};
  describe_flight(r, load, now, times, &w);
  rule_report(r, RULE_in_flight, load, &after, &w);
}

// ---- tail ----

void rule_tail(Rules *r) {
  const AuditKernel *k = r->kernel;
  const AuditShape *s = rule_main_shape(k);
  double sms = r->program->device->sms.value;
  if (!s || s->occupancy.blocks_per_sm < 1) return;
  double slots = sms * s->occupancy.blocks_per_sm, waves = rule_blocks(s) / slots;
  double whole = __builtin_floor(waves);
  if (whole < 1 || waves == whole || waves - whole > LAST_WAVE) return;
  MachineWork after = k->work;
  after.blocks = k->work.blocks * (whole * slots) / rule_blocks(s);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "%.0f blocks are %.2f waves: the last wave has %.0f of the %.0f blocks that fit.",
             rule_blocks(s), waves, rule_blocks(s) - whole * slots, slots);
  sol_format(w.evidence, sizeof w.evidence, "%.0f SMs with %d block%s each (limit: %s)", sms,
             s->occupancy.blocks_per_sm, s->occupancy.blocks_per_sm == 1 ? "" : "s",
             sol_limiter_name(s->occupancy.limiter));
  sol_format(
      w.fix, sizeof w.fix,
      "Launch %.0f blocks that loop over the work (block += gridDim.x), or halve the blocks' size so that "
      "the last wave is shorter.",
      whole * slots);
  rule_report(r, RULE_tail, NULL, &after, &w);
}

// ---- launch_bound ----

void rule_launch_bound(Rules *r) {
  const AuditKernel *k = r->kernel;
  double plain = k->work.launches - k->work.graph_launches, starting = k->time.seconds[MACHINE_LAUNCH],
         all = 0;
  for (uint32_t i = 0; i < r->program->kernel_count; i++)
    all += r->program->kernels[i].work.launches - r->program->kernels[i].work.graph_launches;
  if ((plain < LAUNCHES && all < ALL_LAUNCHES) || plain <= 0 || starting < LAUNCH_BOUND * k->time.total)
    return;
  MachineWork after = k->work;
  after.graph_launches = after.launches;
  r->needs.graph_launches = r->needs.launches;
  RuleWords w = {{0}, {0}, {0}};
  double each = k->time.total / k->work.launches;
  sol_format(w.message, sizeof w.message,
             "%.0f launch%s of %.2f us each, of which %.2f us are launch overhead.", plain,
             plain == 1 ? "" : "es", each * 1e6, starting / k->work.launches * 1e6);
  sol_format(w.evidence, sizeof w.evidence,
             "%.0f%% of the kernel's time is launch overhead; all work in one launch: %.1f us",
             100 * rule_ratio(starting, k->time.total),
             (k->time.total - starting + starting / k->work.launches) * 1e6);
  rule_report(r, RULE_launch_bound, NULL, &after, &w);
}
