// The traffic from L1 to L2: a bounded log of records per SM, in the order of that SM's execution.
//
// L2 is divided into SOL_SHARDS independent shards by address. One worker fills a log, then sorts it by shard
// (stable); then each shard is drained by one worker, which takes records from all logs in turn. So the results
// do not depend on the number of workers.
#ifndef SOL_MEM_TRAFFIC_H
#define SOL_MEM_TRAFFIC_H

#include "mem/coalesce.h"

enum {
  SOL_SHARDS = 64,
  SOL_MAX_RECORDS = SOL_MAX_LINES * SOL_LINE_SECTORS // the most that one request can add
};

typedef enum SolTraffic { SOL_TRAFFIC_READ = 0, SOL_TRAFFIC_WRITE, SOL_TRAFFIC_ATOMIC } SolTraffic;

typedef struct SolRecord {
  uint32_t line_low;
  uint16_t line_high; // lines have 48 bits here: addresses 55
  uint8_t shard;
  uint8_t what;   // sectors in the low nibble, SolTraffic in the high one
  uint32_t id;    // the entry of the counts that it is added to
  uint32_t bytes; // writes: the bytes written in each of these sectors, one bit each
} SolRecord;

typedef struct SolLog {
  SolRecord *records, *spare; // capacity each
  uint32_t count, capacity;
  uint32_t start[SOL_SHARDS + 1]; // after sorting: the records of shard s are [start[s], start[s + 1])
} SolLog;

// Bytes of memory for a log of so many records. The caller owns the memory, which is aligned to 8 bytes.
size_t sol_log_bytes(uint32_t capacity);
void sol_log_init(SolLog *log, uint32_t capacity, void *memory);
// Whether one more request of any size fits. Where it does not: sort the log, drain all shards, empty the log.
static inline bool sol_log_has_room(const SolLog *log) {
  return log->capacity - log->count >= SOL_MAX_RECORDS;
}
void sol_log_sort(SolLog *log);
static inline void sol_log_empty(SolLog *log) {
  log->count = 0;
  memset(log->start, 0, sizeof log->start); // draining it before it is filled and sorted again has no effect
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
