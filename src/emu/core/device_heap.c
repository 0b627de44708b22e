// malloc and free in a kernel. They allocate from one heap, in granules of 16 bytes, with at least one unused
// granule before each allocation. The state of each granule is kept outside of device memory, so that kernels
// cannot corrupt it, and every access to the heap is checked against it.
// The search for room goes on where the last one ended: what was freed is taken again as late as possible,
// and using it until then is found.
#include "base/heap.h"
#include "emu/core/state.h"

enum {
  GRANULE = 16,
  TAKEN = 0x80, // TAKEN + n, n from 1 to 16: so many bytes of a piece; TAKEN alone: the granule before one
  FREED = 0x40, // the same of a piece that was freed
  BYTES = 0x1f,
  NEAR = 4096 // granules in which a finding looks for the piece that was meant
};

struct EmuHeap {
  uint64_t granules;
  uint64_t next;  // where the search goes on
  uint64_t fails; // so many granules in a row are nowhere free, until something is freed; 0: not known
  uint8_t use[];
};

// ---- the map: others read it while a worker that holds the lock writes it ----

static uint8_t use_of(const struct EmuHeap *h, uint64_t granule) {
  return __atomic_load_n(&h->use[granule], __ATOMIC_RELAXED);
}
static void set_use(struct EmuHeap *h, uint64_t granule, unsigned use) {
  __atomic_store_n(&h->use[granule], (uint8_t)use, __ATOMIC_RELAXED);
}
static bool taken(const struct EmuHeap *h, uint64_t granule) {
  return (use_of(h, granule) & TAKEN) != 0;
}
// Of a piece, live or freed, and not the granule before it.
static bool in_piece(uint8_t use) {
  return (use & BYTES) != 0;
}

static struct EmuHeap *map_of(const EmuAlloc *heap) {
  return __atomic_load_n(&heap->pieces, __ATOMIC_ACQUIRE);
}

static struct EmuHeap *make_map(EmuAlloc *heap) {
  struct EmuHeap *h = map_of(heap);
  uint64_t granules = heap->size / GRANULE;
  if (h) return h;
  h = sol_heap_alloc(sizeof *h + (size_t)granules);
  if (!h) return NULL;
  memset(h, 0, sizeof *h + (size_t)granules);
  h->granules = granules;
  __atomic_store_n(&heap->pieces, h, __ATOMIC_RELEASE);
  return h;
}

bool emu_heap_holds(const EmuAlloc *heap, uint64_t address, uint64_t bytes) {
  const struct EmuHeap *h = map_of(heap);
  uint64_t at = address - heap->base, last = (at + bytes - 1) / GRANULE;
  if (!h || last >= h->granules) return false;
  for (uint64_t g = at / GRANULE; g < last; g++)
    if (use_of(h, g) != TAKEN + GRANULE) return false;
  uint8_t use = use_of(h, last);
  return use & TAKEN && (use & BYTES) > (at + bytes - 1) % GRANULE;
}

// ---- malloc ----

static bool all_taken(const struct EmuHeap *h, uint64_t granule) {
  uint64_t eight;
  memcpy(&eight, &h->use[granule], 8);
  return (eight & UINT64_C(0x8080808080808080)) == UINT64_C(0x8080808080808080);
}

// The first of `need` granules in a row, in [from, end), that are not taken; `end`: there are none.
static uint64_t find_room(const struct EmuHeap *h, uint64_t from, uint64_t end, uint64_t need) {
  uint64_t run = 0;
  for (uint64_t g = from; g < end;) {
    if (end - g >= 8 && all_taken(h, g)) {
      run = 0;
      g += 8;
      continue;
    }
    run = taken(h, g) ? 0 : run + 1;
    g++;
    if (run == need) return g - need;
  }
  return end;
}

// From where the last search ended, then all; what was looked at is added to *steps.
static uint64_t room_for(const struct EmuHeap *h, uint64_t need, uint64_t *steps) {
  if (h->fails && need >= h->fails) return h->granules;
  uint64_t at = find_room(h, h->next, h->granules, need);
  *steps += at - h->next;
  if (at != h->granules) return at;
  at = find_room(h, 0, h->granules, need);
  *steps += at;
  return at;
}

