// The options of sol model that split a pass over GPUs or change what it computes: fabric, draft model, prompt.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli_model.h"

enum { MOST_FABRIC = 1 << 16 };

static bool is_file(const char *name) {
  size_t n = strlen(name);
  return strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

static int read_fabric(Cli *cli, const char *name, SolFabric *out) {
  SolError err = {0};
  if (!is_file(name)) {
    if (!sol_fabric_find(name, out, &err)) return EXIT_OK;
    sol_hint(&err,
             "nvlink2 to nvlink5, nvl72, pcie3 to pcie5; between machines ib200 to ib800 behind a comma: "
             "nvlink4,ib400; or a JSON file");
    return cli_error(cli, &err, 0, 0, 0);
  }
  size_t length;
  char *text = cli_read_file(name, MOST_FABRIC, &length, &err);
  if (!text) return cli_error(cli, &err, 0, 0, 0);
  int code = sol_fabric_parse(text, length, out, &err) ? cli_error(cli, &err, name, text, length) : EXIT_OK;
  free(text);
  return code;
}

int cli_model_split(Cli *cli, const ModelArgs *args, SolModelRun *run) {
  int code = EXIT_OK;
  if (args->fabric) {
    SolFabric *fabric = sol_arena_alloc(&cli->arena, sizeof *fabric);
    if (!fabric) return cli_fail(cli, "out of memory");
    code = read_fabric(cli, args->fabric, fabric);
    run->fabric = fabric;
  }
  if (!code && args->draft) {
    SolModelConfig *draft = sol_arena_alloc(&cli->arena, sizeof *draft);
    if (!draft) return cli_fail(cli, "out of memory");
    code = cli_model_find(cli, args->draft, draft);
    run->draft = draft;
  }
  if (!code && (args->draft || args->acceptance > 0) && !args->draft_tokens)
    return cli_fail(cli,
                    "--draft and --acceptance need --draft-tokens N: how many tokens are proposed each step");
  if (!code && cli_given(cli, "acceptance") && !(args->acceptance > 0 && args->acceptance <= 1))
    return cli_fail(cli, "--acceptance is above 0 and at most 1, not %g", args->acceptance);
  run->ep = args->ep, run->pp = args->pp, run->cp = args->cp, run->dp = args->dp;
  run->microbatches = args->microbatches;
  run->prefix = args->prefix;
  run->chunk = args->chunk;
  run->draft_tokens = args->draft_tokens;
  run->acceptance = args->acceptance;
  return code;
}

void cli_model_say_split(Fact *root, const SolModelReport *r) {
  const SolModelRun *run = &r->run;
  const struct {
    const char *key, *label;
    int64_t value;
  } ways[] = {{"tp", "tensor parallel", run->tp},
              {"ep", "expert parallel", run->ep},
              {"pp", "pipeline stages", run->pp},
              {"cp", "context parallel", run->cp},
              {"dp", "data parallel", run->dp},
              {"microbatches", "microbatches", run->pp > 1 ? run->microbatches : 1},
              {"prefix", "prompt tokens in the cache", run->prefix},
              {"chunk", "prompt tokens in one pass", run->chunk},
              {"draft_tokens", "proposed tokens", run->draft_tokens}};
  for (size_t i = 0; i < SOL_COUNT(ways); i++)
    fact_number(root, ways[i].key, ways[i].value > (i < 6) ? ways[i].label : 0, UNIT_PLAIN, BASIS_NONE,
                (double)ways[i].value);
  fact_number(root, "gpus", "GPUs", UNIT_PLAIN, BASIS_NONE, r->gpus);
  fact_text(root, "fabric", run->fabric ? "fabric" : 0, run->fabric ? run->fabric->name : NULL);
  if (!run->draft_tokens) return;
  fact_number(root, "acceptance", "accepted, of each", UNIT_SHARE, BASIS_NONE, run->acceptance);
  fact_number(root, "accepted", "tokens a sequence and step", UNIT_PLAIN, BASIS_MODELLED, r->accepted);
}

void cli_model_split_notes(Fact *root, const SolModelReport *r) {
  fact_number(root, "imbalance", 0, UNIT_TIMES, BASIS_MODELLED, r->imbalance);
  fact_number(root, "bubble_us", 0, UNIT_US, BASIS_MODELLED, r->bubble_us);
  fact_number(root, "link_us", 0, UNIT_US, BASIS_MODELLED, r->link_us);
  if (r->imbalance > 0)
    fact_note(
        root,
        "Assumed: tokens choose experts evenly and at random; the fullest of %lld GPUs then gets %.2f times the "
        "mean. A router that favours some experts is worse.",
        (long long)r->run.ep, r->imbalance);
  if (r->run.draft_tokens && r->run.phase == SOL_PHASE_DECODE)
    fact_note(
        root,
        "Assumed: each proposed token is accepted with probability %g, whatever came before; proposing costs %s.",
        r->run.acceptance,
        r->run.draft ? "the draft model's passes" : "nothing (--draft MODEL counts a model)");
  if (r->run.pp > 1)
    fact_note(root, "A GPU of the last stage is shown: it has the most layers, and the head.");
}
