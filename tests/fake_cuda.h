// A CUDA driver without a GPU: it keeps books instead of running kernels, and holds "device" memory on the
// host. A test that calls fake_open() first gets it wherever the library loads libcuda.so.1, in that process
// alone. tests/fake_cuda.c is the driver, built as tests/fake/libcuda.so.1 beside the tests.
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "driver/cuda.h"

// One number for each entry point: FAKE_launch, FAKE_mem_alloc ...
enum {
#define FAKE_NUMBER(field, symbol, parameters) FAKE_##field,
  CUDA_ENTRY_POINTS(FAKE_NUMBER) CUDA_OPTIONAL_ENTRY_POINTS(FAKE_NUMBER)
#undef FAKE_NUMBER
      FAKE_COUNT
};

enum { FAKE_LAUNCHES = 256, FAKE_DEVICES = 2, FAKE_CONTEXTS = FAKE_DEVICES + 1 };

typedef struct FakeLaunch {
  const char *kernel;
  unsigned grid[3], block[3], cluster[3], shared;
  bool early, cooperative;
  uint64_t window, window_bytes; // of accesses that are to stay in L2
  void *stream, *context;
  unsigned char params[512];
  size_t bytes;
} FakeLaunch;

typedef struct FakeContext {
  int device, retained;
} FakeContext;

typedef struct FakeCuda {
  // What a test may set.
  int cc, sms;
  int fail_launch;     // what cuLaunchKernelEx answers, 0: success
  int fail_graph;      // what a graph's run ends with, and from then on calls in its context; 0: success
  const char *missing; // no module has kernels whose name holds this
  // The calling thread's current context, as the driver has it.
  CuResult (*current)(void **context), (*push)(void *context), (*pop)(void **context);
  // What a test may look at.
  int calls[FAKE_COUNT];
  int launches; // the last FAKE_LAUNCHES of them are kept
  FakeLaunch launch[FAKE_LAUNCHES];
  FakeContext contexts[FAKE_CONTEXTS]; // the devices' primary ones, and one more on device 0
  int capturing;                       // streams
  int violations;                      // calls that a capture forbids
  int broken;                          // what calls answer since a graph has failed
  int destroyed_broken;                // things that were to be destroyed after that
  int not_loaded;                      // launches of kernels that cuFuncLoad had not seen
  int modules, functions, allocations; // alive (functions: made)
  int textures, arrays;                // alive
  int promotion;                       // of the last tensor map, as CUtensorMapL2promotion
  size_t persisting;                   // the limit of L2 set apart
  void *copy_stream;                   // of the last copy within memory
} FakeCuda;

// Loads the fake driver before the library looks for one; NULL where it was not built.
static inline FakeCuda *fake_open(const char *program) {
  char path[4096];
  const char *slash = strrchr(program, '/');
  snprintf(path, sizeof path, "%.*s/fake/libcuda.so.1", slash ? (int)(slash - program) : 1,
           slash ? program : ".");
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  return library ? dlsym(library, "fake_cuda") : NULL;
}

#endif
