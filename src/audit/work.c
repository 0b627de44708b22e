// Converts the counts of a launch to demands on the GPU, the input of the time model.
//
// Assumptions, each with a test in tests/test_audit.c:
//  1. A request takes one L1 wavefront per line, a store STORE_PASSES; a texture request one, or one per 4
//     sectors. Constant loads do not use L1. A store sends L2 one packet per sector, and one more per partly
//     written line. Where a store directly follows a store to adjacent addresses and they touch no more than
//     JOINED_LINES lines, L1 merges most of the packets of both.
//  2. A wait for loads is as long as the latency of the slowest. Each load is served by L1, L2 or DRAM with the
//     mean probability over all of the kernel's loads; sectors served by DRAM are its bytes over 32.
//  3. A warp has SHARED_IN_FLIGHT loads from shared memory in flight before it waits; a shuffle has the latency
//     of shared memory.
//  4. Constant memory serves one word at a time, and takes at least as long as for CONSTANT_LEAST of them; a
//     match serves one value at a time, after MATCH_SETUP.
//  5. Atomics to the same 512 bytes of memory are serialised in L2: per request and line one clock per word,
//     five at most, and INT_CLOCKS for every further lane at one address, REAL_CLOCKS for floating-point
//     additions (bench/results/2026-11-15-h200-units.json).
//  6. A thread stores and loads each spilled word once, unless the machine code says how often. Spills stay in L1 as far as the stacks of an SM's
//     resident threads fit into LOCAL_ROOM; the rest goes to DRAM.
//  7. Bytes that a launch leaves dirty in L2 are written back later: DRAM writes every byte once.
#include "audit/inside.h"

#define SHARED_IN_FLIGHT 4.0
#define ISSUE_CLOCKS     2.0 // of a chain, for each instruction: results take 4, and every other one is not on it
#define BARRIER_CLOCKS   30.0 // of a warp, once all have come
// Clocks and shares of bench/results/2026-11-15-h200-units.json: "meeting by relaxed", "by fence" with
// nothing before it and by how much it is longer behind a store, "shared reads, another's, one by one"; of
// stores, "4-byte writes in bursts".
#define CLUSTER_BARRIER_CLOCKS 130.0 // of a cluster's barrier: 126 to 135
#define FENCE_CLOCKS           312.0 // 309 to 314
#define STORE_FENCE_CLOCKS     344.0 // 342 to 346
#define OTHER_CLOCKS           205.0 // 202 to 207
#define JOINED_LINES           6.0   // of a request; of those with eight or more next to none are joined
#define JOINED_SHARE           0.25  // of the packets of each further store that go to L2: 0.2 to 0.4
#define STORE_PASSES           1.5   // sol ladder: rmsnorm thread, embedding naive
#define CONSTANT_LEAST         2.1
#define MATCH_SETUP            1.5
#define INT_CLOCKS             1.46
#define REAL_CLOCKS            3.5
#define LOCAL_ROOM             128e3 // bytes: sol ladder registers

static double larger(double a, double b) {
  return a > b ? a : b;
}

AuditWaits audit_waits(const SolDevice *d, const AuditInst *insts, uint32_t count,
                       const SolEmuFlight *flight) {
  double near = 0, l2 = 0, dram = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!insts[i].is_load) continue;
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
  // The slowest load of a wait: the probabilities that all of them hit L1, or that none misses L2.
  double in_l1 = 1, in_l2 = 1;
  double together = w.per_load > 0 ? 1 / w.per_load : 1;
  for (int i = 0; i < 64 && i + 0.5 < together; i++) {
    in_l1 *= near / all;
    in_l2 *= (near + l2) / all;
  }
  w.clocks = in_l1 * d->l1_latency.value + (in_l2 - in_l1) * d->l2_latency.value +
             (1 - in_l2) * d->mem_latency.value;
  w.far = in_l1 < 1 ? (w.clocks - in_l1 * d->l1_latency.value) / (1 - in_l1) : 0;
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

// Copies that bypass L1 write whole lines.
static double packets_of(const AuditInst *in) {
  const SolEmuCounts *c = &in->counts;
  bool joins = in->follows && (double)c->lines <= JOINED_LINES * (double)c->requests;
  return larger((double)c->l2_packets, (double)c->l2_writes) * (joins ? JOINED_SHARE : 1);
}

static void add_global(const AuditInst *in, const AuditWaits *waits, double scale, AuditWork *w) {
  const SolEmuCounts *c = &in->counts;
  double at_l2 = (double)(c->l2_hits + c->l2_misses) * scale;
  double passes = larger((double)c->requests, (double)c->sectors / 4);
  if (in->kind != SOL_EMU_KIND_TEXTURE)
    passes = larger(passes, (double)c->lines * (c->l2_writes ? STORE_PASSES : 1));
  w->l1_wavefronts += passes * scale;
  if (in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC)
    w->l2_atomics += at_l2;
  else
    w->l2_reads += at_l2;
  w->l2_writes += (double)c->l2_writes * scale;
  if (c->l2_writes)
    w->l2_packets += packets_of(in) * scale;
  else
    w->l2_requests += (double)c->l2_requests * scale;
  w->dram_read += (double)c->dram_read * scale;
  if (in->pattern.seen)
    w->dram_scattered +=
        (double)c->dram_read * scale * (double)in->pattern.scattered / (double)in->pattern.seen;
  w->dram_write += (double)c->dram_write * scale;
  if (!in->is_load) return;
  double times = (double)c->requests * waits->per_load * scale;
  w->load_waits += times;
  w->load_wait_clocks += times * waits->clocks;
}

