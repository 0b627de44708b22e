// The device and its attributes; error codes and their names.
#include <string.h>

#include "libcuda/cu.h"

// ---- errors ----

typedef struct ErrorName {
  CUresult code;
  const char *name;
} ErrorName;
static const ErrorName names[] = {
#define CU_ERROR(code) {code, #code},
#include "libcuda/cu_errors.def"
#undef CU_ERROR
};

static const char *name_of(CUresult code) {
  for (size_t i = 0; i < SOL_COUNT(names); i++)
    if (names[i].code == code) return names[i].name;
  return NULL;
}

CUresult cuGetErrorName(CUresult code, const char **out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = name_of(code);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The runtime has the same texts under the same numbers.
CUresult cuGetErrorString(CUresult code, const char **out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = name_of(code) ? cudaGetErrorString((cudaError_t)code) : NULL;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Codes below 100 other than the first few are the runtime's own.
CUresult cu_result(cudaError_t error) {
  switch ((int)error) {
  case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
  case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
  case cudaErrorInitializationError: return CUDA_ERROR_NOT_INITIALIZED;
  default: break;
  }
  return error > cudaErrorProfilerAlreadyStopped && error < 100 ? CUDA_ERROR_INVALID_VALUE : (CUresult)error;
}

// ---- the device ----

static cudaError_t give(int *out, int value) {
  if (!out) return cudaErrorInvalidValue;
  *out = value;
  return cudaSuccess;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
  CU_CALL(CU_INIT, ordinal ? cudaErrorInvalidDevice : give(out, 0));
}
CUresult cuDeviceGetCount(int *out) {
  CU_CALL(CU_INIT, cudaGetDeviceCount(out));
}

static cudaError_t properties(CUdevice device, struct cudaDeviceProp *out, const void *wanted) {
  return wanted ? cudaGetDeviceProperties(out, device) : cudaErrorInvalidValue;
}

static cudaError_t device_name(char *out, int room, CUdevice device) {
  struct cudaDeviceProp p;
  cudaError_t error = room > 0 ? properties(device, &p, out) : cudaErrorInvalidValue;
  if (error) return error;
  size_t n = strnlen(p.name, sizeof p.name - 1);
  if (n > (size_t)room - 1) n = (size_t)room - 1;
  memcpy(out, p.name, n);
  out[n] = 0;
  return cudaSuccess;
}
CUresult cuDeviceGetName(char *out, int room, CUdevice device) {
  CU_CALL(CU_INIT, device_name(out, room, device));
}

static cudaError_t uuid(CUuuid *out, CUdevice device) {
  struct cudaDeviceProp p;
  cudaError_t error = properties(device, &p, out);
  if (!error) memcpy(out, &p.uuid, sizeof *out);
  return error;
}
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) {
  CU_CALL(CU_INIT, uuid(out, device));
}

static cudaError_t total(size_t *out, CUdevice device) {
  struct cudaDeviceProp p;
  cudaError_t error = properties(device, &p, out);
  if (!error) *out = p.totalGlobalMem;
  return error;
}
CUresult cuDeviceTotalMem(size_t *out, CUdevice device) {
  CU_CALL(CU_INIT, total(out, device));
}

// The runtime numbers its attributes alike, and lacks those of interfaces that are not emulated: 0 for them.
static cudaError_t attribute(int *out, int what, CUdevice device) {
  if (!out || what < 1 || what >= CU_DEVICE_ATTRIBUTE_MAX) return cudaErrorInvalidValue;
  bool mapping = what == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
                 what == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
  if (mapping && !device) return give(out, 1);
  cudaError_t error = cudaDeviceGetAttribute(out, (enum cudaDeviceAttr)what, device);
  return error == cudaErrorInvalidValue ? give(out, 0) : error;
}
CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute what, CUdevice device) {
  CU_CALL(CU_INIT, attribute(out, (int)what, device));
}

static cudaError_t capability(int *major, int *minor, CUdevice device) {
  struct cudaDeviceProp p;
  cudaError_t error = properties(device, &p, major && minor ? major : NULL);
  if (!error) *major = p.major, *minor = p.minor;
  return error;
}
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CU_CALL(CU_INIT, capability(major, minor, device));
}

static cudaError_t old_properties(CUdevprop *out, CUdevice device) {
  struct cudaDeviceProp p;
  int clock = 0;
  cudaError_t error = properties(device, &p, out);
  if (!error) error = cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
  if (error) return error;
  *out = (CUdevprop){.maxThreadsPerBlock = p.maxThreadsPerBlock,
                     .sharedMemPerBlock = (int)p.sharedMemPerBlock,
                     .totalConstantMemory = (int)p.totalConstMem,
                     .SIMDWidth = p.warpSize,
                     .memPitch = (int)p.memPitch,
                     .regsPerBlock = p.regsPerBlock,
                     .clockRate = clock,
                     .textureAlign = (int)p.textureAlignment};
  memcpy(out->maxThreadsDim, p.maxThreadsDim, sizeof p.maxThreadsDim);
  memcpy(out->maxGridSize, p.maxGridSize, sizeof p.maxGridSize);
  return cudaSuccess;
}
CUresult cuDeviceGetProperties(CUdevprop *out, CUdevice device) {
  CU_CALL(CU_INIT, old_properties(out, device));
}

CUresult cuDeviceGetPCIBusId(char *out, int room, CUdevice device) {
  CU_CALL(CU_INIT, cudaDeviceGetPCIBusId(out, room, device));
}
CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *name) {
  CU_CALL(CU_INIT, cudaDeviceGetByPCIBusId(out, name));
}
CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
  CU_CALL(CU_INIT, cudaDeviceCanAccessPeer(out, device, peer));
}
CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute what, CUdevice from, CUdevice to) {
  CU_CALL(CU_INIT, cudaDeviceGetP2PAttribute(out, (enum cudaDeviceP2PAttr)what, from, to));
}
CUresult cuDeviceGetExecAffinitySupport(int *out, CUexecAffinityType type, CUdevice device) {
  (void)type;
  CU_CALL(CU_INIT, device ? cudaErrorInvalidDevice : give(out, 0));
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  CU_CALL(CU_INIT, cudaDeviceGetDefaultMemPool(out, device));
}
CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  CU_CALL(CU_INIT, cudaDeviceGetMemPool(out, device));
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CU_CALL(CU_INIT, cudaDeviceSetMemPool(device, pool));
}
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
__attribute__((visibility("default"))) CU_PASS(cuProfilerStart, (void), cudaSuccess)
    __attribute__((visibility("default"))) CU_PASS(cuProfilerStop, (void), cudaSuccess)
