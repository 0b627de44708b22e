// Entry points of the runtime that are not implemented: each prints its name, once, and fails. So a program that
// links but never calls them runs, and one that calls them prints why it fails.
#include "shim/shim.h"

void shim_missing(const char *name, char *warned) {
  if (__atomic_exchange_n(warned, 1, __ATOMIC_RELAXED)) return;
  shim_driver_calls++; // it may be the program's first call of all, and is not the runtime's
  shim_enter();
  shim_note("this program calls %s, which the emulator does not support yet", name);
  shim_observe_missing(name);
  shim_leave(cudaSuccess);
  shim_driver_calls--;
}

static cudaError_t missing(const char *name, char *warned) {
  shim_missing(name, warned);
  shim_lock();
  return shim_leave(cudaErrorNotSupported);
}

// Their arguments are not looked at, so that no types are needed: the symbol is given its name in the
// assembler, where no header of the toolkit's contradicts.
#define SHIM_MISSING(entry)                                                                                  \
  __attribute__((visibility("default"))) cudaError_t missing_##entry(void) __asm__(#entry);                  \
  cudaError_t missing_##entry(void) {                                                                        \
    static char warned;                                                                                      \
    return missing(#entry, &warned);                                                                         \
  }
#include "shim/shim_missing.def"

// Where src/redirect leads calls of entry points that neither this file nor any other has: those of a newer runtime
// that is linked into the program.
__attribute__((visibility("default"))) cudaError_t __cudaSolMissing(const char *name);
cudaError_t __cudaSolMissing(const char *name) {
  char warned = 0;
  return missing(name, &warned);
}
