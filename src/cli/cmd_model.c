// sol model: every kernel of a transformer's forward pass under a device's roof.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli_model.h"
#include "report/report_roofs.h"

enum { MAX_CONFIG = 4 << 20, MAX_DEVICES = 64 };

// A preset by name; anything with a slash or ending in .json is a file.
int cli_model_find(Cli *cli, const char *name, SolModelConfig *out) {
  SolError err = {0};
  size_t n = strlen(name);
  bool file = strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
  if (!file) {
    if (!sol_model_find(name, out, &err)) return EXIT_OK;
    if (!err.hint[0])
      sol_hint(&err, "'sol model --list' lists the presets; a config.json is given by its path");
    return cli_error(cli, &err, 0, 0, 0);
  }
  size_t length = 0;
  char *text = cli_read_file(name, MAX_CONFIG, &length, &err);
  if (!text) return cli_error(cli, &err, 0, 0, 0);
  int code = EXIT_OK;
  if (sol_model_parse(text, length, out, &err)) code = cli_error(cli, &err, name, text, length);
  free(text);
  return code;
}

static int list_presets(Cli *cli) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  Fact *list = fact_list(root, "models", "Presets");
  static const FactColumn columns[] = {{"model", 0},  {"parameters", 0}, {"active", 0},  {"also", FIT_CUT},
                                       {"layers", 0}, {"hidden", 0},     {"experts", 0}, {0}};
  fact_columns(list, columns);
  for (int i = 0; i < sol_model_preset_count(); i++) {
    const SolModelConfig *m = sol_model_preset(i);
    SolModelWeights w;
    if (sol_model_weights(m, &w, 0)) continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", "model", m->name);
    fact_text(row, "aliases", "also", m->aliases ? m->aliases : "");
    fact_number(row, "layers", "layers", UNIT_PLAIN, BASIS_NONE, (double)m->layers);
    fact_number(row, "hidden", "hidden", UNIT_PLAIN, BASIS_NONE, (double)m->hidden);
    fact_number(row, "experts", "experts", UNIT_PLAIN, BASIS_NONE, (double)m->experts);
    fact_number(row, "params", "parameters", UNIT_COUNT, BASIS_EXACT, w.params);
    fact_number(row, "active_params", "active", UNIT_COUNT, BASIS_EXACT, w.active_params);
    fact_number(row, "published_params", 0, UNIT_COUNT, BASIS_PUBLISHED, (double)m->published_params);
    fact_text(row, "source", 0, m->source);
  }
  return cli_print(cli, root);
}

static void kernel_rows(Fact *root, const SolModelReport *r) {
  Fact *list = fact_list(root, "kernels", "Kernels of the pass");
  static const FactColumn columns[] = {{"kernel", FIT_CUT},
                                       {"time", 0},
                                       {"share", 0},
                                       {"count", 0},
                                       {"bound", 0},
                                       {"bytes each", 0},
                                       {"time each", 0},
                                       {"hidden", 0},
                                       {"by", FIT_CUT},
                                       {"FLOPs each", 0},
                                       {"intensity", 0},
                                       {"part", 0},
                                       {0}};
  fact_columns(list, columns);
  for (int i = 0; i < r->count; i++) {
    const SolModelKernel *k = &r->kernels[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", "kernel", k->name);
    fact_text(row, "op", 0, k->op);
    fact_text(row, "part", "part", k->part);
    fact_number(row, "count", "count", UNIT_PLAIN, BASIS_EXACT, k->count);
    fact_number(row, "bytes_each", "bytes each", UNIT_BYTES, BASIS_EXACT, k->bytes);
    fact_number(row, "flops_each", "FLOPs each", UNIT_FLOPS, BASIS_EXACT, k->flops);
    fact_number(row, "bytes", 0, UNIT_BYTES, BASIS_EXACT, k->bytes * k->count);
    fact_number(row, "flops", 0, UNIT_FLOPS, BASIS_EXACT, k->flops * k->count);
    fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, k->intensity);
    fact_text(row, "bound", "bound", sol_bound_name(k->bound));
    fact_number(row, "time_each_us", "time each", UNIT_US, BASIS_MODELLED,
                k->count > 0 ? k->time_us / k->count : 0);
    fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, k->time_us);
    fact_number(row, "share", "share", UNIT_SHARE, BASIS_MODELLED, k->share);
    if (k->hidden_us > 0) fact_number(row, "hidden_us", "hidden", UNIT_US, BASIS_MODELLED, k->hidden_us);
    if (k->how || k->measured) fact_text(row, "by", "by", k->how ? k->how : "measured rate");
  }
  // The launches, as a separate row in text; in JSON they are launch_us.
  static const FactColumn launch_columns[] = {
      {"launch cost", FIT_CUT}, {"time", 0}, {"share", 0}, {"", 0}, {"count", 0}, {0}};
  Fact *people = fact_list(root, 0, "");
  fact_columns(people, launch_columns);
  const struct {
    const char *name;
    double us;
  } rows[] = {{"launches in a stream", r->launch_stream_us},
              {"launches in a CUDA graph", r->launch_graph_us}};
  for (int i = 0; i < 2; i++) {
    Fact *row = fact_object(people, 0, 0);
    bool counted = i == (r->run.graph ? 1 : 0);
    fact_text(row, 0, "launch cost", rows[i].name);
    fact_number(row, 0, "count", UNIT_PLAIN, BASIS_EXACT, r->launches);
    fact_number(row, 0, "time", UNIT_US, BASIS_MODELLED, rows[i].us);
    fact_number(row, 0, "share", UNIT_SHARE, BASIS_MODELLED,
                rows[i].us / (r->total_us - r->launch_us + rows[i].us));
    fact_text(row, 0, "", counted ? "counted in the total" : "");
  }
}

