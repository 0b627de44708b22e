// Device memory. Addresses are never reused, so that a use after free is recognised; a gap after each allocation
// keeps overruns out of the next one.
#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "emu/core/state.h"

EmuAlloc *emu_nearest_alloc(const SolEmu *emu, uint64_t address) {
  uint32_t low = 0, high = emu->alloc_count; // first whose base is above address
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (emu->allocs[mid]->base <= address)
      low = mid + 1;
    else
      high = mid;
  }
  if (!emu->alloc_count) return NULL;
  if (!low) return emu->allocs[0];
  EmuAlloc *below = emu->allocs[low - 1];
  if (low == emu->alloc_count || address - below->base < below->size) return below;
  EmuAlloc *above = emu->allocs[low];
  return above->base - address < address - (below->base + below->size) ? above : below;
}

EmuAlloc *emu_find_alloc(const SolEmu *emu, uint64_t address) {
  EmuAlloc *a = emu_nearest_alloc(emu, address);
  return a && address >= a->base && address - a->base < a->size ? a : NULL;
}

EmuAlloc *emu_add_alloc(SolEmu *emu, uint64_t bytes, const char *label) {
  uint64_t size = bytes ? bytes : 1;
  if (size > emu->machine.mem_bytes - emu->bytes_used || size > SIZE_MAX - 4096) return NULL;
  if (size + EMU_GAP + EMU_ALIGN > EMU_SHARED_WINDOW - emu->next_base) return NULL; // no more addresses
  if (!emu_reserve_alloc(emu)) return NULL;
  EmuAlloc *a = sol_heap_alloc(sizeof *a);
  uint8_t *block = sol_heap_alloc((size_t)size + 64);
  if (!a || !block) {
    sol_heap_free(a);
    sol_heap_free(block);
    return NULL;
  }
  *a = (EmuAlloc){.base = emu->next_base, .size = size, .block = block};
  a->host = block + (64 - (uintptr_t)block % 64) % 64;
  emu_use_large_pages(block, (size_t)size);
  memset(a->host, 0, (size_t)size);
  sol_format(a->label, sizeof a->label, "%s", label ? label : "");
  emu->next_base += (size + EMU_GAP + EMU_ALIGN - 1) / EMU_ALIGN * EMU_ALIGN;
  emu->bytes_used += size;
  emu_insert_alloc(emu, a);
  return a;
}

void emu_drop_alloc(SolEmu *emu, EmuAlloc *a) {
  if (a->freed) return;
  a->freed = true;
  a->freed_at = ++emu->frees;
  if (!a->mapped && !a->placed) emu->bytes_used -= a->size;
  sol_heap_free(a->block);
  sol_heap_free(a->init);
  sol_heap_free(a->pieces);
  a->block = a->host = a->init = NULL;
  a->pieces = NULL;
}

SolStatus sol_emu_alloc(SolEmu *emu, uint64_t bytes, const char *label, uint64_t *address, SolError *err) {
  EmuAlloc *a = emu_add_alloc(emu, bytes, label);
  if (!a)
    return sol_fail(err, SOL_ERR_NO_SPACE, "cannot allocate %llu bytes of device memory",
                    (unsigned long long)bytes);
  if (emu->machine.track_init) {
    size_t bits = (size_t)((a->size + 7) / 8);
    a->init = sol_heap_alloc(bits);
    if (a->init) memset(a->init, 0, bits);
  }
  *address = a->base;
  return SOL_OK;
}

SolStatus sol_emu_free(SolEmu *emu, uint64_t address, SolError *err) {
  if (!address) return SOL_OK;
  EmuAlloc *a = emu_find_alloc(emu, address);
  if (!a || a->base != address || a->heap || a->variable || a->placed)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx is not the start of an allocation",
                    (unsigned long long)address);
  if (a->freed)
    return sol_fail(err, SOL_ERR_ARGUMENT, "0x%llx was freed before", (unsigned long long)address);
  emu_drop_alloc(emu, a);
  return SOL_OK;
}

static EmuAlloc *range(SolEmu *emu, uint64_t address, uint64_t bytes, SolError *err) {
  EmuAlloc *a = emu_find_alloc(emu, address);
  if (a && !a->freed && bytes <= a->size - (address - a->base)) return a;
  sol_fail(err, SOL_ERR_ARGUMENT, "[0x%llx, +%llu) is not inside one live allocation",
           (unsigned long long)address, (unsigned long long)bytes);
  return NULL;
}

void *sol_emu_host(SolEmu *emu, uint64_t address, uint64_t bytes) {
  EmuAlloc *a = range(emu, address, bytes, NULL);
  emu->changes++;
  return a ? a->host + (address - a->base) : NULL;
}

static void mark(EmuAlloc *a, uint64_t from, uint64_t bytes) {
  if (!a->init) return;
  for (uint64_t i = from; i < from + bytes; i++) {
    if (i % 8 == 0 && from + bytes - i >= 8) {
      a->init[i / 8] = 255;
      i += 7;
    } else
      a->init[i / 8] |= (uint8_t)(1u << i % 8);
  }
}

