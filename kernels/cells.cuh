// Rows that start anywhere, in and out, by the aligned cells of 16 bytes of y. A cell of a row is read as the one or two aligned 16 bytes of x that
// have it, and shifted. The cell in which one dense row ends and the next begins is put together by the lane that has the row's end, and is
// stored once; where the other part is another warp's, and where rows lie apart, elements of it are stored.
#ifndef SOL_KERNELS_CELLS_CUH
#define SOL_KERNELS_CELLS_CUH

#include "cells.h"
#include "funnel.cuh"

typedef struct Cell {
  int row, column;   // row: within the group. column: of the cell's first element, negative where that is before the row
  int begin, end;    // elements of the cell that are of the row; none: end <= begin
  int partner;       // the lane that has the rest of the cell; this one: nobody
  bool whole, part;  // it is stored at once; its elements are
  uint32_t mask[4];  // bits that are of the row
} Cell;

// The lowest `bits` bits; none below 0, all from 32 on.
INLINE uint32_t low_bits(int bits) { return __funnelshift_lc(~0u, 0, max(bits, 0)); }

// phase: elements by which the group's first row is beyond 16 bytes; stride: from row to row, in elements. joined: cells of two rows are put together.
INLINE Cell cell_at(const CellShape &s, int position, int phase, int stride, int size, bool joined) {
  const int per = 16 / size, lane = threadIdx.x % 32;
  Cell c;
  c.row = (int)__umulhi((uint32_t)position, s.over);
  int beyond = (phase + c.row * stride) & (per - 1), before = (beyond - stride) & (per - 1);
  c.column = (position - c.row * s.cells) * per - beyond;
  c.begin = max(0, -c.column), c.end = min(per, s.n - c.column);
  bool there = position < s.positions && c.end > c.begin, full = c.end - c.begin == per;
  if (!there) c.begin = per, c.end = 0; // all masks are 0
  int next = lane + (c.row + 1) * s.cells - position, last = lane + (c.row - 1) * s.cells + (before + s.n - 1) / per - position;
  bool takes = joined && there && c.end < per && next < 32 && c.row + 1 < s.period, given = joined && c.begin > 0 && last >= 0 && c.row > 0;
  c.partner = takes ? next : lane;
  c.whole = there && (full || takes), c.part = there && !full && !takes && !given;
#pragma unroll
  for (int q = 0; q < 4; q++) c.mask[q] = low_bits(8 * size * c.end - 32 * q) & ~low_bits(8 * size * c.begin - 32 * q);
  if (!there) c.row = 0, c.column = 0; // nothing is read or stored, of a row that there is
  return c;
}

// A predicated load of the 16 bytes so many beyond `from`, or zeros.
template <int beyond> INLINE uint4 cell_load16(const char *from, bool wanted) {
  uint4 v;
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n mov.u32 %0, 0;\n mov.u32 %1, 0;\n mov.u32 %2, 0;\n mov.u32 %3, 0;\n"
               " @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4 + %6];\n}"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(from)), "r"((int)wanted), "n"(beyond));
  return v;
}

typedef struct CellRaw {
  uint4 low, high;
  uint32_t beyond; // it begins so many bytes after `low` does
} CellRaw;

// at: of the cell's first element. Nothing is read but 16 bytes that the row has a part of.
INLINE void cell_load(const Cell &c, const char *at, int size, CellRaw *raw) {
  int first = c.begin * size, last = c.end * size, beyond = (int)((uint32_t)(uintptr_t)at & 15);
  const char *from = at - beyond;
  raw->beyond = (uint32_t)beyond;
  raw->low = cell_load16<0>(from, beyond < 16 - first);
  raw->high = cell_load16<16>(from, beyond > 16 - last);
}

// Where such 16 bytes are not all of the table: seldom, so that it is a loop.
INLINE void cell_load_singly(const Cell &c, const char *at, int size, CellRaw *raw) {
  uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll 1
  for (int i = 16 / size - 1; i >= 0; i--) {
    uint32_t u = 0;
    if (i >= c.begin && i < c.end) u = size == 2 ? ((const uint16_t *)at)[i] : ((const uint32_t *)at)[i];
#pragma unroll
    for (int q = 3; q > 0; q--) w[q] = size == 2 ? __funnelshift_l(w[q - 1], w[q], 16) : w[q - 1];
    w[0] = size == 2 ? w[0] << 16 | u : u;
  }
  raw->low = make_uint4(w[0], w[1], w[2], w[3]), raw->high = make_uint4(0, 0, 0, 0);
  raw->beyond = 0;
}