static void memory_facts(Fact *root, const SolModelReport *r, const SolModelWeights *w) {
  Fact *m = fact_object(root, "memory", "Memory, on one GPU");
  fact_number(m, "params", "parameters, whole model", UNIT_COUNT, BASIS_EXACT, w->params);
  fact_number(m, "active_params", "  active for one token", UNIT_COUNT, BASIS_EXACT, w->active_params);
  fact_number(m, "weight_bytes", "weights", UNIT_BYTES, BASIS_EXACT, r->weight_bytes);
  fact_number(m, "kv_bytes", "KV cache", UNIT_BYTES, BASIS_EXACT, r->kv_bytes);
  fact_number(m, "kv_bytes_per_token", "KV cache per token", UNIT_BYTES, BASIS_EXACT, r->kv_bytes_per_token);
  fact_number(m, "activation_bytes", "activations, most at once", UNIT_BYTES, BASIS_EXACT,
              r->activation_bytes);
  if (r->memory_bytes > 0) {
    fact_number(m, "device_bytes", "the device has", UNIT_BYTES, BASIS_PUBLISHED, r->memory_bytes);
    fact_bool(m, "fits", "fits", r->fits);
    fact_number(m, "max_batch", "largest batch that fits at this context", UNIT_PLAIN, BASIS_MODELLED,
                r->max_batch);
  } else {
    fact_unknown(m, "device_bytes", "the device has");
    fact_unknown(m, "fits", "fits");
  }
}

// What fusing and what graphs would buy: the same pass four times.
static int what_if(Cli *cli, Fact *root, const SolDevice *d, const SolModelConfig *config,
                   const SolModelRun *run) {
  Fact *list = fact_list(root, "what_if", "What fusing the fusable and CUDA graphs would buy");
  static const FactColumn columns[] = {{"fused", 0},       {"graph", 0},    {"total", 0},
                                       {"gain", 0},        {"tokens/s", 0}, {"launches", 0},
                                       {"launch cost", 0}, {"bytes", 0},    {0}};
  fact_columns(list, columns);
  double base = 0;
  for (int i = 0; i < 4; i++) {
    SolModelRun variant = *run;
    variant.fused = i & 1;
    variant.graph = i >> 1;
    SolModelReport r;
    SolError err = {0};
    if (sol_model_run(d, config, &variant, &r, &err)) return cli_error(cli, &err, 0, 0, 0);
    if (i == 0) base = r.total_us;
    Fact *row = fact_object(list, 0, 0);
    fact_bool(row, "fused", "fused", variant.fused);
    fact_bool(row, "graph", "graph", variant.graph);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, r.bytes);
    fact_number(row, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r.launches);
    fact_number(row, "launch_us", "launch cost", UNIT_US, BASIS_MODELLED, r.launch_us);
    fact_number(row, "total_us", "total", UNIT_US, BASIS_MODELLED, r.total_us);
    fact_number(row, "tokens_per_s", "tokens/s", UNIT_PLAIN, BASIS_MODELLED, r.tokens_per_s);
    fact_number(row, "gain", "gain", UNIT_TIMES, BASIS_MODELLED, base / r.total_us);
  }
  return EXIT_OK;
}

