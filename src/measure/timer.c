#include "measure/timer.h"

#include <unistd.h>

#include "base/error.h"
#include "base/heap.h"

enum {
  ROUNDS = 21,
  QUICK_ROUNDS = 11,
  MOST_CALLS = 2048, // in one graph
  HOST_CALLS = 64,
  HOST_ROUNDS = 7
};
static const double sample_us =
    1000;                           // a sample lasts at least that long, so that its two events do not count
static const double warm_us = 6000; // what runs before the first sample: clocks have come up by then
static const double empty_call_us = 1; // no call is faster than about that
static const double mb = 1e6;

// ---- the GPU ----

typedef struct Plan {
  int sets, calls, graphs, warm; // calls: of one graph
} Plan;

// One graph where it visits every set; several, each with its own sets, where sets are small and many.
static Plan plan_of(const Timer *t, const Sets *s) {
  double us = empty_call_us + s->bytes / 5e6; // at 5 TB/s: rather too short, the samples come out longer
  double sets = s->bytes > 0 ? __builtin_ceil(t->footprint / s->bytes) : 1;
  Plan p = {.warm = 2};
  double calls = __builtin_ceil(sample_us / us);
  p.calls = calls > MOST_CALLS ? MOST_CALLS : (int)calls;
  double warm = __builtin_ceil(warm_us / (p.calls * us));
  p.warm = warm < 2 ? 2 : (int)warm;
  double most = (double)p.calls * (t->rounds + p.warm);
  p.sets = sets < 3 ? 3 : sets > most ? (int)most : (int)sets;
  p.graphs = (p.sets + p.calls - 1) / p.calls;
  if (p.graphs > 1)
    p.calls = (p.sets + p.graphs - 1) / p.graphs, p.sets = p.calls * p.graphs;
  else
    p.calls = (p.calls + p.sets - 1) / p.sets * p.sets;
  return p;
}

static SolStatus call_set(const Sets *s, int set, SolStream stream, SolError *err) {
  _Alignas(16) unsigned char args[sizeof s->args];
  sets_args(s, set, args);
  SolStatus status = ops_call(s->ctx, s->def, args, stream);
  if (status && err) *err = *sol_last_error();
  return status;
}

static SolStatus record_graph(Timer *t, const Sets *s, const Plan *p, int g, SolDriverGraph **out,
                              SolError *err) {
  SolStatus status = sol_driver_record(t->ctx->driver, t->stream, err);
  if (status) return status;
  for (int i = 0; i < p->calls && !status; i++)
    status = call_set(s, (g * p->calls + i) % s->count, t->stream, err);
  SolStatus ended = sol_driver_recorded(t->ctx->driver, t->stream, status ? NULL : out, status ? NULL : err);
  return status ? status : ended;
}

// Host time of one call: a burst that the queue has room for.
static SolStatus host_time(Timer *t, const Sets *s, double *us, SolError *err) {
  double samples[HOST_ROUNDS];
  SolStatus status = SOL_OK;
  for (int r = -1; r < HOST_ROUNDS && !status; r++) {
    double start = sol_thread_clock();
    for (int i = 0; i < HOST_CALLS && !status; i++) status = call_set(s, i % s->count, t->stream, err);
    double each = (sol_thread_clock() - start) * 1e6 / HOST_CALLS;
    if (r >= 0) samples[r] = each;
    if (!status) status = sol_context_sync(t->ctx, err);
  }
  *us = stats_of(samples, HOST_ROUNDS).median;
  return status;
}

static SolStatus time_gpu(Timer *t, Sets *s, Timing *out, SolError *err) {
  Plan p = plan_of(t, s);
  double seconds[ROUNDS];
  SolDriverGraph **graphs = sol_heap_alloc(sizeof *graphs * (size_t)p.graphs);
  if (!graphs) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memset(graphs, 0, sizeof *graphs * (size_t)p.graphs);
  SolStatus status = sets_open(s, p.sets, (uint64_t)p.sets * 7919, err);
  for (int g = 0; g < p.graphs && !status; g++) status = record_graph(t, s, &p, g, &graphs[g], err);
  if (!status)
    status = sol_driver_replay(t->ctx->driver, graphs, p.graphs, p.warm, t->rounds, t->stream, seconds, err);
  for (int g = 0; g < p.graphs; g++) sol_driver_graph_free(t->ctx->driver, graphs[g]);
  sol_heap_free(graphs);
  if (!status && !t->device_only) {
    status = host_time(t, s, &out->host_us, err);
    out->host_over_us = out->host_us - t->launch_us;
  }
  if (status) return status;
  for (int i = 0; i < t->rounds; i++) seconds[i] *= 1e6 / p.calls;
  out->us = stats_of(seconds, t->rounds);
  out->calls = p.calls;
  return SOL_OK;
}

