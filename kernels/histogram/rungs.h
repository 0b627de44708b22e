// What the rungs of the histogram are launched with.
#ifndef SOL_KERNELS_HISTOGRAM_RUNGS_H
#define SOL_KERNELS_HISTOGRAM_RUNGS_H
#include <stdint.h>

enum { HISTOGRAM_RUNG_THREADS = 512 };

typedef struct HistogramRung {
  uint32_t *counts; // (bins)
  const int32_t *x; // (n); what is in no bin is not counted
  uint64_t n;
  uint32_t bins;
} HistogramRung;

#endif
