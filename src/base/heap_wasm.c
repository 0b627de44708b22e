// The freestanding wasm32 heap: a bump allocator over the module's memory. Freeing gives back only the newest
// block, which is what growing buffers and arenas torn down in order need.
#include "base/heap.h"

extern unsigned char __heap_base;

enum { PAGE = 65536, ALIGN = 16 };

typedef struct Heap {
  uintptr_t top, end;
} Heap;

static Heap *heap(void) {
  static Heap state; // the one allocator of the module's single thread
  if (!state.top) {
    state.top = ((uintptr_t)&__heap_base + ALIGN - 1) / ALIGN * ALIGN;
    state.end = __builtin_wasm_memory_size(0) * PAGE;
  }
  return &state;
}

// Each block is preceded by its size, padded to the alignment.
void *sol_heap_alloc(size_t size) {
  Heap *h = heap();
  if (size > SIZE_MAX / 4) return 0;
  size = (size + ALIGN - 1) / ALIGN * ALIGN;
  uintptr_t need = size + ALIGN;
  if (h->end - h->top < need) {
    size_t pages = (need - (h->end - h->top) + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return 0;
    h->end += pages * PAGE;
  }
  *(size_t *)h->top = size;
  void *memory = (void *)(h->top + ALIGN);
  h->top += need;
  return memory;
}

void sol_heap_free(void *memory) {
  if (!memory) return;
  uintptr_t block = (uintptr_t)memory - ALIGN;
  Heap *h = heap();
  if (block + ALIGN + *(size_t *)block == h->top) h->top = block;
}

void *sol_heap_realloc(void *old, size_t size) {
  if (!old) return sol_heap_alloc(size);
  size_t had = *(size_t *)((uintptr_t)old - ALIGN);
  if (size <= had) return old;
  void *memory = sol_heap_alloc(size);
  if (!memory) return 0;
  memcpy(memory, old, had);
  sol_heap_free(old);
  return memory;
}
