// Prices the trace of a block: the emulator's events with what the launch's instructions and memory cost.
#include "audit/inside.h"
#include "base/heap.h"

static const AuditInst *inst_at(const AuditLaunch *l, uint32_t place) {
  uint32_t low = 0, high = l->inst_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (l->insts[middle].place < place)
      low = middle + 1;
    else
      high = middle;
  }
  return low < l->inst_count && l->insts[low].place == place ? &l->insts[low] : NULL;
}

// `issues`: machine instructions for each of the PTX's.
static MachineEvent event_of(const MachineModel *m, const AuditLaunch *l, const SolEmuEvent *e,
                             double issues) {
  MachineEvent to = {.token = e->token,
                     .place = e->inst,
                     .issues = e->issues * issues,
                     .shared = (double)e->waits,
                     .amount = e->count,
                     .step = e->step,
                     .detail = e->detail};
  bool loads = e->step == SOL_EMU_STEP_LOAD;
  const AuditInst *in = loads || e->step == SOL_EMU_STEP_TENSOR ? inst_at(l, e->inst) : NULL;
  if (in && loads && in->counts.executions && in->kind == SOL_EMU_KIND_GLOBAL_LOAD)
    to.wavefronts = audit_l1_passes(m, in) / (double)in->counts.executions;
  if (loads) return to;
  if (e->step == SOL_EMU_STEP_TENSOR) to.amount = in ? in->flops * e->count : 0;
  if (in && in->counts.executions)
    to.wavefronts = (double)in->counts.wavefronts / (double)in->counts.executions * e->count;
  return to;
}
_Static_assert((int)MACHINE_STEPS == (int)SOL_EMU_STEPS &&
                   (int)MACHINE_STEP_FENCE == (int)SOL_EMU_STEP_FENCE &&
                   (int)MACHINE_STEP_TENSOR == (int)SOL_EMU_STEP_TENSOR,
               "steps have one order");

static bool multiplies(const SolEmuTrace *t) {
  for (uint32_t i = 0; t && i < t->ends[t->warps - 1]; i++)
    if (t->events[i].step == SOL_EMU_STEP_TENSOR) return true;
  return false;
}

// PTX instructions that ptxas does not remove.
static double issued_by_ptx(const AuditLaunch *l) {
  double sum = 0;
  for (uint32_t i = 0; i < l->inst_count; i++)
    if (l->insts[i].unit != SOL_EMU_CLASS_NAME) sum += (double)l->insts[i].counts.executions;
  return sum;
}

static bool one_wave(const MachineModel *m, const MachineWork *w) {
  return w->blocks <= sol_larger(w->blocks_per_sm, 1) * m->device->sms.value;
}

// Blocks that all run at once ask for the same lines at about the same time: that most of them are hits in L2 does not make
// them arrive earlier than the first. So the latency is by the part of the distinct bytes that DRAM serves.
static double far_clocks(const MachineModel *m, const AuditLaunch *l, const MachineWork *w,
                         const AuditWaits *waits) {
  SolFigure l2 = m->device->l2_latency, dram = m->device->mem_latency;
  double distinct = 0;
  for (uint32_t i = 0; i < l->touch_count; i++) distinct += l->touches[i].read;
  if (!one_wave(m, w) || !(distinct > 0) || !sol_known(l2) || !sol_known(dram))
    return waits->far > 0 ? waits->far : machine_far_clocks(m);
  return l2.value + (dram.value - l2.value) * (w->dram_read < distinct ? w->dram_read / distinct : 1);
}

// The first tensor copy in either direction, of each block, finds no descriptor.
static void add_descriptors(const MachineModel *m, const AuditLaunch *l, MachineEvent *events) {
  const SolEmuTrace *t = l->trace;
  bool seen[2] = {false, false};
  for (uint32_t w = 0, i = 0; w < t->warps; w++) {
    if (w % t->warps_per_block == 0) seen[0] = seen[1] = false;
    for (; i < t->ends[w]; i++) {
      const AuditInst *in = events[i].step == MACHINE_STEP_COPY ? inst_at(l, events[i].place) : NULL;
      bool out = events[i].detail == MACHINE_OUT;
      if (!in || !in->tensor || seen[out]) continue;
      seen[out] = true;
      events[i].late = m->descriptor_clocks;
    }
  }
}

