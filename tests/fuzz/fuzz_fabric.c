// Fabric files (src/roofline/fabric_file.c) and job files (src/fleet/fleet_jobs.c): any bytes are safe, a refusal says what.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet.h"
#include "fuzz.h"
#include "sol/model.h"

// Whatever is taken for a fabric makes a pass of finite times, or one that says why not.
static void run_on(const SolFabric *fabric) {
  static SolModelReport report;
  SolModelConfig config;
  SolError err = {0};
  const SolDevice *device = 0;
  MUST(!sol_device_find("h100", &device, &err) && !sol_model_find("mixtral-8x7b", &config, &err));
  for (int i = 0; i < 4; i++) {
    SolModelRun run = {
        .phase = (SolPhase)(i & 1), .batch = 8, .tp = 2, .pp = 2, .cp = 2, .dp = 4, .fabric = fabric};
    run.ep = i >> 1 ? 8 : 2;
    SolStatus status = sol_model_run(device, &config, &run, &report, &err);
    MUST(status == SOL_OK || (status == SOL_ERR_UNSUPPORTED && strstr(err.message, "fabric")));
    if (status) continue;
    MUST(isfinite(report.total_us) && report.total_us > 0 && report.link_us > 0);
    for (int k = 0; k < report.count; k++)
      MUST(report.kernels[k].hidden_us >= 0 && report.kernels[k].hidden_us <= report.kernels[k].time_us);
  }
}

static bool is_command(const char *word) {
  return strcmp(word, "audit") == 0;
}

static void read_jobs(const char *text, size_t size) {
  FleetJobs jobs;
  SolError err = {0};
  if (fleet_jobs_parse(text, size, is_command, &jobs, &err)) {
    MUST(err.message[0]);
    return;
  }
  MUST(jobs.count > 0);
  for (int i = 0; i < jobs.count; i++)
    MUST(jobs.list[i].words_length > 0 && !jobs.list[i].words[jobs.list[i].words_length - 1]);
  fleet_jobs_free(&jobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolFabric fabric;
  SolError err = {0};
  if (sol_fabric_parse((const char *)data, size, &fabric, &err))
    MUST(err.message[0]);
  else
    run_on(&fabric);
  read_jobs((const char *)data, size);
  return 0;
}
