// Attributes of kernels, and how many of their blocks an SM holds.
#include <string.h>

#include "shim/shim.h"
#include "sol/occupancy.h"

static size_t dynamic_limit(const ShimKernel *k) {
  size_t fixed = (size_t)k->fn->shared_bytes;
  size_t plain = fixed < shim_static_limit() ? shim_static_limit() - fixed : 0;
  return k->dynamic_allowed > plain ? k->dynamic_allowed : plain;
}

static int most_threads(const PtxFunction *fn) {
  const uint32_t *n = fn->reqntid[0] ? fn->reqntid : fn->maxntid;
  uint64_t most = n[0] ? (uint64_t)n[0] * (n[1] ? n[1] : 1) * (n[2] ? n[2] : 1) : 1024;
  return most < 1024 ? (int)most : 1024;
}

static uint64_t constant_bytes(const SolPtxModule *m) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < m->symbol_count; i++)
    if (m->symbols[i].space == PTX_SPACE_CONST) bytes += m->symbols[i].size;
  return bytes;
}

static cudaError_t function_attributes(struct cudaFuncAttributes *out, const void *function) {
  ShimKernel *k;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = shim_kernel(function, &k);
  if (error) return error;
  const PtxFunction *fn = k->fn;
  const SolPtxModule *ptx = sol_emu_ptx(k->binary->module);
  *out = (struct cudaFuncAttributes){.sharedSizeBytes = (size_t)fn->shared_bytes,
                                     .constSizeBytes = (size_t)constant_bytes(ptx),
                                     .localSizeBytes = (size_t)fn->local_bytes,
                                     .maxThreadsPerBlock = most_threads(fn),
                                     .numRegs = k->registers,
                                     .ptxVersion = ptx->target,
                                     .binaryVersion = shim.device->cc_major * 10 + shim.device->cc_minor,
                                     .maxDynamicSharedSizeBytes = (int)dynamic_limit(k),
                                     .preferredShmemCarveout = k->carveout,
                                     .clusterDimMustBeSet = fn->explicitcluster && !fn->reqnctapercluster[0],
                                     .requiredClusterWidth = (int)fn->reqnctapercluster[0],
                                     .requiredClusterHeight = (int)fn->reqnctapercluster[1],
                                     .requiredClusterDepth = (int)fn->reqnctapercluster[2],
                                     .nonPortableClusterSizeAllowed = k->big_clusters};
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *function) {
  SHIM_CALL(function_attributes(out, function));
}

static cudaError_t set_attribute(const void *function, enum cudaFuncAttribute what, int value) {
  ShimKernel *k;
  cudaError_t error = shim_kernel(function, &k);
  if (error) return error;
  switch (what) {
  case cudaFuncAttributeMaxDynamicSharedMemorySize: {
    uint64_t most = sol_emu_machine(shim.emu)->smem_per_block;
    if (value < 0 || (uint64_t)value + k->fn->shared_bytes > most) return cudaErrorInvalidValue;
    k->dynamic_allowed = (size_t)value;
    return cudaSuccess;
  }
  case cudaFuncAttributePreferredSharedMemoryCarveout:
    if (value < -1 || value > 100) return cudaErrorInvalidValue;
    k->carveout = value;
    return cudaSuccess;
  case cudaFuncAttributeNonPortableClusterSizeAllowed: k->big_clusters = value != 0; return cudaSuccess;
  case cudaFuncAttributeClusterSchedulingPolicyPreference: return cudaSuccess;
  default: return cudaErrorInvalidValue; // set by the kernel's own declaration
  }
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute what, int value) {
  SHIM_CALL(set_attribute(function, what, value));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute what, int value,
                                            int device) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : set_attribute(kernel, what, value));
}

static cudaError_t known(const void *function) {
  ShimKernel *k;
  return shim_kernel(function, &k);
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
  SHIM_CALL((unsigned)config > cudaFuncCachePreferEqual ? cudaErrorInvalidValue : known(function));
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config) {
  (void)config;
  SHIM_CALL(known(function));
}

static cudaError_t name_of(const char **out, const void *function) {
  ShimKernel *k;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = shim_kernel(function, &k);
  if (!error) *out = k->name;
  return error;
}

cudaError_t cudaFuncGetName(const char **out, const void *function) {
  SHIM_CALL(name_of(out, function));
}

static cudaError_t param_info(const void *function, size_t index, size_t *offset, size_t *size) {
  ShimKernel *k;
  cudaError_t error = shim_kernel(function, &k);
  if (error) return error;
  if (!offset || index >= k->fn->param_count) return cudaErrorInvalidValue;
  const PtxSymbol *s = &sol_emu_ptx(k->binary->module)->symbols[k->fn->params[index]];
  *offset = (size_t)(s->offset - k->fn->param_offset);
  if (size) *size = (size_t)s->size;
  return cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
  SHIM_CALL(param_info(function, index, offset, size));
}

