// Memory and events of other processes: the runtime's handles, which have the same bytes.
#include <string.h>

#include "libcuda/cu.h"

_Static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t) &&
                   sizeof(CUipcEventHandle) == sizeof(cudaIpcEventHandle_t),
               "handles have the same bytes");

CU_PASS(cuIpcGetMemHandle, (CUipcMemHandle * out, CUdeviceptr memory),
        cudaIpcGetMemHandle((cudaIpcMemHandle_t *)out, cu_memory(memory)))
CU_PASS(cuIpcCloseMemHandle, (CUdeviceptr memory), cudaIpcCloseMemHandle(cu_memory(memory)))

static cudaError_t open_memory(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags) {
  cudaIpcMemHandle_t same;
  void *memory = NULL;
  memcpy(&same, handle, sizeof same);
  cudaError_t error = out ? cudaIpcOpenMemHandle(&memory, same, flags) : cudaErrorInvalidValue;
  if (!error) *out = shim_address(memory);
  return error;
}
CU_PASS(cuIpcOpenMemHandle, (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags),
        open_memory(out, &handle, flags))

CU_PASS(cuIpcGetEventHandle, (CUipcEventHandle * out, CUevent event),
        cudaIpcGetEventHandle((cudaIpcEventHandle_t *)out, event))
static cudaError_t open_event(CUevent *out, const CUipcEventHandle *handle) {
  cudaIpcEventHandle_t same;
  memcpy(&same, handle, sizeof same);
  return cudaIpcOpenEventHandle(out, same);
}
CU_PASS(cuIpcOpenEventHandle, (CUevent * out, CUipcEventHandle handle), open_event(out, &handle))
