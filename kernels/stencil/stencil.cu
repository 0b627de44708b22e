// y = centre * x + sum over d of side[d-1] * (x at distance d along each axis)
//
// A block loads a tile of x and what surrounds it into shared memory, as floats, each element once. A thread computes
// four columns of a few rows below each other and keeps those columns in registers: what is above and below an
// element is read once for all of them.
#include "funnel.cuh"
#include "stencil.h"

// Constants of a kernel, as literals.
typedef struct StencilShape {
  int size, radius, tall, wide;
  int margin; // columns on either side of the tile: whole vectors
  int above;  // rows above and below it
} StencilShape;

typedef struct StencilItem {
  const char *from, *first, *end; // a vector, and its row
  int here;                       // some of it is inside x
} StencilItem;

INLINE StencilItem stencil_item(StencilShape s, const StencilParams *p, int64_t row0, int64_t column0, int item) {
  int per = 16 / s.size, across = (s.wide + 2 * s.margin) / per;
  int64_t r = row0 - s.above + item / across, c = column0 - s.margin + item % across * per;
  StencilItem at;
  at.first = (const char *)p->x + r * p->x_stride * s.size;
  at.end = at.first + p->n * s.size;
  at.from = at.first + c * s.size;
  at.here = item < (s.tall + 2 * s.above) * across && r >= 0 && r < p->m && c + per > 0 && c < p->n;
  return at;
}

// What of a vector is inside x; zeros for the rest.
INLINE uint4 stencil_load(StencilShape s, StencilItem at) {
  if (!at.here) return make_uint4(0, 0, 0, 0);
  if (!is_around(at.from, at.first, at.end)) return load_singly(at.from, at.first, at.end, s.size);
  return take_around(load_around(at.from, 1), at.from, s.size);
}

// Rows row0 - above .. and columns column0 - margin .. of x; zeros outside. Where rows start on 16 bytes all of a
// thread's whole vectors are loaded first.
INLINE void stencil_in(StencilShape s, const StencilParams *p, int64_t row0, int64_t column0, float *tile) {
  int per = 16 / s.size, across = (s.wide + 2 * s.margin) / per, all = (s.tall + 2 * s.above) * across;
  int count = (all + STENCIL_THREADS - 1) / STENCIL_THREADS, done = 0;
  Vec v[8];
#pragma unroll
  for (int k = 0; k < count; k++) {
    StencilItem at = stencil_item(s, p, row0, column0, k * STENCIL_THREADS + threadIdx.x);
    int ok = p->x_wide && at.here && at.from >= at.first && at.from + 16 <= at.end;
    v[k].v = load_if(at.from, ok);
    done |= (ok || !at.here) << k;
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    int item = k * STENCIL_THREADS + threadIdx.x;
    if (!(done >> k & 1)) v[k].v = stencil_load(s, stencil_item(s, p, row0, column0, item));
    float f[8];
    widen(&v[k], p->x_kind, s.size, f);
    if (item >= all) continue;
    float *to = tile + item / across * (s.wide + 2 * s.margin) + item % across * per;
    *(float4 *)to = make_float4(f[0], f[1], f[2], f[3]);
    if (per == 8) *(float4 *)(to + 4) = make_float4(f[4], f[5], f[6], f[7]);
  }
}

// centre * x and the neighbours in the row, for the four elements at `at` in the tile.
INLINE void stencil_row(StencilShape s, const StencilParams *p, const float *at, float *sum) {
  enum { MARGIN = 8 };
  float f[4 + 2 * MARGIN];
  int margin = (s.radius + 3) / 4 * 4;
#pragma unroll
  for (int i = 0; i < 4 + 2 * margin; i += 4) *(float4 *)(f + i) = *(const float4 *)(at - margin + i);
#pragma unroll
  for (int j = 0; j < 4; j++) sum[j] = p->centre * f[margin + j];
#pragma unroll
  for (int d = 1; d <= s.radius; d++) {
    if (d > p->radius) break;
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum[j] = fmaf(p->side[d - 1], f[margin + j + d], fmaf(p->side[d - 1], f[margin + j - d], sum[j]));
  }
}

