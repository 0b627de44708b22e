// Chunks: rows start anywhere, and are moved by 16 bytes that are aligned in memory. A thread loads such chunks of x, of several rows that
// start alike, and puts their elements one by one into shared memory, which holds the columns of the tile, each one element further than a
// multiple of 16 bytes after the one before: neighbouring chunks' columns then lie in different banks, and every place is a literal away
// from the thread's first. 16 bytes of a row of y lie anywhere there, and are cut out of 32.
//
// As in an odd tile (transpose.cuh), what is stored of a row of y starts with a sector, and a few rows of x more are loaded. As a row
// starts anywhere in its first chunk, a tile has the columns of one chunk less than it loads.
#ifndef SOL_KERNELS_TRANSPOSE_CHUNKS_CUH
#define SOL_KERNELS_TRANSPOSE_CHUNKS_CUH

#include "transpose.cuh"

// Of a column in shared memory, in bytes; columns before and after the tile's take what a row's first and last chunk have beyond them.
#define CHUNKS_PITCH(size, tall) ((tall) * (size) + (size))
#define CHUNKS_BYTES(size, tall) ((TRANSPOSE_CHUNKS + 1) * (16 / (size)) * CHUNKS_PITCH(size, tall) + 32)

INLINE void chunks_in(TransposeShape s, const TransposeParams *p, TransposePlace at, int slack, int low, int high, char *tile) {
  const int per = 16 / s.size, pitch = CHUNKS_PITCH(s.size, s.tall), step = s.threads / TRANSPOSE_CHUNKS, turns = s.tall / step;
  int c = threadIdx.x % TRANSPOSE_CHUNKS, row = threadIdx.x / TRANSPOSE_CHUNKS;
  const char *from = at.x + (row - slack) * p->x_stride;
  int shift = (int)((uint32_t)(uintptr_t)from & 15), first = c * per - shift / s.size; // columns of the chunk, from here on
  from += c * 16 - shift;
  Vec v[16];
  if (first < p->n - at.j) {
    // All rows' chunks are in the tensor, unless the tile is at one of its ends.
    const char *begin = (const char *)p->x + (at.x - (const char *)p->x) - at.i * p->x_stride - at.j * s.size;
    const char *end = begin + (p->m - 1) * p->x_stride + p->n * s.size;
    if (low == 0 && high == s.tall && from >= begin && from + (s.tall - 1 - row) * p->x_stride + 16 <= end) {
#pragma unroll
      for (int k = 0; k < turns; k++) v[k].v = *(const uint4 *)(from + k * step * p->x_stride);
    } else {
#pragma unroll
      for (int k = 0; k < turns; k++) {
        const char *chunk = from + k * step * p->x_stride;
        bool there = row + k * step >= low && row + k * step < high;
        if (there && chunk >= begin && chunk + 16 <= end) v[k].v = *(const uint4 *)chunk;
        else if (there) v[k].v = load_singly(chunk, begin, end, s.size);
      }
    }
  }
  // Cells of 16 bytes that results are cut out of have a column's last element and the first of the next between them, and the column before the
  // tile's: those are written, too.
  for (int k = threadIdx.x; k < (TRANSPOSE_CHUNKS + 1) * per; k += s.threads) store_bits(tile + k * pitch + s.tall * s.size, 0, s.size);
  for (int k = 0; k < turns && c == 0 && shift == 0; k++) store_bits(tile + (per - 1) * pitch + (row + k * step) * s.size, 0, s.size);
  char *to = tile + (first + per) * pitch + row * s.size;
#pragma unroll
  for (int k = 0; k < turns; k++) {
#pragma unroll
    for (int j = 0; j < per; j++) move_one(to + j * pitch + k * step * s.size, v[k].b + j * s.size, s.size);
  }
}

INLINE void chunks_out(TransposeShape s, const TransposeParams *p, TransposePlace at, int slack, int low, int high, const char *tile) {
  const int per = 16 / s.size, pitch = CHUNKS_PITCH(s.size, s.tall), kept = (s.tall - slack) / per, lanes = kept <= 8 ? 8 : 16;
  int columns = clamp(p->n - at.j, 0, s.wide), g = threadIdx.x % lanes;
  if (g >= kept) return;
#pragma unroll 4
  for (int j = threadIdx.x / lanes; j < columns; j += s.threads / lanes) {
    char *row = at.y + j * p->y_stride;
    int first = slack + g * per - (int)((uint32_t)(uintptr_t)row & 31) / s.size; // row of the tile
    int place = (j + per) * pitch + first * s.size;
    Vec a, b;
    a.v = *(const uint4 *)(tile + (place & -16));
    b.v = *(const uint4 *)(tile + (place & -16) + 16);
    transpose_store_cut(row + (first - slack) * s.size, a, b, (uint32_t)(place & 15), first, low, high, s.size);
  }
}

INLINE void transpose_chunks(TransposeShape s, const TransposeParams *p, char *tile) {
  const int slack = TRANSPOSE_SLACK(s.size);
  TransposeShape stored = s;
  stored.tall -= slack;
  TransposePlace at;
  if (!transpose_place(stored, p, &at)) return;
  int low = clamp(slack - at.i, 0, slack), high = clamp(p->m - at.i + slack, 0, s.tall); // rows of the tile that there are
  chunks_in(s, p, at, slack, low, high, tile);
  transpose_fetch(stored, p, at);
  __syncthreads();
  chunks_out(s, p, at, slack, low, high, tile);
}

#endif
