// Virtual memory management: addresses are reserved, memory is created, and one is mapped to the other.
//
// Memory is a file without a name, so that several addresses can show the same bytes and other processes can be given
// them; a reservation is a range of the host's addresses into which the files are mapped. What a program may access is
// put at the device's addresses in runs as long as they are, so that copies may cross from one mapping to the next. What the
// host may access is mapped once more, at the address that the device has for it.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcuda/cu.h"

enum { GRAIN = 2 << 20 };

typedef struct Physical { // a CUmemGenericAllocationHandle is its address
  int file;
  size_t bytes;
  unsigned handles, mappings; // it lives until both are 0
  CUmemAllocationProp properties;
} Physical;

typedef struct Mapping {
  uint64_t address;
  size_t bytes;
  Physical *memory;
  CUmemAccess_flags access, by_host;
  struct Mapping *next; // by rising address
} Mapping;

typedef struct Reserved {
  uint64_t address;
  size_t bytes;
  uint8_t *host;
  Mapping *mappings;
} Reserved;

// ---- memory ----

static bool good_properties(const CUmemAllocationProp *p) {
  return p && p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         ((p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && p->location.id == 0) ||
          (p->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
           p->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT));
}

static bool bad_device(const CUmemLocation *at) {
  return at->type == CU_MEM_LOCATION_TYPE_DEVICE && at->id != 0;
}

static cudaError_t granularity(size_t *out, const CUmemAllocationProp *p, unsigned option) {
  if (!out || !p || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return cudaErrorInvalidValue;
  *out = GRAIN;
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemGetAllocationGranularity,
          (size_t * out, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option),
          granularity(out, properties, option))

static Physical *physical_of(CUmemGenericAllocationHandle handle) {
  Physical *p = shim_find(shim_pointer(handle), SHIM_PHYSICAL);
  return p && p->handles ? p : NULL;
}

static void drop_physical(Physical *p) {
  if (p->handles || p->mappings) return;
  shim.physical_bytes -= p->bytes;
  shim_remove(p, SHIM_PHYSICAL);
  close(p->file);
  free(p);
}

// Takes the file, also where it fails.
static cudaError_t keep_physical(int file, size_t bytes, const CUmemAllocationProp *properties,
                                 CUmemGenericAllocationHandle *out) {
  Physical *p = file >= 0 ? calloc(1, sizeof *p) : NULL;
  if (!p || !shim_put(p, SHIM_PHYSICAL, p)) {
    if (file >= 0) close(file);
    free(p);
    return cudaErrorMemoryAllocation;
  }
  *p = (Physical){.file = file, .bytes = bytes, .handles = 1, .properties = *properties};
  shim.physical_bytes += bytes;
  *out = shim_address(p);
  return cudaSuccess;
}

static cudaError_t create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *p,
                          unsigned long long flags) {
  if (!out || !p || flags || !bytes || bytes % GRAIN) return cudaErrorInvalidValue;
  if (bad_device(&p->location)) return cudaErrorInvalidDevice;
  if (!good_properties(p)) return cudaErrorInvalidValue;
  if (bytes > shim_memory_left() || !shim_fits_here(bytes)) return cudaErrorMemoryAllocation;
  int file = memfd_create("sol device memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes)) close(file), file = -1;
  return keep_physical(file, bytes, p, out);
}
CU_LOCKED(CU_INIT, cuMemCreate,
          (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *properties,
           unsigned long long flags),
          create(out, bytes, properties, flags))

static cudaError_t release(CUmemGenericAllocationHandle handle) {
  Physical *p = physical_of(handle);
  if (!p) return cudaErrorInvalidValue;
  p->handles--;
  drop_physical(p);
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemRelease, (CUmemGenericAllocationHandle handle), release(handle))

static cudaError_t properties_of(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
  const Physical *p = physical_of(handle);
  if (!out || !p) return cudaErrorInvalidValue;
  *out = p->properties;
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemGetAllocationPropertiesFromHandle,
          (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle), properties_of(out, handle))

// ---- memory of other processes ----

static cudaError_t export_file(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                               unsigned long long flags) {
  const Physical *p = physical_of(handle);
  if (!out || !p || flags || !(p->properties.requestedHandleTypes & type)) return cudaErrorInvalidValue;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return cudaErrorNotSupported;
  int copy = dup(p->file);
  if (copy < 0) return cudaErrorOperatingSystem;
  *(int *)out = copy;
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemExportToShareableHandle,
          (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
           unsigned long long flags),
          export_file(out, handle, type, flags))

static cudaError_t import_file(CUmemGenericAllocationHandle *out, void *handle,
                               CUmemAllocationHandleType type) {
  struct stat info;
  int given = (int)(intptr_t)handle;
  if (!out) return cudaErrorInvalidValue;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return cudaErrorNotSupported;
  if (fstat(given, &info) || info.st_size <= 0 || info.st_size % GRAIN) return cudaErrorInvalidValue;
  if ((size_t)info.st_size > shim_memory_left()) return cudaErrorMemoryAllocation;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = type};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return keep_physical(dup(given), (size_t)info.st_size, &properties, out);
}
CU_LOCKED(CU_INIT, cuMemImportFromShareableHandle,
          (CUmemGenericAllocationHandle * out, void *handle, CUmemAllocationHandleType type),
          import_file(out, handle, type))

