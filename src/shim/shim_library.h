// How libraries that compute on the host (src/blas, src/rand, src/sparse) work on the emulated device: what they call of
// libcudart.so.13. No types of CUDA's, so that they build without its headers.
#ifndef SOL_SHIM_LIBRARY_H
#define SOL_SHIM_LIBRARY_H

#include "base/port.h"
#include "sol/dtype.h"

enum { SHIM_LIBRARY_USES = 4 };

typedef struct ShimLibraryUse { // memory of the device that a call uses, as one range
  const void *at;
  size_t bytes; // from the first to the last
  bool wrote;
} ShimLibraryUse;

typedef struct ShimLibraryCost { // what a call needs at least
  double read, written, flops;   // bytes that it has to move, not the ranges'
  SolDtype dtype;                // of the arithmetic
  bool tensor;                   // tensor cores do it, where the device has them
  ShimLibraryUse uses[SHIM_LIBRARY_USES];
} ShimLibraryCost;

// A call's work: computes, and says what it cost. False: memory that it was given is not there.
typedef bool ShimLibraryWork(void *arguments, ShimLibraryCost *cost);

typedef enum ShimLibraryResult {
  SHIM_LIBRARY_DONE,
  SHIM_LIBRARY_NO_DEVICE, // or an earlier kernel failed
  SHIM_LIBRARY_NO_STREAM,
  SHIM_LIBRARY_NO_MEMORY, // of the host
  SHIM_LIBRARY_BAD_MEMORY
} ShimLibraryResult;

#define SHIM_LIBRARY_API __attribute__((visibility("default")))
// Runs the work on the stream: now, or, where the stream is being captured, as often as the graph is launched. The
// arguments are copied; the name is a literal.
SHIM_LIBRARY_API ShimLibraryResult __cudaSolLibraryCall(const char *name, void *stream, ShimLibraryWork *work,
                                                        const void *arguments, size_t bytes);
// Where the host finds memory that kernels can use; NULL, with a message: not so many bytes are allocated there.
SHIM_LIBRARY_API void *__cudaSolLibraryMemory(const char *name, const void *pointer, size_t bytes);
// The same without a message: a pointer of the host's own is returned as it is.
SHIM_LIBRARY_API void *__cudaSolLibraryEither(const void *pointer, size_t bytes);
SHIM_LIBRARY_API void __cudaSolLibraryMissing(const char *name, char *warned);

#endif
