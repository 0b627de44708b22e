// What an observed launch keeps beside its counts: how lanes lay (observe.c), which bytes were touched
// (touch.c), and what can be said of a program without running it (statics.c).
#ifndef SOL_EMU_OBSERVE_H
#define SOL_EMU_OBSERVE_H

#include "emu/state.h"

// ---- the commonest of many numbers ----

// Times of each number seen. Where there are more than EMU_TALLY_KEYS of them, only those stay whose hash
// ends in `level` zero bits (and those near zero), so that the result is the same however the numbers were
// shared out between tallies that are added up.
enum { EMU_TALLY_KEYS = 512, EMU_TALLY_NEAR = 128 };
typedef struct EmuTally {
  int64_t last; // a run of one number, not yet in the table
  uint64_t pending;
  int64_t *keys; // cap of them, then as many times; open addressing, 0 times: free
  uint64_t *times;
  uint32_t count, cap, level;
} EmuTally;
void emu_tally_flush(EmuTally *t);
static inline void emu_tally_add(EmuTally *t, int64_t key) {
  if (t->last != key) {
    emu_tally_flush(t);
    t->last = key;
  }
  t->pending++;
}
void emu_tally_merge(EmuTally *to, EmuTally *from);
uint64_t emu_tally_commonest(EmuTally *t, int64_t *key); // its times; of equals the one nearest to 0
void emu_tally_free(EmuTally *t);

// ---- patterns ----

typedef enum EmuLie {
  EMU_LIE_ALONE,
  EMU_LIE_UNIFORM,
  EMU_LIE_STRIDED,
  EMU_LIE_ROWS,
  EMU_LIE_SCATTERED
} EmuLie;

enum { EMU_BINS = 1024 }; // of sectors, for SolEmuPattern.hottest

typedef struct EmuStance { // how the lanes of one execution lie
  uint8_t lie;             // EmuLie
  bool contiguous;
  int64_t start;  // from the first active lane to where a contiguous run starts
  int64_t stride; // of STRIDED and ROWS
} EmuStance;

typedef struct EmuSight { // of one instruction, on one worker
  EmuStance now;          // of its shape, where EmuShape.sighted
  SolEmuPattern sum;
  EmuTally strides, steps;
  const EmuAlloc *alloc; // the last one accessed
  uint64_t *bins;        // lanes of atomics by sector; NULL: none yet
} EmuSight;

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
} EmuStatics;
SolStatus emu_statics_make(EmuProgram *program, SolError *err); // once
// statics.c: waits and loads of one function
bool emu_flight_find(const PtxFunction *fn, uint8_t *loads, uint8_t *waits);

static inline uint32_t emu_step_sights(const EmuRun *run) {
  if (!run->observing) return 0;
  return run->statics->sight_count < EMU_STEP_SIGHTS ? run->statics->sight_count : EMU_STEP_SIGHTS;
}

#endif
