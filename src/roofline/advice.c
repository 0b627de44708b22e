// What could be done about the time: each step is the accountant run on the changed work.
#include "sol/roofline.h"

#include "base/error.h"
#include "base/format.h"
#include "roofline/costs.h"

typedef struct Advisor {
  const SolDevice *device;
  SolRooflineOptions options;
  SolRoofline now;
  SolAdvice *advice;
} Advisor;

// Times a changed work; false where the device cannot do it or a figure is missing: no step then.
static bool time_work(const Advisor *a, const SolWork *work, SolRoofline *r) {
  return sol_roofline(a->device, work, &a->options, r, 0) == SOL_OK;
}

static bool time_op(const Advisor *a, const SolOpArgs *args, SolRoofline *r) {
  SolCost cost;
  if (sol_op_cost(args, &cost, 0)) return false;
  SolWork work = sol_work_of_cost(&cost);
  return time_work(a, &work, r);
}

static bool time_handler(const Advisor *a, const SolOpArgs *args, SolCostHandler *handler, SolRoofline *r) {
  SolPass pass[SOL_MAX_PASSES];
  int count;
  if (sol_op_run(args, handler, pass, &count, 0)) return false;
  SolWork work = sol_work_of_cost(&pass[0].cost);
  return time_work(a, &work, r);
}

// Keeps the list sorted, largest gain first. A step that gains less than 1% is no advice.
SOL_PRINTF(5, 6)
static void add_step(Advisor *a, const char *kind, double before_us, const SolRoofline *after,
                     const char *what, ...) {
  double gain = before_us / after->time_us;
  SolAdvice *advice = a->advice;
  if (!(gain >= 1.01)) return;
  int at = advice->count;
  while (at > 0 && advice->steps[at - 1].gain < gain) at--;
  if (at == SOL_MAX_STEPS) return;
  if (advice->count < SOL_MAX_STEPS) advice->count++;
  for (int i = advice->count - 1; i > at; i--) advice->steps[i] = advice->steps[i - 1];
  advice->steps[at] = (SolStep){.kind = kind, .after = *after, .gain = gain};
  va_list args;
  va_start(args, what);
  sol_vformat(advice->steps[at].what, sizeof advice->steps[at].what, what, args);
  va_end(args);
}

// Fusing

typedef struct Fusion {
  SolCostHandler *op; // of the operation it can be fused with
  const char *kind;
  SolCostHandler *neighbour, *fused;
  const char *what;
} Fusion;

static const Fusion fusions[] = {
#define FUSION(op, kind, neighbour, fused, what) {sol_cost_##op, kind, neighbour, fused, what},
#include "roofline/costs.def"
};

static bool is_float(SolDtype dtype) {
  return dtype < SOL_INT8;
}

static void fuse_steps(Advisor *a, const SolOpArgs *args) {
  if (!is_float(args->dtype)) return; // the neighbours are those of a model's arithmetic
  for (size_t i = 0; i < SOL_COUNT(fusions); i++) {
    SolRoofline neighbour, fused;
    if (fusions[i].op != sol_op_rows[args->op].cost) continue;
    if (!time_handler(a, args, fusions[i].neighbour, &neighbour)) continue;
    if (!time_handler(a, args, fusions[i].fused, &fused)) continue;
    add_step(a, fusions[i].kind, a->now.time_us + neighbour.time_us, &fused, "%s", fusions[i].what);
  }
}

// Shrinking

// The next narrower type; `otherwise` for devices that do not multiply the first.
static const struct {
  SolDtype from, to, otherwise;
} narrower[] = {
    {SOL_FP64, SOL_FP32, SOL_DTYPE_DEFAULT}, {SOL_FP32, SOL_BF16, SOL_FP16},
    {SOL_TF32, SOL_BF16, SOL_FP16},          {SOL_FP16, SOL_FP8, SOL_INT8},
    {SOL_BF16, SOL_FP8, SOL_INT8},           {SOL_FP8, SOL_FP4, SOL_DTYPE_DEFAULT},
};

static SolDtype shrink(SolDtype from, bool otherwise) {
  for (size_t i = 0; i < SOL_COUNT(narrower); i++)
    if (narrower[i].from == from) return otherwise ? narrower[i].otherwise : narrower[i].to;
  return SOL_DTYPE_DEFAULT;
}

