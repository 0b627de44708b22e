// Which bytes of each allocation a launch reads and writes: three bits per byte, in chunks that are allocated on
// first use. Workers share them; bits are only ever set.
#include "base/error.h"
#include "base/heap.h"
#include "emu/watch/observe.h"

enum {
  CHUNK_LINES = 2048, // of 128 bytes: 256 KiB
  CHUNK_WORDS = CHUNK_LINES * 2,
  CHUNK_BYTES = CHUNK_WORDS * 8,
  SPARE_CHUNKS = 2048 // kept for the next launch: 64 MiB
};
typedef enum MapKind {
  READ_FIRST, // read when nothing had written it
  WRITTEN,
  READ_AGAIN, // read after it was written
  KINDS
} MapKind;

struct EmuMaps {
  EmuAlloc *alloc;
  struct EmuMaps *next;
  uint64_t first_line, chunks;
  uint64_t *map[]; // kind * chunks + chunk; NULL: no bit is set
};

// ---- memory ----

static uint64_t *take_chunk(SolEmu *emu) {
  sol_spin_lock(&emu->lock);
  EmuSpare *chunk = emu->spare_maps;
  if (chunk) {
    emu->spare_maps = chunk->next;
    emu->spare_map_count--;
  }
  sol_spin_unlock(&emu->lock);
  if (!chunk) chunk = sol_heap_alloc(CHUNK_BYTES);
  if (chunk) memset(chunk, 0, CHUNK_BYTES);
  return (uint64_t *)(void *)chunk;
}

static void give_chunk(SolEmu *emu, uint64_t *chunk) {
  sol_spin_lock(&emu->lock);
  bool keep = emu->spare_map_count < SPARE_CHUNKS;
  if (keep) {
    EmuSpare *spare = (EmuSpare *)(void *)chunk;
    spare->next = emu->spare_maps;
    emu->spare_maps = spare;
    emu->spare_map_count++;
  }
  sol_spin_unlock(&emu->lock);
  if (!keep) sol_heap_free(chunk);
}

void emu_touch_free(SolEmu *emu) {
  while (emu->spare_maps) {
    EmuSpare *chunk = emu->spare_maps;
    emu->spare_maps = chunk->next;
    sol_heap_free(chunk);
  }
}

static void out_of_memory(EmuRun *run) {
  sol_spin_lock(&run->lock);
  emu_find_launch(run, SOL_EMU_STACK, "out of memory to observe which bytes are touched");
  sol_spin_unlock(&run->lock);
  emu_stop(run, SOL_EMU_FAULT);
}

static struct EmuMaps *make_maps(EmuRun *run, EmuAlloc *a) {
  uint64_t first = a->base / SOL_LINE_BYTES, last = (a->base + a->size - 1) / SOL_LINE_BYTES;
  uint64_t chunks = (last - first) / CHUNK_LINES + 1;
  size_t maps = sizeof *((struct EmuMaps *)0)->map * KINDS * (size_t)chunks;
  struct EmuMaps *m = sol_heap_alloc(sizeof *m + maps);
  if (!m) return NULL;
  *m = (struct EmuMaps){.alloc = a, .first_line = first, .chunks = chunks};
  memset(m->map, 0, maps);
  sol_spin_lock(&run->lock);
  struct EmuMaps *there = a->maps;
  if (!there) {
    m->next = run->touched;
    run->touched = m;
    __atomic_store_n(&a->maps, m, __ATOMIC_RELEASE);
  }
  sol_spin_unlock(&run->lock);
  if (there) sol_heap_free(m);
  return there ? there : m;
}

