// Shared-memory banks: how many wavefronts ("passes" below) one warp-level instruction takes. Exact for the
// cases that were measured.
//
// Assumptions, each with a test in tests/test_mem_banks.c against an H200's counters:
// - 32 banks of 4 bytes. Up to 4 bytes a lane, passes = the most distinct 4-byte words that fall in one bank.
//   Lanes in one word share a pass, stores too, whatever bytes of it they touch.
// - 8 bytes a lane: two half-warps, counted separately and added; 16 bytes: four quarter-warps. A group
//   without an active lane takes none. (32 bytes: eight groups; no such instruction exists, so nothing was
//   measured.)
// - Loads of 8 and 16 bytes merge two neighbouring groups into one where, over the whole warp, either every
//   active lane i reads the address of lane i^1, or every one that of lane i^2; inactive partners do not
//   matter. Stores never merge. (An H200's data-pipe counter agrees on 208 of 208 drawn cases. ncu's
//   per-instruction counter, smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld, differs from it on
//   30 of them, none of them plain.)
// - Atomics do not share a pass: passes = the most active lanes in one bank. An increment by a constant whose
//   result is not used does share (the machine has an instruction for it); compare-and-swap takes twice as
//   many.
// - An addition of floats is a loop of load and compare-and-swap, in which one lane per bank and iteration, the
//   lowest, succeeds. Atomics wider than 4 bytes were not measured: groups as for stores.
// The ideal is the fewest passes that the same distinct words could take: ceil(distinct words / 32).
#ifndef SOL_MEM_BANKS_H
#define SOL_MEM_BANKS_H

#include "mem/coalesce.h"

enum { SOL_BANKS = 32, SOL_BANK_BYTES = 4 };

typedef enum SolSharedOp {
  SOL_SHARED_LOAD = 0,
  SOL_SHARED_STORE,
  SOL_SHARED_INCREMENT, // add of the constant 1, result unused: atomicAdd(p, 1)
  SOL_SHARED_ATOMIC,    // every other atomic that the GPU has an instruction for
  SOL_SHARED_CAS,
  SOL_SHARED_CAS_LOOP // atomics on floats, which ptxas builds from loads and compare-and-swap
} SolSharedOp;

typedef struct SolWavefronts {
  uint32_t wavefronts;
  uint32_t ideal;
} SolWavefronts;

// Arguments as for sol_coalesce; addresses may have any base that is a multiple of 128. Without an active lane
// both results are 0.
SolWavefronts sol_banks(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolSharedOp op);

#endif
