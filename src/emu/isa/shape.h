// The shape of an ld or st: the addresses of its lanes relative to the first active lane. Most instructions
// execute with the same shape at different addresses, and wavefronts, sectors of a line and the way data is
// copied depend only on the shape. So each instruction caches its last shape (EmuWorker.shapes): one comparison
// of 32 distances replaces checks, coalescing and bank counting lane by lane. For ops_memory.c, which is
// compiled twice where there is a version with wider vectors.
#ifndef SOL_EMU_SHAPE_H
#define SOL_EMU_SHAPE_H

#include "emu/core/state.h"

typedef struct Place { // the address of an access's first active lane
  uint64_t address;    // in its space
  uint8_t *host;
} Place;

// The memory in which all lanes should be: [base, base + size). False: not known, or not one allocation.
static inline bool piece_of(const EmuCtx *x, const EmuInst *i, uint64_t *base, uint64_t *size,
                            uint8_t **host) {
  if (i->space == PTX_SPACE_SHARED) {
    *base = 0, *size = x->block->shared_bytes, *host = x->block->shared;
    return true;
  }
  const EmuAlloc *a = emu_worker(x)->last[i->index];
  if (!a || a->freed || a->heap || a->read_only || i->space == PTX_SPACE_LOCAL || i->space == PTX_SPACE_PARAM)
    return false;
  *base = a->base, *size = a->size, *host = a->host;
  return true;
}

static inline uint64_t lane_address(const EmuCtx *x, const EmuInst *i, int lane) {
  if (i->abytes == 8) return EMU_IN(uint64_t, i->a)[lane] + (uint64_t)i->offset;
  return (uint32_t)(EMU_IN(uint32_t, i->a)[lane] + (uint32_t)i->offset);
}

// The active lanes' distances from the first are those of the shape.
static inline bool same_distances(EmuCtx *x, const EmuInst *i, const EmuShape *s, uint32_t mask) {
  const void *start = s->delta; // a variable of its own: clang 14 breaks on an array here, under UBSan
  const int32_t *delta = (const int32_t *)__builtin_assume_aligned(start, 64);
  int first = emu_first(mask);
  if (i->abytes == 8) {
    const uint64_t *a = EMU_IN(uint64_t, i->a);
    uint64_t from = a[first], wrong = 0;
    if (mask == EMU_ALL) {
      EMU_EACH(l) wrong |= (a[l] - from) ^ (uint64_t)(int64_t)delta[l];
    } else {
      const int32_t *on = emu_on(x, mask);
      EMU_EACH(l) wrong |= ((a[l] - from) ^ (uint64_t)(int64_t)delta[l]) & (uint64_t)(int64_t)on[l];
    }
    return !wrong;
  }
  const uint32_t *a = EMU_IN(uint32_t, i->a);
  uint32_t from = a[first], wrong = 0;
  if (mask == EMU_ALL) {
    EMU_EACH(l) wrong |= (a[l] - from) ^ (uint32_t)delta[l];
  } else {
    const int32_t *on = emu_on(x, mask);
    EMU_EACH(l) wrong |= ((a[l] - from) ^ (uint32_t)delta[l]) & (uint32_t)on[l];
  }
  return !wrong;
}

// Whether lanes of this shape are aligned and inside the memory.
static inline bool fits(const EmuShape *s, uint64_t address, uint64_t base, uint64_t size, uint32_t bytes) {
  uint64_t limit = size - bytes, in = address - base;
  return size >= bytes && in + (uint64_t)(int64_t)s->low <= limit &&
         in + (uint64_t)(int64_t)s->high <= limit && !(address & (bytes - 1));
}

// Blocks of 16 or 8 threads in a row have rows as long in their warps.
static void learn_groups(EmuShape *s, uint32_t bytes) {
  static const uint8_t sizes[] = {8, 16, 32};
  s->rows = s->equals = 0;
  for (size_t k = 0; k < sizeof sizes && s->mask == EMU_ALL; k++) {
    bool rows = true, equals = true;
    for (int l = 0; l < EMU_LANES; l++) {
      int32_t from = s->delta[l / sizes[k] * sizes[k]];
      rows = rows && s->delta[l] == from + (int32_t)((uint32_t)l % sizes[k] * bytes);
      equals = equals && s->delta[l] == from;
    }
    if (rows) s->rows = sizes[k];
    if (equals) s->equals = sizes[k];
  }
}

