// Where memory comes from: malloc where there is a libc (heap_host.c), the module's own pages in wasm
// (heap_wasm.c). Everything else allocates through here, or not at all.
#ifndef SOL_BASE_HEAP_H
#define SOL_BASE_HEAP_H

#include "base/port.h"

void *sol_heap_alloc(size_t size); // NULL where there is no more; 16-byte aligned
void *sol_heap_realloc(void *old, size_t size);
void sol_heap_free(void *memory);

#endif
