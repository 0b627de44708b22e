// The time model. The same model for every kernel; no constant is fitted to one kernel. Assumptions, each with a
// test in tests/test_audit.c:
//
//  1. Time is the launch overhead plus busy and waiting time. Resources overlap, but not perfectly: their times
//     combine as the fourth root of the sum of fourth powers, so that the busiest dominates, and two equally
//     busy ones take 19% longer than one. Waiting overlaps with busy time as sqrt(busy^2 + wait^2). With the
//     H200's latency of 689 clocks that gives 97% of its bandwidth at 48 KiB in flight per SM, as measured.
//  2. DRAM serves reads and writes at DRAM_SHARE of the published bandwidth, which a plain copy reaches.
//     Scattered reads reach SCATTER_SHARE of that: each opens a DRAM row of its own.
//  3. L2 gives its measured bandwidth to all SMs together; one SM receives at most FILL_BYTES a clock, in at
//     most L2_READS requests, each for sectors of one line. L2 accepts L2_PACKETS a clock and SM from stores,
//     from whichever SMs they come. Reads and writes overlap as busy time and waiting do.
//  4. L1 and shared memory share one pipe of an SM: one wavefront a clock.
//  5. An SM issues 4 warp instructions a clock; pipes have the rates of the CUDA guide's table of
//     arithmetic throughput (fp32, fp64 and tensor: of the published peaks). PTX instructions are counted as
//     machine instructions, except moves, parameter loads and address conversions, which ptxas removes.
//  6. Blocks are distributed evenly: the busiest SM has ceil(blocks / SMs) of them, and the work of SMs takes
//     as long as on that one. DRAM and L2 are shared by all SMs; but the blocks of a tail wave move their
//     bytes no faster than their own SMs can, FILL_BYTES a clock.
//  7. A warp's critical path is its waits for loads, each with the latency of the memory that serves it, for
//     shared memory, barriers and fences, and ISSUE_CLOCKS per instruction; a block takes BLOCK_CLOCKS to
//     start and end. Resident blocks wait at the same time; waves wait one after another. An SM holds at most
//     SOL_EMU_CLUSTER_BLOCKS blocks of clusters.
//  8. A launch costs the device's published figure, in a stream or in a graph; EARLY_SHARE of that with
//     programmatic dependent launch. The figure was measured with a kernel of one block that waits for L2
//     once, so neither is counted again.
//  9. The GPU starts a block in START_CLOCKS; a cluster takes one block's time more.
// 10. Atomics to the same memory are serialised: see work.c.
#include "audit/audit.h"
#include "audit/inside.h"
#include "base/error.h"

#define DRAM_SHARE    0.892 // bench/results/2026-11-15-h200-*.json: our copy, 4.28 of 4.8 TB/s
#define SCATTER_SHARE 0.6   // sol ladder stride: random against 32
#define FILL_BYTES    40.0  // per clock from L2 to an SM: sol ladder tail, a block alone
#define L2_READS                                                                                             \
  0.43 // per clock and SM: 105 to 118 G/s measured, tests/data/h200-rules.csv (column_walk ...)
#define L2_PACKETS                                                                                           \
  0.55 // 140 to 145 G/s: bench/results/2026-11-15-h200-units.json, 4-byte writes in bursts of one
#define ISSUE_RATE      4.0  // warp instructions a clock and SM: one each of 4 schedulers
#define INTEGER_RATE    2.0  // warp instructions a clock and SM: 64 lanes
#define SPECIAL_RATE    0.5  // 16 lanes
#define CONSTANT_CLOCKS 2.08 // bench/results/2026-11-15-h200-units.json
#define MATCH_CLOCKS    2.05 // the same
#define BLOCK_CLOCKS                                                                                         \
  600.0 // sol ladder occupancy: blocks of a copy, one to an SM, live 1500 clocks, of which 700 wait
#define START_CLOCKS 1.25 // bench/results/2026-11-15-h200-units.json: block start, cluster start
#define EARLY_SHARE  0.50 // sol ladder launches: early-8 against graph-8

const char *audit_resource_name(AuditResource resource) {
  static const char *const names[] = {
      "launches",     "DRAM bandwidth", "L2 bandwidth",    "L1 and shared memory", "instructions",
      "tensor cores", "atomics",        "starting blocks", "waiting (latency)"};
  _Static_assert(SOL_COUNT(names) == AUDIT_RESOURCES, "a name for each");
  return (unsigned)resource < AUDIT_RESOURCES ? names[resource] : "?";
}

