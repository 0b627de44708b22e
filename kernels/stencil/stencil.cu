// y = centre * x + sum over d of side[d-1] * (x at distance d along each axis)
//
// No tile: a thread computes a few columns of a few rows below each other and reads whatever it needs through the L1
// cache, where it hits, for its neighbours have read it, too. What is above and below is read once for all of
// a thread's rows; every row that arrives is added to all sums it contributes to. There are no barriers.
#include "funnel.cuh"
#include "stencil.h"
#include "stencil_band.cuh"
#include "stencil_strip.cuh"
#include "stencil_tensor.cuh"
#include "stencil_walk.cuh"

// Constants of a kernel, as literals.
typedef struct StencilShape {
  int size, radius; // bytes of an element of x; the largest radius
  int rows;         // of a thread
  int layout;       // StencilLayout
  int wide;         // whether it is STENCIL_WIDE
  int columns;      // of a thread
} StencilShape;

// One element, or zero. A predicated load, as load_if is.
INLINE float load_one_if(const char *at, int wanted, int kind) {
  uint32_t u;
  if (kind == KIND_FP32)
    asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n mov.u32 %0, 0;\n @p ld.global.u32 %0, [%1];\n}"
                 : "=r"(u)
                 : "l"(__cvta_generic_to_global(at)), "r"(wanted));
  else
    asm volatile("{\n .reg .pred p;\n .reg .u16 h;\n setp.ne.s32 p, %2, 0;\n mov.u16 h, 0;\n @p ld.global.u16 h, [%1];\n"
                 " cvt.u32.u16 %0, h;\n}"
                 : "=r"(u)
                 : "l"(__cvta_generic_to_global(at)), "r"(wanted));
  return kind == KIND_FP32 ? __uint_as_float(u) : widen2(u, kind).x;
}

// `sure`: they are needed, as a compile-time constant.
INLINE uint4 load_vector(const char *at, int wanted, int sure) {
  return sure ? *(const uint4 *)at : load_if(at, wanted);
}

INLINE float load_single(const char *at, int wanted, int sure, int kind) {
  return sure ? load_one(at, 0, kind) : load_one_if(at, wanted, kind);
}

// Whether distance d of a kernel, for radii above half of `s.radius` where that is more than 3, has a part in it; and whether it always has.
INLINE int stencil_always(StencilShape s, int d) { return d <= (s.radius > 3 ? s.radius / 2 + 1 : s.radius); }
INLINE int stencil_has(StencilShape s, const StencilParams *p, int d) { return stencil_always(s, d) || d <= p->radius; }

// sum += centre * f and the neighbours in the row. `at`: this thread's first column; `before` and `after` it there are that
// many columns; `inside`: enough of them.
INLINE void stencil_across(StencilShape s, const StencilParams *p, const char *at, int64_t before, int64_t after, int here,
                           int inside, int kind, const float *f, float *sum) {
  const int w = s.columns, sides = s.wide ? (s.radius + w - 1) / w : 0;
  float g[24];
#pragma unroll
  for (int j = 0; j < w; j++) sum[j] = fmaf(p->centre, f[j], sum[j]);
  if (s.wide) {
#pragma unroll
    for (int q = -sides; q <= sides; q++) {
      Vec v;
      if (q) v.v = load_vector(at + q * 16, here && before >= -q * w && after > q * w, inside);
      if (q) widen(&v, kind, s.size, g + (q + sides) * w);
    }
#pragma unroll
    for (int j = 0; j < w; j++) g[sides * w + j] = f[j];
  }
#pragma unroll
  for (int d = 1; d <= s.radius; d++) {
    if (!stencil_has(s, p, d)) continue;
    float by = p->side[d - 1];
#pragma unroll
    for (int j = 0; j < w; j++) {
      float left, right;
      if (s.wide) {
        left = g[sides * w + j - d], right = g[sides * w + j + d];
      } else {
        int left_too = here && before + 32 * j >= d && after > 32 * j - d, right_too = here && after > 32 * j + d;
        left = load_single(at + (32 * j - d) * s.size, left_too, inside, kind);
        right = load_single(at + (32 * j + d) * s.size, right_too, inside, kind);
      }
      sum[j] = fmaf(by, right, fmaf(by, left, sum[j]));
    }
  }
}

