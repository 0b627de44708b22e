// Checks that use shadow memory. A race: two warps of a block access the same byte of shared memory, one of them
// writes, and there is no barrier, fence or mbarrier between them. Races between lanes of one warp or between
// blocks of a cluster are not reported; writes by other blocks and bulk copies only count as initialisation.
#include "base/heap.h"
#include "emu/core/state.h"

typedef struct Byte {
  uint32_t epoch;
  uint8_t writer, reader; // warp + 1; 0: none
  uint8_t readers;        // more than one warp
  uint8_t written;        // bit 0: ever; bit 1: since the barrier used by atomics or strong accesses alone
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

static bool reads(EmuUse use) {
  return use != EMU_USE_STORE && use != EMU_USE_STRONG_STORE;
}
static bool writes(EmuUse use) {
  return use != EMU_USE_LOAD && use != EMU_USE_STRONG_LOAD;
}

// Whether the access races with an earlier one.
static bool touch(struct EmuShadow *s, Byte *b, uint8_t warp, EmuUse use) {
  if (b->epoch != s->epoch) {
    b->epoch = s->epoch;
    b->writer = b->reader = b->readers = 0;
    b->written &= 1;
  }
  bool atomic = use != EMU_USE_LOAD && use != EMU_USE_STORE, race = false;
  if (use == EMU_USE_LOAD) {
    race = b->writer && b->writer != warp;
    if (b->reader && b->reader != warp) b->readers = 1;
    b->reader = warp;
    return race;
  }
  race = (b->writer && b->writer != warp && !(atomic && b->written & 2)) ||
         (b->reader && (b->reader != warp || b->readers));
  b->writer = warp;
  b->written = (uint8_t)((writes(use) ? 1 : b->written & 1) | (atomic ? 2 : 0));
  return race;
}

// The block of the cluster in whose shared memory that is; NULL: in none's.
static EmuBlock *owner_of(const EmuCtx *x, const uint8_t *host) {
  EmuBlock *b = x->block;
  if ((uintptr_t)host - (uintptr_t)b->shared < b->shared_bytes) return b;
  for (uint32_t k = 0; k < b->unit->count; k++) {
    EmuBlock *other = b->unit->blocks[k];
    if ((uintptr_t)host - (uintptr_t)other->shared < other->shared_bytes) return other;
  }
  return NULL;
}

// Of bytes at `at` of a block's shared memory: whether some were never written; where they are now, they
// count as written.
static bool mark_shared(EmuBlock *owner, uint64_t at, uint64_t bytes, EmuUse use) {
  struct EmuShadow *s = shadow_of(owner);
  bool fresh = false;
  for (uint64_t k = 0; s && k < bytes; k++) {
    fresh = fresh || !(s->bytes[at + k].written & 1);
    if (writes(use)) s->bytes[at + k].written |= 1;
  }
  return fresh;
}

static void find_fresh_shared(EmuCtx *x, const EmuInst *i, int lane, const EmuBlock *owner, uint64_t at,
                              uint64_t bytes) {
  if (!(x->launch->launch->checks & SOL_EMU_CHECK_INIT)) return;
  if (owner == x->block)
    emu_find(x, i, 1u << lane, SOL_EMU_UNINITIALISED, at, bytes,
             "read of %llu bytes at 0x%llx of shared memory, which were never written",
             (unsigned long long)bytes, (unsigned long long)at);
  else
    emu_find(x, i, 1u << lane, SOL_EMU_UNINITIALISED, at, bytes,
             "read of %llu bytes at 0x%llx of the shared memory of block %u of the cluster, which were never "
             "written",
             (unsigned long long)bytes, (unsigned long long)at, owner->rank);
}

static void check_shared(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  unsigned checks = x->launch->launch->checks;
  struct EmuShadow *s = shadow_of(x->block);
  if (!s) return;
  for (uint32_t left = acc->shared; left; left &= left - 1) {
    int l = emu_first(left);
    EmuBlock *owner = owner_of(x, acc->host[l]);
    if (owner && owner != x->block) {
      if (mark_shared(owner, acc->addr[l], bytes, use) && reads(use))
        find_fresh_shared(x, i, l, owner, acc->addr[l], bytes);
      continue;
    }
    bool fresh = false, race = false;
    for (uint32_t k = 0; k < bytes; k++) {
      Byte *b = &s->bytes[acc->addr[l] + k];
      fresh = fresh || !(b->written & 1);
      race = touch(s, b, (uint8_t)(x->warp->index + 1), use) || race;
    }
    if (race && checks & SOL_EMU_CHECK_RACE)
      emu_find(x, i, 1u << l, SOL_EMU_RACE, acc->addr[l], bytes,
               "shared memory at 0x%llx was used by another warp with no barrier in between",
               (unsigned long long)acc->addr[l]);
    if (fresh && reads(use)) find_fresh_shared(x, i, l, x->block, acc->addr[l], bytes);
  }
}

// Of bytes at `at` of an allocation: as mark_shared.
static bool mark_global(const EmuAlloc *a, uint64_t at, uint64_t bytes, EmuUse use) {
  bool fresh = false;
  for (uint64_t k = at - a->base; k < at - a->base + bytes; k++) {
    uint8_t bit = (uint8_t)(1u << k % 8);
    if (!writes(use))
      fresh = fresh || !(__atomic_load_n(&a->init[k / 8], __ATOMIC_RELAXED) & bit);
    else
      fresh = !(__atomic_fetch_or(&a->init[k / 8], bit, __ATOMIC_RELAXED) & bit) || fresh;
  }
  return fresh;
}

static void find_fresh_global(EmuCtx *x, const EmuInst *i, int lane, const EmuAlloc *a, uint64_t at,
                              uint64_t bytes) {
  if (!(x->launch->launch->checks & SOL_EMU_CHECK_INIT)) return;
  emu_find(x, i, 1u << lane, SOL_EMU_UNINITIALISED, at, bytes,
           "read of %llu bytes at 0x%llx, %llu bytes into %s, never written", (unsigned long long)bytes,
           (unsigned long long)at, (unsigned long long)(at - a->base),
           a->label[0] ? a->label : "the allocation");
}

static void check_global(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  const EmuAlloc *a = NULL;
  for (uint32_t left = acc->mask & ~(acc->shared | acc->local); left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t at = acc->addr[l];
    if (!a || at - a->base >= a->size) a = emu_find_alloc(x->launch->emu, at);
    if (!a || !a->init) continue;
    if (mark_global(a, at, bytes, use) && reads(use)) find_fresh_global(x, i, l, a, at, bytes);
  }
}

void emu_check_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  if (acc->shared) check_shared(x, i, acc, bytes, use);
  if (x->launch->emu->machine.track_init) check_global(x, i, acc, bytes, use);
}

void emu_check_bulk(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host, uint64_t address,
                    uint64_t bytes, EmuUse use) {
  EmuBlock *owner = owner_of(x, host);
  if (owner) {
    uint64_t at = (uint64_t)(host - owner->shared);
    if (mark_shared(owner, at, bytes, use) && reads(use)) find_fresh_shared(x, i, lane, owner, at, bytes);
    return;
  }
  const EmuAlloc *a = x->launch->emu->machine.track_init ? emu_find_alloc(x->launch->emu, address) : NULL;
  if (a && a->init && mark_global(a, address, bytes, use) && reads(use))
    find_fresh_global(x, i, lane, a, address, bytes);
}