const char *audit_resource_key(AuditResource resource) {
  static const char *const keys[] = {"launch", "dram",    "l2",     "l1",     "issue",
                                     "tensor", "atomics", "blocks", "latency"};
  _Static_assert(SOL_COUNT(keys) == AUDIT_RESOURCES, "a key for each");
  return (unsigned)resource < AUDIT_RESOURCES ? keys[resource] : "?";
}

static double larger(double a, double b) {
  return a > b ? a : b;
}

// Combines times that overlap, but not perfectly.
static double together(double a, double b) {
  return __builtin_sqrt(a * a + b * b);
}

static double launch_seconds(const SolDevice *d, double launches, double graph_launches) {
  double in_graphs = sol_known(d->graph_launch_us) ? d->graph_launch_us.value : d->launch_us.value;
  return ((launches - graph_launches) * d->launch_us.value + graph_launches * in_graphs) * 1e-6;
}

static double work_launch_seconds(const SolDevice *d, const AuditWork *w) {
  double all = launch_seconds(d, w->launches, w->graph_launches);
  return all * (1 - w->early_launches / w->launches * (1 - EARLY_SHARE));
}

double audit_copy_rate(const SolDevice *device) {
  return sol_known(device->mem_copy) ? device->mem_copy.value : device->mem_bandwidth.value * DRAM_SHARE;
}

double audit_light(const SolDevice *device, double bytes, double launches, double graph_launches) {
  return bytes / audit_copy_rate(device) + launch_seconds(device, launches, graph_launches);
}

// How one launch of the work is distributed over the SMs.
typedef struct Machine {
  const SolDevice *d;
  double clock, sms;
  double share; // of all the SMs' work: the busiest one's; 1 / sms where blocks are many
  double waves; // whole ones
} Machine;

static Machine machine_of(const SolDevice *d, const AuditWork *w) {
  Machine m = {d, d->boost_clock.value, d->sms.value, 1 / d->sms.value, 1};
  double blocks = larger(w->blocks, 1), slots = larger(w->blocks_per_sm, 1) * m.sms;
  m.share = __builtin_ceil(blocks / m.sms) / blocks;
  m.waves = __builtin_ceil(blocks / slots);
  return m;
}

// Seconds of an amount of SM work at a rate per clock.
static double sm_seconds(const Machine *m, double work, double per_clock) {
  return work * m->share / per_clock / m->clock;
}

static double l2_seconds(const Machine *m, const AuditWork *w, AuditTime *out) {
  double sectors = w->l2_reads + w->l2_writes + 2 * w->l2_atomics;
  double fill = sm_seconds(m, (w->l2_reads + w->l2_writes + w->l2_atomics) * 32, FILL_BYTES);
  double reads = sm_seconds(m, w->l2_requests, L2_READS),
         writes = w->l2_packets / L2_PACKETS / m->sms / m->clock;
  fill = larger(fill, together(reads, writes));
  if (sol_known(m->d->l2_bandwidth)) return larger(sectors * 32 / m->d->l2_bandwidth.value, fill);
  out->left_out |= 1u << AUDIT_L2;
  return fill;
}

// Converts a peak in FLOP/s to warp instructions a clock and SM; flops: of one warp instruction.
static double peak_rate(const Machine *m, SolFigure peak, double flops) {
  return sol_known(peak) ? peak.value / flops / m->sms / m->clock : ISSUE_RATE;
}

static double issue_seconds(const Machine *m, const AuditWork *w) {
  double convert_rate = m->d->cc_major >= 9 ? 2.0 : 0.5;
  double busiest = sm_seconds(m, w->issues, ISSUE_RATE);
  busiest = larger(busiest, sm_seconds(m, w->fp32, peak_rate(m, m->d->peak_fp32, 64)));
  busiest = larger(busiest, sm_seconds(m, w->fp16, peak_rate(m, m->d->peak_fp16_vector, 128)));
  busiest = larger(busiest, sm_seconds(m, w->fp64, peak_rate(m, m->d->peak_fp64, 64)));
  busiest = larger(busiest, sm_seconds(m, w->integer, INTEGER_RATE));
  busiest = larger(busiest, sm_seconds(m, w->special, SPECIAL_RATE));
  return larger(busiest, sm_seconds(m, w->convert, convert_rate));
}

static double tensor_seconds(const Machine *m, const AuditWork *w, AuditTime *out) {
  if (w->tensor_flops <= 0) return 0;
  if (sol_known(m->d->peak_fp16)) return w->tensor_flops / m->d->peak_fp16.value * m->sms * m->share;
  out->left_out |= 1u << AUDIT_TENSOR;
  return 0;
}

