// The stencil of rows that start anywhere. A block has a tile, a strip of columns of a few rows: asynchronous copies bring the buffer's own 16-byte
// chunks around each row's piece into shared memory, so that a row lies there as far off 16 bytes as in x. Then each warp walks down some of the
// rows. A lane has neighbouring columns, an odd number of words, so that lanes' words lie in different banks, and takes them wherever the row starts.
// It holds the sums of all rows that a row contributes to: a multiply-add moves a sum one row on. Results lie in shared memory as in y, from where whole
// sectors are stored, those that begin in the strip; a warp computes up to a sector beyond its strip for that.
#ifndef SOL_KERNELS_STENCIL_STRIP_CUH
#define SOL_KERNELS_STENCIL_STRIP_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

enum { STRIP_EVEN = 0, STRIP_ODD = 1 }; // a row's words start with an even element, an odd one

// A block's tile: rows of y from `row` on, columns from `column` on.
typedef struct StripUnit {
  int64_t row, column;
  int rows, columns; // of y
  bool starts, last; // it has the rows' first, last columns
} StripUnit;

INLINE StripUnit strip_unit(const StencilStripParams *p) {
  uint32_t band = blockIdx.x / p->strips, strip = blockIdx.x - band * p->strips;
  int rows = p->rows * STRIP_WARPS;
  StripUnit u;
  u.row = (int64_t)band * rows, u.column = (int64_t)strip * p->columns + min(strip, p->wider);
  u.rows = (int)min((int64_t)rows, p->m - u.row), u.columns = p->columns + (strip < p->wider);
  u.starts = strip == 0, u.last = strip + 1 == p->strips;
  return u;
}

// The first column that is read of row `row` of a tile, counted from `radius` above it.
INLINE const char *strip_from(const StencilStripParams *p, const StripUnit &u, int row, int size, int radius) {
  return (const char *)p->x + ((u.row - radius + row) * p->x_stride + u.column - radius) * size;
}

INLINE void strip_copy(char *to, const char *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tile_address(to)), "l"(__cvta_generic_to_global(from)) : "memory");
}

// One row into its `space` bytes of shared memory. What is not x is not accessed: a row that there is not comes as zeros, as does what lanes beyond the strip
// read. edge: its chunks may be partly outside of x.
INLINE void strip_fetch(const StencilStripParams *p, const char *row, bool there, int bytes, bool edge, char *slot, int space, int size) {
  const int lane = threadIdx.x % 32 * 16;
  int shift = (int)((uint32_t)(uintptr_t)row & 15);
#pragma unroll
  for (int k = lane; k < space; k += 512) {
    const char *from = row - shift + k;
    if (!there || k >= shift + bytes) *(uint4 *)(slot + k) = make_uint4(0, 0, 0, 0);
    else if (edge && (from < (const char *)p->x || from + 16 > (const char *)p->x_end))
      *(uint4 *)(slot + k) = load_singly(from, (const char *)p->x, (const char *)p->x_end, size);
    else strip_copy(slot + k, from);
  }
}

