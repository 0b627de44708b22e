// L2 and its traffic with DRAM. Modelled, with figures measured on an H200 (docs/memory-model.md).
//
// Assumptions, each with a test in tests/test_mem_cache.c; tests/test_mem_dram.c compares the whole model with
// the counters:
// - Lines of 128 bytes in sectors of 32; exact LRU in sets of up to 16 lines, selected by hash. Sets differ in size,
//   so that a buffer that outgrows L2 is lost little by little.
// - A read miss fetches and keeps all missing sectors of each aligned 64-byte half of the line in which it
//   misses. An atomic that misses does so in half of the lines (by hash), and in the others fetches only its own
//   sectors: the H200 reads 48 bytes on average.
// - Writes allocate and read nothing: L2 knows which bytes of a sector were written. A sector becomes complete
//   when all its bytes were written, or when a read or an atomic needs it, which reads the sector's 32 bytes
//   from DRAM.
// - Dirty sectors are written back, 32 bytes each, when their line is evicted; a sector that is still partial is
//   read first. Sectors that are dirty at the end of a launch stay in L2 and have not been written back: a later
//   launch writes them back when it evicts them. sol_l2_left_dirty returns their size.
// - Part of its size is usable capacity (an H200 keeps part of the data in both halves of its L2), part may be
//   dirty (beyond that the set's oldest dirty line is written back and stays, clean), and part of its lines may
//   be partly written (beyond that the oldest is completed from DRAM and written back, and stays).
// - Access policy windows: mem/window.h. Other cache and eviction hints have no effect; on the H200 a copy with streaming
//   hints moved the same bytes.
#ifndef SOL_MEM_L2_H
#define SOL_MEM_L2_H

#include "mem/cache_set.h"
#include "mem/traffic.h"
#include "mem/window.h"
#include "sol/status.h"

enum { SOL_SET_KINDS = 32, SOL_SET_MOST = 118 };

// Shares are in percent of `bytes`. What holds for a GPU is the caller's to know (src/machine).
typedef struct SolL2Config {
  uint64_t bytes;           // the device's L2; at least 64 KiB, at most 1 GiB
  uint32_t usable_percent;  // of it, what holds distinct data; at least a line a shard
  uint32_t dirty_percent;   // of it, what may be dirty
  uint32_t partial_percent; // of its lines, those that may be partly written
  uint32_t dram_bytes;      // the most that a read miss fetches: 32 or 64
  const uint8_t
      *set_percent; // sizes of SOL_SET_KINDS sets in turn, of the mean, SOL_SET_MOST at most; NULL: all alike
} SolL2Config;

// Counts of one id, in sectors unless the comment says otherwise.
typedef struct SolL2Counts {
  uint64_t requests; // each for sectors of one line, or for one partly written sector
  uint64_t reads, read_hits;
  uint64_t writes;
  uint64_t atomics, atomic_hits;
  uint64_t dram_read_bytes;  // for its reads and atomics, and to complete sectors that it wrote in part
  uint64_t dram_write_bytes; // write-backs of lines that it was the last to write
} SolL2Counts;

// What a launch found of earlier ones, in bytes by age: [1] is the launch before it, [2] the one before that;
// [SOL_OLDEST] are all that are older, and copies.
enum { SOL_OLDEST = 15, SOL_AGES };
typedef struct SolL2Earlier {
  uint64_t found[SOL_AGES];   // distinct sectors read out of L2 that the launch of that age brought or wrote
  uint64_t written[SOL_AGES]; // write-backs of lines that the launch of that age was the last to write
} SolL2Earlier;

typedef struct SolL2Shard {
  SolSet *sets;
  uint32_t *bytes;     // per set, way and sector: the bytes of a partial sector
  uint32_t *owner;     // per set and way: the id that wrote last; SOL_NO_ID: not an id of this launch
  uint32_t *queue;     // a ring of set * 16 + way of partly written lines, oldest first
  uint8_t *most_dirty; // per set: lines that may be dirty
  uint8_t *most_kept;  // per set: lines that may persist
  uint8_t *left;       // per set and way: age << 4 | sectors from before this launch that it has not used yet
  uint32_t queue_first, queue_count, partial_lines;
  uint32_t own_dirty; // sectors of lines with an owner
  SolL2Earlier earlier;
  uint32_t
      *seen; // per set: the launch for which its owners and `left` hold; those passed since are made up for
  uint32_t launch;    // when it is used again (a launch of one block touches few sets)
  uint32_t apart[13]; // padding: shards are drained in parallel and must not share cache lines of the host
} SolL2Shard;

typedef struct SolL2 {
  uint32_t bits;               // a shard has 2^bits sets
  uint64_t lines, dirty_lines; // of a shard; those that may be dirty
  uint32_t max_partial;        // lines of a shard that may be partial
  bool pairs;                  // DRAM is read 64 bytes at a time
  const uint8_t *set_percent;  // as in the configuration
  SolL2Window window;          // of the launch
  SolL2Shard shard[SOL_SHARDS];
} SolL2;

// No id.
#define SOL_NO_ID UINT32_MAX

size_t sol_l2_bytes(const SolL2Config *config); // host memory that it needs; 0: sol_l2_init would fail
SolStatus sol_l2_init(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err);
// The same without initialising the memory: empty every shard before it is used.
SolStatus sol_l2_lay_out(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err);
void sol_l2_empty(SolL2 *l2); // invalidates all lines, without write-back
void sol_l2_empty_shard(SolL2 *l2, uint32_t shard);

// Lines of accesses from now on have the properties of the window; NULL: none have. Of persisting lines at most
// `set_aside` bytes are kept.
void sol_l2_set_window(SolL2 *l2, const SolL2Window *window, uint64_t set_aside);
void sol_l2_reset_persisting(SolL2 *l2); // no line persists any more

// Applies the records of one shard from all the logs, SOL_TURN records of each log in turn, since SMs run in
// parallel. The logs must be sorted. counts has ids + 1 entries: ids past the end, and lines that another launch
// wrote, are counted in the last. A turn is short: of each of the shards so many records are taken from a log before the
// next log's, and all logs' together must be far less than L2 holds.
enum { SOL_TURN = 4 };
void sol_l2_drain(SolL2 *l2, uint32_t shard, const SolLog *logs, uint32_t log_count, SolL2Counts *counts,
                  uint32_t ids);

// Call between launches that keep the cache: what is in it now is from before the next launch, and belongs to no
// id of it. Shards may be done in parallel.
void sol_l2_next_launch(SolL2 *l2, uint32_t shard);
// Since the last sol_l2_next_launch or sol_l2_empty: what was found of earlier launches, and the bytes that are
// dirty in lines last written since then.
SolL2Earlier sol_l2_earlier(const SolL2 *l2);
uint64_t sol_l2_left_dirty(const SolL2 *l2);
uint64_t sol_l2_dirty_limit(const SolL2 *l2); // the most bytes that can be dirty

// Between launches, something other than a kernel (a copy, a fill) uses [address, +bytes). The write-backs that it
// causes are counted nowhere.
typedef enum SolL2Use {
  SOL_L2_READS,  // what is missing is brought in
  SOL_L2_WRITES, // all of it is in L2 then, dirty
  SOL_L2_FREES   // its lines are dropped without write-back
} SolL2Use;
void sol_l2_use(SolL2 *l2, SolL2Use use, uint64_t address, uint64_t bytes);

uint64_t sol_l2_dirty_bytes(const SolL2 *l2); // of all lines
// Writes back all dirty sectors of a shard.
void sol_l2_flush(SolL2 *l2, uint32_t shard, SolL2Counts *counts, uint32_t ids);

#endif
