// What the rungs of the embedding ladder and their launcher share.
#ifndef SOL_KERNELS_EMBEDDING_RUNGS_H
#define SOL_KERNELS_EMBEDDING_RUNGS_H

#include <stdint.h>

enum {
  EMBED_THREADS = 256, // of a block
  EMBED_PER_THREAD = 4 // elements, of the unrolled rung
};

// y[i] = table[ids[i]], m rows of n floats. blocks: how many of them share a row.
typedef struct EmbeddingRung {
  float *y;
  const float *table;
  const int32_t *ids;
  int64_t m, n;
  uint32_t blocks;
} EmbeddingRung;

// Five parameters as a kernel lays them out: embedding_pointers is about their types.
typedef struct EmbeddingPointers {
  void *y;
  const void *table;
  const int32_t *ids;
  int64_t vectors;
  uint32_t blocks;
} EmbeddingPointers;

#endif