static int print_report(Cli *cli, const SolDevice *d, const SolModelConfig *config, const SolModelRun *run,
                        const Figures *figures) {
  static const char *const phases[] = {"prefill", "decode"};
  SolModelReport r;
  SolModelWeights w;
  SolError err = {0};
  if (sol_model_weights(config, &w, &err) || sol_model_run(d, config, run, &r, &err))
    return cli_error(cli, &err, 0, 0, 0);
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  if (r.gpus > 1)
    fact_title(root, "%s on %.0f x %s, %s", config->name, r.gpus, d->name, phases[r.run.phase]);
  else
    fact_title(root, "%s on %s, %s", config->name, d->name, phases[r.run.phase]);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "model", 0, config->name);
  fact_text(root, "device", 0, d->id);
  report_roofs_facts(root, d);
  fact_text(root, "phase", 0, phases[r.run.phase]);
  fact_number(root, "batch", "batch", UNIT_PLAIN, BASIS_NONE, (double)r.run.batch);
  fact_number(root, "context", "context", UNIT_PLAIN, BASIS_NONE, (double)r.run.context);
  cli_model_say_split(root, &r);
  fact_text(root, "dtype", "dtype", sol_dtype_name(r.run.dtype));
  fact_text(root, "weight_dtype", "weights in", sol_dtype_name(r.run.weight_dtype));
  fact_text(root, "kv_dtype", "KV cache in", sol_dtype_name(r.run.kv_dtype));
  fact_bool(root, "fused", "fused", r.run.fused);
  fact_bool(root, "graph", "CUDA graph", r.run.graph);
  fact_number(root, "bytes", "bytes of the pass, one GPU", UNIT_BYTES, BASIS_EXACT, r.bytes);
  fact_number(root, "flops", "FLOPs of the pass, one GPU", UNIT_FLOPS, BASIS_EXACT, r.flops);
  if (r.link_bytes > 0)
    fact_number(root, "link_bytes", "sent by one GPU", UNIT_BYTES, BASIS_EXACT, r.link_bytes);
  fact_number(root, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r.launches);
  fact_number(root, "launch_us", "launch cost", UNIT_US, BASIS_MODELLED, r.launch_us);
  fact_number(root, "launch_stream_us", 0, UNIT_US, BASIS_MODELLED, r.launch_stream_us);
  fact_number(root, "launch_graph_us", 0, UNIT_US, BASIS_MODELLED, r.launch_graph_us);
  fact_number(root, "layer_us", "one layer, launches left out", UNIT_US, BASIS_MODELLED, r.layer_us);
  fact_number(root, "total_us", "total", UNIT_US, BASIS_MODELLED, r.total_us);
  fact_number(root, "tokens_per_s", r.run.phase ? "tokens/s" : "prompt tokens/s", UNIT_PLAIN, BASIS_MODELLED,
              r.tokens_per_s);
  kernel_rows(root, &r);
  memory_facts(root, &r, &w);
  int code = what_if(cli, root, d, config, run);
  if (code) return code;
  fact_text(root, "assumed", 0, config->assumed);
  if (config->assumed[0]) fact_note(root, "Assumed: %s.", config->assumed);
  cli_model_split_notes(root, &r);
  cli_figures_note(root, figures);
  if (r.vector_unknown)
    fact_note(
        root,
        "The peak of the vector units is not published: norms and the like are taken at the memory roof.");
  if (r.memory_bytes > 0 && !r.fits)
    fact_note(
        root,
        "This does not fit the device's memory: more GPUs (--tp), a narrower dtype or a smaller batch.");
  return cli_print(cli, root);
}

