// The stencil of rows that start anywhere: a warp walks down a strip of columns, and each row of it is read once. Asynchronous copies bring the
// buffer's own 16-byte chunks around a row's piece, one or two a lane, into a ring of slots of the warp, several rows ahead, so that a row lies there as far
// off 16 bytes as in x. Lanes take words from it wherever the row starts, and hold the sums of all rows that a row still contributes to: a
// multiply-add moves a sum one row on. Results lie in shared memory as in y, from where whole chunks are stored: those that begin in the
// strip, so a warp computes up to a chunk beyond it. There are no barriers of blocks. What binds are instructions: of 170 for a row of a strip of
// 8 columns a lane 100 do not depend on how many columns there are (SASS), hence 16.
#ifndef SOL_KERNELS_STENCIL_STRIP_CUH
#define SOL_KERNELS_STENCIL_STRIP_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char walk_memory[];

enum { STRIP_WARPS = STENCIL_THREADS / 32, STRIP_EVEN = 0, STRIP_ODD = 1 }; // a row's words start with an even element, an odd one

// A piece of the tensor: rows of y from `row` on, columns from `column` on.
typedef struct StripUnit {
  int64_t row, column;
  int rows, columns; // of y
  bool starts, last; // it has the rows' first, last columns
} StripUnit;

INLINE StripUnit strip_unit(const StencilStripParams *p, uint32_t unit) {
  uint32_t segment = unit / p->strips, strip = unit - segment * p->strips;
  StripUnit u;
  u.row = (int64_t)segment * p->rows, u.column = (int64_t)strip * p->columns + min(strip, p->wider);
  u.rows = (int)min((int64_t)p->rows, p->m - u.row), u.columns = p->columns + (strip < p->wider);
  u.starts = strip == 0, u.last = strip + 1 == p->strips;
  return u;
}

// The next row to fetch, and the unit's others: all `radius` above and below it, though there may be none there.
typedef struct StripAhead {
  const char *from; // the row's first column that is read, or would be, and this lane's chunk further
  int beyond;       // where this lane's chunk starts, from the end of what is read on
  int row, rows;    // from the first that there is on; how many there are
  int left;         // rows to fetch
  uint32_t unit;
  bool edge; // chunks may be partly outside of x
} StripAhead;

INLINE void strip_ahead(const StencilStripParams *p, StripAhead *a, int size, int radius) {
  a->row = a->rows = 0, a->left = 1 << 30, a->edge = false, a->from = (const char *)p->x;
  if (a->unit >= p->units) return; // nothing is copied any more
  const int lane = threadIdx.x % 32 * 16;
  StripUnit u = strip_unit(p, a->unit);
  int above = (int)min((int64_t)radius, u.row), below = (int)min((int64_t)radius, p->m - u.row - u.rows);
  a->from = (const char *)p->x + ((u.row - radius) * p->x_stride + u.column - radius) * size + lane;
  a->beyond = lane - (radius + u.columns + (u.last ? 0 : p->beyond + radius)) * size;
  a->row = above - radius, a->rows = above + u.rows + below, a->left = u.rows + 2 * radius;
  a->edge = (u.starts && above < radius) || (u.last && below < radius);
}

// to: this lane's place in the slot, which has `chunks` for each lane, 512 bytes apart.
INLINE void strip_fetch(const StencilStripParams *p, StripAhead *a, char *to, int chunks, int size, int radius) {
  int shift = (int)((uint32_t)(uintptr_t)a->from & 15);
  const char *from = a->from - shift;
  bool row = (uint32_t)a->row < (uint32_t)a->rows;
  if (a->edge && row) {
#pragma unroll
    for (int k = 0; k < chunks; k++) {
      const char *at = from + k * 512;
      bool here = a->beyond + k * 512 < shift;
      if (here && (at < (const char *)p->x || at + 16 > (const char *)p->x_end))
        *(uint4 *)(to + k * 512) = load_singly(at, (const char *)p->x, (const char *)p->x_end, size);
      else copy_async(tile_address(to + k * 512), at, here);
    }
  } else {
#pragma unroll
    for (int k = 0; k < chunks; k++) copy_async(tile_address(to + k * 512), from + k * 512, row && a->beyond + k * 512 < shift);
  }
  copy_commit();
  a->from += p->x_stride * size, a->row++;
  if (--a->left) return;
  a->unit += gridDim.x * STRIP_WARPS;
  strip_ahead(p, a, size, radius);
}

