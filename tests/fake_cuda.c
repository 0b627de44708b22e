// See fake_cuda.h. To add an entry point: one function below, named as the driver names it.
#include "fake_cuda.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
enum {
  OK = 0,
  BAD_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_FOUND = 500,
  CAPTURE_FORBIDS = 900, // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  MAX_DEPTH = 16,
  MAX_BLOCKS = 4096,
  MAX_FUNCTIONS = 32768
};

EXPORT CuResult cuCtxGetCurrent(void **context), cuCtxPushCurrent_v2(void *context),
    cuCtxPopCurrent_v2(void **context);

EXPORT FakeCuda fake_cuda = {.cc = 90,
                             .sms = 132,
                             .contexts = {{.device = 0}, {.device = 1}, {.device = 0}},
                             .current = cuCtxGetCurrent,
                             .push = cuCtxPushCurrent_v2,
                             .pop = cuCtxPopCurrent_v2};

typedef struct Block {
  CuAddress at;
  size_t bytes;
  int device;
} Block;
typedef struct Function {
  char name[96];
  bool loaded;
  int shared, wide_clusters;
} Function;
typedef struct Capture {
  bool on;
} Capture;

static Block blocks[MAX_BLOCKS];
static void *handles
    [1
     << 16]; // as a driver knows all that it has made: what is not destroyed with a broken context is no leak
static SolSpin blocks_lock, launch_lock;
static _Thread_local FakeContext *stack[MAX_DEPTH];
static _Thread_local int depth;

static void *make_handle(size_t bytes) {
  static unsigned made;
  void *handle = calloc(1, bytes);
  handles[__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % (sizeof handles / sizeof handles[0])] = handle;
  return handle;
}

#define CALLED(field) __atomic_add_fetch(&fake_cuda.calls[FAKE_##field], 1, __ATOMIC_RELAXED)
#define ADD(field, n) __atomic_add_fetch(&fake_cuda.field, n, __ATOMIC_RELAXED)
static _Thread_local int
    capture_mode; // CAPTURE_RELAXED: this thread may call anything while streams are captured
// An entry point that no stream may be captured meanwhile (in CUDA's default mode).
#define CALLED_OUTSIDE(field)                                                                                \
  CALLED(field);                                                                                             \
  if (__atomic_load_n(&fake_cuda.capturing, __ATOMIC_RELAXED) && capture_mode != CAPTURE_RELAXED)            \
  return ADD(violations, 1), CAPTURE_FORBIDS
// ... and that needs a current context
#define CALLED_WITHIN(field)                                                                                 \
  CALLED_OUTSIDE(field);                                                                                     \
  if (!depth) return ERROR_NO_CONTEXT;                                                                       \
  if (fake_cuda.broken) return fake_cuda.broken
// ... and that a context which a kernel has broken is not to be asked for
#define DESTROYED(field)                                                                                     \
  CALLED(field);                                                                                             \
  if (fake_cuda.broken) return ADD(destroyed_broken, 1), fake_cuda.broken

#define ENTRY EXPORT CuResult

// ---- devices and contexts ----

