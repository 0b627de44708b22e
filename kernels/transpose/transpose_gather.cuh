// Gather: rows that start anywhere, and enough of them. A block copies a tile of x to shared memory as it is, by 16-byte chunks that are
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

// Tiles of `group` rows of tiles follow each other, column after column: what two tiles next to each other read of the same lines, and what two
// below each other write of the same lines of y, is in L2 still. false: there is no such tile.
INLINE bool gather_tile(const TransposeParams *p, uint64_t tile, uint32_t *down, uint32_t *column) {
  uint64_t group, within, across, below;
  split(tile, (uint64_t)p->group * p->tiles_n, &group, &within);
  split(within, max(1u, min(p->group, p->tiles_m - (uint32_t)group * p->group)), &across, &below);
  *down = (uint32_t)(group * p->group + below), *column = (uint32_t)across;
  return tile < (uint64_t)p->tiles_m * p->tiles_n;
}

// Prefetches into L2 a tile that another block will load soon, a line a thread.
INLINE void gather_ahead(int size, int kept, const TransposeParams *p, const char *x, uint64_t tile) {
  uint32_t down, column;
  if (!p->ahead_m || !gather_tile(p, tile + p->ahead_m, &down, &column)) return;
  const int lines = (p->span * size + 127) / 128;
  for (int k = threadIdx.x; k < kept * lines; k += TRANSPOSE_GATHER_THREADS) {
    int64_t i = (int64_t)down * kept + k / lines, j = (int64_t)column * p->span + k % lines * (128 / size);
    if (i < p->m && j < p->n) prefetch_l2(x + i * p->x_stride + j * size);
  }
}

INLINE void transpose_gather(int size, int tall, const TransposeParams *p) {
  extern __shared__ __align__(16) char tile[];
  const int slack = TRANSPOSE_SLACK(size), kept = tall - slack;
  let_successor_start();
  uint64_t block = ((uint64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, batch, here;
  split(block, (uint64_t)p->tiles_m * p->tiles_n, &batch, &here);
  uint32_t down, column;
  if (!gather_tile(p, here, &down, &column) || batch >= p->batches) return;
  int64_t i = (int64_t)down * kept, j = (int64_t)column * p->span;
  const char *x = (const char *)p->x + batch * p->x_batch, *begin = x, *end = x + (p->m - 1) * p->x_stride + p->n * size;
  GatherTile t = {x + (i - slack) * p->x_stride + j * size, clamp(slack - i, 0, slack), clamp(p->m - i + slack, 0, tall),
                  (int)min((int64_t)p->span, p->n - j) * size};
  wait_for_predecessor();
  gather_in(size, p, t, begin, end, tile);
  gather_ahead(size, kept, p, x, here);
  wait_for_fetches();
  __syncthreads();
  gather_out(size, p, t, (char *)p->y + batch * p->y_batch + j * p->y_stride + i * size, kept, tile);
}

#endif
