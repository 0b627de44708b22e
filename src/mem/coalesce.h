// The coalescer: which sectors and lines of memory one warp-level instruction touches. Exact.
//
// Assumptions, each with a test in tests/test_mem_coalesce.c:
// - A request is one warp-level memory instruction with at least one active lane; without one there is none.
// - Memory is divided into sectors of 32 bytes and lines of 128. A request's sectors are the distinct ones its
//   active lanes touch, at any width and alignment, in any order of lanes; two lanes in one sector count it
//   once.
// - The ideal is the fewest sectors that the same distinct bytes could fill: ceil(distinct bytes / 32).
// The first two agree with an H200's counters (tests/data/h200-global-sectors.csv).
#ifndef SOL_MEM_COALESCE_H
#define SOL_MEM_COALESCE_H

#include "base/port.h"

enum {
  SOL_LANES = 32,
  SOL_SECTOR_BYTES = 32,
  SOL_LINE_BYTES = 128,
  SOL_LINE_SECTORS = 4,
  SOL_MAX_LANE_BYTES = 32,
  SOL_MAX_LINES = 2 * SOL_LANES // every lane's access may straddle two lines
};

typedef struct SolLine {
  uint64_t line;                    // address / 128
  uint32_t bytes[SOL_LINE_SECTORS]; // of each sector, one bit per byte touched
  uint32_t sectors;                 // one bit per sector touched
  uint32_t whole;                   // one bit per sector touched in all its bytes
} SolLine;

typedef struct SolCoalesced {
  uint32_t lines;         // entries of `line`, in the order in which lanes first touch them
  uint32_t sectors;       // distinct 32-byte sectors
  uint32_t ideal_sectors; // the fewest that the same bytes could fill
  uint32_t bytes;         // distinct bytes
  SolLine line[SOL_MAX_LINES];
} SolCoalesced;

// addr[lane] is read for active lanes only, bit `lane` of mask; width is 1 to 32 bytes a lane. No active
// lane: all counts are 0. Lines past out->lines are left as they were. Addresses wrap round at 2^64.
void sol_coalesce(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolCoalesced *out);

// The same for an asynchronous copy into shared memory (cp.async): as many lanes as make 128 bytes go together, and what
// two such parts both touch counts twice, as an H200's counters show (async_line_bad of tests/data/h200-rules.csv). The
// ideal is that of all lanes.
void sol_coalesce_copy(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolCoalesced *out);

// Whether lane i is at addr[0] + i * step for the first `lanes` lanes: then no search for lines is needed.
bool sol_lanes_in_step(const uint64_t addr[SOL_LANES], uint32_t lanes, uint64_t step);

#endif
