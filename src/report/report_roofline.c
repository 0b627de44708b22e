// The answer of sol roofline, for the command line and for the page.
#include "report/report_roofline.h"

#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "report/report_roofs.h"

static void schema(Fact *root) {
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
}

// Whether the bytes are the operation's tensors, each once.
static bool in_hbm(const RooflineQuestion *q) {
  return q->by_op && !(q->tiled && q->options.level);
}

static void work_facts(Fact *row, const RooflineQuestion *q, bool labelled) {
  fact_number(row, "bytes", labelled ? "bytes" : 0, UNIT_BYTES, BASIS_EXACT, q->work.bytes);
  if (in_hbm(q)) {
    fact_number(row, "bytes_read", labelled ? "  read" : 0, UNIT_BYTES, BASIS_EXACT, q->cost.bytes_read);
    fact_number(row, "bytes_written", labelled ? "  written" : 0, UNIT_BYTES, BASIS_EXACT,
                q->cost.bytes_written);
  }
  fact_number(row, "flops", labelled ? "FLOPs" : 0, UNIT_FLOPS, BASIS_EXACT, q->work.flops);
  double launches = q->options.no_launch ? 0 : q->work.launches;
  fact_number(row, "launches", labelled ? "launches" : 0, UNIT_PLAIN, BASIS_EXACT, launches);
}

static void terms_facts(Fact *row, const SolRoofline *r) {
  Fact *terms = fact_object(row, "terms", 0);
  fact_number(terms, "memory_us", 0, UNIT_US, BASIS_MODELLED, r->memory_us);
  fact_number(terms, "compute_us", 0, UNIT_US, BASIS_MODELLED, r->compute_us);
  fact_number(terms, "launch_us", 0, UNIT_US, BASIS_MODELLED, r->launch_us);
}

static void ridge_fact(Fact *row, const char *label, FactUnit unit, const SolRoofline *r) {
  if (r->peak > 0)
    fact_number(row, "ridge", label, unit, BASIS_PUBLISHED, r->ridge);
  else
    fact_unknown(row, "ridge", label);
}

static void identity_facts(Fact *row, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r) {
  schema(row);
  fact_text(row, "device", 0, d->id);
  fact_text(row, "work", 0, q->name);
  fact_text(row, "level", 0, sol_level_name(r->level));
  fact_text(row, "dtype", 0, sol_dtype_name(r->dtype));
  fact_text(row, "unit", 0, sol_unit_name(r->unit));
  report_roofs_facts(row, d);
}

// One line of the table over several devices.
void report_roofline_row(Fact *root, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r,
                         const SolError *err) {
  Fact *row = fact_object(root, 0, 0);
  fact_text(row, 0, "device", d->id);
  if (err->status) { // this device has no such unit or figure: its row says so, the others are computed
    schema(row);
    fact_text(row, "device", 0, d->id);
    fact_text(row, "error", "bound", err->message);
    return;
  }
  identity_facts(row, d, q, r);
  work_facts(row, q, false);
  fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, r->intensity);
  ridge_fact(row, "ridge", UNIT_PLAIN, r);
  fact_text(row, "bound", "bound", sol_bound_name(r->bound));
  fact_number(row, 0, "memory", UNIT_US, BASIS_MODELLED, r->memory_us);
  fact_number(row, 0, "compute", UNIT_US, BASIS_MODELLED, r->compute_us);
  fact_number(row, 0, "launch", UNIT_US, BASIS_MODELLED, r->launch_us);
  fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, r->time_us);
  fact_number(row, "attainable_flops", "attainable", UNIT_FLOPS_PER_S, BASIS_MODELLED, r->attainable_flops);
  fact_number(row, "attainable_bytes", 0, UNIT_BYTES_PER_S, BASIS_MODELLED, r->attainable_bytes);
  terms_facts(row, r);
}

static const char *response_text(SolResponse response) {
  switch (response) {
  case SOL_RESPONSE_RAISE_INTENSITY: return "raise the intensity: move fewer bytes for the same arithmetic";
  case SOL_RESPONSE_SATURATE_MEMORY:
    return "saturate the memory roof: the bytes are as few as they get, so run at full bandwidth";
  case SOL_RESPONSE_SATURATE_COMPUTE: return "saturate the compute roof: keep the arithmetic units busy";
  case SOL_RESPONSE_LAUNCH_LESS: return "launch less: the launch costs more than the work";
  }
  return "";
}

