// An element a thread, of any of the types: for short rows that are apart, where all that a row has of a sector is then written by one store, and for small
// tensors, where it is the length of a thread's code that counts.
#ifndef SOL_KERNELS_SINGLE_CUH
#define SOL_KERNELS_SINGLE_CUH

#include "elementwise.cuh"

// This thread's element of a spread whose chunks are elements; false: there is none.
INLINE bool single_place(const Spread &s, int64_t *row, int64_t *column) {
  uint64_t i = thread_index(), rest;
  *row = *column = 0;
  if (i >= s.chunks) return false;
  *row = (int64_t)spread_divide(i, s, &rest), *column = (int64_t)rest;
  return true;
}

// While the predecessor still runs: prefetches the line that element `at` of x is in, by some threads of a warp, and by those that start a row.
INLINE void single_hint(const void *x, int64_t at, int64_t column, int size) {
  if (may_hint() && (threadIdx.x % 16 == 0 || column == 0)) prefetch_l2((const char *)x + at * size);
}

// An element as it is stored, and as a float. Two loads are in flight together if nothing is converted between them.
INLINE uint32_t single_load(const void *x, int64_t i, int kind) {
  return kind == KIND_FP32 ? ((const uint32_t *)x)[i] : ((const uint16_t *)x)[i];
}
INLINE float single_float(uint32_t u, int kind) {
  if (kind == KIND_FP32) return __uint_as_float(u);
  return kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)u)) : __uint_as_float(u << 16);
}

#endif
