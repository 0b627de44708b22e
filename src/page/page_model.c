// A model's pass on one GPU: the keys of `sol model --json`.
#include "page/page.h"
#include "report/report_pass.h"

static bool config_of(PageAsk *ask, SolModelConfig *out) {
  const char *json = page_text(ask, "config"), *name = page_text(ask, "model");
  if (*name) return !sol_model_find(name, out, &ask->err);
  return !sol_model_parse(json, strlen(json), out, &ask->err);
}

// What joins the GPUs: a name as on the command line.
static bool fabric_of(PageAsk *ask, SolFabric *fabric, SolModelRun *run) {
  const char *name = page_text(ask, "fabric");
  if (*name) run->fabric = fabric;
  return !*name || !sol_fabric_find(name, fabric, &ask->err);
}

static bool run_of(PageAsk *ask, SolModelRun *run) {
  *run = (SolModelRun){.fused = *page_text(ask, "fused") != 0, .graph = *page_text(ask, "graph") != 0};
  if (strcmp(page_text(ask, "phase"), "decode") == 0) run->phase = SOL_PHASE_DECODE;
  return page_count(ask, "batch", 1, &run->batch) && page_count(ask, "context", 1, &run->context) &&
         page_count(ask, "tp", 1, &run->tp) && page_count(ask, "ep", 1, &run->ep) &&
         page_count(ask, "pp", 1, &run->pp) && page_count(ask, "cp", 1, &run->cp) &&
         page_count(ask, "dp", 1, &run->dp) && page_dtype(ask, "dtype", &run->dtype) &&
         page_dtype(ask, "weight_dtype", &run->weight_dtype) && page_dtype(ask, "kv_dtype", &run->kv_dtype);
}

bool page_model(PageAsk *ask) {
  const SolDevice *d;
  SolModelConfig config;
  SolModelRun run;
  SolFabric fabric;
  return page_accelerator(ask, &d) && config_of(ask, &config) && run_of(ask, &run) &&
         fabric_of(ask, &fabric, &run) && !report_pass_facts(ask->root, d, &config, &run, &ask->err);
}
