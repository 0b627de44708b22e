// What the files of counters.h share.
#ifndef SOL_MEASURE_COUNTERS_SET_H
#define SOL_MEASURE_COUNTERS_SET_H

#include "measure/cupti.h"

// Counters that are collected together, over as many passes as they need.
typedef struct CountersSet {
  void *host;
  int passes, count, known_count;
  int *place;         // of each metric among the known; -1: it is not
  const char **known; // names
  double *row;        // their values
  uint8_t *image, *data;
  size_t image_size, data_size;
} CountersSet;

// Sorts out what the chip does not know, and schedules the rest. `availability` may be NULL.
SolStatus counters_open_set(const Cupti *cupti, CountersSet *set, const char *chip,
                            const uint8_t *availability, const char *const *metrics, int count,
                            SolError *err);
void counters_close_set(const Cupti *cupti, CountersSet *set); // all zeros is fine
// CUPTI lays out the room for results by the metrics that it was asked the size for last: before each use of
// another set. `most`: launches.
SolStatus counters_make_room(const Cupti *cupti, CountersSet *set, void *profiler, int most, SolError *err);

#endif
