// Memory that the host and kernels see at the same address: pinned, managed, registered.
//
// Pieces up to a quarter of a chunk are carved out of chunks by powers of two, so that a program that makes
// very many does not run out of the system's mappings; a free piece is used again for one of its size. A gap
// before and after each keeps small overruns from landing in a neighbour.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/shim.h"

enum { CHUNK = 64 << 20, SMALLEST = 512, GAP = 512, CLASSES = 18 };
// Below the emulator's own addresses and far from where systems put things; the same in every run.
#define SHARED_BASE UINT64_C(0x0000080000000000)

typedef struct Carver {
  uint8_t *at, *end;
  void *free_pieces[CLASSES]; // linked through their first words
} Carver;
static Carver carvers[2]; // of managed memory the second; guarded by the shim's lock

size_t shim_host_available(void) {
  unsigned long long kib = 0;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "r");
  while (file && !kib && fgets(line, sizeof line, file)) sscanf(line, "MemAvailable: %llu kB", &kib);
  if (file) fclose(file);
  return kib && kib < SIZE_MAX / 1024 ? (size_t)kib * 1024 : SIZE_MAX / 2; // unknown: let it try
}

bool shim_fits_here(size_t bytes) {
  return bytes < CHUNK || bytes < shim_host_available();
}

// Managed memory is of a file without a name, so that its pages can be unmapped and keep what they hold (managed.c).
static bool without_file; // some of it is not

static int file_of(size_t bytes) {
  int file = -1;
#ifdef MFD_CLOEXEC
  file = memfd_create("managed", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes)) close(file), file = -1;
#endif
  if (file < 0) without_file = true;
  return file;
}

bool shim_host_in_file(void) {
  return !without_file;
}

