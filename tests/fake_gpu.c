// A CUDA driver and a CUPTI in one library, for `sol profile` without a GPU: it loads the injected library as
// the driver does, and plays launches to it (fake_launch, fake_graph, called by tests/fake_program.c). Under
// both names it is one file, so that the loader has it once. FAKE_GPU says what is wrong:
//   none       no GPU              broken     the driver does not start
//   forbidden  no counters         refused    CUPTI refuses everything
//   failing    counters start, and cannot be read
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "measure/cupti.h"
#include "sol/status.h"

typedef struct Fake {
  CuptiCallback *callback;
  void *user;
  bool calls[1024], resources[8], activity, counting, made;
  CuptiBufferAsked *asked;
  CuptiBufferDone *done;
  CuptiKernel records[4096];
  int record_count, next, ranges, launches;
  uint32_t correlation;
  char context;
} Fake;
static Fake fake;

static bool mode(const char *which) {
  const char *set = getenv("FAKE_GPU");
  return set && strcmp(set, which) == 0;
}

// ---- the driver ----

SOL_API int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  static bool once;
  const char *path = getenv("CUDA_INJECTION64_PATH");
  (void)flags;
  if (mode("none")) return 100;
  if (mode("broken")) return 999;
  void *library = once || !path ? NULL : dlopen(path, RTLD_NOW);
  once = true;
  void *address = library ? dlsym(library, "InitializeInjection") : NULL;
  int (*start)(void);
  memcpy(&start, &address, sizeof address);
  return start && start() != 1;
}
#define DRIVER(name, parameters, body)                                                                       \
  SOL_API int name parameters;                                                                               \
  int name parameters body
DRIVER(cuDeviceGet, (int *out, int i), {
  *out = i;
  return 0;
})
DRIVER(cuDeviceGetName, (char *out, int cap, int device), {
  (void)device;
  strncpy(out, "NVIDIA H200", (size_t)cap);
  return 0;
})
DRIVER(cuDeviceGetUuid_v2, (unsigned char *out, int device), {
  for (int i = 0; i < 16; i++) out[i] = (unsigned char)(i * 17 + device);
  return 0;
})
DRIVER(cuDeviceGetAttribute, (int *out, int which, int device), {
  (void)device;
  *out = which == 16 ? 132 : which == 75 ? 9 : 0;
  return 0;
})
DRIVER(cuFuncGetAttribute, (int *out, int which, void *function), {
  *out = which == 4 ? 40 : which == 1 ? 1024 : 0;
  return function == &fake ? 0 : 400; // the launches come with another kind of handle
})
DRIVER(cuKernelGetFunction, (void **out, void *kernel), {
  (void)kernel;
  *out = &fake;
  return 0;
})
DRIVER(cuStreamIsCapturing, (void *stream, int *out), {
  *out = stream == &fake.callback;
  return 0;
})
DRIVER(cuCtxGetCurrent, (void **out), {
  *out = fake.made ? &fake.context : NULL;
  return 0;
})
DRIVER(cuDevicePrimaryCtxRetain, (void **out, int device), {
  (void)device;
  *out = &fake.context;
  return 0;
})
DRIVER(cuDevicePrimaryCtxRelease_v2, (int device), { return device; })
DRIVER(cuCtxPushCurrent_v2, (void *context), { return !context; })
DRIVER(cuCtxPopCurrent_v2, (void **context), { return !context; })
DRIVER(cuCtxSynchronize, (void), { return 0; })

// ---- launches ----

static void record(const char *name, unsigned grid, unsigned block, bool graph) {
  if (!fake.activity || fake.record_count == (int)SOL_COUNT(fake.records)) return;
  CuptiKernel *k = &fake.records[fake.record_count++];
  *k = (CuptiKernel){.kind = CUPTI_KIND_CONCURRENT_KERNEL, .name = name, .correlation = fake.correlation};
  k->grid[0] = (int)grid, k->grid[1] = k->grid[2] = 1;
  k->block[0] = (int)block, k->block[1] = k->block[2] = 1;
  k->registers = 40;
  k->static_shared = 1024;
  k->dynamic_shared = 256;
  k->graph_node = graph;
  if (fake.counting) return; // CUPTI has no times of what it counts
  k->start = 1000;
  k->end = k->start + 7000;
}

