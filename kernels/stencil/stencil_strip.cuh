// The stencil of rows that start anywhere: a warp walks down a strip of columns, and each row of it is read once. Bulk copies bring the
// buffer's own 16-byte chunks around a row's piece into a ring of slots of the warp, several rows ahead, so that a row lies there as far off
// 16 bytes as in x. Lanes take words from it wherever the row starts, and hold the sums of all rows that a row still contributes to: a
// multiply-add moves a sum one row on. Results lie in shared memory as in y, from where whole chunks are stored: those that begin in the
// strip, so a warp computes up to a chunk beyond it. There are no barriers of blocks.
#ifndef SOL_KERNELS_STENCIL_STRIP_CUH
#define SOL_KERNELS_STENCIL_STRIP_CUH

#include "funnel.cuh"
#include "hopper.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

extern __shared__ __align__(128) char walk_memory[];

enum { STRIP_WARPS = STENCIL_THREADS / 32 };
enum { STRIP_EVEN, STRIP_ODD, STRIP_NONE }; // a row's words start with an even element, an odd one; there is no row

// A piece of the tensor: rows of y from `row` on, columns from `column` on.
typedef struct StripUnit {
  int64_t row, column;
  int rows, columns;      // of y
  int first, end;         // rows of x, counted from `row`
  int left, right;        // columns of x that are read, counted from `column`
  bool starts, last;      // it has the rows' first, last columns
} StripUnit;

INLINE StripUnit strip_unit(const StencilStripParams *p, uint32_t unit, int radius) {
  uint32_t segment = unit / p->strips, strip = unit - segment * p->strips;
  StripUnit u;
  u.row = (int64_t)segment * p->rows, u.column = (int64_t)strip * p->columns + min(strip, p->wider);
  u.rows = (int)min((int64_t)p->rows, p->m - u.row), u.columns = p->columns + (strip < p->wider);
  u.first = -(int)min((int64_t)radius, u.row), u.end = (int)min((int64_t)u.rows + radius, p->m - u.row);
  u.starts = strip == 0, u.last = strip + 1 == p->strips;
  u.left = u.starts ? 0 : -radius, u.right = u.columns + (u.last ? 0 : p->beyond + radius);
  return u;
}

// The next row to fetch; lane 0 alone has one.
typedef struct StripAhead {
  const char *from; // of the row
  int bytes, shift; // from there on; where the slot starts, before `from`
  uint32_t unit;
  int rows;         // left of the unit
} StripAhead;

INLINE StripAhead strip_ahead(const StencilStripParams *p, uint32_t unit, int size, int radius) {
  StripAhead a;
  a.unit = unit, a.rows = 0;
  if (unit >= p->units) return a;
  StripUnit u = strip_unit(p, unit, radius);
  a.from = (const char *)p->x + ((u.row + u.first) * p->x_stride + u.column + u.left) * size;
  a.bytes = (u.right - u.left) * size, a.shift = (u.left + radius) * size;
  a.rows = u.end - u.first;
  return a;
}

// Whole chunks inside x alone: what is left out at its ends is loaded singly.
INLINE void strip_fetch(const StencilStripParams *p, StripAhead *a, char *slot, uint64_t *full, int size, int radius) {
  if (!a->rows) return;
  const char *first = a->from - ((uintptr_t)a->from & 15), *end = a->from + a->bytes + (-((uintptr_t)a->from + a->bytes) & 15);
  // The slot starts at the 16 bytes that hold the first column of the halo, which rows' first columns do not have.
  int place = (int)(((uint32_t)(uintptr_t)a->from - a->shift & 15) + a->shift & ~15u);
  if (first < (const char *)p->x) first += 16, place += 16;
  if (end > (const char *)p->x_end) end -= 16;
  int bytes = (int)(end - first);
  barrier_expect(full, bytes);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(slot + place)),
               "l"(__cvta_generic_to_global(first)), "r"(bytes), "r"(shared_address(full))
               : "memory");
  a->from += p->x_stride * size;
  if (!--a->rows) *a = strip_ahead(p, a->unit + gridDim.x * STRIP_WARPS, size, radius);
}

