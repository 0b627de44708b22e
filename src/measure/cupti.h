// CUPTI, NVIDIA's profiling library, loaded at run time. The little of its ABI that is used is declared here,
// so that no toolkit is needed to build (and one of its headers is C++); tests/test_cupti.sh compares it with
// the real headers.
#ifndef SOL_MEASURE_CUPTI_H
#define SOL_MEASURE_CUPTI_H

#include "base/error.h"

typedef int CuptiResult;
enum {
  CUPTI_INVALID_PARAMETER = 1,
  CUPTI_INVALID_METRIC_NAME = 17,
  CUPTI_NOT_SUPPORTED = 27,
  CUPTI_INSUFFICIENT_PRIVILEGES = 35,
  CUPTI_MULTIPLE_SUBSCRIBERS = 39,
  CUPTI_VIRTUAL_INSUFFICIENT_PRIVILEGES = 40,
  CUPTI_NO_MORE_RECORDS = 12, // CUPTI_ERROR_MAX_LIMIT_REACHED
  CUPTI_NOT_COMPATIBLE = 14,

  CUPTI_PROFILER_TYPE_RANGE = 0,
  CUPTI_RANGE_AUTO = 1,
  CUPTI_RANGE_USER = 2,
  CUPTI_REPLAY_KERNEL = 2,
  CUPTI_REPLAY_USER = 3,

  CUPTI_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_FLUSH_FORCED = 1,
  CUPTI_DOMAIN_DRIVER = 1,
  CUPTI_DOMAIN_RESOURCE = 3,
  CUPTI_RESOURCE_CONTEXT_CREATED = 1,
  CUPTI_RESOURCE_CONTEXT_DESTROY = 2,
  CUPTI_SITE_ENTER = 0,
  CUPTI_SASS_WHOLE_GPU = 0,

  CUPTI_CALL_LAUNCH = 307,
  CUPTI_CALL_LAUNCH_PTSZ = 442,
  CUPTI_CALL_COOPERATIVE = 477,
  CUPTI_CALL_COOPERATIVE_PTSZ = 478,
  CUPTI_CALL_GRAPH = 514,
  CUPTI_CALL_GRAPH_PTSZ = 515,
  CUPTI_CALL_LAUNCH_EX = 652,
  CUPTI_CALL_LAUNCH_EX_PTSZ = 653,

  // Of a CUgraphExec: made, changed, dropped.
  CUPTI_CALL_GRAPH_MAKE = 513,
  CUPTI_CALL_GRAPH_MAKE_2 = 578,
  CUPTI_CALL_GRAPH_MAKE_WITH_FLAGS = 643,
  CUPTI_CALL_GRAPH_MAKE_WITH = 656,
  CUPTI_CALL_GRAPH_MAKE_WITH_PTSZ = 657,
  CUPTI_CALL_GRAPH_DROP = 516,
  CUPTI_CALL_GRAPH_UPDATE = 561,
  CUPTI_CALL_GRAPH_UPDATE_2 = 696,
  CUPTI_CALL_GRAPH_SET_KERNEL = 538,
  CUPTI_CALL_GRAPH_SET_KERNEL_2 = 692,
  CUPTI_CALL_GRAPH_SET_COPY = 562,
  CUPTI_CALL_GRAPH_SET_SET = 563,
  CUPTI_CALL_GRAPH_SET_HOST = 564,
  CUPTI_CALL_GRAPH_SET_CHILD = 586,
  CUPTI_CALL_GRAPH_SET_RECORD = 595,
  CUPTI_CALL_GRAPH_SET_WAIT = 596,
  CUPTI_CALL_GRAPH_SET_SIGNAL = 624,
  CUPTI_CALL_GRAPH_SET_SEMAPHORE = 625,
  CUPTI_CALL_GRAPH_SET_ENABLED = 650,
  CUPTI_CALL_GRAPH_SET_BATCH = 672,
  CUPTI_CALL_GRAPH_SET_ANY = 714
};

// Parameters of a call: their size up to the last field, a pointer to be left NULL, then what differs.
#define CUPTI_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
#define CUPTI_HEAD                                                                                           \
  size_t size;                                                                                               \
  void *priv

