// Fibers: groups of lanes of one warp that are scheduled independently. A warp starts as one fiber; lanes that
// spin, or wait at a barrier that others have not reached, are split off. Fibers share frames: each lane has its
// own part of every register.
#include "base/heap.h"
#include "emu/core/state.h"

// Every warp needs one, so those that have ended are kept for the next; but not the room of a deep stack.
enum { KEPT_ENTRIES = 64 };

EmuFiber *emu_new_fiber(EmuCtx *x, EmuWarp *warp) {
  EmuWorker *w = emu_worker(x);
  EmuFiber *f = w->free_fibers, old = {0};
  if (f)
    old = *f, w->free_fibers = f->next;
  else if (!(f = sol_heap_alloc(sizeof *f)))
    return NULL;
  *f = (EmuFiber){.warp = warp, .next = warp->fibers, .entries = old.entries, .cap = old.cap};
  warp->fibers = f;
  return f;
}

static void drop(EmuCtx *x, EmuFiber *f) {
  for (uint32_t k = 0; k < f->count; k++)
    if (f->entries[k].base) emu_release_frame(x, f->entries[k].frame);
  if (f->cap > KEPT_ENTRIES) {
    sol_heap_free(f->entries);
    f->entries = NULL, f->cap = 0;
  }
  EmuWorker *w = emu_worker(x);
  f->next = w->free_fibers;
  w->free_fibers = f;
}

void emu_sweep(EmuCtx *x, EmuWarp *warp) {
  for (EmuFiber **at = &warp->fibers; *at;) {
    EmuFiber *f = *at;
    if (f->state != EMU_ENDED) {
      at = &f->next;
      continue;
    }
    *at = f->next;
    drop(x, f);
  }
}

bool emu_split(EmuCtx *x, uint32_t lanes) {
  EmuFiber *f = x->fiber;
  if (f->lanes == lanes) return true;
  EmuFiber *rest = emu_new_fiber(x, x->warp);
  if (!rest) return false;
  emu_store_top(x);
  for (uint32_t k = 0; k < f->count; k++) {
    EmuEntry e = f->entries[k];
    e.mask &= ~lanes;
    if (!emu_push(rest, e)) return false;
    if (e.base) e.frame->refs++;
    f->entries[k].mask &= lanes;
  }
  // Entries without lanes would make the two look alike.
  while (rest->count && !rest->entries[rest->count - 1].mask) {
    const EmuEntry *top = &rest->entries[--rest->count];
    if (top->base) emu_release_frame(x, top->frame);
  }
  rest->lanes = f->lanes & ~lanes;
  f->lanes = lanes;
  x->active &= lanes;
  return true;
}

static bool alike(const EmuFiber *a, const EmuFiber *b) {
  if (a->count != b->count || a->state != EMU_READY || b->state != EMU_READY) return false;
  for (uint32_t k = 0; k < a->count; k++) {
    const EmuEntry *p = &a->entries[k], *q = &b->entries[k];
    if (p->pc != q->pc || p->reconverge != q->reconverge || p->frame != q->frame || p->base != q->base)
      return false;
  }
  return true;
}

void emu_merge(EmuCtx *x, EmuWarp *warp) {
  for (EmuFiber *a = warp->fibers; a; a = a->next)
    for (EmuFiber **at = &a->next; *at;) {
      EmuFiber *b = *at;
      if (!alike(a, b)) {
        at = &b->next;
        continue;
      }
      for (uint32_t k = 0; k < a->count; k++) a->entries[k].mask |= b->entries[k].mask;
      a->lanes |= b->lanes;
      *at = b->next;
      drop(x, b);
    }
}

// ---- .sync instructions ----

