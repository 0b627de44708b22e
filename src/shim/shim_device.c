// The one device: its properties, from devices.def, and the calls about devices.
#include <stdio.h>
#include <string.h>

#include "shim/shim.h"

static int whole(SolFigure f) {
  return sol_known(f) && f.value <= INT32_MAX ? (int)f.value : 0; // 0: not published
}

static int khz(SolFigure f) {
  return sol_known(f) ? (int)(f.value / 1e3) : 0;
}

// The clock at which the bus, at two transfers a cycle, moves the published bandwidth.
static int memory_khz(void) {
  const SolDevice *d = shim.device;
  if (!sol_known(d->mem_bandwidth) || !sol_known(d->mem_bus_bits)) return 0;
  return (int)(d->mem_bandwidth.value / (d->mem_bus_bits.value / 8) / 2 / 1e3);
}

static int double_ratio(void) {
  const SolDevice *d = shim.device;
  if (!sol_known(d->peak_fp32) || !sol_known(d->peak_fp64)) return 0;
  return (int)(d->peak_fp32.value / d->peak_fp64.value + 0.5);
}

static void set_images(struct cudaDeviceProp *p) { // the programming guide's table of limits
  static const int layered[3] = {32768, 32768, 2048}, plane[2] = {131072, 65536},
                   box[3] = {16384, 16384, 16384};
  p->maxTexture1D = 131072;
  memcpy(p->maxTexture2D, plane, sizeof plane);
  memcpy(p->maxTexture3D, box, sizeof box);
  p->maxTexture1DLayered[0] = 32768;
  p->maxTexture1DLayered[1] = 2048;
  memcpy(p->maxTexture2DLayered, layered, sizeof layered);
  p->maxTexture2DGather[0] = p->maxTexture2DGather[1] = 32768;
  p->maxTexture2DLinear[0] = 131072;
  p->maxTexture2DLinear[1] = 65000;
  p->maxTexture2DLinear[2] = 2097120;
  p->maxSurface1D = 32768;
  memcpy(p->maxSurface2D, plane, sizeof plane);
  memcpy(p->maxSurface3D, box, sizeof box);
  memcpy(p->maxSurface2DLayered, layered, sizeof layered);
  memcpy(p->maxSurface1DLayered, p->maxTexture1DLayered, sizeof p->maxSurface1DLayered);
  p->maxTexture3DAlt[0] = p->maxTexture3DAlt[1] = 8192;
  p->maxTexture3DAlt[2] = 32768;
  p->maxTexture1DMipmap = p->maxTexture2DMipmap[0] = p->maxTexture2DMipmap[1] = 32768;
  p->maxTextureCubemap = p->maxTextureCubemapLayered[0] = 32768;
  p->maxSurfaceCubemap = p->maxSurfaceCubemapLayered[0] = 32768;
  p->maxTextureCubemapLayered[1] = p->maxSurfaceCubemapLayered[1] = 2046;
  p->textureAlignment = p->surfaceAlignment = 512;
  p->texturePitchAlignment = 32;
}

static void set_limits(struct cudaDeviceProp *p) {
  const SolDevice *d = shim.device;
  p->sharedMemPerBlock = shim_static_limit();
  p->sharedMemPerBlockOptin = (size_t)sol_emu_machine(shim.emu)->smem_per_block;
  p->sharedMemPerMultiprocessor = (size_t)sol_emu_machine(shim.emu)->smem_per_sm;
  p->reservedSharedMemPerBlock = (size_t)whole(d->smem_reserved);
  p->regsPerBlock = whole(d->max_regs_per_block);
  p->regsPerMultiprocessor = whole(d->regs_per_sm);
  p->warpSize = 32;
  p->memPitch = INT32_MAX;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = INT32_MAX;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->multiProcessorCount = sol_emu_machine(shim.emu)->sms;
  p->maxThreadsPerMultiProcessor = sol_emu_machine(shim.emu)->max_threads_per_sm;
  p->maxBlocksPerMultiProcessor = sol_emu_machine(shim.emu)->max_blocks_per_sm;
}

static cudaError_t properties(struct cudaDeviceProp *p, int device) {
  if (!p) return cudaErrorInvalidValue;
  if (device) return cudaErrorInvalidDevice;
  const SolDevice *d = shim.device;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%s", d->name);
  snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "sol %.11s", d->id);
  p->totalGlobalMem = (size_t)sol_emu_machine(shim.emu)->mem_bytes;
  p->major = d->cc_major;
  p->minor = d->cc_minor;
  p->memoryBusWidth = whole(d->mem_bus_bits);
  p->l2CacheSize = (int)sol_emu_machine(shim.emu)->l2.bytes;
  p->persistingL2CacheMaxSize = (int)sol_emu_machine(shim.emu)->l2_persisting;
  p->accessPolicyMaxWindowSize = 2 * p->l2CacheSize;
  p->asyncEngineCount = 1;
  p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->streamPrioritiesSupported = 1;
  p->globalL1CacheSupported = p->localL1CacheSupported = p->managedMemory = p->concurrentManagedAccess = 1;
  p->computePreemptionSupported = p->canUseHostPointerForRegisteredMem = p->cooperativeLaunch = 1;
  p->hostRegisterSupported = p->hostRegisterReadOnlySupported = p->memoryPoolsSupported = 1;
  p->unifiedFunctionPointers = 0;
  p->clusterLaunch = d->cc_major >= 9;
  p->deviceNumaId = p->hostNumaId = -1;
  set_limits(p);
  set_images(p);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  SHIM_CALL(properties(out, device));
}

