// A CUDA driver and a CUPTI in one library, for `sol profile` without a GPU: it loads the injected library as
// the driver does, and plays launches to it (fake_launch, fake_graph, called by tests/fake_program.c). Under
// both names it is one file, so that the loader has it once. FAKE_GPU says what is wrong:
//   none       no GPU              broken     the driver does not start
//   forbidden  no counters         refused    CUPTI refuses everything
//   old        a driver that is older than CUPTI
//   prompt     nothing: records are handed over whenever they are asked for, not at the end alone
//   failing    counters start, and cannot be read
//   copyless   copies fail by themselves
//   stubborn   a callback that changes which graph is launched changes nothing
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda.h"
#include "inject/graphs.h"
#include "measure/cupti.h"
#include "sol/status.h"

typedef struct Fake {
  CuptiCallback *callback;
  void *user;
  bool calls[1024], resources[8], activity, counting, made;
  CuptiBufferAsked *asked;
  CuptiBufferDone *done;
  CuptiKernel records[4096];
  int record_count, ranges, launches;
  size_t delivered; // records that the library has been handed
  uint32_t correlation;
  char context;
} Fake;
static Fake fake;
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;

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
#define DRIVER(name, parameters, ...)                                                                        \
  SOL_API int name parameters;                                                                               \
  int name parameters __VA_ARGS__
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
  CuptiKernel k = {.kind = CUPTI_KIND_CONCURRENT_KERNEL, .name = name, .correlation = fake.correlation};
  k.grid[0] = (int)grid, k.grid[1] = k.grid[2] = 1;
  k.block[0] = (int)block, k.block[1] = k.block[2] = 1;
  k.registers = 40;
  k.static_shared = 1024;
  k.dynamic_shared = 256;
  k.graph_node = graph;
  if (!fake.counting) { // CUPTI has no times of what it counts
    k.start = 1000;
    k.end = k.start + 7000;
  }
  pthread_mutex_lock(&records_lock);
  if (fake.activity && fake.record_count < (int)SOL_COUNT(fake.records))
    fake.records[fake.record_count++] = k;
  pthread_mutex_unlock(&records_lock);
}

static int call(uint32_t id, int site, const void *params, const char *name) {
  int result = 0;
  CuptiCall c = {.site = site,
                 .params = params,
                 .symbol = name,
                 .context = &fake.context,
                 .result = &result,
                 .correlation = fake.correlation};
  if (fake.callback && fake.calls[id]) fake.callback(fake.user, CUPTI_DOMAIN_DRIVER, id, &c);
  return result; // as a callback may have left it
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
  uint32_t id = strcmp(name, "together") == 0 ? CUPTI_CALL_COOPERATIVE : CUPTI_CALL_LAUNCH;
  call(id, CUPTI_SITE_ENTER, &params, name);
  if (!captured) record(name, grid, block, false);
  if (fake.counting && !captured) fake.ranges++;
  call(id, !CUPTI_SITE_ENTER, &params, name);
}

// ---- graphs ----

// A graph is a chain of nodes, each a letter: k, c and t are kernels, t a cooperative one, m a copy, s a
// memset, h a function of the host, r and w an event, e nothing, g a graph of one kernel, a memory, i a
// condition. What runs is written down.
typedef struct FakeNode {
  char what;
  struct FakeGraph *of;
} FakeNode;
typedef struct FakeGraph {
  FakeNode nodes[32];
  int count;
} FakeGraph;
static char ran[1024];
static FakeGraph child = {.nodes = {{'k', &child}}, .count = 1};

static void run(char what) {
  size_t n = strlen(ran);
  if (n + 1 < sizeof ran) ran[n] = what;
}

SOL_API const char *fake_ran(void);
const char *fake_ran(void) {
  return ran;
}

SOL_API size_t fake_delivered(void);
size_t fake_delivered(void) {
  return __atomic_load_n(&fake.delivered, __ATOMIC_SEQ_CST);
}

