// sol devices: the table of GPUs, or some of them in full with every figure's source.
#include "cli/devices.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/cli_fleet.h"

FactUnit cli_devices_unit(const char *unit) {
  static const struct {
    const char *name;
    FactUnit unit;
  } units[] = {{"B", UNIT_SIZE},
               {"Hz", UNIT_HZ},
               {"B/s", UNIT_BYTES_PER_S},
               {"FLOP/s", UNIT_FLOPS_PER_S},
               {"OP/s", UNIT_FLOPS_PER_S},
               {"clocks", UNIT_CLOCKS},
               {"us", UNIT_US},
               {"bit", UNIT_BITS},
               {"B/clock", UNIT_BYTES_PER_CLOCK}};
  for (size_t i = 0; i < SOL_COUNT(units); i++)
    if (strcmp(units[i].name, unit) == 0) return units[i].unit;
  return UNIT_PLAIN;
}

static void known_number(Fact *row, const char *key, const char *label, FactUnit unit, SolFigure figure) {
  if (sol_known(figure))
    fact_number(row, key, label, unit, BASIS_NONE, figure.value);
  else
    fact_unknown(row, key, label);
}

static void identity(Fact *row, const SolDevice *d, bool labelled) {
  fact_number(row, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(row, "id", labelled ? "id" : 0, d->id);
  fact_text(row, "name", labelled ? "name" : 0, d->name);
  fact_text(row, "family", labelled ? "family" : 0, d->family);
  fact_text(row, "arch", labelled ? "arch" : 0, d->arch);
  fact_text(row, "mem_type", 0, d->mem_type);
}

// All figures for JSON: plain numbers under their field names, null where unknown, with their sources.
static void machine_figures(Fact *row, const SolDevice *d) {
  SolFigureInfo info;
  for (int i = 0; i < sol_device_figure_count(); i++) {
    SolFigure figure = sol_device_figure(d, i, &info);
    known_number(row, info.field, 0, UNIT_PLAIN, figure);
  }
  Fact *sources = fact_object(row, "sources", 0);
  fact_text(sources, "mem_type", 0, d->mem_type_source);
  for (int i = 0; i < sol_device_figure_count(); i++) {
    SolFigure figure = sol_device_figure(d, i, &info);
    if (sol_known(figure)) fact_text(sources, info.field, 0, figure.source);
  }
}

typedef struct Ridge {
  double peak, ridge;
  SolUnit unit;
} Ridge;

static bool ridge_of(const SolDevice *d, SolDtype dtype, Ridge *out) {
  if (!sol_known(d->mem_bandwidth) || sol_device_peak(d, dtype, SOL_UNIT_DEFAULT, &out->peak, &out->unit, 0))
    return false;
  out->ridge = out->peak / d->mem_bandwidth.value;
  return true;
}

static void ridges(Fact *row, const SolDevice *d) {
  Fact *for_machines = fact_object(row, "ridge", 0);
  Fact *list = fact_list(row, 0, "Ridge points (dense peak over memory bandwidth)");
  for (int t = SOL_FP64; t <= SOL_INT8; t++) {
    Ridge r;
    const char *name = sol_dtype_name((SolDtype)t);
    if (!ridge_of(d, (SolDtype)t, &r)) {
      fact_unknown(for_machines, name, 0);
      continue;
    }
    fact_number(for_machines, name, 0, UNIT_PLAIN, BASIS_NONE, r.ridge);
    Fact *line = fact_object(list, 0, 0);
    fact_text(line, 0, "dtype", name);
    fact_text(line, 0, "unit", sol_unit_name(r.unit));
    fact_number(line, 0, "peak", UNIT_FLOPS_PER_S, BASIS_NONE, r.peak);
    fact_number(line, 0, "ridge", UNIT_INTENSITY, BASIS_NONE, r.ridge);
  }
}

static void in_full(Fact *root, const SolDevice *d) {
  Fact *row = fact_object(root, 0, 0);
  fact_title(row, "%s", d->name);
  identity(row, d, false);
  machine_figures(row, d);
  static const FactColumn columns[] = {{"figure", FIT_CUT}, {"value", 0}, {"source", FIT_WRAP}, {0}};
  Fact *list = fact_list(row, 0, "");
  fact_columns(list, columns);
  SolFigureInfo info;
  for (int i = -2; i < sol_device_figure_count(); i++) {
    Fact *line = fact_object(list, 0, 0);
    if (i < 0) { // two that are words
      fact_text(line, 0, "figure", i == -2 ? "architecture" : "memory type");
      if (i == -2)
        fact_textf(line, 0, "value", "%s, %s", d->family, d->arch);
      else
        fact_text(line, 0, "value", d->mem_type);
      fact_text(line, 0, "source", i == -2 ? "" : d->mem_type_source);
      continue;
    }
    SolFigure figure = sol_device_figure(d, i, &info);
    char value[64] = "unknown";
    if (sol_known(figure)) fact_write_number(value, sizeof value, cli_devices_unit(info.unit), figure.value);
    fact_text(line, 0, "figure", info.label);
    fact_text(line, 0, "value", value);
    fact_text(line, 0, "source", sol_known(figure) ? figure.source : "");
  }
  ridges(row, d);
  fact_text(row, "note", 0, d->note);
  if (d->note) fact_note(row, "Note: %s", d->note);
}

static void in_brief(Fact *root, const SolDevice *d) {
  Fact *row = fact_object(root, 0, 0);
  identity(row, d, false);
  machine_figures(row, d);
  Ridge bf16, fp32;
  fact_text(row, 0, "id", d->id);
  fact_text(row, 0, "arch", d->arch);
  known_number(row, 0, "SMs", UNIT_PLAIN, d->sms);
  known_number(row, 0, "boost", UNIT_HZ, d->boost_clock);
  fact_text(row, 0, "memory", d->mem_type);
  known_number(row, 0, "size", UNIT_SIZE, d->mem_size);
  known_number(row, 0, "bandwidth", UNIT_BYTES_PER_S, d->mem_bandwidth);
  known_number(row, 0, "L2", UNIT_SIZE, d->l2_size);
  known_number(row, 0, "fp32", UNIT_FLOPS_PER_S, d->peak_fp32);
  if (ridge_of(d, SOL_BF16, &bf16)) {
    fact_number(row, 0, "bf16 dense", UNIT_FLOPS_PER_S, BASIS_NONE, bf16.peak);
    fact_number(row, 0, "bf16 ridge", UNIT_PLAIN, BASIS_NONE, bf16.ridge);
  } else {
    const char *none = d->cc_major ? "none" : "unknown";
    fact_text(row, 0, "bf16 dense", none);
    fact_text(row, 0, "bf16 ridge", none);
  }
  if (ridge_of(d, SOL_FP32, &fp32)) fact_number(row, 0, "fp32 ridge", UNIT_PLAIN, BASIS_NONE, fp32.ridge);
  ridges(row, d);
  // The brief table leaves the ridge list to the full view.
  for (Fact *f = row ? row->first : 0; f; f = f->next)
    if (f->kind == FACT_LIST) f->label = 0;
}

int cli_devices_show(Cli *cli, const DevicesArgs *args, Fact *root, DevicesShow *brief, DevicesShow *full) {
  if (!args->common.positional_count)
    for (int i = 0; i < (args->model ? sol_device_count() : sol_accelerator_count()); i++)
      brief(root, sol_accelerator_at(i));
  for (int i = 0; i < args->common.positional_count; i++) {
    const SolDevice *devices[64];
    int count = 0, code = (args->model ? cli_devices : cli_accelerators)(cli, args->common.positional[i],
                                                                         devices, 64, &count);
    if (code) return code;
    for (int k = 0; k < count; k++) full(root, devices[k]);
  }
  return cli_print(cli, root);
}

static int run(Cli *cli, void *arguments) {
  DevicesArgs *args = arguments;
  if (args->fleet && !args->measure) return cli_fail(cli, "--fleet is for --measure");
  if (args->fleet) return cli_fleet_same(cli);
  if (args->measure) return cli_devices_measure(cli, args);
  if (args->model) return cli_devices_model(cli, args);
  static const FactColumn columns[] = {{"id", 0},         {"bandwidth", 0},  {"size", 0},   {"L2", 0},
                                       {"fp32", 0},       {"bf16 dense", 0}, {"SMs", 0},    {"arch", 0},
                                       {"bf16 ridge", 0}, {"boost", 0},      {"memory", 0}, {0}};
  Fact *root = facts_root(&cli->arena, FACT_LIST);
  fact_columns(root, columns);
  int shown = EXIT_OK;
  bool this = args->common.positional_count == 1 && strcmp(args->common.positional[0], "this") == 0;
  if (this && devices_this_cpu(cli, &shown)) return shown;
  return cli_devices_show(cli, args, root, in_brief, in_full);
}

static const Option options[] = {
    {"measure", OPTION_FLAG, offsetof(DevicesArgs, measure), 0, 0, 0,
     "measure this machine's GPU (its CPU where there is none), and keep the figures"},
    FLEET_OPTION(DevicesArgs, fleet),
    {"model", OPTION_FLAG, offsetof(DevicesArgs, model), 0, 0, 0,
     "the constants that predictions rest on, each published, measured or assumed"},
    COMMON_OPTIONS};

const Command cmd_devices = {
    .name = "devices",
    .usage = "[NAME...] [--measure|--model] [--json]",
    .summary = "GPUs and their figures, each with its source",
    .details =
        "With no name: a table of all devices. With names: each in full, with the source of every figure "
        "and the ridge point of every dtype. All peaks are dense. Figures that are not published are unknown. "
        "Devices of other makers than NVIDIA serve 'sol roofline' and 'sol model' alone; a name ending in .json "
        "is a file of figures (docs/devices.md).\n\n"
        "--measure takes some seconds: bandwidths of memory, L2 and shared memory, fp32 and tensor "
        "arithmetic, launches, latencies, and between several GPUs their link and NCCL's sums, shown next to the "
        "datasheet's. They are kept in the user's cache "
        "folder (sol/devices) and used wherever a command is given '--device this', and by 'sol profile'.\n\n"
        "--model lists what the time model knows of a GPU beyond these figures, with where each constant is "
        "from; what was measured on another GPU is assumed. With no name, how many of each there are.\n\n"
        "JSON: an array, one object a device: schema, id, name, family, arch, mem_type, every figure under "
        "its field name in plain SI units (null: unknown), sources {field: text}, ridge {dtype: FLOP/byte}. With "
        "--model: schema, id, model {published, measured, compiler, assumed, constants [{name, value, unit, "
        "basis, from, source}]}.",
    .examples = "sol devices             # the table\n"
                "sol devices h100        # one in full\n"
                "sol devices h200 b200   # two in full\n"
                "sol devices --measure   # what this machine's GPU really gives\n"
                "sol devices this        # its row, with the figures measured\n"
                "sol devices a100 --model\n"
                "sol devices --json      # as JSON",
    .positional = "devices",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(DevicesArgs),
    .run = run,
};
