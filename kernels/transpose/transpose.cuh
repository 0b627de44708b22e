// A block moves one tile of x (rows x columns) through shared memory; three ways.
//
// Wide: all rows of x and y start on 16 bytes. A thread loads a few rows of one 16-byte vector, transposes them in
// registers, and writes one short column piece per element; what a row of y gets is then read back and stored 16
// bytes at a time. Shared memory holds the tile transposed: for each column of x, its rows in groups of 16 bytes.
// Group g of column c lies in place g ^ (c / vector % 8): eight threads that write neighbouring vectors' columns, and
// eight that read neighbouring groups of one column, access eight different groups of banks. (Tiles of 64 bytes have
// four groups, and their writes a two-way bank conflict.)
//
// Odd: rows start anywhere. One element an access, coalesced. What a tile stores of a row
// of y is moved up to where a sector of 32 bytes starts, so that no sector is written by two blocks: a partly written
// sector has to be read first. For that a tile loads a few rows more than it stores. Plain: without that; where all of y
// stays in L2 for as long as it takes to write it, nothing has to be read.
//
// Direct: few rows. A thread transposes some columns of them in registers.
#ifndef SOL_KERNELS_TRANSPOSE_CUH
#define SOL_KERNELS_TRANSPOSE_CUH

#include "elementwise.cuh"
#include "funnel.cuh"
#include "transpose.h"

// Constants of a kernel, as literals: everything that depends on them folds away.
typedef struct TransposeShape {
  int size;       // bytes of an element
  int tall, wide; // rows and columns of x in a tile
  int rows;       // wide: that a thread transposes in registers; odd: elements of a thread
  int threads;
} TransposeShape;

typedef struct TransposePlace {
  const char *x; // the tile's first element
  char *y;
  int64_t i, j; // its row and column
} TransposePlace;

// 0: this block has no tile. Nothing is read or written before the kernel's predecessor has ended.
INLINE int transpose_place(TransposeShape s, const TransposeParams *p, TransposePlace *at) {
  let_successor_start();
  uint32_t column = blockIdx.z * gridDim.y + blockIdx.y, batch = 0;
  if (p->batches > 1) batch = column / p->tiles_n, column -= batch * p->tiles_n;
  at->i = (int64_t)blockIdx.x * s.tall, at->j = (int64_t)column * s.wide;
  at->x = (const char *)p->x + at->i * p->x_stride + at->j * s.size + batch * p->x_batch;
  at->y = (char *)p->y + at->j * p->y_stride + at->i * s.size + batch * p->y_batch;
  bool mine = batch < p->batches && column < p->tiles_n;
  if (mine && may_hint()) { // its lines, one a thread
    int pieces = (s.wide * s.size + 127) / 128;
    for (int k = threadIdx.x; k < s.tall * pieces; k += s.threads) {
      int64_t i = k / pieces, j = k % pieces * (128 / s.size);
      if (at->i + i < p->m && at->j + j < p->n) prefetch_l2(at->x + i * p->x_stride + j * s.size);
    }
  }
  wait_for_predecessor();
  return mine;
}

// Prefetches into L2 a tile that another block will load soon, one line of 128 bytes a thread. Loads then hit in L2, and
// more bytes are in flight from DRAM than a block's few loads would have.
INLINE void transpose_fetch(TransposeShape s, const TransposeParams *p, TransposePlace at) {
  if (!(p->ahead_m | p->ahead_n)) return;
  uint32_t down = blockIdx.x + p->ahead_m;
  int64_t j = p->ahead_n;
  if (down >= gridDim.x) down -= gridDim.x, j++;
  int pieces = (s.wide * s.size + 127) / 128;
  int64_t i = (int64_t)down * s.tall + threadIdx.x / pieces;
  j = at.j + j * s.wide + threadIdx.x % pieces * (128 / s.size);
  if ((int)threadIdx.x < s.tall * pieces && i < p->m && j < p->n)
    prefetch_l2(at.x + (i - at.i) * p->x_stride + (j - at.j) * s.size);
}

INLINE uint32_t bytes_of(uint32_t a, uint32_t b, int selector) { return __byte_perm(a, b, selector); }

// Element j of each of `rows` vectors, side by side.
INLINE Vec transpose_column(int size, int rows, const Vec *v, int j) {
  Vec out;
  if (size == 8) {
#pragma unroll
    for (int i = 0; i < rows; i++) out.u[2 * i] = v[i].u[2 * j], out.u[2 * i + 1] = v[i].u[2 * j + 1];
  }
  if (size == 4) {
#pragma unroll
    for (int i = 0; i < rows; i++) out.u[i] = v[i].u[j];
  }
  if (size == 2) {
#pragma unroll
    for (int i = 0; i < rows; i += 2)
      out.u[i / 2] = bytes_of(v[i].u[j / 2], v[i + 1].u[j / 2], j % 2 ? 0x7632 : 0x5410);
  }
  if (size == 1) {
    int pick = j % 4 | (4 + j % 4) << 4;
#pragma unroll
    for (int i = 0; i < rows; i += 4)
      out.u[i / 4] = bytes_of(bytes_of(v[i].u[j / 4], v[i + 1].u[j / 4], pick),
                              bytes_of(v[i + 2].u[j / 4], v[i + 3].u[j / 4], pick), 0x5410);
  }
  return out;
}

