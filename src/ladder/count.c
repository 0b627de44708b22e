// The hardware counters of a rung on a GPU, summed over the launches of one call. They are read after all
// times were taken: an open profiler may slow launches down.
#include "base/error.h"
#include "ladder/ladder_run.h"
#include "measure/counters.h"
#include "measure/sass.h"

typedef struct Metric {
  size_t field; // of LadderCounts that it is part of
  const char *name;
  bool optional; // not every GPU has it: the sum is then complete without it
} Metric;
#define PART(field, name)     offsetof(LadderCounts, field), name, false
#define OPTIONAL(field, name) offsetof(LadderCounts, field), name, true

// The counters that docs/memory-model.md shows to count as the emulator does.
static const Metric exact[] = {
    {PART(load_requests, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")},
    {PART(load_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")},
    {OPTIONAL(load_requests, "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum")},
    {OPTIONAL(load_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum")},
    {PART(store_requests, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")},
    {PART(store_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")},
    {PART(atomic_requests, "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum")},
    {PART(atomic_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum")},
    {PART(atomic_requests, "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum")},
    {PART(atomic_sectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum")},
    {PART(local_requests, "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum")},
    {PART(local_sectors, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum")},
    {PART(local_requests, "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum")},
    {PART(local_sectors, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum")},
};
static const Metric waves[] = {
    {PART(wavefronts, "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared")},
};
static const Metric dram[] = {
    {PART(dram_read, "dram__bytes_read.sum")},
    {PART(dram_write, "dram__bytes_write.sum")},
};
enum { MOST_METRICS = SOL_COUNT(exact) };

static const Metric *metrics_of(LadderCounted what, int *count) {
  if (what == LADDER_EXACT) return *count = (int)SOL_COUNT(exact), exact;
  if (what == LADDER_WAVES) return *count = (int)SOL_COUNT(waves), waves;
  return *count = (int)SOL_COUNT(dram), dram;
}

SolStatus ladder_counters_open(LadderCounters *c, LadderSession *s, LadderCounted what, SolError *err) {
  const char *names[MOST_METRICS];
  int count;
  const Metric *metrics = metrics_of(what, &count);
  *c = (LadderCounters){.what = what};
  for (int i = 0; i < count; i++) names[i] = metrics[i].name;
  if (what == LADDER_WAVES) return sass_open(s->ctx->device, names, count, &c->patched, err);
  CountersOptions options = {.metrics = names, .metric_count = count, .ranges = true};
  return counters_open(&options, &c->hardware, NULL, err);
}

void ladder_counters_close(LadderCounters *c) {
  counters_close(c->hardware);
  sass_close(c->patched);
  *c = (LadderCounters){0};
}

typedef struct Calls {
  LadderRun *run;
  const LadderRung *rung;
  int set;
} Calls;

static SolStatus one_call(Calls *t, SolError *err) {
  LadderCall call = ladder_call(t->run, t->rung, t->set, NULL);
  t->set = (t->set + 1) % t->run->sets;
  return ladder_enqueue(&call, err);
}

static SolStatus counted(void *ctx, SolError *err) {
  return one_call(ctx, err);
}

static SolStatus counted_first(void *ctx, SolError *err) { // on set 0: exact counts may depend on the data
  Calls *t = ctx;
  t->set = 0;
  SolStatus status = one_call(t, err);
  return status ? status : sol_driver_sync(t->run->session->ctx->driver, err);
}

SolStatus ladder_count(LadderRun *run, const LadderRung *rung, LadderCounters *c, LadderCounts *into,
                       SolError *err) {
  int count;
  const Metric *metrics = metrics_of(c->what, &count);
  double values[MOST_METRICS] = {0};
  Calls calls = {run, rung, 0};
  SolStatus status = ladder_data_reset(run, err);
  // L2 holds what earlier calls left in it, as it does when times are taken.
  for (int i = 0; i < run->sets && !status && c->what == LADDER_DRAM; i++) status = one_call(&calls, err);
  if (!status) status = sol_driver_sync(run->session->ctx->driver, err);
  if (!status && c->patched) status = sass_range(c->patched, counted_first, &calls, values, err);
  if (!status && c->hardware)
    status =
        counters_range(c->hardware, c->what == LADDER_EXACT ? counted_first : counted, &calls, values, err);
  if (status) return status;
  for (int i = 0; i < count; i++) *(double *)(void *)((char *)into + metrics[i].field) = 0;
  for (int i = 0; i < count; i++) {
    double *sum = (double *)(void *)((char *)into + metrics[i].field);
    bool lacks = c->hardware && !counters_has(c->hardware, i);
    if (!lacks || !metrics[i].optional) *sum += lacks ? __builtin_nan("") : values[i];
  }
  return SOL_OK;
}
