// Entry points of the runtime that are not implemented: each prints its name, once, and fails. So a program that
// links but never calls them runs, and one that calls them prints why it fails.
#include "shim/shim.h"

void shim_note_missing(const char *name) {
  shim_note("this program calls %s, which the emulator does not support yet", name);
}

static cudaError_t missing(const char *name, char *warned) {
  shim_lock();
  if (!*warned) shim_note_missing(name);
  if (!*warned) shim_observe_missing(name);
  *warned = 1;
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
  shim_lock();
  shim_note_missing(name);
  return shim_leave(cudaErrorNotSupported);
}
