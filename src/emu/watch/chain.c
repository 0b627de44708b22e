// The critical path of a block: see SolEmuChain. SolEmuMachine.clocks decide which of several warps arrived last at
// a barrier, and nothing else.
#include "emu/core/trace.h"
#include "emu/watch/observe.h"

uint64_t emu_path_weight(const EmuBlock *block, const EmuPath *p) {
  const SolEmuClocks *c = block->clocks;
  return (p->issues * c->issues + p->barriers * c->barriers + p->cluster_barriers * c->cluster_barriers +
          p->fences * c->fences + p->store_fences * c->store_fences + p->sleeps * c->sleeps) *
             EMU_WAIT +
         p->l1_waits * c->l1_waits + p->far_waits * c->far_waits + p->shared_waits * c->shared_waits +
         p->other_waits * c->other_waits;
}

// ---- of a warp ----

// Waits only if a load is in flight: it may be on a side of a branch that the warp did not take.
void emu_path_wait(EmuPath *path, uint32_t parts) {
  if (path->pending == EMU_PENDING_FAR) path->far_waits += EMU_WAIT / parts;
  if (path->pending == EMU_PENDING_OTHER) path->other_waits += EMU_WAIT / parts;
  if (path->pending == EMU_PENDING_NEAR) path->l1_waits += EMU_WAIT / parts;
  path->pending = EMU_NONE_PENDING;
}

// The same for the trace of the unit.
static void trace_access(EmuCtx *x, const EmuInst *i, EmuReach reach, SolMemOp op) {
  EmuTraceWarp *t = emu_trace_warp(x->block, x->warp->index);
  if (op == SOL_MEM_STORE || op == SOL_MEM_COPY_STORE) return;
  if (reach == EMU_REACH_SHARED) t->waits += 1.0f / (float)x->launch->emu->machine.near_in_flight;
  if (reach == EMU_REACH_SHARED || x->launch->statics->loads[i->index] == 2 ||
      !(x->launch->statics->paths[i->index] & EMU_PATH_LOAD))
    return;
  t->loading = true;
  emu_trace_put(x, SOL_EMU_STEP_LOAD, (uint32_t)i->bytes * i->vec * EMU_LANES,
                reach == EMU_REACH_FAR      ? 1
                : reach == EMU_REACH_OTHERS ? 2
                                            : 0);
}

void emu_path_access(EmuCtx *x, const EmuInst *i, EmuReach reach, SolMemOp op) {
  if (emu_traced(x)) trace_access(x, i, reach, op);
  EmuPath *path = &x->block->paths[x->warp->index];
  bool own = reach == EMU_REACH_SHARED, far = reach == EMU_REACH_FAR;
  uint64_t part = EMU_WAIT / x->launch->emu->machine.near_in_flight; // of a wait
  if (op == SOL_MEM_STORE || op == SOL_MEM_COPY_STORE) {
    if (!own && reach != EMU_REACH_OTHERS && i->space != PTX_SPACE_LOCAL) path->stored = 1;
    return;
  }
  if (own) path->shared_waits += part;
  if (own || !(x->launch->statics->paths[i->index] & EMU_PATH_LOAD)) return;
  EmuPending pending = far                         ? EMU_PENDING_FAR
                       : reach == EMU_REACH_OTHERS ? EMU_PENDING_OTHER
                                                   : EMU_PENDING_NEAR;
  if (i->space == PTX_SPACE_LOCAL)
    *(far ? &path->far_waits : &path->l1_waits) += part;
  else if (pending > path->pending)
    path->pending = pending;
}

void emu_path_rare(EmuCtx *x) {
  if (x->launch->observing && x->block->paths) x->block->paths[x->warp->index].issues += SOL_EMU_RARE;
}

// A loop that reads a clock and compares it takes a warp alone 34 clocks by the stalls of the machine code, and its six instructions
// the issue slots of as many warps as are resident; the path has 8 of them.
uint64_t emu_path_clock(const EmuCtx *x) {
  enum { ALONE = 34, INSTRUCTIONS = 6, SLOTS = 4, COUNTED = 8 };
  const EmuRun *run = x->launch;
  uint64_t mean = (run->units_in_grid + run->sm_count - 1) / run->sm_count,
           units = mean < run->units_per_sm ? mean : run->units_per_sm,
           warps = units * run->cluster_size * run->warps, shared = warps * INSTRUCTIONS / SLOTS,
           turn = shared > ALONE ? shared : ALONE;
  return emu_path_weight(x->block, &x->block->paths[x->warp->index]) / EMU_WAIT +
         x->warp->timed++ * (turn - COUNTED);
}

// The warp has no loads in flight afterwards.
void emu_path_fence(EmuCtx *x) {
  if (!x->block->paths) return;
  EmuPath *path = &x->block->paths[x->warp->index];
  if (emu_traced(x)) emu_trace_put(x, SOL_EMU_STEP_FENCE, (uint32_t)path->stored, 0);
  emu_path_wait(path, 1);
  path->fences++;
  path->store_fences += path->stored;
  path->stored = 0;
}

