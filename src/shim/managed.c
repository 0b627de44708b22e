// Managed memory: which groups of pages the device has, so that a launch is billed for those that have to move to it.
//
// The device gets what a launch touches (the emulator counts it), and what it copies, fills or prefetches. The host gets what the
// program touches: the pages' mappings are dropped after each launch, which leaves their contents in the file they are
// of, and those that are mapped again before the next launch are the ones that the host, or the system on its behalf, has
// read or written. Where the system does not tell, only a first touch counts.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/shim.h"

enum { GROUP = SOL_EMU_PAGE_GROUP, ENTRIES = 1024 };

static ShimHost *blocks; // guarded by the shim's lock

static size_t groups_of(const ShimHost *h) {
  uint64_t from = shim_address(h->memory);
  return (size_t)((from + h->bytes - 1) / GROUP - from / GROUP + 1);
}

void shim_managed_add(ShimHost *h) {
  h->in_file = shim_host_in_file();
  h->at_device = calloc(groups_of(h), 1);
  if (!h->at_device) return;
  h->next_managed = blocks;
  blocks = h;
}

void shim_managed_remove(ShimHost *h) {
  ShimHost **at = &blocks;
  while (*at && *at != h) at = &(*at)->next_managed;
  if (*at) *at = h->next_managed;
  free(h->at_device);
  h->at_device = NULL;
}

static uint64_t page_bytes(void) {
  long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? (uint64_t)bytes : 4096;
}

// Pages that are mapped (bit 63 of their pagemap entry; bit 62 while the kernel migrates them): the host has touched them since the last
// launch.
static void find_touched(ShimHost *h, int file) {
  uint64_t entry[ENTRIES], page = page_bytes(), from = shim_address(h->memory), first = from / page,
                           last = (from + h->bytes - 1) / page;
  for (uint64_t at = first; at <= last;) {
    size_t want = last - at + 1 < ENTRIES ? (size_t)(last - at + 1) : ENTRIES;
    ssize_t got = pread(file, entry, want * sizeof *entry, (off_t)(at * sizeof *entry));
    if (got < (ssize_t)sizeof *entry) return;
    for (size_t i = 0; i < (size_t)got / sizeof *entry; i++, at++) {
      uint64_t address = at * page < from ? from : at * page;
      if (entry[i] >> 62) h->at_device[address / GROUP - from / GROUP] = 0;
    }
  }
}

void shim_managed_before(void) {
  if (!blocks || !shim_counts()) return;
  int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (ShimHost *h = blocks; h; h = h->next_managed) {
    sol_emu_watch_pages(shim.emu, shim_address(h->memory), h->at_device);
    if (file >= 0 && h->in_file) find_touched(h, file);
  }
  if (file >= 0) close(file);
}

void shim_managed_after(void) {
  uint64_t page = page_bytes();
  for (const ShimHost *h = shim_counts() ? blocks : NULL; h; h = h->next_managed) {
    uint64_t from = shim_address(h->memory) / page * page, end = shim_address(h->memory) + h->bytes;
    if (h->in_file)
      madvise(shim_pointer(from), (size_t)((end - from + page - 1) / page * page), MADV_DONTNEED);
  }
}

void shim_managed_move(const void *memory, size_t bytes, bool to_device) {
  uint64_t at = shim_address(memory);
  for (ShimHost *h = bytes ? blocks : NULL; h; h = h->next_managed) {
    uint64_t from = shim_address(h->memory);
    if (at < from || at - from >= h->bytes) continue;
    uint64_t last = bytes < h->bytes - (at - from) ? at + bytes - 1 : from + h->bytes - 1;
    memset(h->at_device + (at / GROUP - from / GROUP), to_device, (size_t)(last / GROUP - at / GROUP + 1));
  }
}
