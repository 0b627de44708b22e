// Memory that programs allocate: device memory, and host memory that kernels can access.
#ifndef SOL_SHIM_MEMORY_H
#define SOL_SHIM_MEMORY_H

#include "base/port.h"

#pragma GCC visibility push(default) // what the toolkit's headers declare is what this library exports
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

size_t shim_memory_left(void); // of the emulated GPU: what neither allocations nor cuMemCreate took
cudaError_t shim_alloc(size_t bytes, void **out);
cudaError_t shim_free(void *memory);
cudaError_t shim_free_host(void *memory);
void shim_pool_forget(void *memory, uint64_t bytes); // pool.c: it was freed, and may have been a pool's
typedef enum ShimShared { SHIM_PINNED, SHIM_MANAGED, SHIM_REGISTERED } ShimShared;
typedef struct ShimHost {
  void *memory;
  size_t bytes, room; // room: size of the block it was taken from; 0: not allocated by the shim
  ShimShared kind;
  unsigned flags;
  struct ShimHost *next_managed;
  uint8_t *at_device; // managed: sol_emu_watch_pages
  bool in_file;       // managed: its pages keep what they hold when they are unmapped
} ShimHost;
cudaError_t shim_host_alloc(size_t bytes, ShimShared kind, unsigned flags, void **out);
// Zeroed memory at a place kernels can have it too; managed: of which the system tells which pages the host has touched.
void *shim_host_take(size_t bytes, bool managed, size_t *room);
bool shim_host_in_file(void); // managed memory is
void shim_host_give(void *memory, bool managed, size_t room);
size_t shim_host_available(void); // bytes this machine has left
// Whether this machine has so many left; the system is queried only for large ones.
bool shim_fits_here(size_t bytes);

// managed.c: which pages of managed memory the device has.
void shim_managed_add(ShimHost *host);
void shim_managed_remove(ShimHost *host);
void shim_managed_before(void); // before and after whatever the shim itself does to memory
void shim_managed_after(void);
void shim_managed_move(const void *memory, size_t bytes, bool to_device);

typedef struct ShimPools { // of the one `shim`
  struct ShimPool *pool, *current_pool;
} ShimPools;

void shim_shared_forget(void *memory); // ipc.c: it was freed

#endif
