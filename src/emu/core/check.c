// Checks that use shadow memory. A race: two threads of a block access the same byte of shared memory, one of them
// writes, and there is no barrier, fence or mbarrier between them; between lanes of a warp, no bar.warp.sync either,
// whatever its mask. Lanes of one instruction do not race with each other by writing one value; different values are a
// race in global memory too. Races between blocks of a cluster are not reported; writes by other blocks and bulk
// copies only count as initialisation.
#include "base/heap.h"
#include "emu/core/state.h"

enum { OTHER_WARPS = 1, OTHER_LANES = 2 };
typedef struct Byte {
  uint32_t epoch;
  uint32_t write_pc, read_pc, write_serial;
  uint16_t writer, reader;        // thread + 1; 0: none
  uint16_t write_step, read_step; // of their warps
  uint8_t readers;                // besides the reader: OTHER_WARPS, OTHER_LANES of its warp in this step
  uint8_t written; // bit 0: ever; bit 1: since the barrier used by atomics or strong accesses alone
} Byte;

struct EmuShadow {
  uint32_t epoch;
  uint32_t serial;               // of the instruction executed
  uint16_t steps[EMU_MAX_WARPS]; // warp barriers passed
  Byte *bytes;
};

typedef struct Toucher {
  uint16_t thread; // + 1
  uint32_t pc;
  EmuUse use;
} Toucher;
typedef struct Rival { // the earlier access of a race
  uint16_t thread;     // + 1; 0: no race
  uint32_t pc;
  bool wrote;
} Rival;

void emu_shadow_barrier(EmuBlock *block) {
  if (block->shadow) block->shadow->epoch++;
}