static uint64_t *chunk_of(EmuRun *run, struct EmuMaps *m, MapKind kind, uint64_t chunk) {
  uint64_t **at = &m->map[(uint64_t)kind * m->chunks + chunk];
  uint64_t *map = __atomic_load_n(at, __ATOMIC_ACQUIRE), *made;
  if (map) return map;
  made = take_chunk(run->emu);
  if (!made || __atomic_compare_exchange_n(at, &map, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  give_chunk(run->emu, made);
  return map;
}

// ---- bits ----

static inline void set_bits(const EmuRun *run, uint64_t *word, uint64_t bits) {
  uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
  if ((now & bits) == bits) return;
  if (bits == UINT64_MAX || run->worker_count == 1)
    __atomic_store_n(word, now | bits, __ATOMIC_RELAXED); // nobody can be setting another
  else
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

static bool read_line(EmuRun *run, struct EmuMaps *m, uint64_t chunk, uint64_t word, const uint64_t bits[2]) {
  const uint64_t *written = __atomic_load_n(&m->map[(uint64_t)WRITTEN * m->chunks + chunk], __ATOMIC_ACQUIRE);
  uint64_t *first = chunk_of(run, m, READ_FIRST, chunk);
  if (!first) return false;
  for (int k = 0; k < 2; k++) {
    if (!bits[k]) continue;
    uint64_t after = written ? bits[k] & __atomic_load_n(&written[word + (uint64_t)k], __ATOMIC_RELAXED) : 0;
    set_bits(run, &first[word + (uint64_t)k], bits[k] & ~after);
    if (!after) continue;
    uint64_t *again = chunk_of(run, m, READ_AGAIN, chunk);
    if (!again) return false;
    set_bits(run, &again[word + (uint64_t)k], after);
  }
  return true;
}

static bool touch_line(EmuRun *run, struct EmuMaps *m, const SolLine *line, SolMemOp op) {
  uint64_t at = line->line - m->first_line, chunk = at / CHUNK_LINES, word = at % CHUNK_LINES * 2;
  uint64_t bits[2] = {line->bytes[0] | (uint64_t)line->bytes[1] << 32,
                      line->bytes[2] | (uint64_t)line->bytes[3] << 32};
  bool writes = op == SOL_MEM_STORE || op == SOL_MEM_COPY_STORE || op == SOL_MEM_ATOMIC;
  if ((!writes || op == SOL_MEM_ATOMIC) && !read_line(run, m, chunk, word, bits)) return false;
  if (!writes) return true;
  uint64_t *written = chunk_of(run, m, WRITTEN, chunk);
  if (!written) return false;
  for (int k = 0; k < 2; k++)
    if (bits[k]) set_bits(run, &written[word + (uint64_t)k], bits[k]);
  return true;
}

static struct EmuMaps *maps_of(EmuRun *run, EmuAlloc *a) {
  struct EmuMaps *m = __atomic_load_n(&a->maps, __ATOMIC_ACQUIRE);
  return m ? m : make_maps(run, a);
}

void emu_touch(EmuCtx *x, EmuAlloc *a, const SolCoalesced *request, SolMemOp op) {
  struct EmuMaps *m = maps_of(x->launch, a);
  bool ok = m;
  for (uint32_t k = 0; ok && k < request->lines; k++) ok = touch_line(x->launch, m, &request->line[k], op);
  if (!ok) out_of_memory(x->launch);
}

// The first byte of a line that is touched.
static uint64_t first_byte(const SolLine *line) {
  for (uint32_t s = 0; s < SOL_LINE_SECTORS; s++)
    if (line->bytes[s])
      return line->line * SOL_LINE_BYTES + s * SOL_SECTOR_BYTES + (uint32_t)__builtin_ctz(line->bytes[s]);
  return line->line * SOL_LINE_BYTES;
}

void emu_touch_any(EmuCtx *x, const SolCoalesced *request, SolMemOp op) {
  EmuAlloc *a = NULL;
  bool ok = true;
  for (uint32_t k = 0; ok && k < request->lines; k++) {
    uint64_t at = first_byte(&request->line[k]);
    if (!a || at - a->base >= a->size) a = emu_find_alloc(x->launch->emu, at);
    if (!a) continue; // local memory
    struct EmuMaps *m = maps_of(x->launch, a);
    ok = m && touch_line(x->launch, m, &request->line[k], op);
  }
  if (!ok) out_of_memory(x->launch);
}

// ---- the sum ----

static uint64_t popcount(uint64_t v) {
  return emu_popc((uint32_t)v) + emu_popc((uint32_t)(v >> 32));
}
static uint64_t sectors(uint64_t v) {
  return (uint64_t)((v & UINT32_MAX) != 0) + (uint64_t)(v >> 32 != 0);
}

// Bits of the 64 bytes from `start` on that are in [from, end).
static uint64_t inside(uint64_t start, uint64_t from, uint64_t end) {
  uint64_t bits = UINT64_MAX;
  if (start < from) bits &= from - start < 64 ? UINT64_MAX << (from - start) : 0;
  if (start + 64 > end) bits &= end > start ? UINT64_MAX >> (start + 64 - end) : 0;
  return bits;
}

// Distinct bytes and sectors of 64 bytes.
static inline void add_word(uint64_t v, uint64_t *bytes, uint64_t *in_sectors) {
  if (v == UINT64_MAX) {
    *bytes += 64;
    *in_sectors += 2;
  } else if (v) {
    *bytes += popcount(v);
    *in_sectors += sectors(v);
  }
}

static void sum_chunk(const struct EmuMaps *m, uint64_t chunk, SolEmuTouch *t) {
  static const uint64_t none[CHUNK_WORDS];
  const uint64_t *map[KINDS];
  for (uint64_t k = 0; k < KINDS; k++) {
    map[k] = m->map[k * m->chunks + chunk];
    if (!map[k]) map[k] = none;
  }
  if (map[READ_FIRST] == none && map[WRITTEN] == none) return;
  uint64_t start = (m->first_line + chunk * CHUNK_LINES) * SOL_LINE_BYTES, end = t->address + t->bytes;
  for (uint64_t k = 0, ignored = 0; k < CHUNK_WORDS && start < end; k++, start += 64) {
    uint64_t f = map[READ_FIRST][k], w = map[WRITTEN][k], r = f | map[READ_AGAIN][k], in = UINT64_MAX;
    if (!(r | w)) continue;
    if (start < t->address || start + 64 > end) in = inside(start, t->address, end);
    add_word(r & in, &t->read, &t->read_sectors);
    add_word(f & in, &t->read_first, &ignored);
    add_word(w & in, &t->written, &t->written_sectors);
    uint64_t gaps = in & ~w;
    if (!gaps) continue;
    w &= in;
    t->partial_sectors +=
        (uint64_t)((w & UINT32_MAX) && (gaps & UINT32_MAX)) + (uint64_t)(w >> 32 && gaps >> 32);
  }
}

typedef struct Moved { // the last that were
  uint64_t page, group, block;
} Moved;

static void move_page(const EmuAlloc *a, uint64_t at, Moved *last, SolEmuTouch *t) {
  uint8_t *there = &a->at_device[at / SOL_EMU_PAGE_GROUP - a->base / SOL_EMU_PAGE_GROUP];
  uint64_t page = at / SOL_EMU_PAGE + 1, group = at / SOL_EMU_PAGE_GROUP + 1,
           block = at / SOL_EMU_PAGE_BLOCK + 1;
  if ((*there && group != last->group) || page == last->page) return;
  if (group != last->group) t->moved += SOL_EMU_PAGE_GROUP;
  if (block != last->block) t->moved_blocks++;
  t->moved_pages++;
  *there = 1;
  *last = (Moved){page, group, block};
}

// Groups of pages that the launch touches are the device's from then on.
static void move_groups(const struct EmuMaps *m, SolEmuTouch *t) {
  const EmuAlloc *a = m->alloc;
  Moved last = {0};
  for (uint64_t chunk = 0; chunk < m->chunks; chunk++) {
    const uint64_t *read = m->map[(uint64_t)READ_FIRST * m->chunks + chunk],
                   *written = m->map[(uint64_t)WRITTEN * m->chunks + chunk];
    uint64_t start = (m->first_line + chunk * CHUNK_LINES) * SOL_LINE_BYTES;
    for (uint64_t k = 0; k < CHUNK_WORDS && (read || written); k++, start += 64)
      if ((read ? read[k] : 0) | (written ? written[k] : 0))
        move_page(a, start < a->base ? a->base : start, &last, t);
  }
}

static SolEmuTouch *touch_at(SolEmuResult *r, const EmuAlloc *a) {
  uint32_t at = 0;
  while (at < r->touch_count && r->touches[at].address < a->base) at++;
  if (at < r->touch_count && r->touches[at].address == a->base && r->touches[at].bytes == a->size)
    return &r->touches[at];
  if (r->touch_count == r->touch_cap) {
    uint32_t cap = r->touch_cap ? r->touch_cap * 2 : 8;
    SolEmuTouch *grown = sol_heap_realloc(r->touches, sizeof *grown * cap);
    if (!grown) return NULL;
    r->touches = grown;
    r->touch_cap = cap;
  }
  memmove(&r->touches[at + 1], &r->touches[at], sizeof *r->touches * (r->touch_count - at));
  r->touch_count++;
  r->touches[at] = (SolEmuTouch){
      .address = a->base, .bytes = a->size, .variable = a->variable, .host = a->mapped && !a->at_device};
  memcpy(r->touches[at].label, a->label, sizeof r->touches[at].label);
  return &r->touches[at];
}
_Static_assert(sizeof((EmuAlloc *)0)->label == sizeof((SolEmuTouch *)0)->label, "labels are copied");

SolStatus emu_touch_sum(EmuRun *run, SolError *err) {
  for (struct EmuMaps *m = run->touched; m; m = m->next) {
    if (m->alloc == run->workspace) continue;
    SolEmuTouch *t = touch_at(run->result, m->alloc);
    if (!t) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
    for (uint64_t chunk = 0; chunk < m->chunks; chunk++) sum_chunk(m, chunk, t);
    if (m->alloc->at_device) move_groups(m, t);
  }
  return SOL_OK;
}

void emu_touch_clear(EmuRun *run) {
  while (run->touched) {
    struct EmuMaps *m = run->touched;
    run->touched = m->next;
    m->alloc->maps = NULL;
    for (uint64_t k = 0; k < m->chunks * KINDS; k++)
      if (m->map[k]) give_chunk(run->emu, m->map[k]);
    sol_heap_free(m);
  }
}