static void put_advice(Fact *root, const SolRoofline *r, const SolAdvice *a) {
  Fact *advice = fact_object(root, "advice", "What to do");
  fact_text(advice, "response", 0, sol_response_name(a->response));
  fact_text(advice, 0, "response", response_text(a->response));
  if (r->bound == SOL_BOUND_MEMORY && a->reuse_to_ridge > 1 && __builtin_isfinite(a->reuse_to_ridge)) {
    fact_number(advice, "reuse_to_ridge", 0, UNIT_TIMES, BASIS_NONE, a->reuse_to_ridge);
    fact_textf(advice, 0, "to the ridge", "%.4g times fewer bytes per FLOP", a->reuse_to_ridge);
  }
  static const FactColumn columns[] = {{"what", FIT_WRAP}, {"gain", 0},  {"time", 0},      {"step", 0},
                                       {"bytes", 0},       {"bound", 0}, {"intensity", 0}, {0}};
  Fact *list = fact_list(advice, "steps", "");
  fact_columns(list, columns);
  bool fuses = false;
  for (int i = 0; i < a->count; i++) {
    const SolStep *s = &a->steps[i];
    fuses |= strcmp(s->kind, "fuse") == 0;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "kind", "step", s->kind);
    fact_text(row, "what", "what", s->what);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, s->after.bytes);
    fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, s->after.intensity);
    fact_text(row, "bound", "bound", sol_bound_name(s->after.bound));
    fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, s->after.time_us);
    fact_number(row, "gain", "gain", UNIT_TIMES, BASIS_MODELLED, s->gain);
  }
  if (fuses)
    fact_note(
        advice,
        "A fusion's bytes and time are those of the one kernel; its gain is against the two run apart.");
}

static void pass_row(Fact *list, const char *name, const SolCost *c, const SolRoofline *r) {
  Fact *row = fact_object(list, 0, 0);
  fact_text(row, "name", "kernel", name);
  fact_number(row, "trips", "trips", UNIT_PLAIN, BASIS_EXACT, c->trips);
  fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, r->bytes);
  fact_number(row, "bytes_read", 0, UNIT_BYTES, BASIS_EXACT, c->bytes_read);
  fact_number(row, "bytes_written", 0, UNIT_BYTES, BASIS_EXACT, c->bytes_written);
  fact_number(row, "flops", "FLOPs", UNIT_FLOPS, BASIS_EXACT, r->flops);
  fact_number(row, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r->launches);
  fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, r->time_us);
}

// One a row, their sum, and the fused one below.
SolStatus report_roofline_unfused(Fact *root, const SolDevice *d, const RooflineQuestion *q,
                                  const SolRoofline *fused, SolError *err) {
  SolPass passes[SOL_MAX_PASSES];
  int count = 0;
  SolStatus status = sol_op_unfused(&q->op, passes, &count, err);
  if (status) return status;
  Fact *object = fact_object(root, "unfused", "Unfused: the same work as separate kernels");
  static const FactColumn columns[] = {{"kernel", FIT_WRAP}, {"time", 0},  {"bytes", 0}, {"launches", 0},
                                       {"FLOPs", 0},         {"trips", 0}, {0}};
  Fact *list = fact_list(object, "kernels", "");
  fact_columns(list, columns);
  SolCost total = {0};
  SolRoofline sum = {0};
  for (int i = 0; i < count; i++) {
    SolWork work = sol_work_of_cost(&passes[i].cost);
    SolRoofline r;
    status = sol_roofline(d, &work, &q->options, &r, err);
    if (status) return status;
    pass_row(list, passes[i].name, &passes[i].cost, &r);
    total.trips += passes[i].cost.trips;
    sum.bytes += r.bytes;
    sum.flops += r.flops;
    sum.launches += r.launches;
    sum.time_us += r.time_us;
  }
  Fact *people = fact_list(object, 0, "Together, against the fused kernel");
  fact_columns(people, columns);
  pass_row(people, "all of them", &total, &sum);
  pass_row(people, "fused", &q->cost, fused);
  fact_number(object, "trips", 0, UNIT_PLAIN, BASIS_EXACT, total.trips);
  fact_number(object, "bytes", 0, UNIT_BYTES, BASIS_EXACT, sum.bytes);
  fact_number(object, "flops", 0, UNIT_FLOPS, BASIS_EXACT, sum.flops);
  fact_number(object, "launches", 0, UNIT_PLAIN, BASIS_EXACT, sum.launches);
  fact_number(object, "time_us", 0, UNIT_US, BASIS_MODELLED, sum.time_us);
  fact_number(object, "fused_trips", 0, UNIT_PLAIN, BASIS_EXACT, q->cost.trips);
  fact_number(object, "gain", "fusing is faster by", UNIT_TIMES, BASIS_MODELLED,
              sum.time_us / fused->time_us);
  return SOL_OK;
}