// Inline PTX: assigned as a float4 or a uint2, nvcc splits them into single stores here.
INLINE void store_four(float *to, const float *f) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(f[0]), "f"(f[1]),
               "f"(f[2]), "f"(f[3])
               : "memory");
}

// A vector of 4 or 8 columns.
INLINE void stencil_out(const StencilParams *p, int64_t at, int columns, const float *f) {
  if (p->y_kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < columns; j += 4) store_four((float *)p->y + at + j, f + j);
  } else if (columns == 8) {
    Vec v;
    narrow(&v, p->y_kind, 2, f);
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global((uint16_t *)p->y + at)),
                 "r"(v.u[0]), "r"(v.u[1]), "r"(v.u[2]), "r"(v.u[3])
                 : "memory");
  } else {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global((uint16_t *)p->y + at)),
                 "r"(narrow2(f[0], f[1], p->y_kind)), "r"(narrow2(f[2], f[3], p->y_kind))
                 : "memory");
  }
}

typedef struct StencilPlace {
  int64_t row, column; // a thread's first
  int64_t after;       // columns from there on
  int top, end;        // rows of x around `row`: from -top on, before end
} StencilPlace;

INLINE StencilPlace stencil_place(StencilShape s, const StencilParams *p, int64_t row, int64_t column) {
  int top = row < s.radius ? (int)row : s.radius, end = p->m - row < s.rows + s.radius ? (int)(p->m - row) : s.rows + s.radius;
  return {row, column, p->n - column, top, end};
}

// `inside`: all around the warp's rows and columns is x.
INLINE void stencil_rows(StencilShape s, const StencilParams *p, StencilPlace t, int inside, int kind) {
  const int w = s.columns;
  const char *x = (const char *)p->x + (t.row * p->x_stride + t.column) * s.size;
  float sum[8][8];
#pragma unroll
  for (int k = 0; k < s.rows; k++)
#pragma unroll
    for (int j = 0; j < w; j++) sum[k][j] = 0;
#pragma unroll
  for (int i = -s.radius; i < s.rows + s.radius; i++) {
    const char *at = x + i * p->x_stride * s.size;
    const int far = i < 0 ? -i : i >= s.rows ? i - s.rows + 1 : 0; // from the nearest of the thread's rows
    const int sure = inside && stencil_always(s, far);
    int here = (inside || (i >= -t.top && i < t.end)) && stencil_has(s, p, far);
    float f[8];
    if (s.wide) {
      Vec v;
      v.v = load_vector(at, here && (inside || t.after > 0), sure);
      widen(&v, kind, s.size, f);
    } else {
#pragma unroll
      for (int j = 0; j < w; j++)
        f[j] = load_single(at + 32 * j * s.size, here && (inside || t.after > 32 * j), sure, kind);
    }
    if (!far) stencil_across(s, p, at, t.column, t.after, here, inside, kind, f, sum[i & 7]);
#pragma unroll
    for (int k = 0; k < s.rows; k++) {
      const int d = i > k ? i - k : k - i;
      if (d == 0 || d > s.radius || !stencil_has(s, p, d)) continue;
#pragma unroll
      for (int j = 0; j < w; j++) sum[k][j] = fmaf(p->side[(d - 1) & 7], f[j], sum[k][j]);
    }
  }
#pragma unroll
  for (int k = 0; k < s.rows; k++) {
    int64_t to = (t.row + k) * p->y_stride + t.column;
    if (!inside && k >= t.end) break;
    if (s.wide) {
      if (inside || t.after > 0) stencil_out(p, to, w, sum[k]);
      continue;
    }
#pragma unroll
    for (int j = 0; j < w; j++)
      if (inside || t.after > 32 * j) store_one(p->y, to + 32 * j, p->y_kind, sum[k][j]);
  }
}

// Prefetches into L2 what a later block will load: `lines` ranges of `bytes` bytes, one a thread, `step` apart.
INLINE void stencil_fetch(const char *at, int lines, int64_t step, int bytes) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x >= lines) return;
  at += threadIdx.x * step;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes));
#endif
}