// ---- anything on the GPU ----

static SolStatus record_calls(Timer *t, TimerCall *call, void *ctx, int sets, int calls, SolDriverGraph **out,
                              SolError *err) {
  SolStatus status = sol_driver_record(t->ctx->driver, t->stream, err);
  if (status) return status;
  for (int i = 0; i < calls && !status; i++) status = call(ctx, i % sets, t->stream, err);
  SolStatus ended = sol_driver_recorded(t->ctx->driver, t->stream, status ? NULL : out, status ? NULL : err);
  return status ? status : ended;
}

static SolStatus replay_calls(Timer *t, TimerCall *call, void *ctx, int sets, int calls, int warm, int rounds,
                              double *seconds, SolError *err) {
  SolDriverGraph *graph = NULL;
  SolStatus status = record_calls(t, call, ctx, sets, calls, &graph, err);
  if (!status) status = sol_driver_replay(t->ctx->driver, &graph, 1, warm, rounds, t->stream, seconds, err);
  sol_driver_graph_free(t->ctx->driver, graph);
  return status;
}

static SolStatus stream_calls(Timer *t, TimerCall *call, void *ctx, int sets, int calls, double *seconds,
                              SolError *err) {
  SolStatus status = sol_driver_sync(t->ctx->driver, err);
  double start = sol_thread_clock();
  for (int i = 0; i < calls && !status; i++) status = call(ctx, i % sets, t->stream, err);
  if (!status) status = sol_driver_sync(t->ctx->driver, err);
  *seconds = sol_thread_clock() - start;
  return status;
}

// Whole turns of all sets, of at least `us` microseconds in all.
static int calls_for(double us, double each_us, int sets) {
  double calls = us / (each_us > empty_call_us ? each_us : empty_call_us);
  double turns = __builtin_ceil((calls > MOST_CALLS ? MOST_CALLS : calls) / sets);
  return (turns < 1 ? 1 : (int)turns) * sets;
}

SolStatus timer_calls(Timer *t, TimerCall *call, void *ctx, int sets, bool streamed, Timing *out,
                      SolError *err) {
  enum { LONG = 10000, LONG_ROUNDS = 7, LONGER = 50000, LONGER_ROUNDS = 3 }; // microseconds a call
  static const double stream_us = 5000; // the wait at the end, tens of microseconds, does not count
  double seconds[ROUNDS] = {0};
  *out = (Timing){.sets = sets};
  // One round shows how long calls take; the number of calls in a sample follows from that.
  SolStatus status = streamed ? stream_calls(t, call, ctx, sets, sets, seconds, err)
                              : replay_calls(t, call, ctx, sets, sets, 1, 1, seconds, err);
  if (status) return status;
  double each = seconds[0] * 1e6 / sets;
  int rounds = each > LONGER ? LONGER_ROUNDS : each > LONG ? LONG_ROUNDS : t->rounds;
  out->calls = calls_for(streamed ? stream_us : sample_us, each, sets);
  double warm = __builtin_ceil(warm_us / (out->calls * (each > empty_call_us ? each : empty_call_us)));
  if (streamed) {
    double ignored;
    status = stream_calls(t, call, ctx, sets, out->calls, &ignored, err);
    for (int r = 0; r < rounds && !status; r++)
      status = stream_calls(t, call, ctx, sets, out->calls, &seconds[r], err);
  } else
    status = replay_calls(t, call, ctx, sets, out->calls, warm < 1 ? 1 : (int)warm, rounds, seconds, err);
  for (int i = 0; i < rounds; i++) seconds[i] *= 1e6 / out->calls;
  if (!status) out->us = stats_of(seconds, rounds);
  return status;
}

