// A real GPU through the CUDA driver API. The library is loaded at run time.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/heap.h"
#include "driver/cuda.h"

static void close_cuda(void *state) {
  Cuda *c = state;
  // What a lost context holds goes with the process: a driver need not be able to destroy it.
  if (c->context && !c->lost) {
    bool entered = cuda_enter(c);
    if (c->begin) c->event_destroy(c->begin);
    if (c->end) c->event_destroy(c->end);
    cuda_leave(c, entered);
    if (c->retained) c->context_release(c->device);
  }
  if (c->library) dlclose(c->library);
  sol_heap_free(c);
}

static SolStatus load_entry_points(Cuda *c, SolError *err) {
  // It stays loaded: threads of its own may outlive a context that a kernel has broken.
  c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
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
    memcpy(&c->field, &address, sizeof address);                                                             \
  }
#define ENTRY_CHECK(field, symbol, parameters)                                                               \
  if (!c->field) return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old: it lacks %s", symbol);
  CUDA_ENTRY_POINTS(ENTRY_LOAD)
  CUDA_ENTRY_POINTS(ENTRY_CHECK)
  CUDA_OPTIONAL_ENTRY_POINTS(ENTRY_LOAD)
#undef ENTRY_LOAD
#undef ENTRY_CHECK
  return SOL_OK;
}

static SolStatus open_cuda(const SolDriverOptions *options, void **state, SolError *err) {
  Cuda *c = sol_heap_alloc(sizeof *c);
  if (!c) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *c = (Cuda){0};
  SolStatus status = load_entry_points(c, err);
  // NOLINTBEGIN(clang-analyzer-core.CallAndMessage)
  if (!status) status = cuda_check(c, c->init(0), "no usable GPU", err);
  if (!status && !options->gpu)
    status = cuda_check(c, c->context_current(&c->context), "the GPU's context", err);
  if (!status && c->context)
    status = cuda_check(c, c->context_device(&c->device), "the context's GPU", err);
  else if (!status) {
    status =
        cuda_check(c, c->device_get(&c->device, options->gpu ? options->gpu - 1 : 0), "no such GPU", err);
    if (!status) status = cuda_check(c, c->context_retain(&c->context, c->device), "the GPU's context", err);
    c->retained = !status;
  }
  bool entered = !status && cuda_enter(c);
  if (!status) status = cuda_check(c, c->event_create(&c->begin, 0), "an event", err);
  if (!status) status = cuda_check(c, c->event_create(&c->end, 0), "an event", err);
  if (entered) cuda_leave(c, entered);
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
  bool entered = cuda_enter(c);
  CuResult result = c->mem_alloc(address, bytes ? (size_t)bytes : 1);
  cuda_leave(c, entered);
  return cuda_check(c, result, "allocating GPU memory", err);
}

static SolStatus free_cuda(void *state, uint64_t address, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->mem_free(address);
  cuda_leave(c, entered);
  return cuda_check(c, result, "freeing GPU memory", err);
}

static SolStatus write_cuda(void *state, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->copy_in(to, from, (size_t)bytes);
  cuda_leave(c, entered);
  return cuda_check(c, result, "copying to the GPU", err);
}

static SolStatus read_cuda(void *state, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->copy_out(to, from, (size_t)bytes);
  cuda_leave(c, entered);
  return cuda_check(c, result, "copying from the GPU", err);
}

// Loading is no part of a graph that this thread or another is recording, and must not end the recording.
typedef struct Loading {
  bool entered;
  int mode; // of this thread's recordings, to be put back
} Loading;

static Loading begin_loading(Cuda *c) {
  Loading l = {cuda_enter(c), CAPTURE_RELAXED};
  if (c->capture_mode) c->capture_mode(&l.mode);
  return l;
}

static void end_loading(Cuda *c, Loading l) {
  if (c->capture_mode) c->capture_mode(&l.mode);
  cuda_leave(c, l.entered);
}

