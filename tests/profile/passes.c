// No counter that is a sum of hits and misses, and no occupancy, has its raw counters in different passes:
// each pass is another run of the kernel, with other hits. Asks CUPTI itself, which needs no GPU for that;
// tests/test_cupti.sh builds it. The raw counters of a metric, and their passes, are told by the library
// beneath CUPTI alone.
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../src/measure/counters.c"

static const char *const metrics[] = {
// PROFILE_FILE, what ncu alone has, is not known to CUPTI and falls out
#define METRIC(key, name, unit, fold, set, what) name,
#include "profile/metrics.def"
#undef METRIC
};

static uint64_t passes_of(const Counters *c, const char *raw) {
  size_t at[64] = {0};
  NVPW_Config_GetRawCounterInfo_Params p = {.structSize = NVPW_Config_GetRawCounterInfo_Params_STRUCT_SIZE,
                                            .pConfig = c->image,
                                            .configSize = c->image_size,
                                            .pRawCounterName = raw,
                                            .pPassIndices = at,
                                            .numPassIndices = SOL_COUNT(at)};
  uint64_t set = 0;
  if (NVPW_Config_GetRawCounterInfo(&p)) return 0;
  for (size_t i = 0; i < p.numPassIndices; i++) set |= 1ull << at[i];
  return set;
}

// The passes that all raw counters of it are in; 0: there is none.
static uint64_t whole(const Counters *c, NVPW_MetricsEvaluator *evaluator, const char *metric) {
  NVPW_MetricEvalRequest request;
  NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params find = {
      .structSize = NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params_STRUCT_SIZE,
      .pMetricsEvaluator = evaluator,
      .pMetricName = metric,
      .pMetricEvalRequest = &request,
      .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE};
  const char *raw[64];
  NVPW_MetricsEvaluator_GetMetricRawDependencies_Params of = {
      .structSize = NVPW_MetricsEvaluator_GetMetricRawDependencies_Params_STRUCT_SIZE,
      .pMetricsEvaluator = evaluator,
      .pMetricEvalRequests = &request,
      .numMetricEvalRequests = 1,
      .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE,
      .metricEvalRequestStrideSize = sizeof request,
      .ppRawDependencies = raw,
      .numRawDependencies = SOL_COUNT(raw)};
  if (NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&find) ||
      NVPW_MetricsEvaluator_GetMetricRawDependencies(&of))
    return 0;
  uint64_t set = ~0ull;
  for (size_t i = 0; i < of.numRawDependencies; i++) set &= passes_of(c, raw[i]);
  return of.numRawDependencies ? set : 0;
}

static NVPW_MetricsEvaluator *evaluator_of(const char *chip) {
  NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params size = {
      .structSize = NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params_STRUCT_SIZE,
      .pChipName = chip};
  if (NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size)) return NULL;
  NVPW_CUDA_MetricsEvaluator_Initialize_Params made = {
      .structSize = NVPW_CUDA_MetricsEvaluator_Initialize_Params_STRUCT_SIZE,
      .pChipName = chip,
      .scratchBufferSize = size.scratchBufferSize,
      .pScratchBuffer = malloc(size.scratchBufferSize)}; // as long as it lives: to the end
  return NVPW_CUDA_MetricsEvaluator_Initialize(&made) ? NULL : made.pMetricsEvaluator;
}

int main(void) {
  static const char *const chips[] = {"GH100", "GA100", "AD102", "GB100"};
  NVPW_InitializeHost_Params start = {.structSize = NVPW_InitializeHost_Params_STRUCT_SIZE};
  int failed = 0, asked = 0;
  if (NVPW_InitializeHost(&start)) return 77;
  for (size_t i = 0; i < SOL_COUNT(chips); i++) {
    Counters c = {0};
    SolError err = {0};
    NVPW_MetricsEvaluator *evaluator = evaluator_of(chips[i]);
    if (!evaluator) continue; // newer than this CUPTI
    if (cupti_load(&c.cupti, &err) || open_host(&c, chips[i], NULL, &err) ||
        sort_out(&c, metrics, (int)SOL_COUNT(metrics), &err) || schedule(&c, &err)) {
      printf("%s: %s\n", chips[i], err.message);
      failed++;
      continue;
    }
    for (int k = 0; k < c.known_count; k++) {
      if (!strstr(c.known[k], "_sectors_pipe_") && !strstr(c.known[k], "warps_active")) continue;
      asked++;
      if (whole(&c, evaluator, c.known[k])) continue;
      printf("%s: %s is of several passes\n", chips[i], c.known[k]);
      failed++;
    }
    printf("%s: %d counters in %d passes\n", chips[i], c.known_count, c.passes);
  }
  return failed || !asked;
}
