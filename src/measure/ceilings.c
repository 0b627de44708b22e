// The ceilings of a GPU. Times are those of graphs replayed between events; clocks are the kernels' own. A
// ceiling is the best of the ways tried, each the median of its rounds.
#include "measure/ceilings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/threads.h"
#include "measure/ceilings_run.h"
#include "measure/stats.h"

enum { ROUNDS = 11, WARM = 3, LAUNCHES = 1000, STREAM_LAUNCHES = 2000, CHASE_STEPS = 4096 };
#define MiB 1048576.0

static void keep(Ceilings *c, Ceiling which, Stats s) {
  if (!(s.median > 0) || s.median <= c->values[which]) return;
  c->values[which] = s.median;
  c->spreads[which] = s.spread;
}

// ---- times ----

// `count` launches in a graph, replayed; seconds of one launch into samples[ROUNDS].
static SolStatus time_graph(CeilingRun *r, const SolDriverLaunch *launch, int count, double *samples,
                            SolError *err) {
  SolDriverGraph *graph = NULL;
  SolStatus status = sol_driver_record(r->driver, r->stream, err);
  if (status) return status;
  for (int i = 0; i < count && !status; i++) status = sol_driver_enqueue(r->driver, launch, r->stream, err);
  SolStatus ended = sol_driver_recorded(r->driver, r->stream, status ? NULL : &graph, status ? NULL : err);
  if (!status) status = ended;
  if (!status) status = sol_driver_replay(r->driver, &graph, 1, WARM, ROUNDS, r->stream, samples, err);
  sol_driver_graph_free(r->driver, graph);
  for (int i = 0; i < ROUNDS && !status; i++) samples[i] /= count;
  return status;
}

// What a launch does `amount` of, a second.
static SolStatus rate(CeilingRun *r, const SolDriverLaunch *launch, int count, double amount, Ceiling which,
                      SolError *err) {
  double samples[ROUNDS];
  SolStatus status = time_graph(r, launch, count, samples, err);
  for (int i = 0; i < ROUNDS && !status; i++) samples[i] = samples[i] > 0 ? amount / samples[i] : 0;
  if (!status) keep(r->out, which, stats_of(samples, ROUNDS));
  return status;
}

// ---- memory ----

typedef struct Way {
  CeilingKernel once, staying; // one access a thread; a grid that stays
  Ceiling memory, l2;
  int moved; // bytes moved for each of the buffer's
} Way;
static const Way ways[] = {{CEILING_READ_ONCE, CEILING_READ, CEILING_dram_read, CEILING_l2_read, 1},
                           {CEILING_WRITE_ONCE, CEILING_WRITE, CEILING_dram_write, CEILING_l2_write, 1},
                           {CEILING_COPY_ONCE, CEILING_COPY, CEILING_dram_copy, CEILING_l2_copy, 2}};

static SolStatus measure_memory(CeilingRun *r, const Way *way, SolError *err) {
  SolDriverLaunch launch;
  CeilingStream p = {.in = r->in, .out = r->buffer, .n = r->bytes / 16, .repeat = 1};
  double bytes = (double)r->bytes * way->moved;
  ceiling_launch_stream(r, way->once, &p, (p.n + CEILING_BLOCK - 1) / CEILING_BLOCK, &launch);
  SolStatus status = rate(r, &launch, 1, bytes, way->memory, err);
  for (int blocks = 4; blocks <= 8 && !status; blocks *= 2) {
    ceiling_launch_stream(r, way->staying, &p, (uint64_t)(r->info.sms * blocks), &launch);
    status = rate(r, &launch, 1, bytes, way->memory, err);
  }
  return status;
}

// What fits L2 several times over, walked often enough for 2 ms or so.
static SolStatus measure_l2(CeilingRun *r, const Way *way, SolError *err) {
  static const double shares[] = {8, 5, 3};
  SolStatus status = SOL_OK;
  for (size_t i = 0; i < SOL_COUNT(shares) && r->info.l2_bytes && !status; i++)
    for (int blocks = 4; blocks <= 8 && !status; blocks *= 2) {
      uint64_t bytes = (uint64_t)((double)r->info.l2_bytes / shares[i]) / (uint64_t)way->moved / 4096 * 4096;
      if (!bytes || bytes > r->bytes) continue;
      CeilingStream p = {.in = r->in, .out = r->buffer, .n = bytes / 16};
      p.repeat = (uint32_t)(12e9 / (double)bytes) + 1;
      SolDriverLaunch launch;
      ceiling_launch_stream(r, way->staying, &p, (uint64_t)(r->info.sms * blocks), &launch);
      status = rate(r, &launch, 1, (double)bytes * p.repeat * way->moved, way->l2, err);
    }
  return status;
}

