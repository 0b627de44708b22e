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
  int64_t row; // the first of y
  uint32_t strip;
  const char *x;     // the first element that is read: above and before the tile
  char *y;           // the first result
  int rows, columns; // of y; columns with those computed beyond the strip
  int left;          // columns from the first to the row's end, as far as they matter
} BandTile;

INLINE int band_shift(const BandTile &t) { return (int)((uint32_t)(uintptr_t)t.x & 15); }

// What is there of the tile.
INLINE void band_extent(const StencilBandParams *p, int radius, BandTile *t) {
  int64_t left = p->n + p->before - (int64_t)t->strip * p->columns;
  t->rows = (int)min((int64_t)p->rows, p->m - t->row);
  t->columns = (int)min((int64_t)p->columns + p->beyond, left);
  t->left = (int)min((int64_t)p->columns + p->beyond + radius, left);
}

INLINE BandTile band_first(const StencilBandParams *p, int size, int radius, int out) {
  uint32_t band = blockIdx.x / p->strips;
  BandTile t;
  t.row = (int64_t)band * p->rows, t.strip = blockIdx.x - band * p->strips;
  int64_t column = (int64_t)t.strip * p->columns - p->before;
  t.x = (const char *)p->x + ((t.row - radius) * p->x_stride + column - radius) * size;
  t.y = (char *)p->y + (t.row * p->y_stride + column) * out;
  band_extent(p, radius, &t);
  return t;
}

// The block's next tile, as many tiles on as there are blocks.
INLINE BandTile band_next(const StencilBandParams *p, int radius, BandTile t) {
  t.row += p->row_step, t.strip += p->strip_step, t.x += p->x_step, t.y += p->y_step;
  if (t.strip >= p->strips) t.row += p->rows, t.strip -= p->strips, t.x += p->x_turn, t.y += p->y_turn;
  band_extent(p, radius, &t);
  return t;
}

// Where row `r` of a tile lies in shared memory. After eight rows some bytes are left free, so that the lanes of a warp that have other rows find other banks.
INLINE int band_place(const StencilBandParams *p, int r) { return r * p->x_pitch + r / STENCIL_EIGHT * p->x_skew; }

// Rows that a tile has in shared memory: whole eights and those around them. Those that x does not have are zeros.
INLINE int band_depth(const BandTile &t, int radius) { return (t.rows + STENCIL_EIGHT - 1) / STENCIL_EIGHT * STENCIL_EIGHT + 2 * radius; }

INLINE void band_fetch(const StencilBandParams *p, const BandTile &t, char *slot, int size, int radius) {
  const int lanes = 1 << p->lane_bits, lane = (threadIdx.x & lanes - 1) * 16, step = blockDim.x >> p->lane_bits, depth = band_depth(t, radius);
  const int bytes = (t.columns + 2 * radius) * size, base = band_shift(t);
  const bool edge = t.row < p->inner || t.row + p->rows > p->inner_end; // some chunks may be partly outside of x
  int r = threadIdx.x >> p->lane_bits;
  const char *at = t.x + r * p->x_stride * size;
#pragma unroll 1
  for (; r < depth; r += step, at += step * p->x_stride * size) {
    int place = base + band_place(p, r), shift = place & 15;
    const bool there = (uint64_t)(t.row - radius + r) < (uint64_t)p->m;
    const char *from = at - shift;
    char *to = slot + place - shift;
    const int end = there ? shift + bytes : 0;
    int k = lane;
    if (edge) {
#pragma unroll 1
      for (; k < end; k += lanes * 16) *(uint4 *)(to + k) = load_singly(from + k, (const char *)p->x, (const char *)p->x_end, size);
    } else {
#pragma unroll 1
      for (; k < end; k += lanes * 16) fetch16(to + k, from + k);
    }
#pragma unroll 1
    for (; k < p->slot; k += lanes * 16) *(uint4 *)(to + k) = make_uint4(0, 0, 0, 0); // that lanes beyond the columns read
  }
}

// Zeros beyond the rows' ends, by the lanes that copied a row.
INLINE void band_cut(const StencilBandParams *p, const BandTile &t, char *slot, int size, int radius) {
  if (t.strip && t.left >= t.columns + radius) return;
  const int lanes = 1 << p->lane_bits, lane = threadIdx.x & lanes - 1, step = blockDim.x >> p->lane_bits, depth = band_depth(t, radius);
#pragma unroll 1
  for (int r = threadIdx.x >> p->lane_bits; r < depth; r += step) {
    char *row = slot + band_shift(t) + band_place(p, r) + radius * size;
    if (!t.strip)
      for (int j = lane; j < radius + p->before; j += lanes) store_one(row, j - radius, size == 4 ? KIND_FP32 : KIND_FP16, 0);
    for (int j = t.left + lane; j < t.columns + radius; j += lanes) store_one(row, j, size == 4 ? KIND_FP32 : KIND_FP16, 0);
  }
}

