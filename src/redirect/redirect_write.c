// Jumps over the start of functions. A short jump (4 bytes on aarch64, 5 on x86-64) reaches a veneer, which lies in a
// mapping near the object and goes on to any address; where no such place is free the whole way is written
// over the function, if it is long enough.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "redirect/redirect.h"

enum { VENEER = 32 };

// ---- instructions ----

#if defined(__aarch64__)

enum { SHORT = 4, LONG = 16 };
static const int64_t reach = (INT64_C(127) << 20); // of b, less a little

static void put_short(uint8_t *at, int64_t distance) {
  uint32_t b = 0x14000000u | ((uint32_t)(distance / 4) & 0x3ffffffu);
  memcpy(at, &b, sizeof b);
}

static void put_long(uint8_t *at, uint64_t target) {
  static const uint32_t code[] = {0x58000050u, 0xd61f0200u}; // ldr x16, .+8; br x16
  memcpy(at, code, sizeof code);
  memcpy(at + 8, &target, sizeof target);
}

static void put_named(uint8_t *at, uint64_t target, const char *name) {
  static const uint32_t code[] = {0x58000080u, 0x580000b0u, 0xd61f0200u, 0xd503201fu}; // x0, x16; br x16; nop
  memcpy(at, code, sizeof code);
  memcpy(at + 16, &name, sizeof name);
  memcpy(at + 24, &target, sizeof target);
}

#elif defined(__x86_64__)

enum { SHORT = 5, LONG = 14 };
static const int64_t reach = (INT64_C(2000) << 20); // of jmp rel32, less a little

static void put_short(uint8_t *at, int64_t distance) {
  int32_t rest = (int32_t)(distance - SHORT);
  at[0] = 0xe9; // jmp
  memcpy(at + 1, &rest, sizeof rest);
}

static void put_long(uint8_t *at, uint64_t target) {
  static const uint8_t code[] = {0xff, 0x25, 0, 0, 0, 0}; // jmp *0(%rip)
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &target, sizeof target);
}

static void put_named(uint8_t *at, uint64_t target, const char *name) {
  static const uint8_t code[] = {0x48, 0xbf}; // movabs $name, %rdi
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &name, sizeof name);
  put_long(at + sizeof code + sizeof name, target);
}

#else
#error "jumps are written for aarch64 and x86-64"
#endif

// A function without room for a jump that ends in a return does no more than return a constant: it may stay.
static bool only_returns(const RedirectJump *j) {
#if defined(__x86_64__)
  return j->room > 0 && j->room < SHORT && j->from[j->room - 1] == 0xc3;
#else
  return !j; // every instruction has room for one
#endif
}

// ---- code ----

// A mapping of a file in memory needs no page that can be both written and executed.
static bool map_copy(uint8_t *at, const uint8_t *bytes, size_t size) {
  int file = memfd_create("sol-redirect", MFD_CLOEXEC);
  if (file < 0) return false;
  size_t done = 0;
  for (ssize_t n = 1; done < size && n > 0; done += n > 0 ? (size_t)n : 0)
    n = write(file, bytes + done, size - done);
  bool mapped = done == size && mmap(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) == at;
  close(file);
  return mapped;
}

// Whole pages get these bytes, and can be executed afterwards. False: the system forbids it, and nothing changed.
static bool put_code(uint8_t *at, const uint8_t *bytes, size_t size) {
  if (mprotect(at, size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
    memcpy(at, bytes, size);
    mprotect(at, size, PROT_READ | PROT_EXEC);
  } else if (!map_copy(at, bytes, size)) {
    return false;
  }
  __builtin___clear_cache((char *)at, (char *)at + size);
  return true;
}

// ---- veneers ----

typedef struct Span { // of addresses
  uint64_t from, to;
} Span;

static uint64_t page_size(void) {
  return (uint64_t)sysconf(_SC_PAGESIZE);
}

static Span pages(Span s) {
  uint64_t page = page_size();
  return (Span){s.from / page * page, (s.to + page - 1) / page * page};
}

// Free addresses near a span: the end of the nearest gap below it, where no heap will grow, else the start of the
// nearest above. 0: there are none.
static uint64_t find_gap(Span near, uint64_t size) {
  uint64_t last = 0x10000, below = 0, above = 0, from, to;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    bool fits = from > last && from - last >= size;
    if (fits && from <= near.from) below = from - size;
    if (fits && last >= near.to && !above) above = last;
    if (to > last) last = to;
  }
  if (maps) fclose(maps);
  if (below && near.to - below < (uint64_t)reach) return below;
  return above && above + size - near.from < (uint64_t)reach ? above : 0;
}

static uint8_t *make_veneers(Span near, const RedirectJump *jumps, size_t count, uint64_t size) {
  uint64_t gap = find_gap(near, size);
  if (!gap) return NULL;
  void *wanted = (void *)(uintptr_t)gap;
  uint8_t *at =
      mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  uint8_t *bytes = calloc(1, size);
  for (size_t i = 0; bytes && i < count; i++) {
    uint8_t *v = bytes + i * VENEER;
    if (jumps[i].name)
      put_named(v, jumps[i].target, jumps[i].name);
    else
      put_long(v, jumps[i].target);
  }
  bool put = at == wanted && bytes && put_code(at, bytes, size); // an old kernel takes the address as a hint
  free(bytes);
  if (!put) munmap(at, size);
  return put ? at : NULL;
}

// ---- all ----

static Span span_of(const RedirectJump *jumps, size_t count) {
  Span s = {UINT64_MAX, 0};
  for (size_t i = 0; i < count; i++) {
    uint64_t at = (uint64_t)(uintptr_t)jumps[i].from;
    if (at < s.from) s.from = at;
    if (at + jumps[i].room > s.to) s.to = at + jumps[i].room;
  }
  return s;
}

RedirectEnd redirect_write(const RedirectJump *jumps, size_t count, RedirectVeneers *out) {
  Span text = pages(span_of(jumps, count));
  uint64_t size = pages((Span){0, count * VENEER}).to;
  uint8_t *old = (uint8_t *)(uintptr_t)text.from, *bytes = malloc(text.to - text.from);
  uint8_t *veneers = make_veneers(text, jumps, count, size);
  RedirectEnd end = bytes ? REDIRECT_DONE : REDIRECT_REFUSED;
  if (bytes) memcpy(bytes, old, text.to - text.from);
  for (size_t i = 0; bytes && i < count; i++) {
    uint8_t *at = bytes + (jumps[i].from - old);
    if (veneers && jumps[i].room >= SHORT)
      put_short(at, veneers + i * VENEER - jumps[i].from);
    else if (!jumps[i].name && jumps[i].room >= LONG)
      put_long(at, jumps[i].target);
    else if (!only_returns(&jumps[i]))
      end = REDIRECT_TOO_SHORT;
  }
  if (bytes && !put_code(old, bytes, text.to - text.from)) end = REDIRECT_REFUSED;
  free(bytes);
  *out = (RedirectVeneers){veneers, size};
  return end;
}
