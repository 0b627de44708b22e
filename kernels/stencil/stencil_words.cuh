// Rows that start anywhere: a thread has two words of each of eight rows, four columns of 2-byte elements or two of fp32, and reads words that are
// aligned in memory. Where a row starts at an odd element, its words are put together of two. As eight rows are below each other and the next
// thread's start as many further down, rows of all threads start alike.
#ifndef SOL_KERNELS_STENCIL_WORDS_CUH
#define SOL_KERNELS_STENCIL_WORDS_CUH

#include "common.cuh"
#include "stencil.h"

enum { WORDS_OWN = 2 }; // of a thread, of each row

// Constants of a kernel, as literals.
typedef struct WordsShape {
  int size, radius; // bytes of an element of x; the largest radius
  int kind, y_kind; // y_kind: -1: known at run time
  int edges;        // some columns or rows around may not be there
} WordsShape;

typedef struct WordsPlace {
  int64_t row, column; // a thread's first
  const char *x;
  char *y;
  bool ends; // words around may be beyond the ends of the tensor
} WordsPlace;

INLINE int words_has(int radius, const StencilParams *p, int d) { return d <= (radius > 2 ? radius / 2 + 1 : radius) || d <= p->radius; }

// Words on either side of the thread's own that row i, counted from the thread's first, needs.
INLINE int words_sides(WordsShape s, int i) {
  return i < 0 || i >= STENCIL_WORD_ROWS ? 0 : s.size == 4 ? s.radius : (s.radius + 1) / 2;
}

// Row i starts at an odd element of 2 bytes. All rows of all threads that are a multiple of two apart are alike.
INLINE bool words_odd(WordsShape s, const StencilParams *p, int i) {
  return s.size == 2 && ((uint32_t)(uintptr_t)p->x + (uint32_t)(i & 1) * (uint32_t)p->x_stride * 2) & 2;
}

// As it is loaded: nothing waits for it here.
INLINE uint32_t words_one(const char *at) {
  uint32_t u;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(u) : "l"(__cvta_generic_to_global(at)));
  return u;
}

// The same near the ends of the tensor: no word that is not wholly x's is loaded. Of one that is so in part x's first or last element is.
INLINE uint32_t words_near(const char *at, const StencilParams *p, int size) {
  const char *from = (uint64_t)at < p->low ? (const char *)p->low : (uint64_t)at > p->high ? (const char *)p->high : at;
  uint32_t u = words_one(from);
  if (size == 2 && from > at) u = (uint32_t) * (const uint16_t *)p->x << 16;
  if (size == 2 && from < at) u = *(const uint16_t *)p->last;
  return u;
}

// Whether row i has a part in it.
INLINE bool words_there(WordsShape s, const StencilParams *p, const WordsPlace &t, int i) {
  const int far = i < 0 ? -i : i >= STENCIL_WORD_ROWS ? i - STENCIL_WORD_ROWS + 1 : 0;
  return (!far || words_has(s.radius, p, far)) && (!s.edges || (uint64_t)(t.row + i) < (uint64_t)p->m);
}

// Its words: those on both sides, the thread's own, and one more where the row starts at an odd element.
INLINE void words_load(WordsShape s, const StencilParams *p, const WordsPlace &t, int i, uint32_t *w) {
  const int sides = words_sides(s, i), count = WORDS_OWN + 2 * sides;
  if (!words_there(s, p, t, i)) return;
  const char *at = t.x + i * (p->x_stride * s.size);
  bool odd = words_odd(s, p, i);
  if (odd) at -= 2;
  if (s.edges && t.ends) {
#pragma unroll
    for (int q = 0; q <= count; q++) w[q] = words_near(at + 4 * (q - sides), p, s.size);
    return;
  }
#pragma unroll
  for (int q = 0; q < count; q++) w[q] = words_one(at + 4 * (q - sides));
  if (odd) w[count] = words_one(at + 4 * (count - sides));
}

// Its columns as floats, from those of the first word on; those that are not the row's are zero.
INLINE void words_floats(WordsShape s, const StencilParams *p, const WordsPlace &t, int i, const uint32_t *w, float *f) {
  const int sides = words_sides(s, i), per = 4 / s.size, count = WORDS_OWN + 2 * sides;
  uint32_t pick = words_odd(s, p, i) ? 0x5432 : 0x3210;
#pragma unroll
  for (int q = 0; q < count; q++) {
    if (s.size == 4) {
      f[q] = __uint_as_float(w[q]);
    } else {
      float2 two = widen2(__byte_perm(w[q], w[q + 1], pick), s.kind);
      f[2 * q] = two.x, f[2 * q + 1] = two.y;
    }
  }
  if (!s.edges) return;
  int before = (int)min(t.column, (int64_t)1 << 20) - sides * per, left = (int)min(p->n - t.column, (int64_t)1 << 20) + sides * per;
#pragma unroll
  for (int j = 0; j < count * per; j++)
    if ((j < sides * per && before + j < 0) || j >= left) f[j] = 0;
}

