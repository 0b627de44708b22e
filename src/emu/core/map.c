// Memory that the caller provides. Mapped: host and kernels access it at the same address, the allocation's base is the
// host pointer. Placed: kernels access it at a reserved address of the device.
#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "emu/core/state.h"

// Freed allocations are forgotten many at a time, so that one costs little however many live.
static void forget_freed(SolEmu *emu) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < emu->alloc_count; k++) {
    EmuAlloc *a = emu->allocs[k];
    if (a->freed && emu->frees - a->freed_at >= EMU_FREED_KEPT)
      sol_heap_free(a);
    else
      emu->allocs[kept++] = a;
  }
  emu->alloc_count = kept;
  emu->next_sweep = emu->frees + EMU_FREED_KEPT + kept / 2;
}

bool emu_reserve_alloc(SolEmu *emu) {
  if (emu->frees >= emu->next_sweep) forget_freed(emu);
  if (emu->alloc_count < emu->alloc_cap) return true;
  uint32_t cap = emu->alloc_cap ? emu->alloc_cap * 2 : 64;
  EmuAlloc **grown = sol_heap_realloc(emu->allocs, sizeof *grown * cap);
  if (!grown) return false;
  emu->allocs = grown;
  emu->alloc_cap = cap;
  return true;
}

void emu_insert_alloc(SolEmu *emu, EmuAlloc *a) {
  uint32_t at = emu->alloc_count++;
  for (; at && emu->allocs[at - 1]->base > a->base; at--) emu->allocs[at] = emu->allocs[at - 1];
  emu->allocs[at] = a;
}

static bool provided(const EmuAlloc *a) {
  return a->mapped || a->placed;
}

// What was unmapped stays known as freed until something else is mapped there. False: something lives there.
static bool clear_place(SolEmu *emu, uint64_t base, uint64_t bytes) {
  uint32_t kept = 0;
  bool clear = true;
  for (uint32_t k = 0; k < emu->alloc_count; k++) {
    EmuAlloc *a = emu->allocs[k];
    bool overlaps = a->base < base + bytes && base < a->base + a->size;
    if (overlaps && !(provided(a) && a->freed)) clear = false;
    if (overlaps && provided(a) && a->freed)
      sol_heap_free(a);
    else
      emu->allocs[kept++] = a;
  }
  emu->alloc_count = kept;
  return clear;
}

static EmuAlloc *add_provided(SolEmu *emu, uint64_t base, void *host, uint64_t bytes, const char *label) {
  EmuAlloc *a = emu_reserve_alloc(emu) ? sol_heap_alloc(sizeof *a) : NULL;
  if (!a) return NULL;
  bool mapped = base == (uint64_t)(uintptr_t)host;
  *a = (EmuAlloc){.base = base, .size = bytes, .host = host, .mapped = mapped, .placed = !mapped};
  sol_format(a->label, sizeof a->label, "%s", label ? label : "");
  emu_insert_alloc(emu, a);
  return a;
}

SolStatus sol_emu_map(SolEmu *emu, void *host, uint64_t bytes, const char *label, SolError *err) {
  uint64_t base = (uint64_t)(uintptr_t)host;
  if (!host || !bytes || bytes > UINT64_MAX - base)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no memory to map");
  if (base < EMU_CODE_WINDOW + EMU_WINDOW_BYTES * 2 && base + bytes > EMU_SHARED_WINDOW)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "0x%llx is inside the emulator's address windows",
                    (unsigned long long)base);
  if (!clear_place(emu, base, bytes))
    return sol_fail(err, SOL_ERR_ARGUMENT, "[0x%llx, +%llu) is mapped already", (unsigned long long)base,
                    (unsigned long long)bytes);
  return add_provided(emu, base, host, bytes, label) ? SOL_OK
                                                     : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

void sol_emu_watch_pages(SolEmu *emu, uint64_t address, uint8_t *at_device) {
  EmuAlloc *a = emu_find_alloc(emu, address);
  if (a && a->mapped && !a->freed && a->base == address) a->at_device = at_device;
}

SolStatus sol_emu_reserve(SolEmu *emu, uint64_t bytes, uint64_t align, uint64_t *address, SolError *err) {
  uint64_t room = EMU_SHARED_WINDOW - emu->next_base;
  if (!bytes || !align || bytes > room || align > room - bytes || EMU_GAP > room - bytes - align)
    return sol_fail(err, SOL_ERR_NO_SPACE, "cannot reserve %llu bytes of addresses",
                    (unsigned long long)bytes);
  *address = (emu->next_base + align - 1) / align * align;
  emu->next_base = (*address + bytes + EMU_GAP + EMU_ALIGN - 1) / EMU_ALIGN * EMU_ALIGN;
  return SOL_OK;
}

SolStatus sol_emu_place(SolEmu *emu, uint64_t address, void *host, uint64_t bytes, bool read_only,
                        SolError *err) {
  if (!sol_emu_owns(emu, address) || bytes > emu->next_base - address || !clear_place(emu, address, bytes))
    return sol_fail(err, SOL_ERR_ARGUMENT, "[0x%llx, +%llu) is not reserved, or in use",
                    (unsigned long long)address, (unsigned long long)bytes);
  EmuAlloc *a = add_provided(emu, address, host, bytes, "");
  if (!a) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  a->read_only = read_only;
  return SOL_OK;
}

SolStatus sol_emu_move(SolEmu *emu, uint64_t address, void *host, SolError *err) {
  EmuAlloc *a = emu_find_alloc(emu, address);
  if (!a || a->base != address || a->freed || provided(a) || a->variable || a->heap)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is not the start of an allocation",
                    (unsigned long long)address);
  memcpy(host, a->host, (size_t)a->size);
  emu->changes++;
  sol_heap_free(a->block);
  a->block = NULL;
  a->host = host;
  return SOL_OK;
}

SolStatus sol_emu_unmap(SolEmu *emu, uint64_t address, SolError *err) {
  EmuAlloc *a = emu_find_alloc(emu, address);
  if (!a || !provided(a) || a->variable || a->freed || a->base != address)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is not the start of mapped memory",
                    (unsigned long long)address);
  a->freed = true;
  a->freed_at = ++emu->frees;
  a->host = NULL;
  a->at_device = NULL;
  return SOL_OK;
}

bool sol_emu_range(const SolEmu *emu, uint64_t address, SolEmuRange *out) {
  const EmuAlloc *a = emu_find_alloc(emu, address);
  if (!a || a->freed) return false;
  *out = (SolEmuRange){.address = a->base, .bytes = a->size, .mapped = a->mapped, .variable = a->variable};
  return true;
}

bool sol_emu_owns(const SolEmu *emu, uint64_t address) {
  return address >= EMU_GLOBAL_BASE && address < emu->next_base;
}

uint64_t sol_emu_bytes_used(const SolEmu *emu) {
  return emu->bytes_used;
}

void sol_emu_set_heap(SolEmu *emu, uint64_t bytes) {
  emu->machine.heap_bytes = bytes;
}

void sol_emu_managed_from(SolEmu *emu, void *(*get)(void *ctx, uint64_t bytes), void *ctx) {
  emu->managed = get;
  emu->managed_ctx = ctx;
}

EmuAlloc *emu_add_managed(SolEmu *emu, uint64_t bytes, const char *label) {
  uint64_t size = bytes ? bytes : 1;
  void *host = emu->managed(emu->managed_ctx, size);
  if (!host || !clear_place(emu, (uint64_t)(uintptr_t)host, size)) return NULL;
  return add_provided(emu, (uint64_t)(uintptr_t)host, host, size, label);
}