void emu_shadow_warp_barrier(EmuBlock *block, uint32_t warp) {
  if (block->shadow) block->shadow->steps[warp]++;
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

// Whether nothing orders an access of `thread`, in this epoch, before one of `now`.
static bool apart(const struct EmuShadow *s, uint16_t thread, uint16_t step, uint16_t now) {
  if (!thread || thread == now) return false;
  uint32_t warp = (thread - 1u) / EMU_LANES;
  return warp != (now - 1u) / EMU_LANES || step == s->steps[warp];
}

static void add_reader(const struct EmuShadow *s, Byte *b, const Toucher *t) {
  uint16_t step = s->steps[(t->thread - 1u) / EMU_LANES];
  bool same_warp = b->reader && (b->reader - 1u) / EMU_LANES == (t->thread - 1u) / EMU_LANES;
  if (b->reader && !same_warp) b->readers = OTHER_WARPS;
  if (same_warp && b->read_step != step) b->readers &= OTHER_WARPS;
  if (same_warp && b->read_step == step && b->reader != t->thread) b->readers |= OTHER_LANES;
  b->reader = t->thread;
  b->read_step = step;
  b->read_pc = t->pc;
}

static bool read_apart(const struct EmuShadow *s, const Byte *b, uint16_t now) {
  if (!b->reader) return false;
  if (apart(s, b->reader, b->read_step, now) || b->readers & OTHER_WARPS) return true;
  return b->readers & OTHER_LANES && b->read_step == s->steps[(b->reader - 1u) / EMU_LANES];
}

// The earlier access that this one races with.
static Rival touch(struct EmuShadow *s, Byte *b, const Toucher *t) {
  if (b->epoch != s->epoch) {
    b->epoch = s->epoch;
    b->writer = b->reader = b->readers = 0;
    b->written &= 1;
  }
  bool atomic = t->use != EMU_USE_LOAD && t->use != EMU_USE_STORE, plain_load = t->use == EMU_USE_LOAD;
  bool written = b->write_serial != s->serial && apart(s, b->writer, b->write_step, t->thread) &&
                 !(atomic && b->written & 2);
  Rival rival = {0};
  if (written)
    rival = (Rival){b->writer, b->write_pc, true};
  else if (!plain_load && read_apart(s, b, t->thread))
    rival = (Rival){b->reader, b->read_pc, false};
  if (plain_load) {
    add_reader(s, b, t);
    return rival;
  }
  b->writer = t->thread;
  b->write_step = s->steps[(t->thread - 1u) / EMU_LANES];
  b->write_pc = t->pc;
  b->write_serial = s->serial;
  b->written = (uint8_t)((writes(t->use) ? 1 : b->written & 1) | (atomic ? 2 : 0));
  return rival;
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

static void find_race(EmuCtx *x, const EmuInst *i, int lane, uint64_t at, uint32_t bytes, EmuUse use,
                      const Rival *r) {
  const EmuRun *run = x->launch;
  if (!(run->launch->checks & SOL_EMU_CHECK_RACE)) return;
  char place[120], name[64];
  uint32_t t = r->thread - 1u;
  emu_place(run, r->pc, place, sizeof place);
  emu_shared_name(run, at, name, sizeof name);
  emu_find(
      x, i, 1u << lane, SOL_EMU_RACE, at, bytes,
      "%s of %u bytes at 0x%llx of shared memory%s, which thread (%u,%u,%u) %s at %s with no barrier in between",
      writes(use) ? "write" : "read", bytes, (unsigned long long)at, name, t % run->block[0],
      t / run->block[0] % run->block[1], t / run->block[0] / run->block[1], r->wrote ? "wrote" : "read",
      place);
}

static void check_shared(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use) {
  struct EmuShadow *s = shadow_of(x->block);
  if (!s) return;
  s->serial++;
  for (uint32_t left = acc->shared; left; left &= left - 1) {
    int l = emu_first(left);
    EmuBlock *owner = owner_of(x, acc->host[l]);
    if (owner && owner != x->block) {
      if (mark_shared(owner, acc->addr[l], bytes, use) && reads(use))
        find_fresh_shared(x, i, l, owner, acc->addr[l], bytes);
      continue;
    }
    Toucher t = {(uint16_t)(x->warp->index * EMU_LANES + (uint32_t)l + 1), i->index, use};
    Rival rival = {0};
    bool fresh = false;
    for (uint32_t k = 0; k < bytes; k++) {
      Byte *b = &s->bytes[acc->addr[l] + k];
      fresh = fresh || !(b->written & 1);
      Rival r = touch(s, b, &t);
      if (!rival.thread) rival = r;
    }
    if (rival.thread) find_race(x, i, l, acc->addr[l], bytes, use, &rival);
    if (fresh && reads(use)) find_fresh_shared(x, i, l, x->block, acc->addr[l], bytes);
  }
}

// Lanes before `lane` that write other bytes to its address.
static uint32_t unlike_lanes(const EmuAccess *acc, int lane, uint32_t bytes, const uint8_t *values,
                             size_t stride) {
  uint32_t unlike = 0;
  for (uint32_t left = acc->mask & ((1u << lane) - 1); left; left &= left - 1) {
    int l = emu_first(left);
    if (acc->host[l] == acc->host[lane] &&
        memcmp(values + stride * (size_t)l, values + stride * (size_t)lane, bytes) != 0)
      unlike |= 1u << l;
  }
  return unlike;
}

void emu_check_values(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes,
                      const uint8_t *values, size_t stride) {
  for (uint32_t left = acc->mask & ~acc->local; left; left &= left - 1) {
    int l = emu_first(left);
    uint32_t unlike = unlike_lanes(acc, l, bytes, values, stride);
    if (!unlike) continue;
    emu_find(
        x, i, 1u << l, SOL_EMU_RACE, acc->addr[l], bytes,
        "lanes %d and %d of the warp write different values to the same %u bytes at 0x%llx%s; which one stays is "
        "undefined",
        emu_first(unlike), l, bytes, (unsigned long long)acc->addr[l],
        acc->shared >> l & 1 ? " of shared memory" : "");
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
  emu_find(
      x, i, 1u << lane, SOL_EMU_UNINITIALISED, at, bytes,
      "read of %llu bytes at 0x%llx, %llu bytes into the allocation%s%s of %llu bytes at 0x%llx, never written",
      (unsigned long long)bytes, (unsigned long long)at, (unsigned long long)(at - a->base),
      a->label[0] ? " " : "", a->label, (unsigned long long)a->size, (unsigned long long)a->base);
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