ENTRY cuInit(unsigned flags) {
  CALLED(init);
  return flags ? BAD_VALUE : OK;
}
ENTRY cuDeviceGet(int *device, int i) {
  CALLED(device_get);
  if (i < 0 || i >= FAKE_DEVICES) return BAD_VALUE;
  *device = i;
  return OK;
}
ENTRY cuDeviceGetCount(int *count) {
  CALLED(device_count);
  *count = FAKE_DEVICES;
  return OK;
}
ENTRY cuDeviceGetName(char *name, int room, int device) {
  CALLED(device_name);
  snprintf(name, (size_t)room, "fake GPU %d", device);
  return OK;
}
ENTRY cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  CALLED(device_uuid);
  for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(16 * device + i);
  return OK;
}
ENTRY cuDriverGetVersion(int *version) {
  CALLED(driver_version);
  *version = 13000;
  return OK;
}
ENTRY cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALLED(device_attribute);
  if (device < 0 || device >= FAKE_DEVICES) return BAD_VALUE;
  switch (attribute) {
  case DEVICE_SMS: *value = fake_cuda.sms; return OK;
  case DEVICE_CC_MAJOR: *value = fake_cuda.cc / 10; return OK;
  case DEVICE_CC_MINOR: *value = fake_cuda.cc % 10; return OK;
  case DEVICE_L2_BYTES: *value = 50 << 20; return OK;
  case DEVICE_SMEM_PER_SM: *value = 228 << 10; return OK;
  case DEVICE_SMEM_PER_BLOCK: *value = 227 << 10; return OK;
  case DEVICE_PERSISTING_L2: *value = 30 << 20; return OK;
  default: return BAD_VALUE;
  }
}
ENTRY cuCtxGetCurrent(void **context) {
  CALLED(context_current);
  *context = depth ? stack[depth - 1] : NULL;
  return OK;
}
ENTRY cuCtxGetDevice(int *device) {
  CALLED(context_device);
  if (!depth) return ERROR_NO_CONTEXT;
  *device = stack[depth - 1]->device;
  return OK;
}
ENTRY cuCtxPushCurrent_v2(void *context) {
  CALLED(context_push);
  if (!context || depth == MAX_DEPTH) return BAD_VALUE;
  stack[depth++] = context;
  return OK;
}
ENTRY cuCtxPopCurrent_v2(void **context) {
  CALLED(context_pop);
  if (!depth) return ERROR_NO_CONTEXT;
  *context = stack[--depth];
  return OK;
}
ENTRY cuDevicePrimaryCtxRetain(void **context, int device) {
  CALLED(context_retain);
  if (device < 0 || device >= FAKE_DEVICES) return BAD_VALUE;
  ADD(contexts[device].retained, 1);
  *context = &fake_cuda.contexts[device];
  return OK;
}
ENTRY cuDevicePrimaryCtxRelease_v2(int device) {
  DESTROYED(context_release);
  return ADD(contexts[device].retained, -1) < 0 ? BAD_VALUE : OK;
}
ENTRY cuCtxSynchronize(void) {
  CALLED_WITHIN(context_sync);
  return OK;
}
ENTRY cuCtxEnablePeerAccess(void *other, unsigned flags) {
  CALLED_WITHIN(enable_peer);
  if (flags || other == stack[depth - 1]) return BAD_VALUE;
  return OK;
}
ENTRY cuGetErrorString(CuResult error, const char **text) {
  CALLED(error_string);
  *text = error == ERROR_NO_CONTEXT ? "invalid device context" : "a fake error";
  return OK;
}

// ---- memory ----

static Block *block_of(CuAddress at, size_t bytes) {
  Block *found = NULL;
  sol_spin_lock(&blocks_lock);
  for (int i = 0; i < MAX_BLOCKS && !found; i++)
    if (blocks[i].at && at >= blocks[i].at && at + bytes <= blocks[i].at + blocks[i].bytes)
      found = &blocks[i];
  sol_spin_unlock(&blocks_lock);
  return found;
}

ENTRY cuMemAlloc_v2(CuAddress *at, size_t bytes) {
  CALLED_WITHIN(mem_alloc);
  void *memory = bytes ? malloc(bytes) : NULL;
  if (!memory) return bytes ? OUT_OF_MEMORY : BAD_VALUE;
  sol_spin_lock(&blocks_lock);
  int i = 0;
  while (i < MAX_BLOCKS && blocks[i].at) i++;
  if (i < MAX_BLOCKS) blocks[i] = (Block){(CuAddress)(uintptr_t)memory, bytes, stack[depth - 1]->device};
  sol_spin_unlock(&blocks_lock);
  if (i == MAX_BLOCKS) return free(memory), OUT_OF_MEMORY;
  ADD(allocations, 1);
  *at = (CuAddress)(uintptr_t)memory;
  return OK;
}
ENTRY cuMemFree_v2(CuAddress at) {
  CALLED_WITHIN(mem_free);
  Block *block = block_of(at, 1);
  if (!block || block->at != at) return BAD_VALUE;
  block->at = 0;
  ADD(allocations, -1);
  free((void *)(uintptr_t)at);
  return OK;
}
ENTRY cuMemcpyHtoD_v2(CuAddress to, const void *from, size_t bytes) {
  CALLED_WITHIN(copy_in);
  if (!block_of(to, bytes)) return BAD_VALUE;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return OK;
}
ENTRY cuMemcpyDtoH_v2(void *to, CuAddress from, size_t bytes) {
  CALLED_WITHIN(copy_out);
  if (!block_of(from, bytes)) return BAD_VALUE;
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return OK;
}
ENTRY cuMemcpyDtoDAsync_v2(CuAddress to, CuAddress from, size_t bytes, void *stream) {
  CALLED(copy_within);
  fake_cuda.copy_stream = stream;
  if (!block_of(to, bytes) || !block_of(from, bytes)) return BAD_VALUE;
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return OK;
}
// Each end's memory is of the device that it is said to be of.
ENTRY cuMemcpyPeerAsync(CuAddress to, void *there, CuAddress from, void *here, size_t bytes, void *stream) {
  (void)stream;
  CALLED(copy_peer);
  const Block *a = block_of(from, bytes), *b = block_of(to, bytes);
  if (!a || !b || a->device != ((FakeContext *)here)->device || b->device != ((FakeContext *)there)->device)
    return BAD_VALUE;
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return OK;
}
ENTRY cuMemsetD8Async(CuAddress at, unsigned char byte, size_t bytes, void *stream) {
  (void)stream;
  CALLED(mem_set);
  if (!block_of(at, bytes)) return BAD_VALUE;
  memset((void *)(uintptr_t)at, byte, bytes);
  return OK;
}
// As documented: an address that CUDA does not know is no error, its attributes are empty.
ENTRY cuPointerGetAttributes(unsigned count, const int *attributes, void **data, CuAddress at) {
  CALLED(pointer_attributes);
  if (!depth) return ERROR_NO_CONTEXT;
  const Block *block = block_of(at, 1);
  for (unsigned i = 0; i < count; i++) {
    int value = attributes[i] == POINTER_MEMORY_TYPE ? (block ? MEMORY_ON_DEVICE : 0)
                : attributes[i] == POINTER_DEVICE    ? (block ? block->device : -2)
                                                     : 0;
    memcpy(data[i], &value, sizeof value);
  }
  return OK;
}