static uint64_t take(EmuAlloc *heap, uint64_t bytes, uint64_t *steps) {
  struct EmuHeap *h = make_map(heap);
  if (!h || !bytes || bytes > heap->size) return 0;
  uint64_t body = (bytes + GRANULE - 1) / GRANULE, at = room_for(h, body + 1, steps);
  if (at == h->granules) {
    h->fails = h->fails && h->fails < body + 1 ? h->fails : body + 1;
    return 0;
  }
  set_use(h, at, TAKEN);
  for (uint64_t g = 1; g < body; g++) set_use(h, at + g, TAKEN + GRANULE);
  set_use(h, at + body, TAKEN + (unsigned)(bytes - (body - 1) * GRANULE));
  h->next = at + body + 1;
  *steps += body;
  return heap->base + (at + 1) * GRANULE;
}

uint64_t emu_heap_malloc(EmuCtx *x, uint64_t bytes) {
  SolEmu *emu = x->launch->emu;
  uint64_t steps = 0;
  sol_spin_lock(&emu->lock);
  uint64_t address = emu->heap ? take(emu->heap, bytes, &steps) : 0;
  sol_spin_unlock(&emu->lock);
  emu_spend(x, steps);
  return address;
}

// ---- free ----

// The piece that starts at an address becomes free; false: none does that lives.
static bool give(EmuAlloc *heap, uint64_t address, uint64_t *steps) {
  struct EmuHeap *h = heap ? map_of(heap) : NULL;
  uint64_t at = heap ? address - heap->base : 0, g = at / GRANULE;
  if (!h || at % GRANULE || !g || g >= h->granules) return false;
  if (use_of(h, g - 1) != TAKEN || !taken(h, g)) return false;
  set_use(h, g - 1, FREED);
  for (; g < h->granules && taken(h, g) && in_piece(use_of(h, g)); g++, ++*steps)
    set_use(h, g, FREED + (use_of(h, g) & BYTES));
  h->fails = 0;
  return true;
}

static void report_free(EmuCtx *x, const EmuInst *i, int lane, uint64_t address) {
  const EmuAlloc *heap = x->launch->emu->heap;
  EmuAlloc piece;
  bool near = heap && address - heap->base < heap->size && emu_heap_nearest(heap, address, &piece) &&
              address - piece.base < piece.size;
  unsigned long long at = address, size = near ? piece.size : 0;
  if (!near)
    emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, address, 0, "free of 0x%llx, which malloc did not return",
             at);
  else if (piece.freed)
    emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, address, 0,
             "free of 0x%llx, %llu bytes into %s (%llu bytes) that was freed before", at, at - piece.base,
             piece.label, size);
  else
    emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, address, 0,
             "free of 0x%llx, %llu bytes into %s of %llu bytes at 0x%llx, and not its start", at,
             at - piece.base, piece.label, size, (unsigned long long)piece.base);
}

void emu_heap_free(EmuCtx *x, const EmuInst *i, int lane, uint64_t address) {
  SolEmu *emu = x->launch->emu;
  uint64_t steps = 0;
  if (!address) return;
  sol_spin_lock(&emu->lock);
  bool ok = give(emu->heap, address, &steps);
  sol_spin_unlock(&emu->lock);
  emu_spend(x, steps);
  if (ok) return;
  report_free(x, i, lane, address);
  emu_fault(x);
}

// ---- for findings ----

// The first and last granule of the piece around one that is of a piece.
static void bounds(const struct EmuHeap *h, uint64_t g, uint64_t *first, uint64_t *last) {
  unsigned state = use_of(h, g) & (TAKEN | FREED);
  *first = *last = g;
  while (*first && in_piece(use_of(h, *first - 1)) && use_of(h, *first - 1) & state) --*first;
  while (use_of(h, *last) == state + GRANULE && *last + 1 < h->granules && in_piece(use_of(h, *last + 1)) &&
         use_of(h, *last + 1) & state)
    ++*last;
}

static uint64_t nearest_granule(const struct EmuHeap *h, uint64_t g) {
  for (uint64_t apart = 0; apart < NEAR; apart++) {
    if (apart <= g && in_piece(use_of(h, g - apart))) return g - apart;
    if (apart < h->granules - g && in_piece(use_of(h, g + apart))) return g + apart;
  }
  return h->granules;
}

bool emu_heap_nearest(const EmuAlloc *heap, uint64_t address, EmuAlloc *piece) {
  const struct EmuHeap *h = map_of(heap);
  uint64_t g = (address - heap->base) / GRANULE, first, last;
  if (!h || g >= h->granules) return false;
  g = nearest_granule(h, g);
  if (g == h->granules) return false;
  bounds(h, g, &first, &last);
  *piece = (EmuAlloc){.base = heap->base + first * GRANULE,
                      .size = (last - first) * GRANULE + (use_of(h, last) & BYTES),
                      .freed = !taken(h, g),
                      .label = "memory from malloc"};
  return true;
}
