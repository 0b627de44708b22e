// What the rungs of the rmsnorm ladder and their launcher share.
#ifndef SOL_KERNELS_RMSNORM_RUNGS_H
#define SOL_KERNELS_RMSNORM_RUNGS_H

#include <stdint.h>

enum {
  NORM_THREADS = 256, // of a block, at most, where not said otherwise
  NORM_HELD = 4,      // vectors of 8 elements that a thread holds in registers
  NORM_HELD_WIDE = 8, // of rows that 1024 threads would not hold so, and in clusters
  NORM_CLUSTER_THREADS = 128,
  NORM_CLUSTER = 8, // blocks of a cluster, at most
  // Columns, at most; the registers of a block of 1024 threads hold as many.
  NORM_MOST = 8 * NORM_HELD_WIDE * NORM_CLUSTER_THREADS * NORM_CLUSTER
};

// y = x / sqrt(mean(x^2) + eps) * weight; m rows of n fp16 elements.
typedef struct RmsnormRung {
  void *y;
  const void *x, *weight;
  int64_t m;
  int32_t n;
  float eps;
} RmsnormRung;

#endif