static SolDtype or_dtype(SolDtype given, SolDtype fallback) {
  return given ? given : fallback;
}

// Activations, and with them what follows their type. A product keeps its output's type: it is summed wide.
static void shrink_all(Advisor *a, const SolOpArgs *args, bool matrix) {
  SolDtype from = or_dtype(args->dtype, SOL_BF16);
  if (!matrix && from == SOL_FP8) return; // activations stop at 8 bits; products have fp4 units
  for (int otherwise = 0; otherwise < 2; otherwise++) {
    SolOpArgs changed = *args;
    SolRoofline after;
    changed.dtype = shrink(from, otherwise);
    if (!changed.dtype) return;
    if (matrix) changed.out_dtype = or_dtype(args->out_dtype, from);
    if (!time_op(a, &changed, &after)) continue;
    add_step(a, "shrink", a->now.time_us, &after, "%s %s instead of %s", matrix ? "multiply" : "store",
             sol_dtype_name(changed.dtype), sol_dtype_name(from));
    return;
  }
}

static void shrink_steps(Advisor *a, const SolOpArgs *args) {
  const SolOpInfo *info = sol_op_info(args->op);
  bool matrix = info->unit == SOL_UNIT_DEFAULT;
  SolRoofline after;
  // An operation that only moves data does not choose the data's type, but for tables and caches.
  if (a->now.flops > 0) shrink_all(a, args, matrix);
  if ((info->options & SOL_TAKES_WEIGHT_DTYPE) && (matrix || (info->options & SOL_TAKES_VOCAB))) {
    SolOpArgs changed = *args;
    SolDtype from = or_dtype(args->weight_dtype, or_dtype(args->dtype, SOL_BF16));
    for (changed.weight_dtype = shrink(from, false); changed.weight_dtype;
         changed.weight_dtype = shrink(changed.weight_dtype, false))
      if (sol_dtype_bits(changed.weight_dtype) <= 8 && time_op(a, &changed, &after))
        add_step(a, "shrink", a->now.time_us, &after, "keep the %s in %s, widened as read",
                 matrix ? "weights" : "table", sol_dtype_name(changed.weight_dtype));
  }
  if (info->options & SOL_TAKES_KV_DTYPE) {
    SolOpArgs changed = *args;
    changed.kv_dtype = shrink(or_dtype(args->kv_dtype, or_dtype(args->dtype, SOL_BF16)), false);
    if (changed.kv_dtype && time_op(a, &changed, &after))
      add_step(a, "shrink", a->now.time_us, &after, "keep K and V in %s", sol_dtype_name(changed.kv_dtype));
  }
}

// Blocking: the one count whose growth brings reuse

typedef struct Knob {
  int64_t *value;
  int64_t most;
  const char *what;
} Knob;

static Knob knob_of(SolOpArgs *args) {
  SolCostHandler *op = sol_op_rows[args->op].cost;
  if (op == sol_cost_gemm) return (Knob){&args->dim[0], INT64_C(1) << 30, "rows (M) at once"};
  if (op != sol_cost_attention) return (Knob){0, 0, 0};
  if (args->phase == SOL_PHASE_DECODE)
    return (Knob){&args->queries, args->dim[2], "new tokens a sequence at once (speculation)"};
  args->queries = 0; // all of them, however many that becomes
  return (Knob){&args->dim[2], INT64_C(1) << 30, "tokens a sequence"};
}

static bool reaches_ridge(const Advisor *a, const SolOpArgs *args, SolRoofline *r) {
  return time_op(a, args, r) && r->intensity >= r->ridge;
}

// The smallest setting at the ridge: doubled until it is reached, then halved in.
static void block_step(Advisor *a, const SolOpArgs *args) {
  SolOpArgs changed = *args;
  Knob knob = knob_of(&changed);
  SolRoofline after;
  if (!knob.value || a->now.intensity >= a->now.ridge) return;
  if (*knob.value == 0) *knob.value = 1;
  int64_t below = *knob.value, reached = below;
  do {
    if (reached >= knob.most) return;
    below = reached;
    reached = reached > knob.most / 2 ? knob.most : reached * 2;
    *knob.value = reached;
  } while (!reaches_ridge(a, &changed, &after));
  while (reached - below > 1) {
    *knob.value = below + (reached - below) / 2;
    if (reaches_ridge(a, &changed, &after))
      reached = *knob.value;
    else
      below = *knob.value;
  }
  *knob.value = reached;
  if (!reaches_ridge(a, &changed, &after)) return;
  add_step(a, "block", a->now.time_us * (after.flops / a->now.flops), &after,
           "%lld %s reach the ridge (gain per FLOP)", (long long)reached, knob.what);
}

