// libcudart on the emulator: the common part of its entry points, and its state.
//
// An entry point acquires the lock, opens the emulated device on the first call, does its work and records its
// error, all through SHIM_CALL. Work on streams is executed when it is enqueued, which is one of the orders that
// CUDA allows; while a stream is being captured the same ShimWork becomes a node of a graph instead.
//
// The runtime API has no context argument: `shim` below is the only mutable global of the tree. It is never
// destroyed, so that calls from exit handlers and late destructors still work.
#ifndef SOL_SHIM_SHIM_H
#define SOL_SHIM_SHIM_H

#include <pthread.h>

#include "shim/shim_memory.h"
#include "shim/shim_objects.h"
#include "shim/shim_watch.h"
#include "sol/device.h"

typedef struct Shim {
  pthread_mutex_t lock;
  bool opened;
  cudaError_t refused; // the device could not be opened
  const SolDevice *device;
  SolDriver *driver;
  SolEmu *emu;
  cudaError_t fault; // of a kernel; until cudaDeviceReset
  bool fault_returned;
  ShimTable table;
  size_t limits[8];
  unsigned device_flags;
  pid_t owner;
  bool runtime_used; // by other calls than the driver's: the primary context is current where none else is
  unsigned long long contexts; // of the driver's interface, made so far
  ShimPrograms programs;
  ShimStreams streams;
  ShimPools pools;
  ShimWatch watch;
  size_t physical_bytes; // memory that cuMemCreate made
} Shim;
extern Shim shim;

// Above 0 while this thread is in a call of the driver's interface (src/libcuda): what the runtime does for it leaves no
// last error behind.
extern _Thread_local int shim_driver_calls;
// libcuda/cu_proc.c: the driver's function of that name as CUDA `version` has it (13000); NULL: there is none.
void *shim_driver_entry(const char *symbol, int version);

cudaError_t shim_enter(void); // locks; returns the error that the call must return at once, or cudaSuccess
void shim_lock(void);         // without opening the device
cudaError_t shim_leave(cudaError_t error);
#define SHIM_CALL(work)                                                                                      \
  do {                                                                                                       \
    cudaError_t shim_error_ = shim_enter();                                                                  \
    if (!shim_error_) shim_error_ = (work);                                                                  \
    return shim_leave(shim_error_);                                                                          \
  } while (0)
// Runs a function of the program (a callback) with the lock released.
void shim_call_out(void (*function)(void *), void *argument);
cudaError_t shim_last_error(bool clear);
void shim_set_fault(cudaError_t error);
void shim_show_printed(void);
void shim_print(void *ctx, const char *text, size_t length);
void shim_note(const char *format, ...) SOL_PRINTF(1, 2); // "sol: ..." on standard error
// An entry point that is not implemented was called: notes it, once, and tells the audit. Takes the lock, and opens the
// device where this call is the first.
void shim_missing(const char *name, char *warned);
// For an unsupported call: prints the emulator's message and returns the error.
cudaError_t shim_refuse(cudaError_t error, const char *what, const SolError *err);

// The same entry point for programs built with a default stream per thread.
#define SHIM_ALIAS(name, other)                                                                              \
  extern __typeof__(name) other __attribute__((alias(#name), visibility("default")))

static inline uint64_t shim_address(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}
static inline void *shim_pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

#endif
