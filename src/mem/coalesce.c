#include "mem/coalesce.h"

#include "mem/bits.h"

bool sol_lanes_in_step(const uint64_t addr[SOL_LANES], uint32_t lanes, uint64_t step) {
  uint64_t off = 0;
  if (lanes == SOL_LANES) { // two at a time, without a branch
    typedef uint64_t Two __attribute__((vector_size(16)));
    Two want = {addr[0], addr[0] + step}, wrong = {0, 0};
    for (uint32_t i = 0; i < SOL_LANES; i += 2) {
      Two two;
      memcpy(&two, addr + i, sizeof two);
      wrong |= two ^ want;
      want += 2 * step;
    }
    return (wrong[0] | wrong[1]) == 0;
  }
  for (uint32_t i = 0; i < lanes; i++) off |= addr[i] ^ (addr[0] + i * step);
  return off == 0;
}

// The line's part of [from, to).
static void fill_part(SolLine *l, uint64_t from, uint64_t to) {
  l->sectors = l->whole = 0;
  for (uint32_t k = 0; k < SOL_LINE_SECTORS; k++) {
    uint64_t sector = l->line * SOL_LINE_BYTES + (uint64_t)k * SOL_SECTOR_BYTES;
    uint32_t low = from <= sector ? 0 : from - sector >= 32 ? 32 : (uint32_t)(from - sector);
    uint32_t high = to <= sector ? 0 : to - sector >= 32 ? 32 : (uint32_t)(to - sector);
    l->bytes[k] = low < high ? sol_low_bits(high) & ~sol_low_bits(low) : 0;
    l->sectors |= (uint32_t)(l->bytes[k] != 0) << k;
    l->whole |= (uint32_t)(l->bytes[k] == UINT32_MAX) << k;
  }
}

// All bytes of [from, to), which does not wrap: what consecutive lanes touch.
static void fill_range(uint64_t from, uint64_t to, SolCoalesced *out) {
  uint64_t first = from / SOL_LINE_BYTES, last = (to - 1) / SOL_LINE_BYTES;
  out->lines = (uint32_t)(last - first) + 1;
  out->bytes = (uint32_t)(to - from);
  out->sectors = (uint32_t)((to - 1) / SOL_SECTOR_BYTES - from / SOL_SECTOR_BYTES) + 1;
  out->ideal_sectors = (out->bytes + SOL_SECTOR_BYTES - 1) / SOL_SECTOR_BYTES;
  for (uint32_t i = 0; i < out->lines; i++) {
    SolLine *l = &out->line[i];
    l->line = first + i;
    uint64_t at = l->line * SOL_LINE_BYTES;
    if (from <= at && to - at >= SOL_LINE_BYTES) {
      memset(l->bytes, 0xff, sizeof l->bytes);
      l->sectors = l->whole = 15;
    } else {
      fill_part(l, from, to);
    }
  }
}

// The lines found so far, by hash: entry numbers + 1. Made only where lanes do not go upwards through memory.
enum { TABLE = 128 };
typedef struct Table {
  bool made;
  uint8_t entry[TABLE];
} Table;

static uint32_t hash(uint64_t line) {
  return (uint32_t)(line ^ line >> 7 ^ line >> 15) % TABLE;
}

static void put(Table *t, const SolCoalesced *out, uint32_t entry) {
  uint32_t at = hash(out->line[entry].line);
  while (t->entry[at]) at = (at + 1) % TABLE;
  t->entry[at] = (uint8_t)(entry + 1);
}

static void make(Table *t, const SolCoalesced *out) {
  memset(t->entry, 0, sizeof t->entry);
  for (uint32_t i = 0; i < out->lines; i++) put(t, out, i);
  t->made = true;
}