// What the tiles move at every level, and how long that takes.
static void level_facts(Fact *root, const SolDevice *d, const RooflineQuestion *q) {
  static const FactColumn columns[] = {{"level", 0}, {"time", 0}, {"bytes", 0}, {"intensity", 0}, {0}};
  Fact *list = fact_list(root, "levels", "By level");
  fact_columns(list, columns);
  for (int level = SOL_LEVEL_HBM; level <= SOL_LEVEL_SMEM; level++) {
    SolRooflineOptions o = {.level = (SolLevel)level, .no_launch = 1};
    SolWork work = q->work;
    SolRoofline r;
    if (sol_gemm_bytes(&q->op, &q->tile, o.level, &work.bytes, NULL) || sol_roofline(d, &work, &o, &r, NULL))
      continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "level", "level", sol_level_name(o.level));
    fact_number(row, "memory_us", "time", UNIT_US, BASIS_MODELLED, r.memory_us);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, work.bytes);
    fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, r.intensity);
  }
}

void report_roofline_facts(Fact *root, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r) {
  fact_title(root, "%s on %s, memory level %s", q->name, d->name, sol_level_name(r->level));
  identity_facts(root, d, q, r);
  work_facts(root, q, true);
  fact_number(root, "intensity", "intensity", UNIT_INTENSITY, BASIS_EXACT, r->intensity);
  ridge_fact(root, "ridge", UNIT_INTENSITY, r);
  fact_number(root, "bandwidth", "bandwidth", UNIT_BYTES_PER_S, BASIS_PUBLISHED, r->bandwidth);
  if (r->peak > 0) {
    fact_number(root, "peak", 0, UNIT_FLOPS_PER_S, BASIS_PUBLISHED, r->peak);
    char peak[32];
    fact_write_number(peak, sizeof peak, UNIT_FLOPS_PER_S, r->peak);
    fact_textf(root, 0, "peak", "%s (%s, %s units, dense)", peak, sol_dtype_name(r->dtype),
               sol_unit_name(r->unit));
  } else {
    fact_unknown(root, "peak", 0);
  }
  fact_number(root, 0, "memory term", UNIT_US, BASIS_MODELLED, r->memory_us);
  fact_number(root, 0, "compute term", UNIT_US, BASIS_MODELLED, r->compute_us);
  fact_number(root, 0, "launch term", UNIT_US, BASIS_MODELLED, r->launch_us);
  fact_number(root, "time_us", "time", UNIT_US, BASIS_MODELLED, r->time_us);
  fact_text(root, "bound", "bound by", sol_bound_name(r->bound));
  // Work without arithmetic has a rate in bytes alone.
  fact_number(root, "attainable_flops", r->flops > 0 ? "attainable" : 0, UNIT_FLOPS_PER_S, BASIS_MODELLED,
              r->attainable_flops);
  fact_number(root, "attainable_bytes", r->flops > 0 ? 0 : "attainable", UNIT_BYTES_PER_S, BASIS_MODELLED,
              r->attainable_bytes);
  terms_facts(root, r);
  if (q->tiled) level_facts(root, d, q);
}

SolStatus report_roofline_advice(Fact *root, const SolDevice *d, const RooflineQuestion *q,
                                 const SolRoofline *r, SolError *err) {
  SolAdvice advice;
  // Advice on an operation counts its bytes in hbm.
  SolStatus status = in_hbm(q) ? sol_advise_op(d, &q->op, &q->options, &advice, err)
                               : sol_advise_work(d, &q->work, &q->options, &advice, err);
  if (!status) put_advice(root, r, &advice);
  return status;
}

SolStatus report_roofline_tiles(RooflineQuestion *q, const char *tile, SolError *err) {
  int64_t sides[3] = {0};
  int rank = 0;
  bool gemm = strcmp(sol_op_info(q->op.op)->name, "gemm") == 0;
  if (!gemm || !(*tile || q->options.level)) return SOL_OK;
  if (*tile && (sol_parse_shape(tile, strlen(tile), 3, sides, &rank, err) || rank != 3))
    return sol_fail(err, SOL_ERR_ARGUMENT, "a tile is MxNxK, as 128x256x64, not %.60s", tile);
  q->tiled = true;
  q->tile = (SolTile){sides[0], sides[1], sides[2]};
  size_t n = strlen(q->name);
  sol_format(q->name + n, sizeof q->name - n, ", tiles of %.60s", *tile ? tile : "128x256x64");
  return sol_gemm_bytes(&q->op, &q->tile, q->options.level, &q->work.bytes, err);
}
