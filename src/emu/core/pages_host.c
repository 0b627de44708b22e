#define _GNU_SOURCE // madvise
#include <sys/mman.h>

#include "emu/core/state.h"

enum { LARGE_PAGE = 2 << 20 };

void emu_use_large_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
  uintptr_t to = ((uintptr_t)memory + bytes) / LARGE_PAGE * LARGE_PAGE;
  if (from < to) madvise((void *)from, to - from, MADV_HUGEPAGE); // advice: refused is fine
#else
  (void)memory, (void)bytes;
#endif
}
