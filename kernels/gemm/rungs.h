// What the rungs of the GEMM ladder and src/ladder/ladder_gemm.c share: C = A B in bf16, all three by rows.
#ifndef SOL_KERNELS_GEMM_RUNGS_H
#define SOL_KERNELS_GEMM_RUNGS_H

#include "gemm.h"

typedef struct GemmRung {
  uint16_t *c;
  const uint16_t *a, *b;
  int m, n, k;
} GemmRung;

// Tiles of blocks: the first of 32 by 32, the others of 128 by 128.
#define RUNG_SMALL 32
#define RUNG_TILE 128
#define RUNG_THREADS 256
#define RUNG_STAGES 4
#define RUNG_STAGE_BYTES (2 * RUNG_TILE * 128) // 64 k of A and of B
// Shared memory of rungs whose tiles are copied by tensor copies, and their barriers.
#define RUNG_SHARED(stages) ((stages)*RUNG_STAGE_BYTES + 64)

#endif
