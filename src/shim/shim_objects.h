// The table of all handles and addresses that a program may pass to the runtime.
#ifndef SOL_SHIM_OBJECTS_H
#define SOL_SHIM_OBJECTS_H

#include "driver/driver.h"

// The kinds of handles and addresses. Every one is looked up in the table, so that an invalid handle is an error
// and not a crash.
typedef enum ShimKind {
  SHIM_FUNCTION = 1, // address of a __global__ function's stub: ShimKernel
  SHIM_VARIABLE,     // address of a __device__ variable's shadow: ShimVariable
  SHIM_KERNEL,       // the rest: the handle is the object
  SHIM_BINARY,
  SHIM_HOST, // start of memory that kernels share with the host: ShimHost
  SHIM_STREAM,
  SHIM_EVENT,
  SHIM_GRAPH,
  SHIM_NODE,
  SHIM_EXEC,
  SHIM_ARRAY,
  SHIM_MIPMAP,
  SHIM_TEXTURE, // handles of the emulator: ShimTexture
  SHIM_SURFACE,
  SHIM_POOL,
  SHIM_POOLED,       // start of an allocation from a pool: ShimPool
  SHIM_CONDITIONAL,  // value of a conditional node
  SHIM_GRAPH_MEMORY, // start of what a graph's node allocates: that graph
  SHIM_USER_OBJECT,
  SHIM_CONTEXT, // the driver's interface: contexts, what they own (start of memory), linker states
  SHIM_OWNED,
  SHIM_LINK,
  SHIM_RESERVED, // start of reserved addresses, and memory to map there (libcuda/cu_map.c)
  SHIM_PHYSICAL,
  SHIM_SHARED,            // start of memory that other processes may open, or that another has (ipc.c)
  SHIM_TEXTURE_REFERENCE, // the driver's: CUtexref, CUsurfref
  SHIM_SURFACE_REFERENCE
} ShimKind;
typedef struct ShimEntry {
  const void *key;
  void *value;
  ShimKind kind;
} ShimEntry;
typedef struct ShimTable { // starts as {0}
  ShimEntry *entries;
  size_t count, cap;
} ShimTable;
void *shim_find(const void *key, ShimKind kind);            // NULL
bool shim_put(const void *key, ShimKind kind, void *value); // replaces; false: out of memory
void shim_remove(const void *key, ShimKind kind);
// The next entry of a kind after *at (starts as 0); NULL at the end.
void *shim_next(ShimKind kind, size_t *at);

#endif
