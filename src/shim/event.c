// Events. Work is executed when it is enqueued, so events have completed unless their record is held (held.c); times are the modelled clock's.
#include <stdlib.h>

#include "shim/shim.h"

static cudaError_t create_event(cudaEvent_t *out, unsigned flags) {
  unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (!out || flags & ~known) return cudaErrorInvalidValue;
  if (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming)) return cudaErrorInvalidValue;
  ShimEvent *e = calloc(1, sizeof *e);
  if (!e || !shim_put(e, SHIM_EVENT, e)) return free(e), cudaErrorMemoryAllocation;
  e->flags = flags;
  if (!(flags & cudaEventDisableTiming)) shim.streams.timed = true;
  *out = (cudaEvent_t)(void *)e;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
  SHIM_CALL(create_event(out, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  SHIM_CALL(create_event(out, flags));
}

void shim_event_keep(ShimEvent *e) {
  e->nodes++;
}

void shim_event_drop(ShimEvent *e) {
  if (e && !--e->nodes && e->destroyed) free(e);
}

// The nodes of graphs that record it or wait for it go on doing so.
static cudaError_t destroy_event(cudaEvent_t handle) {
  ShimEvent *e = shim_find(handle, SHIM_EVENT);
  if (!e) return cudaErrorInvalidResourceHandle;
  shim_list_free(&e->last);
  shim_remove(handle, SHIM_EVENT);
  e->destroyed = true;
  if (!e->nodes) free(e);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  SHIM_CALL(destroy_event(event));
}

// In a captured stream the event marks a place in the graph instead.
static cudaError_t mark_capture(ShimEvent *e, const ShimStream *s) {
  if (s->capture->broken) return cudaErrorStreamCaptureInvalidated;
  e->last.count = 0;
  for (size_t i = 0; i < s->last.count; i++)
    if (!shim_list_add(&e->last, s->last.nodes[i])) return cudaErrorMemoryAllocation;
  e->capture = s->capture;
  e->capture_id = s->capture->id;
  return cudaSuccess;
}

static cudaError_t record(cudaEvent_t handle, cudaStream_t stream, unsigned flags) {
  ShimEvent *e = shim_find(handle, SHIM_EVENT);
  ShimStream *s = shim_stream(stream);
  if (flags & ~(unsigned)cudaEventRecordExternal) return cudaErrorInvalidValue;
  if (!e || !s) return cudaErrorInvalidResourceHandle;
  if (s->capture && !(flags & cudaEventRecordExternal)) return mark_capture(e, s);
  ShimWork work = {.type = cudaGraphNodeTypeEventRecord, .event = e};
  return shim_submit(stream, &work);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SHIM_CALL(record(event, stream, 0));
}
SHIM_ALIAS(cudaEventRecord, cudaEventRecord_ptsz);

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  SHIM_CALL(record(event, stream, flags));
}
SHIM_ALIAS(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz);

// The capture the event was recorded in, if that is still active.
static ShimCapture *live_capture(const ShimEvent *e) {
  for (ShimCapture *c = shim.streams.captures; c; c = c->next)
    if (c == e->capture && c->id == e->capture_id) return c;
  return NULL;
}

static cudaError_t join(ShimStream *s, const ShimEvent *e, ShimCapture *c) {
  if (c->broken) return cudaErrorInvalidValue;
  if (s == &shim.streams.legacy) return c->broken = true, cudaErrorStreamCaptureImplicit;
  if (s->capture && s->capture != c) return s->capture->broken = true, cudaErrorStreamCaptureMerge;
  if (!s->capture) s->last.count = 0;
  s->capture = c;
  for (size_t i = 0; i < e->last.count; i++)
    if (!shim_list_add(&s->last, e->last.nodes[i])) return cudaErrorMemoryAllocation;
  return cudaSuccess;
}

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t handle, unsigned flags) {
  ShimEvent *e = shim_find(handle, SHIM_EVENT);
  ShimStream *s = shim_stream(stream);
  if (flags & ~(unsigned)cudaEventWaitExternal) return cudaErrorInvalidValue;
  if (!e || !s) return cudaErrorInvalidResourceHandle;
  bool outside = flags & cudaEventWaitExternal;
  ShimCapture *c = outside ? NULL : live_capture(e);
  if (c) return join(s, e, c);
  if (s->capture && !outside) return s->capture->broken = true, cudaErrorStreamCaptureIsolation;
  ShimWork work = {.type = cudaGraphNodeTypeWaitEvent, .event = e};
  return shim_submit(stream, &work);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  SHIM_CALL(wait_event(stream, event, flags));
}
SHIM_ALIAS(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz);

// `now`: does not wait for records that are held.
static cudaError_t wait_for_event(cudaEvent_t handle, bool now) {
  ShimEvent *e = shim_find(handle, SHIM_EVENT);
  if (!e) return cudaErrorInvalidResourceHandle;
  ShimCapture *c = live_capture(e);
  if (c) return c->broken = true, cudaErrorCapturedEvent;
  shim_event_keep(e);
  if (e->held) shim_go_on();
  while (e->held && !now && !shim.watch.interrupt) shim_pause();
  bool held = e->held;
  shim_event_drop(e);
  if (held) return cudaErrorNotReady;
  if (e->recorded && e->time > shim.streams.time) shim.streams.time = e->time;
  shim_show_printed();
  return shim.fault;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  SHIM_CALL(wait_for_event(event, false));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  SHIM_CALL(wait_for_event(event, true));
}

static cudaError_t elapsed(float *ms, cudaEvent_t from, cudaEvent_t to) {
  ShimEvent *a = shim_find(from, SHIM_EVENT), *b = shim_find(to, SHIM_EVENT);
  if (!ms) return cudaErrorInvalidValue;
  if (!a || !b || !a->recorded || !b->recorded) return cudaErrorInvalidResourceHandle;
  if ((a->flags | b->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
  if (a->held || b->held) return cudaErrorNotReady;
  *ms = (float)((b->time - a->time) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  SHIM_CALL(elapsed(ms, from, to));
}
