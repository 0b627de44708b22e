// Stream-ordered memory and memory pools. A free takes effect at once, since all earlier work has completed.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"

typedef struct ShimPool {
  uint64_t used, high, threshold;
  size_t allocations; // live ones that refer to it
  bool destroyed;     // freed with the last of them
  int reuse[4];       // by cudaMemPoolAttr
} ShimPool;

static ShimPool *make_pool(void) {
  ShimPool *p = calloc(1, sizeof *p);
  if (!p || !shim_put(p, SHIM_POOL, p)) return free(p), NULL;
  for (int i = 0; i < 4; i++) p->reuse[i] = 1;
  return p;
}

static ShimPool *default_pool(void) {
  if (!shim.pools.pool) shim.pools.pool = make_pool();
  return shim.pools.pool;
}

static ShimPool *current_pool(void) {
  return shim.pools.current_pool ? shim.pools.current_pool : default_pool();
}

void shim_pool_forget(void *memory, uint64_t bytes) {
  ShimPool *p = shim_find(memory, SHIM_POOLED);
  if (!p) return;
  shim_remove(memory, SHIM_POOLED);
  p->used -= bytes;
  if (!--p->allocations && p->destroyed) free(p);
}

static cudaError_t alloc_from(ShimPool *p, void **out, size_t bytes) {
  cudaError_t error = shim_alloc(bytes, out);
  if (error) return error;
  if (!shim_put(*out, SHIM_POOLED, p)) return cudaErrorMemoryAllocation;
  p->allocations++;
  p->used += bytes;
  if (p->used > p->high) p->high = p->used;
  return cudaSuccess;
}

static cudaError_t alloc_async(void **out, size_t bytes, ShimPool *p, cudaStream_t stream) {
  ShimStream *s = shim_stream(stream);
  if (!out || !p) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  *out = NULL;
  if (!bytes) return cudaSuccess;
  cudaError_t error = alloc_from(p, out, bytes);
  if (error || !s->capture) return error;
  ShimWork work = {.type = cudaGraphNodeTypeMemAlloc, .alloc = {.bytesize = bytes, .dptr = *out}};
  return shim_submit(stream, &work);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
  SHIM_CALL(alloc_async(out, bytes, current_pool(), stream));
}
SHIM_ALIAS(cudaMallocAsync, cudaMallocAsync_ptsz);

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  SHIM_CALL(alloc_async(out, bytes, shim_find(pool, SHIM_POOL), stream));
}
SHIM_ALIAS(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz);

static cudaError_t free_async(void *memory, cudaStream_t stream) {
  ShimStream *s = shim_stream(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (!memory) return cudaErrorInvalidValue;
  ShimWork work = {.type = cudaGraphNodeTypeMemFree, .freed = memory};
  if (!s->capture) return shim_holds(s) ? shim_hold(s, &work) : shim_free(memory);
  return shim_submit(stream, &work);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  SHIM_CALL(free_async(memory, stream));
}
SHIM_ALIAS(cudaFreeAsync, cudaFreeAsync_ptsz);

// ---- pools ----

static cudaError_t give_pool(cudaMemPool_t *out, ShimPool *p) {
  if (!out) return cudaErrorInvalidValue;
  *out = (cudaMemPool_t)(void *)p;
  return p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : give_pool(out, default_pool()));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : give_pool(out, current_pool()));
}

static cudaError_t set_current(cudaMemPool_t pool) {
  ShimPool *p = shim_find(pool, SHIM_POOL);
  if (!p) return cudaErrorInvalidValue;
  shim.pools.current_pool = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  SHIM_CALL(device ? cudaErrorInvalidDevice : set_current(pool));
}

