// The driver's interface on the emulator, called in any order, as fuzz_shim.c does with the runtime: contexts that are
// current and destroyed, modules, linkers, launches, copies; handles stale, of another kind or made up.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>

#if __has_include(<cuda.h>)
#include "shim_input.h"

#include "fuzz.h"
#include <cuda.h>

static size_t bounded(size_t size, size_t most) {
  return size > most && size < SIZE_MAX / 4 ? most : size;
}

// Any value that was a handle so far: which kind it is of is for the driver to find out.
static uint64_t some(unsigned b) {
  return handle((Kind)(b % 4), b);
}
#define SOME(type, b) ((type)(uintptr_t)some(b))
enum { MEMORY = DEVICE, CONTEXT = MAPPED, MODULE = STREAM, LINK = EVENT };

// In place of another, which goes.
static void put(int kind, unsigned b, uint64_t value) {
  uint64_t *slot = &f.slots[kind][b % SLOTS];
  if (kind == MEMORY) cuMemFree(*slot);
  if (kind == CONTEXT) cuCtxDestroy((CUcontext)(uintptr_t)*slot);
  if (kind == LINK) cuLinkDestroy((CUlinkState)(uintptr_t)*slot);
  *slot = value;
}

static void context(const Draw *d) {
  CUcontext made = NULL, c = SOME(CUcontext, d->b[0]);
  unsigned flags;
  int active;
  switch (d->b[1] % 10) {
  case 0:
    if (!cuCtxCreate(&made, NULL, d->b[2] % 4, 0)) put(CONTEXT, d->b[3], (uintptr_t)made);
    break;
  case 1: cuCtxDestroy(c); break;
  case 2: cuCtxPushCurrent(c); break;
  case 3: cuCtxPopCurrent(&made); break;
  case 4: cuCtxSetCurrent(c); break;
  case 5: cuCtxGetCurrent(&made); break;
  case 6:
    if (!cuDevicePrimaryCtxRetain(&made, 0)) put(CONTEXT, d->b[3], (uintptr_t)made);
    break;
  case 7: cuDevicePrimaryCtxRelease(0); break;
  case 8: cuDevicePrimaryCtxGetState((int)(d->b[2] % 2), &flags, &active); break;
  default: cuCtxSynchronize();
  }
}

static void memory(const Draw *d) {
  CUdeviceptr p = 0, at = some(d->b[0]);
  size_t pitch = 0, bytes = bounded(d->size[0], MOST_ALLOC), rows = d->size[1] % 64;
  void *values[2] = {&p, &pitch};
  CUpointer_attribute attributes[2] = {(CUpointer_attribute)(d->b[2] % 20), CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  switch (d->b[1] % 9) {
  case 0:
    if (!cuMemAlloc(&p, bytes)) put(MEMORY, d->b[3], p);
    break;
  case 1:
    if (!cuMemAllocPitch(&p, &pitch, bytes, rows, 4)) put(MEMORY, d->b[3], p);
    break;
  case 2: cuMemFree(at); break;
  case 3: cuMemGetAddressRange(&p, &pitch, at + d->b[4]); break;
  case 4: cuPointerGetAttributes(2, attributes, values, at); break;
  case 5: cuMemsetD32(at, 1, d->size[2]); break;
  case 6: cuMemsetD2D16(at, d->size[3], 2, d->size[2], d->size[1]); break;
  case 7:
    if (!cuMemAllocAsync(&p, bytes, SOME(CUstream, d->b[2]))) put(MEMORY, d->b[3], p);
    break;
  default: cuMemFreeAsync(at, SOME(CUstream, d->b[2]));
  }
}

static void copy(const Draw *d) {
  CUDA_MEMCPY3D c = {.WidthInBytes = d->size[0], .Height = d->size[1], .Depth = d->size[2] % 8};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = some(d->b[0]);
  c.srcXInBytes = d->size[3];
  c.srcY = d->b[1];
  c.srcZ = d->b[2] % 4;
  c.srcPitch = d->size[4];
  c.srcHeight = d->size[5];
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = some(d->b[3]);
  c.dstPitch = d->size[5];
  c.dstHeight = d->size[4];
  if (d->b[4] % 4 == 0) c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = SOME(CUarray, d->b[5]);
  cuMemcpy3D(&c);
}

static bool may_load(void) {
  static int loaded;
  return loaded++ < MOST_LIBRARIES;
}

static void module(const Draw *d) {
  CUmodule made = NULL, m = SOME(CUmodule, d->b[0]);
  CUfunction function = NULL;
  CUdeviceptr at;
  size_t bytes;
  switch (d->b[1] % 5) {
  case 0:
    if (may_load() && !cuModuleLoadData(&made, ptx)) put(MODULE, d->b[2], (uintptr_t)made);
    break;
  case 1: cuModuleUnload(m); break;
  case 2:
    if (!cuModuleGetFunction(&function, m, kernels[d->b[3] % 3])) put(MODULE, d->b[2], (uintptr_t)function);
    break;
  case 3: cuModuleGetGlobal(&at, &bytes, m, "total"); break;
  default: cuFuncGetModule(&made, (CUfunction)m);
  }
}

static void link_units(const Draw *d) {
  CUlinkState made = NULL, l = SOME(CUlinkState, d->b[0]);
  void *image = NULL;
  size_t bytes = d->size[0] % (sizeof ptx + 1);
  switch (d->b[1] % 4) {
  case 0:
    if (!cuLinkCreate(0, NULL, NULL, &made)) put(LINK, d->b[2], (uintptr_t)made);
    break;
  case 1:
    cuLinkAddData(l, (CUjitInputType)(d->b[3] % 6), (void *)(uintptr_t)ptx, bytes, "unit", 0, NULL, NULL);
    break;
  case 2: cuLinkComplete(l, &image, &bytes); break;
  default: cuLinkDestroy(l);
  }
}

static void launch(const Draw *d) {
  CUfunction function = SOME(CUfunction, d->b[0]);
  uint64_t packed[4] = {some(d->b[1]), some(d->b[2]), d->b[3], 0};
  size_t size = d->b[4] % 2 ? 20 : d->size[0] % (sizeof packed + 1);
  void *params[] = {&packed[0], &packed[1], &packed[2]};
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  bool plain = d->b[5] % 2;
  int blocks;
  cuLaunchKernel(function, d->b[6] % 3, 1, 1, d->b[7] % 40, 1, 1, (unsigned)d->size[1],
                 SOME(CUstream, d->b[8]), plain ? params : NULL, plain ? NULL : extra);
  cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, (int)d->size[2], d->size[3]);
  if (d->b[9] % 4 == 0) cudaDeviceReset(); // else a fault would end every later call
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const calls[])(const Draw *) = {context, memory, copy, module, link_units, launch};
  CUcontext popped;
  Draw d;
  start();
  cuInit(0);
  f = (Fuzz){.at = data, .end = data + size};
  while (draw(&d)) calls[d.call % (sizeof calls / sizeof *calls)](&d);
  for (int i = 0; i < SLOTS * SLOTS; i++) cuCtxPopCurrent(&popped);
  for (int i = 0; i < SLOTS; i++) {
    cuLinkDestroy((CUlinkState)(uintptr_t)f.slots[LINK][i]);
    cuCtxDestroy((CUcontext)(uintptr_t)f.slots[CONTEXT][i]);
  }
  (void)keep, (void)host;
  clean_up();
  return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)data, (void)size;
  return 0;
}
const char *fuzz_skipped(void);
const char *fuzz_skipped(void) {
  return "no CUDA headers: the driver on the emulator was not built";
}
#endif
