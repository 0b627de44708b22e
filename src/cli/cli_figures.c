#include "cli/cli_figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/json_read.h"
#include "base/text.h"
#include "cli/device_figure.h"
#include "measure/ceilings.h"

enum { MOST_MEASURED = 16 << 20, MOST_RATES = 512 };
static const double streamed_bytes = 64 << 20; // of a case that shows a bandwidth, not a launch

typedef struct Changes {
  Cli *cli;
  const SolDevice **devices;
  int count;
  Figures *out;
} Changes;

static void say(Figures *f, const char *text) {
  size_t n = strlen(f->said);
  sol_format(f->said + n, sizeof f->said - n, "%s%s", n ? "; " : "", text);
}

// ---- by hand ----

typedef struct Value {
  double number;
  bool share; // of the published figure
} Value;

static bool read_value(const char *text, Value *out) {
  size_t n = strlen(text);
  out->share = n && text[n - 1] == '%';
  if (sol_parse_number(text, out->share ? n - 1 : n, &out->number, NULL) || !(out->number > 0)) return false;
  if (out->share) out->number /= 100;
  return true;
}

static void change(SolFigure *f, Value v, const char *source) {
  if (v.share && !sol_known(*f)) return;
  *f = (SolFigure){v.share ? f->value * v.number : v.number, source};
}

static SolFigure *peak_of(SolDevice *d, const char *dtype) {
  char name[24];
  sol_format(name, sizeof name, "peak_%s", dtype);
  return cli_device_figure(d, name);
}

static void change_all_peaks(SolDevice *d, Value v, const char *source) {
  SolFigureInfo info;
  for (int i = 0; i < sol_device_figure_count(); i++) {
    sol_device_figure(d, i, &info);
    if (strncmp(info.field, "peak_", 5) == 0) change(cli_device_figure(d, info.field), v, source);
  }
}

// "name=value": the figure of that name of every device; for --peak "bf16=value", or a share alone for all peaks.
static int change_named(Changes *c, const char *option, const char *text, bool peak) {
  const char *equals = strchr(text, '=');
  char name[48] = "";
  Value v;
  if (equals) sol_format(name, sizeof name, "%.*s", (int)(equals - text), text);
  bool bandwidth = strcmp(option, "bandwidth") == 0;
  if (!read_value(equals ? equals + 1 : text, &v) || (!equals && !(peak && v.share)))
    return cli_fail(c->cli, "--%s takes %s with a number above 0 or a share such as 80%%, not '%.60s'",
                    option,
                    bandwidth ? "bytes a second,"
                    : peak    ? "DTYPE=NUMBER or a share,"
                              : "FIGURE=NUMBER,",
                    bandwidth ? equals + 1 : text);
  for (int i = 0; i < c->count; i++) {
    SolDevice *d = (SolDevice *)c->devices[i];
    SolFigure *f = !equals ? NULL : peak ? peak_of(d, name) : cli_device_figure(d, name);
    if (equals && !f)
      return cli_fail(c->cli, "--%s: '%s' is no %s; 'sol devices %s --json' shows the figures", option, name,
                      peak ? "dtype with a peak" : "figure of a device", d->id);
    if (f) change(f, v, "given on the command line");
    if (!f) change_all_peaks(d, v, "given on the command line");
  }
  char said[96];
  sol_format(said, sizeof said, "%s%s %s, given", peak ? "peak " : "", equals ? name : "of every dtype",
             equals ? equals + 1 : text);
  say(c->out, said);
  return EXIT_OK;
}

static int change_bandwidth(Changes *c, const char *text) {
  char both[64];
  sol_format(both, sizeof both, "mem_bandwidth=%.40s", text);
  return change_named(c, "bandwidth", both, false);
}

// ---- measured ----

// The devices that a file is of: those whose row has the GPU's name.
static bool is_of(const SolDevice *d, const char *gpu) {
  const SolDevice *row;
  return !sol_accelerator_find(gpu, &row, NULL) && strcmp(row->id, d->id) == 0;
}

static int not_among(Changes *c, const char *path, const char *gpu) {
  return cli_fail(c->cli, "--measured: '%.100s' is of %.60s, which is not among the devices asked for", path,
                  gpu[0] ? gpu : "a CPU");
}

