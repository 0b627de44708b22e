// y = centre * x + sum over d of side[d-1] * (x at distance d along each axis), radius 4, zero outside.
#include "stencil/rungs.h"
#include "common.cuh"

enum {
  RADIUS = STENCIL_RUNG_RADIUS,
  WIDE = STENCIL_RUNG_WIDE,
  WARPS = STENCIL_RUNG_WARPS,
  THREADS = WIDE * WARPS,
  PITCH = WIDE + 2 * RADIUS // of a tile and its halo
};

typedef struct Tile {
  int row, column; // its first
  bool inside;     // and its halo, too: no bounds checks
} Tile;

INLINE Tile tile_of(const StencilRung *p, int tall) {
  Tile t;
  t.row = blockIdx.x / p->tiles_n * tall;
  t.column = blockIdx.x % p->tiles_n * WIDE;
  t.inside = t.row >= RADIUS && t.row < p->m - tall - RADIUS && t.column >= RADIUS && t.column < p->n - WIDE - RADIUS;
  return t;
}

// Zero where x ends.
INLINE float element(const StencilRung *p, int r, int c, bool inside) {
  return inside || (r >= 0 && r < p->m && c >= 0 && c < p->n) ? p->x[(int64_t)r * p->n + c] : 0;
}

INLINE float around(const StencilRung *p, int r, int c, bool inside) {
  float sum = p->centre * element(p, r, c, inside);
#pragma unroll
  for (int d = 1; d <= RADIUS; d++)
    sum += p->side[d - 1] * (element(p, r - d, c, inside) + element(p, r + d, c, inside) +
                             element(p, r, c - d, inside) + element(p, r, c + d, inside));
  return sum;
}

// Seventeen loads an element; most hit in L1, where neighbouring threads' loads have put the same lines.
KERNEL __launch_bounds__(THREADS) stencil_rung_global(const __grid_constant__ StencilRung p) {
  Tile t = tile_of(&p, STENCIL_RUNG_TALL);
  int c = t.column + threadIdx.x % WIDE;
  for (int k = threadIdx.x / WIDE; k < STENCIL_RUNG_TALL; k += WARPS) {
    int r = t.row + k;
    if (t.inside) p.y[(int64_t)r * p.n + c] = around(&p, r, c, true);
    else if (r < p.m && c < p.n) p.y[(int64_t)r * p.n + c] = around(&p, r, c, false);
  }
}

// A warp a row, all its loads in flight before the first is used.
INLINE void load_rows(const StencilRung *p, Tile t, int tall, bool inside, float *tile) {
  enum { MOST = (STENCIL_RUNG_TALLER + 2 * RADIUS) / WARPS };
  int warp = threadIdx.x / WIDE, lane = threadIdx.x % WIDE, rounds = (tall + 2 * RADIUS) / WARPS;
  int row = t.row - RADIUS + warp, column = t.column - RADIUS + lane;
  float first[MOST], rest[MOST];
#pragma unroll
  for (int k = 0; k < rounds; k++) {
    first[k] = element(p, row + k * WARPS, column, inside);
    rest[k] = lane < 2 * RADIUS ? element(p, row + k * WARPS, column + WIDE, inside) : 0;
  }
#pragma unroll
  for (int k = 0; k < rounds; k++) {
    tile[(warp + k * WARPS) * PITCH + lane] = first[k];
    if (lane < 2 * RADIUS) tile[(warp + k * WARPS) * PITCH + WIDE + lane] = rest[k];
  }
}

// A tile with `RADIUS` rows and columns more on every side into shared memory.
INLINE void load_tile(const StencilRung *p, Tile t, int tall, float *tile) {
  if (t.inside) load_rows(p, t, tall, true, tile);
  else load_rows(p, t, tall, false, tile);
  __syncthreads();
}

INLINE void store_element(const StencilRung *p, Tile t, int r, int c, float f) {
  if (t.inside || (r < p->m && c < p->n)) p->y[(int64_t)r * p->n + c] = f;
}

INLINE float across(const StencilRung *p, const float *at) {
  float sum = p->centre * at[0];
#pragma unroll
  for (int d = 1; d <= RADIUS; d++) sum += p->side[d - 1] * (at[-d] + at[d]);
  return sum;
}

// The block loads its tile and halo once; the seventeen reads go to shared memory.
KERNEL __launch_bounds__(THREADS) stencil_rung_tile(const __grid_constant__ StencilRung p) {
  __shared__ float tile[(STENCIL_RUNG_TALL + 2 * RADIUS) * PITCH];
  Tile t = tile_of(&p, STENCIL_RUNG_TALL);
  int c = t.column + threadIdx.x % WIDE;
  load_tile(&p, t, STENCIL_RUNG_TALL, tile);
  for (int k = threadIdx.x / WIDE; k < STENCIL_RUNG_TALL; k += WARPS) {
    const float *at = tile + (k + RADIUS) * PITCH + RADIUS + threadIdx.x % WIDE;
    float sum = across(&p, at);
#pragma unroll
    for (int d = 1; d <= RADIUS; d++) sum += p.side[d - 1] * (at[-d * PITCH] + at[d * PITCH]);
    store_element(&p, t, t.row + k, c, sum);
  }
}

// A thread has eight rows below each other and their column in registers: what is above and below is read once for all.
KERNEL __launch_bounds__(THREADS) stencil_rung_registers(const __grid_constant__ StencilRung p) {
  enum { ROWS = STENCIL_RUNG_TALLER / WARPS };
  __shared__ float tile[(STENCIL_RUNG_TALLER + 2 * RADIUS) * PITCH];
  Tile t = tile_of(&p, STENCIL_RUNG_TALLER);
  int first = threadIdx.x / WIDE * ROWS;
  int c = t.column + threadIdx.x % WIDE;
  load_tile(&p, t, STENCIL_RUNG_TALLER, tile);
  const float *at = tile + first * PITCH + RADIUS + threadIdx.x % WIDE;
  float column[ROWS + 2 * RADIUS];
#pragma unroll
  for (int k = 0; k < ROWS + 2 * RADIUS; k++) column[k] = at[k * PITCH];
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    float sum = across(&p, at + (k + RADIUS) * PITCH);
#pragma unroll
    for (int d = 1; d <= RADIUS; d++) sum += p.side[d - 1] * (column[k + RADIUS - d] + column[k + RADIUS + d]);
    store_element(&p, t, t.row + first + k, c, sum);
  }
}
