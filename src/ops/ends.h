// Which calls have rows whose ends kernels prefetch: kernels/ends.cuh.
#ifndef SOL_OPS_ENDS_H
#define SOL_OPS_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ENDS_SECTOR = 32,
  // Of longer rows two sectors are less than 3%, and what the prefetches take showed more (on an H200 log_softmax of
  // 24768 bf16 rows of 5258 bytes took 2% longer with them, layernorm of 73377 of 1422 bytes 2% less).
  ENDS_MOST = 64 * ENDS_SECTOR
};

// The bytes of a row of y where rows lie apart, `stride` bytes from each other, and begin or end within a sector;
// otherwise, and for long rows, 0. x: the input that y may be, whose loads bring the same sectors.
static inline int32_t ends_bytes(const void *y, const void *x, int64_t stride, int64_t bytes) {
  bool within = ((uint64_t)(uintptr_t)y | (uint64_t)stride | (uint64_t)bytes) % ENDS_SECTOR != 0;
  return y != NULL && y != x && stride != bytes && within && bytes <= ENDS_MOST ? (int32_t)bytes : 0;
}

#endif