INLINE uint32_t band_word(uint32_t at) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at));
  return word;
}

// g: `count` columns from `first` on, of which column 0 is at `at`. place: whether that is the second half of a word.
template <int size, int place, int first, int count, int space> INLINE void band_take(uint32_t at, int kind, float (&g)[space]) {
  if (size == 4) {
#pragma unroll
    for (int i = 0; i < count; i++) g[i] = __uint_as_float(band_word(at + (first + i) * 4));
    return;
  }
  constexpr int from = (first + place) >> 1; // of words, rounded down
#pragma unroll
  for (int q = 0; 2 * (q + from) - place < first + count; q++) {
    const int i = 2 * (q + from) - place - first;
    float2 f = widen2(band_word(at + 4 * (q + from) - 2 * place), kind);
    if (i >= 0 && i < count) g[i & 31] = f.x;
    if (i + 1 >= 0 && i + 1 < count) g[(i + 1) & 31] = f.y;
  }
}

// The same wherever the row starts; odd: `at` is the second half of a word.
template <int size, int first, int count, int space> INLINE void band_load(uint32_t at, bool odd, int kind, float (&g)[space]) {
  if (size == 2 && odd) band_take<size, 1, first, count>(at, kind, g);
  else band_take<size, 0, first, count>(at, kind, g);
}

// Whether distance d of a kernel for radii from half of `radius` on has a part in it.
INLINE bool band_has(const StencilBandParams *p, int radius, int d) { return radius <= 3 || d <= (radius > 5 ? radius - 2 : radius - 1) || d <= p->radius; }

// at: the thread's first column of the row `radius` above its first; few: rows of a tile of up to half of eight.
template <int size, int radius, int each>
INLINE void band_compute(const StencilBandParams *p, uint32_t at, bool few, int kind, float (&sum)[STENCIL_EIGHT][each]) {
#pragma unroll
  for (int k = 0; k < STENCIL_EIGHT; k++)
#pragma unroll
    for (int j = 0; j < each; j++) sum[k][j] = 0;
#pragma unroll
  for (int i = 0; i < STENCIL_EIGHT + 2 * radius; i++, at += p->x_pitch) {
    const int own = i - radius, far = own < 0 ? -own : own >= STENCIL_EIGHT ? own - STENCIL_EIGHT + 1 : 0;
    if (i && i % STENCIL_EIGHT == 0) at += p->x_skew;
    if (far && !band_has(p, radius, far)) continue;
    if (i == 2 * radius + STENCIL_EIGHT / 2 && few) break;
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
      const bool first = radius <= 3 && d == radius && own < k; // of this sum
#pragma unroll
      for (int j = 0; j < each; j++) sum[k][j] = fmaf(p->side[(d - 1) & 7], g[radius + j], first ? 0 : sum[k][j]);
    }
  }
}

// A row's results, those from the `before`-th on that are less than `count`, one by one.
template <int each> INLINE void band_put_singly(char *at, int before, int count, int y_kind, const float (&f)[each]) {
#pragma unroll
  for (int j = 0; j < each; j++)
    if (j >= before && j < count) store_one(at, j, y_kind, f[j]);
}

// The first `count` results of a row, of which there is one at least, by words. place: whether they start with the second half of one.
template <int place, int each> INLINE void band_put_words(char *at, int count, int y_kind, const float (&f)[each]) {
  uint32_t word[each / 2], last = 0;
  if (place) *(uint16_t *)at = (uint16_t)narrow2(f[0], 0, y_kind);
#pragma unroll
  for (int j = 0; j < each / 2; j++) {
    const int k = 2 * j + place;
    word[j] = narrow2(f[k], k + 1 < each ? f[(k + 1) & 31] : 0, y_kind);
    if (k + 1 < count) *(uint32_t *)(at + 2 * k) = word[j];
    last = k < count ? word[j] : last;
  }
  if ((count - place) % 2) *(uint16_t *)(at + 2 * count - 2) = (uint16_t)last;
}

// A thread's results. y_odd: the tile's first row of y starts with the second half of a word.
template <int each>
INLINE void band_put(const StencilBandParams *p, char *at, int rows, int before, int count, bool y_odd, int y_kind, const float (&sum)[STENCIL_EIGHT][each]) {
  const bool words = y_kind != KIND_FP32 && each % 2 == 0 && !p->before;
#pragma unroll
  for (int k = 0; k < STENCIL_EIGHT; k++, at += p->y_pitch) {
    if (k >= rows) break;
    if (!words) band_put_singly(at, before, count, y_kind, sum[k]);
    else if (y_odd != (k % 2 && p->y_turns)) band_put_words<1>(at, count, y_kind, sum[k]);
    else band_put_words<0>(at, count, y_kind, sum[k]);
  }
}