static int kind_of(char what) {
  static const char letters[] = "k  msh g e w r a i",
                    kinds[] = {0, 0, 0, 1, 2, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 10, 0, 13};
  const char *at = strchr(letters, what == 'c' || what == 't' ? 'k' : what);
  return kinds[at - letters];
}
static const char *name_of(char what) {
  return what == 'c' ? "_ZN2my4copyEPKfPfi" : what == 't' ? "together" : "sum";
}
static unsigned grid_of(char what) {
  return what == 'c' ? 64 : 1;
}
static unsigned block_of(char what) {
  return what == 'c' ? 256 : 1024;
}

DRIVER(cuGraphCreate, (void **out, unsigned flags), {
  *out = calloc(1, sizeof(FakeGraph));
  return (int)flags;
})
DRIVER(cuGraphDestroy, (void *graph), {
  free(graph);
  return 0;
})
DRIVER(cuGraphClone, (void **out, void *graph), {
  FakeGraph *copy = malloc(sizeof *copy);
  memcpy(copy, graph, sizeof *copy);
  for (int i = 0; i < copy->count; i++) {
    if (copy->nodes[i].what == 'a') {
      free(copy);
      return 801;
    }
    copy->nodes[i].of = copy;
  }
  *out = copy;
  return 0;
})
DRIVER(cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags), {
  struct {
    void **out;
    void *graph;
    unsigned long long flags;
  } params = {out, graph, flags};
  FakeGraph *exec = malloc(sizeof *exec);
  memcpy(exec, graph, sizeof *exec);
  call(CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS, CUPTI_SITE_ENTER, &params, NULL);
  *out = exec;
  call(CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS, !CUPTI_SITE_ENTER, &params, NULL);
  return 0;
})
DRIVER(cuGraphExecDestroy, (void *exec), {
  void *params[] = {exec};
  call(CUPTI_CALL_GRAPH_DROP, CUPTI_SITE_ENTER, params, NULL);
  free(exec);
  call(CUPTI_CALL_GRAPH_DROP, !CUPTI_SITE_ENTER, params, NULL);
  return 0;
})
DRIVER(cuGraphGetNodes, (void *graph, void **out, size_t *count), {
  FakeGraph *g = graph;
  for (int i = 0; i < g->count && out; i++) out[i] = &g->nodes[g->count - 1 - i]; // in no useful order
  *count = (size_t)g->count;
  return 0;
})
DRIVER(cuGraphGetEdges_v2, (void *graph, void **from, void **to, void *data, size_t *count), {
  FakeGraph *g = graph;
  for (int i = 0; i + 1 < g->count && from; i++) {
    from[i] = &g->nodes[i];
    to[i] = &g->nodes[i + 1];
    memset((char *)data + 8 * i, 0, 8);
  }
  *count = (size_t)(g->count > 1 ? g->count - 1 : 0);
  return 0;
})
DRIVER(cuGraphNodeGetType, (void *node, int *out), {
  *out = kind_of(((FakeNode *)node)->what);
  return 0;
})
DRIVER(cuGraphNodeFindInClone, (void **out, void *node, void *clone), {
  FakeNode *n = node;
  *out = &((FakeGraph *)clone)->nodes[n - n->of->nodes];
  return 0;
})
DRIVER(cuGraphKernelNodeGetParams_v2, (void *node, GraphKernel *out), {
  char what = ((FakeNode *)node)->what;
  *out = (GraphKernel){.function = node, .shared = 256, .context = &fake.context};
  out->grid[0] = grid_of(what);
  out->block[0] = block_of(what);
  out->grid[1] = out->grid[2] = out->block[1] = out->block[2] = 1;
  return 0;
})
DRIVER(cuGraphKernelNodeGetAttribute, (void *node, int which, CuLaunchAttribute *out), {
  memset(out, 0, sizeof(((CuLaunchAttribute *)0)->value)); // the value alone
  if (which == ATTRIBUTE_COOPERATIVE) *(int *)(void *)out = ((FakeNode *)node)->what == 't';
  return 0;
})
DRIVER(cuGraphKernelNodeSetParams_v2, (void *node, const GraphKernel *k), {
  ((FakeNode *)node)->what = ((const FakeNode *)k->function)->what;
  return 0;
})
DRIVER(cuGraphKernelNodeSetParams, (void *node, const GraphKernel *k), { return !node || !k; })
DRIVER(cuGraphMemcpyNodeSetParams, (void *node, const void *p), { return !node || !p; })
DRIVER(cuGraphMemsetNodeSetParams, (void *node, const void *p), { return !node || !p; })
DRIVER(cuGraphHostNodeSetParams, (void *node, const void *p), { return !node || !p; })
DRIVER(cuGraphMemcpyNodeGetParams, (void *node, GraphCopy *out), {
  *out = (GraphCopy){{(uintptr_t)node}};
  return 0;
})
DRIVER(cuGraphMemsetNodeGetParams, (void *node, GraphSet *out), {
  *out = (GraphSet){.to = (uintptr_t)node, .element = 4, .width = 3, .height = 1};
  return 0;
})
static void on_host(void *user) {
  run(user ? 'h' : '?');
}
DRIVER(cuGraphHostNodeGetParams, (void *node, GraphHost *out), {
  *out = (GraphHost){on_host, node};
  return 0;
})
DRIVER(cuGraphChildGraphNodeGetGraph, (void *node, void **out), {
  *out = &child;
  return !node;
})
DRIVER(cuGraphEventRecordNodeGetEvent, (void *node, void **out), {
  *out = node;
  return 0;
})
DRIVER(cuGraphEventWaitNodeGetEvent, (void *node, void **out), {
  *out = node;
  return 0;
})
DRIVER(cuFuncGetName, (const char **out, void *function), {
  *out = name_of(((FakeNode *)function)->what);
  return 0;
})
DRIVER(cuKernelGetName, (const char **out, void *kernel), {
  *out = NULL;
  return !kernel;
})
DRIVER(cuLaunchKernelEx, (const CuLaunchConfig *config, void *function, void **parameters, void **extra), {
  char what = ((FakeNode *)function)->what;
  run(what);
  record(name_of(what), config->grid[0], config->block[0], false);
  if (fake.counting) fake.ranges++;
  return parameters || extra;
})
DRIVER(cuMemcpy3DAsync_v2, (const GraphCopy *p, void *stream), {
  run(stream == &ran ? 'm' : '?');
  return !p || mode("copyless");
})
DRIVER(cuMemsetD2D8Async, (uint64_t to, size_t pitch, unsigned char v, size_t w, size_t h, void *stream), {
  run('?');
  return !to || !pitch || v || !w || !h || !stream;
})
DRIVER(cuMemsetD2D16Async, (uint64_t to, size_t pitch, unsigned short v, size_t w, size_t h, void *stream), {
  run('?');
  return !to || !pitch || v || !w || !h || !stream;
})
DRIVER(cuMemsetD2D32Async, (uint64_t to, size_t pitch, unsigned v, size_t w, size_t h, void *stream), {
  run(to && pitch == 12 && !v && w == 3 && h == 1 && stream == &ran ? 's' : '?');
  return 0;
})
DRIVER(cuLaunchHostFunc, (void *stream, void (*function)(void *), void *user), {
  function(user);
  return stream != &ran;
})
DRIVER(cuEventRecord, (void *event, void *stream), {
  run(event && stream == &ran ? 'r' : '?');
  return 0;
})
DRIVER(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), {
  run(event && stream == &ran && !flags ? 'w' : '?');
  return 0;
})
static FakeGraph told; // a graph of the library's own: one function of the host
static GraphHost told_host;
DRIVER(cuGraphAddHostNode, (void **out, void *graph, void *const *after, size_t count, const GraphHost *host),
       {
         FakeGraph *g = graph;
         told_host = *host;
         g->nodes[g->count] = (FakeNode){'h', &told};
         *out = &g->nodes[g->count++];
         return after || count;
       })
