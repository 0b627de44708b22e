// Looking up entry points by name, and versions of functions that older headers name.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcuda/cu.h"

// Functions of which a later version takes other arguments: since which CUDA a name without version means it. Of the
// other functions it always means the newest.
typedef struct Since {
  const char *name;
  int version, cuda;
} Since;
enum { NEVER = 1 << 30 }; // the version is named
static const Since sinces[] = {
    {"cuCtxCreate", 3, 11040},
    {"cuCtxCreate", 4, 12050},
    {"cuCtxGetDevice", 2, NEVER},
    {"cuCtxSynchronize", 2, NEVER},
    {"cuGetProcAddress", 2, 12000},
    {"cuGraphAddDependencies", 2, 12030},
    {"cuGraphAddNode", 2, 12030},
    {"cuGraphGetEdges", 2, 12030},
    {"cuGraphInstantiate", 2, 11000},
    {"cuGraphNodeGetDependencies", 2, 12030},
    {"cuGraphNodeGetDependentNodes", 2, 12030},
    {"cuGraphRemoveDependencies", 2, 12030},
    {"cuMemAdvise", 2, 12020},
    {"cuMemPrefetchAsync", 2, 12020},
    {"cuStreamGetCaptureInfo", 2, 11030},
    {"cuStreamGetCaptureInfo", 3, 12030},
    {"cuStreamGetCtx", 2, NEVER},
    {"cuStreamUpdateCaptureDependencies", 2, 12030},
};

static bool is_old_enough(const char *name, int version, int cuda) {
  for (size_t i = 0; i < SOL_COUNT(sinces); i++)
    if (sinces[i].version == version && strcmp(sinces[i].name, name) == 0) return cuda >= sinces[i].cuda;
  return true;
}

static void *own_library(void) {
  Dl_info self;
  return dladdr((void *)(uintptr_t)&cuInit, &self) ? dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;
}

void *shim_driver_entry(const char *symbol, int cuda) {
  void *library = own_library(), *found = NULL;
  char name[160];
  if (!library || strncmp(symbol, "cu", 2) != 0 || strncmp(symbol, "cuda", 4) == 0) return NULL;
  if (strcmp(symbol, "cuGraphInstantiate") == 0 && cuda >= 12000) symbol = "cuGraphInstantiateWithFlags";
  for (int version = 4; version > 1 && !found; version--) {
    int n = snprintf(name, sizeof name, "%s_v%d", symbol, version);
    if (n > 0 && n < (int)sizeof name && is_old_enough(symbol, version, cuda)) found = dlsym(library, name);
  }
  if (!found) found = dlsym(library, symbol);
  dlclose(library);
  return found;
}

static CUresult find(const char *symbol, void **out, int cuda, CUdriverProcAddressQueryResult *status) {
  if (!symbol || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = shim_driver_entry(symbol, cuda);
  if (status) *status = *out ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **out, int cuda, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
  (void)flags;
  return find(symbol, out, cuda, status);
}

// Private tables, by which NVIDIA's own libraries talk to each other: nothing is known of them.
CUresult cuGetExportTable(const void **out, const CUuuid *id) {
  if (!out || !id) return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

// ---- versions of older headers ----

__attribute__((visibility("default"))) CUresult older_lookup(const char *symbol, void **out, int cuda,
                                                             cuuint64_t flags) __asm__("cuGetProcAddress");
CUresult older_lookup(const char *symbol, void **out, int cuda, cuuint64_t flags) {
  (void)flags;
  return find(symbol, out, cuda, NULL);
}

static struct cudaMemLocation place_of(CUdevice device) {
  bool host = device == CU_DEVICE_CPU;
  return (struct cudaMemLocation){.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                  .id = host ? 0 : device};
}
CU_OLDER(cuMemAdvise, (CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device),
         cudaMemAdvise(cu_memory(at), bytes, (enum cudaMemoryAdvise)advice, place_of(device)))
CU_OLDER(cuMemPrefetchAsync, (CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream),
         cudaMemPrefetchAsync(cu_memory(at), bytes, place_of(device), 0, stream))
CU_OLDER(cuEventElapsedTime, (float *out, CUevent start, CUevent end), cudaEventElapsedTime(out, start, end))
CU_OLDER(cuGraphAddDependencies,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         cudaGraphAddDependencies(graph, from, to, NULL, count))
CU_OLDER(cuStreamGetCaptureInfo_v2,
         (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
          const CUgraphNode **nodes, size_t *count),
         cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status, (unsigned long long *)id,
                                  graph, nodes, NULL, count))
