// What the rungs of the attention ladder and src/ladder/ladder_attention.c share: one sequence in bf16, heads of 128 elements.
#ifndef SOL_KERNELS_ATTENTION_RUNGS_H
#define SOL_KERNELS_ATTENTION_RUNGS_H

#include "attention.h"

#define RUNG_D 128

typedef struct AttentionRung {
  AttentionParams all;
  float *scores;     // (heads, queries, keys)
  uint16_t *weights; // the same in bf16, after the softmax
} AttentionRung;

#endif
