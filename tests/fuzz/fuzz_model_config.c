// config.json (src/roofline/model_config.c), and what parsed taken through the count and a pass.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "sol/model.h"

static void check_report(const SolModelReport *r) {
  MUST(r->count > 0 && r->count <= SOL_MAX_MODEL_KERNELS);
  MUST(isfinite(r->total_us) && r->total_us > 0 && isfinite(r->tokens_per_s));
  MUST(r->bytes > 0 && r->flops > 0 && r->weight_bytes > 0 && r->kv_bytes > 0 && r->activation_bytes > 0);
  for (int i = 0; i < r->count; i++) {
    const SolModelKernel *k = &r->kernels[i];
    MUST(k->count >= 1 && k->bytes >= 0 && k->flops >= 0 && isfinite(k->time_us) && k->time_us >= 0);
    MUST(k->share >= 0 && k->share <= 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolModelConfig config;
  SolError err = {0};
  SolStatus status = sol_model_parse((const char *)data, size, &config, &err);
  if (status) {
    MUST(err.status == status && err.message[0]);
    MUST(err.offset >= 0 && (size_t)err.offset <= size && err.line >= 1 && err.column >= 1);
    return 0;
  }
  // Whatever parses keeps its own rules, so that only its size or tp can stop it now.
  SolModelWeights weights;
  status = sol_model_weights(&config, &weights, &err);
  MUST(status == SOL_OK || status == SOL_ERR_RANGE);
  const SolDevice *device = 0;
  MUST(sol_device_find("h100", &device, &err) == SOL_OK);
  static SolModelReport report;
  for (int i = 0; i < 8; i++) {
    SolModelRun run = {.phase = (SolPhase)(i & 1), .batch = 1 + i, .fused = i >> 1 & 1, .tp = i >> 2 ? 2 : 1};
    status = sol_model_run(device, &config, &run, &report, &err);
    MUST(status == SOL_OK || status == SOL_ERR_RANGE || (run.tp > 1 && status == SOL_ERR_UNSUPPORTED));
    if (!status) check_report(&report);
  }
  // Split over GPUs, in chunks, with speculation: only the split can be refused.
  static const SolModelRun splits[] = {
      {.pp = 2, .batch = 3},
      {.cp = 3, .batch = 2},
      {.dp = 4, .ep = 2, .phase = SOL_PHASE_DECODE, .batch = 5},
      {.context = 20, .prefix = 7, .chunk = 4},
      {.phase = SOL_PHASE_DECODE, .context = 9, .draft_tokens = 3, .cp = 2, .pp = 2}};
  for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
    status = sol_model_run(device, &config, &splits[i], &report, &err);
    MUST(status == SOL_OK || status == SOL_ERR_RANGE || status == SOL_ERR_UNSUPPORTED ||
         status == SOL_ERR_ARGUMENT);
    if (!status) check_report(&report);
  }
  return 0;
}