// The columns of a thread's rows v, 16 bytes each, to the columns of the tile, of which the first is at `to`.
INLINE void transpose_columns_to(TransposeShape s, const Vec (&v)[16], char *to) {
#pragma unroll
  for (int j = 0; j < 16 / s.size; j++) {
    Vec out = transpose_column(s.size, s.rows, v, j);
    char *there = to + j * (s.tall * s.size);
    int bytes = s.rows * s.size;
    if (bytes == 4) *(uint32_t *)there = out.u[0];
    if (bytes == 8) *(uint2 *)there = make_uint2(out.u[0], out.u[1]);
    if (bytes == 16) *(uint4 *)there = out.v;
  }
}

// Stores the 16 bytes that begin `shift` bytes into a, the tile's rows from `first` on; of those only rows from low to high.
INLINE void transpose_store_cut(char *to, Vec &a, const Vec &b, uint32_t shift, int first, int low, int high, int size) {
  uint32_t w[8] = {a.u[0], a.u[1], a.u[2], a.u[3], b.u[0], b.u[1], b.u[2], b.u[3]};
  cut_words(w, 4, shift);
  a.v = make_uint4(w[0], w[1], w[2], w[3]);
  if (first >= low && first + 16 / size <= high) {
    *(uint4 *)to = a.v;
  } else {
#pragma unroll
    for (int i = 0; i < 16 / size; i++)
      if (first + i >= low && first + i < high) move_one(to + i * size, a.b + i * size, size);
  }
}

// 16 bytes of y's row at `to`, of which the first `left` elements are inside.
INLINE void transpose_store(char *to, Vec v, int size, int64_t left) {
  if (left >= 16 / size) *(uint4 *)to = v.v;
  else {
#pragma unroll
    for (int i = 0; i < 16 / size; i++)
      if (i < left) move_one(to + i * size, v.b + i * size, size);
  }
}

// ---- Wide

// As load_if, but with the zeros set beforehand: the loads of a thread then come one after the other.
INLINE uint4 transpose_load(const void *from, int wanted) {
  uint4 v = make_uint4(0, 0, 0, 0);
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(__cvta_generic_to_global(from)), "r"(wanted)
               : "memory");
  return v;
}

INLINE void transpose_in(TransposeShape s, const TransposeParams *p, TransposePlace at, char *tile) {
  int per = 16 / s.size, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int groups = s.wide / per < 16 ? s.wide / per : 16;
  int across = s.wide / per / groups, turn = s.tall / per < 8 ? s.tall / per : 8;
  int c = warp % across * groups + lane % groups, r = (warp / across * (32 / groups) + lane / groups) * s.rows;
  int64_t rows = p->m - at.i - r, left = p->n - at.j - c * per;
  const char *from = at.x + r * p->x_stride + c * 16;
  Vec v[16];
#pragma unroll
  for (int i = 0; i < s.rows; i++) v[i].v = transpose_load(from + i * p->x_stride, i < rows && left >= per);
  transpose_fetch(s, p, at);
  if (left > 0 && left < per) {
#pragma unroll
    for (int i = 0; i < s.rows; i++) {
      const char *row = from + i * p->x_stride;
      if (i < rows) v[i].v = load_singly(row, row, row + left * s.size, s.size);
    }
  }
  char *to = tile + c * per * (s.tall * s.size) + ((r / per ^ c % turn) << 4) + r % per * s.size;
  transpose_columns_to(s, v, to);
}

INLINE void transpose_out(TransposeShape s, const TransposeParams *p, TransposePlace at, const char *tile) {
  int per = 16 / s.size, groups = s.tall / per, turn = groups < 8 ? groups : 8;
#pragma unroll
  for (int k = 0; k < s.wide * groups; k += s.threads) {
    int item = k + threadIdx.x, j = item / groups, g = item % groups;
    Vec v;
    v.v = *(const uint4 *)(tile + j * (s.tall * s.size) + ((g ^ j / per % turn) << 4));
    if (at.j + j < p->n) transpose_store(at.y + j * p->y_stride + g * 16, v, s.size, p->m - at.i - g * per);
  }
}

INLINE void transpose_wide(TransposeShape s, const TransposeParams *p, char *tile) {
  TransposePlace at;
  if (!transpose_place(s, p, &at)) return;
  transpose_in(s, p, at, tile);
  __syncthreads();
  transpose_out(s, p, at, tile);
}

