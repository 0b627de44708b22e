// Resolves a lane's address to host memory, with all checks, and passes the access to the cache model.
#include "base/format.h"
#include "emu/core/hooks.h"

// ---- addresses ----

static void addresses(EmuCtx *x, const EmuInst *i, uint64_t *addr) {
  uint64_t offset = (uint64_t)i->offset;
  if (i->flags & EMU_FLAG_FRAME) offset += x->frame->local_base;
  if (i->abytes == 8) {
    const uint64_t *a = EMU_IN(uint64_t, i->a);
    EMU_EACH(l) addr[l] = a[l] + offset;
  } else {
    const uint32_t *a = EMU_IN(uint32_t, i->a);
    EMU_EACH(l) addr[l] = (uint32_t)(a[l] + (uint32_t)offset);
  }
}

// What is wrong with an address of global memory, in words.
static void report_global(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, uint64_t bytes,
                          bool store) {
  const EmuAlloc *near = emu_nearest_alloc(x->launch->emu, address);
  EmuAlloc piece;
  bool in_heap = near && near->heap && address - near->base < near->size;
  unsigned long long at = address, n = bytes;
  const char *what = store ? "write" : "read";
  uint32_t bit = 1u << lane;
  if (in_heap && emu_heap_nearest(near, address, &piece)) {
    emu_spend(x, piece.size / 16);
    near = &piece;
    in_heap = false;
  }
  if (address < 65536) {
    emu_find(x, i, bit, SOL_EMU_NULL, address, bytes, "%s of %llu bytes at 0x%llx", what, n, at);
  } else if (!near) {
    emu_find(x, i, bit, SOL_EMU_OUT_OF_BOUNDS, address, bytes,
             "%s of %llu bytes at 0x%llx; nothing is allocated", what, n, at);
  } else if (address - near->base < near->size && near->size - (address - near->base) >= bytes &&
             near->read_only && !near->freed) {
    emu_find(x, i, bit, SOL_EMU_READ_ONLY, address, bytes,
             "write of %llu bytes at 0x%llx, which is mapped for reads alone (%llu bytes at 0x%llx)", n, at,
             (unsigned long long)near->size, (unsigned long long)near->base);
  } else if (in_heap) {
    emu_find(x, i, bit, SOL_EMU_OUT_OF_BOUNDS, address, bytes,
             "%s of %llu bytes at 0x%llx, %llu bytes into the %s, where nothing is allocated", what, n, at,
             (unsigned long long)(address - near->base), near->label);
  } else if (address >= near->base && address - near->base < near->size && near->freed) {
    emu_find(x, i, bit, SOL_EMU_AFTER_FREE, address, bytes,
             "%s of %llu bytes at 0x%llx, %llu bytes into freed %s (%llu bytes)", what, n, at,
             (unsigned long long)(address - near->base), near->label[0] ? near->label : "memory",
             (unsigned long long)near->size);
  } else {
    bool after = address >= near->base;
    uint64_t by = after ? (address >= near->base + near->size ? address - (near->base + near->size) : 0)
                        : near->base - address;
    emu_find(x, i, bit, SOL_EMU_OUT_OF_BOUNDS, address, bytes,
             "%s of %llu bytes at 0x%llx, %llu bytes %s %s of %llu bytes at 0x%llx", what, n, at,
             (unsigned long long)by, after ? "past the end of" : "before",
             near->label[0] ? near->label : "the allocation", (unsigned long long)near->size,
             (unsigned long long)near->base);
  }
}

static uint8_t *global_host(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, uint64_t bytes,
                            bool store) {
  EmuWorker *w = emu_worker(x);
  EmuAlloc *a = w->last[i->index];
  if (!a || a->freed || address - a->base >= a->size) a = emu_find_alloc(x->launch->emu, address);
  if (a && !a->freed && a->size - (address - a->base) >= bytes &&
      (!a->heap || emu_heap_holds(a, address, bytes)) && !(store && a->read_only)) {
    w->last[i->index] = a;
    return a->host + (address - a->base);
  }
  report_global(x, i, lane, address, bytes, store);
  return NULL;
}