static SolStatus load_module(Cuda *c, const void *image, const char *what, void **module, SolError *err) {
  char log[160] = "";
  int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  Loading loading = begin_loading(c);
  CuResult result = c->module_load(module, image, 2, options, values);
  end_loading(c, loading);
  SolStatus status = cuda_check(c, result, what, err);
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
  if (c->lost) return;
  bool entered = cuda_enter(c);
  c->module_unload(module);
  cuda_leave(c, entered);
}

// The driver would load a kernel with its first launch, which may fall into a recording; so it is loaded now,
// and clusters of more than 8 blocks are allowed (GPUs without clusters refuse that, and need not have it).
static SolStatus kernel_cuda(void *state, void *module, const char *name, void **kernel, SolError *err) {
  Cuda *c = state;
  Loading loading = begin_loading(c);
  CuResult result = c->module_function(kernel, module, name);
  if (!result && c->function_load) result = c->function_load(*kernel);
  if (!result) c->function_set(*kernel, FUNC_NON_PORTABLE_CLUSTER, 1);
  end_loading(c, loading);
  return cuda_check(c, result, name, err);
}

enum { ATTRIBUTES = 4 };
static CuLaunchConfig config_of(const SolDriverLaunch *l, CuLaunchAttribute attributes[ATTRIBUTES]) {
  CuLaunchConfig config = {.shared = (unsigned)l->dynamic_shared, .attributes = attributes};
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
  if (l->window_bytes)
    attributes[config.attribute_count++] =
        (CuLaunchAttribute){.id = ATTRIBUTE_WINDOW,
                            .value.window = {.base = (void *)(uintptr_t)l->window,
                                             .bytes = (size_t)l->window_bytes,
                                             .share = 1,
                                             .hit = ACCESS_PERSISTING,
                                             .miss = ACCESS_STREAMING}};
  return config;
}

static SolStatus enqueue_cuda(void *state, void *kernel, const SolDriverLaunch *l, SolStream stream,
                              SolError *err) {
  Cuda *c = state;
  CuLaunchAttribute attributes[ATTRIBUTES];
  CuLaunchConfig config = config_of(l, attributes);
  config.stream = stream;
  size_t bytes = (size_t)l->param_bytes;
  void *extra[] = {LAUNCH_BUFFER, (void *)(uintptr_t)l->params, LAUNCH_BUFFER_SIZE, &bytes, LAUNCH_END};
  bool entered = cuda_enter(c);
  void *one[] = {(void *)(uintptr_t)l->params};
  CuResult result = l->one_param ? c->launch(&config, kernel, one, NULL)
                                 : c->launch(&config, kernel, NULL, bytes ? extra : NULL);
  cuda_leave(c, entered);
  return cuda_check(c, result, "launching", err);
}

static SolStatus active_clusters_cuda(void *state, void *kernel, const SolDriverLaunch *l, int *out,
                                      SolError *err) {
  Cuda *c = state;
  CuLaunchAttribute attributes[ATTRIBUTES];
  CuLaunchConfig config = config_of(l, attributes);
  if (!c->active_clusters)
    return sol_fail(err, SOL_ERR_UNSUPPORTED,
                    "this CUDA driver does not say how many clusters run at a time");
  bool entered = cuda_enter(c);
  CuResult result = c->active_clusters(out, kernel, &config);
  cuda_leave(c, entered);
  return cuda_check(c, result, "asking how many clusters run at a time", err);
}

// Above 48 KiB dynamic shared memory is opt-in.
static SolStatus allow_shared_cuda(void *state, void *kernel, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  Loading loading = begin_loading(c);
  CuResult result = c->function_set(kernel, FUNC_MAX_DYNAMIC_SHARED, (int)bytes);
  end_loading(c, loading);
  return cuda_check(c, result, "dynamic shared memory", err);
}

