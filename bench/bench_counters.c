// Counters in this process: the library's copy of 1 MiB (or BYTES), counted launch by launch, or (range) all
// three as one. usage: bench_counters [launches|range [BYTES [more]]]; without a GPU it prints why it counts
// nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "measure/counters.h"
#include "profile/profile.h"
#include "sol/sol.h"

typedef struct Copy {
  SolContext *ctx;
  SolCopy args;
} Copy;

static SolStatus copy(Copy *c, SolError *err) {
  SolStatus status = sol_copy(c->ctx, &c->args, NULL);
  if (status && err) *err = *sol_last_error();
  return status;
}

static int fail(const char *what, const SolError *err) {
  printf("%s: %s%s%s\n", what, err->message, err->hint[0] ? "\n  " : "", err->hint);
  return err->status == SOL_ERR_UNSUPPORTED ? 0 : 1;
}

enum { LAUNCHES = 3 };
static SolStatus copies(void *ctx, SolError *err) {
  SolStatus status = SOL_OK;
  for (int i = 0; i < LAUNCHES && !status; i++) status = copy(ctx, err);
  return status;
}

int main(int argc, char **argv) {
  SolError err = {0};
  bool range = argc > 1 && strcmp(argv[1], "range") == 0, more = argc > 3;
  double bytes = argc > 2 ? atof(argv[2]) : 1 << 20;
  const char *names[PROFILE_METRICS];
  int count = 0;
  for (int i = 0; i < PROFILE_METRICS; i++)
    if (profile_metric(i)->set == PROFILE_BASIC || (more && profile_metric(i)->set == PROFILE_MORE))
      names[count++] = profile_metric(i)->name;
  Copy c = {.args = {.m = 1, .n = (int64_t)bytes / 4, .dtype = SOL_FP32}};
  if (sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CUDA}, &c.ctx, &err))
    return fail("no counters", &err);
  void *x, *y;
  if (sol_context_alloc(c.ctx, (size_t)bytes, &x, &err) || sol_context_alloc(c.ctx, (size_t)bytes, &y, &err))
    return fail("memory", &err);
  c.args.x = x, c.args.y = y;
  if (copy(&c, &err)) return fail("copy", &err);
  Counters *counters;
  CountersOptions options = {
      .metrics = names, .metric_count = count, .most_launches = LAUNCHES, .ranges = range};
  double start = sol_thread_clock();
  if (counters_open(&options, &counters, NULL, &err)) return fail("no counters", &err);
  printf("%d counters, %d passes; opened in %.0f ms\n", count, counters_passes(counters),
         (sol_thread_clock() - start) * 1e3);
  fflush(stdout);
  static double values[LAUNCHES][PROFILE_METRICS];
  int launches = 0;
  start = sol_thread_clock();
  SolStatus status = SOL_OK;
  if (range) {
    status = counters_range(counters, copies, &c, values[0], &err);
  } else {
    status = counters_start(counters, &err);
    if (!status) status = copies(&c, &err);
    if (!status) status = counters_stop(counters, &launches, &err);
    for (int i = 0; i < launches && i < LAUNCHES && !status; i++)
      status = counters_values(counters, i, values[i], &err);
  }
  if (status) return fail("counting", &err) | 1;
  printf("counted in %.1f ms\n", (sol_thread_clock() - start) * 1e3);
  for (int i = 0; i < count; i++)
    if (range)
      printf("%-75s %14.9g\n", names[i], values[0][i]);
    else
      printf("%-75s %14.9g %14.9g %14.9g\n", names[i], values[0][i], values[1][i], values[2][i]);
  counters_close(counters);
  sol_context_destroy(c.ctx);
  return 0;
}
