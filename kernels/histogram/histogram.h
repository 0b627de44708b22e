#ifndef SOL_KERNELS_HISTOGRAM_H
#define SOL_KERNELS_HISTOGRAM_H
#include <stdint.h>

enum {
  HISTOGRAM_VECTORS = 4, // of 16 bytes in flight a thread
  HISTOGRAM_PIECE = 1024, // counts that one asynchronous copy adds to the result
  HISTOGRAM_INT32 = 0,   // kinds of x
  HISTOGRAM_FP32 = 1,
  HISTOGRAM_FP16 = 2,
  HISTOGRAM_BF16 = 3
};

typedef struct HistogramParams {
  uint32_t *counts;
  const void *x;
  int64_t n, bins;
  int64_t head, vectors; // elements before the first aligned 16 bytes; such vectors after them
  int64_t share;         // vectors of a block's range of x
  uint32_t parts, range; // blocks that read the same range of x, each with `range` bins and two more counters
  int32_t bulk;           // counts are added by asynchronous copies
  int32_t kind, copies;   // copies: counters of a bin, of kernels with a choice
  float low, high, scale; // bin = floor((x - low) * scale), in fp32
  float last, none;       // the last bin; beyond all: what is in none
} HistogramParams;

#endif