static void call(uint32_t id, int site, const void *params, const char *name) {
  int result = 0;
  CuptiCall c = {.site = site,
                 .params = params,
                 .symbol = name,
                 .context = &fake.context,
                 .result = &result,
                 .correlation = fake.correlation};
  if (fake.callback && fake.calls[id]) fake.callback(fake.user, CUPTI_DOMAIN_DRIVER, id, &c);
}

static void make_context(void) {
  void *context = &fake.context;
  if (fake.made) return;
  fake.made = true;
  if (fake.callback && fake.resources[1]) fake.callback(fake.user, CUPTI_DOMAIN_RESOURCE, 1, &context);
}

SOL_API void fake_launch(const char *name, unsigned grid, unsigned block, int captured);
void fake_launch(const char *name, unsigned grid, unsigned block, int captured) {
  struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void *stream;
  } params = {NULL, {grid, 1, 1}, {block, 1, 1}, 256, captured ? &fake.callback : NULL};
  params.function = &params;
  make_context();
  fake.correlation++;
  call(CUPTI_CALL_LAUNCH, CUPTI_SITE_ENTER, &params, name);
  if (!captured) record(name, grid, block, false);
  if (fake.counting && !captured) fake.ranges++;
  call(CUPTI_CALL_LAUNCH, !CUPTI_SITE_ENTER, &params, name);
}

SOL_API void fake_graph(const char *name, unsigned grid, unsigned block);
void fake_graph(const char *name, unsigned grid, unsigned block) {
  void *params[2] = {NULL, NULL};
  make_context();
  fake.correlation++;
  call(CUPTI_CALL_GRAPH, CUPTI_SITE_ENTER, params, NULL);
  record(name, grid, block, true);
  call(CUPTI_CALL_GRAPH, !CUPTI_SITE_ENTER, params, NULL);
}

// ---- CUPTI ----

#define CUPTI(name, parameters, body)                                                                        \
  SOL_API CuptiResult name parameters;                                                                       \
  CuptiResult name parameters body
CUPTI(cuptiGetVersion, (uint32_t * out), {
  *out = 130000;
  return 0;
})
CUPTI(cuptiGetResultString, (CuptiResult result, const char **out), {
  *out = result == CUPTI_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_FAKE";
  return 0;
})
CUPTI(cuptiSubscribe, (void **out, CuptiCallback *callback, void *user), {
  if (mode("refused")) return CUPTI_MULTIPLE_SUBSCRIBERS;
  fake.callback = callback;
  fake.user = user;
  *out = &fake;
  return 0;
})
CUPTI(cuptiEnableCallback, (uint32_t on, void *subscriber, int domain, uint32_t id), {
  (void)subscriber;
  if (domain == CUPTI_DOMAIN_DRIVER) fake.calls[id] = on;
  if (domain == CUPTI_DOMAIN_RESOURCE) fake.resources[id] = on;
  return 0;
})
CUPTI(cuptiActivityRegisterCallbacks, (CuptiBufferAsked * asked, CuptiBufferDone *done), {
  fake.asked = asked;
  fake.done = done;
  return 0;
})
CUPTI(cuptiActivityEnable, (int kind), {
  if (mode("refused")) return CUPTI_MULTIPLE_SUBSCRIBERS;
  fake.activity = kind == CUPTI_KIND_CONCURRENT_KERNEL;
  return 0;
})
CUPTI(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **out), {
  int count = (int)(valid / sizeof(CuptiKernel));
  if (fake.next == count) return CUPTI_NO_MORE_RECORDS;
  *out = buffer + sizeof(CuptiKernel) * (size_t)fake.next++;
  return 0;
})
CUPTI(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *out), {
  (void)context;
  (void)stream;
  *out = 0;
  return 0;
})
// The forced one alone: the library's own thread, and the program's, do not get in each other's way.
CUPTI(cuptiActivityFlushAll, (uint32_t forced), {
  if (!forced || !fake.record_count) return 0;
  uint8_t *buffer = NULL;
  size_t size = 0;
  size_t most;
  fake.asked(&buffer, &size, &most);
  size_t valid = sizeof(CuptiKernel) * (size_t)fake.record_count;
  if (valid > size) valid = size / sizeof(CuptiKernel) * sizeof(CuptiKernel);
  memcpy(buffer, fake.records, valid);
  fake.next = fake.record_count = 0;
  fake.done(NULL, 0, buffer, size, valid);
  return 0;
})
CUPTI(cuptiGetDeviceId, (void *context, uint32_t *out), {
  *out = 0;
  return !context;
})

