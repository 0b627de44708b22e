// Access policy windows: which lines L2 keeps longest, and which it gives up first.
//
// Lines of a persisting window are evicted last, as far as the set-aside goes: beyond it the least recently used of them
// persists no longer. Lines of streaming accesses are the next to be evicted. A line keeps its property until an access through a
// window changes it, or all are reset.
#ifndef SOL_MEM_WINDOW_H
#define SOL_MEM_WINDOW_H

#include "mem/cache_set.h"
#include "mem/coalesce.h"

typedef enum SolL2Property {
  SOL_L2_NO_PROPERTY,
  SOL_L2_NORMAL,
  SOL_L2_STREAMING,
  SOL_L2_PERSISTING
} SolL2Property;

typedef struct SolL2Window {
  uint64_t address, bytes; // 0 bytes: no window
  uint32_t hit_permille;   // of its lines, by hash, those that have `hit`; the others have `miss`
  SolL2Property hit, miss;
} SolL2Window;

static inline SolL2Property sol_window_property(const SolL2Window *w, uint64_t line) {
  uint64_t address = line * SOL_LINE_BYTES;
  if (address - w->address >= w->bytes) return SOL_L2_NO_PROPERTY;
  uint32_t hash = (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32);
  return (uint64_t)hash * 1000 >> 32 < w->hit_permille ? w->hit : w->miss;
}

// The least recently used of the ways that persist, or of those that do not; SOL_WAYS: there is none.
static inline uint32_t sol_window_oldest(const SolSet *s, bool kept) {
  for (uint32_t age = s->ways; age-- > 0;) {
    uint32_t way = sol_nibble(s->order, age);
    if ((s->kept >> way & 1) == kept) return way;
  }
  return SOL_WAYS;
}

static inline uint32_t sol_window_victim(const SolSet *s) {
  return s->empty || !s->kept ? sol_set_victim(s) : sol_window_oldest(s, false);
}

// At most `most` ways persist, fewer than the set has: one more takes the place of the least recently used of them.
static inline void sol_window_mark(SolSet *s, uint32_t way, SolL2Property property, uint32_t most) {
  if (property == SOL_L2_NO_PROPERTY) return;
  s->kept = (uint16_t)(s->kept & ~(1u << way));
  if (property != SOL_L2_PERSISTING || !most) return;
  if ((uint32_t)__builtin_popcount(s->kept) >= most)
    s->kept = (uint16_t)(s->kept & ~(1u << sol_window_oldest(s, true)));
  s->kept = (uint16_t)(s->kept | 1u << way);
}

#endif