// Launches

static void graph_step(Advisor *a, const SolWork *work) {
  if (work->launches == 0 || a->options.graph) return;
  Advisor in_graph = *a;
  SolRoofline after;
  in_graph.options.graph = 1;
  if (time_work(&in_graph, work, &after))
    add_step(a, "graph", a->now.time_us, &after, "launch it from a CUDA graph");
}

static void respond(Advisor *a) {
  const SolRoofline *now = &a->now;
  SolAdvice *advice = a->advice;
  bool raise = false;
  for (int i = 0; i < advice->count; i++) {
    const char *kind = advice->steps[i].kind;
    bool launches = strcmp(kind, "graph") == 0 || strcmp(kind, "launch") == 0;
    if (!launches && advice->steps[i].gain > 1.1) raise = true;
  }
  advice->reuse_to_ridge = 1;
  if (now->flops == 0)
    advice->reuse_to_ridge = __builtin_inf();
  else if (now->intensity < now->ridge)
    advice->reuse_to_ridge = now->ridge / now->intensity;
  if (now->bound == SOL_BOUND_LAUNCH)
    advice->response = SOL_RESPONSE_LAUNCH_LESS;
  else if (now->bound == SOL_BOUND_COMPUTE)
    advice->response = SOL_RESPONSE_SATURATE_COMPUTE;
  else
    advice->response = raise ? SOL_RESPONSE_RAISE_INTENSITY : SOL_RESPONSE_SATURATE_MEMORY;
}

static SolStatus begin(Advisor *a, const SolWork *work, const SolRooflineOptions *options, SolError *err) {
  if (options) a->options = *options;
  return sol_roofline(a->device, work, &a->options, &a->now, err);
}

SolStatus sol_advise_op(const SolDevice *device, const SolOpArgs *args, const SolRooflineOptions *options,
                        SolAdvice *out, SolError *err) {
  if (!device || !args || !out)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device, args and out must not be NULL");
  SolAdvice advice = {0};
  Advisor a = {.device = device, .advice = &advice};
  SolCost cost;
  SolStatus status = sol_op_cost(args, &cost, err);
  if (status) return status;
  SolWork work = sol_work_of_cost(&cost);
  status = begin(&a, &work, options, err);
  if (status) return status;
  fuse_steps(&a, args);
  shrink_steps(&a, args);
  block_step(&a, args);
  graph_step(&a, &work);
  respond(&a);
  *out = advice;
  return SOL_OK;
}

SolStatus sol_advise_work(const SolDevice *device, const SolWork *work, const SolRooflineOptions *options,
                          SolAdvice *out, SolError *err) {
  if (!device || !work || !out)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device, work and out must not be NULL");
  SolAdvice advice = {0};
  Advisor a = {.device = device, .advice = &advice};
  SolStatus status = begin(&a, work, options, err);
  if (status) return status;
  SolRoofline after;
  for (int otherwise = 0; otherwise < 2; otherwise++) {
    SolWork changed = *work;
    changed.dtype = shrink(a.now.dtype, otherwise);
    changed.unit = a.now.unit; // narrower bytes alone move nothing onto the tensor cores
    if (!changed.dtype) break;
    changed.bytes *= (double)sol_dtype_bits(changed.dtype) / sol_dtype_bits(a.now.dtype);
    if (!time_work(&a, &changed, &after)) continue;
    add_step(&a, "shrink", a.now.time_us, &after, "%s instead of %s", sol_dtype_name(changed.dtype),
             sol_dtype_name(a.now.dtype));
    break;
  }
  if (work->launches > 1) {
    SolWork changed = *work;
    changed.launches = 1;
    if (time_work(&a, &changed, &after))
      add_step(&a, "launch", a.now.time_us, &after, "one launch instead of %.15g", work->launches);
  }
  graph_step(&a, work);
  respond(&a);
  *out = advice;
  return SOL_OK;
}