// Whole pages wherever the system has room, but from a multiple of 2 MiB on. On a read fault Linux maps 64 KiB around it (fault-around), which begin
// with the mapping where that is not aligned: pages of two groups would count as touched (managed.c).
static void *map_anywhere(size_t bytes, int flags, int file) {
  enum { ALIGN = 2 << 20 };
  uint8_t *room = bytes < SIZE_MAX - ALIGN ? mmap(NULL, bytes + ALIGN, PROT_NONE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                           : MAP_FAILED;
  if (room == MAP_FAILED) return MAP_FAILED;
  size_t before = (size_t)(-(uintptr_t)room % ALIGN);
  if (before) munmap(room, before);
  munmap(room + before + bytes, ALIGN - before);
  return mmap(room + before, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0);
}

static void *map_pages(size_t bytes, bool managed) {
  static uint64_t next = SHARED_BASE; // address hint
  int file = managed ? file_of(bytes) : -1,
      flags = (file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_NORESERVE;
#ifdef MAP_FIXED_NOREPLACE
  void *at = mmap(shim_pointer(next), bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, file, 0);
  if (at != MAP_FAILED && at != shim_pointer(next)) munmap(at, bytes), at = MAP_FAILED; // old kernels
#else
  void *at = MAP_FAILED;
#endif
  if (at == MAP_FAILED) at = map_anywhere(bytes, flags, file);
  if (file >= 0) close(file);
  if (at == MAP_FAILED) return NULL;
  next += (bytes + (2u << 20) - 1) / (1u << 20) * (1u << 20);
  return at;
}

static int class_of(size_t bytes) {
  int k = 0;
  while (((size_t)SMALLEST << k) < bytes) k++;
  return k;
}

static void *carve(size_t bytes, bool managed, size_t *room) {
  Carver *carver = &carvers[managed];
  int k = class_of(bytes);
  *room = (size_t)SMALLEST << k;
  void *piece = carver->free_pieces[k];
  if (piece) {
    memcpy(&carver->free_pieces[k], piece, sizeof piece);
    memset(piece, 0, *room);
    return piece;
  }
  if ((size_t)(carver->end - carver->at) < *room + 2 * GAP) {
    carver->at = map_pages(CHUNK, managed);
    carver->end = carver->at ? carver->at + CHUNK : NULL;
    if (!carver->at) return NULL;
  }
  piece = carver->at + GAP;
  carver->at += *room + GAP;
  return piece;
}

void *shim_host_take(size_t bytes, bool managed, size_t *room) {
  if (bytes <= CHUNK / 4) return carve(bytes, managed, room);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (bytes > SIZE_MAX - page) return NULL;
  *room = (bytes + page - 1) / page * page;
  return map_pages(*room, managed);
}

void shim_host_give(void *memory, bool managed, size_t room) {
  Carver *carver = &carvers[managed];
  if (room > CHUNK / 4) {
    munmap(memory, room);
    return;
  }
  int k = class_of(room);
  memcpy(memory, &carver->free_pieces[k], sizeof(void *));
  carver->free_pieces[k] = memory;
}

// ---- blocks ----

static cudaError_t add_block(void *memory, size_t bytes, size_t room, ShimShared kind, unsigned flags) {
  static const char *const labels[] = {"pinned memory", "managed memory", "registered memory"};
  SolError err = {0};
  ShimHost *h = malloc(sizeof *h);
  if (!h || !shim_put(memory, SHIM_HOST, h)) return free(h), cudaErrorMemoryAllocation;
  *h = (ShimHost){.memory = memory, .bytes = bytes, .room = room, .kind = kind, .flags = flags};
  SolStatus status = sol_emu_map(shim.emu, memory, bytes, labels[kind], &err);
  if (!status && kind == SHIM_MANAGED) shim_managed_add(h);
  if (!status) return cudaSuccess;
  shim_remove(memory, SHIM_HOST);
  free(h);
  return status == SOL_ERR_NO_SPACE ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
}

static ShimHost *block_around(const void *memory) {
  SolEmuRange range;
  if (!sol_emu_range(shim.emu, shim_address(memory), &range) || !range.mapped) return NULL;
  return shim_find(shim_pointer(range.address), SHIM_HOST);
}

cudaError_t shim_host_alloc(size_t bytes, ShimShared kind, unsigned flags, void **out) {
  size_t room;
  if (!shim_fits_here(bytes)) return cudaErrorMemoryAllocation;
  void *memory = shim_host_take(bytes, kind == SHIM_MANAGED, &room);
  if (!memory) return cudaErrorMemoryAllocation;
  cudaError_t error = add_block(memory, bytes, room, kind, flags);
  if (error)
    shim_host_give(memory, kind == SHIM_MANAGED, room);
  else
    *out = memory;
  return error;
}

static cudaError_t drop_block(ShimHost *h) {
  sol_emu_unmap(shim.emu, shim_address(h->memory), NULL);
  shim_remove(h->memory, SHIM_HOST);
  if (h->kind == SHIM_MANAGED) shim_managed_remove(h);
  if (h->room) shim_host_give(h->memory, h->kind == SHIM_MANAGED, h->room);
  free(h);
  return cudaSuccess;
}

cudaError_t shim_free_host(void *memory) {
  if (!memory) return cudaSuccess;
  ShimHost *h = shim_find(memory, SHIM_HOST);
  if (!h || h->kind == SHIM_REGISTERED) return cudaErrorInvalidValue;
  shim_wait_all();
  return drop_block(h);
}

// ---- entry points ----

static cudaError_t alloc_pinned(void **out, size_t bytes, unsigned flags) {
  unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (!out || flags & ~known) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? shim_host_alloc(bytes, SHIM_PINNED, flags, out) : cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
  SHIM_CALL(alloc_pinned(out, bytes, 0));
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
  SHIM_CALL(alloc_pinned(out, bytes, flags));
}

cudaError_t cudaFreeHost(void *memory) {
  SHIM_CALL(shim_free_host(memory));
}

static cudaError_t alloc_managed(void **out, size_t bytes, unsigned flags) {
  if (!out || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) return cudaErrorInvalidValue;
  *out = NULL;
  if (!bytes) return cudaSuccess;
  return shim_host_alloc(bytes, SHIM_MANAGED, flags, out);
}

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned flags) {
  SHIM_CALL(alloc_managed(out, bytes, flags));
}

static cudaError_t register_memory(void *memory, size_t bytes, unsigned flags) {
  unsigned known =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (!memory || !bytes || flags & ~known) return cudaErrorInvalidValue;
  ShimHost *h = block_around(memory);
  if (h) return h->kind == SHIM_REGISTERED ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorInvalidValue;
  return add_block(memory, bytes, 0, SHIM_REGISTERED, flags);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags) {
  SHIM_CALL(register_memory(memory, bytes, flags));
}

static cudaError_t unregister_memory(void *memory) {
  ShimHost *h = shim_find(memory, SHIM_HOST);
  if (!memory || (h && h->kind != SHIM_REGISTERED)) return cudaErrorInvalidValue;
  return h ? drop_block(h) : cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaHostUnregister(void *memory) {
  SHIM_CALL(unregister_memory(memory));
}

static cudaError_t device_pointer(void **out, void *memory, unsigned flags) {
  if (!out || flags) return cudaErrorInvalidValue;
  *out = NULL;
  if (!block_around(memory)) return cudaErrorInvalidValue;
  *out = memory;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *memory, unsigned flags) {
  SHIM_CALL(device_pointer(out, memory, flags));
}

static cudaError_t host_flags(unsigned *out, void *memory) {
  ShimHost *h = block_around(memory);
  if (!out || !h || h->kind == SHIM_MANAGED) return cudaErrorInvalidValue;
  *out = h->flags | cudaHostAllocMapped; // with unified addresses all of it is
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *out, void *memory) {
  SHIM_CALL(host_flags(out, memory));
}
