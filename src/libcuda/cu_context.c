// Initialisation and contexts: the primary one, which the runtime uses, and others. All share the one device's memory.
#include <stdlib.h>

#include "libcuda/cu.h"

enum { MOST_STACKED = 64 };
static _Thread_local CUcontext stack[MOST_STACKED];
static _Thread_local int stacked;
static struct CUctx_st primary = {.primary = true, .id = 1}; // guarded, as `initialized`, by the shim's lock
static bool initialized;

static bool is_active(CUcontext c) {
  return c->primary ? c->retained || shim.runtime_used : !c->destroyed;
}

// A handle that was one once is told apart from what never was.
static CUresult check(CUcontext c) {
  if (c != &primary && !shim_find(c, SHIM_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
  return is_active(c) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// A thread that has used the runtime has the primary context, though it never asked for it.
CUcontext cu_current(void) {
  if (stacked) return stack[stacked - 1];
  return shim.runtime_used ? &primary : NULL;
}

static CUresult meets(CuNeed need) {
  if (need >= CU_INIT && !initialized && !shim.runtime_used) return CUDA_ERROR_NOT_INITIALIZED;
  if (need < CU_CONTEXT) return CUDA_SUCCESS;
  return cu_current() ? check(cu_current()) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cu_begin(CuNeed need) {
  shim_driver_calls++;
  shim_lock();
  CUresult result = meets(need);
  shim_leave(cudaSuccess);
  return result;
}

CUresult cu_end(CUresult result) {
  shim_driver_calls--;
  return result;
}

static cudaError_t open(void) {
  SHIM_CALL(cudaSuccess);
}

CUresult cuInit(unsigned flags) {
  CUresult result = cu_begin(CU_NOTHING);
  if (!result) result = flags ? CUDA_ERROR_INVALID_VALUE : cu_result(open());
  if (!result) initialized = true;
  return cu_end(result);
}

CUresult cuDriverGetVersion(int *out) {
  if (out) *out = CUDA_VERSION;
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- with the lock held ----

#define LOCKED(need, work)                                                                                   \
  do {                                                                                                       \
    CUresult locked_ = cu_begin(need);                                                                       \
    shim_lock();                                                                                             \
    if (!locked_) locked_ = (work);                                                                          \
    shim_leave(cudaSuccess);                                                                                 \
    return cu_end(locked_);                                                                                  \
  } while (0)

static CUresult push(CUcontext c) {
  CUresult result = c ? check(c) : CUDA_ERROR_INVALID_VALUE;
  if (!result && stacked == MOST_STACKED) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!result) stack[stacked++] = c;
  return result;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device) {
  if (!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext c = calloc(1, sizeof *c);
  if (!c || !shim_put(c, SHIM_CONTEXT, c)) return free(c), CUDA_ERROR_OUT_OF_MEMORY;
  *c = (struct CUctx_st){.flags = flags, .id = ++shim.contexts + 1};
  CUresult result = push(c);
  if (!result) *out = c;
  return result;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int count, unsigned flags,
                        CUdevice device);

__attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags,
                                                               CUdevice device) {
  LOCKED(CU_INIT, create(out, flags, device));
}
__attribute__((visibility("default"))) CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity,
                                                               int count, unsigned flags, CUdevice device) {
  (void)affinity;
  LOCKED(CU_INIT, count ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(out, flags, device));
}
CUresult cuCtxCreate(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device) {
  bool affinity = params && params->numExecAffinityParams;
  LOCKED(CU_INIT, affinity ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(out, flags, device));
}

static void free_owned(CUcontext c) {
  void **owned = calloc(shim.table.count + 1, sizeof *owned);
  size_t count = 0;
  for (size_t i = 0; owned && i < shim.table.cap; i++) {
    const ShimEntry *e = &shim.table.entries[i];
    if (e->kind == SHIM_OWNED && e->value == c) owned[count++] = (void *)(uintptr_t)e->key;
  }
  for (size_t i = 0; i < count; i++) shim_free(owned[i]); // only now, since removing moves entries
  free(owned);
}

// Of the contexts that were destroyed last a mark is left, by which later uses are recognized.
static void leave_mark(CUcontext c) {
  static CUcontext marks[64]; // guarded by the shim's lock
  static unsigned next;
  CUcontext *place = &marks[next++ % SOL_COUNT(marks)];
  if (*place) shim_remove(*place, SHIM_CONTEXT);
  free(*place);
  *place = c;
}

static CUresult destroy(CUcontext c) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = c != &primary ? check(c) : CUDA_ERROR_INVALID_CONTEXT;
  if (result) return result;
  c->destroyed = true;
  free_owned(c);
  if (stacked && stack[stacked - 1] == c) stacked--;
  leave_mark(c);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context) {
  LOCKED(CU_INIT, destroy(context));
}
CUresult cuCtxPushCurrent(CUcontext context) {
  LOCKED(CU_INIT, push(context));
}

static CUresult pop(CUcontext *out) {
  if (!cu_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out) *out = cu_current();
  if (stacked) stacked--;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *out) {
  LOCKED(CU_INIT, pop(out));
}

static CUresult set_current(CUcontext c) {
  CUresult result = c ? check(c) : CUDA_SUCCESS;
  if (result) return result;
  if (stacked) stacked--;
  return c ? push(c) : CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  LOCKED(CU_INIT, set_current(context));
}

static CUresult give_context(CUcontext *out, CUcontext c) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = c;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *out) {
  LOCKED(CU_INIT, give_context(out, cu_current()));
}

void cu_own(void *memory) {
  shim_lock();
  CUcontext c = cu_current();
  if (c && !c->primary && memory) shim_put(memory, SHIM_OWNED, c);
  shim_leave(cudaSuccess);
}

// ---- the primary context ----

static CUresult retain(CUcontext *out, CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  primary.retained++;
  return give_context(out, &primary);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  LOCKED(CU_INIT, retain(out, device));
}

static CUresult release(CUdevice device) {
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  if (!primary.retained) return CUDA_ERROR_INVALID_CONTEXT;
  primary.retained--;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  LOCKED(CU_INIT, release(device));
}
// Whoever had retained the context has to do so again.
static cudaError_t forget_retained(void) {
  shim_lock();
  primary.retained = 0;
  return shim_leave(cudaSuccess);
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CU_CALL(CU_INIT, device ? cudaErrorInvalidDevice : (cudaDeviceReset(), forget_retained()));
}

static CUresult set_flags(CUdevice device, unsigned flags) {
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
  primary.flags = flags;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  LOCKED(CU_INIT, set_flags(device, flags));
}

static CUresult get_state(CUdevice device, unsigned *flags, int *active) {
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = primary.flags;
  *active = is_active(&primary);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  LOCKED(CU_INIT, get_state(device, flags, active));
}

// ---- of the current one ----

static CUresult give(unsigned *out, unsigned value) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetFlags(unsigned *out) {
  LOCKED(CU_CONTEXT, give(out, cu_current()->flags));
}
CUresult cuCtxSetFlags(unsigned flags) {
  LOCKED(CU_CONTEXT,
         flags & ~(unsigned)CU_CTX_FLAGS_MASK ? CUDA_ERROR_INVALID_VALUE : give(&cu_current()->flags, flags));
}
CUresult cuCtxGetDevice(CUdevice *out) {
  LOCKED(CU_CONTEXT, give((unsigned *)out, 0));
}

static CUresult device_of(CUcontext c, CUdevice *out) {
  CUresult result = check(c ? c : &primary);
  return result ? result : give((unsigned *)out, 0);
}
CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext context) {
  LOCKED(CU_INIT, device_of(context, out));
}