static int run(Cli *cli, void *arguments) {
  ModelArgs *args = arguments;
  if (args->list) return list_presets(cli);
  if (!args->common.positional_count) return cli_fail(cli, "name a preset or the path of a config.json");
  if (args->common.positional_count > 1)
    return cli_fail(cli, "unexpected argument '%.60s'", args->common.positional[1]);
  SolModelConfig config;
  int code = cli_model_find(cli, args->common.positional[0], &config);
  if (code) return code;
  const SolDevice *devices[MAX_DEVICES];
  int count;
  Figures figures = {0};
  code = cli_figures(cli, &args->figures, args->device, devices, MAX_DEVICES, &count, &figures);
  if (code) return code;
  SolModelRun run = {.phase = (SolPhase)args->phase,
                     .batch = args->batch,
                     .context = args->context,
                     .tp = args->tp,
                     .dtype = args->dtype,
                     .weight_dtype = args->weight_dtype,
                     .kv_dtype = args->kv_dtype,
                     .fused = args->fused,
                     .graph = args->graph,
                     .measured = figures.ops,
                     .measured_count = figures.op_count};
  if ((code = cli_model_split(cli, args, &run))) return code;
  if (!cli_model_chooses(args, count)) return print_report(cli, devices[0], &config, &run, &figures);
  if (cli_given(cli, "phase"))
    return cli_fail(cli, "--phase is for one GPU and one case: the table shows both");
  return cli_model_choose(cli, args, &config, &run, devices, count, &figures);
}

static const Option options[] = {
    {"phase", OPTION_CHOICE, offsetof(ModelArgs, phase), "PHASE", "prefill|decode", 0,
     "process a prompt (default), or make one token a sequence"},
    {"batch", OPTION_COUNT, offsetof(ModelArgs, batch), "N", 0, 1, "sequences (default 1)"},
    {"context", OPTION_COUNT, offsetof(ModelArgs, context), "N", 0, 1,
     "prompt tokens, or tokens in the cache (default 4096)"},
    DEVICE_OPTION(ModelArgs, device, 1),
    FIGURE_OPTIONS(ModelArgs, figures),
    {"tp", OPTION_COUNT, offsetof(ModelArgs, tp), "N", 0, 1, "tensor-parallel GPUs (default 1)"},
    {"ep", OPTION_COUNT, offsetof(ModelArgs, ep), "N", 0, 1,
     "GPUs that share the experts, whole ones each (default 1): divides tp, or is a multiple that divides tp x dp"},
    {"pp", OPTION_COUNT, offsetof(ModelArgs, pp), "N", 0, 1, "pipeline stages (default 1)"},
    {"cp", OPTION_COUNT, offsetof(ModelArgs, cp), "N", 0, 1,
     "GPUs that share each sequence's tokens (default 1)"},
    {"dp", OPTION_COUNT, offsetof(ModelArgs, dp), "N", 0, 1, "replicas that share the batch (default 1)"},
    {"microbatches", OPTION_COUNT, offsetof(ModelArgs, microbatches), "N", 0, 1,
     "parts of the batch that follow each other through the pipeline (default: as many as stages)"},
    {"fabric", OPTION_TEXT, offsetof(ModelArgs, fabric), "NAME|FILE", 0, 0,
     "what joins the GPUs: nvlink4, pcie5, nvlink4,ib400 (inside and between machines), or a JSON file"},
    {"prefix", OPTION_COUNT, offsetof(ModelArgs, prefix), "N", 0, 0,
     "prompt tokens whose keys and values are in the cache already"},
    {"chunk", OPTION_COUNT, offsetof(ModelArgs, chunk), "N", 0, 1,
     "process the prompt in passes of N tokens"},
    {"draft-tokens", OPTION_COUNT, offsetof(ModelArgs, draft_tokens), "N", 0, 1,
     "speculative decoding: tokens proposed for each sequence and step"},
    {"draft", OPTION_TEXT, offsetof(ModelArgs, draft), "MODEL", "models", 0, "the model that proposes them"},
    {"acceptance", OPTION_NUMBER, offsetof(ModelArgs, acceptance), "SHARE", 0, 0,
     "share of the proposed tokens that are accepted (default 0.7)"},
    {"dtype", OPTION_DTYPE, offsetof(ModelArgs, dtype), "DTYPE", 0, 0,
     "activations and arithmetic (default: the model's, or bf16)"},
    {"weight-dtype", OPTION_DTYPE, offsetof(ModelArgs, weight_dtype), "DTYPE", 0, 0,
     "every weight (default: as the checkpoint stores them, or dtype)"},
    {"kv-dtype", OPTION_DTYPE, offsetof(ModelArgs, kv_dtype), "DTYPE", 0, 0, "KV cache (default: dtype)"},
    {"sweep", OPTION_TEXTS, offsetof(ModelArgs, sweeps), "FIELD=VALUES", 0, 0,
     "a row for each value of batch, context or tp: batch=1..256 (doubled), context=1024,8192"},
    {"ttft", OPTION_TEXT, offsetof(ModelArgs, ttft), "TIME", 0, 0,
     "target for the first token, 200ms: the fewest GPUs and the largest batch that meet it"},
    {"tpot", OPTION_TEXT, offsetof(ModelArgs, tpot), "TIME", 0, 0, "target for each further token, 20ms"},
    {"price", OPTION_TEXTS, offsetof(ModelArgs, prices), "GPU=NUMBER", 0, 0,
     "what one GPU costs an hour, h100=2.5: adds the price of a million tokens"},
    {"watts", OPTION_TEXTS, offsetof(ModelArgs, watts), "GPU=NUMBER", 0, 0,
     "what one GPU draws, h100=700: adds joules per token"},
    {"fused", OPTION_FLAG, offsetof(ModelArgs, fused), 0, 0, 0, "fuse what libraries fuse"},
    {"graph", OPTION_FLAG, offsetof(ModelArgs, graph), 0, 0, 0, "launch through a CUDA graph"},
    {"list", OPTION_FLAG, offsetof(ModelArgs, list), 0, 0, 0, "list the presets"},
    HTML_OPTION,
    COMMON_OPTIONS};