static void add_machine(const AuditMachine *m, double scale, AuditWork *w) {
  w->issues += m->issues * scale;
  w->fp32 += m->fp32 * scale;
  w->fp16 += m->fp16 * scale;
  w->fp64 += m->fp64 * scale;
  w->integer += m->integer * scale;
  w->special += m->special * scale;
  w->convert += m->convert * scale;
}

void audit_demand(const AuditInst *in, const AuditWaits *waits, double scale, AuditWork *w) {
  const SolEmuCounts *c = &in->counts;
  double executions = (double)c->executions * scale;
  if (in->by_machine) add_machine(&in->machine, scale, w);
  if (in->unit == SOL_EMU_CLASS_NAME && !c->requests) return;
  if (!in->by_machine) w->issues += executions, add_pipe(in->unit, executions, w);
  if (in->flops > 0) w->tensor_flops += in->flops * executions;
  if (in->barrier) w->barriers += executions;
  w->shared_wavefronts += (double)c->wavefronts * scale;
  if (in->kind == SOL_EMU_KIND_SHARED_LOAD || in->kind == SOL_EMU_KIND_SHARED_ATOMIC)
    w->shared_waits += executions / SHARED_IN_FLIGHT;
  // Floating-point additions to shared memory are a compare-and-swap loop, serialised by lane, in which the
  // warps of a block contend.
  if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC && in->real)
    w->shared_waits += 2 * (double)in->pattern.same * scale * larger(w->warps_per_block, 1);
  if (in->unit == SOL_EMU_CLASS_WARP) w->shared_waits += executions;
  if (in->unit == SOL_EMU_CLASS_WARP && c->turns)
    w->match_turns += (double)c->turns * scale + MATCH_SETUP * executions;
  if (in->kind == SOL_EMU_KIND_CONST_LOAD)
    w->constant_turns += larger((double)c->turns, CONSTANT_LEAST * (double)c->requests) * scale;
  if (in->kind == SOL_EMU_KIND_OTHER || in->kind == SOL_EMU_KIND_CONST_LOAD || !c->requests) return;
  add_global(in, waits, scale, w);
}

double audit_wait_clocks(const SolDevice *d, const AuditWork *w) {
  double clocks = w->load_wait_clocks + w->barriers * BARRIER_CLOCKS + w->issues * ISSUE_CLOCKS;
  return sol_known(d->smem_latency) ? clocks + w->shared_waits * d->smem_latency.value : clocks;
}

double audit_chain(const SolDevice *d, const AuditWork *w, const AuditWaits *waits, const SolEmuChain *chain,
                   double scale, double executions) {
  double machine = executions > 0 ? w->issues / executions : 1; // of PTX instructions, those that it has
  double mean = audit_wait_clocks(d, w) / larger(w->warps_per_block, 1); // of the warps of all blocks
  double longest = chain->issues * machine * ISSUE_CLOCKS + chain->l1_waits * d->l1_latency.value +
                   chain->far_waits * waits->far + chain->shared_waits * d->smem_latency.value +
                   chain->barriers * BARRIER_CLOCKS + chain->other_waits * OTHER_CLOCKS +
                   chain->cluster_barriers * CLUSTER_BARRIER_CLOCKS + chain->fences * FENCE_CLOCKS +
                   chain->store_fences * STORE_FENCE_CLOCKS;
  return mean > 0 && longest * scale > mean ? longest * scale / mean : 1;
}

double audit_atomic_clocks(const AuditInst *in) {
  double lanes = (double)in->pattern.queue_lanes, words = (double)in->pattern.queue_words;
  return words + (in->real ? REAL_CLOCKS : INT_CLOCKS) * lanes;
}

double audit_spilled(AuditSource from, uint64_t stack_bytes, uint64_t local_array_bytes) {
  return from == AUDIT_FROM_PTXAS && stack_bytes > local_array_bytes
             ? (double)(stack_bytes - local_array_bytes)
             : 0;
}

AuditWork audit_spills_counted(double bytes, double trips, double resident) {
  double away = larger(1 - LOCAL_ROOM / larger(bytes * resident, 1), 0);
  double sectors = trips / 2 * 4; // each way
  return (AuditWork){.l1_wavefronts = trips,
                     .l2_writes = sectors,
                     .l2_packets = sectors,
                     .l2_reads = sectors * away,
                     .l2_requests = sectors / 4 * away,
                     .dram_write = sectors * 32 * away,
                     .dram_read = sectors * 32 * away};
}

AuditWork audit_spills(double bytes, double warps, double resident) {
  double trips = 2 * bytes / 4 * warps;
  AuditWork w = audit_spills_counted(bytes, trips, resident);
  w.issues = trips;
  return w;
}

void audit_work_add(AuditWork *to, const AuditWork *from) {
  double launches = to->launches + from->launches;
  if (launches <= 0) return;
  double old = to->launches / launches, new = from->launches / launches;
  to->blocks = to->blocks * old + from->blocks * new;
  to->warps_per_block = to->warps_per_block * old + from->warps_per_block * new;
  to->blocks_per_sm = to->blocks_per_sm * old + from->blocks_per_sm * new;
  to->blocks_per_cluster = to->blocks_per_cluster * old + from->blocks_per_cluster * new;
  to->chain = to->chain * old + from->chain * new;
  to->launches = launches;
  to->graph_launches += from->graph_launches;
  to->early_launches += from->early_launches;
#define ADD_DEMAND(name) to->name += from->name;
  AUDIT_DEMANDS(ADD_DEMAND)
#undef ADD_DEMAND
}
