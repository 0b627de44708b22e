// sol model: its arguments, and the table for choosing a GPU.
#ifndef SOL_CLI_MODEL_H
#define SOL_CLI_MODEL_H

#include "cli/cli.h"
#include "cli/cli_figures.h"
#include "sol/model.h"

typedef struct ModelArgs {
  CommonArgs common;
  const char *device;
  FigureArgs figures;
  int phase;
  int64_t batch, context, tp, ep, pp, cp, dp, microbatches;
  int64_t prefix, chunk, draft_tokens;
  const char *fabric, *draft;
  double acceptance;
  SolDtype dtype, weight_dtype, kv_dtype;
  bool fused, graph, ungrouped, list;
  const char *ttft, *tpot, *host;
  TextList sweeps, prices, watts;
} ModelArgs;

// Several GPUs, sweeps, targets or prices: one row for each case instead of one report.
bool cli_model_chooses(const ModelArgs *args, int device_count);
int cli_model_choose(Cli *cli, const ModelArgs *args, const SolModelConfig *config, const SolModelRun *run,
                     const SolDevice *const *devices, int device_count, const Figures *figures);

// "20ms", "0.2s", "1500us"; a bare number is in milliseconds. NULL gives 0.
int cli_model_duration(Cli *cli, const char *option, const char *text, double *us);

// A preset by name, or a config.json by its path.
int cli_model_find(Cli *cli, const char *name, SolModelConfig *out);

// Refuses options that the one case asked for would leave unused.
int cli_model_check_use(Cli *cli, const ModelArgs *args);

// cli_model_split.c: how the pass is split over GPUs, draft models and prompts.
int cli_model_split(Cli *cli, const ModelArgs *args, SolModelRun *run);

#endif
