// Choosing a GPU: the pass on several of them, over batches and contexts, against targets, with prices.
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli_model.h"
#include "report/plot.h"

enum { MOST_VALUES = 64, MOST_POINTS = 48, MOST_GPUS = 8, MOST_BATCH = 1 << 20 };

typedef struct Values {
  int64_t list[MOST_VALUES];
  int count;
} Values;

typedef struct Choice {
  Cli *cli;
  const SolModelConfig *config;
  const Figures *figures;
  SolModelRun run; // batch, context and tp are each case's
  Values batches, contexts, gpus;
  double ttft_us, tpot_us;       // 0: no such target
  PlotPoint points[MOST_POINTS]; // tokens/s of the cases that are possible
  int point_count;
  bool priced, powered;
} Choice;

// What a GPU is said to cost; 0: not said.
typedef struct Offer {
  const SolDevice *device;
  double price, watts;
} Offer;

typedef struct Outcome {
  SolModelReport decode;
  double ttft_us; // of one prompt
  bool possible;
  char why[160]; // not possible
} Outcome;

bool cli_model_chooses(const ModelArgs *args, int device_count) {
  return device_count > 1 || args->sweeps.count || args->prices.count || args->watts.count || args->ttft ||
         args->tpot;
}

// ---- what was asked ----

int cli_model_duration(Cli *cli, const char *option, const char *text, double *us) {
  static const struct {
    const char *name;
    double us;
  } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"", 1e3}};
  *us = 0;
  if (!text) return EXIT_OK;
  size_t n = strspn(text, "0123456789.eE+-");
  SolError err = {0};
  for (size_t i = 0; i < SOL_COUNT(units); i++)
    if (strcmp(text + n, units[i].name) == 0 && !sol_parse_number(text, n, us, &err) && *us > 0) {
      *us *= units[i].us;
      return EXIT_OK;
    }
  return cli_fail(cli, "--%s takes a time above 0 such as 200ms, 0.2s or 1500us, not '%.40s'", option, text);
}

static bool add_value(Values *v, int64_t value) {
  if (v->count == MOST_VALUES) return false;
  v->list[v->count++] = value;
  return true;
}

// "1..256": doubled from the first to the last, which is always there.
static bool add_range(Values *v, int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at *= 2)
    if (!add_value(v, at)) return false;
  return add_value(v, last);
}

static bool read_values(const char *text, Values *v, SolError *err) {
  v->count = 0;
  for (const char *p = text;; p++) {
    size_t n = strcspn(p, ",");
    const char *dots = strstr(p, "..");
    size_t before = dots && dots < p + n ? (size_t)(dots - p) : n;
    int64_t first, last;
    if (sol_parse_count(p, before, 1, &first, err)) return false;
    last = first;
    if (before < n && sol_parse_count(dots + 2, n - before - 2, first, &last, err)) return false;
    if (!add_range(v, first, last))
      return sol_fail(err, SOL_ERR_RANGE, "a sweep has at most %d values", MOST_VALUES), false;
    p += n;
    if (!*p) return true;
  }
}

static int read_sweeps(Choice *c, const ModelArgs *args) {
  const struct {
    const char *name;
    Values *values;
  } fields[] = {{"batch", &c->batches}, {"context", &c->contexts}, {"tp", &c->gpus}};
  for (int i = 0; i < args->sweeps.count; i++) {
    const char *text = args->sweeps.text[i], *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : 0, f = 0;
    SolError err = {0};
    while (f < SOL_COUNT(fields) && (strlen(fields[f].name) != n || strncmp(fields[f].name, text, n) != 0))
      f++;
    if (f == SOL_COUNT(fields))
      return cli_fail(
          c->cli, "--sweep takes batch=, context= or tp= and values such as 1..256 or 1,8,64, not '%.40s'",
          text);
    if (!read_values(equals + 1, fields[f].values, &err))
      return cli_error(c->cli, &err, "--sweep", equals + 1, strlen(equals + 1));
  }
  return EXIT_OK;
}

// The device that a price names: one that was asked for, of a file too, or of the table.
static SolStatus find_offer(const char *name, const Offer *offers, int count, const SolDevice **out,
                            SolError *err) {
  for (int d = 0; d < count; d++)
    if (strcmp(offers[d].device->id, name) == 0) return *out = offers[d].device, SOL_OK;
  return sol_accelerator_find(name, out, err);
}

