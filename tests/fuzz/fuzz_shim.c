// The runtime on the emulator, called in any order: the input is a program of calls (shim_input.h). Handles
// may be stale, of another kind or made up, sizes and pitches anything; functions of the host's go on with
// the program from inside. Plain host memory alone is kept within bounds: beyond them the crash would be the
// program's own.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>

#if __has_include(<cuda_runtime_api.h>)
#include "fuzz.h"
#include "shim_input.h"

static bool run_one(void);
static void go_on(void *data) {
  (void)data;
  if (f.depth >= MOST_DEPTH) return;
  f.depth++;
  for (int i = 0; i < 2 && run_one(); i++) {
  }
  f.depth--;
}

static enum cudaMemcpyKind direction(unsigned b) {
  return (enum cudaMemcpyKind)(b % 6);
}

// ---- memory ----

// Sizes that a program may well touch stay small; those that no device has are passed on as they are.
static size_t bounded(size_t size, size_t most) {
  return size > most && size < SIZE_MAX / 4 ? most : size;
}

static void allocate(const Draw *d) {
  void *p = NULL;
  size_t pitch = 0, bytes = d->size[0];
  struct cudaPitchedPtr box = {0};
  cudaStream_t stream = TAKE(cudaStream_t, STREAM, d->b[1]);
  bytes = bounded(bytes, MOST_ALLOC);
  size_t rows = bounded(d->size[1], MOST_ALLOC / (bytes / 512 + 1) / 512);
  switch (d->b[0] % 5) {
  case 0: cudaMalloc(&p, bytes); break;
  case 1: cudaMallocPitch(&p, &pitch, bytes, rows); break;
  case 2: cudaMalloc3D(&box, (struct cudaExtent){bytes, rows, bounded(d->size[2], 4)}), p = box.ptr; break;
  case 3: cudaMallocAsync(&p, bytes, stream); break;
  default: cudaMallocFromPoolAsync(&p, bytes, TAKE(cudaMemPool_t, POOL, d->b[2]), stream);
  }
  keep(DEVICE, d->b[3], p);
}

static void release(const Draw *d) {
  if (d->b[0] % 2)
    cudaFree(TAKE(void *, DEVICE, d->b[1]));
  else
    cudaFreeAsync(TAKE(void *, DEVICE, d->b[1]), TAKE(cudaStream_t, STREAM, d->b[2]));
}

static void share(const Draw *d) {
  void *p = NULL, *part = registered + d->b[1] * 8;
  size_t bytes = 1 + d->size[0] % 2000;
  switch (d->b[0] % 5) {
  case 0: cudaMallocHost(&p, bytes); break;
  case 1: cudaMallocManaged(&p, bytes, cudaMemAttachGlobal); break;
  case 2:
    if (!cudaHostRegister(part, bytes, d->b[2] % 4)) p = part;
    break;
  case 3: cudaHostUnregister(part); return;
  default: destroy(MAPPED, handle(MAPPED, d->b[3])); return;
  }
  keep(MAPPED, d->b[3], p);
}

// Device memory that is there or once was. A made-up pointer may be host memory, as far as a copy knows.
static void *device_memory(unsigned b, unsigned offset) {
  uint64_t address = f.slots[DEVICE][b % SLOTS];
  return address ? (void *)(uintptr_t)(address + offset) : NULL;
}

// One side of a copy: device memory, whatever its state and size, or host memory that is there; false: it is
// not.
static bool side(const Draw *d, int which, struct cudaExtent e, struct cudaPitchedPtr *out) {
  const unsigned *b = d->b + which * 3;
  *out = (struct cudaPitchedPtr){
      .pitch = d->size[1 + which * 2], .xsize = e.width, .ysize = d->size[2 + which * 2]};
  if (b[0] % 2) return (out->ptr = device_memory(b[1], b[2] % 64)) != NULL;
  out->ptr = host + b[1];
  if (out->pitch < e.width) out->pitch = e.width;
  unsigned __int128 pitch = out->pitch, rows = out->ysize ? out->ysize : e.height;
  return pitch * rows * (e.depth + 8) + pitch * (e.height + 8) + e.width * 16 + 64 <= HOST - 256;
}

