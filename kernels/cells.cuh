// Rows that start anywhere, in and out, by the aligned cells of 16 bytes of y. A cell of a row is read as the one or two aligned 16 bytes of x that
// have it, and shifted. The cell in which one dense row ends and the next begins is put together by the lane that has the row's end, and is
// stored once; where the other part is another warp's, and where rows lie apart, elements of it are stored.
#ifndef SOL_KERNELS_CELLS_CUH
#define SOL_KERNELS_CELLS_CUH

#include "cells.h"
#include "funnel.cuh"

// Constants of a kernel, as literals: bytes of an element of x and of y. A cell has as many elements as are 16 bytes of the wider.
typedef struct CellKind {
  int in, out;
} CellKind;
INLINE int cell_per(CellKind k) { return 16 / max(k.in, k.out); }

typedef struct Cell {
  int row, column;   // row: within the group. column: of the cell's first element, negative where that is before the row
  int begin, end;    // elements of the cell that are of the row; none: end <= begin
  int partner;       // the lane that has the rest of the cell; this one: nobody
  bool whole, part;  // it is stored at once; its elements are
  uint32_t mask[4];  // bits of y's words that are of the row
} Cell;

// The lowest `bits` bits; none below 0, all from 32 on.
INLINE uint32_t low_bits(int bits) { return __funnelshift_lc(~0u, 0, max(bits, 0)); }

// The bits of a word of a cell that are of the row. size: bytes of an element.
INLINE uint32_t cell_mask(const Cell &c, int size, int word) { return low_bits(8 * size * c.end - 32 * word) & ~low_bits(8 * size * c.begin - 32 * word); }

// phase: elements by which the group's first row is beyond a cell's start; stride: from row to row, in elements. joined: cells of two rows are put together.
INLINE Cell cell_at(const CellShape &s, int position, int phase, int stride, CellKind k, bool joined) {
  const int per = cell_per(k), lane = threadIdx.x % 32;
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
  for (int q = 0; q < per * k.out / 4; q++) c.mask[q] = cell_mask(c, k.out, q);
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

template <int beyond> INLINE uint4 cell_load8(const char *from, bool wanted) {
  uint4 v = make_uint4(0, 0, 0, 0);
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %3, 0;\n mov.u32 %0, 0;\n mov.u32 %1, 0;\n @p ld.global.v2.u32 {%0, %1}, [%2 + %4];\n}"
               : "=r"(v.x), "=r"(v.y)
               : "l"(__cvta_generic_to_global(from)), "r"((int)wanted), "n"(beyond));
  return v;
}

// A cell of x is 16 bytes of it, or 8 where y's elements are wider.
typedef struct CellRaw {
  uint4 low, high; // aligned 16 bytes, or 8
  uint32_t beyond; // it begins so many bytes after `low` does
} CellRaw;

// at: of the cell's first element. Nothing is read but aligned bytes that the row has a part of.
INLINE void cell_load(const Cell &c, const char *at, CellKind k, CellRaw *raw) {
  const int bytes = cell_per(k) * k.in;
  int first = c.begin * k.in, last = c.end * k.in, beyond = (int)((uint32_t)(uintptr_t)at & (bytes - 1));
  const char *from = at - beyond;
  bool low = beyond < bytes - first, high = beyond > bytes - last;
  raw->beyond = (uint32_t)beyond;
  raw->low = bytes == 16 ? cell_load16<0>(from, low) : cell_load8<0>(from, low);
  raw->high = bytes == 16 ? cell_load16<16>(from, high) : cell_load8<8>(from, high);
}

// Where such 16 bytes are not all of the table: seldom, so that it is a loop.
INLINE void cell_load_singly(const Cell &c, const char *at, CellKind k, CellRaw *raw) {
  uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll 1
  for (int i = cell_per(k) - 1; i >= 0; i--) {
    uint32_t u = 0;
    if (i >= c.begin && i < c.end) u = k.in == 2 ? ((const uint16_t *)at)[i] : ((const uint32_t *)at)[i];
#pragma unroll
    for (int q = 3; q > 0; q--) w[q] = k.in == 2 ? __funnelshift_l(w[q - 1], w[q], 16) : w[q - 1];
    w[0] = k.in == 2 ? w[0] << 16 | u : u;
  }
  raw->low = make_uint4(w[0], w[1], w[2], w[3]), raw->high = make_uint4(0, 0, 0, 0);
  raw->beyond = 0;
}