// ---- the SMs ----

static SolStatus measure_arithmetic(CeilingRun *r, SolError *err) {
  SolStatus status = SOL_OK;
  for (int blocks = 4; blocks <= 8 && !status; blocks *= 2) {
    double threads = (double)r->info.sms * blocks * CEILING_BLOCK;
    SolDriverLaunch launch;
    CeilingWork p = {.out = r->buffer, .clocks = r->clocks, .steps = 40000, .scale = 0.999f, .add = 0.001f};
    ceiling_launch_work(r, CEILING_FMA, &p, (uint32_t)(r->info.sms * blocks), CEILING_BLOCK, &launch);
    status = rate(r, &launch, 1, threads * p.steps * CEILING_FMA_CHAINS * 2, CEILING_fp32, err);
    if (status) break;
    CeilingWork q = {.out = r->buffer, .clocks = r->clocks, .steps = 20000, .scale = 1};
    ceiling_launch_work(r, CEILING_MMA, &q, (uint32_t)(r->info.sms * blocks), CEILING_BLOCK, &launch);
    status = rate(r, &launch, 1, threads / 32 * q.steps * CEILING_MMA_CHAINS * ceiling_mma_flops(r),
                  CEILING_tensor, err);
  }
  return status;
}

// Bytes a clock of one SM, by its own clock; with a block on every SM, bytes a second of all.
static SolStatus measure_shared(CeilingRun *r, SolError *err) {
  double per_clock[ROUNDS] = {0}, hertz[ROUNDS] = {0}, all[ROUNDS] = {0};
  CeilingWork p = {.out = r->buffer, .clocks = r->clocks, .steps = 65536};
  double bytes = (double)p.steps * CEILING_SHARED_THREADS * 16;
  SolStatus status = SOL_OK;
  for (int i = -WARM; i < ROUNDS && !status; i++) {
    uint64_t clocks[4] = {0};
    SolDriverLaunch launch;
    ceiling_launch_work(r, CEILING_SHARED, &p, (uint32_t)r->info.sms, CEILING_SHARED_THREADS, &launch);
    status = sol_driver_launch(r->driver, &launch, NULL, NULL, err);
    if (!status) status = sol_driver_read(r->driver, clocks, r->clocks, sizeof clocks, err);
    if (status || i < 0 || !clocks[0]) continue;
    per_clock[i] = bytes / (double)clocks[0];
    hertz[i] = clocks[1] ? (double)clocks[0] / ((double)clocks[1] * 1e-9) : 0;
    all[i] = per_clock[i] * hertz[i] * r->info.sms;
  }
  if (status) return status;
  keep(r->out, CEILING_shared_clock, stats_of(per_clock, ROUNDS));
  keep(r->out, CEILING_clock, stats_of(hertz, ROUNDS));
  keep(r->out, CEILING_shared_read, stats_of(all, ROUNDS));
  return SOL_OK;
}

// ---- launches ----

static SolStatus measure_launches(CeilingRun *r, SolError *err) {
  double samples[ROUNDS];
  CeilingWork p = {.clocks = r->clocks};
  SolDriverLaunch launch;
  ceiling_launch_work(r, CEILING_LEAST, &p, 1, 32, &launch);
  SolStatus status = SOL_OK;
  for (int i = -1; i < ROUNDS && !status; i++) {
    double start = sol_thread_clock();
    for (int k = 0; k < STREAM_LAUNCHES && !status; k++)
      status = sol_driver_enqueue(r->driver, &launch, r->stream, err);
    if (!status) status = sol_driver_sync(r->driver, err);
    if (i >= 0) samples[i] = (sol_thread_clock() - start) * 1e6 / STREAM_LAUNCHES;
  }
  if (!status) keep(r->out, CEILING_launch_us, stats_of(samples, ROUNDS));
  if (!status) status = time_graph(r, &launch, LAUNCHES, samples, err);
  for (int i = 0; i < ROUNDS && !status; i++) samples[i] *= 1e6;
  if (!status) keep(r->out, CEILING_graph_us, stats_of(samples, ROUNDS));
  if (status || r->info.cc < 90) return status;
  ceiling_launch_work(r, CEILING_EARLY, &p, 1, 32, &launch);
  launch.early = true;
  if (time_graph(r, &launch, LAUNCHES, samples, NULL)) return SOL_OK; // an old driver cannot record them
  for (int i = 0; i < ROUNDS; i++) samples[i] *= 1e6;
  keep(r->out, CEILING_early_us, stats_of(samples, ROUNDS));
  return SOL_OK;
}

