#include "mem/traffic.h"

size_t sol_log_bytes(uint32_t capacity) {
  return (size_t)2 * capacity * sizeof(SolRecord);
}

void sol_log_init(SolLog *log, uint32_t capacity, void *memory) {
  *log = (SolLog){.records = memory, .capacity = capacity};
  log->spare = log->records + capacity;
}

// A counting sort: records of one shard stay in the order in which they came.
void sol_log_sort(SolLog *log) {
  uint32_t at[SOL_SHARDS] = {0};
  for (uint32_t i = 0; i < log->count; i++) at[log->records[i].shard]++;
  uint32_t sum = 0;
  for (uint32_t s = 0; s < SOL_SHARDS; s++) {
    log->start[s] = sum;
    sum += at[s];
    at[s] = log->start[s];
  }
  log->start[SOL_SHARDS] = sum;
  for (uint32_t i = 0; i < log->count; i++) log->spare[at[log->records[i].shard]++] = log->records[i];
  SolRecord *sorted = log->spare;
  log->spare = log->records;
  log->records = sorted;
}
