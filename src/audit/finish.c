// From sums to the bill: the kernel's time as the sum of its launches', light, tax, findings in order.
#include "audit/inside.h"
#include "base/error.h"
#include "base/heap.h"

void audit_add_time(MachineTime *to, const MachineTime *from) {
  for (int r = 0; r < MACHINE_RESOURCES; r++) to->seconds[r] += from->seconds[r];
  to->total += from->total;
  to->pages += from->pages;
  to->gap += from->gap;
  to->left_out |= from->left_out;
  to->replayed |= from->replayed;
  to->waves = from->waves;
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    if (to->seconds[r] > to->seconds[to->bound]) to->bound = (MachineResource)r;
}

// The instructions that ran, close together.
static void gather_insts(const AuditProgram *p, AuditKernel *k) {
  const AuditSlots *s = &p->state->slots[k->index];
  k->inst_count = 0;
  k->insts = s->insts;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->insts[i].text) k->insts[k->inst_count++] = s->insts[i];
}

static SolStatus finish_kernel(AuditProgram *p, AuditKernel *k, SolError *err) {
  double slowest = -1;
  for (uint32_t i = 0; i < k->shape_count; i++) {
    AuditShape *s = &k->shapes[i];
    MachineTime together;
    SolStatus status = machine_time(&p->machine, &s->work, &together, err);
    if (status) return status;
    s->uneven = together.total > 0 ? s->time.total / together.total : 1;
    machine_work_add(&k->work, &s->work);
    audit_add_time(&k->time, &s->time);
    if (s->time.total <= slowest) continue;
    slowest = s->time.total;
    k->slowest = s;
    k->occupancy = s->occupancy;
  }
  if (k->slowest) k->time.waves = k->slowest->time.waves;
  gather_insts(p, k);
  audit_find_light(p, k);
  return audit_lines(p, k, err);
}

// What rests on the data of one run comes last, what is about this size before it.
static int place_of(const AuditFinding *f) {
  if (strcmp(f->rule, "wide_type") == 0) return 2;
  return f->at_this_size ? 1 : 0;
}

static bool comes_before(const AuditFinding *a, const AuditFinding *b) {
  int first = place_of(a), second = place_of(b);
  return first != second ? first < second : a->worth > b->worth;
}

// Few and mostly in order: insertion keeps equal ones as the rules gave them.
static void sort_findings(AuditKernel *k) {
  for (uint32_t i = 1; i < k->finding_count; i++) {
    AuditFinding f = k->findings[i];
    uint32_t at = i;
    for (; at > 0 && comes_before(&f, &k->findings[at - 1]); at--) k->findings[at] = k->findings[at - 1];
    k->findings[at] = f;
  }
}

SolStatus audit_finish(AuditProgram *p, SolError *err) {
  p->time = p->light = 0;
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    SolStatus status = finish_kernel(p, &p->kernels[i], err);
    if (status) return status;
    p->time += p->kernels[i].time.total;
    p->light += p->kernels[i].light;
  }
  p->tax = p->light > 0 ? p->time / p->light : 0;
  audit_rules_run(p);
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    AuditKernel *k = &p->kernels[i];
    if (k->end != SOL_EMU_DONE && k->launches < 2) k->finding_count = 0; // half a run says too little
    sort_findings(k);
  }
  return p->arena.failed ? sol_fail(err, SOL_ERR_NO_SPACE, "out of memory") : SOL_OK;
}

// ---- for the rules ----

// A shape's part of a quantity that the kernel has `before` of and would have `after`.
static double changed(double part, double before, double after, double share) {
  return before > 0 ? sol_larger(part * (after / before), 0) : part + after * share;
}

double audit_seconds_with(const AuditProgram *p, const AuditKernel *k, const MachineWork *after) {
  double seconds = 0;
  for (uint32_t i = 0; i < k->shape_count; i++) {
    const AuditShape *s = &k->shapes[i];
    MachineWork w = s->work;
    double share = k->work.launches > 0 ? s->work.launches / k->work.launches : 0;
#define CHANGE(name) w.name = changed(w.name, k->work.name, after->name, share);
    MACHINE_DEMANDS(CHANGE)
    CHANGE(launches)
    CHANGE(graph_launches)
    CHANGE(blocks)
    CHANGE(warps_per_block)
    CHANGE(blocks_per_sm)
    CHANGE(chain)
#undef CHANGE
    if (w.graph_launches > w.launches) w.graph_launches = w.launches;
    MachineTime time;
    if (machine_time(&p->machine, &w, &time, NULL)) return 0;
    seconds += time.total * s->uneven;
  }
  return seconds;
}

double audit_gain(const AuditProgram *p, const AuditKernel *k, const MachineWork *after) {
  double seconds = audit_seconds_with(p, k, after);
  return seconds > 0 ? k->time.total / seconds : 1;
}

void audit_find(AuditProgram *p, AuditKernel *k, const AuditFinding *finding) {
  void *room = k->findings;
  if (!audit_grow(&room, k->finding_count, &k->finding_cap, sizeof *k->findings)) {
    p->arena.failed = true;
    return;
  }
  k->findings = room;
  AuditFinding *f = &k->findings[k->finding_count++];
  *f = *finding;
  f->rule = audit_keep(p, finding->rule);
  f->file = audit_keep(p, finding->file);
  f->message = audit_keep(p, finding->message);
  f->fix = audit_keep(p, finding->fix);
  f->evidence = audit_keep(p, finding->evidence);
  f->assumes = audit_keep(p, finding->assumes);
}