// "h100=2.5": for the device that is meant.
static int read_offers(Cli *cli, const char *option, const TextList *list, Offer *offers, int count,
                       size_t field) {
  for (int i = 0; i < list->count; i++) {
    const char *text = list->text[i], *equals = strchr(text, '=');
    const SolDevice *device;
    SolError err = {0};
    char name[64];
    double value, old;
    sol_format(name, sizeof name, "%.*s", equals ? (int)(equals - text) : 0, text);
    if (!equals || equals == text || sol_parse_number(equals + 1, strlen(equals + 1), &value, &err) ||
        !(value > 0))
      return cli_fail(cli, "--%s takes GPU=NUMBER with a number above 0, such as h100=2.5, not '%.40s'",
                      option, text);
    if (find_offer(name, offers, count, &device, &err)) return cli_error(cli, &err, option, 0, 0);
    int used = 0;
    for (int d = 0; d < count; d++) {
      if (strcmp(offers[d].device->id, device->id) != 0) continue;
      memcpy(&old, (char *)&offers[d] + field, sizeof old);
      if (old > 0) return cli_fail(cli, "--%s names %s twice", option, device->id);
      memcpy((char *)&offers[d] + field, &value, sizeof value), used++;
    }
    if (!used)
      return cli_fail(cli, "--%s names %s, which is not among the GPUs asked for", option, device->id);
  }
  return EXIT_OK;
}

// ---- one case ----

static bool impossible(Outcome *o, const char *format, ...) SOL_PRINTF(2, 3);
static bool impossible(Outcome *o, const char *format, ...) {
  va_list args;
  va_start(args, format);
  sol_vformat(o->why, sizeof o->why, format, args);
  va_end(args);
  o->possible = false;
  return false;
}

// Of one token of a sequence: a step may make several.
static double step_us(const SolModelReport *r) {
  return r->total_us / r->accepted;
}

static double used_bytes(const SolModelReport *r) {
  return r->weight_bytes + r->kv_bytes + r->activation_bytes;
}

static bool try_case(const Choice *c, const SolDevice *d, Outcome *o) {
  SolModelRun run = c->run;
  SolModelReport prefill;
  SolError err = {0};
  run.phase = SOL_PHASE_DECODE;
  o->possible = true;
  if (sol_model_run(d, c->config, &run, &o->decode, &err)) return impossible(o, "%s", err.message);
  run.phase = SOL_PHASE_PREFILL;
  run.batch = 1;
  if (sol_model_run(d, c->config, &run, &prefill, &err)) return impossible(o, "%s", err.message);
  o->ttft_us = prefill.total_us;
  if (o->decode.memory_bytes > 0 && used_bytes(&o->decode) > o->decode.memory_bytes)
    return impossible(o, "does not fit: %.4g GB on each GPU, which has %.4g", used_bytes(&o->decode) / 1e9,
                      o->decode.memory_bytes / 1e9);
  if (c->ttft_us > 0 && o->ttft_us > c->ttft_us)
    return impossible(o, "the first token takes %.4g ms", o->ttft_us / 1e3);
  if (c->tpot_us > 0 && step_us(&o->decode) > c->tpot_us)
    return impossible(o, "a token takes %.4g ms at batch %lld", step_us(&o->decode) / 1e3,
                      (long long)o->decode.run.batch);
  return true;
}

static bool try_batch(const Choice *c, const SolDevice *d, int64_t batch, Outcome *o) {
  Choice at = *c;
  at.run.batch = batch;
  return try_case(&at, d, o);
}

// The largest batch that fits and meets the targets: time and memory grow with the batch.
static bool largest_batch(const Choice *c, const SolDevice *d, Outcome *o) {
  Outcome next;
  int64_t good = 1, bad = 2;
  if (!try_batch(c, d, 1, o)) return false;
  for (; bad <= MOST_BATCH && try_batch(c, d, bad, &next); bad *= 2) good = bad;
  while (bad - good > 1) {
    int64_t middle = good + (bad - good) / 2;
    *(try_batch(c, d, middle, &next) ? &good : &bad) = middle;
  }
  return try_batch(c, d, good, o);
}

// ---- rows ----

static void money_facts(Fact *row, const Choice *c, const Offer *offer, const SolModelReport *r) {
  double gpus = r->gpus, per_s = r->tokens_per_s;
  if (c->priced && offer->price > 0) {
    fact_number(row, "price_per_hour", 0, UNIT_PLAIN, BASIS_NONE, offer->price * gpus);
    fact_number(row, "price_per_million_tokens", "price per 1M tokens", UNIT_PLAIN, BASIS_MODELLED,
                offer->price * gpus / (per_s * 3600) * 1e6);
  }
  if (c->powered && offer->watts > 0) {
    fact_number(row, "watts", 0, UNIT_PLAIN, BASIS_NONE, offer->watts * gpus);
    fact_number(row, "joules_per_token", "J per token", UNIT_PLAIN, BASIS_MODELLED,
                offer->watts * gpus / per_s);
  }
}

