#define _GNU_SOURCE // madvise
#include <sys/mman.h>
#include <unistd.h>

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

uint64_t emu_host_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : UINT64_MAX;
}