// The same, with fewer instructions where a warp's lanes have all that they may have.
template <int each>
INLINE void band_put_all(const StencilBandParams *p, char *at, int rows, int before, int count, bool y_odd, bool whole, int y_kind, const float (&sum)[STENCIL_EIGHT][each]) {
  if (whole) band_put(p, at, STENCIL_EIGHT, 0, each, y_odd, y_kind, sum);
  else band_put(p, at, rows, before, count, y_odd, y_kind, sum);
}

// `bytes` bytes of results by some lanes, of which this is one: whole chunks, and single elements at the ends.
INLINE void band_send_run(char *to, const char *from, int bytes, int lane, int lanes, int out) {
  const int head = min((int)(-(uint32_t)(uintptr_t)to & 15), bytes), end = bytes - (bytes - head) % 16;
#pragma unroll 2
  for (int k = head + lane * 16; k < end; k += lanes * 16) *(uint4 *)(to + k) = *(const uint4 *)(from + k);
  if (!head && end == bytes) return;
#pragma unroll 1
  for (int i = lane * out; i < head; i += lanes * out) move_one(to + i, from + i, out);
#pragma unroll 1
  for (int i = end + lane * out; i < bytes; i += lanes * out) move_one(to + i, from + i, out);
}

// A tile's results: as one run, or of each row the sectors that begin in the strip, up to the row's end.
INLINE void band_send(const StencilBandParams *p, const BandTile &t, const char *slot, int out) {
  char *y = t.y;
  slot += (uint32_t)(uintptr_t)y & 15;
  if (p->run) {
    band_send_run(y + p->before * out, slot + p->before * out, t.rows * (int)p->n * out, threadIdx.x, blockDim.x, out);
    return;
  }
  const int lanes = 1 << p->lane_bits, lane = threadIdx.x & lanes - 1, step = blockDim.x >> p->lane_bits, end = p->columns * out;
  int r = threadIdx.x >> p->lane_bits;
  y += r * p->y_stride * out, slot += r * p->y_pitch;
#pragma unroll 1
  for (; r < t.rows; r += step, y += step * p->y_stride * out, slot += step * p->y_pitch) {
    int low = t.strip ? (int)(-(uint32_t)(uintptr_t)y & 31) : p->before * out, high = t.columns * out;
    if (t.strip + 1 < p->strips) high = min(high, end + (int)(-((uint32_t)(uintptr_t)y + end) & 31));
    if (low < high) band_send_run(y + low, slot + low, high - low, lane, lanes, out);
  }
}

template <int size, int radius, int each, int kind> INLINE void stencil_band(const StencilBandParams *p) {
  const int group = threadIdx.x / p->groups, first = group * STENCIL_EIGHT, column = (threadIdx.x - group * p->groups) * each;
  const int out = p->y_kind == KIND_FP32 ? 4 : 2;
  let_successor_start();
  wait_for_predecessor();
  BandTile t = band_first(p, size, radius, out);
  char *slot = band_memory, *other = band_memory + p->buffer;
  band_fetch(p, t, slot, size, radius);
#pragma unroll 1
  while (t.row < p->m) {
    wait_for_fetches();
    __syncwarp();
    band_cut(p, t, slot, size, radius);
    __syncthreads(); // the tile is there, and the one before has left
    const BandTile next = band_next(p, radius, t);
    if (next.row < p->m) band_fetch(p, next, other, size, radius);
    const int rows = t.rows - first, columns = min(each, t.columns - column), before = p->before && !t.strip && !column;
    const bool mine = first < p->rows && rows > 0 && columns > 0;
    float sum[STENCIL_EIGHT][each];
    if (mine) {
      uint32_t at = tile_address(slot) + band_shift(t) + band_place(p, first) + (radius + column) * size;
      band_compute<size, radius, each>(p, at, t.rows <= STENCIL_EIGHT / 2, kind, sum);
    }
    __syncthreads();
    const bool whole = __all_sync(~0u, !mine || (rows >= STENCIL_EIGHT && columns == each && !before));
    if (mine) {
      const uint32_t y = (uint32_t)(uintptr_t)t.y;
      char *at = slot + (y & 15) + first * p->y_pitch + column * out;
      if (p->y_kind == KIND_FP32) band_put_all(p, at, rows, before, columns, y & 2, whole, KIND_FP32, sum);
      else if (p->y_kind == KIND_FP16) band_put_all(p, at, rows, before, columns, y & 2, whole, KIND_FP16, sum);
      else band_put_all(p, at, rows, before, columns, y & 2, whole, KIND_BF16, sum);
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
