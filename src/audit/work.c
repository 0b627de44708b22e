// Converts the counts of a launch to demands on the GPU, the input of the time model.
//
// Assumptions, with the constants of machine.def, each with a test in tests/test_audit.c:
//  1. A load takes as many L1 wavefronts as it has words of different lines in one bank, and l1_line_clocks for each line;
//     another request one per line, a store store_passes; a texture request one, or one per 4 sectors. Constant loads do not use L1. A store sends L2 one packet per sector, and one more per partly
//     written line. Where a store directly follows a store to adjacent addresses and they touch no more than
//     join_lines lines, L1 merges most of the packets of both.
//  2. A wait for loads is as long as the latency of the slowest. Each load is served by L1, L2 or DRAM with the
//     mean probability over all of the kernel's loads; sectors served by DRAM are its bytes over 32.
//     An SM that is alone waits less. Where lanes are at several lines, it ends when the last request, of l2_scattered_rate a clock, is answered.
//  3. A warp has near_in_flight loads from shared memory in flight before it waits; a shuffle has the latency
//     of shared memory.
//  4. Constant memory serves one word at a time; a load takes constant_apart_clocks longer for each word beyond the first.
//     A match serves one value at a time, after match_setup.
//  5. Floating-point atomics on shared memory are loops of a load and a compare-and-swap: in each round one lane of those
//     at an address is done, and the swaps of those that are left take a wavefront each. A round takes a warp shared_swap_clocks;
//     where several warps of a block contend for an address, those rounds are in its critical path one after another,
//     shared_contended_clocks each (emu/watch/chain.c).
//  6. Atomics to the same 512 bytes of memory are serialised in L2: per request and line atomic_packet clocks for each
//     packet, or, if that is longer, atomic_int_clocks for every lane at one address, atomic_real_clocks for
//     floating-point additions (bench/results/2026-11-15-h200-units.json).
//  7. DRAM serves what moves during the launch: what it leaves dirty in L2 costs nothing, what earlier launches
//     left and it evicts does.
#include "audit/inside.h"

// The probability that all of n loads are as one is with probability p; n is rounded.
static double power(double p, double n) {
  double all = 1;
  for (int i = 0; i < 64 && i + 0.5 < n; i++) all *= p;
  return all;
}

// The probability of one of n that are alike, where that of all together is p.
static double root(double p, double n) {
  double low = p, high = 1;
  for (int i = 0; i < 32; i++) {
    double middle = (low + high) / 2;
    *(power(middle, n) < p ? &low : &high) = middle;
  }
  return high;
}

AuditWaits audit_waits(const MachineModel *m, const AuditInst *insts, uint32_t count,
                       const SolEmuFlight *flight, double blocks) {
  const SolDevice *d = m->device;
  bool alone = blocks <= 1;
  double near = 0, l2 = 0, dram = 0, requests = 0, load_waits = 0, lines = 0;
  for (uint32_t i = 0; i < count; i++) {
    load_waits += insts[i].executed.load_waits;
    if (!insts[i].is_load) continue;
    const SolEmuCounts *c = &insts[i].counts;
    double sectors = (double)(c->l2_hits + c->l2_misses), far = (double)c->dram_read / 32;
    if (far > sectors) far = sectors;
    near += (double)c->l1_hits;
    requests += (double)c->requests;
    lines += (double)c->l2_requests;
    l2 += sectors - far;
    dram += far;
  }
  AuditWaits w = {.per_load = flight->loads ? flight->waits / (double)flight->loads : 1};
  if (count && insts[0].by_machine && requests > 0) w.per_load = load_waits / requests;
  double all = near + l2 + dram;
  if (all <= 0) return w;
  // The slowest load of a wait: the probabilities that all of them hit L1, or that none misses L2.
  double together = w.per_load > 0 ? 1 / w.per_load : 1;
  double in_l1 = power(near / all, together), in_l2 = power((near + l2) / all, together);
  double last = lines > requests ? (lines / requests - 1) / m->l2_scattered_rate : 0;
  double from_l2 = d->l2_latency.value * (alone ? m->alone_l2_share : 1),
         from_dram = d->mem_latency.value * (alone ? m->alone_dram_share : 1);
  w.clocks =
      in_l1 * d->l1_latency.value + (in_l2 - in_l1) * from_l2 + (1 - in_l2) * from_dram + (1 - in_l1) * last;
  w.far = in_l1 < 1 ? (w.clocks - in_l1 * d->l1_latency.value) / (1 - in_l1) : 0;
  return w;
}

