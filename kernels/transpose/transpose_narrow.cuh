// Narrow: a matrix with one short side, `thin`: one tensor is `thin` long rows, the other many short ones, y where x has few
// rows, x where it has few columns. A block takes `span` elements of every long row and what belongs to them of the other
// tensor, one contiguous range where that is dense ("packed").
//
// Both are accessed in 16-byte chunks that are aligned to memory, wherever the rows start. Shared memory holds the long
// rows, each as far from a 16-byte boundary as it is in memory: their chunks are copied as they are, and single elements
// change places between there and the chunks of the packed range. Neighbouring lanes have neighbouring chunks of that, so
// they access rows a chunk's elements apart: after as many rows 16 bytes are left free, for other banks. Short rows with gaps
// between them are accessed by single elements, neighbouring lanes on neighbouring elements of a row.
#ifndef SOL_KERNELS_TRANSPOSE_NARROW_CUH
#define SOL_KERNELS_TRANSPOSE_NARROW_CUH

#include "transpose.cuh"

// A range of memory: where it starts, its bytes, and how far the start is from a 16-byte boundary.
typedef struct NarrowRange {
  char *at;
  int bytes, off;
} NarrowRange;

INLINE NarrowRange narrow_range(const void *at, int64_t bytes) {
  NarrowRange r = {(char *)at, (int)bytes, (int)((uint32_t)(uintptr_t)at & 15)};
  return r;
}

INLINE int narrow_chunks(NarrowRange r) { // that it touches
  return (r.off + r.bytes + 15) / 16;
}

// first, end: of what may be read, the range and more.
INLINE Vec narrow_load(NarrowRange r, int chunk, const char *first, const char *end, int size) {
  const char *at = r.at - r.off + chunk * 16;
  Vec v;
  if (at >= first && at + 16 <= end) v.v = *(const uint4 *)at;
  else v.v = load_singly(at, first, end, size);
  return v;
}

// from: the 16 bytes, of which those outside the range are not read.
INLINE void narrow_store(NarrowRange r, int chunk, const char *from, int size) {
  char *at = r.at - r.off + chunk * 16, *end = r.at + r.bytes;
  if (at >= r.at && at + 16 <= end) *(uint4 *)at = *(const uint4 *)from;
  else
#pragma unroll
    for (int i = 0; i < 16; i += size)
      if (at + i >= r.at && at + i < end) move_one(at + i, from + i, size);
}

// Where long row k is in shared memory.
INLINE int narrow_row(int size, int k, int pitch) { return k * pitch + k / (16 / size) * 16; }

// The long rows' parts that are a block's. A row may be read `before` and `after` them.
typedef struct NarrowRows {
  char *at;
  int64_t stride, before, after;
  int thin, bytes;
} NarrowRows;

// Row and chunk of a thread's turn. false: there is none.
INLINE bool narrow_turn(NarrowRows rows, uint32_t turn, int *k, int *chunk, NarrowRange *row) {
  uint32_t most = rows.bytes / 16 + 2, over = ~0u / most + 1; // chunks of a row; turns are few: the quotient is exact
  *k = (int)__umulhi(turn, over), *chunk = (int)(turn - *k * most);
  *row = narrow_range(rows.at + *k * rows.stride, rows.bytes);
  return *k < rows.thin && *chunk < narrow_chunks(*row);
}

// Long rows to shared memory; several chunks of a thread are in flight.
INLINE void narrow_rows_in(int size, NarrowRows rows, char *tile, int pitch) {
  enum { BATCH = 4 };
  uint32_t all = rows.thin * (rows.bytes / 16 + 2);
  for (uint32_t first = threadIdx.x; first < all; first += BATCH * blockDim.x) {
    Vec v[BATCH];
    char *to[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int k, chunk;
      NarrowRange row;
      to[b] = nullptr;
      if (!narrow_turn(rows, first + b * blockDim.x, &k, &chunk, &row)) continue;
      to[b] = tile + narrow_row(size, k, pitch) + chunk * 16;
      v[b] = narrow_load(row, chunk, row.at - rows.before, row.at + rows.bytes + rows.after, size);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++)
      if (to[b]) *(Vec *)to[b] = v[b];
  }
}

INLINE void narrow_rows_out(int size, NarrowRows rows, const char *tile, int pitch) {
  uint32_t all = rows.thin * (rows.bytes / 16 + 2);
#pragma unroll 2
  for (uint32_t turn = threadIdx.x; turn < all; turn += blockDim.x) {
    int k, chunk;
    NarrowRange row;
    if (narrow_turn(rows, turn, &k, &chunk, &row))
      narrow_store(row, chunk, tile + narrow_row(size, k, pitch) + chunk * 16, size);
  }
}