static uint8_t *shared_host(EmuCtx *x, const EmuInst *i, int lane, uint64_t *address, uint64_t bytes,
                            bool store) {
  uint64_t offset = *address & ((1u << EMU_RANK_SHIFT) - 1), rank = *address >> EMU_RANK_SHIFT;
  EmuBlock *b = x->block;
  bool ok = !rank || (rank >= EMU_RANKED && rank - EMU_RANKED < b->unit->count);
  if (ok && rank) b = b->unit->blocks[rank - EMU_RANKED];
  if (ok && b->shared_bytes >= bytes && offset <= b->shared_bytes - bytes) {
    *address = offset;
    return b->shared + offset;
  }
  emu_find(x, i, 1u << lane, SOL_EMU_OUT_OF_BOUNDS, *address, bytes,
           "%s of %llu bytes at 0x%llx of shared memory, of which the block has %llu bytes",
           store ? "write" : "read", (unsigned long long)bytes, (unsigned long long)*address,
           (unsigned long long)b->shared_bytes);
  return NULL;
}

// Local memory is interleaved by words: one of all lanes of a warp, then the next. That is a line.
enum { LOCAL_WORD = 4 };
_Static_assert(LOCAL_WORD *EMU_LANES == SOL_LINE_BYTES, "a word of each lane");
static uint64_t billed_local(const EmuCtx *x, int lane, uint64_t offset) {
  const EmuRun *run = x->launch;
  uint64_t slots = (uint64_t)run->units_per_sm * run->cluster_size * run->warps;
  uint64_t warp = emu_worker(x)->sm->index * slots + (uint64_t)x->block->slot * run->warps + x->warp->index;
  return EMU_LOCAL_BILLED + warp * run->emu->machine.stack_bytes * EMU_LANES +
         offset / LOCAL_WORD * LOCAL_WORD * EMU_LANES + (uint64_t)lane * LOCAL_WORD + offset % LOCAL_WORD;
}

static uint8_t *local_host(EmuCtx *x, const EmuInst *i, int lane, uint64_t *address, uint64_t bytes,
                           bool store) {
  uint64_t cap = x->block->local_cap[x->warp->index];
  if (cap >= bytes && *address <= cap - bytes) {
    uint8_t *host = x->block->local[x->warp->index] + (uint64_t)lane * cap + *address;
    *address = billed_local(x, lane, *address);
    return host;
  }
  emu_find(x, i, 1u << lane, SOL_EMU_OUT_OF_BOUNDS, *address, bytes,
           "%s of %llu bytes at 0x%llx of local memory, of which the thread has %llu bytes",
           store ? "write" : "read", (unsigned long long)bytes, (unsigned long long)*address,
           (unsigned long long)cap);
  return NULL;
}

// A kernel's arguments. Nothing is ever written there.
static uint8_t *param_host(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, uint64_t bytes,
                           bool store) {
  const EmuRun *run = x->launch;
  if (!store && run->param_room >= bytes && address <= run->param_room - bytes) return run->params + address;
  emu_find(x, i, 1u << lane, SOL_EMU_OUT_OF_BOUNDS, address, bytes,
           "%s of %llu bytes at 0x%llx of the kernel's parameters", store ? "write" : "read",
           (unsigned long long)bytes, (unsigned long long)address);
  return NULL;
}

// Which space a generic address is in; it becomes one of that space.
static int space_of(uint64_t *address) {
  uint64_t a = *address;
  if (a < EMU_SHARED_WINDOW || a >= EMU_CODE_WINDOW) return PTX_SPACE_GLOBAL;
  *address = a % EMU_WINDOW_BYTES;
  if (a < EMU_LOCAL_WINDOW) return PTX_SPACE_SHARED;
  return a < EMU_PARAM_WINDOW ? PTX_SPACE_LOCAL : PTX_SPACE_PARAM;
}
_Static_assert(EMU_SHARED_WINDOW % EMU_WINDOW_BYTES == 0 &&
                   EMU_LOCAL_WINDOW == EMU_SHARED_WINDOW + EMU_WINDOW_BYTES,
               "windows follow each other");

static uint32_t alignment(uint32_t bytes) {
  return bytes & (0u - bytes);
}

