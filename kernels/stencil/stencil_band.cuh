// The stencil of rows of any length that start anywhere. A tile is some rows, whole or a strip of their columns, with those around them. Asynchronous copies
// bring the buffer's own 16-byte chunks into shared memory, each row at a place of its own, as far off 16 bytes as in x, with zeros where rows end. A thread has
// eight rows of a few neighbouring columns, an odd number of words of them, so that lanes' words lie in different banks. Every row that arrives is added to all
// sums it contributes to. Results take the place of the tile in shared memory, where they lie as in y, and leave as whole chunks: where rows of y follow each other
// without a gap, as one run. While a block computes a tile its next one arrives.
#ifndef SOL_KERNELS_STENCIL_BAND_CUH
#define SOL_KERNELS_STENCIL_BAND_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char band_memory[];

typedef struct BandTile {
  int64_t row, column; // the first of y
  int rows, columns;   // of y; columns with those computed beyond the strip
  int left;            // columns from the first to the row's end, as far as they matter
  int shift;           // bytes off 16 of the first element that is read
  bool last;           // strip of a row
} BandTile;

INLINE const char *band_from(const StencilBandParams *p, const BandTile &t, int row, int size, int radius) {
  return (const char *)p->x + ((t.row - radius + row) * p->x_stride + t.column - radius) * size;
}

INLINE BandTile band_tile(const StencilBandParams *p, uint64_t index, int size, int radius) {
  uint64_t band, strip;
  split(index, p->strips, &band, &strip);
  BandTile t;
  t.row = (int64_t)band * p->rows, t.column = (int64_t)strip * p->columns - p->before;
  t.rows = (int)min((int64_t)p->rows, p->m - t.row);
  t.columns = (int)min((int64_t)p->columns + p->beyond, p->n - t.column);
  t.left = (int)min((int64_t)p->columns + p->beyond + radius, p->n - t.column);
  t.shift = (int)((uint32_t)(uintptr_t)band_from(p, t, 0, size, radius) & 15);
  t.last = strip + 1 == p->strips;
  return t;
}

// Where row `r` of a tile lies in shared memory. After eight rows some bytes are left free, so that the lanes of a warp that have other rows find other banks.
INLINE int band_place(const StencilBandParams *p, int r) { return r * p->x_pitch + r / STENCIL_EIGHT * p->x_skew; }

// Rows that a tile has in shared memory: whole eights and those around them. Those that x does not have are zeros.
INLINE int band_depth(const BandTile &t, int radius) { return (t.rows + STENCIL_EIGHT - 1) / STENCIL_EIGHT * STENCIL_EIGHT + 2 * radius; }

// edge: some chunks may be partly outside of x.
INLINE bool band_edge(const StencilBandParams *p, const BandTile &t, int size, int radius) {
  int64_t first = max((int64_t)0, t.row - radius), end = min(p->m, t.row + t.rows + radius);
  const char *low = (const char *)p->x + (first * p->x_stride + t.column - radius) * size;
  const char *high = (const char *)p->x + ((end - 1) * p->x_stride + t.column + t.columns + radius) * size;
  return low - 15 < (const char *)p->x || high + 15 > (const char *)p->x_end;
}

INLINE void band_fetch(const StencilBandParams *p, const BandTile &t, char *slot, int size, int radius) {
  const int lanes = 1 << p->lane_bits, lane = (threadIdx.x & lanes - 1) * 16, step = blockDim.x >> p->lane_bits, depth = band_depth(t, radius);
  const int bytes = (t.columns + 2 * radius) * size;
  const bool edge = band_edge(p, t, size, radius);
  int r = threadIdx.x >> p->lane_bits;
  const char *at = band_from(p, t, r, size, radius);
#pragma unroll 1
  for (; r < depth; r += step, at += step * p->x_stride * size) {
    int place = t.shift + band_place(p, r), shift = place & 15;
    const bool there = (uint64_t)(t.row - radius + r) < (uint64_t)p->m;
    const char *from = at - shift;
    char *to = slot + place - shift;
    const int end = there ? shift + bytes : 0;
    if (edge) {
#pragma unroll 1
      for (int k = lane; k < p->slot; k += lanes * 16) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (k < end) v = load_singly(from + k, (const char *)p->x, (const char *)p->x_end, size);
        *(uint4 *)(to + k) = v;
      }
    } else {
#pragma unroll 4
      for (int k = lane; k < p->slot; k += lanes * 16) copy_async(tile_address(to + k), from + k, k < end);
    }
  }
}

