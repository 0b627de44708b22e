// Properties of devices and pointers, hints for managed memory, names that CUDA 13 dropped.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim12/shim12.h"

#define SAME(type, name, array) type name array;
#define ONLY(name, attribute)   int name;
typedef struct Prop12 {
#include "shim12/prop12.def"
  int reserved[63];
} Prop12;
#undef SAME
#undef ONLY
_Static_assert(sizeof(Prop12) == 1032, "as in CUDA 12's driver_types.h");

OF13(cudaGetDeviceProperties);
ENTRY12(cudaGetDeviceProperties_v2, Prop12 *out, int device) {
  struct cudaDeviceProp p;
  if (!out) return of13_cudaGetDeviceProperties(NULL, device);
  cudaError_t error = of13_cudaGetDeviceProperties(&p, device);
  if (error) return error;
  memset(out, 0, sizeof *out);
#define SAME(type, name, array) memcpy(&out->name, &p.name, sizeof p.name);
#define ONLY(name, attribute)   cudaDeviceGetAttribute(&out->name, attribute, device);
#include "shim12/prop12.def"
  return cudaSuccess;
}

OF13(cudaChooseDevice);
ENTRY12(cudaChooseDevice, int *out, const Prop12 *wanted) {
  static const struct cudaDeviceProp any; // there is one device, whatever is wanted
  return of13_cudaChooseDevice(out, wanted ? &any : NULL);
}

typedef struct Pointer12 {
  enum cudaMemoryType type;
  int device;
  void *device_pointer, *host_pointer;
} Pointer12;
OF13(cudaPointerGetAttributes);
ENTRY12(cudaPointerGetAttributes, Pointer12 *out, const void *pointer) {
  struct cudaPointerAttributes a;
  cudaError_t error = of13_cudaPointerGetAttributes(out ? &a : NULL, pointer);
  if (!error && out) *out = (Pointer12){a.type, a.device, a.devicePointer, a.hostPointer};
  return error;
}

// ---- hints: a device by its number, cudaCpuDeviceId for the host ----

static struct cudaMemLocation place_of(int device) {
  bool host = device == cudaCpuDeviceId;
  return (struct cudaMemLocation){.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                  .id = host ? 0 : device};
}

OF13(cudaMemAdvise);
ENTRY12(cudaMemAdvise, const void *at, size_t bytes, enum cudaMemoryAdvise advice, int device) {
  return of13_cudaMemAdvise(at, bytes, advice, place_of(device));
}
ENTRY12(cudaMemAdvise_v2, const void *at, size_t bytes, enum cudaMemoryAdvise advice,
        struct cudaMemLocation to) {
  return of13_cudaMemAdvise(at, bytes, advice, to);
}

OF13(cudaMemPrefetchAsync);
ENTRY12(cudaMemPrefetchAsync, const void *at, size_t bytes, int device, cudaStream_t stream) {
  return of13_cudaMemPrefetchAsync(at, bytes, place_of(device), 0, stream);
}
ENTRY12(cudaMemPrefetchAsync_ptsz, const void *at, size_t bytes, int device, cudaStream_t stream) {
  return of13_cudaMemPrefetchAsync(at, bytes, place_of(device), 0, stream);
}
ENTRY12(cudaMemPrefetchAsync_v2, const void *at, size_t bytes, struct cudaMemLocation to, unsigned flags,
        cudaStream_t stream) {
  return of13_cudaMemPrefetchAsync(at, bytes, to, flags, stream);
}
ENTRY12(cudaMemPrefetchAsync_v2_ptsz, const void *at, size_t bytes, struct cudaMemLocation to, unsigned flags,
        cudaStream_t stream) {
  return of13_cudaMemPrefetchAsync(at, bytes, to, flags, stream);
}

OF13(cudaMemcpyBatchAsync);
ENTRY12(cudaMemcpyBatchAsync, void **to, void **from, size_t *sizes, size_t count,
        struct cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count, size_t *failed,
        cudaStream_t stream) {
  cudaError_t error = of13_cudaMemcpyBatchAsync(to, (const void *const *)from, sizes, count, attributes,
                                                indices, attribute_count, stream);
  if (error && failed) *failed = SIZE_MAX; // "not of one copy", as CUDA's manual has it
  return error;
}

// ---- older names ----

ENTRY12(cudaRuntimeGetVersion, int *out) {
  if (out) *out = 12090; // 12.9, the last release of that name
  return out ? cudaSuccess : cudaErrorInvalidValue;
}

OF13(cudaDeviceSynchronize);
ENTRY12(cudaThreadSynchronize, void) {
  return of13_cudaDeviceSynchronize();
}
OF13(cudaDeviceReset);
ENTRY12(cudaThreadExit, void) {
  return of13_cudaDeviceReset();
}
OF13(cudaDeviceGetLimit);
ENTRY12(cudaThreadGetLimit, size_t *out, enum cudaLimit limit) {
  return of13_cudaDeviceGetLimit(out, limit);
}
OF13(cudaDeviceSetLimit);
ENTRY12(cudaThreadSetLimit, enum cudaLimit limit, size_t value) {
  return of13_cudaDeviceSetLimit(limit, value);
}
OF13(cudaDeviceGetCacheConfig);
ENTRY12(cudaThreadGetCacheConfig, enum cudaFuncCache *out) {
  return of13_cudaDeviceGetCacheConfig(out);
}
OF13(cudaDeviceSetCacheConfig);
ENTRY12(cudaThreadSetCacheConfig, enum cudaFuncCache config) {
  return of13_cudaDeviceSetCacheConfig(config);
}
OF13(cudaEventElapsedTime);
ENTRY12(cudaEventElapsedTime_v2, float *out, cudaEvent_t start, cudaEvent_t end) {
  return of13_cudaEventElapsedTime(out, start, end);
}
ENTRY12(cudaSetDoubleForDevice, double *value) { // since sm_13 nothing has to be converted
  return value ? cudaSuccess : cudaErrorInvalidValue;
}
ENTRY12(cudaSetDoubleForHost, double *value) {
  return value ? cudaSuccess : cudaErrorInvalidValue;
}

// ---- not supported; the first is for programs of CUDA 11, whose structure is another one ----

extern cudaError_t cuda_sol_missing(const char *name) __asm__("__cudaSolMissing");
#define MISSING12(name)                                                                                      \
  ENTRY12(name, void) {                                                                                      \
    return cuda_sol_missing(#name);                                                                          \
  }
MISSING12(cudaGetDeviceProperties)
MISSING12(cudaLaunchCooperativeKernelMultiDevice)
MISSING12(cudaSignalExternalSemaphoresAsync_v2)
MISSING12(cudaSignalExternalSemaphoresAsync_v2_ptsz)
MISSING12(cudaWaitExternalSemaphoresAsync_v2)
MISSING12(cudaWaitExternalSemaphoresAsync_v2_ptsz)

ENTRY12(__cudaSol12, void) { // by which src/redirect knows this library
  return cudaSuccess;
}
