// Objects by address: open addressing, linear probing; removal shifts back what follows.
#include <stdlib.h>

#include "shim/shim.h"

static size_t slot_of(const void *key, ShimKind kind, size_t cap) {
  uint64_t h = ((uint64_t)(uintptr_t)key ^ (uint64_t)kind << 57) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(h >> 20) & (cap - 1);
}

static ShimEntry *probe(ShimEntry *entries, size_t cap, const void *key, ShimKind kind) {
  size_t at = slot_of(key, kind, cap);
  while (entries[at].kind && (entries[at].key != key || entries[at].kind != kind)) at = (at + 1) & (cap - 1);
  return &entries[at];
}

static bool grow(ShimTable *t) {
  size_t cap = t->cap ? t->cap * 2 : 256;
  ShimEntry *entries = calloc(cap, sizeof *entries);
  if (!entries) return false;
  for (size_t i = 0; i < t->cap; i++)
    if (t->entries[i].kind) *probe(entries, cap, t->entries[i].key, t->entries[i].kind) = t->entries[i];
  free(t->entries);
  t->entries = entries;
  t->cap = cap;
  return true;
}

void *shim_find(const void *key, ShimKind kind) {
  ShimTable *t = &shim.table;
  return t->cap ? probe(t->entries, t->cap, key, kind)->value : NULL;
}

bool shim_put(const void *key, ShimKind kind, void *value) {
  ShimTable *t = &shim.table;
  if (t->count * 2 >= t->cap && !grow(t)) return false;
  ShimEntry *e = probe(t->entries, t->cap, key, kind);
  if (!e->kind) t->count++;
  *e = (ShimEntry){key, value, kind};
  return true;
}

void shim_remove(const void *key, ShimKind kind) {
  ShimTable *t = &shim.table;
  if (!t->cap) return;
  ShimEntry *e = probe(t->entries, t->cap, key, kind);
  if (!e->kind) return;
  t->count--;
  size_t hole = (size_t)(e - t->entries), mask = t->cap - 1;
  for (size_t at = (hole + 1) & mask; t->entries[at].kind; at = (at + 1) & mask) {
    size_t home = slot_of(t->entries[at].key, t->entries[at].kind, t->cap);
    if (((at - home) & mask) < ((at - hole) & mask)) continue; // it would land before its home
    t->entries[hole] = t->entries[at];
    hole = at;
  }
  t->entries[hole] = (ShimEntry){0};
}

void *shim_next(ShimKind kind, size_t *at) {
  ShimTable *t = &shim.table;
  for (; *at < t->cap; (*at)++)
    if (t->entries[*at].kind == kind) return t->entries[(*at)++].value;
  return NULL;
}