// Of what was not written, the copy is not either.
static void mark_copy(EmuAlloc *a, uint64_t to, const EmuAlloc *b, uint64_t from, uint64_t bytes) {
  if (!a->init) return;
  for (uint64_t k = 0; k < bytes; k++) {
    uint64_t d = to + k, s = from + k;
    unsigned written = b->init ? b->init[s / 8] >> s % 8 & 1 : 1;
    a->init[d / 8] = (uint8_t)((a->init[d / 8] & ~(1u << d % 8)) | written << d % 8);
  }
}

void sol_emu_wrote(SolEmu *emu, uint64_t to, uint64_t from, uint64_t bytes) {
  EmuAlloc *a = emu->machine.track_init ? range(emu, to, bytes, NULL) : NULL;
  EmuAlloc *b = a && from ? range(emu, from, bytes, NULL) : NULL;
  if (b)
    mark_copy(a, to - a->base, b, from - b->base, bytes);
  else if (a)
    mark(a, to - a->base, bytes);
}

SolStatus sol_emu_write(SolEmu *emu, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  if (!bytes) return SOL_OK;
  EmuAlloc *a = range(emu, to, bytes, err);
  if (!a) return SOL_ERR_ARGUMENT;
  memcpy(a->host + (to - a->base), from, (size_t)bytes);
  emu->changes++;
  mark(a, to - a->base, bytes);
  return SOL_OK;
}

SolStatus sol_emu_read(SolEmu *emu, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  if (!bytes) return SOL_OK;
  EmuAlloc *a = range(emu, from, bytes, err);
  if (!a) return SOL_ERR_ARGUMENT;
  memcpy(to, a->host + (from - a->base), (size_t)bytes);
  return SOL_OK;
}

SolStatus sol_emu_fill(SolEmu *emu, uint64_t to, const void *pattern, uint32_t pattern_bytes, uint64_t count,
                       SolError *err) {
  if (!count || !pattern_bytes) return SOL_OK;
  if (count > UINT64_MAX / pattern_bytes) return sol_fail(err, SOL_ERR_RANGE, "too many bytes to fill");
  EmuAlloc *a = range(emu, to, count * pattern_bytes, err);
  if (!a) return SOL_ERR_ARGUMENT;
  uint8_t *at = a->host + (to - a->base);
  for (uint64_t i = 0; i < count; i++) memcpy(at + i * pattern_bytes, pattern, pattern_bytes);
  emu->changes++;
  mark(a, to - a->base, count * pattern_bytes);
  return SOL_OK;
}

SolStatus sol_emu_copy(SolEmu *emu, uint64_t to, uint64_t from, uint64_t bytes, SolError *err) {
  if (!bytes) return SOL_OK;
  EmuAlloc *a = range(emu, to, bytes, err), *b = range(emu, from, bytes, err);
  if (!a || !b) return SOL_ERR_ARGUMENT;
  memmove(a->host + (to - a->base), b->host + (from - b->base), (size_t)bytes);
  emu->changes++;
  mark_copy(a, to - a->base, b, from - b->base, bytes);
  return SOL_OK;
}

// ---- what is in memory ----

typedef struct Digest {
  uint64_t lane[4];
} Digest;

static inline void mix(uint64_t *lane, uint64_t word) {
  uint64_t h = (*lane ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  *lane = h << 31 | h >> 33;
}

static void digest(Digest *d, const EmuAlloc *a) {
  Digest now = *d;
  uint64_t words[4], size = a->size, at = 0;
  for (; size - at >= sizeof words; at += sizeof words) {
    memcpy(words, a->host + at, sizeof words);
    for (int k = 0; k < 4; k++) mix(&now.lane[k], words[k]);
  }
  memset(words, 0, sizeof words);
  memcpy(words, a->host + at, (size_t)(size - at));
  for (int k = 0; k < 4; k++) mix(&now.lane[k], words[k]);
  *d = now;
}

uint64_t sol_emu_digest(const SolEmu *emu, const SolEmuRange *ranges, uint32_t count) {
  Digest d = {{1, 2, 3, 4}};
  const EmuAlloc *a;
  if (emu->heap) return 0;
  for (uint32_t i = 0; i < count; i++) {
    a = emu_find_alloc(emu, ranges[i].address);
    if (!a || !a->block || a->base != ranges[i].address || a->size != ranges[i].bytes) return 0;
  }
  for (uint32_t i = 0; i < count; i++) digest(&d, emu_find_alloc(emu, ranges[i].address));
  for (uint32_t i = 0; i < emu->alloc_count; i++)
    if (emu->allocs[i]->constant && !emu->allocs[i]->freed) digest(&d, emu->allocs[i]);
  for (int k = 1; k < 4; k++) mix(&d.lane[0], d.lane[k]);
  return d.lane[0] ? d.lane[0] : 1;
}

uint64_t sol_emu_changes(const SolEmu *emu) {
  return emu->changes + emu->frees;
}
