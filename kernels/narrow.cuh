// Short rows of any length at any address: a block takes some rows that follow each other. Where rows are dense these are
// one long span of each tensor, copied to and from shared memory 16 bytes at a time, whatever the length of a row: a row
// of 35 elements starts anywhere, a span of many such rows has two ends. Some lanes, a power of two, share a row: lane l
// has columns l, l + lanes, ..., eight at most, and holds them in registers as floats. How many lanes depends on
// the length of a row alone. Rows that are not dense are accessed element by element in global memory.
#ifndef SOL_KERNELS_NARROW_CUH
#define SOL_KERNELS_NARROW_CUH

#include "fp8.cuh"
#include "narrow.h"

extern __shared__ __align__(128) char narrow_memory[];

// The rows of a block in one tensor.
typedef struct NarrowTile {
  char *at;         // in global memory
  int place;        // in shared memory, at the same address modulo 16; below 0: rows are not dense
  int64_t stride;   // bytes from row to row in global memory
  int pitch, bytes; // from row to row in shared memory; of the span
} NarrowTile;

// which: one of NARROW_...; size: of an element; rows: of this block.
INLINE NarrowTile narrow_tile(const NarrowShape *s, int which, const void *tensor, int64_t stride, int size, int rows) {
  NarrowTile t;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * s->rows;
  t.at = (char *)tensor + (int64_t)first * stride;
  t.place = s->place[which] < 0 ? -1 : s->place[which] + (int)((uint32_t)(uintptr_t)t.at & 15);
  t.stride = stride;
  t.pitch = s->n * size;
  t.bytes = rows * t.pitch;
  return t;
}

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
  s.head = min((int)(-(uint32_t)(uintptr_t)t.at & 15), t.bytes);
  s.body = (t.bytes - s.head) & ~15;
  return s;
}

// Starts to copy a span into shared memory. After narrow_arrived it is there, for all threads.
INLINE void narrow_fetch(NarrowTile t, int size) {
  if (t.place < 0) return;
  NarrowSpan s = narrow_span(t);
  char *to = narrow_memory + t.place;
  int head = threadIdx.x * size, tail = s.head + s.body + head;
#pragma unroll 4
  for (int i = threadIdx.x * 16; i < s.body; i += blockDim.x * 16) fetch16(to + s.head + i, t.at + s.head + i);
  if (head < s.head) narrow_move(to + head, t.at + head, size);
  if (tail < t.bytes) narrow_move(to + tail, t.at + tail, size);
}

INLINE void narrow_arrived(void) {
  wait_for_fetches();
  __syncthreads();
}

// Copies a span from shared memory, after a barrier.
INLINE void narrow_send(NarrowTile t, int size) {
  if (t.place < 0) return;
  NarrowSpan s = narrow_span(t);
  const char *from = narrow_memory + t.place;
  int head = threadIdx.x * size, tail = s.head + s.body + head;
#pragma unroll 4
  for (int i = threadIdx.x * 16; i < s.body; i += blockDim.x * 16)
    *(uint4 *)(t.at + s.head + i) = *(const uint4 *)(from + s.head + i);
  if (head < s.head) narrow_move(t.at + head, from + head, size);
  if (tail < t.bytes) narrow_move(t.at + tail, from + tail, size);
}

// Which row of the block, and which columns of it, a thread has. n: 0 beyond the last row.
typedef struct NarrowPlace {
  int row, lane, lanes, n, each;
  bool held; // all tensors are in shared memory
} NarrowPlace;

// Constants of a kernel's copy: how many lanes share a row, with how many columns, and whether all tensors are in shared
// memory and of one type.
typedef struct NarrowCopy {
  int lane_bits, each;
  bool plain;
} NarrowCopy;

INLINE NarrowPlace narrow_place(const NarrowShape *s, NarrowCopy c, int first, int rows) {
  NarrowPlace a;
  a.held = c.plain;
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
INLINE void narrow_take(NarrowTile t, NarrowPlace a, int kind, float rest, float *f) {
  const char *held = narrow_memory + t.place + a.row * t.pitch, *far = t.at + a.row * t.stride;
  if (a.held || t.place >= 0) {
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++) f[k] = narrow_has(a, k) ? load_one(held, a.lane + k * a.lanes, kind) : rest;
  } else {
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++) f[k] = narrow_has(a, k) ? load_one(far, a.lane + k * a.lanes, kind) : rest;
  }
}

