// The commonest of many numbers, in bounded memory, the same for any number of workers.
#include "base/heap.h"
#include "emu/watch/observe.h"

static uint64_t hash(int64_t key) {
  uint64_t h = (uint64_t)key * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 32;
}

static bool kept(int64_t key, uint32_t level) {
  if (key >= -EMU_TALLY_NEAR && key <= EMU_TALLY_NEAR) return true;
  return !(hash(key) >> 20 & ((UINT64_C(1) << level) - 1));
}

static uint32_t slot_of(const EmuTally *t, int64_t key) {
  uint32_t at = (uint32_t)hash(key) & (t->cap - 1);
  while (t->times[at] && t->keys[at] != key) at = (at + 1) & (t->cap - 1);
  return at;
}

// A new table of `cap` slots with what is kept at the tally's level. False: out of memory.
static bool rebuild(EmuTally *t, uint32_t cap) {
  EmuTally old = *t;
  int64_t *memory = sol_heap_alloc((sizeof *t->keys + sizeof *t->times) * cap);
  if (!memory) return false;
  t->keys = memory;
  t->times = (uint64_t *)(void *)(memory + cap);
  memset(t->times, 0, sizeof *t->times * cap);
  t->cap = cap;
  t->count = 0;
  for (uint32_t k = 0; k < old.cap; k++) {
    if (!old.times[k] || !kept(old.keys[k], t->level)) continue;
    uint32_t at = slot_of(t, old.keys[k]);
    t->keys[at] = old.keys[k];
    t->times[at] = old.times[k];
    t->count++;
  }
  sol_heap_free(old.keys);
  return true;
}

static void put(EmuTally *t, int64_t key, uint64_t times) {
  if (!times || !kept(key, t->level)) return;
  if ((t->count + 1) * 2 > t->cap && !rebuild(t, t->cap ? t->cap * 2 : 8)) return;
  uint32_t at = slot_of(t, key);
  if (!t->times[at]) t->count++;
  t->keys[at] = key;
  t->times[at] += times;
  while (t->count > EMU_TALLY_KEYS && t->level < 40) {
    t->level++;
    if (!rebuild(t, t->cap)) return;
  }
}

void emu_tally_flush(EmuTally *t) {
  put(t, t->last, t->pending);
  t->pending = 0;
}

void emu_tally_merge(EmuTally *to, EmuTally *from) {
  emu_tally_flush(to);
  emu_tally_flush(from);
  if (from->level > to->level) {
    to->level = from->level;
    if (to->cap && !rebuild(to, to->cap)) return;
  }
  for (uint32_t k = 0; k < from->cap; k++) put(to, from->keys[k], from->times[k]);
}

static uint64_t distance(int64_t v) {
  return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

uint64_t emu_tally_commonest(EmuTally *t, int64_t *key) {
  uint64_t most = 0;
  emu_tally_flush(t);
  for (uint32_t k = 0; k < t->cap; k++) {
    if (!t->times[k] || t->times[k] < most) continue;
    bool nearer = distance(t->keys[k]) < distance(*key) ||
                  (distance(t->keys[k]) == distance(*key) && t->keys[k] > *key);
    if (t->times[k] == most && !nearer) continue;
    most = t->times[k];
    *key = t->keys[k];
  }
  return most;
}

void emu_tally_free(EmuTally *t) {
  sol_heap_free(t->keys);
  *t = (EmuTally){0};
}
