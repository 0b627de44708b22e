// Accesses that compute their addresses themselves (emu/core/fuse.h): the first active lane's from the registers that the address is a
// linear function of, the others' from its shape, as long as those registers' lanes are as far apart as when the shape was learnt.
// For ops_memory.c.
#ifndef SOL_EMU_FUSED_H
#define SOL_EMU_FUSED_H

#include "emu/isa/shape.h"

static inline __attribute__((always_inline)) bool same_source(EmuCtx *x, EmuLoc at, bool is_wide,
                                                              const int32_t *source, uint32_t mask) {
  const int32_t *delta = (const int32_t *)__builtin_assume_aligned((const void *)source, 64);
  const int32_t *on = mask == EMU_ALL ? NULL : emu_on(x, mask);
  int first = emu_first(mask);
  if (is_wide) {
    const uint64_t *a = EMU_IN(uint64_t, at);
    uint64_t from = a[first], wrong = 0;
    if (!on)
      EMU_EACH(l) wrong |= (a[l] - from) ^ (uint64_t)(int64_t)delta[l];
    else
      EMU_EACH(l) wrong |= ((a[l] - from) ^ (uint64_t)(int64_t)delta[l]) & (uint64_t)(int64_t)on[l];
    return !wrong;
  }
  const uint32_t *a = EMU_IN(uint32_t, at);
  uint32_t from = a[first], wrong = 0;
  if (!on)
    EMU_EACH(l) wrong |= (a[l] - from) ^ (uint32_t)delta[l];
  else
    EMU_EACH(l) wrong |= ((a[l] - from) ^ (uint32_t)delta[l]) & (uint32_t)on[l];
  return !wrong;
}

static inline bool same_sources(EmuCtx *x, const EmuFused *f, const EmuShape *s, uint32_t mask) {
  uint32_t n = 0;
  if (f->one && mask == EMU_ALL) return same_source(x, f->varies, false, s->source[0], EMU_ALL);
  for (uint32_t k = 0; k < f->wide.count; k++)
    if (f->wide.terms[k].vary && !same_source(x, f->wide.terms[k].at, true, s->source[n++], mask))
      return false;
  for (uint32_t k = 0; k < f->narrow.count; k++)
    if (f->narrow.terms[k].vary && !same_source(x, f->narrow.terms[k].at, false, s->source[n++], mask))
      return false;
  return true;
}

// The address of a lane; false: its narrow part wraps in some lane, where a lane's distance says nothing of its address.
static inline bool fused_address(const EmuCtx *x, const EmuInst *i, const EmuFused *f, const EmuShape *s,
                                 int lane, uint64_t *address) {
  uint64_t wide = (uint64_t)f->wide.plus;
  int64_t narrow = f->narrow.plus;
  for (uint32_t k = 0; k < f->wide.count; k++)
    wide += (uint64_t)f->wide.terms[k].times * EMU_IN(uint64_t, f->wide.terms[k].at)[lane];
  for (uint32_t k = 0; k < f->narrow.count; k++) {
    uint32_t value = EMU_IN(uint32_t, f->narrow.terms[k].at)[lane];
    narrow +=
        f->narrow.terms[k].times * (f->widen == EMU_UNSIGNED ? (int64_t)value : (int64_t)(int32_t)value);
  }
  if (i->abytes == 4) {
    *address = (uint32_t)((uint64_t)narrow + (uint64_t)i->offset);
    return true;
  }
  int64_t least = f->widen == EMU_SIGNED ? INT32_MIN : 0,
          most = f->widen == EMU_SIGNED ? INT32_MAX : UINT32_MAX;
  *address = wide + (uint64_t)f->scale * (uint64_t)narrow + (uint64_t)i->offset;
  return f->widen == EMU_NO_NARROW || (narrow + s->narrow_low >= least && narrow + s->narrow_high <= most);
}

