// What each source line costs: its share of the kernel's predicted time. The costs of all lines, that of the launches
// and that of what no line owns add up to the time.
//
//  1. A resource's part of the time is its own time times the derivative of the whole by it. The time model combines
//     times by roots of sums of powers, for which these parts add up to the whole; the busiest resource has most of it.
//  2. A resource's part is shared out by what each instruction demands of it. Bytes written to DRAM belong to stores,
//     by the sectors they write.
//  3. Waiting for loads belongs to the loads, by their requests and the latency of the memory that served them, whatever
//     instruction waits. Clocks between instructions belong to the instructions.
//     What warps wait for calls of printf, malloc and free belongs to those.
//  4. No line owns the start of blocks, the return of threads (ret and exit: the closing brace of a kernel does no work),
//     bytes written back for earlier kernels, and what ptxas spills.
#include "audit/inside.h"

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

static double fourth(double x) {
  return x * x * x * x;
}

// The same where what a block waits comes after the busy time.
static void add_behind(const double *s, double busy4, double own[MACHINE_RESOURCES]) {
  double busy = sol_largest(s + MACHINE_DRAM, MACHINE_BLOCKS - MACHINE_DRAM);
  double work = busy + s[MACHINE_LATENCY], work3 = work * work * work;
  for (int r = MACHINE_DRAM; r < MACHINE_BLOCKS; r++) own[r] = work3 * busy * ratio(fourth(s[r]), busy4);
  own[MACHINE_LATENCY] = work3 * s[MACHINE_LATENCY];
}

// Adds the resources' parts of a shape's time, launches aside.
static void add_parts(const MachineTime *t, double parts[MACHINE_RESOURCES]) {
  const double *s = t->seconds;
  double busy4 = 0, sum = 0, own[MACHINE_RESOURCES] = {0};
  for (int r = MACHINE_DRAM; r < MACHINE_BLOCKS; r++) busy4 += fourth(s[r]);
  double busy2 = __builtin_sqrt(busy4), work2 = busy2 + s[MACHINE_LATENCY] * s[MACHINE_LATENCY];
  for (int r = MACHINE_DRAM; r < MACHINE_BLOCKS; r++)
    own[r] = work2 * ratio(fourth(s[r]), busy2); // busy's part of the work, and the resource's of busy
  own[MACHINE_LATENCY] = work2 * s[MACHINE_LATENCY] * s[MACHINE_LATENCY];
  if (t->replayed) add_behind(s, busy4, own);
  own[MACHINE_BLOCKS] = fourth(s[MACHINE_BLOCKS]);
  for (int r = 0; r < MACHINE_RESOURCES; r++) sum += own[r];
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    parts[r] += ratio(own[r], sum) * sol_larger(t->total - s[MACHINE_LAUNCH], 0);
}

// ---- how much of each resource an instruction uses ----

// Weights by which demands become comparable, for the whole kernel.
typedef struct Weights {
  const AuditProgram *program;
  const AuditKernel *kernel;
  double pipes[MACHINE_MATRIX], issue; // of an instruction of each pipe; of an issue slot
  double wavefronts, constants, matches;
} Weights;

static double pipe_work(const MachineWork *w, MachinePipe pipe) {
  const double of[] = {w->fp32, w->fp16, w->fp64, w->integer, w->special, w->convert};
  _Static_assert(SOL_COUNT(of) == MACHINE_MATRIX, "each pipe but the tensor cores");
  return of[pipe];
}

// Pipes and issue slots combine as resources do: a pipe that takes half as long counts an eighth as much.
static Weights weights_of(const AuditProgram *p, const AuditKernel *k) {
  const MachineModel *m = &p->machine;
  const MachineWork *w = &k->work;
  Weights of = {.program = p, .kernel = k};
  of.issue = fourth(1 / m->issue_rate) * w->issues * w->issues * w->issues;
  for (int i = 0; i < MACHINE_MATRIX; i++) { // the tensor cores are a resource of their own
    double clocks = 1 / machine_pipe_rate(m, (MachinePipe)i), work = pipe_work(w, (MachinePipe)i);
    of.pipes[i] = fourth(clocks) * work * work * work;
  }
  double passes = w->l1_wavefronts + w->shared_wavefronts, constants = w->constant_turns * m->constant_clocks,
         matches = w->match_turns * m->match_clocks;
  of.wavefronts = passes >= constants && passes >= matches;
  of.constants = of.wavefronts > 0 || constants < matches ? 0 : 1;
  of.matches = of.wavefronts > 0 || of.constants > 0 ? 0 : 1;
  return of;
}

static double issue_use(const Weights *w, const MachineWork *d) {
  double use = w->issue * d->issues;
  for (int i = 0; i < MACHINE_MATRIX; i++) use += w->pipes[i] * pipe_work(d, (MachinePipe)i);
  return use;
}

static double dram_use(const Weights *w, const MachineWork *d, double written) {
  return d->dram_read + d->dram_scattered * (1 / w->program->machine.scatter_share - 1) + written;
}

// Everything but loads' latency, which wait_weight has.
static double other_waits(const Weights *w, const MachineWork *d, double issuing) {
  const MachineModel *m = &w->program->machine;
  SolFigure shared = m->device->smem_latency;
  return issuing + d->call_clocks + d->barriers * machine_barrier(m, d->warps_per_block) +
         (sol_known(shared) ? d->shared_waits * shared.value : 0);
}