typedef struct CuptiInitialize {
  CUPTI_HEAD;
} CuptiInitialize;
typedef struct CuptiChipName {
  CUPTI_HEAD;
  size_t device;
  const char *name;
} CuptiChipName;
typedef struct CuptiAvailability {
  CUPTI_HEAD;
  void *context;
  size_t image_size;
  uint8_t *image;
} CuptiAvailability;

typedef struct CuptiHostInitialize {
  CUPTI_HEAD;
  int type;
  const char *chip;
  const uint8_t *availability;
  void *host;
} CuptiHostInitialize;
typedef struct CuptiHostDeinitialize {
  CUPTI_HEAD;
  void *host;
} CuptiHostDeinitialize;
typedef struct CuptiHostProperties {
  CUPTI_HEAD;
  void *host;
  const char *metric, *description, *unit, *dimension;
  int type;
} CuptiHostProperties;
typedef struct CuptiHostAdd {
  CUPTI_HEAD;
  void *host;
  const char *const *metrics;
  size_t count;
} CuptiHostAdd;
typedef struct CuptiHostImageSize {
  CUPTI_HEAD;
  void *host;
  size_t image_size;
} CuptiHostImageSize;
typedef struct CuptiHostImage {
  CUPTI_HEAD;
  void *host;
  size_t image_size;
  uint8_t *image;
} CuptiHostImage;
typedef struct CuptiHostPasses {
  CUPTI_HEAD;
  size_t image_size;
  uint8_t *image;
  size_t passes;
} CuptiHostPasses;
typedef struct CuptiHostEvaluate {
  CUPTI_HEAD;
  void *host;
  const uint8_t *data;
  size_t data_size, range;
  const char *const *metrics;
  size_t count;
  double *values;
} CuptiHostEvaluate;

typedef struct CuptiRangeEnable {
  CUPTI_HEAD;
  void *context, *profiler;
} CuptiRangeEnable;
typedef struct CuptiRange { // disable, start, pop
  CUPTI_HEAD;
  void *profiler;
} CuptiRange;
typedef struct CuptiRangePush {
  CUPTI_HEAD;
  void *profiler;
  const char *name;
} CuptiRangePush;
typedef struct CuptiRangeStop {
  CUPTI_HEAD;
  void *profiler;
  size_t pass, nesting;
  uint8_t all_passes;
} CuptiRangeStop;
typedef struct CuptiRangeDecode {
  CUPTI_HEAD;
  void *profiler;
  size_t dropped;
} CuptiRangeDecode;
typedef struct CuptiRangeConfig {
  CUPTI_HEAD;
  void *profiler;
  size_t image_size;
  const uint8_t *image;
  size_t data_size;
  uint8_t *data;
  int range, replay;
  size_t most_ranges;
  uint16_t nesting_levels, nesting_least;
  size_t pass;
  uint16_t nesting_target;
} CuptiRangeConfig;
typedef struct CuptiRangeDataSize {
  CUPTI_HEAD;
  void *profiler;
  const char *const *metrics;
  size_t count, most_ranges;
  uint32_t most_nodes;
  size_t data_size;
} CuptiRangeDataSize;
typedef struct CuptiRangeDataInit {
  CUPTI_HEAD;
  void *profiler;
  size_t data_size;
  uint8_t *data;
} CuptiRangeDataInit;
typedef struct CuptiRangeDataInfo {
  CUPTI_HEAD;
  const uint8_t *data;
  size_t data_size, ranges;
} CuptiRangeDataInfo;

