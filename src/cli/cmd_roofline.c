// sol roofline: bytes and FLOPs of an operation, or given as numbers, under a device's roof.
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/plot.h"
#include "report/report_roofs.h"

typedef struct RooflineArgs {
  CommonArgs common;
  const char *device;
  double bytes, flops;
  int64_t launches;
  SolOpArgs op;
  int unit, level, phase, axis;
  const char *tile;
  bool graph, unfused, list, no_plot;
} RooflineArgs;

// The work to place: an operation with its shape, or raw bytes and FLOPs.
typedef struct Question {
  bool by_op;
  char name[160]; // "rmsnorm 8192x4096 bf16"
  SolCost cost;
  SolWork work;
  SolRooflineOptions options;
  bool tiled; // a gemm's bytes at a level below hbm
  SolTile tile;
} Question;

static void schema(Fact *root) {
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
}

static void work_facts(Fact *row, const Question *q, bool labelled) {
  fact_number(row, "bytes", labelled ? "bytes" : 0, UNIT_BYTES, BASIS_EXACT, q->work.bytes);
  if (q->by_op && !(q->tiled && q->options.level)) {
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

static void identity_facts(Fact *row, const SolDevice *d, const Question *q, const SolRoofline *r) {
  schema(row);
  fact_text(row, "device", 0, d->id);
  fact_text(row, "work", 0, q->name);
  fact_text(row, "level", 0, sol_level_name(r->level));
  fact_text(row, "dtype", 0, sol_dtype_name(r->dtype));
  fact_text(row, "unit", 0, sol_unit_name(r->unit));
  report_roofs_facts(row, d);
}

// One line of the table over several devices.
static void brief(Fact *root, const SolDevice *d, const Question *q, const SolRoofline *r,
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

static void advice_facts(Fact *root, const SolRoofline *r, const SolAdvice *a) {
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
  fact_number(row, "flops", "FLOPs", UNIT_FLOPS, BASIS_EXACT, r->flops);
  fact_number(row, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r->launches);
  fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, r->time_us);
}

// The operation's separate kernels, one a row, their sum, and the fused one below.
static SolStatus unfused_facts(Fact *root, const SolDevice *d, const SolOpArgs *op, const Question *q,
                               const SolRoofline *fused, SolError *err) {
  SolPass passes[SOL_MAX_PASSES];
  int count = 0;
  SolStatus status = sol_op_unfused(op, passes, &count, err);
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
static void level_facts(Fact *root, const SolDevice *d, const SolOpArgs *op, const Question *q) {
  static const FactColumn columns[] = {{"level", 0}, {"time", 0}, {"bytes", 0}, {"intensity", 0}, {0}};
  Fact *list = fact_list(root, "levels", "By level");
  fact_columns(list, columns);
  for (int level = SOL_LEVEL_HBM; level <= SOL_LEVEL_SMEM; level++) {
    SolRooflineOptions o = {.level = (SolLevel)level, .no_launch = 1};
    SolWork work = q->work;
    SolRoofline r;
    if (sol_gemm_bytes(op, &q->tile, o.level, &work.bytes, NULL) || sol_roofline(d, &work, &o, &r, NULL))
      continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "level", "level", sol_level_name(o.level));
    fact_number(row, "memory_us", "time", UNIT_US, BASIS_MODELLED, r.memory_us);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, work.bytes);
    fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, r.intensity);
  }
}