// Spelt out: assigned as a float4 or a uint2 they come out of nvcc as single stores here.
INLINE void store_four(float *to, const float *f) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(f[0]), "f"(f[1]),
               "f"(f[2]), "f"(f[3])
               : "memory");
}

INLINE void store_four_narrow(uint16_t *to, const float *f, int kind) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(narrow2(f[0], f[1], kind)),
               "r"(narrow2(f[2], f[3], kind))
               : "memory");
}

INLINE void stencil_out(const StencilParams *p, int64_t r, int64_t c, const float *sum) {
  if (r >= p->m || c >= p->n) return;
  int64_t at = r * p->y_stride + c;
  if (p->y_wide && c + 4 <= p->n) {
    if (p->y_kind == KIND_FP32) store_four((float *)p->y + at, sum);
    else store_four_narrow((uint16_t *)p->y + at, sum, p->y_kind);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (c + j < p->n) store_one(p->y, at + j, p->y_kind, sum[j]);
}

// A warp has the whole width of the tile (32 threads of four columns) and tall / 8 rows below each other.
INLINE void stencil_2d(StencilShape s, const StencilParams *p, int64_t row0, int64_t column0, const float *tile) {
  enum { MOST = 4 + 2 * 8 };
  int pitch = s.wide + 2 * s.margin, rows = s.tall / (STENCIL_THREADS / 32);
  int column = threadIdx.x % 32 * 4, row = threadIdx.x / 32 * rows;
  const float *at = tile + row * pitch + s.margin + column;
  float4 w[MOST];
#pragma unroll
  for (int k = 0; k < rows + 2 * s.above; k++) w[k] = *(const float4 *)(at + k * pitch);
#pragma unroll
  for (int k = 0; k < rows; k++) {
    float sum[4];
    stencil_row(s, p, at + (k + s.above) * pitch, sum);
#pragma unroll
    for (int d = 1; d <= s.radius; d++) {
      if (d > p->radius) break;
      float by = p->side[d - 1];
      float4 up = w[k + s.above - d], down = w[k + s.above + d];
      sum[0] = fmaf(by, down.x, fmaf(by, up.x, sum[0])), sum[1] = fmaf(by, down.y, fmaf(by, up.y, sum[1]));
      sum[2] = fmaf(by, down.z, fmaf(by, up.z, sum[2])), sum[3] = fmaf(by, down.w, fmaf(by, up.w, sum[3]));
    }
    stencil_out(p, row0 + row + k, column0 + column, sum);
  }
}

INLINE void stencil_1d(StencilShape s, const StencilParams *p, int64_t column0, const float *tile) {
#pragma unroll
  for (int k = 0; k < s.wide / 4; k += STENCIL_THREADS) {
    int column = (k + threadIdx.x) * 4;
    float sum[4];
    stencil_row(s, p, tile + s.margin + column, sum);
    stencil_out(p, 0, column0 + column, sum);
  }
}

INLINE void stencil(StencilShape s, const StencilParams *p, float *tile) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, down = 0, across = block;
  let_successor_start();
  wait_for_predecessor();
  if (block >= p->tiles) return;
  if (s.tall > 1) split(block, p->tiles_n, &down, &across);
  int64_t row0 = (int64_t)down * s.tall, column0 = (int64_t)across * s.wide;
  stencil_in(s, p, row0, column0, tile);
  __syncthreads();
  if (s.tall > 1) stencil_2d(s, p, row0, column0, tile);
  else stencil_1d(s, p, column0, tile);
}

// Vectors of 16-bit elements are eight columns wide.
#define MARGIN(size, radius) ((size) == 2 || (radius) > 4 ? 8 : 4)
#define ABOVE(tall, radius)  ((tall) > 1 ? (radius) : 0)
#define STENCIL(name, size, radius, tall, wide)                                                              \
  KERNEL __launch_bounds__(STENCIL_THREADS) name(const __grid_constant__ StencilParams p) {                  \
    __shared__ __align__(16) float tile[((tall) + 2 * ABOVE(tall, radius)) * ((wide) + 2 * MARGIN(size, radius))]; \
    stencil((StencilShape){size, radius, tall, wide, MARGIN(size, radius), ABOVE(tall, radius)}, &p, tile);  \
  }
#include "stencil.def"