// As shape_of. NULL: what was left out has to be executed.
static inline EmuShape *fused_shape(EmuCtx *x, const EmuInst *i, const EmuFused *f, uint32_t mask,
                                    Place *at) {
  EmuShape *s = checked_shape(x, i, mask, at);
  if (s) return s;
  uint64_t base, size;
  uint8_t *host;
  s = &emu_worker(x)->shapes[i->f];
  if (s->index != i->index || s->mask != mask || !s->fused) return NULL;
  s->host = NULL;
  if (!same_sources(x, f, s, mask) || !fused_address(x, i, f, s, emu_first(mask), &at->address)) return NULL;
  if (!piece_of(x, i, &base, &size, &host) || !fits(s, at->address, base, size, (uint32_t)i->bytes * i->vec))
    return NULL;
  at->host = (uint8_t *)((uintptr_t)host + (uintptr_t)(at->address - base));
  remember_place(s, i, *at, base, size);
  return s;
}

// The distances of a form's terms, each in its own row from source[*n] on, and their sum in *out. False: they are too far apart.
static inline bool learn_form(const EmuCtx *x, const EmuForm *form, bool is_wide, EmuShape *s, uint32_t mask,
                              uint32_t *n, int64_t out[EMU_LANES]) {
  int first = emu_first(mask);
  for (uint32_t k = 0; k < form->count; k++) {
    const EmuTerm *t = &form->terms[k];
    for (int l = 0; t->vary && l < EMU_LANES; l++) {
      uint64_t apart =
          is_wide ? EMU_IN(uint64_t, t->at)[l] - EMU_IN(uint64_t, t->at)[first]
                  : (uint64_t)(int64_t)(int32_t)(EMU_IN(uint32_t, t->at)[l] - EMU_IN(uint32_t, t->at)[first]);
      int32_t delta = mask >> l & 1 ? (int32_t)(uint32_t)apart : 0;
      if (mask >> l & 1 && apart != (uint64_t)(int64_t)delta) return false;
      s->source[*n][l] = delta;
      out[l] += t->times * delta;
    }
    *n += t->vary;
  }
  return true;
}

typedef struct FusedSums { // what a form's terms add to each lane's address
  int64_t wide[EMU_LANES], narrow[EMU_LANES];
  bool known;
} FusedSums;

// Executes what was left out, for an access in the usual way; that may write where its sources are.
static inline void execute_left_out(EmuCtx *x, const EmuInst *i, const EmuFused *f, uint32_t mask,
                                    FusedSums *sums) {
  EmuShape *s = &emu_worker(x)->shapes[i->f];
  uint32_t n = 0;
  for (uint32_t k = 0; k < f->count; k++) {
    const EmuInst *op = &x->launch->program->code[f->ops[k]];
    op->run(x, op, mask);
  }
  memset(sums, 0, sizeof *sums);
  s->fused = false;
  sums->known = learn_form(x, &f->wide, true, s, mask, &n, sums->wide) &&
                learn_form(x, &f->narrow, false, s, mask, &n, sums->narrow);
}

// After that access: whether its shape is that of the sums.
static void fused_learn(const EmuCtx *x, const EmuInst *i, const EmuFused *f, uint32_t mask,
                        const FusedSums *sums) {
  EmuShape *s = &emu_worker(x)->shapes[i->f];
  if (!sums->known || s->index != i->index || s->mask != mask || !s->host) return;
  s->narrow_low = s->narrow_high = 0;
  int64_t scale = i->abytes == 4 ? 1 : f->scale;
  for (int l = 0; l < EMU_LANES; l++) {
    if (mask >> l & 1 && sums->wide[l] + scale * sums->narrow[l] != s->delta[l]) return;
    if (sums->narrow[l] < s->narrow_low) s->narrow_low = sums->narrow[l];
    if (sums->narrow[l] > s->narrow_high) s->narrow_high = sums->narrow[l];
  }
  s->fused = true;
}

#endif