static void add_pipe(SolEmuClass unit, double executions, MachineWork *w) {
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

// Copies that bypass L1 write whole lines. Words of local memory that lanes index apart are partly written sectors.
static double packets_of(const MachineModel *m, const AuditInst *in) {
  const SolEmuCounts *c = &in->counts;
  bool joins = in->follows && (double)c->lines <= m->join_lines * (double)c->requests,
       apart = in->kind == SOL_EMU_KIND_LOCAL_STORE && c->l2_packets > c->l2_writes;
  return sol_larger((double)c->l2_packets, (double)c->l2_writes) * (joins ? m->join_share : 1) *
         (apart ? m->local_apart : 1);
}

// Lanes on one word are served one after another, wherever in L2 it is.
static void add_atomics(const MachineModel *m, const AuditInst *in, double sectors, double scale,
                        MachineWork *w) {
  double lanes = (double)in->counts.atomics, alike = (double)in->pattern.same - (double)in->counts.executions;
  bool result = !(in->executed.reds > 0);
  w->l2_atomics += sectors * (result ? 1 : m->l2_atomic_rate / m->l2_red_rate);
  w->l2_atomic_lanes += lanes * scale;
  w->l2_atomic_alike += sol_larger(sol_smaller(alike, lanes - sectors / scale), 0) * scale;
}

// Of a lane, eight bytes of a row are sampled at once, and two rows: a volume with filtering has four. Lists take half as long.
static void add_texture(const AuditInst *in, double scale, MachineWork *w) {
  double rows = (double)in->counts.requests / (double)in->counts.executions;
  double turns = sol_larger(rows / 2, 1) * sol_larger((double)in->width / 8, 1);
  w->texture_lanes += (double)in->counts.lanes * turns * (in->list ? 0.5 : 1) * scale;
}

double audit_l1_passes(const MachineModel *m, const AuditInst *in) {
  const SolEmuCounts *c = &in->counts;
  double passes = sol_larger((double)c->requests, (double)c->sectors / 4);
  if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD && c->turns)
    return sol_larger(passes, sol_larger((double)c->turns, (double)c->lines * m->l1_line_clocks));
  if (in->kind == SOL_EMU_KIND_TEXTURE) return passes;
  return sol_larger(passes, (double)c->lines * (c->l2_writes ? m->store_passes : 1));
}

static void add_global(const MachineModel *m, const AuditInst *in, const AuditWaits *waits, double scale,
                       MachineWork *w) {
  const SolEmuCounts *c = &in->counts;
  double at_l2 = (double)(c->l2_hits + c->l2_misses) * scale;
  double scattered = in->pattern.seen ? (double)in->pattern.scattered / (double)in->pattern.seen * scale : 0;
  w->l1_wavefronts += audit_l1_passes(m, in) * scale;
  if (in->kind == SOL_EMU_KIND_TEXTURE && c->executions) add_texture(in, scale, w);
  if (in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC)
    add_atomics(m, in, at_l2, scale, w);
  else
    w->l2_reads += at_l2;
  w->l2_writes += (double)c->l2_writes * scale;
  if (in->bulk) w->l2_bulk += at_l2 + (double)c->l2_writes * scale;
  if (c->l2_writes)
    w->l2_packets += packets_of(m, in) * scale;
  else if (!in->bulk)
    w->l2_requests += (double)c->l2_requests * scale, w->l2_scattered += (double)c->l2_requests * scattered;
  w->dram_read += (double)c->dram_read * scale;
  w->dram_scattered += (double)(c->dram_read + c->dram_write) * scattered;
  w->dram_write += (double)c->dram_write * scale;
  if (!in->is_load || in->by_machine) return;
  double times = (double)c->requests * waits->per_load * scale;
  w->load_waits += times;
  w->load_wait_clocks += times * waits->clocks;
}