INLINE void stencil_2d(StencilShape s, const StencilParams *p, int kind) {
  const int w = s.columns, lines = p->warps_down * s.rows, across_warps = STENCIL_THREADS / 32 / p->warps_down;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, down, across;
  if (s.wide && p->ahead && block + p->ahead < p->tiles) {
    split(block + p->ahead, p->strips, &down, &across);
    int64_t row = (int64_t)down * lines, column = (int64_t)across * (32 * w) * across_warps;
    if (row + lines <= p->m && column + 32 * w * across_warps <= p->n)
      stencil_fetch((const char *)p->x + (row * p->x_stride + column) * s.size, lines, p->x_stride * s.size,
                    512 * across_warps);
  }
  if (block >= p->tiles) return;
  split(block, p->strips, &down, &across);
  uint32_t warp = threadIdx.x / 32, below = warp & (p->warps_down - 1);
  int64_t first = ((int64_t)across * across_warps + warp / p->warps_down) * (32 * w);
  StencilPlace t = stencil_place(s, p, ((int64_t)down * p->warps_down + below) * s.rows, first + threadIdx.x % 32 * (s.wide ? w : 1));
  if (t.row >= p->m || first >= p->n) return;
  bool inside = t.top == s.radius && t.end == s.rows + s.radius && first >= 8 && first + 32 * w + 8 <= p->n;
  if (inside) stencil_rows(s, p, t, 1, kind);
  else stencil_rows(s, p, t, 0, kind);
}

// Short rows: neighbouring threads go on in the rows below, so that few lanes idle.
INLINE void stencil_narrow(StencilShape s, const StencilParams *p, int kind) {
  uint64_t thread = thread_index(), below, column;
  if (thread >= p->tiles) return;
  split(thread, p->strips, &below, &column);
  stencil_rows(s, p, stencil_place(s, p, (int64_t)below * s.rows, (int64_t)column * s.columns), 0, kind);
}

// One row, or rows that follow each other: a thread has a vector on x's own boundaries, and loads those on either side of it.
// inside: they are in x, which ends at `end`.
INLINE void stencil_window(StencilShape s, const char *at, const char *x, const char *end, int inside, Vec *v) {
  const int sides = (s.radius + s.columns - 1) / s.columns;
#pragma unroll
  for (int q = -sides; q <= sides; q++) v[q + sides].v = load_if(at + q * 16, inside);
  if (!inside) {
#pragma unroll
    for (int q = -sides; q <= sides; q++) v[q + sides].v = load_singly(at + q * 16, x, end, s.size);
  }
}

// The results of columns from `column` on.
INLINE void stencil_flat_out(StencilShape s, const StencilParams *p, int64_t column, int64_t n, const float *sum) {
  if (p->y_wide && column >= 0 && column + s.columns <= n) {
    stencil_out(p, column, s.columns, sum);
    return;
  }
#pragma unroll
  for (int j = 0; j < s.columns; j++)
    if (column + j >= 0 && column + j < n) store_one(p->y, column + j, p->y_kind, sum[j]);
}

INLINE void stencil_1d(StencilShape s, const StencilParams *p, int kind) {
  const int w = s.columns, own = (s.radius + w - 1) / w * w;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  int64_t column = (int64_t)(block * STENCIL_THREADS + threadIdx.x) * w - p->head;
  const char *x = (const char *)p->x, *at = x + column * s.size;
  Vec v[5];
  float f[24], sum[8];
  if (column >= p->n) return;
  int64_t later = column + (int64_t)p->ahead * STENCIL_THREADS * w; // thread 0's is prefetched
  if (p->ahead && later >= 0 && later + STENCIL_THREADS * w <= p->n)
    stencil_fetch(at + (later - column) * s.size, 1, 0, STENCIL_THREADS * 16);
  stencil_window(s, at, x, x + p->n * s.size, column >= own && column + w + own <= p->n, v);
#pragma unroll
  for (int q = 0; q <= 2 * own / w; q++) widen(&v[q], kind, s.size, f + q * w);
#pragma unroll
  for (int j = 0; j < w; j++) sum[j] = p->centre * f[own + j];
#pragma unroll
  for (int d = 1; d <= s.radius; d++) {
    if (!stencil_has(s, p, d)) break;
#pragma unroll
    for (int j = 0; j < w; j++)
      sum[j] = fmaf(p->side[d - 1], f[own + j + d], fmaf(p->side[d - 1], f[own + j - d], sum[j]));
  }
  stencil_flat_out(s, p, column, p->n, sum);
}