// Zeros beyond the rows' ends. at: the strip's first column.
INLINE void strip_cut(const StripUnit &u, char *at, int size, int radius) {
  const int lane = threadIdx.x % 32;
  if (lane < radius && u.starts) store_one(at, -1 - lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  if (lane < radius && u.last) store_one(at, u.columns + lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  __syncwarp();
}

// g: the lane's k-th columns and `radius` on either side of them; at: the strip's first column.
template <int size, int radius, int place, int count> INLINE void strip_take(const char *at, int k, int kind, float (&g)[count]) {
  const int lane = threadIdx.x % 32;
  if (size == 4) {
#pragma unroll
    for (int i = 0; i < count; i++) g[i] = ((const float *)at)[32 * k + lane + i - radius];
    return;
  }
  const uint32_t *words = (const uint32_t *)(place == STRIP_ODD ? at - 2 : at) + 32 * k + lane;
#pragma unroll
  for (int q = -radius; q <= radius + 1; q++) {
    // Elements 2 q and 2 q + 1 from the lane's first on, or one less of each where it starts in the middle of a word.
    const int low = radius + 2 * q - (place == STRIP_ODD ? 1 : 0), high = low + 1;
    if (high < 0 || low >= count) continue;
    float2 f = widen2(words[q], kind);
    if (low >= 0) g[low] = f.x;
    if (high < count) g[high] = f.y;
  }
}

// A row arrives: g as above. sum[i]: of the row `radius` - i above it, for i beyond `radius` below it; the first is finished.
template <int radius, int wide, int count>
INLINE void strip_add(const StencilStripParams *p, const float (&g)[count], float (&sum)[wide][2 * radius], float (&done)[wide]) {
#pragma unroll
  for (int j = 0; j < wide; j++) {
    float f = g[radius + j], own = fmaf(p->centre, f, sum[j][radius]);
#pragma unroll
    for (int d = 1; d <= radius; d++)
      own = fmaf(p->side[d - 1], g[radius + j + d], fmaf(p->side[d - 1], g[radius + j - d], own));
#pragma unroll
    for (int i = 0; i <= 2 * radius; i++) {
      const int d = i < radius ? radius - i : i - radius;
      float s = i == radius ? own : i == 2 * radius ? 0 : sum[j][i & (2 * radius - 1)];
      if (d) s = fmaf(p->side[(d - 1) & 7], f, s);
      if (i == 0) done[j] = s;
      else sum[j][i - 1] = s;
    }
  }
}

template <int size, int radius, int place, int turns, int wide>
INLINE void strip_row(const StencilStripParams *p, const char *at, int kind, float (&sum)[turns][wide][2 * radius], float (&done)[turns][wide]) {
#pragma unroll
  for (int k = 0; k < turns; k++) {
    float g[wide + 2 * radius];
    strip_take<size, radius, place>(at, k, kind, g);
    strip_add<radius>(p, g, sum[k], done[k]);
  }
}

// A row of results, of which the first column is at `at`.
template <int turns, int wide> INLINE void strip_put(char *at, bool odd, int y_kind, const float (&f)[turns][wide]) {
  const int lane = threadIdx.x % 32;
  if (wide == 1 || y_kind == KIND_FP32) {
#pragma unroll
    for (int k = 0; k < turns; k++)
#pragma unroll
      for (int j = 0; j < wide; j++) store_one(at, (32 * k + lane) * wide + j, y_kind, f[k][j]);
    return;
  }
  if (odd) {
    uint16_t *to = (uint16_t *)at + lane * 2;
#pragma unroll
    for (int k = 0; k < turns; k++) {
      uint32_t u = narrow2(f[k][0], f[k][wide - 1], y_kind);
      to[64 * k] = (uint16_t)u, to[64 * k + 1] = (uint16_t)(u >> 16);
    }
  } else {
#pragma unroll
    for (int k = 0; k < turns; k++) ((uint32_t *)at)[32 * k + lane] = narrow2(f[k][0], f[k][wide - 1], y_kind);
  }
}

// A row of results from shared memory to y: the chunks that begin in the strip, and single elements at the row's ends. beyond: where this lane's first
// chunk starts, in a last strip ends, from the strip's end on.
INLINE void strip_send(const StripUnit &u, char *y, const char *results, int beyond, int chunks, int out) {
  const int lane = threadIdx.x % 32;
  int shift = (int)((uint32_t)(uintptr_t)y & 15);
  char *to = y - shift;
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (beyond + k * 512 < shift && (k || lane || !shift)) *(uint4 *)(to + lane * 16 + k * 512) = *(const uint4 *)(results + lane * 16 + k * 512);
  if (!u.starts && !u.last) return;
  int bytes = shift + u.columns * out, end = bytes & -16;
  if (u.starts && shift + lane * out < 16 && shift) move_one(y + lane * out, results + shift + lane * out, out);
  if (u.last && end + lane * out < bytes) move_one(to + end + lane * out, results + end + lane * out, out);
}

template <int size, int radius, int each, int kind> INLINE void stencil_strip(const StencilStripParams *p, int y_kind) {
  constexpr int wide = size == 4 ? 1 : 2, turns = each / wide, space = STRIP_SLOT(size, each), around = (STRIP_RING - 1) * space, chunks = space / 512;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, out = y_kind == KIND_FP32 ? 4 : 2, sends = max(each * out / 16, 1);
  const uint32_t mine = blockIdx.x * STRIP_WARPS + warp;
  char *ring = walk_memory + warp * p->warp_bytes, *results = ring + STRIP_RING * space + STRIP_MORE;
  for (int i = lane * 16; i < p->warp_bytes; i += 512) *(uint4 *)(ring + i) = make_uint4(0, 0, 0, 0); // lanes beyond a strip read it, too
  StripAhead ahead;
  ahead.unit = mine;
  strip_ahead(p, &ahead, size, radius);
  let_successor_start();
  wait_for_predecessor();
  __syncwarp();
#pragma unroll 1
  for (int i = 0; i < STRIP_RING - 1; i++) strip_fetch(p, &ahead, ring + i * space + lane * 16, chunks, size, radius);
  int slot = 0, half = 0;
#pragma unroll 1
  for (uint32_t unit = mine; unit < p->units; unit += gridDim.x * STRIP_WARPS) {
    const StripUnit u = strip_unit(p, unit);
    float sum[turns][wide][2 * radius] = {};
    uint32_t x = (uint32_t)(uintptr_t)p->x + (uint32_t)((u.row - radius) * p->x_stride + u.column - radius) * size;
    char *y = (char *)p->y + ((u.row - 2 * radius - 1) * p->y_stride + u.column) * out; // of the row before the one whose results are put
    const int beyond = lane * 16 + (u.last ? 15 : 0) - u.columns * out;
#pragma unroll 1
    for (int row = -radius;; row++, x += (uint32_t)p->x_stride * size) {
      copy_wait<STRIP_RING - 2>();
      __syncwarp(); // the row is there, and everybody has what was in the slot of the row before, and has put its results
      if (row > radius) strip_send(u, y, results + half, beyond, sends, out);
      if (row == u.rows + radius) break;
      strip_fetch(p, &ahead, ring + ((slot - space) & around) + lane * 16, chunks, size, radius);
      char *at = ring + slot + (x & 15) + radius * size;
      if (u.starts || u.last) strip_cut(u, at, size, radius);
      float done[turns][wide];
      if (size == 2 && (x + radius * size) & 2) strip_row<size, radius, STRIP_ODD>(p, at, kind, sum, done);
      else strip_row<size, radius, STRIP_EVEN>(p, at, kind, sum, done);
      y += p->y_stride * out, half = p->y_pitch - half;
      uint32_t shift = (uint32_t)(uintptr_t)y & 15;
      strip_put(results + half + shift, shift & 2, y_kind, done);
      slot = (slot + space) & around;
    }
  }
}

#define STRIP(name, size, radius, each)                                                                                 \
  KERNEL __launch_bounds__(STENCIL_THREADS, STRIP_BLOCKS(radius, size, each)) name(const __grid_constant__ StencilStripParams p) { \
    if (size == 4 && p.y_kind == KIND_FP32) stencil_strip<size, radius, each, KIND_FP32>(&p, KIND_FP32);                \
    else if (size == 4) stencil_strip<size, radius, each, KIND_FP32>(&p, p.y_kind);                                     \
    else if (p.x_kind == KIND_FP16 && p.y_kind == KIND_FP16) stencil_strip<size, radius, each, KIND_FP16>(&p, KIND_FP16); \
    else if (p.x_kind == KIND_FP16) stencil_strip<size, radius, each, KIND_FP16>(&p, p.y_kind);                         \
    else if (p.y_kind == KIND_BF16) stencil_strip<size, radius, each, KIND_BF16>(&p, KIND_BF16);                        \
    else stencil_strip<size, radius, each, KIND_BF16>(&p, p.y_kind);                                                    \
  }

#endif
#endif
