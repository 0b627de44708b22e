#include "measure/stats.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Between two samples where `share` of them falls between.
static double quantile(const double *sorted, int count, double share) {
  double at = share * (count - 1);
  int below = (int)at, above = below + 1 < count ? below + 1 : below;
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

Stats stats_of(double *samples, int count) {
  if (count < 1) return (Stats){0};
  qsort(samples, (size_t)count, sizeof *samples, ascending);
  Stats s = {.median = quantile(samples, count, 0.5),
             .least = samples[0],
             .most = samples[count - 1],
             .count = count};
  double middle = quantile(samples, count, 0.75) - quantile(samples, count, 0.25);
  s.spread = s.median > 0 ? middle / s.median : 0;
  return s;
}