void emu_fault(EmuCtx *x) {
  if (x->launch->launch->keep_going) return;
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

static bool is_aligned(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, uint64_t bytes,
                       uint32_t align, bool store) {
  if (!(address & (align - 1))) return true;
  emu_find(x, i, 1u << lane, SOL_EMU_MISALIGNED, address, bytes,
           "%s of %llu bytes at 0x%llx, which is no multiple of %u", store ? "write" : "read",
           (unsigned long long)bytes, (unsigned long long)address, align);
  return false;
}

// Where a lane's bytes are; *space, where generic, and *address become what the access is in.
static uint8_t *host_of(EmuCtx *x, const EmuInst *i, int lane, int *space, uint64_t *address, uint64_t bytes,
                        bool store) {
  if (*space == PTX_SPACE_GENERIC) *space = space_of(address);
  switch (*space) {
  case PTX_SPACE_SHARED:
  case PTX_SPACE_SHARED_CLUSTER: return shared_host(x, i, lane, address, bytes, store);
  case PTX_SPACE_LOCAL: return local_host(x, i, lane, address, bytes, store);
  case PTX_SPACE_PARAM: return param_host(x, i, lane, *address, bytes, store);
  default: return global_host(x, i, lane, *address, bytes, store);
  }
}

uint8_t *emu_range(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, int space, uint64_t bytes,
                   uint32_t align, bool store) {
  uint8_t *host = is_aligned(x, i, lane, address, bytes, align, store)
                      ? host_of(x, i, lane, &space, &address, bytes, store)
                      : NULL;
  if (!host) emu_fault(x);
  return host;
}

uint32_t emu_resolve_at(EmuCtx *x, const EmuInst *i, uint32_t mask, const uint64_t *addr, int space,
                        uint32_t bytes, bool store, EmuAccess *acc) {
  uint32_t align = alignment(bytes);
  acc->mask = acc->shared = acc->local = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left), in = space;
    uint64_t at = addr[l];
    uint8_t *host =
        is_aligned(x, i, l, at, bytes, align, store) ? host_of(x, i, l, &in, &at, bytes, store) : NULL;
    acc->addr[l] = at;
    acc->host[l] = host;
    if (!host) continue;
    acc->mask |= 1u << l;
    if (in == PTX_SPACE_SHARED || in == PTX_SPACE_SHARED_CLUSTER) acc->shared |= 1u << l;
    if (in == PTX_SPACE_LOCAL) acc->local |= 1u << l;
  }
  if (acc->mask != mask) emu_fault(x);
  return acc->mask;
}

// All active lanes in the allocation that the instruction used last: the usual case.
static bool resolve_fast(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bytes, EmuAccess *acc) {
  const EmuAlloc *a = emu_worker(x)->last[i->index];
  if (!a || a->size < bytes) return false;
  uint64_t base = a->base, limit = a->size - bytes, bad = 0, low = alignment(bytes) - 1;
  const uint64_t *addr = acc->addr;
  if (mask == EMU_ALL) {
    for (int l = 0; l < EMU_LANES; l++) bad |= (uint64_t)(addr[l] - base > limit) | (addr[l] & low);
  } else {
    for (int l = 0; l < EMU_LANES; l++)
      bad |= ((uint64_t)(addr[l] - base > limit) | (addr[l] & low)) & (0 - (uint64_t)(mask >> l & 1));
  }
  if (bad || a->freed || a->heap || a->read_only) return false;
  uint8_t *host = a->host;
  for (int l = 0; l < EMU_LANES; l++)
    acc->host[l] = (uint8_t *)((uintptr_t)host + (uintptr_t)(addr[l] - base));
  acc->mask = mask;
  acc->shared = acc->local = 0;
  return true;
}

static bool resolve_shared(EmuCtx *x, uint32_t mask, uint32_t bytes, EmuAccess *acc) {
  if (x->block->shared_bytes < bytes) return false;
  uint64_t limit = x->block->shared_bytes - bytes, bad = 0, low = alignment(bytes) - 1;
  const uint64_t *addr = acc->addr;
  for (int l = 0; l < EMU_LANES; l++)
    bad |= ((uint64_t)(addr[l] > limit) | (addr[l] & low)) & (0 - (uint64_t)(mask >> l & 1));
  if (bad) return false;
  uint8_t *host = x->block->shared;
  for (int l = 0; l < EMU_LANES; l++) acc->host[l] = (uint8_t *)((uintptr_t)host + (uintptr_t)addr[l]);
  acc->mask = acc->shared = mask;
  acc->local = 0;
  return true;
}