// ---- Odd

INLINE uint64_t load_bits(const void *from, int size) {
  if (size == 1) return *(const uint8_t *)from;
  if (size == 2) return *(const uint16_t *)from;
  if (size == 4) return *(const uint32_t *)from;
  return *(const uint64_t *)from;
}

INLINE void store_bits(void *to, uint64_t bits, int size) {
  if (size == 1) *(uint8_t *)to = (uint8_t)bits;
  if (size == 2) *(uint16_t *)to = (uint16_t)bits;
  if (size == 4) *(uint32_t *)to = (uint32_t)bits;
  if (size == 8) *(uint64_t *)to = bits;
}

// A row of the tile in shared memory: an odd number of words, so that a column lies in different banks.
#define TRANSPOSE_PITCH(size, wide) ((wide) * (size) + ((size) == 8 ? 8 : 4))

INLINE int clamp(int64_t x, int low, int high) { return x < low ? low : x > high ? high : (int)x; }

// The tile's first row lies `slack` rows before at.i; s.tall counts them all, s.tall - slack rows are stored. A warp
// loads whole rows and stores whole columns: addresses are computed once for each.
INLINE void transpose_odd(TransposeShape s, const TransposeParams *p, int slack, char *tile) {
  int pitch = TRANSPOSE_PITCH(s.size, s.wide), kept = s.tall - slack;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = s.threads / 32, across = s.wide / 32;
  TransposeShape stored = s;
  stored.tall = kept;
  TransposePlace at;
  if (!transpose_place(stored, p, &at)) return;
  // Rows low .. high - 1 of the tile and columns 0 .. columns - 1 are inside x.
  int low = clamp(slack - at.i, 0, slack), high = clamp(p->m - at.i + slack, 0, s.tall);
  int columns = clamp(p->n - at.j, 0, s.wide);
  uint64_t v[64];
  const char *from = at.x + (warp - slack) * p->x_stride + lane * s.size;
#pragma unroll
  for (int k = 0; k < s.tall / warps; k++, from += warps * p->x_stride) {
    int r = k * warps + warp;
#pragma unroll
    for (int q = 0; q < across; q++) {
      v[k * across + q] = 0;
      if (r >= low && r < high && q * 32 + lane < columns) v[k * across + q] = load_bits(from + q * 32 * s.size, s.size);
    }
  }
  transpose_fetch(stored, p, at);
#pragma unroll
  for (int k = 0; k < s.tall / warps; k++) {
#pragma unroll
    for (int q = 0; q < across; q++)
      store_bits(tile + (k * warps + warp) * pitch + (q * 32 + lane) * s.size, v[k * across + q], s.size);
  }
  __syncthreads();
  char *row = at.y + warp * p->y_stride;
#pragma unroll 4
  for (int c = warp; c < columns; c += warps, row += warps * p->y_stride) {
    int r = slack + lane - (slack ? (int)((uint32_t)(uintptr_t)row & 31) / s.size : 0); // of the tile
    const char *have = tile + r * pitch + c * s.size;
    char *to = row + (r - slack) * s.size;
#pragma unroll
    for (int q = 0; q < kept / 32; q++)
      if (r + q * 32 >= low && r + q * 32 < high) store_bits(to + q * 32 * s.size, load_bits(have + q * 32 * pitch, s.size), s.size);
  }
}

// ---- Direct: a tile is one vector of y tall.

INLINE void transpose_direct(TransposeShape s, const TransposeParams *p) {
  int per = 16 / s.size, columns = s.size < 4 ? 4 / s.size : 1; // of a thread: one word, or one element
  TransposePlace at;
  if (!transpose_place(s, p, &at)) return;
  int64_t c = threadIdx.x * columns, left = p->n - at.j - c, rows = p->m - at.i;
  const char *from = at.x + c * s.size;
  Vec v[16];
#pragma unroll
  for (int i = 0; i < per; i++) {
    v[i].v = make_uint4(0, 0, 0, 0);
    if (i < rows && left >= columns) {
      if (s.size < 8) v[i].u[0] = *(const uint32_t *)(from + i * p->x_stride);
      else {
        uint2 two = *(const uint2 *)(from + i * p->x_stride);
        v[i].u[0] = two.x, v[i].u[1] = two.y;
      }
    }
  }
  if (left < columns) {
#pragma unroll
    for (int i = 0; i < per; i++) {
      const char *row = from + i * p->x_stride;
      if (i < rows && left > 0) v[i].v = load_singly(row, row, row + left * s.size, s.size);
    }
  }
#pragma unroll
  for (int j = 0; j < columns; j++)
    if (j < left) transpose_store(at.y + (c + j) * p->y_stride, transpose_column(s.size, per, v, j), s.size, rows);
}

#endif