// Results of a row; `left`: columns that it still has.
INLINE void words_store(WordsShape s, const StencilParams *p, char *to, int64_t left, const float *f) {
  const int columns = WORDS_OWN * 4 / s.size, kind = s.y_kind < 0 ? p->y_kind : s.y_kind, half = columns / 2;
  if (s.edges && left < columns) {
#pragma unroll
    for (int j = 0; j < columns; j++)
      if (j < left) store_one(to, j, kind, f[j]);
  } else if (kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < columns; j += 2) {
      if (p->y_unit >= 8) *(float2 *)(to + 4 * j) = make_float2(f[j], f[j + 1]);
      else ((float *)to)[j] = f[j], ((float *)to)[j + 1] = f[j + 1];
    }
  } else if (columns == 4 && p->y_unit >= 8) {
    *(uint2 *)to = make_uint2(narrow2(f[0], f[1], kind), narrow2(f[half], f[columns - 1], kind));
  } else if (!((uint32_t)(uintptr_t)to & 2)) {
#pragma unroll
    for (int j = 0; j < columns; j += 2) *(uint32_t *)(to + 2 * j) = narrow2(f[j], f[j + 1], kind);
  } else {
    uint32_t ends = narrow2(f[0], f[columns - 1], kind);
    *(uint16_t *)to = (uint16_t)ends;
    if (columns == 4) *(uint32_t *)(to + 2) = narrow2(f[1], f[half], kind);
    *(uint16_t *)(to + 2 * columns - 2) = (uint16_t)(ends >> 16);
  }
}

// Row i, of floats f, to all sums it contributes to.
INLINE void words_add(WordsShape s, const StencilParams *p, int i, const float *f, float (&sum)[STENCIL_WORD_ROWS][4]) {
  const int per = 4 / s.size, columns = WORDS_OWN * per, own = words_sides(s, i) * per;
#pragma unroll
  for (int k = 0; k < STENCIL_WORD_ROWS; k++) {
    const int d = i > k ? i - k : k - i;
    if (d > s.radius || (d && !words_has(s.radius, p, d))) continue;
    float by = d ? p->side[(d - 1) & 7] : p->centre;
#pragma unroll
    for (int j = 0; j < columns; j++) sum[k][j] = fmaf(by, f[own + j], sum[k][j]);
#pragma unroll
    for (int e = 1; e <= s.radius && !d; e++) {
      if (!words_has(s.radius, p, e)) continue;
#pragma unroll
      for (int j = 0; j < columns; j++)
        sum[k][j] = fmaf(p->side[e - 1], f[own + j + e], fmaf(p->side[e - 1], f[own + j - e], sum[k][j]));
    }
  }
}

INLINE void words_rows(WordsShape s, const StencilParams *p, const WordsPlace &t) {
  const int rows = STENCIL_WORD_ROWS, all = rows + 2 * s.radius;
  const int ahead = s.edges ? 6 : s.radius == 1 ? all : 8; // rows whose loads are in flight
  const int64_t y_step = p->y_stride * ((s.y_kind < 0 ? p->y_kind : s.y_kind) == KIND_FP32 ? 4 : 2);
  uint32_t w[rows + 8][WORDS_OWN + 2 * 4 + 1];
  float sum[rows][4];
#pragma unroll
  for (int k = 0; k < rows; k++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[k][j] = 0;
#pragma unroll
  for (int a = 0; a < ahead && a < all; a++) words_load(s, p, t, a - s.radius, w[a]);
#pragma unroll
  for (int a = 0; a < all; a++) {
    const int i = a - s.radius, done = i - s.radius;
    if (a + ahead < all) words_load(s, p, t, i + ahead, w[a + ahead]);
    if (words_there(s, p, t, i)) {
      float f[12];
      words_floats(s, p, t, i, w[a], f);
      words_add(s, p, i, f, sum);
    }
    if (done >= 0 && (!s.edges || t.row + done < p->m)) words_store(s, p, t.y + done * y_step, p->n - t.column, sum[done]);
  }
}

INLINE void words_of(int size, int radius, int kind, bool inside, const StencilParams *p, const WordsPlace &t) {
  if (p->y_kind == kind && inside) words_rows((WordsShape){size, radius, kind, kind, 0}, p, t);
  else words_rows((WordsShape){size, radius, kind, -1, 1}, p, t);
}

// Threads of a block next to each other have the columns of p->across pairs of words; the others the rows below.
INLINE void stencil_words(int size, int radius, const StencilParams *p) {
  const int columns = WORDS_OWN * 4 / size, around = (size == 4 ? radius : (radius + 1) / 2 * 2) + 1; // columns that are read on either side, at most
  const int across = (int)p->across, down = STENCIL_THREADS / across, rows = STENCIL_WORD_ROWS;
  uint64_t tile = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, below, strip;
  if (tile >= p->tiles) return;
  split(tile, p->strips, &below, &strip);
  int within = across > 1 ? (int)__umulhi(threadIdx.x, p->over) : (int)threadIdx.x;
  WordsPlace t;
  t.row = ((int64_t)below * down + within) * rows, t.column = ((int64_t)strip * across + (int)threadIdx.x - within * across) * columns;
  if (within >= down || t.row >= p->m || t.column >= p->n) return;
  t.x = (const char *)p->x + (t.row * p->x_stride + t.column) * size;
  t.y = (char *)p->y + (t.row * p->y_stride + t.column) * (p->y_kind == KIND_FP32 ? 4 : 2);
  int kind = size == 4 ? KIND_FP32 : p->x_kind;
  // What is read lies between these; both are elements from x's first on.
  int64_t low = max(t.row - radius, (int64_t)0) * p->x_stride + t.column - around;
  int64_t high = min(t.row + rows - 1 + radius, p->m - 1) * p->x_stride + t.column + columns + around;
  t.ends = low < 0 || high > (p->m - 1) * p->x_stride + p->n;
  bool inside = t.row >= radius && t.row + rows + radius <= p->m && t.column >= around && t.column + columns + around <= p->n;
  inside = __all_sync(__activemask(), inside);
  if (size == 4) words_of(size, radius, KIND_FP32, inside, p, t);
  else if (kind == KIND_FP16) words_of(size, radius, KIND_FP16, inside, p, t);
  else words_of(size, radius, KIND_BF16, inside, p, t);
}

#endif
