// What L1 sends on to L2: a log of records per SM, bounded, in the order of that SM's execution.
//
// L2 is cut into SOL_SHARDS independent parts by address. A log is filled by one worker, then sorted by shard
// (order kept); shards are then drained, each by one worker, taking logs in turn. Results depend on the logs
// and their order alone, not on how many workers there are.
#ifndef SOL_MEM_TRAFFIC_H
#define SOL_MEM_TRAFFIC_H

#include "mem/coalesce.h"

enum {
  SOL_SHARDS = 64,
  SOL_MAX_RECORDS = SOL_MAX_LINES * SOL_LINE_SECTORS // that one request can make
};

typedef enum SolTraffic { SOL_TRAFFIC_READ = 0, SOL_TRAFFIC_WRITE, SOL_TRAFFIC_ATOMIC } SolTraffic;

typedef struct SolRecord {
  uint32_t line_low;
  uint16_t line_high; // lines have 48 bits here: addresses 55
  uint8_t shard;
  uint8_t what;   // sectors in the low nibble, SolTraffic in the high one
  uint32_t id;    // whom to count it for
  uint32_t bytes; // written: the bytes of every one of these sectors, one bit each
} SolRecord;

typedef struct SolLog {
  SolRecord *records, *spare; // capacity each
  uint32_t count, capacity;
  uint32_t start[SOL_SHARDS + 1]; // after sorting: the records of shard s are [start[s], start[s + 1])
} SolLog;

// Memory for a log of so many records. It is the caller's; aligned to 8 bytes.
size_t sol_log_bytes(uint32_t capacity);
void sol_log_init(SolLog *log, uint32_t capacity, void *memory);
// Whether any one more request fits. Where it does not: sort, drain all shards, empty, go on.
static inline bool sol_log_has_room(const SolLog *log) {
  return log->capacity - log->count >= SOL_MAX_RECORDS;
}
void sol_log_sort(SolLog *log);
static inline void sol_log_empty(SolLog *log) {
  log->count = 0;
  memset(log->start, 0, sizeof log->start); // nothing to drain either, if it is not filled and sorted again
}

// Any aligned run of 64 lines has one in each shard.
static inline uint32_t sol_shard_of(uint64_t line) {
  return (uint32_t)(line ^ (line / SOL_SHARDS) * UINT64_C(0x9e3779b97f4a7c15) >> 58) % SOL_SHARDS;
}

static inline void sol_log_add(SolLog *log, uint64_t line, SolTraffic kind, uint32_t sectors, uint32_t bytes,
                               uint32_t id) {
  log->records[log->count++] = (SolRecord){
      .line_low = (uint32_t)line,
      .line_high = (uint16_t)(line >> 32),
      .shard = (uint8_t)sol_shard_of(line),
      .what = (uint8_t)(sectors | (uint32_t)kind << 4),
      .id = id,
      .bytes = bytes,
  };
}

#endif
