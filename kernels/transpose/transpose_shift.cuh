// Shift: rows of x start on 16 bytes, those of y anywhere. A thread loads 16 bytes of a few rows and transposes them in registers, as in a
// wide tile (transpose.cuh). Of a row of y it stores 16 bytes where y is aligned: these lie across two groups of 16 bytes of the tile in shared
// memory, and are cut out of both. As in an odd tile, what is stored of a row of y starts with a sector, and a few rows of x more are loaded.
#ifndef SOL_KERNELS_TRANSPOSE_SHIFT_CUH
#define SOL_KERNELS_TRANSPOSE_SHIFT_CUH

#include "transpose.cuh"

// Where a column lies in the tile. 16 bytes are left free after so many as a thread has: its lanes' stores, and loads down a column, lie in different
// banks however many rows there are.
INLINE int shift_place(TransposeShape s, int column) { return column * (s.tall * s.size) + column / (16 / s.size) * 16; }

INLINE void shift_in(TransposeShape s, const TransposeParams *p, TransposePlace at, int slack, int low, int high, char *tile) {
  const int per = 16 / s.size, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int groups = s.wide / per < 16 ? s.wide / per : 16;
  const int across = s.wide / per / groups;
  int c = warp % across * groups + lane % groups, r = (warp / across * (32 / groups) + lane / groups) * s.rows;
  int64_t left = p->n - at.j - c * per;
  const char *from = at.x - slack * p->x_stride + c * 16; // in the tile's first row
  Vec v[16];
  // A row that there is not is another again: it is not stored.
  if (left >= per) {
#pragma unroll
    for (int i = 0; i < s.rows; i++) v[i].v = *(const uint4 *)(from + min(max(r + i, low), high - 1) * p->x_stride);
  } else if (left > 0) {
#pragma unroll
    for (int i = 0; i < s.rows; i++) {
      const char *row = from + min(max(r + i, low), high - 1) * p->x_stride;
      v[i].v = load_singly(row, row, row + left * s.size, s.size);
    }
  }
  transpose_columns_to(s, v, tile + shift_place(s, c * per) + r * s.size);
}

INLINE void shift_out(TransposeShape s, const TransposeParams *p, TransposePlace at, int slack, int low, int high, const char *tile) {
  const int per = 16 / s.size, groups = s.tall / per, kept = s.tall - slack;
  int columns = clamp(p->n - at.j, 0, s.wide);
#pragma unroll
  for (int k = 0; k < s.wide * groups; k += s.threads) {
    int item = k + threadIdx.x, j = item / groups, g = item % groups;
    char *row = at.y + j * p->y_stride;
    int first = slack + g * per - (int)((uint32_t)(uintptr_t)row & 31) / s.size, group = first / per; // row of the tile
    if (j >= columns || g * per >= kept) continue;
    const char *column = tile + shift_place(s, j);
    Vec a, b;
    a.v = *(const uint4 *)(column + group * 16);
    b.v = *(const uint4 *)(column + min(group + 1, groups - 1) * 16);
    transpose_store_cut(row + (first - slack) * s.size, a, b, (uint32_t)(first % per * s.size), first, low, high, s.size);
  }
}

INLINE void transpose_shift(TransposeShape s, const TransposeParams *p, char *tile) {
  const int slack = TRANSPOSE_SLACK(s.size);
  TransposeShape stored = s;
  stored.tall -= slack;
  TransposePlace at;
  if (!transpose_place(stored, p, &at)) return;
  int low = clamp(slack - at.i, 0, slack), high = clamp(p->m - at.i + slack, 0, s.tall); // rows of the tile that there are
  shift_in(s, p, at, slack, low, high, tile);
  transpose_fetch(stored, p, at);
  __syncthreads();
  shift_out(s, p, at, slack, low, high, tile);
}

#endif