// Finds the entry of a line, or adds it. `last` was found before it and is not it.
static SolLine *line_of(SolCoalesced *out, Table *t, const SolLine *last, uint64_t line) {
  if (last && line < last->line && !t->made) make(t, out);
  if (t->made)
    for (uint32_t at = hash(line); t->entry[at]; at = (at + 1) % TABLE)
      if (out->line[t->entry[at] - 1].line == line) return &out->line[t->entry[at] - 1];
  SolLine *l = &out->line[out->lines++];
  *l = (SolLine){.line = line};
  if (t->made) put(t, out, out->lines - 1);
  return l;
}

static void add_to_sector(SolCoalesced *out, SolLine *l, uint32_t k, uint32_t add, uint32_t n) {
  uint32_t had = l->bytes[k];
  out->sectors += had == 0;
  out->bytes += had & add ? sol_bits_count(add & ~had) : n;
  l->bytes[k] = had | add;
  l->sectors |= UINT32_C(1) << k;
  l->whole |= (uint32_t)((had | add) == UINT32_MAX) << k;
}

// Adds n bytes from `offset` on, all inside one line: at most two sectors, as n is at most 32.
static void add_bytes(SolCoalesced *out, SolLine *l, uint32_t offset, uint32_t n) {
  uint32_t k = offset / 32, in_first = 32 - offset % 32;
  if (n > in_first) {
    add_to_sector(out, l, k + 1, sol_low_bits(n - in_first), n - in_first);
    n = in_first;
  }
  add_to_sector(out, l, k, sol_low_bits(n) << offset % 32, n);
}

static void gather(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolCoalesced *out) {
  Table table;
  table.made = false;
  SolLine *last = NULL;
  for (; mask; mask &= mask - 1) {
    uint64_t at = addr[sol_first_bit(mask)];
    uint32_t offset = (uint32_t)(at % SOL_LINE_BYTES), left = width;
    for (; left; at += SOL_LINE_BYTES - offset, offset = 0) {
      uint64_t line = at / SOL_LINE_BYTES;
      uint32_t n = left < SOL_LINE_BYTES - offset ? left : SOL_LINE_BYTES - offset;
      if (!last || last->line != line) last = line_of(out, &table, last, line);
      add_bytes(out, last, offset, n);
      left -= n;
    }
  }
  out->ideal_sectors = (out->bytes + SOL_SECTOR_BYTES - 1) / SOL_SECTOR_BYTES;
}

void sol_coalesce(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolCoalesced *out) {
  out->lines = out->sectors = out->ideal_sectors = out->bytes = 0;
  if (!mask || !width || width > SOL_MAX_LANE_BYTES) return;
  // The first lanes alone are active, all of them or, at the end of an array, the first few; and they are
  // consecutive, or all in one place. The last lane tells which it could be.
  if (!(mask & (mask + 1)) && addr[0] <= UINT64_MAX - UINT64_C(1) * SOL_LANES * SOL_MAX_LANE_BYTES) {
    uint32_t lanes = mask == UINT32_MAX ? SOL_LANES : sol_first_bit(mask + 1);
    uint64_t span = addr[lanes - 1] - addr[0], step = span ? width : 0;
    if (span == (lanes - 1) * step && sol_lanes_in_step(addr, lanes, step)) {
      fill_range(addr[0], addr[0] + span + width, out);
      return;
    }
  }
  gather(addr, mask, width, out);
}

void sol_coalesce_copy(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolCoalesced *out) {
  sol_coalesce(addr, mask, width, out);
  uint32_t lanes = SOL_LINE_BYTES / (width ? width : 1);
  if (lanes >= SOL_LANES || !out->lines) return;
  SolCoalesced part;
  out->lines = out->sectors = 0;
  for (uint32_t first = 0; first < SOL_LANES; first += lanes) {
    sol_coalesce(addr, mask & sol_low_bits(lanes) << first, width, &part);
    memcpy(out->line + out->lines, part.line, part.lines * sizeof *part.line);
    out->lines += part.lines;
    out->sectors += part.sectors;
  }
}
