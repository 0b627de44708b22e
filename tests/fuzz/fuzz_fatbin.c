// Fat binaries (src/image/fatbin.c and what it unpacks with): walk, choose, unpack, look registers up.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "fuzz.h"
#include "image/fatbin.h"

enum { MOST = 1 << 20 }; // unpacked: larger ones are allowed, and slow

static void unpack(const SolFatEntry *entry) {
  char *text;
  size_t length;
  if (entry->unpacked > MOST || sol_fatbin_text(entry, &text, &length, NULL)) return;
  MUST(length <= 6 * entry->unpacked &&
       text[length] == 0); // a number as a difference has one digit, as it was up to ten
  if (entry->kind == SOL_FAT_ELF) MUST(sol_cubin_registers(text, length, "kernel") >= 0);
  sol_heap_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MUST(sol_cubin_registers(data, size, "kernel") >= 0);
  uint8_t room[4096];
  sol_lz4_unpack(data, size, room, sizeof room);
  SolFatbin fat;
  SolError err = {0};
  if (sol_fatbin_open(data, size, &fat, &err)) {
    MUST(err.message[0]);
    return 0;
  }
  MUST(fat.data >= data && fat.data + fat.size <= data + size);
  SolFatEntry entry = {0};
  uint64_t before = 0;
  while (sol_fatbin_next(&fat, &entry, &err)) {
    MUST(entry.next > before && entry.next <= fat.size);
    MUST(entry.data >= fat.data && entry.data + entry.size <= fat.data + fat.size);
    before = entry.next;
    unpack(&entry);
  }
  for (int cc = 70; cc < 130; cc += 5) {
    if (!sol_fatbin_choose_ptx(&fat, cc, &entry, &err)) MUST(entry.kind == SOL_FAT_PTX && entry.arch <= cc);
    if (sol_fatbin_choose_elf(&fat, cc, &entry)) MUST(entry.kind == SOL_FAT_ELF);
  }
  return 0;
}