// Distances first .. first + 3 above (way -1) or below (way 1): their loads, then, from the farthest above to the farthest
// below, their part of the sums.
INLINE void stencil_reach(StencilShape s, const StencilParams *p, const char *at, int first, int way, Around *a) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (first + i <= s.radius) a[i] = load_around(at + way * (first + i) * p->n * s.size, stencil_has(s, p, first + i));
}

INLINE void stencil_beyond(StencilShape s, const StencilParams *p, const char *at, int first, int way, const Around *a, int kind,
                           float *sum) {
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int d = first + (way > 0 ? k : 3 - k);
    if (d > s.radius || !stencil_has(s, p, d)) continue;
    const char *from = at + way * d * p->n * s.size;
    Vec v;
    v.v = take_around(a[d - first], from, s.size);
    float f[8];
    widen(&v, kind, s.size, f);
#pragma unroll
    for (int j = 0; j < s.columns; j++) sum[j] = fmaf(p->side[(d - 1) & 7], f[j], sum[j]);
  }
}

// One result of rows without gaps, all accesses checked; in the same order as the others.
INLINE float stencil_single(const StencilParams *p, int64_t i, int column, int kind) {
  float sum = 0;
  int64_t all = p->m * p->n;
#pragma unroll 1
  for (int d = p->radius; d > 0; d--)
    if (i >= d * p->n) sum = fmaf(p->side[d - 1], load_one(p->x, i - d * p->n, kind), sum);
  sum = fmaf(p->centre, load_one(p->x, i, kind), sum);
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++) {
    if (column >= d) sum = fmaf(p->side[d - 1], load_one(p->x, i - d, kind), sum);
    if (column + d < p->n) sum = fmaf(p->side[d - 1], load_one(p->x, i + d, kind), sum);
  }
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++)
    if (i + d * p->n < all) sum = fmaf(p->side[d - 1], load_one(p->x, i + d * p->n, kind), sum);
  return sum;
}