// ---- addresses ----

static Reserved *reserved_at(uint64_t address, size_t bytes) { // NULL: not within one reservation
  size_t at = 0;
  for (Reserved *r; (r = shim_next(SHIM_RESERVED, &at));)
    if (address >= r->address && address - r->address < r->bytes &&
        bytes <= r->bytes - (address - r->address))
      return r;
  return NULL;
}

static cudaError_t reserve(CUdeviceptr *out, size_t bytes, size_t align, unsigned long long flags) {
  if (!out || !bytes || bytes % GRAIN || flags || (align & (align - 1))) return cudaErrorInvalidValue;
  Reserved *r = calloc(1, sizeof *r);
  void *host = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool ok = r && host != MAP_FAILED &&
            !sol_emu_reserve(shim.emu, bytes, align > GRAIN ? align : GRAIN, &r->address, NULL) &&
            shim_put(shim_pointer(r->address), SHIM_RESERVED, r);
  if (!ok) {
    if (host != MAP_FAILED) munmap(host, bytes);
    free(r);
    return cudaErrorMemoryAllocation;
  }
  r->bytes = bytes;
  r->host = host;
  *out = r->address;
  return cudaSuccess;
}
// The address that a program would like is a hint.
CU_LOCKED(CU_INIT, cuMemAddressReserve,
          (CUdeviceptr * out, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags),
          ((void)hint, reserve(out, bytes, align, flags)))

static cudaError_t free_addresses(uint64_t address, size_t bytes) {
  Reserved *r = shim_find(shim_pointer(address), SHIM_RESERVED);
  if (!r || r->bytes != bytes || r->mappings) return cudaErrorInvalidValue;
  munmap(r->host, r->bytes);
  shim_remove(shim_pointer(address), SHIM_RESERVED);
  free(r);
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemAddressFree, (CUdeviceptr address, size_t bytes), free_addresses(address, bytes))

// ---- mapping ----

static uint8_t *host_of(const Reserved *r, uint64_t address) {
  return r->host + (address - r->address);
}

// The link to the first mapping that ends after an address: where one that begins there goes in the list.
static Mapping **link_at(Reserved *r, uint64_t address) {
  Mapping **at = &r->mappings;
  while (*at && (*at)->address + (*at)->bytes <= address) at = &(*at)->next;
  return at;
}

static bool begins_before(const Mapping *m, uint64_t end) {
  return m && m->address < end;
}

