// Checks that need a shadow of memory. Races: two warps of a block touch a byte of shared memory, one of them
// writing, with no barrier, fence or mbarrier between. Lanes of one warp are not held against each other.
#include "base/heap.h"
#include "emu/state.h"

typedef struct Byte {
  uint32_t epoch;
  uint8_t writer, reader; // warp + 1; 0: none
  uint8_t readers;        // more than one warp
  uint8_t written;        // ever; bit 1: by an atomic alone
} Byte;

struct EmuShadow {
  uint32_t epoch;
  Byte *bytes;
};

void emu_shadow_barrier(EmuBlock *block) {
  if (block->shadow) block->shadow->epoch++;
}

void emu_shadow_free(EmuBlock *block) {
  if (!block->shadow) return;
  sol_heap_free(block->shadow->bytes);
  sol_heap_free(block->shadow);
  block->shadow = NULL;
}

void emu_shadow_reset(EmuBlock *block) {
  if (!block->shadow) return;
  block->shadow->epoch = 1;
  memset(block->shadow->bytes, 0, sizeof(Byte) * (size_t)block->shared_bytes);
}

static struct EmuShadow *shadow_of(EmuBlock *block) {
  if (block->shadow) return block->shadow;
  struct EmuShadow *s = sol_heap_alloc(sizeof *s);
  Byte *bytes = s ? sol_heap_alloc(sizeof *bytes * (size_t)(block->shared_bytes + 1)) : NULL;
  if (!bytes) {
    sol_heap_free(s);
    return NULL;
  }
  *s = (struct EmuShadow){.bytes = bytes};
  block->shadow = s;
  emu_shadow_reset(block);
  return s;
}

// Whether the access races with an earlier one.
static bool touch(struct EmuShadow *s, Byte *b, uint8_t warp, EmuUse use) {
  if (b->epoch != s->epoch) {
    b->epoch = s->epoch;
    b->writer = b->reader = b->readers = 0;
    b->written &= 1;
  }
  bool atomic = use == EMU_USE_ATOMIC, race = false;
  if (use == EMU_USE_LOAD) {
    race = b->writer && b->writer != warp;
    if (b->reader && b->reader != warp) b->readers = 1;
    b->reader = warp;
    return race;
  }
  race = (b->writer && b->writer != warp && !(atomic && b->written & 2)) ||
         (b->reader && (b->reader != warp || b->readers));
  b->writer = warp;
  b->written = (uint8_t)(1 | (atomic ? 2 : 0));
  return race;
}

static void check_shared(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  unsigned checks = x->launch->launch->checks;
  struct EmuShadow *s = shadow_of(x->block);
  if (!s) return;
  uint8_t *first = x->block->shared;
  for (uint32_t left = acc->shared; left; left &= left - 1) {
    int l = emu_first(left);
    // Another block's shared memory has another shadow; races across blocks are not looked for.
    if (acc->host[l] < first || acc->host[l] >= first + x->block->shared_bytes) continue;
    bool fresh = false, race = false;
    for (uint32_t k = 0; k < bytes; k++) {
      Byte *b = &s->bytes[acc->addr[l] + k];
      fresh = fresh || !b->written;
      race = touch(s, b, (uint8_t)(x->warp->index + 1), use) || race;
    }
    if (race && checks & SOL_EMU_CHECK_RACE)
      emu_find(x, i, 1u << l, SOL_EMU_RACE, acc->addr[l], bytes,
               "shared memory at 0x%llx was used by another warp with no barrier in between",
               (unsigned long long)acc->addr[l]);
    if (fresh && use != EMU_USE_STORE && checks & SOL_EMU_CHECK_INIT)
      emu_find(x, i, 1u << l, SOL_EMU_UNINITIALISED, acc->addr[l], bytes,
               "read of %u bytes at 0x%llx of shared memory, which were never written", bytes,
               (unsigned long long)acc->addr[l]);
  }
}

static void check_global(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  const EmuAlloc *a = NULL;
  for (uint32_t left = acc->mask & ~(acc->shared | acc->local); left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t at = acc->addr[l];
    if (!a || at - a->base >= a->size) a = emu_find_alloc(x->launch->emu, at);
    if (!a || !a->init) continue;
    bool fresh = false;
    for (uint64_t k = at - a->base; k < at - a->base + bytes; k++) {
      uint8_t bit = (uint8_t)(1u << k % 8);
      if (use == EMU_USE_LOAD)
        fresh = fresh || !(__atomic_load_n(&a->init[k / 8], __ATOMIC_RELAXED) & bit);
      else
        fresh = !(__atomic_fetch_or(&a->init[k / 8], bit, __ATOMIC_RELAXED) & bit) || fresh;
    }
    if (fresh && use != EMU_USE_STORE && x->launch->launch->checks & SOL_EMU_CHECK_INIT)
      emu_find(x, i, 1u << l, SOL_EMU_UNINITIALISED, at, bytes,
               "read of %u bytes at 0x%llx, %llu bytes into %s, never written", bytes, (unsigned long long)at,
               (unsigned long long)(at - a->base), a->label[0] ? a->label : "the allocation");
  }
}

void emu_check_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  if (acc->shared) check_shared(x, i, acc, bytes, use);
  if (x->launch->emu->machine.track_init) check_global(x, i, acc, bytes, use);
}
