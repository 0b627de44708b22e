// Several measurements of one thing as one figure.
#ifndef SOL_MEASURE_STATS_H
#define SOL_MEASURE_STATS_H

#include "base/port.h"

// spread: the middle half of the samples, third quartile less first, as a share of the median. One sample
// that was disturbed does not widen it.
typedef struct Stats {
  double median, spread, least, most;
  int count;
} Stats;

Stats stats_of(double *samples, int count); // sorts them; all zeros for none

#endif
