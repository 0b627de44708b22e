// What lanes that poll memory wait for: the critical path of the warp that writes it continues in theirs.
//
// Addresses that lanes poll in vain (core/poll.c) are listed. The first write after such a poll is taken to be the one that they
// wait for, and leaves its warp's path there; where it was not, they poll in vain again, and the next one does. So a barrier of
// blocks that count themselves has the longest path of those that came to it, but not of one that already came to the next.
// Where accesses are made in the order of time (takes.c), all writes count: who would come to the next barrier waits.
// A write is seen later than it is executed: part of a load's time until it is in L2 (SolEmuMachine.hand_waits), and a load's until a poll has
// it from there. At a barrier of many blocks (an atomic counter that all of them poll) the last block sees it later than one of two would
// (meet_waits): its poll may just have missed it, and L2 serves atomics and polls of one word one after another.
#include "base/heap.h"
#include "emu/watch/observe.h"

enum { ENTRIES = 1 << 14, MOST = ENTRIES / 4 * 3 };

typedef struct Entry {
  uint64_t address; // 0: free
  EmuPath path;     // the longest of those that wrote
  bool expected;    // a write since the last poll in vain
  bool written;
  uint64_t first;           // 1 + the block whose atomic on it was the first
  uint32_t atomics, rounds; // atomics on it: of all blocks; of that one
} Entry;

struct EmuWaited {
  uint32_t count;
  Entry entries[ENTRIES];
};

static Entry *entry_of(EmuWaited *w, uint64_t address) {
  uint32_t at = (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 50);
  while (w->entries[at].address && w->entries[at].address != address) at = (at + 1) % ENTRIES;
  return &w->entries[at];
}
_Static_assert(ENTRIES == 1 << 14, "entry_of takes fourteen bits");

static EmuPath *own_path(EmuCtx *x) {
  return &x->block->paths[x->warp->index];
}
static EmuPath *first_poll(EmuCtx *x) {
  return &x->block->paths[x->block->warp_count + EMU_SYNCS + x->warp->index];
}

static uint64_t address_of(const EmuCtx *x, const EmuInst *i, int lane) {
  if (i->abytes == 8) return EMU_IN(uint64_t, i->a)[lane] + (uint64_t)i->offset;
  return (uint32_t)(EMU_IN(uint32_t, i->a)[lane] + (uint32_t)i->offset);
}

static bool is_far(const EmuInst *i) {
  return i->space == PTX_SPACE_GLOBAL || i->space == PTX_SPACE_GENERIC;
}

// Shared memory is listed by its block, beyond all addresses of global memory.
static bool is_near(const EmuInst *i) {
  return i->space == PTX_SPACE_SHARED;
}
static uint64_t near_key(const EmuCtx *x, uint64_t address) {
  return UINT64_C(1) << 63 | x->block->id << 20 | (address & 0xfffff);
}
static uint64_t key_of(const EmuCtx *x, const EmuInst *i, int lane) {
  uint64_t address = address_of(x, i, lane);
  return is_near(i) ? near_key(x, address) : address;
}

void emu_path_polls(EmuCtx *x) {
  *first_poll(x) = *own_path(x);
}

static EmuWaited *open_list(EmuRun *run) {
  EmuWaited *w = run->waited;
  if (!w && (w = sol_heap_alloc(sizeof *w))) w->count = MOST + 1;
  if (w && w->count > MOST) memset(w, 0, sizeof *w);
  __atomic_store_n(&run->waited, w, __ATOMIC_RELEASE);
  return w;
}

static Entry *put(EmuWaited *w, uint64_t address) {
  Entry *e = entry_of(w, address);
  w->count += !e->address;
  e->address = address;
  return e;
}