static void add_machine(const MachineModel *model, const AuditExecuted *m, const AuditWaits *waits,
                        double scale, MachineWork *w) {
  SolFigure shared = model->device->smem_latency;
  double units = sol_known(shared) ? model->unit_clocks / shared.value : 1;
  w->load_waits += m->load_waits * scale;
  w->load_wait_clocks += m->load_waits * waits->clocks * scale;
  w->shared_waits += (m->shared_waits + m->unit_waits * units) * scale;
  w->shared_wavefronts += m->shuffles * scale;
  w->issues += m->issues * scale;
  w->fp32 += m->fp32 * scale;
  w->fp16 += m->fp16 * scale;
  w->fp64 += m->fp64 * scale;
  w->integer += m->integer * scale;
  w->special += m->special * scale;
}

// Waits for shared memory in so many turns of a float atomic there.
static double swap_waits(const MachineModel *m, double turns) {
  SolFigure shared = m->device->smem_latency;
  return sol_known(shared) ? turns * m->shared_swap_clocks / shared.value : 0;
}

double audit_shared_waits(const MachineModel *m, const AuditInst *in) {
  double executions = (double)in->counts.executions;
  if (in->unit == SOL_EMU_CLASS_WARP) return executions;
  if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC && in->real) return swap_waits(m, (double)in->pattern.same);
  bool near = in->kind == SOL_EMU_KIND_SHARED_LOAD || in->kind == SOL_EMU_KIND_SHARED_ATOMIC;
  return near ? executions / m->near_in_flight : 0;
}

// A floating-point atomic on shared memory, as many rounds as lanes have the address that most of them share. The
// machine code has the first round.
static void add_swaps(const MachineModel *m, const AuditInst *in, double scale, MachineWork *w) {
  double times = (double)in->counts.shared_requests, rounds = (double)in->pattern.same;
  if (times <= 0) return;
  double swaps = rounds * (rounds / times + 1) / 2, // 1 + 2 + ... + lanes
      passes = sol_larger(swaps, (double)in->counts.wavefronts * m->shared_swap_passes);
  w->shared_wavefronts += sol_larger(passes - (double)in->counts.wavefronts, 0) * scale;
  if (!in->by_machine) return;
  double more = sol_larger(rounds - times, 0);
  w->shared_waits += swap_waits(m, more) * scale;
  w->issues += in->executed.issues * (more / times) * scale;
}

// Where the machine code is known, its waits are counted there (scoreboards.c), and those constants are left out whose place it knows:
// operands, and loads of such into uniform registers. Other loads into uniform registers wait for their line alone.
static void add_constants(const MachineModel *m, const AuditInst *in, double scale, MachineWork *w) {
  double requests = (double)in->counts.requests, turns = (double)in->counts.turns, loaded = 1, indexed = 1;
  SolFigure shared = m->device->smem_latency;
  if (in->by_machine && requests > 0) {
    loaded = sol_smaller(in->executed.constants / requests, 1);
    indexed = sol_smaller((in->executed.constants + in->executed.uniform_constants) / requests, 1);
  }
  double lines = (double)in->counts.lines * m->constant_line_clocks / m->constant_clocks;
  w->constant_turns += sol_larger(turns * loaded, lines * indexed) * scale;
  if (!in->by_machine && sol_known(shared) && turns > requests)
    w->shared_waits +=
        (turns - requests) * m->constant_apart_clocks / m->near_in_flight / shared.value * scale;
}

// printf, malloc and free: a warp waits for each call, and all calls of the launch take turns, as atomics on one word do. A warp's first
// call takes longer; if there are no more calls than warps, each is one.
static void add_calls(const MachineModel *m, const AuditInst *in, double scale, MachineWork *w) {
  double calls = (double)in->counts.executions, lanes = (double)in->counts.lanes;
  double wait = in->prints ? calls * m->print_clocks
                           : calls * m->heap_clocks + sol_larger(lanes - calls, 0) * m->heap_lane_clocks,
         turns = in->prints ? calls * m->print_turn_clocks
                            : calls * m->heap_turn_clocks + lanes * m->heap_turn_lane_clocks;
  double first = in->prints ? 0 : sol_smaller(calls * scale, w->blocks * w->warps_per_block);
  w->atomic_clocks +=
      first * (in->text && audit_has(in->text, "free") ? m->heap_last_clocks : m->heap_first_clocks);
  w->call_clocks += wait * scale;
  w->atomic_clocks += turns * scale;
}

double audit_flops(const AuditInst *in) {
  const SolEmuCounts *c = &in->counts;
  return in->flops > 0 ? in->flops * (double)(c->turns ? c->turns : c->executions) : 0;
}

