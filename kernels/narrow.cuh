// Short rows of any length at any address: a block takes some rows and has them in shared memory, 16 bytes at a time on the buffer's boundaries. Where rows are
// dense they are one long span of each tensor: a row of 35 elements starts anywhere, a span of many such rows has two ends. Other rows
// (apart, or looked up in a table) are copied one by one. Some lanes, a power of two, share a row: lane l
// has columns l, l + lanes, ..., eight at most, and holds them in registers as floats. How many lanes depends on
// the length of a row alone.
#ifndef SOL_KERNELS_NARROW_CUH
#define SOL_KERNELS_NARROW_CUH

#include "ends.cuh"
#include "fp8.cuh"
#include "funnel.cuh"
#include "narrow.h"

extern __shared__ __align__(128) char narrow_memory[];

// The rows of a block in one tensor.
typedef struct NarrowTile {
  char *at;          // in global memory
  int place, pitch;  // in shared memory, and from row to row there
  int64_t stride;    // bytes from row to row in global memory
  int rows, bytes;   // bytes: of a row
  bool apart;        // a row lies in shared memory as far beyond 16 bytes as in global memory; otherwise the span does
} NarrowTile;

// which: one of NARROW_...; size: of an element; rows: of this block.
INLINE NarrowTile narrow_tile(const NarrowShape *s, int which, const void *tensor, int64_t stride, int size, int rows) {
  NarrowTile t;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * s->rows;
  t.at = (char *)tensor + (int64_t)first * stride;
  t.stride = stride;
  t.rows = rows;
  t.bytes = s->n * size;
  t.apart = s->pitch[which] != 0;
  t.pitch = t.apart ? s->pitch[which] : t.bytes;
  t.place = s->place[which] + (t.apart ? 0 : (int)((uint32_t)(uintptr_t)t.at & 15));
  return t;
}

// A row in shared memory; from: in global memory.
INLINE char *narrow_row(const NarrowTile &t, int row, const char *from) {
  return narrow_memory + t.place + row * t.pitch + (t.apart ? (int)((uint32_t)(uintptr_t)from & 15) : 0);
}
INLINE char *narrow_row(const NarrowTile &t, int row) { return narrow_row(t, row, t.at + row * t.stride); }

// Of this block; the grid may have more blocks than are needed.
INLINE int narrow_rows(const NarrowShape *s, uint64_t m) {
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * s->rows;
  return first < m ? (int)min((uint64_t)s->rows, m - first) : 0;
}

INLINE void narrow_move(char *to, const char *from, int size) {
  if (size == 1) *to = *from;
  if (size == 2) *(uint16_t *)to = *(const uint16_t *)from;
  if (size == 4) *(uint32_t *)to = *(const uint32_t *)from;
}

// A span is elements up to the first multiple of 16 bytes, whole chunks, and elements again.
typedef struct NarrowSpan {
  int head, body; // bytes
} NarrowSpan;

INLINE NarrowSpan narrow_span(NarrowTile t) {
  NarrowSpan s;
  s.head = min((int)(-(uint32_t)(uintptr_t)t.at & 15), t.rows * t.bytes);
  s.body = (t.rows * t.bytes - s.head) & ~15;
  return s;
}

// Prefetches the ends of a block's rows of an output, while the predecessor still runs: a store waits for the sector.
INLINE void narrow_ends(const NarrowTile &t) { ends_prefetch(t.at, t.stride, t.bytes, t.rows, threadIdx.x, blockDim.x); }

// Where blocks are few, while the predecessor still runs: prefetches a block's rows of an input.
INLINE void narrow_hint(const NarrowTile &t) {
  if (!may_hint()) return;
  bool dense = t.stride == t.bytes;
  int rows = dense ? 1 : t.rows, lines = ((dense ? t.rows : 1) * t.bytes + 127) / 128;
  for (int i = threadIdx.x; i < rows * lines; i += blockDim.x) prefetch_l2(t.at + i / lines * t.stride + i % lines * 128);
}

enum { NARROW_COPIERS = 8 }; // lanes that copy a row

// Starts to copy the 16 bytes that a row has parts of, of a tensor from `begin` to `end`: what is beside the row comes with it.
INLINE void narrow_fetch_row(const NarrowTile &t, int row, const char *from, const char *begin, const char *end, int size) {
  int shift = (int)((uint32_t)(uintptr_t)from & 15);
  char *to = narrow_memory + t.place + row * t.pitch;
  for (int i = threadIdx.x % NARROW_COPIERS * 16; i < shift + t.bytes; i += 16 * NARROW_COPIERS) {
    const char *at = from - shift + i;
    if (at >= begin && at + 16 <= end) fetch16(to + i, at);
    else *(uint4 *)(to + i) = load_singly(at, begin, end, size);
  }
}

// Starts to copy a block's rows into shared memory. After narrow_arrived they are there, for all threads.
INLINE void narrow_fetch(NarrowTile t, int size) {
  if (t.apart) {
    const char *end = t.at + (t.rows - 1) * t.stride + t.bytes;
    for (int row = threadIdx.x / NARROW_COPIERS; row < t.rows; row += blockDim.x / NARROW_COPIERS)
      narrow_fetch_row(t, row, t.at + row * t.stride, t.at, end, size);
    return;
  }
  NarrowSpan s = narrow_span(t);
  char *to = narrow_memory + t.place;
  int head = threadIdx.x * size, tail = s.head + s.body + head;
#pragma unroll 4
  for (int i = threadIdx.x * 16; i < s.body; i += blockDim.x * 16) fetch16(to + s.head + i, t.at + s.head + i);
  if (head < s.head) narrow_move(to + head, t.at + head, size);
  if (tail < t.rows * t.bytes) narrow_move(to + tail, t.at + tail, size);
}

