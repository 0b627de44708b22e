// What a launch's counts demand of the machine: the input of the time model.
//
// Assumptions, each with a test in tests/test_audit.c:
//  1. A request passes L1 once, or once for every 4 sectors; a store likewise. Constant memory passes
//     elsewhere.
//  2. A wait for loads is as long as the slowest of them takes. Each finds its sectors in L1, L2 or DRAM with
//     the chance that all of the kernel's loads have on average; DRAM's are bytes from there over 32.
//  3. Of shared-memory loads a warp has SHARED_IN_FLIGHT on their way before it waits; for a shuffle it waits
//     as long as for shared memory.
//  4. What a launch leaves dirty in L2 is written all the same, if later: DRAM takes every byte written once.
#include "audit/inside.h"

#define SHARED_IN_FLIGHT 4.0

static double larger(double a, double b) {
  return a > b ? a : b;
}

AuditWaits audit_waits(const SolDevice *d, const AuditInst *insts, uint32_t count,
                       const SolEmuFlight *flight) {
  double near = 0, l2 = 0, dram = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!insts[i].brings) continue;
    const SolEmuCounts *c = &insts[i].counts;
    double sectors = (double)(c->l2_hits + c->l2_misses), far = (double)c->dram_read / 32;
    if (far > sectors) far = sectors;
    near += (double)c->l1_hits;
    l2 += sectors - far;
    dram += far;
  }
  AuditWaits w = {.per_load = flight->loads ? flight->waits / (double)flight->loads : 1};
  double all = near + l2 + dram;
  if (all <= 0) return w;
  // The slowest of the loads that a wait is for: chances that all of them hit L1, or L2 at the farthest.
  double in_l1 = 1, in_l2 = 1;
  double together = w.per_load > 0 ? 1 / w.per_load : 1;
  for (int i = 0; i < 64 && i + 0.5 < together; i++) {
    in_l1 *= near / all;
    in_l2 *= (near + l2) / all;
  }
  w.clocks = in_l1 * d->l1_latency.value + (in_l2 - in_l1) * d->l2_latency.value +
             (1 - in_l2) * d->mem_latency.value;
  return w;
}

static void add_pipe(SolEmuClass unit, double executions, AuditWork *w) {
  switch (unit) {
  case SOL_EMU_CLASS_FLOAT: w->fp32 += executions; break;
  case SOL_EMU_CLASS_HALF: w->fp16 += executions; break;
  case SOL_EMU_CLASS_DOUBLE: w->fp64 += executions; break;
  case SOL_EMU_CLASS_SPECIAL: w->special += executions; break;
  case SOL_EMU_CLASS_CONVERT: w->convert += executions; break;
  case SOL_EMU_CLASS_INT: w->integer += executions; break;
  default: break;
  }
}

static void add_global(const AuditInst *in, const AuditWaits *waits, double scale, AuditWork *w) {
  const SolEmuCounts *c = &in->counts;
  double at_l2 = (double)(c->l2_hits + c->l2_misses) * scale;
  w->l1_wavefronts += larger((double)c->requests, (double)c->sectors / 4) * scale;
  if (in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC)
    w->l2_atomics += at_l2;
  else
    w->l2_reads += at_l2;
  w->l2_writes += (double)c->l2_writes * scale;
  w->l2_requests += (double)c->l2_requests * scale;
  w->dram_read += (double)c->dram_read * scale;
  w->dram_write += (double)c->dram_write * scale;
  if (!in->brings) return;
  double times = (double)c->requests * waits->per_load * scale;
  w->load_waits += times;
  w->load_wait_clocks += times * waits->clocks;
}

void audit_demand(const AuditInst *in, const AuditWaits *waits, double scale, AuditWork *w) {
  const SolEmuCounts *c = &in->counts;
  double executions = (double)c->executions * scale;
  w->issues += executions;
  add_pipe(in->unit, executions, w);
  if (in->flops > 0) w->tensor_flops += in->flops * executions;
  if (in->barrier) w->barriers += executions;
  w->shared_wavefronts += (double)c->wavefronts * scale;
  if (in->kind == SOL_EMU_KIND_SHARED_LOAD || in->kind == SOL_EMU_KIND_SHARED_ATOMIC)
    w->shared_waits += executions / SHARED_IN_FLIGHT;
  if (in->unit == SOL_EMU_CLASS_WARP) w->shared_waits += executions;
  if (in->kind == SOL_EMU_KIND_OTHER || in->kind == SOL_EMU_KIND_CONST_LOAD || !c->requests) return;
  add_global(in, waits, scale, w);
}

void audit_work_add(AuditWork *to, const AuditWork *from) {
  double launches = to->launches + from->launches;
  if (launches <= 0) return;
  double old = to->launches / launches, new = from->launches / launches;
  to->blocks = to->blocks * old + from->blocks * new;
  to->warps_per_block = to->warps_per_block * old + from->warps_per_block * new;
  to->blocks_per_sm = to->blocks_per_sm * old + from->blocks_per_sm * new;
  to->launches = launches;
  to->graph_launches += from->graph_launches;
#define ADD_DEMAND(name) to->name += from->name;
  AUDIT_DEMANDS(ADD_DEMAND)
#undef ADD_DEMAND
}