ENTRY cuMemGetAddressRange_v2(CuAddress *base, size_t *bytes, CuAddress at) {
  CALLED(address_range);
  const Block *block = block_of(at, 1);
  if (!block) return BAD_VALUE;
  *base = block->at;
  *bytes = block->bytes;
  return OK;
}
ENTRY cuCtxSetLimit(int limit, size_t bytes) {
  CALLED(set_limit);
  if (limit != LIMIT_PERSISTING_L2) return BAD_VALUE;
  fake_cuda.persisting = bytes;
  return OK;
}
ENTRY cuCtxResetPersistingL2Cache(void) {
  CALLED(reset_persisting);
  return depth ? OK : ERROR_NO_CONTEXT;
}

// ---- textures ----

typedef struct Array {
  CuArrayShape shape;
  float texels[]; // row by row
} Array;

ENTRY cuArrayCreate_v2(void **array, const CuArrayShape *shape) {
  CALLED(array_create);
  if (shape->format != FORMAT_FLOAT || shape->channels != 1 || !shape->width || !shape->height)
    return BAD_VALUE;
  Array *a = malloc(sizeof *a + shape->width * shape->height * sizeof(float));
  if (!a) return OUT_OF_MEMORY;
  a->shape = *shape;
  ADD(arrays, 1);
  *array = a;
  return OK;
}
ENTRY cuArrayDestroy(void *array) {
  CALLED(array_destroy);
  ADD(arrays, -1);
  free(array);
  return OK;
}
// From memory to an array of the same size alone.
ENTRY cuMemcpy2DUnaligned_v2(const CuCopy2d *copy) {
  CALLED(copy_2d);
  Array *to = copy->to.array;
  size_t row = copy->width_bytes;
  if (copy->from.kind != MEMORY_ON_DEVICE || copy->to.kind != MEMORY_ARRAY || copy->from.pitch < row ||
      row != to->shape.width * sizeof(float) || copy->height != to->shape.height ||
      !block_of(copy->from.device, copy->from.pitch * copy->height))
    return BAD_VALUE;
  for (size_t y = 0; y < copy->height; y++)
    memcpy(to->texels + y * to->shape.width,
           (const char *)(uintptr_t)copy->from.device + y * copy->from.pitch, row);
  return OK;
}
// A handle is the address of the first texel, so that a test can look.
ENTRY cuTexObjectCreate(unsigned long long *handle, const CuResource *resource, const CuSampler *sampler,
                        const void *view) {
  CALLED(texture_create);
  if (view || sampler->edge[0] != EDGE_CLAMP) return BAD_VALUE;
  if (resource->kind == RESOURCE_ARRAY)
    *handle = (unsigned long long)(uintptr_t)((Array *)resource->of.array)->texels;
  else if (resource->kind == RESOURCE_ROWS && resource->of.rows.pitch % 32 == 0)
    *handle = resource->of.rows.at;
  else
    return BAD_VALUE;
  ADD(textures, 1);
  return OK;
}
ENTRY cuTexObjectDestroy(unsigned long long handle) {
  CALLED(texture_destroy);
  ADD(textures, -1);
  return handle ? OK : BAD_VALUE;
}

