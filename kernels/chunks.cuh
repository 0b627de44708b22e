// Rows at any address in registers, by the 16-byte chunks of their buffer: what a row's first and last chunk have of other rows is
// masked. Some lanes of a warp share a row, a power of two, or all warps of a block, which have consecutive parts of it. A lane has
// some turns, one chunk in each; lanes next to each other have chunks next to each other.
#ifndef SOL_KERNELS_CHUNKS_CUH
#define SOL_KERNELS_CHUNKS_CUH

#include "elementwise.cuh"
#include "ends.cuh"
#include "rounds.cuh"

typedef struct RowLanes {
  uint64_t row;
  int lane, lanes, warp; // warp: which part of the row it has
} RowLanes;

// 2^lane_bits lanes share a row; below 0: a block does.
INLINE RowLanes row_lanes(int lane_bits) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  bool alone = lane_bits < 0;
  RowLanes a;
  a.lanes = alone ? 32 : 1 << lane_bits;
  a.lane = threadIdx.x & (a.lanes - 1);
  a.warp = alone ? threadIdx.x / 32 : 0;
  a.row = alone ? block : block * (blockDim.x >> lane_bits) + (threadIdx.x >> lane_bits);
  return a;
}

typedef struct RowChunks {
  Extent tensor;
  const char *at;             // this lane's first chunk
  int first, chunks, lanes;   // its number, and how many the row has
  int before, bytes;          // of the row's first chunk before the row, and up to the row's end
  int column, end, turn;      // the first column of this lane's first chunk; where the warp's part ends; columns of a turn
  int begin;                  // where the warp's part begins
  bool inside;                // all chunks are within the tensor
} RowChunks;

// Prefetches the ends of its row of the output y, one of m, while the predecessor still runs: a store waits for the sector. bytes: ends_bytes.
INLINE void row_ends(RowLanes a, uint64_t m, const void *y, int64_t stride, int bytes) {
  if (bytes && a.row < m) ends_prefetch((const char *)y + (int64_t)a.row * stride, 0, bytes, 1, a.warp * a.lanes + a.lane, a.lanes);
}

// n: columns, 0 where there is no row; count: turns.
INLINE RowChunks row_chunks(RowLanes a, Extent tensor, int64_t stride, int n, int in, int count) {
  const int per = 16 / in;
  const char *row = tensor.begin + (n ? (int64_t)a.row : 0) * stride;
  int start = a.warp * a.lanes * count;
  RowChunks r;
  r.tensor = tensor, r.lanes = a.lanes, r.turn = a.lanes * per;
  r.before = (int)((uint32_t)(uintptr_t)row & 15);
  r.bytes = r.before + n * in;
  r.chunks = n ? (r.bytes + 15) / 16 : 0;
  r.first = start + a.lane;
  r.at = row - r.before + 16 * r.first;
  r.column = r.first * per - r.before / in;
  r.begin = max(start * per - r.before / in, 0);
  r.end = min(start * per - r.before / in + count * r.turn, n);
  r.inside = row - r.before >= tensor.begin && row - r.before + 16 * r.chunks <= tensor.end;
  return r;
}

// Where blocks are few, while the predecessor still runs: prefetches the lines that begin with this lane's chunks, or that its row begins in.
INLINE void chunks_hint(const RowChunks &r, int count) {
  if (!may_hint()) return;
#pragma unroll
  for (int k = 0; k < count; k++) {
    const char *at = r.at + k * r.lanes * 16;
    int chunk = r.first + k * r.lanes;
    if (chunk < r.chunks && (chunk == 0 || (uintptr_t)at % 128 == 0)) prefetch_l2(at);
  }
}

// The chunks of all turns, once they have come. Loads have predicates in place of branches, so that all are in flight together; what is
// at the tensor's ends is loaded singly.
INLINE void chunks_load(const RowChunks &r, int count, int in, Vec *v) {
#pragma unroll
  for (int k = 0; k < count; k++) {
    const char *at = r.at + k * r.lanes * 16;
    v[k].v = load_if(at, r.first + k * r.lanes < r.chunks && (r.inside || (at >= r.tensor.begin && at + 16 <= r.tensor.end)));
  }
  if (r.inside) return;
#pragma unroll
  for (int k = 0; k < count; k++) {
    const char *at = r.at + k * r.lanes * 16;
    if (r.first + k * r.lanes < r.chunks && (at < r.tensor.begin || at + 16 > r.tensor.end))
      v[k].v = load_singly(at, r.tensor.begin, r.tensor.end, in);
  }
}

// What is not the row's becomes `fill`, a word of elements.
INLINE void chunk_mask(const RowChunks &r, int k, uint32_t fill, Vec &v) {
  int left = r.bytes - 16 * (r.first + k * r.lanes);
  if (k == 0 && r.before > 16 * r.first) mask_before(v, r.before, fill);
  if (left < 16) mask_after(v, left, fill);
}

#endif
