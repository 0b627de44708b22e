// Barriers of the block, the warp and the cluster; fences.
#include "emu/core/hooks.h"
#include "emu/core/lower.h"

static bool is_red(const EmuInst *i) {
  return i->kind != 0;
}
enum { RED_POPC = 1, RED_AND, RED_OR };

// Threads that count as arrived. A warp whose live lanes have all come counts whole, as the hardware counts
// warps.
static uint32_t arrived_threads(const EmuBlock *block, const EmuBarrier *b) {
  uint32_t sum = 0;
  for (uint32_t w = 0; w < block->warp_count; w++) {
    uint32_t live = block->warps[w].live;
    if (b->arrived[w]) sum += (b->arrived[w] & live) == live ? EMU_LANES : emu_popc(b->arrived[w]);
  }
  return sum;
}

static bool complete(const EmuBlock *block, const EmuBarrier *b) {
  if (!b->warps) return false;
  if (b->expected) return arrived_threads(block, b) >= b->expected;
  for (uint32_t w = 0; w < block->warp_count; w++)
    if (block->warps[w].live & ~b->arrived[w]) return false;
  return true;
}

static void give_result(const EmuBarrier *b, EmuFiber *f) {
  uint8_t *regs = f->entries[f->count - 1].frame->regs;
  const EmuInst *i = f->at;
  uint32_t *d = (uint32_t *)(void *)(regs + (i->d & ~3u));
  if (i->kind == RED_POPC) {
    for (uint32_t left = f->lanes; left; left &= left - 1) d[emu_first(left)] = b->popc;
    return;
  }
  bool holds = i->kind == RED_AND ? b->popc == b->asked : b->popc > 0;
  *d = (*d & ~f->lanes) | (holds ? f->lanes : 0);
}

static void release(EmuBlock *block, uint32_t id) {
  EmuBarrier *b = &block->barriers[id];
  for (uint32_t w = 0; w < block->warp_count; w++) {
    bool waited = false;
    for (EmuFiber *f = block->warps[w].fibers; f; f = f->next) {
      if (f->state != EMU_AT_BARRIER || f->barrier != id) continue;
      if (is_red(f->at)) give_result(b, f);
      f->state = EMU_READY;
      waited = true;
    }
    if (waited) emu_path_leave(block, w, block, id);
  }
  memset(b, 0, sizeof *b);
  block->arrived_at &= ~(1u << id);
  emu_path_clear(block, id);
  emu_shadow_barrier(block);
}

void emu_release_barriers(EmuCtx *x, EmuBlock *block) {
  (void)x;
  for (uint32_t left = block->arrived_at; left; left &= left - 1) {
    uint32_t id = (uint32_t)emu_first(left);
    if (complete(block, &block->barriers[id])) release(block, id);
  }
}

static bool arrive(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t *id) {
  int lane = emu_first(mask);
  *id = EMU_IN(uint32_t, i->a)[lane];
  uint32_t count = i->flags & EMU_FLAG_STRONG ? EMU_IN(uint32_t, i->b)[lane] : 0;
  if (*id >= EMU_BARRIERS || count % EMU_LANES) {
    return emu_misuse(
        x, i, mask,
        *id >= EMU_BARRIERS ? "barrier %u of 16" : "barrier %u with a count that is no multiple of 32", *id);
  }
  if ((i->flags & EMU_FLAG_SIGNED) && mask != x->warp->live) {
    if (x->launch->launch->checks & SOL_EMU_CHECK_SYNC)
      emu_find(x, i, x->warp->live & ~mask, SOL_EMU_DIVERGENT_BARRIER, 0, 0,
               "only lanes 0x%08x of the warp's 0x%08x reach the barrier together", mask, x->warp->live);
  }
  EmuBarrier *b = &x->block->barriers[*id];
  if (!b->warps) b->expected = count;
  x->block->arrived_at |= 1u << *id;
  uint32_t w = x->warp->index;
  if (!b->arrived[w]) b->warps++;
  b->arrived[w] |= mask;
  emu_worker(x)->changes++;
  emu_path_arrive(x->block, w, x->block, *id);
  if (is_red(i)) {
    b->asked += emu_popc(mask);
    b->popc += emu_popc(emu_pred(x, i->c) & mask);
  }
  return true;
}

static void wait_here(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuState state) {
  if (!emu_split(x, mask)) {
    emu_find(x, i, mask, SOL_EMU_STACK, 0, 0, "out of memory to split diverged lanes");
    emu_stop(x->launch, SOL_EMU_FAULT);
  }
  x->fiber->state = (uint8_t)state;
  x->fiber->at = i;
  x->budget = 0;
  emu_store_top(x);
}

static void bar_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t id;
  if (!arrive(x, i, mask, &id)) return;
  wait_here(x, i, mask, EMU_AT_BARRIER);
  x->fiber->barrier = (uint8_t)id;
  if (complete(x->block, &x->block->barriers[id])) release(x->block, id);
}

