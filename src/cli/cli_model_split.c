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

int cli_model_check_use(Cli *cli, const ModelArgs *args) {
  bool decode = args->phase == SOL_PHASE_DECODE;
  int64_t batch = args->batch ? args->batch : 1, dp = args->dp ? args->dp : 1;
  if (decode && (args->chunk || args->prefix))
    return cli_fail(cli, "--%s is of prompts, not of --phase decode", args->chunk ? "chunk" : "prefix");
  if (!decode && args->draft_tokens)
    return cli_fail(cli, "--draft-tokens is of decoding: add --phase decode");
  if (dp > batch)
    return cli_fail(cli, "dp: %lld sequences (--batch) leave some of %lld replicas without any",
                    (long long)batch, (long long)dp);
  if (args->microbatches && args->pp < 2) return cli_fail(cli, "--microbatches needs the stages of --pp");
  if (args->microbatches > (batch + dp - 1) / dp)
    return cli_fail(cli, "microbatches: %lld are more than the %lld sequences of a replica",
                    (long long)args->microbatches, (long long)((batch + dp - 1) / dp));
  return EXIT_OK;
}