// ---- latencies ----

static SolStatus chase(CeilingRun *r, CeilingKernel kernel, uint32_t warm, Ceiling which, SolError *err) {
  double samples[ROUNDS];
  CeilingWork p = {.in = r->in, .clocks = r->clocks, .warm = warm, .steps = CHASE_STEPS};
  SolDriverLaunch launch;
  uint64_t clocks[4] = {0};
  ceiling_launch_work(r, kernel, &p, 1, 1, &launch);
  SolStatus status = sol_driver_write(r->driver, r->clocks, clocks, sizeof clocks, err);
  for (int i = -WARM; i < ROUNDS && !status; i++) {
    status = sol_driver_launch(r->driver, &launch, NULL, NULL, err);
    if (!status) status = sol_driver_read(r->driver, clocks, r->clocks, sizeof clocks, err);
    if (i >= 0) samples[i] = (double)clocks[0] / CHASE_STEPS;
  }
  if (!status) keep(r->out, which, stats_of(samples, ROUNDS));
  return status;
}

static SolStatus measure_latencies(CeilingRun *r, SolError *err) {
  double most = (double)r->bytes, l2 = (double)r->info.l2_bytes;
  double far = most < 1024 * MiB ? most : 1024 * MiB, near = l2 > 0 && l2 / 8 < 4 * MiB ? l2 / 8 : 4 * MiB;
  SolStatus status = chase(r, CEILING_CHASE_SHARED, 0, CEILING_shared_latency, err);
  if (!status) status = ceiling_chain(r, (uint64_t)(32 * 1024), err);
  if (!status) status = chase(r, CEILING_CHASE_L1, 256, CEILING_l1_latency, err);
  if (!status) status = ceiling_chain(r, (uint64_t)near, err);
  if (!status) status = chase(r, CEILING_CHASE_L2, (uint32_t)(near / 128), CEILING_l2_latency, err);
  // Far larger than L2, and no line is read twice: WARM + ROUNDS chases visit fewer lines than there are.
  if (!status && far > 4 * l2 && far / 128 > (WARM + ROUNDS) * (CHASE_STEPS + 64.0)) {
    status = ceiling_chain(r, (uint64_t)far, err);
    if (!status) status = chase(r, CEILING_CHASE_L2, 64, CEILING_dram_latency, err);
  }
  return status;
}

// ---- all ----

static SolStatus measure_all(CeilingRun *r, SolError *err) {
  SolStatus status = measure_memory(r, &ways[2], err); // once for nothing: the clocks come up
  for (int i = 0; i < CEILINGS; i++) r->out->values[i] = r->out->spreads[i] = __builtin_nan("");
  for (size_t i = 0; i < SOL_COUNT(ways) && !status; i++) status = measure_memory(r, &ways[i], err);
  for (size_t i = 0; i < SOL_COUNT(ways) && !status; i++) status = measure_l2(r, &ways[i], err);
  if (!status) status = measure_arithmetic(r, err);
  if (!status) status = measure_shared(r, err);
  if (!status) status = measure_launches(r, err);
  if (!status) status = measure_latencies(r, err);
  return status;
}

SolStatus ceilings_measure(SolDriver *driver, uint64_t bytes, Ceilings *out, SolError *err) {
  CeilingRun r;
  double start = sol_thread_clock();
  ceilings_clear(out);
  if (sol_driver_emu(driver))
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the emulator has no times: there is nothing to measure");
  SolStatus status = ceiling_open(&r, driver, bytes ? bytes : 2048ull << 20, err);
  r.out = out;
  if (!status) status = sol_driver_stream_open(driver, &r.stream, err);
  if (!status) status = measure_all(&r, err);
  sol_format(out->name, sizeof out->name, "%s", r.info.name);
  sol_format(out->uuid, sizeof out->uuid, "%s", r.info.uuid);
  sol_format(out->driver, sizeof out->driver, "%s", r.info.driver);
  out->units = r.info.sms;
  out->seconds = sol_thread_clock() - start;
  if (r.stream) sol_driver_stream_close(driver, r.stream);
  ceiling_close(&r);
  return status;
}
