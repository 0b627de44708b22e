// Work that cannot run yet. Work is executed when it is enqueued, but for what stands behind a wait for a value in memory that
// nobody has written so far (cuStreamWaitValue32): that work, and what waits for it, is held in its stream until the value is there.
// Whoever enqueues work or waits for some looks whether held work can go on.
#include <stdlib.h>
#include <unistd.h>

#include "shim/shim.h"

struct ShimHeld {
  ShimHeld *next;
  uint64_t turn; // in which work was enqueued, of all streams
  ShimWork work; // owns what it has
};

// ---- values ----

static bool has_value(const ShimValue *v, uint64_t now) {
  uint64_t all = v->bytes == 8 ? UINT64_MAX : UINT32_MAX, ahead = (now - v->value) & all;
  switch (v->op) {
  case SHIM_VALUE_GEQ:
    return ahead >> (v->bytes * 8 - 1) == 0; // cyclically: not more than half the range behind
  case SHIM_VALUE_EQ: return now == v->value;
  case SHIM_VALUE_AND: return (now & v->value) != 0;
  default: return (~(now | v->value) & all) != 0;
  }
}

cudaError_t shim_run_value(const ShimValue *v) {
  void *at = sol_emu_host(shim.emu, v->address, v->bytes);
  if (!at) return cudaErrorIllegalAddress; // it was freed meanwhile
  if (v->op == SHIM_VALUE_WRITE) {
    if (v->bytes == 8)
      __atomic_store_n((uint64_t *)at, v->value, __ATOMIC_RELEASE);
    else
      __atomic_store_n((uint32_t *)at, (uint32_t)v->value, __ATOMIC_RELEASE);
    sol_emu_wrote(shim.emu, v->address, 0, v->bytes);
    shim_observe_memory(true, shim_pointer(v->address), v->bytes);
    return cudaSuccess;
  }
  uint64_t now = v->bytes == 8 ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
                               : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
  return has_value(v, now) ? cudaSuccess : cudaErrorNotReady;
}

// ---- streams ----

// The first that is held in a stream that `s` waits for, or in `s` itself: the legacy stream and those that are blocking wait for
// each other.
static uint64_t first_turn(const ShimStream *s, const ShimStream *other) {
  bool legacy = s == &shim.streams.legacy || other == &shim.streams.legacy;
  bool blocking = !((s->flags | other->flags) & cudaStreamNonBlocking);
  return other->held && (s == other || (legacy && blocking)) ? other->held->turn : UINT64_MAX;
}
static bool waits(const ShimStream *s, uint64_t turn) {
  size_t at = 0;
  if (!shim.streams.held) return false;
  if (first_turn(s, &shim.streams.legacy) < turn) return true;
  for (const ShimStream *o; (o = shim_next(SHIM_STREAM, &at));)
    if (first_turn(s, o) < turn) return true;
  return false;
}

bool shim_holds(const ShimStream *s) {
  return waits(s, UINT64_MAX);
}

cudaError_t shim_hold(ShimStream *s, const ShimWork *work) {
  ShimHeld *h = calloc(1, sizeof *h);
  if (!h || !shim_copy_work(&h->work, work)) return free(h), cudaErrorMemoryAllocation;
  h->turn = ++shim.streams.turns;
  if (work->type == cudaGraphNodeTypeEventRecord) work->event->held++;
  ShimHeld **end = &s->held;
  while (*end) end = &(*end)->next;
  *end = h;
  shim.streams.held++;
  return cudaSuccess;
}

// False: it has to wait.
static bool run_first(ShimStream *s) {
  ShimHeld *h = s->held;
  if (s->running || waits(s, h->turn)) return false;
  bool records = h->work.type == cudaGraphNodeTypeEventRecord;
  s->running++;
  shim.streams.going++;
  cudaError_t error =
      h->work.type == cudaGraphNodeTypeMemFree ? shim_free(h->work.freed) : shim_run(s, &h->work);
  shim.streams.going--;
  s->running--;
  if (error == cudaErrorNotReady) return false;
  if (error && !shim.fault) shim_set_fault(error);
  if (records) h->work.event->held--;
  s->held = h->next;
  shim.streams.held--;
  shim_drop_work(&h->work);
  free(h);
  return true;
}

void shim_go_on(void) {
  for (bool again = shim.streams.held != 0; again;) {
    again = shim.streams.legacy.held && run_first(&shim.streams.legacy);
    size_t at = 0;
    for (ShimStream *s; !again && (s = shim_next(SHIM_STREAM, &at));) again = s->held && run_first(s);
  }
}

static void rest(void *unused) {
  (void)unused;
  usleep(100);
}
void shim_pause(void) {
  shim_go_on();
  shim_call_out(rest, NULL); // others may write what is waited for
}

void shim_finish_held(const ShimStream *s) {
  if (shim.streams.going) return; // held work itself
  shim_go_on();
  while (!shim.watch.interrupt && (s ? shim_holds(s) : shim.streams.held != 0)) shim_pause();
}
