// A real GPU through the CUDA driver API. The library is loaded at run time; the few types and constants of
// its ABI that are used are declared here, so that no toolkit is needed to build.
#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
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
  DEVICE_CC_MAJOR = 75,
  DEVICE_CC_MINOR = 76,
  POINTER_MEMORY_TYPE = 2,
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
  X(pointer_attribute, "cuPointerGetAttribute", (void *, int, CuAddress))                                    \
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
  X(event_create, "cuEventCreate", (void **, unsigned))                                                      \
  X(event_destroy, "cuEventDestroy_v2", (void *))                                                            \
  X(event_record, "cuEventRecord", (void *, void *))                                                         \
  X(event_sync, "cuEventSynchronize", (void *))                                                              \
  X(event_elapsed, "cuEventElapsedTime", (float *, void *, void *))

typedef struct Cuda {
  void *library, *context, *begin, *end;
  int device;
  bool retained; // the primary context, by us; otherwise the caller's own
#define ENTRY_POINTER(field, symbol, parameters) CuResult(*field) parameters;
  CUDA_ENTRY_POINTS(ENTRY_POINTER)
#undef ENTRY_POINTER
} Cuda;

static SolStatus check(const Cuda *c, CuResult result, const char *what, SolError *err) {
  if (!result) return SOL_OK;
  const char *text = "unknown error";
  if (c->error_string) c->error_string(result, &text);
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s: %s (CUDA driver error %d)", what, text, result);
}

// Calls work in whatever context is current; another thread's may be none or a different one.
static bool enter(const Cuda *c) {
  void *current = NULL;
  c->context_current(&current);
  return current != c->context && !c->context_push(c->context);
}

static void leave(const Cuda *c, bool entered) {
  void *popped;
  if (entered) c->context_pop(&popped);
}

static void close_cuda(void *state) {
  Cuda *c = state;
  if (c->context) {
    bool entered = enter(c);
    if (c->begin) c->event_destroy(c->begin);
    if (c->end) c->event_destroy(c->end);
    leave(c, entered);
    if (c->retained) c->context_release(c->device);
  }
  if (c->library) dlclose(c->library);
  sol_heap_free(c);
}

static SolStatus load_entry_points(Cuda *c, SolError *err) {
  c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!c->library) {
    sol_fail(err, SOL_ERR_UNSUPPORTED, "no CUDA driver on this machine (libcuda.so.1)");
    sol_hint(err, "the emulator needs none: --backend emu");
    return SOL_ERR_UNSUPPORTED;
  }
  // An object pointer becomes a function pointer by memcpy: ISO C has no cast for it. (The analyzer loses
  // track of the copy, and takes the pointers for null below.)
#define ENTRY_LOAD(field, symbol, parameters)                                                                \
  {                                                                                                          \
    void *address = dlsym(c->library, symbol);                                                               \
    if (!address)                                                                                            \
      return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old: it lacks %s", symbol);          \
    memcpy(&c->field, &address, sizeof address);                                                             \
  }
  CUDA_ENTRY_POINTS(ENTRY_LOAD)
#undef ENTRY_LOAD
  return SOL_OK;
}

static SolStatus open_cuda(const SolDriverOptions *options, void **state, SolError *err) {
  (void)options;
  Cuda *c = sol_heap_alloc(sizeof *c);
  if (!c) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *c = (Cuda){0};
  SolStatus status = load_entry_points(c, err);
  // NOLINTBEGIN(clang-analyzer-core.CallAndMessage)
  if (!status) status = check(c, c->init(0), "no usable GPU", err);
  if (!status) status = check(c, c->context_current(&c->context), "the GPU's context", err);
  if (!status && c->context)
    status = check(c, c->context_device(&c->device), "the context's GPU", err);
  else if (!status) {
    status = check(c, c->device_get(&c->device, 0), "no GPU", err);
    if (!status) status = check(c, c->context_retain(&c->context, c->device), "the GPU's context", err);
    c->retained = !status;
  }
  bool entered = !status && enter(c);
  if (!status) status = check(c, c->event_create(&c->begin, 0), "an event", err);
  if (!status) status = check(c, c->event_create(&c->end, 0), "an event", err);
  if (entered) leave(c, entered);
  // NOLINTEND(clang-analyzer-core.CallAndMessage)
  if (status)
    close_cuda(c);
  else
    *state = c;
  return status;
}

static SolStatus alloc_cuda(void *state, uint64_t bytes, const char *label, uint64_t *address,
                            SolError *err) {
  Cuda *c = state;
  (void)label;
  bool entered = enter(c);
  CuResult result = c->mem_alloc(address, bytes ? (size_t)bytes : 1);
  leave(c, entered);
  return check(c, result, "allocating GPU memory", err);
}

static SolStatus free_cuda(void *state, uint64_t address, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->mem_free(address);
  leave(c, entered);
  return check(c, result, "freeing GPU memory", err);
}

static SolStatus write_cuda(void *state, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->copy_in(to, from, (size_t)bytes);
  leave(c, entered);
  return check(c, result, "copying to the GPU", err);
}

static SolStatus read_cuda(void *state, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->copy_out(to, from, (size_t)bytes);
  leave(c, entered);
  return check(c, result, "copying from the GPU", err);
}

static SolStatus load_module(Cuda *c, const void *image, const char *what, void **module, SolError *err) {
  char log[160] = "";
  int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  bool entered = enter(c);
  CuResult result = c->module_load(module, image, 2, options, values);
  leave(c, entered);
  SolStatus status = check(c, result, what, err);
  if (status && err && log[0]) sol_format(err->hint, sizeof err->hint, "%s", log);
  return status;
}