static CUresult version_of(CUcontext c, unsigned *out) {
  CUresult result = check(c ? c : &primary);
  return result ? result : give(out, 3020); // of the interface, not of CUDA
}
CUresult cuCtxGetApiVersion(CUcontext context, unsigned *out) {
  LOCKED(CU_INIT, version_of(context, out));
}

static CUresult id_of(CUcontext c, unsigned long long *out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!c) c = cu_current();
  CUresult result = c ? check(c) : CUDA_ERROR_INVALID_CONTEXT;
  if (!result) *out = c->id;
  return result;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long *out) {
  LOCKED(CU_INIT, id_of(context, out));
}

static cudaError_t give_device(CUcontext *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = cu_current();
  return cudaSuccess;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
  unsigned flags;
  CU_CALL(CU_CONTEXT, cudaStreamGetFlags(stream, &flags) ? cudaErrorInvalidResourceHandle : give_device(out));
}

CU_PASS(cuCtxSynchronize, (void), cudaDeviceSynchronize())
CU_PASS(cuCtxSynchronize_v2, (CUcontext context), ((void)context, cudaDeviceSynchronize()))
CU_PASS(cuCtxSetLimit, (CUlimit limit, size_t value), cudaDeviceSetLimit((enum cudaLimit)limit, value))
CU_PASS(cuCtxGetLimit, (size_t * out, CUlimit limit), cudaDeviceGetLimit(out, (enum cudaLimit)limit))
CU_PASS(cuCtxGetCacheConfig, (CUfunc_cache * out), cudaDeviceGetCacheConfig((enum cudaFuncCache *)out))
CU_PASS(cuCtxSetCacheConfig, (CUfunc_cache config), cudaDeviceSetCacheConfig((enum cudaFuncCache)config))
CU_PASS(cuCtxGetSharedMemConfig, (CUsharedconfig * out),
        cudaDeviceGetSharedMemConfig((enum cudaSharedMemConfig *)out))
CU_PASS(cuCtxSetSharedMemConfig, (CUsharedconfig config),
        cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)config))
CU_PASS(cuCtxGetStreamPriorityRange, (int *least, int *greatest),
        cudaDeviceGetStreamPriorityRange(least, greatest))
CU_PASS(cuCtxResetPersistingL2Cache, (void), cudaCtxResetPersistingL2Cache())
