// Sections of a cubin; shared by the files of this folder.
#ifndef SOL_SASS_ELF_H
#define SOL_SASS_ELF_H

#include "sass/sass_code.h"

typedef struct SassSection {
  const uint8_t *data;
  uint64_t size, info, link;
  const char *name; // "" where it has none that ends in the file
} SassSection;

typedef struct SassElf {
  const uint8_t *file;
  size_t size;
  uint64_t section_count;
  int arch;                     // 90
  SassSection symbols, strings; // of symbols
} SassElf;

typedef struct SassSymbol {
  const char *name;
  uint64_t section, value;
  bool function, entry; // entry: a kernel
} SassSymbol;

bool sass_elf_open(const void *elf, size_t size, SassElf *out);
bool sass_elf_section(const SassElf *elf, uint64_t index, SassSection *out);
bool sass_elf_find(const SassElf *elf, const char *name, SassSection *out);
bool sass_elf_symbol(const SassElf *elf, uint64_t index, SassSymbol *out);

static inline uint64_t sass_number(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

// sass_lines.c: sets the lines of the section's instructions; false: there are none for it.
bool sass_lines(const SassElf *elf, uint64_t section, SassInst *insts, uint32_t count);

#endif
