// Lanes that wait for others: they repeat an access (ld.volatile, ld.acquire, an atomic that changes nothing) until its value changes.
// How often a GPU's warps do so depends on when the others come, which is not known here, and costs them nothing but that they
// wait. So the iterations after the first few are not counted.
//
// An iteration was in vain if the access has the addresses and the values of the last time and all registers are as they were: PTX
// has a register for every value, so what else the iteration read was the same, too, and what it stored is there already.
// A loop that sleeps (nanosleep) may count its attempts. A fiber whose iterations are in vain is idle; it executes one in each of its
// turns. It is idle no longer once the access has another value, or was not repeated in twice the instructions of an iteration.
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
  *p = (EmuPoll){.at = i, .seen = seen, .mask = mask, .left = x->budget, .steps = p->steps};
  if (x->launch->observing) emu_path_polls(x);
}

static void end(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t seen) {
  bool woken = mask == x->fiber->poll.mask;
  begin(x, i, mask, seen);
  x->budget = 0; // what follows is counted
  if (x->launch->observing) emu_path_wakes(x, i, woken ? mask : 0);
}

void emu_poll(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuLoc *to, uint32_t count, uint32_t bytes) {
  EmuPoll *p = &x->fiber->poll;
  if (p->at && p->at != i && (p->idle || ++p->others < OTHERS)) return;
  uint64_t seen = add_rows(0, emu_at(x, i->a), (size_t)i->abytes * EMU_LANES);
  for (uint32_t k = 0; k < count; k++) seen = add_rows(seen, emu_at(x, to[k]), (size_t)bytes * EMU_LANES);
  bool same = p->at == i && p->seen == seen && p->mask == mask;
  if (!same) {
    (p->idle ? end : begin)(x, i, mask, seen);
    return;
  }
  uint64_t state = registers(x);
  bool in_vain = p->slept || (p->repeats && p->state == state);
  if (p->idle && !in_vain) {
    end(x, i, mask, seen);
    return;
  }
  if (x->budget > 0 && !p->idle) p->steps = 2 * (p->left - x->budget) + MARGIN;
  p->left = p->idle ? p->steps : x->budget;
  p->others = 0;
  p->state = state;
  p->repeats = p->again = true;
  p->slept = false;
  if (!in_vain) return;
  x->budget = 0;
  if (p->idle) return;
  p->idle = true;
  p->left = p->steps;
  if (x->launch->observing) emu_path_idles(x, i, mask);
}
