// What the emulator reads from machine code: how many registers and how much stack ptxas gave a kernel. The
// section .nv.info holds records {u8 form, u8 attribute, u16 size or value}, those of form 4 followed by
// `size` bytes; attribute 0x2f has a symbol and its registers, 0x11 its frame's bytes. 64-bit little-endian
// ELF.
#include "image/fatbin.h"

enum {
  ELF_HEADER = 64,
  SECTION_HEADER = 64,
  SYMBOL = 24,
  INFO_SIZED = 4,
  INFO_FRAME = 0x11,
  INFO_REGISTERS = 0x2f
};

typedef struct Section {
  const uint8_t *data;
  uint64_t size, link, name;
} Section;

static uint64_t number(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

static bool section_at(const uint8_t *file, size_t size, uint64_t index, Section *out) {
  uint64_t table = number(file + 40, 8), count = number(file + 60, 2);
  if (table > size || count > (size - table) / SECTION_HEADER || index >= count) return false;
  const uint8_t *h = file + table + index * SECTION_HEADER;
  uint64_t at = number(h + 24, 8), bytes = number(h + 32, 8);
  if (at > size || bytes > size - at) return false;
  *out = (Section){file + at, bytes, number(h + 40, 4), number(h, 4)};
  return true;
}

static bool named(const Section *texts, uint64_t at, const char *name) {
  uint64_t length = strlen(name) + 1;
  return at < texts->size && texts->size - at >= length && !memcmp(texts->data + at, name, length);
}

static uint64_t find_value(const Section *info, const Section *symbols, const Section *texts,
                           const char *kernel, int attribute) {
  for (uint64_t at = 0; info->size - at >= 4;) {
    const uint8_t *r = info->data + at;
    uint64_t size = r[0] == INFO_SIZED ? number(r + 2, 2) : 0;
    if (size > info->size - at - 4) return 0;
    at += 4 + size;
    if (r[0] != INFO_SIZED || r[1] != attribute || size < 8) continue;
    uint64_t symbol = number(r + 4, 4);
    if (symbol >= symbols->size / SYMBOL) continue;
    if (named(texts, number(symbols->data + symbol * SYMBOL, 4), kernel)) return number(r + 8, 4);
  }
  return 0;
}

static uint64_t read_info(const void *elf, size_t size, const char *kernel, int attribute) {
  const uint8_t *file = elf;
  Section names, info, symbols, texts;
  if (size < ELF_HEADER || memcmp(file, "\177ELF\2\1", 6) != 0) return 0;
  if (!section_at(file, size, number(file + 62, 2), &names)) return 0;
  for (uint64_t k = 0; k < number(file + 60, 2); k++) {
    if (!section_at(file, size, k, &info) || !named(&names, info.name, ".nv.info")) continue;
    if (!section_at(file, size, info.link, &symbols) || !section_at(file, size, symbols.link, &texts))
      return 0;
    return find_value(&info, &symbols, &texts, kernel, attribute);
  }
  return 0;
}

int sol_cubin_registers(const void *elf, size_t size, const char *kernel) {
  return (int)(read_info(elf, size, kernel, INFO_REGISTERS) & 1023);
}

int sol_cubin_stack(const void *elf, size_t size, const char *kernel) {
  return (int)(read_info(elf, size, kernel, INFO_FRAME) & 0xffffff);
}