// Elements between shared memory and the packed range: chunk after chunk, `in` to shared memory. The threads that take part
// are so many that a thread's elements belong to the same long rows in all of its chunks: their places are computed once.
INLINE void narrow_packed(int size, bool in, char *packed, NarrowRows rows, char *tile, int pitch) {
  const int per = 16 / size;
  NarrowRange range = narrow_range(packed, rows.bytes * rows.thin);
  int all = narrow_chunks(range), alike = rows.thin / min(per, rows.thin & -rows.thin);
  int start = (int)(uint32_t)(uintptr_t)rows.at, threads = (int)blockDim.x / alike * alike, step = threads * per / rows.thin * size, place[16];
  if ((int)threadIdx.x >= threads) return;
  // The first chunk's elements before the range are not accessed; `more` of the packed rows keep numbers positive.
  int more = per / rows.thin + 1, e = (int)threadIdx.x * per - range.off / size + more * rows.thin;
  int along = e / rows.thin, k = e - along * rows.thin;
#pragma unroll
  for (int i = 0; i < per; i++) {
    place[i] = narrow_row(size, k, pitch) + ((start + k * (int)rows.stride) & 15) + (along - more) * size;
    if (++k == rows.thin) k = 0, along++;
  }
  enum { BATCH = 4 }; // chunks of a thread whose loads are in flight together
  for (int chunk = threadIdx.x; in && chunk < all; chunk += BATCH * threads) {
    Vec v[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++)
      if (chunk + b * threads < all) v[b] = narrow_load(range, chunk + b * threads, range.at, range.at + range.bytes, size);
#pragma unroll
    for (int b = 0; b < BATCH; b++, tile += step) {
      int at = (chunk + b * threads) * 16 - range.off;
      bool whole = at >= 0 && at + 16 <= range.bytes;
      if (chunk + b * threads >= all) break;
#pragma unroll
      for (int i = 0; i < per; i++)
        if (whole || (at + i * size >= 0 && at + i * size < range.bytes)) move_one(tile + place[i], v[b].b + i * size, size);
    }
  }
#pragma unroll 2
  for (int chunk = threadIdx.x; !in && chunk < all; chunk += threads, tile += step) {
    int at = chunk * 16 - range.off;
    bool whole = at >= 0 && at + 16 <= range.bytes;
    Vec v;
#pragma unroll
    for (int i = 0; i < per; i++)
      if (whole || (at + i * size >= 0 && at + i * size < range.bytes)) move_one(v.b + i * size, tile + place[i], size);
    narrow_store(range, chunk, (const char *)v.b, size);
  }
}

// The same where the short rows are `apart` bytes from each other, element after element. A thread's next element is a block's
// threads further on: `down` rows and `across` elements. Several are in flight.
INLINE void narrow_loose(int size, bool in, char *first, int64_t apart, NarrowRows rows, char *tile, int pitch) {
  enum { BATCH = 4 };
  int start = (int)(uint32_t)(uintptr_t)rows.at, all = rows.bytes / size * rows.thin;
  int along = (int)threadIdx.x / rows.thin, k = (int)threadIdx.x - along * rows.thin;
  int down = (int)blockDim.x / rows.thin, across = (int)blockDim.x - down * rows.thin;
  for (int e = threadIdx.x; e < all; e += BATCH * blockDim.x) {
    uint64_t v[BATCH];
    char *to[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      char *there = tile + narrow_row(size, k, pitch) + ((start + k * (int)rows.stride) & 15) + along * size;
      char *here = first + along * apart + k * size;
      to[b] = in ? there : here;
      if (e + b * (int)blockDim.x < all) v[b] = load_bits(in ? here : there, size);
      along += down, k += across;
      if (k >= rows.thin) k -= rows.thin, along++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++)
      if (e + b * (int)blockDim.x < all) store_bits(to[b], v[b], size);
  }
}

INLINE void narrow_short(int size, bool in, char *first, int64_t apart, NarrowRows rows, char *tile, int pitch) {
  if (apart == rows.thin * size) narrow_packed(size, in, first, rows, tile, pitch);
  else narrow_loose(size, in, first, apart, rows, tile, pitch);
}

// Few columns: prefetches into L2 the short rows that a later block will load, one range.
INLINE void narrow_ahead(int size, const TransposeParams *p, const char *x) {
#if __CUDA_ARCH__ >= 900
  int64_t step = (int64_t)p->ahead_m * p->span;
  if (!p->ahead_m || threadIdx.x || ((int64_t)blockIdx.x + p->ahead_m + 1) * p->span > p->m) return;
  const char *at = x + step * p->x_stride;
  int head = (int)(-(uint32_t)(uintptr_t)at & 15); // whole 16 bytes inside it
  int64_t bytes = (p->span - 1) * p->x_stride + p->n * size - head;
  if (bytes < 16) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at + head)), "r"((uint32_t)bytes & ~15u));
#endif
}

// few_rows: x has the long rows, and y the short ones; otherwise the other way round.
INLINE void transpose_narrow(int size, bool few_rows, const TransposeParams *p) {
  extern __shared__ __align__(16) char tile[];
  let_successor_start();
  int thin = (int)(few_rows ? p->m : p->n), pitch = p->pitch;
  int64_t from = (int64_t)blockIdx.x * p->span, left = (few_rows ? p->n : p->m) - from;
  int span = (int)(left < p->span ? left : p->span);
  char *x = (char *)p->x + blockIdx.y * p->x_batch + from * (few_rows ? size : p->x_stride);
  char *y = (char *)p->y + blockIdx.y * p->y_batch + from * (few_rows ? p->y_stride : size);
  NarrowRows rows = {few_rows ? x : y, few_rows ? p->x_stride : p->y_stride, from * size, (left - span) * size, thin,
                     span * size};
  wait_for_predecessor();
  if (!few_rows) narrow_ahead(size, p, x);
  if (few_rows) narrow_rows_in(size, rows, tile, pitch);
  else narrow_short(size, true, x, p->x_stride, rows, tile, pitch);
  __syncthreads();
  if (few_rows) narrow_short(size, false, y, p->y_stride, rows, tile, pitch);
  else narrow_rows_out(size, rows, tile, pitch);
}

#endif
