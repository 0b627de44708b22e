// What the CUDA backend's files share: the few types and constants of the driver's ABI that are used,
// declared here so that no toolkit is needed to build, and the entry points as loaded at run time.
#ifndef SOL_DRIVER_CUDA_H
#define SOL_DRIVER_CUDA_H

#include "base/error.h"
#include "driver/driver.h"

typedef int CuResult;
typedef uint64_t CuAddress;
typedef struct CuLaunchAttribute { // CUlaunchAttribute
  int id;
  char pad[4];
  union {
    char room[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int cooperative;
    int early;
  } value;
} CuLaunchAttribute;
typedef struct CuLaunchConfig { // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  void *stream;
  CuLaunchAttribute *attributes;
  unsigned attribute_count;
} CuLaunchConfig;
enum {
  ATTRIBUTE_COOPERATIVE = 2,
  ATTRIBUTE_CLUSTER = 4,
  ATTRIBUTE_EARLY = 6, // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  DEVICE_SMS = 16,
  DEVICE_L2_BYTES = 38,
  DEVICE_CC_MAJOR = 75,
  DEVICE_CC_MINOR = 76,
  POINTER_MEMORY_TYPE = 2,
  POINTER_IS_MANAGED = 8,
  POINTER_DEVICE = 9,
  MEMORY_ON_DEVICE = 2,
  ERROR_NO_CONTEXT = 201, // CUDA_ERROR_INVALID_CONTEXT
  STREAM_NON_BLOCKING = 1,
  CAPTURE_RELAXED = 2, // other threads, and calls that a recording would forbid, are let be
  FUNC_MAX_DYNAMIC_SHARED = 8,
  FUNC_NON_PORTABLE_CLUSTER = 14,
  JIT_ERROR_LOG = 5,
  JIT_ERROR_LOG_BYTES = 6
};
#define LAUNCH_BUFFER      ((void *)1)
#define LAUNCH_BUFFER_SIZE ((void *)2)
#define LAUNCH_END         ((void *)0)

// The one list of entry points: X(field, symbol, result, parameters).
#define CUDA_ENTRY_POINTS(X)                                                                                 \
  X(init, "cuInit", (unsigned))                                                                              \
  X(device_get, "cuDeviceGet", (int *, int))                                                                 \
  X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                             \
  X(context_current, "cuCtxGetCurrent", (void **))                                                           \
  X(context_device, "cuCtxGetDevice", (int *))                                                               \
  X(pointer_attributes, "cuPointerGetAttributes", (unsigned, const int *, void **, CuAddress))               \
  X(context_retain, "cuDevicePrimaryCtxRetain", (void **, int))                                              \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int))                                                  \
  X(context_push, "cuCtxPushCurrent_v2", (void *))                                                           \
  X(context_pop, "cuCtxPopCurrent_v2", (void **))                                                            \
  X(context_sync, "cuCtxSynchronize", (void))                                                                \
  X(error_string, "cuGetErrorString", (CuResult, const char **))                                             \
  X(mem_alloc, "cuMemAlloc_v2", (CuAddress *, size_t))                                                       \
  X(mem_free, "cuMemFree_v2", (CuAddress))                                                                   \
  X(copy_in, "cuMemcpyHtoD_v2", (CuAddress, const void *, size_t))                                           \
  X(copy_out, "cuMemcpyDtoH_v2", (void *, CuAddress, size_t))                                                \
  X(module_load, "cuModuleLoadDataEx", (void **, const void *, unsigned, int *, void **))                    \
  X(module_unload, "cuModuleUnload", (void *))                                                               \
  X(module_function, "cuModuleGetFunction", (void **, void *, const char *))                                 \
  X(function_set, "cuFuncSetAttribute", (void *, int, int))                                                  \
  X(launch, "cuLaunchKernelEx", (const CuLaunchConfig *, void *, void **, void **))                          \
  X(copy_within, "cuMemcpyDtoDAsync_v2", (CuAddress, CuAddress, size_t, void *))                             \
  X(mem_set, "cuMemsetD8Async", (CuAddress, unsigned char, size_t, void *))                                  \
  X(stream_create, "cuStreamCreate", (void **, unsigned))                                                    \
  X(stream_destroy, "cuStreamDestroy_v2", (void *))                                                          \
  X(stream_sync, "cuStreamSynchronize", (void *))                                                            \
  X(capture_begin, "cuStreamBeginCapture_v2", (void *, int))                                                 \
  X(capture_end, "cuStreamEndCapture", (void *, void **))                                                    \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))                 \
  X(graph_launch, "cuGraphLaunch", (void *, void *))                                                         \
  X(graph_destroy, "cuGraphDestroy", (void *))                                                               \
  X(graph_exec_destroy, "cuGraphExecDestroy", (void *))                                                      \
  X(device_name, "cuDeviceGetName", (char *, int, int))                                                      \
  X(driver_version, "cuDriverGetVersion", (int *))                                                           \
  X(event_create, "cuEventCreate", (void **, unsigned))                                                      \
  X(event_destroy, "cuEventDestroy_v2", (void *))                                                            \
  X(event_record, "cuEventRecord", (void *, void *))                                                         \
  X(event_sync, "cuEventSynchronize", (void *))                                                              \
  X(event_elapsed, "cuEventElapsedTime", (float *, void *, void *))
// NULL where the driver is older than they are.
#define CUDA_OPTIONAL_ENTRY_POINTS(X) X(function_load, "cuFuncLoad", (void *))

typedef struct Cuda {
  void *library, *context, *begin, *end;
  int device;
  bool retained; // the primary context, by us; otherwise the caller's own
#define ENTRY_POINTER(field, symbol, parameters) CuResult(*field) parameters;
  CUDA_ENTRY_POINTS(ENTRY_POINTER)
  CUDA_OPTIONAL_ENTRY_POINTS(ENTRY_POINTER)
#undef ENTRY_POINTER
} Cuda;

static inline SolStatus cuda_check(const Cuda *c, CuResult result, const char *what, SolError *err) {
  if (!result) return SOL_OK;
  const char *text = "unknown error";
  if (c->error_string) c->error_string(result, &text);
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s: %s (CUDA driver error %d)", what, text, result);
}

// Calls work in whatever context is current; another thread's may be none or a different one.
static inline bool cuda_enter(const Cuda *c) {
  void *current = NULL;
  c->context_current(&current);
  return current != c->context && !c->context_push(c->context);
}

static inline void cuda_leave(const Cuda *c, bool entered) {
  void *popped;
  if (entered) c->context_pop(&popped);
}

extern const SolDriverTiming sol_driver_cuda_timing;

#endif
