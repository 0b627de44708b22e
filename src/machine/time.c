// The time model. The same model for every kernel; no constant is fitted to one kernel. Names of constants are those of
// machine.def. Assumptions, each with a test in tests/test_machine.c:
//
//  1. Time is the launch overhead plus busy and waiting time. Resources overlap, but not perfectly: their times
//     combine as the fourth root of the sum of fourth powers, so that the busiest dominates, and two equally
//     busy ones take 19% longer than one. Waiting overlaps with busy time as sqrt(busy^2 + wait^2). With the
//     H200's latency of 689 clocks that gives 97% of its bandwidth at 48 KiB in flight per SM, as measured.
//  2. DRAM serves reads and writes at copy_share of the published bandwidth, which a plain copy reaches.
//     Scattered reads reach scatter_share of that: each opens a DRAM row of its own.
//  3. L2 gives its measured bandwidth to all SMs together; one SM receives at most l2_fill_bytes a clock, l2_few_bytes where half of them have no block, in at
//     most l2_read_rate requests, each for sectors of one line; by bulk and tensor copies bulk_fill_bytes. L2 accepts l2_packet_rate a clock and SM from stores,
//     from whichever SMs they come, and l2_atomic_rate sectors of atomics, less where several lanes share them. Reads and writes overlap as busy time and waiting do.
//  4. L1 and shared memory share one pipe of an SM: one wavefront of 128 bytes a clock, or half where the device's
//     shared memory is half as wide.
//  5. An SM issues 4 warp instructions a clock; pipes have the rates of the CUDA guide's table of
//     arithmetic throughput (fp32, fp64 and tensor: of the published peaks). PTX instructions are counted as
//     machine instructions, except moves, parameter loads and address conversions, which ptxas removes.
//  6. The busiest SM has ceil(blocks / SMs) of equal blocks, and the work of SMs takes as long as on that one. Where
//     blocks differ, the emulator says how much more it has, and how much later the last block ends. DRAM and L2 are shared by all SMs; but the blocks of a tail wave move their
//     bytes no faster than their own SMs can, l2_fill_bytes a clock.
//  7. A warp's critical path is its waits for loads, each with the latency of the memory that serves it, for
//     shared memory, barriers and fences, and issue_clocks per instruction; a block takes block_clocks to
//     start and end. Resident blocks wait at the same time; waves wait one after another. An SM holds at most
//     cluster_blocks blocks of clusters.
//  8. A launch costs the device's published figure, in a stream or in a graph; early_share of that with
//     programmatic dependent launch. The figure was measured with a kernel of one block that waits for L2
//     once, so neither is counted again. Of that cost kernel_start_us lie within the kernel's own duration, as
//     ncu and nsys show it; the rest is the gap before it.
//  9. The GPU starts a block in start_clocks; a cluster takes the time of cluster_starts blocks more.
//     Blocks that wait or work do not keep others from being started: both overlap nearly wholly, as the eighth root of the sum of eighth powers.
// 10. All tensor cores together reach tensor_share of their peak, those of an SM alone the peak. Where a block that uses them was replayed (replay.c), which has
//     how units overlap, the busiest resource counts alone; what the block's life is longer comes after it, as far as no other
//     resident block uses it.
// 11. Atomics to the same memory are serialised: see audit/work.c.
// 12. A compare-and-swap that changes a word makes those of all others that wait there fail: they have to come again. So one
//     succeeds every swap_clocks, or, where more lanes wait than are served in that time, at this word or by all of L2, once each of
//     them had a turn; a lock no sooner than it is given back. Lanes that swap only what is better than the word they read all read it before the
//     first has changed it, if they are resident: each tries guarded_tries times. Where warps come more seldom than that, because of whatever else they do, none waits.
// 13. Mapped memory of the host gives and takes host_share of the link's bandwidth, beside everything else; atomics on it are performed one after
//     another, host_atomic_clocks each.
// 14. Instructions that an SM executes for the first time in a launch take cold_clocks longer each, and all its warps wait for them. Of code
//     beyond code_bytes each execution is such a one: audit/scoreboards.c. Where a block was replayed its start was measured with that.
// 15. Managed pages that the device does not have move to it as they are touched, by blocks, groups and pages, beside nothing else.
#include "machine/work.h"

#include "base/error.h"