static MachineServed served(const MachineModel *m, const AuditLaunch *l, const MachineWork *w,
                            const AuditWaits *waits) {
  double read = w->l2_reads * 32, sms = sol_smaller(w->blocks, m->device->sms.value),
         cold = one_wave(m, w) ? w->dram_read / sol_larger(sms, 1) : 0;
  return (MachineServed){.far = far_clocks(m, l, w, waits),
                         .dram = read > 0 && !(cold > 0) ? sol_smaller(w->dram_read / read, 1) : 0,
                         .cold = cold,
                         .sms = sms,
                         .stall = machine_stall(m, w)};
}

static bool replay_of(const MachineModel *m, const AuditLaunch *l, const MachineWork *w,
                      const AuditWaits *waits, double scale, MachineTimeline *out) {
  const SolEmuTrace *t = l->trace;
  uint32_t count = t->ends[t->warps - 1];
  MachineEvent *events = sol_heap_alloc(sizeof *events * (count + 1));
  if (!events) return false;
  double ptx = issued_by_ptx(l) * scale, ratio = l->machine && ptx > 0 ? w->issues / ptx : 1;
  for (uint32_t i = 0; i < count; i++) events[i] = event_of(m, l, &t->events[i], ratio);
  add_descriptors(m, l, events);
  MachineServed how = served(m, l, w, waits);
  MachineReplay replay = {.events = events,
                          .ends = t->ends,
                          .warps = t->warps,
                          .warps_per_block = t->warps_per_block,
                          .tokens = t->tokens,
                          .costs = machine_costs(m, &how)};
  if (w->blocks_per_cluster > 1) replay.costs.copy += m->cluster_copy_clocks;
  bool fine = machine_replay(&replay, out);
  sol_heap_free(events);
  return fine;
}

// Whether a block ends without waiting for more than that its last copies back have read their sources.
static bool leaves_copies(const SolEmuTrace *t) {
  bool left = false;
  for (uint32_t i = 0; i < t->ends[t->warps - 1]; i++) {
    const SolEmuEvent *e = &t->events[i];
    if (e->step == SOL_EMU_STEP_COPY && e->detail == MACHINE_OUT) left = false;
    if (e->step == SOL_EMU_STEP_WAIT && e->detail == MACHINE_SOURCES_READ) left = true;
  }
  return left;
}

// The launch ends when the stores of its last blocks have been performed.
static double drain_clocks(const MachineModel *m, const AuditLaunch *l, const MachineWork *w) {
  double waves = __builtin_ceil(w->blocks / (sol_larger(w->blocks_per_sm, 1) * m->device->sms.value));
  bool stores = leaves_copies(l->trace);
  for (uint32_t i = 0; i < l->inst_count && !stores; i++)
    stores = l->insts[i].kind == SOL_EMU_KIND_GLOBAL_STORE && !l->insts[i].bulk;
  return stores ? (m->fence_clocks + m->store_fence_clocks) / sol_larger(waves, 1) : 0;
}

static bool hands_registers(const AuditInst *in) {
  static const char name[] = "setmaxnreg";
  size_t k = 0;
  while (name[k] && in->text[k] == name[k]) k++;
  return !name[k] && in->counts.executions;
}

// Warps that hand registers to others, and those that wait for them.
static double register_clocks(const MachineModel *m, const AuditLaunch *l) {
  for (uint32_t i = 0; i < l->inst_count; i++)
    if (hands_registers(&l->insts[i])) return m->register_clocks;
  return 0;
}

// A part of a life says nothing about the whole, nor does the life of a block that was ended.
void audit_add_replay(const MachineModel *m, const AuditLaunch *l, const AuditWaits *waits, double scale,
                      MachineTimeline *line, MachineWork *w) {
  w->replayed = l->replayed;
  w->exposed = l->exposed;
  bool prices = l->trace && !l->trace->cut && l->end == SOL_EMU_DONE && multiplies(l->trace);
  if (!l->trace || (!prices && !line)) return;
  MachineTimeline *out = line ? line : sol_heap_alloc(sizeof *out);
  if (out && replay_of(m, l, w, waits, scale, out) && prices && out->clocks > 0)
    w->replayed = 1, w->exposed = out->exposed + drain_clocks(m, l, w) + register_clocks(m, l);
  if (!line) sol_heap_free(out);
}