static int in_full(Cli *cli, const RooflineArgs *args, const SolDevice *d, const Question *q) {
  SolRoofline r;
  SolError err = {0};
  if (sol_roofline(d, &q->work, &q->options, &r, &err)) return cli_error(cli, &err, 0, 0, 0);
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_title(root, "%s on %s, memory level %s", q->name, d->name, sol_level_name(r.level));
  identity_facts(root, d, q, &r);
  work_facts(root, q, true);
  fact_number(root, "intensity", "intensity", UNIT_INTENSITY, BASIS_EXACT, r.intensity);
  ridge_fact(root, "ridge", UNIT_INTENSITY, &r);
  fact_number(root, "bandwidth", "bandwidth", UNIT_BYTES_PER_S, BASIS_PUBLISHED, r.bandwidth);
  if (r.peak > 0) {
    fact_number(root, "peak", 0, UNIT_FLOPS_PER_S, BASIS_PUBLISHED, r.peak);
    char peak[32];
    fact_write_number(peak, sizeof peak, UNIT_FLOPS_PER_S, r.peak);
    fact_textf(root, 0, "peak", "%s (%s, %s units, dense)", peak, sol_dtype_name(r.dtype),
               sol_unit_name(r.unit));
  } else {
    fact_unknown(root, "peak", 0);
  }
  fact_number(root, 0, "memory term", UNIT_US, BASIS_MODELLED, r.memory_us);
  fact_number(root, 0, "compute term", UNIT_US, BASIS_MODELLED, r.compute_us);
  fact_number(root, 0, "launch term", UNIT_US, BASIS_MODELLED, r.launch_us);
  fact_number(root, "time_us", "time", UNIT_US, BASIS_MODELLED, r.time_us);
  fact_text(root, "bound", "bound by", sol_bound_name(r.bound));
  // Work without arithmetic has a rate in bytes alone.
  fact_number(root, "attainable_flops", r.flops > 0 ? "attainable" : 0, UNIT_FLOPS_PER_S, BASIS_MODELLED,
              r.attainable_flops);
  fact_number(root, "attainable_bytes", r.flops > 0 ? 0 : "attainable", UNIT_BYTES_PER_S, BASIS_MODELLED,
              r.attainable_bytes);
  terms_facts(root, &r);
  if (q->tiled) level_facts(root, d, &args->op, q);
  if (!args->no_plot) {
    SolBuffer plot = {0};
    report_plot_roofline(&r, cli_style(cli).width, &plot);
    if (plot.text) fact_block(root, plot.text);
    sol_buffer_free(&plot);
  }
  if (args->unfused && unfused_facts(root, d, &args->op, q, &r, &err)) return cli_error(cli, &err, 0, 0, 0);
  SolAdvice advice;
  // Advice on an operation counts its bytes in hbm.
  bool in_hbm = q->by_op && !(q->tiled && q->options.level);
  SolStatus status = in_hbm ? sol_advise_op(d, &args->op, &q->options, &advice, &err)
                            : sol_advise_work(d, &q->work, &q->options, &advice, &err);
  if (status) return cli_error(cli, &err, 0, 0, 0);
  advice_facts(root, &r, &advice);
  return cli_print(cli, root);
}

static int side_by_side(Cli *cli, const SolDevice **devices, int count, const Question *q) {
  static const FactColumn columns[] = {
      {"device", 0}, {"time", 0},    {"bound", FIT_WRAP}, {"attainable", 0}, {"ridge", 0},
      {"memory", 0}, {"compute", 0}, {"launch", 0},       {"intensity", 0},  {0}};
  Fact *root = facts_root(&cli->arena, FACT_LIST);
  fact_columns(root, columns);
  for (int i = 0; i < count; i++) {
    SolRoofline r = {0};
    SolError err = {0};
    sol_roofline(devices[i], &q->work, &q->options, &r, &err);
    brief(root, devices[i], q, &r, &err);
  }
  return cli_print(cli, root);
}

static int list_ops(Cli *cli) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  schema(root);
  static const FactColumn columns[] = {{"operation", 0},
                                       {"computes", FIT_WRAP},
                                       {"shape", FIT_CUT},
                                       {"bytes and FLOPs counted", FIT_WRAP},
                                       {0}};
  Fact *list = fact_list(root, "ops", "Operations");
  fact_columns(list, columns);
  for (int i = 0; i < sol_op_count(); i++) {
    const SolOpInfo *op = sol_op_info(i);
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", "operation", op->name);
    fact_text(row, "shape", "shape", op->shape);
    fact_text(row, "summary", "computes", op->summary);
    fact_text(row, "counts", "bytes and FLOPs counted", op->counts);
  }
  return cli_print(cli, root);
}

// A gemm's bytes below hbm are those of its tiles.
static int ask_tiles(Cli *cli, const RooflineArgs *args, const char *op, Question *q) {
  SolError err = {0};
  int64_t sides[3] = {0};
  int rank = 0;
  bool gemm = strcmp(op, "gemm") == 0;
  if (args->tile && !gemm) return cli_fail(cli, "--tile goes with gemm");
  if (args->tile && (sol_parse_shape(args->tile, strlen(args->tile), 3, sides, &rank, &err) || rank != 3))
    return cli_fail(cli, "--tile is MxNxK, as 128x256x64, not %.60s", args->tile);
  q->tile = (SolTile){sides[0], sides[1], sides[2]};
  q->tiled = gemm && (args->tile || args->level);
  if (q->tiled && sol_gemm_bytes(&args->op, &q->tile, (SolLevel)args->level, &q->work.bytes, &err))
    return cli_error(cli, &err, "tile", args->tile, args->tile ? strlen(args->tile) : 0);
  return EXIT_OK;
}

