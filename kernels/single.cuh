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

// Several elements of a thread, as many apart as a block has threads, of fewer than 2^31, all of whose loads are in flight at a time. What a warp
// accesses at a time is next to each other.
enum { SINGLE_EACH = 4, SINGLE_THREADS = 256 };
typedef struct Singles {
  uint32_t row[SINGLE_EACH], column[SINGLE_EACH];
  bool there[SINGLE_EACH];
} Singles;

INLINE Singles singles_place(const Spread &s) {
  uint32_t first = (blockIdx.y * gridDim.x + blockIdx.x) * (SINGLE_EACH * SINGLE_THREADS) + threadIdx.x;
  Singles a;
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    uint32_t i = first + k * SINGLE_THREADS;
    a.there[k] = i < (uint32_t)s.chunks;
    i = min(i,
            (uint32_t)s.chunks - 1); // what is not there is loaded as the last one: a load needs no predicate
    a.row[k] = divide32(i, s.small), a.column[k] = i - a.row[k] * s.small.by;
  }
  return a;
}

INLINE uint64_t wide_product(uint32_t a, uint32_t b) {
  return (uint64_t)a * b;
}

// Where element k is; stride: bytes, below 2^32.
INLINE const char *singles_at(const Singles &a, int k, const void *x, int64_t stride, int size) {
  return (const char *)x + wide_product(a.row[k], (uint32_t)stride) + a.column[k] * (uint32_t)size;
}

INLINE uint32_t singles_load(const char *at, int size) {
  return size == 4 ? *(const uint32_t *)at : size == 2 ? *(const uint16_t *)at : *(const uint8_t *)at;
}

INLINE void singles_store(const char *at, int size, uint32_t u) {
  if (size == 4)
    *(uint32_t *)at = u;
  else if (size == 2)
    *(uint16_t *)at = (uint16_t)u;
  else
    *(uint8_t *)at = (uint8_t)u;
}

// Prefetches the ends of rows of the output that its elements are.
INLINE void singles_ends(const Singles &a, const Spread &s, const void *y, int64_t stride, int size) {
  if (!s.ends) return;
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    const char *at = singles_at(a, k, y, stride, size);
    if (a.column[k] == 0) end_prefetch(at, false);
    if (a.column[k] == s.small.by - 1) end_prefetch(at + size, true);
  }
}

// The same of a dense y, two next to each other of which a thread stores at a time: they may be of two rows of an input that has gaps. A last one that
// is alone is left out.
typedef struct Pairs {
  Singles first;
  uint32_t at[SINGLE_EACH]; // of y
  bool wraps[SINGLE_EACH];  // the second is the next row's first
} Pairs;

INLINE Pairs pairs_place(const Spread &s) {
  uint32_t first = (blockIdx.y * gridDim.x + blockIdx.x) * (SINGLE_EACH * SINGLE_THREADS) + threadIdx.x,
           all = (uint32_t)s.chunks / 2;
  Pairs a;
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    uint32_t i = first + k * SINGLE_THREADS;
    a.first.there[k] = i < all;
    a.at[k] = i = 2 * min(i, all - 1);
    a.first.row[k] = divide32(i, s.small), a.first.column[k] = i - a.first.row[k] * s.small.by;
    a.wraps[k] = a.first.column[k] + 1 == s.small.by;
  }
  return a;
}

// Two elements of an input whose rows of n are `stride` bytes apart.
INLINE void pairs_load(const Pairs &a, int k, const void *x, int64_t stride, uint32_t n, int size,
                       uint32_t *u) {
  const char *at = singles_at(a.first, k, x, stride, size);
  u[0] = singles_load(at, size);
  u[1] = singles_load(at + (a.wraps[k] ? (uint32_t)stride - (n - 1) * size : (uint32_t)size), size);
}

// Two elements of `size` bytes, the second above the first where both are in one word.
INLINE void pairs_store(const Pairs &a, int k, void *y, int size, const uint32_t *u) {
  char *to = (char *)y + wide_product(a.at[k], size);
  if (!a.first.there[k]) return;
  if (size == 4)
    *(uint2 *)to = make_uint2(u[0], u[1]);
  else if (size == 2)
    *(uint32_t *)to = u[0];
  else
    *(uint16_t *)to = (uint16_t)u[0];
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
