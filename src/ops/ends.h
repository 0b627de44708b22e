// Which calls have rows whose ends kernels prefetch: kernels/ends.cuh.
#ifndef SOL_OPS_ENDS_H
#define SOL_OPS_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The bytes of a row of y where rows lie apart, `stride` bytes from each other, and begin or end within a sector;
// otherwise 0. x: the input that y may be, whose loads bring the same sectors. Rows longer than that have none, for
// kernels add it to addresses as an int.
static inline int32_t ends_bytes(const void *y, const void *x, int64_t stride, int64_t bytes) {
  enum { SECTOR = 32 };
  bool within = ((uint64_t)(uintptr_t)y | (uint64_t)stride | (uint64_t)bytes) % SECTOR != 0;
  return y != NULL && y != x && stride != bytes && within && bytes <= INT32_MAX ? (int32_t)bytes : 0;
}

#endif