typedef struct CuptiSassMetric {
  uint64_t id;
  const char *name, *description;
} CuptiSassMetric;
typedef struct CuptiSassProperties {
  CUPTI_HEAD;
  const char *chip, *name;
  CuptiSassMetric metric;
} CuptiSassProperties;
typedef struct CuptiSassConfig {
  uint64_t id;
  uint8_t granularity;
} CuptiSassConfig;
typedef struct CuptiSassSetConfig {
  CUPTI_HEAD;
  size_t count;
  CuptiSassConfig *config;
  uint32_t device;
} CuptiSassSetConfig;
typedef struct CuptiSassUnsetConfig {
  CUPTI_HEAD;
  uint32_t device;
} CuptiSassUnsetConfig;
typedef struct CuptiSassEnable {
  CUPTI_HEAD;
  void *context; // NULL: the current one
  uint8_t lazily;
} CuptiSassEnable;
typedef struct CuptiSassDisable {
  CUPTI_HEAD;
  void *context;
  size_t dropped;
} CuptiSassDisable;
typedef struct CuptiSassDataSize {
  CUPTI_HEAD;
  void *context;
  size_t records, instances;
} CuptiSassDataSize;
typedef struct CuptiSassValue {
  uint64_t id, value;
} CuptiSassValue;
typedef struct CuptiSassData { // an instruction
  CUPTI_HEAD;
  uint32_t cubin, function;
  const char *name;
  uint32_t place;
  CuptiSassValue *values;
} CuptiSassData;
typedef struct CuptiSassFlush {
  CUPTI_HEAD;
  void *context;
  size_t records, instances;
  CuptiSassData *data;
} CuptiSassFlush;

// CUpti_ActivityKernel9 and 10: what both have. Records have 8-byte alignment and no padding.
typedef struct __attribute__((packed, aligned(8))) CuptiKernel {
  int kind;
  uint8_t cache_config, shared_config;
  uint16_t registers;
  int partition_requested, partition_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], static_shared, dynamic_shared;
  uint32_t local_bytes, local_total, correlation;
  int64_t grid_id;
  const char *name;
  void *reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested, carveout, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  int shared_limit;
  uint32_t graph;
  void *access_window;
  uint32_t channel;
  int channel_type;
  uint32_t cluster[3];
} CuptiKernel;

