// Calls about features that the one emulated device lacks, answered as a single GPU does, and versions.
#include <stdio.h>
#include <string.h>

#include "shim/shim.h"

static cudaError_t give(int *out, int value) {
  if (!out) return cudaErrorInvalidValue;
  *out = value;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out) {
  SHIM_CALL(give(out, CUDART_VERSION));
}

cudaError_t cudaRuntimeGetVersion(int *out) {
  SHIM_CALL(give(out, CUDART_VERSION));
}

// ---- other devices ----

cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
  SHIM_CALL(device || peer ? cudaErrorInvalidDevice : give(out, 0));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  // A device is not its own peer.
  SHIM_CALL(flags ? cudaErrorInvalidValue : peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  SHIM_CALL(peer ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaDeviceGetP2PAttribute(int *out, enum cudaDeviceP2PAttr what, int from, int to) {
  (void)what;
  SHIM_CALL(!out ? cudaErrorInvalidValue : (from || to || from == to) ? cudaErrorInvalidDevice : cudaSuccess);
}

// ---- the driver's interface ----

static cudaError_t driver_entry(const char *symbol, void **out, unsigned version,
                                enum cudaDriverEntryPointQueryResult *result) {
  if (!symbol || !out) return cudaErrorInvalidValue;
  *out = shim_driver_entry(symbol, (int)version);
  if (result) *result = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *out || result ? cudaSuccess
                        : cudaErrorSymbolNotFound; // no error where the caller gets the result code
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result) {
  (void)flags;
  SHIM_CALL(driver_entry(symbol, out, CUDART_VERSION, result));
}
SHIM_ALIAS(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz);

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
  (void)flags;
  SHIM_CALL(driver_entry(symbol, out, version, result));
}
SHIM_ALIAS(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz);

// ---- profilers, memory of graphs ----

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

__attribute__((visibility("default"))) cudaError_t cudaProfilerStart(void) {
  SHIM_CALL(cudaSuccess);
}
__attribute__((visibility("default"))) cudaError_t cudaProfilerStop(void) {
  SHIM_CALL(cudaSuccess);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : cudaSuccess);
}

static cudaError_t graph_memory(int device, void *out) {
  uint64_t none = 0;
  if (!out) return cudaErrorInvalidValue;
  if (device) return cudaErrorInvalidDevice;
  memcpy(out, &none, sizeof none); // graph allocations are ordinary memory: none is reserved
  return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType what, void *out) {
  (void)what;
  SHIM_CALL(graph_memory(device, out));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType what, void *value) {
  (void)what;
  SHIM_CALL(device ? cudaErrorInvalidDevice : value ? cudaSuccess : cudaErrorInvalidValue);
}
