// Lanes that wait for others: they repeat an access (ld.volatile, ld.acquire, an atomic that changes nothing) until its value changes.
// How often a GPU's warps do so depends on when the others come, which is not known here, and costs them nothing but that they
// wait. So the iterations after the first few are not counted.
//
// An iteration was in vain if the access has the addresses and the values of the last time and all registers are as they were: PTX
// has a register for every value, so what else the iteration read was the same, too, and what it stored is there already.
// A loop that sleeps (nanosleep) may count its attempts. A fiber whose iterations are in vain is idle; it executes one in each of its
// turns. Another value may not be the one that it waits for: if the next iteration has as many instructions as one in vain, it was
// not. It is idle no longer once an iteration has another length, or the access is not repeated. Of several accesses of a loop the first is
// looked at, until another is executed three times in a row with the same registers: that one is in a loop of its own.
#include "emu/core/hooks.h"

enum { OTHERS = 64, MARGIN = 16 }; // accesses of a loop that are not the one that is looked at; instructions

static uint64_t add_word(uint64_t hash, uint64_t v) {
  hash = (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static uint64_t add_rows(uint64_t hash, const void *from, size_t bytes) {
  const uint8_t *at = from;
  for (size_t k = 0; k + 8 <= bytes; k += 8) {
    uint64_t v;
    memcpy(&v, at + k, 8);
    hash = add_word(hash, v);
  }
  return hash;
}

static uint64_t registers(const EmuCtx *x) {
  return add_rows(0, x->frame->regs, x->launch->program->functions[x->frame->function].spare);
}

static void begin(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t seen) {
  EmuPoll *p = &x->fiber->poll;
  *p =
      (EmuPoll){.at = i, .seen = seen, .mask = mask, .left = x->budget, .steps = p->steps, .where = p->where};
  if (x->launch->observing) emu_path_polls(x);
}

static void end(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t seen) {
  begin(x, i, mask, seen);
  x->budget = 0; // what follows is counted
  if (x->launch->observing) emu_path_goes_on(x);
}

static uint64_t where_of(const EmuCtx *x, const EmuInst *i) {
  return add_rows(0, emu_at(x, i->a), (size_t)i->abytes * EMU_LANES);
}

static uint64_t seen_by(const EmuCtx *x, const EmuInst *i, const EmuLoc *to, uint32_t count, uint32_t bytes) {
  uint64_t seen = where_of(x, i);
  for (uint32_t k = 0; k < count; k++) seen = add_rows(seen, emu_at(x, to[k]), (size_t)bytes * EMU_LANES);
  return seen;
}

static bool still_in_vain(const EmuCtx *x, uint32_t mask, bool same, int32_t length) {
  const EmuPoll *p = &x->fiber->poll;
  if (p->mask != mask) return false;
  if (p->changed) return length == p->length;
  return !same || p->slept || p->state == registers(x);
}

// The access of an idle fiber, once more.
static void poll_idle(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t seen) {
  EmuPoll *p = &x->fiber->poll;
  bool same = p->seen == seen, watched = x->launch->observing;
  int32_t length = p->allowed - x->budget;
  if (!still_in_vain(x, mask, same, length)) {
    end(x, i, mask, seen);
    return;
  }
  if (watched && p->changed) emu_path_idles(x, i, mask); // it was not what they wait for
  if (watched && !same) emu_path_wakes(x, i, mask);
  if (!p->changed) p->length = length;
  if (p->changed && same) p->state = registers(x);
  p->changed = !same;
  p->seen = seen;
  p->left = p->allowed = same ? p->steps : p->length;
  p->again = true;
  p->slept = false;
  x->budget = 0;
}

// Of an access that is not the one that is looked at: whether it is to be looked at instead.
static bool alone_in_loop(EmuCtx *x, const EmuInst *i) {
  EmuPoll *p = &x->fiber->poll;
  if (p->other != i) { // the first time
    p->other = i;
    p->other_state = 0;
    if (x->launch->observing) emu_path_polls(x);
    return false;
  }
  uint64_t state = registers(x), before = p->other_state;
  p->other_state = state;
  return before && before == state;
}

void emu_poll(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuLoc *to, uint32_t count, uint32_t bytes) {
  EmuPoll *p = &x->fiber->poll;
  if (x->launch->observing && !p->idle) emu_path_sees(x, i, mask);
  if (p->at && p->at != i) {
    if (p->idle) return;
    if (alone_in_loop(x, i)) {
      *p = (EmuPoll){.at = i, .mask = mask, .left = x->budget, .steps = p->steps, .repeats = true};
      p->state = registers(x);
      p->seen = seen_by(x, i, to, count, bytes);
      return;
    }
    if (++p->others < OTHERS) return;
  }
  p->other = NULL;
  uint64_t seen = seen_by(x, i, to, count, bytes), where = where_of(x, i);
  if (p->at == i && p->where != where) x->fiber->spin = 0; // it goes through memory: it does not spin
  p->where = where;
  if (p->idle) {
    poll_idle(x, i, mask, seen);
    return;
  }
  if (p->at != i || p->seen != seen || p->mask != mask) {
    begin(x, i, mask, seen);
    return;
  }
  uint64_t state = registers(x);
  bool in_vain = p->slept || (p->repeats && p->state == state);
  if (x->budget > 0) p->steps = 2 * (p->left - x->budget) + MARGIN;
  p->left = x->budget;
  p->others = 0;
  p->state = state;
  p->repeats = p->again = true;
  p->slept = false;
  if (!in_vain) return;
  x->budget = 0;
  p->idle = true;
  p->left = p->allowed = p->steps;
  if (x->launch->observing) emu_path_idles(x, i, mask);
}