// A kernel that does nothing, with as many parameters as a real one: what the driver itself takes to launch.
static const char empty_kernel[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                   ".visible .entry sol_empty(.param .align 8 .b8 p[64]) { ret; }\n";

static SolStatus empty_launch(Timer *t, SolError *err) {
  SolPtxSource source = {"empty", empty_kernel, sizeof empty_kernel - 1};
  SolDriverModule *module;
  SolDriverKernel *kernel;
  SolStatus status = sol_driver_load(t->ctx->driver, &source, 1, &module, err);
  if (!status) status = sol_driver_kernel(module, "sol_empty", &kernel, err);
  static const uint64_t params[8] = {0};
  double samples[HOST_ROUNDS];
  for (int r = -1; r < HOST_ROUNDS && !status; r++) {
    SolDriverLaunch launch = {.kernel = kernel,
                              .grid = {1, 1, 1},
                              .block = {32, 1, 1},
                              .params = params,
                              .param_bytes = sizeof params};
    double start = sol_thread_clock();
    for (int i = 0; i < HOST_CALLS && !status; i++)
      status = sol_driver_enqueue(t->ctx->driver, &launch, t->stream, err);
    double each = (sol_thread_clock() - start) * 1e6 / HOST_CALLS;
    if (r >= 0) samples[r] = each;
    if (!status) status = sol_context_sync(t->ctx, err);
  }
  if (!status) t->launch_us = stats_of(samples, HOST_ROUNDS).median;
  return status;
}

// ---- the CPU ----

static double memory_here(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (double)pages * (double)size : 0;
}

static SolStatus run_calls(const Sets *s, int *next, int calls, double *us, SolError *err) {
  double start = sol_thread_clock();
  SolStatus status = SOL_OK;
  for (int i = 0; i < calls && !status; i++) {
    status = call_set(s, *next, NULL, err);
    *next = (*next + 1) % s->count;
  }
  *us = (sol_thread_clock() - start) * 1e6 / calls;
  return status;
}

static SolStatus time_cpu(Timer *t, Sets *s, Timing *out, SolError *err) {
  double want = s->bytes > 0 ? __builtin_ceil(t->footprint / s->bytes) : 1;
  int sets = want < 2 ? 2 : want > 4096 ? 4096 : (int)want, next = 0, calls;
  double needs = sets_memory(s, sets), has = memory_here(), us;
  if (has > 0 && needs > has / 2)
    return sol_fail(err, SOL_ERR_NO_SPACE, "needs %.1f GB, more than half of this machine's memory",
                    needs / 1e9);
  SolStatus status = sets_open(s, sets, (uint64_t)sets * 7919, err);
  if (!status) status = run_calls(s, &next, 1, &us, err); // pages are there, threads awake
  if (!status) status = run_calls(s, &next, 1, &us, err);
  if (status) return status;
  calls = us >= sample_us ? 1 : (int)(sample_us / (us > 0.01 ? us : 0.01)) + 1;
  double samples[ROUNDS];
  int rounds = us < 5e4 ? t->rounds : us < 5e5 ? 5 : 3;
  for (int r = 0; r < rounds && !status; r++) status = run_calls(s, &next, calls, &samples[r], err);
  out->us = stats_of(samples, rounds);
  out->calls = calls;
  return status;
}

// ---- both ----

SolStatus timer_open(Timer *t, SolContext *ctx, bool quick, SolError *err) {
  *t = (Timer){.ctx = ctx, .rounds = quick ? QUICK_ROUNDS : ROUNDS, .footprint = 256 * mb};
  if (!ctx->driver) return SOL_OK;
  SolStatus status = sol_driver_info(ctx->driver, &t->info, err);
  if (!status) status = sol_driver_stream_open(ctx->driver, &t->stream, err);
  double three = 3.0 * (double)t->info.l2_bytes;
  t->footprint = three > 400 * mb ? three : 400 * mb;
  return status ? status : empty_launch(t, err);
}

void timer_close(Timer *t) {
  if (t->ctx && t->ctx->driver) sol_driver_stream_close(t->ctx->driver, t->stream);
  *t = (Timer){0};
}

SolStatus timer_time(Timer *t, const OpsDef *def, const OpsCase *c, int misalign, Timing *out,
                     SolError *err) {
  Sets s;
  *out = (Timing){0};
  SolStatus status = sets_plan(&s, t->ctx, def, c, misalign, err);
  if (!status) status = t->ctx->driver ? time_gpu(t, &s, out, err) : time_cpu(t, &s, out, err);
  out->cost = s.cost;
  out->sets = s.count;
  out->footprint = s.bytes * s.count;
  sets_close(&s);
  return status;
}