static SolStatus enqueue_copy_cuda(void *state, uint64_t to, uint64_t from, uint64_t bytes, SolStream stream,
                                   SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->copy_within(to, from, (size_t)bytes, stream);
  cuda_leave(c, entered);
  return cuda_check(c, result, "copying within GPU memory", err);
}

static SolStatus persist_cuda(void *state, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  int most = 0;
  if (bytes == c->persisting) return SOL_OK;
  if (c->device_attribute(&most, DEVICE_PERSISTING_L2, c->device) || most <= 0 || !c->set_limit ||
      !c->reset_persisting)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "this GPU or its driver sets no part of L2 apart");
  bool entered = cuda_enter(c);
  CuResult result =
      c->set_limit(LIMIT_PERSISTING_L2, (size_t)(bytes < (uint64_t)most ? bytes : (uint64_t)most));
  if (!result && !bytes) result = c->reset_persisting();
  cuda_leave(c, entered);
  if (!result) c->persisting = bytes;
  return cuda_check(c, result, "setting a part of L2 apart", err);
}

static SolStatus launch_cuda(void *state, void *kernel, const SolDriverLaunch *l, SolEmuResult *result,
                             double *seconds, SolError *err) {
  (void)result;
  Cuda *c = state;
  SolStatus status = SOL_OK;
  bool entered = cuda_enter(c);
  if (l->dynamic_shared > 48 * 1024) status = allow_shared_cuda(c, kernel, l->dynamic_shared, err);
  if (!status) status = cuda_check(c, c->event_record(c->begin, NULL), "an event", err);
  if (!status) status = enqueue_cuda(c, kernel, l, NULL, err);
  if (!status) status = cuda_check(c, c->event_record(c->end, NULL), "an event", err);
  if (!status) status = cuda_check(c, c->context_sync(), "running the kernel", err);
  float ms = 0;
  if (!status && seconds) status = cuda_check(c, c->event_elapsed(&ms, c->begin, c->end), "timing", err);
  cuda_leave(c, entered);
  if (!status && seconds) *seconds = (double)ms / 1e3;
  return status;
}

static SolStatus sync_cuda(void *state, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->context_sync();
  cuda_leave(c, entered);
  return cuda_check(c, result, "running on the GPU", err);
}

// Only the kind of memory is asked for: ranges are the allocator's, and one tensor may span several.
static SolStatus check_pointer_cuda(void *state, uint64_t address, uint64_t bytes, SolError *err) {
  static const int wanted[] = {POINTER_MEMORY_TYPE, POINTER_DEVICE, POINTER_IS_MANAGED};
  Cuda *c = state;
  (void)bytes;
  unsigned type = 0, managed = 0;
  int device = c->device;
  void *got[] = {&type, &device, &managed};
  CuResult result = c->pointer_attributes(3, wanted, got, address);
  if (result == ERROR_NO_CONTEXT) { // a thread that has not used CUDA yet
    bool entered = cuda_enter(c);
    result = c->pointer_attributes(3, wanted, got, address);
    cuda_leave(c, entered);
  }
  if (result || !type)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is not memory that the GPU can reach",
                    (unsigned long long)address);
  if (type == MEMORY_ON_DEVICE && !managed && device != c->device)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is memory of GPU %d, not of GPU %d",
                    (unsigned long long)address, device, c->device);
  return SOL_OK;
}

// The driver's own version is not to be had from its API, but the kernel module prints it:
// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ...".
static void driver_version(char *out, size_t cap) {
  char line[256] = "";
  FILE *f = fopen("/proc/driver/nvidia/version", "r");
  if (f && !fgets(line, sizeof line, f)) line[0] = 0;
  if (f) fclose(f);
  for (const char *p = line; (p = strpbrk(p, "0123456789"));) {
    size_t n = strspn(p, "0123456789."), whole = strspn(p, "0123456789");
    bool starts = p == line || p[-1] == ' ';
    if (starts && whole < n && n < cap && strspn(p + n, " \n")) {
      sol_format(out, cap, "%.*s", (int)n, p);
      return;
    }
    p += n;
  }
}

