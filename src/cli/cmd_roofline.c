// sol roofline: bytes and FLOPs of an operation, or given as numbers, under a device's roof.
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli_figures.h"
#include "report/plot.h"
#include "report/report_roofline.h"

typedef struct RooflineArgs {
  CommonArgs common;
  const char *device;
  FigureArgs figures;
  double bytes, flops;
  int64_t launches;
  SolOpArgs op;
  int unit, level, phase, axis;
  const char *tile;
  bool graph, unfused, list, no_plot;
} RooflineArgs;

static int in_full(Cli *cli, const RooflineArgs *args, const SolDevice *d, const RooflineQuestion *q,
                   const Figures *figures) {
  SolRoofline r;
  SolError err = {0};
  if (sol_roofline(d, &q->work, &q->options, &r, &err)) return cli_error(cli, &err, 0, 0, 0);
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  report_roofline_facts(root, d, q, &r);
  if (!args->no_plot) {
    SolBuffer plot = {0};
    report_plot_roofline(&r, cli_style(cli).width, &plot);
    if (plot.text) fact_block(root, plot.text);
    sol_buffer_free(&plot);
  }
  if ((args->unfused && report_roofline_unfused(root, d, q, &r, &err)) ||
      report_roofline_advice(root, d, q, &r, &err))
    return cli_error(cli, &err, 0, 0, 0);
  cli_figures_note(root, figures);
  return cli_print(cli, root);
}

static int side_by_side(Cli *cli, const SolDevice **devices, int count, const RooflineQuestion *q,
                        const Figures *figures) {
  static const FactColumn columns[] = {
      {"device", 0}, {"time", 0},    {"bound", FIT_WRAP}, {"attainable", 0}, {"ridge", 0},
      {"memory", 0}, {"compute", 0}, {"launch", 0},       {"intensity", 0},  {0}};
  Fact *root = facts_root(&cli->arena, FACT_LIST);
  fact_columns(root, columns);
  for (int i = 0; i < count; i++) {
    SolRoofline r = {0};
    SolError err = {0};
    sol_roofline(devices[i], &q->work, &q->options, &r, &err);
    report_roofline_row(root, devices[i], q, &r, &err);
  }
  if (figures->said[0]) fact_note(root, "Not the published roofs alone: %s.", figures->said);
  return cli_print(cli, root);
}

static int list_ops(Cli *cli) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
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
static int ask_tiles(Cli *cli, const RooflineArgs *args, RooflineQuestion *q) {
  SolError err = {0};
  if (args->tile && strcmp(sol_op_info(q->op.op)->name, "gemm") != 0)
    return cli_fail(cli, "--tile goes with gemm");
  if (!report_roofline_tiles(q, args->tile ? args->tile : "", &err)) return EXIT_OK;
  return cli_error(cli, &err, "tile", args->tile, args->tile ? strlen(args->tile) : 0);
}

static int ask_op(Cli *cli, RooflineArgs *args, RooflineQuestion *q) {
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
  q->op = args->op;
  q->work = sol_work_of_cost(&q->cost);
  // An operation is one kernel; its launch may be left out, not multiplied.
  if (cli_given(cli, "launches") && args->launches > 1)
    return cli_fail(cli, "%s is one launch; --launches takes 0 or 1 here", info->name);
  q->options.no_launch = cli_given(cli, "launches") && args->launches == 0;
  SolDtype dtype = args->op.dtype ? args->op.dtype : SOL_BF16;
  sol_format(q->name, sizeof q->name, "%s %s %s", info->name, word[1], sol_dtype_name(dtype));
  return ask_tiles(cli, args, q);
}

static int ask_raw(Cli *cli, RooflineArgs *args, RooflineQuestion *q) {
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
  RooflineQuestion q = {.options = {.level = (SolLevel)args->level, .graph = args->graph}};
  int code = args->common.positional_count ? ask_op(cli, args, &q) : ask_raw(cli, args, &q);
  const SolDevice *devices[64];
  int count = 0;
  Figures figures = {0};
  if (!code) code = cli_figures(cli, &args->figures, args->device, devices, 64, &count, &figures);
  if (code) return code;
  if (count == 1) return in_full(cli, args, devices[0], &q, &figures);
  if (args->unfused) return cli_fail(cli, "--unfused shows one device; name one with --device");
  return side_by_side(cli, devices, count, &q, &figures);
}

#define OP_FIELD(field) offsetof(RooflineArgs, op.field)
static const Option options[] = {
    {"bytes", OPTION_NUMBER, offsetof(RooflineArgs, bytes), "BYTES", 0, 0, "bytes moved: 40e6, 16MiB"},
    {"flops", OPTION_NUMBER, offsetof(RooflineArgs, flops), "FLOPS", 0, 0,
     "floating-point operations: 5e6, 4G"},
    {"launches", OPTION_COUNT, offsetof(RooflineArgs, launches), "N", 0, 0,
     "kernel launches (default 1; 0 leaves the term out)"},
    DEVICE_OPTION(RooflineArgs, device, 1),
    FIGURE_OPTIONS(RooflineArgs, figures),
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
