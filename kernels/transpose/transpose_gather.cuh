// Gather: many rows of a few hundred bytes that start anywhere. A block copies a tile of x to shared memory as it is, by 16-byte chunks that are
// aligned in memory and asynchronously, so that much is in flight; then each thread gathers 16 bytes of a row of y, element by element, and stores
// them where y is aligned. A row of x lies in shared memory as far beyond 16 bytes as in memory.
//
// As in an odd tile (transpose.cuh), what is stored of a row of y starts with a sector, and a few rows of x more are loaded. Neighbouring
// lanes gather neighbouring chunks of y, whose rows of x are a chunk's elements apart: after as many rows 16 bytes are left free, for
// other banks.
#ifndef SOL_KERNELS_TRANSPOSE_GATHER_CUH
#define SOL_KERNELS_TRANSPOSE_GATHER_CUH

#include "transpose.cuh"

typedef struct GatherTile {
  const char *x;  // of its first row, which may be before the tensor
  int low, high;  // rows that there are
  int bytes;      // of a row
} GatherTile;

INLINE int gather_row(int size, int row, int pitch) { return row * pitch + row / (16 / size) * 16; }

// begin, end: of the tensor.
INLINE void gather_in(int size, const TransposeParams *p, const GatherTile &t, const char *begin, const char *end, char *tile) {
  enum { LANES = 8 }; // that copy a row
  const int step = TRANSPOSE_GATHER_THREADS / LANES, lane = threadIdx.x % LANES;
#pragma unroll 1
  for (int row = t.low + threadIdx.x / LANES; row < t.high; row += step) {
    const char *at = t.x + row * p->x_stride, *from = at - ((uint32_t)(uintptr_t)at & 15);
    int cells = (int)(at - from) + t.bytes + 15 >> 4;
    char *to = tile + gather_row(size, row, p->pitch);
    bool inside = from >= begin && from + 16 * cells <= end;
#pragma unroll 4
    for (int k = lane; k < cells; k += LANES) {
      if (inside) fetch16(to + 16 * k, from + 16 * k);
      else *(uint4 *)(to + 16 * k) = load_singly(from + 16 * k, begin, end, size);
    }
  }
}

// The element of column `at` bytes into a row.
INLINE const char *gather_place(int size, const TransposeParams *p, const GatherTile &t, int row, int at, const char *tile) {
  uint32_t beyond = ((uint32_t)(uintptr_t)t.x + (uint32_t)row * (uint32_t)p->x_stride) & 15;
  return tile + gather_row(size, row, p->pitch) + beyond + at;
}

INLINE void gather_out(int size, const TransposeParams *p, const GatherTile &t, char *y, int kept, const char *tile) {
  const int per = 16 / size, slack = TRANSPOSE_SLACK(size), chunks = kept / per, lane = threadIdx.x % 32;
  const int turns = (t.bytes / size + 3) / 4 * (chunks / 8); // a warp's: 8 chunks of each of 4 rows of y
#pragma unroll 1
  for (int turn = threadIdx.x / 32; turn < turns; turn += TRANSPOSE_GATHER_THREADS / 32) {
    int c = turn / (chunks / 8) * 4 + lane / 8, k = turn % (chunks / 8) * 8 + lane % 8;
    char *row = y + c * p->y_stride;
    int first = slack + k * per - (int)((uint32_t)(uintptr_t)row & 31) / size; // row of the tile
    char *to = row + (first - slack) * size;
    if (c * size >= t.bytes) continue;
    if (first >= t.low && first + per <= t.high) {
      Vec v;
#pragma unroll
      for (int i = 0; i < per; i++) move_one(v.b + i * size, gather_place(size, p, t, first + i, c * size, tile), size);
      *(uint4 *)to = v.v;
    } else {
#pragma unroll 1
      for (int i = max(0, t.low - first); i < min(per, t.high - first); i++)
        move_one(to + i * size, gather_place(size, p, t, first + i, c * size, tile), size);
    }
  }
}

INLINE void transpose_gather(int size, int tall, const TransposeParams *p) {
  extern __shared__ __align__(16) char tile[];
  const int slack = TRANSPOSE_SLACK(size), kept = tall - slack;
  let_successor_start();
  uint32_t column = blockIdx.z * gridDim.y + blockIdx.y, batch = 0;
  if (p->batches > 1) batch = column / p->tiles_n, column -= batch * p->tiles_n;
  if (batch >= p->batches || column >= p->tiles_n) return;
  int64_t i = (int64_t)blockIdx.x * kept, j = (int64_t)column * p->span;
  const char *x = (const char *)p->x + batch * p->x_batch, *begin = x, *end = x + (p->m - 1) * p->x_stride + p->n * size;
  GatherTile t = {x + (i - slack) * p->x_stride + j * size, clamp(slack - i, 0, slack), clamp(p->m - i + slack, 0, tall),
                  (int)min((int64_t)p->span, p->n - j) * size};
  wait_for_predecessor();
  gather_in(size, p, t, begin, end, tile);
  wait_for_fetches();
  __syncthreads();
  gather_out(size, p, t, (char *)p->y + batch * p->y_batch + j * p->y_stride + i * size, kept, tile);
}

#endif
