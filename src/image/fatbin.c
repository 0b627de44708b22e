#include "image/fatbin.h"

#include "base/error.h"
#include "base/heap.h"
#include "image/numbers.h"

#define CONTAINER_MAGIC 0xBA55ED50u
enum { ENTRY_HEADER = 64 }; // its fixed part
#define FLAG_LZ4    UINT64_C(0x2000)
#define FLAG_ZSTD   UINT64_C(0x8000)
#define FLAG_EXACT  UINT64_C(0x100000) // sm_90a
#define FLAG_FAMILY UINT64_C(0x200000) // sm_100f

static uint64_t number(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

uint64_t sol_fatbin_size(const void *header) {
  const uint8_t *at = header;
  uint64_t head = number(at + 6, 2), size = number(at + 8, 8);
  if (number(at, 4) != CONTAINER_MAGIC || head < SOL_FATBIN_HEADER || size > UINT64_MAX - head) return 0;
  return head + size;
}

SolStatus sol_fatbin_open(const void *data, uint64_t size, SolFatbin *out, SolError *err) {
  uint64_t whole = size >= SOL_FATBIN_HEADER ? sol_fatbin_size(data) : 0;
  if (!whole) return sol_fail(err, SOL_ERR_SYNTAX, "this is no fat binary");
  if (whole > size)
    return sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is cut short: %llu of %llu bytes",
                    (unsigned long long)size, (unsigned long long)whole);
  uint64_t head = number((const uint8_t *)data + 6, 2);
  *out = (SolFatbin){.data = (const uint8_t *)data + head, .size = whole - head};
  return SOL_OK;
}

static bool damaged(uint64_t at, const char *what, SolError *err) {
  sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is damaged: %s of the entry at byte %llu", what,
           (unsigned long long)at);
  return false;
}

bool sol_fatbin_next(const SolFatbin *fat, SolFatEntry *entry, SolError *err) {
  uint64_t at = entry->next, left = fat->size - at;
  if (err) err->status = SOL_OK;
  if (at >= fat->size) return false;
  if (left < ENTRY_HEADER) return damaged(at, "the header", err);
  const uint8_t *h = fat->data + at;
  uint64_t kind = number(h, 2), head = number(h + 4, 4), padded = number(h + 8, 8), flags = number(h + 40, 8);
  uint64_t packed = number(h + 16, 4), arch = number(h + 28, 4);
  if (head < ENTRY_HEADER || head > left) return damaged(at, "the header's size", err);
  if (padded > left - head) return damaged(at, "the size", err);
  if (packed > padded) return damaged(at, "the compressed size", err);
  *entry = (SolFatEntry){.kind = kind == 1   ? SOL_FAT_PTX
                                 : kind == 2 ? SOL_FAT_ELF
                                             : SOL_FAT_OTHER,
                         .packing = flags & FLAG_ZSTD  ? SOL_FAT_ZSTD
                                    : flags & FLAG_LZ4 ? SOL_FAT_LZ4
                                                       : SOL_FAT_PLAIN,
                         .arch = arch > 9999 ? 9999 : (int)arch,
                         .suffix = flags & FLAG_EXACT    ? 'a'
                                   : flags & FLAG_FAMILY ? 'f'
                                                         : 0,
                         .data = h + head,
                         .next = at + head + padded};
  bool plain = entry->packing == SOL_FAT_PLAIN;
  entry->size = plain ? padded : packed;
  entry->unpacked = plain ? padded : number(h + 56, 8);
  if (entry->unpacked > SOL_FATBIN_MAX_TEXT) return damaged(at, "the unpacked size", err);
  return true;
}

static bool runs_on(const SolFatEntry *e, int cc) {
  if (e->suffix == 'a') return e->arch == cc;
  if (e->suffix == 'f') return e->arch <= cc && e->arch / 10 == cc / 10;
  return e->arch <= cc;
}

// Of two that run: the newer; of one architecture, the one that may use more of it.
static bool better(const SolFatEntry *e, const SolFatEntry *than) {
  if (e->arch != than->arch) return e->arch > than->arch;
  return (e->suffix == 'a') * 2 + (e->suffix == 'f') > (than->suffix == 'a') * 2 + (than->suffix == 'f');
}

static SolStatus no_ptx(const SolFatEntry *other, bool elf, int cc, SolError *err) {
  if (other->kind == SOL_FAT_PTX)
    sol_fail(err, SOL_ERR_NOT_FOUND, "its PTX is for sm_%d%.1s; the emulated GPU is sm_%d", other->arch,
             other->suffix ? &other->suffix : "", cc);
  else
    sol_fail(err, SOL_ERR_NOT_FOUND, "it holds %s and no PTX", elf ? "machine code alone" : "no code");
  sol_hint(err, "build it with nvcc -gencode arch=compute_%d,code=[sm_%d,compute_%d]", cc, cc, cc);
  return SOL_ERR_NOT_FOUND;
}

