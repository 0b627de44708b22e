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
    struct { // CUaccessPolicyWindow
      void *base;
      size_t bytes;
      float share;
      int hit, miss;
    } window;
  } value;
} CuLaunchAttribute;
typedef struct CuLaunchConfig { // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  void *stream;
  CuLaunchAttribute *attributes;
  unsigned attribute_count;
} CuLaunchConfig;
typedef struct CuArrayShape { // CUDA_ARRAY_DESCRIPTOR
  size_t width, height;
  int format;
  unsigned channels;
} CuArrayShape;
typedef struct CuPlace { // a half of CUDA_MEMCPY2D
  size_t x_bytes, y;
  int kind;
  void *host;
  CuAddress device;
  void *array;
  size_t pitch;
} CuPlace;
typedef struct CuCopy2d { // CUDA_MEMCPY2D
  CuPlace from, to;
  size_t width_bytes, height;
} CuCopy2d;
typedef struct CuResource { // CUDA_RESOURCE_DESC
  int kind;
  union {
    void *array;
    struct {
      CuAddress at;
      int format;
      unsigned channels;
      size_t width, height, pitch;
    } rows;
    int room[32];
  } of;
  unsigned flags;
} CuResource;
typedef struct CuSampler { // CUDA_TEXTURE_DESC
  int edge[3], filter;
  unsigned flags, anisotropy;
  int mipmap_filter;
  float mipmap[3], border[4];
  int room[12];
} CuSampler;
enum {
  ATTRIBUTE_WINDOW = 1,
  ATTRIBUTE_COOPERATIVE = 2,
  ATTRIBUTE_CLUSTER = 4,
  ATTRIBUTE_CLUSTER_POLICY = 5,
  ATTRIBUTE_EARLY = 6, // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  ATTRIBUTE_SYNC_DOMAIN_MAP = 9,
  ATTRIBUTE_SYNC_DOMAIN = 10,
  ATTRIBUTE_PREFERRED_CLUSTER = 11,
  DEVICE_SMS = 16,
  DEVICE_L2_BYTES = 38,
  DEVICE_CC_MAJOR = 75,
  DEVICE_CC_MINOR = 76,
  DEVICE_SMEM_PER_SM = 81,
  DEVICE_SMEM_PER_BLOCK = 97, // with cuFuncSetAttribute
  DEVICE_PERSISTING_L2 = 108, // the most that may be set apart
  LIMIT_PERSISTING_L2 = 6,
  ACCESS_STREAMING = 1,
  ACCESS_PERSISTING = 2,
  POINTER_MEMORY_TYPE = 2,
  POINTER_IS_MANAGED = 8,
  POINTER_DEVICE = 9,
  MEMORY_ON_DEVICE = 2,
  MEMORY_ARRAY = 3,
  FORMAT_FLOAT = 0x20,
  RESOURCE_ARRAY = 0,
  RESOURCE_ROWS = 3, // CU_RESOURCE_TYPE_PITCH2D
  EDGE_CLAMP = 1,
  PROMOTE_NONE = 0,         // CU_TENSOR_MAP_L2_PROMOTION_NONE
  PROMOTE_256 = 3,          // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
  ERROR_NO_CONTEXT = 201,   // CUDA_ERROR_INVALID_CONTEXT
  ERROR_PEER_ENABLED = 704, // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
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
#define CUDA_OPTIONAL_ENTRY_POINTS(X)                                                                        \
  X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *))                                              \
  X(device_count, "cuDeviceGetCount", (int *))                                                               \
  X(enable_peer, "cuCtxEnablePeerAccess", (void *, unsigned))                                                \
  X(copy_peer, "cuMemcpyPeerAsync", (CuAddress, void *, CuAddress, void *, size_t, void *))                  \
  X(function_load, "cuFuncLoad", (void *))                                                                   \
  X(device_uuid, "cuDeviceGetUuid_v2", (unsigned char *, int))                                               \
  X(active_clusters, "cuOccupancyMaxActiveClusters", (int *, void *, const CuLaunchConfig *))                \
  X(set_limit, "cuCtxSetLimit", (int, size_t))                                                               \
  X(reset_persisting, "cuCtxResetPersistingL2Cache", (void))                                                 \
  X(address_range, "cuMemGetAddressRange_v2", (CuAddress *, size_t *, CuAddress))                            \
  X(array_create, "cuArrayCreate_v2", (void **, const CuArrayShape *))                                       \
  X(array_destroy, "cuArrayDestroy", (void *))                                                               \
  X(copy_2d, "cuMemcpy2DUnaligned_v2", (const CuCopy2d *))                                                   \
  X(texture_create, "cuTexObjectCreate",                                                                     \
    (unsigned long long *, const CuResource *, const CuSampler *, const void *))                             \
  X(texture_destroy, "cuTexObjectDestroy", (unsigned long long))                                             \
  X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                             \
    (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *,  \
     int, int, int, int))

typedef struct Cuda {
  void *library, *context, *begin, *end;
  int device;
  bool retained;       // the primary context, by us; otherwise the caller's own
  bool lost;           // a kernel has broken the context: every later call fails until the process ends
  uint64_t persisting; // bytes of L2 that were asked to be set apart
#define ENTRY_POINTER(field, symbol, parameters) CuResult(*field) parameters;
  CUDA_ENTRY_POINTS(ENTRY_POINTER)
  CUDA_OPTIONAL_ENTRY_POINTS(ENTRY_POINTER)
#undef ENTRY_POINTER
} Cuda;

// Errors after which a context is of no use any more.
static inline bool cuda_is_fatal(CuResult result) {
  enum { ECC = 214, ILLEGAL_ADDRESS = 700, TIMEOUT = 702, ASSERT = 710, STACK = 714, LAUNCH_FAILED = 719 };
  return result == ECC || result == ILLEGAL_ADDRESS || result == TIMEOUT || result == ASSERT ||
         (result >= STACK && result <= LAUNCH_FAILED);
}

static inline SolStatus cuda_check(Cuda *c, CuResult result, const char *what, SolError *err) {
  if (!result) return SOL_OK;
  if (cuda_is_fatal(result)) c->lost = true;
  const char *text = NULL;
  if (c->error_string) c->error_string(result, &text);
  if (!text) text = "unknown error"; // which the driver says by NULL
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
// cuda_texture_host.c
SolStatus sol_cuda_texture(void *state, const SolDriverImage *image, SolDriverTexture *out, SolError *err);
SolStatus sol_cuda_texture_copy(void *state, const SolDriverImage *image, void *array, SolError *err);
void sol_cuda_texture_free(void *state, SolDriverTexture *texture);
SolStatus sol_cuda_tensor_map(void *state, const SolTensorMap *map, uint8_t *out, SolError *err);

#endif
