// The launch rule of kernels that hold rows of any alignment in registers: kernels/chunks.cuh. Which threads share a row depends on
// its length and alignment alone.
#ifndef SOL_OPS_CHUNKS_H
#define SOL_OPS_CHUNKS_H

#include "ops/elementwise.h"

// The most chunks of a row of n elements of `in` bytes: one off its alignment has parts of one more.
static inline int64_t chunks_of(const void *x, int64_t stride, int64_t n, int in) { // stride: bytes
  return ops_ceil_div(n * in + (elementwise_aligned(x, stride, 16) ? 0 : 16 - in), 16);
}

// Threads of a row where each has up to `count` chunks: a power of two up to a warp, then whole warps.
static inline int64_t chunks_threads(int64_t chunks, int count) {
  enum { WARP = 32 };
  int64_t threads = ops_ceil_div(chunks, count), lanes = chunks > 1 ? 2 : 1;
  while (lanes < threads) lanes *= 2;
  return threads <= WARP ? lanes : ops_ceil_div(threads, WARP) * WARP;
}

// Block and grid of a launch over `rows` rows of so many threads; gives lane_bits.
static inline int32_t chunks_launch(int64_t threads, int64_t rows, OpsLaunch *l) {
  enum { WARP = 32, SHARED = 128 }; // threads of a block that several rows share
  int32_t bits = 0;
  while (1 << bits < threads) bits++;
  l->block = (uint32_t)(threads > WARP ? threads : SHARED);
  ops_grid(l->grid, (uint64_t)(threads > WARP ? rows : ops_ceil_div(rows, SHARED >> bits)), 1);
  return threads > WARP ? -1 : bits;
}

#endif