static void copy(const Draw *d) {
  struct cudaExtent e = {d->size[0], 1 + d->size[5] % 5, 1 + d->b[8] % 3};
  struct cudaPitchedPtr to, from;
  if (!side(d, 0, e, &to) || !side(d, 1, e, &from)) return;
  cudaStream_t stream = TAKE(cudaStream_t, STREAM, d->b[9]);
  enum cudaMemcpyKind kind = direction(d->b[10]);
  struct cudaMemcpy3DParms c = {.srcPtr = from, .dstPtr = to, .extent = e, .kind = kind};
  c.srcPos = (struct cudaPos){d->b[11] % 8, d->b[12] % 8, d->b[13] % 4};
  switch (d->b[14] % 6) {
  case 0: cudaMemcpy(to.ptr, from.ptr, e.width, kind); break;
  case 1: cudaMemcpyAsync(to.ptr, from.ptr, e.width, kind, stream); break;
  case 2: cudaMemcpy2DAsync(to.ptr, to.pitch, from.ptr, from.pitch, e.width, e.height, kind, stream); break;
  case 3: cudaMemcpy3D(&c); break;
  case 4: cudaMemcpy3DAsync(&c, stream); break;
  default: cudaMemcpyPeerAsync(to.ptr, d->b[15] > 200, from.ptr, 0, e.width, stream);
  }
}

static void copy_array(const Draw *d) {
  cudaArray_t array = TAKE(cudaArray_t, ARRAY, d->b[0]), other = TAKE(cudaArray_t, ARRAY, d->b[1]);
  const size_t *n = d->size;
  void *memory = device_memory(d->b[2], 0);
  enum cudaMemcpyKind kind = direction(d->b[3]);
  switch (d->b[4] % 3) {
  case 0: cudaMemcpy2DToArray(array, n[0], n[1], memory, n[2], n[3], n[4], kind); break;
  case 1: cudaMemcpy2DFromArray(memory, n[2], array, n[0], n[1], n[3], n[4], kind); break;
  default: cudaMemcpy2DArrayToArray(array, n[0], n[1], other, n[2], n[5], n[3], n[4], kind);
  }
}

static void copy_symbol(const Draw *d) {
  const void *symbol = d->b[0] % 4 ? &total : TAKE(const void *, DEVICE, d->b[1]);
  size_t bytes = d->size[0] % HOST;
  void *p;
  if (d->b[2] % 2)
    cudaMemcpyToSymbol(symbol, host, bytes, d->size[1], direction(d->b[3]));
  else
    cudaMemcpyFromSymbol(host, symbol, bytes, d->size[1], direction(d->b[3]));
  cudaGetSymbolSize(&bytes, symbol);
  if (!cudaGetSymbolAddress(&p, symbol)) keep(DEVICE, d->b[4], p);
}

static void fill(const Draw *d) {
  void *p = (void *)(uintptr_t)(handle(DEVICE, d->b[0]) + d->b[1] % 16);
  cudaStream_t stream = TAKE(cudaStream_t, STREAM, d->b[2]);
  const size_t *n = d->size;
  struct cudaPitchedPtr box = {p, n[0], n[1], n[2]};
  switch (d->b[3] % 4) {
  case 0: cudaMemset(p, 1, n[3]); break;
  case 1: cudaMemsetAsync(p, 2, n[3], stream); break;
  case 2: cudaMemset2DAsync(p, n[0], 3, n[3], n[4], stream); break;
  default: cudaMemset3DAsync(box, 4, (struct cudaExtent){n[3], n[4], n[5]}, stream);
  }
}

// ---- launches, streams ----

typedef struct Arguments {
  uint64_t p, q, r;
  uint32_t n;
  void *list[4];
} Arguments;
static const void *arguments(const Draw *d, Arguments *a) {
  unsigned which = d->b[0] % 4;
  a->p = handle(which == 1 ? TEXTURE : d->b[1] % 2 ? MAPPED : DEVICE, d->b[2]);
  a->q = handle(which == 1 ? SURFACE : DEVICE, d->b[3]);
  a->r = handle(DEVICE, d->b[4]);
  a->n = d->b[5] % 9;
  a->list[0] = &a->p;
  a->list[1] = &a->q;
  a->list[2] = which == 0 ? (void *)&a->n : (void *)&a->r;
  return which < 3 ? (const void *)&stubs[which] : TAKE(const void *, KERNEL, d->b[6]);
}

static dim3 grid_of(const Draw *d) {
  return (dim3){1 + d->b[7] % 4, 1 + d->b[8] % 2, 1};
}

