// Chunks: rows start anywhere, and are moved by 16 bytes that are aligned in memory. A thread loads such chunks of x, of several rows that
// start alike, and puts their elements one by one into shared memory, which holds the columns of the tile; the places of a chunk's elements are
// computed once, and those of other rows are literals away. 16 bytes of a row of y lie anywhere there, and are cut out of 32.
//
// As in an odd tile (transpose.cuh), what is stored of a row of y starts with a sector: a column begins with rows before the tile's, as many as a
// sector has. As a row starts anywhere in its first chunk, a tile has the columns of one chunk less than it loads.
#ifndef SOL_KERNELS_TRANSPOSE_CHUNKS_CUH
#define SOL_KERNELS_TRANSPOSE_CHUNKS_CUH

#include "transpose.cuh"

// Where a column starts in shared memory: a word is left free after as many columns as a chunk has, so that the columns of the 16 chunks of a row lie
// in different banks. Columns before and after the tile's take what a row's first and last chunk have beyond them.
#define CHUNKS_PITCH(size, tall) (((tall) + TRANSPOSE_SLACK(size)) * (size))
#define CHUNKS_BYTES(size, tall) ((TRANSPOSE_CHUNKS + 1) * (16 / (size) * CHUNKS_PITCH(size, tall) + 4) + 32)
INLINE int chunks_column(TransposeShape s, int column) { return column * CHUNKS_PITCH(s.size, s.tall) + column / (16 / s.size) * 4; }

// A thread's rows of a tile, from its first on: they start alike, a multiple of 16 bytes of elements apart. Those of a warp's two halves are 64 bytes of a
// column apart for 2-byte elements, for other banks.
INLINE int chunks_first_row(TransposeShape s) {
  int warp = threadIdx.x / 32, half = threadIdx.x / TRANSPOSE_CHUNKS % 2;
  return s.size == 2 ? warp + half * 32 : warp * 2 + half;
}
INLINE int chunks_row(TransposeShape s, int k) { return s.size == 2 ? k % 4 * 8 + k / 4 * 64 : k * 16; }

// This thread's chunk of a row.
typedef struct ChunksPlace {
  const char *from;
  int first; // its first column of the tile
} ChunksPlace;

INLINE ChunksPlace chunks_place(TransposeShape s, const char *row) {
  int c = threadIdx.x % TRANSPOSE_CHUNKS, shift = (int)((uint32_t)(uintptr_t)row & 15);
  ChunksPlace t = {row + c * 16 - shift, c * (16 / s.size) - shift / s.size};
  return t;
}

// begin, end: of the matrix.
INLINE Vec chunks_load_one(const char *from, bool there, const char *begin, const char *end, int size) {
  Vec v;
  v.v = make_uint4(0, 0, 0, 0);
  if (there && from >= begin && from + 16 <= end) v.v = *(const uint4 *)from;
  else if (there) v.v = load_singly(from, begin, end, size);
  return v;
}

// Of a tile's rows, of which there are `rows` from this thread's first on.
INLINE void chunks_load(TransposeShape s, const TransposeParams *p, const char *from, int64_t rows, const char *begin, const char *end,
                        Vec (&v)[8]) {
  if (rows > chunks_row(s, s.rows - 1) && from >= begin && from + chunks_row(s, s.rows - 1) * p->x_stride + 16 <= end) {
#pragma unroll
    for (int k = 0; k < s.rows; k++) v[k].v = *(const uint4 *)(from + chunks_row(s, k) * p->x_stride);
  } else {
#pragma unroll
    for (int k = 0; k < s.rows; k++)
      v[k] = chunks_load_one(from + chunks_row(s, k) * p->x_stride, chunks_row(s, k) < rows, begin, end, s.size);
  }
}

// The rows before the tile.
INLINE void chunks_before(TransposeShape s, const TransposeParams *p, TransposePlace at, const char *begin, const char *end, char *tile) {
  const int per = 16 / s.size, slack = TRANSPOSE_SLACK(s.size);
#pragma unroll 1
  for (int r = threadIdx.x / TRANSPOSE_CHUNKS; r < slack; r += s.threads / TRANSPOSE_CHUNKS) {
    ChunksPlace t = chunks_place(s, at.x + (r - slack) * p->x_stride);
    Vec v = chunks_load_one(t.from, at.i + r >= slack && t.first < p->n - at.j, begin, end, s.size);
#pragma unroll
    for (int j = 0; j < per; j++) move_one(tile + chunks_column(s, t.first + per + j) + r * s.size, v.b + j * s.size, s.size);
  }
  // Cells of 16 bytes that results are cut out of may have a free word: those are written, too.
  if (threadIdx.x <= TRANSPOSE_CHUNKS) *(uint32_t *)(tile + chunks_column(s, (threadIdx.x + 1) * per) - 4) = 0;
}

// y: where the tile starts in it; rows low to high - 1 of a column in shared memory are there.
INLINE void chunks_out(TransposeShape s, const TransposeParams *p, char *y, int columns, int low, int high, const char *tile) {
  const int per = 16 / s.size, lanes = s.tall / per, slack = TRANSPOSE_SLACK(s.size);
  int g = threadIdx.x % lanes;
#pragma unroll 4
  for (int j = threadIdx.x / lanes; j < columns; j += s.threads / lanes) {
    char *row = y + j * p->y_stride;
    int first = slack + g * per - (int)((uint32_t)(uintptr_t)row & 31) / s.size; // row of the column
    int place = chunks_column(s, j + per) + first * s.size;
    Vec a, b;
    a.v = *(const uint4 *)(tile + (place & -16));
    b.v = *(const uint4 *)(tile + (place & -16) + 16);
    transpose_store_cut(row + (first - slack) * s.size, a, b, (uint32_t)(place & 15), first, low, high, s.size);
  }
}

INLINE void transpose_chunks(TransposeShape s, const TransposeParams *p, char *tile) {
  const int per = 16 / s.size, slack = TRANSPOSE_SLACK(s.size);
  TransposePlace at;
  if (!transpose_place(s, p, &at)) return;
  // The matrix.
  const char *begin = at.x - at.i * p->x_stride - at.j * s.size, *end = begin + (p->m - 1) * p->x_stride + p->n * s.size;
  const int row = chunks_first_row(s), columns = clamp(p->n - at.j, 0, s.wide);
  ChunksPlace t = chunks_place(s, at.x + row * p->x_stride);
  Vec v[8];
  chunks_load(s, p, t.from, t.first < columns ? p->m - at.i - row : 0, begin, end, v);
  transpose_fetch(s, p, at);
  chunks_before(s, p, at, begin, end, tile);
  char *to[16];
#pragma unroll
  for (int j = 0; j < per; j++) to[j] = tile + chunks_column(s, t.first + per + j) + (slack + row) * s.size;
#pragma unroll
  for (int k = 0; k < s.rows; k++) {
#pragma unroll
    for (int j = 0; j < per; j++) move_one(to[j] + chunks_row(s, k) * s.size, v[k].b + j * s.size, s.size);
  }
  __syncthreads();
  chunks_out(s, p, at.y, columns, at.i ? 0 : slack, clamp(p->m - at.i + slack, 0, s.tall + slack), tile);
}

#endif
