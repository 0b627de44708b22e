// A thread's piece of a row: 32 bytes of it, which start anywhere; and results that start anywhere. Lanes next to each other have pieces
// next to each other. Both are moved by aligned accesses: loads read around the piece and cut it out, stores are put together of
// what two neighbouring lanes have. Only at the ends of a row, or of a warp's part of it, are smaller parts stored.
#ifndef SOL_KERNELS_PIECES_CUH
#define SOL_KERNELS_PIECES_CUH

#include "elementwise.cuh"

typedef struct Piece {
  uint32_t w[12];
  uint32_t beyond; // it begins so many bytes after w does
} Piece;

// Loads only: nothing waits for them here. `left`: columns of the row from here on; column: which is the piece's first. What is not the
// row's is whatever is there.
INLINE void load_piece(Extent e, const char *at, int64_t left, int size, Piece *p, int column = 0) {
  const char *from = at - ((uint32_t)(uintptr_t)at & 15);
  p->beyond = (uint32_t)(uintptr_t)at & 15;
  if (left <= 0) return;
  if (p->beyond == 8 && left >= 32 / size) { // nothing needs to be cut out
#pragma unroll
    for (int i = 0; i < 8; i += 2) load_aligned(at + 4 * i, 2, 0, p->w + i);
    p->beyond = 0;
  } else if (from >= e.begin && from + (p->beyond ? 48 : 32) <= e.end) {
    load_aligned(from, 4, 0, p->w);
    load_aligned(from + 16, 4, 0, p->w + 4);
    if (p->beyond) load_aligned(from + 32, 4, 0, p->w + 8);
  } else { // at the ends of the tensor
    Raw raw;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      load_some(at - column * size, column + half * (16 / size), column + left, 16 / size, size, &raw);
#pragma unroll
      for (int i = 0; i < 4; i++) p->w[4 * half + i] = raw.w[i];
    }
    p->beyond = 0;
  }
}

// Its first 8 words are the piece then.
INLINE void cut_piece(Piece *p, int size) {
  if (!p->beyond) return;
#pragma unroll
  for (int i = 0; i < 10; i++) p->w[i] = p->beyond & 8 ? p->w[i + 2] : p->w[i];
#pragma unroll
  for (int i = 0; i < 9; i++) p->w[i] = p->beyond & 4 ? p->w[i + 1] : p->w[i];
  if (size == 4) return;
#pragma unroll
  for (int i = 0; i < 8; i++) p->w[i] = __funnelshift_r(p->w[i], p->w[i + 1], (p->beyond & 3) * 8);
}

// Stores `bytes` elements of a byte, at most 4 * words, of w at `at`; all lanes of the warp take part. follows: what comes before in the row is
// the lane before's, or, in a warp's first lane, `before`; followed: what comes after is stored by the lane after.
INLINE void give_piece(char *at, int bytes, bool follows, bool followed, int words, const uint32_t *w, const uint32_t *before) {
  const int size = 4 * words;
  int shift = (int)((uint32_t)(uintptr_t)at & (size - 1)), rest = shift + bytes - size;
  uint32_t cell[8];
#pragma unroll
  for (int i = 0; i < words; i++) {
    cell[i] = __shfl_up_sync(~0u, w[i], 1);
    if (threadIdx.x % 32 == 0 && follows) cell[i] = before[i];
    cell[words + i] = w[i];
  }
  if (shift) cut_words(cell, words, (uint32_t)(size - shift));
#pragma unroll
  for (int i = 0; i < words; i++) cell[i] = shift ? cell[i] : w[i];
  int lo = follows ? 0 : shift, hi = min(size, shift + bytes);
  if (bytes <= 0) return;
  if (lo == 0 && hi == size) store_aligned(at - shift, words, cell);
  else store_part(at - shift, lo, hi, words, 1, cell);
  if (rest <= 0 || followed) return;
#pragma unroll
  for (int i = 0; i < words; i++) cell[i] = w[i], cell[words + i] = 0;
  cut_words(cell, words, (uint32_t)(size - shift));
  store_part(at - shift + size, 0, rest, words, 1, cell);
}

// Results of pieces that follow each other, stored by aligned cells of a piece's size. Lanes next to each other have pieces next to
// each other, and the first lane's next piece comes after the last lane's. A cell has the end of the piece before it: that of the lane
// before, or for the first lane the last lane's of the turn before. So only the ends of what the lanes have together are smaller parts.
typedef struct Cells {
  char *y;            // column 0
  int begin, end;     // columns that are stored
  int shift;          // a piece starts so many bytes after a cell does
  bool shifted;       // in any lane of the warp
  int lane, lanes;    // of those that share a row: a power of two
  uint32_t before[4]; // this lane's piece of the turn before
} Cells;

// column: of the lane's first piece.
INLINE Cells cells_of(char *y, int begin, int end, int column, int lane, int lanes, int words) {
  Cells c = {y, begin, end, (int)((uint32_t)(uintptr_t)(y + column) & (4 * words - 1)), false, lane, lanes, {0, 0, 0, 0}};
  c.shifted = __any_sync(~0u, c.shift);
  return c;
}

// All lanes of the warp take part, whether they have a piece or not.
INLINE void cells_put(Cells &c, int column, int words, const uint32_t *w) {
  const int size = 4 * words;
  int at = column - c.shift, lo = max(c.begin - at, 0), hi = min(c.end - at, size);
  uint32_t cell[8];
#pragma unroll
  for (int i = 0; i < words; i++) cell[i] = w[i];
  if (c.shifted) {
    int from = (threadIdx.x & (32 - c.lanes)) | ((c.lane - 1) & (c.lanes - 1));
#pragma unroll
    for (int i = 0; i < words; i++) {
      cell[i] = __shfl_sync(~0u, c.lane == c.lanes - 1 ? c.before[i] : w[i], from);
      cell[words + i] = c.before[i] = w[i];
    }
    cut_words(cell, words, (uint32_t)(size - c.shift));
#pragma unroll
    for (int i = 0; i < words; i++) cell[i] = c.shift ? cell[i] : w[i];
  }
  if (hi - lo == size) store_aligned(c.y + at, words, cell);
  else if (lo < hi) store_part(c.y + at, lo, hi, words, 1, cell);
}

// After the last turn: the end of the last lane's piece. column: of the first lane's next piece.
INLINE void cells_end(Cells &c, int column, int words) {
  const uint32_t none[4] = {0, 0, 0, 0};
  if (c.shifted) cells_put(c, column, words, none);
}

#endif
