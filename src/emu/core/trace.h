// Hooks that record the trace of one unit, SolEmuTrace. watch/trace.c implements them. All but those that test it themselves
// are called only where emu_traced(x).
#ifndef SOL_EMU_TRACE_H
#define SOL_EMU_TRACE_H

#include "emu/core/hooks.h"

bool emu_trace_make(EmuRun *run); // false: out of memory
void emu_trace_free(EmuRun *run);
void emu_trace_start(EmuRun *run, EmuUnit *unit); // decides whether it is the one
void emu_trace_result(EmuRun *run);

static inline bool emu_traced(const EmuCtx *x) {
  return x->block->unit->trace != NULL;
}

typedef struct EmuTraceWarp { // since its last event
  uint32_t pc, issues, before_spin;
  float waits, waits_before_spin;
  bool spins, loading;
} EmuTraceWarp;
EmuTraceWarp *emu_trace_warp(const EmuBlock *block, uint32_t warp); // NULL: the unit is not traced

void emu_trace_put(EmuCtx *x, SolEmuStep step, uint32_t count, uint8_t detail); // without a token

// Asynchronous operations that complete by groups of a warp.
typedef enum EmuTraceGroup {
  EMU_TRACE_COPIES,
  EMU_TRACE_STORES,
  EMU_TRACE_WGMMA,
  EMU_TRACE_GROUPS
} EmuTraceGroup;
void emu_trace_grouped(EmuCtx *x, EmuTraceGroup kind, SolEmuStep step, uint32_t count);
void emu_trace_commit(EmuCtx *x, EmuTraceGroup kind);
// Waits until at most `left` groups are pending; all: none, and nothing that is not committed. read: only sources.
void emu_trace_wait_group(EmuCtx *x, EmuTraceGroup kind, uint64_t left, bool all, bool read);

// mbarriers, by their place. A phase ends; fresh: it is initialised.
void emu_trace_phase(EmuCtx *x, const uint8_t *barrier, bool fresh);
void emu_trace_arrive(EmuCtx *x, const uint8_t *barrier, bool far); // far: it is another block's
void emu_trace_copy(EmuCtx *x, const uint8_t *barrier, uint64_t bytes);
void emu_trace_passed(EmuCtx *x, const uint8_t *barrier); // the awaited phase has completed
void emu_trace_spin(EmuCtx *x);                           // it has not, or another warp is awaited

// Barriers of blocks and clusters, as emu_path_arrive and the others have them; these test for the trace themselves.
void emu_trace_sync(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier, bool waits);
void emu_trace_sync_clear(const EmuBlock *at, uint32_t barrier);
void emu_trace_sync_pass(const EmuBlock *at);

// Called for every instruction of a traced warp before it executes for the lanes of `mask`.
static inline void emu_trace_step(EmuCtx *x, EmuTraceWarp *t, uint32_t pc, uint32_t mask) {
  const EmuStatics *s = x->launch->statics;
  uint32_t how = s->paths[pc];
  t->pc = pc;
  t->issues += !(how & EMU_PATH_NAME);
  if (s->waits[pc] && !(how & EMU_PATH_POLL) && t->loading) {
    t->loading = false;
    emu_trace_put(x, SOL_EMU_STEP_LOADED, 1, 0);
  }
  if (how & EMU_PATH_SHUFFLE) t->waits += 1;
  if (!(how & EMU_PATH_TENSOR) || !mask) return;
  if (how & EMU_PATH_GROUPED)
    emu_trace_grouped(x, EMU_TRACE_WGMMA, SOL_EMU_STEP_TENSOR, 1);
  else
    emu_trace_put(x, SOL_EMU_STEP_TENSOR, 1, 0);
}

#endif