const char *machine_resource_name(MachineResource resource) {
  static const char *const names[] = {
      "launches",     "DRAM bandwidth", "L2 bandwidth",    "L1 and shared memory", "instructions",
      "tensor cores", "atomics",        "starting blocks", "waiting (latency)"};
  _Static_assert(SOL_COUNT(names) == MACHINE_RESOURCES, "a name for each");
  return (unsigned)resource < MACHINE_RESOURCES ? names[resource] : "?";
}

const char *machine_resource_key(MachineResource resource) {
  static const char *const keys[] = {"launch", "dram",    "l2",     "l1",     "issue",
                                     "tensor", "atomics", "blocks", "latency"};
  _Static_assert(SOL_COUNT(keys) == MACHINE_RESOURCES, "a key for each");
  return (unsigned)resource < MACHINE_RESOURCES ? keys[resource] : "?";
}

enum { SCHEDULERS = 4, LINE_BYTES = 128 }; // of an SM; of L2

// Combines times that overlap, but not perfectly.
static double together(double a, double b) {
  return __builtin_sqrt(a * a + b * b);
}

// Of one thing behind another, to which some warps come earlier than others: a part of the shorter one overlaps.
static double behind(const MachineModel *m, double a, double b) {
  return a + b - m->end_overlap * (a < b ? a : b);
}

// The same of several resources: the busiest dominates.
static double combined(const double *seconds, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += seconds[i] * seconds[i] * seconds[i] * seconds[i];
  return __builtin_sqrt(__builtin_sqrt(sum));
}

// Of units that take nothing from each other, as what starts blocks and what runs them: the longer one, and little more.
static double beside(const double *seconds, size_t count) {
  double squares[4];
  for (size_t i = 0; i < count; i++) squares[i] = seconds[i] * seconds[i];
  return __builtin_sqrt(combined(squares, count));
}

// What a launch costs, in us.
static double stream_us(const MachineModel *m) {
  return m->device->launch_us.value;
}
static double graph_us(const MachineModel *m) {
  SolFigure us = m->device->graph_launch_us;
  return sol_known(us) ? us.value : stream_us(m);
}

static double launch_seconds(const MachineModel *m, double launches, double graph_launches) {
  return ((launches - graph_launches) * stream_us(m) + graph_launches * graph_us(m)) * 1e-6;
}

static double work_launch_seconds(const MachineModel *m, const MachineWork *w) {
  double all = launch_seconds(m, w->launches, w->graph_launches);
  return all * (1 - w->early_launches / w->launches * (1 - m->early_share));
}

// Of a launch that costs so much, before the kernel's own duration, in us; `early`: the part of launches that
// start while their predecessor runs.
static double gap_us(const MachineModel *m, double cost, double early) {
  return sol_larger(cost - m->kernel_start_us, 0) * (1 - early) +
         sol_larger(cost * m->early_share - m->kernel_start_us, 0) * early;
}

static double gap_seconds(const MachineModel *m, const MachineWork *w) {
  double early = w->early_launches / w->launches;
  return ((w->launches - w->graph_launches) * gap_us(m, stream_us(m), early) +
          w->graph_launches * gap_us(m, graph_us(m), early)) *
         1e-6;
}

double machine_copy_rate(const MachineModel *m) {
  const SolDevice *d = m->device;
  return sol_known(d->mem_copy) ? d->mem_copy.value : d->mem_bandwidth.value * m->copy_share;
}

double machine_light(const MachineModel *m, double bytes, double launches, double graph_launches) {
  return bytes / machine_copy_rate(m) + launch_seconds(m, launches, graph_launches);
}

// How one launch of the work is distributed over the SMs.
typedef struct Spread {
  const MachineModel *model;
  const SolDevice *d;
  double clock, sms;
  double share; // of all the SMs' work: the busiest one's; 1 / sms where blocks are many
  double turns; // in which a place for a block is taken: waves of blocks
  double waves; // that wait one after another, as long as waves of equal blocks
} Spread;

static Spread spread_of(const MachineModel *model, const MachineWork *w) {
  const SolDevice *d = model->device;
  Spread m = {model, d, d->boost_clock.value, d->sms.value, 1 / d->sms.value, 1, 1};
  double blocks = sol_larger(w->blocks, 1), slots = sol_larger(w->blocks_per_sm, 1) * m.sms;
  m.share = __builtin_ceil(blocks / m.sms) / blocks * (w->busiest > 0 ? w->busiest : 1);
  m.turns = __builtin_ceil(blocks / slots);
  m.waves = m.turns * (w->longest > 0 ? w->longest : 1);
  return m;
}