static int take_ceilings(Changes *c, const char *path, const Ceilings *m) {
  char *source = sol_arena_alloc(&c->cli->arena, 160), said[200], rate[32];
  int used = 0;
  if (!source) return cli_fail(c->cli, "out of memory");
  sol_format(source, 160, "measured %s, %.100s", m->date, path);
  for (int i = 0; i < c->count; i++) {
    if (m->cpu || !is_of(c->devices[i], m->name)) continue;
    SolDevice *d = (SolDevice *)c->devices[i], old = *d;
    double read = m->values[CEILING_dram_read], sums = m->values[CEILING_nccl_sum];
    ceilings_device(m, &old, source, d);
    if (read == read) d->mem_bandwidth = (SolFigure){read, source};
    if (sums == sums) d->link_bandwidth = (SolFigure){sums, source}; // what collectives reach, not copies
    fact_write_number(rate, sizeof rate, UNIT_BYTES_PER_S, d->mem_bandwidth.value);
    used++;
  }
  if (!used) return not_among(c, path, m->cpu ? "" : m->name);
  sol_format(said, sizeof said, "memory %s, vector peak%s and launches of %s, measured %s (%.80s)", rate,
             m->gpus ? ", link" : "", m->name, m->date, path);
  say(c->out, said);
  return EXIT_OK;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double field(SolJson object, const char *name) {
  SolJson value;
  double number;
  return sol_json_get(object, name, &value) && sol_json_number(value, &number) ? number : 0;
}

// The median rate of an operation's cases that move enough bytes.
static double rate_of(SolJson cases, const char *op) {
  double rates[MOST_RATES] = {0};
  size_t n = 0;
  SolJsonIter it = {.container = cases};
  SolJson row;
  while (n < MOST_RATES && sol_json_next(&it, NULL, &row)) {
    double bytes = field(row, "bytes"), us = field(row, "time_us");
    if (sol_json_text_is(row, "op", op) && bytes >= streamed_bytes && us > 0) rates[n++] = bytes / us * 1e6;
  }
  qsort(rates, n, sizeof *rates, by_value);
  return n ? rates[n / 2] : 0;
}

static bool has_op(const Figures *f, const char *op) {
  for (int i = 0; i < f->op_count; i++)
    if (strcmp(f->ops[i].op, op) == 0) return true;
  return false;
}

static int take_bench(Changes *c, const char *path, SolJson root, SolJson cases) {
  SolJsonIter it = {.container = cases};
  SolJson row, value;
  char gpu[96] = "", op[32], said[200];
  Figures *f = c->out;
  if (sol_json_get(root, "gpu", &value)) sol_json_string(value, gpu, sizeof gpu);
  if (c->count != 1 || !is_of(c->devices[0], gpu)) return not_among(c, path, gpu);
  while (f->op_count < MOST_MEASURED_OPS && sol_json_next(&it, NULL, &row)) {
    if (!sol_json_get(row, "op", &value) || !sol_json_string(value, op, sizeof op) || has_op(f, op)) continue;
    double rate = rate_of(cases, op);
    if (rate <= 0) continue;
    f->ops[f->op_count].bytes_per_s = rate;
    sol_format(f->ops[f->op_count++].op, sizeof f->ops->op, "%s", op);
  }
  sol_format(said, sizeof said, "rates of %d operations measured on %.60s (%.80s)", f->op_count, gpu, path);
  say(f, said);
  return EXIT_OK;
}

static int take_measured(Changes *c, const char *path) {
  SolError err = {0};
  size_t length;
  char *text = cli_read_file(path, MOST_MEASURED, &length, &err);
  if (!text) return cli_error(c->cli, &err, 0, 0, 0);
  SolJson root, cases;
  Ceilings m;
  int code;
  if (sol_json_check(text, length, &root, &err))
    code = cli_error(c->cli, &err, path, text, length);
  else if (sol_json_get(root, "cases", &cases))
    code = take_bench(c, path, root, cases);
  else if (!ceilings_read(text, length, &m, &err))
    code = take_ceilings(c, path, &m);
  else
    code =
        cli_fail(c->cli, "--measured: '%.100s' is neither of sol devices --measure nor of sol bench", path);
  free(text);
  return code;
}

static bool copy_devices(Changes *c) {
  for (int i = 0; i < c->count; i++) {
    SolDevice *copy = sol_arena_alloc(&c->cli->arena, sizeof *copy);
    if (!copy) return false;
    *copy = *c->devices[i];
    c->devices[i] = copy;
  }
  return true;
}

static int take_devices(Cli *cli, const FigureArgs *args, const char *list, const SolDevice **out, int cap,
                        int *count) {
  SolError err = {0};
  int code = EXIT_OK;
  *count = 0;
  if (list || !args->device_file) code = cli_accelerators(cli, list, out, cap - 1, count);
  if (code || !args->device_file) return code;
  if (cli_device_file(cli, args->device_file, &out[*count], &err)) return cli_error(cli, &err, 0, 0, 0);
  ++*count;
  return EXIT_OK;
}

int cli_figures(Cli *cli, const FigureArgs *args, const char *list, const SolDevice **devices, int cap,
                int *count, Figures *out) {
  *out = (Figures){0};
  int code = take_devices(cli, args, list, devices, cap, count);
  Changes c = {cli, devices, *count, out};
  if (code || (!args->bandwidth && !args->peaks.count && !args->sets.count && !args->measured.count))
    return code;
  if (!copy_devices(&c)) return cli_fail(cli, "out of memory");
  for (int i = 0; !code && i < args->measured.count; i++) code = take_measured(&c, args->measured.text[i]);
  if (!code && args->bandwidth) code = change_bandwidth(&c, args->bandwidth);
  for (int i = 0; !code && i < args->peaks.count; i++)
    code = change_named(&c, "peak", args->peaks.text[i], true);
  for (int i = 0; !code && i < args->sets.count; i++)
    code = change_named(&c, "set", args->sets.text[i], false);
  return code;
}

void cli_figures_note(Fact *root, const Figures *figures) {
  if (!figures->said[0]) return;
  fact_text(root, "figures", 0, figures->said);
  fact_note(root, "Not the published roofs alone: %s.", figures->said);
}