// ---- occupancy ----

cudaError_t shim_active_blocks(int *blocks, const ShimKernel *k, int threads, size_t shared) {
  if (threads < 1) return cudaErrorInvalidValue;
  SolKernelShape shape = {threads, k->registers, (int64_t)(k->fn->shared_bytes + shared)};
  SolOccupancy o;
  SolError err = {0};
  *blocks = 0;
  SolStatus status =
      shared > dynamic_limit(k) ? SOL_ERR_ARGUMENT : sol_occupancy(shim.device, &shape, &o, &err);
  if (status == SOL_ERR_UNKNOWN) return shim_refuse(cudaErrorNotSupported, "occupancy", &err);
  if (!status) *blocks = o.blocks_per_sm; // else no such block can run: none fits
  return cudaSuccess;
}

static cudaError_t active_blocks(int *out, const void *function, int threads, size_t shared, unsigned flags) {
  ShimKernel *k;
  if (!out || flags & ~(unsigned)cudaOccupancyDisableCachingOverride) return cudaErrorInvalidValue;
  cudaError_t error = shim_kernel(function, &k);
  return error ? error : shim_active_blocks(out, k, threads, shared);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int threads,
                                                          size_t shared) {
  SHIM_CALL(active_blocks(out, function, threads, shared, 0));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *function,
                                                                   int threads, size_t shared,
                                                                   unsigned flags) {
  SHIM_CALL(active_blocks(out, function, threads, shared, flags));
}

// The most dynamic shared memory with which so many blocks still fit; it falls as blocks grow.
static cudaError_t available(size_t *out, const void *function, int blocks, int threads) {
  ShimKernel *k;
  if (!out || blocks < 1) return cudaErrorInvalidValue;
  cudaError_t error = shim_kernel(function, &k);
  size_t low = 0, high = error ? 0 : dynamic_limit(k);
  while (!error && low < high) {
    size_t middle = low + (high - low + 1) / 2;
    int fit = 0;
    error = shim_active_blocks(&fit, k, threads, middle);
    if (fit >= blocks)
      low = middle;
    else
      high = middle - 1;
  }
  if (!error) *out = low;
  return error;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *out, const void *function, int blocks,
                                                      int threads) {
  SHIM_CALL(available(out, function, blocks, threads));
}

// ---- clusters: blocks of one share a GPC, of whose number nothing is published; the whole GPU counts ----

static unsigned cluster_of(const cudaLaunchConfig_t *c, const ShimKernel *k) {
  const uint32_t *r = k->fn->reqnctapercluster;
  unsigned size = r[0] ? r[0] * (r[1] ? r[1] : 1) * (r[2] ? r[2] : 1) : 1;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
      size = c->attrs[i].val.clusterDim.x * c->attrs[i].val.clusterDim.y * c->attrs[i].val.clusterDim.z;
  return size;
}

static cudaError_t blocks_of_config(const void *function, const cudaLaunchConfig_t *c, ShimKernel **k,
                                    int *blocks) {
  if (!c || (c->numAttrs && !c->attrs)) return cudaErrorInvalidValue;
  if (shim.device->cc_major < 9) return cudaErrorNotSupported;
  cudaError_t error = shim_kernel(function, k);
  uint64_t threads = (uint64_t)c->blockDim.x * c->blockDim.y * c->blockDim.z;
  if (error) return error;
  return threads > 1024 ? cudaErrorInvalidConfiguration
                        : shim_active_blocks(blocks, *k, (int)threads, c->dynamicSmemBytes);
}

static cudaError_t active_clusters(int *out, const void *function, const cudaLaunchConfig_t *c) {
  ShimKernel *k;
  int blocks;
  cudaError_t error = out ? blocks_of_config(function, c, &k, &blocks) : cudaErrorInvalidValue;
  if (error) return error;
  unsigned size = cluster_of(c, k);
  if (!size || size > (k->big_clusters ? 16 : 8)) return cudaErrorInvalidClusterSize;
  int most = sol_emu_machine(shim.emu)->cluster_blocks;
  if (most && blocks > most) blocks = most;
  *out = blocks * sol_emu_machine(shim.emu)->sms / (int)size;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *function, const cudaLaunchConfig_t *config) {
  SHIM_CALL(active_clusters(out, function, config));
}

static cudaError_t largest_cluster(int *out, const void *function, const cudaLaunchConfig_t *c) {
  ShimKernel *k;
  int blocks;
  cudaError_t error = out ? blocks_of_config(function, c, &k, &blocks) : cudaErrorInvalidValue;
  if (!error) *out = !blocks ? 0 : k->big_clusters ? 16 : 8;
  return error;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *out, const void *function,
                                                 const cudaLaunchConfig_t *config) {
  SHIM_CALL(largest_cluster(out, function, config));
}