SolStatus sol_fatbin_choose_ptx(const SolFatbin *fat, int cc, SolFatEntry *out, SolError *err) {
  SolFatEntry entry = {0}, best = {0}, other = {0};
  SolError damage = {0};
  bool elf = false;
  while (sol_fatbin_next(fat, &entry, &damage)) {
    if (entry.kind == SOL_FAT_ELF) elf = true;
    if (entry.kind != SOL_FAT_PTX) continue;
    other = entry;
    if (runs_on(&entry, cc) && (best.kind != SOL_FAT_PTX || better(&entry, &best))) best = entry;
  }
  if (damage.status) {
    if (err) *err = damage;
    return damage.status;
  }
  if (best.kind != SOL_FAT_PTX) return no_ptx(&other, elf, cc, err);
  *out = best;
  return SOL_OK;
}

// Machine code runs on the GPUs of its generation that are no older than it.
static bool elf_runs_on(const SolFatEntry *e, int cc) {
  return e->kind == SOL_FAT_ELF && runs_on(e, cc) && e->arch / 10 == cc / 10;
}

SolStatus sol_fatbin_choose(const SolFatbin *fat, int cc, SolFatEntry *out, SolError *err) {
  SolFatEntry entry = {0}, best = {0};
  while (sol_fatbin_next(fat, &entry, NULL))
    if (elf_runs_on(&entry, cc) && (best.kind != SOL_FAT_ELF || better(&entry, &best))) best = entry;
  if (best.kind != SOL_FAT_ELF) return sol_fatbin_choose_ptx(fat, cc, out, err);
  *out = best;
  return SOL_OK;
}

bool sol_fatbin_choose_elf(const SolFatbin *fat, int cc, SolFatEntry *out) {
  SolFatEntry entry = {0}, best = {0};
  while (sol_fatbin_next(fat, &entry, NULL)) {
    if (entry.kind != SOL_FAT_ELF) continue;
    bool older = entry.arch <= cc, best_older = best.arch <= cc;
    bool nearer = older == best_older ? older == (entry.arch > best.arch) : older;
    if (best.kind != SOL_FAT_ELF || nearer) best = entry;
  }
  if (best.kind == SOL_FAT_ELF) *out = best;
  return best.kind == SOL_FAT_ELF;
}

static SolStatus unpack(const SolFatEntry *e, uint8_t *to, SolError *err) {
  switch (e->packing) {
  case SOL_FAT_LZ4:
    if (sol_lz4_unpack(e->data, (size_t)e->size, to, (size_t)e->unpacked)) return SOL_OK;
    return sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is damaged: its LZ4 block does not unpack");
  case SOL_FAT_ZSTD: return sol_zstd_unpack(e->data, (size_t)e->size, to, (size_t)e->unpacked, err);
  default: memcpy(to, e->data, (size_t)e->size); return SOL_OK;
  }
}

static char *room_for(uint64_t bytes, SolError *err) { // and for a NUL
  char *room = sol_heap_alloc((size_t)bytes + 1);
  if (!room) sol_fail(err, SOL_ERR_NO_SPACE, "no memory for %llu bytes of code", (unsigned long long)bytes);
  return room;
}

// PTX with numbers as differences, as it was.
static SolStatus unpack_numbers(char **text, size_t *length, SolError *err) {
  size_t n = sol_numbers_unpack(*text, *length, NULL);
  if (n > SOL_FATBIN_MAX_TEXT) return sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is damaged: its numbers");
  char *plain = room_for(n, err);
  if (!plain) return SOL_ERR_NO_SPACE;
  sol_numbers_unpack(*text, *length, plain);
  plain[n] = 0;
  sol_heap_free(*text);
  *text = plain;
  *length = n;
  return SOL_OK;
}

SolStatus sol_fatbin_text(const SolFatEntry *e, char **text, size_t *length, SolError *err) {
  char *out = room_for(e->unpacked, err);
  if (!out) return SOL_ERR_NO_SPACE;
  SolStatus status = unpack(e, (uint8_t *)out, err);
  size_t n = (size_t)e->unpacked;
  if (!status && e->kind == SOL_FAT_PTX) {
    while (n && !out[n - 1]) n--; // padding, and the text's own NUL
    if (sol_numbers_packed(out, n)) status = unpack_numbers(&out, &n, err);
  }
  if (status) {
    sol_heap_free(out);
    return status;
  }
  out[n] = 0;
  *text = out;
  *length = n;
  return SOL_OK;
}
