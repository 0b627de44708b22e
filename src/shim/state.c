// The lock, the device, errors, and what is printed.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "shim/shim.h"

Shim shim = {.lock = PTHREAD_MUTEX_INITIALIZER, .streams.next_id = 1};
static _Thread_local cudaError_t last_error;
_Thread_local int shim_driver_calls;

void shim_note(const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fflush(stdout); // the program's own lines come first
  fprintf(stderr, "sol: %s%s\n", line, n >= (int)sizeof line ? "..." : "");
}

cudaError_t shim_refuse(cudaError_t error, const char *what, const SolError *err) {
  shim_note("%s: %s%s%s", what, err->message, err->hint[0] ? "; " : "", err->hint);
  return error;
}

// ---- opening ----

static void before_fork(void) {
  pthread_mutex_lock(&shim.lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&shim.lock);
}

static void at_exit(void) {
  if (shim.streams.has_thread_streams)
    pthread_key_delete(shim.streams.thread_streams); // this library may be unloaded
  if (shim.owner != getpid()) return;                // a child that exits has its own program to report for
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->end) o->end(o->ctx);
}

static cudaError_t open_device(void) {
  SolError err = {0};
  const char *name = getenv("SOL_DEVICE"), *workers = getenv("SOL_WORKERS");
  if (sol_device_find(name && *name ? name : "h100-sxm", &shim.device, &err))
    return shim_refuse(cudaErrorNoDevice, "SOL_DEVICE", &err);
  const char *checks = getenv("SOL_SHIM_CHECK");
  SolDriverOptions options = {
      .backend = SOL_BACKEND_EMU, .device = shim.device, .track_init = checks && strstr(checks, "init")};
  if (workers && *workers) {
    char *end;
    long count = strtol(workers, &end, 10);
    if (*end || count < 1 || count > 1024) {
      shim_note("SOL_WORKERS: '%s' is no number of threads", workers);
      return cudaErrorInitializationError;
    }
    options.workers = (int)count;
  }
  const char *order = getenv("SOL_ASYNC_ORDER");
  if (order) shim.watch.async_order = strtoull(order, NULL, 10);
  if (sol_driver_open(&options, &shim.driver, &err))
    return shim_refuse(cudaErrorInitializationError, "the emulator", &err);
  shim.emu = sol_driver_emu(shim.driver);
  shim.owner = getpid();
  shim_report_open();
  pthread_atfork(before_fork, after_fork, after_fork);
  atexit(at_exit);
  return cudaSuccess;
}

void shim_lock(void) {
  pthread_mutex_lock(&shim.lock);
}

cudaError_t shim_enter(void) {
  pthread_mutex_lock(&shim.lock);
  if (!shim_driver_calls) shim.runtime_used = true;
  if (!shim.opened) {
    shim.opened = true;
    shim.refused = open_device();
  }
  if (shim.refused) return shim.refused;
  if (shim.fault) shim.fault_returned = true;
  return shim.fault;
}

cudaError_t shim_leave(cudaError_t error) {
  if (error && error != cudaErrorNotReady && !shim_driver_calls) last_error = error;
  pthread_mutex_unlock(&shim.lock);
  return error;
}

void shim_call_out(void (*function)(void *), void *argument) {
  pthread_mutex_unlock(&shim.lock);
  function(argument);
  pthread_mutex_lock(&shim.lock);
}

bool shim_counts(void) {
  return shim.watch.observers || shim.streams.timed;
}

void shim_observe_memory(bool wrote, const void *at, size_t bytes) {
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->memory) o->memory(o->ctx, wrote, at, bytes);
}

void shim_use_l2(SolL2Use use, const void *at, size_t bytes) {
  if (shim_counts() && !shim.watch.cold && (use == SOL_L2_FREES || shim_on_device(at)))
    sol_emu_l2_use(shim.emu, use, shim_address(at), bytes);
}

void shim_observe(ShimObserver *observer) {
  observer->next = shim.watch.observers;
  shim.watch.observers = observer;
}

void shim_observe_module(uint32_t unit, const char *ptx) {
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->module) o->module(o->ctx, unit, ptx);
}

void shim_observe_missing(const char *what) {
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->missing) o->missing(o->ctx, what);
}

void shim_observe_library(const struct AuditLibraryCall *call) {
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->library) o->library(o->ctx, call);
}

// ---- errors ----

void shim_set_fault(cudaError_t error) {
  if (!shim.fault) shim.fault = error;
}

// A fault shows from the first call on that waits for the kernel, as on a GPU: never at once.
cudaError_t shim_last_error(bool clear) {
  pthread_mutex_lock(&shim.lock);
  cudaError_t error = shim.fault && shim.fault_returned ? shim.fault : last_error;
  if (clear) last_error = cudaSuccess;
  pthread_mutex_unlock(&shim.lock);
  return error;
}

// ---- what kernels print ----

void shim_print(void *ctx, const char *text, size_t length) {
  (void)ctx;
  shim.watch.spoke = true;
  if (!shim.watch.printed) shim.watch.printed = calloc(1, sizeof *shim.watch.printed);
  if (shim.watch.printed) sol_buffer_put(shim.watch.printed, text, length);
}

void shim_show_printed(void) {
  if (!shim.watch.printed || !shim.watch.printed->length) return;
  fwrite(shim.watch.printed->text, 1, shim.watch.printed->length, stdout);
  shim.watch.printed->length = 0;
}
