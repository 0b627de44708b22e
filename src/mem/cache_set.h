// One set of a sectored cache: up to 16 lines, exact least-recently-used order, a nibble of sectors per line.
// L1 and L2 are arrays of these. Everything here is inline: it is the innermost loop of both.
//
// Lines are spread over sets so that any aligned run of as many lines as there are sets fills each set once,
// and strides by powers of two spread too: the line's upper bits, hashed, are exclusive-ored onto its lower
// ones.
#ifndef SOL_MEM_CACHE_SET_H
#define SOL_MEM_CACHE_SET_H

#include "mem/bits.h"

enum { SOL_WAYS = 16 };

typedef struct SolSet {
  uint32_t tag[SOL_WAYS]; // SOL_NO_TAG: empty
  uint64_t order;         // ways, one a nibble, the most recently used lowest
  uint64_t valid;         // per way, sectors that are here whole
  uint64_t partial;       // per way, sectors of which only written bytes are here
  uint64_t dirty;         // per way, sectors that memory below does not have yet
  uint32_t queued;        // L2: ways that stand in the queue of partly written lines
  uint32_t ways;          // how many of the 16 this set has
  uint64_t unused[3];     // fills two cache lines of the host
} SolSet;
_Static_assert(sizeof(SolSet) == 128, "SolSet fills two cache lines");

#define SOL_NO_TAG UINT32_C(0x80000000)

// How a number of lines is laid out: 2^bits sets, the first `extra` of them with one way more.
typedef struct SolSetLayout {
  uint32_t bits, ways, extra;
} SolSetLayout;

static inline SolSetLayout sol_set_layout(uint64_t lines) {
  SolSetLayout l = {0, 0, 0};
  while (lines >> l.bits > SOL_WAYS || (lines >> l.bits == SOL_WAYS && lines & ((UINT64_C(1) << l.bits) - 1)))
    l.bits++;
  l.ways = (uint32_t)(lines >> l.bits);
  l.extra = (uint32_t)(lines & ((UINT64_C(1) << l.bits) - 1));
  return l;
}

// Where a line lives. Tags have 31 bits; what lies above them is folded in, so that only far-apart addresses
// at one odd distance could be taken for each other.
typedef struct SolPlace {
  uint32_t set, tag;
} SolPlace;

static inline SolPlace sol_place(uint64_t line, uint32_t bits) {
  uint64_t upper = line >> bits;
  uint32_t tag = ((uint32_t)upper & 0x7fffffffu) + (uint32_t)(upper >> 31) * 0x9e3779b1u;
  uint32_t hash = (uint32_t)((uint64_t)(tag * 0x9e3779b1u) << bits >> 32);
  return (SolPlace){((uint32_t)line ^ hash) & (uint32_t)((UINT64_C(1) << bits) - 1), tag & 0x7fffffffu};
}

static inline void sol_set_clear(SolSet *s) {
  for (uint32_t i = 0; i < SOL_WAYS; i++) s->tag[i] = SOL_NO_TAG;
  s->order = UINT64_C(0xfedcba9876543210);
  s->valid = s->partial = s->dirty = 0;
  s->queued = 0;
}

// The way that holds the tag, or SOL_WAYS.
static inline uint32_t sol_set_find(const SolSet *s, uint32_t tag) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  static const Four bit[4] = {
      {1, 2, 4, 8}, {16, 32, 64, 128}, {256, 512, 1024, 2048}, {4096, 8192, 16384, 32768}};
  Four want = {tag, tag, tag, tag}, found = {0, 0, 0, 0};
  for (size_t i = 0; i < 4; i++) {
    Four four;
    memcpy(&four, s->tag + 4 * i, sizeof four);
    found |= (Four)(four == want) & bit[i];
  }
  uint32_t ways = (found[0] | found[1]) | (found[2] | found[3]);
  return ways ? sol_first_bit(ways) : SOL_WAYS;
}

// Makes a way the most recently used.
static inline void sol_set_touch(SolSet *s, uint32_t way) {
  uint64_t x = s->order ^ way * SOL_NIBBLES_1;
  uint32_t at = (uint32_t)__builtin_ctzll((x - SOL_NIBBLES_1) & ~x & SOL_NIBBLES_8) - 3;
  uint64_t newer = (UINT64_C(1) << at) - 1;
  s->order = (s->order & ~(newer << 4 | 15)) | (s->order & newer) << 4 | way;
}

// The way that the next line takes: an empty one, else the least recently used. The set has at least one way.
static inline uint32_t sol_set_victim(const SolSet *s) {
  uint64_t held = sol_nibbles_used(s->valid | s->partial);
  uint64_t empty = ~held & SOL_NIBBLES_1 & (UINT64_MAX >> (SOL_WAYS - s->ways) * 4);
  if (empty) return (uint32_t)__builtin_ctzll(empty) / 4;
  return sol_nibble(s->order, s->ways - 1);
}

// Empties a way.
static inline void sol_set_drop(SolSet *s, uint32_t way) {
  uint64_t keep = ~(UINT64_C(15) << way * 4);
  s->tag[way] = SOL_NO_TAG;
  s->valid &= keep;
  s->partial &= keep;
  s->dirty &= keep;
}

#endif