void audit_demand(const MachineModel *m, const AuditInst *in, const AuditWaits *waits, double scale,
                  MachineWork *w) {
  const SolEmuCounts *c = &in->counts;
  double executions = (double)c->executions * scale;
  if (in->by_machine) add_machine(m, &in->executed, waits, scale, w);
  if (in->unit == SOL_EMU_CLASS_NAME && !c->requests) return;
  if (!in->by_machine) w->issues += executions, add_pipe(in->unit, executions, w);
  w->tensor_flops += audit_flops(in) * scale;
  if (in->barrier) w->barriers += executions;
  w->shared_wavefronts += (double)c->wavefronts * scale;
  if (!in->by_machine) w->shared_waits += audit_shared_waits(m, in) * scale;
  if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC && in->real) add_swaps(m, in, scale, w);
  if (in->unit == SOL_EMU_CLASS_WARP && c->turns)
    w->match_turns += (double)c->turns * scale + m->match_setup * executions;
  if (in->prints || in->allocates) add_calls(m, in, scale, w);
  if (in->kind == SOL_EMU_KIND_CONST_LOAD) add_constants(m, in, scale, w);
  if (in->kind == SOL_EMU_KIND_OTHER || in->kind == SOL_EMU_KIND_CONST_LOAD || !c->requests) return;
  add_global(m, in, waits, scale, w);
}

// Of waits that the machine joins, one is beyond L1 if any of them is; one that the machine splits was beyond it if any of its parts is.
static double far_of(const SolEmuChain *chain, double joined) {
  double all = chain->l1_waits + chain->far_waits;
  if (!(joined > 0) || all <= 0) return chain->far_waits * joined;
  double near = chain->l1_waits / all;
  return all * joined * (1 - (joined < 1 ? power(near, 1 / joined) : root(near, joined)));
}

void audit_add_alone(const MachineModel *m, const AuditInst *in, double scale, AuditPtx *to) {
  SolFigure shared = m->device->smem_latency;
  to->alone += audit_plain(in) * scale;
  to->alone_issues += (in->executed.issues - in->executed.idle) * scale;
  to->alone_clocks += in->executed.clocks * scale;
  to->alone_near += audit_shared_waits(m, in) * scale;
  to->alone_near_waits += in->executed.shared_waits * scale;
  if (sol_known(shared))
    to->alone_near_waits += in->executed.unit_waits * m->unit_clocks / shared.value * scale;
}

// Whether what single lanes do is the work of one warp of each block, which others wait for, and not of one lane of each warp: then the
// longest path has all of it, and of the rest as much as any warp.
static bool one_warp_alone(const MachineWork *w, const SolEmuChain *chain, const AuditPtx *ptx,
                           double scale) {
  enum { FEW = 2 };
  double warps = w->warps_per_block;
  if (warps < FEW || !(ptx->alone > 0) || !(ptx->executions > ptx->alone)) return false;
  return (double)chain->issues * scale > 0.8 * (ptx->alone + (ptx->executions - ptx->alone) / warps);
}