// Seconds of an amount of SM work at a rate per clock.
static double sm_seconds(const Spread *m, double work, double per_clock) {
  return work * m->share / per_clock / m->clock;
}

// Sectors that arrive at L2: L1 merges stores to adjacent addresses.
static double written_sectors(const MachineWork *w) {
  return w->l2_packets > 0 ? sol_smaller(w->l2_writes, w->l2_packets) : w->l2_writes;
}

// Clocks between L2 and an SM, of all the work.
static double fill_clocks(const MachineModel *c, const MachineWork *w, double bytes) {
  double bulk = w->l2_bulk * 32, others = (w->l2_reads + written_sectors(w) + w->l2_atomics) * 32 - bulk;
  return others / bytes + bulk / c->bulk_fill_bytes;
}

// besides: what it takes for all but its turns at atomics.
static double l2_seconds(const Spread *m, const MachineWork *w, MachineTime *out, double *besides) {
  const MachineModel *c = m->model;
  double sectors = w->l2_reads + written_sectors(w) + w->l2_atomics;
  bool few = w->blocks <= m->sms / 2;
  double fill = sm_seconds(m, fill_clocks(c, w, few ? c->l2_few_bytes : c->l2_fill_bytes), 1);
  double rate = few ? sol_larger(c->l2_few_bytes / LINE_BYTES, c->l2_read_rate) : c->l2_read_rate;
  double scattered = sol_smaller(w->l2_scattered, w->l2_requests) * (1 - rate / c->l2_scattered_rate);
  double reads = sm_seconds(m, w->l2_requests - scattered, rate),
         writes = w->l2_packets / c->l2_packet_rate / m->sms / m->clock;
  fill = sol_larger(fill, together(reads, writes));
  double atomics =
      w->l2_atomics / c->l2_atomic_rate +
      sol_larger(w->l2_atomic_lanes - w->l2_atomics - w->l2_atomic_alike, 0) * c->l2_atomic_lane_clocks +
      w->l2_atomic_alike * c->l2_atomic_alike_clocks;
  if (sol_known(m->d->l2_bandwidth))
    fill = sol_larger(sectors * 32 / m->d->l2_bandwidth.value, fill);
  else
    out->left_out |= 1u << MACHINE_L2;
  *besides = fill;
  return sol_larger(fill, atomics / m->sms / m->clock);
}

static double l1_seconds(const Spread *m, const MachineWork *w) {
  SolFigure bytes = m->d->smem_bytes_per_clock;
  double passes =
      sm_seconds(m, w->l1_wavefronts + w->shared_wavefronts, sol_known(bytes) ? bytes.value / 128 : 1);
  double textures = sm_seconds(m, w->texture_lanes, m->model->texture_rate);
  double constants = sol_larger(textures, sm_seconds(m, w->constant_turns, 1 / m->model->constant_clocks));
  return sol_larger(passes, sol_larger(constants, sm_seconds(m, w->match_turns, 1 / m->model->match_clocks)));
}

// Converts a peak in FLOP/s to warp instructions a clock and SM; flops: of one warp instruction.
static double peak_rate(const Spread *m, SolFigure peak, double flops) {
  return sol_known(peak) ? peak.value / flops / m->sms / m->clock : m->model->issue_rate;
}

// Pipes overlap with each other and with the issue slots, but not perfectly, as resources do.
static double issue_seconds(const Spread *m, const MachineWork *w) {
  const double parts[] = {sm_seconds(m, w->issues, m->model->issue_rate),
                          sm_seconds(m, w->fp32, peak_rate(m, m->d->peak_fp32, 64)),
                          sm_seconds(m, w->fp16, peak_rate(m, m->d->peak_fp16_vector, 128)),
                          sm_seconds(m, w->fp64, peak_rate(m, m->d->peak_fp64, 64)),
                          sm_seconds(m, w->integer, m->model->integer_rate),
                          sm_seconds(m, w->special, m->model->special_rate),
                          sm_seconds(m, w->convert, m->model->convert_rate)};
  return combined(parts, SOL_COUNT(parts));
}