static int ask_op(Cli *cli, RooflineArgs *args, Question *q) {
  const char *const *word = args->common.positional;
  SolError err = {0};
  if (cli_given(cli, "bytes") || cli_given(cli, "flops"))
    return cli_fail(cli, "either an operation or --bytes and --flops, not both");
  if (sol_op_find(word[0], &args->op.op, &err)) {
    if (!err.hint[0]) sol_hint(&err, "'sol roofline --list' lists them");
    return cli_error(cli, &err, 0, 0, 0);
  }
  const SolOpInfo *info = sol_op_info(args->op.op);
  if (args->common.positional_count < 2)
    return cli_fail(cli, "%s needs a shape: %s", info->name, info->shape);
  if (args->common.positional_count > 2) return cli_fail(cli, "unexpected argument '%.60s'", word[2]);
  int rank = 0;
  if (sol_parse_shape(word[1], strlen(word[1]), SOL_MAX_DIMS, args->op.dim, &rank, &err))
    return cli_error(cli, &err, "shape", word[1], strlen(word[1]));
  if (rank < info->rank_min || rank > info->rank_max)
    return cli_fail(cli, "%s takes a shape %s, not %s", info->name, info->shape, word[1]);
  if (cli_given(cli, "unit"))
    return cli_fail(cli, "--unit goes with --flops; an operation's units are part of its definition");
  args->op.phase = (SolPhase)args->phase;
  args->op.axis = (SolAxis)args->axis;
  if (sol_op_cost(&args->op, &q->cost, &err)) return cli_error(cli, &err, 0, 0, 0);
  q->by_op = true;
  q->work = sol_work_of_cost(&q->cost);
  // An operation is one kernel; its launch may be left out, not multiplied.
  if (cli_given(cli, "launches") && args->launches > 1)
    return cli_fail(cli, "%s is one launch; --launches takes 0 or 1 here", info->name);
  q->options.no_launch = cli_given(cli, "launches") && args->launches == 0;
  SolDtype dtype = args->op.dtype ? args->op.dtype : SOL_BF16;
  sol_format(q->name, sizeof q->name, "%s %s %s", info->name, word[1], sol_dtype_name(dtype));
  const char *tile = args->tile ? args->tile : "128x256x64";
  int code = ask_tiles(cli, args, info->name, q);
  if (q->tiled)
    sol_format(q->name, sizeof q->name, "%s %s %s, tiles of %.60s", info->name, word[1],
               sol_dtype_name(dtype), tile);
  return code;
}

static int ask_raw(Cli *cli, RooflineArgs *args, Question *q) {
  if (!cli_given(cli, "bytes") && !cli_given(cli, "flops"))
    return cli_fail(cli, "name an operation and its shape, or give --bytes and --flops");
  if (args->unfused) return cli_fail(cli, "--unfused goes with an operation");
  if (args->tile) return cli_fail(cli, "--tile goes with gemm");
  for (int i = 0; i < cli->command->option_count; i++) {
    const Option *o = &cli->command->options[i];
    bool op_only = o->offset >= offsetof(RooflineArgs, op) && o->offset < offsetof(RooflineArgs, unit) &&
                   o->offset != offsetof(RooflineArgs, op.dtype);
    if (op_only && cli_given(cli, o->name)) return cli_fail(cli, "--%s goes with an operation", o->name);
  }
  if (cli_given(cli, "phase") || cli_given(cli, "axis"))
    return cli_fail(cli, "--phase and --axis go with an operation");
  q->work = (SolWork){.bytes = args->bytes,
                      .flops = args->flops,
                      .launches = cli_given(cli, "launches") ? (double)args->launches : 1,
                      .dtype = args->op.dtype,
                      .unit = (SolUnit)args->unit};
  sol_format(q->name, sizeof q->name, "%.6g bytes, %.6g FLOPs", args->bytes, args->flops);
  return EXIT_OK;
}

static int run(Cli *cli, void *arguments) {
  RooflineArgs *args = arguments;
  if (args->list) return list_ops(cli);
  Question q = {.options = {.level = (SolLevel)args->level, .graph = args->graph}};
  int code = args->common.positional_count ? ask_op(cli, args, &q) : ask_raw(cli, args, &q);
  const SolDevice *devices[64];
  int count = 0;
  if (!code) code = cli_accelerators(cli, args->device, devices, 64, &count);
  if (code) return code;
  if (count == 1) return in_full(cli, args, devices[0], &q);
  if (args->unfused) return cli_fail(cli, "--unfused shows one device; name one with --device");
  return side_by_side(cli, devices, count, &q);
}