static double wait_weight(const Weights *w, const AuditInst *in) {
  const SolDevice *d = w->program->device;
  const SolEmuCounts *c = &in->counts;
  if (!in->is_load) return 0;
  double sectors = (double)(c->l1_hits + c->l2_hits + c->l2_misses), l2 = (double)(c->l2_hits + c->l2_misses),
         far = (double)c->dram_read / 32;
  if (far > l2) far = l2;
  if (sectors <= 0) return (double)c->requests * d->l1_latency.value;
  return (double)c->requests *
         ((double)c->l1_hits * d->l1_latency.value + (l2 - far) * d->l2_latency.value +
          far * d->mem_latency.value) /
         sectors;
}

// ---- sharing out ----

typedef struct Use { // of an instruction, or of the kernel
  double of[MACHINE_RESOURCES], load_waits;
} Use;

static bool only_returns(const AuditInst *in) {
  const char *text = in->text ? in->text : "";
  if (*text == '@')
    while (*text && *text != ' ') text++;
  while (*text == ' ') text++;
  return strcmp(text, "ret;") == 0 || strcmp(text, "exit;") == 0;
}

// In sectors of reads; one of an atomic takes L2 as long as several.
static double l2_use(const MachineModel *m, const MachineWork *w) {
  double atomic = sol_larger(m->l2_fill_bytes / 32 / m->l2_atomic_rate, 1);
  return w->l2_reads + w->l2_writes + atomic * w->l2_atomics;
}

static Use use_of(const Weights *w, const AuditInst *in, const AuditWaits *waits) {
  const MachineModel *m = &w->program->machine;
  const MachineWork *all = &w->kernel->work;
  MachineWork d = {.blocks = all->blocks, .warps_per_block = all->warps_per_block};
  audit_demand(m, in, waits, 1, &d);
  double mine =
      sol_larger(all->dram_write - w->kernel->earlier_written, 0) * ratio(d.l2_writes, all->l2_writes);
  double issuing = in->by_machine ? in->executed.clocks : d.issues * machine_stall(m, all);
  return (Use){.of = {[MACHINE_DRAM] = dram_use(w, &d, mine),
                      [MACHINE_L2] = l2_use(m, &d),
                      [MACHINE_L1] = w->wavefronts * (d.l1_wavefronts + d.shared_wavefronts) +
                                     w->constants * d.constant_turns + w->matches * d.match_turns,
                      [MACHINE_ISSUE] = issue_use(w, &d),
                      [MACHINE_TENSOR] = d.tensor_flops,
                      [MACHINE_ATOMICS] = audit_atomic_clocks(m, in) + d.atomic_clocks,
                      [MACHINE_LATENCY] = other_waits(w, &d, issuing)},
               .load_waits = wait_weight(w, in)};
}

static void add_use(Use *to, const Use *from) {
  for (int r = 0; r < MACHINE_RESOURCES; r++) to->of[r] += from->of[r];
  to->load_waits += from->load_waits;
}

// The kernel's use: what its instructions use, or more where its demands have something that no line owns.
static Use whole_use(const Weights *w, const Use *sum) {
  const MachineModel *m = &w->program->machine;
  const MachineWork *all = &w->kernel->work;
  Use use = *sum;
  double whole[MACHINE_RESOURCES] = {
      [MACHINE_DRAM] = dram_use(w, all, all->dram_write),
      [MACHINE_L2] = l2_use(m, all),
      [MACHINE_L1] = w->wavefronts * (all->l1_wavefronts + all->shared_wavefronts) +
                     w->constants * all->constant_turns + w->matches * all->match_turns,
      [MACHINE_ISSUE] = issue_use(w, all),
      [MACHINE_LATENCY] = other_waits(w, all, all->issues * machine_stall(m, all))};
  for (int r = 0; r < MACHINE_RESOURCES; r++) use.of[r] = sol_larger(use.of[r], whole[r]);
  return use;
}

// The part of the waiting that is for loads.
static double load_share(const Weights *w, const Use *all) {
  double loads = all->load_waits > 0 ? w->kernel->work.load_wait_clocks : 0;
  return ratio(loads, loads + all->of[MACHINE_LATENCY]);
}

static double cost_of(const double parts[MACHINE_RESOURCES], const Use *use, const Use *all, double loads) {
  double cost = 0;
  for (int r = MACHINE_DRAM; r < MACHINE_LATENCY; r++) cost += parts[r] * ratio(use->of[r], all->of[r]);
  return cost +
         parts[MACHINE_LATENCY] * (loads * ratio(use->load_waits, all->load_waits) +
                                   (1 - loads) * ratio(use->of[MACHINE_LATENCY], all->of[MACHINE_LATENCY]));
}

void audit_line_costs(const AuditProgram *p, AuditKernel *k) {
  AuditWaits waits = audit_waits(&p->machine, k->insts, k->inst_count, &k->flight, k->work.blocks);
  Weights w = weights_of(p, k);
  Use sum = {{0}, 0};
  for (uint32_t i = 0; i < k->inst_count; i++) {
    Use use = use_of(&w, &k->insts[i], &waits);
    add_use(&sum, &use);
  }
  memset(k->parts, 0, sizeof k->parts);
  for (uint32_t i = 0; i < k->shape_count; i++) add_parts(&k->shapes[i].time, k->parts);
  k->parts[MACHINE_LAUNCH] = k->time.seconds[MACHINE_LAUNCH];
  Use all = whole_use(&w, &sum);
  double loads = load_share(&w, &all), owned = 0;
  for (uint32_t i = 0; i < k->line_count; i++) {
    AuditLine *line = &k->lines[i];
    line->cost = 0;
    for (uint32_t j = 0; j < line->count; j++) {
      const AuditInst *in = &k->insts[k->by_line[line->first + j]];
      if (only_returns(in)) continue;
      Use use = use_of(&w, in, &waits);
      line->cost += cost_of(k->parts, &use, &all, loads);
    }
    owned += line->cost;
  }
  k->unowned = sol_larger(k->time.total - k->parts[MACHINE_LAUNCH] - owned, 0);
}