static void bar_arrive(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t id;
  if (!arrive(x, i, mask, &id)) return;
  if (complete(x->block, &x->block->barriers[id])) release(x->block, id);
}

static void warp_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (emu_sync_lanes(x, i, mask, i->a)) emu_shadow_warp_barrier(x->block, x->warp->index);
}

// ---- clusters ----

void emu_release_cluster(EmuUnit *unit) {
  if (!unit->cluster_arrived) return;
  for (uint32_t k = 0; k < unit->count; k++) {
    const EmuBlock *b = unit->blocks[k];
    for (uint32_t w = 0; w < b->warp_count; w++)
      if (b->warps[w].live & ~b->warps[w].cluster_arrived) return;
  }
  unit->cluster_arrived = false;
  emu_path_pass(unit->blocks[0]);
  for (uint32_t k = 0; k < unit->count; k++) {
    EmuBlock *b = unit->blocks[k];
    for (uint32_t w = 0; w < b->warp_count; w++) {
      bool waited = false;
      b->warps[w].cluster_arrived = 0;
      for (EmuFiber *f = b->warps[w].fibers; f; f = f->next) {
        if (f->state != EMU_AT_CLUSTER) continue;
        f->state = EMU_READY;
        waited = true;
      }
      if (waited) emu_path_leave(b, w, unit->blocks[0], EMU_SYNC_PAST);
    }
    emu_shadow_barrier(b);
  }
}

static void cluster_arrive(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (x->warp->cluster_arrived & mask) {
    emu_misuse(x, i, x->warp->cluster_arrived & mask,
               "arrives at the cluster's barrier a second time without a wait in between");
    return;
  }
  x->warp->cluster_arrived |= mask;
  x->block->unit->cluster_arrived = true;
  emu_worker(x)->changes++;
  if (i->fn) emu_path_fence(x);
  emu_path_arrive(x->block, x->warp->index, x->block->unit->blocks[0], EMU_SYNC_CLUSTER);
  emu_release_cluster(x->block->unit);
}

// What others wrote is to be seen: L1 is emptied, as by a fence.
static void cluster_wait(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (x->launch->counting) sol_l1_empty(&emu_worker(x)->sm->l1);
  if (x->warp->cluster_arrived & mask)
    wait_here(x, i, mask, EMU_AT_CLUSTER);
  else // all others had come before: it may still have been later that they did
    emu_path_leave(x->block, x->warp->index, x->block->unit->blocks[0], EMU_SYNC_PAST);
}

// ---- fences ----

enum { FENCE_WAITS = 1, FENCE_EMPTIES = 2 };

// Memory is in order here as it is; a fence at gpu scope or wider empties L1, as on the machine.
static void fence(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)mask;
  if (i->fn & FENCE_WAITS) emu_path_fence(x);
  if (i->fn & FENCE_EMPTIES && x->launch->counting) sol_l1_empty(&emu_worker(x)->sm->l1);
}

bool lower_fence(Lower *l, const PtxInst *in, EmuInst *out) {
  (void)l;
  int scope = in->code->scope;
  bool wide = in->code->op == PTX_OP_FENCE && (scope == PTX_SCOPE_GPU || scope == PTX_SCOPE_SYS);
  out->fn =
      (uint8_t)((wide ? FENCE_WAITS : 0) | (wide && in->code->sem != PTX_SEM_RELEASE ? FENCE_EMPTIES : 0));
  out->run = fence;
  return true;
}

bool lower_barrier(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  int first = 0;
  switch (in->code->op) {
  case PTX_OP_BAR_WARP_SYNC:
    out->a = lower_read(l, &o[0]);
    out->fn = EMU_FN_ANY_PC;
    out->run = warp_sync;
    return true;
  case PTX_OP_BARRIER_CLUSTER_ARRIVE:
    out->fn = in->code->sem != PTX_SEM_RELAXED;
    out->run = cluster_arrive;
    return true;
  case PTX_OP_BARRIER_CLUSTER_WAIT: out->run = cluster_wait; return true;
  case PTX_OP_BAR_RED:
    first = 1;
    out->d = lower_write(l, &o[0]);
    out->c = lower_read(l, &o[3]);
    out->kind = in->code->fn == PTX_FN_POPC ? RED_POPC : in->code->fn == PTX_FN_AND ? RED_AND : RED_OR;
    break;
  case PTX_OP_BAR_SYNC:
  case PTX_OP_BAR_ARRIVE: break;
  default: return false;
  }
  out->a = lower_read(l, &o[first]);
  out->b = lower_read(l, &o[first + 1]);
  if (o[first + 1].kind != PTX_ARG_NONE) out->flags |= EMU_FLAG_STRONG; // has a count
  if (PTX_HAS(in->code, ALIGNED)) out->flags |= EMU_FLAG_SIGNED;
  out->run = in->code->op == PTX_OP_BAR_ARRIVE ? bar_arrive : bar_sync;
  return true;
}