EMU_HOT uint32_t emu_resolve(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bytes, bool store,
                             EmuAccess *acc) {
  addresses(x, i, acc->addr);
  switch (i->space) {
  case PTX_SPACE_SHARED:
  case PTX_SPACE_SHARED_CLUSTER:
    if (resolve_shared(x, mask, bytes, acc)) return mask;
    break;
  case PTX_SPACE_LOCAL:
  case PTX_SPACE_PARAM: break;
  default:
    if (resolve_fast(x, i, mask, bytes, acc)) return mask;
  }
  uint64_t addr[EMU_LANES];
  memcpy(addr, acc->addr, sizeof addr);
  return emu_resolve_at(x, i, mask, addr, i->space, bytes, store, acc);
}

// ---- counting ----

void emu_log_room(EmuCtx *x) {
  EmuSm *sm = emu_worker(x)->sm;
  if (sm->log->capacity - sm->log->count >= EMU_LOG_RESERVE) return;
  sm->full = true;
  x->budget = 0;
}

// Words of constant memory that differ, which it gives one after another.
static uint32_t distinct_words(const uint64_t *addr, uint32_t mask) {
  uint32_t words = 0;
  for (; mask; words++) {
    uint64_t word = addr[emu_first(mask)] / 4;
    uint32_t here = 0;
    for (int l = 0; l < EMU_LANES; l++) here |= (uint32_t)(addr[l] / 4 == word) << l;
    mask &= ~here;
  }
  return words;
}

// Whether the cache of constants, of so many sets, lacked a line; it has it now.
static bool fetch_constants(EmuSm *sm, uint32_t sets, uint32_t line) {
  uint32_t *set = sm->constants[line % sets], at = 0;
  while (at < EMU_CONST_WAYS - 1 && set[at] != line + 1) at++;
  bool lacked = set[at] != line + 1;
  for (; at; at--) set[at] = set[at - 1];
  set[0] = line + 1;
  return lacked;
}

static uint32_t constant_lines(EmuCtx *x, const uint64_t *addr, uint32_t mask) {
  uint32_t lacked = 0, sets = x->launch->emu->machine.constant_bytes / (EMU_CONST_LINE * EMU_CONST_WAYS);
  if (!sets) return 0;
  if (sets > EMU_CONST_SETS) sets = EMU_CONST_SETS;
  for (uint64_t last = UINT64_MAX; mask; mask &= mask - 1) {
    uint64_t line = addr[emu_first(mask)] / EMU_CONST_LINE;
    if (line != last) lacked += fetch_constants(emu_worker(x)->sm, sets, (uint32_t)line);
    last = line;
  }
  return lacked;
}

// L1 has the banks of shared memory: words of different lines in one bank are read one after another.
static bool reads_l1(const EmuInst *i, SolMemOp op) {
  return op == SOL_MEM_LOAD && i->space != PTX_SPACE_LOCAL;
}
static uint32_t l1_passes(const uint64_t *addr, uint32_t mask, uint32_t bytes, const SolCoalesced *found) {
  return found->lines > 1 ? sol_banks(addr, mask, bytes, SOL_SHARED_LOAD).wavefronts : 1;
}

// Lanes that walk through lines of their own find them in L1 again, if those of all resident warps fit there. Where they do not, a warp
// goes on with what it loaded only when the others had their turn.
static void take_turns(EmuCtx *x, const SolCoalesced *found, SolMemOp op) {
  enum { APART = 16 }; // lines
  const EmuRun *run = x->launch;
  if (op != SOL_MEM_LOAD || found->lines < APART || run->cluster_size > 1) return;
  uint64_t mean = (run->units_in_grid + run->sm_count - 1) / run->sm_count,
           units = mean < run->units_per_sm ? mean : run->units_per_sm;
  if (units * run->warps * found->lines * SOL_LINE_BYTES <= run->l1_bytes / 2) return;
  x->budget = 0;
  emu_worker(x)->sm->by_turns = units > 1;
}

