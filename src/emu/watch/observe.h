// Inside of observation: how lanes lay (observe.c), which bytes were touched (touch.c), and what can be said
// of a program without running it (statics.c). What the core calls is in core/hooks.h.
#ifndef SOL_EMU_OBSERVE_H
#define SOL_EMU_OBSERVE_H

#include "emu/core/hooks.h"

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

enum { EMU_BINS = 1024, EMU_QUEUE_BYTES = 512, EMU_QUEUE_WORDS = 5 };
typedef struct EmuBin {              // for SolEmuPattern.hottest and .queue_...
  uint64_t lanes;                    // by sector
  uint64_t queue_lanes, queue_words; // by EMU_QUEUE_BYTES
} EmuBin;

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
  uint64_t to_l2;        // SolL1Counts.to_l2 after its last request
  struct EmuBin *bins;   // of atomics; NULL: none yet
} EmuSight;

// ---- of a program ----

// flight.c: waits and loads of one function, and which of its stores follow another
bool emu_flight_find(const PtxFunction *fn, uint8_t *loads, uint8_t *waits, uint8_t *follows);
uint32_t emu_block_at(const PtxFunction *fn, uint32_t inst);
// Blocks that are one straight line to ptxas: one that ends in a branch, what that skips, and where it leads.
typedef enum EmuGuarded {
  EMU_BLOCK_OWN,     // begins a line
  EMU_BLOCK_GUARDED, // goes on with it, under the guard of the branch before
  EMU_BLOCK_JOINS    // goes on with it, for all lanes
} EmuGuarded;
void emu_guarded_find(const PtxFunction *fn, uint8_t *of_block); // EmuGuarded, by block

#endif