const Command cmd_model = {
    .name = "model",
    .usage =
        "NAME|config.json [--phase prefill|decode] [--batch N] [--context N] [--device NAME,...] [options]",
    .summary = "every kernel of a transformer's forward pass: bytes, FLOPs, roof, time, share",
    .details =
        "A preset, or a Hugging Face config.json given by its path. Bytes and FLOPs are counted, times "
        "modelled: each kernel at its roof, so this is how fast the model could be, not how fast a "
        "framework runs it.\n\n"
        "JSON: schema, model, device, phase, batch, context, tp, ep, pp, cp, dp, gpus, kernels [{name, part, "
        "count, bytes, flops, intensity, bound, time_us, share, bytes_each, flops_each, time_each_us, by, "
        "hidden_us}] (bytes, flops and time_us "
        "of all `count` launches), launches, launch_us, launch_stream_us, launch_graph_us, total_us, "
        "tokens_per_s, memory {...}, what_if [...].\n\n"
        "Several GPUs, a sweep, a target or a price make a table with a row for each case; what a GPU cannot "
        "do is a row that says why. JSON: schema, model, rows [{device, tp, batch, context, possible, why, "
        "ttft_us, tpot_us, tokens_per_s, tokens_per_s_per_gpu, weight_bytes, kv_bytes, activation_bytes, "
        "free_bytes, price_per_million_tokens, joules_per_token}].",
    .examples =
        "sol model llama-3-8b --phase decode --batch 32 --context 4096 --device h100\n"
        "sol model llama-3-70b --phase prefill --context 8192 --tp 8 --device h200\n"
        "sol model mixtral-8x7b --phase decode --batch 8 --fused --graph\n"
        "sol model ./config.json --phase decode\n"
        "sol model llama-3-70b --device h100,h200,b200 --tp 2 --sweep batch=1..256\n"
        "sol model gpt-oss-120b --device all --ttft 500ms --tpot 20ms --price h100=2.5\n"
        "sol model deepseek-v3 --device h200 --tp 8 --dp 4 --ep 32 --fabric nvlink4,ib400 --phase decode --batch 512\n"
        "sol model llama-3.1-70b --draft llama-3.2-1b --draft-tokens 4 --acceptance 0.8 --phase decode --tp 4\n"
        "sol model --list",
    .positional = "models",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(ModelArgs),
    .run = run,
};