// Memory is mapped whole.
static cudaError_t map(uint64_t address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
  Physical *p = physical_of(handle);
  if (!p || flags || !bytes) return cudaErrorInvalidValue;
  if (offset || bytes != p->bytes) return cudaErrorNotSupported;
  Reserved *r = address % GRAIN ? NULL : reserved_at(address, bytes);
  Mapping **place = r ? link_at(r, address) : NULL;
  if (!place || begins_before(*place, address + bytes)) return cudaErrorInvalidValue;
  Mapping *m = calloc(1, sizeof *m);
  if (!m || mmap(host_of(r, address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file,
                 (off_t)offset) == MAP_FAILED)
    return free(m), cudaErrorMemoryAllocation;
  *m = (Mapping){.address = address, .bytes = bytes, .memory = p, .next = *place};
  *place = m;
  p->mappings++;
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemMap,
          (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
           unsigned long long flags),
          map(address, bytes, offset, handle, flags))

// The first mapping of a range that whole mappings fill from end to end; NULL: they do not.
static Mapping *mappings_of(const Reserved *r, uint64_t address, size_t bytes) {
  Mapping *first = r ? r->mappings : NULL;
  while (first && first->address != address) first = first->next;
  uint64_t end = address;
  for (const Mapping *m = first; m && m->address == end && end < address + bytes; m = m->next)
    end += m->bytes;
  return bytes && end == address + bytes ? first : NULL;
}

// Takes all that kernels can access from the device, or gives it to it in runs.
static void hide(const Reserved *r) {
  SolEmuRange range;
  for (const Mapping *m = r->mappings; m; m = m->next)
    if (sol_emu_range(shim.emu, m->address, &range) && range.address == m->address)
      sol_emu_unmap(shim.emu, m->address, NULL);
}
static cudaError_t show(const Reserved *r) {
  for (const Mapping *m = r->mappings; m;) {
    uint64_t start = m->address, end = start;
    CUmemAccess_flags access = m->access;
    for (; m && access && m->access == access && m->address == end; m = m->next) end += m->bytes;
    if (end == start)
      m = m->next;
    else if (sol_emu_place(shim.emu, start, host_of(r, start), end - start,
                           access == CU_MEM_ACCESS_FLAGS_PROT_READ, NULL))
      return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

// False: something of the program's is there, or the kernel refuses.
static bool show_host(Mapping *m, CUmemAccess_flags access) {
  void *at = shim_pointer(m->address);
  if (m->by_host) munmap(at, m->bytes);
  m->by_host = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (!access) return true;
  int prot = access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE;
  void *got = mmap(at, m->bytes, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, m->memory->file, 0);
  if (got == at) m->by_host = access;
  if (got != at && got != MAP_FAILED) munmap(got, m->bytes); // an old kernel takes the address for a hint
  return got == at;
}

// Whole mappings, and nothing where there are none.
static cudaError_t unmap(uint64_t address, size_t bytes) {
  Reserved *r = bytes ? reserved_at(address, bytes) : NULL;
  if (!r) return cudaErrorInvalidValue;
  Mapping **link = link_at(r, address);
  if (!begins_before(*link, address + bytes)) return cudaSuccess;
  if ((*link)->address < address) return cudaErrorInvalidValue;
  for (const Mapping *m = *link; m && m->address < address + bytes; m = m->next)
    if (m->address + m->bytes > address + bytes) return cudaErrorInvalidValue;
  shim_wait_all();
  hide(r);
  for (Mapping *m = *link; m && m->address < address + bytes; m = *link) {
    *link = m->next;
    // Where this fails the pages stay the host's; kernels and copies do not reach them any more.
    (void)mmap(host_of(r, m->address), m->bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    show_host(m, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    shim_use_l2(SOL_L2_FREES, shim_pointer(m->address), m->bytes);
    m->memory->mappings--;
    drop_physical(m->memory);
    free(m);
  }
  return show(r);
}
CU_LOCKED(CU_INIT, cuMemUnmap, (CUdeviceptr address, size_t bytes), unmap(address, bytes))

// ---- access ----

static bool good_access(const CUmemAccessDesc *d) {
  bool known = d->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || d->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
               d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return known && d->location.type != CU_MEM_LOCATION_TYPE_INVALID;
}

static cudaError_t set_access(uint64_t address, size_t bytes, const CUmemAccessDesc *what, size_t count) {
  const Reserved *r = reserved_at(address, bytes);
  if (!what || !count || !r) return cudaErrorInvalidValue;
  Mapping *first = mappings_of(r, address, bytes);
  if (!first) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    if (bad_device(&what[i].location) || !good_access(&what[i])) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    for (const Mapping *m = first; m && m->address < address + bytes; m = m->next)
      if (what[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
          m->memory->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return cudaErrorInvalidValue; // the host cannot reach it
  hide(r);
  bool fine = true;
  for (size_t i = 0; i < count; i++)
    for (Mapping *m = first; m && m->address < address + bytes; m = m->next)
      if (what[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        m->access = what[i].flags;
      else
        fine = show_host(m, what[i].flags) && fine;
  cudaError_t error = show(r);
  return fine ? error : cudaErrorNotSupported;
}
CU_LOCKED(CU_INIT, cuMemSetAccess,
          (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *what, size_t count),
          set_access(address, bytes, what, count))

static const Mapping *mapping_at(uint64_t address) {
  const Reserved *r = reserved_at(address, 1);
  const Mapping *m = r ? r->mappings : NULL;
  while (m && (address < m->address || address - m->address >= m->bytes)) m = m->next;
  return m;
}

bool cu_mapping_at(uint64_t address, SolEmuRange *out) {
  shim_lock();
  const Mapping *m = mapping_at(address);
  if (m) *out = (SolEmuRange){.address = m->address, .bytes = m->bytes};
  shim_leave(cudaSuccess);
  return m;
}

static cudaError_t get_access(unsigned long long *out, const CUmemLocation *where, uint64_t address) {
  const Mapping *m = mapping_at(address);
  if (!out || !where || !m) return cudaErrorInvalidValue;
  *out = where->type == CU_MEM_LOCATION_TYPE_DEVICE ? m->access : m->by_host;
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemGetAccess, (unsigned long long *out, const CUmemLocation *where, CUdeviceptr address),
          get_access(out, where, address))

static cudaError_t retain(CUmemGenericAllocationHandle *out, const void *address) {
  const Mapping *m = mapping_at(shim_address(address));
  if (!out || !m) return cudaErrorInvalidValue;
  m->memory->handles++;
  *out = shim_address(m->memory);
  return cudaSuccess;
}
CU_LOCKED(CU_INIT, cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void *address),
          retain(out, address))
