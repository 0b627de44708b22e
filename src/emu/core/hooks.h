// Hooks that the core and the instruction handlers call to observe a launch. src/emu/watch implements them; the
// core does not depend on what they collect.
#ifndef SOL_EMU_HOOKS_H
#define SOL_EMU_HOOKS_H

#include "emu/core/state.h"

// ---- patterns ----

bool emu_observe_make(EmuRun *run); // false: out of memory
void emu_observe_free(EmuRun *run);
void emu_observe_shape(EmuCtx *x, const EmuInst *i, EmuShape *shape, uint64_t first, SolMemOp op);
// Call after the request was coalesced into EmuWorker.coalesced, except for shared memory.
void emu_observe_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op);
void emu_observe_atomic(EmuCtx *x, const EmuInst *i, const EmuAccess *acc);
// Lanes whose compare-and-swap changed a word of global memory.
void emu_observe_swaps(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t lanes);
// The values that a load wrote to its registers; address: the first active lane's.
void emu_observe_values(EmuCtx *x, const EmuInst *i, const EmuLoc *regs, uint32_t mask, uint64_t address);
void emu_observe_sum(EmuRun *run, uint32_t pc, SolEmuPattern *to); // adds the patterns of all workers
void emu_observe_slices(
    EmuRun *run); // finds the slices of L2 with most atomics of all instructions; call before emu_observe_sum

// ---- touches ----

void emu_touch(EmuCtx *x, EmuAlloc *alloc, const SolCoalesced *request, SolMemOp op); // all in `alloc`
void emu_touch_any(EmuCtx *x, const SolCoalesced *request, SolMemOp op);
SolStatus emu_touch_sum(EmuRun *run, SolError *err); // adds the touches to the result
void emu_touch_clear(EmuRun *run);
void emu_touch_free(SolEmu *emu);

// ---- static analysis of a program ----

enum { EMU_NO_SITE = UINT32_MAX, EMU_STEP_SITES = 512 };
typedef struct EmuStatics {
  uint32_t *site;      // by pc: its index among the instructions that access memory; EMU_NO_SITE
  uint32_t site_count; // steps are observed at the first EMU_STEP_SITES of them
  uint8_t *floats;     // by pc: which elements of a load are used as f32, a bit each
  uint8_t *loads;      // by pc: 1: counts as a load in flight; 2: and is asynchronous
  uint8_t *waits;      // by pc: if it waits for loads, 1 + the cp.async groups left pending; 0: it does not
  uint8_t *paths;      // by pc: EMU_PATH_...
  uint8_t *sizes;      // by pc: sol_emu_size
  bool takes;          // blocks take work from a counter: some have EMU_PATH_TAKES
} EmuStatics;
SolStatus emu_statics_make(EmuProgram *program, SolError *err); // once

static inline uint32_t emu_step_sites(const EmuRun *run) {
  if (!run->observing) return 0;
  return run->statics->site_count < EMU_STEP_SITES ? run->statics->site_count : EMU_STEP_SITES;
}

// ---- critical paths ----

