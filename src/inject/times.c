// Times of kernels by CUPTI activity: records come in buffers, on a thread of CUPTI's.
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"

enum {
  BUFFER_BYTES = 1 << 20,
  FLUSH_MS = 100 // so that of a program that is killed no more than that is lost
};

static void asked(uint8_t **buffer, size_t *size, size_t *most_records) {
  *buffer = aligned_alloc(8, BUFFER_BYTES);
  *size = *buffer ? BUFFER_BYTES : 0;
  *most_records = 0; // as many as fit
}

// The callback has chosen already. What it cannot look into, some graphs, is not part of a choice by number.
static bool wants_uncounted(Inject *in, const CuptiKernel *k) {
  ProfileFilter by_name = {.kernels = in->filter.kernels};
  return !inject_limited(in) && profile_takes(&by_name, k->name);
}

static void take_kernel(Inject *in, const CuptiKernel *k) {
  ProfileLaunch l;
  bool timed = k->end > k->start && k->start;
  if (!k->name) return;
  if (in->counts) { // counters are collected as well, and report the launches that they counted
    if (!timed || inject_was_counted(in, k->correlation) || !wants_uncounted(in, k)) return;
  } else if (!inject_wants(in, k->name)) {
    return;
  }
  profile_launch_clear(&l);
  l.name = k->name;
  for (int i = 0; i < 3; i++) {
    l.grid[i] = (uint32_t)k->grid[i];
    l.block[i] = (uint32_t)k->block[i];
    l.cluster[i] = k->cluster[i];
  }
  l.registers = k->registers;
  l.static_shared = k->static_shared;
  l.dynamic_shared = k->dynamic_shared;
  l.local_bytes = k->local_bytes;
  l.graph = k->graph_node || (in->counts && inject_was_graph(in, k->correlation));
  if (timed) l.seconds = (double)(k->end - k->start) / 1e9;
  inject_tell(in, (int)k->device, &l, false);
}

static void done(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  Inject *in = inject;
  void *record = NULL;
  size_t dropped = 0;
  (void)size;
  if ((long)getpid() == in->pid) {
    while (valid && !in->cupti.activity_next(buffer, valid, &record))
      if (*(const int *)record == CUPTI_KIND_CONCURRENT_KERNEL) take_kernel(in, record);
    if (!in->cupti.activity_dropped(context, stream, &dropped))
      __atomic_add_fetch(&in->lost, dropped, __ATOMIC_RELAXED);
    inject_flush(in);
  }
  free(buffer);
}

// CUPTI by itself delivers only full buffers: of a program that is killed, or that crashes with its GPU
// context, nothing would be left.
static void *flush_now_and_then(void *user) {
  Inject *in = user;
  const struct timespec pause = {0, FLUSH_MS * 1000000L};
  for (;;) {
    nanosleep(&pause, NULL);
    in->cupti.activity_flush(0);
  }
  return NULL;
}

static void start_thread(Inject *in) {
  pthread_t thread;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old); // the program's signals are for its own threads
  if (!pthread_create(&thread, NULL, flush_now_and_then, in)) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

SolStatus inject_start_times(Inject *in, SolError *err) {
  const Cupti *u = &in->cupti;
  SolStatus status = cupti_check(u, u->activity_callbacks(asked, done), "kernel times", err);
  if (!status) status = cupti_check(u, u->activity_enable(CUPTI_KIND_CONCURRENT_KERNEL), "kernel times", err);
  if (!status) start_thread(in);
  in->timing = !status;
  return status;
}

void inject_end_times(Inject *in) {
  if (in->timing) in->cupti.activity_flush(CUPTI_FLUSH_FORCED);
}