// Stores the lanes' current shape. False: they are too far apart, or not aligned to each other.
static bool learn(const EmuCtx *x, const EmuInst *i, EmuShape *s, uint32_t mask, uint32_t bytes) {
  uint64_t from = lane_address(x, i, emu_first(mask));
  s->index = UINT32_MAX;
  s->mask = mask;
  s->low = s->high = 0;
  bool row = mask == EMU_ALL;
  for (int l = 0; l < EMU_LANES; l++) {
    uint64_t apart = mask >> l & 1 ? lane_address(x, i, l) - from : 0;
    int32_t delta = (int32_t)(uint32_t)apart;
    if (apart != (uint64_t)(int64_t)delta || apart & (bytes - 1)) return false;
    s->delta[l] = delta;
    if (delta < s->low) s->low = delta;
    if (delta > s->high) s->high = delta;
    row = row && apart == (uint64_t)l * bytes;
  }
  s->row = row;
  learn_groups(s, bytes);
  s->counted = s->observed = s->fused = false;
  s->index = i->index;
  return true;
}

// That of the access through the same register which the warp has just executed. NULL: there is none. Each has its own
// where accesses are counted: what was counted depends on where it ends in a line.
static inline EmuShape *first_shape(const EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (i->e == i->index) return NULL;
  EmuShape *s = &emu_worker(x)->shapes[x->launch->program->code[i->e].f];
  return s->index == i->e && s->mask == mask ? s : NULL;
}

// Where accesses are not counted: that of an access which the one before it through the same register has checked, and its place
// in at->host. NULL: it must be checked.
static inline EmuShape *checked_shape(const EmuCtx *x, const EmuInst *i, uint32_t mask, Place *at) {
  const EmuWorker *w = emu_worker(x);
  if (i->e < w->since || i->e >= i->index) return NULL;
  EmuShape *s = first_shape(x, i, mask);
  if (!s || !s->host) return NULL;
  uint64_t by = (uint64_t)i->offset - (uint64_t)s->offset;
  if (by + s->below > s->below + s->above || by & (i->bytes * i->vec - 1u)) return NULL;
  at->host = (uint8_t *)((uintptr_t)s->host + (uintptr_t)by);
  return s;
}

// The next warp's access is mostly as far from this one as this one is from the last: where that is beyond a page, in which the host
// looks ahead by itself.
static inline void look_ahead(EmuShape *s, const uint8_t *host) {
  enum { PAGE = 4096, LINE = 64 };
  uintptr_t by = (uintptr_t)host - (uintptr_t)s->before;
  s->before = host;
  if (by + PAGE < 2 * PAGE) return;
  __builtin_prefetch((const void *)((uintptr_t)host + by));
  __builtin_prefetch((const void *)((uintptr_t)host + by + LINE));
}

static inline void remember_place(EmuShape *s, const EmuInst *i, Place at, uint64_t base, uint64_t size) {
  uint64_t in = at.address - base, limit = size - (uint32_t)i->bytes * i->vec;
  if (i->space != PTX_SPACE_SHARED) look_ahead(s, at.host);
  s->host = at.host;
  s->offset = i->offset;
  s->below = in + (uint64_t)(int64_t)s->low;
  s->above = limit - in - (uint64_t)(int64_t)s->high;
}

// The shape of an access whose active lanes are all aligned and inside one allocation, and its address in *at.
// NULL: they are not, or have no shape, and must be checked one by one.
static inline EmuShape *shape_of(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bytes, Place *at) {
  uint64_t base, size;
  uint8_t *host;
  EmuWorker *w = emu_worker(x);
  EmuShape *s = &w->shapes[i->f];
  if (!piece_of(x, i, &base, &size, &host) || bytes & (bytes - 1)) {
    s->index = UINT32_MAX; // so that nothing else has its shape from here
    return NULL;
  }
  EmuShape *first = i->e >= w->since && !x->launch->counting ? first_shape(x, i, mask) : NULL;
  if (first)
    s = first;
  else if ((s->index != i->index || s->mask != mask || !same_distances(x, i, s, mask)) &&
           !learn(x, i, s, mask, bytes))
    return NULL;
  at->address = lane_address(x, i, emu_first(mask));
  s->host = NULL;
  if (!fits(s, at->address, base, size, bytes)) return NULL;
  at->host = (uint8_t *)((uintptr_t)host + (uintptr_t)(at->address - base));
  if (x->launch->bare) remember_place(s, i, *at, base, size);
  return s;
}

static inline uint8_t *lane_host(const EmuShape *s, Place at, int lane) {
  return at.host + s->delta[lane];
}

#endif