CUPTI(cuptiProfilerInitialize, (CuptiInitialize * p), { return p->size != sizeof *p; })
CUPTI(cuptiDeviceGetChipName, (CuptiChipName * p), {
  p->name = "GH100";
  return 0;
})
CUPTI(cuptiProfilerGetCounterAvailability, (CuptiAvailability * p), {
  p->image_size = 16;
  return 0;
})
CUPTI(cuptiProfilerHostInitialize, (CuptiHostInitialize * p), {
  p->host = &fake;
  return strcmp(p->chip, "GH100") != 0;
})
CUPTI(cuptiProfilerHostDeinitialize, (CuptiHostDeinitialize * p), { return p->host != &fake; })
CUPTI(cuptiProfilerHostGetMetricProperties, (CuptiHostProperties * p),
      { return strstr(p->metric, "maximum_warps") ? CUPTI_INVALID_METRIC_NAME : 0; })
CUPTI(cuptiProfilerHostConfigAddMetrics, (CuptiHostAdd * p), { return !p->count; })
CUPTI(cuptiProfilerHostGetConfigImageSize, (CuptiHostImageSize * p), {
  p->image_size = 64;
  return 0;
})
CUPTI(cuptiProfilerHostGetConfigImage, (CuptiHostImage * p), { return p->image_size != 64; })
CUPTI(cuptiProfilerHostGetNumOfPasses, (CuptiHostPasses * p), {
  p->passes = 3;
  return 0;
})
// A value that tells which counter and which launch it is of.
CUPTI(cuptiProfilerHostEvaluateToGpuValues, (CuptiHostEvaluate * p), {
  for (size_t i = 0; i < p->count; i++)
    p->values[i] =
        strcmp(p->metrics[i], "gpu__time_duration.sum") == 0 ? 5000 : (double)strlen(p->metrics[i]);
  return p->range != 0;
})
CUPTI(cuptiRangeProfilerEnable, (CuptiRangeEnable * p), {
  if (mode("forbidden")) return CUPTI_INSUFFICIENT_PRIVILEGES;
  p->profiler = &fake;
  return 0;
})
CUPTI(cuptiRangeProfilerDisable, (CuptiRange * p), { return p->profiler != &fake; })
CUPTI(cuptiRangeProfilerSetConfig, (CuptiRangeConfig * p), { return p->most_ranges < 1 || !p->data; })
CUPTI(cuptiRangeProfilerStart, (CuptiRange * p), {
  if (p->profiler != &fake || fake.counting) return CUPTI_INVALID_PARAMETER;
  fake.counting = true;
  fake.ranges = 0;
  return 0;
})
CUPTI(cuptiRangeProfilerStop, (CuptiRangeStop * p), {
  fake.counting = false;
  p->all_passes = 1;
  return 0;
})
CUPTI(cuptiRangeProfilerPushRange, (CuptiRangePush * p), { return !p->name; })
CUPTI(cuptiRangeProfilerPopRange, (CuptiRange * p), { return p->profiler != &fake; })
CUPTI(cuptiRangeProfilerDecodeData, (CuptiRangeDecode * p), {
  p->dropped = 0;
  return mode("failing") ? 999 : 0;
})
CUPTI(cuptiRangeProfilerGetCounterDataSize, (CuptiRangeDataSize * p), {
  p->data_size = 256;
  return 0;
})
CUPTI(cuptiRangeProfilerCounterDataImageInitialize, (CuptiRangeDataInit * p), { return p->data_size != 256; })
CUPTI(cuptiRangeProfilerGetCounterDataInfo, (CuptiRangeDataInfo * p), {
  p->ranges = (size_t)fake.ranges;
  return 0;
})