static cudaError_t create_pool(cudaMemPool_t *out, const struct cudaMemPoolProps *props) {
  if (!out || !props) return cudaErrorInvalidValue;
  if (props->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
  if (props->location.type == cudaMemLocationTypeDevice && props->location.id) return cudaErrorInvalidDevice;
  if (props->location.type != cudaMemLocationTypeDevice) return cudaErrorNotSupported;
  return give_pool(out, make_pool());
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props) {
  SHIM_CALL(create_pool(out, props));
}

static cudaError_t destroy_pool(cudaMemPool_t pool) {
  ShimPool *p = shim_find(pool, SHIM_POOL);
  if (!p || p == shim.pools.pool) return cudaErrorInvalidValue;
  if (shim.pools.current_pool == p) shim.pools.current_pool = NULL;
  shim_remove(p, SHIM_POOL);
  p->destroyed = true;
  if (!p->allocations) free(p);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  SHIM_CALL(destroy_pool(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  (void)keep; // nothing is held back
  SHIM_CALL(shim_find(pool, SHIM_POOL) ? cudaSuccess : cudaErrorInvalidValue);
}

static cudaError_t pool_attribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value, bool set) {
  ShimPool *p = shim_find(pool, SHIM_POOL);
  if (!p || !value) return cudaErrorInvalidValue;
  uint64_t *number = NULL;
  switch (what) {
  case cudaMemPoolReuseFollowEventDependencies:
  case cudaMemPoolReuseAllowOpportunistic:
  case cudaMemPoolReuseAllowInternalDependencies:
    if (set)
      memcpy(&p->reuse[what], value, sizeof(int));
    else
      memcpy(value, &p->reuse[what], sizeof(int));
    return cudaSuccess;
  case cudaMemPoolAttrReleaseThreshold: number = &p->threshold; break;
  case cudaMemPoolAttrReservedMemCurrent:
  case cudaMemPoolAttrUsedMemCurrent: number = &p->used; break;
  case cudaMemPoolAttrReservedMemHigh:
  case cudaMemPoolAttrUsedMemHigh: number = &p->high; break;
  default: return cudaErrorInvalidValue;
  }
  if (!set)
    memcpy(value, number, sizeof *number);
  else if (number == &p->threshold)
    memcpy(number, value, sizeof *number);
  else if (number == &p->high) // only a reset to 0
    p->high = p->used;
  else
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value) {
  SHIM_CALL(pool_attribute(pool, what, value, true));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value) {
  SHIM_CALL(pool_attribute(pool, what, value, false));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count) {
  SHIM_CALL(shim_find(pool, SHIM_POOL) && (list || !count) ? cudaSuccess : cudaErrorInvalidValue);
}

static cudaError_t pool_access(enum cudaMemAccessFlags *out, cudaMemPool_t pool,
                               const struct cudaMemLocation *at) {
  if (!out || !at || !shim_find(pool, SHIM_POOL)) return cudaErrorInvalidValue;
  *out = at->type == cudaMemLocationTypeDevice && !at->id ? cudaMemAccessFlagsProtReadWrite
                                                          : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *out, cudaMemPool_t pool,
                                 struct cudaMemLocation *at) {
  SHIM_CALL(pool_access(out, pool, at));
}

static cudaError_t pool_at(cudaMemPool_t *out, const struct cudaMemLocation *at, ShimPool *p) {
  if (!at) return cudaErrorInvalidValue;
  if (at->type != cudaMemLocationTypeDevice) return cudaErrorNotSupported;
  return at->id ? cudaErrorInvalidDevice : give_pool(out, p);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, struct cudaMemLocation *at,
                                     enum cudaMemAllocationType type) {
  (void)type;
  SHIM_CALL(pool_at(out, at, default_pool()));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, struct cudaMemLocation *at,
                              enum cudaMemAllocationType type) {
  (void)type;
  SHIM_CALL(pool_at(out, at, current_pool()));
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *at, enum cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  (void)type;
  SHIM_CALL(at && at->type == cudaMemLocationTypeDevice && !at->id ? set_current(pool)
                                                                   : cudaErrorInvalidValue);
}
