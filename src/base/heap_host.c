#include "base/heap.h"

#include <stdlib.h>

void *sol_heap_alloc(size_t size) {
  return malloc(size ? size : 1);
}

void *sol_heap_realloc(void *old, size_t size) {
  return realloc(old, size ? size : 1);
}

void sol_heap_free(void *memory) {
  free(memory);
}