INLINE void cell_cut(const CellRaw &raw, int size, uint32_t *u) {
  uint4 v = funnel(raw.low, raw.high, raw.beyond, size);
  u[0] = v.x, u[1] = v.y, u[2] = v.z, u[3] = v.w;
}

INLINE void cell_store(char *to, const uint32_t *w, int stream) {
  uint4 v = make_uint4(w[0], w[1], w[2], w[3]);
  if (stream) __stcs((uint4 *)to, v);
  else *(uint4 *)to = v;
}

// The elements of a cell that has a part of the row.
INLINE void cell_store_part(const Cell &c, int size, char *to, const uint32_t *w) {
#pragma unroll
  for (int q = 0; q < 4; q++) {
    uint32_t mask = c.mask[q];
    asm volatile("" : "+r"(mask)); // compared here, where it is seldom done, not once for all groups
    if (mask == ~0u) ((uint32_t *)to)[q] = w[q];
    else if (size == 2 && mask & 0xffff) ((uint16_t *)to)[2 * q] = (uint16_t)w[q];
    else if (size == 2 && mask) ((uint16_t *)to)[2 * q + 1] = (uint16_t)(w[q] >> 16);
  }
}

// All lanes of a warp call it. to: of the cell's first element.
INLINE void cell_give(const Cell &c, int size, char *to, bool there, bool joined, bool parts, uint32_t *w, int stream) {
  if (parts && c.part && there) cell_store_part(c, size, to, w);
  if (joined) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
      uint32_t other = __shfl_sync(~0u, w[q], c.partner);
      w[q] = (w[q] & c.mask[q]) | (other & ~c.mask[q]);
    }
  }
  if (c.whole && there) cell_store(to, w, stream);
}

// ---- Where a block's rows come from

extern __shared__ __align__(1024) char cell_memory[];

__device__ uint4 cell_zeros[CELL_ZEROS / 16]; // what a bad id stands for

// The ids of a tile's rows, up to two a thread, as the words that they are: ids of the next tile are loaded while this one is moved, and nothing may
// wait for them until then.
typedef struct CellIds {
  uint32_t low[CELL_IDS], high[CELL_IDS];
} CellIds;

INLINE CellIds cell_ids(const CellShape &s, uint64_t tile) {
  uint64_t first = tile * s.rows;
  CellIds id;
#pragma unroll
  for (int k = 0; k < CELL_IDS; k++) {
    int i = threadIdx.x + k * blockDim.x;
    bool there = i < s.rows && first + i < (uint64_t)s.m;
    const uint32_t *at = (const uint32_t *)s.ids + (first + i) * (s.wide_ids ? 2 : 1);
    id.low[k] = id.high[k] = 0;
    if (there) id.low[k] = at[0];
    if (there && s.wide_ids) id.high[k] = at[1];
  }
  return id;
}

// Where a tile's rows come from, in shared memory.
INLINE void cell_from(const CellShape &s, uint64_t tile, const CellIds &ids, const char **from) {
  uint64_t first = tile * s.rows;
#pragma unroll
  for (int k = 0; k < CELL_IDS; k++) {
    int i = threadIdx.x + k * blockDim.x;
    int64_t id = s.wide_ids ? (int64_t)((uint64_t)ids.high[k] << 32 | ids.low[k]) : (int32_t)ids.low[k];
    bool known = (uint64_t)id < (uint64_t)s.count, there = i < s.rows && first + i < (uint64_t)s.m;
    if (i < CELL_GROUPS * s.period) from[i] = known && there ? s.begin + id * s.stride : (const char *)cell_zeros;
    if (s.bad && there && !known) *s.bad = 1;
  }
}

// A cell of the row at x.
INLINE void cell_read(const CellShape &s, const Cell &c, const char *x, int size, CellRaw *raw) {
  const char *at = x + c.column * size, *first = at - ((uintptr_t)at & 15);
  if (s.edges && (first < s.begin || first + 32 > s.end) && x != (const char *)cell_zeros) cell_load_singly(c, at, size, raw);
  else cell_load(c, at, size, raw);
}

// All cells of a position, one of each group.
INLINE void cell_take(const CellShape &s, const Cell &c, const char *const *from, int size, uint32_t u[CELL_GROUPS][4]) {
  CellRaw raw[CELL_GROUPS];
#pragma unroll
  for (int g = 0; g < CELL_GROUPS; g++) cell_read(s, c, from[c.row + g * s.period], size, &raw[g]);
#pragma unroll
  for (int g = 0; g < CELL_GROUPS; g++) cell_cut(raw[g], size, u[g]);
}

#endif