// Latency of all launches: the critical path of a block times the number of waves.
static double latency_seconds(const Machine *m, const AuditWork *w, double warps, AuditTime *out) {
  bool known = sol_known(m->d->mem_latency) && sol_known(m->d->smem_latency);
  if (!known) out->left_out |= 1u << AUDIT_LATENCY;
  double clocks = audit_wait_clocks(m->d, w) * (w->chain > 1 ? w->chain : 1);
  double chain = (clocks / warps * m->waves + BLOCK_CLOCKS * (m->waves - 1)) * w->launches / m->clock;
  double counted = sol_known(m->d->l2_latency) ? m->d->l2_latency.value * w->launches / m->clock : 0;
  return larger(chain - counted, 0);
}

static double start_seconds(const Machine *m, const AuditWork *w) {
  double blocks = w->blocks * w->launches;
  double clusters = w->blocks_per_cluster > 1 ? blocks / w->blocks_per_cluster : 0;
  return (blocks + clusters) * START_CLOCKS / m->clock;
}

// The tail effect: how much longer the last wave takes than its share of DRAM's time, since its few SMs cannot
// use the whole bandwidth.
static double tail_seconds(const Machine *m, const AuditWork *w, double dram) {
  double slots = larger(w->blocks_per_sm, 1) * m->sms,
         rest = w->blocks - __builtin_floor(w->blocks / slots) * slots;
  if (rest <= 0 || w->blocks <= 0) return 0;
  double bytes = (w->l2_reads + w->l2_writes) * 32 / w->blocks; // of a block, all launches
  double alone = bytes * __builtin_ceil(rest / m->sms) / FILL_BYTES / m->clock;
  return larger(alone - dram * rest / w->blocks, 0);
}

static SolStatus check_device(const SolDevice *d, SolError *err) {
  const struct {
    SolFigure figure;
    const char *what;
  } needs[] = {{d->sms, "number of SMs"},
               {d->boost_clock, "clock"},
               {d->mem_bandwidth, "memory bandwidth"},
               {d->launch_us, "launch cost"}};
  for (size_t i = 0; i < SOL_COUNT(needs); i++)
    if (!sol_known(needs[i].figure) || !(needs[i].figure.value > 0))
      return sol_fail(err, SOL_ERR_UNKNOWN, "predicting time on %.60s needs its %s, which is unknown", d->id,
                      needs[i].what);
  return SOL_OK;
}

SolStatus audit_time(const SolDevice *device, const AuditWork *w, AuditTime *out, SolError *err) {
  SolStatus status = check_device(device, err);
  if (status) return status;
  *out = (AuditTime){0};
  if (w->launches <= 0) return SOL_OK;
  Machine m = machine_of(device, w);
  double warps = larger(w->launches * w->blocks * w->warps_per_block, 1), *s = out->seconds;
  s[AUDIT_LAUNCH] = work_launch_seconds(device, w);
  double scattered = w->dram_scattered * (1 / SCATTER_SHARE - 1);
  s[AUDIT_DRAM] = (w->dram_read + w->dram_write + scattered) / audit_copy_rate(device);
  s[AUDIT_DRAM] += tail_seconds(&m, w, s[AUDIT_DRAM]);
  s[AUDIT_L2] = l2_seconds(&m, w, out);
  s[AUDIT_L1] = larger(sm_seconds(&m, w->l1_wavefronts + w->shared_wavefronts, 1),
                       larger(sm_seconds(&m, w->constant_turns, 1 / CONSTANT_CLOCKS),
                              sm_seconds(&m, w->match_turns, 1 / MATCH_CLOCKS)));
  s[AUDIT_ISSUE] = issue_seconds(&m, w);
  s[AUDIT_TENSOR] = tensor_seconds(&m, w, out);
  s[AUDIT_ATOMICS] = w->atomic_clocks / m.clock;
  s[AUDIT_BLOCKS] = start_seconds(&m, w);
  s[AUDIT_LATENCY] = latency_seconds(&m, w, warps, out);
  double busy = 0;
  for (int r = AUDIT_DRAM; r < AUDIT_LATENCY; r++) busy += s[r] * s[r] * s[r] * s[r];
  busy = __builtin_sqrt(__builtin_sqrt(busy));
  out->total = s[AUDIT_LAUNCH] + together(busy, s[AUDIT_LATENCY]);
  for (int r = 0; r < AUDIT_RESOURCES; r++)
    if (s[r] > s[out->bound]) out->bound = (AuditResource)r;
  out->waves = larger(w->blocks, 1) / (larger(w->blocks_per_sm, 1) * m.sms);
  return SOL_OK;
}
