// Streams, and work put into them. The modelled clock: each stream has the time its work so far ends, the
// host the time it has waited until; work starts at the later of the two. The legacy stream waits for all
// blocking streams, and they for it.
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "shim/shim.h"
#include "shim/shim_graph.h"

static _Thread_local ShimStream *thread_stream; // cudaStreamPerThread, once it is used

// A stream that nothing uses any more. It is removed first, so that a host function that runs meanwhile does not find it.
static void drop_stream(ShimStream *s) {
  shim_remove(s, SHIM_STREAM);
  if (s->capture && s->capture->origin == s)
    shim_drop_capture(s->capture);
  else if (s->capture && !shim_joined(s)) // what came back to the origin stays in the graph
    s->capture->broken = true;
  s->capture = NULL;
  shim_list_free(&s->last);
  s->destroyed = true;
  if (!s->running) free(s);
}

static void thread_ends(void *stream) {
  shim_lock();
  thread_stream = NULL;
  drop_stream(stream);
  shim_leave(cudaSuccess);
}

static ShimStream *stream_of_thread(void) {
  if (thread_stream) return thread_stream;
  if (!shim.streams.has_thread_streams && pthread_key_create(&shim.streams.thread_streams, thread_ends))
    return NULL;
  shim.streams.has_thread_streams = true;
  ShimStream *s = calloc(1, sizeof *s);
  if (!s || !shim_put(s, SHIM_STREAM, s)) return free(s), NULL;
  s->of_thread = true;
  pthread_setspecific(shim.streams.thread_streams, s);
  return thread_stream = s;
}

ShimStream *shim_stream(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy) return &shim.streams.legacy;
  if (handle == cudaStreamPerThread) return stream_of_thread();
  ShimStream *s = shim_find(handle, SHIM_STREAM);
  return s && !s->of_thread ? s : NULL;
}

// ---- the clock ----

static double starts_at(const ShimStream *s) {
  double at = s->time > shim.streams.time ? s->time : shim.streams.time;
  if (s->flags & cudaStreamNonBlocking) return at;
  if (s != &shim.streams.legacy) return at > shim.streams.legacy.time ? at : shim.streams.legacy.time;
  size_t i = 0;
  for (ShimStream *o; (o = shim_next(SHIM_STREAM, &i));)
    if (!(o->flags & cudaStreamNonBlocking) && o->time > at) at = o->time;
  return at;
}

void shim_wait_stream(ShimStream *s) {
  if (shim.streams.held) shim_finish_held(s);
  double at = starts_at(s);
  if (at > shim.streams.time) shim.streams.time = at;
  shim_show_printed();
}

void shim_wait_all(void) {
  size_t i = 0;
  if (shim.streams.held) shim_finish_held(NULL);
  for (ShimStream *o; (o = shim_next(SHIM_STREAM, &i));)
    if (o->time > shim.streams.time) shim.streams.time = o->time;
  shim_wait_stream(&shim.streams.legacy);
}

// ---- work ----

bool shim_copy_work(ShimWork *to, const ShimWork *from) {
  *to = *from;
  if (from->type == cudaGraphNodeTypeKernel) {
    const PtxFunction *fn = from->kernel.kernel->fn;
    ShimKernelWork *k = &to->kernel;
    k->params = malloc((size_t)fn->param_size + 1);
    k->args = calloc((size_t)fn->param_count + 1, sizeof *k->args);
    if (!k->params || !k->args) {
      free(k->params);
      free(k->args);
      return false;
    }
    memcpy(k->params, from->kernel.params, (size_t)fn->param_size);
    for (uint32_t i = 0; i < fn->param_count; i++)
      k->args[i] = k->params + ((uint8_t *)from->kernel.args[i] - from->kernel.params);
  } else if (from->type == cudaGraphNodeTypeGraph)
    to->child = shim_graph_clone(from->child);
  else if (from->type == cudaGraphNodeTypeConditional)
    return (to->branches = shim_branches_clone(from->branches)) != NULL;
  else if (from->event)
    shim_event_keep(from->event);
  return from->type != cudaGraphNodeTypeGraph || to->child;
}

void shim_drop_work(ShimWork *w) {
  if (w->type == cudaGraphNodeTypeKernel) {
    free(w->kernel.params);
    free(w->kernel.args);
    w->kernel.params = NULL;
    w->kernel.args = NULL;
  } else if (w->type == cudaGraphNodeTypeGraph) {
    shim_graph_free(w->child);
    w->child = NULL;
  } else if (w->type == cudaGraphNodeTypeConditional) {
    shim_branches_free(w->branches);
    w->branches = NULL;
  } else {
    shim_event_drop(w->event);
    w->event = NULL;
  }
}