static cudaError_t attribute(int *out, enum cudaDeviceAttr what, int device) {
  struct cudaDeviceProp all, *p = &all;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = properties(p, device);
  if (error) return error;
  switch ((int)what) {
#define ATTRIBUTE(name, value)                                                                               \
  case name:                                                                                                 \
    *out = (int)(value);                                                                                     \
    return cudaSuccess;
#include "shim/attributes.def"
#undef ATTRIBUTE
  default: return cudaErrorInvalidValue;
  }
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr what, int device) {
  SHIM_CALL(attribute(out, what, device));
}

// ---- which device ----

static cudaError_t give(int *out, int value) {
  if (!out) return cudaErrorInvalidValue;
  *out = value;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out) {
  SHIM_CALL(give(out, 1));
}

cudaError_t cudaGetDevice(int *out) {
  SHIM_CALL(give(out, 0));
}

cudaError_t cudaSetDevice(int device) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  SHIM_CALL(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
  SHIM_CALL(count < 0 || (count && !devices) ? cudaErrorInvalidValue
            : count && devices[0]            ? cudaErrorInvalidDevice
                                             : cudaSuccess);
}

cudaError_t cudaChooseDevice(int *out, const struct cudaDeviceProp *wanted) {
  SHIM_CALL(wanted ? give(out, 0) : cudaErrorInvalidValue);
}

static cudaError_t set_flags(unsigned flags) {
  if (flags & ~(unsigned)cudaDeviceMask) return cudaErrorInvalidValue;
  shim.device_flags = flags;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  SHIM_CALL(set_flags(flags));
}

static cudaError_t get_flags(unsigned *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = shim.device_flags | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *out) {
  SHIM_CALL(get_flags(out));
}

static const char pci_name[] = "0000:00:00.0";
static cudaError_t pci_id(char *out, int room, int device) {
  if (!out || room < 1) return cudaErrorInvalidValue;
  if (device) return cudaErrorInvalidDevice;
  snprintf(out, (size_t)room, "%s", pci_name);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int room, int device) {
  SHIM_CALL(pci_id(out, room, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *out, const char *name) {
  SHIM_CALL(!name ? cudaErrorInvalidValue : strcmp(name, pci_name) ? cudaErrorInvalidDevice : give(out, 0));
}

static cudaError_t priorities(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  SHIM_CALL(priorities(least, greatest));
}

static cudaError_t widest(size_t *out, const struct cudaChannelFormatDesc *format, int device) {
  if (!out || !format) return cudaErrorInvalidValue;
  *out = (size_t)1 << 28;
  return device ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *out, const struct cudaChannelFormatDesc *format,
                                                 int device) {
  SHIM_CALL(widest(out, format, device));
}

// ---- settings ----

static cudaError_t limit(int which, size_t *get, const size_t *set) {
  static const size_t usual[] = {1024, 8650752, 8 << 20, 2, 2048, 64, 0, 0};
  if (which < 0 || which >= (int)SOL_COUNT(usual) || (!get && !set)) return cudaErrorInvalidValue;
  if (which == cudaLimitDevRuntimeSyncDepth) return cudaErrorUnsupportedLimit;
  size_t *kept = &shim.limits[which]; // 0: the default; otherwise the value plus one
  if (get) *get = *kept ? *kept - 1 : usual[which];
  if (set) *kept = *set + 1;
  if (set && which == cudaLimitPersistingL2CacheSize) sol_emu_l2_set_aside(shim.emu, *set);
  if (set && which == cudaLimitMallocHeapSize) sol_emu_set_heap(shim.emu, *set);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *out, enum cudaLimit which) {
  SHIM_CALL(limit((int)which, out, NULL));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit which, size_t value) {
  SHIM_CALL(limit((int)which, NULL, &value));
}

static cudaError_t cache_config(enum cudaFuncCache *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = cudaFuncCachePreferNone;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *out) {
  SHIM_CALL(cache_config(out));
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
  SHIM_CALL((unsigned)config > cudaFuncCachePreferEqual ? cudaErrorInvalidValue : cudaSuccess);
}

static cudaError_t shared_config(enum cudaSharedMemConfig *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *out) {
  SHIM_CALL(shared_config(out));
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
  SHIM_CALL((unsigned)config > cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue : cudaSuccess);
}

// ---- synchronisation and reset ----

static cudaError_t synchronize(void) {
  if (shim_capturing())
    for (ShimCapture *c = shim.streams.captures; c; c = c->next)
      return c->broken = true, cudaErrorStreamCaptureUnsupported;
  shim_wait_all();
  return shim.fault;
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t error = shim_enter();
  if (shim.fault) shim_show_printed(); // what was printed before the fault is still seen
  return shim_leave(error ? error : synchronize());
}

// Resets after a fault. Memory and handles are kept, but a program may not use them after this.
static cudaError_t reset(void) {
  shim_show_printed();
  shim.fault = cudaSuccess;
  shim.fault_returned = false;
  memset(shim.limits, 0, sizeof shim.limits);
  return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
  cudaError_t error = shim_enter();
  if (shim.refused) return shim_leave(error);
  shim_leave(reset());
  shim_last_error(true);
  return cudaSuccess;
}