// The same of a tensor in shared memory, up to `most` columns of a thread, a multiple of 4; 0 where it has none. The kind is known
// at run time: one branch for all.
INLINE void narrow_take_alike(NarrowTile t, NarrowPlace a, int most, int kind, float *f) {
  const char *held = narrow_memory + t.place + a.row * t.pitch;
  uint32_t h[NARROW_MOST];
#pragma unroll
  for (int k = 0; k < most; k++) {
    if (k >= 4 && k / 4 * 4 >= a.each) h[k] = 0; // the same for all threads: four are skipped at once
    else if (kind == KIND_FP32) h[k] = narrow_has(a, k) ? ((const uint32_t *)held)[a.lane + k * a.lanes] : 0;
    else h[k] = narrow_has(a, k) ? ((const uint16_t *)held)[a.lane + k * a.lanes] : 0;
  }
  if (kind == KIND_FP16) {
#pragma unroll
    for (int k = 0; k < most; k++) f[k] = __half2float(__ushort_as_half((uint16_t)h[k]));
  } else {
#pragma unroll
    for (int k = 0; k < most; k++) f[k] = __uint_as_float(kind == KIND_FP32 ? h[k] : h[k] << 16);
  }
}

INLINE float narrow_one_of(NarrowTile t, NarrowPlace a, int column, int kind) {
  if (a.held || t.place >= 0) return load_one(narrow_memory + t.place + a.row * t.pitch, column, kind);
  return load_one(t.at + a.row * t.stride, column, kind);
}

// The same of a vector (weights, biases), or `none` where there is none.
INLINE void narrow_vector(const void *v, NarrowPlace a, int kind, float none, float *f) {
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) f[k] = v && narrow_has(a, k) ? load_one(v, a.lane + k * a.lanes, kind) : none;
}

INLINE void narrow_store(char *row, int column, int kind, float f) {
  if (kind == KIND_FP8) row[column] = (char)fp8_pair(f, 0);
  else store_one(row, column, kind, f);
}

INLINE void narrow_give(NarrowTile t, NarrowPlace a, int kind, const float *f) {
  char *held = narrow_memory + t.place + a.row * t.pitch, *far = t.at + a.row * t.stride;
  if (a.held || t.place >= 0) {
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++)
      if (narrow_has(a, k)) narrow_store(held, a.lane + k * a.lanes, kind, f[k]);
  } else {
#pragma unroll
    for (int k = 0; k < NARROW_EACH; k++)
      if (narrow_has(a, k)) narrow_store(far, a.lane + k * a.lanes, kind, f[k]);
  }
}

// The same of bytes, four to a word, into shared memory.
INLINE void narrow_give_bytes(NarrowTile t, NarrowPlace a, int most, const uint32_t *w) {
  char *to = narrow_memory + t.place + a.row * t.pitch + a.lane;
#pragma unroll
  for (int k = 0; k < most; k += 4) {
    if (k >= a.each) break;
#pragma unroll
    for (int j = k; j < k + 4; j++)
      if (narrow_has(a, j)) to[j * a.lanes] = (char)(w[k / 4] >> j % 4 * 8);
  }
}

// body(copy): one whose constants are literals for what is plain, so that addresses and comparisons are constants; and one
// for all the rest. most: the most lane_bits there are, a literal.
#define NARROW_BODY(body, bits, most, each, plain)                                                                     \
  {                                                                                                                    \
    const NarrowCopy copy = {bits, each, plain};                                                                       \
    if ((bits) <= (most)) body(copy);                                                                                  \
    break;                                                                                                             \
  }
#if __CUDA_ARCH__ < 800 // one is enough there
#define NARROW_COPIES(s, plain, most, body)                                                                            \
  do NARROW_BODY(body, (s).lane_bits, most, NARROW_EACH, false)                                                        \
  while (0);
#else
#define NARROW_COPIES(s, plain, most, body)                                                                            \
  switch ((plain) ? 2 * (s).lane_bits + ((s).each == NARROW_EACH) : -1) {                                              \
  case 1: NARROW_BODY(body, 0, most, NARROW_EACH, true)                                                                \
  case 2: NARROW_BODY(body, 1, most, 6, true)                                                                          \
  case 3: NARROW_BODY(body, 1, most, NARROW_EACH, true)                                                                \
  case 4: NARROW_BODY(body, 2, most, 6, true)                                                                          \
  case 5: NARROW_BODY(body, 2, most, NARROW_EACH, true)                                                                \
  case 6: NARROW_BODY(body, 3, most, 6, true)                                                                          \
  case 7: NARROW_BODY(body, 3, most, NARROW_EACH, true)                                                                \
  case 8: NARROW_BODY(body, 4, most, 6, true)                                                                          \
  case 9: NARROW_BODY(body, 4, most, NARROW_EACH, true)                                                                \
  case 10: NARROW_BODY(body, 5, most, 6, true)                                                                         \
  case 11: NARROW_BODY(body, 5, most, NARROW_EACH, true)                                                               \
  default: NARROW_BODY(body, (s).lane_bits, most, NARROW_EACH, false)                                                  \
  }
#endif

#endif