static void launch(const Draw *d) {
  Arguments a;
  const void *function = arguments(d, &a);
  cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension,
                                 .val.clusterDim = {d->b[9] % 5, 1, 1}};
  cudaLaunchConfig_t config = {.gridDim = grid_of(d), .blockDim = {1 + d->b[10] % 64, 1, 1}};
  config.dynamicSmemBytes = d->size[0];
  config.stream = TAKE(cudaStream_t, STREAM, d->b[11]);
  config.attrs = &cluster;
  config.numAttrs = d->b[12] % 2;
  cudaLaunchKernelExC(&config, function, a.list);
}

static void stream_or_event(const Draw *d) {
  cudaStream_t made = NULL, stream = TAKE(cudaStream_t, STREAM, d->b[0]);
  cudaEvent_t new = NULL, event = TAKE(cudaEvent_t, EVENT, d->b[1]);
  float ms;
  switch (d->b[2] % 9) {
  case 0:
    if (!cudaStreamCreateWithFlags(&made, d->b[3] % 2)) keep(STREAM, d->b[4], made);
    break;
  case 1: cudaStreamDestroy(stream); break;
  case 2:
    if (!cudaEventCreateWithFlags(&new, d->b[3] % 4)) keep(EVENT, d->b[4], new);
    break;
  case 3: cudaEventDestroy(event); break;
  case 4: cudaEventRecordWithFlags(event, stream, d->b[3] % 2); break;
  case 5: cudaStreamWaitEvent(stream, event, d->b[3] % 2); break;
  case 6: cudaEventElapsedTime(&ms, event, TAKE(cudaEvent_t, EVENT, d->b[3])); break;
  case 7: cudaStreamSynchronize(stream); break;
  default: cudaLaunchHostFunc(stream, go_on, NULL);
  }
}

static void capture(const Draw *d) {
  cudaStream_t stream = TAKE(cudaStream_t, STREAM, d->b[0]);
  cudaGraphNode_t needs[2] = {TAKE(cudaGraphNode_t, NODE, d->b[1]), TAKE(cudaGraphNode_t, NODE, d->b[2])};
  enum cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph = NULL, into = TAKE(cudaGraph_t, GRAPH, d->b[3]);
  size_t count = d->b[4] % 3;
  const cudaGraphNode_t *last = NULL;
  switch (d->b[5] % 5) {
  case 0: cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)(d->b[6] % 3)); break;
  case 1:
    cudaStreamBeginCaptureToGraph(stream, into, needs, NULL, count, cudaStreamCaptureModeRelaxed);
    break;
  case 2:
    if (!cudaStreamEndCapture(stream, &graph)) keep(GRAPH, d->b[6], graph);
    break;
  case 3: cudaStreamUpdateCaptureDependencies(stream, needs, NULL, count, d->b[6] % 2); break;
  default:
    if (cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &last, NULL, &count) || !graph) return;
    if (count) keep(NODE, d->b[7], last[0]);
    if (d->b[8] % 4 == 0) keep(GRAPH, d->b[6], graph);
  }
}

// ---- graphs ----

// Clones of clones would grow without end.
static bool may_clone(void) {
  return f.clones++ < MOST_CLONES;
}

static void add_node(const Draw *d) {
  Arguments a;
  cudaGraphNode_t node = NULL,
                  needs[2] = {TAKE(cudaGraphNode_t, NODE, d->b[9]), TAKE(cudaGraphNode_t, NODE, d->b[10])};
  cudaGraph_t graph = TAKE(cudaGraph_t, GRAPH, d->b[11]), child = TAKE(cudaGraph_t, GRAPH, d->b[3]);
  cudaEvent_t event = TAKE(cudaEvent_t, EVENT, d->b[3]);
  void *memory = TAKE(void *, DEVICE, d->b[3]);
  size_t count = d->b[12] % 3;
  struct cudaHostNodeParams call = {go_on, NULL};
  struct cudaMemsetParams set = {memory, d->size[0], 7, d->b[4] % 5, d->size[1], d->size[2]};
  struct cudaMemAllocNodeParams made = {.bytesize = d->size[0] % MOST_ALLOC};
  struct cudaKernelNodeParams run = {.gridDim = grid_of(d), .blockDim = {32, 1, 1}, .kernelParams = a.list};
  run.func = (void *)(uintptr_t)arguments(d, &a);
  switch (d->b[13] % 9) {
  case 0: cudaGraphAddEmptyNode(&node, graph, needs, count); break;
  case 1: cudaGraphAddHostNode(&node, graph, needs, count, &call); break;
  case 2: cudaGraphAddMemsetNode(&node, graph, needs, count, &set); break;
  case 3: cudaGraphAddKernelNode(&node, graph, needs, count, &run); break;
  case 4: cudaGraphAddEventRecordNode(&node, graph, needs, count, event); break;
  case 5: cudaGraphAddEventWaitNode(&node, graph, needs, count, event); break;
  case 6:
    if (may_clone()) cudaGraphAddChildGraphNode(&node, graph, needs, count, child);
    break;
  case 7:
    if (!cudaGraphAddMemAllocNode(&node, graph, needs, count, &made)) keep(DEVICE, d->b[14], made.dptr);
    break;
  default: cudaGraphAddMemFreeNode(&node, graph, needs, count, memory);
  }
  if (node) keep(NODE, d->b[15], node);
}

