// The roofline of an operation, or of bytes and FLOPs: the keys of `sol roofline --json`.
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "page/page.h"
#include "report/report_roofs.h"
#include "sol/roofline.h"

typedef struct Work {
  char name[160];
  SolDevice device;
  SolCost cost;
  bool by_op;
  SolWork work;
  SolRooflineOptions options;
} Work;

// The number that was typed; *out stays as it is where nothing was.
static bool number_of(PageAsk *ask, const char *key, double *out) {
  const char *text = page_text(ask, key);
  if (!*text) return true;
  SolError err = {0};
  if (!sol_parse_number(text, strlen(text), out, &err)) return true;
  sol_fail(&ask->err, err.status, "%s: %s", key, err.message);
  return false;
}

static bool dtype_of(PageAsk *ask, SolDtype *out) {
  const char *text = page_text(ask, "dtype");
  return !*text || !sol_dtype_find(text, out, &ask->err);
}

// A GPU of the table with figures of its own: every peak is the one that was typed.
static bool own_figures(PageAsk *ask, SolDevice *d) {
  double bandwidth = 0, peak = 0, launch = -1;
  if (!number_of(ask, "bandwidth", &bandwidth) || !number_of(ask, "peak", &peak) ||
      !number_of(ask, "launch_us", &launch))
    return false;
  if (bandwidth > 0) d->mem_bandwidth = (SolFigure){.value = bandwidth, .source = "typed"};
  if (launch >= 0) d->launch_us = (SolFigure){.value = launch, .source = "typed"};
#define OWN_PEAK(field, unit, label)                                                                         \
  if (peak > 0 && memcmp(#field "     ", "peak_", 5) == 0)                                                   \
    d->field = (SolFigure){.value = peak, .source = "typed"};
  SOL_DEVICE_FIGURES(OWN_PEAK)
#undef OWN_PEAK
  return true;
}

static bool op_work(PageAsk *ask, const char *op, Work *w) {
  SolOpArgs args = {0};
  const char *shape = page_text(ask, "shape");
  int rank = 0;
  if (sol_op_find(op, &args.op, &ask->err) || !dtype_of(ask, &args.dtype) ||
      sol_parse_shape(shape, strlen(shape), SOL_MAX_DIMS, args.dim, &rank, &ask->err))
    return false;
  const SolOpInfo *info = sol_op_info(args.op);
  if (rank < info->rank_min || rank > info->rank_max) {
    sol_fail(&ask->err, SOL_ERR_ARGUMENT, "%s takes a shape %s, not %.60s", info->name, info->shape, shape);
    return false;
  }
  if (sol_op_cost(&args, &w->cost, &ask->err)) return false;
  w->by_op = true;
  w->work = sol_work_of_cost(&w->cost);
  sol_format(w->name, sizeof w->name, "%s %.60s %s", info->name, shape,
             sol_dtype_name(args.dtype ? args.dtype : SOL_BF16));
  return true;
}

static bool raw_work(PageAsk *ask, Work *w) {
  w->work.launches = 1;
  if (!number_of(ask, "bytes", &w->work.bytes) || !number_of(ask, "flops", &w->work.flops) ||
      !number_of(ask, "launches", &w->work.launches) || !dtype_of(ask, &w->work.dtype))
    return false;
  sol_format(w->name, sizeof w->name, "%.6g bytes, %.6g FLOPs", w->work.bytes, w->work.flops);
  return true;
}

static void answer_facts(Fact *o, const Work *w, const SolRoofline *r) {
#define EXACT(key, value)    fact_number(o, key, 0, UNIT_PLAIN, BASIS_EXACT, value)
#define MODELLED(to, key, v) fact_number(to, key, 0, UNIT_PLAIN, BASIS_MODELLED, v)
  fact_text(o, "device", 0, w->device.id);
  fact_text(o, "work", 0, w->name);
  fact_text(o, "level", 0, sol_level_name(r->level));
  fact_text(o, "dtype", 0, sol_dtype_name(r->dtype));
  fact_text(o, "unit", 0, sol_unit_name(r->unit));
  EXACT("bytes", r->bytes);
  if (w->by_op) EXACT("bytes_read", w->cost.bytes_read);
  if (w->by_op) EXACT("bytes_written", w->cost.bytes_written);
  EXACT("flops", r->flops);
  EXACT("launches", r->launches);
  EXACT("intensity", r->intensity);
  MODELLED(o, "ridge", r->ridge);
  MODELLED(o, "bandwidth", r->bandwidth);
  MODELLED(o, "peak", r->peak);
  MODELLED(o, "time_us", r->time_us);
  MODELLED(o, "attainable_flops", r->attainable_flops);
  MODELLED(o, "attainable_bytes", r->attainable_bytes);
  fact_text(o, "bound", 0, sol_bound_name(r->bound));
  Fact *terms = fact_object(o, "terms", 0);
  MODELLED(terms, "memory_us", r->memory_us);
  MODELLED(terms, "compute_us", r->compute_us);
  MODELLED(terms, "launch_us", r->launch_us);
  report_roofs_facts(o, &w->device);
#undef EXACT
#undef MODELLED
}

bool page_roofline(PageAsk *ask) {
  const SolDevice *device;
  Work w = {0};
  SolRoofline r;
  if (!page_device(ask, &device)) return false;
  w.device = *device;
  const char *op = page_text(ask, "op"), *level = page_text(ask, "level");
  for (int i = 0; i <= SOL_LEVEL_SMEM; i++)
    if (strcmp(level, sol_level_name((SolLevel)i)) == 0) w.options.level = (SolLevel)i;
  if (!own_figures(ask, &w.device) || !(*op ? op_work(ask, op, &w) : raw_work(ask, &w))) return false;
  if (sol_roofline(&w.device, &w.work, &w.options, &r, &ask->err)) return false;
  answer_facts(ask->root, &w, &r);
  return true;
}