// Zeros beyond the rows' ends, by the lanes that copied a row.
INLINE void band_cut(const StencilBandParams *p, const BandTile &t, char *slot, int size, int radius) {
  if (t.column > 0 && t.left >= t.columns + radius) return;
  const int lanes = 1 << p->lane_bits, lane = threadIdx.x & lanes - 1, step = blockDim.x >> p->lane_bits, depth = band_depth(t, radius);
#pragma unroll 1
  for (int r = threadIdx.x >> p->lane_bits; r < depth; r += step) {
    char *row = slot + t.shift + band_place(p, r) + radius * size;
    if (t.column <= 0)
      for (int j = lane; j < radius + p->before; j += lanes) store_one(row, j - radius, size == 4 ? KIND_FP32 : KIND_FP16, 0);
    for (int j = t.left + lane; j < t.columns + radius; j += lanes) store_one(row, j, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  }
}

// g: `count` columns from `first` on, of which column 0 is at `at`. place: whether that is the second half of a word.
template <int size, int place, int first, int count, int space> INLINE void band_take(const char *at, int kind, float (&g)[space]) {
  if (size == 4) {
#pragma unroll
    for (int i = 0; i < count; i++) g[i] = ((const float *)at)[first + i];
    return;
  }
  const int64_t from = (first + place) >> 1; // of words, rounded down
  const uint32_t *words = (const uint32_t *)(at - 2 * place) + from;
#pragma unroll
  for (int q = 0; 2 * (q + from) - place < first + count; q++) {
    const int i = 2 * (q + (int)from) - place - first;
    float2 f = widen2(words[q], kind);
    if (i >= 0 && i < count) g[i & 31] = f.x;
    if (i + 1 >= 0 && i + 1 < count) g[(i + 1) & 31] = f.y;
  }
}

// The same wherever the row starts; odd: `at` is the second half of a word.
template <int size, int first, int count, int space> INLINE void band_load(const char *at, bool odd, int kind, float (&g)[space]) {
  if (size == 2 && odd) band_take<size, 1, first, count>(at, kind, g);
  else band_take<size, 0, first, count>(at, kind, g);
}

// Whether distance d of a kernel for radii from half of `radius` on has a part in it.
INLINE bool band_has(const StencilBandParams *p, int radius, int d) { return radius <= 3 || d <= (radius > 5 ? radius - 2 : radius - 1) || d <= p->radius; }

// at: the thread's first column of the row `radius` above its first; rows: of its own that there are.
template <int size, int radius, int each>
INLINE void band_compute(const StencilBandParams *p, const char *at, int rows, int kind, float (&sum)[STENCIL_EIGHT][each]) {
#pragma unroll
  for (int k = 0; k < STENCIL_EIGHT; k++)
#pragma unroll
    for (int j = 0; j < each; j++) sum[k][j] = 0;
#pragma unroll
  for (int i = 0; i < STENCIL_EIGHT + 2 * radius; i++, at += p->x_pitch) {
    const int own = i - radius, far = own < 0 ? -own : own >= STENCIL_EIGHT ? own - STENCIL_EIGHT + 1 : 0;
    if (i && i % STENCIL_EIGHT == 0) at += p->x_skew;
    if (far && !band_has(p, radius, far)) continue;
    if (i > 2 * radius && i >= rows + 2 * radius) continue;
    const bool odd = own & 1 && p->odd;
    float g[each + 2 * radius];
    if (far) {
      float f[each];
      band_load<size, 0, each>(at, odd, kind, f);
#pragma unroll
      for (int j = 0; j < each; j++) g[radius + j] = f[j];
    } else {
      band_load<size, -radius, each + 2 * radius>(at, odd, kind, g);
      float(&s)[each] = sum[own & 7];
#pragma unroll
      for (int j = 0; j < each; j++) s[j] = fmaf(p->centre, g[radius + j], s[j]);
#pragma unroll
      for (int d = 1; d <= radius; d++) {
        if (!band_has(p, radius, d)) continue;
#pragma unroll
        for (int j = 0; j < each; j++) s[j] = fmaf(p->side[d - 1], g[radius + j + d], fmaf(p->side[d - 1], g[radius + j - d], s[j]));
      }
    }
#pragma unroll
    for (int k = 0; k < STENCIL_EIGHT; k++) {
      const int d = own > k ? own - k : k - own;
      if (d == 0 || d > radius || !band_has(p, radius, d)) continue;
#pragma unroll
      for (int j = 0; j < each; j++) sum[k][j] = fmaf(p->side[(d - 1) & 7], g[radius + j], sum[k][j]);
    }
  }
}

// A row's results, of which the first is not there if `before`, and those from the `count`-th on are not.
template <int each> INLINE void band_put(char *at, int before, int count, int y_kind, const float (&f)[each]) {
  if (y_kind == KIND_FP32 || each % 2) {
#pragma unroll
    for (int j = 0; j < each; j++)
      if (j >= before && j < count) store_one(at, j, y_kind, f[j]);
    return;
  }
  // Words, and the one element that may be left at the end of them.
  const bool odd = (uint32_t)(uintptr_t)at & 2;
  uint32_t word[each / 2], last = 0;
#pragma unroll
  for (int j = 0; j < each / 2; j++) {
    const int k = 2 * j + 1; // of odd ones
    word[j] = odd ? narrow2(f[k], k + 1 < each ? f[(k + 1) & 31] : 0, y_kind) : narrow2(f[2 * j], f[k], y_kind);
    last = count > 2 * j + odd ? word[j] : last;
  }
  if (odd && !before) *(uint16_t *)at = (uint16_t)narrow2(f[0], 0, y_kind);
  if (!odd && before) *(uint16_t *)(at + 2) = (uint16_t)(word[0] >> 16);
#pragma unroll
  for (int j = 0; j < each / 2; j++)
    if (2 * j + 2 + odd <= count && (j || odd || !before)) *(uint32_t *)(at + 4 * j + 2 * odd) = word[j];
  if ((count - odd) % 2 && count > odd) *(uint16_t *)(at + 2 * count - 2) = (uint16_t)last;
}

// `bytes` bytes of results by some lanes, of which this is one: whole chunks, and single elements at the ends.
INLINE void band_send_run(char *to, const char *from, int bytes, int lane, int lanes, int out) {
  const int shift = (int)((uint32_t)(uintptr_t)to & 15);
#pragma unroll 2
  for (int k = lane * 16 - shift; k < bytes; k += lanes * 16) {
    if (k >= 0 && k + 16 <= bytes) *(uint4 *)(to + k) = *(const uint4 *)(from + k);
    else
#pragma unroll
      for (int i = 0; i < 16; i += 2)
        if (i % out == 0 && k + i >= 0 && k + i < bytes) move_one(to + k + i, from + k + i, out);
  }
}

INLINE char *band_result(const StencilBandParams *p, const BandTile &t, int out) { return (char *)p->y + (t.row * p->y_stride + t.column) * out; }

// A tile's results: as one run, or of each row the sectors that begin in the strip, up to the row's end.
INLINE void band_send(const StencilBandParams *p, const BandTile &t, const char *slot, int out) {
  char *y = band_result(p, t, out);
  slot += (uint32_t)(uintptr_t)y & 15;
  if (p->run) {
    band_send_run(y + p->before * out, slot + p->before * out, (int)(t.rows * p->n) * out, threadIdx.x, blockDim.x, out);
    return;
  }
  const int lanes = 1 << p->lane_bits, lane = threadIdx.x & lanes - 1, step = blockDim.x >> p->lane_bits;
  int r = threadIdx.x >> p->lane_bits;
  y += r * p->y_stride * out, slot += r * p->y_pitch;
  for (; r < t.rows; r += step, y += step * p->y_stride * out, slot += step * p->y_pitch) {
    int end = p->columns * out, low = t.column <= 0 ? p->before * out : (int)(-(uint32_t)(uintptr_t)y & 31);
    int high = t.last ? t.columns * out : min(end + (int)(-((uint32_t)(uintptr_t)y + end) & 31), t.columns * out);
    if (low < high) band_send_run(y + low, slot + low, high - low, lane, lanes, out);
  }
}

template <int size, int radius, int each, int kind> INLINE void stencil_band(const StencilBandParams *p) {
  const int group = threadIdx.x / p->groups, first = group * STENCIL_EIGHT, column = (threadIdx.x - group * p->groups) * each;
  const int out = p->y_kind == KIND_FP32 ? 4 : 2;
  let_successor_start();
  wait_for_predecessor();
  uint64_t index = blockIdx.x;
  BandTile t = band_tile(p, index, size, radius);
  char *slot = band_memory, *other = band_memory + p->buffer;
  band_fetch(p, t, slot, size, radius);
#pragma unroll 1
  while (index < p->tiles) {
    wait_for_fetches();
    __syncwarp();
    band_cut(p, t, slot, size, radius);
    __syncthreads(); // the tile is there, and the one before has left
    index += gridDim.x;
    BandTile next = t;
    if (index < p->tiles) {
      next = band_tile(p, index, size, radius);
      band_fetch(p, next, other, size, radius);
    }
    const int rows = min(STENCIL_EIGHT, t.rows - first), columns = min(each, t.columns - column);
    const bool mine = first < p->rows && rows > 0 && columns > 0;
    float sum[STENCIL_EIGHT][each];
    if (mine) band_compute<size, radius, each>(p, slot + t.shift + band_place(p, first) + (radius + column) * size, min(STENCIL_EIGHT, t.rows), kind, sum);
    __syncthreads();
    if (mine) {
      char *at = slot + ((uint32_t)(uintptr_t)band_result(p, t, out) & 15) + first * p->y_pitch + column * out;
      const int before = t.column + column < 0;
#pragma unroll
      for (int k = 0; k < STENCIL_EIGHT; k++) {
        if (k >= rows) break;
        if (size == 4 ? p->y_kind == KIND_FP32 : p->y_kind == kind) band_put(at + k * p->y_pitch, before, columns, kind, sum[k]);
        else band_put(at + k * p->y_pitch, before, columns, p->y_kind, sum[k]);
      }
    }
    __syncthreads();
    band_send(p, t, slot, out);
    char *swap = slot;
    slot = other, other = swap, t = next;
  }
}

#define BAND(name, size, radius, each, blocks)                                                                    \
  KERNEL __launch_bounds__(STENCIL_THREADS, blocks) name(const __grid_constant__ StencilBandParams p) {           \
    if (size == 4) stencil_band<size, radius, each, KIND_FP32>(&p);                                               \
    else if (p.x_kind == KIND_FP16) stencil_band<size, radius, each, KIND_FP16>(&p);                              \
    else stencil_band<size, radius, each, KIND_BF16>(&p);                                                         \
  }

#endif
#endif