static void graph_call(const Draw *d) {
  cudaGraph_t made = NULL, graph = TAKE(cudaGraph_t, GRAPH, d->b[0]);
  cudaGraphNode_t a = TAKE(cudaGraphNode_t, NODE, d->b[1]), b = TAKE(cudaGraphNode_t, NODE, d->b[2]),
                  found[4];
  size_t count = 4;
  switch (d->b[3] % 8) {
  case 0:
    if (!cudaGraphCreate(&made, 0)) keep(GRAPH, d->b[4], made);
    break;
  case 1: cudaGraphDestroy(graph); break;
  case 2: cudaGraphDestroyNode(a); break;
  case 3: cudaGraphAddDependencies(graph, &a, &b, NULL, 1); break;
  case 4: cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1); break;
  case 5:
    if (!cudaGraphGetNodes(graph, found, &count) && count) keep(NODE, d->b[4], found[0]);
    break;
  case 6:
    if (!cudaGraphChildGraphNodeGetGraph(a, &made)) keep(GRAPH, d->b[4], made);
    break;
  default:
    if (may_clone() && !cudaGraphClone(&made, graph)) keep(GRAPH, d->b[4], made);
  }
}

static void exec_call(const Draw *d) {
  cudaGraphExec_t made = NULL, exec = TAKE(cudaGraphExec_t, EXEC, d->b[0]);
  cudaGraph_t graph = TAKE(cudaGraph_t, GRAPH, d->b[1]);
  cudaGraphNode_t node = TAKE(cudaGraphNode_t, NODE, d->b[2]);
  cudaGraphExecUpdateResultInfo info;
  struct cudaHostNodeParams call = {go_on, NULL};
  cudaLaunchAttributeValue value = {.clusterDim = {(unsigned)d->size[0], (unsigned)d->size[1], d->b[3] % 3}};
  switch (d->b[4] % 9) {
  case 0:
    if (may_clone() && !cudaGraphInstantiate(&made, graph, 0)) keep(EXEC, d->b[5], made);
    break;
  case 1: cudaGraphExecDestroy(exec); break;
  case 2:
    if (may_clone()) cudaGraphExecUpdate(exec, graph, &info);
    break;
  case 3: cudaGraphExecHostNodeSetParams(exec, node, &call); break;
  case 4: cudaGraphExecEventRecordNodeSetEvent(exec, node, TAKE(cudaEvent_t, EVENT, d->b[5])); break;
  case 5: cudaGraphNodeSetEnabled(exec, node, d->b[5] % 2); break;
  case 6: cudaGraphKernelNodeSetAttribute(node, (cudaLaunchAttributeID)(d->b[5] % 8), &value); break;
  case 7: cudaGraphExecChildGraphNodeSetParams(exec, node, graph); break;
  default:
    if (may_clone()) cudaGraphLaunch(exec, TAKE(cudaStream_t, STREAM, d->b[5]));
  }
}

// ---- images, and the rest ----

static struct cudaChannelFormatDesc format(const unsigned *b) {
  static const int bits[] = {0, 8, 16, 32, -8, 264, INT32_MAX, 0};
  if (b[0] % 2) return (struct cudaChannelFormatDesc){32, 0, 0, 0, cudaChannelFormatKindFloat};
  return (struct cudaChannelFormatDesc){bits[b[0] / 2 % 8], bits[b[1] % 8], bits[b[2] % 8], bits[b[3] % 8],
                                        (enum cudaChannelFormatKind)(b[4] % 4)};
}