INLINE void narrow_arrived(void) {
  wait_for_fetches();
  __syncthreads();
}

INLINE void narrow_send_row(const NarrowTile &t, int row, int size) {
  char *to = t.at + row * t.stride, *end = to + t.bytes;
  int shift = (int)((uint32_t)(uintptr_t)to & 15);
  const char *from = narrow_memory + t.place + row * t.pitch;
  for (int i = threadIdx.x % NARROW_COPIERS * 16; i < shift + t.bytes; i += 16 * NARROW_COPIERS) {
    char *at = to - shift + i;
    if (at >= to && at + 16 <= end) {
      *(uint4 *)at = *(const uint4 *)(from + i);
    } else {
#pragma unroll 1
      for (int j = 0; j < 16; j += size)
        if (at + j >= to && at + j < end) narrow_move(at + j, from + i + j, size);
    }
  }
}

// Copies the rows from shared memory, after a barrier.
INLINE void narrow_send(NarrowTile t, int size) {
  if (t.apart) {
    for (int row = threadIdx.x / NARROW_COPIERS; row < t.rows; row += blockDim.x / NARROW_COPIERS) narrow_send_row(t, row, size);
    return;
  }
  NarrowSpan s = narrow_span(t);
  const char *from = narrow_memory + t.place;
  int head = threadIdx.x * size, tail = s.head + s.body + head;
#pragma unroll 4
  for (int i = threadIdx.x * 16; i < s.body; i += blockDim.x * 16)
    *(uint4 *)(t.at + s.head + i) = *(const uint4 *)(from + s.head + i);
  if (head < s.head) narrow_move(t.at + head, from + head, size);
  if (tail < t.rows * t.bytes) narrow_move(t.at + tail, from + tail, size);
}

// Which row of the block, and which columns of it, a thread has. n: 0 beyond the last row.
typedef struct NarrowPlace {
  int row, lane, lanes, n, each;
} NarrowPlace;

// Constants of a kernel's copy: how many lanes share a row, with how many columns.
typedef struct NarrowCopy {
  int lane_bits, each;
} NarrowCopy;

INLINE NarrowPlace narrow_place(const NarrowShape *s, NarrowCopy c, int first, int rows) {
  NarrowPlace a;
  a.each = c.each;
  a.lanes = 1 << c.lane_bits;
  a.lane = threadIdx.x & (a.lanes - 1);
  a.row = first + (int)(threadIdx.x >> c.lane_bits);
  a.n = a.row < rows ? s->n : 0;
  return a;
}

INLINE bool narrow_has(NarrowPlace a, int k) {
  return k < a.each && k * a.lanes < a.n - a.lane;
}

// The columns of a thread as floats; `rest` where it has none. kind: a literal.
INLINE void narrow_take(const char *row, NarrowPlace a, int kind, float rest, float *f) {
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) f[k] = narrow_has(a, k) ? load_one(row, a.lane + k * a.lanes, kind) : rest;
}

INLINE void narrow_store(char *row, int column, int kind, float f) {
  if (kind == KIND_FP8) row[column] = (char)fp8_pair(f, 0);
  else store_one(row, column, kind, f);
}

INLINE void narrow_put(char *row, NarrowPlace a, int kind, const float *f) {
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++)
    if (narrow_has(a, k)) narrow_store(row, a.lane + k * a.lanes, kind, f[k]);
}

// As `kind`, which is most often `usual`, a literal.
INLINE void narrow_give(char *row, NarrowPlace a, int usual, int kind, const float *f) {
  if (kind == usual) narrow_put(row, a, usual, f);
  else if (kind == KIND_FP32) narrow_put(row, a, KIND_FP32, f);
  else if (kind == KIND_FP16) narrow_put(row, a, KIND_FP16, f);
  else narrow_put(row, a, KIND_BF16, f);
}

// body(copy), whose constants are literals, so that addresses and comparisons are constants. most: the most lane_bits there
// are, a literal.
#define NARROW_BODY(body, bits, most, each)                                                                            \
  {                                                                                                                    \
    const NarrowCopy copy = {bits, each};                                                                              \
    if ((bits) <= (most)) body(copy);                                                                                  \
    break;                                                                                                             \
  }
#if __CUDA_ARCH__ < 800 // one is enough there
#define NARROW_COPIES(s, most, body)                                                                                   \
  do NARROW_BODY(body, (s).lane_bits, most, NARROW_EACH)                                                               \
  while (0);
#else
#define NARROW_COPIES(s, most, body)                                                                                   \
  switch (2 * (s).lane_bits + ((s).each == NARROW_EACH)) {                                                             \
  case 1: NARROW_BODY(body, 0, most, NARROW_EACH)                                                                      \
  case 2: NARROW_BODY(body, 1, most, 6)                                                                                \
  case 3: NARROW_BODY(body, 1, most, NARROW_EACH)                                                                      \
  case 4: NARROW_BODY(body, 2, most, 6)                                                                                \
  case 5: NARROW_BODY(body, 2, most, NARROW_EACH)                                                                      \
  case 6: NARROW_BODY(body, 3, most, 6)                                                                                \
  case 7: NARROW_BODY(body, 3, most, NARROW_EACH)                                                                      \
  case 8: NARROW_BODY(body, 4, most, 6)                                                                                \
  case 9: NARROW_BODY(body, 4, most, NARROW_EACH)                                                                      \
  case 10: NARROW_BODY(body, 5, most, 6)                                                                               \
  default: NARROW_BODY(body, 5, most, NARROW_EACH)                                                                     \
  }
#endif

#endif