// Clocks of the critical paths of all blocks that ran; *far: those of waits for loads beyond L1. The chain follows the PTX's waits; where
// the machine code has fewer or more of them, so does the chain. A warp that it leads through code which the machine guards is one that has
// lanes there. What one warp of each block does alone takes the clocks that its own instructions have, not those that all have in the mean.
static double chain_clocks(const MachineModel *m, const MachineWork *w, const AuditWaits *waits,
                           const SolEmuChain *chain, const AuditPtx *all, double scale, double *far_clocks) {
  const SolDevice *d = m->device;
  AuditPtx none = *all;
  none.alone = none.alone_issues = none.alone_clocks = none.alone_near = none.alone_near_waits = 0;
  const AuditPtx *ptx = one_warp_alone(w, chain, all, scale) ? all : &none;
  double loads = ptx->load_waits > 0 ? w->load_waits / ptx->load_waits : 1,
         near_ones =
             ptx->shared_waits + ptx->local_waits - ptx->alone_near, // of the warps that are not alone
      shared = near_ones > 0 ? sol_larger(w->shared_waits - ptx->alone_near_waits, 0) / near_ones : 1,
         executions = ptx->executions - ptx->alone, issued = w->issues - ptx->idle - ptx->alone_issues,
         issues = executions > 0 ? issued / executions : 1, stall = machine_stall(m, w);
  if (ptx->alone > 0 && issued > 0)
    stall = sol_larger(w->issues * stall - ptx->alone_clocks, 0) / (w->issues - ptx->alone_issues);
  // Waits for local memory are among the chain's loads; the machine, which has most of it in registers, has them among
  // those for shared memory.
  double local = ptx->local_waits > 0 ? ptx->local_waits / (ptx->local_waits + ptx->load_waits) : 0;
  SolEmuChain global = *chain;
  global.l1_waits *= 1 - local, global.far_waits *= 1 - local;
  double far = far_of(&global, loads), near = (global.l1_waits + global.far_waits) * loads - far,
         close = chain->shared_waits + (chain->l1_waits + chain->far_waits) * local;
  double alone = (ptx->alone_clocks + ptx->alone_near_waits * d->smem_latency.value) / scale;
  *far_clocks = far * waits->far;
  return alone + sol_larger(chain->issues - ptx->alone / scale, 0) * issues * stall +
         near * d->l1_latency.value + *far_clocks +
         sol_larger(close - ptx->alone_near / scale, 0) * d->smem_latency.value * shared +
         chain->barriers * machine_barrier(m, w->warps_per_block) +
         chain->other_waits * m->other_shared_clocks + chain->cluster_barriers * m->cluster_barrier_clocks +
         chain->fences * m->fence_clocks + chain->store_fences * m->store_fence_clocks + chain->sleeps;
}

// Of the warps of all blocks.
static double mean_clocks(const MachineModel *m, const MachineWork *w) {
  return machine_wait_clocks(m, w) / sol_larger(w->warps_per_block, 1);
}

double audit_chain(const MachineModel *m, const MachineWork *w, const AuditWaits *waits,
                   const SolEmuChain *chain, const AuditPtx *ptx, double scale) {
  double far, longest = chain_clocks(m, w, waits, chain, ptx, scale, &far) * scale, mean = mean_clocks(m, w);
  return mean > 0 && longest > mean ? longest / mean : 1;
}

// What the emulator took the same paths for: it did not know what of memory would be in L2, nor the machine's code.
static double emulated_clocks(const MachineModel *m, const SolEmuChain *c) {
  const SolDevice *d = m->device;
  return c->issues * m->issue_clocks + c->l1_waits * d->l1_latency.value +
         c->far_waits * machine_far_clocks(m) + c->shared_waits * d->smem_latency.value +
         c->barriers * machine_barrier(m, MACHINE_USUAL_WARPS) + c->other_waits * m->other_shared_clocks +
         c->cluster_barriers * m->cluster_barrier_clocks + c->fences * m->fence_clocks +
         c->store_fences * m->store_fence_clocks + c->sleeps;
}

// What a block waits longer than others, at most: for all that others find in L1, because it came first.
double audit_longest(const MachineModel *m, const MachineWork *w, const AuditWaits *waits,
                     const AuditLaunch *l, const AuditPtx *ptx, double scale) {
  double far, clocks = chain_clocks(m, w, waits, &l->chain, ptx, scale, &far),
              priced = sol_larger(clocks, mean_clocks(m, w) / scale),
              emulated = emulated_clocks(m, &l->chain), latency = machine_far_clocks(m),
              waited = l->chain.far_waits * latency, excess = l->balance.longest - 1;
  double work = (l->balance.busiest - 1) * __builtin_ceil(w->blocks / m->device->sms.value),
         first = l->chain.l1_waits * (latency - m->device->l1_latency.value) / emulated,
         part = sol_smaller(excess - sol_larger(work, 0), first);
  if (!(part > 0) || !(priced > 0) || !(waited > 0)) return l->balance.longest;
  return 1 + excess - part + part * emulated / priced * (far / waited);
}

// Whether the packets of an atomic have several lanes: 0 to 1.
static double several_lanes(const AuditInst *in) {
  double sectors = (double)(in->counts.l2_hits + in->counts.l2_misses), lanes = (double)in->counts.atomics;
  return sectors > 0 ? sol_smaller(sol_larger(lanes / sectors - 1, 0), 1) : 0;
}