// What the copy did not bring: zeros beyond the rows' ends, and elements of chunks that are partly outside of x. at: the strip's first column.
INLINE void strip_mend(const StencilStripParams *p, const StripUnit &u, int row, char *at, int size, int radius) {
  const int lane = threadIdx.x % 32;
  const char *x = (const char *)p->x + ((u.row + row) * p->x_stride + u.column) * size;
  int head = u.starts && u.row + row == 0 ? (int)(-(uint32_t)(uintptr_t)x & 15) / size : 0;
  int tail = u.last && u.row + row == p->m - 1 ? (int)((uintptr_t)p->x_end & 15) / size : 0;
  if (lane < head) move_one(at + lane * size, x + lane * size, size);
  if (lane < tail) move_one(at + (u.columns - 1 - lane) * size, x + (u.columns - 1 - lane) * size, size);
  if (lane < radius && u.starts) store_one(at, -1 - lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  if (lane < radius && u.last) store_one(at, u.columns + lane, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  async_fence();
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

INLINE bool strip_has(int most, const StencilStripParams *p, int d) { return most <= 2 || d <= most / 2 + 1 || d <= p->radius; }

// A row arrives: g as above. sum[i]: of the row `radius` - i above it... to `radius` - 1 below it; the first is finished.
template <int radius, int wide, int count>
INLINE void strip_add(const StencilStripParams *p, const float (&g)[count], float (&sum)[wide][2 * radius], float (&done)[wide]) {
#pragma unroll
  for (int j = 0; j < wide; j++) {
    float f = g[radius + j], own = fmaf(p->centre, f, sum[j][radius]);
#pragma unroll
    for (int d = 1; d <= radius; d++)
      if (strip_has(radius, p, d)) own = fmaf(p->side[d - 1], g[radius + j + d], fmaf(p->side[d - 1], g[radius + j - d], own));
#pragma unroll
    for (int i = 0; i <= 2 * radius; i++) {
      const int d = i < radius ? radius - i : i - radius;
      float s = i == radius ? own : i == 2 * radius ? 0 : sum[j][i & (2 * radius - 1)];
      if (d && strip_has(radius, p, d)) s = fmaf(p->side[(d - 1) & 7], f, s);
      if (i == 0) done[j] = s;
      else sum[j][i - 1] = s;
    }
  }
}

template <int size, int radius, int place, int turns, int wide>
INLINE void strip_row(const StencilStripParams *p, const char *at, int kind, float (&sum)[turns][wide][2 * radius], float (&done)[turns][wide]) {
#pragma unroll
  for (int k = 0; k < turns; k++) {
    float g[wide + 2 * radius] = {};
    if (place != STRIP_NONE) strip_take<size, radius, place>(at, k, kind, g);
    strip_add<radius>(p, g, sum[k], done[k]);
  }
}

// Result i, the k-th columns of a lane: to the place of results, whose first column is at `at`.
template <int size, int wide> INLINE void strip_put(char *at, int k, int y_kind, const float (&f)[wide]) {
  const int lane = threadIdx.x % 32, c = (32 * k + lane) * wide;
  if (wide == 2 && y_kind != KIND_FP32) {
    uint32_t u = narrow2(f[0], f[wide - 1], y_kind);
    if ((uint32_t)(uintptr_t)at & 2) ((uint16_t *)at)[c] = (uint16_t)u, ((uint16_t *)at)[c + 1] = (uint16_t)(u >> 16);
    else *(uint32_t *)(at + 2 * c) = u;
    return;
  }
#pragma unroll
  for (int j = 0; j < wide; j++) store_one(at, c + j, y_kind, f[j]);
}

// A row of results from shared memory to y: the chunks that begin in the strip, and single elements at the row's ends.
INLINE void strip_send(const StripUnit &u, char *y, const char *results, int out) {
  const int lane = threadIdx.x % 32;
  int shift = (int)((uintptr_t)y & 15), bytes = shift + u.columns * out, end = u.last ? bytes & -16 : bytes + 15 & -16;
  char *to = y - shift;
#pragma unroll 2
  for (int k = (shift ? 16 : 0) + lane * 16; k < end; k += 512) *(uint4 *)(to + k) = *(const uint4 *)(results + k);
  if (u.starts && shift + lane * out < 16 && shift) move_one(y + lane * out, results + shift + lane * out, out);
  if (u.last && end + lane * out < bytes) move_one(to + end + lane * out, results + end + lane * out, out);
}

template <int size, int radius, int each, int kind> INLINE void stencil_strip(const StencilStripParams *p) {
  __shared__ uint64_t barriers[STRIP_WARPS][STRIP_MOST];
  constexpr int wide = size == 4 ? 1 : 2, turns = each / wide;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t mine = blockIdx.x * STRIP_WARPS + warp;
  const int out = p->y_kind == KIND_FP32 ? 4 : 2;
  char *ring = walk_memory + warp * p->warp_bytes, *results = ring + p->ring * p->pitch;
  uint64_t *full = barriers[warp];
  StripAhead ahead;
  ahead.rows = 0;
  for (int i = lane * 16; i < p->warp_bytes; i += 512) *(uint4 *)(ring + i) = make_uint4(0, 0, 0, 0); // lanes beyond a strip read it, too
  async_fence();
  __syncwarp();
  if (lane == 0) {
    for (int i = 0; i < p->ring; i++) barrier_init(full + i, 1);
    barrier_init_done();
    ahead = strip_ahead(p, mine, size, radius);
  }
  let_successor_start();
  wait_for_predecessor();
  if (lane == 0) {
#pragma unroll 1
    for (int i = 0; i < p->ring; i++) strip_fetch(p, &ahead, ring + i * p->pitch, full + i, size, radius);
  }
  __syncwarp();
  int slot = 0;
  uint32_t parity = 0, half = 0;
#pragma unroll 1
  for (uint32_t unit = mine; unit < p->units; unit += gridDim.x * STRIP_WARPS) {
    const StripUnit u = strip_unit(p, unit, radius);
    float sum[turns][wide][2 * radius] = {};
    uint32_t x = (uint32_t)(uintptr_t)p->x + (uint32_t)((u.row + u.first) * p->x_stride + u.column - radius) * size;
    char *y = (char *)p->y + (u.row * p->y_stride + u.column) * out;
#pragma unroll 1
    for (int row = u.first; row < u.rows + radius; row++, x += (uint32_t)p->x_stride * size) {
      const bool here = row < u.end;
      char *at = ring + slot * p->pitch + (x & 15) + radius * size;
      float done[turns][wide];
      if (here) {
        barrier_wait(full + slot, parity);
        if (u.starts || u.last) strip_mend(p, u, row, at, size, radius);
      }
      if (!here) strip_row<size, radius, STRIP_NONE>(p, at, kind, sum, done);
      else if (size == 2 && (x + radius * size) & 2) strip_row<size, radius, STRIP_ODD>(p, at, kind, sum, done);
      else strip_row<size, radius, STRIP_EVEN>(p, at, kind, sum, done);
      if (row >= radius) {
        char *to = results + half * p->y_pitch;
#pragma unroll
        for (int k = 0; k < turns; k++) strip_put<size>(to + ((uintptr_t)y & 15), k, p->y_kind, done[k]);
      }
      __syncwarp();
      if (here) {
        if (lane == 0) strip_fetch(p, &ahead, ring + slot * p->pitch, full + slot, size, radius);
        if (++slot == p->ring) slot = 0, parity ^= 1;
      }
      if (row >= radius) {
        strip_send(u, y, results + half * p->y_pitch, out);
        y += p->y_stride * out, half ^= 1;
      }
    }
  }
}

#define STRIP_BLOCKS(radius) ((radius) > 1 ? 2 : 3) // on an SM
#define STRIP(name, size, radius, each)                                                                         \
  KERNEL __launch_bounds__(STENCIL_THREADS, STRIP_BLOCKS(radius)) name(const __grid_constant__ StencilStripParams p) { \
    if (size == 4) stencil_strip<size, radius, each, KIND_FP32>(&p);                                            \
    else if (p.x_kind == KIND_FP16) stencil_strip<size, radius, each, KIND_FP16>(&p);                           \
    else stencil_strip<size, radius, each, KIND_BF16>(&p);                                                      \
  }

#endif
#endif