// As nvidia-smi writes it.
static void write_uuid(const Cuda *c, char *out, size_t cap) {
  unsigned char id[16];
  if (!c->device_uuid || c->device_uuid(id, c->device)) return;
  static const char digits[] = "0123456789abcdef";
  size_t n = sol_format(out, cap, "GPU");
  for (int i = 0; i < 16 && n + 4 < cap; i++) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) out[n++] = '-';
    out[n++] = digits[id[i] >> 4];
    out[n++] = digits[id[i] & 15];
  }
  out[n] = 0;
}

static SolStatus info_cuda(void *state, SolDriverInfo *out, SolError *err) {
  Cuda *c = state;
  int major = 0, minor = 0;
  *out = (SolDriverInfo){0};
  SolStatus status = cuda_check(c, c->device_attribute(&major, DEVICE_CC_MAJOR, c->device), "the GPU", err);
  if (!status)
    status = cuda_check(c, c->device_attribute(&minor, DEVICE_CC_MINOR, c->device), "the GPU", err);
  if (!status) status = cuda_check(c, c->device_attribute(&out->sms, DEVICE_SMS, c->device), "the GPU", err);
  out->cc = major * 10 + minor;
  out->device = c->device;
  int l2 = 0;
  if (!c->device_attribute(&l2, DEVICE_L2_BYTES, c->device)) out->l2_bytes = (uint64_t)l2;
  int smem = 0;
  if (!c->device_attribute(&smem, DEVICE_SMEM_PER_SM, c->device)) out->smem_per_sm = (uint64_t)smem;
  if (!c->device_attribute(&smem, DEVICE_SMEM_PER_BLOCK, c->device)) out->smem_per_block = (uint64_t)smem;
  if (c->device_count && c->device_count(&out->gpus)) out->gpus = 0;
  c->driver_version(&out->cuda);
  if (c->device_name(out->name, sizeof out->name, c->device)) out->name[0] = 0;
  driver_version(out->driver, sizeof out->driver);
  write_uuid(c, out->uuid, sizeof out->uuid);
  return status;
}

static SolStatus reach_cuda(void *state, void *other, SolError *err) {
  Cuda *c = state;
  if (!c->enable_peer)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old for peer access");
  bool entered = cuda_enter(c);
  CuResult result = c->enable_peer(((Cuda *)other)->context, 0);
  cuda_leave(c, entered);
  return result == ERROR_PEER_ENABLED ? SOL_OK : cuda_check(c, result, "another GPU's memory", err);
}

static SolStatus send_cuda(void *state, uint64_t from, void *other, uint64_t to, uint64_t bytes,
                           SolStream stream, SolError *err) {
  Cuda *c = state;
  if (!c->copy_peer) return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old for peer copies");
  bool entered = cuda_enter(c);
  CuResult result = c->copy_peer(to, ((Cuda *)other)->context, from, c->context, (size_t)bytes, stream);
  cuda_leave(c, entered);
  return cuda_check(c, result, "copying to another GPU", err);
}

static bool enter_cuda(void *state) {
  return cuda_enter(state);
}

static void leave_cuda(void *state, bool entered) {
  cuda_leave(state, entered);
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
    .active_clusters = active_clusters_cuda,
    .enqueue_copy = enqueue_copy_cuda,
    .persist = persist_cuda,
    .texture = sol_cuda_texture,
    .texture_copy = sol_cuda_texture_copy,
    .texture_free = sol_cuda_texture_free,
    .tensor_map = sol_cuda_tensor_map,
    .sync = sync_cuda,
    .check_pointer = check_pointer_cuda,
    .info = info_cuda,
    .load_image = load_image_cuda,
    .reach = reach_cuda,
    .send = send_cuda,
    .enter = enter_cuda,
    .leave = leave_cuda,
    .timing = &sol_driver_cuda_timing,
};