uint32_t emu_sync_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuLoc members) {
  if (x->sync_lanes) return x->sync_lanes;
  bool checks = x->launch->launch->checks & SOL_EMU_CHECK_SYNC;
  if (mask == EMU_ALL && !checks) return mask; // there is nobody to wait for
  const uint32_t *row = EMU_IN(uint32_t, members);
  uint32_t need = 0;
  uint32_t left_out = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    need |= row[emu_first(left)];
    left_out |= (left & (0u - left)) & ~row[emu_first(left)];
  }
  if (left_out && checks)
    emu_find(x, i, left_out, SOL_EMU_BAD_SYNC, 0, 0, "the mask 0x%08x leaves out the calling lanes 0x%08x",
             row[emu_first(left_out)], left_out);
  need &= x->warp->live;
  if (!(need & ~mask)) return mask;
  if (!emu_split(x, mask)) {
    emu_find(x, i, mask, SOL_EMU_STACK, 0, 0, "out of memory to split diverged lanes");
    emu_stop(x->launch, SOL_EMU_FAULT);
  }
  EmuFiber *f = x->fiber;
  f->state = EMU_AT_WARP_SYNC;
  f->members = need;
  f->at = i;
  x->pc = i->index;
  emu_store_top(x);
  x->budget = 0;
  emu_release_synced(x, x->warp, false);
  return 0;
}

static bool same_sync(const EmuFiber *a, const EmuFiber *b) {
  return b->state == EMU_AT_WARP_SYNC &&
         (b->at == a->at ||
          (b->at->run == a->at->run && a->at->fn == EMU_FN_ANY_PC && b->at->fn == EMU_FN_ANY_PC));
}

// Executes the .sync instruction for all lanes that wait at it.
static void run_synced(EmuCtx *x, EmuFiber *f, uint32_t lanes) {
  EmuFiber *running = x->fiber;
  EmuFrame *frame = x->frame;
  uint32_t pc = x->pc, active = x->active;
  uint8_t *regs = x->bank[EMU_BANK_REGS];
  x->fiber = f;
  x->frame = f->entries[f->count - 1].frame;
  x->bank[EMU_BANK_REGS] = x->frame->regs;
  x->active = x->sync_lanes = lanes;
  x->pc = f->at->index + 1;
  f->at->run(x, f->at, lanes);
  x->sync_lanes = 0;
  x->fiber = running, x->frame = frame, x->pc = pc, x->active = active;
  x->bank[EMU_BANK_REGS] = regs;
}

static void release_synced(EmuCtx *x, EmuFiber *first, EmuWarp *warp) {
  uint32_t lanes = 0;
  bool one_frame = true;
  for (EmuFiber *g = warp->fibers; g; g = g->next) {
    if (!same_sync(first, g)) continue;
    lanes |= g->lanes;
    one_frame = one_frame && g->entries[g->count - 1].frame == first->entries[first->count - 1].frame;
  }
  if (!one_frame && first->at->fn != EMU_FN_ANY_PC) {
    emu_find(x, first->at, lanes, SOL_EMU_BAD_SYNC, 0, 0,
             "lanes reach it from different calls of the function");
    emu_stop(x->launch, SOL_EMU_FAULT);
    return;
  }
  if (one_frame)
    run_synced(x, first, lanes);
  else
    emu_shadow_warp_barrier(warp->block, warp->index);
  const EmuFiber key = *first;
  for (EmuFiber *g = warp->fibers; g; g = g->next) {
    if (!same_sync(&key, g)) continue;
    g->state = EMU_READY;
    g->entries[g->count - 1].pc = g->at->index + 1;
    // The running fiber's own pc stands in x.
    if (g == x->fiber) x->pc = g->at->index + 1;
  }
}

bool emu_release_synced(EmuCtx *x, EmuWarp *warp, bool force) {
  bool any = false;
  for (EmuFiber *f = warp->fibers; f; f = f->next) {
    if (f->state != EMU_AT_WARP_SYNC) continue;
    uint32_t here = 0;
    for (EmuFiber *g = warp->fibers; g; g = g->next)
      if (same_sync(f, g)) here |= g->lanes;
    uint32_t missing = f->members & warp->live & ~here;
    if (missing && !force) continue;
    if (missing) {
      emu_find(x, f->at, f->lanes, SOL_EMU_BAD_SYNC, 0, 0, "waits for lanes 0x%08x, which never arrive",
               missing);
      if (!x->launch->launch->keep_going) {
        emu_stop(x->launch, SOL_EMU_FAULT);
        return true;
      }
    }
    release_synced(x, f, warp);
    any = true;
  }
  return any;
}
