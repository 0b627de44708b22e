// Rows of any length at any address, staged in the shared memory of a block by cells of 16 bytes: boundaries are those of the
// buffer, not of the rows. Each row lies in shared memory as far beyond 16 bytes as it does in global memory; rows that follow
// each other without a gap are one.
#ifndef SOL_KERNELS_TILE_CUH
#define SOL_KERNELS_TILE_CUH

#include "elementwise.cuh"
#include "funnel.cuh"
#include "tile.h"

typedef struct Tile {
  char *at;        // its first row in global memory
  int64_t stride;  // from row to row, in bytes
  int rows, bytes; // of a row
  int pitch;       // from row to row in shared memory; 0: there is no gap between rows
} Tile;

// What of a tensor (m, n) is this block's: from `row` and `skip`, a column, on.
typedef struct TilePart {
  uint64_t row, segment;
  int64_t skip;
  int rows, columns;
} TilePart;

INLINE TilePart tile_part(const TileShape &s, uint64_t m, int64_t n) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, strip = divide(block, s.segments);
  TilePart t;
  t.row = strip * s.rows;
  t.segment = block - strip * s.segments.by;
  t.skip = (int64_t)t.segment * s.columns;
  t.rows = t.row < m ? (int)min((uint64_t)s.rows, m - t.row) : 0;
  t.columns = (int)min((int64_t)s.columns, n - t.skip);
  return t;
}

INLINE Tile tile_of(TilePart t, const void *tensor, int64_t stride, int size, int pitch) { // stride: elements
  Tile tile = {(char *)tensor + ((int64_t)t.row * stride + t.skip) * size, stride * size, t.rows, t.columns * size, pitch};
  return tile;
}

// Where a row starts in the tile's shared memory.
INLINE int tile_place(const Tile &t, int row) {
  uint32_t at = (uint32_t)(uintptr_t)t.at;
  if (!t.pitch) return (int)(at & 15) + row * t.bytes;
  return row * t.pitch + (int)((at + (uint32_t)row * (uint32_t)t.stride) & 15);
}

// How threads share the copying: `lanes` of them a row, of which this is number `lane`; from `row` on every `step`-th row.
typedef struct TileCopy {
  int rows, bytes, row, step, lane, lanes;
} TileCopy;

INLINE TileCopy tile_copy(const Tile &t) {
  const int few = 8, many = 32; // a row has up to 7 elements before its first whole cell, and after its last
  TileCopy c;
  c.lanes = t.pitch == 0 ? blockDim.x : t.bytes >= 1024 ? many : few;
  c.lane = t.pitch == 0 ? threadIdx.x : threadIdx.x & (c.lanes - 1);
  c.row = t.pitch == 0 ? 0 : t.bytes >= 1024 ? threadIdx.x / many : threadIdx.x / few;
  c.step = t.pitch == 0 ? 1 : t.bytes >= 1024 ? blockDim.x / many : blockDim.x / few;
  c.rows = t.pitch == 0 ? 1 : t.rows;
  c.bytes = t.pitch == 0 ? t.rows * t.bytes : t.bytes;
  return c;
}

// All threads of the block start to copy; tile_arrived waits. What is beside the rows comes with them, as far as it is the tensor's.
INLINE void tile_fetch(const Tile &t, Extent e, char *memory, int size) {
  TileCopy c = tile_copy(t);
  for (int row = c.row; row < c.rows; row += c.step) {
    const char *at = t.at + row * t.stride, *from = at - ((uint32_t)(uintptr_t)at & 15);
    int cells = (int)(at - from) + c.bytes + 15 >> 4;
    char *to = memory + row * t.pitch;
    bool inside = from >= e.begin && from + 16 * cells <= e.end;
    from += 16 * c.lane, to += 16 * c.lane;
    if (inside) {
#pragma unroll 4
      for (int k = c.lane; k < cells; k += c.lanes, from += 16 * c.lanes, to += 16 * c.lanes) fetch16(to, from);
      continue;
    }
#pragma unroll 1
    for (int k = c.lane; k < cells; k += c.lanes, from += 16 * c.lanes, to += 16 * c.lanes)
      *(uint4 *)to = load_singly(from, e.begin, e.end, size);
  }
}

INLINE void tile_arrived(void) {
  wait_for_fetches();
  __syncthreads();
}

// The same way back, after a barrier: whole cells, and single elements before and after them.
INLINE void tile_send(const Tile &t, const char *memory, int size) {
  TileCopy c = tile_copy(t);
  for (int row = c.row; row < c.rows; row += c.step) {
    char *to = t.at + row * t.stride;
    int before = (int)((uint32_t)(uintptr_t)to & 15), head = min(-before & 15, c.bytes), cells = c.bytes - head >> 4;
    const char *from = memory + row * t.pitch + before;
    int i = c.lane * size, last = head + 16 * cells + i;
    if (i < head) move_one(to + i, from + i, size);
    if (last < c.bytes) move_one(to + last, from + last, size);
    to += head + 16 * c.lane, from += head + 16 * c.lane;
#pragma unroll 4
    for (int k = c.lane; k < cells; k += c.lanes, from += 16 * c.lanes, to += 16 * c.lanes) *(uint4 *)to = *(const uint4 *)from;
  }
}

#endif
