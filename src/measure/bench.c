#include "measure/bench.h"

#include "base/error.h"
#include "measure/trial.h"

SolStatus bench_open(Bench *b, SolContext *ctx, bool quick, SolError *err) {
  b->light_count = 0;
  return timer_open(&b->timer, ctx, quick, err);
}

void bench_close(Bench *b) {
  timer_close(&b->timer);
}

// The copy's time, from this run's earlier ones where it is among them.
static SolStatus light_of(Bench *b, const OpsCase *c, int misalign, Timing *out, SolError *err) {
  for (int i = 0; i < b->light_count; i++) {
    const struct BenchLight *l = &b->light[i];
    if (l->c.dim[0] == c->dim[0] && l->c.dim[1] == c->dim[1] && l->c.dtype == c->dtype &&
        l->c.pad == c->pad && l->misalign == misalign)
      return *out = l->time, SOL_OK;
  }
  SolStatus status = timer_time(&b->timer, &ops_copy, c, misalign, out, err);
  if (!status && b->light_count < BENCH_LIGHTS)
    b->light[b->light_count++] = (struct BenchLight){*c, misalign, *out};
  return status;
}

static int64_t apart(const OpsView *v) { // elements between the end of a row and the next
  return v->rows > 1 && v->stride ? v->stride - v->cols : 0;
}

// The widest tensor that no contiguous, aligned copy stands for: its rows are apart, or it starts between
// 16-byte boundaries. NULL: there is none.
static const OpsView *scattered_view(const Sets *s) {
  const OpsView *best = NULL;
  for (int k = 0; k < s->view_count; k++) {
    const OpsView *v = &s->view[k];
    bool odd = s->misalign * (sol_dtype_bits(v->dtype) / 8) % 16;
    if ((apart(v) || odd) && s->step[k] && v->rows > 0 && (!best || v->cols > best->cols)) best = v;
  }
  return best;
}

// Rows as long as the operation's and as far apart, or one contiguous row. Rows of odd lengths that are dense
// need no copy of their own: as one row they can be copied as fast as any bytes.
static bool rows_case(const Sets *s, OpsCase *c) {
  const OpsView *v = scattered_view(s);
  if (!v) return false;
  double elements = s->bytes * 4 / sol_dtype_bits(v->dtype); // half the bytes
  int64_t cols = apart(v) ? v->cols : elements < 1 ? 1 : (int64_t)elements;
  double rows = elements / (double)cols;
  *c = (OpsCase){.dim = {rows < 1 ? 1 : (int64_t)rows, cols}, .dtype = v->dtype, .pad = apart(v)};
  return true;
}

// The same call on buffers in another place: memory is taken before theirs.
static SolStatus time_elsewhere(Bench *b, int place, const OpsDef *def, const OpsCase *c, int misalign,
                                Timing *out, SolError *err) {
  void *before = NULL;
  SolStatus status = sol_context_alloc(b->timer.ctx, (size_t)place * (37 << 20), &before, err);
  if (!status) status = timer_time(&b->timer, def, c, misalign, out, err);
  if (before) sol_context_free(b->timer.ctx, before, NULL);
  return status;
}

static Timing middle_of(const Timing t[BENCH_PLACES]) {
  int low = t[1].us.median < t[0].us.median, high = !low;
  if (t[2].us.median < t[low].us.median) return t[low];
  return t[2].us.median > t[high].us.median ? t[high] : t[2];
}

static SolStatus time_places(Bench *b, const OpsDef *def, const OpsCase *c, int misalign, Timing *out,
                             SolError *err) {
  Timing t[BENCH_PLACES] = {*out};
  SolStatus status = SOL_OK;
  for (int place = 1; place < BENCH_PLACES && !status; place++)
    status = time_elsewhere(b, place, def, c, misalign, &t[place], err);
  if (!status) *out = middle_of(t);
  return status;
}

// Where buffers lie changes the time of large calls by up to 12% on an H200, a copy's too. A case that is not
// at light is timed again in two more places, and its light as well; the middle one of each counts.
static bool is_unsure(const Bench *b, const BenchResult *r, double bytes) {
  static const double large = 64 << 20, near = 1.03;
  double ratio = r->time.us.median / (r->has_rows_light ? r->rows_light.us.median : r->light.us.median);
  return b->places && bytes >= large && (ratio > near || ratio < 1 / near);
}

SolStatus bench_case(Bench *b, const OpsDef *def, const OpsCase *c, int misalign, BenchResult *out,
                     SolError *err) {
  *out = (BenchResult){.def = def, .c = *c};
  Sets s;
  SolStatus status = sets_plan(&s, b->timer.ctx, def, c, misalign, err);
  if (status) return status;
  status = timer_time(&b->timer, def, c, misalign, &out->time, err);
  // Whole 16-byte pieces each way.
  int64_t pieces = ((int64_t)s.bytes + 31) / 32;
  OpsCase light = {.dim = {1, pieces < 1 ? 4 : pieces * 4}, .dtype = SOL_FP32}, rows;
  if (!status) status = light_of(b, &light, 0, &out->light, err);
  if (!status && rows_case(&s, &rows)) {
    status = light_of(b, &rows, misalign, &out->rows_light, err);
    out->has_rows_light = !status;
  }
  if (status || !is_unsure(b, out, s.bytes)) return status;
  status = time_places(b, def, c, misalign, &out->time, err);
  if (!status && out->has_rows_light)
    status = time_places(b, &ops_copy, &rows, misalign, &out->rows_light, err);
  else if (!status)
    status = time_places(b, &ops_copy, &light, 0, &out->light, err);
  return status;
}

SolStatus bench_once(SolContext *ctx, const OpsDef *def, const OpsCase *c, int misalign, bool check,
                     double *worst, SolDriverCounts *counts, SolError *err) {
  Trial t;
  TrialOptions options = {.seed = (uint64_t)c->dim[0] * 7919 + (uint64_t)c->dim[1], .misalign = misalign};
  SolStatus status = trial_open(&t, ctx, def, c, &options, err);
  if (!status && counts) status = sol_driver_count(ctx->driver, counts, err);
  if (!status) status = trial_run(&t, err);
  if (counts) sol_driver_count(ctx->driver, NULL, NULL);
  if (!status && check) status = trial_check(&t, worst, err);
  trial_close(&t);
  return status;
}

SolStatus bench_cost(SolContext *ctx, const OpsDef *def, const OpsCase *c, SolCost *out, SolError *err) {
  Sets s;
  SolStatus status = sets_plan(&s, ctx, def, c, 0, err);
  if (!status) *out = s.cost;
  return status;
}
