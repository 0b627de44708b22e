#ifndef SOL_KERNELS_SELECT_H
#define SOL_KERNELS_SELECT_H
#include <stdint.h>

#include "../held.h"
#include "../narrow.h"

// The most that topk takes, and the most that sample keeps in a list.
enum { TOPK_MOST = 1024 };

typedef struct TopkParams {
  void *values, *ids;
  const void *x;
  int64_t n, k, values_stride, ids_stride, x_stride; // x_stride in bytes, the others in elements
  int32_t x_kind, wide_ids;
  uint64_t m;
} TopkParams;

typedef struct SampleParams {
  void *ids;
  const void *x;
  const int64_t *seeds;
  uint64_t step;
  int64_t n, k, x_stride; // k 0: all; stride in bytes
  uint64_t share;         // top_p in units of 2^-32; 0: all
  float per;              // 2^23 log2(e) / temperature
  int32_t x_kind, wide_ids;
  uint64_t m;
  NarrowShape narrow; // of sol_sample_short
  HeldShape held;     // of sol_weigh_...
} SampleParams;

#endif
