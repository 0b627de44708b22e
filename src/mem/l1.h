// L1, the cache of one SM. Modelled: real hits also depend on timing and on which SM runs which block.
//
// Assumptions, each with a test in tests/test_mem_cache.c and, unless marked *, seen on an H200
// (docs/memory-model.md):
// - Lines of 128 bytes in sectors of 32. A load that misses brings the missing sectors, not the line. A
//   sector that another warp's load has asked for already counts as a hit.
// - Stores write through to L2, all of them, and also stay in L1: they allocate, byte by byte. A later load
//   hits where all the bytes it wants of a sector are there; else it brings the sector. Local memory is
//   treated alike.
// - Atomics and reductions act in L2 and drop the line, all of it, from L1.
// - ld.cg, .cv, .volatile and .relaxed or .acquire at gpu scope or wider read L2 and drop the line. ld.lu and
//   .L1::no_allocate hit if the line is there but bring nothing in. ld.ca, .cs, .nc and plain loads hit and
//   allocate. All stores are alike, whatever their cache hint.
// - A fence, or a load that acquires, at gpu scope or wider empties L1: sol_l1_empty. At cta scope nothing
//   happens.
// - Capacity is what shared memory leaves; stores take room like loads. * Replacement is exact LRU in sets
//   of up to 16 lines, found by hash. (The H200's transition is softer than LRU's, at the same size.)
// - * L1 starts a launch empty and is kept from block to block.
#ifndef SOL_MEM_L1_H
#define SOL_MEM_L1_H

#include "mem/cache_set.h"
#include "mem/traffic.h"
#include "sol/status.h"

typedef enum SolMemOp {
  SOL_MEM_LOAD = 0,
  SOL_MEM_LOAD_L2,   // reads L2 whatever L1 holds, and drops the line
  SOL_MEM_LOAD_ONCE, // may hit; brings nothing in
  SOL_MEM_STORE,
  SOL_MEM_ATOMIC,     // atom, red
  SOL_MEM_COPY_LOAD,  // asynchronous copies that pass L1 by, and prefetches into L2
  SOL_MEM_COPY_STORE, // likewise, written from shared memory; drops the line
} SolMemOp;

// Sums for one instruction; the caller adds and merges them. Sectors, unless it says otherwise.
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

// Memory an L1 of so many bytes (0 to 1 MiB) needs; the caller's, and it must stay.
size_t sol_l1_bytes(uint64_t bytes);
SolStatus sol_l1_init(SolL1 *l1, uint64_t bytes, void *memory, size_t size, SolError *err);
void sol_l1_empty(SolL1 *l1);

// One request. False, with nothing changed or counted, where the log has no room: drain it and call again.
// A request without lines counts nothing.
bool sol_l1_access(SolL1 *l1, const SolCoalesced *request, SolMemOp op, uint32_t id, SolL1Counts *counts,
                   SolLog *log);

#endif
