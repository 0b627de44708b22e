// What the rungs of the embed_rmsnorm ladder and their launcher share.
#ifndef SOL_KERNELS_EMBED_RMSNORM_RUNGS_H
#define SOL_KERNELS_EMBED_RMSNORM_RUNGS_H

#include <stdint.h>

enum { EMBED_NORM_THREADS = 256 };

// y[i] = rmsnorm(table[ids[i]]) * weight; rows of n floats, one a block.
typedef struct EmbedRmsnormRung {
  float *y;
  float *embedded; // what the first of two kernels leaves for the second
  const float *table, *weight;
  const int32_t *ids;
  int32_t n;
  float eps;
} EmbedRmsnormRung;

#endif