// Polls but the first took no time of their own.
void emu_path_idles(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuRun *run = x->launch;
  if (!own_path(x)->idle) *own_path(x) = *first_poll(x), emu_worker(x)->idles++;
  own_path(x)->idle = 1;
  if (!is_far(i) && !is_near(i)) return;
  sol_spin_lock(&run->lock);
  EmuWaited *w = open_list(run);
  for (uint32_t left = w ? mask : 0; left; left &= left - 1)
    put(w, key_of(x, i, emu_first(left)))->expected = true;
  sol_spin_unlock(&run->lock);
}

// By which a write is seen later, of a load's time.
static uint64_t later_by(const SolEmuMachine *m, const Entry *e) {
  enum {
    MANY = 8
  }; // blocks, from which on it is taken for such a barrier: between the 2 and the 16 that were measured
  double blocks = e->rounds ? (double)e->atomics / e->rounds : 0;
  double waits = m->hand_waits + (blocks < MANY ? 0 : m->meet_waits + m->meet_block_waits * blocks);
  return (uint64_t)(waits * EMU_WAIT);
}

// The path of who wrote, where it is longer; what the warp itself has in flight stays. `waits`: for a load of its own.
static void take_over(EmuCtx *x, const Entry *e, uint64_t waits) {
  EmuPath *own = own_path(x), was = *own, later = e->path;
  const SolEmuMachine *m = &x->launch->emu->machine;
  if (e->address >> 63)
    later.sleeps += m->hand_near_clocks + (uint64_t)m->hand_near_warp_clocks * x->block->warp_count;
  else
    later.far_waits += waits + later_by(m, e);
  if (emu_path_weight(x->block, &later) <= emu_path_weight(x->block, own)) return;
  *own = later;
  own->pending = was.pending;
  own->stored = was.stored;
  own->idle = was.idle;
}

void emu_path_wakes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuRun *run = x->launch;
  if ((!is_far(i) && !is_near(i)) || !emu_waited(run)) return;
  sol_spin_lock(&run->lock);
  for (uint32_t left = mask; left; left &= left - 1) {
    const Entry *e = entry_of(run->waited, key_of(x, i, emu_first(left)));
    if (e->address) take_over(x, e, own_path(x)->pending ? 0 : EMU_WAIT); // its value is waited for, else
  }
  sol_spin_unlock(&run->lock);
}

// In the order of time: its own load's time comes with its value.
void emu_path_sees(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuRun *run = x->launch;
  bool may_wait = run->takes && run->statics->paths[i->index] & EMU_PATH_TAKES &&
                  run->program->source[i->index]->code->op == PTX_OP_LD;
  if (!may_wait || !is_far(i)) return;
  sol_spin_lock(&run->lock);
  EmuWaited *w = open_list(run);
  for (uint32_t left = w ? mask : 0; left; left &= left - 1) {
    const Entry *e = put(w, address_of(x, i, emu_first(left)));
    if (e->written) take_over(x, e, 0);
  }
  sol_spin_unlock(&run->lock);
}

void emu_path_goes_on(EmuCtx *x) {
  own_path(x)->idle = 0;
}

void emu_path_wrote(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t first, const int32_t *delta,
                    const uint64_t *addr, bool atomic) {
  EmuRun *run = x->launch;
  sol_spin_lock(&run->lock);
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t address = addr ? addr[l] : first + (uint64_t)(int64_t)delta[l];
    Entry *e = entry_of(run->waited, is_near(i) ? near_key(x, address) : address);
    if (!e->address || (!e->expected && !run->takes)) continue;
    e->expected = false;
    e->written = true;
    if (atomic && !e->first) e->first = x->block->id + 1;
    e->atomics += atomic;
    e->rounds += atomic && e->first == x->block->id + 1;
    if (emu_path_weight(x->block, own_path(x)) > emu_path_weight(x->block, &e->path)) e->path = *own_path(x);
  }
  sol_spin_unlock(&run->lock);
}

void emu_waited_free(EmuRun *run) {
  sol_heap_free(run->waited);
  run->waited = NULL;
}
