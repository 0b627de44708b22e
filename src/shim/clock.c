// The time of work on the modelled clock: kernels by the audit's time model, copies by the bandwidth they have.
#include "audit/audit.h"
#include "shim/shim.h"

double shim_launch_seconds(void) {
  SolFigure us = shim.device->launch_us;
  if (shim.streams.in_graph && sol_known(shim.device->graph_launch_us)) us = shim.device->graph_launch_us;
  return sol_known(us) ? us.value * 1e-6 : 1e-6;
}

void shim_describe(const ShimKernelWork *w, AuditLaunch *out) {
  *out = (AuditLaunch){.grid = {w->grid.x, w->grid.y, w->grid.z},
                       .block = {w->block.x, w->block.y, w->block.z},
                       .cluster = {w->cluster.x, w->cluster.y, w->cluster.z},
                       .dynamic_shared = w->shared,
                       .stack_bytes = (uint64_t)w->kernel->stack,
                       .registers = w->kernel->registers,
                       .registers_from = w->kernel->by_ptxas ? AUDIT_FROM_PTXAS : AUDIT_FROM_EMULATOR,
                       .unit = w->kernel->binary->number,
                       .graph = shim.streams.in_graph};
}

double shim_kernel_seconds(const ShimKernelWork *w, const SolEmuResult *result) {
  AuditLaunch launch;
  MachineTime time;
  SolArena arena = {0};
  shim_describe(w, &launch);
  double seconds = shim_launch_seconds();
  if (!audit_take(sol_emu_ptx(w->kernel->binary->module), result, &arena, &launch, NULL) &&
      !audit_launch_time(shim.device, &launch, &time, NULL))
    seconds = time.total;
  sol_arena_free(&arena);
  return seconds;
}

static double host_rate(const MachineModel *model) {
  double rate = model->host_bandwidth;
  SolFigure link = shim.device->link_bandwidth; // between GPUs: slower than that only where it is PCIe itself
  return sol_known(link) && link.value < rate ? link.value : rate;
}

bool shim_on_device(const void *pointer) {
  SolEmuRange range;
  return sol_emu_range(shim.emu, shim_address(pointer), &range) && !range.mapped;
}

double shim_copy_seconds(const struct cudaMemcpy3DParms *c) {
  double bytes = (double)c->extent.width * (double)c->extent.height * (double)c->extent.depth;
  bool from = c->srcArray || shim_on_device(c->srcPtr.ptr), to = c->dstArray || shim_on_device(c->dstPtr.ptr);
  if (!sol_known(shim.device->mem_bandwidth)) return shim_launch_seconds();
  MachineModel model = machine_model(shim.device);
  double rate = from && to ? machine_copy_rate(&model) / 2 : host_rate(&model);
  return shim_launch_seconds() + bytes / rate;
}

double shim_set_seconds(const ShimSet *s) {
  double bytes = (double)s->width * s->element * (double)s->height * (double)s->depth;
  if (!sol_known(shim.device->mem_bandwidth)) return shim_launch_seconds();
  MachineModel model = machine_model(shim.device);
  return shim_launch_seconds() + bytes / machine_copy_rate(&model);
}
