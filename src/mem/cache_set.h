// One set of a sectored cache: up to 16 lines, exact least-recently-used order, a nibble of sectors per line.
// L1 and L2 are arrays of these. Everything here is inline: it is the innermost loop of both.
//
// Lines are spread over sets so that any aligned run of as many lines as there are sets fills each set once,
// and strides by powers of two spread too: the line's upper bits, hashed, are exclusive-ored onto its lower
// ones.
#ifndef SOL_MEM_CACHE_SET_H
#define SOL_MEM_CACHE_SET_H

#include "mem/bits.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SOL_WAYS = 16 };

typedef struct SolSet {
  uint32_t tag[SOL_WAYS];    // SOL_NO_TAG: empty
  uint64_t order;            // ways, one a nibble, the most recently used lowest
  uint8_t valid[SOL_WAYS];   // sectors present with all their bytes
  uint8_t partial[SOL_WAYS]; // sectors of which only the written bytes are present
  uint8_t dirty[SOL_WAYS];   // L2: sectors not yet written back to DRAM
  uint8_t ways;              // the number of ways of this set, up to 16
  uint8_t dirty_ways;        // L2: the number of ways with a dirty sector
  uint16_t empty;            // ways that hold no line, a bit each
  uint16_t queued;           // L2: ways in the queue of partly written lines, a bit each
  uint16_t kept;             // L2: ways that persist (mem/window.h), a bit each
} SolSet;
_Static_assert(sizeof(SolSet) == 128, "SolSet fills two cache lines");

#define SOL_NO_TAG UINT32_C(0x80000000)

// The layout of a cache: 2^bits sets, the first `extra` of them with one more way.
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

// The set and tag of a line. Tags have 31 bits; higher address bits are folded in, so that only lines far apart,
// at one particular distance, could be confused.
typedef struct SolPlace {
  uint32_t set, tag;
} SolPlace;

static inline SolPlace sol_place(uint64_t line, uint32_t bits) {
  uint64_t upper = line >> bits;
  uint32_t tag = ((uint32_t)upper & 0x7fffffffu) + (uint32_t)(upper >> 31) * 0x9e3779b1u;
  uint32_t hash = (uint32_t)((uint64_t)(tag * 0x9e3779b1u) << bits >> 32);
  return (SolPlace){((uint32_t)line ^ hash) & (uint32_t)((UINT64_C(1) << bits) - 1), tag & 0x7fffffffu};
}

static inline void sol_set_clear(SolSet *s, uint32_t ways) {
  for (uint32_t i = 0; i < SOL_WAYS; i++) s->tag[i] = SOL_NO_TAG;
  s->order = UINT64_C(0xfedcba9876543210);
  memset(s->valid, 0, sizeof s->valid);
  memset(s->partial, 0, sizeof s->partial);
  memset(s->dirty, 0, sizeof s->dirty);
  s->ways = (uint8_t)ways;
  s->empty = (uint16_t)sol_low_bits(ways);
  s->queued = s->kept = 0;
  s->dirty_ways = 0;
}

// The way that holds the tag, or SOL_WAYS.
static inline uint32_t sol_set_find(const SolSet *s, uint32_t tag) {
#ifdef __SSE2__
  const __m128i *four = (const __m128i *)(const void *)s->tag;
  __m128i want = _mm_set1_epi32((int)tag);
  __m128i low = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(four), want),
                                _mm_cmpeq_epi32(_mm_load_si128(four + 1), want));
  __m128i high = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(four + 2), want),
                                 _mm_cmpeq_epi32(_mm_load_si128(four + 3), want));
  uint32_t ways = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
#else
  uint32_t ways = 0;
  for (uint32_t i = 0; i < SOL_WAYS; i++) ways |= (uint32_t)(s->tag[i] == tag) << i;
#endif
  return sol_first_bit(ways | UINT32_C(1) << SOL_WAYS);
}

// Makes a way the most recently used.
static inline void sol_set_touch(SolSet *s, uint32_t way) {
  if ((s->order & 15) == way) return;
  uint64_t x = s->order ^ way * SOL_NIBBLES_1;
  uint32_t at = (uint32_t)__builtin_ctzll((x - SOL_NIBBLES_1) & ~x & SOL_NIBBLES_8) - 3;
  uint64_t newer = (UINT64_C(1) << at) - 1;
  s->order = (s->order & ~(newer << 4 | 15)) | (s->order & newer) << 4 | way;
}

// The way to evict for the next line: an empty one, else the least recently used. The set has at least one way.
static inline uint32_t sol_set_victim(const SolSet *s) {
  return s->empty ? sol_first_bit(s->empty) : sol_nibble(s->order, s->ways - 1);
}

// Allocates a way for a line, with no valid sectors.
static inline void sol_set_take(SolSet *s, uint32_t way, uint32_t tag) {
  s->tag[way] = tag;
  s->empty = (uint16_t)(s->empty & ~(1u << way));
  s->kept = (uint16_t)(s->kept & ~(1u << way));
  s->valid[way] = s->partial[way] = 0;
}

// Empties a way that is not dirty.
static inline void sol_set_drop(SolSet *s, uint32_t way) {
  sol_set_take(s, way, SOL_NO_TAG);
  s->empty = (uint16_t)(s->empty | 1u << way);
}

#endif
