// Many small allocations, freed together. Start from {0}. A failed allocation sets `failed` and returns NULL,
// so that a builder may check once, at the end.
#ifndef SOL_BASE_ARENA_H
#define SOL_BASE_ARENA_H

#include "base/port.h"

typedef struct SolArena {
  struct SolArenaChunk *chunk; // the one being filled; older ones hang from it
  size_t used, total;          // bytes used of the chunk; bytes held by all chunks
  bool failed;
} SolArena;

void *sol_arena_alloc(SolArena *arena, size_t size); // zeroed, 16-byte aligned
void sol_arena_free(SolArena *arena);

#endif
