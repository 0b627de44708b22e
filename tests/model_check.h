// What the tests of models share.
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

#include "check.h"
#include "sol/model.h"

static inline SolModelConfig find(const char *name) {
  SolModelConfig config = {0};
  SolError err = {0};
  CHECK_MSG(sol_model_find(name, &config, &err) == SOL_OK, "%s: %s", name, err.message);
  return config;
}

static inline const SolDevice *device(const char *name) {
  const SolDevice *found = 0;
  CHECK_INT(sol_device_find(name, &found, 0), SOL_OK);
  return found;
}

static SolModelReport report; // large; one test at a time fills it

static inline const SolModelReport *run(const char *gpu, const SolModelConfig *config, SolModelRun options) {
  SolError err = {0};
  SolStatus status = sol_model_run(device(gpu), config, &options, &report, &err);
  CHECK_MSG(status == SOL_OK, "%s on %s: %s", config->name, gpu, err.message);
  return &report;
}

static inline SolModelReport run_preset(const char *gpu, const char *name, SolModelRun options) {
  SolModelConfig config = find(name);
  return *run(gpu, &config, options);
}

static inline const SolModelKernel *kernel(const SolModelReport *r, const char *name) {
  for (int i = 0; i < r->count; i++)
    if (strcmp(r->kernels[i].name, name) == 0) return &r->kernels[i];
  return 0;
}

static inline SolModelWeights weights(const SolModelConfig *config) {
  SolModelWeights w = {0};
  SolError err = {0};
  CHECK_MSG(sol_model_weights(config, &w, &err) == SOL_OK, "%s: %s", config->name, err.message);
  return w;
}

#endif