// Of SMs that use their tensor cores at the same time, all together no more than tensor_share of the peak.
static double tensor_seconds(const Spread *m, const MachineWork *w, MachineTime *out) {
  if (w->tensor_flops <= 0) return 0;
  double blocks = sol_larger(w->blocks, 1), share = m->model->tensor_share,
         full = __builtin_floor(blocks / m->sms), rest = blocks / m->sms - full,
         turns = full / share + (rest > 0 ? sol_larger(rest / share, 1) : 0);
  if (sol_known(m->d->peak_fp16))
    return w->tensor_flops / blocks * turns * (w->busiest > 0 ? w->busiest : 1) * m->sms /
           m->d->peak_fp16.value;
  out->left_out |= 1u << MACHINE_TENSOR;
  return 0;
}

// Busy and waiting time. Where a scheduler has one warp, the time of its issue slots is part of that warp's critical path already: only
// what others issue comes beside it.
static double worked(const Spread *m, const MachineWork *w, const double *rest, double busy, double wait) {
  double blocks = sol_smaller(sol_larger(w->blocks / m->sms, 1), sol_larger(w->blocks_per_sm, 1)),
         resident = blocks * w->warps_per_block,
         others = sol_smaller(sol_larger(resident / SCHEDULERS - 1, 0), 1),
         parts[MACHINE_BLOCKS - MACHINE_DRAM];
  for (int r = MACHINE_DRAM; r < MACHINE_BLOCKS; r++)
    parts[r - MACHINE_DRAM] = r == MACHINE_ISSUE ? rest[r] * others : rest[r];
  return sol_larger(busy, together(combined(parts, SOL_COUNT(parts)), wait));
}

// Latency of all launches: the critical path of a block times the number of waves.
static double latency_seconds(const Spread *m, const MachineWork *w, double warps, MachineTime *out) {
  bool known = sol_known(m->d->mem_latency) && sol_known(m->d->smem_latency);
  if (!known) out->left_out |= 1u << MACHINE_LATENCY;
  double clocks = machine_wait_clocks(m->model, w) * (w->chain > 1 ? w->chain : 1);
  double between = m->model->block_clocks * (m->turns - 1); // however long the blocks are
  double chain = (clocks / warps * m->waves + between) * w->launches / m->clock;
  double counted = sol_known(m->d->l2_latency) ? m->d->l2_latency.value * w->launches / m->clock : 0;
  return sol_larger(chain - counted, 0);
}

// What replayed blocks wait, one wave after another, and no other resident block has work for.
static double exposed_seconds(const Spread *m, const MachineWork *w, double busy) {
  double resident = w->blocks / m->sms < w->blocks_per_sm ? w->blocks / m->sms : w->blocks_per_sm;
  double all = (w->exposed * m->waves + m->model->block_clocks * (m->turns - 1)) * w->launches / m->clock;
  return sol_larger(resident > 1 ? all - busy * (resident - 1) / resident : all, 0);
}

static double start_seconds(const Spread *m, const MachineWork *w) {
  double blocks = w->blocks * w->launches;
  double clusters = w->blocks_per_cluster > 1 ? blocks / w->blocks_per_cluster : 0;
  return (blocks + clusters * m->model->cluster_starts) * m->model->start_clocks / m->clock;
}

// The tail effect: how much longer the last wave takes than its share of DRAM's time, since its few SMs cannot
// use the whole bandwidth. What L2 has itself is in L2's time.
static double tail_seconds(const Spread *m, const MachineWork *w, double dram) {
  double slots = sol_larger(w->blocks_per_sm, 1) * m->sms,
         rest = w->blocks - __builtin_floor(w->blocks / slots) * slots;
  if (rest <= 0 || w->blocks <= 0) return 0;
  double clocks = fill_clocks(m->model, w, m->model->l2_fill_bytes) / w->blocks; // of a block, all launches
  double moved = (w->l2_reads + w->l2_writes) * 32, away = w->dram_read + w->dram_write;
  if (away < moved) clocks *= away / moved;
  double alone = clocks * __builtin_ceil(rest / m->sms) / m->clock;
  return sol_larger(alone - dram * rest / w->blocks, 0);
}

static double dram_seconds(const Spread *m, const MachineWork *w) {
  double scattered = w->dram_scattered * (1 / m->model->scatter_share - 1);
  double seconds = (w->dram_read + w->dram_write + scattered) / machine_copy_rate(m->model);
  return seconds + tail_seconds(m, w, seconds);
}