static void memory_facts(Fact *row, const Outcome *o) {
  const SolModelReport *r = &o->decode;
  if (r->weight_bytes <= 0) return; // the pass could not be made
  fact_number(row, "weight_bytes", "weights", UNIT_BYTES, BASIS_EXACT, r->weight_bytes);
  fact_number(row, "kv_bytes", "KV cache", UNIT_BYTES, BASIS_EXACT, r->kv_bytes);
  fact_number(row, "activation_bytes", 0, UNIT_BYTES, BASIS_EXACT, r->activation_bytes);
  if (r->memory_bytes > 0)
    fact_number(row, "free_bytes", o->possible ? "free" : 0, UNIT_BYTES, BASIS_EXACT,
                r->memory_bytes - used_bytes(r));
}

static void time_facts(Fact *row, const Outcome *o) {
  const SolModelReport *r = &o->decode;
  fact_number(row, "ttft_us", "first token", UNIT_US, BASIS_MODELLED, o->ttft_us);
  fact_number(row, "tpot_us", "per token", UNIT_US, BASIS_MODELLED, step_us(r));
  fact_number(row, "link_us", 0, UNIT_US, BASIS_MODELLED, r->link_us);
  fact_number(row, "tokens_per_s", "tokens/s", UNIT_PLAIN, BASIS_MODELLED, r->tokens_per_s);
  fact_number(row, "tokens_per_s_per_gpu", "per GPU", UNIT_PLAIN, BASIS_MODELLED, r->tokens_per_s / r->gpus);
}

static double gpus_asked(const SolModelRun *run) {
  const int64_t ways[] = {run->tp, run->pp, run->cp, run->dp};
  double all = 1;
  for (size_t i = 0; i < SOL_COUNT(ways); i++) all *= ways[i] ? (double)ways[i] : 1;
  return all;
}

static void add_point(Choice *c, const Offer *offer, const SolModelReport *r) {
  char *label = sol_arena_alloc(&c->cli->arena, 80);
  if (!label || c->point_count == MOST_POINTS) return;
  size_t n = sol_format(label, 80, "%.30s", offer->device->id);
  if (c->gpus.count > 1) n += sol_format(label + n, 80 - n, " x%lld", (long long)r->run.tp);
  if (c->batches.count > 1) n += sol_format(label + n, 80 - n, " batch %lld", (long long)r->run.batch);
  if (c->contexts.count > 1) sol_format(label + n, 80 - n, " at %lld", (long long)r->run.context);
  c->points[c->point_count++] = (PlotPoint){label, 0, r->tokens_per_s};
}

// A sweep is drawn as well.
static void draw_points(Fact *root, const Choice *c) {
  bool swept = c->batches.count > 1 || c->contexts.count > 1 || c->gpus.count > 1;
  SolBuffer plot = {0};
  if (!swept || c->ttft_us > 0 || c->tpot_us > 0 || c->point_count < 2) return;
  sol_buffer_puts(&plot, "tokens/s\n");
  report_plot_bars(c->points, c->point_count, UNIT_PLAIN, cli_columns(1), &plot);
  if (plot.text) fact_block(root, plot.text);
  sol_buffer_free(&plot);
}

static void put_row(Fact *list, Choice *c, const Offer *offer, const Outcome *o) {
  const SolModelRun *run = &o->decode.run;
  Fact *row = fact_object(list, 0, 0);
  fact_text(row, "device", "GPU", offer->device->id);
  fact_number(row, "tp", 0, UNIT_PLAIN, BASIS_NONE, (double)run->tp);
  fact_number(row, "gpus", "GPUs", UNIT_PLAIN, BASIS_NONE, gpus_asked(run));
  fact_number(row, "batch", "batch", UNIT_PLAIN, BASIS_NONE, (double)run->batch);
  fact_number(row, "context", "context", UNIT_PLAIN, BASIS_NONE, (double)run->context);
  fact_bool(row, "possible", 0, o->possible);
  if (o->possible) time_facts(row, o);
  if (o->possible) money_facts(row, c, offer, &o->decode);
  if (o->possible) add_point(c, offer, &o->decode);
  memory_facts(row, o);
  bool vector = o->possible && o->decode.vector_unknown;
  fact_text(row, "why", "remark",
            vector ? "vector arithmetic not counted: its peak is not published" : o->why);
}

