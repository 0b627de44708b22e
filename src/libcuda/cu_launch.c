// Launches and occupancy.
#include <stdlib.h>
#include <string.h>

#include "libcuda/cu.h"

// ---- parameters ----

typedef struct Packed { // a launch's `extra`: parameters in one buffer
  uint8_t *data;
  size_t size;
} Packed;

static bool read_extra(void **extra, Packed *out) {
  *out = (Packed){0};
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      out->data = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
      out->size = *(size_t *)extra[i + 1];
    else
      return false;
  }
  return out->data || !out->size;
}

// Where each parameter stands in a copy of the buffer, behind the list, which the caller frees. As with a GPU's driver
// the buffer may be shorter than the parameters, which are then zero, and not longer.
static cudaError_t unpack(const void *function, const Packed *packed, void ***out) {
  size_t count = 0, offset, size, all = 0;
  while (!cudaFuncGetParamInfo(function, count, &offset, &size)) count++, all = offset + size;
  if (packed->size > all) return cudaErrorLaunchOutOfResources;
  void **args = *out = calloc(1, (count + 1) * sizeof *args + all);
  if (!args) return cudaErrorMemoryAllocation;
  uint8_t *copy = (uint8_t *)(args + count + 1);
  if (packed->size) memcpy(copy, packed->data, packed->size);
  for (size_t i = 0; i < count; i++) {
    cudaFuncGetParamInfo(function, i, &offset, &size);
    args[i] = copy + offset;
  }
  return cudaSuccess;
}

// ---- launches ----

static cudaError_t known(const void *function) {
  SHIM_CALL(cu_kernel(function) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cu_unpack(const void *function, void **extra, void ***args) {
  Packed packed;
  cudaError_t error = known(function);
  if (error) return error;
  return read_extra(extra, &packed) ? unpack(function, &packed, args) : cudaErrorInvalidValue;
}

static cudaError_t launch(const cudaLaunchConfig_t *config, const void *function, void **params,
                          void **extra) {
  cudaError_t error = known(function);
  if (!error && params && extra) error = cudaErrorInvalidValue;
  if (error) return error;
  if (!extra) return cudaLaunchKernelExC(config, function, params);
  void **args = NULL;
  error = cu_unpack(function, extra, &args);
  if (!error) error = cudaLaunchKernelExC(config, function, args);
  free(args);
  return error;
}

static cudaError_t launch_plain(const void *function, dim3 grid, dim3 block, size_t shared, CUstream stream,
                                void **params, void **extra, bool cooperative) {
  cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative, .val.cooperative = 1};
  cudaLaunchConfig_t config = {grid, block, shared, stream, &attribute, cooperative};
  return launch(&config, function, params, extra);
}
CU_PASS(cuLaunchKernel,
        (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
         unsigned shared, CUstream stream, void **params, void **extra),
        launch_plain(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, shared, stream, params, extra, false))
CU_PASS(cuLaunchCooperativeKernel,
        (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
         unsigned shared, CUstream stream, void **params),
        launch_plain(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, shared, stream, params, NULL, true))

// The attributes are the runtime's, under other names.
_Static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute), "");
static cudaLaunchConfig_t config_of(const CUlaunchConfig *c) {
  return (cudaLaunchConfig_t){{c->gridDimX, c->gridDimY, c->gridDimZ},
                              {c->blockDimX, c->blockDimY, c->blockDimZ},
                              c->sharedMemBytes,
                              c->hStream,
                              (cudaLaunchAttribute *)(void *)c->attrs,
                              c->numAttrs};
}

static cudaError_t launch_extended(const CUlaunchConfig *c, const void *function, void **params,
                                   void **extra) {
  if (!c) return cudaErrorInvalidValue;
  cudaLaunchConfig_t config = config_of(c);
  return launch(&config, function, params, extra);
}
CU_PASS(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
        launch_extended(config, function, params, extra))

// ---- occupancy ----

static cudaError_t blocks(int *out, const void *function, int threads, size_t shared, unsigned flags) {
  cudaError_t error = known(function);
  return error
             ? error
             : cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, shared, flags);
}
CU_PASS(cuOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *out, CUfunction function, int threads, size_t shared),
        blocks(out, function, threads, shared, 0))
CU_PASS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *out, CUfunction function, int threads, size_t shared, unsigned flags),
        blocks(out, function, threads, shared, flags))
CU_PASS(cuOccupancyAvailableDynamicSMemPerBlock, (size_t * out, CUfunction function, int count, int threads),
        known(function) ? cudaErrorInvalidResourceHandle
                        : cudaOccupancyAvailableDynamicSMemPerBlock(out, function, count, threads))

// The largest block of whole warps of those that put most threads on an SM.
static cudaError_t best_block(int *grid, int *block, const void *function, CUoccupancyB2DSize shared_of,
                              size_t shared, int limit) {
  struct cudaFuncAttributes a;
  struct cudaDeviceProp p;
  if (!grid || !block || limit < 0) return cudaErrorInvalidValue;
  cudaError_t error = known(function);
  if (!error) error = cudaFuncGetAttributes(&a, function);
  if (!error) error = cudaGetDeviceProperties(&p, 0);
  if (error) return error;
  int largest = limit && limit < a.maxThreadsPerBlock ? limit : a.maxThreadsPerBlock, best = 0;
  int step = (largest + p.warpSize - 1) / p.warpSize * p.warpSize;
  for (int n; step > 0 && !error; step -= p.warpSize) {
    int size = step < largest ? step : largest;
    error = blocks(&n, function, size, shared_of ? shared_of(size) : shared, 0);
    if (error || n * size <= best) continue;
    best = n * size;
    *block = size;
    *grid = n * p.multiProcessorCount;
  }
  return error;
}
CU_PASS(cuOccupancyMaxPotentialBlockSize,
        (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit),
        best_block(grid, block, function, shared_of, shared, limit))
CU_PASS(cuOccupancyMaxPotentialBlockSizeWithFlags,
        (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit,
         unsigned flags),
        flags & ~1u ? cudaErrorInvalidValue : best_block(grid, block, function, shared_of, shared, limit))

static cudaError_t clusters(int *out, const void *function, const CUlaunchConfig *c, bool largest) {
  cudaError_t error = c ? known(function) : cudaErrorInvalidValue;
  if (error) return error;
  cudaLaunchConfig_t config = config_of(c);
  return largest ? cudaOccupancyMaxPotentialClusterSize(out, function, &config)
                 : cudaOccupancyMaxActiveClusters(out, function, &config);
}
CU_PASS(cuOccupancyMaxActiveClusters, (int *out, CUfunction function, const CUlaunchConfig *config),
        clusters(out, function, config, false))
CU_PASS(cuOccupancyMaxPotentialClusterSize, (int *out, CUfunction function, const CUlaunchConfig *config),
        clusters(out, function, config, true))