// The centre and the neighbours in the row, of f, whose element `own` is the thread's first: it is in column c. Those count that are in
// the same row.
INLINE void stencil_in_row(StencilShape s, const StencilParams *p, int c, int own, const float *f, float *sum) {
  const int w = s.columns;
  int n = (int)p->n;
  bool all = n > STENCIL_SHORT && c >= s.radius && c + w + s.radius <= n; // of short rows few are, and a branch costs more
#pragma unroll
  for (int j = 0; j < w; j++) sum[j] = fmaf(p->centre, f[own + j], sum[j]);
  if (all) {
#pragma unroll
    for (int d = 1; d <= s.radius; d++) {
      if (!stencil_has(s, p, d)) continue;
#pragma unroll
      for (int j = 0; j < w; j++) sum[j] = fmaf(p->side[d - 1], f[own + j + d], fmaf(p->side[d - 1], f[own + j - d], sum[j]));
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < w; j++, c = c + 1 == n ? 0 : c + 1) {
#pragma unroll
    for (int d = 1; d <= s.radius; d++) {
      if (!stencil_has(s, p, d)) continue;
      if (c >= d) sum[j] = fmaf(p->side[d - 1], f[own + j - d], sum[j]);
      if (c + d < n) sum[j] = fmaf(p->side[d - 1], f[own + j + d], sum[j]);
    }
  }
}

// Rows without gaps are one long row: what is above and below is n elements away.
INLINE void stencil_dense(StencilShape s, const StencilParams *p, int kind) {
  const int w = s.columns, own = (s.radius + w - 1) / w * w;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, row, column;
  int64_t first = (int64_t)(block * STENCIL_THREADS + threadIdx.x) * w - p->head, all = p->m * p->n;
  if (first >= all) return;
  const char *x = (const char *)p->x, *at = x + first * s.size;
  int64_t far = max((int64_t)own, p->n * p->radius + w); // that is read on either side
  split(first < 0 ? 0 : (uint64_t)first, (uint64_t)p->n, &row, &column);
  int n = (int)p->n, c = first < 0 ? (int)first : (int)column;
  if (first < far || first + w + far > all) {
#pragma unroll 1
    for (int j = 0; j < w; j++, c = c + 1 == n ? 0 : c + 1)
      if (first + j >= 0 && first + j < all) store_one(p->y, first + j, p->y_kind, stencil_single(p, first + j, c, kind));
    return;
  }
  int64_t later = first + (int64_t)p->ahead * STENCIL_THREADS * w; // thread 0's is prefetched
  if (p->ahead && later >= 0 && later + STENCIL_THREADS * w <= all)
    stencil_fetch(at + (later - first) * s.size, 1, 0, STENCIL_THREADS * 16);
  const bool at_once = s.radius <= 2; // all loads, where registers hold them
  Vec v[5];
  Around up[4], down[4];
  float f[24], sum[8];
  if (at_once) {
    stencil_window(s, at, x, x, 1, v);
    stencil_reach(s, p, at, 1, 1, down);
  }
#pragma unroll
  for (int j = 0; j < w; j++) sum[j] = 0;
#pragma unroll
  for (int d = (s.radius - 1) / 4 * 4 + 1; d > 0; d -= 4) {
    stencil_reach(s, p, at, d, -1, up);
    stencil_beyond(s, p, at, d, -1, up, kind, sum);
  }
  if (!at_once) stencil_window(s, at, x, x, 1, v);
#pragma unroll
  for (int q = 0; q <= 2 * own / w; q++) widen(&v[q], kind, s.size, f + q * w);
  stencil_in_row(s, p, c, own, f, sum);
#pragma unroll
  for (int d = 1; d <= s.radius; d += 4) {
    if (!at_once) stencil_reach(s, p, at, d, 1, down);
    stencil_beyond(s, p, at, d, 1, down, kind, sum);
  }
  stencil_flat_out(s, p, first, all, sum);
}

INLINE void stencil_of(StencilShape s, const StencilParams *p, int kind) {
  if (s.layout == STENCIL_FLAT) stencil_1d(s, p, kind);
  else if (s.layout == STENCIL_NARROW || (s.wide && p->narrow)) stencil_narrow(s, p, kind);
  else if (s.layout == STENCIL_DENSE) stencil_dense(s, p, kind);
  else stencil_2d(s, p, kind);
}

// The type is a compile-time constant: a branch between loads would keep them from being in flight together.
INLINE void stencil(StencilShape s, const StencilParams *p) {
  let_successor_start();
  wait_for_predecessor();
  if (s.size == 4) stencil_of(s, p, KIND_FP32);
  else if (p->x_kind == KIND_FP16) stencil_of(s, p, KIND_FP16);
  else stencil_of(s, p, KIND_BF16);
}

// Blocks on an SM that registers are to allow.
#define STENCIL_BLOCKS(radius, rows, layout)                                                                              \
  ((layout) == STENCIL_DENSE ? ((radius) <= 2 ? 4 : (radius) <= 4 ? 3 : 2) : (radius) == 1 || !(rows) ? 4 : (radius) <= 4 ? 3 : 2)
#define STENCIL_OF_THREAD(size, layout) \
  ((layout) == STENCIL_ANY ? STENCIL_COLUMNS : (layout) == STENCIL_NARROW ? 1 : 16 / (size))
#define STENCIL(name, size, radius, rows, layout)                                                                         \
  KERNEL __launch_bounds__(STENCIL_THREADS, STENCIL_BLOCKS(radius, rows, layout)) name(const __grid_constant__ StencilParams p) { \
    stencil((StencilShape){size, radius, rows, layout, (layout) == STENCIL_WIDE, STENCIL_OF_THREAD(size, layout)}, &p);   \
  }
#if __CUDA_ARCH__ >= 800
#define STENCIL_STRIPS STRIP
#define STENCIL_BANDS  BAND
#else
#define STENCIL_BANDS(name, size, radius, each, blocks)
#define STENCIL_STRIPS(name, size, radius, each, blocks)
#endif
#define STENCIL_WALKS(name, size, radius, layout) // stencil_tensor.cuh, stencil_walk.cuh
#include "stencil.def"
