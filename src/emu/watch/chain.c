// The longest chain of a block: see SolEmuChain. The weights are clocks of the order that a Hopper takes;
// they decide which of several warps was the last to come to a barrier, and nothing else.
#include "emu/watch/observe.h"

enum { ISSUE_CLOCKS = 2, L1_CLOCKS = 35, FAR_CLOCKS = 500, SHARED_CLOCKS = 30, BARRIER_CLOCKS = 30 };
enum { OTHER_CLOCKS = 200, MEETING_CLOCKS = 130, FENCE_CLOCKS = 300, SETTLE_CLOCKS = 350 };
enum { IN_FLIGHT = 4 }; // loads of shared and local memory that a warp has on their way before it waits

static uint64_t weight(const EmuPath *p) {
  return (p->issues * ISSUE_CLOCKS + p->barriers * BARRIER_CLOCKS + p->meetings * MEETING_CLOCKS +
          p->fences * FENCE_CLOCKS + p->settles * SETTLE_CLOCKS) *
             EMU_WAIT +
         p->l1_waits * L1_CLOCKS + p->far_waits * FAR_CLOCKS + p->shared_waits * SHARED_CLOCKS +
         p->other_waits * OTHER_CLOCKS;
}

// ---- of a warp ----

// For what is on its way, if anything is: a load may stand on a side of a branch that the warp did not take.
void emu_path_wait(EmuPath *path, uint32_t parts) {
  if (path->pending == EMU_PENDING_FAR) path->far_waits += EMU_WAIT / parts;
  if (path->pending == EMU_PENDING_OTHER) path->other_waits += EMU_WAIT / parts;
  if (path->pending == EMU_PENDING_NEAR) path->l1_waits += EMU_WAIT / parts;
  path->pending = EMU_NONE_PENDING;
}

void emu_path_access(EmuCtx *x, const EmuInst *i, EmuReach reach, SolMemOp op) {
  EmuPath *path = &x->block->paths[x->warp->index];
  bool own = reach == EMU_REACH_SHARED, far = reach == EMU_REACH_FAR;
  if (op == SOL_MEM_STORE || op == SOL_MEM_COPY_STORE) {
    if (!own && reach != EMU_REACH_OTHERS && i->space != PTX_SPACE_LOCAL) path->stored = 1;
    return;
  }
  if (own) path->shared_waits += EMU_WAIT / IN_FLIGHT;
  if (own || !(x->launch->statics->paths[i->index] & EMU_PATH_BRINGS)) return;
  EmuPending pending = far                         ? EMU_PENDING_FAR
                       : reach == EMU_REACH_OTHERS ? EMU_PENDING_OTHER
                                                   : EMU_PENDING_NEAR;
  if (i->space == PTX_SPACE_LOCAL)
    *(far ? &path->far_waits : &path->l1_waits) += EMU_WAIT / IN_FLIGHT;
  else if (pending > path->pending)
    path->pending = pending;
}

// Nothing of the warp's is on its way afterwards.
void emu_path_fence(EmuCtx *x) {
  if (!x->block->paths) return;
  EmuPath *path = &x->block->paths[x->warp->index];
  emu_path_wait(path, 1);
  path->fences++;
  path->settles += path->stored;
  path->stored = 0;
}

// Bulk copies are asked for by one warp and awaited by others.
void emu_path_bulk(EmuCtx *x) {
  if (x->block->paths) x->block->paths[x->block->warp_count + EMU_MEET_BULK].pending = EMU_PENDING_FAR;
}

void emu_path_polled(EmuCtx *x) {
  if (!x->block->paths) return;
  EmuPath *path = &x->block->paths[x->warp->index];
  if (x->block->paths[x->block->warp_count + EMU_MEET_BULK].pending) path->pending = EMU_PENDING_FAR;
  if (path->pending)
    emu_path_wait(path, 1);
  else
    path->shared_waits += EMU_WAIT;
}

// ---- where warps meet ----

void emu_path_arrive(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t meet) {
  if (!block->paths) return;
  EmuPath *there = &at->paths[at->warp_count + meet];
  const EmuPath *own = &block->paths[warp];
  if (weight(own) > weight(there)) *there = *own;
}

// What the warp itself has pending stays so. Where other lanes of it went on meanwhile it may be further.
void emu_path_leave(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t meet) {
  if (!block->paths) return;
  const EmuPath *there = &at->paths[at->warp_count + meet];
  EmuPath *own = &block->paths[warp];
  uint64_t pending = own->pending, stored = own->stored;
  if (weight(there) >= weight(own)) *own = *there;
  own->pending = pending;
  own->stored = stored;
  if (meet == EMU_MEET_PAST)
    own->meetings++;
  else
    own->barriers++;
}

void emu_path_clear(const EmuBlock *at, uint32_t meet) {
  if (at->paths) at->paths[at->warp_count + meet] = (EmuPath){0};
}

void emu_path_pass(const EmuBlock *at) {
  if (!at->paths) return;
  at->paths[at->warp_count + EMU_MEET_PAST] = at->paths[at->warp_count + EMU_MEET_CLUSTER];
  emu_path_clear(at, EMU_MEET_CLUSTER);
}

// ---- the sum ----

static void add(EmuPath *to, const EmuPath *from) {
  to->issues += from->issues;
  to->l1_waits += from->l1_waits;
  to->far_waits += from->far_waits;
  to->shared_waits += from->shared_waits;
  to->other_waits += from->other_waits;
  to->barriers += from->barriers;
  to->meetings += from->meetings;
  to->fences += from->fences;
  to->settles += from->settles;
}

void emu_path_end(const EmuBlock *block, EmuPath *sum) {
  if (!block->paths) return;
  const EmuPath *longest = block->paths;
  for (uint32_t w = 1; w < block->warp_count; w++)
    if (weight(&block->paths[w]) > weight(longest)) longest = &block->paths[w];
  add(sum, longest);
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
  to->meetings += (double)sum.meetings;
  to->fences += (double)sum.fences;
  to->settles += (double)sum.settles;
}
