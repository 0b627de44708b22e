// What elementwise kernels and their launchers share: how threads are spread over a tensor.
#ifndef SOL_KERNELS_ELEMENTWISE_H
#define SOL_KERNELS_ELEMENTWISE_H

#include <stdint.h>

// Division of an index below 2^63 by a number known at launch, as one multiplication:
// q = (2 i * magic) >> (64 + shift).
typedef struct Divider {
  uint64_t by, magic;
  uint32_t shift;
} Divider;

// The same for indexes below 2^31: q = i * magic >> shift.
typedef struct Divider32 {
  uint32_t by, magic, shift;
} Divider32;

// One thread takes one chunk: as many elements as fill 16 bytes of the wider side. Chunks lie on the output's
// vector boundaries, so a row that starts between two has a short chunk first.
typedef struct Spread {
  uint64_t chunks; // in all
  int64_t length;  // elements of a row; flat: of the whole dense tensor, walked as one long row
  Divider divider; // rows: by the chunks of a row; flat: by N, for columns
  int64_t last;    // the number of the last row, 0 for the first; flat: 0
  Divider32
      small; // the divider where there are so few chunks (flat: elements) that 32 bits do; otherwise by 0
  Divider32 parts; // long rows start with a block each, and this is by the blocks of a row; otherwise by 0
  int32_t ends;    // bytes of the output's rows where their ends are prefetched (ends.cuh); 0: they are not
} Spread;

#endif