typedef struct CuptiCall { // CUpti_CallbackData
  int site;
  const char *function;
  const void *params;
  void *result;
  const char *symbol;
  void *context;
  uint32_t context_uid;
  uint64_t *shared; // between enter and exit
  uint32_t correlation;
} CuptiCall;
typedef void CuptiCallback(void *user, int domain, uint32_t id, const void *data);
typedef void CuptiBufferAsked(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void CuptiBufferDone(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

// The lists of entry points: X(field, symbol, parameters). The second is what counters need, the third
// what counting by instruction does.
#define CUPTI_ENTRY_POINTS(X)                                                                                \
  X(get_version, "cuptiGetVersion", (uint32_t *))                                                            \
  X(result_string, "cuptiGetResultString", (CuptiResult, const char **))                                     \
  X(subscribe, "cuptiSubscribe", (void **, CuptiCallback *, void *))                                         \
  X(enable_callback, "cuptiEnableCallback", (uint32_t, void *, int, uint32_t))                               \
  X(activity_callbacks, "cuptiActivityRegisterCallbacks", (CuptiBufferAsked *, CuptiBufferDone *))           \
  X(activity_enable, "cuptiActivityEnable", (int))                                                           \
  X(activity_disable, "cuptiActivityDisable", (int))                                                         \
  X(activity_next, "cuptiActivityGetNextRecord", (uint8_t *, size_t, void **))                               \
  X(activity_dropped, "cuptiActivityGetNumDroppedRecords", (void *, uint32_t, size_t *))                     \
  X(activity_flush, "cuptiActivityFlushAll", (uint32_t))                                                     \
  X(device_of, "cuptiGetDeviceId", (void *, uint32_t *))
#define CUPTI_COUNTER_ENTRY_POINTS(X)                                                                        \
  X(profiler_initialize, "cuptiProfilerInitialize", (CuptiInitialize *))                                     \
  X(chip_name, "cuptiDeviceGetChipName", (CuptiChipName *))                                                  \
  X(availability, "cuptiProfilerGetCounterAvailability", (CuptiAvailability *))                              \
  X(host_initialize, "cuptiProfilerHostInitialize", (CuptiHostInitialize *))                                 \
  X(host_deinitialize, "cuptiProfilerHostDeinitialize", (CuptiHostDeinitialize *))                           \
  X(host_properties, "cuptiProfilerHostGetMetricProperties", (CuptiHostProperties *))                        \
  X(host_add, "cuptiProfilerHostConfigAddMetrics", (CuptiHostAdd *))                                         \
  X(host_image_size, "cuptiProfilerHostGetConfigImageSize", (CuptiHostImageSize *))                          \
  X(host_image, "cuptiProfilerHostGetConfigImage", (CuptiHostImage *))                                       \
  X(host_passes, "cuptiProfilerHostGetNumOfPasses", (CuptiHostPasses *))                                     \
  X(host_evaluate, "cuptiProfilerHostEvaluateToGpuValues", (CuptiHostEvaluate *))                            \
  X(range_enable, "cuptiRangeProfilerEnable", (CuptiRangeEnable *))                                          \
  X(range_disable, "cuptiRangeProfilerDisable", (CuptiRange *))                                              \
  X(range_config, "cuptiRangeProfilerSetConfig", (CuptiRangeConfig *))                                       \
  X(range_start, "cuptiRangeProfilerStart", (CuptiRange *))                                                  \
  X(range_stop, "cuptiRangeProfilerStop", (CuptiRangeStop *))                                                \
  X(range_push, "cuptiRangeProfilerPushRange", (CuptiRangePush *))                                           \
  X(range_pop, "cuptiRangeProfilerPopRange", (CuptiRange *))                                                 \
  X(range_decode, "cuptiRangeProfilerDecodeData", (CuptiRangeDecode *))                                      \
  X(range_data_size, "cuptiRangeProfilerGetCounterDataSize", (CuptiRangeDataSize *))                         \
  X(range_data_init, "cuptiRangeProfilerCounterDataImageInitialize", (CuptiRangeDataInit *))                 \
  X(range_data_info, "cuptiRangeProfilerGetCounterDataInfo", (CuptiRangeDataInfo *))
#define CUPTI_SASS_ENTRY_POINTS(X)                                                                           \
  X(sass_properties, "cuptiSassMetricsGetProperties", (CuptiSassProperties *))                               \
  X(sass_set, "cuptiSassMetricsSetConfig", (CuptiSassSetConfig *))                                           \
  X(sass_unset, "cuptiSassMetricsUnsetConfig", (CuptiSassUnsetConfig *))                                     \
  X(sass_enable, "cuptiSassMetricsEnable", (CuptiSassEnable *))                                              \
  X(sass_disable, "cuptiSassMetricsDisable", (CuptiSassDisable *))                                           \
  X(sass_data_size, "cuptiSassMetricsGetDataProperties", (CuptiSassDataSize *))                              \
  X(sass_flush, "cuptiSassMetricsFlushData", (CuptiSassFlush *))

typedef struct Cupti {
  void *library;
  uint32_t version; // 130000 for 13.0
  bool counts;      // whether it has the range profiler (CUDA 12.6 and later)
  bool patches;     // whether it counts by instruction
#define CUPTI_POINTER(field, symbol, parameters) CuptiResult(*field) parameters;
  CUPTI_ENTRY_POINTS(CUPTI_POINTER)
  CUPTI_COUNTER_ENTRY_POINTS(CUPTI_POINTER)
  CUPTI_SASS_ENTRY_POINTS(CUPTI_POINTER)
#undef CUPTI_POINTER
} Cupti;

// Looked for in this order: a copy that the process has loaded already, $SOL_CUPTI, where the loader looks,
// the toolkit ($CUDA_HOME, /usr/local/cuda). SOL_ERR_UNSUPPORTED: there is none, or it is too old.
SolStatus cupti_load(Cupti *out, SolError *err);
void cupti_unload(Cupti *cupti);
// SOL_OK for 0; otherwise "WHAT: CUPTI's text", with a hint where something can be done.
SolStatus cupti_check(const Cupti *cupti, CuptiResult result, const char *what, SolError *err);
static inline bool cupti_forbidden(CuptiResult result) {
  return result == CUPTI_INSUFFICIENT_PRIVILEGES || result == CUPTI_VIRTUAL_INSUFFICIENT_PRIVILEGES;
}

#endif
