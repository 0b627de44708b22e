// What the row normalisations (rmsnorm, add_rmsnorm, embed_rmsnorm, layernorm) and their launcher share.
#ifndef SOL_KERNELS_NORM_H
#define SOL_KERNELS_NORM_H

#include <stdint.h>

#include "common.h"
#include "narrow.h"
#include "parts.h"

// How "any" kernels access what is not whole aligned chunks of one type (norm_any.cuh).
enum {
  NORM_VECTORS, // whole chunks at once: all rows are aligned to their chunks
  NORM_SINGLES  // elements one by one
};
enum { NORM_STRIPED_THREADS = 448, NORM_ANY_THREADS = 384 }; // the most of a block of "striped" kernels, and of "any4" with two inputs of 16 bits
enum { NORM_LAPS = 6 }; // big, two inputs: chunks of each that a thread has at most
enum { NORM_SPREAD_THREADS = 512, NORM_SPREAD_PAIRS = 4 }; // spread: threads of a block at most; add: chunks of the residual that a thread has in shared memory
enum { NORM_LAYER_THREADS = 256 }; // of a block of layernorm's "big" kernels
enum { NORM_ALIKE = 64 }; // rows of 16-bit elements so many apart start alike within 128 bytes
enum { NORM_ROWS_THREADS = 384, NORM_ROWS_CHUNKS = 3, NORM_ROWS_HELD = 3 }; // "rows": threads of a block, and chunks of a thread, at most; rows that it holds
enum { NORM_ROWS_RUNNING = 2 * NORM_ROWS_THREADS }; // threads of an SM, by their registers
enum { NORM_SCALE_TENSOR, NORM_SCALE_ROW, NORM_SCALE_BLOCK };
enum { NORM_DIRECT_STEPS = 16 }; // "direct": the most words of a lane
enum { NORM_WORDS_FEW = 12, NORM_WORDS_MOST = 16 }; // "words": elements of a lane
// Of short rows, beside NarrowShape.
typedef struct NormNarrow {
  int32_t piece[NARROW_TENSORS]; // bytes that starts and lengths of all rows are multiples of, 8 at most
  int32_t vectors;               // where weights and biases are in shared memory
  int32_t copy_bits;             // 2^copy_bits lanes copy a row where rows are apart
  int32_t steps;                 // "direct": words of a lane at most; "words": rows of a warp
  int32_t plain;                 // all tensors have words where x has words, and are of its type, or fp8
} NormNarrow;

typedef struct NormParams {
  const void *x;                                              // (m, n); embed: the table
  void *y;                                                    // (m, n)
  const void *weight, *bias;                                  // (n) or NULL
  int64_t x_stride, y_stride, residual_stride, second_stride; // bytes
  uint64_t m;
  int64_t n;
  int32_t chunks;            // of a row: n elements of input in 16 bytes each
  int32_t ahead;             // the row that many further on is prefetched into L2; 0: none
  int32_t stream;            // embed: outputs are stored so that L2 keeps the table
  float eps, offset, over_n; // over_n: 1 / n
  const void *residual;      // (m, n), add
  void *second;              // (m, n): x + residual; embed: the rows themselves, or NULL
  const void *ids;           // (m), embed
  int64_t vocab;
  int32_t *bad; // set to 1 where an id is out of range; NULL: not reported
  int32_t wide_ids;
  int32_t ends, second_ends; // bytes of a row of y and of second where their ends are prefetched; 0: they are not
  int32_t split;        // block, early: a row has as many blocks as a thread has chunks
  int32_t cluster_bits; // big, any: 2^cluster_bits blocks share a row
  int32_t span;         // big: chunks of a row that a block takes
  int32_t rows;         // rows: of a block; layernorm's big, shifted: blocks that share a row
  int32_t aside;        // big, spread, add: chunks of shared memory before those of the residual; rows: warps start on lines; layernorm's big, shifted: chunks of a thread, at most
  // The rest is for "any" and "striped" kernels.
  int32_t y_kind, weight_kind, layout;
  int32_t line;        // striped: warps start on multiples of this many elements of the output: a power of two, at least a word's
  int32_t threads;     // of a block that share a row
  int32_t thread_bits; // several rows a block: threads is 2^thread_bits; otherwise 10
  int32_t row_bits;    // 2^row_bits rows a block
  int32_t warp_lanes;  // the row's warps in a block, rounded up to a power of two
  int32_t scaling;     // fp8
  float *scales;
  NarrowShape narrow;
  NormNarrow how;
  PartShape parts;  // spread
  uint32_t lag;     // spread: rows between those that are summed and those that are written; 0: parts are the blocks of a cluster
} NormParams;

#endif
