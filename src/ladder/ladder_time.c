// The time of a rung on a GPU: the median over calls, each on another set of arrays; and that of a copy of
// the same bytes.
#include "ladder/ladder_run.h"

typedef struct Timed {
  LadderRun *run;
  const LadderRung *rung;
} Timed;

static SolStatus one_call(void *ctx, int set, SolStream stream, SolError *err) {
  const Timed *t = ctx;
  LadderCall call = ladder_call(t->run, t->rung, set, stream);
  return ladder_enqueue(&call, err);
}

// The time of a copy of as many bytes; each size is timed once per session.
static SolStatus light_of(LadderSession *s, double bytes, double *us, SolError *err) {
  for (int i = 0; i < s->light_count; i++)
    if (s->light[i].bytes == bytes) return *us = s->light[i].us, SOL_OK;
  // Half of the bytes are read and half written, in whole vectors of 16.
  int64_t vectors = ((int64_t)bytes + 31) / 32;
  OpsCase c = {.dim = {1, vectors < 1 ? 4 : vectors * 4}, .dtype = SOL_FP32};
  Timing timing;
  SolStatus status = timer_time(&s->timer, &ops_copy, &c, 0, &timing, err);
  *us = timing.us.median;
  if (!status && s->light_count < LADDER_LIGHTS)
    s->light[s->light_count++] = (struct LadderLight){bytes, *us};
  return status;
}

SolStatus ladder_time(LadderRun *run, const LadderRung *rung, LadderFigures *f, SolError *err) {
  LadderSession *s = run->session;
  Timed timed = {run, rung};
  Timing t = {0};
  double bytes = run->ladder->bytes(&run->c, rung);
  SolStatus status = timer_calls(&s->timer, one_call, &timed, run->sets, rung->streamed, &t, err);
  if (!status && bytes > 0) status = light_of(s, bytes, &f->light_us, err);
  if (status) return status;
  f->us = t.us.median;
  f->spread = t.us.spread;
  f->least_us = t.us.least;
  f->most_us = t.us.most;
  f->rounds = t.us.count;
  f->calls = t.calls;
  f->sets = run->sets;
  return SOL_OK;
}
