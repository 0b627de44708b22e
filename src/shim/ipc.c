// Memory and events of other processes on this machine. Memory whose handle is taken moves into a file without a name, which
// the other process opens through /proc and puts at addresses of its own device. Work is executed when it is enqueued, so that
// another process finds every event complete.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"

#define MEMORY_MARK UINT64_C(0x534f4c49504d454d)
#define EVENT_MARK  UINT64_C(0x534f4c4950455654)

typedef struct Handle { // what a cudaIpcMemHandle_t or cudaIpcEventHandle_t holds
  uint64_t mark, bytes, file;
  int32_t process, descriptor;
} Handle;
_Static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t) && sizeof(Handle) <= sizeof(cudaIpcEventHandle_t),
               "it fits");

typedef struct Shared { // memory of this process that others may open, or of another
  void *host;
  size_t bytes;
  uint64_t file;  // its number in the file system
  int descriptor; // -1: of another process
  int32_t process;
  unsigned opened; // times
} Shared;

static size_t pages(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

static void drop(void *address, Shared *s) {
  shim_remove(address, SHIM_SHARED);
  munmap(s->host, s->bytes);
  if (s->descriptor >= 0) close(s->descriptor);
  free(s);
}

void shim_shared_forget(void *memory) {
  Shared *s = shim_find(memory, SHIM_SHARED);
  if (s) drop(memory, s);
}

// Takes the file, also where it fails. NULL: out of memory.
static Shared *map_file(int file, size_t bytes) {
  struct stat info;
  Shared *s = calloc(1, sizeof *s);
  void *host = MAP_FAILED;
  if (s && file >= 0 && !fstat(file, &info) && (size_t)info.st_size == bytes)
    host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (host == MAP_FAILED) {
    if (file >= 0) close(file);
    free(s);
    return NULL;
  }
  *s = (Shared){.host = host, .bytes = bytes, .file = info.st_ino, .descriptor = file, .process = getpid()};
  return s;
}

static cudaError_t share(void *base, size_t bytes, Shared **out) {
  *out = shim_find(base, SHIM_SHARED);
  if (*out) return (*out)->descriptor < 0 ? cudaErrorInvalidValue : cudaSuccess; // another process's own
  int file = memfd_create("sol shared memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)pages(bytes))) close(file), file = -1;
  Shared *s = map_file(file, pages(bytes));
  if (!s) return cudaErrorMemoryAllocation;
  if (!shim_put(base, SHIM_SHARED, s) || sol_emu_move(shim.emu, shim_address(base), s->host, NULL)) {
    drop(base, s);
    return cudaErrorInvalidValue; // host memory, or a variable
  }
  *out = s;
  return cudaSuccess;
}

// A handle is that of a whole allocation, whichever of its addresses is given.
static cudaError_t get_memory(cudaIpcMemHandle_t *out, void *memory) {
  SolEmuRange range;
  Shared *s;
  if (!out || !sol_emu_range(shim.emu, shim_address(memory), &range) || range.mapped || range.variable)
    return cudaErrorInvalidValue;
  cudaError_t error = share(shim_pointer(range.address), (size_t)range.bytes, &s);
  if (error) return error;
  Handle h = {MEMORY_MARK, range.bytes, s->file, s->process, s->descriptor};
  memset(out, 0, sizeof *out);
  memcpy(out, &h, sizeof h);
  return cudaSuccess;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *memory) {
  SHIM_CALL(get_memory(out, memory));
}

// A handle that is opened once more gives the same address.
static void *opened_before(const Handle *h) {
  for (size_t i = 0; i < shim.table.cap; i++) {
    const ShimEntry *e = &shim.table.entries[i];
    Shared *s = e->kind == SHIM_SHARED ? e->value : NULL;
    if (!s || s->descriptor >= 0 || s->file != h->file || s->process != h->process) continue;
    s->opened++;
    return (void *)(uintptr_t)e->key;
  }
  return NULL;
}

static cudaError_t open_memory(void **out, const cudaIpcMemHandle_t *handle, unsigned flags) {
  Handle h;
  char path[64];
  uint64_t address;
  memcpy(&h, handle, sizeof h);
  if (!out || flags != cudaIpcMemLazyEnablePeerAccess || h.mark != MEMORY_MARK) return cudaErrorInvalidValue;
  if (h.process == getpid()) return cudaErrorDeviceUninitialized; // as a GPU's driver answers
  if ((*out = opened_before(&h))) return cudaSuccess;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h.process, (int)h.descriptor);
  Shared *s = map_file(open(path, O_RDWR | O_CLOEXEC), pages((size_t)h.bytes));
  if (!s) return cudaErrorMapBufferObjectFailed; // the other has freed it, or has ended
  close(s->descriptor);
  s->descriptor = -1;
  bool ok = s->file == h.file && !sol_emu_reserve(shim.emu, s->bytes, 512, &address, NULL) &&
            !sol_emu_place(shim.emu, address, s->host, h.bytes, false, NULL);
  if (!ok || !shim_put(shim_pointer(address), SHIM_SHARED, s)) {
    if (ok) sol_emu_unmap(shim.emu, address, NULL);
    munmap(s->host, s->bytes);
    free(s);
    return cudaErrorMapBufferObjectFailed;
  }
  s->process = h.process;
  s->opened = 1;
  *out = shim_pointer(address);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags) {
  SHIM_CALL(open_memory(out, &handle, flags));
}

static cudaError_t close_memory(void *memory) {
  Shared *s = shim_find(memory, SHIM_SHARED);
  if (!s || s->descriptor >= 0) return cudaErrorInvalidValue;
  if (--s->opened) return cudaSuccess;
  shim_wait_all();
  sol_emu_unmap(shim.emu, shim_address(memory), NULL);
  drop(memory, s);
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void *memory) {
  SHIM_CALL(close_memory(memory));
}

// ---- events ----

static cudaError_t get_event(cudaIpcEventHandle_t *out, cudaEvent_t event) {
  const ShimEvent *e = shim_find(event, SHIM_EVENT);
  if (!out) return cudaErrorInvalidValue;
  if (!e || !(e->flags & cudaEventInterprocess)) return cudaErrorInvalidResourceHandle;
  Handle h = {.mark = EVENT_MARK, .process = getpid()};
  memset(out, 0, sizeof *out);
  memcpy(out, &h, sizeof h);
  return cudaSuccess;
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event) {
  SHIM_CALL(get_event(out, event));
}

static bool is_event(const cudaIpcEventHandle_t *handle, int32_t *process) {
  Handle h;
  memcpy(&h, handle, sizeof h);
  *process = h.process;
  return h.mark == EVENT_MARK;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle) {
  int32_t process;
  if (!out || !is_event(&handle, &process)) SHIM_CALL(cudaErrorInvalidValue);
  if (process == getpid()) SHIM_CALL(cudaErrorDeviceUninitialized);
  return cudaEventCreateWithFlags(out, cudaEventInterprocess | cudaEventDisableTiming);
}
