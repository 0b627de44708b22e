#ifndef SOL_KERNELS_SELECT_H
#define SOL_KERNELS_SELECT_H
#include <stdint.h>

#include "../held.h"
#include "../narrow.h"

// The most that topk takes, and the most that sample keeps in a list.
enum { TOPK_MOST = 1024 };
// Chunks of a thread that are searched together, and how many such batches it has in shared memory, all but one in flight; where rows are
// few.
enum { LIST_BATCH = 4, LIST_STAGES = 2, LIST_MORE = 4 };
// topk of rows that are sorted in registers: words of a lane (and the bits of that number) and of a warp, threads of a block, of_k's unit.
enum { SORTED_BITS = 4, SORTED_EACH = 1 << SORTED_BITS, SORTED_WORDS = 32 * SORTED_EACH, SORTED_THREADS = 128, SORTED_SHIFT = 20 };
// topk of many elements, by bins: threads of a row, and the most columns of rows of 16 bits and of 32.
enum { BINNED_THREADS = 128, BINNED_NARROW = 8192, BINNED_WIDE = 4096 };
// The most chunks of a lane in the kernels of short rows; of 16-bit elements that are neither cut nor weighed; of those that are weighed with a top_p SHORT_LESS. In kernels for rows of fewer, which take fewer registers:
// SHORT_FEW (SHORT_LESS of 16 bits) and SHORT_SOME. Rounds of 16 bits that are summed at a time. Threads of a block.
enum { SHORT_ROUNDS = 9, SHORT_MANY = 12, SHORT_FEW = 5, SHORT_LESS = 6, SHORT_SOME = 8, SHORT_TURN = 3, SHORT_THREADS = 128 };
// Rows of a few elements, one a thread: the most chunks, and bytes after a block's last row that are read with it.
enum { SERIAL_CHUNKS = 4, SERIAL_BEYOND = 32 };

typedef struct TopkParams {
  void *values, *ids;
  const void *x;
  int64_t n, k, values_stride, ids_stride, x_stride; // x_stride in bytes, the others in elements
  int32_t x_kind, wide_ids;
  uint64_t m;
  int32_t lane_bits, column_bits; // of sol_topk_sorted_...: 2^lane_bits lanes share a row; also of sol_topk_binned_...: of 2^column_bits columns or fewer
  uint32_t of_k;                  // of sol_topk_sorted_...: 1 / k
} TopkParams;

typedef struct SampleParams {
  void *ids;
  const void *x;
  const int64_t *seeds;
  uint64_t step;
  int64_t n, k, x_stride; // k 0: all; stride in bytes
  uint64_t share;         // top_p in units of 2^-32; 0: all
  float per;              // log2(e) / temperature / 32
  int32_t x_kind, wide_ids;
  uint64_t m;
  int32_t lane_bits, rounds; // of sol_short_... and sol_few_...: 2^lane_bits lanes share a row, with so many chunks each; of sol_groups_..._warp: rows
  HeldShape held;            // of sol_weigh_...
  uint32_t columns;          // of a group, of sol_groups_...
  uint32_t steps;            // of coarse hulls, the bits of an element
  float depth;               // of a rough cut
  int32_t room;              // of sol_short_..._close: chunks of a warp's rows in shared memory
  NarrowShape narrow;        // of sol_serial_...
  uint32_t beyond[4];        // likewise: all bits of what is after a row in its last chunk
  int32_t each, list;        // of sol_few_...: entries of a lane, and how far lists are apart
  float cut, cut_apart;      // likewise: where the k-th largest of normally distributed elements is, in deviations, and how far the next one from it
} SampleParams;

#endif
