// sol model: its arguments, and the table for choosing a GPU.
#ifndef SOL_CLI_MODEL_H
#define SOL_CLI_MODEL_H

#include "cli/cli.h"
#include "sol/model.h"

typedef struct ModelArgs {
  CommonArgs common;
  const char *device;
  int phase;
  int64_t batch, context, tp;
  SolDtype dtype, weight_dtype, kv_dtype;
  bool fused, graph, list;
  const char *ttft, *tpot;
  TextList sweeps, prices, watts;
} ModelArgs;

// Several GPUs, sweeps, targets or prices: one row for each case instead of one report.
bool cli_model_chooses(const ModelArgs *args, int device_count);
int cli_model_choose(Cli *cli, const ModelArgs *args, const SolModelConfig *config, const SolModelRun *run,
                     const SolDevice *const *devices, int device_count);

#endif