// Atomics at the end of the only wave: all its warps come to them at about the same time, and little else is left to do.
static double end_seconds(const Spread *m, const MachineWork *w) {
  return w->blocks <= sol_larger(w->blocks_per_sm, 1) * m->sms ? w->atomic_end_clocks / m->clock : 0;
}

// Of launches alike the later ones may find nothing left to swap.
static double launches_of_swaps(const MachineWork *w) {
  return w->swap_launches > 0 ? w->swap_launches : w->launches;
}

// The natural logarithm of 1 or more, for which the page has no libc: twos taken out, then the series of atanh up to 1e-8.
static double logarithm(double x) {
  enum { MOST = 1024 };
  double twos = 0;
  for (; x > 1.5 && twos < MOST; x /= 2) twos++;
  double t = (x - 1) / (x + 1), q = t * t;
  return twos * 0.6931471805599453 + 2 * t * (1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q / 9))));
}

// Lanes that swap only what is better come in no order that the emulator's, block by block, would tell: each of `lanes` that are
// resident at the same time beats those before it with one over its place, which is the logarithm of how many there are in all.
static double records_of_waves(const Spread *m, double lanes) {
  return sol_larger(m->waves, 1) * (1 + logarithm(sol_larger(lanes, 1)));
}

// Of `lanes` that wait for a word, swaps that they try behind a test. Who comes to the test one after another sets as many
// records as there are swaps: the logarithm of how many have something better than the word had at first, give or take
// its root. So no more than that many try. Of those that come over `clocks` all try that come before the first swap shows; of
// those that come while later ones do, ever fewer (bench/probe_hot.cu, raise: of lanes that come over 2000 clocks 0.05 to 0.7 try, over 10000 0.05 to 0.8, over 40000 0.01 to 0.1).
static double guarded_tries(const MachineModel *c, double records, double lanes, double clocks) {
  double better = 1, turns = sol_larger(clocks / c->swap_clocks, 1);
  for (double i = 0; i < records + 2 * __builtin_sqrt(records) && better < lanes; i++) better *= 2.718;
  return c->guarded_tries * sol_smaller(better, lanes) * (1 + logarithm(turns) / 2) / turns;
}

// `busy`: what the launches take for other things; `others`: with waiting.
static double swap_seconds(const Spread *m, const MachineWork *w, double busy, double others) {
  const MachineModel *c = m->model;
  if (w->swaps <= 0) return 0;
  double slots = sol_larger(w->blocks_per_sm, 1) * m->sms, blocks = sol_smaller(w->blocks, slots),
         words = sol_larger(w->swap_lanes / w->swaps, 1),
         active = w->swap_active > 0 && !(w->swap_guarded > 0) ? w->swap_active / w->swap_lanes : 32,
         lanes = blocks * w->warps_per_block * active / words;
  double turn = sol_larger(c->swap_turn_clocks, w->swap_sectors / w->swaps / c->l2_atomic_rate / m->sms);
  double swaps = w->swaps / launches_of_swaps(w), few = c->swap_clocks / turn;
  if (w->swap_guarded > 0) swaps = sol_smaller(swaps, records_of_waves(m, lanes));
  double most = sol_smaller(swaps, lanes), clocks = swaps * c->swap_clocks;
  if (most > few && clocks / m->clock > others / w->launches)
    clocks = few * c->swap_clocks + (most * most - few * few) / 2 * turn + (swaps - most) * most * turn;
  if (w->swap_guarded > 0) {
    // The warps of a full wave come one after another as the SM gets to them; where an SM has few they come together.
    double wave = busy * m->clock / w->launches / sol_larger(m->waves, 1),
           read = sol_smaller(lanes, w->swap_guarded / launches_of_swaps(w) / words),
           tries = guarded_tries(c, swaps, read, wave * sol_smaller(m->waves, 1));
    clocks += tries * words * w->swap_guard_clocks / w->swap_guarded;
  } else {
    // Tries of other words in the same slice of L2 come between, of each lane half as many as succeed at its word; those that fail are
    // served faster than other atomics on one word.
    double tries = w->swap_words > 0 ? w->swap_lanes / w->swap_words / 2 : 0,
           slice = w->swap_queue / launches_of_swaps(w) * tries * c->swap_turn_clocks / c->atomic_int_clocks;
    if (clocks / m->clock > others / w->launches || tries > 1) clocks = sol_larger(clocks, slice);
  }
  return sol_larger(clocks * launches_of_swaps(w), w->held_clocks) / m->clock;
}