// Words as they are in memory: four of them, or two.
INLINE void cell_cut(const CellRaw &raw, CellKind k, uint32_t *u) {
  if (cell_per(k) * k.in == 16) {
    uint4 v = funnel(raw.low, raw.high, raw.beyond, k.in);
    u[0] = v.x, u[1] = v.y, u[2] = v.z, u[3] = v.w;
  } else {
    bool odd = raw.beyond & 4;
    uint32_t a = odd ? raw.low.y : raw.low.x, b = odd ? raw.high.x : raw.low.y, c = odd ? raw.high.y : raw.high.x, bits = raw.beyond * 8 & 16;
    u[0] = __funnelshift_r(a, b, bits), u[1] = __funnelshift_r(b, c, bits);
  }
}

template <typename V> INLINE void cell_put(char *to, V v, int stream) {
  if (stream) __stcs((V *)to, v);
  else *(V *)to = v;
}
INLINE void cell_store(char *to, const uint32_t *w, int words, int stream) {
  if (words == 4) cell_put(to, make_uint4(w[0], w[1], w[2], w[3]), stream);
  else cell_put(to, make_uint2(w[0], w[1]), stream);
}

// The elements of a cell that has a part of the row.
INLINE void cell_store_part(const uint32_t *masks, int size, int words, char *to, const uint32_t *w) {
#pragma unroll
  for (int q = 0; q < words; q++) {
    uint32_t mask = masks[q];
    asm volatile("" : "+r"(mask)); // compared here, where it is seldom done, not once for all groups
    if (mask == ~0u) ((uint32_t *)to)[q] = w[q];
    else if (size == 2 && mask & 0xffff) ((uint16_t *)to)[2 * q] = (uint16_t)w[q];
    else if (size == 2 && mask) ((uint16_t *)to)[2 * q + 1] = (uint16_t)(w[q] >> 16);
  }
}

// All lanes of a warp call it. to: of the cell's first element, of `size` bytes; mask: of a cell's words there.
INLINE void cell_give(const Cell &c, const uint32_t *mask, int size, int words, char *to, bool there, bool joined, bool parts, uint32_t *w, int stream) {
  if (parts && c.part && there) cell_store_part(mask, size, words, to, w);
  if (joined) {
#pragma unroll
    for (int q = 0; q < words; q++) {
      uint32_t other = __shfl_sync(~0u, w[q], c.partner);
      w[q] = (w[q] & mask[q]) | (other & ~mask[q]);
    }
  }
  if (c.whole && there) cell_store(to, w, words, stream);
}

// ---- Where a block's rows come from

extern __shared__ __align__(1024) char cell_memory[];

__device__ uint4 cell_zeros[CELL_ZEROS / 16]; // what a bad id stands for

// The ids of a tile's rows, up to two a thread, and where they come from in shared memory: ids of the next tile are loaded while this one is moved.
INLINE void cell_ids(const CellShape &s, uint64_t tile, int64_t id[CELL_IDS]) {
  uint64_t first = tile * s.rows;
#pragma unroll
  for (int k = 0; k < CELL_IDS; k++) {
    int i = threadIdx.x + k * blockDim.x;
    bool there = i < s.rows && first + i < (uint64_t)s.m;
    id[k] = 0;
    if (there && s.wide_ids) id[k] = ((const int64_t *)s.ids)[first + i];
    if (there && !s.wide_ids) id[k] = ((const int32_t *)s.ids)[first + i];
  }
}

INLINE void cell_from(const CellShape &s, uint64_t tile, const int64_t id[CELL_IDS], const char **from) {
  uint64_t first = tile * s.rows;
#pragma unroll
  for (int k = 0; k < CELL_IDS; k++) {
    int i = threadIdx.x + k * blockDim.x;
    bool known = (uint64_t)id[k] < (uint64_t)s.count, there = i < s.rows && first + i < (uint64_t)s.m;
    if (i < CELL_GROUPS * s.period) from[i] = known && there ? s.begin + id[k] * s.stride : (const char *)cell_zeros;
    if (s.bad && there && !known) *s.bad = 1;
  }
}

// A cell of the row at x.
INLINE void cell_read(const CellShape &s, const Cell &c, const char *x, CellKind k, CellRaw *raw) {
  const int bytes = cell_per(k) * k.in;
  const char *at = x + c.column * k.in, *first = at - ((uintptr_t)at & (bytes - 1));
  if (s.edges && (first < s.begin || first + 2 * bytes > s.end) && x != (const char *)cell_zeros) cell_load_singly(c, at, k, raw);
  else cell_load(c, at, k, raw);
}

// All cells of a position, one of each group.
INLINE void cell_take(const CellShape &s, const Cell &c, const char *const *from, CellKind k, uint32_t u[CELL_GROUPS][4]) {
  CellRaw raw[CELL_GROUPS];
#pragma unroll
  for (int g = 0; g < CELL_GROUPS; g++) cell_read(s, c, from[c.row + g * s.period], k, &raw[g]);
#pragma unroll
  for (int g = 0; g < CELL_GROUPS; g++) cell_cut(raw[g], k, u[g]);
}

#endif