// Zeros beyond the rows' ends. at: the strip's first column.
INLINE void strip_cut(const StripUnit &u, char *at, int size, int radius) {
  const int lane = threadIdx.x % 32;
  if (lane < radius && u.starts) store_one(at, -1 - lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  if (lane < radius && u.last) store_one(at, u.columns + lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
}

// g: the lane's columns and those around them, of which the first is at `at`. place: whether that is the second half of a word.
template <int size, int place, int count> INLINE void strip_take(const char *at, int kind, float (&g)[count]) {
  if (size == 4) {
#pragma unroll
    for (int i = 0; i < count; i++) g[i] = ((const float *)at)[i];
    return;
  }
  const uint32_t *words = (const uint32_t *)(at - 2 * place);
#pragma unroll
  for (int q = 0; 2 * q - place < count; q++) {
    float2 f = widen2(words[q], kind);
    if (2 * q - place >= 0) g[(2 * q - place) & 63] = f.x;
    if (2 * q - place + 1 < count) g[2 * q - place + 1] = f.y;
  }
}

// A row arrives: g as above. sum[i]: of the row `radius` - i above it, for i beyond `radius` below it; the first is finished. across: the row is one
// of the warp's own, to whose sums its neighbours in the row are added.
template <int radius, bool across, int each, int count>
INLINE void strip_add(const StencilStripParams *p, const float (&g)[count], float (&sum)[each][2 * radius], float (&done)[each]) {
#pragma unroll
  for (int j = 0; j < each; j++) {
    float f = g[radius + j], own = sum[j][radius];
    if (across) own = fmaf(p->centre, f, own);
#pragma unroll
    for (int d = 1; d <= radius && across; d++)
      own = fmaf(p->side[d - 1], g[radius + j + d], fmaf(p->side[d - 1], g[radius + j - d], own));
#pragma unroll
    for (int i = 0; i <= 2 * radius; i++) {
      const int d = i < radius ? radius - i : i - radius;
      float s = i == radius ? own : i == 2 * radius ? 0 : sum[j][i % (2 * radius)];
      if (d) s = fmaf(p->side[(d - 1) & 7], f, s);
      if (i == 0) done[j] = s;
      else sum[j][(i - 1) % (2 * radius)] = s;
    }
  }
}

template <int size, int radius, int place, bool across, int each>
INLINE void strip_row(const StencilStripParams *p, const char *at, int kind, float (&sum)[each][2 * radius], float (&done)[each]) {
  float g[each + 2 * radius];
  strip_take<size, place>(at, kind, g);
  strip_add<radius, across>(p, g, sum, done);
}

// The lane's results. Where they start in the middle of a word, a lane stores the last of the lane before with its own first.
template <int each> INLINE void strip_put(char *at, bool odd, int y_kind, const float (&f)[each]) {
  if (y_kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < each; j++) ((float *)at)[j] = f[j];
  } else if (each % 2) {
#pragma unroll
    for (int j = 0; j < each; j++) store_one(at, j, y_kind, f[j]);
  } else if (odd) {
    float before = __shfl_up_sync(~0u, f[each - 1], 1);
#pragma unroll
    for (int j = 0; j < each; j += 2) *(uint32_t *)(at - 2 + 2 * j) = narrow2(j ? f[(j - 1) & 63] : before, f[j], y_kind);
  } else {
#pragma unroll
    for (int j = 0; j < each; j += 2) *(uint32_t *)(at + 2 * j) = narrow2(f[j], f[(j + 1) & 63], y_kind);
  }
}

// A row of results from shared memory to y: the sectors that begin in the strip, and single elements at the row's ends. beyond: where the sector
// of this lane's first chunk starts, in a last strip where the chunk ends, from the strip's end on.
INLINE void strip_send(const StripUnit &u, char *y, const char *results, int beyond, int space, int out) {
  const int lane = threadIdx.x % 32;
  int shift = (int)((uint32_t)(uintptr_t)y & 31);
  char *to = y - shift;
#pragma unroll
  for (int k = 0; k < space; k += 512)
    if (beyond + k < shift && (k || lane > 1 || !shift)) *(uint4 *)(to + lane * 16 + k) = *(const uint4 *)(results + lane * 16 + k);
  if (!u.starts && !u.last) return;
  int bytes = shift + u.columns * out, end = bytes & -16;
  if (u.starts && shift + lane * out < 32 && shift) move_one(y + lane * out, results + shift + lane * out, out);
  if (u.last && end + lane * out < bytes) move_one(to + end + lane * out, results + end + lane * out, out);
}

// A warp's rows of the tile into shared memory, every STRIP_WARPS-th one.
INLINE void strip_in(const StencilStripParams *p, const StripUnit &u, char *tile, int space, int size, int radius) {
  const int warp = threadIdx.x / 32, rows = u.rows + 2 * radius;
  int bytes = (radius + u.columns + (u.last ? 0 : p->beyond + radius)) * size;
#pragma unroll 2
  for (int r = warp; r < rows; r += STRIP_WARPS) {
    int64_t row = u.row - radius + r;
    bool edge = (u.starts && row == 0) || (u.last && row + 1 == p->m);
    strip_fetch(p, strip_from(p, u, r, size, radius), (uint64_t)row < (uint64_t)p->m, bytes, edge, tile + r * space, space, size);
  }
  wait_for_fetches();
  if (!u.starts && !u.last) return;
  __syncwarp();
  for (int r = warp; r < rows; r += STRIP_WARPS) {
    uint32_t shift = (uint32_t)(uintptr_t)strip_from(p, u, r, size, radius) & 15;
    strip_cut(u, tile + r * space + shift + radius * size, size, radius);
  }
}

template <int size, int radius, int each, int kind> INLINE void stencil_strip(const StencilStripParams *p, int y_kind) {
  extern __shared__ __align__(128) char walk_memory[];
  constexpr int space = STRIP_SLOT(size, radius, each);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, out = y_kind == KIND_FP32 ? 4 : 2, pitch = STRIP_RESULTS(out, each);
  const StripUnit u = strip_unit(p);
  let_successor_start();
  wait_for_predecessor();
  strip_in(p, u, walk_memory, space, size, radius);
  __syncthreads();
  const int first = warp * p->rows, rows = min(p->rows, u.rows - first);
  if (rows <= 0) return;
  const char *slot = walk_memory + first * space;
  char *results = walk_memory + (p->rows * STRIP_WARPS + 2 * radius) * space + warp * 2 * pitch;
  uint32_t x = (uint32_t)(uintptr_t)strip_from(p, u, first, size, radius);
  char *y = (char *)p->y + ((u.row + first) * p->y_stride + u.column) * out;
  const int beyond = (u.last ? lane * 16 + 15 : lane * 16 & -32) - u.columns * out;
  float sum[each][2 * radius] = {};
  int half = 0;
#pragma unroll 1
  for (int row = -2 * radius; row < rows; row++, x += (uint32_t)p->x_stride * size, slot += space) {
    const char *at = slot + (x & 15) + lane * (each * size);
    float done[each];
    bool odd = size == 2 && x & 2;
    if (radius > 1 && (uint32_t)(row + radius) >= (uint32_t)rows) { // of radius 1 these rows are few
      if (odd) strip_row<size, radius, STRIP_ODD, false>(p, at, kind, sum, done);
      else strip_row<size, radius, STRIP_EVEN, false>(p, at, kind, sum, done);
    } else {
      if (odd) strip_row<size, radius, STRIP_ODD, true>(p, at, kind, sum, done);
      else strip_row<size, radius, STRIP_EVEN, true>(p, at, kind, sum, done);
    }
    if (row < 0) continue;
    uint32_t shift = (uint32_t)(uintptr_t)y & 31;
    strip_put(results + half + shift + lane * (each * out), shift & 2, y_kind, done);
    __syncwarp(); // and everybody has sent what the other half had
    strip_send(u, y, results + half, beyond, pitch, out);
    y += p->y_stride * out, half = pitch - half;
  }
}

#define STRIP(name, size, radius, each, blocks)                                                                         \
  KERNEL __launch_bounds__(32 * STRIP_WARPS, blocks) name(const __grid_constant__ StencilStripParams p) {               \
    if (size == 4 && p.y_kind == KIND_FP32) stencil_strip<size, radius, each, KIND_FP32>(&p, KIND_FP32);                \
    else if (size == 4) stencil_strip<size, radius, each, KIND_FP32>(&p, p.y_kind);                                     \
    else if (p.x_kind == KIND_FP16 && p.y_kind == KIND_FP16) stencil_strip<size, radius, each, KIND_FP16>(&p, KIND_FP16); \
    else if (p.x_kind == KIND_FP16) stencil_strip<size, radius, each, KIND_FP16>(&p, p.y_kind);                         \
    else if (p.y_kind == KIND_BF16) stencil_strip<size, radius, each, KIND_BF16>(&p, KIND_BF16);                        \
    else stencil_strip<size, radius, each, KIND_BF16>(&p, p.y_kind);                                                    \
  }

#endif
#endif