static cudaError_t run_event(ShimStream *s, const ShimWork *w) {
  if (w->type == cudaGraphNodeTypeWaitEvent && w->event->held) return cudaErrorNotReady;
  if (w->type == cudaGraphNodeTypeEventRecord) {
    shim_list_free(&w->event->last);
    w->event->capture = NULL;
    w->event->recorded = true;
    w->event->time = starts_at(s);
  } else if (w->event->recorded && w->event->time > s->time)
    s->time = w->event->time;
  return cudaSuccess;
}

static cudaError_t run_host(ShimStream *s, const struct cudaHostNodeParams *host) {
  shim_wait_stream(s);
  shim_call_out(host->fn, host->userData);
  return cudaSuccess;
}

// A copy between host and GPU passes a small part of L2, which keeps the end of what was copied.
static void use_l2_end(SolL2Use use, const void *at, size_t bytes) {
  MachineModel model = machine_model(shim.device);
  size_t most = sol_known(shim.device->l2_size) ? (size_t)(shim.device->l2_size.value * model.l2_copied) : 0;
  size_t kept = bytes < most ? bytes : most;
  if (kept) shim_use_l2(use, (const uint8_t *)at + (bytes - kept), kept);
}

// From the first byte of a copy to its last. The pitch counts between rows alone: of a single row it may be anything.
static size_t span_of(const struct cudaPitchedPtr *p, struct cudaExtent e) {
  size_t rows = e.depth * e.height;
  return rows && e.width ? (rows - 1) * (p->pitch ? p->pitch : e.width) + e.width : 0;
}

static cudaError_t run_copy(const struct cudaMemcpy3DParms *c) {
  shim_managed_before();
  cudaError_t error = shim_run_copy(c);
  if (error) return error;
  struct cudaExtent e = c->extent;
  size_t from = span_of(&c->srcPtr, e), to = span_of(&c->dstPtr, e);
  if (!c->srcArray) shim_observe_memory(false, c->srcPtr.ptr, from);
  if (!c->dstArray) shim_observe_memory(true, c->dstPtr.ptr, to);
  bool by_device = c->kind != cudaMemcpyDeviceToHost && c->kind != cudaMemcpyHostToHost;
  if (!c->dstArray) shim_managed_move(c->dstPtr.ptr, to, by_device);
  shim_managed_after();
  if (c->srcArray || c->dstArray) return cudaSuccess;
  bool within = shim_on_device(c->srcPtr.ptr) && shim_on_device(c->dstPtr.ptr);
  void (*use)(SolL2Use, const void *, size_t) = within ? shim_use_l2 : use_l2_end;
  use(SOL_L2_READS, c->srcPtr.ptr, from);
  use(SOL_L2_WRITES, c->dstPtr.ptr, to);
  return cudaSuccess;
}

static cudaError_t run_set(const ShimSet *set) {
  shim_managed_before();
  cudaError_t error = shim_run_set(set);
  size_t bytes = set->depth * set->height * set->width * set->element;
  if (error) return error;
  shim_observe_memory(true, set->to, bytes);
  shim_managed_move(set->to, bytes, true);
  shim_managed_after();
  shim_use_l2(SOL_L2_WRITES, set->to, bytes);
  return cudaSuccess;
}

static cudaError_t run_kernel(ShimStream *s, const ShimKernelWork *w, double start) {
  double seconds;
  cudaError_t error = shim_run_kernel(w, &seconds);
  s->time = start + seconds;
  return error;
}

cudaError_t shim_run(ShimStream *s, const ShimWork *w) {
  if (shim.fault) return shim.fault;
  double start = starts_at(s);
  if (w->type == SHIM_NODE_VALUE) return shim_run_value(&w->value);
  switch (w->type) {
  case cudaGraphNodeTypeKernel: return run_kernel(s, &w->kernel, start);
  case cudaGraphNodeTypeMemcpy: s->time = start + shim_copy_seconds(&w->copy); return run_copy(&w->copy);
  case cudaGraphNodeTypeMemset: s->time = start + shim_set_seconds(&w->set); return run_set(&w->set);
  case cudaGraphNodeTypeHost: return run_host(s, &w->host);
  case cudaGraphNodeTypeGraph: return shim_graph_run(s, w->child);
  case cudaGraphNodeTypeConditional: return shim_run_branches(s, w->branches);
  case cudaGraphNodeTypeWaitEvent:
  case cudaGraphNodeTypeEventRecord: return run_event(s, w);
  default: return cudaSuccess; // empty ones; memory of graphs is there all the time
  }
}

