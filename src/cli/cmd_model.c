// sol model: every kernel of a transformer's forward pass under a device's roof.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli_model.h"
#include "report/report_pass.h"

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

static int print_report(Cli *cli, const ModelArgs *args, const SolDevice *d, const SolModelConfig *config,
                        const SolModelRun *run, const Figures *figures) {
  SolError err = {0};
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  if (report_pass_facts(root, d, config, run, &err)) {
    if (err.status == SOL_ERR_UNKNOWN && !err.hint[0])
      sol_hint(
          &err,
          "what is not published can be given: --peak bf16=NUMBER, --bandwidth NUMBER, --set FIGURE=NUMBER");
    return cli_error(cli, &err, 0, 0, 0);
  }
  int code = cli_model_check_use(cli, args);
  if (code) return code;
  cli_figures_note(root, figures);
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
                     .ungrouped = args->ungrouped,
                     .measured = figures.ops,
                     .measured_count = figures.op_count};
  if ((code = cli_model_split(cli, args, &run))) return code;
  if ((code = cli_model_duration(cli, "host", args->host, &run.host_us))) return code;
  if (!cli_model_chooses(args, count)) return print_report(cli, args, devices[0], &config, &run, &figures);
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
    {"host", OPTION_TEXT, offsetof(ModelArgs, host), "TIME", 0, 0,
     "what the server takes for itself in every pass, 4ms: scheduling, sampling (default: nothing)"},
    {"ungrouped", OPTION_FLAG, offsetof(ModelArgs, ungrouped), 0, 0, 0,
     "decoding attention reads the cache once for every query head, not once for its group"},
    {"list", OPTION_FLAG, offsetof(ModelArgs, list), 0, 0, 0, "list the presets"},
    HTML_OPTION,
    SVG_OPTION,
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
