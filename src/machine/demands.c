// Demands that follow from other demands, and sums of them.
//
// A thread stores and loads each spilled word once, unless the machine code says how often. Spills stay in L1 as
// far as the stacks of an SM's resident threads fit into `spill_bytes`; the rest goes to DRAM.
#include "machine/work.h"

double machine_stall(const MachineModel *m, const MachineWork *w) {
  return w->stall > 0 ? w->stall : m->issue_clocks;
}

double machine_barrier(const MachineModel *m, double warps) {
  return m->barrier_clocks + m->barrier_warp_clocks * warps;
}

double machine_far_clocks(const MachineModel *m) {
  SolFigure l2 = m->device->l2_latency, dram = m->device->mem_latency;
  if (sol_known(l2) && sol_known(dram)) return (l2.value + dram.value) / 2;
  return sol_known(l2) ? l2.value : sol_known(dram) ? dram.value : 0;
}

double machine_wait_clocks(const MachineModel *m, const MachineWork *w) {
  double clocks = w->load_wait_clocks + w->call_clocks +
                  w->barriers * machine_barrier(m, w->warps_per_block) + w->issues * machine_stall(m, w);
  SolFigure shared = m->device->smem_latency;
  return sol_known(shared) ? clocks + w->shared_waits * shared.value : clocks;
}

MachineWork machine_spills_counted(const MachineModel *m, double bytes, double accesses, double resident) {
  double away = sol_larger(1 - m->spill_bytes / sol_larger(bytes * resident, 1), 0);
  double sectors = accesses / 2 * 4; // each way
  return (MachineWork){.l1_wavefronts = accesses,
                       .l2_writes = sectors,
                       .l2_packets = sectors,
                       .l2_reads = sectors * away,
                       .l2_requests = sectors / 4 * away,
                       .dram_write = sectors * 32 * away,
                       .dram_read = sectors * 32 * away};
}

MachineWork machine_spills(const MachineModel *m, double bytes, double warps, double resident) {
  double accesses = 2 * bytes / 4 * warps;
  MachineWork w = machine_spills_counted(m, bytes, accesses, resident);
  w.issues = accesses;
  return w;
}

void machine_work_add(MachineWork *to, const MachineWork *from) {
  double launches = to->launches + from->launches;
  if (launches <= 0) return;
  double old = to->launches / launches, new = from->launches / launches;
  to->blocks = to->blocks * old + from->blocks * new;
  to->warps_per_block = to->warps_per_block * old + from->warps_per_block * new;
  to->blocks_per_sm = to->blocks_per_sm * old + from->blocks_per_sm * new;
  to->blocks_per_cluster = to->blocks_per_cluster * old + from->blocks_per_cluster * new;
  to->stall = to->stall * old + from->stall * new;
  to->chain = to->chain * old + from->chain * new;
  to->longest = to->longest * old + from->longest * new;
  to->busiest = to->busiest * old + from->busiest * new;
  to->replayed = to->replayed * old + from->replayed * new;
  to->exposed = to->exposed * old + from->exposed * new;
  to->launches = launches;
  to->graph_launches += from->graph_launches;
  to->early_launches += from->early_launches;
#define ADD_DEMAND(name) to->name += from->name;
  MACHINE_DEMANDS(ADD_DEMAND)
#undef ADD_DEMAND
}
