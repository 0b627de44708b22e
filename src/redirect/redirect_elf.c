// ELF files and loaded objects. What is read may be damaged: every offset is checked before it is used.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redirect/redirect.h"

bool redirect_open(const char *path, RedirectFile *out) {
  struct stat st;
  *out = (RedirectFile){0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  void *data = MAP_FAILED;
  if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size >= sizeof(ElfW(Ehdr)))
    data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) return false;
  *out = (RedirectFile){data, (size_t)st.st_size};
  if (memcmp(data, ELFMAG, SELFMAG) == 0 && out->data[EI_CLASS] == ELFCLASS64) return true;
  redirect_close(out);
  return false;
}

void redirect_close(RedirectFile *file) {
  if (file->data) munmap((void *)(uintptr_t)file->data, file->size);
  *file = (RedirectFile){0};
}

// `count` records of `bytes` at an offset; NULL: they are not in the file.
static const void *table(const RedirectFile *f, uint64_t offset, uint64_t count, uint64_t bytes) {
  if (offset % 8 || offset > f->size || count > (f->size - offset) / bytes) return NULL;
  return f->data + offset;
}

static const Elf64_Shdr *sections(const RedirectFile *f, unsigned *count) {
  const Elf64_Ehdr *h = (const void *)f->data;
  *count = h->e_shnum;
  return h->e_shentsize == sizeof(Elf64_Shdr) ? table(f, h->e_shoff, h->e_shnum, sizeof(Elf64_Shdr)) : NULL;
}

static void visit_all(const RedirectFile *f, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
                      void (*visit)(void *, const RedirectSymbol *), void *ctx) {
  uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
  const Elf64_Sym *all = table(f, symbols->sh_offset, count, sizeof *all);
  if (!all || names->sh_offset > f->size || names->sh_size > f->size - names->sh_offset) return;
  const char *texts = (const char *)f->data + names->sh_offset;
  for (uint64_t i = 0; i < count; i++) {
    const Elf64_Sym *s = &all[i];
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF || s->st_name >= names->sh_size)
      continue;
    if (!memchr(texts + s->st_name, 0, names->sh_size - s->st_name)) continue;
    bool hidden = ELF64_ST_VISIBILITY(s->st_other) == STV_HIDDEN || ELF64_ST_BIND(s->st_info) == STB_LOCAL;
    visit(ctx, &(RedirectSymbol){texts + s->st_name, s->st_value, s->st_size, hidden});
  }
}

bool redirect_symbols(const RedirectFile *f, uint32_t kind, void (*visit)(void *ctx, const RedirectSymbol *s),
                      void *ctx) {
  unsigned count;
  const Elf64_Shdr *s = sections(f, &count);
  for (unsigned i = 0; s && i < count; i++) {
    if (s[i].sh_type != kind || s[i].sh_link >= count) continue;
    visit_all(f, &s[i], &s[s[i].sh_link], visit, ctx);
    return true;
  }
  return false;
}

const uint8_t *redirect_loaded(const RedirectFile *f, uint64_t value, size_t bytes) {
  const Elf64_Ehdr *h = (const void *)f->data;
  const Elf64_Phdr *p = table(f, h->e_phoff, h->e_phnum, sizeof *p);
  for (unsigned i = 0; p && h->e_phentsize == sizeof *p && i < h->e_phnum; i++) {
    if (p[i].p_type != PT_LOAD || !(p[i].p_flags & PF_X) || value < p[i].p_vaddr) continue;
    uint64_t at = value - p[i].p_vaddr;
    if (at > p[i].p_filesz || bytes > p[i].p_filesz - at || p[i].p_offset > f->size) continue;
    uint64_t left = f->size - p[i].p_offset;
    return at <= left && bytes <= left - at ? f->data + p[i].p_offset + at : NULL;
  }
  return NULL;
}

// ---- a loaded object ----

static uint32_t gnu_hash(const char *name) {
  uint32_t h = 5381;
  for (const unsigned char *p = (const void *)name; *p; p++) h = h * 33 + *p;
  return h;
}

// Pointers of a dynamic section that the loader has prepared are addresses; before that they are offsets.
static uint64_t moved(uint64_t pointer, uint64_t base) {
  return pointer < base ? pointer + base : pointer;
}

uint64_t redirect_export(const void *dynamic, uint64_t base, const char *name) {
  const Elf64_Sym *symbols = NULL;
  const char *texts = NULL;
  const uint32_t *hash = NULL;
  for (const Elf64_Dyn *d = dynamic; d && d->d_tag != DT_NULL; d++) {
    uint64_t at = moved(d->d_un.d_ptr, base);
    if (d->d_tag == DT_SYMTAB) symbols = (const void *)(uintptr_t)at;
    if (d->d_tag == DT_STRTAB) texts = (const void *)(uintptr_t)at;
    if (d->d_tag == DT_GNU_HASH) hash = (const void *)(uintptr_t)at;
  }
  if (!symbols || !texts || !hash || !hash[0]) return 0;
  // The header (buckets, first symbol, words of the filter, shift), the filter, the buckets, the chains.
  const uint32_t *buckets = hash + 4 + (size_t)hash[2] * 2, *chains = buckets + hash[0];
  uint32_t wanted = gnu_hash(name), i = buckets[wanted % hash[0]];
  if (i < hash[1]) return 0;
  for (;; i++) {
    uint32_t h = chains[i - hash[1]];
    const Elf64_Sym *s = &symbols[i];
    if ((h | 1) == (wanted | 1) && s->st_shndx != SHN_UNDEF && strcmp(texts + s->st_name, name) == 0)
      return base + s->st_value;
    if (h & 1) return 0;
  }
}
