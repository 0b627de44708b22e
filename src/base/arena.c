#include "base/arena.h"

#include "base/heap.h"

struct SolArenaChunk {
  struct SolArenaChunk *older;
  size_t size;
};

enum {
  ALIGN = 16,
  HEADER = (sizeof(struct SolArenaChunk) + ALIGN - 1) / ALIGN * ALIGN,
  FIRST = 4096,
  MOST = 1 << 20
};

void *sol_arena_alloc(SolArena *a, size_t size) {
  if (a->failed) return 0;
  if (size > SIZE_MAX / 2) return a->failed = true, NULL;
  size = (size + ALIGN - 1) / ALIGN * ALIGN;
  if (!a->chunk || a->chunk->size - a->used < size) {
    // Chunks double up to a megabyte, so that small trees stay small and large ones take few calls.
    size_t room = a->total < FIRST ? FIRST : a->total < MOST ? a->total : MOST;
    if (room < size + HEADER) room = size + HEADER;
    struct SolArenaChunk *chunk = sol_heap_alloc(room);
    if (!chunk) return a->failed = true, NULL;
    *chunk = (struct SolArenaChunk){a->chunk, room};
    a->chunk = chunk;
    a->used = HEADER;
    a->total += room;
  }
  void *memory = (char *)a->chunk + a->used;
  a->used += size;
  return memset(memory, 0, size);
}

void sol_arena_free(SolArena *a) {
  while (a->chunk) {
    struct SolArenaChunk *older = a->chunk->older;
    sol_heap_free(a->chunk);
    a->chunk = older;
  }
  *a = (SolArena){0};
}