// Tensor maps that this thread has made for its next launch. A parameter that holds them is 64-byte aligned and begins 48
// bytes into an H200 kernel's parameter space: a buffer for all parameters would have to know that.
static _Thread_local int tensor_maps;

// The strides are of all dimensions but the first.
ENTRY cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *dims,
                             const uint64_t *strides, const unsigned *box, const unsigned *steps,
                             int interleave, int swizzle, int promotion, int fill) {
  (void)type, (void)interleave, (void)swizzle, (void)fill;
  CALLED_WITHIN(tensor_map_encode); // as an H200's driver has it
  if ((uintptr_t)map % 64 || (uintptr_t)base % 16 || !rank || rank > 5) return BAD_VALUE;
  for (unsigned i = 0; i < rank; i++)
    if (!dims[i] || !box[i] || box[i] > 256 || !steps[i] || (i && strides[i - 1] % 16)) return BAD_VALUE;
  memset(map, 0, 128);
  fake_cuda.promotion = promotion;
  tensor_maps++;
  return OK;
}

// ---- modules and launches ----

ENTRY cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  CALLED_WITHIN(module_load);
  if (!image) return BAD_VALUE;
  *module = make_handle(1);
  ADD(modules, 1);
  return *module ? OK : OUT_OF_MEMORY;
}
ENTRY cuModuleUnload(void *module) {
  if (fake_cuda.broken) ADD(destroyed_broken, 1);
  CALLED_WITHIN(module_unload);
  free(module);
  ADD(modules, -1);
  return OK;
}
ENTRY cuModuleGetFunction(void **function, void *module, const char *name) {
  CALLED_WITHIN(module_function);
  static Function functions[MAX_FUNCTIONS]; // they live as long as the driver: simple, if wasteful
  if (!module || (fake_cuda.missing && strstr(name, fake_cuda.missing))) return NOT_FOUND;
  int i = ADD(functions, 1) - 1;
  if (i >= MAX_FUNCTIONS || strlen(name) >= sizeof functions[i].name) return OUT_OF_MEMORY;
  memcpy(functions[i].name, name, strlen(name) + 1);
  *function = &functions[i];
  return OK;
}
ENTRY cuFuncLoad(void *function) {
  CALLED_WITHIN(function_load);
  ((Function *)function)->loaded = true;
  return OK;
}
ENTRY cuFuncSetAttribute(void *function, int attribute, int value) {
  CALLED_WITHIN(function_set);
  Function *f = function;
  if (attribute == FUNC_MAX_DYNAMIC_SHARED)
    f->shared = value;
  else if (attribute == FUNC_NON_PORTABLE_CLUSTER && fake_cuda.cc >= 90)
    f->wide_clusters = value;
  else
    return BAD_VALUE;
  return OK;
}
ENTRY cuLaunchKernelEx(const CuLaunchConfig *config, void *function, void **params, void **extra) {
  CALLED(launch);
  Function *f = function;
  if (!depth) return ERROR_NO_CONTEXT;
  if (fake_cuda.fail_launch) return fake_cuda.fail_launch;
  FakeLaunch l = {.kernel = f->name, .shared = config->shared, .stream = config->stream};
  l.context = stack[depth - 1];
  memcpy(l.grid, config->grid, sizeof l.grid);
  memcpy(l.block, config->block, sizeof l.block);
  for (unsigned i = 0; i < config->attribute_count; i++) {
    const CuLaunchAttribute *a = &config->attributes[i];
    if (a->id == ATTRIBUTE_CLUSTER)
      memcpy(l.cluster, &a->value.cluster, sizeof l.cluster);
    else if (a->id == ATTRIBUTE_COOPERATIVE)
      l.cooperative = a->value.cooperative;
    else if (a->id == ATTRIBUTE_EARLY)
      l.early = a->value.early;
    else if (a->id == ATTRIBUTE_WINDOW) {
      if (a->value.window.hit != ACCESS_PERSISTING || a->value.window.miss != ACCESS_STREAMING ||
          a->value.window.share != 1)
        return BAD_VALUE;
      l.window = (uint64_t)(uintptr_t)a->value.window.base;
      l.window_bytes = a->value.window.bytes;
    } else
      return BAD_VALUE;
  }
  unsigned wide = l.cluster[0] * l.cluster[1] * l.cluster[2];
  bool as_one = tensor_maps > 0;
  tensor_maps = 0;
  if (!params == !extra || (as_one && !params)) return BAD_VALUE; // tensor maps lie in the one parameter
  if (extra && (extra[0] != LAUNCH_BUFFER || extra[2] != LAUNCH_BUFFER_SIZE)) return BAD_VALUE;
  l.bytes = extra ? *(size_t *)extra[3] : 0;
  if (l.bytes > sizeof l.params || (wide > 8 && !f->wide_clusters) || wide > 16) return BAD_VALUE;
  if (wide && (config->grid[0] % l.cluster[0] || fake_cuda.cc < 90)) return BAD_VALUE;
  if (config->shared > 48 * 1024 && (int)config->shared > f->shared) return BAD_VALUE;
  if (!config->grid[0] || config->grid[1] > 65535 || config->grid[2] > 65535) return BAD_VALUE;
  if (extra) memcpy(l.params, extra[1], l.bytes);
  if (!f->loaded) ADD(not_loaded, 1);
  sol_spin_lock(&launch_lock);
  fake_cuda.launch[fake_cuda.launches++ % FAKE_LAUNCHES] = l;
  sol_spin_unlock(&launch_lock);
  return OK;
}

