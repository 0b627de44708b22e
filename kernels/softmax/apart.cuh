// Rows whose x and y differ in the size or in the alignment of their elements, in registers: by the 16-byte chunks of x's buffer
// (chunks.cuh). What a lane has for y does not start on 16 bytes there: it is put together with the end of what the lane before it
// has, so that y, too, is stored by aligned cells.
#ifndef SOL_KERNELS_SOFTMAX_APART_CUH
#define SOL_KERNELS_SOFTMAX_APART_CUH

#include "chunks.cuh"

// Results of chunks that follow each other lane by lane, `words` words each: cells of 16 bytes, or of 8 where that is all a chunk has.
// A cell has the end of the chunk before it: that of the lane before, or for the first lane the last lane's of the turn before.
typedef struct ApartCells {
  char *y;            // the row
  int begin, end;     // bytes of it that are stored
  int shift;          // a chunk starts so many bytes after a cell does
  bool shifted;       // in any lane of the warp
  int lane, lanes;    // of those that share the row: a power of two
  uint32_t before[4]; // the end of this lane's chunk of the turn before
} ApartCells;

INLINE ApartCells apart_cells(char *y, const RowChunks &r, RowLanes a, int words, int out) {
  const int size = words > 4 ? 16 : 4 * words;
  ApartCells c = {y, r.begin * out, r.end * out, (int)((uint32_t)(uintptr_t)(y + r.column * out) & (size - 1)), false, a.lane, a.lanes, {0, 0, 0, 0}};
  c.shifted = __any_sync(~0u, c.shift);
  return c;
}

INLINE void apart_store(const ApartCells &c, int at, int words, int out, const uint32_t *cell) {
  int lo = max(c.begin - at, 0), hi = min(c.end - at, 4 * words);
  if (hi - lo == 4 * words) store_aligned(c.y + at, words, cell);
  else if (lo < hi) store_part(c.y + at, lo, hi, words, out, cell);
}

// All lanes of the warp take part, whether they have a chunk or not. at: the first byte of the chunk in the row.
INLINE void apart_put(ApartCells &c, int at, int words, int out, const uint32_t *w) {
  const int of = words > 4 ? 4 : words; // words of a cell
  uint32_t all[12];
#pragma unroll
  for (int i = 0; i < words; i++) all[of + i] = w[i];
  if (c.shifted) {
    int from = (threadIdx.x & (32 - c.lanes)) | ((c.lane - 1) & (c.lanes - 1));
#pragma unroll
    for (int i = 0; i < of; i++) {
      uint32_t last = w[words - of + i];
      all[i] = __shfl_sync(~0u, c.lane == c.lanes - 1 ? c.before[i] : last, from);
      c.before[i] = last;
    }
  }
#pragma unroll
  for (int k = 0; k < words; k += of) {
    uint32_t cell[8];
#pragma unroll
    for (int i = 0; i < 2 * of; i++) cell[i] = c.shifted || i >= of ? all[k + i] : 0;
    cut_words(cell, of, (uint32_t)(4 * of - c.shift) & (4 * of - 1));
#pragma unroll
    for (int i = 0; i < of; i++) cell[i] = c.shift ? cell[i] : w[k + i];
    apart_store(c, at - c.shift + 4 * k, of, out, cell);
  }
}

// After the last turn: the end of the last lane's chunk. at: the first byte of the first lane's next chunk.
INLINE void apart_end(ApartCells &c, int at, int words, int out) {
  const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  if (c.shifted) apart_put(c, at, words, out, none);
}

#endif
