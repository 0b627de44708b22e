// Stream work other than kernels and copies: host functions, hints and attributes.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"

static cudaError_t launch_host(cudaStream_t stream, cudaHostFn_t function, void *data) {
  if (!function) return cudaErrorInvalidValue;
  ShimWork work = {.type = cudaGraphNodeTypeHost, .host = {function, data}};
  return shim_submit(stream, &work);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  SHIM_CALL(launch_host(stream, function, data));
}
SHIM_ALIAS(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz);

typedef struct Callback {
  cudaStream_t stream;
  cudaStreamCallback_t function;
  void *data;
} Callback;

static void call_back(void *argument) {
  Callback *c = argument;
  c->function(c->stream, cudaSuccess, c->data);
}

static cudaError_t add_callback(cudaStream_t handle, cudaStreamCallback_t function, void *data,
                                unsigned flags) {
  ShimStream *s = shim_stream(handle);
  if (!function || flags) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture) return s->capture->broken = true, cudaErrorStreamCaptureUnsupported;
  Callback c = {handle, function, data};
  shim_wait_stream(s);
  shim_call_out(call_back, &c);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                  unsigned flags) {
  SHIM_CALL(add_callback(stream, function, data, flags));
}
SHIM_ALIAS(cudaStreamAddCallback, cudaStreamAddCallback_ptsz);

static cudaError_t attach(cudaStream_t stream, void *memory, unsigned flags) {
  if (!shim_stream(stream)) return cudaErrorInvalidResourceHandle;
  bool known = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  return known && sol_emu_host(shim.emu, shim_address(memory), 1) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *memory, size_t length, unsigned flags) {
  (void)length; // which stream may use managed memory when makes no difference here
  SHIM_CALL(attach(stream, memory, flags));
}
SHIM_ALIAS(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz);

// ---- attributes: stored and returned; a window of L2 changes counts, none changes what is computed ----

static cudaError_t get_attribute(cudaStream_t handle, cudaLaunchAttributeID id,
                                 cudaLaunchAttributeValue *out) {
  ShimStream *s = shim_stream(handle);
  if (!out) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  memset(out, 0, sizeof *out);
  if (id == cudaLaunchAttributePriority)
    out->priority = s->priority;
  else if (id == cudaLaunchAttributeAccessPolicyWindow)
    *out = s->window;
  else if (id == cudaLaunchAttributeSynchronizationPolicy)
    out->syncPolicy = cudaSyncPolicyAuto;
  return cudaSuccess;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID id,
                                   cudaLaunchAttributeValue *out) {
  SHIM_CALL(get_attribute(stream, id, out));
}
SHIM_ALIAS(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz);

static cudaError_t set_attribute(cudaStream_t handle, cudaLaunchAttributeID id,
                                 const cudaLaunchAttributeValue *value) {
  ShimStream *s = shim_stream(handle);
  if (!value) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  if (id == cudaLaunchAttributePriority) s->priority = value->priority;
  if (id == cudaLaunchAttributeAccessPolicyWindow) s->window = *value;
  return cudaSuccess;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID id,
                                   const cudaLaunchAttributeValue *value) {
  SHIM_CALL(set_attribute(stream, id, value));
}
SHIM_ALIAS(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz);

static cudaError_t copy_attributes(cudaStream_t to, cudaStream_t from) {
  ShimStream *t = shim_stream(to), *f = shim_stream(from);
  if (!t || !f) return cudaErrorInvalidResourceHandle;
  t->priority = f->priority;
  t->window = f->window;
  return cudaSuccess;
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  SHIM_CALL(copy_attributes(to, from));
}
SHIM_ALIAS(cudaStreamCopyAttributes, cudaStreamCopyAttributes_ptsz);

static cudaError_t reset_persisting(void) {
  sol_emu_l2_reset(shim.emu);
  return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  SHIM_CALL(reset_persisting());
}