// ---- streams, graphs, events ----

ENTRY cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  CALLED_WITHIN(stream_create);
  *stream = make_handle(sizeof(Capture));
  return *stream ? OK : OUT_OF_MEMORY;
}
ENTRY cuStreamDestroy_v2(void *stream) {
  DESTROYED(stream_destroy);
  free(stream);
  return OK;
}
ENTRY cuStreamSynchronize(void *stream) {
  (void)stream;
  CALLED_WITHIN(stream_sync);
  return OK;
}
ENTRY cuStreamBeginCapture_v2(void *stream, int mode) {
  (void)mode;
  CALLED(capture_begin);
  if (!stream || ((Capture *)stream)->on) return BAD_VALUE;
  ((Capture *)stream)->on = true;
  ADD(capturing, 1);
  return OK;
}
ENTRY cuThreadExchangeStreamCaptureMode(int *mode) {
  CALLED(capture_mode);
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return OK;
}
ENTRY cuStreamEndCapture(void *stream, void **graph) {
  CALLED(capture_end);
  if (!stream || !((Capture *)stream)->on) return BAD_VALUE;
  ((Capture *)stream)->on = false;
  ADD(capturing, -1);
  *graph = make_handle(1);
  return *graph ? OK : OUT_OF_MEMORY;
}
ENTRY cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  (void)flags;
  CALLED(graph_instantiate);
  *exec = graph ? make_handle(1) : NULL;
  return *exec ? OK : BAD_VALUE;
}
ENTRY cuGraphLaunch(void *exec, void *stream) {
  (void)stream;
  CALLED(graph_launch);
  if (fake_cuda.fail_graph) fake_cuda.broken = fake_cuda.fail_graph; // the launch itself succeeds
  return exec ? OK : BAD_VALUE;
}
ENTRY cuGraphDestroy(void *graph) {
  CALLED(graph_destroy);
  free(graph);
  return OK;
}
ENTRY cuGraphExecDestroy(void *exec) {
  DESTROYED(graph_exec_destroy);
  free(exec);
  return OK;
}
ENTRY cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  CALLED_WITHIN(event_create);
  *event = make_handle(1);
  return *event ? OK : OUT_OF_MEMORY;
}
ENTRY cuEventDestroy_v2(void *event) {
  DESTROYED(event_destroy);
  free(event);
  return OK;
}
ENTRY cuEventRecord(void *event, void *stream) {
  (void)stream;
  CALLED(event_record);
  return event ? OK : BAD_VALUE;
}
ENTRY cuEventSynchronize(void *event) {
  CALLED_OUTSIDE(event_sync);
  return event ? OK : BAD_VALUE;
}
ENTRY cuEventElapsedTime(float *ms, void *begin, void *end) {
  CALLED(event_elapsed);
  *ms = 1;
  return begin && end ? OK : BAD_VALUE;
}