// With targets: the fewest GPUs that meet them, with their largest batch; else every case asked for.
static void put_device(Fact *list, Choice *c, const Offer *offer) {
  bool targets = c->ttft_us > 0 || c->tpot_us > 0;
  for (int x = 0; x < c->contexts.count; x++) {
    Outcome o = {0};
    c->run.context = c->contexts.list[x];
    for (int g = 0; g < c->gpus.count; g++) {
      c->run.tp = c->gpus.list[g];
      for (int b = 0; !targets && b < c->batches.count; b++) {
        o = (Outcome){0};
        try_batch(c, offer->device, c->batches.list[b], &o);
        put_row(list, c, offer, &o);
      }
      if (targets && largest_batch(c, offer->device, &o)) break;
    }
    if (targets) put_row(list, c, offer, &o);
  }
}

static void say_heading(Fact *root, const Choice *c) {
  fact_title(root, "%s: GPUs side by side", c->config->name);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "model", 0, c->config->name);
  if (c->ttft_us > 0)
    fact_number(root, "ttft_target_us", "first token within", UNIT_US, BASIS_NONE, c->ttft_us);
  if (c->tpot_us > 0) fact_number(root, "tpot_target_us", "a token within", UNIT_US, BASIS_NONE, c->tpot_us);
}

static int print_table(Choice *c, const Offer *offers, int count) {
  static const FactColumn columns[] = {{"GPU", 0},           {"GPUs", 0},      {"batch", 0},
                                       {"remark", FIT_WRAP}, {"tokens/s", 0},  {"price per 1M tokens", 0},
                                       {"J per token", 0},   {"per token", 0}, {"first token", 0},
                                       {"context", 0},       {"weights", 0},   {"free", 0},
                                       {"KV cache", 0},      {"per GPU", 0},   {0}};
  Fact *root = facts_root(&c->cli->arena, FACT_OBJECT);
  say_heading(root, c);
  Fact *list = fact_list(root, "rows", "");
  fact_columns(list, columns);
  for (int d = 0; d < count; d++) put_device(list, c, &offers[d]);
  draw_points(root, c);
  fact_text(root, "assumed", 0, c->config->assumed);
  if (c->config->assumed[0]) fact_note(root, "Assumed: %s.", c->config->assumed);
  cli_figures_note(root, c->figures);
  fact_note(
      root,
      "First token: one prompt of the context's length. Per token: one decoding step of the batch. Both at "
      "the roofs, as sol model explains; a server is slower.");
  return cli_print(c->cli, root);
}

static void fill_defaults(Choice *c, bool targets, bool tp_given) {
  if (!c->batches.count) add_value(&c->batches, c->run.batch ? c->run.batch : 1);
  if (!c->contexts.count) add_value(&c->contexts, c->run.context ? c->run.context : 4096);
  if (c->gpus.count) return;
  if (targets && !tp_given)
    add_range(&c->gpus, 1, MOST_GPUS);
  else
    add_value(&c->gpus, c->run.tp ? c->run.tp : 1);
}

int cli_model_choose(Cli *cli, const ModelArgs *args, const SolModelConfig *config, const SolModelRun *run,
                     const SolDevice *const *devices, int device_count, const Figures *figures) {
  Choice c = {.cli = cli,
              .config = config,
              .figures = figures,
              .run = *run,
              .priced = args->prices.count > 0,
              .powered = args->watts.count > 0};
  Offer *offers = sol_arena_alloc(&cli->arena, sizeof *offers * (size_t)device_count);
  if (!offers) return cli_fail(cli, "out of memory");
  for (int d = 0; d < device_count; d++) offers[d] = (Offer){.device = devices[d]};
  int code = cli_model_duration(cli, "ttft", args->ttft, &c.ttft_us);
  if (!code) code = cli_model_duration(cli, "tpot", args->tpot, &c.tpot_us);
  if (!code) code = read_sweeps(&c, args);
  if (!code) code = read_offers(cli, "price", &args->prices, offers, device_count, offsetof(Offer, price));
  if (!code) code = read_offers(cli, "watts", &args->watts, offers, device_count, offsetof(Offer, watts));
  if (code) return code;
  if (c.batches.count && (args->ttft || args->tpot))
    return cli_fail(cli, "--sweep batch= and targets exclude each other: targets look for the largest batch");
  fill_defaults(&c, args->ttft || args->tpot, args->tp > 0);
  return print_table(&c, offers, device_count);
}