// And whether those are at several words of the sector: where all are at one word they are served one by one anyway.
static double several_words(const AuditInst *in) {
  double lanes = (double)in->counts.atomics, same = (double)in->pattern.same;
  return lanes > 0 ? several_lanes(in) * (1 - same / lanes) : 0;
}

double audit_atomic_clocks(const MachineModel *m, const AuditInst *in) {
  bool wide = in->width == 8, heavy = wide && in->real, swaps = in->text && audit_has(in->text, ".cas.");
  double real = wide ? m->atomic_double_clocks : m->atomic_real_clocks,
         lanes = (double)in->pattern.queue_lanes * (in->real ? real : m->atomic_int_clocks),
         several = several_lanes(in),
         packet = heavy   ? m->atomic_packet + (m->atomic_double_packet - m->atomic_packet) * several
                  : swaps ? m->atomic_packet * (1 + (m->atomic_swap_packet - 1) * several)
                          : m->atomic_packet;
  return sol_larger(lanes * (swaps ? 1 + (m->atomic_swap_packet - 1) * several_words(in) : 1),
                    (double)in->pattern.queue_packets * packet);
}

// Of an allocation: the bytes of it that the launch reads.
static double bytes_read(const AuditLaunch *l, uint64_t address) {
  for (uint32_t i = 0; i < l->touch_count; i++)
    if (l->touches[i].address == address)
      return l->touches[i].read > 0 ? l->touches[i].read : (double)l->touches[i].bytes;
  return 0;
}

double audit_atomics_together(const MachineModel *m, const AuditLaunch *l, const AuditInst *in) {
  double all = 0;
  if (!in->pattern.queue_slice) return audit_atomic_clocks(m, in);
  for (uint32_t i = 0; i < l->inst_count; i++)
    if (l->insts[i].pattern.queue_slice == in->pattern.queue_slice)
      all += audit_atomic_clocks(m, &l->insts[i]);
  return all;
}

// As audit_atomic_clocks, by what the lanes that read have in common: a word, or sectors of what is serialised.
static double guard_clocks(const MachineModel *m, const AuditInst *swap, const AuditInst *read,
                           double bytes) {
  double part = bytes > m->atomic_bytes ? m->atomic_bytes / bytes : 1;
  if (read->pattern.uniform >= read->pattern.seen) return (double)read->counts.lanes * m->atomic_int_clocks;
  double packets = sol_larger((double)read->counts.sectors, (double)read->counts.lanes / 8),
         clocks = packets * (swap->width == 8 ? m->atomic_double_packet : m->atomic_packet);
  return sol_larger(clocks, (double)read->counts.lanes * m->atomic_word_clocks) * part;
}

double audit_guard_lanes(const MachineModel *m, const AuditLaunch *l, const AuditInst *swap, double *clocks) {
  uint64_t place = swap->pattern.allocation;
  double most = 0, bytes = bytes_read(l, place);
  *clocks = 0;
  for (uint32_t i = 0; place && i < l->inst_count; i++) {
    const AuditInst *in = &l->insts[i];
    bool same = in->base == swap->base && in->offset == swap->offset;
    if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD || in->pattern.allocation != place) continue;
    if ((same || bytes <= m->atomic_bytes) && (double)in->counts.lanes > most)
      most = (double)in->counts.lanes, *clocks = guard_clocks(m, swap, in, bytes);
  }
  return most;
}

double audit_plain(const AuditInst *in) {
  double rare = in->size > 1 ? (double)in->counts.turns * SOL_EMU_RARE : 0;
  return (double)in->counts.executions * (in->size ? in->size : 1) + rare;
}

double audit_code(const AuditInst *in) {
  enum { MOST = 32 };
  double executions = (double)in->counts.executions;
  if (!(executions > 0) || (!in->by_machine && in->unit == SOL_EMU_CLASS_NAME)) return 0;
  return sol_smaller((in->by_machine ? in->executed.issues : audit_plain(in)) / executions, MOST);
}

// ptxas takes stack in steps: what rounds the arrays up is no spill.
double audit_spilled(AuditSource from, uint64_t stack_bytes, uint64_t local_array_bytes) {
  enum { STEP = 8 };
  uint64_t arrays = (local_array_bytes + STEP - 1) / STEP * STEP;
  return from == AUDIT_FROM_PTXAS && stack_bytes > arrays ? (double)(stack_bytes - arrays) : 0;
}
