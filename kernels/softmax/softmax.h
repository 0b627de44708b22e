#ifndef SOL_KERNELS_SOFTMAX_H
#define SOL_KERNELS_SOFTMAX_H
#include <stdint.h>

#include "../narrow.h"
#include "../parts.h"

enum { SOFTMAX_ROUNDS_THREADS = 128 }; // of a block whose rows are in registers, some lanes a row
enum { SOFTMAX_BESIDE_WARPS = 4, SOFTMAX_BESIDE_BYTES = 4 << 10 }; // of a block whose warps have rows side by side; of a warp's rows at most
enum { BESIDE_MOST = 16 }; // words of a lane of these
enum { SOFTMAX_DIRECT_THREADS = 128, SOFTMAX_EVEN = 16 }; // of a block whose rows are in registers by words
enum { SOFTMAX_SPREAD_THREADS = 512 }; // of a block of a row in shared memory, at most
enum { SOFTMAX_RELAY_THREADS = 128, SOFTMAX_RELAY_CHUNKS = 2048, SOFTMAX_RELAY_PARTS = 512 }; // of a block; 16-byte chunks of a part, parts of a row at most
enum { SOFTMAX_APART_THREADS = 512 }; // of a block that has one row, at most

typedef struct BesideShape {
  int32_t rows, bytes; // of a warp, bytes of shared memory
  int32_t each;        // words of a lane, at most; of direct also SOFTMAX_EVEN and 1 or 4: chunks of a thread
} BesideShape;

typedef struct SoftmaxParams {
  void *y;
  const void *x;
  uint64_t m;
  int64_t n, y_stride, x_stride; // strides in bytes
  uint64_t ahead; // the first thread of a block prefetches into L2 the rows this many further on; 0: none
  int32_t x_kind, y_kind, log;   // log: log_softmax
  int32_t wide; // the loop: chunks of y start on 16 bytes where those of x do
  // cross_entropy: y is the gradient, (softmax - (column == target)) * scale, or NULL; loss NULL: none of it, scale 1.
  float *loss;
  const void *targets;
  float scale;
  int32_t wide_ids;
  NarrowShape narrow;
  PartShape parts;
  uint32_t lag; // relay: rows between those that are summed and those that are written
  int32_t lane_bits; // rounds, beside: 2^lane_bits lanes share a row
  int32_t ends;      // bytes of y's rows where their ends are prefetched; 0: they are not
  BesideShape beside;
} SoftmaxParams;

#endif