DRIVER(cuStreamCreate, (void **out, unsigned flags), {
  *out = ran;
  return flags != 1;
})
DRIVER(cuStreamSynchronize, (void *stream), { return stream != ran; })
DRIVER(cuStreamDestroy_v2, (void *stream), { return stream != ran; })

static void run_graph(const FakeGraph *g) {
  for (int i = 0; i < g->count; i++) {
    char what = g->nodes[i].what;
    if (what == 'h' && g->nodes[i].of == &told)
      told_host.function(told_host.user);
    else if (what == 'g')
      run_graph(&child);
    else if (what != 'e')
      run(what);
    if (what == 'k' || what == 'c' || what == 't') record(name_of(what), grid_of(what), block_of(what), true);
  }
}
DRIVER(cuGraphLaunch, (void *exec, void *stream), {
  struct {
    void *exec;
    void *stream;
  } params = {exec, stream};
  fake.correlation++;
  call(CUPTI_CALL_GRAPH, CUPTI_SITE_ENTER, &params, NULL);
  run_graph(mode("stubborn") ? exec : params.exec);
  return call(CUPTI_CALL_GRAPH, !CUPTI_SITE_ENTER, &params, NULL);
})

// A graph of these nodes, launched so often; "k>c": launched, and again after its first node became that of
// the second graph.
SOL_API void fake_graph(const char *nodes, int times);
void fake_graph(const char *nodes, int times) {
  FakeGraph *g = calloc(1, sizeof *g);
  const char *change = strchr(nodes, '>');
  void *exec;
  make_context();
  for (; *nodes && nodes != change; nodes++) g->nodes[g->count++] = (FakeNode){*nodes, g};
  cuGraphInstantiateWithFlags(&exec, g, 0);
  for (int i = 0; i < times; i++)
    if (cuGraphLaunch(exec, ran)) run('!');
  if (change) {
    FakeNode other = {change[1], NULL};
    GraphKernel k = {.function = &other};
    struct {
      void *exec;
      void *node;
      const GraphKernel *k;
    } params = {exec, &g->nodes[0], &k};
    bool known = change[1] != '-'; // '-': switched off, and with it the node is gone
    uint32_t id = known ? CUPTI_CALL_GRAPH_SET_KERNEL_2 : CUPTI_CALL_GRAPH_SET_ENABLED;
    call(id, CUPTI_SITE_ENTER, &params, NULL);
    ((FakeGraph *)exec)->nodes[0].what = known ? change[1] : 'e';
    call(id, !CUPTI_SITE_ENTER, &params, NULL);
    for (int i = 0; i < times; i++) cuGraphLaunch(exec, ran);
  }
  free(g); // the program may
  cuGraphExecDestroy(exec);
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
  if (mode("old")) return CUPTI_NOT_COMPATIBLE;
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
  if (mode("old")) return CUPTI_NOT_COMPATIBLE;
  fake.activity = kind == CUPTI_KIND_CONCURRENT_KERNEL;
  return 0;
})
CUPTI(cuptiActivityDisable, (int kind), {
  if (kind == CUPTI_KIND_CONCURRENT_KERNEL) fake.activity = false;
  return 0;
})
CUPTI(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **out), {
  uint8_t *next = *out ? (uint8_t *)*out + sizeof(CuptiKernel) : buffer;
  if (next >= buffer + valid) return CUPTI_NO_MORE_RECORDS;
  *out = next;
  return 0;
})
CUPTI(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *out), {
  (void)context;
  (void)stream;
  *out = 0;
  return 0;
})
CUPTI(cuptiActivityFlushAll, (uint32_t forced), {
  if (!forced && !mode("prompt")) return 0;
  uint8_t *buffer = NULL;
  size_t size = 0;
  size_t most;
  fake.asked(&buffer, &size, &most);
  pthread_mutex_lock(&records_lock); // the library's own thread comes here, too
  size_t valid = sizeof(CuptiKernel) * (size_t)fake.record_count;
  if (valid > size) valid = size / sizeof(CuptiKernel) * sizeof(CuptiKernel);
  memcpy(buffer, fake.records, valid);
  fake.record_count = 0;
  pthread_mutex_unlock(&records_lock);
  fake.done(NULL, 0, buffer, size, valid);
  __atomic_add_fetch(&fake.delivered, valid / sizeof(CuptiKernel), __ATOMIC_SEQ_CST);
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
