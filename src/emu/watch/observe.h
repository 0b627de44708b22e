// Internals of observation: access patterns (observe.c), bytes touched (touch.c), and static analysis of a
// program (statics.c). The hooks that the core calls are in core/hooks.h.
#ifndef SOL_EMU_OBSERVE_H
#define SOL_EMU_OBSERVE_H

#include "emu/core/hooks.h"

// ---- the commonest of many numbers ----

// A histogram of numbers. Beyond EMU_TALLY_KEYS distinct ones it keeps only those whose hash ends in `level`
// zero bits (and those near zero), so that the result does not depend on how the numbers were distributed over
// the tallies that are merged.
enum { EMU_TALLY_KEYS = 512, EMU_TALLY_NEAR = 128 };
typedef struct EmuTally {
  int64_t last; // a run of one number, not yet in the table
  uint64_t pending;
  int64_t *keys; // cap keys, then cap counts; open addressing, a count of 0 is a free slot
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
uint64_t emu_tally_commonest(EmuTally *t, int64_t *key); // returns its count; among equals the nearest to 0
void emu_tally_free(EmuTally *t);

// ---- patterns ----

typedef enum EmuLayoutKind {
  EMU_LAYOUT_SINGLE,
  EMU_LAYOUT_UNIFORM,
  EMU_LAYOUT_STRIDED,
  EMU_LAYOUT_ROWS,
  EMU_LAYOUT_SCATTERED
} EmuLayoutKind;

enum { EMU_BINS = 1024 };
typedef struct EmuBin {                // for SolEmuPattern.hottest and .queue_...
  uint64_t lanes;                      // by sector
  uint64_t queue_lanes, queue_packets; // by SolEmuMachine.atomic_bytes
  // An address that requests come to again and again, how often they did since the first, and by how much they are
  // more than the requests to other addresses.
  uint64_t word, again;
  uint32_t lead;
} EmuBin;

typedef struct EmuLayout { // the lane addresses of one execution
  uint8_t kind;            // EmuLayoutKind
  bool contiguous;
  int64_t start;  // from the first active lane to the start of a contiguous access
  int64_t stride; // of STRIDED and ROWS
} EmuLayout;

typedef struct EmuSite { // one memory instruction, on one worker
  EmuLayout now;         // of its shape, where EmuShape.observed
  SolEmuPattern sum;
  EmuTally strides, steps, swaps; // swaps: by address
  const EmuAlloc *alloc;          // the last allocation accessed
  uint64_t to_l2;                 // SolL1Counts.to_l2 after its last request
  struct EmuBin *bins;            // of atomics; NULL: none yet
  // Of float atomics on shared memory: the block and the address of the last one, and until when the address is busy, as EmuPath.swaps.
  uint64_t swap_block, swap_at, swap_busy;
} EmuSite;

// ---- paths ----

uint64_t emu_path_weight(const EmuBlock *block, const EmuPath *path); // chain.c: its clocks, times EMU_WAIT
// wakes.c: lanes of `mask` wrote at first + delta (addr, where that is NULL), which others may wait for.
typedef struct EmuWaited EmuWaited;
static inline EmuWaited *emu_waited(EmuRun *run) {
  return __atomic_load_n(&run->waited, __ATOMIC_ACQUIRE);
}
void emu_path_wrote(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t first, const int32_t *delta,
                    const uint64_t *addr, bool atomic);
void emu_waited_free(EmuRun *run);

// ---- static analysis of a program ----

// flight.c: waits and loads of one function, and which of its stores directly follow an adjacent one
bool emu_flight_find(const SolEmuMachine *m, const PtxFunction *fn, uint8_t *loads, uint8_t *waits,
                     uint8_t *follows);
bool emu_takes_find(const EmuProgram *p, EmuStatics *s); // takes.c; false: out of memory
uint32_t emu_block_at(const PtxFunction *fn, uint32_t inst);
// Basic blocks that ptxas merges into one by predication: a block that ends in a short forward branch, the block
// that the branch skips, and its target.
typedef enum EmuGuarded {
  EMU_BLOCK_OWN,     // begins a merged block
  EMU_BLOCK_GUARDED, // continues it, predicated by the branch before
  EMU_BLOCK_JOINS    // continues it, for all lanes
} EmuGuarded;
void emu_guarded_find(const SolEmuMachine *m, const PtxFunction *fn,
                      uint8_t *of_block); // EmuGuarded, by block
// unrolled.c: whether merged blocks [n, end) are a loop that ptxas unrolls, and whose loads it then has in flight together.
// carried: room for a set of registers.
bool emu_is_unrolled(const SolEmuMachine *m, const PtxFunction *fn, uint32_t n, uint32_t end,
                     uint64_t *carried);

#endif