// What EmuWorker.coalesced holds of an access.
static void count_coalesced(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op) {
  EmuWorker *w = emu_worker(x);
  sol_l1_access(&w->sm->l1, &w->coalesced, op, i->index, &w->l1_counts[i->index], w->sm->log);
  take_turns(x, &w->coalesced, op);
  emu_log_room(x);
  if (x->launch->observing) emu_observe_access(x, i, acc, bytes, op);
}

// Of an access to local memory the words are in different lines. They are one request.
static void count_words(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op) {
  EmuWorker *w = emu_worker(x);
  uint64_t addr[EMU_LANES];
  memcpy(addr, acc->addr, sizeof addr);
  for (uint32_t at = 0; at < bytes; at += LOCAL_WORD) {
    sol_coalesce(addr, acc->local, LOCAL_WORD, &w->coalesced);
    for (int l = 0; l < EMU_LANES; l++) addr[l] += SOL_LINE_BYTES;
    if (at + LOCAL_WORD >= bytes) break;
    sol_l1_access(&w->sm->l1, &w->coalesced, op, i->index, &w->l1_counts[i->index], w->sm->log);
    w->l1_counts[i->index].requests--;
  }
  count_coalesced(x, i, acc, bytes, op);
}

void emu_count_as(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op,
                  SolSharedOp shared) {
  SolEmuCounts *c = &x->counts[i->index];
  EmuWorker *w = emu_worker(x);
  if (!x->launch->counting) return;
  c->bytes += (uint64_t)emu_popc(acc->mask) * bytes;
  if (x->idle) return;
  if (acc->shared) {
    SolWavefronts passes = sol_banks(acc->addr, acc->shared, bytes, shared);
    c->shared_requests++;
    c->wavefronts += passes.wavefronts;
    c->wavefronts_ideal += passes.ideal;
  }
  uint32_t rest = acc->mask & ~acc->shared;
  if (!rest) {
    if (x->launch->observing) emu_observe_access(x, i, acc, bytes, op);
    return;
  }
  if (i->space == PTX_SPACE_CONST || i->space == PTX_SPACE_PARAM) { // a cache of its own
    c->requests++;
    if (i->space == PTX_SPACE_CONST) {
      c->turns += distinct_words(acc->addr, rest);
      c->lines += constant_lines(x, acc->addr, rest);
    }
    return;
  }
  if (acc->local == rest && bytes > LOCAL_WORD) {
    count_words(x, i, acc, bytes, op);
    return;
  }
  sol_coalesce(acc->addr, rest, bytes, &w->coalesced);
  if (reads_l1(i, op)) c->turns += l1_passes(acc->addr, rest, bytes, &w->coalesced);
  count_coalesced(x, i, acc, bytes, op);
}

void emu_count_copy(EmuCtx *x, const EmuInst *i, const EmuAccess *from, SolMemOp op) {
  x->counts[i->index].bytes += (uint64_t)emu_popc(from->mask) * i->bytes;
  if (!x->launch->counting) return;
  sol_coalesce_copy(from->addr, from->mask, i->bytes, &emu_worker(x)->coalesced);
  count_coalesced(x, i, from, i->bytes, op);
}

// Counts again what depends on the shape; `first` is the first active lane's address.
static void count_anew(EmuShape *s, uint64_t first, uint32_t bytes, bool is_shared, SolSharedOp shared) {
  uint64_t addr[EMU_LANES];
  for (int l = 0; l < EMU_LANES; l++) addr[l] = first + (uint64_t)(int64_t)s->delta[l];
  if (is_shared) {
    SolWavefronts passes = sol_banks(addr, s->mask, bytes, shared);
    s->wavefronts = (uint16_t)passes.wavefronts;
    s->wavefronts_ideal = (uint16_t)passes.ideal;
  } else {
    sol_coalesce(addr, s->mask, bytes, s->coalesced);
    s->wavefronts = (uint16_t)l1_passes(addr, s->mask, bytes, s->coalesced);
    s->line = first / SOL_LINE_BYTES;
  }
  s->counted = true;
}

