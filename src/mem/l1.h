// L1, the cache of one SM. Modelled: real hits also depend on timing and on which SM runs which block.
//
// Assumptions, each with a test in tests/test_mem_cache.c and, unless marked *, seen on an H200
// (docs/memory-model.md):
// - Lines of 128 bytes in sectors of 32. A load that misses fetches the missing sectors, not the line. A sector
//   that another warp's load has already requested counts as a hit.
// - Stores write through to L2, and also allocate in L1, byte by byte. A later load hits where all the bytes it
//   reads of a sector are present; else it fetches the sector. Local memory is treated in the same way.
// - Atomics and reductions are performed in L2 and invalidate the whole line in L1.
// - ld.cg, .cv, .volatile and .relaxed or .acquire at gpu scope or wider read L2 and invalidate the line. ld.lu
//   and .L1::no_allocate may hit but do not allocate. ld.ca, .cs, .nc and plain loads hit and allocate. Cache
//   hints of stores have no effect.
// - A fence, or a load that acquires, at gpu scope or wider invalidates L1: sol_l1_empty. At cta scope nothing
//   happens.
// - The capacity is what shared memory leaves; stores use capacity like loads. * Replacement is exact LRU in
//   sets of up to 16 lines, selected by hash. (The H200's hit rate falls more gradually than LRU's, at the same
//   size.)
// - * L1 starts a launch empty and is kept from block to block.
#ifndef SOL_MEM_L1_H
#define SOL_MEM_L1_H

#include "mem/cache_set.h"
#include "mem/traffic.h"
#include "sol/status.h"

typedef enum SolMemOp {
  SOL_MEM_LOAD = 0,
  SOL_MEM_LOAD_L2,   // always reads L2, and invalidates the line in L1
  SOL_MEM_LOAD_ONCE, // may hit; does not allocate
  SOL_MEM_STORE,
  SOL_MEM_ATOMIC,     // atom, red
  SOL_MEM_COPY_LOAD,  // asynchronous copies that bypass L1, and prefetches into L2
  SOL_MEM_COPY_STORE, // asynchronous copies from shared memory; invalidates the line
} SolMemOp;

// Counts of one instruction, in sectors unless the comment says otherwise; the caller adds them up.
typedef struct SolL1Counts {
  uint64_t requests;
  uint64_t sectors, ideal_sectors, lines; // exact, as sol_coalesce counts them
  uint64_t hits, misses;                  // of loads through L1 (SOL_MEM_LOAD, _LOAD_L2, _LOAD_ONCE)
  uint64_t to_l2;                         // read from, written to or changed in L2
  uint64_t
      packets; // that stores send: one a sector, and one for which bytes, unless the whole line is written
} SolL1Counts;

typedef struct SolL1 {
  SolSet *sets;
  uint32_t *bytes; // per set, way and sector: the bytes of a partial sector
  SolSetLayout layout;
  bool used; // since it was last emptied
} SolL1;

enum { SOL_L1_MAX_BYTES = 1 << 20 };

// Host memory that an L1 of so many bytes (0 to 1 MiB) needs. The caller owns it and keeps it as long as the L1.
size_t sol_l1_bytes(uint64_t bytes);
SolStatus sol_l1_init(SolL1 *l1, uint64_t bytes, void *memory, size_t size, SolError *err);
void sol_l1_empty(SolL1 *l1);

// One request. Returns false, with nothing changed or counted, where the log is full: drain it and call again.
// A request without lines is not counted.
bool sol_l1_access(SolL1 *l1, const SolCoalesced *request, SolMemOp op, uint32_t id, SolL1Counts *counts,
                   SolLog *log);

#endif