// The critical path of a warp so far, or the longest of those that arrived at a barrier; see SolEmuChain. Waits
// are counted in units of 1 / EMU_WAIT: integer sums do not depend on their order.
enum { EMU_WAIT = 720720 }; // divisible by 1 to 16: pending groups of cp.async share a wait equally
enum {                      // EmuStatics.paths
  EMU_PATH_LOAD = 1,        // a load or copy that the warp may have to wait for
  EMU_PATH_SHUFFLE = 2,     // waits for other lanes' values
  EMU_PATH_POLL = 4,        // tests an mbarrier: a wait only if the phase has not completed
  EMU_PATH_FOLLOWS = 8,     // a store directly after a store to adjacent addresses
  EMU_PATH_TENSOR = 16,     // a matrix instruction
  EMU_PATH_GROUPED = 32,    // of wgmma: it completes with its group
  EMU_PATH_NAME = 64,       // ptxas removes it
  EMU_PATH_TAKES = 128      // an atomic by which a block takes its next work
};
typedef enum EmuPending { EMU_NONE_PENDING, EMU_PENDING_NEAR, EMU_PENDING_OTHER, EMU_PENDING_FAR } EmuPending;
typedef struct EmuPath {
  uint64_t issues, l1_waits, far_waits, shared_waits, other_waits, barriers, cluster_barriers, fences,
      store_fences, sleeps;
  uint64_t pending; // EmuPending: loads in flight
  uint64_t stored;  // whether it stored to global memory since its last fence
  uint64_t idle;    // whether its lanes only wait for others
  uint64_t swaps;   // clocks of float atomics on shared memory, which are in shared_waits
} EmuPath;
// EmuBlock.paths holds the warps' paths, then the longest that arrived at each barrier, at the cluster's barrier
// and at the cluster's last completed one, then the pending bulk copies, then the warps' paths when they began to poll.
enum { EMU_SYNC_CLUSTER = EMU_BARRIERS, EMU_SYNC_PAST, EMU_SYNC_BULK, EMU_SYNCS };
static inline size_t emu_path_count(const EmuRun *run) {
  return run->observing ? 2 * run->warps + (size_t)EMU_SYNCS : 0;
}
void emu_path_wait(EmuPath *path, uint32_t parts); // adds 1 / parts of a wait for loads
void emu_path_sleep(EmuCtx *x, uint64_t clocks);
// Called for every instruction before it executes.
static inline void emu_path_step(const EmuStatics *s, EmuPath *path, uint32_t pc) {
  uint32_t how = s->paths[pc];
  path->issues += s->sizes[pc];
  if (s->waits[pc] && !(how & EMU_PATH_POLL)) emu_path_wait(path, s->waits[pc]);
  if (how & EMU_PATH_SHUFFLE) path->shared_waits += EMU_WAIT;
}
// Where an access of the running warp was served: shared memory of its own block, distributed shared memory, L1,
// or beyond L1 if any of its sectors missed.
typedef enum EmuReach { EMU_REACH_SHARED, EMU_REACH_OTHERS, EMU_REACH_L1, EMU_REACH_FAR } EmuReach;
void emu_path_access(EmuCtx *x, const EmuInst *i, EmuReach reach, SolMemOp op);
// wakes.c; for poll.c: a fiber executes an access by which it may wait; it waits, as it did so in vain; lanes of `mask` read another
// value; it goes on; and, each time but while it waits, it may see what was written before.
void emu_path_polls(EmuCtx *x);
void emu_path_sees(EmuCtx *x, const EmuInst *i, uint32_t mask);
void emu_path_idles(EmuCtx *x, const EmuInst *i, uint32_t mask);
void emu_path_wakes(EmuCtx *x, const EmuInst *i, uint32_t mask);
void emu_path_goes_on(EmuCtx *x);
// takes.c: whether the running warp's atomic has to wait for others that have not come as far; and, when nothing else goes on, lets those go
// on that are next (false: none is held).
bool emu_path_held(EmuCtx *x);
bool emu_path_let_go(EmuRun *run);
void emu_path_swaps(EmuCtx *x, const EmuInst *i, const EmuAccess *acc); // a float atomic on shared memory
void emu_path_bulk(EmuCtx *x);                                          // a bulk copy was issued
void emu_path_polled(EmuCtx *x);          // the awaited phase of an mbarrier has completed
uint64_t emu_path_clock(const EmuCtx *x); // of an observed launch: a clock that the warp reads
void emu_path_fence(EmuCtx *x);           // a fence of wider scope than the block
// A warp arrives at a barrier, and leaves it when all have arrived. No-ops where the launch is not observed.
void emu_path_arrive(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier);
void emu_path_leave(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier);
void emu_path_clear(const EmuBlock *at, uint32_t barrier);
void emu_path_pass(const EmuBlock *at); // the cluster's barrier has completed
uint64_t emu_path_end(const EmuBlock *block,
                      EmuPath *sum);             // adds the block's longest path; returns its weight
void emu_path_sum(EmuRun *run, SolEmuChain *to); // of all blocks, also of those that have not ended
// balance.c: room for the work of each unit (false: out of memory), and how evenly it was distributed.
bool emu_balance_make(EmuRun *run);
SolEmuBalance emu_balance(const EmuRun *run);

#endif