#define OP_FIELD(field) offsetof(RooflineArgs, op.field)
static const Option options[] = {
    {"bytes", OPTION_NUMBER, offsetof(RooflineArgs, bytes), "BYTES", 0, 0, "bytes moved: 40e6, 16MiB"},
    {"flops", OPTION_NUMBER, offsetof(RooflineArgs, flops), "FLOPS", 0, 0,
     "floating-point operations: 5e6, 4G"},
    {"launches", OPTION_COUNT, offsetof(RooflineArgs, launches), "N", 0, 0,
     "kernel launches (default 1; 0 leaves the term out)"},
    DEVICE_OPTION(RooflineArgs, device, 1),
    {"dtype", OPTION_DTYPE, OP_FIELD(dtype), "DTYPE", 0, 0, "element type (default bf16)"},
    {"out-dtype", OPTION_DTYPE, OP_FIELD(out_dtype), "DTYPE", 0, 0, "of the output (default: dtype)"},
    {"weight-dtype", OPTION_DTYPE, OP_FIELD(weight_dtype), "DTYPE", 0, 0,
     "of weights, biases and tables (default: dtype)"},
    {"id-dtype", OPTION_DTYPE, OP_FIELD(id_dtype), "DTYPE", 0, 0, "of ids and indices (default int32)"},
    {"kv-dtype", OPTION_DTYPE, OP_FIELD(kv_dtype), "DTYPE", 0, 0, "attention: of K and V (default: dtype)"},
    {"vocab", OPTION_COUNT, OP_FIELD(vocab), "ROWS", 0, 1, "embedding, gather: rows of the table"},
    {"kv-heads", OPTION_COUNT, OP_FIELD(kv_heads), "N", 0, 1, "attention: heads of K and V (default: as Q)"},
    {"window", OPTION_COUNT, OP_FIELD(window), "N", 0, 1, "attention: sliding window in tokens"},
    {"queries", OPTION_COUNT, OP_FIELD(queries), "N", 0, 1,
     "attention, decode: new tokens a sequence (default 1)"},
    {"v-dim", OPTION_COUNT, OP_FIELD(v_dim), "N", 0, 1, "attention: width of a head of V (default: as K)"},
    {"bins", OPTION_COUNT, OP_FIELD(bins), "N", 0, 1, "histogram: bins (default 256)"},
    {"radius", OPTION_COUNT, OP_FIELD(radius), "N", 0, 1, "stencil: points each way (default 1)"},
    {"phase", OPTION_CHOICE, offsetof(RooflineArgs, phase), "PHASE", "prefill|decode", 0,
     "attention: every position, or one new token"},
    {"axis", OPTION_CHOICE, offsetof(RooflineArgs, axis), "AXIS", "rows|columns|all", 0,
     "reduce, argmax: over each row, column, or all"},
    {"unit", OPTION_CHOICE, offsetof(RooflineArgs, unit), "UNIT", "default|tensor|vector", 0,
     "with --flops: which units compute"},
    {"level", OPTION_CHOICE, offsetof(RooflineArgs, level), "LEVEL", "hbm|l2|smem", 0,
     "memory the bytes move through"},
    {"tile", OPTION_TEXT, offsetof(RooflineArgs, tile), "MxNxK", 0, 0,
     "gemm: what it computes at a time, for l2 and smem (default 128x256x64)"},
    {"graph", OPTION_FLAG, offsetof(RooflineArgs, graph), 0, 0, 0,
     "launches cost what they cost in a CUDA graph"},
    {"unfused", OPTION_FLAG, offsetof(RooflineArgs, unfused), 0, 0, 0,
     "compare the separate kernels with the fused one"},
    {"no-plot", OPTION_FLAG, offsetof(RooflineArgs, no_plot), 0, 0, 0, "leave the drawing out"},
    {"list", OPTION_FLAG, offsetof(RooflineArgs, list), 0, 0, 0,
     "list the operations and how each is counted"},
    HTML_OPTION,
    SVG_OPTION,
    COMMON_OPTIONS};

const Command cmd_roofline = {
    .name = "roofline",
    .usage = "OP SHAPE | --bytes BYTES --flops FLOPS  [--device NAME,...|all] [options]",
    .summary = "how fast could it be: bytes, FLOPs and launches under a device's roof",
    .details =
        "time = max(bytes / bandwidth, flops / peak) + launches x launch cost. Bytes and FLOPs are counted "
        "(each input read once, each output written once); times are modelled from the device's published "
        "figures.\n\n"
        "JSON, one device: schema, device, bytes, flops, launches, intensity, ridge, bound "
        "(memory|compute|launch), time_us, terms {memory_us, compute_us, launch_us}, attainable_flops, "
        "attainable_bytes, levels [...] (gemm in tiles), advice {response, steps}, unfused {...}; several devices: an array of these.",
    .examples = "sol roofline rmsnorm 8192x4096 --dtype bf16\n"
                "sol roofline gemm 4096x4096x4096 --dtype fp16 --device all\n"
                "sol roofline gemm 8192x8192x8192 --tile 128x256x64 --level smem --device h100\n"
                "sol roofline embedding 8192x4096 --vocab 128256\n"
                "sol roofline attention 8x32x4096x128 --kv-heads 8 --phase decode\n"
                "sol roofline bias_relu_scale 1000x4000 --unfused\n"
                "sol roofline --bytes 40e6 --flops 5e6 --launches 3 --dtype bf16",
    .positional = "ops",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(RooflineArgs),
    .run = run,
};
