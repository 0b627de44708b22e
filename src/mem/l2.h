// L2 and what it moves to and from DRAM. Modelled, with figures measured on an H200 (docs/memory-model.md).
//
// Assumptions, each with a test in tests/test_mem_cache.c; tests/test_mem_dram.c sets the whole beside the
// counters:
// - Lines of 128 bytes in sectors of 32; exact LRU in sets of up to 16 lines, found by hash.
// - A read miss brings, of each aligned 64-byte half of the line that it misses in, the sectors that are
//   not there, and they stay. An atomic that misses does so in half of the lines (by hash), in the others
//   it brings its own sectors alone: the H200 reads 48 bytes on average.
// - Writes allocate and read nothing: L2 knows which bytes of a sector were written. A sector becomes whole
//   when all its bytes were written, or when a read or an atomic wants it, which costs the sector's 32
//   bytes from DRAM.
// - Dirty sectors are written back, 32 bytes each, when their line is evicted; a sector still partial is
//   read first. What is dirty at the end of a launch stays in L2 and has not been written:
//   sol_l2_dirty_bytes tells how much.
// - Of its size 75 % act as capacity (an H200 keeps part of the data in both halves of its L2), 43 % may be
//   dirty (then the set's oldest dirty line is written back and stays, clean), and 11 % of its lines may be
//   partly written (then the oldest of them is completed from DRAM and written back, and stays).
// - Cache and eviction hints change nothing here; a copy with streaming hints moved the same bytes.
#ifndef SOL_MEM_L2_H
#define SOL_MEM_L2_H

#include "mem/cache_set.h"
#include "mem/traffic.h"
#include "sol/status.h"

// Zero means the default in the comment.
typedef struct SolL2Config {
  uint64_t bytes;           // the device's L2; at least 64 KiB, at most 1 GiB
  uint32_t usable_percent;  // 75
  uint32_t dirty_percent;   // 43
  uint32_t partial_percent; // 11
  uint32_t dram_bytes;      // what a read miss brings, if all of it is missing: 32 or 64; 64
} SolL2Config;

// Sums for one id. Sectors, unless it says otherwise.
typedef struct SolL2Counts {
  uint64_t requests; // each for sectors of one line, or for one sector that is written in part
  uint64_t reads, read_hits;
  uint64_t writes;
  uint64_t atomics, atomic_hits;
  uint64_t dram_read_bytes;  // for its reads and atomics, and to complete what it wrote in part
  uint64_t dram_write_bytes; // of lines that it was the last to write
} SolL2Counts;

typedef struct SolL2Shard {
  SolSet *sets;
  uint32_t *bytes; // per set, way and sector: the bytes of a partial sector
  uint32_t *owner; // per set and way: the id that wrote last
  uint32_t *queue; // set * 16 + way of lines that were partly written, oldest first, as a ring
  uint32_t queue_first, queue_count, partial_lines;
  uint32_t apart[21]; // shards are drained side by side: keeps their fields off each other's cache lines
} SolL2Shard;

typedef struct SolL2 {
  SolSetLayout layout, dirty; // of each shard; dirty.ways and .extra: how many lines of a set may be dirty
  uint32_t max_partial;       // lines of a shard that may be partial
  bool pairs;                 // DRAM is read 64 bytes at a time
  SolL2Shard shard[SOL_SHARDS];
} SolL2;

// An id that belongs to nobody.
#define SOL_NO_ID UINT32_MAX

size_t sol_l2_bytes(const SolL2Config *config); // 0 where sol_l2_init would refuse the config
SolStatus sol_l2_init(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err);
// The same without touching the memory: every shard has to be emptied before it is used.
SolStatus sol_l2_lay_out(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err);
void sol_l2_empty(SolL2 *l2); // nothing is written back
void sol_l2_empty_shard(SolL2 *l2, uint32_t shard);

// Applies the records of one shard, of all the logs, SOL_TURN records of each in turn, as SMs run side by
// side. The logs are sorted. counts has ids + 1 entries: ids past the end, and lines that another launch
// wrote, go to the last.
enum { SOL_TURN = 32 };
void sol_l2_drain(SolL2 *l2, uint32_t shard, const SolLog *logs, uint32_t log_count, SolL2Counts *counts,
                  uint32_t ids);

// Between launches that keep the cache: what is dirty now belongs to no id of the next.
void sol_l2_disown(SolL2 *l2);
uint64_t sol_l2_dirty_bytes(const SolL2 *l2);
// Writes back everything dirty in a shard, as if it were evicted now.
void sol_l2_flush(SolL2 *l2, uint32_t shard, SolL2Counts *counts, uint32_t ids);

#endif
