// Ends of output rows that lie apart. A 32-byte sector that a row begins or ends within has bytes that no thread writes, so L2 reads the rest of it from DRAM once part of it was stored to: late, and one by one.
// Prefetched when the work on a row starts, such sectors come together with the row's input. The host finds out whether a call has any: src/ops/ends.h.
#ifndef SOL_KERNELS_ENDS_CUH
#define SOL_KERNELS_ENDS_CUH

#include "common.cuh"

enum { ENDS_SECTOR = 32 }; // bytes

// edge: where a row begins, or, `after`, where it ends.
INLINE void end_prefetch(const char *edge, bool after) {
  if ((uint32_t)(uintptr_t)edge % ENDS_SECTOR) prefetch_l2(edge - after);
}

// The ends of the row that its unit number `at` of `units` has. bytes: of the row; 0: none are prefetched.
INLINE void unit_ends(const void *row, int bytes, uint64_t at, uint64_t units) {
  if (!bytes) return;
  if (at == 0) end_prefetch((const char *)row, false);
  if (at == units - 1) end_prefetch((const char *)row + bytes, true);
}

// Both ends of `rows` rows of `bytes`, from `first` on, by `threads` threads, of which this is number `thread`.
INLINE void ends_prefetch(const void *first, int64_t stride, int bytes, int rows, int thread, int threads) {
#pragma unroll 1
  for (int i = thread; i < 2 * rows; i += threads) end_prefetch((const char *)first + i / 2 * stride + (i % 2 ? bytes : 0), i % 2);
}

#endif
