// Rows taken by id: embedding and gather.
#ifndef SOL_KERNELS_EMBEDDING_H
#define SOL_KERNELS_EMBEDDING_H
#include <stdint.h>

#include "../tiny.h"

enum {
  EMBEDDING_THREADS = 128, // of a block
  EMBEDDING_PIECES = 4,    // a thread, where elements are converted
  EMBEDDING_LINES = 8,     // lines of 128 bytes a warp, where a thread moves words; twice as many of a table in L2
  FLOW_TURNS = 4,          // of a block's threads, at most, where y is one sequence of words
  FLOW_BYTES = 16 << 10,   // of y in so many turns
  FLOW_MOST = 2048         // bytes of a row there
};

typedef struct EmbeddingParams {
  void *y;
  const void *x;
  const void *ids, *order; // order: NULL: none
  int32_t *bad;            // NULL: no flag
  int64_t m, n;            // n: bytes of a row where it is moved as it is; elements where it is converted
  int64_t rows;            // of x
  int64_t y_stride, x_stride; // bytes
  const char *x_end;          // where x is dense: its end. NULL: there may be gaps between rows
  int64_t strip;              // WIDE, WORDS: bytes of a row for the blocks of one z, the last of which have less
  uint64_t per_row;           // threads on a row, or on a strip of it
  uint64_t ahead;             // the row this many further on is prefetched into L2; 0: none
  uint32_t multiply, shift;   // index / per_row is ((index * multiply >> 32) + index) >> shift; 0: too large for that
  int32_t wide_ids;           // ids and order are int64
  int32_t x_kind, y_kind;     // where it is converted
  int32_t near;               // STAGED: x goes through L1, where many rows are of few ids
  int32_t hint;               // rows are prefetched while the predecessor runs
  int32_t lines;              // SHIFT: a warp has whole lines of y
  int32_t stream;             // y is stored so that L2 keeps x
  int32_t tiny;               // TINY: the launcher's
  int32_t words, warp_rows;   // ROWS: the number in embedding_rows.def, and the rows of a warp, 32 at most
  int32_t turns;              // FLOW: of a block's threads
  uint32_t over;              // FLOW: 2^32 / per_row, rounded up
  int32_t ends;               // bytes of y's rows where their ends are prefetched; 0: they are not
  int32_t staged, pitch;      // STAGED: rows of a block in shared memory, and the bytes from one to the next
} EmbeddingParams;

#endif