cudaError_t shim_submit(cudaStream_t handle, const ShimWork *w) {
  ShimStream *s = shim_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture) {
    if (s->capture->broken) return cudaErrorStreamCaptureInvalidated;
    ShimNode *node;
    cudaError_t error = shim_graph_add(s->capture->graph, s->last.nodes, s->last.count, w, &node);
    if (error) return error;
    s->last.count = 0;
    return shim_list_add(&s->last, node) ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  if (s == &shim.streams.legacy)
    for (ShimCapture *c = shim.streams.captures; c; c = c->next)
      if (!(c->origin->flags & cudaStreamNonBlocking))
        return c->broken = true, cudaErrorStreamCaptureImplicit;
  if (shim.streams.held) shim_go_on();
  if (shim_holds(s)) return shim_hold(s, w);
  s->running++;
  cudaError_t error = shim_run(s, w);
  if (error == cudaErrorNotReady && (w->type == SHIM_NODE_VALUE || w->event)) error = shim_hold(s, w);
  if (!--s->running && s->destroyed && s != &shim.streams.legacy) free(s);
  if (shim.streams.held) shim_go_on();
  return error;
}

// ---- creation and queries ----

static cudaError_t create_stream(cudaStream_t *out, unsigned flags, int priority) {
  if (!out || flags & ~(unsigned)cudaStreamNonBlocking) return cudaErrorInvalidValue;
  ShimStream *s = calloc(1, sizeof *s);
  if (!s || !shim_put(s, SHIM_STREAM, s)) return free(s), cudaErrorMemoryAllocation;
  *s = (ShimStream){.id = ++shim.streams.next_id, .flags = flags};
  s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  *out = (cudaStream_t)(void *)s;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
  SHIM_CALL(create_stream(out, 0, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  SHIM_CALL(create_stream(out, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  SHIM_CALL(create_stream(out, flags, priority));
}

static cudaError_t destroy_stream(cudaStream_t handle) {
  ShimStream *s = shim_find(handle, SHIM_STREAM);
  if (!s || s->of_thread) return cudaErrorInvalidResourceHandle;
  shim_wait_stream(s);
  drop_stream(s);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  SHIM_CALL(destroy_stream(stream));
}

static cudaError_t wait_for(cudaStream_t handle) {
  ShimStream *s = shim_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture) return s->capture->broken = true, cudaErrorStreamCaptureUnsupported;
  shim_wait_stream(s);
  return shim.fault;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  SHIM_CALL(wait_for(stream));
}
SHIM_ALIAS(cudaStreamSynchronize, cudaStreamSynchronize_ptsz);

static cudaError_t is_done(cudaStream_t handle) {
  ShimStream *s = shim_stream(handle);
  if (shim.streams.held) shim_go_on();
  return s && !s->capture && shim_holds(s) ? cudaErrorNotReady : wait_for(handle);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  SHIM_CALL(is_done(stream));
}
SHIM_ALIAS(cudaStreamQuery, cudaStreamQuery_ptsz);

typedef enum StreamFact { STREAM_PRIORITY, STREAM_FLAGS, STREAM_DEVICE, STREAM_ID } StreamFact;
static cudaError_t query(cudaStream_t handle, StreamFact fact, void *out) {
  ShimStream *s = shim_stream(handle);
  if (!out) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  int device = 0;
  switch (fact) {
  case STREAM_PRIORITY: memcpy(out, &s->priority, sizeof s->priority); break;
  case STREAM_FLAGS: memcpy(out, &s->flags, sizeof s->flags); break;
  case STREAM_DEVICE: memcpy(out, &device, sizeof device); break;
  default:
    if (!s->id) s->id = ++shim.streams.next_id;
    memcpy(out, &s->id, sizeof s->id);
  }
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  SHIM_CALL(query(stream, STREAM_PRIORITY, priority));
}
SHIM_ALIAS(cudaStreamGetPriority, cudaStreamGetPriority_ptsz);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  SHIM_CALL(query(stream, STREAM_FLAGS, flags));
}
SHIM_ALIAS(cudaStreamGetFlags, cudaStreamGetFlags_ptsz);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
  SHIM_CALL(query(stream, STREAM_DEVICE, device));
}
SHIM_ALIAS(cudaStreamGetDevice, cudaStreamGetDevice_ptsz);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  SHIM_CALL(query(stream, STREAM_ID, id));
}
SHIM_ALIAS(cudaStreamGetId, cudaStreamGetId_ptsz);
