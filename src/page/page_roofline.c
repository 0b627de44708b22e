// The roofline of an operation, or of bytes and FLOPs: the keys of `sol roofline --json`.
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "page/page.h"
#include "report/report_roofline.h"

// A GPU of the table with figures of its own: every peak is the one that was typed.
static bool own_figures(PageAsk *ask, SolDevice *d) {
  double bandwidth = 0, peak = 0, launch = -1;
  if (!page_number(ask, "bandwidth", &bandwidth) || !page_number(ask, "peak", &peak) ||
      !page_number(ask, "launch_us", &launch))
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

static bool op_work(PageAsk *ask, const char *op, RooflineQuestion *w) {
  const char *shape = page_text(ask, "shape");
  int rank = 0;
  if (sol_op_find(op, &w->op.op, &ask->err) || !page_dtype(ask, "dtype", &w->op.dtype) ||
      sol_parse_shape(shape, strlen(shape), SOL_MAX_DIMS, w->op.dim, &rank, &ask->err))
    return false;
  const SolOpInfo *info = sol_op_info(w->op.op);
  if (rank < info->rank_min || rank > info->rank_max) {
    sol_fail(&ask->err, SOL_ERR_ARGUMENT, "%s takes a shape %s, not %.60s", info->name, info->shape, shape);
    return false;
  }
  if (sol_op_cost(&w->op, &w->cost, &ask->err)) return false;
  w->by_op = true;
  w->work = sol_work_of_cost(&w->cost);
  sol_format(w->name, sizeof w->name, "%s %.60s %s", info->name, shape,
             sol_dtype_name(w->op.dtype ? w->op.dtype : SOL_BF16));
  return !report_roofline_tiles(w, page_text(ask, "tile"), &ask->err);
}

static SolUnit unit_of(PageAsk *ask) {
  const char *text = page_text(ask, "unit");
  return strcmp(text, "tensor") == 0   ? SOL_UNIT_TENSOR
         : strcmp(text, "vector") == 0 ? SOL_UNIT_VECTOR
                                       : SOL_UNIT_DEFAULT;
}

static bool raw_work(PageAsk *ask, RooflineQuestion *w) {
  w->work.launches = 1;
  w->work.unit = unit_of(ask);
  if (!page_number(ask, "bytes", &w->work.bytes) || !page_number(ask, "flops", &w->work.flops) ||
      !page_number(ask, "launches", &w->work.launches) || !page_dtype(ask, "dtype", &w->work.dtype))
    return false;
  sol_format(w->name, sizeof w->name, "%.6g bytes, %.6g FLOPs", w->work.bytes, w->work.flops);
  return true;
}

// Fused and unfused are compared where an operation is more than one pass.
static bool answer(PageAsk *ask, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r) {
  report_roofline_facts(ask->root, d, q, r);
  if (q->by_op) report_roofline_unfused(ask->root, d, q, r, NULL);
  return !report_roofline_advice(ask->root, d, q, r, &ask->err);
}

bool page_roofline(PageAsk *ask) {
  const SolDevice *found;
  RooflineQuestion q = {0};
  SolRoofline r;
  if (!page_accelerator(ask, &found)) return false;
  SolDevice device = *found;
  const char *op = page_text(ask, "op"), *level = page_text(ask, "level");
  for (int i = 0; i <= SOL_LEVEL_SMEM; i++)
    if (strcmp(level, sol_level_name((SolLevel)i)) == 0) q.options.level = (SolLevel)i;
  if (!own_figures(ask, &device) || !(*op ? op_work(ask, op, &q) : raw_work(ask, &q))) return false;
  if (sol_roofline(&device, &q.work, &q.options, &r, &ask->err)) return false;
  return answer(ask, &device, &q, &r);
}