static struct cudaResourceDesc resource(const Draw *d) {
  struct cudaResourceDesc r = {.resType = (enum cudaResourceType)(d->b[5] % 4)};
  struct cudaChannelFormatDesc form = format(d->b);
  void *memory = TAKE(void *, DEVICE, d->b[6]);
  if (r.resType == cudaResourceTypeArray) r.res.array.array = TAKE(cudaArray_t, ARRAY, d->b[6]);
  if (r.resType == cudaResourceTypeLinear)
    r.res.linear.devPtr = memory, r.res.linear.desc = form, r.res.linear.sizeInBytes = d->size[0];
  if (r.resType == cudaResourceTypePitch2D) {
    r.res.pitch2D.devPtr = memory;
    r.res.pitch2D.desc = form;
    r.res.pitch2D.width = d->size[0];
    r.res.pitch2D.height = d->size[1];
    r.res.pitch2D.pitchInBytes = d->size[2];
  }
  return r;
}

static void image(const Draw *d) {
  cudaArray_t array = NULL;
  cudaTextureObject_t object = 0;
  struct cudaChannelFormatDesc form = format(d->b);
  struct cudaExtent extent = {bounded(d->size[0], MOST_ALLOC / 64), d->size[1] % 64, d->size[2] % 8};
  struct cudaResourceDesc r = resource(d);
  struct cudaTextureDesc t = {.filterMode = (enum cudaTextureFilterMode)(d->b[7] % 2),
                              .normalizedCoords = d->b[8] % 2};
  t.addressMode[0] = (enum cudaTextureAddressMode)(d->b[9] % 5);
  switch (d->b[10] % 6) {
  case 0:
    if (!cudaMalloc3DArray(&array, &form, extent, d->b[11] % 4)) keep(ARRAY, d->b[12], array);
    break;
  case 1: cudaFreeArray(TAKE(cudaArray_t, ARRAY, d->b[12])); break;
  case 2:
    if (!cudaCreateTextureObject(&object, &r, &t, NULL)) keep(TEXTURE, d->b[12], (void *)(uintptr_t)object);
    break;
  case 3:
    if (!cudaCreateSurfaceObject(&object, &r)) keep(SURFACE, d->b[12], (void *)(uintptr_t)object);
    break;
  case 4: cudaDestroyTextureObject(handle(TEXTURE, d->b[12])); break;
  default: cudaDestroySurfaceObject(handle(SURFACE, d->b[12]));
  }
}

// Modules stay: a few for all inputs together.
static bool may_load(void) {
  static int loaded;
  return loaded++ < MOST_LIBRARIES;
}

static void objects(const Draw *d) {
  cudaUserObject_t made = NULL, object = TAKE(cudaUserObject_t, OBJECT, d->b[0]);
  cudaGraph_t graph = TAKE(cudaGraph_t, GRAPH, d->b[1]);
  cudaMemPool_t pool = NULL;
  cudaLibrary_t library = NULL;
  cudaKernel_t kernel = NULL;
  unsigned count = (unsigned)d->size[0];
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned};
  props.location.type = cudaMemLocationTypeDevice;
  switch (d->b[2] % 9) {
  case 0:
    if (!cudaUserObjectCreate(&made, NULL, go_on, 1 + count % 3, cudaUserObjectNoDestructorSync))
      keep(OBJECT, d->b[3], made);
    break;
  case 1: cudaUserObjectRelease(object, count); break;
  case 2: cudaUserObjectRetain(object, count); break;
  case 3: cudaGraphRetainUserObject(graph, object, count, d->b[3] % 2); break;
  case 4: cudaGraphReleaseUserObject(graph, object, count); break;
  case 5:
    if (!cudaMemPoolCreate(&pool, &props)) keep(POOL, d->b[3], pool);
    break;
  case 6: cudaMemPoolDestroy(TAKE(cudaMemPool_t, POOL, d->b[3])); break;
  case 7: cudaDeviceReset(); break;
  default:
    if (!may_load() || cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0)) return;
    if (!cudaLibraryGetKernel(&kernel, library, kernels[d->b[3] % 3])) keep(KERNEL, d->b[4], kernel);
    if (d->b[5] % 2) cudaLibraryUnload(library);
  }
}

static bool run_one(void) {
  static void (*const calls[])(const Draw *) = {
      allocate, release,         share,    copy,     copy_array, copy_symbol, fill,  launch,
      capture,  stream_or_event, add_node, add_node, graph_call, exec_call,   image, objects};
  Draw d;
  if (!draw(&d)) return false;
  calls[d.call % (sizeof calls / sizeof *calls)](&d);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  start();
  f = (Fuzz){.at = data, .end = data + size};
  while (run_one()) {
  }
  clean_up();
  return 0;
}

#else
const char *fuzz_skipped(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)data, (void)size;
  return 0;
}
const char *fuzz_skipped(void) {
  return "no CUDA headers: the runtime on the emulator was not built";
}
#endif
