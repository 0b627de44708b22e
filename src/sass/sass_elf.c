// 64-bit little-endian ELF, as ptxas writes it.
#include "sass/sass_elf.h"

enum { HEADER = 64, SECTION_HEADER = 64, SYMBOL = 24, FUNCTION = 2, CUDA_ENTRY = 0x10 };

static const char *text_at(const SassSection *texts, uint64_t at) {
  for (uint64_t i = at; i < texts->size; i++)
    if (!texts->data[i]) return (const char *)texts->data + at;
  return "";
}

static bool section_at(const SassElf *e, uint64_t index, SassSection *out, uint64_t *name) {
  uint64_t table = sass_number(e->file + 40, 8);
  if (index >= e->section_count) return false;
  const uint8_t *h = e->file + table + index * SECTION_HEADER;
  uint64_t at = sass_number(h + 24, 8), bytes = sass_number(h + 32, 8);
  if (at > e->size || bytes > e->size - at) return false;
  *out = (SassSection){e->file + at, bytes, sass_number(h + 44, 4), sass_number(h + 40, 4), ""};
  *name = sass_number(h, 4);
  return true;
}

bool sass_elf_section(const SassElf *e, uint64_t index, SassSection *out) {
  SassSection names;
  uint64_t name, ignored;
  if (!section_at(e, index, out, &name)) return false;
  if (section_at(e, sass_number(e->file + 62, 2), &names, &ignored)) out->name = text_at(&names, name);
  return true;
}

bool sass_elf_find(const SassElf *e, const char *name, SassSection *out) {
  for (uint64_t i = 0; i < e->section_count; i++)
    if (sass_elf_section(e, i, out) && strcmp(out->name, name) == 0) return true;
  return false;
}

bool sass_elf_open(const void *elf, size_t size, SassElf *out) {
  const uint8_t *file = elf;
  if (!file || size < HEADER || memcmp(file, "\177ELF\2\1", 6) != 0) return false;
  uint64_t table = sass_number(file + 40, 8), count = sass_number(file + 60, 2);
  if (table > size || count > (size - table) / SECTION_HEADER) return false;
  *out = (SassElf){.file = file, .size = size, .section_count = count, .arch = file[file[8] >= 8 ? 49 : 48]};
  return sass_elf_find(out, ".symtab", &out->symbols) &&
         sass_elf_section(out, out->symbols.link, &out->strings);
}

int sass_arch(const void *elf, size_t size) {
  SassElf e;
  return sass_elf_open(elf, size, &e) ? e.arch : 0;
}

bool sass_elf_symbol(const SassElf *e, uint64_t index, SassSymbol *out) {
  if (index >= e->symbols.size / SYMBOL) return false;
  const uint8_t *s = e->symbols.data + index * SYMBOL;
  *out = (SassSymbol){.name = text_at(&e->strings, sass_number(s, 4)),
                      .section = sass_number(s + 6, 2),
                      .value = sass_number(s + 8, 8),
                      .function = (s[4] & 15) == FUNCTION,
                      .entry = s[5] & CUDA_ENTRY};
  return true;
}

static size_t line_end(const char *text, size_t at, size_t length) {
  while (at < length && text[at] && text[at] != '\n') at++;
  return at;
}

static size_t without_comment(const char *line, size_t length) {
  for (size_t i = 0; i + 1 < length; i++)
    if (line[i] == '/' && line[i + 1] == '/') return i;
  return length;
}

// Spaces and comments aside, which neither of the two texts has kept as they were.
static bool same_line(const char *a, size_t a_end, const char *b, size_t b_end) {
  a_end = without_comment(a, a_end), b_end = without_comment(b, b_end);
  for (size_t i = 0, j = 0;;) {
    while (i < a_end && (a[i] == ' ' || a[i] == '\t' || a[i] == '\r')) i++;
    while (j < b_end && (b[j] == ' ' || b[j] == '\t' || b[j] == '\r')) j++;
    if (i == a_end || j == b_end) return i == a_end && j == b_end;
    if (a[i++] != b[j++]) return false;
  }
}

// The section has the lines, each with a NUL behind it; comments and directives are left out of it.
bool sass_is_of(const void *elf, size_t size, const char *ptx, size_t length) {
  SassElf e;
  SassSection s;
  if (!sass_elf_open(elf, size, &e) || !sass_elf_find(&e, ".nv_debug_ptx_txt", &s) || !s.size) return false;
  const char *kept = (const char *)s.data;
  size_t at = 0, bytes = (size_t)s.size;
  for (size_t from = 0; from < bytes;) {
    size_t to = line_end(kept, from, bytes), end = line_end(ptx, at, length);
    if (to > from && !same_line(kept + from, to - from, ptx + at, end - at)) return false;
    at = end < length ? end + 1 : end;
    from = to + 1;
  }
  return true;
}