void emu_path_sleep(EmuCtx *x, uint64_t clocks) {
  if (x->launch->observing && x->block->paths && !x->idle) x->block->paths[x->warp->index].sleeps += clocks;
}

// Bulk copies are issued by one warp, and other warps wait for them.
void emu_path_bulk(EmuCtx *x) {
  if (x->block->paths) x->block->paths[x->block->warp_count + EMU_SYNC_BULK].pending = EMU_PENDING_FAR;
}

void emu_path_polled(EmuCtx *x) {
  if (!x->block->paths) return;
  EmuPath *path = &x->block->paths[x->warp->index];
  if (x->block->paths[x->block->warp_count + EMU_SYNC_BULK].pending) path->pending = EMU_PENDING_FAR;
  if (path->pending)
    emu_path_wait(path, 1);
  else
    path->shared_waits += EMU_WAIT;
}

// ---- barriers ----

void emu_path_arrive(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier) {
  if (!block->paths) return;
  EmuPath *there = &at->paths[at->warp_count + barrier];
  const EmuPath *own = &block->paths[warp];
  if (emu_path_weight(block, own) > emu_path_weight(block, there)) *there = *own;
  emu_trace_sync(block, warp, at, barrier, false);
}

// The warp's own loads stay in flight. Where other lanes of the warp have continued, its path may be longer.
void emu_path_leave(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier) {
  if (!block->paths) return;
  const EmuPath *there = &at->paths[at->warp_count + barrier];
  EmuPath *own = &block->paths[warp];
  uint64_t pending = own->pending, stored = own->stored, idle = own->idle;
  if (emu_path_weight(block, there) >= emu_path_weight(block, own)) *own = *there;
  own->pending = pending;
  own->stored = stored;
  own->idle = idle;
  emu_trace_sync(block, warp, at, barrier, true);
  if (idle) return; // it comes here as often as the others let it
  if (barrier == EMU_SYNC_PAST)
    own->cluster_barriers++;
  else
    own->barriers++;
}

void emu_path_clear(const EmuBlock *at, uint32_t barrier) {
  if (!at->paths) return;
  at->paths[at->warp_count + barrier] = (EmuPath){0};
  emu_trace_sync_clear(at, barrier);
}

void emu_path_pass(const EmuBlock *at) {
  if (!at->paths) return;
  at->paths[at->warp_count + EMU_SYNC_PAST] = at->paths[at->warp_count + EMU_SYNC_CLUSTER];
  at->paths[at->warp_count + EMU_SYNC_CLUSTER] = (EmuPath){0};
  emu_trace_sync_pass(at);
}

// ---- the sum ----

static void add(EmuPath *to, const EmuPath *from) {
  to->issues += from->issues;
  to->l1_waits += from->l1_waits;
  to->far_waits += from->far_waits;
  to->shared_waits += from->shared_waits;
  to->other_waits += from->other_waits;
  to->barriers += from->barriers;
  to->cluster_barriers += from->cluster_barriers;
  to->fences += from->fences;
  to->store_fences += from->store_fences;
  to->sleeps += from->sleeps;
}

uint64_t emu_path_end(const EmuBlock *block, EmuPath *sum) {
  if (!block->paths) return 0;
  const EmuPath *longest = block->paths;
  for (uint32_t w = 1; w < block->warp_count; w++)
    if (emu_path_weight(block, &block->paths[w]) > emu_path_weight(block, longest))
      longest = &block->paths[w];
  add(sum, longest);
  return emu_path_weight(block, longest);
}

void emu_path_sum(EmuRun *run, SolEmuChain *to) {
  EmuPath sum = {0};
  for (uint32_t k = 0; k < run->worker_count; k++) {
    const EmuPath *p = emu_worker(&run->workers[k])->chains;
    if (p) add(&sum, p);
  }
  for (uint32_t s = 0; s < run->sm_count; s++)
    for (const EmuUnit *u = run->sms[s].units; u; u = u->next)
      for (uint32_t k = 0; k < u->count; k++) emu_path_end(u->blocks[k], &sum);
  to->issues += (double)sum.issues;
  to->l1_waits += (double)sum.l1_waits / EMU_WAIT;
  to->far_waits += (double)sum.far_waits / EMU_WAIT;
  to->shared_waits += (double)sum.shared_waits / EMU_WAIT;
  to->other_waits += (double)sum.other_waits / EMU_WAIT;
  to->barriers += (double)sum.barriers;
  to->cluster_barriers += (double)sum.cluster_barriers;
  to->fences += (double)sum.fences;
  to->store_fences += (double)sum.store_fences;
  to->sleeps += (double)sum.sleeps;
}
