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

static void close_cuda(void *state) {
  Cuda *c = state;
  if (c->begin) c->event_destroy(c->begin);
  if (c->end) c->event_destroy(c->end);
  if (c->context) {
    void *popped;
    c->context_pop(&popped);
    c->context_release(c->device);
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
  if (!status) status = check(c, c->device_get(&c->device, 0), "no GPU", err);
  if (!status) status = check(c, c->context_retain(&c->context, c->device), "the GPU's context", err);
  if (!status) status = check(c, c->context_push(c->context), "the GPU's context", err);
  if (!status) status = check(c, c->event_create(&c->begin, 0), "an event", err);
  if (!status) status = check(c, c->event_create(&c->end, 0), "an event", err);
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
  return check(c, c->mem_alloc(address, bytes ? (size_t)bytes : 1), "allocating GPU memory", err);
}

static SolStatus free_cuda(void *state, uint64_t address, SolError *err) {
  Cuda *c = state;
  return check(c, c->mem_free(address), "freeing GPU memory", err);
}

static SolStatus write_cuda(void *state, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  return check(c, c->copy_in(to, from, (size_t)bytes), "copying to the GPU", err);
}

static SolStatus read_cuda(void *state, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  return check(c, c->copy_out(to, from, (size_t)bytes), "copying from the GPU", err);
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
  char log[160] = "";
  int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  CuResult result = c->module_load(module, text, 2, options, values);
  sol_heap_free(text);
  SolStatus status = check(c, result, "the driver refuses the PTX", err);
  if (status && err && log[0]) sol_format(err->hint, sizeof err->hint, "%s", log);
  return status;
}

static void unload_cuda(void *state, void *module) {
  ((Cuda *)state)->module_unload(module);
}

static SolStatus kernel_cuda(void *state, void *module, const char *name, void **kernel, SolError *err) {
  Cuda *c = state;
  return check(c, c->module_function(kernel, module, name), name, err);
}

static SolStatus launch_cuda(void *state, void *kernel, const SolDriverLaunch *l, SolEmuResult *result,
                             double *seconds, SolError *err) {
  (void)result;
  Cuda *c = state;
  CuLaunchAttribute attributes[2] = {0};
  CuLaunchConfig config = {.shared = (unsigned)l->dynamic_shared, .attributes = attributes};
  memcpy(config.grid, l->grid, sizeof config.grid);
  memcpy(config.block, l->block, sizeof config.block);
  if (l->cluster[0]) {
    CuLaunchAttribute *a = &attributes[config.attribute_count++];
    a->id = ATTRIBUTE_CLUSTER;
    memcpy(&a->value.cluster, l->cluster, sizeof a->value.cluster);
  }
  if (l->cooperative) {
    CuLaunchAttribute *a = &attributes[config.attribute_count++];
    a->id = ATTRIBUTE_COOPERATIVE;
    a->value.cooperative = 1;
  }
  // Above 48 KiB dynamic shared memory is opt-in; asking for it always is harmless.
  if (l->dynamic_shared > 48 * 1024) {
    SolStatus status = check(c, c->function_set(kernel, FUNC_MAX_DYNAMIC_SHARED, (int)l->dynamic_shared),
                             "dynamic shared memory", err);
    if (status) return status;
  }
  if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 8)
    c->function_set(kernel, FUNC_NON_PORTABLE_CLUSTER, 1);
  size_t bytes = (size_t)l->param_bytes;
  void *buffer = (void *)(uintptr_t)l->params;
  void *extra[] = {LAUNCH_BUFFER, buffer, LAUNCH_BUFFER_SIZE, &bytes, LAUNCH_END};
  SolStatus status = check(c, c->event_record(c->begin, NULL), "an event", err);
  if (!status) status = check(c, c->launch(&config, kernel, NULL, bytes ? extra : NULL), "launching", err);
  if (!status) status = check(c, c->event_record(c->end, NULL), "an event", err);
  if (!status) status = check(c, c->context_sync(), "running the kernel", err);
  float ms = 0;
  if (!status && seconds) status = check(c, c->event_elapsed(&ms, c->begin, c->end), "timing", err);
  if (!status && seconds) *seconds = (double)ms / 1e3;
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
};