static double page_seconds(const MachineModel *m, const MachineWork *w) {
  double groups = w->page_bytes / 65536;
  return (w->page_launches * m->page_first_us + w->page_blocks * m->page_block_us +
          groups * m->page_group_us + w->pages * m->page_us) *
         1e-6;
}

// An SM goes through the kernel's code for the first time in every launch.
static double cold_seconds(const MachineModel *m, const MachineWork *w) {
  enum { INST_BYTES = 16 };
  double most = m->code_bytes / INST_BYTES * w->launches;
  return w->replayed > 0.5 ? 0 : sol_smaller(w->code, most) * m->cold_clocks / m->device->boost_clock.value;
}

// Both directions at the same time.
static double host_seconds(const MachineModel *m, const MachineWork *w) {
  return sol_larger(w->host_read, w->host_write) / (m->host_bandwidth * m->host_share) +
         w->host_atomics * m->host_atomic_clocks / m->device->boost_clock.value;
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

SolStatus machine_time(const MachineModel *model, const MachineWork *w, MachineTime *out, SolError *err) {
  SolStatus status = check_device(model->device, err);
  if (status) return status;
  *out = (MachineTime){0};
  if (w->launches <= 0) return SOL_OK;
  Spread m = spread_of(model, w);
  double warps = sol_larger(w->launches * w->blocks * w->warps_per_block, 1), *s = out->seconds;
  s[MACHINE_LAUNCH] = work_launch_seconds(model, w);
  s[MACHINE_DRAM] = dram_seconds(&m, w);
  double l2_besides;
  s[MACHINE_L2] = l2_seconds(&m, w, out, &l2_besides);
  s[MACHINE_L1] = l1_seconds(&m, w);
  s[MACHINE_ISSUE] = issue_seconds(&m, w);
  s[MACHINE_TENSOR] = tensor_seconds(&m, w, out);
  s[MACHINE_ATOMICS] = w->atomic_clocks / m.clock;
  s[MACHINE_BLOCKS] = start_seconds(&m, w);
  s[MACHINE_LATENCY] = latency_seconds(&m, w, warps, out);
  double at_end = end_seconds(&m, w), rest[MACHINE_RESOURCES];
  for (int r = 0; r < MACHINE_RESOURCES; r++) rest[r] = s[r];
  rest[MACHINE_ATOMICS] = 0;
  // Turns of the busiest slice are among those of all of L2.
  rest[MACHINE_L2] = sol_larger(l2_besides, s[MACHINE_L2] - s[MACHINE_ATOMICS]);
  double besides = combined(rest + MACHINE_DRAM, MACHINE_BLOCKS - MACHINE_DRAM),
         swaps = swap_seconds(&m, w, besides, together(besides, s[MACHINE_LATENCY]));
  rest[MACHINE_ATOMICS] = sol_larger(s[MACHINE_ATOMICS] - at_end, swaps);
  s[MACHINE_ATOMICS] = sol_larger(s[MACHINE_ATOMICS], swaps);
  double busy = combined(rest + MACHINE_DRAM, MACHINE_BLOCKS - MACHINE_DRAM);
  out->replayed = w->replayed > 0.5;
  if (out->replayed) busy = sol_largest(rest + MACHINE_DRAM, MACHINE_BLOCKS - MACHINE_DRAM);
  if (out->replayed) s[MACHINE_LATENCY] = exposed_seconds(&m, w, busy);
  double work = out->replayed ? busy + s[MACHINE_LATENCY] : worked(&m, w, rest, busy, s[MACHINE_LATENCY]);
  const double parts[] = {work, s[MACHINE_BLOCKS], host_seconds(model, w)};
  out->pages = page_seconds(model, w);
  double alone = out->pages + cold_seconds(model, w); // beside nothing else
  out->total = s[MACHINE_LAUNCH] + behind(model, beside(parts, SOL_COUNT(parts)), at_end) + alone;
  s[MACHINE_LATENCY] = sol_larger(s[MACHINE_LATENCY], parts[2]) + alone;
  out->gap = gap_seconds(model, w);
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    if (s[r] > s[out->bound]) out->bound = (MachineResource)r;
  out->waves = sol_larger(w->blocks, 1) / (sol_larger(w->blocks_per_sm, 1) * m.sms);
  return SOL_OK;
}