static SolStatus load_image_cuda(void *state, const void *image, void **module, SolError *err) {
  return load_module(state, image, "the driver refuses the kernels", module, err);
}

static SolStatus load_cuda(void *state, const SolPtxSource *sources, int count, void **module,
                           SolError *err) {
  Cuda *c = state;
  if (count != 1)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the GPU's driver takes one PTX source at a time");
  char *text = sol_heap_alloc(sources->length + 1); // the driver wants a NUL
  if (!text) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memcpy(text, sources->text, sources->length);
  text[sources->length] = 0;
  SolStatus status = load_module(c, text, "the driver refuses the PTX", module, err);
  sol_heap_free(text);
  return status;
}

static void unload_cuda(void *state, void *module) {
  Cuda *c = state;
  bool entered = enter(c);
  c->module_unload(module);
  leave(c, entered);
}

static SolStatus kernel_cuda(void *state, void *module, const char *name, void **kernel, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->module_function(kernel, module, name);
  leave(c, entered);
  return check(c, result, name, err);
}

static SolStatus enqueue_cuda(void *state, void *kernel, const SolDriverLaunch *l, SolStream stream,
                              SolError *err) {
  Cuda *c = state;
  CuLaunchAttribute attributes[3];
  CuLaunchConfig config = {.shared = (unsigned)l->dynamic_shared, .stream = stream, .attributes = attributes};
  memcpy(config.grid, l->grid, sizeof config.grid);
  memcpy(config.block, l->block, sizeof config.block);
  if (l->cluster[0]) {
    CuLaunchAttribute *a = &attributes[config.attribute_count++];
    *a = (CuLaunchAttribute){.id = ATTRIBUTE_CLUSTER};
    memcpy(&a->value.cluster, l->cluster, sizeof a->value.cluster);
  }
  if (l->cooperative)
    attributes[config.attribute_count++] =
        (CuLaunchAttribute){.id = ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
  if (l->early)
    attributes[config.attribute_count++] = (CuLaunchAttribute){.id = ATTRIBUTE_EARLY, .value.early = 1};
  size_t bytes = (size_t)l->param_bytes;
  void *extra[] = {LAUNCH_BUFFER, (void *)(uintptr_t)l->params, LAUNCH_BUFFER_SIZE, &bytes, LAUNCH_END};
  bool entered = enter(c);
  CuResult result = c->launch(&config, kernel, NULL, bytes ? extra : NULL);
  leave(c, entered);
  return check(c, result, "launching", err);
}

// Above 48 KiB dynamic shared memory is opt-in, and so are clusters of more than 8 blocks.
static SolStatus allow_shared_cuda(void *state, void *kernel, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->function_set(kernel, FUNC_MAX_DYNAMIC_SHARED, (int)bytes);
  leave(c, entered);
  return check(c, result, "dynamic shared memory", err);
}

static SolStatus launch_cuda(void *state, void *kernel, const SolDriverLaunch *l, SolEmuResult *result,
                             double *seconds, SolError *err) {
  (void)result;
  Cuda *c = state;
  SolStatus status = SOL_OK;
  bool entered = enter(c);
  if (l->dynamic_shared > 48 * 1024) status = allow_shared_cuda(c, kernel, l->dynamic_shared, err);
  if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 8)
    c->function_set(kernel, FUNC_NON_PORTABLE_CLUSTER, 1);
  if (!status) status = check(c, c->event_record(c->begin, NULL), "an event", err);
  if (!status) status = enqueue_cuda(c, kernel, l, NULL, err);
  if (!status) status = check(c, c->event_record(c->end, NULL), "an event", err);
  if (!status) status = check(c, c->context_sync(), "running the kernel", err);
  float ms = 0;
  if (!status && seconds) status = check(c, c->event_elapsed(&ms, c->begin, c->end), "timing", err);
  leave(c, entered);
  if (!status && seconds) *seconds = (double)ms / 1e3;
  return status;
}

static SolStatus sync_cuda(void *state, SolError *err) {
  Cuda *c = state;
  bool entered = enter(c);
  CuResult result = c->context_sync();
  leave(c, entered);
  return check(c, result, "running on the GPU", err);
}

// Only the kind of memory is asked for: ranges are the allocator's, and one tensor may span several.
static SolStatus check_pointer_cuda(void *state, uint64_t address, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  (void)bytes;
  unsigned type = 0;
  if (!c->pointer_attribute(&type, POINTER_MEMORY_TYPE, address) && type) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is not memory that the GPU can reach",
                  (unsigned long long)address);
}

static SolStatus info_cuda(void *state, SolDriverInfo *out, SolError *err) {
  Cuda *c = state;
  int major = 0, minor = 0;
  SolStatus status = check(c, c->device_attribute(&major, DEVICE_CC_MAJOR, c->device), "the GPU", err);
  if (!status) status = check(c, c->device_attribute(&minor, DEVICE_CC_MINOR, c->device), "the GPU", err);
  if (!status) status = check(c, c->device_attribute(&out->sms, DEVICE_SMS, c->device), "the GPU", err);
  out->cc = major * 10 + minor;
  return status;
}

const SolDriverTable sol_driver_cuda_table = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .alloc = alloc_cuda,
    .free = free_cuda,
    .write = write_cuda,
    .read = read_cuda,
    .load = load_cuda,
    .unload = unload_cuda,
    .kernel = kernel_cuda,
    .launch = launch_cuda,
    .enqueue = enqueue_cuda,
    .allow_shared = allow_shared_cuda,
    .sync = sync_cuda,
    .check_pointer = check_pointer_cuda,
    .info = info_cuda,
    .load_image = load_image_cuda,
};
