// What the core and the handlers of instructions tell the observer of a launch. src/emu/watch implements all
// of it: the core calls, and knows nothing of what becomes of it.
#ifndef SOL_EMU_HOOKS_H
#define SOL_EMU_HOOKS_H

#include "emu/core/state.h"

// ---- patterns ----

bool emu_observe_make(EmuRun *run); // false: out of memory
void emu_observe_free(EmuRun *run);
void emu_observe_shape(EmuCtx *x, const EmuInst *i, EmuShape *shape, uint64_t first, SolMemOp op);
// After coalescing into EmuWorker.coalesced, but for shared memory.
void emu_observe_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op);
void emu_observe_atomic(EmuCtx *x, const EmuInst *i, const EmuAccess *acc);
// What a load brought into its registers; address: the first active lane's.
void emu_observe_values(EmuCtx *x, const EmuInst *i, const EmuLoc *regs, uint32_t mask, uint64_t address);
void emu_observe_sum(EmuRun *run, uint32_t pc, SolEmuPattern *to); // adds all workers'

// ---- touches ----

void emu_touch(EmuCtx *x, EmuAlloc *alloc, const SolCoalesced *request, SolMemOp op); // all in one allocation
void emu_touch_any(EmuCtx *x, const SolCoalesced *request, SolMemOp op);
SolStatus emu_touch_sum(EmuRun *run, SolError *err); // into the result
void emu_touch_clear(EmuRun *run);
void emu_touch_free(SolEmu *emu);

// ---- of a program ----

enum { EMU_NO_SIGHT = UINT32_MAX, EMU_STEP_SIGHTS = 512 };
typedef struct EmuStatics {
  uint32_t *sight;      // by pc: a number among instructions that access memory; EMU_NO_SIGHT
  uint32_t sight_count; // those below EMU_STEP_SIGHTS have their steps observed
  uint8_t *floats;      // by pc: which elements of a load are used as f32, a bit each
  uint8_t *loads;       // by pc: 1: counts as a load in flight; 2: and is asynchronous
  uint8_t *waits;       // by pc: where it waits, how many groups it leaves pending, plus 1; 0: it does not
  uint8_t *paths;       // by pc: EMU_PATH_...
} EmuStatics;
SolStatus emu_statics_make(EmuProgram *program, SolError *err); // once

static inline uint32_t emu_step_sights(const EmuRun *run) {
  if (!run->observing) return 0;
  return run->statics->sight_count < EMU_STEP_SIGHTS ? run->statics->sight_count : EMU_STEP_SIGHTS;
}

// ---- chains ----

// A warp's way so far, or the longest of those that came to a barrier. Waits are counted in EMU_WAIT parts,
// so that sums are the same in any order; see SolEmuChain.
enum { EMU_WAIT = 720720 }; // a multiple of 1 to 16: open groups of cp.async share out a wait
enum {                      // EmuStatics.paths
  EMU_PATH_BRINGS = 1,      // a value, or a copy, that the warp may have to wait for
  EMU_PATH_SHUFFLE = 2,     // waits for other lanes' values
  EMU_PATH_POLL = 4,        // waits for an mbarrier, if it has not come yet: only then it counts
  EMU_PATH_FOLLOWS = 8      // a store right behind one to the words beside
};
typedef enum EmuPending { EMU_NONE_PENDING, EMU_PENDING_NEAR, EMU_PENDING_OTHER, EMU_PENDING_FAR } EmuPending;
typedef struct EmuPath {
  uint64_t issues, l1_waits, far_waits, shared_waits, other_waits, barriers, meetings, fences, settles;
  uint64_t pending; // EmuPending: loads on their way
  uint64_t stored;  // to global memory, since its last fence
} EmuPath;
// Behind the warps' paths stand those that have come to each barrier, to the cluster's, and to the cluster's
// last one that all had reached; and what bulk copies have pending.
enum { EMU_MEET_CLUSTER = EMU_BARRIERS, EMU_MEET_PAST, EMU_MEET_BULK, EMU_MEETS };
static inline size_t emu_path_count(const EmuRun *run) {
  return run->observing ? run->warps + (size_t)EMU_MEETS : 0;
}
void emu_path_wait(EmuPath *path, uint32_t parts); // one of so many parts of a wait for loads
// Every instruction, before it runs.
static inline void emu_path_step(const EmuStatics *s, EmuPath *path, uint32_t pc) {
  uint32_t how = s->paths[pc];
  path->issues++;
  if (s->waits[pc] && !(how & EMU_PATH_POLL)) emu_path_wait(path, s->waits[pc]);
  if (how & EMU_PATH_SHUFFLE) path->shared_waits += EMU_WAIT;
}
// An access of the running warp's: to shared memory, its own block's or that of others of the cluster, or to
// the model's L1, of whose sectors some may have gone on to L2.
typedef enum EmuReach { EMU_REACH_SHARED, EMU_REACH_OTHERS, EMU_REACH_L1, EMU_REACH_FAR } EmuReach;
void emu_path_access(EmuCtx *x, const EmuInst *i, EmuReach reach, SolMemOp op);
void emu_path_bulk(EmuCtx *x);   // a bulk copy was asked for
void emu_path_polled(EmuCtx *x); // what an mbarrier stands for has come
void emu_path_fence(EmuCtx *x);  // wider than the block
// Comes to a barrier; and goes on from it, all having come. No-ops where the launch is not observed.
void emu_path_arrive(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t meet);
void emu_path_leave(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t meet);
void emu_path_clear(const EmuBlock *at, uint32_t meet);
void emu_path_pass(const EmuBlock *at);                 // the cluster's barrier becomes its last one
void emu_path_end(const EmuBlock *block, EmuPath *sum); // adds the longest
void emu_path_sum(EmuRun *run, SolEmuChain *to);        // all blocks', also of those that have not ended

#endif