// Moving all lanes by whole words, of which lanes of more than one are aligned to theirs, turns the banks and
// changes no pass; moving them by whole lines changes no sector but in its line's number.
void emu_count_shape(EmuCtx *x, const EmuInst *i, EmuShape *s, uint64_t first, SolMemOp op,
                     SolSharedOp shared) {
  SolEmuCounts *c = &x->counts[i->index];
  EmuWorker *w = emu_worker(x);
  uint32_t bytes = (uint32_t)i->bytes * i->vec;
  if (!x->launch->counting) return;
  c->bytes += (uint64_t)emu_popc(s->mask) * bytes;
  if (x->idle) return;
  bool is_shared = i->space == PTX_SPACE_SHARED;
  if (i->space == PTX_SPACE_CONST) { // a cache of its own
    uint64_t addr[EMU_LANES];
    bool uniform = s->counted && s->wavefronts == 1; // mostly so
    for (uint32_t left = uniform ? s->mask & -s->mask : UINT32_MAX; left; left &= left - 1)
      addr[emu_first(left)] = first + (uint64_t)(int64_t)s->delta[emu_first(left)];
    if (!s->counted) s->wavefronts = (uint16_t)distinct_words(addr, s->mask);
    s->counted = true;
    c->requests++;
    c->turns += s->wavefronts;
    c->lines += constant_lines(x, addr, uniform ? s->mask & -s->mask : s->mask);
    return;
  }
  uint8_t ends = (uint8_t)(first & (is_shared ? SOL_BANK_BYTES - 1 : SOL_LINE_BYTES - 1));
  if (!s->counted || s->ends != ends) {
    count_anew(s, first, bytes, is_shared, shared);
    s->ends = ends;
  }
  if (is_shared) {
    c->shared_requests++;
    c->wavefronts += s->wavefronts;
    c->wavefronts_ideal += s->wavefronts_ideal;
    if (x->launch->observing) emu_observe_shape(x, i, s, first, op);
    return;
  }
  if (reads_l1(i, op)) c->turns += s->wavefronts;
  uint64_t lines = first / SOL_LINE_BYTES - s->line;
  s->line += lines;
  for (uint32_t k = 0; k < s->coalesced->lines; k++) s->coalesced->line[k].line += lines;
  sol_l1_access(&w->sm->l1, s->coalesced, op, i->index, &w->l1_counts[i->index], w->sm->log);
  take_turns(x, s->coalesced, op);
  emu_log_room(x);
  if (x->launch->observing) emu_observe_shape(x, i, s, first, op);
}

void emu_count(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuTraffic traffic) {
  static const struct {
    SolMemOp op;
    SolSharedOp shared;
    EmuUse use;
  } as[] = {
      [EMU_LOAD] = {SOL_MEM_LOAD, SOL_SHARED_LOAD, EMU_USE_LOAD},
      [EMU_STORE] = {SOL_MEM_STORE, SOL_SHARED_STORE, EMU_USE_STORE},
      [EMU_ATOMIC] = {SOL_MEM_ATOMIC, SOL_SHARED_ATOMIC, EMU_USE_ATOMIC},
      [EMU_REDUCE] = {SOL_MEM_ATOMIC, SOL_SHARED_ATOMIC, EMU_USE_ATOMIC},
      [EMU_INCREMENT] = {SOL_MEM_ATOMIC, SOL_SHARED_INCREMENT, EMU_USE_ATOMIC},
      [EMU_CAS] = {SOL_MEM_ATOMIC, SOL_SHARED_CAS, EMU_USE_ATOMIC},
      [EMU_CAS_LOOP] = {SOL_MEM_ATOMIC, SOL_SHARED_CAS_LOOP, EMU_USE_ATOMIC},
      [EMU_LOAD_L2] = {SOL_MEM_LOAD_L2, SOL_SHARED_LOAD, EMU_USE_LOAD},
  };
  if (as[traffic].use == EMU_USE_ATOMIC) x->counts[i->index].atomics += emu_popc(acc->mask);
  if (x->launch->checking) emu_check_access(x, i, acc, bytes, as[traffic].use);
  emu_count_as(x, i, acc, bytes, as[traffic].op, as[traffic].shared);
  if (x->launch->observing && as[traffic].use == EMU_USE_ATOMIC && !x->idle) emu_observe_atomic(x, i, acc);
  if (x->launch->observing && traffic == EMU_CAS_LOOP && acc->shared && !x->idle) emu_path_swaps(x, i, acc);
}
