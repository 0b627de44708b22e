// Light: the least time that a kernel's bytes and its arithmetic take, and its launches.
//
//  1. Memory light: each byte that is read before it is written, and each byte written, once, at the rate of a copy.
//  2. Compute light: the arithmetic that lanes execute, each pipe at its peak; the pipe that takes longest counts. It is
//     counted in the machine code where that is read, else by the classes of PTX instructions. Inactive lanes do not
//     count, nor do instructions that only compute addresses or compare them (indexing.c).
//  3. Both may overlap perfectly: light is the longer one, and what the launches cost.
#include "audit/inside.h"

// What a lane executes of it, by pipe. The machine's integer products run on the pipe of fp32.
static void add_arithmetic(const AuditInst *in, MachineArithmetic *to) {
  if (in->unit > SOL_EMU_CLASS_TENSOR || in->indexing || !in->counts.executions) return;
  double executions = (double)in->counts.executions, lanes = (double)in->counts.lanes / executions;
  to->of[MACHINE_MATRIX] += audit_flops(in);
  if (in->unit == SOL_EMU_CLASS_TENSOR) return;
  if (in->by_machine) {
    const AuditExecuted *m = &in->executed;
    to->of[MACHINE_FP32] += m->fp32 * lanes * 2;
    to->of[MACHINE_FP16] += m->fp16 * lanes * 4;
    to->of[MACHINE_FP64] += m->fp64 * lanes * 2;
    to->of[MACHINE_INTEGER] += m->integer * lanes;
    to->of[MACHINE_SPECIAL] += m->special * lanes;
    return;
  }
  switch (in->unit) {
  case SOL_EMU_CLASS_FLOAT: to->of[MACHINE_FP32] += executions * lanes * 2; break;
  case SOL_EMU_CLASS_HALF: to->of[MACHINE_FP16] += executions * lanes * 4; break;
  case SOL_EMU_CLASS_DOUBLE: to->of[MACHINE_FP64] += executions * lanes * 2; break;
  case SOL_EMU_CLASS_INT: to->of[MACHINE_INTEGER] += executions * lanes; break;
  case SOL_EMU_CLASS_SPECIAL: to->of[MACHINE_SPECIAL] += executions * lanes; break;
  case SOL_EMU_CLASS_CONVERT: to->of[MACHINE_CONVERT] += executions * lanes; break;
  default: break;
  }
}

double audit_light(const AuditProgram *p, const AuditNeeds *needs) {
  double memory = needs->bytes / machine_copy_rate(&p->machine), times = needs->times > 1 ? needs->times : 1;
  return (memory > needs->compute ? memory : needs->compute) * times +
         machine_light(&p->machine, 0, needs->launches, needs->graph_launches);
}

AuditNeeds audit_needs(const AuditKernel *k) {
  return (AuditNeeds){k->floor_bytes, k->launches, k->graph_launches, k->lights.compute, 1};
}

double audit_compute_light(const AuditProgram *p, const AuditKernel *k, const uint8_t *without,
                           MachinePipe *pipe) {
  MachineArithmetic work = {{0}};
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (!without || !without[i]) add_arithmetic(&k->insts[i], &work);
  return machine_compute_light(&p->machine, &work, pipe);
}

void audit_find_light(const AuditProgram *p, AuditKernel *k) {
  k->lights.memory = k->floor_bytes / machine_copy_rate(&p->machine);
  k->lights.compute = audit_compute_light(p, k, NULL, &k->lights.pipe);
  k->lights.launch = machine_light(&p->machine, 0, k->launches, k->graph_launches);
  AuditNeeds needs = audit_needs(k);
  k->light = audit_light(p, &needs);
  k->tax = k->light > 0 ? k->time.total / k->light : 0;
}
